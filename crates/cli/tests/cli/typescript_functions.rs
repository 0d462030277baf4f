//! Functions of TypeScript workflows: when they are called, and with what.

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
    assert_eq!(all, ["passing", "passing", "passing"]);
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

#[test]
fn a_workflow_inside_another_makes_its_state_when_it_begins() {
    let project = Project::new();
    let child = "import { toolNode } from \"atomic/workflows\";\n\
        export const graphConfig = { startNode: \"say\", edges: [], nodes: [toolNode<any>({ id: \"say\", execute: (s) => ({ said: `${s.greeting}; ${s.own}; ${s.given}` }) })] };\n\
        export const createState = (p: any) => ({\n\
          greeting: `Hello ${JSON.parse(p.prompt).name} in ${p.sessionId === \"\" ? \"nothing\" : p.sessionDir.split(\"/\").at(-1) === p.sessionId}`,\n\
          own: \"mine\", given: \"not this\", outputs: {},\n\
        });\n";
    project.write(".atomic/workflows/child.ts", child);
    let parent = "import { graph, subgraphNode } from \"atomic/workflows\";\n\
        const sub = (id: string, prompt: string) => subgraphNode<any>({ id, subgraph: \"child\", inputMapper: () => ({ prompt, given: id }), outputMapper: (r: any) => ({ [id]: r.said }) });\n\
        export default () => graph<any>().start(sub(\"one\", '{\"name\": \"Ann\"}')).then(sub(\"two\", '{\"name\": \"Bob\"}')).end().compile();\n";
    project.write(".atomic/workflows/parent.ts", parent);
    let ended = run(&project, "parent", &["--trust", "--stream", "values"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let values = values(&ended.stdout);
    assert_eq!(values["one"], "Hello Ann in true; mine; one");
    assert_eq!(values["two"], "Hello Bob in true; mine; two");

    let script = "import { defineWorkflow } from \"atomic/workflows\";\n\
        export default defineWorkflow({ name: \"calls\" }).run(async (ctx) => {\n\
          const made: any = await ctx.workflow(\"child\", '{\"name\": \"Cleo\"}');\n\
          await ctx.writeFile(\"made.txt\", JSON.stringify(made));\n\
          return ctx.workflow(\"child\", \"no JSON\");\n\
        });\n";
    project.write(".atomic/workflows/calls.ts", script);
    let ended = run(&project, "calls", &["--trust"]);
    assert!(project.read("made.txt").contains("Hello Cleo in true; mine; not this"));
    // What it throws is told, with its place.
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("child.ts:4:"), "{ended:?}");
}

#[test]
fn names_that_a_script_calls_are_looked_up_beforehand() {
    let project = Project::new();
    let script = "import { defineWorkflow } from \"atomic/workflows\";\n\
        export default defineWorkflow({ name: \"typo\" }).run(async (ctx) => {\n\
          await ctx.agent(\"plannerr\", \"Plan\");\n\
          await ctx.agent(\"my-own\", { systemPrompt: \"You count.\", prompt: \"Count\" });\n\
          await ctx.skill(\"comit\");\n\
          return ctx.agent(\"worker\", ctx.prompt);\n\
        });\n";
    project.write(".atomic/workflows/typo.ts", script);
    let checked = crate::typescript::atomic(&project, &["check", "typo", "--trust"]);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    insta::assert_snapshot!(project.filtered(&checked.stdout), @r#"
    .atomic/workflows/typo.ts:3:17: ATM401 error at run: Agent not found: "plannerr" (did you mean "planner"?)
      2 | export default defineWorkflow({ name: "typo" }).run(async (ctx) => {
    > 3 | await ctx.agent("plannerr", "Plan");
        |                 ^^^^^^^^^^
      4 | await ctx.agent("my-own", { systemPrompt: "You count.", prompt: "Count" });
      help: use "planner", or add "plannerr" to what is there
    .atomic/workflows/typo.ts:5:17: ATM402 error at run: Skill not found: "comit" (did you mean "commit"?)
      4 | await ctx.agent("my-own", { systemPrompt: "You count.", prompt: "Count" });
    > 5 | await ctx.skill("comit");
        |                 ^^^^^^^
      6 | return ctx.agent("worker", ctx.prompt);
      help: use "commit", or add "comit" to what is there
    typo: 2 errors
    "#);
}
