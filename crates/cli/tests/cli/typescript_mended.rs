//! What workflows in TypeScript ask wrongly, or in a way that went wrong once.

use std::process::Command;

use crate::engine::Project;
use crate::env::Ran;
use crate::typescript::{atomic, run};

/// A project with a workflow `flow`.
pub(crate) fn project(text: &str) -> Project {
    let project = Project::scripted("[[turn]]\ndo = [{ say = \"Answered.\" }]\n");
    project.write(".atomic/workflows/flow.ts", text);
    project
}

/// A plain async workflow with this body.
pub(crate) fn script(body: &str) -> String {
    format!(
        "import {{ defineWorkflow }} from \"atomic/workflows\";\n\
         export default defineWorkflow({{ name: \"flow\" }}).run(async (ctx: any) => {{\n{body}\n}});\n"
    )
}

/// A graph of these nodes, one after the other.
pub(crate) fn graph(nodes: &str) -> String {
    format!(
        "import * as sdk from \"atomic/workflows\";\n\
         const {{ graph, toolNode, agentNode, parallelNode, eachNode }} = sdk as any;\n\
         export default () => graph()\n{nodes}\n.end().compile();\n"
    )
}

/// Runs a workflow that is to fail with something that says all of this.
pub(crate) fn fails(text: &str, signs: &[&str]) -> (Project, Ran) {
    let project = project(text);
    let ended = run(&project, "flow", &["--trust"]);
    assert_eq!(ended.code, Some(1), "{text}\n{ended:?}");
    for sign in signs {
        assert!(ended.stderr.contains(sign), "{sign}\n{text}\n{ended:?}");
    }
    (project, ended)
}

pub(crate) fn succeeds(text: &str) -> Project {
    let project = project(text);
    let ended = run(&project, "flow", &["--trust"]);
    assert_eq!(ended.code, Some(0), "{text}\n{ended:?}");
    project
}

#[test]
fn a_command_that_is_checked_is_tried_again() {
    let text = script(
        "  await ctx.shell(\"echo once >> begun.txt\");\n\
         await ctx.shell(\"echo broken >&2; test -e mended\", { check: true });",
    );
    let (project, _) = fails(&text, &["`echo broken", "ended with status 1", ": broken"]);
    let failed = project.of_type("step_failed");
    assert_eq!(failed.last().unwrap()["error"]["code"], "shell", "{failed:?}");
    project.write("mended", "");
    let ended = atomic(&project, &["resume", "last", "--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(project.read("begun.txt"), "once\n");
}

#[test]
fn an_error_of_a_checked_command_can_be_told_from_others() {
    let caught = "const told = await ctx.shell(\"exit 3\", { check: true }).catch((e: any) => [e.name, e.code, e.message]);\n\
                  await ctx.writeFile(\"told.json\", JSON.stringify(told));";
    let expected = r#"["ShellError","shell","`exit 3` ended with status 3"]"#;
    assert_eq!(succeeds(&script(caught)).read("told.json"), expected);
    let node = format!(
        ".start(toolNode({{ id: \"a\", execute: async (_: any, ctx: any) => {{ {caught} }} }}))"
    );
    assert_eq!(succeeds(&graph(&node)).read("told.json"), expected);
}

#[test]
fn only_files_are_read() {
    let text = script(
        "  const there = await ctx.exists(\"pipe\");\n\
         const found = await ctx.glob(\"pip*\");\n\
         await ctx.writeFile(\"seen.json\", JSON.stringify([there, found]));\n\
         await ctx.readFile(\"pipe\");",
    );
    let project = project(&text);
    let made = Command::new("mkfifo").arg(project.env.work().join("pipe")).status().unwrap();
    assert!(made.success());
    let ended = run(&project, "flow", &["--trust"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("`pipe` is a FIFO, not a regular file"), "{ended:?}");
    assert_eq!(project.read("seen.json"), r#"[true,["pipe"]]"#);
}

#[test]
fn a_number_that_cannot_be_used_is_told_by_its_name() {
    let table = [
        ("ctx.sleep(Infinity)", "ctx.sleep(…): the time must be a number of milliseconds"),
        ("ctx.sleep(NaN)", "ctx.sleep(…): the time must be a number of milliseconds"),
        ("ctx.sleep(-1)", "ctx.sleep(…): the time must be a number of milliseconds"),
        ("ctx.sleep(1e20)", "ctx.sleep(…): the time must be a number of milliseconds"),
        (
            "ctx.shell(\"true\", { timeoutMs: 1000.5 })",
            "shell(…): \"timeoutMs\" must be a whole number",
        ),
        ("ctx.shell(\"true\", { timeout: -1 })", "shell(…): \"timeout\" must be a whole number"),
        (
            "ctx.fetch(\"http://localhost:1\", { timeoutMs: 1e20 })",
            "fetch(…): \"timeoutMs\" must be a whole number",
        ),
        (
            "ctx.shell(\"true\", { timeoutMs: NaN })",
            "shell(…): \"timeoutMs\" must be a whole number",
        ),
        ("ctx.parallel([], { limit: NaN })", "\"limit\" must be a whole number from 1 on"),
    ];
    for (call, sign) in table {
        fails(&script(&format!("  await {call};")), &[sign, "flow.ts:3:"]);
    }
    let node = ".start(toolNode({ id: \"a\", execute: async (_: any, ctx: any) => { await ctx.sleep(Infinity); } }))";
    fails(&graph(node), &["sleep(…): the time must be a number of milliseconds", "flow.ts:"]);
}

#[test]
fn what_may_not_be_seen_and_what_is_no_pattern_are_errors() {
    fails(&script("  await ctx.env(\"SECRET\");"), &["`SECRET`", "`env_allow`"]);
    for pattern in ["src/[a", "{a,b"] {
        let text = script(&format!("  await ctx.glob(\"{pattern}\");"));
        fails(&text, &["is no pattern", pattern]);
    }
    let text = "  await ctx.writeFile(\"a1.txt\", \"\");\n\
                const all = [\"[a]1.txt\", \"{a,b}1.txt\", \"*.txt\", \"a?.txt\", \"**/a1.t\\\\xt\"];\n\
                for (const one of all) if ((await ctx.glob(one)).length !== 1) throw new Error(one);";
    succeeds(&script(text));
}

#[test]
fn a_branch_that_has_lost_may_wait_for_ever() {
    let text = script(
        "  const won = await ctx.parallel([\n\
           (c: any) => c.shell(\"echo won\"),\n\
           async (c: any) => { try { await c.shell(\"exec sleep 1000\"); } catch { await new Promise(() => {}); } },\n\
         ], { strategy: \"race\" });\n\
         await ctx.writeFile(\"won.txt\", won.stdout);",
    );
    assert_eq!(succeeds(&text).read("won.txt"), "won\n");
}

#[test]
fn a_prompt_is_a_text_with_something_in_it() {
    let prompt = |returned: &str| {
        graph(&format!(
            ".start(agentNode({{ id: \"plan\", agent: \"worker\", prompt: () => ({returned}) }}))"
        ))
    };
    for returned in ["undefined", "null", "\"\"", "\"  \\n\""] {
        fails(&prompt(returned), &["the prompt of node \"plan\" is empty", "flow.ts"]);
    }
    let object = "the prompt of node \"plan\" must be a text";
    fails(&prompt("{ text: \"Do it\" } as any"), &[object, "flow.ts"]);
    fails(&prompt("[1]"), &[object, "flow.ts"]);
    let node = ".start(toolNode({ id: \"a\", execute: async function* () { yield { x: 1 }; } }))";
    fails(&graph(node), &["\"a\"", "generator"]);
}

/// How a run is ended is the engine's to say.
#[test]
fn an_error_of_a_file_has_no_code_of_the_engine() {
    for code in ["ceiling", "diverged", "cancelled", "stuck", "lost", "mine"] {
        let throws = format!("throw Object.assign(new Error(\"no\"), {{ code: \"{code}\" }});");
        let node = format!(
            ".start(toolNode({{ id: \"a\", execute: async () => {{ {throws} }} }}))\n\
             .then(toolNode({{ id: \"b\", execute: () => ({{}}) }}))"
        );
        let caught = format!(
            "  try {{ await ctx.shell(\"exit 3\", {{ check: true }}); }} catch (e: any) {{ e.code = \"{code}\"; throw e; }}"
        );
        for text in [script(&throws), script(&caught), graph(&node)] {
            let (project, _) = fails(&text, &[]);
            let ended = project.facts().pop().unwrap();
            let expected = if code == "mine" { "mine" } else { "function" };
            assert_eq!(ended["ending"]["error"]["code"], expected, "{ended}");
            assert_eq!(ended["ending"]["why"], "step", "{ended}");
        }
    }
    // One that it was told is one of the engine's all the same.
    let text = script("  await ctx.shell(\"exec sleep 1000\", { timeoutMs: 1 });");
    let (project, _) = fails(&text, &["took longer than 1 ms"]);
    let failed = project.of_type("step_failed");
    let ended = project.facts().pop().unwrap();
    assert_eq!(ended["ending"]["error"]["code"], failed[0]["error"]["code"], "{ended}");
}
