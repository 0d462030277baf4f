//! Files of tasks, and functions that judge failures, in TypeScript workflows.

use crate::engine::Project;
use crate::typescript::run;

const TASKS: &str = r#"{"version": "1.0", "tasks": [
  {"id": "a", "name": "one", "status": "pending"},
  {"id": "b", "name": "two", "status": "pending"},
  {"id": "c", "name": "three", "status": "passing"}
]}"#;

fn task_loop(options: &str) -> String {
    format!(
        "import {{ graph, taskLoopNode, toolNode }} from \"atomic/workflows\";\n\
         export default () => graph<any>().start(taskLoopNode({{ {options},\n\
           taskNodes: toolNode<any>(\"note\", {{ execute: async (s, ctx) => {{\n\
             await ctx.shell(`echo ${{s.iteration}} ${{s.currentTask.name}} >> order.txt`);\n\
             return {{}};\n\
           }} }}),\n\
         }})).end().compile();\n"
    )
}

fn values(stdout: &str) -> serde_json::Value {
    let last = stdout.lines().rfind(|line| line.contains("\"values\"")).unwrap();
    serde_json::from_str::<serde_json::Value>(last).unwrap()["values"].clone()
}

#[test]
fn a_function_picks_the_next_task_and_another_says_where_the_file_is() {
    let project = Project::new();
    project.write("plans/mine.json", TASKS);
    let options = "tasksPath: (s) => `plans/${s.prompt === \"Do it\" ? \"mine\" : \"none\"}.json`,\n\
                   taskSelector: (tasks) => tasks.filter((t) => t.status === \"pending\").at(-1)";
    project.write(".atomic/workflows/picks.ts", &task_loop(options));
    let ended = run(&project, "picks", &["--trust", "--stream", "values"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(project.read("order.txt"), "1 two\n2 one\n");
    let tasks: serde_json::Value = serde_json::from_str(&project.read("plans/mine.json")).unwrap();
    let all: Vec<_> = tasks["tasks"].as_array().unwrap().iter().map(|t| &t["status"]).collect();
    assert_eq!(all, ["completed", "completed", "passing"]);
    let values = values(&ended.stdout);
    assert_eq!(values["allTasksComplete"], true);
    assert_eq!(values["shouldContinue"], false);
}

#[test]
fn a_file_of_tasks_outside_of_the_project_is_refused() {
    let project = Project::new();
    let options = "tasksPath: () => \"../secret.json\"";
    project.write(".atomic/workflows/leaves.ts", &task_loop(options));
    let ended = run(&project, "leaves", &["--trust"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("`tasksPath` gave \"../secret.json\""), "{ended:?}");
}

#[test]
fn whoever_judges_a_failure_hears_what_was_thrown() {
    let project = Project::new();
    let flow = "import { graph, toolNode } from \"atomic/workflows\";\n\
        export default () => graph<any>()\n\
          .start(toolNode<any>(\"a\", {\n\
            execute: async (s, ctx) => {\n\
              await ctx.shell(\"echo x >> tries.txt\");\n\
              throw new Error((await ctx.readFile(\"tries.txt\")).length > 2 ? \"broken\" : \"busy\");\n\
            },\n\
            retry: { maxAttempts: 5, backoffMs: 1, retryOn: (e) => e.message === \"busy\" },\n\
            onError: (e) => ({ action: \"skip\", stateUpdate: { why: e.message } }),\n\
          }))\n\
          .end().compile();\n";
    project.write(".atomic/workflows/judges.ts", flow);
    let ended = run(&project, "judges", &["--trust", "--stream", "values"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(project.read("tries.txt"), "x\nx\n");
    assert_eq!(values(&ended.stdout)["why"], "broken");
}
