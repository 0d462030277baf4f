//! A run laid over its graph.

use super::fixtures;
use crate::draw::{Mark, Overlay, Role, Status, dot, mermaid, svg, tree};
use crate::{Count, Graph, OnError, StepId, Strategy};

/// A step, how it stands and how long it took.
type Told = (&'static str, Status, Option<u64>);

/// The marks of a run, in one line each.
fn marks(graph: &Graph, steps: &[Told]) -> Vec<String> {
    let mut run = Overlay::default();
    for (step, status, took) in steps {
        run.add(&StepId::new(step), *status, *took);
    }
    let show = |(path, mark): (String, Mark)| {
        let took = mark.took_ms.map(|took| format!(" {took}ms")).unwrap_or_default();
        format!("{path} {} ×{}{took}", mark.symbols(), mark.visits)
    };
    run.marks(graph).into_iter().map(show).collect()
}

#[test]
fn steps_are_folded_into_the_nodes_they_visited() {
    use Status::{Completed, Failed, Lost, Running};
    let both = fixtures::parallel(
        "par",
        Strategy::All,
        vec![("left", fixtures::chain(&["a"])), ("right", fixtures::chain(&["a"]))],
    );
    let graph = Graph::starting_at("fan")
        .node(fixtures::each("fan", fixtures::chain(&["worker"]), Count::Fixed(2)))
        .node(both)
        .node(fixtures::looped("loop", fixtures::chain(&["x"])))
        .node(fixtures::subgraph("sub", fixtures::chain(&["x"])));
    let cases: [(&str, &[Told], &[&str]); 9] = [
        (
            "what is said last of a step holds, and the time of its attempts adds up",
            &[("fan#1", Running, None), ("fan#1", Lost, Some(5)), ("fan#1", Completed, Some(7))],
            &["fan ✓ ×1 12ms"],
        ),
        (
            "items are lanes",
            &[
                ("fan#1[#1]/worker#1", Completed, Some(1)),
                ("fan#1[#2]/worker#1", Failed, Some(2)),
                ("fan#1[#3]/worker#1", Completed, None),
            ],
            &["fan ✗ ×1", "fan/worker 2✓ 1✗ ×3 3ms"],
        ),
        (
            "a later visit speaks for its item",
            &[("fan#1[#3]/worker#1", Failed, None), ("fan#1[#3]/worker#2", Completed, None)],
            &["fan ✓ ×1", "fan/worker ✓ ×2"],
        ),
        (
            "and so does a later visit of the fan, whatever sorts first",
            &[("fan#2[#3]/worker#1", Failed, None), ("fan#10[#3]/worker#1", Completed, None)],
            &["fan ✓ ×2", "fan/worker ✓ ×2"],
        ),
        (
            "branches are places of their own",
            &[("par#1[left]/a#1", Completed, None), ("par#1[right]/a#1", Running, None)],
            &["par ● ×1", "par[left]/a ✓ ×1", "par[right]/a ● ×1"],
        ),
        (
            "rounds follow each other",
            &[("loop#1[1]/x#1", Failed, None), ("loop#1[2]/x#1", Running, None)],
            &["loop ● ×1", "loop/x ● ×2"],
        ),
        (
            "so do attempts of a region",
            &[("sub#1/x#1", Failed, None), ("sub#1!2/x#1", Completed, None)],
            &["sub ✓ ×1", "sub/x ✓ ×2"],
        ),
        (
            "also of a fan",
            &[("fan#1[#1]/worker#1", Failed, None), ("fan#1!2[#1]/worker#1", Completed, None)],
            &["fan ✓ ×1", "fan/worker ✓ ×2"],
        ),
        (
            "what the graph does not have is left out",
            &[("gone#1", Completed, None), ("par#1[up]/a#1", Completed, None)],
            &[],
        ),
    ];
    for (what, steps, expected) in cases {
        assert_eq!(marks(&graph, steps), expected, "{what}");
    }
}

/// Nothing is recorded of a node in which graphs run; it stands as they do.
#[test]
fn a_region_stands_as_what_is_in_it() {
    use Status::{Cancelled, Completed, Failed, Running};
    let branches = || vec![("l", fixtures::chain(&["a", "b"])), ("r", fixtures::chain(&["a"]))];
    let mut skips = fixtures::chain(&["x", "y"]);
    skips.nodes[1].on_error = OnError::Skip;
    let mut catches = fixtures::chain(&["x", "y"]);
    catches.catch = Some("y".into());
    let graph = Graph::starting_at("all")
        .node(fixtures::parallel("all", Strategy::All, branches()))
        .node(fixtures::parallel("any", Strategy::Any, branches()))
        .node(fixtures::looped("loop", fixtures::chain(&["x"])))
        .node(fixtures::subgraph("skips", skips))
        .node(fixtures::subgraph("catches", catches))
        .node(fixtures::each("fan", fixtures::chain(&["x"]), Count::Fixed(2)))
        .node(fixtures::subgraph(
            "outer",
            Graph::starting_at("in").node(fixtures::each(
                "in",
                fixtures::chain(&["x"]),
                Count::Fixed(2),
            )),
        ));
    let cases: [(&[Told], &str); 13] = [
        (&[("all#1[l]/a#1", Completed, None), ("all#1[r]/a#1", Failed, None)], "all ✗ ×1"),
        (&[("all#1[r]/a#1", Failed, None), ("all#1[l]/a#1", Completed, None)], "all ✗ ×1"),
        (&[("all#1[r]/a#1", Failed, None), ("all#1[l]/a#1", Running, None)], "all ● ×1"),
        (&[("any#1[r]/a#1", Failed, None), ("any#1[l]/b#1", Cancelled, None)], "any ✗ ×1"),
        (&[("any#1[r]/a#1", Failed, None), ("any#1[l]/b#1", Completed, None)], "any ✓ ×1"),
        (&[("any#1[l]/b#1", Completed, None), ("any#1[r]/a#1", Cancelled, None)], "any ✓ ×1"),
        (&[("loop#1[1]/x#1", Completed, None), ("loop#1[2]/x#1", Failed, None)], "loop ✗ ×1"),
        (&[("skips#1/x#1", Completed, None), ("skips#1/y#1", Failed, None)], "skips ✓ ×1"),
        (&[("catches#1/x#1", Failed, None), ("catches#1/y#1", Completed, None)], "catches ✓ ×1"),
        (&[("catches#1/x#1", Failed, None), ("catches#1/y#1", Failed, None)], "catches ✗ ×1"),
        // Out of time: what is in it is stopped after that.
        (&[("skips#1", Failed, None), ("skips#1/x#1", Cancelled, None)], "skips ✗ ×1"),
        (&[("fan#1", Failed, None), ("fan#1!2[0]/x#1", Completed, None)], "fan ✓ ×1"),
        (
            &[("outer#1/in#1[0]/x#1", Failed, None), ("outer#1/in#1[1]/x#1", Completed, None)],
            "outer ✗ ×1",
        ),
    ];
    for (steps, expected) in cases {
        let marks = marks(&graph, steps);
        assert!(marks.iter().any(|mark| mark == expected), "{expected}: {marks:?}");
    }
    let mut run = Overlay::default();
    for (step, status, at) in [("fan#1[0]/x#1", Running, 5), ("fan#1[0]/x#1", Completed, 25)] {
        run.add(&StepId::new(step), status, None);
        run.heard(&StepId::new(step), at);
    }
    assert_eq!(run.marks(&graph)["fan"].took_ms, Some(20));
}

#[test]
fn the_most_urgent_status_is_shown() {
    let mut mark = Mark::new(Status::Completed);
    for status in Status::ALL {
        mark.lanes.insert(status, 1);
        assert_eq!(mark.status(), Some(status));
    }
    assert_eq!(Mark::default().status(), None);
}

#[test]
fn a_run_is_shown_by_colour_and_by_mark() {
    let (graph, run) = (fixtures::ralph(), fixtures::ralph_run());
    let picture = svg(&graph, &run);
    for shown in [
        "✓ ×2 · 59.4 s",
        "7✓ 1✗ 1? ×9 · 10 min 25 s",
        "6✓ 1● ×7 · 1 min 12 s",
        "<rect class=\"completed\"",
        "<rect class=\"running\"",
        "? asking",
    ] {
        assert!(picture.contains(shown), "{shown}");
    }
    let chart = mermaid(&graph, &run);
    assert!(
        chart.contains(
            "planner<br/>Planning the tasks<br/>3 attempts<br/>✓ ×2 · 59.4 s\"]):::completed"
        ),
        "{chart}"
    );
    assert!(chart.contains("classDef completed ") && !chart.contains("classDef lost "));
    let page = dot(&graph, &run);
    assert!(page.contains("3 attempts\\n✓ ×2 · 59.4 s\", style=\"rounded,filled\", peripheries=2, fillcolor=\"#dafbe1\""), "{page}");
    let lines = tree(&graph, &run);
    assert_eq!(lines[0].spans[1].role, Role::Progress(Status::Completed));
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn nothing_of_a_run_is_shown_without_one() {
    let picture = svg(&fixtures::ralph(), &Overlay::default());
    for mark in ["✓", "✗", "●", "○"] {
        assert!(!picture.contains(mark), "{mark}");
    }
    assert!(!picture.contains("class=\"completed\""));
}

#[test]
fn a_mark_set_by_hand_beats_the_steps() {
    let graph = fixtures::chain(&["a"]);
    let mut run = Overlay::default();
    run.add(&StepId::new("a#1"), Status::Completed, Some(1));
    let note = Some("no\nanswer".to_owned());
    run.nodes.insert("a".to_owned(), Mark { note, ..Mark::new(Status::Failed) });
    assert_eq!(tree(&graph, &run)[0].to_string(), "└─▸ ✗ a  work  → end  ✗ · no answer");
}

#[test]
fn a_region_is_at_work_while_something_in_it_is() {
    let graph = Graph::starting_at("sub").node(fixtures::subgraph("sub", fixtures::chain(&["x"])));
    for (status, expected) in [
        (Status::Running, "└─▸ ● sub  subgraph  → end  ● running"),
        (Status::Asking, "└─▸ ? sub  subgraph  → end  ? asking"),
        (Status::Completed, "└─▸ ✓ sub  subgraph  → end  ✓ completed"),
    ] {
        let mut run = Overlay::default();
        run.add(&StepId::new("sub#1/x#1"), status, None);
        assert_eq!(tree(&graph, &run)[0].to_string(), expected);
    }
}
