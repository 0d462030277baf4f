//! A new session from the beginning of another one.
//!
//! Everything up to the fact that finished a step is taken over; what followed is not. The new
//! session stands there like one that was paused: steps that were under way come back as lost
//! when it is resumed, and conversations of the other session are never continued.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::{
    Created, Envelope, Event, Forked, Key, Moment, Patch, RunStopped, SessionId, StepId,
    WorkflowName,
};
use atomic_graph::certificate::certify;
use atomic_graph::check::nearest;
use atomic_graph::{Graph, Program};
use atomic_session::{Disk, Index, Session, SessionStatus};
use serde_json::Value;

use crate::keep::index_entry;
use crate::project::{summary, tasks_at_rest, tasks_done};
use crate::relocate::Relocation;
use crate::resume::Past;
use crate::run::RunError;

/// How many finished steps are named when one is not found.
const NAMED: usize = 5;

/// Where the outputs of the steps are; they are facts and cannot be set.
const OUTPUTS: &str = "outputs";

/// Which session to fork, and where.
#[derive(Clone, Debug)]
pub struct ForkRequest {
    /// The session's folder.
    pub dir: PathBuf,
    /// The last step that is taken over; otherwise the last that finished.
    pub step: Option<String>,
    /// Changes to the state.
    pub set: Patch,
    /// The folder the new session works in; otherwise the other's.
    pub workspace: Option<PathBuf>,
    /// Whether everything is taken over, also what came after the last finished step.
    pub whole: bool,
}

/// What forks are made with.
#[derive(Clone, Debug)]
pub struct ForkTools {
    /// Where sessions are kept.
    pub disk: Arc<dyn Disk>,
    /// The list of all sessions, where there is a home folder for it.
    pub index: Option<Arc<Index>>,
    /// Who we are.
    pub holder: String,
    /// What time it is.
    pub at: Moment,
}

/// A session that was made from the beginning of another one.
#[derive(Clone, Debug)]
pub struct Fork {
    /// The new session.
    pub session: SessionId,
    /// Its folder.
    pub dir: PathBuf,
    /// Its workflow.
    pub workflow: WorkflowName,
    /// The folder it works in.
    pub workspace: PathBuf,
    /// The other session.
    pub from: SessionId,
    /// Who works on that right now, by its own words.
    pub holder: Option<String>,
    /// The last step that both have; none when the other session had finished no step.
    pub step: Option<StepId>,
    /// The commit the project was at then, and the step that ended there.
    pub commit: Option<(StepId, String)>,
    /// The steps that were under way; they are begun again.
    pub under_way: Vec<StepId>,
    /// What was set.
    pub set: Vec<SetKey>,
    /// The facts that are the new session's own.
    pub facts: Vec<Envelope>,
}

/// A value that was set.
#[derive(Clone, Debug, PartialEq)]
pub struct SetKey {
    /// Its key.
    pub key: Key,
    /// What it is now.
    pub value: Value,
    /// Whether that is not what was given, because the key's reducer has combined it with what
    /// was there.
    pub combined: bool,
    /// Whether there was no such key.
    pub is_new: bool,
    /// The key that was perhaps meant instead.
    pub meant: Option<String>,
}

/// Forks a session, whoever may be at work in it. It is only read.
pub fn fork(tools: &ForkTools, request: ForkRequest) -> Result<Fork, RunError> {
    let ForkRequest { dir: from_dir, step, set, workspace, whole } = request;
    let mut history = History::read(&tools.disk, &from_dir)?;
    if let Some(workspace) = workspace {
        history.created.workspace = workspace;
    }
    let (step, seq) = if whole {
        (history.newest_first().first().map(|step| (*step).clone()), history.last)
    } else {
        let step = history.find(step.as_deref())?;
        let seq = history.finished[&step].seq;
        (Some(step), seq)
    };
    let from = history.created.session.clone();
    let session = SessionId::from(uuid::Uuid::new_v4().to_string());
    let dir = from_dir.parent().unwrap_or(&from_dir).join(session.as_str());
    let relocation = Relocation::new(&from_dir, &dir);
    let created = renamed(&history.created, &session, &relocation);
    let mut past = replayed(tools, &from_dir, &created, seq)?;

    let mut then =
        vec![Event::SessionForked(Forked { from: from.clone(), step: step.clone(), up_to: seq })];
    if let Some(event) = relocation.event(&past.machine) {
        past.replay(&Envelope { seq: 0, at: tools.at, event: event.clone() })
            .map_err(RunError::Refused)?;
        then.push(event);
    }
    let after = step.as_ref().map_or_else(String::new, |step| format!(" after {step}"));
    let reason = format!("forked from {from}{after}");
    let set = patched(&mut past, set, &reason, &mut then, tools.at)?;
    // A run that has failed gets another chance when it is resumed.
    if !(whole && past.book.status == SessionStatus::Failed) {
        then.push(Event::RunStopped(RunStopped::RunPaused { reason }));
    }
    for event in &then {
        // A change was taken in already.
        if !matches!(event, Event::StatePatched { .. }) {
            past.book.learn(event, tools.at);
        }
    }
    let state = past.machine.newest();
    let checks = past.book.verification.summary(&tasks_done(&past.created.state, &state));
    let Some(summary) = summary(&past.created, &past.book, tasks_at_rest(&state), checks) else {
        return Err(RunError::Refused(format!("session {from} was never started")));
    };
    let first = Event::SessionCreated(Box::new(past.created.clone()));
    let plan = atomic_session::Fork {
        from: from_dir.clone(),
        seq,
        dir: dir.clone(),
        first,
        then,
        summary,
    };
    let facts = Session::fork(&tools.disk, plan, &tools.holder, tools.at)?;
    listed(tools, &past.created, &dir)?;
    let holder = Session::holder(tools.disk.as_ref(), &from_dir).unwrap_or_default();
    let (under_way, commit) = (under_way(&past), history.commit(seq));
    let Created { workflow, workspace, .. } = past.created;
    Ok(Fork {
        session,
        dir,
        workflow,
        workspace,
        from,
        holder,
        step,
        commit,
        under_way,
        set,
        facts,
    })
}

/// A step that has finished.
struct Finished {
    seq: u64,
    commit: Option<String>,
}

/// What a session has done.
struct History {
    created: Created,
    finished: BTreeMap<StepId, Finished>,
    /// Steps that were begun, finished or not.
    begun: Vec<StepId>,
    /// The number of the last fact.
    last: u64,
}

impl History {
    fn read(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Self, RunError> {
        let (mut created, mut finished, mut begun) = (None, BTreeMap::new(), vec![]);
        let mut last = 0;
        for fact in Session::read_only(Arc::clone(disk), dir)? {
            let Envelope { seq, event, .. } = fact?;
            last = seq;
            if let Event::SessionCreated(first) = event {
                created = Some(*first);
            } else if let Event::StepFinished { step, commit, .. } = event {
                finished.insert(step, Finished { seq, commit });
            } else if let Event::StepStarted(started) = event {
                begun.push(started.step);
            }
        }
        let never = || RunError::Refused(format!("the session in {} never began", dir.display()));
        Ok(Self { created: created.ok_or_else(never)?, finished, begun, last })
    }

    /// The finished steps, the last first.
    fn newest_first(&self) -> Vec<&StepId> {
        let mut steps: Vec<_> = self.finished.iter().collect();
        steps.sort_by_key(|(_, finished)| std::cmp::Reverse(finished.seq));
        steps.into_iter().map(|(step, _)| step).collect()
    }

    /// The step that is meant: by its whole name, or as short as it is shown while it runs.
    fn find(&self, wanted: Option<&str>) -> Result<StepId, RunError> {
        let newest_first = self.newest_first();
        let Some(last) = newest_first.first() else {
            return Err(RunError::Refused(format!(
                "session {} has no finished step yet, so there is nothing to fork",
                self.created.session
            )));
        };
        let Some(wanted) = wanted else { return Ok((*last).clone()) };
        let is_whole = |step: &&&StepId| step.as_str() == wanted || step.to_string() == wanted;
        let is_short = |step: &&&StepId| short(step) == wanted;
        if let Some(step) = newest_first.iter().find(is_whole) {
            return Ok((*step).clone());
        }
        let short: Vec<&StepId> = newest_first.iter().filter(is_short).copied().collect();
        match short[..] {
            [] => Err(self.unknown(wanted, &newest_first)),
            [step] => Ok(step.clone()),
            [..] => Err(RunError::Refused(format!(
                "`{wanted}` could be any of {}; give the whole name",
                list(short.into_iter())
            ))),
        }
    }

    fn unknown(&self, wanted: &str, newest_first: &[&StepId]) -> RunError {
        let session = &self.created.session;
        let last = list(newest_first.iter().take(NAMED).copied());
        let is_it = |step: &&StepId| step.as_str() == wanted || step.to_string() == wanted;
        if self.begun.iter().any(|step| is_it(&step)) {
            return RunError::Refused(format!(
                "`{wanted}` has begun but not finished in session {session}, and a session is \
                 forked after a finished step; the last ones are {last}"
            ));
        }
        let names: Vec<String> = newest_first.iter().map(ToString::to_string).collect();
        let meant = nearest(wanted, names.iter().map(String::as_str));
        let meant = meant.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        RunError::Refused(format!(
            "session {session} has no finished step `{wanted}`{meant} (the last ones are {last})"
        ))
    }

    /// The commit the project was at after this fact, as far as that is known.
    fn commit(&self, seq: u64) -> Option<(StepId, String)> {
        let before = self.finished.iter().filter(|(_, finished)| finished.seq <= seq);
        let known = before.filter_map(|(step, f)| Some((f.seq, step, f.commit.as_ref()?)));
        let (_, step, commit) = known.max()?;
        Some((step.clone(), commit.clone()))
    }
}

/// `#4 worker#2`: the item of the fan and the last part of the name.
fn short(step: &StepId) -> String {
    let last = step.as_str().rsplit('/').next().unwrap_or_default();
    step.item().map_or_else(|| last.to_owned(), |item| format!("{item} {last}"))
}

fn list<'s>(steps: impl Iterator<Item = &'s StepId>) -> String {
    steps.map(|step| format!("`{step}`")).collect::<Vec<_>>().join(", ")
}

/// The first fact under the new id. The id and the folder are also in the state where a workflow asks
/// for them.
fn renamed(created: &Created, session: &SessionId, relocation: &Relocation) -> Created {
    let mut created = created.clone();
    for value in created.state.values_mut() {
        rename(value, created.session.as_str(), session.as_str());
        relocation.apply(value);
    }
    created.origin.root = Some(created.root().clone());
    created.origin.forked_from = Some(std::mem::replace(&mut created.session, session.clone()));
    created
}

/// Replaces the id of a session wherever it is a value.
fn rename(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) if text == from => to.clone_into(text),
        Value::String(_) => {}
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, from, to)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, from, to)),
    }
}

/// How things stood after a fact of the other session.
fn replayed(tools: &ForkTools, dir: &Path, created: &Created, last: u64) -> Result<Past, RunError> {
    let graph: Graph = serde_json::from_value(created.graph.clone())
        .map_err(|e| RunError::Refused(format!("the session's graph is unreadable: {e}")))?;
    let program = Program::compile(graph).map_err(|problems| {
        RunError::Unsound(problems.iter().map(ToString::to_string).collect())
    })?;
    let mut past = Past::begun(program, created);
    for fact in Session::read_only(Arc::clone(&tools.disk), dir)? {
        let fact = fact?;
        if fact.seq > last {
            break;
        }
        past.replay(&fact).map_err(|problem| RunError::Misfit {
            dir: dir.to_owned(),
            problem: atomic_graph::Misfit(format!("fact {}: {problem}", fact.seq)),
        })?;
    }
    Ok(past)
}

/// Changes the state, and says what became of each value.
fn patched(
    past: &mut Past,
    set: Patch,
    reason: &str,
    then: &mut Vec<Event>,
    at: Moment,
) -> Result<Vec<SetKey>, RunError> {
    if set.is_empty() {
        return Ok(vec![]);
    }
    if set.contains_key(OUTPUTS) {
        let why = "`outputs` is what the steps have returned; it cannot be set";
        return Err(RunError::Refused(why.to_owned()));
    }
    let before = past.machine.newest();
    let known = before.to_value();
    let known = known.as_object().into_iter().flat_map(|values| values.keys().map(String::as_str));
    let known: Vec<&str> = known.chain(past.created.state.keys().map(Key::as_str)).collect();
    let event = Event::StatePatched { patch: set.clone(), reason: reason.to_owned() };
    let is_new: Vec<(bool, Option<String>)> = set
        .keys()
        .map(|key| {
            let is_new = !known.contains(&key.as_str());
            let meant = nearest(key.as_str(), known.iter().copied()).filter(|_| is_new);
            (is_new, meant.map(str::to_owned))
        })
        .collect();
    past.replay(&Envelope { seq: 0, at, event: event.clone() }).map_err(|problem| {
        RunError::Refused(format!("the state cannot be changed like that: {problem}"))
    })?;
    then.push(event);
    let newest = past.machine.newest();
    let certificate = certify(past.machine.program().graph(), &newest);
    if set.keys().any(|key| certificate.rests_on.contains(key)) {
        then.push(crate::certificate::fact(&certificate));
    }
    let become_of = |((key, given), (is_new, meant)): ((Key, Value), (bool, Option<String>))| {
        let value = newest.get(key.as_str()).map(|value| value.as_ref().clone());
        let value = value.unwrap_or_default();
        SetKey { combined: value != given, key, value, is_new, meant }
    };
    Ok(set.into_iter().zip(is_new).map(become_of).collect())
}

/// The steps that were under way, except those that wait for the user.
fn under_way(past: &Past) -> Vec<StepId> {
    let waits = |step: &StepId| {
        past.book.questions.values().any(|asked| asked.step == *step && asked.answer.is_none())
    };
    let running = past.machine.running().into_iter();
    running
        .filter(|(step, attempt)| past.book.open.get(step).is_some_and(|o| o.attempt == *attempt))
        .map(|(step, _)| step)
        .filter(|step| !waits(step))
        .collect()
}

/// Enters the new session in the list of all, by which it is found.
fn listed(tools: &ForkTools, created: &Created, dir: &Path) -> Result<(), RunError> {
    let Some(index) = &tools.index else { return Ok(()) };
    let entry = index_entry(created, dir, tools.at);
    index.add(entry).map_err(|error| {
        RunError::Refused(format!(
            "the new session is whole in {}, but could not be listed: {error}",
            dir.display()
        ))
    })
}
