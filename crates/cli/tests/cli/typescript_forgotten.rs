//! What a workflow in TypeScript has begun and does not wait for is not lost in silence, and neither
//! is a workflow that its file does not export.

use crate::engine::Project;
use crate::typescript::{atomic, run};
use crate::typescript_mended::{fails, graph, project, script, succeeds};

#[test]
fn calls_that_nobody_waits_for_are_carried_out_all_the_same() {
    let text = script(
        "  ctx.shell(\"until test -e second.txt; do :; done; echo first > first.txt\");\n\
         (async () => { await ctx.shell(\"true\"); await ctx.shell(\"echo last > last.txt\"); })();\n\
         await ctx.shell(\"echo second > second.txt\");\n\
         ctx.shell(\"echo third > third.txt\");\n\
         return \"done\";",
    );
    let project = succeeds(&text);
    for file in ["first", "second", "third", "last"] {
        assert_eq!(project.read(&format!("{file}.txt")), format!("{file}\n"));
    }
    assert!(project.of_type("step_cancelled").is_empty());
}

#[test]
fn a_call_that_nobody_waits_for_and_that_fails_fails_the_run() {
    let text = script(
        "  ctx.shell(\"until test -e go; do :; done; exit 3\", { check: true });\n\
         await ctx.shell(\"touch go\");\n\
         return \"done\";",
    );
    fails(&text, &["ended with status 3", "flow.ts:3:"]);
}

#[test]
fn what_has_lost_a_race_is_no_longer_waited_for() {
    succeeds(&script(
        "  await ctx.parallel([(c: any) => c.shell(\"true\"), (c: any) => c.shell(\"exec sleep 1000\")], { strategy: \"race\" });\n\
         await Promise.race([ctx.shell(\"true\"), ctx.sleep(1e9)]);",
    ));
}

fn tool(body: &str) -> String {
    let node = format!(
        ".start(toolNode({{ id: \"a\", execute: async (_: any, ctx: any) => {{\n{body}\n}} }}))"
    );
    graph(&node)
}

#[test]
fn a_step_that_returns_before_its_requests_have_ended_fails() {
    let signs = ["node `a`", "has returned before `shell` had ended", "flow.ts:5:"];
    fails(&tool("  ctx.shell(\"exec sleep 1000\"); return {};"), &signs);
    fails(&tool("  ctx.shell(\"exec sleep 1000\"); await ctx.shell(\"true\"); return {};"), &signs);
    // What was stopped is not waited for, and what has failed says so itself.
    succeeds(&tool(
        "  const stop = new AbortController();\n\
         const slow = ctx.shell(\"exec sleep 1000\", { signal: stop.signal }).catch(() => {});\n\
         await ctx.shell(\"true\"); stop.abort(); return {};",
    ));
    let text = tool("  ctx.shell(\"exec sleep 1000\"); throw new Error(\"mine\");");
    fails(&text, &["Error: mine"]);
}

/// However early a step ends, what is told of a file that it writes is what has become of it.
#[test]
fn what_is_told_of_a_file_is_what_has_become_of_it() {
    let project = project(&tool(
        "  const text = \"x\".repeat(8e6);\n\
         for (let i = 0; i < 4; i++) ctx.writeFile(`out/${i}.txt`, text);\n\
         return {};",
    ));
    let ended = run(&project, "flow", &["--trust"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let reports = project.of_type("step_reported");
    let told = reports.iter().filter(|fact| fact["report"]["kind"] == "tool_used");
    assert!(told.clone().next().is_some(), "{reports:?}");
    for fact in told {
        let tool = fact["report"].to_string();
        let file = (0..4).map(|i| format!("out/{i}.txt")).find(|file| tool.contains(file)).unwrap();
        let is_there = project.env.work().join(&file).exists();
        assert_eq!(fact["report"]["ok"], is_there, "{fact}");
    }
}

/// Files that use the SDK and export no workflow: the text, the line of the import, what is said.
const FORGOTTEN: [(&str, u32, &str); 26] = [
    (
        "import { agentNode } from \"atomic/workflows\";\nexport const graphconfig = { nodes: [agentNode({ id: \"a\" })] };",
        1,
        "(did you mean `graphConfig` by `graphconfig`?)",
    ),
    (
        "// A comment.\nimport { graph } from \"@atomic/workflows\";\nexport const graph_config = graph();",
        2,
        "(did you mean `graphConfig` by `graph_config`?)",
    ),
    (
        "import { graph } from \"atomic/workflows/graph\";\nexport const config = graph();",
        1,
        "(did you mean `graphConfig` by `config`?)",
    ),
    (
        "import type { GraphConfig } from \"atomic/types\";\nimport { graph } from \"@atomic/graph\";\nconst graphConfig = graph();",
        2,
        "write `export` before `const graphConfig`",
    ),
    (
        "import * as sdk from \"atomic/workflows\";\nexport const name = \"f4\";",
        1,
        "imports everything",
    ),
    ("import { type NodeId, graph } from \"atomic/workflows\";", 1, "imports `graph`"),
    (
        "import { shell } from \"atomic/host\";\nexport function run() { return shell(\"true\"); }",
        1,
        "imports `shell`",
    ),
    ("export const late = () => import(\"atomic/workflows\");", 1, "add `export const graphConfig"),
    ("export { graph } from \"atomic/workflows\";", 1, "imports `graph`"),
    ("export * from \"atomic/workflows\";", 1, "imports everything"),
    // Through a file of the project, used or not.
    (
        "import { helper } from \"./lib/helper.ts\";\nexport const x = helper;",
        1,
        "imports \"./lib/helper.ts\", which uses \"atomic/workflows\"",
    ),
    ("import { helper } from \"./lib/again.ts\";", 1, "which uses \"atomic/workflows\""),
    (
        "export const name = \"f12\";\nexport * from \"./lib/helper.ts\";",
        2,
        "which uses \"atomic/workflows\"",
    ),
    // The default export of another file is not passed on by a star.
    (
        "import { graph } from \"atomic/workflows\";\nexport * from \"./lib/default.ts\";",
        1,
        "imports `graph`",
    ),
    ("export const graphConfig = undefined;", 1, "`graphConfig` is empty"),
    (
        "const none = () => null;\nexport const graphConfig = none();",
        2,
        "`graphConfig` has no nodes when the file is run",
    ),
    // Neither of two exports of the same name is passed on.
    (
        "export * from \"./lib/graph.ts\";\nexport * from \"./lib/second.ts\";",
        1,
        "`graphConfig` has no nodes when the file is run",
    ),
    // A graph without nodes would be a chat.
    ("export const graphConfig = {};", 1, "`graphConfig` has no nodes when the file is run"),
    (
        "import { graph } from \"atomic/workflows\";\nexport const graphConfig = new Map([[\"nodes\", [graph]]]);",
        2,
        "`graphConfig` has no nodes when the file is run",
    ),
    (
        "class Config { get nodes() { return []; } }\nexport const graphConfig = new Config();",
        2,
        "`graphConfig` has no nodes when the file is run",
    ),
    (
        "export const graphConfig = { maxSteps: 3, nodes: undefined };",
        1,
        "`graphConfig` has no nodes when the file is run",
    ),
    ("export default { graphConfig: {} };", 1, "the default export has no nodes"),
    // The name of the module is known only when the file is run.
    (
        "export const name = \"f23\";\nawait import(\"atomic\" + \"/workflows\");",
        2,
        "imports \"atomic/workflows\" when it is run",
    ),
    // Names that the SDK does not have are not types of it.
    ("import { START, END } from \"atomic/workflows\";", 1, "imports `START`"),
    ("import { NodeId, Graph } from \"atomic/types\";", 1, "imports `Graph`"),
    ("export default undefined;", 1, "the default export has no nodes when the file is run"),
];

/// Files that run as a chat.
const CHATS: [&str; 7] = [
    "export const name = \"c0\";",
    "import type { GraphConfig } from \"atomic/types\";\nexport const name = \"c1\";\nexport const config: GraphConfig | null = null;",
    "import { type GraphConfig } from \"atomic/workflows\";\nexport const name = \"c2\";\nexport type Mine = GraphConfig;",
    "import { WorkflowGraphConfig, NodeId } from \"atomic/types\";\nimport { CompileConfig } from \"@atomic/workflows\";\nexport const name = \"c3\";\nexport const mine: WorkflowGraphConfig | CompileConfig | NodeId | null = null;",
    "import { plain } from \"./lib/plain.ts\";\nexport const name = \"c4\";\nexport const x = plain;",
    "import { Shape } from \"./lib/helper.ts\";\nexport const name = \"c5\";\nexport const x: Shape = 1;",
    // A graph that another file exports.
    "import { graph } from \"atomic/workflows\";\nexport * from \"./lib/graph.ts\";\nexport const unused = typeof graph;",
];

/// Files that they import.
const LIBRARY: [(&str, &str); 6] = [
    (
        "helper",
        "import { graph } from \"atomic/workflows\";\nexport type Shape = number;\nexport const helper = typeof graph;",
    ),
    ("again", "export { helper } from \"./helper.ts\";"),
    ("second", "export const graphConfig = {};"),
    ("plain", "export const plain = 1;"),
    ("default", "export default () => ({});"),
    (
        "graph",
        "export const graphConfig = { startNode: \"a\", nodes: [{ id: \"a\", type: \"tool\", command: \"true\" }] };",
    ),
];

/// An import that leads nowhere hides what the file was meant to be, also when nothing of it is used.
#[test]
fn a_chat_whose_import_leads_nowhere_is_refused() {
    let project = Project::scripted("[[turn]]\ndo = [{ say = \"Answered.\" }]\n");
    let cases = [
        ("a", "import { wf } from \"./missing.ts\";", "ATM704"),
        ("b", "import { graph } from \"atomic/workflow\";", "ATM703"),
        ("c", "import \"../../../outside.ts\";", "ATM705"),
        ("d", "import { wf } from \"./lib/broken.ts\";", "ATM701"),
        ("e", "import type { wf } from \"./missing.ts\";", "e.ts: ok"),
        ("f", "import { graph } from \"atomic/workflow\";\nexport const graphConfig = {};", "f.ts"),
    ];
    project.write(".atomic/workflows/lib/broken.ts", "export const wf = ;");
    for (name, text, said) in cases {
        let file = format!(".atomic/workflows/{name}.ts");
        project.write(&file, text);
        let checked = atomic(&project, &["check", "--trust", &file]);
        assert!(checked.stdout.contains(said), "{text}\n{checked:?}");
        if said.starts_with("ATM") {
            assert_eq!(checked.code, Some(1), "{checked:?}");
            let ended = run(&project, name, &["--trust"]);
            assert!(ended.stderr.contains(said), "{ended:?}");
        }
    }
    assert!(project.sessions().is_empty(), "no chat was started");
    let listed = atomic(&project, &["list", "workflows"]);
    for (name, _, said) in cases {
        let line =
            listed.stdout.lines().find(|line| line.contains(&format!("workflows/{name}.ts")));
        let is_marked = line.unwrap().contains("[broken: atomic check");
        assert_eq!(is_marked, said.starts_with("ATM"), "{name}: {listed:?}");
    }
    let listed = atomic(&project, &["list", "workflows", "--json"]);
    let broken = listed.stdout.matches("\"broken\":true").count();
    assert_eq!(broken, 4, "{listed:?}");
    let shown = atomic(&project, &["show", "a"]);
    assert!(shown.stdout.contains("atomic check a"), "{shown:?}");
}

/// A promise has none of a graph's keys, so it must not be read as a graph without nodes.
#[test]
fn a_promise_of_a_graph_is_refused() {
    let project = Project::scripted("[[turn]]\ndo = [{ say = \"Answered.\" }]\n");
    let node = "{ id: \"a\", type: \"tool\", command: \"true\" }";
    let graph = format!("{{ startNode: \"a\", nodes: [{node}] }}");
    for (name, text) in [
        ("a", format!("export const graphConfig = (async () => ({graph}))();")),
        ("b", format!("export default {{ graphConfig: Promise.resolve({graph}) }};")),
    ] {
        let file = format!(".atomic/workflows/{name}.ts");
        project.write(&file, &text);
        let checked = atomic(&project, &["check", "--trust", &file]);
        assert_eq!(checked.code, Some(1), "{checked:?}");
        assert!(checked.stdout.contains("ATM715 error"), "{checked:?}");
        assert!(checked.stdout.contains("write await before it"), "{checked:?}");
        let ended = run(&project, name, &["--trust"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
    }
    assert!(project.sessions().is_empty(), "no chat was started");
    project.write(
        ".atomic/workflows/c.ts",
        &format!("export const graphConfig = await (async () => ({graph}))();"),
    );
    let ended = run(&project, "c", &["--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_file_that_uses_the_sdk_and_exports_no_workflow_is_refused() {
    let project = Project::scripted("[[turn]]\ndo = [{ say = \"Answered.\" }]\n");
    let mut args = vec!["check".to_owned(), "--trust".to_owned()];
    for (number, (text, _, _)) in FORGOTTEN.iter().enumerate() {
        args.push(format!(".atomic/workflows/f{number}.ts"));
        project.write(args.last().unwrap(), text);
    }
    for (number, text) in CHATS.iter().enumerate() {
        args.push(format!(".atomic/workflows/c{number}.ts"));
        project.write(args.last().unwrap(), text);
    }
    for (name, text) in LIBRARY {
        project.write(&format!(".atomic/workflows/lib/{name}.ts"), text);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let checked = atomic(&project, &args);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    let parts: Vec<&str> = checked.stdout.split(".atomic/workflows/").collect();
    for (number, (text, line, said)) in FORGOTTEN.iter().enumerate() {
        let sign = format!("f{number}.ts:{line}:");
        let told =
            parts.iter().find(|part| part.starts_with(&sign) && part.contains("ATM722 error"));
        let told = told.unwrap_or_else(|| panic!("{text}\n{}", checked.stdout));
        assert!(told.contains("exports no workflow") && told.contains("help: "), "{told}");
        assert!(told.contains(said), "{said}\n{told}");
    }
    for number in 0..CHATS.len() {
        let sign = format!("c{number}.ts: ok");
        assert!(checked.stdout.contains(&sign), "{sign}\n{}", checked.stdout);
    }
    for command in [["graph", "f0"].as_slice(), &["graph", ".atomic/workflows/f0.ts"]] {
        let ended = atomic(&project, &[command, &["--trust"]].concat());
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("ATM722") || ended.stdout.contains("ATM722"), "{ended:?}");
    }
    for name in ["f0", ".atomic/workflows/f4.ts"] {
        let ended = run(&project, name, &["--trust"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("ATM722"), "{ended:?}");
    }
    assert!(project.sessions().is_empty(), "no chat was started");
    let doctor = atomic(&project, &["doctor"]);
    assert!(doctor.stdout.contains("ATM722"), "{doctor:?}");
    let ended = run(&project, "c1", &["--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
