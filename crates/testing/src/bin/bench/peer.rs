//! LangGraph on the same graphs, for comparison.

use atomic_testing::langgraph;

use crate::branches::BRANCHES;
use crate::memory::Measured;
use crate::{Scale, say, text};

const SCRIPT: &str = include_str!("peer.py");

/// `ours` in memory, and the best and the median time of the branches.
pub(crate) fn measure(scale: Scale, ours: &[Measured], branches: (f64, f64)) -> Result<(), String> {
    let mut arguments = vec![scale.repeats.min(3).to_string(), BRANCHES.to_string()];
    arguments.extend(ours.iter().flat_map(|m| [m.case.to_owned(), m.size.to_string()]));
    let output = langgraph::run(SCRIPT, &arguments, "")?;
    say("\nBeside LangGraph, in memory (CPU per step at best)\n");
    say("| case | size | LangGraph, µs | Atomic, µs | times |");
    say("|---|---:|---:|---:|---:|");
    let mut theirs = output.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    for Measured { case, size, micros } in ours {
        let Some(words) = theirs.next() else { return Err("LangGraph said too little".to_owned()) };
        if words[..] == [*case, "-"] {
            continue;
        }
        let [name, theirs] = words[..] else { return Err(format!("LangGraph said {words:?}")) };
        if name != *case {
            return Err(format!("LangGraph measured {name} instead of {case}"));
        }
        let theirs: f64 = theirs.parse().map_err(text)?;
        let times = theirs / micros;
        say(&format!("| {case} | {size} | {theirs:.0} | {micros:.2} | {times:.0} |"));
    }
    let words = theirs.next().unwrap_or_default();
    let ["branches", best, median] = words[..] else {
        return Err(format!("LangGraph said {words:?}"));
    };
    let (best, median): (f64, f64) = (best.parse().map_err(text)?, median.parse().map_err(text)?);
    say(&format!(
        "\n{BRANCHES} branches of 10 ms: LangGraph {best:.1} ms at best, {median:.1} in the median \
         (asyncio, nothing on disk); Atomic {:.1} and {:.1} (on disk)",
        branches.0, branches.1
    ));
    Ok(())
}
