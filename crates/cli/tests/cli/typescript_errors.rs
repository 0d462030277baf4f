//! What a user sees when a workflow in TypeScript fails while it runs, and when it means harm.

use std::fs;
use std::time::{Duration, Instant};

use crate::engine::Project;
use crate::typescript::{atomic, run};

fn project(name: &str, text: &str) -> Project {
    let project = Project::new();
    project.write(&format!(".atomic/workflows/{name}.ts"), text);
    project
}

/// A workflow of one tool with this body.
fn tool(body: &str) -> String {
    format!(
        "import {{ graph, toolNode }} from \"atomic/workflows\";\n\
         import {{ shell }} from \"atomic/host\";\n\
         void shell;\n\
         export default () => graph<any>().start(toolNode({{ id: \"work\", execute: async (s: any, ctx: any) => {{\n\
         {body}\n\
         }} }})).end().compile();\n"
    )
}

#[test]
fn an_error_at_run_time_has_its_node_and_its_place() {
    let text = tool("  const list: any = undefined;\n  return { first: list[0] };");
    let project = project("breaks", &text);
    let ended = run(&project, "breaks", &["--trust"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    insta::assert_snapshot!(project.filtered(&ended.stderr), @r"
    error: node `work`: TypeError: cannot read property '0' of undefined (.atomic/workflows/breaks.ts:6:19)
      5 |   const list: any = undefined;
    > 6 |   return { first: list[0] };
        |                   ^^^^
      7 | } })).end().compile();
    ");
    let failed = project.of_type("step_failed").remove(0);
    assert_eq!(failed["step"], "work#1");
    let detail = failed["error"]["detail"].as_str().unwrap();
    assert!(detail.contains("> 6 |   return { first: list[0] };"), "{detail}");
}

#[test]
fn what_cannot_be_kept_is_refused_with_the_function_that_returned_it() {
    let project = project("keeps", &tool("  return { seen: new Set([1]) };"));
    let ended = run(&project, "keeps", &["--trust"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    insta::assert_snapshot!(project.filtered(&ended.stderr), @r#"
    error: node `work`: TypeError: a Set cannot be kept; use an object or a list (at the returned value.seen) (.atomic/workflows/keeps.ts:4:73)
      3 | void shell;
    > 4 | export default () => graph<any>().start(toolNode({ id: "work", execute: async (s: any, ctx: any) => {
        |                                                                         ^^^^^
      5 |   return { seen: new Set([1]) };
    "#);
}

/// Which keys functions change is known only when they have.
#[test]
fn two_that_replace_a_value_at_once_fail_and_go_on_when_it_has_a_reducer() {
    let flow = |annotations: &str| {
        format!(
            "import {{ annotation, graph, parallelNode, Reducers, toolNode }} from \"atomic/workflows\";\n\
             export const stateAnnotations = {{ {annotations} }};\n\
             void annotation; void Reducers;\n\
             const found = (id: string) => toolNode<any>({{ id, execute: async (s, ctx) => {{\n\
               await ctx.shell(\"echo {{}} >> ran.txt\");\n\
               return {{ [\"found\"]: [id] }};\n\
             }} }});\n\
             export default () => graph<any>()\n\
               .start(parallelNode({{ id: \"both\", branches: [found(\"left\"), found(\"right\")] }}))\n\
               .end().compile();\n"
        )
    };
    let project = project("finds", &flow(""));
    let ended = run(&project, "finds", &["--trust"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    insta::assert_snapshot!(project.filtered(&ended.stderr), @"error: node `both`: the branches `left` and `right` ran at once and both replaced `found`, so that one value would be lost: give `found` a reducer that combines values, or let them write to different keys, and resume with --upgrade");
    project.write(
        ".atomic/workflows/finds.ts",
        &flow("found: annotation<string[]>([], Reducers.concat)"),
    );
    let args = ["resume", "last", "--upgrade", "--trust", "--stream", "values"];
    let resumed = atomic(&project, &args);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let last = resumed.stdout.lines().rfind(|line| line.contains("\"values\"")).unwrap();
    let values: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!(values["values"]["found"], serde_json::json!(["left", "right"]));
    // What was done was not done again.
    assert_eq!(project.read("ran.txt").lines().count(), 2);
}

#[test]
fn a_rejection_that_nobody_handles_fails_its_step() {
    let text = tool(
        "  Promise.reject(new Error(\"forgotten\"));\n  await ctx.shell(\"sleep 0.05\");\n  return {};",
    );
    let project = project("forgets", &text);
    let ended = run(&project, "forgets", &["--trust"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("forgotten"), "{ended:?}");
    assert!(ended.stderr.contains("forgets.ts:5:"), "{ended:?}");
}

#[test]
fn a_condition_cannot_wait() {
    let text = r#"
import { decisionNode, toolNode } from "atomic/workflows";
export const graphConfig = {
  startNode: "which",
  nodes: [
    decisionNode<any>({ id: "which", routes: [{ condition: (async () => { await new Promise(() => {}); }) as any, target: "a" }], fallback: "b" }),
    toolNode<any>({ id: "a", execute: () => ({}) }),
    toolNode<any>({ id: "b", execute: () => ({}) }),
  ],
  edges: [],
};
"#;
    let project = project("waits", text);
    let ended = run(&project, "waits", &["--trust"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("waits for something"), "{ended:?}");
}

/// What a hostile file does, and what is said about it.
const HOSTILE: [(&str, &str, &str); 9] = [
    ("loops", "  for (;;) { s.n = (s.n ?? 0) + Math.sqrt(2); }", "endless loop"),
    ("loops-later", "  await ctx.exists(\"x\"); for (;;) { s.n = Math.sqrt(2); }", "endless loop"),
    (
        "allocates",
        "  const all = []; for (;;) all.push(new Array(1 << 20).fill(all.length));",
        "memory",
    ),
    (
        "ten-gigabytes",
        "  const all = []; for (let i = 0; i < 100; i++) all.push(\"x\".repeat(100 << 20) + i); return { all };",
        "memory",
    ),
    ("recurses", "  const f = (): any => f() + 1; return { n: f() };", "stack"),
    ("evaluates", "  return { ran: eval(\"require('fs')\") };", "require"),
    (
        "reaches-out",
        "  const path = \"../../../../etc/passwd\"; return await import(path);",
        "cannot import",
    ),
    (
        "nests",
        "  let x: any = {}; for (let i = 0; i < 200000; i++) x = { x }; return { x };",
        "nested",
    ),
    (
        "reads-outside",
        "  return { text: await ctx.readFile(\"../../../../etc/passwd\") };",
        "outside",
    ),
];

#[test]
fn hostile_files_are_stopped_and_others_are_unharmed() {
    let project = Project::new();
    project.write(".atomic/workflows/good.ts", &tool("  return { good: true };"));
    for (name, body, _) in HOSTILE {
        project.write(&format!(".atomic/workflows/{name}.ts"), &tool(body));
    }
    let polluting = "  (Object.prototype as any).polluted = 1; (Array.prototype as any).map = () => []; return { done: true };";
    project.write(".atomic/workflows/pollutes.ts", &tool(polluting));
    for (name, _, sign) in HOSTILE {
        let began = Instant::now();
        let ended = run(&project, name, &["--trust"]);
        assert_eq!(ended.code, Some(1), "{name}: {ended:?}");
        assert!(ended.stderr.to_lowercase().contains(sign), "{name}: {ended:?}");
        let is_placed = ended.stderr.contains(&format!("{name}.ts:"));
        assert!(is_placed && ended.stderr.contains("work"), "{name}: {ended:?}");
        assert!(began.elapsed() < Duration::from_secs(60), "{name}");
    }
    let ended = run(&project, "pollutes", &["--trust", "--stream", "values"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stdout.contains("polluted"), "{ended:?}");
    for name in ["good", "good"] {
        let ended = run(&project, name, &["--trust"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let checked = atomic(&project, &["check", "--trust"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[test]
fn requests_are_facts_and_their_processes_are_gone() {
    let text = tool(
        "  ctx.log(\"hello\");\n\
         const { code, stdout } = await ctx.shell(\"sleep 1000 & echo started; exit 3\");\n\
         await ctx.writeFile(\"deep/down/out.txt\", stdout);\n\
         const secret = await ctx.env(\"SECRET\").catch((e: Error) => e.message);\n\
         return { code, found: await ctx.glob(\"deep/**/*.txt\"), secret, there: await ctx.exists(\"nothing\") };",
    );
    let project = project("asks", &text);
    let ended = run(&project, "asks", &["--trust", "--stream", "values"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let last = ended.stdout.lines().rfind(|line| line.contains("\"values\"")).unwrap();
    let values: serde_json::Value = serde_json::from_str(last).unwrap();
    let values = &values["values"];
    assert_eq!(values["code"], 3);
    assert_eq!(values["found"], serde_json::json!(["deep/down/out.txt"]));
    assert_eq!(values["there"], false);
    assert!(values["secret"].as_str().unwrap().contains("SECRET"), "{values}");
    assert_eq!(project.read("deep/down/out.txt"), "started\n");
    let used: Vec<String> = project
        .of_type("step_reported")
        .iter()
        .map(|fact| fact["report"]["tool"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(used, ["shell", "writeFile", "env", "glob", "exists"], "{:?}", project.facts());
    let left = fs::read_dir("/proc").unwrap().flatten().any(|process| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        let place = project.env.outside("ledger").into_os_string().into_encoded_bytes();
        environment.windows(place.len()).any(|part| part == place)
    });
    assert!(!left, "a process is left behind");
}

#[test]
fn create_state_that_fails_starts_nothing() {
    let text = "import { toolNode } from \"atomic/workflows\";\n\
                export const graphConfig = { startNode: \"a\", edges: [], nodes: [toolNode({ id: \"a\", execute: () => ({}) })] };\n\
                export function createState(params: any) { return params.prompt.missing.field; }\n";
    let project = project("state", text);
    let ended = run(&project, "state", &["--trust"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("state.ts:3:"), "{ended:?}");
    assert!(project.sessions().is_empty());
}

/// It is refused before anything is recorded, so the session can go on as it was.
#[test]
fn an_upgrade_to_a_script_that_takes_another_way_is_refused_with_both_places() {
    let project = Project::new();
    let flow = |calls: &str| {
        format!(
            "import {{ defineWorkflow }} from \"atomic/workflows\";\n\
             export default defineWorkflow({{ name: \"way\" }}).run(async (ctx) => {{\n\
               {calls}\n\
               await ctx.ask(\"Go on?\", {{ options: [\"Yes\", \"No\"] }});\n\
               await ctx.shell(\"test -e mended\", {{ check: true }});\n\
               return 1;\n\
             }});\n"
        )
    };
    let refused = |calls: &str, signs: &[&str]| {
        project.write(".atomic/workflows/way.ts", &flow(calls));
        let facts = project.facts().len();
        let refused = atomic(&project, &["resume", "last", "--upgrade", "--trust"]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        let always = ["cannot be upgraded", "does not do again what it did before", "a `key`"];
        for sign in always.iter().chain(signs) {
            assert!(refused.stderr.contains(sign), "{sign}\n{refused:?}");
        }
        assert_eq!(project.facts().len(), facts, "something was recorded");
    };
    project.write(".atomic/workflows/way.ts", &flow("await ctx.shell(\"echo one\");"));
    let waiting = run(&project, "way", &["--trust"]);
    assert_eq!(waiting.code, Some(3), "{waiting:?}");
    let then = "then it called `shell:1` (.atomic/workflows/way.ts:3:11), ";
    let signs = [then, "now the same with other arguments (.atomic/workflows/way.ts:4:11)"];
    refused("\nawait ctx.shell(\"echo two\");", &signs);
    refused("await ctx.readFile(\"x\");", &[then, "now `readFile:1`"]);
    refused("", &[then, "now `ask:1`"]);
    // The same where the run has failed.
    let failed = atomic(&project, &["answer", "last", "Yes", "--resume"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stderr.contains("ended with status 1"), "{failed:?}");
    refused("await ctx.shell(\"echo two\");", &[then]);
    project.write("mended", "");
    let mended = flow("await ctx.shell(\"echo one\");").replace("return 1", "return 2");
    project.write(".atomic/workflows/way.ts", &mended);
    let ended = atomic(&project, &["resume", "last", "--upgrade", "--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
