//! What workflow files say about themselves, and what is made of files that cannot be used.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::engine::{Project, tool};
use crate::env::ran;
use crate::process::{Nonce, Running};
use crate::typescript::{atomic, run};

/// A workflow whose default export is an object that says everything.
fn whole(head: &str, version: u64, more: &str) -> String {
    format!(
        r#"
import {{ toolNode, waitNode }} from "atomic/workflows";
import type {{ WorkflowDefinition }} from "atomic/types";
{head}
const definition = {{
  name: "whole", aliases: ["all-of-it"], description: "Says everything", stateVersion: {version},
  createState: (params: any) => ({{ executionId: params.sessionId, prompt: params.prompt, outputs: {{}}, count: 7 }}),
  graphConfig: {{
    startNode: "look",
    nodes: [
      waitNode("look", {{ prompt: "Go on?" }}),
      toolNode({{ id: "end", execute: async (s: any, ctx: any) => {{ await ctx.writeFile("end.json", JSON.stringify([s.count, s.total])); }} }}),
    ],
    edges: [{{ from: "look", to: "end" }}],
  }},
  {more}
}} satisfies WorkflowDefinition;
export default definition as WorkflowDefinition;
"#
    )
}

#[test]
fn an_object_says_what_the_workflow_is() {
    let project = Project::new();
    let path = ".atomic/workflows/file.ts";
    project.write(path, &whole("", 1, ""));
    let listed = atomic(&project, &["list", "workflows"]);
    assert!(listed.stdout.contains("Says everything"), "{listed:?}");
    let waiting = run(&project, "all-of-it", &["--trust"]);
    assert_eq!(waiting.code, Some(3), "{waiting:?}");
    assert_eq!(project.of_type("session_created")[0]["workflow"], "whole");
    // Its state is brought up to another version.
    let migrate = "migrateState({ count, ...rest }: any, from: number) { return { ...rest, total: count + from }; },";
    project.write(path, &whole("", 2, migrate));
    let waiting = atomic(&project, &["resume", "last", "--upgrade", "--trust"]);
    assert_eq!(waiting.code, Some(3), "{waiting:?}");
    let ended = atomic(&project, &["answer", "last", "yes", "--resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(project.read("end.json"), "[null,8]");
    // What it needs is looked at before it is run, also where it is spread from a constant.
    let head =
        "console.error(\"IT \" + \"RAN\");\nconst needs = { minSDKVersion: \"99.0.0\" } as const;";
    project.write(path, &whole(head, 2, "...needs,"));
    let refused = run(&project, "whole", &["--trust"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("ATM712"), "{refused:?}");
    assert!(!refused.stderr.contains("IT RAN"), "{refused:?}");
}

#[test]
fn what_is_only_known_when_a_file_runs_is_refused() {
    let project = Project::new();
    project.write(
        ".atomic/workflows/lib/meta.ts",
        "export const minSDKVersion = \"99.0.0\";\nexport const name = \"other\";\n",
    );
    let flow = |head: &str| {
        format!(
            "import {{ graph, toolNode }} from \"atomic/workflows\";\n{head}\n\
             export default () => graph<any>().start(toolNode({{ id: \"a\", execute: () => ({{}}) }})).end().compile();\n"
        )
    };
    for (head, place, keys) in [
        ("export * from \"./lib/meta\";", ":1:1:", &["`name`", "`minSDKVersion`"][..]),
        ("export { minSDKVersion } from \"./lib/meta\";", "flow.ts:", &["`minSDKVersion`"]),
    ] {
        project.write(".atomic/workflows/flow.ts", &flow(head));
        let refused = run(&project, "flow", &["--trust"]);
        assert_eq!(refused.code, Some(1), "{head}: {refused:?}");
        assert!(refused.stderr.contains("ATM710"), "{head}: {refused:?}");
        assert!(refused.stderr.contains(place), "{head}: {refused:?}");
        for key in keys {
            assert!(refused.stderr.contains(key), "{key}: {refused:?}");
        }
    }
}

#[test]
fn a_document_can_ask_for_a_newer_version_too() {
    let project = Project::new();
    let asks = |version: &str| json!({"minSDKVersion": version, "nodes": [tool("a", "true")]});
    for (version, why) in [("99.0.0", "needs atomic 99.0.0"), ("soon", "\"soon\" is not a version")]
    {
        project.write("flow.json", &asks(version).to_string());
        let refused = run(&project, "flow.json", &[]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("ATM712"), "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
    project.write("flow.json", &asks("0.0.1").to_string());
    assert_eq!(run(&project, "flow.json", &[]).code, Some(0));
}

/// A workflow that waits with a `count` of its own.
const INNER: &str = r#"
import { graph, toolNode, waitNode } from "atomic/workflows";
export const name = "inner";
export default () => graph<any>()
  .start(toolNode({ id: "begin", execute: (s: any) => ({ count: s.count + 1 }) }))
  .then(waitNode("look", { prompt: "Go on?" }))
  .then(toolNode({ id: "tell", execute: async (s: any, ctx: any) => {
    await ctx.writeFile("inner.json", JSON.stringify({ count: s.count, total: s.total ?? null }));
  } }))
  .end().compile();
"#;

/// One around it that has a `count`, too, as a graph.
fn graph(version: u64, more: &str) -> String {
    format!(
        r#"
import {{ graph, loopNode, subgraphNode, toolNode }} from "atomic/workflows";
export const stateVersion = {version};
{more}
export default () => graph<any>()
  .start(toolNode({{ id: "begin", execute: () => ({{ count: 40 }}) }}))
  .then(loopNode({{ id: "around", maxIterations: 1, nodes: [
    subgraphNode({{ id: "sub", subgraph: "inner", inputMapper: () => ({{ count: 1 }}), outputMapper: () => ({{}}) }}),
    toolNode({{ id: "tell", execute: async (s: any, ctx: any) => {{
      await ctx.writeFile("outer.json", JSON.stringify([s.count ?? null, s.total]));
    }} }}),
  ] }}))
  .end().compile();
"#
    )
}

/// The same as a plain async function.
fn script(version: u64, more: &str) -> String {
    format!(
        r#"
import {{ defineWorkflow }} from "atomic/workflows";
export const stateVersion = {version};
{more}
export function createState(params: any) {{ return {{ executionId: params.sessionId, prompt: params.prompt, outputs: {{}}, count: 40 }}; }}
export default defineWorkflow({{ name: "outer", workflows: ["inner"] }}).run(async (ctx: any) => {{
  await ctx.workflow("inner", {{ count: 1 }});
  await ctx.writeFile("outer.json", JSON.stringify([ctx.state.count ?? null, ctx.state.total]));
}});
"#
    )
}

#[test]
fn the_state_of_an_inner_workflow_is_its_own() {
    let project = Project::new();
    let migrate =
        "export const migrateState = ({ count, ...rest }: any) => ({ ...rest, total: count });";
    let forms: [fn(u64, &str) -> String; 2] = [graph, script];
    for (form, outer) in ["graph", "script"].into_iter().zip(forms) {
        project.write(".atomic/workflows/inner.ts", INNER);
        project.write(".atomic/workflows/outer.ts", &outer(1, ""));
        let waiting = run(&project, "outer", &["--trust"]);
        assert_eq!(waiting.code, Some(3), "{form}: {waiting:?}");
        project.write(".atomic/workflows/outer.ts", &outer(2, migrate));
        let waiting = atomic(&project, &["resume", "last", "--upgrade", "--trust"]);
        assert_eq!(waiting.code, Some(3), "{form}: {waiting:?}");
        let ended = atomic(&project, &["answer", "last", "yes", "--resume"]);
        assert_eq!(ended.code, Some(0), "{form}: {ended:?}");
        assert_eq!(project.read("inner.json"), r#"{"count":2,"total":null}"#, "{form}");
        assert_eq!(project.read("outer.json"), "[null,40]", "{form}");
    }
}

#[test]
fn a_picture_with_something_missing_is_no_success() {
    let project = Project::new();
    let around = json!({"nodes": [
        {"type": "subgraph", "id": "sub", "workflow": "inner"}, tool("after", "true"),
    ]});
    project.write("around.json", &around.to_string());
    let inner = "export default () => { throw new Error(\"no graph today\"); };\n";
    project.write(".atomic/workflows/inner.ts", inner);
    for (more, why) in [(&[][..], "ATM720"), (&["--trust"], "no graph today")] {
        let mut args = vec!["graph", "around.json"];
        args.extend(more);
        let drawn = atomic(&project, &args);
        assert_eq!(drawn.code, Some(1), "{drawn:?}");
        assert!(drawn.stderr.contains(why), "{drawn:?}");
        // The rest of it helps to see what is meant.
        assert!(drawn.stdout.contains("after"), "{drawn:?}");
    }
}

#[test]
fn a_test_that_is_stopped_leaves_nothing_behind() {
    for signal in ["TERM", "INT"] {
        let (project, nonce) = (Project::new(), Nonce::new());
        let temporary = project.env.outside("temporary");
        fs::create_dir_all(&temporary).unwrap();
        let hang = nonce.scatter_and_hang();
        project.write("s.ts", "export const description = \"x\";\n");
        project.write("t.ts", "export const description = \"x\";\n");
        // In the preparation of the folder, and in the run.
        let turn = |does: &str| format!("[[turn]]\ndo = [{{ run = {} }}]\n", json!(does));
        let setup = format!("{}[test]\nsetup = {}\n", turn("true"), json!(hang));
        project.write("s.script.toml", &setup);
        project.write("t.script.toml", &turn(&hang));
        for file in ["s.ts", "t.ts"] {
            let mut command = project.env.atomic(["test", "--trust", file, file]);
            command.env("TMPDIR", &temporary);
            let mut running = Running::start(command);
            nonce.sleeps(4);
            assert_eq!(fs::read_dir(&temporary).unwrap().count(), 1, "{file}");
            running.signal(signal);
            nonce.is_gone();
            let ended = running.end();
            let code = if signal == "TERM" { 143 } else { 130 };
            assert_eq!(ended.code, Some(code), "{file}: {ended:?}");
            assert_eq!(ended.stdout, format!("{file}: stopped\n"), "{file}: {ended:?}");
            assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "{file}: {ended:?}");
        }
    }
}

#[test]
fn a_test_needs_no_turns_where_there_are_no_agents() {
    let project = Project::new();
    let flow = "import { graph, toolNode } from \"atomic/workflows\";\n\
        export default () => graph<any>().start(toolNode({ id: \"a\", execute: () => ({ n: 1 }) })).end().compile();\n";
    project.write("flow.ts", flow);
    project.write("flow.script.toml", "[test.expect]\nstate = { n = 1 }\n");
    let tested = atomic(&project, &["test", "--trust", "flow.ts"]);
    assert_eq!(tested.code, Some(0), "{tested:?}");
    // A script for nothing at all was meant otherwise.
    project.write("flow.script.toml", "");
    let tested = atomic(&project, &["test", "--trust", "flow.ts"]);
    assert_eq!(tested.code, Some(1), "{tested:?}");
    assert!(tested.stdout.contains("missing key `turn`"), "{tested:?}");
}

#[test]
fn a_new_workflow_is_named_with_or_without_its_ending() {
    let project = Project::new();
    let made = atomic(&project, &["new", "workflow", "x.ts"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.stdout.contains("atomic run x "), "{made:?}");
    assert!(project.read(".atomic/workflows/x.ts").contains("name = \"x\""));
    for name in ["x.js", "x.json", "x.mts", "x.ts.ts"] {
        let refused = atomic(&project, &["new", "workflow", name]);
        assert_eq!(refused.code, Some(2), "{name}: {refused:?}");
    }
    assert!(!project.env.work().join(".atomic/workflows/x.ts.ts").exists());
}

#[test]
fn what_cannot_be_read_is_said_with_a_remedy() {
    let project = Project::new();
    let work = project.env.work();
    fs::write(work.join("notutf.ts"), b"export const name = \"\xff\";\n").unwrap();
    fs::create_dir(work.join("dir.ts")).unwrap();
    symlink("nothing-there.ts", work.join("dang.ts")).unwrap();
    for (file, remedy) in [
        ("notutf.ts", "save it as UTF-8"),
        ("dir.ts", "a workflow is one file"),
        ("dang.ts", "it is a link that leads nowhere"),
    ] {
        for verb in ["run", "check", "graph"] {
            let refused = atomic(&project, &[verb, file]);
            assert_eq!(refused.code, Some(1), "{verb} {file}: {refused:?}");
            let all = format!("{}{}", refused.stdout, refused.stderr);
            assert!(all.contains(&format!("{file}:1:1: ATM709")), "{verb} {file}: {refused:?}");
            assert!(all.contains(&format!("help: {remedy}")), "{verb} {file}: {refused:?}");
        }
    }
}

#[test]
fn a_path_that_is_not_unicode_is_said_to_be_none() {
    let project = Project::new();
    let work = project.env.outside("work").join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir_all(work.join(".atomic/workflows")).unwrap();
    let flow = "import { graph, toolNode } from \"atomic/workflows\";\n\
        export default () => graph<any>().start(toolNode({ id: \"a\", execute: () => ({}) })).end().compile();\n";
    fs::write(work.join(".atomic/workflows/flow.ts"), flow).unwrap();
    let mut command = project.env.atomic(["check", "flow", "--trust"]);
    command.current_dir(&work);
    let refused = ran(command);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let all = format!("{}{}", refused.stdout, refused.stderr);
    assert!(all.contains("ATM709"), "{refused:?}");
    assert!(all.contains("its path is not UTF-8"), "{refused:?}");
    assert!(!all.contains("ReferenceError"), "{refused:?}");
}

#[test]
fn requests_answer_as_they_are_documented() {
    let project = Project::new();
    symlink("nothing-there", project.env.work().join("dangling")).unwrap();
    let flow = r#"
import { defineWorkflow } from "atomic/workflows";
export default defineWorkflow({ name: "flow" }).run(async (ctx: any) => {
  const there = [await ctx.exists("dangling"), await ctx.exists("dangling/x"), await ctx.exists("script.toml")];
  const outside = await ctx.exists("/dangling").catch((e: any) => e.message);
  const killed = await ctx.shell("kill -9 $$");
  const read = await ctx.readFile("dangling").catch((e: any) => e.message);
  await ctx.writeFile("told.json", JSON.stringify([there, outside, killed.code, read]));
});
"#;
    project.write(".atomic/workflows/flow.ts", flow);
    let ended = run(&project, "flow", &["--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let expected = r#"[[false,false,false],"`/dangling` is outside the project",137,"`dangling` leads nowhere"]"#;
    assert_eq!(project.read("told.json"), expected);
}

#[test]
fn what_was_fetched_can_be_returned() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\n{\"n\":1}";
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let project = Project::new();
    let flow = format!(
        "import {{ defineWorkflow }} from \"atomic/workflows\";\n\
         export default defineWorkflow({{ name: \"flow\" }}).run(async (ctx: any) => {{\n\
         const got = await ctx.fetch(\"http://{address}/\");\n\
         await ctx.writeFile(\"told.json\", JSON.stringify(got.json()));\n\
         return got;\n}});\n"
    );
    project.write(".atomic/workflows/flow.ts", &flow);
    let ended = run(&project, "flow", &["--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(project.read("told.json"), r#"{"n":1}"#);
    server.join().unwrap();
}
