//! Agents, skills and commands by name, as a run uses them.

use std::path::{Path, PathBuf};

use atomic_backend::{Persona, ToolDecision, ToolRule, ToolRules};
use atomic_event::{AgentName, BackendId, StepError};
use atomic_registry::{
    Decision, Entity, Kind, NotFound, Prompt, Registry, Scope, Tools, arguments, tools,
};
use atomic_workflow::{AgentAction, Entry, EntryKind};

use crate::run::Run;
use crate::settings::Settings;

/// What an entity comes to in a turn.
pub(crate) struct Script {
    /// What it is called, whatever it was called by.
    pub(crate) name: AgentName,
    /// Its prompt.
    pub(crate) prompt: String,
    /// The model it wants here, when it wants one.
    pub(crate) model: Option<String>,
    /// What it may use here.
    pub(crate) tools: ToolRules,
}

impl Run {
    /// Who an agent is told to be.
    pub(crate) fn persona(
        &self,
        action: &AgentAction,
        on: &BackendId,
    ) -> Result<Script, StepError> {
        let name = action.agent.as_str();
        let entity = match action.role {
            true => agent_of_role(&self.stage.registry, &self.settings, name),
            false => self.stage.registry.get(Kind::Agent, name),
        };
        let entity = entity.map_err(misconfigured)?;
        let name = AgentName::from(entity.name.as_str());
        let (prompt, model) = (self.prompt_of(entity)?, model_of(entity, on));
        Ok(Script { name, prompt, model, tools: tools_of(entity, on) })
    }

    /// What an agent is told to do by a skill or a command.
    pub(crate) fn entry(
        &self,
        entry: &Entry,
        args: &str,
        on: &BackendId,
    ) -> Result<Script, StepError> {
        let kind = match entry.kind {
            EntryKind::Skill => Kind::Skill,
            EntryKind::Command => Kind::Command,
        };
        let entity = self.entity(kind, &entry.name)?;
        arguments::require(entity, args).map_err(misconfigured)?;
        let mut prompt = arguments::filled(entity, &self.prompt_of(entity)?, args);
        if let Some(folder) = self.folder_of(entity)? {
            prompt = format!("The files this skill names are in {}\n\n{prompt}", folder.display());
        }
        let name = AgentName::from(entity.name.as_str());
        let (model, tools) = (model_of(entity, on), tools_of(entity, on));
        Ok(Script { name, prompt, model, tools })
    }

    /// Every agent there is, for one that may start others.
    pub(crate) fn helpers(&self, on: &BackendId) -> Vec<Persona> {
        helpers(&self.stage.registry, on)
    }

    fn entity(&self, kind: Kind, name: &str) -> Result<&Entity, StepError> {
        self.stage.registry.get(kind, name).map_err(misconfigured)
    }

    fn prompt_of(&self, entity: &Entity) -> Result<String, StepError> {
        self.stage.registry.prompt(entity).map_err(misconfigured)
    }

    /// Where the other files of a skill are, when it has any. An agent cannot look into this
    /// program, so what ships with it is put beside the session.
    fn folder_of(&self, entity: &Entity) -> Result<Option<PathBuf>, StepError> {
        if entity.kind != Kind::Skill {
            return Ok(None);
        }
        let pages = self.stage.registry.pages(entity);
        match (entity.origin.scope, entity.origin.path.as_deref().and_then(Path::parent)) {
            (Scope::BuiltIn, _) if pages.is_empty() => Ok(None),
            (Scope::BuiltIn, _) => {
                let folder = self.session.dir().join("skills").join(&entity.name);
                self.lay_out(&folder, pages)?;
                Ok(Some(folder))
            }
            (Scope::Project | Scope::User | Scope::Managed, Some(folder)) => {
                let has_more = entity.prompt == Prompt::InFile && holds_more(folder);
                Ok(has_more.then(|| folder.to_owned()))
            }
            (Scope::Project | Scope::User | Scope::Managed, None) => Ok(None),
        }
    }

    fn lay_out(&self, folder: &Path, pages: &[(&str, &str)]) -> Result<(), StepError> {
        let disk = self.stage.disk.as_ref();
        for (name, text) in pages {
            let path = folder.join(name);
            let written = (|| {
                if disk.exists(&path)? {
                    return Ok(());
                }
                path.parent().map_or(Ok(()), |parent| disk.create_dir(parent))?;
                disk.replace(&path, text.as_bytes())
            })();
            written.map_err(|error: std::io::Error| {
                let message = format!("{} cannot be written: {error}", path.display());
                StepError::new("disk", message)
            })?;
        }
        Ok(())
    }
}

/// The agent for a role of a built-in workflow: the one the user has chosen for it, else the one
/// of that name that may have the role.
pub fn agent_of_role<'r>(
    registry: &'r Registry,
    settings: &Settings,
    role: &str,
) -> Result<&'r Entity, NotFound> {
    registry.role(settings.roles.get(role).map_or(role, String::as_str))
}

/// Every agent of a registry, for one on a backend that may start others. One that cannot be read
/// is not there.
pub fn helpers(registry: &Registry, on: &BackendId) -> Vec<Persona> {
    let agents = registry.all().filter(|entity| entity.kind == Kind::Agent);
    let persona = |entity: &Entity| {
        Some(Persona {
            name: entity.name.clone(),
            description: entity.description.to_string(),
            prompt: registry.prompt(entity).ok()?,
            tools: tools_of(entity, on),
            model: model_of(entity, on),
        })
    };
    agents.filter(|entity| !entity.hidden).filter_map(persona).collect()
}

/// The tools that an entity may use, in the names of a backend.
pub fn tools_of(entity: &Entity, on: &BackendId) -> ToolRules {
    rules(&entity.tools, on)
}

/// The tools that a turn without an agent may use, in the names of a backend.
pub fn tools_of_turn(registry: &Registry, on: &BackendId) -> ToolRules {
    let tools = registry.tools_of_turns(on.as_str());
    tools.map_or_else(ToolRules::default, |tools| rules(tools, on))
}

fn rules(tools: &Tools, on: &BackendId) -> ToolRules {
    let backend = on.as_str();
    let rules = |names: &[String]| {
        let named = names.iter().flat_map(|name| tools::on(backend, name));
        named.map(|(tool, uses)| ToolRule::new(&tool, uses)).collect()
    };
    let layer = |decisions: &Vec<Decision>| {
        let named = decisions.iter().flat_map(|decision| {
            let Decision { uses, allowed, .. } = decision;
            let names = decision.on(backend).into_iter();
            names.map(|tool| ToolDecision::new(&tool, uses.as_deref(), *allowed))
        });
        named.collect()
    };
    // A layer that denies nothing restricts nothing.
    let restricts = |layer: &&Vec<Decision>| layer.iter().any(|decision| !decision.allowed);
    ToolRules {
        only: tools.only.as_deref().map(rules),
        without: rules(&tools.without),
        layers: tools.layers.iter().filter(restricts).map(layer).collect(),
    }
}

/// The model an entity wants on a backend.
fn model_of(entity: &Entity, on: &BackendId) -> Option<String> {
    let model = entity.model.as_ref()?.on(on.as_str(), entity.origin.provider)?;
    Some(model.to_owned())
}

/// Whether there is something beside the skill's own file.
fn holds_more(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|entries| entries.take(2).count() > 1)
}

/// Nothing a retry would change.
fn misconfigured(problem: impl std::fmt::Display) -> StepError {
    StepError::new("misconfigured", problem.to_string())
}
