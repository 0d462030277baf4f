//! What the machine costs by itself: CPU per step, beside LangGraph on the same graphs.

use std::time::{Duration, Instant};

use crate::drive::cost_of;
use crate::graphs::{self, Build};
use crate::measure::{best_and_median, peak_mib};
use crate::{Scale, numbers_of_its_own, say};

/// A graph by the name it has in the tables and in `peer.py`.
struct Case {
    name: &'static str,
    steps: usize,
    build: Build,
}

const CASES: &[Case] = &[
    Case { name: "linear", steps: 1_000, build: graphs::linear },
    Case { name: "cycle, 10 KB state", steps: 10_000, build: graphs::cycle },
    Case { name: "loop, 10 KB state", steps: 10_000, build: graphs::rounds_beside_text },
    Case { name: "fan by edges", steps: 1_000, build: graphs::fan },
    Case { name: "fan by edges + list join", steps: 1_000, build: graphs::fan_and_join },
    Case { name: "each", steps: 1_000, build: graphs::each },
    Case { name: "parallel", steps: 1_000, build: graphs::parallel },
];

/// How long a case is measured at least, for each time it is to be repeated.
const PER_REPEAT: Duration = Duration::from_millis(300);

/// CPU per step in microseconds, of a case at a size.
pub(crate) struct Measured {
    pub(crate) case: &'static str,
    pub(crate) size: usize,
    pub(crate) micros: f64,
}

pub(crate) fn measure(scale: Scale) -> Result<Vec<Measured>, String> {
    say("\nIn memory: CPU per step (the machine alone)\n");
    say("| case | size | best, µs | median, µs | peak RSS, MiB |");
    say("|---|---:|---:|---:|---:|");
    let mut measured = vec![];
    for Case { name, steps, .. } in CASES {
        let size = scale.shrunk(*steps);
        let (size_text, repeats) = (size.to_string(), scale.repeats.to_string());
        let [best, median, peak] = numbers_of_its_own(&["memory", name, &size_text, &repeats])?;
        say(&format!("| {name} | {size} | {best:.2} | {median:.2} | {peak:.0} |"));
        measured.push(Measured { case: name, size, micros: best });
    }
    Ok(measured)
}

/// Measures one case at one size.
pub(crate) fn row(name: &str, size: usize, repeats: usize) -> Result<[f64; 3], String> {
    let known = CASES.iter().find(|case| case.name == name);
    let case = known.ok_or_else(|| format!("there is no case {name}"))?;
    let begun = Instant::now();
    let mut micros = vec![];
    // Such a run is over in a few milliseconds, and for so short a time a processor may be slow.
    while micros.len() < repeats || begun.elapsed() < PER_REPEAT * repeats as u32 {
        micros.push(cost_of((case.build)(size))?.step);
    }
    let (best, median) = best_and_median(micros);
    Ok([best, median, peak_mib()])
}
