//! Scripts as they are drawn, checked and counted before they run.

use atomic_graph::certificate::{Bound, certify};
use atomic_graph::check::{Known, Spans, Use, UseKind, check};
use atomic_graph::draw::{Overlay, Status, dot, mermaid, svg, tree};
use atomic_graph::{Branch, Count, Graph, Kind, Node, Script, State, StepId};
use serde_json::{Value, json};

use crate::table::{only, patch, work};

fn script(max_calls: Option<Count>) -> Node {
    let body = |id: &str, graph| Branch { id: id.into(), graph };
    let inner = Graph::starting_at("x")
        .node(Node::launch("x", Value::Null))
        .node(Node::launch("y", Value::Null))
        .edge("x", "y");
    let sub = Kind::Subgraph { graph: inner, isolated: true, input: None, output: None };
    let bodies = vec![
        body("agent", only(Node::launch("agent", json!("asks")))),
        body("work", only(work("work"))),
        body("twice", only(Node::new("twice", sub))),
    ];
    Node::new("s", Kind::Script(Script { advance: "go".into(), bodies, max_calls }))
}

fn graph(max_calls: impl Into<Option<Count>>) -> Graph {
    only(script(max_calls.into()))
}

fn drawn(graph: &Graph, overlay: &Overlay) -> String {
    tree(graph, overlay).iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_script_is_drawn_with_what_it_can_call() {
    let graph = graph(Count::Fixed(20));
    let expected = "\
└─▸ s  script · at most 20 calls  → end
    ├─ [agent]
    │  └─▸ agent  agent  → end
    ├─ [work]
    │  └─▸ work  work  → end
    └─ [twice]
       └─▸ twice  subgraph · isolated  → end
           ├─▸ x  agent  → y
           └─  y  agent  → end
";
    assert_eq!(drawn(&graph, &Overlay::default()), expected);
    for picture in [mermaid, dot, svg] {
        let picture = picture(&graph, &Overlay::default());
        for part in ["at most 20 calls", "twice", "agent", "work"] {
            assert!(picture.contains(part), "{part} is not in {picture}");
        }
    }
}

/// The name of a call says nothing about its body: the steps in it do.
#[test]
fn a_run_of_a_script_is_drawn_by_the_bodies_of_its_calls() {
    let graph = graph(Count::Fixed(20));
    let mut overlay = Overlay::default();
    let steps = [
        ("s#1[p0/agent:1]/agent#1", Status::Completed),
        ("s#1[p1/agent:1]/agent#1", Status::Failed),
        ("s#1[shell:1]/work#1", Status::Completed),
        ("s#1[w]/twice#1/x#1", Status::Running),
    ];
    for (step, status) in steps {
        let step = step.replace("p0/", "p0%2F").replace("p1/", "p1%2F");
        overlay.add(&StepId::new(step), status, None);
    }
    let shown = drawn(&graph, &overlay);
    let line = |node: &str| {
        let line = shown.lines().find(|line| line.contains(&format!(" {node}  "))).unwrap();
        line.to_owned()
    };
    assert!(line("agent").contains("1✓ 1✗"), "{shown}");
    assert!(line("work").contains('✓'), "{shown}");
    assert!(line("x").contains('●') && line("s").contains('●'), "{shown}");
    overlay.add(&StepId::new("s#1[w]/twice#1/x#1"), Status::Completed, None);
    overlay.add(&StepId::new("s#1"), Status::Completed, None);
    let shown = drawn(&graph, &overlay);
    assert!(shown.starts_with("└─▸ ✓ s"), "{shown}");
}

#[test]
fn the_bodies_of_a_script_are_checked_like_branches() {
    let uses = |action: &Value| match action.as_str() {
        Some("asks") => vec![Use::new(UseKind::Agent, "nobody")],
        _ => vec![],
    };
    let known = Known {
        agents: Some(["worker".to_owned()].into()),
        functions: Some(["other".into()].into()),
        state: Some(patch(json!({"limit": "many"}))),
        ..Known::default()
    };
    let mut graph = graph(Count::Key("limit".into()));
    if let Kind::Script(script) = &mut graph.nodes[0].kind {
        script.bodies.push(script.bodies[1].clone());
    }
    let problems = check(&graph, &uses, &known, &Spans::default());
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let all = shown.join("\n");
    for part in
        ["Agent not found: nobody", "Function not found: go", "there is already a branch \"work\""]
    {
        assert!(all.contains(part), "{part} is not in:\n{all}");
    }
}

#[test]
fn the_launches_of_a_script_are_its_calls_times_its_dearest_body() {
    let table = [
        (Count::Fixed(3), json!({}), Bound::AtMost(6), Bound::AtMost(3)),
        (Count::Key("most".into()), json!({"most": 5}), Bound::AtMost(10), Bound::AtMost(5)),
        (Count::Key("most".into()), json!({}), Bound::Unbounded, Bound::Unbounded),
    ];
    for (max_calls, state, launches, at_once) in table {
        let certificate = certify(&graph(max_calls), &State::new(patch(state)));
        assert_eq!((certificate.launches, certificate.at_once), (launches, at_once));
        let why = certificate.unbounded.first().map(|unbounded| unbounded.why.as_str());
        let expected = "the limit of its calls, `most`, is not known yet";
        assert_eq!(why, (launches == Bound::Unbounded).then_some(expected));
    }
    // A ceiling that nobody has chosen is no promise.
    let certificate = certify(&graph(None), &State::default());
    assert_eq!(certificate.launches, Bound::Unbounded);
    let unbounded = &certificate.unbounded[0];
    assert_eq!(unbounded.why, "what the script calls is decided while it runs");
    assert!(unbounded.remedy.starts_with("set `max_calls`, or `max_visits` of "), "{unbounded:?}");
}
