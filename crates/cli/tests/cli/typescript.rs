//! Workflows in TypeScript as a user meets them. No Node, Bun or Deno is in `PATH` here.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::engine::Project;
use crate::env::{Ran, ran};

/// What workflows and their tests use of the machine. Whatever runs TypeScript is not among it.
const PROGRAMS: [&str; 12] =
    ["sh", "git", "cat", "ls", "sleep", "true", "false", "mkdir", "rm", "touch", "grep", "wc"];

/// A folder with only these programs, made where it is not there.
pub(crate) fn only_plain_programs(bin: &Path) -> PathBuf {
    if !bin.exists() {
        fs::create_dir(bin).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        for name in PROGRAMS {
            let mut found = std::env::split_paths(&path).map(|folder| folder.join(name));
            let found = found.find(|file| file.is_file());
            symlink(found.unwrap_or_else(|| panic!("{name} is missing")), bin.join(name)).unwrap();
        }
    }
    bin.to_owned()
}

/// Has a command find only these programs.
fn without_node(project: &Project, mut command: Command) -> Command {
    command.env("PATH", only_plain_programs(&project.env.outside("bin")));
    command
}

pub(crate) fn atomic(project: &Project, args: &[&str]) -> Ran {
    ran(without_node(project, project.env.atomic(args)))
}

/// `atomic run` on the project's script.
pub(crate) fn run(project: &Project, workflow: &str, more: &[&str]) -> Ran {
    ran(without_node(project, project.command(workflow, more)))
}

/// A folder of this crate's tests.
fn fixtures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Puts the files of a folder into the project's workflows.
pub(crate) fn add_workflows(project: &Project, folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            for inner in fs::read_dir(&path).unwrap() {
                let inner = inner.unwrap().path();
                let file = inner.file_name().unwrap().to_str().unwrap();
                let text = fs::read_to_string(&inner).unwrap();
                project.write(&format!(".atomic/workflows/{name}/{file}"), &text);
            }
        } else {
            let text = fs::read_to_string(&path).unwrap();
            project.write(&format!(".atomic/workflows/{name}"), &text);
        }
    }
}

/// The first line of a broken file says what is to be found: `// ATM701 3:29, ATM702 4:1`.
fn expected(text: &str) -> Vec<(String, String)> {
    let line = text.lines().next().unwrap().strip_prefix("// ").unwrap();
    let pair = |part: &str| {
        let (code, place) = part.trim().split_once(' ').unwrap();
        (code.to_owned(), place.to_owned())
    };
    line.split(',').map(pair).collect()
}

#[test]
fn every_broken_file_is_told_with_its_code_line_and_column() {
    let project = Project::new();
    add_workflows(&project, &fixtures("broken"));
    project.write("secrets.json", "{}");
    let mut wrong = vec![];
    let mut files: Vec<PathBuf> = fs::read_dir(fixtures("broken"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    assert!(files.len() >= 40, "{}", files.len());
    let name = |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().to_owned();
    let paths: Vec<String> =
        files.iter().map(|file| format!(".atomic/workflows/{}", name(file))).collect();
    let mut args = vec!["check", "--trust"];
    args.extend(paths.iter().map(String::as_str));
    let checked = atomic(&project, &args);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    for file in &files {
        let name = name(file);
        // What is said of a file ends with how many errors it has.
        let count = format!(".atomic/workflows/{name}: ");
        let verdict = checked.stdout.lines().find(|line| line.starts_with(&count));
        if !verdict.is_some_and(|line| line.contains("error")) {
            wrong.push(format!("{name}: {verdict:?}"));
        }
        for (code, place) in expected(&fs::read_to_string(file).unwrap()) {
            // In the file itself, unless another one is named.
            let place = if place.contains('.') { place } else { format!("{name}:{place}") };
            let sign = format!("{place}: {code} error");
            if !checked.stdout.contains(&sign) {
                wrong.push(format!("{sign}\n{}", project.shown(&checked)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are told otherwise:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn a_broken_file_hides_no_other() {
    let project = Project::new();
    add_workflows(&project, &fixtures("broken"));
    add_workflows(&project, &fixtures("../../workflow/tests/samples"));
    let checked = atomic(&project, &["check", "--trust"]);
    assert_eq!(checked.code, Some(1));
    for name in ["builder", "chat-only", "child-workflow", "plan-work-review"] {
        assert!(checked.stdout.contains(&format!("\n{name}: ok")), "{name}: {}", checked.stdout);
    }
    let listed = atomic(&project, &["list", "workflows"]);
    assert!(listed.stdout.contains("/plan-work-review"), "{listed:?}");
}

/// What the named agents of the samples answer.
const ANSWERS: &str = r#"
[[turn]]
agent = "reviewer"
prompt = ["ALL GOOD"]
do = [{ say = "ALL GOOD" }]
[[turn]]
do = [{ say = "Answered." }]
"#;

fn sampled() -> Project {
    let project = Project::scripted(ANSWERS);
    add_workflows(&project, &fixtures("../../workflow/tests/samples"));
    project.write(
        ".atomic/commands/changelog.md",
        "---\ndescription: Write the change log\n---\nWrite the change log: $ARGUMENTS\n",
    );
    let tasks = json!([
        {"id": "#1", "content": "one", "status": "pending", "activeForm": "Doing one"},
        {"id": "#2", "content": "two", "status": "pending", "activeForm": "Doing two", "blockedBy": ["#1"]},
    ]);
    project.write("research/tasks.json", &tasks.to_string());
    project
}

const SAMPLES: [&str; 8] = [
    "builder",
    "chat-only",
    "child-workflow",
    "mapped-subgraph",
    "my-workflow",
    "named-nodes",
    "parent-workflow",
    "plan-work-review",
];

#[test]
fn the_samples_are_checked_and_drawn() {
    let project = sampled();
    let mut shown = vec![];
    for name in SAMPLES {
        let checked = atomic(&project, &["check", "--trust", name]);
        assert_eq!(checked.stdout, format!("{name}: ok\n"), "{checked:?}");
        let drawn = atomic(&project, &["graph", "--trust", name]);
        assert_eq!(drawn.code, Some(0), "{drawn:?}");
        shown.push(drawn.stdout);
    }
    insta::assert_snapshot!("samples_drawn", shown.join("\n"));
}

#[test]
fn the_samples_run_to_their_end() {
    for name in SAMPLES {
        let project = sampled();
        let ended = run(&project, name, &["--trust", "--on-question", "pause"]);
        // One of them asks the user to have a look.
        let code = if name == "builder" { 3 } else { 0 };
        assert_eq!(ended.code, Some(code), "{name}: {ended:?}");
        if name == "builder" {
            let answered = atomic(&project, &["answer", "last", "go on", "--resume"]);
            assert_eq!(answered.code, Some(0), "{answered:?}");
        }
    }
}

/// The state at the end of the only session.
fn last_values(ended: &Ran) -> Value {
    let line = ended.stdout.lines().rfind(|line| line.contains("\"values\"")).unwrap();
    serde_json::from_str::<Value>(line).unwrap()["values"].clone()
}

#[test]
fn the_samples_come_to_what_they_say() {
    let values = |name: &str| {
        let project = sampled();
        let ended = run(&project, name, &["--trust", "--stream", "values"]);
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        last_values(&ended)
    };
    assert_eq!(values("my-workflow")["summary"], "9 characters of plan for: Do it");
    assert_eq!(values("child-workflow")["words"], 2);
    assert_eq!(values("mapped-subgraph")["words"], 2);
    let reviewed = values("plan-work-review");
    assert_eq!(reviewed["rounds"], 3);
    assert_eq!(reviewed["verdict"], "2 reviews");
    assert_eq!(reviewed["findings"], json!(["2 reviews"]));
    let statuses: Vec<_> =
        reviewed["tasks"].as_array().unwrap().iter().map(|task| task["status"].clone()).collect();
    assert_eq!(statuses, ["completed", "completed", "completed"]);
}

#[test]
fn a_local_ralph_replaces_the_built_in_one() {
    let project = Project::new();
    project.write(
        ".atomic/workflows/ralph.ts",
        r#"
        import { graph, toolNode } from "@atomic/graph";
        export const name = "ralph";
        export const description = "Not the one you know";
        export default () => graph<any>()
          .start(toolNode({ id: "mine", execute: () => ({ mine: true }) })).end().compile();
        "#,
    );
    for name in ["ralph", "loop"] {
        let ended = run(&project, name, &["--trust", "--stream", "values"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(last_values(&ended)["mine"], true);
    }
    let shown = atomic(&project, &["list", "workflows"]);
    assert!(!shown.stdout.contains("Not the one you know"), "without trust: {shown:?}");
    assert_eq!(atomic(&project, &["trust", "."]).code, Some(0));
    let shown = atomic(&project, &["list", "workflows"]);
    assert!(shown.stdout.contains("Not the one you know"), "{shown:?}");
    let ended = run(&project, "ralph", &[]);
    let told = "ralph: .atomic/workflows/ralph.ts replaces the built-in workflow";
    assert!(ended.stderr.contains(told), "{ended:?}");
}

#[test]
fn a_file_is_run_from_anywhere() {
    let project = Project::new();
    let folder = project.env.outside("elsewhere");
    fs::create_dir_all(folder.join("lib")).unwrap();
    fs::write(
        folder.join("lib/words.ts"),
        "export const count = (t: string) => t.split(' ').length;\n",
    )
    .unwrap();
    fs::write(
        folder.join("counts.ts"),
        r#"
        import { toolNode } from "atomic/workflows/graph";
        import { count } from "./lib/words";
        export const graphConfig = {
          startNode: "count", edges: [],
          nodes: [toolNode({ id: "count", execute: (s: any) => ({ words: count(s.prompt) }) })],
        };
        "#,
    )
    .unwrap();
    let path = folder.join("counts.ts");
    let path = path.to_str().unwrap();
    let ended = run(&project, path, &["--trust", "--stream", "values"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(last_values(&ended)["words"], 2);
    // The session has kept what it needs.
    let created = project.of_type("session_created").remove(0);
    assert!(created.to_string().contains("export const count"), "{created}");
}

#[test]
fn a_file_without_a_graph_is_one_turn() {
    let project = sampled();
    let ended = run(&project, "chat-only", &["--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let started = project.of_type("step_started");
    assert_eq!(started.len(), 1, "{started:?}");
}

#[test]
fn workflows_that_use_each_other_in_a_circle_are_told() {
    let project = Project::new();
    let using = |name: &str, other: &str| {
        let text = format!(
            "import {{ graph, subgraphNode }} from \"atomic/workflows\";\n\
             export const name = \"{name}\";\n\
             export default () => graph<any>().start(subgraphNode({{ id: \"x\", subgraph: \"{other}\" }})).end().compile();\n"
        );
        project.write(&format!(".atomic/workflows/{name}.ts"), &text);
    };
    using("a", "b");
    using("b", "a");
    let checked = atomic(&project, &["check", "--trust", "a"]);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert!(
        checked.stdout.contains("Circular workflow dependency detected: a -> b -> a"),
        "{checked:?}"
    );
}

#[test]
fn workflows_of_every_kind_are_inside_each_other() {
    let project = Project::scripted(ANSWERS);
    project.write(
        ".atomic/workflows/inner.ts",
        "import { graph, toolNode } from \"atomic/workflows\";\n\
         export default () => graph<any>().start(toolNode({ id: \"count\", execute: (s: any) => ({ letters: s.prompt.length }) })).end().compile();\n",
    );
    let json = json!({"name": "middle", "nodes": [{"type": "subgraph", "id": "deeper", "workflow": "inner"}]});
    project.write(".atomic/workflows/middle.json", &json.to_string());
    project.write(
        ".atomic/workflows/outer.ts",
        "import { graph, subgraphNode } from \"atomic/workflows\";\n\
         export default () => graph<any>()\n\
           .start(subgraphNode({ id: \"first\", subgraph: \"middle\", outputMapper: (sub: any) => ({ seen: sub.outputs.deeper.letters }) }))\n\
           .then(subgraphNode({ id: \"asked\", subgraph: \"second-opinion\" }))\n\
           .end().compile();\n",
    );
    let ended =
        run(&project, "outer", &["--trust", "--on-question", "recommended", "--stream", "values"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(last_values(&ended)["seen"], 5);
    let drawn = atomic(&project, &["graph", "--trust", "outer"]);
    for sign in ["first", "deeper", "count", "asked"] {
        assert!(drawn.stdout.contains(sign), "{drawn:?}");
    }
    // What is not trusted is not run inside another one either.
    let refused = run(&project, "middle", &[]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("ATM720") && refused.stderr.contains("inner.ts"),
        "{refused:?}"
    );
}

#[test]
fn a_state_that_is_handed_back_does_not_grow() {
    let project = Project::new();
    project.write(
        ".atomic/workflows/spread.ts",
        "import { graph, toolNode } from \"atomic/workflows\";\n\
         export default () => {\n\
           let all = graph<any>().start(toolNode({ id: \"n0\", execute: (s: any) => ({ ...s, k0: 1 }) }));\n\
           for (let i = 1; i < 18; i++) all = all.then(toolNode({ id: `n${i}`, execute: (s: any) => ({ ...s, [`k${i}`]: 1 }) }));\n\
           return all.end().compile();\n\
         };\n",
    );
    let ended = run(&project, "spread", &["--trust", "--stream", "values"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(last_values(&ended)["outputs"]["n17"], json!({"k17": 1}));
}
