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
