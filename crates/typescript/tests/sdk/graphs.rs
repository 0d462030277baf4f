//! Files that are right, and the documents they become.

use std::fs;

use serde_json::{Value, json};

use super::{described, drawn, folder};

#[test]
fn every_sample_and_every_example_is_described() {
    let mut seen = 0;
    for place in ["crates/workflow/tests/samples", "examples"] {
        for entry in folder(place).read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "ts") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let document =
                described(&text).unwrap_or_else(|trouble| panic!("{}: {trouble}", path.display()));
            let stem = path.file_stem().unwrap().to_str().unwrap();
            assert_eq!(document["name"], stem);
            seen += 1;
        }
    }
    assert_eq!(seen, 15);
}

#[test]
fn ifs_become_edges_that_choose() {
    let table = [
        (
            "graph().start(a('a')).if(() => true).then(a('b')).else().then(a('c')).endif().then(a('d')).end().compile()",
            "a b c d | a>b? a>c! b>d c>d",
        ),
        (
            "graph().start(a('a')).if(() => true).then(a('b')).elseif(() => true).then(a('c')).else().then(a('d')).endif().then(a('e')).compile()",
            "a b if-2 c d e | a>b? a>if-2! if-2>c? if-2>d! b>e c>e d>e",
        ),
        (
            "graph().start(a('a')).if({condition: () => true, then: [a('b')], else_if: [{condition: () => true, then: a('c')}], else: a('d')}).then(a('e')).compile()",
            "a b if-2 c d e | a>b? a>if-2! if-2>c? if-2>d! b>e c>e d>e",
        ),
        (
            "graph().if(() => true).then(a('b')).endif().compile()",
            "if-1 b end-1 | if-1>b? if-1>end-1!",
        ),
        (
            "graph().start(a('x')).if(() => true).end().endif().then(a('y')).compile()",
            "x end-1 y | x>end-1? x>y!",
        ),
    ];
    for (builder, expected) in table {
        assert_eq!(drawn(builder), expected, "{builder}");
    }
}

#[test]
fn what_nobody_has_named_gets_a_name_that_no_other_has() {
    let table = [
        (
            "graph().start(sdk.skillNode({skill: 'commit'})).then(sdk.skillNode({skill: 'commit'})).wait('x').wait('y').compile()",
            "skill-commit skill-commit-2 wait-1 wait-2 | skill-commit>skill-commit-2 skill-commit-2>wait-1 wait-1>wait-2",
        ),
        (
            "graph().start(a('x')).loop(a('p'), a('q'), {until: () => true}).loop([a('r')], {maxIterations: 2}).loop({nodes: [a('s')], until: () => true}).loop(a('t'), {id: 'mine'}).compile()",
            "x loop-1 loop-2 loop-3 mine | x>loop-1 loop-1>loop-2 loop-2>loop-3 loop-3>mine",
        ),
        ("sdk.mapReduce({over: 'l', map: a('m'), reduce: a('r')}).compile()", "map r | map>r"),
        ("sdk.reviewCycle({work: a('w'), review: a('r')}).compile()", "review-cycle |"),
        ("sdk.taskLoop({taskNodes: a('t')}).compile()", "task-loop |"),
        ("sdk.sequential([a('1'), a('2')]).then(a('3')).compile()", "1 2 3 | 1>2 2>3"),
    ];
    for (builder, expected) in table {
        assert_eq!(drawn(builder), expected, "{builder}");
    }
}

#[test]
fn a_node_knows_where_it_was_written() {
    let text = "import { agentNode, graph } from \"@atomic/graph\";\nexport default () =>\n  graph()\n    .start(agentNode(\"a\"))\n    .loop(agentNode(\"b\"), { maxIterations: 2 })\n    .compile();";
    let document = described(text).unwrap();
    let lines: Vec<&Value> =
        document["nodes"].as_array().unwrap().iter().map(|node| &node["$at"][1]).collect();
    assert_eq!(lines, [4, 5]);
}

#[test]
fn reducers_that_the_engine_knows_are_words() {
    let text = "import { agentNode, annotation, Reducers } from \"@atomic/workflows\";
export const stateAnnotations = {
  a: annotation(() => [], Reducers.mergeById(\"name\")),
  b: annotation(0, (one, other) => one + other),
  c: annotation([], Reducers.mergeById),
  d: annotation(undefined, Reducers.or),
};
export const graphConfig = { nodes: [agentNode(\"a\")] };";
    assert_eq!(
        described(text).unwrap()["stateAnnotations"],
        json!({
            "a": {"default": [], "reducer": {"mergeBy": "name"}},
            "b": {"default": 0, "reducer": {"$fn": 0}},
            "c": {"default": [], "reducer": "mergeById"},
            "d": {"reducer": "or"},
        })
    );
}

#[test]
fn branches_can_be_named_by_the_ids_of_other_nodes() {
    let text = "import { agentNode, parallelNode } from \"@atomic/workflows\";
export const graphConfig = {
  startNode: \"p\",
  nodes: [agentNode(\"one\"), agentNode(\"two\"), parallelNode({ id: \"p\", branches: [\"one\", \"two\"] })],
};";
    let document = described(text).unwrap();
    let nodes = document["nodes"].as_array().unwrap();
    assert_eq!((nodes.len(), &nodes[0]["branches"][1]["id"]), (1, &json!("two")));
}
