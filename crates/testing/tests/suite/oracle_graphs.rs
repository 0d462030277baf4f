//! Random graphs that mean the same to LangGraph and to us, and what their nodes do.
//!
//! What is left out, because the two differ there on purpose:
//! - A condition of ours sees everything its superstep has written, one of LangGraph's only what
//!   its own node has. So a condition asks for a key that only its own node writes; what it writes
//!   there depends on all it sees.
//! - A key that is returned as it was is no change to us. So nobody adds the number that is there.
//! - LangGraph begins a list with `[]` and a number with 0 where the type says so. Its keys are
//!   declared without a type, and begin with their first change, as ours do.
//! - It refuses two writes to a key without a reducer; ours takes the last. So such a key has one
//!   writer, or is in a graph where one node runs at a time.
//! - `goto`, failures and everything that has a graph inside are not edges.

use std::collections::BTreeMap;

use atomic_graph::{Condition, Edge, Graph, Node, Reducer};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A graph, what its nodes do, and the state it begins with.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) seed: u64,
    pub(crate) start: String,
    /// In order of definition, which is the order of their names.
    pub(crate) nodes: Vec<Doing>,
    pub(crate) edges: Vec<Link>,
    /// Of every key there is.
    pub(crate) reducers: BTreeMap<String, Reducer>,
    pub(crate) state: Map<String, Value>,
}

/// A node, and what it writes under which key.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Doing {
    pub(crate) id: String,
    pub(crate) writes: BTreeMap<String, Write>,
}

/// An edge.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Link {
    pub(crate) from: Vec<String>,
    pub(crate) to: String,
    pub(crate) when: Option<When>,
}

/// A condition.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum When {
    Equals { key: String, value: u64 },
    Below { key: String, limit: u64 },
    Otherwise,
}

/// What a node makes of what it sees.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Write {
    Count,
    Route,
    Saw,
    Entry,
    Number,
    Signed,
    Facts,
    Flag,
}

/// The keys that many nodes write at once.
const SHARED: [(&str, Reducer, Write); 7] = [
    ("entries", Reducer::Concat, Write::Entry),
    ("total", Reducer::Sum, Write::Number),
    ("most", Reducer::Max, Write::Signed),
    ("least", Reducer::Min, Write::Signed),
    ("facts", Reducer::Merge, Write::Facts),
    ("any", Reducer::Or, Write::Flag),
    ("every", Reducer::And, Write::Flag),
];

impl Sample {
    /// The same graph in our terms.
    pub(crate) fn graph(&self) -> Graph {
        let mut graph = Graph::starting_at(self.start.as_str());
        for node in &self.nodes {
            graph = graph.node(Node::work(node.id.as_str(), Value::Null));
        }
        for link in &self.edges {
            let from = link.from.iter().map(|node| node.as_str().into()).collect();
            let when = link.when.as_ref().map(When::condition);
            graph.edges.push(Edge { from, to: link.to.as_str().into(), when });
        }
        for (key, reducer) in &self.reducers {
            // What is not said is replaced, and that is what is tested here.
            if *reducer != Reducer::Replace {
                graph = graph.reducer(key.as_str(), reducer.clone());
            }
        }
        graph
    }

    pub(crate) fn node(&self, id: &str) -> Option<&Doing> {
        self.nodes.iter().find(|node| node.id == id)
    }

    pub(crate) fn has_cycle(&self) -> bool {
        self.edges.iter().any(|link| link.when.as_ref().is_some_and(When::bounds_a_cycle))
    }
}

impl When {
    fn condition(&self) -> Condition {
        match self {
            Self::Equals { key, value } => {
                Condition::Equals { key: key.as_str().into(), value: json!(value) }
            }
            Self::Below { key, limit } => Condition::Call(format!("{key}<{limit}").into()),
            Self::Otherwise => Condition::Otherwise,
        }
    }

    fn bounds_a_cycle(&self) -> bool {
        matches!(self, Self::Below { key, .. } if key.starts_with("visits-"))
    }
}

/// Whether a condition of a [`Sample`] holds; none is not one of those.
pub(crate) fn holds(condition: &Condition, state: &Map<String, Value>) -> Option<bool> {
    if let Condition::Equals { key, value } = condition {
        return Some(state.get(key.as_str()) == Some(value));
    }
    if let Condition::Call(function) = condition {
        let (key, limit) = function.as_str().split_once('<')?;
        return Some(state.get(key)?.as_u64()? < limit.parse().ok()?);
    }
    matches!(condition, Condition::Otherwise).then_some(true)
}

impl Doing {
    /// What the node returns when it sees this.
    pub(crate) fn patch(&self, state: &Map<String, Value>) -> BTreeMap<String, Value> {
        let saw = measure(&Value::Object(state.clone()));
        let written = |(key, how): (&String, &Write)| {
            (key.clone(), how.value(&self.id, saw, state.get(key).unwrap_or(&Value::Null)))
        };
        self.writes.iter().map(written).collect()
    }
}

impl Write {
    fn value(self, node: &str, saw: i64, old: &Value) -> Value {
        match self {
            Self::Count => json!(old.as_u64().unwrap_or(0) + 1),
            Self::Route => json!(saw % 4),
            Self::Saw => json!(saw),
            Self::Entry => json!([node, saw]),
            Self::Number => {
                let fraction = if saw % 3 == 0 { 0.25 } else { 0.0 };
                let same = old.as_f64() == Some((saw % 9 + 1) as f64 + fraction);
                number(saw % 9 + 1 + i64::from(same), fraction)
            }
            Self::Signed => number(saw % 1000 - 500, if saw % 5 == 0 { 0.5 } else { 0.0 }),
            Self::Facts => json!({node: saw, format!("fact-{}", saw % 3): node}),
            Self::Flag => json!(saw % 3 == 0),
        }
    }
}

fn number(whole: i64, fraction: f64) -> Value {
    if fraction == 0.0 { json!(whole) } else { json!(whole as f64 + fraction) }
}

const PRIME: i64 = 1_000_003;

/// A number for all that is in a value, and in which order.
fn measure(value: &Value) -> i64 {
    match value {
        Value::Null => 0,
        Value::Bool(flag) => 1 + i64::from(*flag),
        // All of them are whole numbers of quarters.
        Value::Number(number) => ((number.as_f64().unwrap_or(0.0) * 4.0) as i64).rem_euclid(PRIME),
        Value::String(text) => measure_text(text),
        Value::Array(list) => fold(list.iter().map(measure)),
        Value::Object(held) => {
            let one = |(key, value): (&String, &Value)| measure_text(key) * (measure(value) + 7);
            held.iter().map(one).sum::<i64>() % PRIME
        }
    }
}

fn measure_text(text: &str) -> i64 {
    fold(text.bytes().map(i64::from))
}

fn fold(numbers: impl Iterator<Item = i64>) -> i64 {
    numbers.fold(17, |result, number| (result * 31 + number) % PRIME)
}

/// The same numbers for the same seed, for ever.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// splitmix64
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for place in (1..list.len()).rev() {
            list.swap(place, self.below(place + 1));
        }
    }
}

/// Makes the graph of a seed.
pub(crate) fn sample(seed: u64) -> Sample {
    let mut draft = Draft::new(seed);
    draft.go_forward();
    for _ in 0..draft.dice.below(3) {
        draft.go_back();
    }
    if draft.dice.chance(30) {
        draft.go_round();
    }
    draft.add_otherwise();
    draft.finish(seed)
}

/// A graph being made. Nodes are known by their place on the way from the start; their names, and
/// so their order, have nothing to do with it.
struct Draft {
    dice: Dice,
    /// Whether only one node runs at a time.
    single_file: bool,
    /// Nodes that edges without a bound lead to from earlier ones.
    forward: usize,
    names: Vec<String>,
    edges: Vec<Link>,
}

impl Draft {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let forward = 3 + dice.below(8);
        let mut names: Vec<String> = (0..=forward).map(|n| format!("node-{n:02}")).collect();
        dice.shuffle(&mut names);
        let single_file = dice.chance(15);
        Self { dice, single_file, forward, names, edges: vec![] }
    }

    fn link(&mut self, from: &[usize], to: usize, when: Option<When>) {
        let from: Vec<String> = from.iter().map(|node| self.names[*node].clone()).collect();
        let to = self.names[to].clone();
        let known = |link: &Link| link.from == from && link.to == to && link.when.is_none();
        if when.is_some() || !self.edges.iter().any(known) {
            self.edges.push(Link { from, to, when });
        }
    }

    /// Every node follows from some before it.
    fn go_forward(&mut self) {
        for to in 1..self.forward {
            let near = self.dice.chance(60);
            let from = if near { to - 1 - self.dice.below(to.min(3)) } else { self.dice.below(to) };
            match self.dice.below(100) {
                _ if self.single_file => self.link_when(from, to),
                0..50 => self.link(&[from], to, None),
                50..70 => self.link_when(from, to),
                _ => self.join(to),
            }
            if !self.single_file && self.dice.chance(35) {
                let from = self.dice.below(to);
                self.link(&[from], to, None);
            }
        }
    }

    /// An edge that is taken in some states.
    fn link_when(&mut self, from: usize, to: usize) {
        let key = format!("route-{}", self.names[from]);
        let when = if self.dice.chance(50) {
            When::Equals { key, value: self.dice.below(4) as u64 }
        } else {
            When::Below { key, limit: 1 + self.dice.below(3) as u64 }
        };
        self.link(&[from], to, Some(when));
    }

    /// An edge from two or three of the nodes before.
    fn join(&mut self, to: usize) {
        let mut from: Vec<usize> = (0..to).collect();
        self.dice.shuffle(&mut from);
        from.truncate(2 + self.dice.below(2));
        self.link(&from, to, None);
    }

    /// A condition that holds for the first few visits to a node.
    fn first_visits(&mut self, node: usize) -> When {
        let key = format!("visits-{}", self.names[node]);
        When::Below { key, limit: 2 + self.dice.below(3) as u64 }
    }

    /// An edge to an earlier node or to the node itself, taken a few times.
    fn go_back(&mut self) {
        let from = self.dice.below(self.forward);
        let to = self.dice.below(from + 1);
        let when = self.first_visits(from);
        self.link(&[from], to, Some(when));
        // Tried before the others or after them.
        if self.dice.chance(50) {
            self.edges.rotate_right(1);
        }
    }

    /// A node that is reached a few times, and from which an edge without a condition, or a join
    /// with any other node, leads back.
    fn go_round(&mut self) {
        let (from, aside) = (self.dice.below(self.forward), self.forward);
        let when = self.first_visits(from);
        self.link(&[from], aside, Some(when));
        self.edges.rotate_right(1);
        let to = self.dice.below(from + 1);
        let other = self.dice.below(self.forward);
        if self.single_file || self.dice.chance(50) {
            self.link(&[aside], to, None);
        } else {
            self.link(&[aside, other], to, None);
        }
    }

    /// What is taken when no condition before it held.
    fn add_otherwise(&mut self) {
        for from in 0..self.forward - 1 {
            let name = &self.names[from];
            let is_conditional = |link: &Link| link.when.is_some() && link.from[0] == *name;
            if self.edges.iter().any(is_conditional) && self.dice.chance(40) {
                let to = from + 1 + self.dice.below(self.forward - from - 1);
                self.link(&[from], to, Some(When::Otherwise));
            }
        }
    }

    fn finish(mut self, seed: u64) -> Sample {
        let start = self.names[0].clone();
        let is_used = |name: &String| *name == start || self.edges.iter().any(|l| l.to == *name);
        let mut names: Vec<String> =
            self.names.iter().filter(|name| is_used(name)).cloned().collect();
        names.sort();
        let mut reducers: BTreeMap<String, Reducer> =
            SHARED.into_iter().map(|(key, reducer, _)| (key.to_owned(), reducer)).collect();
        let mut nodes = vec![];
        for id in names {
            let writes = self.writes(&id);
            for key in writes.keys() {
                reducers.entry(key.clone()).or_insert(Reducer::Replace);
            }
            nodes.push(Doing { id, writes });
        }
        let state = self.state();
        Sample { seed, start, nodes, edges: self.edges, reducers, state }
    }

    fn writes(&mut self, node: &str) -> BTreeMap<String, Write> {
        let mut writes = BTreeMap::new();
        for (key, _, how) in SHARED {
            let percent = if key == "entries" { 85 } else { 40 };
            if self.dice.chance(percent) {
                writes.insert(key.to_owned(), how);
            }
        }
        if self.dice.chance(30) {
            writes.insert(format!("note-{node}"), Write::Saw);
        }
        if self.single_file {
            writes.insert("last".to_owned(), Write::Saw);
        }
        for (key, how) in [("visits", Write::Count), ("route", Write::Route)] {
            let key = format!("{key}-{node}");
            let is_asked_for = self.edges.iter().any(|link| match &link.when {
                Some(When::Equals { key: asked, .. } | When::Below { key: asked, .. }) => {
                    *asked == key
                }
                Some(When::Otherwise) | None => false,
            });
            if is_asked_for {
                writes.insert(key, how);
            }
        }
        writes
    }

    /// Some keys are there from the beginning, some come later.
    fn state(&mut self) -> Map<String, Value> {
        let mut state = Map::new();
        for (key, _, how) in SHARED {
            if self.dice.chance(60) {
                let saw = self.dice.below(1000) as i64;
                state.insert(key.to_owned(), how.value("seed", saw, &Value::Null));
            }
        }
        state
    }
}
