//! Nodes at which something is done.

use atomic_event::BackendId;
use atomic_graph::{Kind, NodeId};
use serde_json::Value;

use super::Role;
use super::fault::code;
use super::fields::Fields;
use super::reader::Reader;
use crate::{
    Action, AgentAction, BACKENDS, ContextAction, ContextMonitor, Entry, EntryKind, Shell, Text,
    backend_called,
};

/// What an agent is asked when its author does not say.
const THE_PROMPT: &str = "{prompt}";

/// A node at which this is done.
pub(super) fn doing(action: &Action) -> Kind {
    action.node("").kind
}

pub(super) fn clear_context() -> Kind {
    doing(&Action::ClearContext)
}

/// An agent without a persona, asked in the conversation of its lane.
pub(super) fn plain_agent(id: &NodeId, prompt: Text) -> AgentAction {
    AgentAction {
        instructions: Some(String::new()),
        questions: true,
        ..AgentAction::new(id.as_str(), prompt)
    }
}

/// What stands for a node that could not be read.
pub(super) fn unreadable() -> Kind {
    Kind::Work { action: Value::Null, launch: false, asks: false }
}

impl<'d> Reader<'d, '_, '_> {
    pub(super) fn agent(&mut self, fields: &mut Fields<'d>, id: &NodeId, fresh: bool) -> Kind {
        let keys = ["agent", "agentName"];
        let agent = match fresh {
            true => fields.need(&keys, "the name of the agent", &mut self.faults),
            false => fields.take_one_of(&keys, &mut self.faults),
        };
        let agent = agent.and_then(|agent| self.name(agent));
        let prompt = fields.take_one_of(&["prompt", "task"], &mut self.faults);
        let prompt = prompt.map(|prompt| self.text(prompt));
        let prompt = prompt.unwrap_or_else(|| Text::Template(THE_PROMPT.to_owned()));
        let mut action = plain_agent(id, prompt);
        if let Some(agent) = agent {
            action.agent = agent.into();
            action.instructions = None;
        }
        if let Some(item) = fields.take_one_of(&["systemPrompt", "instructions"], &mut self.faults)
        {
            action.instructions = self.words(item).map(str::to_owned);
        }
        if let Some(item) = fields.take("questions") {
            action.questions = self.flag(item);
        }
        if let Some(item) = fields.take("tools") {
            let message = "a node cannot say which tools its agent may use";
            let remedy = "make an agent with these `tools`, in .atomic/agents, and name it here";
            self.faults.add(code::UNKNOWN_KEY, item.at, message, remedy);
        }
        action.backend = self.backend(fields);
        action.fresh = fresh;
        action.map = self.mapper(fields);
        doing(&Action::Agent(action))
    }

    /// The backend that a node which launches an agent names.
    fn backend(&mut self, fields: &mut Fields<'d>) -> Option<BackendId> {
        let item = fields.take_one_of(&["backend", "agentType"], &mut self.faults)?;
        if let Some(known) = item.as_text().and_then(backend_called) {
            return Some(known);
        }
        let words = BACKENDS.map(|name| (name, backend_called(name)));
        let named = self.word(item, &words)?;
        if named.is_none() {
            let message = "it does not name a command";
            let remedy = "write the command of the program, as in \"acp:gemini --acp\"";
            self.faults.add(code::OUT_OF_RANGE, item.at, message, remedy);
        }
        named
    }

    /// What makes changes to the state out of a node's output.
    fn mapper(&mut self, fields: &mut Fields<'d>) -> Option<atomic_graph::FunctionId> {
        fields.take("outputMapper").and_then(|item| self.function(item, Role::Map))
    }

    pub(super) fn entry(&mut self, fields: &mut Fields<'d>, is_skill: bool) -> Kind {
        let (key, kind) = match is_skill {
            true => ("skill", EntryKind::Skill),
            false => ("command", EntryKind::Command),
        };
        let name = fields.need(&[key], "its name", &mut self.faults);
        let name = name.and_then(|name| self.name(name)).unwrap_or_default().to_owned();
        let backend = self.backend(fields);
        let args = fields.take("args").map(|args| self.text(args));
        let args = args.unwrap_or_else(|| Text::Template(String::new()));
        let map = self.mapper(fields);
        doing(&Action::Entry(Entry { kind, name, backend, args, map }))
    }

    pub(super) fn tool(&mut self, fields: &mut Fields<'d>) -> Kind {
        let execute = fields.take("execute");
        let command = fields.take_one_of(&["command", "shell"], &mut self.faults);
        match (execute, command) {
            (Some(execute), None) => {
                let call = self.function(execute, Role::Execute);
                if let Some(mapper) = fields.take("outputMapper") {
                    let message = "a function makes its changes to the state itself";
                    let remedy = "return the changes from `execute`, and remove `outputMapper`";
                    self.faults.add(code::SAID_TWICE, mapper.at, message, remedy);
                }
                call.map_or_else(unreadable, |call| doing(&Action::Function { call }))
            }
            (None, Some(command)) => {
                self.mark(Some("action"), command.at);
                let command = self.text(command);
                let map = self.mapper(fields);
                doing(&Action::Shell(Shell { command, map }))
            }
            (Some(_), Some(command)) => {
                let message = "a tool is either a function or a shell command";
                let remedy = "remove one of `execute` and `command`";
                self.faults.add(code::SAID_TWICE, command.at, message, remedy);
                fields.take("outputMapper");
                unreadable()
            }
            (None, None) => {
                fields.lacks("command", "what to run in a shell", &mut self.faults);
                fields.take("outputMapper");
                unreadable()
            }
        }
    }

    pub(super) fn custom(&mut self, fields: &mut Fields<'d>) -> Kind {
        let execute = fields.need(&["execute"], "the function to call", &mut self.faults);
        let call = execute.and_then(|execute| self.function(execute, Role::Custom));
        call.map_or_else(unreadable, |call| doing(&Action::Function { call }))
    }

    pub(super) fn context_monitor(&mut self, fields: &mut Fields<'d>) -> Kind {
        let threshold = fields.take("threshold").and_then(|item| self.fraction(item, 1.0));
        let known = [
            ("compact", ContextAction::Compact),
            ("fresh", ContextAction::Fresh),
            ("warn", ContextAction::Warn),
        ];
        let action = fields.take("action").and_then(|item| self.word(item, &known));
        doing(&Action::ContextMonitor(ContextMonitor {
            threshold: threshold.unwrap_or(0.8),
            action: action.unwrap_or_default(),
        }))
    }
}
