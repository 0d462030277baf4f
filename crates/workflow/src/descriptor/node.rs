//! One node: its type, its id, and what every node may have.

use std::collections::{BTreeMap, BTreeSet};

use atomic_graph::{Count, Edge, Kind, Node, NodeId};
use serde_json::Value;

use super::fields::Fields;
use super::json::Item;
use super::reader::{Reader, plain};
use super::rules::{self, Asked};

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Agent,
    Subagent,
    ParallelSubagent,
    Skill,
    Command,
    Tool,
    Custom,
    Decision,
    Parallel,
    Each,
    Loop,
    Subgraph,
    Wait,
    AskUser,
    TaskLoop,
    CriteriaLoop,
    ClearContext,
    ContextMonitor,
}

impl Type {
    /// Every type, as authors write it.
    pub(super) const ALL: [(&'static str, Self); 18] = [
        ("agent", Self::Agent),
        ("subagent", Self::Subagent),
        ("parallelSubagent", Self::ParallelSubagent),
        ("skill", Self::Skill),
        ("command", Self::Command),
        ("tool", Self::Tool),
        ("custom", Self::Custom),
        ("decision", Self::Decision),
        ("parallel", Self::Parallel),
        ("each", Self::Each),
        ("loop", Self::Loop),
        ("subgraph", Self::Subgraph),
        ("wait", Self::Wait),
        ("askUser", Self::AskUser),
        ("taskLoop", Self::TaskLoop),
        ("criteriaLoop", Self::CriteriaLoop),
        ("clearContext", Self::ClearContext),
        ("contextMonitor", Self::ContextMonitor),
    ];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }

    /// What such a node is called when its author gives it no id.
    fn usual_id(self, fields: &Fields<'_>) -> String {
        let named = |keys: &[&str]| {
            let name = keys.iter().find_map(|key| fields.peek(key)?.as_text());
            name.map_or_else(|| self.word().to_owned(), |name| format!("{}-{name}", self.word()))
        };
        let id = match self {
            Self::Agent | Self::Subagent => named(&["agent", "agentName"]),
            Self::Skill => named(&["skill"]),
            Self::Command => named(&["command"]),
            Self::Subgraph => named(&["workflow", "subgraph", "graph"]),
            Self::ParallelSubagent => "parallel-subagent".to_owned(),
            Self::AskUser => "ask-user".to_owned(),
            Self::TaskLoop => "task-loop".to_owned(),
            Self::CriteriaLoop => "criteria-loop".to_owned(),
            Self::ClearContext => "clear-context".to_owned(),
            Self::ContextMonitor => "context-monitor".to_owned(),
            Self::Tool
            | Self::Custom
            | Self::Decision
            | Self::Parallel
            | Self::Each
            | Self::Loop
            | Self::Wait => self.word().to_owned(),
        };
        // What a step's name needs for itself cannot be in an id.
        id.replace(['/', '[', ']'], "-")
    }

    /// A node of this type, for a sentence.
    fn phrase(self) -> String {
        let word = self.word();
        let article = if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {word} node")
    }
}

fn usual_id(found: Option<Type>, fields: &Fields<'_>) -> String {
    found.map_or_else(|| "node".to_owned(), |found| found.usual_id(fields))
}

/// What a node is called, also before it is read.
pub(super) fn id_of(item: &Item) -> String {
    if let Some(id) = item.find("id").and_then(Item::as_text).filter(|id| !id.trim().is_empty()) {
        return id.to_owned();
    }
    let word = item.find("type").and_then(Item::as_text).map(plain);
    let found = Type::ALL.iter().find(|(known, _)| Some(plain(known)) == word);
    let fields = Fields::new(item, item.as_object().unwrap_or_default(), "");
    usual_id(found.map(|(_, found)| *found), &fields)
}

/// The ids of one graph that are taken.
#[derive(Default)]
pub(super) struct Ids {
    taken: BTreeSet<String>,
    /// How many were made from the same word.
    made: BTreeMap<String, u32>,
}

impl Ids {
    /// The ids that are written down, so that made-up ones keep clear of them.
    pub(super) fn of<'i>(items: impl Iterator<Item = &'i Item>) -> Self {
        let ids = items.filter_map(|item| item.find("id")?.as_text());
        Self { taken: ids.map(str::to_owned).collect(), made: BTreeMap::new() }
    }

    /// An id that is not taken: this one, or with a number behind it.
    pub(super) fn make(&mut self, wanted: &str) -> String {
        let made = self.made.entry(wanted.to_owned()).or_default();
        loop {
            *made += 1;
            let id = if *made == 1 { wanted.to_owned() } else { format!("{wanted}-{made}") };
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// A node, and the edges that are written inside it, with their places.
pub(super) struct Written {
    pub(super) node: Node,
    pub(super) edges: Vec<(Edge, usize)>,
}

/// The parts of a node as the checks of a graph call them.
const PARTS: &[(&str, &str)] = &[
    ("retry", "retry"),
    ("onError", "on_error"),
    ("onRevive", "on_revive"),
    ("timeoutMs", "timeout_ms"),
    ("timeout", "timeout_ms"),
    ("inputSchema", "input_schema"),
    ("outputSchema", "output_schema"),
    ("schema", "output_schema"),
    ("model", "model"),
    ("maxVisits", "max_visits"),
    ("until", "until"),
    ("maxIterations", "max_rounds"),
    ("over", "over"),
    ("workers", "workers"),
    ("item", "item"),
    ("failFast", "fail_fast"),
    ("merge", "merge"),
    ("inputMapper", "input"),
    ("outputMapper", "output"),
    ("outputMapper", "merge"),
    ("agent", "action"),
    ("agentName", "action"),
    ("skill", "action"),
    ("command", "action"),
    ("execute", "action"),
];

impl<'d> Reader<'d, '_, '_> {
    /// Reads a node. What is wrong with it is reported, and what is left of it kept, so that the
    /// graph around it can still be looked at.
    pub(super) fn node(&mut self, item: &'d Item, ids: &mut Ids) -> Option<Written> {
        let mut fields = self.object(item, "a node")?;
        let found = match fields.take("type") {
            Some(word) => self.word(word, &Type::ALL),
            // A plain node is nothing but its function.
            None if fields.peek("execute").is_some() => Some(Type::Custom),
            None => {
                fields.need(&["type"], "such as \"agent\" or \"tool\"", &mut self.faults);
                None
            }
        };
        self.node_of(found, fields, ids, None)
    }

    /// Reads a node whose type is known; `usual` is what it is called if it has no id.
    pub(super) fn node_of(
        &mut self,
        found: Option<Type>,
        mut fields: Fields<'d>,
        ids: &mut Ids,
        usual: Option<&str>,
    ) -> Option<Written> {
        let written = fields.take("id").and_then(|id| self.name(id));
        let usual = || usual.map_or_else(|| usual_id(found, &fields), str::to_owned);
        let id = written.map_or_else(|| ids.make(&usual()), str::to_owned);
        if let Some(found) = found {
            fields.turn_out(found.phrase());
        }
        self.path.push(NodeId::from(id.as_str()));
        self.mark(None, fields.at);
        for (key, part) in PARTS {
            if let Some(item) = fields.peek(key) {
                self.mark(Some(part), item.at);
            }
        }
        let node =
            Node::new(id.as_str(), Kind::Work { action: Value::Null, launch: false, asks: false });
        let mut written = Written { node, edges: vec![] };
        if let Some(found) = found {
            self.kind(found, &mut fields, &mut written);
            self.options(&mut fields, &mut written.node);
            fields.finish(&mut self.faults);
        }
        if let Some((text, _, is_used)) = self.descriptions.get_mut(id.as_str()) {
            *is_used = true;
            written.node.description.get_or_insert((*text).to_owned());
        }
        self.path.pop();
        Some(written)
    }

    fn kind(&mut self, found: Type, fields: &mut Fields<'d>, written: &mut Written) {
        let id = written.node.id.clone();
        written.node.kind = match found {
            Type::Agent => self.agent(fields, &id, false),
            Type::Subagent => self.agent(fields, &id, true),
            Type::Skill | Type::Command => self.entry(fields, found == Type::Skill),
            Type::Tool => self.tool(fields),
            Type::Custom => self.custom(fields),
            Type::Wait => self.wait(fields),
            Type::AskUser => self.ask_user(fields),
            Type::ClearContext => super::work::clear_context(),
            Type::ContextMonitor => self.context_monitor(fields),
            Type::Decision => {
                self.routes(fields, written);
                Kind::Decision
            }
            Type::Parallel => self.parallel(fields),
            Type::ParallelSubagent => self.parallel_subagent(fields),
            Type::Each => self.each(fields),
            Type::Loop => self.repeat(fields),
            Type::Subgraph => self.subgraph(fields, &mut written.node),
            Type::TaskLoop => self.task_loop(fields),
            Type::CriteriaLoop => self.criteria_loop(fields),
        };
    }

    /// The routes of a decision are edges that are written inside it.
    fn routes(&mut self, fields: &mut Fields<'d>, written: &mut Written) {
        let from = || vec![written.node.id.clone()];
        let routes = fields.take("routes").map(|routes| self.list(routes, "a list of routes"));
        for route in routes.unwrap_or_default() {
            let Some(mut fields) = self.object(route, "a route") else { continue };
            let when = fields.need(&["condition"], "when to take it", &mut self.faults);
            let when = when.map(|when| self.condition(when, Asked::OnEdge));
            let when = Some(when.unwrap_or_else(rules::unreadable));
            let to = fields.need(&["target"], "where it leads", &mut self.faults);
            let to = to.and_then(|to| self.name(to));
            self.label(&mut fields);
            fields.finish(&mut self.faults);
            if let Some(to) = to {
                let edge = Edge { from: from(), to: NodeId::from(to), when };
                written.edges.push((edge, route.at));
            }
        }
        let fallback = fields.take("fallback");
        if let Some((item, to)) = fallback.and_then(|item| Some((item, self.name(item)?))) {
            let when = Some(atomic_graph::Condition::Otherwise);
            written.edges.push((Edge { from: from(), to: NodeId::from(to), when }, item.at));
        }
    }

    /// What every node may have.
    fn options(&mut self, fields: &mut Fields<'d>, node: &mut Node) {
        if let Some(item) = fields.take("description") {
            node.description = self.words(item).map(str::to_owned);
        }
        let retry = fields.take("retry");
        if let Some(item) = retry {
            node.retry = self.retry(item);
        }
        if let Some(item) = fields.take("onError") {
            self.on_error(item, node, retry.is_some());
        }
        if let Some(item) = fields.take("onLost") {
            node.on_lost = self.on_lost(item);
        }
        if let Some(item) = fields.take("onRevive") {
            node.on_revive = self.name(item).map(NodeId::from);
        }
        if let Some(item) = fields.take("maxVisits") {
            node.max_visits = self.count(item);
        }
        if let Some(item) = fields.take("targets") {
            self.mark_all("targets", item);
            node.targets = self.names(item).into_iter().map(NodeId::from).collect();
        }
        if let Some(item) = fields.take_one_of(&["timeoutMs", "timeout"], &mut self.faults) {
            node.timeout_ms = self.number(item, 1);
        }
        if let Some(item) = fields.take("inputSchema") {
            node.input_schema = self.schema(item);
        }
        if let Some(item) = fields.take_one_of(&["outputSchema", "schema"], &mut self.faults) {
            node.output_schema = self.schema(item);
        }
        if let Some(item) = fields.take("model") {
            node.model = self.name(item).map(str::to_owned);
        }
    }

    /// Notes where a list and its items are.
    pub(super) fn mark_all(&mut self, part: &str, item: &'d Item) {
        self.mark(Some(part), item.at);
        for (number, inner) in item.as_list().unwrap_or_default().iter().enumerate() {
            self.mark(Some(&format!("{part}[{number}]")), inner.at);
        }
    }

    /// How many at once: written down, or the run's own number of workers.
    pub(super) fn workers(&mut self, fields: &mut Fields<'d>) -> Count {
        let workers = fields.take("workers").and_then(|item| self.count(item));
        workers.unwrap_or_else(|| Count::Key(crate::WORKERS.into()))
    }
}
