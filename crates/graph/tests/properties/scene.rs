//! Random graphs, and states for them.

use atomic_graph::{
    Branch, Condition, Count, Each, Edge, FunctionId, Graph, Key, Kind, Node, NodeId, OnError,
    OnLost, Parallel, Patch, Ready, Reducer, Retry, Strategy,
};
use serde_json::{Value, json};

use crate::dice::Dice;

/// What may be in a graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// How deep graphs are nested.
    pub(crate) depth: u32,
    /// Whether what finishes first decides anything: races, time limits, failing fast.
    pub(crate) racing: bool,
    /// Whether there are limits of the whole run.
    pub(crate) limits: bool,
    /// Whether several graphs run at once, each seeing what the others have done.
    pub(crate) fans: bool,
    /// Whether nodes have rules about failures.
    pub(crate) rules: bool,
}

impl Style {
    pub(crate) const WILD: Self =
        Self { depth: 3, racing: true, limits: true, fans: true, rules: true };
}

/// The sorts of nodes that are told apart in the coverage. Every id begins with that of its sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    Work,
    Launch,
    Decision,
    Subgraph,
    Loop,
    Each,
    All,
    Race,
    Any,
}

impl Sort {
    pub(crate) const ALL: [(Self, &'static str); 9] = [
        (Self::Work, "work"),
        (Self::Launch, "launch"),
        (Self::Decision, "decision"),
        (Self::Subgraph, "subgraph"),
        (Self::Loop, "loop"),
        (Self::Each, "each"),
        (Self::All, "all"),
        (Self::Race, "race"),
        (Self::Any, "any"),
    ];

    pub(crate) fn of(node: &str) -> Self {
        let word = node.trim_end_matches(|c: char| c.is_ascii_digit());
        Self::ALL.into_iter().find(|(_, name)| *name == word).unwrap().0
    }

    fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(sort, _)| *sort == self).unwrap().1
    }

    pub(crate) fn holds_others(self) -> bool {
        !matches!(self, Self::Work | Self::Launch | Self::Decision)
    }
}

/// A graph and the state its run begins with.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) graph: Graph,
    pub(crate) state: Patch,
}

impl Scene {
    pub(crate) fn random(dice: &mut Dice, style: Style) -> Self {
        let mut graph = Maker { dice, style, next: 0 }.graph(0, false);
        graph.reducers = reducers();
        if style.limits {
            graph.max_steps = Some(20 + dice.below(150) as u64);
        }
        if dice.chance(30) {
            graph.max_concurrency = Some(1 + dice.below(3) as u32);
        }
        let mut state = json!({
            "n": 1, "log": [], "made": [], "top": 0, "low": 9, "object": {}, "rows": [],
            "either": false, "both": true, "iterations": 3, "visits": 2, "never": 0, "workers": 2,
            "list": list(dice), "tasks": tasks(dice),
        });
        if style.limits && dice.chance(15) {
            state["maxLaunches"] = json!(dice.below(12));
        }
        Self { graph, state: serde_json::from_value(state).unwrap() }
    }
}

fn reducers() -> std::collections::BTreeMap<Key, Reducer> {
    let all = [
        ("n", Reducer::Sum),
        ("odd", Reducer::Sum),
        ("log", Reducer::Concat),
        ("list", Reducer::Concat),
        ("top", Reducer::Max),
        ("low", Reducer::Min),
        ("object", Reducer::Merge),
        ("rows", Reducer::MergeBy("name".to_owned())),
        ("tasks", Reducer::MergeById),
        ("either", Reducer::Or),
        ("both", Reducer::And),
        ("maybe", Reducer::IfDefined),
        ("made", Reducer::Call(FunctionId::from("reduce"))),
    ];
    all.into_iter().map(|(key, reducer)| (Key::from(key), reducer)).collect()
}

fn list(dice: &mut Dice) -> Value {
    let length = dice.pick(&[0, 1, 2, 2, 3, 3, 4, 6]);
    let item = |dice: &mut Dice, n: usize| match dice.below(6) {
        0 => json!({"id": "same"}),
        1 => json!({"id": format!("same~{}", 1 + dice.below(4))}),
        2 => json!(n),
        _ => json!({"id": format!("i/{}", 9 - n)}),
    };
    (0..length).map(|n| item(dice, n)).collect()
}

fn tasks(dice: &mut Dice) -> Value {
    let length = dice.pick(&[0, 1, 2, 2, 3, 4, 6]);
    let task = |n: usize| {
        let blockers: Vec<String> =
            (0..n).filter(|_| dice.chance(30)).map(|n| format!("#{n}")).collect();
        let status = dice.pick(&["pending", "pending", "pending", "pending", "completed"]);
        json!({"id": format!("#{n}"), "status": status, "blockedBy": blockers})
    };
    (0..length).map(task).collect()
}

struct Maker<'d> {
    dice: &'d mut Dice,
    style: Style,
    next: u32,
}

impl Maker<'_> {
    fn graph(&mut self, depth: u32, in_fan: bool) -> Graph {
        let count = 1 + self.dice.below(if depth == 0 { 5 } else { 3 });
        let sorts: Vec<Sort> = (0..count).map(|_| self.sort(depth)).collect();
        let ids: Vec<NodeId> = sorts.iter().map(|sort| self.id(*sort)).collect();
        let mut graph = Graph::starting_at(ids[0].clone());
        for (sort, id) in sorts.iter().zip(&ids) {
            let kind = self.kind(*sort, depth, in_fan);
            let node = self.with_rules(Node::new(id.clone(), kind), &ids);
            graph.nodes.push(node);
        }
        self.connect(&mut graph, &ids);
        self.add_otherwise(&mut graph);
        graph.max_iterations = Some(match self.dice.below(4) {
            0 => Count::Key(Key::from("iterations")),
            _ => Count::Fixed(1 + self.dice.below(4) as u64),
        });
        if self.style.rules && self.dice.chance(15) {
            graph.catch = Some(self.dice.pick(&ids));
        }
        graph.fail_fast = self.style.racing && self.dice.chance(25);
        if self.dice.chance(20) {
            graph.model = Some("large".to_owned());
        }
        graph
    }

    fn id(&mut self, sort: Sort) -> NodeId {
        self.next += 1;
        NodeId::from(format!("{}{}", sort.word(), self.next))
    }

    fn sort(&mut self, depth: u32) -> Sort {
        let Style { fans, racing, .. } = self.style;
        loop {
            let sort = match self.dice.below(20) {
                0..5 => Sort::Work,
                5..9 => Sort::Launch,
                9..11 => Sort::Decision,
                11..13 => Sort::Subgraph,
                13..15 => Sort::Loop,
                15..17 => Sort::Each,
                17 => Sort::All,
                18 => Sort::Race,
                _ => Sort::Any,
            };
            let fits = match sort {
                Sort::Work | Sort::Launch | Sort::Decision => true,
                Sort::Subgraph | Sort::Loop => depth < self.style.depth,
                Sort::Each | Sort::All => depth < self.style.depth && fans,
                Sort::Race | Sort::Any => depth < self.style.depth && fans && racing,
            };
            if fits {
                return sort;
            }
        }
    }

    fn kind(&mut self, sort: Sort, depth: u32, in_fan: bool) -> Kind {
        let parallel = |maker: &mut Self, strategy| {
            let branches = (0..1 + maker.dice.below(3))
                .map(|n| Branch {
                    id: NodeId::from(format!("b{n}")),
                    graph: maker.graph(depth + 1, true),
                })
                .collect();
            let merge = maker.dice.chance(25).then(|| FunctionId::from("merge"));
            let fail_fast = maker.style.racing && maker.dice.chance(40);
            Kind::Parallel(Parallel { branches, strategy, fail_fast, merge })
        };
        match sort {
            Sort::Work => Kind::Work { action: Value::Null, launch: false, asks: false },
            Sort::Launch => Kind::Work { action: Value::Null, launch: true, asks: false },
            Sort::Decision => Kind::Decision,
            Sort::Subgraph => Kind::Subgraph {
                graph: self.graph(depth + 1, in_fan),
                isolated: self.dice.chance(20),
                input: self.dice.chance(20).then(|| FunctionId::from("input")),
                output: self.dice.chance(20).then(|| FunctionId::from("output")),
            },
            Sort::Loop => {
                let until = self.dice.chance(60).then(|| Condition::Call("until".into()));
                let max_rounds = self.dice.below(4) as u32;
                let max_rounds = if until.is_none() { max_rounds.max(1) } else { max_rounds };
                Kind::Loop { graph: self.graph(depth + 1, in_fan), until, max_rounds }
            }
            Sort::Each => {
                let by_tasks = self.dice.chance(50) && (self.style.racing || !in_fan);
                let (over, ready) =
                    if by_tasks { ("tasks", Ready::Tasks) } else { ("list", Ready::Once) };
                let workers = match self.dice.below(4) {
                    0 => Count::Key(Key::from("workers")),
                    _ => Count::Fixed(1 + self.dice.below(4) as u64),
                };
                let fail_fast = self.style.racing && self.dice.chance(30);
                let (over, item) = (Key::from(over), Key::from("item"));
                let graph = self.graph(depth + 1, true);
                Kind::Each(Each {
                    over,
                    item,
                    graph,
                    workers,
                    ready,
                    fail_fast,
                    order: ready.order(),
                })
            }
            Sort::All => parallel(self, Strategy::All),
            Sort::Race => parallel(self, Strategy::Race),
            Sort::Any => parallel(self, Strategy::Any),
        }
    }

    fn with_rules(&mut self, mut node: Node, ids: &[NodeId]) -> Node {
        let dice = &mut *self.dice;
        if dice.chance(40) {
            node.targets = (0..1 + dice.below(2)).map(|_| dice.pick(ids)).collect();
        }
        if dice.chance(10) {
            node.model = Some("small".to_owned());
        }
        if self.style.limits && dice.chance(12) {
            node.max_visits = Some(match dice.below(3) {
                0 => Count::Key(Key::from(dice.pick(&["visits", "never"]))),
                _ => Count::Fixed(1 + dice.below(2) as u64),
            });
        }
        if self.style.racing && dice.chance(40) {
            node.timeout_ms = Some(1_000);
        }
        if !self.style.rules {
            return node;
        }
        if dice.chance(50) {
            node.retry = Retry {
                attempts: 1 + dice.below(3) as u32,
                delay_ms: dice.pick(&[0, 10]),
                factor: dice.pick(&[1.0, 2.0]),
                codes: if dice.chance(20) { vec!["broken".to_owned()] } else { vec![] },
                when: dice.chance(30).then(|| FunctionId::from("retry")),
            };
        }
        node.on_error = match dice.below(10) {
            0 => OnError::Skip,
            1 => OnError::SkipWith([(Key::from("log"), json!(["skipped"]))].into()),
            2 => OnError::Goto(dice.pick(ids)),
            3 | 4 => OnError::Call(FunctionId::from("on_error")),
            _ => OnError::Abort,
        };
        node.on_lost = dice.pick(&[OnLost::Continue, OnLost::RunAgain, OnLost::Ask]);
        if dice.chance(10) {
            node.on_revive = Some(dice.pick(ids));
        }
        match dice.below(40) {
            0 => node.input_schema = Some(json!({"required": ["never"]})),
            1 => node.input_schema = Some(json!({"required": ["n"]})),
            2 | 3 => node.output_schema = Some(json!({"type": "object"})),
            4 => node.output_schema = Some(json!({"type": "object", "maxProperties": 1})),
            5 => node.output_schema = Some(json!({"type": "string"})),
            _ => {}
        }
        node
    }

    fn connect(&mut self, graph: &mut Graph, ids: &[NodeId]) {
        let count = ids.len();
        for to in 1..count {
            let from = self.dice.below(to);
            let when = self.dice.chance(25).then(|| self.condition());
            graph.edges.push(Edge { from: vec![ids[from].clone()], to: ids[to].clone(), when });
        }
        for _ in 0..self.dice.below(3) {
            let (from, to) = (self.dice.below(count), self.dice.below(count));
            let when = (from >= to || self.dice.chance(50)).then(|| self.condition());
            graph.edges.push(Edge { from: vec![ids[from].clone()], to: ids[to].clone(), when });
        }
        if count > 2 && self.dice.chance(50) {
            let to = 2 + self.dice.below(count - 2);
            let from = [self.dice.below(to), self.dice.below(to)];
            let decides = |n: &usize| Sort::of(ids[*n].as_str()) == Sort::Decision;
            if from[0] != from[1] && !from.iter().any(decides) {
                let from = from.into_iter().map(|n| ids[n].clone()).collect();
                graph.edges.push(Edge { from, to: ids[to].clone(), when: None });
            }
        }
        for node in graph.nodes.iter().filter(|node| node.kind == Kind::Decision) {
            let mut leaving = false;
            for edge in graph.edges.iter_mut().filter(|edge| edge.from == [node.id.clone()]) {
                edge.when.get_or_insert(Condition::Call(FunctionId::from("condition")));
                leaving = true;
            }
            if !leaving {
                let (from, to) = (vec![node.id.clone()], self.dice.pick(ids));
                graph.edges.push(Edge { from, to, when: Some(self.condition()) });
            }
        }
    }

    /// The last condition of a node may be `otherwise`.
    fn add_otherwise(&mut self, graph: &mut Graph) {
        for id in graph.nodes.iter().map(|node| node.id.clone()) {
            let leaving = |edge: &&mut Edge| edge.when.is_some() && edge.from.contains(&id);
            if let Some(last) = graph.edges.iter_mut().rev().find(leaving)
                && self.dice.chance(40)
            {
                last.when = Some(Condition::Otherwise);
            }
        }
    }

    fn condition(&mut self) -> Condition {
        match self.dice.below(3) {
            0 => Condition::Equals { key: Key::from("n"), value: json!(1) },
            1 => Condition::Says { node: NodeId::from("work1"), text: "work".to_owned() },
            _ => Condition::Call(FunctionId::from("condition")),
        }
    }
}
