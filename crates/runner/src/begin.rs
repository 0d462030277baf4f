//! What a step that is to be started comes to: a fact at once, or a job for later.

use std::collections::VecDeque;
use std::sync::Arc;

use atomic_backend::Backend;
use atomic_event::{
    AgentName, BackendId, Event, How, Question, Started, StepError, StepId, StepResult,
};
use atomic_graph::{FunctionId, Start, State};
use atomic_workflow::{
    Action, AgentAction, ContextAction, ContextMonitor, Entry, Function, ShellCommand, TaskFile,
    Text, WorkCall, WorkFn, render_shell,
};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::entities::{Script, tools_of_turn};
use crate::perform::{AgentJob, CheckJob, Job, Parse, Task, WorkJob};
use crate::question::Asker;
use crate::run::Run;
use crate::settings::OnQuestion;
use crate::task_file::{self, TaskPath, TaskRequest};
use crate::timer::TimerKind;

/// Where a workflow keeps what the user said on resume.
pub(crate) const INSTRUCTIONS: &str = "instructions";

/// What comes of a step that is to be started.
pub(crate) enum Begun {
    /// It is over.
    Over(Vec<Event>),
    /// It waits for an answer.
    Asked(Question),
    /// It is over at this time, in milliseconds since 1970.
    Asleep(i64),
    /// Somebody has to carry it out; an agent's work, with this backend.
    Job(Job, Arc<dyn Backend>),
}

impl Run {
    pub(crate) fn begin(
        &mut self,
        start: Start,
        queue: &mut VecDeque<Event>,
        jobs: &mut Vec<Task>,
    ) {
        let start = Start { how: self.possible(&start.step, start.how), ..start };
        let action = self.action(&start.step);
        if action.as_ref().is_ok_and(Action::is_launch)
            && let Some(view) = self.machine.view(&start.step)
        {
            // A list may have grown where only this lane sees it.
            queue.extend(self.recertified(&view));
        }
        queue.push_back(Event::StepStarted(self.started(&start, action.as_ref().ok())));
        let begun =
            action.and_then(|action| match self.ceilings.refusal(self.takes_no_time(&action)) {
                Some(error) => Err(error),
                None => match self.task_refusal(&start.step).filter(|_| action.is_launch()) {
                    Some(error) => Err(error),
                    None => self.begun(&start, action),
                },
            });
        let Start { step, attempt, delay_ms, .. } = start;
        match begun {
            Err(error) => queue.push_back(Event::StepFailed { step, attempt, error }),
            Ok(Begun::Over(events)) => queue.extend(events),
            Ok(Begun::Job(mut job, backend)) => {
                if let Job::Agent(job) = &mut job {
                    self.one_at_a_time(&step, job, &backend.id());
                }
                jobs.push(Task { step, attempt, delay_ms, job, backend });
            }
            Ok(Begun::Asleep(until)) => self.sleep(step, until),
            Ok(Begun::Asked(question)) => {
                let id = self.next_question(&*queue);
                queue.extend(self.asked(&id, &step, question, Asker::Node));
                if self.settings.on_question == OnQuestion::Fail {
                    let error = crate::question::nobody_there();
                    queue.push_back(Event::StepFailed { step, attempt, error });
                } else if let Some(limit) = self.machine.node(&step).and_then(|n| n.timeout_ms) {
                    self.timers.set(step, TimerKind::Answer, limit);
                }
            }
        }
    }

    /// What a step that waited for its provider begins with, from where it was refused.
    pub(crate) fn continued(&mut self, step: &StepId, attempt: u32) -> Result<Begun, StepError> {
        let how = self.possible(step, How::Continued);
        let start = Start { step: step.clone(), attempt, how, delay_ms: 0 };
        let action = self.action(step)?;
        let mut begun = self.begun(&start, action)?;
        if let Begun::Job(Job::Agent(job), backend) = &mut begun {
            self.one_at_a_time(step, job, &backend.id());
        }
        Ok(begun)
    }

    fn begun(&self, start: &Start, action: Action) -> Result<Begun, StepError> {
        let Start { step, attempt, how, .. } = start;
        let over = |result: StepResult| {
            let (step, attempt, commit) = (step.clone(), *attempt, None);
            Begun::Over(vec![Event::StepFinished { step, attempt, result, commit }])
        };
        let by_us = |job: Job| Begun::Job(job, Arc::clone(&self.stage.backend));
        let by_agent = |(job, backend)| Begun::Job(Job::Agent(Box::new(job)), backend);
        let view = self.machine.view(step).unwrap_or_default();
        Ok(match action {
            Action::Function { call } => match self.work(&call) {
                Some(work) => by_us(Job::Work(WorkJob { work, call: self.work_call(start) })),
                None => over(self.evaluate(step, &call)?),
            },
            // What a script asks is no template.
            Action::Ask(asking) if self.is_called(step) => Begun::Asked(asking.question),
            Action::Ask(asking) => {
                let text = Text::Template(asking.question.question.clone());
                let question = self.text(step, &view, &text)?;
                Begun::Asked(Question { question, ..asking.question })
            }
            Action::Sleep { until } => Begun::Asleep(until),
            Action::Request { name, args } => by_us(Job::Request { name, args }),
            Action::Called => return Err(StepError::new("call", "a call cannot call itself")),
            Action::Agent(action) => by_agent(self.agent_job(step, *how, &action)?),
            Action::Entry(entry) => by_agent(self.entry_job(step, *how, &entry)?),
            Action::Shell(shell) => {
                let command = match &shell.command {
                    Text::Template(template) => render_shell(template, &view)
                        .map_err(|error| StepError::new("template", error.to_string()))?,
                    other @ (Text::Verbatim(_) | Text::Call(_)) => {
                        ShellCommand::verbatim(self.text(step, &view, other)?)
                    }
                };
                by_us(Job::Shell(command))
            }
            Action::Gates(gates) => {
                // As it is now: since this item began, another one may have turned a check green.
                let red = self.machine.newest().get("redGates").cloned();
                let hindrance = self.hindrance(step);
                let baseline = gates.baseline;
                let is_again = baseline && self.book.verification.has_baseline;
                by_us(Job::Gates(CheckJob { baseline, is_again, known: red, hindrance }))
            }
            Action::ClearContext => over(StepResult::default()),
            Action::ContextMonitor(monitor) => self.monitor(step, *attempt, &monitor)?,
            Action::TaskFile(file) => by_us(self.task_file_job(step, &view, file)?),
        })
    }

    /// Finds out which file of tasks is meant, and which task, where functions say so.
    fn task_file_job(
        &self,
        step: &StepId,
        view: &State,
        mut file: TaskFile,
    ) -> Result<Job, StepError> {
        let wrong = |message: String| StepError::new("tasks", message);
        if let Some(call) = file.path_from.take() {
            let path = self.text(step, view, &Text::Call(call))?;
            let inside = |part| matches!(part, std::path::Component::Normal(_));
            if path.is_empty() || !std::path::Path::new(&path).components().all(inside) {
                return Err(wrong(format!(
                    "`tasksPath` gave {path:?}, which does not lead to a place inside the project; \
                     return a path without `..` that begins in the project's folder"
                )));
            }
            file.path = path;
        }
        let selected = match &file.selector {
            Some(call) => {
                let path = TaskPath::new(&self.created.workspace, &file.path);
                let tasks = task_file::tasks(&path).map_err(wrong)?;
                Some(self.value(step, call, &[Arc::new(Value::Array(tasks))])?)
            }
            None => None,
        };
        // The rounds of a loop are numbered in the names of their steps.
        let round = step.item().and_then(|round| round.parse::<u32>().ok());
        let request = TaskRequest {
            file: file.path,
            selected,
            current: view.get("currentTask").map(|task| task.as_ref().clone()),
            round: round.unwrap_or_default().into(),
            is_last_round: file.max_rounds > 0 && round == Some(file.max_rounds),
            at: self.stage.clock.now().to_string(),
        };
        Ok(Job::TaskFile(file.op, Box::new(request)))
    }

    /// Looks at how full the lane's conversation is; of several, the fullest.
    fn monitor(
        &self,
        step: &StepId,
        attempt: u32,
        monitor: &ContextMonitor,
    ) -> Result<Begun, StepError> {
        let fullest = self.book.fullest(step);
        let full = fullest.map(|(_, _, full)| full);
        let due = full.is_some_and(|full| full >= monitor.threshold);
        let compact = due && monitor.action == ContextAction::Compact;
        if let Some((backend, conversation, _)) = fullest.filter(|_| compact) {
            let job = Job::Compact { conversation: conversation.clone() };
            return Ok(Begun::Job(job, self.backend(Some(backend))?));
        }
        let mut events = vec![];
        if due && monitor.action == ContextAction::Warn {
            let percent = (full.unwrap_or_default() * 100.0).round();
            let text = format!("the conversation of {step} is {percent} % full");
            events.push(Event::Noted { text });
        }
        let result = StepResult::output(json!({ "full": full, "due": due }));
        let (step, commit) = (step.clone(), None);
        events.push(Event::StepFinished { step, attempt, result, commit });
        Ok(Begun::Over(events))
    }

    /// Whether the lane's next agent starts a new conversation.
    fn clears_context(&self, step: &StepId, action: &Action) -> bool {
        match action {
            Action::ClearContext => true,
            Action::ContextMonitor(monitor) => {
                monitor.action == ContextAction::Fresh
                    && self.book.fullest(step).is_some_and(|(_, _, full)| full >= monitor.threshold)
            }
            Action::Agent(_)
            | Action::Function { .. }
            | Action::Shell(_)
            | Action::Entry(_)
            | Action::Gates(_)
            | Action::Ask(_)
            | Action::Called
            | Action::Sleep { .. }
            | Action::Request { .. }
            | Action::TaskFile(_) => false,
        }
    }

    /// The prompt of a skill or command, as a turn of its own.
    fn entry_job(
        &self,
        step: &StepId,
        how: How,
        entry: &Entry,
    ) -> Result<(AgentJob, Arc<dyn Backend>), StepError> {
        let view = self.machine.view(step).unwrap_or_default();
        let args = self.text(step, &view, &entry.args)?;
        let on = self.backend_for(step, how, entry.backend.as_ref())?.id();
        let Script { name, prompt, model, tools } = self.entry(entry, &args, &on)?;
        // Braces in somebody's prompt are not ours to fill.
        let action = AgentAction {
            backend: entry.backend.clone(),
            instructions: Some(String::new()),
            fresh: true,
            ..AgentAction::new(name.as_str(), Text::Verbatim(prompt))
        };
        let (job, backend) = self.agent_job(step, how, &action)?;
        // Skills and commands are written to send others looking.
        Ok((AgentJob { model, tools, helpers: self.helpers(&on), ..job }, backend))
    }

    fn backend(&self, named: Option<&BackendId>) -> Result<Arc<dyn Backend>, StepError> {
        self.stage.backend(named).map_err(|why| StepError::new("misconfigured", why))
    }

    /// Who carries out a step: who has the conversation that is continued, else whom its node
    /// names, else the run's own.
    fn backend_for(
        &self,
        step: &StepId,
        how: How,
        named: Option<&BackendId>,
    ) -> Result<Arc<dyn Backend>, StepError> {
        let open = self.book.open.get(step).filter(|_| how == How::Continued);
        self.backend(open.and_then(|open| open.backend.as_ref()).or(named))
    }

    /// A conversation answers one at a time: an agent that comes while its lane's is in use has
    /// one of its own.
    fn one_at_a_time(&mut self, step: &StepId, job: &mut AgentJob, backend: &BackendId) {
        if job.shared && !self.book.may_speak(&self.lane(step), step, backend) {
            job.shared = false;
            job.resume = job.resume.take().filter(|_| job.how == How::Continued);
        }
    }

    /// A step can be continued only in a conversation that was opened.
    fn possible(&self, step: &StepId, how: How) -> How {
        let open = self.book.open.get(step);
        if how == How::Continued && open.is_none_or(|open| open.conversation.is_none()) {
            return How::RunAgain;
        }
        how
    }

    fn started(&mut self, start: &Start, action: Option<&Action>) -> Started {
        let agent = if let Some(Action::Agent(agent)) = action { Some(agent) } else { None };
        let entry = if let Some(Action::Entry(entry)) = action { Some(entry) } else { None };
        let backend = action.and_then(Action::backend);
        let works = |action: &Action| matches!(action, Action::Function { call } if self.work(call).is_some());
        let uses_files =
            action.is_some_and(|a| a.tree() != atomic_workflow::Tree::Unused || works(a));
        let lane = agent.and_then(|agent| agent.lane.as_deref());
        let lane = lane.map(|name| named_lane(&start.step, name));
        let begins_one = agent.is_some_and(|agent| agent.iteration)
            && matches!(start.how, How::First | How::Revived)
            && self.ceilings.exhausted.is_none();
        self.ceilings.iterations += u64::from(begins_one);
        Started {
            step: start.step.clone(),
            attempt: start.attempt,
            how: start.how,
            description: self.machine.node(&start.step).and_then(|node| node.description.clone()),
            agent: agent
                .map(|agent| agent.agent.clone())
                .or_else(|| entry.map(|entry| AgentName::from(entry.name.as_str()))),
            backend: backend.filter(|named| **named != self.created.backend).cloned(),
            workspace: uses_files.then(|| self.created.workspace.clone()),
            iteration: begins_one.then_some(self.ceilings.iterations),
            clears_context: action.is_some_and(|action| self.clears_context(&start.step, action)),
            lane,
        }
    }

    pub(crate) fn action(&self, step: &StepId) -> Result<Action, StepError> {
        let unknown = |problem: &dyn std::fmt::Display| {
            StepError::new(
                "action",
                format!("the node of `{step}` cannot be carried out: {problem}"),
            )
        };
        let node = self.machine.node(step).ok_or_else(|| unknown(&"it is not there"))?;
        let atomic_graph::Kind::Work { action, .. } = &node.kind else {
            return Err(unknown(&"it is no work"));
        };
        let action = serde_json::from_value(action.clone()).map_err(|error| unknown(&error))?;
        if action != Action::Called {
            return Ok(action);
        }
        let view = self.machine.view(step).unwrap_or_default();
        let call = view.get(atomic_workflow::CALL).cloned().unwrap_or_default();
        atomic_workflow::called(&call)
    }

    /// Whether a script has called this step.
    fn is_called(&self, step: &StepId) -> bool {
        let kind = self.machine.node(step).map(|node| &node.kind);
        matches!(kind, Some(atomic_graph::Kind::Work { action, .. })
            if Action::deserialize(action).is_ok_and(|action| action == Action::Called))
    }

    /// The lane whose conversation a step shares.
    fn lane(&self, step: &StepId) -> String {
        match self.action(step) {
            Ok(Action::Agent(AgentAction { lane: Some(name), .. })) => named_lane(step, &name),
            _ => self.book.loops.lane(step).to_owned(),
        }
    }

    /// A function that takes time, if this is one.
    fn work(&self, call: &FunctionId) -> Option<Arc<WorkFn>> {
        match self.workflow.functions.find(call) {
            Some(Function::Work(work)) => Some(Arc::clone(work)),
            _ => None,
        }
    }

    fn work_call(&self, start: &Start) -> WorkCall {
        WorkCall {
            state: self.machine.view(&start.step).unwrap_or_default(),
            step: start.step.clone(),
            attempt: start.attempt,
            paths: self.paths.clone(),
            workspace: self.created.workspace.clone(),
        }
    }

    /// Whether nothing happens outside the run, and nobody waits for it.
    fn takes_no_time(&self, action: &Action) -> bool {
        let quick = |call: &FunctionId| {
            !matches!(self.workflow.functions.find(call), Some(Function::Work(_)))
        };
        matches!(action, Action::Function { call } if quick(call))
            || matches!(action, Action::ClearContext)
    }

    /// What the user said on resume, for an agent's prompt. A workflow that keeps it in its state
    /// puts it into its prompts itself.
    fn instructions(&self) -> String {
        let keeps_it = self.machine.program().graph().reducers.contains_key(INSTRUCTIONS)
            || self.created.state.contains_key(INSTRUCTIONS);
        let given = self.book.instructions.iter().filter(|_| !keeps_it);
        given.map(|text| format!("\n\nUser instruction: {text}")).collect()
    }

    fn agent_job(
        &self,
        step: &StepId,
        how: How,
        action: &AgentAction,
    ) -> Result<(AgentJob, Arc<dyn Backend>), StepError> {
        let backend = self.backend_for(step, how, action.backend.as_ref())?;
        let state = self.machine.view(step).unwrap_or_default();
        let Script { name, prompt: system_prompt, model, tools } = match &action.instructions {
            Some(own) => Script {
                name: action.agent.clone(),
                prompt: own.clone(),
                model: None,
                tools: tools_of_turn(&self.stage.registry, &backend.id()),
            },
            None => self.persona(action, &backend.id())?,
        };
        let schema = self.machine.node(step).and_then(|node| node.output_schema.clone());
        let schema = action.schema.clone().or(schema);
        let parse = match action.parse.as_ref().map(|id| (id, self.workflow.functions.find(id))) {
            None => None,
            Some((_, Some(Function::Parse(parse)))) => Some(Parse(Arc::clone(parse))),
            Some((id, _)) => {
                return Err(StepError::new("function", format!("there is no parser `{id}`")));
            }
        };
        let remembers = backend.remembers();
        let open = self.book.open.get(step).and_then(|open| open.conversation.clone());
        let shared = self.book.conversation(&self.lane(step), &backend.id()).cloned();
        let shared = shared.filter(|_| !action.fresh);
        let job = AgentJob {
            prompt: self.text(step, &state, &action.prompt)? + &self.instructions(),
            system_prompt,
            model,
            agent: name,
            shared: !action.fresh,
            questions: action.questions,
            resume: if how == How::Continued { open } else { shared },
            how,
            answers: self.book.answers(step, !(how == How::Continued && remembers)),
            schema: schema.filter(|schema| parse.is_none() && wants_structure(schema)),
            tools,
            helpers: if action.helpers { self.helpers(&backend.id()) } else { vec![] },
            inherit: self.settings.inherited(),
            parse,
        };
        Ok((job, backend))
    }
}

/// Whether a text would not do.
fn wants_structure(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str).is_some_and(|kind| kind == "object")
}

/// The lane of a name that the calls of a script share.
fn named_lane(step: &StepId, name: &str) -> String {
    let scope = crate::lane::scope(step);
    let script = scope.rsplit_once('[').map_or(scope, |(script, _)| script);
    format!("{script}~{name}")
}
