//! The nodes that do something: agents, skills, commands, tools, questions, decisions.

use std::sync::Arc;

use atomic_event::{AgentName, Choice, Question};
use atomic_graph::{Condition, Kind, NodeId};
use serde_json::Value;

use super::draft::{Draft, When, Words};
use super::error::codes;
use super::lower::Site;
use crate::action::{Action, AgentAction, Asking, ContextMonitor, Entry, EntryKind, Shell};
use crate::function::Function;
use crate::typed::{Outcome, Update, View};

/// A prompt for an agent.
pub struct Agent<S> {
    pub(super) name: AgentName,
    prompt: Words<S>,
    backend: Option<String>,
    model: Option<String>,
    instructions: Option<String>,
    parse: Option<Function>,
    fresh: bool,
    questions: bool,
    helpers: bool,
    iteration: bool,
}

impl<S> Agent<S> {
    /// A prompt for the agent of this name.
    pub fn new(name: impl Into<AgentName>, prompt: impl Into<Words<S>>) -> Self {
        Self {
            name: name.into(),
            prompt: prompt.into(),
            backend: None,
            model: None,
            instructions: None,
            parse: None,
            fresh: false,
            questions: false,
            helpers: false,
            iteration: false,
        }
    }

    /// Says who the agent is, in place of looking it up by name.
    #[must_use]
    pub fn instructions(mut self, instructions: &str) -> Self {
        self.instructions = Some(instructions.to_owned());
        self
    }

    /// Sets the backend it runs on, in place of the run's.
    #[must_use]
    pub fn backend(mut self, backend: &str) -> Self {
        self.backend = Some(backend.to_owned());
        self
    }

    /// Sets the model, which is one of the backend it runs on.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        self.model = Some(model.to_owned());
        self
    }

    /// Turns the final text into the output. When it cannot, the agent is asked once more, and
    /// told why.
    #[must_use]
    pub fn parse(
        mut self,
        parse: impl Fn(&str) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        self.parse = Some(Function::parse(parse));
        self
    }

    /// Starts a conversation of its own.
    #[must_use]
    pub fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    /// Lets it ask the user.
    #[must_use]
    pub fn questions(mut self) -> Self {
        self.questions = true;
        self
    }

    /// Lets the agent start the other agents there are as helpers.
    #[must_use]
    pub fn helpers(mut self) -> Self {
        self.helpers = true;
        self
    }

    /// Counts every start as an iteration of the run.
    #[must_use]
    pub fn iteration(mut self) -> Self {
        self.iteration = true;
        self
    }

    fn action(&self, site: &mut Site<'_>, role: &str) -> Action {
        Action::Agent(AgentAction {
            model: None,
            schema: None,
            lane: None,
            role: false,
            agent: self.name.clone(),
            backend: site.backend(),
            instructions: self.instructions.clone(),
            prompt: site.text(role, &self.prompt),
            parse: self.parse.as_ref().map(|parse| site.lowering.function("parse", parse)),
            fresh: self.fresh,
            questions: self.questions,
            helpers: self.helpers,
            iteration: self.iteration,
            map: site.map("map"),
        })
    }
}

impl<S> std::fmt::Debug for Agent<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Agent").field(&self.name).finish()
    }
}

/// Prompts an agent. Agents of one lane that follow each other share a conversation.
pub fn agent<S: 'static>(id: impl Into<NodeId>, agent: Agent<S>) -> Draft<S> {
    prompted(id, agent, "prompt")
}

/// Prompts an agent in a conversation of its own.
pub fn subagent<S: 'static>(id: impl Into<NodeId>, agent: Agent<S>) -> Draft<S> {
    prompted(id, agent.fresh(), "task")
}

fn prompted<S: 'static>(id: impl Into<NodeId>, agent: Agent<S>, role: &'static str) -> Draft<S> {
    let (backend, model) = (agent.backend.clone(), agent.model.clone());
    let mut draft = Draft::new(id, move |site| work(&agent.action(site, role)));
    draft.hooks.backend = backend;
    draft.node.model = model;
    draft
}

/// Runs the prompt of a skill in a conversation of its own.
pub fn skill<S: 'static>(id: impl Into<NodeId>, name: &str, args: impl Into<Words<S>>) -> Draft<S> {
    entry(id, EntryKind::Skill, name, args.into())
}

/// Runs the prompt of a slash command in a conversation of its own.
pub fn command<S: 'static>(
    id: impl Into<NodeId>,
    name: &str,
    args: impl Into<Words<S>>,
) -> Draft<S> {
    entry(id, EntryKind::Command, name, args.into())
}

fn entry<S: 'static>(
    id: impl Into<NodeId>,
    kind: EntryKind,
    name: &str,
    args: Words<S>,
) -> Draft<S> {
    let name = name.to_owned();
    Draft::new(id, move |site| {
        let args = site.text("args", &args);
        let (name, backend, map) = (name.clone(), site.backend(), site.map("map"));
        work(&Action::Entry(Entry { kind, name, backend, args, map }))
    })
}

/// Evaluates a function.
pub fn tool<S: 'static, R: Outcome<Update<S>>>(
    id: impl Into<NodeId>,
    execute: impl Fn(&View<'_, S>) -> R + Send + Sync + 'static,
) -> Draft<S> {
    let execute =
        Function::Step(Arc::new(move |call| execute(&View::new(call)).outcome()?.into_result()));
    Draft::new(id, move |site| work(&Action::Function { call: site.function("execute", &execute) }))
}

/// Evaluates a function that may return an output, a `goto` and signals besides its changes. (The
/// same as [`tool`], which may do so too.)
pub fn custom<S: 'static, R: Outcome<Update<S>>>(
    id: impl Into<NodeId>,
    execute: impl Fn(&View<'_, S>) -> R + Send + Sync + 'static,
) -> Draft<S> {
    tool(id, execute)
}

/// Runs a command in a shell, in the project's folder. What it prints is the output.
pub fn shell<S: 'static>(id: impl Into<NodeId>, command: impl Into<Words<S>>) -> Draft<S> {
    let command = command.into();
    Draft::new(id, move |site| {
        let command = site.text("command", &command);
        work(&Action::Shell(Shell { command, map: site.map("map") }))
    })
}

/// Waits until the user says to go on; what they say is the output.
pub fn wait<S: 'static>(id: impl Into<NodeId>, prompt: &str) -> Draft<S> {
    let go_on = Choice { label: "Continue".to_owned(), description: String::new() };
    ask_user(
        id,
        Question {
            question: prompt.to_owned(),
            options: vec![go_on],
            free_text: true,
            ..Question::default()
        },
    )
}

/// Asks the user; the answer is the output.
pub fn ask_user<S: 'static>(id: impl Into<NodeId>, question: Question) -> Draft<S> {
    simple(id, Action::Ask(Asking { question }))
}

/// The next agent of this lane starts a new conversation.
pub fn clear_context<S: 'static>(id: impl Into<NodeId>) -> Draft<S> {
    simple(id, Action::ClearContext)
}

/// Looks at how full the lane's conversation is, and does something about it.
pub fn context_monitor<S: 'static>(id: impl Into<NodeId>, monitor: ContextMonitor) -> Draft<S> {
    simple(id, Action::ContextMonitor(monitor))
}

/// A node whose action has no functions.
pub(super) fn simple<S: 'static>(id: impl Into<NodeId>, action: Action) -> Draft<S> {
    Draft::new(id, move |_| work(&action))
}

/// Goes to the node of the first route that holds, else to the fallback.
pub fn decision<S: 'static, N: Into<NodeId>>(
    id: impl Into<NodeId>,
    routes: impl IntoIterator<Item = (When<S>, N)>,
    fallback: impl Into<NodeId>,
) -> Draft<S> {
    let fallback = fallback.into();
    let routes: Vec<(When<S>, NodeId)> =
        routes.into_iter().map(|(when, to)| (when, to.into())).collect();
    Draft::new(id, move |site| {
        if routes.is_empty() {
            let remedy = "give it routes, or leave it out";
            site.problem(codes::NO_ROUTES, "the decision has no routes", remedy);
        }
        for (number, (when, to)) in (1..).zip(&routes) {
            let when = site.condition(&format!("route-{number}"), when);
            site.route(to, when);
        }
        site.route(&fallback, Condition::Otherwise);
        Kind::Decision
    })
}

pub(super) fn work(action: &Action) -> Kind {
    action.node("").kind
}
