//! Plain async workflows that have failed or were changed, and are taken up again.

use crate::typescript::atomic;
use crate::typescript_mended::{fails, script};

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
