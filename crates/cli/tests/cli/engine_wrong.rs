//! Wrong descriptors, one mistake each, and right ones that look wrong: what `atomic check` says.

use serde_json::{Value, json};

use crate::engine::{Project, tool, with};
use crate::env::Ran;

/// A problem of a file, as `ATM531 error at fan (workers)`.
fn found(checked: &Ran, file: &str) -> Vec<String> {
    let lines = checked.stdout.lines().filter_map(|line| line.strip_prefix(file));
    let problems = lines.clone().filter_map(|line| line.split_once(": ATM"));
    let problems: Vec<String> = problems
        .map(|(_, problem)| format!("ATM{}", problem.split_once(": ").map_or(problem, |(p, _)| p)))
        .collect();
    let is_wrong = problems.iter().any(|problem| problem.contains(" error "));
    let verdicts: Vec<&str> = lines.filter_map(|line| line.strip_prefix(": ")).collect();
    assert_eq!(verdicts.len(), 1, "{file}: {checked:?}");
    assert_eq!(verdicts[0].starts_with("ok"), !is_wrong, "{file}: {verdicts:?}");
    problems
}

/// The whole table is checked by one process.
fn assert_found(table: &[(&str, Value, &[&str])]) {
    let project = Project::new();
    let mut args = vec!["check".to_owned()];
    for (number, (_, workflow, _)) in table.iter().enumerate() {
        args.push(format!("flow{number}.json"));
        project.write(&args[number + 1], &workflow.to_string());
    }
    let checked = project.env.run(&args);
    let mut is_wrong = false;
    for ((title, workflow, expected), file) in table.iter().zip(&args[1..]) {
        assert_eq!(found(&checked, file), *expected, "{title}: {workflow}");
        is_wrong |= expected.iter().any(|problem| problem.contains(" error "));
    }
    assert_eq!(checked.code, Some(i32::from(is_wrong)), "{checked:?}");
}

/// A node that may set `key`: when it fails it does.
fn may_set(id: &str, key: &str) -> Value {
    with(tool(id, "false"), json!({"onError": {"action": "skip", "stateUpdate": {key: 1}}}))
}

/// A node that always sets `tasks`.
fn sets_tasks(id: &str) -> Value {
    json!({"type": "taskLoop", "id": id, "taskNodes": [tool(&format!("in-{id}"), "true")]})
}

fn fan(more: Value) -> Value {
    with(json!({"type": "each", "id": "fan", "over": "list", "node": tool("x", "true")}), more)
}

fn edges(pairs: &[(&str, &str)]) -> Value {
    pairs.iter().map(|(from, to)| json!({"from": from, "to": to})).collect()
}

fn when(from: &str, to: &str, condition: &Value) -> Value {
    json!({"from": from, "to": to, "condition": condition})
}

fn says(node: &str) -> Value {
    json!({"says": {"node": node, "text": "ok"}})
}

#[test]
fn numbers_and_lists_are_looked_up_where_the_state_says_what_they_are() {
    let one = |state: Value, node: Value| json!({"state": state, "nodes": [node]});
    let visits = |key: &str| with(tool("a", "true"), json!({"maxVisits": key}));
    let sub = |graph: Value| json!({"type": "subgraph", "id": "s", "graph": graph});
    let inner = |value: Value| {
        sub(json!({"stateAnnotations": {"mine": {"default": value}},
            "nodes": [fan(json!({"over": "mine"}))]}))
    };
    assert_found(&[
        (
            "text",
            one(json!({"list": [], "n": "two"}), fan(json!({"workers": "n"}))),
            &["ATM531 error at fan (workers)"],
        ),
        ("fraction", one(json!({"n": 1.5}), visits("n")), &["ATM531 error at a (maxVisits)"]),
        ("below zero", one(json!({"n": -1}), visits("n")), &["ATM531 error at a (maxVisits)"]),
        ("null", one(json!({"n": null}), visits("n")), &["ATM531 error at a (maxVisits)"]),
        (
            "no list",
            one(json!({"list": {"a": 1}}), fan(json!({}))),
            &["ATM532 error at fan (over)"],
        ),
        (
            "no such list",
            one(json!({"lists": [1]}), fan(json!({}))),
            &["ATM533 error at fan (over)"],
        ),
        (
            "no such number",
            one(json!({"list": []}), fan(json!({"workers": "nope"}))),
            &["ATM533 error at fan (workers)"],
        ),
        (
            "the limit of the run",
            one(json!({"maxIterations": "x"}), tool("a", "true")),
            &["ATM531 error at the graph (maxIterations)"],
        ),
        (
            "the number of workers",
            one(json!({"list": [], "workers": "x"}), fan(json!({}))),
            &["ATM531 error at fan (workers)"],
        ),
        ("an inner default", one(json!({}), inner(json!("x"))), &["ATM532 error at s/fan (over)"]),
        // What may be right when it is needed.
        ("right", one(json!({"list": [], "n": 2}), fan(json!({"workers": "n"}))), &[]),
        ("an inner default that is right", one(json!({}), inner(json!([1]))), &[]),
        ("the outer one", one(json!({"mine": [1]}), inner(json!("unused"))), &[]),
        (
            "set on the way",
            json!({"state": {"list": [], "n": "x"},
                "nodes": [may_set("a", "n"), fan(json!({"workers": "n"}))]}),
            &[],
        ),
        ("tasks", json!({"nodes": [sets_tasks("t"), fan(json!({"over": "tasks"}))]}), &[]),
        (
            "an item",
            one(
                json!({"list": [[1], [2]]}),
                fan(json!({"node": {"type": "each", "id": "in",
                "over": "item", "item": "one", "node": tool("x", "true")}})),
            ),
            &[],
        ),
    ]);
}

#[test]
fn values_that_their_reducer_cannot_combine_are_found() {
    let kept = |reducer: Value, value: Value| {
        json!({"stateAnnotations": {"k": {"reducer": reducer}}, "state": {"k": value},
            "nodes": [tool("a", "true")]})
    };
    let default = json!({"stateAnnotations": {"k": {"reducer": "concat", "default": 3}},
        "nodes": [tool("a", "true")]});
    let inner = json!({"nodes": [{"type": "subgraph", "id": "s", "graph": default}]});
    let update = with(
        kept(json!("sum"), json!(0)),
        json!({"nodes": [
            with(tool("a", "true"), json!({"onError": {"action": "skip", "stateUpdate": {"k": "x"}}})),
        ]}),
    );
    let at_k: &[&str] = &["ATM534 error at the graph (state.k)"];
    assert_found(&[
        ("sum", kept(json!("sum"), json!("x")), at_k),
        ("max", kept(json!("max"), json!(true)), at_k),
        ("min", kept(json!("min"), json!([])), at_k),
        ("or", kept(json!("or"), json!(0)), at_k),
        ("and", kept(json!("and"), json!("true")), at_k),
        ("concat", kept(json!("concat"), json!({})), at_k),
        ("merge", kept(json!("merge"), json!([])), at_k),
        ("mergeById", kept(json!("mergeById"), json!({})), at_k),
        ("mergeBy", kept(json!({"mergeBy": "name"}), json!("x")), at_k),
        ("a default", default, at_k),
        ("an inner default", inner, &["ATM534 error at s (state.k)"]),
        ("a change after a failure", update, &["ATM534 error at a (onError)"]),
        ("a number", kept(json!("sum"), json!(0.5)), &[]),
        ("nothing yet", kept(json!("sum"), json!(null)), &[]),
        ("a list", kept(json!("mergeById"), json!([{"id": 1}])), &[]),
        ("anything", kept(json!("replace"), json!("x")), &[]),
        ("anything else", kept(json!("ifDefined"), json!("x")), &[]),
    ]);
}

#[test]
fn writes_at_once_are_found_also_behind_a_fork_and_beside_a_condition() {
    let of = |nodes: Value, edges: Vec<Value>| json!({"state": {"go": true}, "nodes": nodes, "edges": edges});
    let plain = |pairs: &[(&str, &str)]| edges(pairs).as_array().unwrap().clone();
    let yes = || json!({"key": "go", "equals": true});
    let three = || json!([tool("a", "true"), may_set("b", "k"), may_set("c", "k")]);
    let beside = [plain(&[("a", "c")]), vec![when("a", "b", &yes())]].concat();
    let exclusive = vec![when("a", "b", &yes()), when("a", "c", &json!("otherwise"))];
    let five =
        |d: Value, e: Value| json!([tool("a", "true"), tool("b", "true"), tool("c", "true"), d, e]);
    let behind = || plain(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "e")]);
    let reduced = with(
        of(three(), beside.clone()),
        json!({"stateAnnotations": {"k": {"reducer": "sum", "default": 0}}}),
    );
    // They come together in `b`, which then chooses one.
    let together = [
        plain(&[("a", "m"), ("a", "n"), ("m", "b"), ("n", "b")]),
        vec![when("b", "d", &yes()), when("b", "e", &json!("otherwise"))],
    ]
    .concat();
    let six = json!([
        tool("a", "true"),
        tool("m", "true"),
        tool("n", "true"),
        tool("b", "true"),
        may_set("d", "k"),
        may_set("e", "k")
    ]);
    // Of unequal length: they never run at once.
    let later = plain(&[("a", "b"), ("a", "c"), ("b", "d"), ("d", "e")]);
    let joined = [
        plain(&[("a", "b"), ("a", "c"), ("c", "e")]),
        vec![json!({"from": ["b", "e"], "to": "d"})],
    ]
    .concat();
    assert_found(&[
        ("beside a condition", of(three(), beside), &["ATM504 warning at c"]),
        ("exclusive", of(three(), exclusive), &[]),
        ("combined", reduced, &[]),
        (
            // `tasks` and `tasksDone` are set by both; `currentTask` and `iteration` with a task.
            "for certain",
            of(five(sets_tasks("d"), sets_tasks("e")), behind()),
            &[
                "ATM503 error at e",
                "ATM503 error at e",
                "ATM504 warning at e",
                "ATM504 warning at e",
            ],
        ),
        (
            "perhaps",
            of(five(may_set("d", "k"), may_set("e", "k")), behind()),
            &["ATM504 warning at e"],
        ),
        ("together", of(six, together), &[]),
        ("one after the other", of(five(sets_tasks("d"), sets_tasks("e")), later), &[]),
        ("joined", of(five(sets_tasks("d"), sets_tasks("e")), joined), &[]),
    ]);
}

#[test]
fn a_condition_may_look_at_what_can_be_seen_when_it_is_asked() {
    let both = |inner: Value| json!({"type": "parallel", "id": "both", "branches": [tool("l", "true"), inner]});
    let after = |first: Value, node: &str| {
        json!({"nodes": [first, tool("b", "true"), tool("c", "true")],
            "edges": [when("both", "b", &says(node)), when("both", "c", &json!("otherwise"))]})
    };
    let repeat = |node: &str| {
        json!({"nodes": [{"type": "loop", "id": "again", "until": says(node), "maxIterations": 2,
            "nodes": [tool("a", "true"), both(tool("r", "true"))]}]})
    };
    let each = with(fan(json!({})), json!({"id": "both"}));
    let apart = json!({"type": "subgraph", "id": "both", "graph": {"nodes": [tool("x", "true")]}});
    let deep = json!({"type": "loop", "id": "in", "maxIterations": 2, "node": tool("r", "true")});
    assert_found(&[
        ("in a branch", after(both(tool("r", "true")), "r"), &[]),
        ("in a loop in a branch", after(both(deep), "r"), &[]),
        ("in a branch of the body", repeat("r"), &[]),
        ("in the body", repeat("a"), &[]),
        (
            "nowhere",
            after(both(tool("r", "true")), "q"),
            &["ATM216 warning at the graph (edges[0])"],
        ),
        ("not in the body", repeat("q"), &["ATM216 warning at again (until)"]),
        (
            "in an item",
            with(after(each, "x"), json!({"state": {"list": []}})),
            &["ATM216 warning at the graph (edges[0])"],
        ),
        ("in a graph of its own", after(apart, "x"), &["ATM216 warning at the graph (edges[0])"]),
    ]);
}

#[test]
fn an_id_that_means_another_node_by_then_is_told() {
    let both = |left: &str, right: &str| json!({"type": "parallel", "id": "both", "branches": [tool(left, "true"), tool(right, "true")]});
    let use_a = || tool("use", "echo {outputs.a}");
    let row = |nodes: Value| json!({ "nodes": nodes });
    let asked = json!({"nodes": [tool("a", "true"), both("a", "r"), tool("c", "true")],
        "edges": [{"from": "a", "to": "both"}, when("both", "c", &says("a"))]});
    let twice = json!({"type": "parallel", "id": "both", "branches": [
        {"id": "left", "nodes": [tool("x", "true")]}, {"id": "right", "nodes": [tool("x", "true")]}]});
    let raced = with(twice.clone(), json!({"strategy": "race"}));
    let again =
        json!({"type": "loop", "id": "again", "maxIterations": 2, "node": tool("a", "true")});
    assert_found(&[
        (
            "a template",
            row(json!([tool("a", "true"), both("a", "r"), use_a()])),
            &["ATM535 warning at use (action)"],
        ),
        ("a condition", asked, &["ATM535 warning at the graph (edges[1])"]),
        ("before it", row(json!([tool("a", "true"), use_a(), both("a", "r")])), &[]),
        ("again after it", row(json!([both("a", "r"), tool("a", "true"), use_a()])), &[]),
        ("only inside", row(json!([both("a", "r"), use_a()])), &[]),
        ("another one", row(json!([tool("a", "true"), both("l", "r"), use_a()])), &[]),
        ("the same once more", row(json!([tool("a", "true"), again, use_a()])), &[]),
        (
            "in two branches",
            row(json!([twice, tool("use", "echo {outputs.x}")])),
            &["ATM535 warning at use (action)"],
        ),
        ("in one of two branches", row(json!([raced, tool("use", "echo {outputs.x}")])), &[]),
    ]);
}

#[test]
fn what_is_mistyped_is_told() {
    let ab =
        |edge: Value| json!({"nodes": [tool("a", "true"), tool("b", "true")], "edges": [edge]});
    let one = |node: Value| json!({ "nodes": [node] });
    let until = json!({"key": "doen", "equals": true});
    let endless = json!({"type": "loop", "id": "l", "maxIterations": 0, "until": until, "node": tool("a", "true")});
    let skips = with(
        tool("b", "false"),
        json!({"onError": {"action": "skip", "stateUpdate": {"doen": true}}}),
    );
    let ends = with(endless.clone(), json!({"node": skips}));
    assert_found(&[
        (
            "an edge from nowhere",
            ab(json!({"from": [], "to": "b"})),
            &["ATM106 error at the graph (edges[0])"],
        ),
        (
            "a key",
            ab(when("a", "b", &json!({"key": "outputs.a", "equals": "x"}))),
            &["ATM217 warning at the graph (edges[0])"],
        ),
        ("an end that never comes", one(endless), &["ATM217 warning at l (until)"]),
        ("an end that may come", one(ends), &[]),
        (
            "an output",
            one(json!({"type": "agent", "id": "a", "prompt": "Fix {outputs.b} {nope}"})),
            &["ATM218 error at a (action)", "ATM219 error at a (action)"],
        ),
        (
            "a limit twice",
            json!({"maxIterations": 3, "state": {"maxIterations": 4}, "nodes": [tool("a", "true")]}),
            &["ATM616 error at maxIterations"],
        ),
        (
            "a schema",
            one(with(tool("a", "true"), json!({"outputSchema": {"type": "txt"}}))),
            &["ATM521 error at a (outputSchema)"],
        ),
    ]);
}
