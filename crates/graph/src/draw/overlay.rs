//! How far a run has come, to be laid over the picture of its graph.

use std::collections::BTreeMap;

use super::regions::{around, with_regions};
use crate::id::Stop;
use crate::{Graph, Kind, OnError, StepId};

/// How a node of a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It did its work.
    Completed,
    /// It was left out, or its failure was passed over.
    Skipped,
    /// It waits for its turn.
    Waiting,
    /// It was stopped because of something else.
    Cancelled,
    /// It was cut off.
    Lost,
    /// It failed for good.
    Failed,
    /// It is at work.
    Running,
    /// It waits for an answer of the user.
    Asking,
}

impl Status {
    /// Every status, the least urgent first.
    pub const ALL: [Self; 8] = [
        Self::Completed,
        Self::Skipped,
        Self::Waiting,
        Self::Cancelled,
        Self::Lost,
        Self::Failed,
        Self::Running,
        Self::Asking,
    ];

    /// A mark that tells it without colour.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Completed => "✓",
            Self::Skipped => "–",
            Self::Waiting => "○",
            Self::Cancelled => "⊘",
            Self::Lost => "↯",
            Self::Failed => "✗",
            Self::Running => "●",
            Self::Asking => "?",
        }
    }

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Skipped => "skipped",
            Self::Waiting => "waiting",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
            Self::Failed => "failed",
            Self::Running => "running",
            Self::Asking => "asking",
        }
    }
}

/// How one node of a picture stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// In how many lanes it stands how. A node inside a fan has a lane for every item, any other
    /// node has one; what counts is its latest visit there.
    pub lanes: BTreeMap<Status, u32>,
    /// How often it was visited, in all lanes.
    pub visits: u32,
    /// How long its attempts took together.
    pub took_ms: Option<u64>,
    /// Something more to say about it.
    pub note: Option<String>,
}

impl Mark {
    /// A node visited once that stands like this.
    pub fn new(status: Status) -> Self {
        Self { lanes: BTreeMap::from([(status, 1)]), visits: 1, ..Self::default() }
    }

    /// The most urgent status of all its lanes.
    pub fn status(&self) -> Option<Status> {
        self.lanes.last_key_value().map(|(status, _)| *status)
    }

    /// The lanes in short: `✓`, or `6✓ 1✗` where there are several.
    pub fn symbols(&self) -> String {
        if self.lanes.values().sum::<u32>() == 1 {
            return self.status().map(Status::symbol).unwrap_or_default().to_owned();
        }
        let parts: Vec<_> = self
            .lanes
            .iter()
            .map(|(status, count)| format!("{count}{}", status.symbol()))
            .collect();
        parts.join(" ")
    }
}

/// What is known of a run. The default is no run at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlay {
    /// Marks set by hand; they beat those made from steps. The key is the path of a node: the ids
    /// from the outside in joined by `/`, a branch in brackets after its node, as in
    /// `tasks/worker` or `both[left]/build`.
    pub nodes: BTreeMap<String, Mark>,
    steps: BTreeMap<StepId, Seen>,
    /// When the first and the last was heard from inside a visit.
    spans: BTreeMap<String, (u64, u64)>,
    added: u64,
}

/// What was last heard of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) status: Status,
    pub(super) took_ms: Option<u64>,
    /// The later one speaks for the lane.
    pub(super) order: u64,
}

impl Overlay {
    /// Learns how a step stands. To be called in the order of the journal: what is said last
    /// holds. The times of a step's attempts add up, so each is to be told once.
    pub fn add(&mut self, step: &StepId, status: Status, took_ms: Option<u64>) {
        self.added += 1;
        let order = self.added;
        let seen = self.steps.entry(step.clone()).or_insert(Seen { status, took_ms: None, order });
        seen.status = status;
        seen.order = order;
        if let Some(more) = took_ms {
            seen.took_ms = Some(seen.took_ms.unwrap_or(0).saturating_add(more));
        }
    }

    /// Learns when something was heard of a step: so long are the nodes around it at work.
    pub fn heard(&mut self, step: &StepId, at_ms: u64) {
        for visit in around(step.as_str()) {
            let (_, last) = self.spans.entry(visit.to_owned()).or_insert((at_ms, at_ms));
            *last = at_ms.max(*last);
        }
    }

    /// Whether there is nothing to lay over.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.steps.is_empty()
    }

    /// The marks by the paths of `graph`. Steps of nodes it does not have are left out.
    pub(super) fn marks(&self, graph: &Graph) -> BTreeMap<String, Mark> {
        let mut spots = BTreeMap::new();
        collect_spots(graph, "", &mut spots);
        let mut lanes: BTreeMap<String, BTreeMap<String, Seen>> = BTreeMap::new();
        let mut marks: BTreeMap<String, Mark> = BTreeMap::new();
        for (visit, seen) in with_regions(&self.steps, &self.spans, &spots) {
            let Some((path, lane)) = place(&StepId::new(visit).stops(), &spots) else { continue };
            let mark = marks.entry(path.clone()).or_default();
            mark.visits += 1;
            if let Some(took) = seen.took_ms {
                mark.took_ms = Some(mark.took_ms.unwrap_or(0).saturating_add(took));
            }
            let latest = lanes.entry(path).or_default().entry(lane).or_insert(seen);
            if seen.order > latest.order {
                *latest = seen;
            }
        }
        for (path, lanes) in lanes {
            let mark = marks.entry(path).or_default();
            for seen in lanes.values() {
                *mark.lanes.entry(seen.status).or_default() += 1;
            }
        }
        marks.extend(self.nodes.iter().map(|(path, mark)| (path.clone(), mark.clone())));
        marks
    }
}

/// The path of the node `id` inside `scope`.
pub(super) fn join(scope: &str, id: &str) -> String {
    if scope.is_empty() { id.to_owned() } else { format!("{scope}/{id}") }
}

/// The path of what is inside the node at `path`: itself, or one of its branches.
pub(super) fn inside(path: &str, branch: Option<&str>) -> String {
    branch.map_or_else(|| path.to_owned(), |branch| format!("{path}[{branch}]"))
}

/// A node of the graph, wherever it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot<'g> {
    pub(super) kind: &'g Kind,
    /// Whether the graph goes on when it fails.
    pub(super) is_caught: bool,
}

fn collect_spots<'g>(graph: &'g Graph, scope: &str, spots: &mut BTreeMap<String, Spot<'g>>) {
    for node in &graph.nodes {
        let path = join(scope, node.id.as_str());
        for (branch, inner) in node.inner() {
            collect_spots(inner, &inside(&path, branch.map(crate::NodeId::as_str)), spots);
        }
        let by_graph = graph.catch.as_ref().is_some_and(|catch| *catch != node.id);
        let is_caught = by_graph || !matches!(node.on_error, OnError::Abort);
        spots.entry(path).or_insert(Spot { kind: &node.kind, is_caught });
    }
}

/// The path of the node that a step visited, and the lane it did so in. Rounds of a loop follow
/// each other, so they share a lane; items run beside each other, so they do not.
pub(super) fn place(
    stops: &[Stop<'_>],
    spots: &BTreeMap<String, Spot<'_>>,
) -> Option<(String, String)> {
    let (mut scope, mut lane) = (String::new(), String::new());
    let mut path = String::new();
    for (number, stop) in stops.iter().enumerate() {
        path = join(&scope, stop.node);
        let kind = spots.get(&path)?.kind;
        let branch = match kind {
            Kind::Parallel(_) => stop.inside.as_deref(),
            // A call does not say what it is made of; what comes next does.
            Kind::Script(script) => stops.get(number + 1).and_then(|next| {
                let body =
                    |name: &&str| spots.contains_key(&join(&inside(&path, Some(name)), next.node));
                script.bodies.iter().map(|body| body.id.as_str()).find(body)
            }),
            Kind::Work { .. }
            | Kind::Decision
            | Kind::Subgraph { .. }
            | Kind::Loop { .. }
            | Kind::Each(_) => None,
        };
        scope = inside(&path, branch);
        if let (Kind::Each(_) | Kind::Script(_), Some(item)) = (kind, &stop.inside) {
            lane.push('/');
            lane.push_str(item);
        }
    }
    Some((path, lane)).filter(|_| !stops.is_empty())
}
