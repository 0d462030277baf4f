//! What a workflow in TypeScript has begun and does not wait for is not lost in silence.

use crate::typescript::run;
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
