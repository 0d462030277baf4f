//! Plain async workflows that have failed or were changed, and are taken up again.

use crate::typescript::{atomic, run};
use crate::typescript_mended::{fails, graph, project, script, succeeds};

/// A failure that the function has dealt with is no reason to do again what came after it.
#[test]
fn what_was_done_after_a_failure_that_was_caught_is_not_done_again() {
    let body = |last: &str| {
        script(&format!(
            "  try {{ await ctx.shell(\"exit 3\", {{ check: true }}); }} catch {{ ctx.log(\"handled\"); }}\n\
             await ctx.shell(\"echo expensive >> log.txt\");\n\
             await ctx.agent(\"worker\", \"push\");\n\
             await ctx.shell(\"echo second >> log.txt\");\n\
             const fixed = await ctx.exists(\"fixed.txt\");\n{last}"
        ))
    };
    let (project, _) =
        fails(&body("if (!fixed) throw new Error(\"a bug of mine\");"), &["a bug of mine"]);
    let launched = project.of_type("conversation_opened").len();
    project.write("fixed.txt", "");
    // What it was told stays told: only other code can make something else of it.
    let again = atomic(&project, &["resume", "last", "--trust"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stderr.contains("a bug of mine"), "{again:?}");
    project.write(".atomic/workflows/flow.ts", &body("return \"done\";"));
    let ended = atomic(&project, &["resume", "last", "--trust", "--upgrade"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(project.read("log.txt"), "expensive\nsecond\n");
    assert_eq!(project.of_type("conversation_opened").len(), launched);
}

/// The failure that ended the run is tried again, also where others were caught before, and where
/// the function made an error of its own of it.
#[test]
fn the_failure_that_ended_the_run_is_tried_again() {
    let text = script(
        "  await ctx.shell(\"exit 3\", { check: true }).catch(() => {});\n\
         await ctx.shell(\"echo once >> log.txt\");\n\
         try {\n\
           await ctx.parallel([(c: any) => c.shell(\"test -e mended\", { check: true }), (c: any) => c.shell(\"true\")]);\n\
         } catch (e) {\n\
           await ctx.shell(\"echo cleaned >> log.txt\");\n\
           throw new Error(\"it cannot be built\", { cause: e });\n\
         }",
    );
    let (project, _) = fails(&text, &["it cannot be built"]);
    assert_eq!(project.read("log.txt"), "once\ncleaned\n");
    project.write("mended", "");
    let ended = atomic(&project, &["resume", "last", "--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(project.read("log.txt"), "once\ncleaned\n");
}

/// Chance and the session's id are the session's, whatever a script inside another workflow is
/// given as its state.
#[test]
fn chance_is_another_one_in_every_session() {
    let outer = graph(
        ".start(sdk.subgraphNode({ id: \"in\", subgraph: \"inner\", inputMapper: () => ({ prompt: \"x\" }) }))",
    );
    let inner = script("  await ctx.writeFile(ctx.sessionId + \".txt\", crypto.randomUUID());")
        .replace("\"flow\"", "\"inner\"");
    let project = project(&outer);
    project.write(".atomic/workflows/inner.ts", &inner);
    let mut seen = vec![];
    for _ in 0..2 {
        let ended = run(&project, "flow", &["--trust"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let (_, id) = ended.stdout.split_once("session: ").unwrap();
        let id = id.lines().next().unwrap();
        seen.push(project.read(&format!("{id}.txt")));
    }
    assert_ne!(seen[0], seen[1]);
}

#[test]
fn a_fork_has_the_chance_of_what_it_was_taken_from() {
    let project = succeeds(&script(
        "  await ctx.shell(`echo ${Math.random()} >> log.txt`);\n\
         await ctx.shell(\"echo second >> log.txt\");",
    ));
    for _ in 0..2 {
        let forked = atomic(&project, &["fork", "last@run#1[shell:1]/work#1"]);
        assert_eq!(forked.code, Some(0), "{forked:?}");
        let ended = atomic(&project, &["resume", "last", "--trust"]);
        assert_eq!(ended.code, Some(0), "{forked:?}\n{ended:?}");
    }
    let log = project.read("log.txt");
    assert_eq!(log.lines().skip(1).collect::<Vec<_>>(), ["second"; 3], "{log}");
}
