//! What a step costs at two sizes: it must not depend on how many there are.

use crate::drive::cost_of;
use crate::graphs::{self, Build};
use crate::measure::{best_and_median, peak_mib};
use crate::{Scale, numbers_of_its_own, say};

/// What grows.
struct Case {
    name: &'static str,
    sizes: [usize; 2],
    build: Build,
}

const STEPS: [usize; 2] = [100_000, 1_000_000];
const WIDE: [usize; 2] = [1_000, 10_000];
const BYTES: [usize; 2] = [10_000, 10_000_000];

const CASES: &[Case] = &[
    Case { name: "cycle", sizes: STEPS, build: graphs::cycle },
    Case { name: "loop", sizes: STEPS, build: graphs::rounds_beside_text },
    Case { name: "linear", sizes: [10_000, 100_000], build: graphs::linear },
    Case { name: "fan by edges", sizes: WIDE, build: graphs::fan },
    Case { name: "fan by edges, 8 at once", sizes: WIDE, build: graphs::fan_of_few },
    Case { name: "fan by edges + list join", sizes: WIDE, build: graphs::fan_and_join },
    Case { name: "fan by edges, a join for every two", sizes: WIDE, build: graphs::many_joins },
    Case { name: "each", sizes: WIDE, build: graphs::each },
    Case { name: "each, 8 workers", sizes: WIDE, build: graphs::each_by_few },
    Case { name: "each, failed and revived", sizes: WIDE, build: graphs::each_revived },
    Case { name: "parallel", sizes: WIDE, build: graphs::parallel },
    Case { name: "parallel, race", sizes: WIDE, build: graphs::race },
    Case { name: "parallel, race, 8 at once", sizes: WIDE, build: graphs::race_of_few },
    Case { name: "parallel, race, half undecided", sizes: WIDE, build: graphs::race_of_undecided },
    Case {
        name: "sub-graphs three deep, in a chain",
        sizes: WIDE,
        build: graphs::chain_of_regions,
    },
    Case { name: "list of a cycle", sizes: WIDE, build: graphs::cycle_with_list },
    Case { name: "list of a loop", sizes: WIDE, build: graphs::rounds_with_list },
    Case { name: "list of each", sizes: WIDE, build: graphs::each_and_list },
    Case { name: "list of parallel", sizes: WIDE, build: graphs::parallel_and_list },
    Case { name: "list of each, 8 workers", sizes: WIDE, build: graphs::each_by_few_and_list },
    Case { name: "bytes of state, cycle", sizes: BYTES, build: graphs::cycle_beside },
    Case { name: "bytes of state, loop", sizes: BYTES, build: graphs::rounds_beside },
    Case { name: "bytes of state, each", sizes: BYTES, build: graphs::each_beside },
    Case { name: "bytes of state, isolated", sizes: BYTES, build: graphs::isolated_beside },
];

pub(crate) fn measure(scale: Scale) -> Result<(), String> {
    say("\nGrowth: CPU per step at two sizes (in memory)\n");
    say("| what grows | from | to | µs a step | at the larger | ratio | compile, µs a step | \
         ratio | peak RSS, MiB |");
    say("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for Case { name, sizes, .. } in CASES {
        let repeats = scale.repeats.min(3).to_string();
        let [from, to] = sizes.map(|size| scale.shrunk(size));
        let of = |size: usize| {
            let size = size.to_string();
            numbers_of_its_own::<3>(&["growth", name, &size, &repeats])
        };
        let ([small, small_compile, _], [large, compile, peak]) = (of(from)?, of(to)?);
        let (ratio, compile_ratio) = (large / small, compile / small_compile);
        say(&format!(
            "| {name} | {from} | {to} | {small:.2} | {large:.2} | {ratio:.1} | {compile:.2} | \
             {compile_ratio:.1} | {peak:.0} |"
        ));
    }
    Ok(())
}

/// Measures one case at one size.
pub(crate) fn row(name: &str, size: usize, repeats: usize) -> Result<[f64; 3], String> {
    let known = CASES.iter().find(|case| case.name == name);
    let case = known.ok_or_else(|| format!("there is no case {name}"))?;
    let costs = (0..repeats).map(|_| cost_of((case.build)(size)));
    let costs: Vec<_> = costs.collect::<Result<_, _>>()?;
    let (step, _) = best_and_median(costs.iter().map(|cost| cost.step).collect());
    let (compile, _) = best_and_median(costs.iter().map(|cost| cost.compile).collect());
    Ok([step, compile, peak_mib()])
}
