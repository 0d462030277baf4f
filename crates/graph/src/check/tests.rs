//! A table of bad graphs and what is found, then what the table cannot show.

mod cases;
mod random;

use std::collections::BTreeSet;

use cases::{cases, known, uses, work};

use super::{Code, Known, Place, Problem, Severity, Span, Spans, check, nearest, no_uses};
use crate::{Condition, Count, Graph, Kind, Node, NodeId, OnError};

/// Everything wrong with a graph, with nothing known besides it.
fn problems(graph: &Graph) -> Vec<Problem> {
    check(graph, &no_uses, &Known::default(), &Spans::default())
}

/// `ATM102 the graph (start)`.
fn short(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(|problem| format!("{} {}", problem.code, problem.place)).collect()
}

fn errors(problems: &[Problem]) -> Vec<&Problem> {
    problems.iter().filter(|problem| problem.is_error()).collect()
}

#[test]
fn each_bad_graph_has_exactly_its_problems() {
    for case in cases() {
        let found = check(&case.graph, &uses, &known(), &Spans::default());
        assert_eq!(short(&found), case.expected, "{}", case.title);
    }
}

#[test]
fn every_message_says_what_is_wrong_and_what_to_do() {
    let mut shown = String::new();
    for case in cases() {
        shown += &format!("# {}\n", case.title);
        for problem in check(&case.graph, &uses, &known(), &Spans::default()) {
            shown += &format!("{problem}\n");
        }
    }
    shown += &format!("# workflows in a circle\n{}\n", circle());
    insta::assert_snapshot!(shown);
}

fn circle() -> Problem {
    Problem::circular_workflows(&["a", "b", "a"], Place::new(vec!["sub".into()]))
}

#[test]
fn every_code_is_found_by_some_case_and_has_its_line_in_the_docs() {
    let mut found = BTreeSet::from([circle().code]);
    for case in cases() {
        found.extend(check(&case.graph, &uses, &known(), &Spans::default()).iter().map(|p| p.code));
    }
    let page = include_str!("../../../../docs/problems.md");
    for code in Code::all() {
        assert!(found.contains(code), "no case gives {code}");
        let line = format!("| {code} | {} | {} |", code.severity(), code.explain());
        assert!(page.contains(&line), "docs/problems.md has no line\n{line}");
    }
    let lines = page.lines().filter(|line| line.starts_with("| ATM")).count();
    assert_eq!(lines, Code::all().len(), "docs/problems.md has lines for codes that do not exist");
    assert!(Code::all().is_sorted_by(|a, b| a.as_str() < b.as_str()), "a number is used twice");
}

#[test]
fn names_that_are_not_found_read_as_promised() {
    let known = || ["commit", "explain-code"].into_iter();
    let not_found = |code, name| Problem::not_found(code, name, known(), Place::default()).message;
    let table = [
        (Code::UNKNOWN_SKILL, "comit", "Skill not found: \"comit\" (did you mean \"commit\"?)"),
        (Code::UNKNOWN_WORKFLOW, "xyz", "Workflow not found: xyz"),
        (Code::UNKNOWN_AGENT, "xyz", "Agent not found: xyz"),
        (Code::UNKNOWN_COMMAND, "xyz", "Command not found: xyz"),
    ];
    for (code, name, expected) in table {
        assert_eq!(not_found(code, name), expected);
    }
    assert_eq!(circle().message, "Circular workflow dependency detected: a -> b -> a");
}

#[test]
fn the_nearest_name_is_the_one_that_was_meant() {
    let known = ["commit", "create-spec", "create-gh-pr", "a", "Start", "explain-code"];
    let table = [
        ("comit", Some("commit")),
        ("commmit", Some("commit")),
        ("ocmmit", Some("commit")),
        ("COMMIT", Some("commit")),
        ("strat", Some("Start")),
        ("explain", Some("explain-code")),
        ("commit-all", Some("commit")),
        ("create-spek", Some("create-spec")),
        ("b", None),
        ("", None),
        ("deploy", None),
    ];
    for (name, expected) in table {
        assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
    }
}

#[test]
fn a_problem_is_shown_where_the_author_wrote_it_or_nearby() {
    let at = |line| Span { file: "flow.json".to_owned(), line, column: 3 };
    let path = |ids: &[&str]| ids.iter().map(|id| NodeId::from(*id)).collect::<Vec<_>>();
    let mut spans = Spans::default();
    spans.insert(path(&[]), None, at(1));
    spans.insert(path(&[]), Some("edges"), at(2));
    spans.insert(path(&["sub"]), None, at(10));
    spans.insert(path(&["sub"]), Some("edges[1]"), at(11));
    let table: [(&[&str], Option<&str>, u32); 7] = [
        (&["sub"], Some("edges[1]"), 11),
        (&["sub"], Some("edges[2]"), 10),
        (&["sub", "work"], Some("retry"), 10),
        (&["other"], None, 1),
        (&[], Some("edges[7]"), 2),
        (&[], Some("reducers.tasks"), 1),
        (&[], None, 1),
    ];
    for (ids, part, line) in table {
        assert_eq!(spans.find(&path(ids), part), Some(&at(line)), "{ids:?} {part:?}");
    }
    assert_eq!(Spans::default().find(&path(&["sub"]), None), None);

    let graph = Graph::starting_at("a").node(work("a")).edge("a", "b");
    let found = check(&graph, &no_uses, &Known::default(), &spans);
    insta::assert_snapshot!(found[0], @r#"
    flow.json:2:3: ATM105 error at the graph (edges[0]): the edge from "a" leads to "b", which does not exist
      help: use "a", or add a node "b"
    "#);
    assert_eq!(
        serde_json::to_value(&found[0]).unwrap()["place"],
        serde_json::json!({
            "path": [], "part": "edges[0]",
            "span": {"file": "flow.json", "line": 2, "column": 3},
        }),
    );
}

#[test]
fn tables_that_are_absent_are_not_checked_against() {
    for case in cases() {
        let found = check(&case.graph, &uses, &Known::default(), &Spans::default());
        assert!(found.iter().all(|p| !p.code.as_str().starts_with("ATM40")), "{}", case.title);
    }
}

/// What looks like a mistake and is none.
#[test]
fn what_is_allowed_is_not_reported() {
    let holds = || Condition::Call("is-done".into());
    let limit = |mut graph: Graph| {
        graph.max_iterations = Some(Count::Key("limit".into()));
        graph
    };
    let ring =
        || Graph::starting_at("a").node(work("a")).node(work("b")).edge("a", "b").edge("b", "a");
    let mut by_steps = ring();
    by_steps.max_steps = Some(9);
    let mut by_time = ring();
    by_time.timeout_ms = Some(9);
    let inside = |node: Node| Graph::starting_at("sub").node(node);
    let sub = |graph| Node::new("sub", cases::subgraph(graph));
    let mut timed = sub(ring());
    timed.timeout_ms = Some(9);
    let mut visits = ring();
    visits.nodes[1].max_visits = Some(Count::Key("limit".into()));
    let caught = || Graph { catch: Some("c".into()), ..Graph::starting_at("a") };
    let table = [
        ("a limit on visits", visits),
        ("a limit on iterations", limit(ring())),
        ("a limit on steps", by_steps),
        ("a limit on the time of the run", by_time),
        ("a limit on the time of a node", inside(timed)),
        ("only a failure leads there", caught().node(work("a")).node(work("c"))),
        (
            "only a resume leads there",
            Graph::starting_at("a").node(work("a").on_revive("b")).node(work("b")),
        ),
        (
            "only a goto leads there",
            Graph::starting_at("a").node(work("a").may_go_to(["b"])).node(work("b")),
        ),
        (
            "only the rule for failures leads there",
            Graph::starting_at("a")
                .node(work("a").on_error(OnError::Goto("b".into())))
                .node(work("b")),
        ),
        (
            "a choice that may be none",
            Graph::starting_at("a").node(work("a")).node(work("b")).edge_when("a", "b", holds()),
        ),
        (
            "a decision that may fail",
            Graph::starting_at("a")
                .node(Node::new("a", Kind::Decision).on_error(OnError::Skip))
                .node(work("b"))
                .edge_when("a", "b", holds()),
        ),
        (
            "a decision whose failures a function sends elsewhere",
            Graph::starting_at("a")
                .node(
                    Node::new("a", Kind::Decision)
                        .on_error(OnError::Call("is-done".into()))
                        .may_go_to(["b"]),
                )
                .node(work("b"))
                .edge_when("a", "b", holds()),
        ),
        ("writes one after the other", cases::writers("x", &["b"], true)),
        ("writes with a reducer", cases::writers("list", &["b", "c"], false)),
        (
            "names in other case",
            Graph::starting_at("a").node(cases::action("a", "agent", "Worker")),
        ),
        ("the model around", inside(Node { model: Some("inherit".to_owned()), ..work("sub") })),
    ];
    for (title, graph) in table {
        let found = check(&graph, &uses, &known(), &Spans::default());
        assert_eq!(short(&found), [""; 0], "{title}");
    }
}

/// No recursion, and no work that grows with the square of the graph.
#[test]
fn a_large_graph_is_checked_in_one_go() {
    const NODES: u32 = 100_000;
    const WRONG: usize = 20_000;
    let id = |n: u32| NodeId::from(format!("n{n:06}"));
    let mut graph = Graph::starting_at(id(0));
    for n in 0..NODES {
        graph.nodes.push(work(id(n).as_str()));
        if n > 0 {
            graph = graph.edge(id(n - 1), id(n));
        }
    }
    assert_eq!(short(&problems(&graph)), [""; 0]);

    let ring = graph.clone().edge(id(NODES - 1), id(0));
    let found = problems(&ring);
    assert_eq!(short(&found), ["ATM302 n000000"]);
    assert!(found[0].message.contains("n000005 → … → n000000 goes"), "{}", found[0].message);

    // Every name is wrong; each would have to be compared with all others.
    graph.edges.truncate(WRONG);
    for edge in &mut graph.edges {
        edge.to = NodeId::from(format!("x{}", edge.to));
    }
    let found = problems(&graph);
    let missing = found.iter().filter(|p| p.code == Code::EDGE_TO_MISSING).count();
    assert_eq!(missing, WRONG);
}

#[test]
fn a_deep_nest_is_checked_in_one_go() {
    const DEPTH: usize = 300;
    let mut graph = Graph::starting_at("x").node(work("work"));
    for _ in 0..DEPTH {
        graph = Graph::starting_at("sub").node(Node::new("sub", cases::subgraph(graph)));
    }
    let found = problems(&graph);
    assert_eq!((found.len(), found[0].code), (1, Code::START_MISSING));
    assert_eq!(found[0].place.path.len(), DEPTH);
}

#[test]
fn the_kind_of_a_problem_says_how_bad_it_is() {
    for case in cases() {
        for problem in check(&case.graph, &uses, &known(), &Spans::default()) {
            assert_eq!(problem.severity, problem.code.severity());
            assert_eq!(problem.is_error(), problem.severity == Severity::Error);
        }
    }
}
