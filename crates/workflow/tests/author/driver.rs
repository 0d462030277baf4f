//! Runs a workflow on the machine: functions for real, everything else pretended.

use std::collections::VecDeque;
use std::sync::Arc;

use atomic_event::{Patch, StepError, StepId, StepResult};
use atomic_graph::{Condition, Effect, FunctionId, Input, Kind, Machine, Program, State};
use atomic_workflow::build::{BuildErrors, Builder, Compiled, Config};
use atomic_workflow::{
    Action, Call, Function, Functions, Launch, Paths, StateKeys, TaskFileOp, Text, render,
};
use serde_json::{Value, json};

/// How a run went.
pub(crate) struct Ran {
    /// How it ended.
    pub(crate) outcome: Result<(), StepError>,
    /// The steps that were started, in order.
    pub(crate) steps: Vec<String>,
    /// The state at the end, with the outputs.
    pub(crate) state: Value,
}

impl Ran {
    /// The steps on one line.
    pub(crate) fn trace(&self) -> String {
        self.steps.join(" ")
    }

    /// The value of a key.
    pub(crate) fn key(&self, key: &str) -> &Value {
        &self.state[key]
    }

    /// What a node returned.
    pub(crate) fn output(&self, node: &str) -> &Value {
        &self.state["outputs"][node]
    }
}

/// Compiles and runs with these values in the state.
pub(crate) fn run<S: StateKeys>(builder: Builder<S>, values: Value) -> Ran {
    run_compiled(compile(builder).unwrap_or_else(|problems| panic!("{problems}")), values)
}

pub(crate) fn compile<S: StateKeys>(builder: Builder<S>) -> Result<Compiled<S>, BuildErrors> {
    builder.compile(Config::new("test"))
}

pub(crate) fn run_compiled<S: StateKeys>(compiled: Compiled<S>, values: Value) -> Ran {
    let workflow = compiled.into_workflow();
    let launch = Launch { prompt: "Build it".to_owned(), ..Launch::default() };
    let mut state = workflow.initial_state.state(&launch).unwrap();
    state.extend(serde_json::from_value::<Patch>(values).unwrap());
    // What a session keeps of a graph is JSON.
    let graph = serde_json::to_value(&workflow.graph).unwrap();
    let graph = serde_json::from_value(graph).unwrap();
    assert_eq!(graph, workflow.graph);
    let (machine, effects) = Machine::start(Program::compile(graph).unwrap(), state);
    let mut driver =
        Driver { machine, functions: workflow.functions, tasks: vec![], steps: vec![] };
    driver.tasks = vec![json!({"id": "#1", "done": false}), json!({"id": "#2", "done": false})];
    let outcome = driver.drive(effects);
    Ran { outcome, steps: driver.steps, state: driver.machine.newest().to_value() }
}

struct Driver {
    machine: Machine,
    functions: Functions,
    /// The file of tasks.
    tasks: Vec<Value>,
    steps: Vec<String>,
}

impl Driver {
    fn drive(&mut self, effects: Vec<Effect>) -> Result<(), StepError> {
        let mut queue = VecDeque::from(effects);
        while let Some(effect) = queue.pop_front() {
            let input = match effect {
                Effect::Finish(outcome) => return outcome,
                Effect::Limit { .. } => continue,
                Effect::Start(start) => {
                    self.steps.push(start.step.to_string());
                    let (step, attempt) = (start.step, start.attempt);
                    let done = self.perform(&step);
                    match done.and_then(|done| self.machine.judge(&step, &done).map(|()| done)) {
                        Ok(result) => Input::Finished { step, attempt, result },
                        Err(error) => Input::Failed { step, attempt, error },
                    }
                }
                Effect::Choose { step, options, .. } => self.choose(step, &options),
                Effect::Evaluate { step, call, args } => {
                    let result = self.value(&step, &call, &args);
                    Input::Evaluated { step, result }
                }
                Effect::Rest { step, .. } => Input::Rested { step },
                Effect::Cancel { step, attempt } => Input::Cancelled { step, attempt },
                Effect::Ask { step, .. } | Effect::AskLost { step, .. } => {
                    panic!("{step} asks, and there is nobody")
                }
            };
            queue.extend(self.machine.apply(input).unwrap());
        }
        panic!("nothing is left to do, and the run has not ended: {:?}", self.steps)
    }

    fn choose(&self, step: StepId, options: &[Condition]) -> Input {
        for (number, condition) in (0..).zip(options) {
            match self.holds(&step, condition) {
                Ok(true) => return Input::Chosen { step, chosen: Some(number) },
                Ok(false) => {}
                Err(error) => return Input::Evaluated { step, result: Err(error) },
            }
        }
        Input::Chosen { step, chosen: None }
    }

    fn holds(&self, step: &StepId, condition: &Condition) -> Result<bool, StepError> {
        let state = self.machine.view(step).unwrap();
        match condition {
            Condition::Equals { key, value } => {
                Ok(state.get(key.as_str()).is_some_and(|found| **found == *value))
            }
            Condition::Says { node, text } => {
                Ok(state.output(node.as_str()).is_some_and(|said| said.to_string().contains(text)))
            }
            Condition::Not(other) => Ok(!self.holds(step, other)?),
            Condition::Otherwise => Ok(true),
            Condition::Call(call) => match self.functions.find(call) {
                Some(Function::Holds(holds)) => holds(&called(&state, step)),
                other => panic!("{call} is {other:?}"),
            },
        }
    }

    fn value(
        &self,
        step: &StepId,
        call: &FunctionId,
        args: &[Arc<Value>],
    ) -> Result<Value, StepError> {
        let state = self.machine.view(step).unwrap();
        match self.functions.find(call) {
            Some(Function::Value(value)) => value(&called(&state, step), args),
            other => panic!("{call} is {other:?}"),
        }
    }

    fn text(&self, step: &StepId, text: &Text) -> Result<String, StepError> {
        let state = self.machine.view(step).unwrap();
        match text {
            Text::Verbatim(text) => Ok(text.clone()),
            Text::Template(template) => render(template, &state)
                .map_err(|error| StepError::new("template", error.to_string())),
            Text::Call(call) => match self.functions.find(call) {
                Some(Function::Text(text)) => text(&called(&state, step)),
                other => panic!("{call} is {other:?}"),
            },
        }
    }

    fn perform(&mut self, step: &StepId) -> Result<StepResult, StepError> {
        let Kind::Work { action, .. } = &self.machine.node(step).unwrap().kind else {
            panic!("{step} is no work")
        };
        let action: Action = serde_json::from_value(action.clone()).unwrap();
        let (output, map) = match &action {
            Action::Function { call } => {
                let state = self.machine.view(step).unwrap();
                return match self.functions.find(call) {
                    Some(Function::Step(function)) => function(&called(&state, step)),
                    other => panic!("{call} is {other:?}"),
                };
            }
            Action::Agent(agent) => {
                let said = self.text(step, &agent.prompt)?;
                let output = match agent.parse.as_ref().map(|call| self.functions.find(call)) {
                    None => Value::String(said),
                    Some(Some(Function::Parse(parse))) => {
                        parse(&said).map_err(|problem| StepError::new("unreadable", problem))?
                    }
                    Some(other) => panic!("a parser is {other:?}"),
                };
                (output, &agent.map)
            }
            Action::Entry(entry) => {
                let args = self.text(step, &entry.args)?;
                (json!(format!("{:?} {} {args}", entry.kind, entry.name)), &entry.map)
            }
            Action::Shell(shell) => {
                (json!(format!("$ {}", self.text(step, &shell.command)?)), &shell.map)
            }
            Action::TaskFile(file) => return Ok(self.task_file(step, file)),
            Action::Ask(asking) => {
                let first = asking.question.options.first().map(|option| option.label.as_str());
                (json!(first.unwrap_or_default()), &None)
            }
            Action::Gates(_)
            | Action::ClearContext
            | Action::ContextMonitor(_)
            | Action::Called
            | Action::Sleep { .. }
            | Action::Request { .. } => (Value::Null, &None),
        };
        let mut result = StepResult::output(output.clone());
        if let Some(map) = map {
            let changes = self.value(step, map, &[Arc::new(output)])?;
            result.patch = serde_json::from_value(changes).unwrap();
        }
        Ok(result)
    }

    fn task_file(&mut self, step: &StepId, file: &atomic_workflow::TaskFile) -> StepResult {
        match file.op {
            TaskFileOp::Next => {
                let open = |task: &&Value| task["done"] == false;
                let next = match &file.selector {
                    None => self.tasks.iter().find(open).cloned().unwrap_or_default(),
                    Some(call) => self.value(step, call, &[Arc::new(json!(self.tasks))]).unwrap(),
                };
                let done = next.is_null();
                StepResult::default().set("currentTask", next).set("tasksDone", done)
            }
            TaskFileOp::Complete => {
                let state = self.machine.view(step).unwrap();
                let current = state.get("currentTask").unwrap()["id"].clone();
                let task = self.tasks.iter_mut().find(|task| task["id"] == current).unwrap();
                task["done"] = json!(true);
                StepResult::default()
            }
        }
    }
}

fn called<'a>(state: &'a State, step: &'a StepId) -> Call<'a> {
    static PATHS: std::sync::OnceLock<Paths> = std::sync::OnceLock::new();
    Call { state, step, paths: PATHS.get_or_init(Paths::default) }
}
