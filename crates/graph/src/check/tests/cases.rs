//! Bad graphs, one mistake each.

#![expect(clippy::too_many_lines, reason = "a long table of cases is a good test")]

use serde_json::{Value, json};

use crate::check::{Known, Use, UseKind, nearest};
use crate::{
    Branch, Condition, Count, Each, Edge, Graph, Kind, Node, OnError, Parallel, Ready, Reducer,
    Retry, Strategy,
};

pub(super) struct Case {
    pub(super) title: &'static str,
    pub(super) graph: Graph,
    /// Each problem as its code and place.
    pub(super) expected: Vec<&'static str>,
}

pub(super) fn work(id: &str) -> Node {
    Node::work(id, Value::Null)
}

/// A node whose action refers to something.
pub(super) fn action(id: &str, kind: &str, name: &str) -> Node {
    Node::work(id, json!({ kind: name }))
}

/// Reads the actions of [`action`].
pub(super) fn uses(action: &Value) -> Vec<Use> {
    let kinds = [
        ("agent", UseKind::Agent),
        ("skill", UseKind::Skill),
        ("command", UseKind::Command),
        ("workflow", UseKind::Workflow),
        ("model", UseKind::Model),
        ("function", UseKind::Function),
        ("writes", UseKind::Writes),
        ("may_write", UseKind::MayWrite),
        ("output", UseKind::Output { is_needed: true }),
        ("output?", UseKind::Output { is_needed: false }),
        ("text", UseKind::Template { in_command: false }),
        ("command_text", UseKind::Template { in_command: true }),
        ("unsafe", unsafe_template(true)),
        ("perhaps_unsafe", unsafe_template(false)),
    ];
    let used =
        kinds.iter().filter_map(|(name, kind)| Some(Use::new(*kind, action.get(name)?.as_str()?)));
    used.collect()
}

fn unsafe_template(always: bool) -> UseKind {
    UseKind::UnsafeTemplate { place: "inside `$(…)`", hint: "write value={key} first", always }
}

fn judge_model(name: &str) -> Result<(), Option<String>> {
    let known = ["haiku", "opus", "sonnet"];
    let meant = || nearest(name, known.into_iter()).map(str::to_owned);
    if known.contains(&name.to_lowercase().as_str()) { Ok(()) } else { Err(meant()) }
}

pub(super) fn known() -> Known {
    let set = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    Known {
        agents: set(&["planner", "worker"]),
        skills: set(&["commit", "explain-code"]),
        commands: set(&["deploy"]),
        workflows: set(&["ralph", "second-opinion"]),
        models: Some(judge_model),
        functions: Some(["add".into(), "is-done".into()].into()),
        state: serde_json::from_value(
            json!({"items": [], "limit": 9, "maxIterations": 100, "word": "x", "workers": 4}),
        )
        .ok(),
        keys: None,
        default_limits: [vec![]].into(),
    }
}

pub(super) fn subgraph(graph: Graph) -> Kind {
    Kind::Subgraph { graph, isolated: false, input: None, output: None }
}

/// A graph with `a` and, behind it, side by side or in a row, nodes that write `key`.
pub(super) fn writers(key: &str, ids: &[&str], in_a_row: bool) -> Graph {
    let mut graph = Graph::starting_at("a").node(work("a")).reducer("list", Reducer::Concat);
    let mut before = "a";
    for id in ids {
        graph = graph.node(action(id, "writes", key)).edge(before, *id);
        if in_a_row {
            before = id;
        }
    }
    graph
}

fn single() -> Graph {
    Graph::starting_at("work").node(work("work"))
}

/// A graph whose only node writes `x`.
fn writing() -> Graph {
    Graph::starting_at("write").node(action("write", "writes", "x"))
}

/// A graph that writes `x` only sometimes.
fn sometimes() -> Graph {
    Graph::starting_at("look").node(work("look")).node(action("write", "writes", "x")).edge_when(
        "look",
        "write",
        done(),
    )
}

fn done() -> Condition {
    Condition::Call("is-done".into())
}

fn one(node: Node) -> Graph {
    Graph { start: node.id.clone(), nodes: vec![node], ..Graph::starting_at("") }
}

fn row(ids: &[&str]) -> Graph {
    let mut graph = Graph::starting_at(ids[0]);
    for id in ids {
        graph = graph.node(work(id));
    }
    for pair in ids.windows(2) {
        graph = graph.edge(pair[0], pair[1]);
    }
    graph
}

fn fan(graph: Graph, workers: Count) -> Kind {
    let (over, item) = ("items".into(), "item".into());
    Kind::Each(Each {
        over,
        item,
        graph,
        workers,
        ready: Ready::Once,
        fail_fast: false,
        order: Ready::Once.order(),
    })
}

fn parallel(branches: Vec<(&str, Graph)>, strategy: Strategy) -> Kind {
    let branches = branches.into_iter().map(|(id, graph)| Branch { id: id.into(), graph });
    let branches = branches.collect();
    Kind::Parallel(Parallel { branches, strategy, fail_fast: false, merge: None })
}

fn with(mut graph: Graph, change: impl FnOnce(&mut Graph)) -> Graph {
    change(&mut graph);
    graph
}

fn changed(mut node: Node, change: impl FnOnce(&mut Node)) -> Node {
    change(&mut node);
    node
}

pub(super) fn cases() -> Vec<Case> {
    let groups = [
        ids_and_edges(),
        jumps(),
        decisions(),
        cycles(),
        limits(),
        names(),
        writes(),
        at_once(),
        values(),
        outputs(),
    ];
    let all = groups.into_iter().flatten();
    all.map(|(title, graph, expected)| Case { title, graph, expected }).collect()
}

type Row = (&'static str, Graph, Vec<&'static str>);

fn ids_and_edges() -> Vec<Row> {
    vec![
        ("no nodes", Graph::starting_at("a").edge("a", "b"), vec!["ATM101 the graph"]),
        (
            "no nodes, inside",
            one(Node::new("sub", subgraph(Graph::starting_at("a")))),
            vec!["ATM101 sub"],
        ),
        (
            "a start that does not exist",
            with(row(&["start", "end"]), |g| g.start = "strat".into()),
            vec!["ATM102 the graph (start)"],
        ),
        (
            "the same id twice",
            row(&["a", "b"]).node(work("a")),
            vec!["ATM103 the graph (nodes[2])"],
        ),
        (
            "an edge from nobody knows where",
            row(&["plan", "review"]).node(work("end")).edge("reviw", "end"),
            vec!["ATM104 the graph (edges[1])"],
        ),
        (
            "an edge to nobody knows where, in a branch",
            one(Node::new(
                "fan",
                parallel(
                    vec![("left", single()), ("right", single().edge("work", "z"))],
                    Strategy::All,
                ),
            )),
            vec!["ATM105 fan/right (edges[0])"],
        ),
        (
            "a misspelt target is not called unreachable too",
            Graph::starting_at("plan")
                .node(work("plan"))
                .node(work("review"))
                .edge("plan", "reveiw"),
            vec!["ATM105 the graph (edges[0])"],
        ),
        (
            "an edge from nowhere",
            with(row(&["a"]).node(work("b")), |g| {
                g.edges.push(Edge { from: vec![], to: "b".into(), when: None });
            }),
            vec!["ATM106 the graph (edges[0])"],
        ),
        (
            "an edge that waits for one node twice",
            row(&["a"]).node(work("b")).join(["a", "a"], "b"),
            vec!["ATM107 the graph (edges[0])"],
        ),
        (
            "nodes that nothing leads to, one behind the other",
            row(&["a"]).node(work("b")).node(work("c")).edge("b", "c"),
            vec!["ATM108 b", "ATM108 c"],
        ),
        (
            "a join that waits for a node that nothing leads to",
            row(&["a"]).node(work("b")).node(work("c")).join(["a", "b"], "c"),
            vec!["ATM108 b", "ATM108 c"],
        ),
        ("an id with a slash", one(work("a/b")), vec!["ATM109 the graph (nodes[0])"]),
        (
            "an empty id of a node and of a branch",
            one(Node::new("", parallel(vec![("", single())], Strategy::All))),
            vec!["ATM109 the graph (nodes[0])", r#"ATM109 "" (branches[0])"#],
        ),
    ]
}

fn jumps() -> Vec<Row> {
    let goto = |id: &str| OnError::Goto(id.into());
    vec![
        (
            "a goto to nobody knows where",
            one(work("a").may_go_to(["b"])),
            vec!["ATM201 a (targets[0])"],
        ),
        (
            "a goto out of the graph it is in",
            row(&["a"])
                .node(Node::new("sub", subgraph(one(work("in").may_go_to(["a"])))))
                .edge("a", "sub"),
            vec!["ATM201 sub/in (targets[0])"],
        ),
        (
            "a failure that goes nobody knows where",
            with(row(&["plan", "cleanup"]), |g| g.nodes[0].on_error = goto("clean-up")),
            vec!["ATM202 plan (on_error)"],
        ),
        (
            "a resume that goes nobody knows where",
            one(work("a").on_revive("b")),
            vec!["ATM203 a (on_revive)"],
        ),
        (
            "failures that nobody catches",
            with(row(&["a"]), |g| g.catch = Some("rescue".into())),
            vec!["ATM204 the graph (catch)"],
        ),
        (
            "a goto target twice",
            row(&["a", "b"])
                .node(work("c").may_go_to(["b", "b"]))
                .edge("b", "c")
                .max_iterations_of(9),
            vec!["ATM205 c (targets[1])"],
        ),
        (
            "a decision with goto targets",
            Graph::starting_at("a")
                .node(Node::new("a", Kind::Decision).may_go_to(["b"]))
                .node(work("b"))
                .edge_when("a", "b", Condition::Otherwise),
            vec!["ATM206 a (targets)"],
        ),
    ]
}

trait Limited {
    fn max_iterations_of(self, count: u64) -> Self;
}

impl Limited for Graph {
    fn max_iterations_of(self, count: u64) -> Self {
        Self { max_iterations: Some(Count::Fixed(count)), ..self }
    }
}

fn decisions() -> Vec<Row> {
    let decision = || Node::new("a", Kind::Decision);
    let base = || Graph::starting_at("a").node(decision()).node(work("b")).node(work("c"));
    let says = |node: &str| {
        let says = Condition::Says { node: node.into(), text: "DONE".to_owned() };
        Condition::Not(Box::new(says))
    };
    let joined = |graph: Graph| graph.node(work("d")).join(["b", "c"], "d");
    let chosen = || base().edge_when("a", "b", done()).edge_when("a", "c", Condition::Otherwise);
    vec![
        ("a join of two choices", joined(chosen()), vec!["ATM220 the graph (edges[2])"]),
        (
            "a join far behind two choices",
            {
                let ways = Graph::starting_at("a").node(decision()).node(work("x")).node(work("y"));
                let ways =
                    ways.edge_when("a", "x", done()).edge_when("a", "y", Condition::Otherwise);
                joined(ways.node(work("b")).node(work("c")).edge("x", "b").edge("y", "c"))
            },
            vec!["ATM220 the graph (edges[4])"],
        ),
        ("a join of a choice and of what both lead to", joined(chosen().edge("b", "c")), vec![]),
        (
            "a join of choices that are made again",
            with(joined(chosen()).edge("b", "a").edge("c", "a"), |g| {
                g.max_iterations = Some(Count::Fixed(3));
            }),
            vec![],
        ),
        ("a decision that leads nowhere", one(decision()), vec!["ATM211 a"]),
        (
            "a decision without `otherwise`",
            base().edge_when("a", "b", done()).edge_when("a", "c", done()),
            vec!["ATM212 a"],
        ),
        (
            "a decision with an edge that decides nothing",
            base().edge_when("a", "b", Condition::Otherwise).edge("a", "c"),
            vec!["ATM213 the graph (edges[1])"],
        ),
        (
            "an `otherwise` before a condition",
            base().edge_when("a", "b", Condition::Otherwise).edge_when("a", "c", done()),
            vec!["ATM214 the graph (edges[0])"],
        ),
        (
            "an `otherwise` before others, after a node that is no decision",
            row(&["a"])
                .node(work("b"))
                .edge_when("a", "b", Condition::Otherwise)
                .edge_when("a", "b", done())
                .edge_when("a", "b", Condition::Otherwise),
            vec!["ATM214 the graph (edges[0])"],
        ),
        (
            "a join with a condition",
            with(row(&["a", "b"]).node(work("c")), |g| {
                let from = vec!["a".into(), "b".into()];
                g.edges.push(Edge { from, to: "c".into(), when: Some(done()) });
            }),
            vec!["ATM215 the graph (edges[1])"],
        ),
        (
            "conditions on outputs: unknown, around, and inside a loop",
            with(row(&["look"]), |g| {
                let loop_of = |until| Kind::Loop {
                    graph: row(&["work"]).node(work("rest")).edge_when(
                        "work",
                        "rest",
                        says("look"),
                    ),
                    until: Some(until),
                    max_rounds: 3,
                };
                g.nodes.push(Node::new("right", loop_of(says("work"))));
                g.nodes.push(Node::new("wrong", loop_of(says("wrok"))));
                *g = g.clone().edge_when("look", "right", says("lok")).edge("look", "wrong");
            }),
            vec!["ATM216 the graph (edges[0])", "ATM216 wrong (until)"],
        ),
    ]
}

fn cycles() -> Vec<Row> {
    let endless = Kind::Loop { graph: single(), until: None, max_rounds: 0 };
    let ring = || row(&["a", "b"]).edge("b", "a");
    let skipped = |kind| one(Node::new("sub", kind).on_error(OnError::Skip));
    vec![
        ("a loop without an end", one(Node::new("a", endless)), vec!["ATM301 a (max_rounds)"]),
        ("a ring", ring(), vec!["ATM302 a"]),
        (
            "a ring with a limit that nobody has written",
            with(ring(), |g| g.max_iterations = Some(Count::Key("maxIterations".into()))),
            vec!["ATM302 a"],
        ),
        (
            "a ring with a limit that is written down",
            with(ring(), |g| g.max_iterations = Some(Count::Fixed(100))),
            vec![],
        ),
        (
            "a node that leads to itself, inside",
            one(Node::new("sub", subgraph(row(&["a"]).edge("a", "a")))),
            vec!["ATM302 sub/a"],
        ),
        (
            "a ring that a condition leads out of, but not instead of the edge that stays",
            ring().node(work("c")).edge_when("b", "c", done()),
            vec!["ATM302 a"],
        ),
        (
            "a ring in which every choice stays",
            row(&["a", "b"])
                .node(work("c"))
                .edge_when("b", "a", done())
                .edge_when("b", "c", Condition::Otherwise)
                .edge("c", "b"),
            vec!["ATM302 a"],
        ),
        (
            "two rings, one behind the other, and a way in",
            row(&["in", "a", "b"]).edge("b", "a").node(work("c")).edge("b", "c").edge("c", "c"),
            vec!["ATM302 a", "ATM302 c"],
        ),
        (
            "a ring that a condition leads out of",
            row(&["a", "b"]).node(work("c")).edge_when("b", "a", done()).edge_when(
                "b",
                "c",
                Condition::Otherwise,
            ),
            vec!["ATM303 a"],
        ),
        (
            "a ring that ends when no condition holds",
            row(&["a", "b"]).edge_when("b", "a", done()),
            vec!["ATM303 a"],
        ),
        (
            "a ring that a goto leads out of",
            with(ring().node(work("c")), |g| g.nodes[1].targets = vec!["c".into()]),
            vec!["ATM303 a"],
        ),
        (
            "a ring that a failure leads out of",
            with(ring().node(work("c")), |g| g.nodes[1].on_error = OnError::Goto("c".into())),
            vec!["ATM303 a"],
        ),
        (
            "a ring that a caught failure leads out of",
            with(ring().node(work("c")), |g| g.catch = Some("c".into())),
            vec!["ATM303 a"],
        ),
        (
            "a ring whose failures go to a function that can lead nowhere else",
            with(ring(), |g| g.nodes[1].on_error = OnError::Call("is-done".into())),
            vec!["ATM302 a"],
        ),
        (
            "a ring of a goto, and one of a failure",
            row(&["a", "b", "c"])
                .node(work("d"))
                .edge("c", "d")
                .may_go("b", "a")
                .on_failure("d", "d"),
            vec!["ATM303 a", "ATM303 d"],
        ),
        (
            "a ring by way of a join",
            row(&["a", "b"]).node(work("c")).edge("a", "c").join(["b", "c"], "a"),
            vec!["ATM303 a"],
        ),
        (
            "a limit on a node that one of two rings goes round",
            with(
                row(&["a", "b"]).edge_when("b", "b", done()).edge_when(
                    "b",
                    "a",
                    Condition::Otherwise,
                ),
                |g| {
                    g.nodes[0].max_visits = Some(Count::Fixed(3));
                },
            ),
            vec!["ATM303 b"],
        ),
        (
            "a ring whose failure is skipped around it",
            skipped(subgraph(ring())),
            vec!["ATM303 sub/a"],
        ),
        (
            "a ring that loses a race",
            one(Node::new(
                "race",
                parallel(vec![("ring", ring()), ("work", single())], Strategy::Any),
            )),
            vec!["ATM303 race/ring/a"],
        ),
    ]
}

trait Jumping {
    fn may_go(self, from: &str, to: &str) -> Self;
    fn on_failure(self, from: &str, to: &str) -> Self;
}

impl Jumping for Graph {
    fn may_go(mut self, from: &str, to: &str) -> Self {
        let node = self.nodes.iter_mut().find(|node| node.id.as_str() == from).unwrap();
        node.targets.push(to.into());
        self
    }

    fn on_failure(mut self, from: &str, to: &str) -> Self {
        let node = self.nodes.iter_mut().find(|node| node.id.as_str() == from).unwrap();
        node.on_error = OnError::Goto(to.into());
        self
    }
}

fn limits() -> Vec<Row> {
    let retry = |attempts, factor| Retry { attempts, factor, ..Retry::default() };
    let node = |change: fn(&mut Node)| one(changed(work("a"), change));
    let zeros = |g: &mut Graph| {
        g.timeout_ms = Some(0);
        g.max_steps = Some(0);
        g.max_concurrency = Some(0);
        g.max_iterations = Some(Count::Fixed(0));
    };
    let each = |change: fn(&mut Each)| {
        let mut kind = fan(single(), Count::Fixed(2));
        if let Kind::Each(each) = &mut kind {
            change(each);
        }
        one(Node::new("fan", kind))
    };
    let hasty = |strategy| {
        let mut kind = parallel(vec![("x", single()), ("y", single())], strategy);
        if let Kind::Parallel(parallel) = &mut kind {
            parallel.fail_fast = true;
        }
        Node::new("p", kind)
    };
    let twice = vec![("x", single()), ("y", single()), ("x", single())];
    vec![
        ("no attempts", one(work("a").retry(retry(0, 2.0))), vec!["ATM311 a (retry)"]),
        ("a negative factor", one(work("a").retry(retry(2, -1.0))), vec!["ATM312 a (retry)"]),
        (
            "an infinite factor",
            one(work("a").retry(retry(2, f64::INFINITY))),
            vec!["ATM312 a (retry)"],
        ),
        ("no time", node(|n| n.timeout_ms = Some(0)), vec!["ATM313 a (timeout_ms)"]),
        (
            "no visits",
            node(|n| n.max_visits = Some(Count::Fixed(0))),
            vec!["ATM314 a (max_visits)"],
        ),
        ("no workers", each(|e| e.workers = Count::Fixed(0)), vec!["ATM315 fan (workers)"]),
        (
            "nothing of anything",
            with(single(), zeros),
            vec![
                "ATM313 the graph (timeout_ms)",
                "ATM318 the graph (max_steps)",
                "ATM317 the graph (max_concurrency)",
                "ATM316 the graph (max_iterations)",
            ],
        ),
        (
            "no time for a graph inside a node",
            one(Node::new("sub", subgraph(with(single(), |g| g.timeout_ms = Some(0))))),
            vec!["ATM313 sub (graph.timeout_ms)"],
        ),
        (
            "a reducer for the outputs",
            single().reducer("outputs", Reducer::Merge),
            vec!["ATM505 the graph (reducers.outputs)"],
        ),
        (
            "a write to the outputs",
            one(action("a", "writes", "outputs")),
            vec!["ATM505 a (action)"],
        ),
        (
            "a failure that changes the outputs",
            one(work("a").on_error(OnError::SkipWith([("outputs".into(), Value::Null)].into()))),
            vec!["ATM505 a (on_error)"],
        ),
        (
            "an item that is the outputs",
            each(|e| e.item = "outputs".into()),
            vec!["ATM505 fan (item)"],
        ),
        ("an item that is the list", each(|e| e.item = "items".into()), vec!["ATM506 fan (item)"]),
        (
            "no branches",
            one(Node::new("p", parallel(vec![], Strategy::All))),
            vec!["ATM511 p (branches)"],
        ),
        (
            "a branch twice",
            one(Node::new("p", parallel(twice, Strategy::All))),
            vec!["ATM512 p (branches[2])"],
        ),
        ("a race that fails fast", one(hasty(Strategy::Race)), vec!["ATM513 p (fail_fast)"]),
        (
            "the first success that fails fast",
            one(hasty(Strategy::Any)),
            vec!["ATM513 p (fail_fast)"],
        ),
        ("all that fail fast", one(hasty(Strategy::All)), vec![]),
        (
            "schemas that are none",
            node(|n| {
                n.input_schema = Some(json!("string"));
                n.output_schema = Some(json!([]));
            }),
            vec!["ATM521 a (input_schema)", "ATM521 a (output_schema)"],
        ),
        (
            "a schema of a type that does not exist",
            node(|n| n.output_schema = Some(json!({"type": "objekt"}))),
            vec!["ATM521 a (output_schema)"],
        ),
        (
            "schemas",
            node(|n| {
                n.input_schema = Some(json!(true));
                n.output_schema = Some(json!({"type": "object"}));
            }),
            vec![],
        ),
    ]
}

fn names() -> Vec<Row> {
    let call = |name: &str| Condition::Not(Box::new(Condition::Call(name.into())));
    let mut everywhere = single()
        .reducer("total", Reducer::Call("ad".into()))
        .node(work("next"))
        .edge_when("work", "next", call("edge"));
    everywhere.nodes[0].retry.when = Some("retry".into());
    everywhere.nodes[0].on_error = OnError::Call("on-error".into());
    let sub = Kind::Subgraph {
        graph: single(),
        isolated: false,
        input: Some("input".into()),
        output: Some("output".into()),
    };
    let rounds = Kind::Loop { graph: single(), until: Some(call("is-dnoe")), max_rounds: 2 };
    let mut merged = parallel(vec![("x", single())], Strategy::All);
    if let Kind::Parallel(parallel) = &mut merged {
        parallel.merge = Some("merge".into());
    }
    let model = |name: &str| Some(name.to_owned());
    vec![
        ("an unknown agent", one(action("a", "agent", "wroker")), vec!["ATM401 a (action)"]),
        ("an unknown skill", one(action("a", "skill", "comit")), vec!["ATM402 a (action)"]),
        ("an unknown command", one(action("a", "command", "xyz")), vec!["ATM403 a (action)"]),
        ("an unknown workflow", one(action("a", "workflow", "second")), vec!["ATM404 a (action)"]),
        (
            "unknown functions everywhere",
            everywhere
                .node(Node::new("sub", sub))
                .node(Node::new("loop", rounds))
                .node(Node::new("p", merged))
                .node(action("act", "function", "action"))
                .edge("next", "sub")
                .edge("sub", "loop")
                .edge("loop", "p")
                .edge("p", "act"),
            vec![
                "ATM405 the graph (reducers.total)",
                "ATM405 the graph (edges[0])",
                "ATM405 work (retry)",
                "ATM405 work (on_error)",
                "ATM405 sub (input)",
                "ATM405 sub (output)",
                "ATM405 loop (until)",
                "ATM405 p (merge)",
                "ATM405 act (action)",
            ],
        ),
        (
            "unknown models",
            Graph {
                model: model("opsu"),
                ..one(changed(
                    Node::new(
                        "sub",
                        subgraph(Graph {
                            model: model("gpt"),
                            ..one(action("a", "model", "sonet"))
                        }),
                    ),
                    |n| n.model = model("haikuu"),
                ))
            },
            vec![
                "ATM406 the graph (model)",
                "ATM406 sub (model)",
                "ATM406 sub (graph.model)",
                "ATM406 sub/a (action)",
            ],
        ),
    ]
}

fn writes() -> Vec<Row> {
    let two = |x: Graph, y: Graph| vec![("x", x), ("y", y)];
    let p = |branches, strategy| one(Node::new("p", parallel(branches, strategy)));
    let each = |graph, workers| one(Node::new("fan", fan(graph, workers)));
    let nested = |kind| one(Node::new("in", kind));
    let isolated = Kind::Subgraph { graph: writing(), isolated: true, input: None, output: None };
    let skip = OnError::SkipWith([("x".into(), json!(1))].into());
    let mut skipping = writers("x", &["b"], false).node(work("c").on_error(skip)).edge("a", "c");
    skipping.nodes.swap(1, 2);
    vec![
        (
            "two branches that write one key",
            p(two(writing(), writing()), Strategy::All),
            vec!["ATM501 p (branches)"],
        ),
        (
            "two branches that write one key with a reducer",
            p(two(writing(), writing()), Strategy::All).reducer("x", Reducer::Concat),
            vec![],
        ),
        (
            "two branches that write one key, with a reducer inside that does not count outside",
            p(
                two(writing().reducer("x", Reducer::Sum), writing().reducer("x", Reducer::Sum)),
                Strategy::All,
            ),
            vec!["ATM501 p (branches)"],
        ),
        ("two branches of which one is kept", p(two(writing(), writing()), Strategy::Race), vec![]),
        (
            "two branches that write one key by way of graphs inside",
            p(
                two(
                    nested(subgraph(nested(Kind::Loop {
                        graph: writing(),
                        until: None,
                        max_rounds: 2,
                    }))),
                    nested(parallel(two(writing(), single()), Strategy::All)),
                ),
                Strategy::All,
            ),
            vec!["ATM501 p (branches)"],
        ),
        (
            "a branch that writes sometimes",
            p(two(writing(), sometimes()), Strategy::All),
            vec!["ATM504 p (branches)"],
        ),
        (
            "a branch whose writes stay inside",
            p(two(writing(), nested(isolated)), Strategy::All),
            vec![],
        ),
        (
            "items that write one key",
            each(writing(), Count::Key("workers".into())),
            vec!["ATM502 fan"],
        ),
        ("items that write one key one after the other", each(writing(), Count::Fixed(1)), vec![]),
        (
            "items that write one key sometimes",
            each(sometimes(), Count::Fixed(2)),
            vec!["ATM504 fan"],
        ),
        (
            "items that change themselves",
            each(one(action("a", "writes", "item")), Count::Fixed(2)),
            vec![],
        ),
        (
            "nodes side by side that write one key",
            writers("x", &["b", "c"], false),
            vec!["ATM503 c"],
        ),
        (
            "many nodes side by side that write one key",
            writers("x", &["b", "c", "d", "e", "f", "g"], false),
            vec!["ATM503 g"],
        ),
        ("nodes in a row that write one key", writers("x", &["b", "c"], true), vec![]),
        (
            "nodes side by side two ways, reported once",
            writers("x", &["b", "c"], false)
                .node(work("d"))
                .edge("a", "d")
                .edge("d", "b")
                .edge("d", "c"),
            vec!["ATM503 c"],
        ),
        ("a node side by side with one that writes when it fails", skipping, vec!["ATM504 b"]),
        (
            "problems of a graph come before those of the graphs inside it",
            writers("x", &["b", "c"], false)
                .node(Node::new("sub", subgraph(with(single(), |g| g.start = "wrok".into()))))
                .edge("c", "sub"),
            vec!["ATM503 c", "ATM102 sub (start)"],
        ),
        (
            "nodes of which one is chosen",
            row(&["a"])
                .node(action("b", "writes", "x"))
                .node(action("c", "writes", "x"))
                .edge_when("a", "b", done())
                .edge_when("a", "c", Condition::Otherwise),
            vec![],
        ),
    ]
}

/// Nodes that run in the same superstep, though no edge leads to both.
fn at_once() -> Vec<Row> {
    let write = |id: &str| action(id, "writes", "x");
    let two = || row(&["a"]).node(write("b")).node(write("c"));
    let behind = || {
        let graph = row(&["a", "b"]).node(work("c")).node(write("d")).node(write("e"));
        graph.edge("a", "c").edge("b", "d")
    };
    vec![
        (
            "a node beside one that may be chosen",
            two().edge("a", "b").edge_when("a", "c", done()),
            vec!["ATM504 c"],
        ),
        ("nodes behind a fork, equally far", behind().edge("c", "e"), vec!["ATM503 e"]),
        (
            "nodes behind a fork, one of them chosen",
            behind().edge_when("c", "e", done()),
            vec!["ATM504 e"],
        ),
        (
            "nodes behind a fork, one perhaps passed by",
            with(behind().edge("c", "e"), |g| g.nodes[1].targets = vec!["d".into()]),
            vec!["ATM504 e"],
        ),
        ("nodes behind a fork, not equally far", behind().edge("d", "e"), vec![]),
        (
            "nodes that are chosen where ways come together",
            row(&["a", "b", "m"])
                .node(work("c"))
                .node(write("d"))
                .node(write("e"))
                .edge("a", "c")
                .edge("c", "m")
                .edge_when("m", "d", done())
                .edge_when("m", "e", Condition::Otherwise),
            vec![],
        ),
        (
            "a node beside one that waited for several",
            row(&["a", "b"])
                .node(work("c"))
                .node(work("d"))
                .node(write("e"))
                .node(write("f"))
                .edge("a", "c")
                .edge("a", "d")
                .join(["b", "c"], "e")
                .edge("d", "f"),
            vec!["ATM503 f"],
        ),
        (
            "a node that waits for the one that writes",
            row(&["a", "b"])
                .node(work("c"))
                .node(write("d"))
                .node(write("e"))
                .edge("a", "c")
                .edge("c", "d")
                .join(["b", "d"], "e"),
            vec![],
        ),
        (
            "nodes that take turns",
            with(behind().edge("d", "a").edge("c", "a"), |g| {
                g.max_iterations = Some(Count::Fixed(9));
                g.nodes.pop();
            }),
            vec![],
        ),
    ]
}

fn values() -> Vec<Row> {
    let key = |key: &str| Count::Key(key.into());
    let each = |over: &str, workers| {
        let Kind::Each(each) = fan(single(), workers) else { unreachable!() };
        Node::new("fan", Kind::Each(Each { over: over.into(), ..each }))
    };
    let equals = |key: &str| Condition::Equals { key: key.into(), value: json!(true) };
    let visits = |name: &str| work("a").max_visits(key(name));
    let inner = |value: Value, input: Option<&str>| {
        let mut graph = one(each("mine", key("workers"))).reducer("mine", Reducer::Concat);
        graph.defaults.insert("mine".into(), value);
        let input = input.map(Into::into);
        Node::new("sub", Kind::Subgraph { graph, isolated: true, input, output: None })
    };
    let skip = |value: Value| OnError::SkipWith([("limit".into(), value)].into());
    vec![
        ("a text for a number", one(visits("word")), vec!["ATM531 a (max_visits)"]),
        (
            "a list for the limit of a graph, told once",
            with(one(Node::new("sub", subgraph(single()))), |g| {
                g.max_iterations = Some(key("items"));
                if let Kind::Subgraph { graph, .. } = &mut g.nodes[0].kind {
                    graph.max_iterations = Some(key("items"));
                }
            }),
            vec!["ATM531 the graph (max_iterations)"],
        ),
        ("a text for a list", one(each("word", Count::Fixed(2))), vec!["ATM532 fan (over)"]),
        (
            "keys that nothing sets",
            one(each("itmes", key("xyz"))),
            vec!["ATM533 fan (over)", "ATM533 fan (workers)"],
        ),
        (
            "keys that a node sets",
            one(each("mine", key("mine"))).node(action("b", "may_write", "mine")).edge("fan", "b"),
            vec![],
        ),
        (
            "keys that a function may set",
            one(each("mine", key("word"))).node(action("b", "function", "add")).edge("fan", "b"),
            vec![],
        ),
        (
            "conditions on keys that nothing sets",
            row(&["a"])
                .node(work("b"))
                .node(Node::new(
                    "c",
                    Kind::Loop { graph: single(), until: Some(equals("outputs.a")), max_rounds: 2 },
                ))
                .edge_when("a", "b", Condition::Not(Box::new(equals("wrod"))))
                .edge_when("a", "c", equals("word")),
            vec!["ATM217 the graph (edges[0])", "ATM217 c (until)"],
        ),
        ("a list of its own", one(inner(json!([]), None)), vec![]),
        (
            "a value of its own that is no list",
            one(inner(json!(1), None)),
            vec!["ATM534 sub (state.mine)", "ATM532 sub/fan (over)"],
        ),
        (
            "a value of its own beside what a function makes",
            one(inner(json!(1), Some("add"))),
            vec!["ATM534 sub (state.mine)"],
        ),
        (
            "an item that is a list",
            one(Node::new("out", fan(one(each("item", key("item"))), Count::Fixed(2)))),
            vec!["ATM506 out/fan (item)"],
        ),
        (
            "a value that its reducer cannot combine",
            single().reducer("word", Reducer::Sum).reducer("items", Reducer::Merge),
            vec!["ATM534 the graph (state.items)", "ATM534 the graph (state.word)"],
        ),
        (
            "a change that its reducer cannot combine",
            one(work("a").on_error(skip(json!("x")))).reducer("limit", Reducer::Max),
            vec!["ATM534 a (on_error)"],
        ),
        (
            "a change that its reducer can combine",
            one(work("a").on_error(skip(json!(2)))).reducer("limit", Reducer::Max),
            vec![],
        ),
    ]
}

fn outputs() -> Vec<Row> {
    let says = |node: &str| Condition::Says { node: node.into(), text: "ok".to_owned() };
    let p = |left: &str, right: &str, strategy| {
        Node::new("p", parallel(vec![("l", row(&[left])), ("r", row(&[right]))], strategy))
    };
    let both = |left: &str, right: &str| p(left, right, Strategy::All);
    let then = |graph: Graph, node: Node| {
        let (last, id) = (graph.nodes[graph.nodes.len() - 1].id.clone(), node.id.clone());
        graph.node(node).edge(last, id)
    };
    let use_a = || action("use", "output", "a");
    let rounds = |graph| Node::new("l", Kind::Loop { graph, until: None, max_rounds: 3 });
    let sub = |isolated, output: Option<&str>| {
        let output = output.map(Into::into);
        Node::new("p", Kind::Subgraph { graph: row(&["b"]), isolated, input: None, output })
    };
    let asked = |node: Node| one(node).node(work("c")).edge_when("p", "c", says("b"));
    let apart = |input: Option<&str>| {
        let graph = row(&["b"]).node(work("c")).edge_when("b", "c", says("a"));
        let input = input.map(Into::into);
        Node::new("sub", Kind::Subgraph { graph, isolated: true, input, output: None })
    };
    vec![
        (
            "an output that does not exist",
            one(action("use", "output", "sue")),
            vec!["ATM218 use (action)"],
        ),
        (
            "a key that does not exist",
            one(action("use", "text", "limt.x")),
            vec!["ATM219 use (action)"],
        ),
        (
            "a key that does not exist, in a command",
            one(action("use", "command_text", "nothing")),
            vec!["ATM219 use (action)"],
        ),
        ("outputs of no node", one(action("use", "text", "outputs")), vec!["ATM219 use (action)"]),
        ("a file in a text", one(action("use", "text", "file:word")), vec!["ATM219 use (action)"]),
        ("a key that exists", one(action("use", "text", "word.x")), vec![]),
        (
            "the item of a fan",
            one(Node::new("fan", fan(one(action("use", "text", "item.id")), Count::Fixed(1)))),
            vec![],
        ),
        (
            "almost the item of a fan",
            one(Node::new("fan", fan(one(action("use", "text", "itme.id")), Count::Fixed(1)))),
            vec!["ATM219 fan/use (action)"],
        ),
        (
            "a key that some node sets",
            then(one(action("set", "may_write", "later")), action("use", "text", "later")),
            vec![],
        ),
        (
            "a key that a function may set",
            then(one(action("set", "function", "add")), action("use", "text", "later")),
            vec![],
        ),
        (
            "the output of a node behind it",
            then(one(use_a()), work("a")),
            vec!["ATM218 use (action)"],
        ),
        (
            "the output of a node behind it, which may be missing",
            then(one(action("use", "output?", "a")), work("a")),
            vec![],
        ),
        ("its own output", one(action("a", "output", "a")), vec!["ATM218 a (action)"]),
        (
            "its own output in a later round",
            one(rounds(one(action("a", "output", "a")))),
            vec!["ATM218 l/a (action)"],
        ),
        (
            "the output of a node that runs before in one of two ways",
            row(&["x", "a"]).node(use_a()).edge("x", "use").edge_when("use", "a", says("x")),
            vec![],
        ),
        (
            "the output of what catches failures",
            {
                let mut g = row(&["x", "a"]);
                g.catch = Some("a".into());
                g.edges.clear();
                g.node(use_a()).edge("x", "use")
            },
            vec![],
        ),
        (
            "a choice by the output of a node behind it",
            row(&["x", "d"])
                .node(work("a"))
                .node(work("b"))
                .edge_when("d", "a", says("a"))
                .edge("d", "b"),
            vec!["ATM216 the graph (edges[1])"],
        ),
        (
            "a choice by what ran in an earlier round",
            Graph {
                max_iterations: Some(Count::Fixed(5)),
                ..row(&["x", "d"])
                    .node(work("a"))
                    .edge_when("d", "a", says("a"))
                    .edge("d", "a")
                    .edge_when("a", "d", says("x"))
            },
            vec![],
        ),
        (
            "a choice in a loop",
            one(rounds(
                row(&["d"])
                    .node(work("a"))
                    .node(work("b"))
                    .edge_when("d", "a", says("a"))
                    .edge("d", "b"),
            )),
            vec![],
        ),
        (
            "a choice by its own output",
            row(&["d"]).node(work("a")).edge_when("d", "a", says("d")),
            vec![],
        ),
        ("the output of a branch", asked(both("b", "x")), vec![]),
        ("the output of a graph that shares its state", asked(sub(false, None)), vec![]),
        (
            "the output of a graph of its own",
            asked(sub(true, None)),
            vec!["ATM216 the graph (edges[0])"],
        ),
        (
            "the output of a graph of which a function makes something",
            asked(sub(false, Some("add"))),
            vec!["ATM216 the graph (edges[0])"],
        ),
        ("an output around a graph", then(row(&["a"]), apart(None)), vec![]),
        (
            "an output around a graph whose state a function makes",
            then(row(&["a"]), apart(Some("add"))),
            vec!["ATM216 sub (edges[0])"],
        ),
        (
            "an output that a branch hides",
            then(then(row(&["a"]), both("a", "x")), use_a()),
            vec!["ATM535 use (action)"],
        ),
        (
            "an output that a branch hides from a condition",
            then(row(&["a"]), both("a", "x")).node(work("c")).edge_when("p", "c", says("a")),
            vec!["ATM535 the graph (edges[1])"],
        ),
        (
            "an output that a branch hides from a graph inside",
            then(then(row(&["a"]), both("a", "x")), Node::new("in", subgraph(one(use_a())))),
            vec!["ATM535 in/use (action)"],
        ),
        ("an output before it is hidden", then(then(row(&["a"]), use_a()), both("a", "x")), vec![]),
        ("an output that is newer", then(then(one(both("a", "x")), work("a")), use_a()), vec![]),
        ("an output that is only inside", then(one(both("a", "x")), use_a()), vec![]),
        (
            "an output of a node called like one in it",
            then(one(both("p", "x")), action("use", "output", "p")),
            vec![],
        ),
        (
            "an output of two branches",
            then(one(both("a", "a")), use_a()),
            vec!["ATM535 use (action)"],
        ),
        (
            "an output of one of two branches",
            then(one(p("a", "a", Strategy::Any)), use_a()),
            vec![],
        ),
        (
            "a template in an unsafe place",
            one(action("use", "unsafe", "plan")),
            vec!["ATM541 use (action)"],
        ),
        (
            "an output in a program text",
            one(action("use", "perhaps_unsafe", "outputs.plan")),
            vec!["ATM541 use (action)"],
        ),
        ("braces of a program text", one(action("use", "perhaps_unsafe", "print")), vec![]),
    ]
}
