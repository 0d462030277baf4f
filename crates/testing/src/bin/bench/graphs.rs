//! The graphs that are measured, each with what its steps return and how many there are.

use atomic_graph::{
    Branch, Condition, Count, Each, Edge, Graph, Kind, Node, NodeId, Parallel, Patch, Ready,
    Reducer, StepResult, Strategy,
};
use serde_json::{Value, json};

/// Something to run.
pub(crate) struct Setting {
    pub(crate) graph: Graph,
    pub(crate) state: Patch,
    /// How many steps come to an end in it.
    pub(crate) steps: usize,
    /// By how many its cost is divided: those that were stopped before they began count as well.
    pub(crate) shares: usize,
    /// What its steps return, by how many came before.
    pub(crate) result: fn(usize) -> StepResult,
    /// Whether the first attempt of every step fails, and the failed run is then revived.
    pub(crate) fails_first: bool,
}

/// Makes something to run, of a size.
pub(crate) type Build = fn(n: usize) -> Setting;

/// How many items of a fan run at once where that is limited.
const FEW: u64 = 8;

/// How many steps are taken beside a state of some size.
const STEPS_BESIDE: usize = 1_000;

impl Setting {
    fn new(graph: Graph, steps: usize) -> Self {
        let result = |n| StepResult::output("ok").set("n", n);
        Self { graph, state: Patch::new(), steps, shares: steps, result, fails_first: false }
    }

    fn state(self, state: Patch) -> Self {
        Self { state, ..self }
    }

    /// Every step adds one to the same number.
    fn counting(mut self) -> Self {
        self.graph = self.graph.reducer("done", Reducer::Sum);
        Self { result: |_| StepResult::output("ok").set("done", 1), ..self }
    }

    /// Every step appends to the same list.
    fn listing(mut self) -> Self {
        self.graph = self.graph.reducer("list", Reducer::Concat);
        Self { result: |n| StepResult::output("ok").set("list", vec![n]), ..self }
    }
}

fn work(id: &str) -> Node {
    Node::work(id, Value::Null)
}

fn name(place: usize) -> String {
    format!("node-{place}")
}

/// One node, and nothing else.
fn only(node: Node) -> Graph {
    Graph::starting_at(node.id.clone()).node(node)
}

fn one_step() -> Graph {
    only(work("work"))
}

fn all(n: usize) -> Count {
    Count::Fixed(n as u64)
}

/// A text of a size, and where a cycle ends.
fn text_of(bytes: usize, limit: usize) -> Patch {
    [("text".into(), json!("x".repeat(bytes))), ("limit".into(), json!(limit))].into()
}

/// A chain of nodes.
fn chain(n: usize, node: impl Fn(&str) -> Node) -> Graph {
    let mut graph = Graph::starting_at(name(0));
    for place in 0..n {
        graph = graph.node(node(&name(place)));
    }
    for place in 1..n {
        graph = graph.edge(name(place - 1), name(place));
    }
    graph
}

pub(crate) fn linear(n: usize) -> Setting {
    Setting::new(chain(n, work), n)
}

/// One node that follows itself until there were enough.
fn around() -> Graph {
    let again = Condition::Call("again".into());
    only(work("work")).edge_when("work", "work", again)
}

pub(crate) fn cycle(n: usize) -> Setting {
    Setting::new(around(), n).state(text_of(10_000, n))
}

pub(crate) fn cycle_with_list(n: usize) -> Setting {
    let setting = Setting::new(around(), n).state(text_of(0, n)).listing();
    Setting { result: |n| StepResult::default().set("n", n).set("list", vec![n]), ..setting }
}

/// A node that holds a graph and runs it again and again.
fn rounds(n: usize) -> Graph {
    let max_rounds = u32::try_from(n).unwrap_or(u32::MAX);
    only(Node::new("loop", Kind::Loop { graph: one_step(), until: None, max_rounds }))
}

pub(crate) fn rounds_beside_text(n: usize) -> Setting {
    Setting::new(rounds(n), n).state(text_of(10_000, n))
}

pub(crate) fn rounds_with_list(n: usize) -> Setting {
    Setting::new(rounds(n), n).listing()
}

/// A node with an edge to each of `n` others.
fn spread(n: usize) -> Graph {
    let mut graph = only(work("start"));
    for place in 0..n {
        graph = graph.node(work(&name(place))).edge("start", name(place));
    }
    graph
}

pub(crate) fn fan(n: usize) -> Setting {
    Setting::new(spread(n), n + 1).counting()
}

/// The same, and a node that waits for all of them.
pub(crate) fn fan_and_join(n: usize) -> Setting {
    let mut graph = spread(n).node(work("join"));
    graph.edges.push(join((0..n).map(|place| name(place).into()).collect(), "join"));
    Setting::new(graph, n + 2).counting()
}

fn join(from: Vec<NodeId>, to: &str) -> Edge {
    Edge { from, to: to.into(), when: None }
}

/// A fan in which every second node waits for itself and its neighbour, each in a join of its own.
pub(crate) fn many_joins(n: usize) -> Setting {
    let mut graph = spread(n);
    for place in (1..n).step_by(2) {
        let to = format!("join-{place}");
        graph = graph.node(work(&to));
        graph.edges.push(join(vec![name(place - 1).into(), name(place).into()], &to));
    }
    Setting::new(graph, 1 + n + n / 2).counting()
}

/// The same as [`fan`], where few may run at once.
pub(crate) fn fan_of_few(n: usize) -> Setting {
    let mut setting = fan(n);
    setting.graph.max_concurrency = Some(8);
    setting
}

fn over_items(n: usize, workers: Count, graph: Graph) -> (Graph, Patch) {
    let (over, item, ready) = ("items".into(), "item".into(), Ready::Once);
    let kind = Kind::Each(Each {
        over,
        item,
        graph,
        workers,
        ready,
        fail_fast: false,
        order: ready.order(),
    });
    let items: Vec<Value> = (0..n).map(|id| json!({"id": id.to_string()})).collect();
    (only(Node::new("each", kind)), [("items".into(), items.into())].into())
}

fn items(n: usize, workers: Count, graph: Graph) -> Setting {
    let (graph, state) = over_items(n, workers, graph);
    Setting::new(graph, n).state(state)
}

/// All items at once.
pub(crate) fn each(n: usize) -> Setting {
    items(n, all(n), one_step()).counting()
}

pub(crate) fn each_by_few(n: usize) -> Setting {
    items(n, Count::Fixed(FEW), one_step()).counting()
}

pub(crate) fn each_and_list(n: usize) -> Setting {
    items(n, all(n), one_step()).listing()
}

pub(crate) fn each_by_few_and_list(n: usize) -> Setting {
    items(n, Count::Fixed(FEW), one_step()).listing()
}

/// Every item fails, and the run is given another chance.
pub(crate) fn each_revived(n: usize) -> Setting {
    Setting { steps: 2 * n, shares: 2 * n, fails_first: true, ..each(n) }
}

fn branches(n: usize, strategy: Strategy) -> Graph {
    let branch = |place| Branch { id: name(place).into(), graph: one_step() };
    let branches = (0..n).map(branch).collect();
    let kind = Kind::Parallel(Parallel { branches, strategy, fail_fast: false, merge: None });
    only(Node::new("parallel", kind))
}

pub(crate) fn parallel(n: usize) -> Setting {
    Setting::new(branches(n, Strategy::All), n).counting()
}

pub(crate) fn parallel_and_list(n: usize) -> Setting {
    Setting::new(branches(n, Strategy::All), n).listing()
}

/// The first wins, and all others are stopped.
pub(crate) fn race(n: usize) -> Setting {
    Setting::new(branches(n, Strategy::Race), n).counting()
}

/// The same, where most have not begun when the race is won.
pub(crate) fn race_of_few(n: usize) -> Setting {
    let mut setting = race(n);
    setting.graph.max_concurrency = Some(8);
    Setting { steps: 8, ..setting }
}

/// The same, where every second branch is at a decision when the race is won.
pub(crate) fn race_of_undecided(n: usize) -> Setting {
    let mut setting = race(n);
    let Some(Kind::Parallel(parallel)) = setting.graph.nodes.first_mut().map(|n| &mut n.kind)
    else {
        return setting;
    };
    for branch in parallel.branches.iter_mut().skip(1).step_by(2) {
        let decision = Node::new("decide", Kind::Decision);
        branch.graph =
            only(decision).node(work("work")).edge_when("decide", "work", Condition::Otherwise);
    }
    Setting { steps: n.div_ceil(2), ..setting }
}

fn inside(graph: Graph, isolated: bool) -> Kind {
    Kind::Subgraph { graph, isolated, input: None, output: None }
}

fn nested(id: &str, depth: usize) -> Node {
    let graph = if depth == 1 { one_step() } else { only(nested("inner", depth - 1)) };
    Node::new(id, inside(graph, false))
}

/// A chain of sub-graphs, each three deep.
pub(crate) fn chain_of_regions(n: usize) -> Setting {
    Setting::new(chain(n, |id| nested(id, 3)), n).counting()
}

/// A state of a size in many keys, of which every step changes one.
fn state_of(bytes: usize) -> Patch {
    let keys = bytes.div_ceil(10_000);
    let value = || json!("x".repeat(bytes / keys));
    let mut state: Patch = (0..keys).map(|key| (name(key).into(), value())).collect();
    state.insert("limit".into(), json!(STEPS_BESIDE));
    state
}

pub(crate) fn cycle_beside(bytes: usize) -> Setting {
    Setting::new(around(), STEPS_BESIDE).state(state_of(bytes))
}

pub(crate) fn rounds_beside(bytes: usize) -> Setting {
    Setting::new(rounds(STEPS_BESIDE), STEPS_BESIDE).state(state_of(bytes))
}

pub(crate) fn each_beside(bytes: usize) -> Setting {
    let mut setting = each_by_few(STEPS_BESIDE);
    setting.state.append(&mut state_of(bytes));
    setting
}

/// A chain of sub-graphs that keep their changes to themselves.
pub(crate) fn isolated_beside(bytes: usize) -> Setting {
    let isolated = |id: &str| Node::new(id, inside(one_step(), true));
    Setting::new(chain(STEPS_BESIDE, isolated), STEPS_BESIDE).state(state_of(bytes))
}
