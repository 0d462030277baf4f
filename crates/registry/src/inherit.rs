//! Restrictions that entities have from elsewhere: from OpenCode's settings, and from the agent
//! that a command or skill runs as.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::allowed::Tools;
use crate::entity::{Entity, Kind, Origin, Provider, Scope};
use crate::finding::Finding;
use crate::permission::{self, Decision};

/// Agents that OpenCode has by itself. Settings change what they run on and may use.
pub(crate) const OWN_AGENTS: [&str; 7] =
    ["build", "plan", "general", "explore", "compaction", "summary", "title"];

/// Agents that Claude Code has by itself.
const CLAUDES_AGENTS: [&str; 6] = [
    "claude-code-guide",
    "explore",
    "general-purpose",
    "output-style-setup",
    "plan",
    "statusline-setup",
];

/// The name for restrictions in OpenCode's settings.
const SETTINGS: &str = "opencode.json";

/// An agent that is not listed, because it is one of OpenCode's own or because its prompt cannot be
/// read. Its restrictions hold for commands that run as it.
#[derive(Debug)]
pub(crate) struct UnlistedAgent {
    pub(crate) name: String,
    pub(crate) origin: Origin,
    pub(crate) tools: Tools,
}

/// The restrictions in a file of OpenCode's settings.
#[derive(Debug, Default)]
pub(crate) struct FileRestrictions {
    /// The decisions for all agents.
    pub(crate) layer: Vec<Decision>,
    /// The agent of turns and commands that name none.
    pub(crate) default_agent: Option<String>,
    pub(crate) unlisted: Vec<UnlistedAgent>,
    /// Whether `disable` is true or false, by the names of agents in lower case.
    pub(crate) disabled: BTreeMap<String, bool>,
}

/// The settings of a scope.
#[derive(Default)]
struct ScopeSettings {
    layer: Vec<Decision>,
    default_agent: Option<String>,
    /// Whether `disable` is true or false, by the names of agents in lower case.
    disabled: BTreeMap<String, bool>,
    /// Whether settings cannot be read: they may have denied every tool.
    is_lost: bool,
}

/// OpenCode's settings of all scopes.
pub(crate) struct OpenCodeSettings {
    scopes: BTreeMap<Scope, ScopeSettings>,
    unlisted: Vec<UnlistedAgent>,
    /// Whether the project is trusted.
    is_trusted: bool,
}

/// Agents by their names in lower case, with their restrictions.
type Agents = BTreeMap<String, Vec<(Origin, Tools)>>;

impl OpenCodeSettings {
    pub(crate) fn new(is_trusted: bool) -> Self {
        Self { scopes: BTreeMap::new(), unlisted: vec![], is_trusted }
    }

    /// Adds the restrictions of an agent in a folder above the project's.
    pub(crate) fn add_above(&mut self, agent: Entity) {
        let Entity { name, origin, tools, .. } = agent;
        self.unlisted.push(UnlistedAgent { name, origin, tools });
    }

    /// Adds a file of settings; without restrictions it is one that cannot be read. A later file
    /// wins over an earlier one of the same scope, as in OpenCode.
    pub(crate) fn add(&mut self, scope: Scope, file: Option<FileRestrictions>) {
        let settings = self.scopes.entry(scope).or_default();
        let Some(file) = file else {
            settings.is_lost = true;
            return;
        };
        settings.layer.extend(file.layer);
        settings.default_agent = file.default_agent.or(settings.default_agent.take());
        settings.disabled.extend(file.disabled);
        self.unlisted.extend(file.unlisted);
    }

    /// Adds the restrictions from elsewhere to entities. Returns those of turns without an agent.
    pub(crate) fn restrict(
        mut self,
        entities: &mut Vec<Entity>,
        findings: &mut Vec<Finding>,
    ) -> Tools {
        self.remove_disabled(entities, findings);
        let mut agents = Agents::new();
        for UnlistedAgent { name, origin, mut tools } in std::mem::take(&mut self.unlisted) {
            self.inherit(&mut tools, &origin, &[name.to_lowercase()]);
            agents.entry(name.to_lowercase()).or_default().push((origin, tools));
        }
        for entity in entities.iter_mut().filter(|entity| entity.kind == Kind::Agent) {
            let name = entity.name.to_lowercase();
            if entity.origin.provider == Provider::OpenCode {
                self.inherit(&mut entity.tools, &entity.origin, std::slice::from_ref(&name));
            }
            agents.entry(name).or_default().push((entity.origin.clone(), entity.tools.clone()));
        }
        for entity in entities {
            let names = self.runs_as(entity);
            let named = entity.more.get("agent").and_then(Value::as_str);
            if entity.kind != Kind::Agent {
                self.run_as(&mut entity.tools, &entity.origin, &names, &agents);
                let unknown = names.iter().find(|it| !is_known(it, &entity.origin, &agents));
                if let Some(unknown) = unknown {
                    let key = if named.is_some() { "agent" } else { "default_agent" };
                    findings.extend(deny_unknown(entity, key, unknown));
                }
                continue;
            }
            // OpenCode merges an agent in a file with one of the same name in its settings.
            let origin = &entity.origin;
            let is_merged = |other: &Origin| {
                origin.provider == Provider::OpenCode
                    && other.provider == Provider::OpenCode
                    && other.scope == origin.scope
                    && other.path != origin.path
            };
            let known = agents.get(&entity.name.to_lowercase()).into_iter().flatten();
            for (_, tools) in known.filter(|(other, it)| is_merged(other) && !it.is_everything()) {
                entity.tools.restrict(tools);
            }
        }
        self.of_turns(&agents)
    }

    /// Removes the agents of OpenCode that settings disable. Settings of another scope count as in
    /// [`Self::inherit`].
    fn remove_disabled(&mut self, entities: &mut Vec<Entity>, findings: &mut Vec<Finding>) {
        entities.retain(|entity| {
            let is_agent =
                (entity.kind, entity.origin.provider) == (Kind::Agent, Provider::OpenCode);
            let is_kept = !(is_agent && self.is_disabled(&entity.name, entity.origin.scope));
            if let Some(path) = entity.origin.path.as_ref().filter(|_| !is_kept) {
                let message =
                    format!("`agent.{}.disable` in OpenCode's settings is true", entity.name);
                findings.push(Finding::aside(path, message));
            }
            is_kept
        });
        let unlisted = std::mem::take(&mut self.unlisted);
        let is_kept = |agent: &UnlistedAgent| !self.is_disabled(&agent.name, agent.origin.scope);
        self.unlisted = unlisted.into_iter().filter(is_kept).collect();
    }

    /// Whether settings that count for a scope disable an agent.
    fn is_disabled(&self, name: &str, scope: Scope) -> bool {
        let mut settings = self.scopes.iter().filter(|(other, _)| self.counts(**other, scope));
        let name = name.to_lowercase();
        settings.any(|(_, it)| it.disabled.get(&name) == Some(&true))
    }

    /// The restrictions that OpenCode has for turns without an agent.
    fn of_turns(&self, agents: &Agents) -> Tools {
        let scope = if self.is_trusted { Scope::Project } else { Scope::User };
        let origin = Origin { scope, provider: Provider::OpenCode, path: None };
        let (mut tools, names) = (Tools::default(), self.default_agents(scope));
        self.run_as(&mut tools, &origin, &names, agents);
        if !names.iter().all(|name| is_known(name, &origin, agents)) {
            tools.restrict(&Tools::denied());
        }
        tools
    }

    /// Puts the decisions for all agents before those for these agents, which come after them.
    /// Settings of another scope can only restrict, those of a project only with trust.
    fn inherit(&self, tools: &mut Tools, origin: &Origin, agents: &[String]) {
        let of_scope = self.scopes.get(&origin.scope).map_or(&[][..], |it| it.layer.as_slice());
        let mut own: Vec<Decision> =
            agents.iter().flat_map(|agent| permission::native(agent)).collect();
        let is_native = !own.is_empty();
        own.extend_from_slice(of_scope);
        match tools.layers.first_mut() {
            Some(first) => {
                own.append(first);
                *first = own;
            }
            None if own.is_empty() => {}
            None => tools.layers.push(own),
        }
        if is_native {
            tools.by.push("OpenCode's own rules for it");
        }
        if of_scope.iter().any(|decision| !decision.allowed) {
            tools.by.push(SETTINGS);
        }
        self.restrict_by_others(tools, origin.scope);
    }

    /// Adds the settings of other scopes, and denies every tool where settings are lost.
    fn restrict_by_others(&self, tools: &mut Tools, scope: Scope) {
        let mut is_lost = false;
        for (other, settings) in &self.scopes {
            if !self.counts(*other, scope) {
                continue;
            }
            is_lost |= settings.is_lost;
            if *other != scope && !settings.layer.is_empty() {
                tools.layers.push(settings.layer.clone());
                tools.by.push(SETTINGS);
            }
        }
        if is_lost {
            tools.layers.push(permission::nothing());
            tools.by.push(SETTINGS);
            tools.unclear = true;
        }
    }

    /// Whether settings of a scope count for entities of another one.
    fn counts(&self, settings: Scope, entity: Scope) -> bool {
        let counts = match settings {
            Scope::Project => self.is_trusted,
            Scope::User => true,
            Scope::Managed | Scope::BuiltIn => false,
        };
        counts || settings == entity
    }

    /// Gives a command or skill the restrictions of the agents that it runs as.
    fn run_as(&self, tools: &mut Tools, origin: &Origin, names: &[String], agents: &Agents) {
        let is_meant = |other: &Origin| {
            let is_foreign = other.scope == Scope::Project && origin.scope != Scope::Project;
            other.provider == origin.provider && (self.is_trusted || !is_foreign)
        };
        let known = |name: &String| agents.get(name).into_iter().flatten();
        let meant: Vec<&(Origin, Tools)> =
            names.iter().flat_map(known).filter(|(other, _)| is_meant(other)).collect();
        if origin.provider == Provider::OpenCode {
            // The rules of an agent of the same scope begin with the settings.
            match meant.iter().any(|(other, _)| other.scope == origin.scope) {
                true => self.restrict_by_others(tools, origin.scope),
                false => self.inherit(tools, origin, names),
            }
        }
        let only_reads = |name: &String| ["explore", "plan"].contains(&name.as_str());
        if origin.provider == Provider::Claude && names.iter().any(only_reads) {
            tools.layers.push(permission::reading());
        }
        for (_, others) in meant {
            if !others.is_everything() {
                tools.restrict(others);
            }
        }
    }

    /// The agents that a command or skill runs as, in lower case, where its program gives it their
    /// restrictions.
    fn runs_as(&self, entity: &Entity) -> Vec<String> {
        let text = |key: &str| {
            let value = entity.more.get(key).and_then(Value::as_str);
            value.map(|value| value.trim().to_lowercase())
        };
        match (entity.origin.provider, entity.kind) {
            (Provider::OpenCode, Kind::Command) => match text("agent") {
                Some(agent) => vec![agent],
                None => self.default_agents(entity.origin.scope),
            },
            (Provider::OpenCode, Kind::Skill) => self.default_agents(entity.origin.scope),
            (Provider::Claude, Kind::Skill | Kind::Command) => {
                let is_forked = text("context").is_some_and(|context| context == "fork");
                text("agent").filter(|_| is_forked).into_iter().collect()
            }
            _ => vec![],
        }
    }

    /// The agents of turns that name none. A project does not replace the user's choice: both have
    /// to allow a use.
    fn default_agents(&self, scope: Scope) -> Vec<String> {
        let settings = self.scopes.iter().filter(|(other, _)| self.counts(**other, scope));
        // Without `build`, OpenCode takes `plan`.
        let chosen = settings.filter_map(|(_, settings)| match &settings.default_agent {
            Some(name) => Some(name.as_str()),
            None => (settings.disabled.get("build") == Some(&true)).then_some("plan"),
        });
        let chosen: BTreeSet<String> = chosen.map(|name| name.trim().to_lowercase()).collect();
        match chosen.is_empty() {
            true => vec!["build".to_owned()],
            false => chosen.into_iter().collect(),
        }
    }
}

/// Whether an entity's program knows an agent.
fn is_known(name: &str, origin: &Origin, agents: &Agents) -> bool {
    let own: &[&str] = match origin.provider {
        Provider::OpenCode => &OWN_AGENTS,
        Provider::Claude => &CLAUDES_AGENTS,
        Provider::Atomic | Provider::Copilot => return true,
    };
    let mut known = agents.get(name).into_iter().flatten();
    own.contains(&name) || known.any(|(other, _)| other.provider == origin.provider)
}

/// Denies every tool to an entity that runs as an agent that is not known: its restrictions are not
/// known either.
fn deny_unknown(entity: &mut Entity, key: &'static str, name: &str) -> Option<Finding> {
    entity.tools.restrict(&Tools { by: vec![key], ..Tools::denied() });
    let message = format!("`{key}: {name}` is not known, so all tools are denied");
    let remedy = "write the name of an agent; atomic list shows them";
    entity.origin.path.as_ref().map(|path| Finding::odd(path, message, remedy))
}
