//! What is drawn is what is there, and nothing is in the way of anything else.

mod fixtures;
mod geometry;
mod random;
mod read;
mod run;

use std::collections::BTreeMap;

use geometry::Svg;
use read::{Shown, Way};

use super::{Overlay, Role, dot, mermaid, svg, tree};
use crate::{Condition, Edge, Graph, Kind, Node, NodeId, OnError};

/// What a picture of `graph` has to show, worked out without the code that draws.
fn expected(graph: &Graph, scope: &str, shown: &mut Shown) {
    let path = |id: &str| if scope.is_empty() { id.to_owned() } else { format!("{scope}/{id}") };
    let mut way = |from: &str, to: &str| shown.ways.push((path(from), path(to)));
    way("(start)", graph.start.as_str());
    for edge in &graph.edges {
        edge.from.iter().for_each(|from| way(from.as_str(), edge.to.as_str()));
    }
    for node in &graph.nodes {
        let id = node.id.as_str();
        node.targets.iter().for_each(|target| way(id, target.as_str()));
        node.on_revive.iter().for_each(|target| way(id, target.as_str()));
        if let OnError::Goto(target) = &node.on_error {
            way(id, target.as_str());
        }
        let leaves = |edge: &&Edge| edge.from.contains(&node.id);
        if may_end(node, graph.edges.iter().filter(leaves).map(|edge| edge.when.as_ref())) {
            way(id, "(end)");
        }
    }
    graph.catch.iter().for_each(|target| way("(any failure)", target.as_str()));
    for node in &graph.nodes {
        shown.nodes.push(path(node.id.as_str()));
        for (branch, inner) in node.inner() {
            let branch = branch.map(|branch| format!("[{branch}]")).unwrap_or_default();
            expected(inner, &format!("{}{branch}", path(node.id.as_str())), shown);
        }
    }
}

fn may_end<'a>(node: &Node, conditions: impl Iterator<Item = Option<&'a Condition>>) -> bool {
    let conditions: Vec<_> = conditions.collect();
    let always = |condition: &Option<&Condition>| match condition {
        None | Some(Condition::Otherwise) => true,
        Some(Condition::Not(inner)) => conditions.contains(&Some(inner.as_ref())),
        Some(Condition::Equals { .. } | Condition::Says { .. } | Condition::Call(_)) => false,
    };
    conditions.is_empty() || !(conditions.iter().any(always) || matches!(node.kind, Kind::Decision))
}

/// Where branches are drawn as nodes.
fn with_branches_as_nodes(mut shown: Shown) -> Shown {
    let turn = |path: &String| path.replace('[', "/").replace(']', "");
    for path in &shown.nodes.clone() {
        // Every prefix that ends in a branch is a subgraph of its own.
        for (end, _) in path.match_indices(']') {
            shown.nodes.push(path[..=end].to_owned());
        }
    }
    shown.nodes = shown.nodes.iter().map(turn).collect();
    shown.nodes.sort();
    shown.nodes.dedup();
    shown.ways = shown.ways.iter().map(|(from, to)| (turn(from), turn(to))).collect();
    shown.sorted()
}

/// Checks every format against the graph.
fn check(graph: &Graph, overlay: &Overlay) {
    let mut wanted = Shown::default();
    expected(graph, "", &mut wanted);
    let wanted = wanted.sorted();
    let picture = Svg::read(&svg(graph, overlay));
    assert_eq!(picture.shown(), wanted, "svg");
    picture.check();
    assert_eq!(read::dot(&dot(graph, overlay)), wanted, "dot");
    check_tree(graph, overlay, &wanted);
    assert_eq!(read::mermaid(&mermaid(graph, overlay)), with_branches_as_nodes(wanted), "mermaid");
}

/// Checks that what is said about ways is written beside them.
fn check_labels(graph: &Graph) {
    let text = svg(graph, &Overlay::default());
    let arrows = text.lines().filter(|line| line.starts_with("<path class=\"arrow "));
    let labelled = arrows.filter(|line| line.contains(" · ")).count();
    assert_eq!(Svg::read(&text).labels(), labelled, "labels");
}

/// One line for each node, and on it every way that leaves it.
fn check_tree(graph: &Graph, overlay: &Overlay, wanted: &Shown) {
    let lines = tree(graph, overlay);
    let mut nodes: Vec<String> = lines.iter().filter_map(|line| line.node.clone()).collect();
    nodes.sort();
    assert_eq!(nodes, wanted.nodes, "tree");
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().replace(['(', ')'], "");
    let mut leaving: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (from, to) in &wanted.ways {
        leaving.entry(from).or_default().push(last(to));
    }
    for line in lines.iter().filter(|line| line.node.is_some()) {
        let ways = line.spans.iter().filter(|span| matches!(span.role, Role::Way | Role::ErrorWay));
        let target = |text: &str| {
            let (_, to) = text.split_once("→ ").expect("where it goes");
            to.split(" (").next().unwrap_or_default().to_owned()
        };
        let mut ways: Vec<String> = ways.map(|span| target(&span.text)).collect();
        ways.sort();
        let node = line.node.as_deref().unwrap_or_default();
        let mut wanted = leaving.remove(node).unwrap_or_default();
        wanted.sort();
        assert_eq!(ways, wanted, "ways from {node}");
        assert!(!line.to_string().contains(char::is_control), "{line}");
    }
}

#[test]
fn every_format_shows_every_node_and_every_way() {
    let none = Overlay::default();
    for (graph, run) in [
        (fixtures::ralph(), fixtures::ralph_run()),
        (fixtures::nested(), Overlay::default()),
        (fixtures::thirty(), fixtures::thirty_run()),
    ] {
        check(&graph, &none);
        check(&graph, &run);
        check_labels(&graph);
    }
}

#[test]
fn small_graphs_of_each_kind() {
    for (name, graph) in fixtures::kinds() {
        check(&graph, &Overlay::default());
        check_labels(&graph);
        let lines: Vec<String> =
            tree(&graph, &Overlay::default()).iter().map(ToString::to_string).collect();
        let all = format!(
            "{}\n\n{}\n{}",
            lines.join("\n"),
            mermaid(&graph, &Overlay::default()),
            dot(&graph, &Overlay::default()),
        );
        insta::assert_snapshot!(format!("kind_{name}"), all);
    }
}

#[test]
fn a_small_svg() {
    let graph = fixtures::chain(&["one", "two"]);
    let mut run = Overlay::default();
    run.add(&crate::StepId::new("one#1"), super::Status::Completed, Some(1_500));
    insta::assert_snapshot!(svg(&graph, &run));
}

#[test]
fn an_svg_needs_nothing_but_itself() {
    let text = svg(&fixtures::nested(), &fixtures::thirty_run());
    let links = ["href", "<script", "@import", "@font-face", "<image", "<foreignObject"];
    for foreign in links {
        assert!(!text.contains(foreign), "{foreign}");
    }
    assert_eq!(text.matches("http").count(), 1, "only the name of the format");
    assert_eq!(text.matches("url(").count(), text.matches("url(#atomic-").count());
    assert!(text.contains("prefers-color-scheme:dark"), "readable on dark grounds");
}

#[test]
fn awkward_texts_stay_texts() {
    let graph = fixtures::awkward();
    let none = Overlay::default();
    let mut wanted = Shown::default();
    expected(&graph, "", &mut wanted);
    let (nodes, ways) = (wanted.nodes.len(), wanted.ways.len());

    let text = svg(&graph, &none);
    let picture = Svg::read(&text);
    picture.check();
    let shown = picture.shown();
    assert_eq!((shown.nodes.len(), shown.ways.len()), (nodes, ways), "svg");
    for meant in ["say \"hi\" & <b>bye</b>", "#35; #quot; &amp; &lt;", "]]> <!-- --> <?xml?> '"] {
        let is_there = |tag: &read::Tag| matches!(tag, read::Tag::Text(text) if text == meant);
        assert!(read::xml(&text).iter().any(is_there), "{meant}");
    }

    let text = mermaid(&graph, &none);
    let shown = read::mermaid(&text);
    // The two branches of `x` are subgraphs of their own.
    assert_eq!((shown.nodes.len(), shown.ways.len()), (nodes + 2, ways), "mermaid");
    for meant in ["end", "1. first", "- item", "back\\slash \\n \\l \\N", "say \"hi\" & <b>bye</b>"]
    {
        assert!(shown.nodes.contains(&meant.to_owned()), "{meant}");
    }
    for line in text.lines() {
        for label in line.split('"').skip(1).step_by(2) {
            label.split("<br/>").for_each(|line| {
                let meant = read::mermaid_text(line);
                let is_list =
                    !line.starts_with('#') && ["1. ", "- "].iter().any(|l| line.starts_with(l));
                assert!(!is_list, "a list for Markdown: {meant}");
            });
        }
    }

    let shown = read::dot(&dot(&graph, &none));
    assert_eq!((shown.nodes.len(), shown.ways.len()), (nodes, ways), "dot");
    assert!(shown.nodes.contains(&"back\\slash \\n \\l \\N".to_owned()));
    assert!(dot(&graph, &none).contains("label=\"#35; #quot; &amp;amp; &amp;lt;"));

    let lines = tree(&graph, &none);
    assert_eq!(lines.iter().filter(|line| line.node.is_some()).count(), nodes, "tree");
    for line in lines {
        assert!(!line.to_string().contains(char::is_control), "{line}");
    }
}

#[test]
fn a_broken_graph_is_drawn_with_what_is_missing() {
    let mut graph = fixtures::chain(&["a", "b"]).edge("b", "nowhere").node(fixtures::work("a"));
    graph.start = NodeId::from("gone");
    let none = Overlay::default();
    let picture = Svg::read(&svg(&graph, &none));
    picture.check();
    let way = |from: &str, to: &str| -> Way { (from.to_owned(), to.to_owned()) };
    let wanted = Shown {
        nodes: vec!["a".into(), "a~3".into(), "b".into()],
        ways: vec![way("(start)", "gone"), way("a", "b"), way("b", "nowhere")],
    };
    assert_eq!(picture.shown(), wanted);
    assert_eq!(read::dot(&dot(&graph, &none)), wanted);
    let lines: Vec<String> = tree(&graph, &none).iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "├─  a        work  → b",
            "├─  b        work  → nowhere",
            "├─  a        work",
            "├─▸ gone     missing",
            "└─  nowhere  missing",
        ]
    );
}
