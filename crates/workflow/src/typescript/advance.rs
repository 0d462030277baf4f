//! Workflows that are async functions: what they do next, and how they are brought back to where
//! they were.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use atomic_event::{StepError, StepId};
use atomic_graph::{Evaluation, Issued, code};
use atomic_typescript::{
    Arg, Delivery, Outcome, Place, Progress, Script, ScriptCall as Made, Trouble, TroubleKind,
    Turn, Worker,
};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::authored::shown;
use super::functions::{failure, state};
use crate::{Advance, ScriptCall};

/// The function of a file, wherever it is being run.
pub(super) struct Scripts {
    worker: Worker,
    function: u32,
    /// The workflows it can call.
    workflows: Vec<String>,
    live: Mutex<BTreeMap<StepId, Live>>,
}

/// The function as far as it has been run for one visit.
struct Live {
    script: Script,
    /// How often it was told something, its beginning counted.
    told: usize,
}

impl Scripts {
    pub(super) fn new(worker: Worker, function: u32, workflows: Vec<String>) -> Self {
        Self { worker, function, workflows, live: Mutex::default() }
    }

    /// Begins, or begins again from what was told before.
    fn begin(&self, call: &ScriptCall<'_>) -> Result<(Live, Option<Turn>), StepError> {
        let mut past = call.history.iter();
        let first = past.next();
        let now = first.map_or(call.now, |first| first.at);
        let (script, turn) = self
            .worker
            .start_script(self.function, vec![base(call)], seed(call), now)
            .map_err(failure)?;
        let mut live = Live { script, told: 1 };
        let Some(first) = first else { return Ok((live, Some(turn))) };
        self.compare(first, &turn)?;
        for told in past {
            let Some(delivery) = &told.delivery else { continue };
            let turn = live.script.deliver(read(delivery)?, told.at).map_err(|trouble| {
                let told = key_of(delivery);
                let what = format!("it does not wait for `{told}`, which has ended then");
                diverged(&what).with_detail(trouble.to_string())
            })?;
            live.told += 1;
            self.compare(told, &turn)?;
        }
        Ok((live, None))
    }

    /// Holds what a function does against what it did before.
    fn compare(&self, before: &Evaluation, turn: &Turn) -> Result<(), StepError> {
        let mut now = turn.calls.iter();
        for issued in &before.calls {
            let then = format!("`{}`{}", issued.key, parenthesised(issued.at.as_deref()));
            let now = match now.next() {
                Some(made) if is_same(issued, made) => continue,
                Some(made) if made.key == issued.key => {
                    format!("the same with other arguments{}", place(made))
                }
                Some(made) => format!("`{}`{}", made.key, place(made)),
                None => "nothing".to_owned(),
            };
            return Err(diverged(&format!("then it called {then}, now {now}")));
        }
        let Some(made) = now.next() else { return Ok(()) };
        let ended = if before.ended { ", because it had ended" } else { "" };
        let now = format!("`{}`{}", made.key, place(made));
        Err(diverged(&format!("then it called nothing more{ended}, now {now}")))
    }

    /// What a turn means to the machine.
    fn said(&self, turn: Turn, call: &ScriptCall<'_>) -> Result<Value, StepError> {
        let mut calls = vec![];
        for made in &turn.calls {
            calls.push(self.call(made)?);
        }
        let logs: Vec<Value> = turn
            .logs
            .into_iter()
            .map(|(level, text)| json!({ "level": level, "text": text }))
            .collect();
        let mut said =
            json!({ "at": call.now, "calls": calls, "cancel": turn.cancelled, "logs": logs });
        match turn.progress {
            Progress::Waiting | Progress::Stuck => {}
            // What it has begun is not cut off because nobody has waited for it: it ends when all
            // of that has. Whoever only sleeps was in a race, and misses nothing.
            Progress::Returned(_) if turn.open.iter().any(|call| call.kind != "sleep") => {}
            Progress::Returned(output) => {
                let patch = if output.is_null() { json!({}) } else { json!({ "result": output }) };
                said["done"] = json!({ "output": output, "patch": patch });
            }
            Progress::Threw(trouble) => {
                if !trouble.about.calls.is_empty() {
                    said["cause"] = json!(trouble.about.calls);
                }
                let heard = heard_code(call, &trouble);
                let mut error = failure(*trouble);
                error.code = heard.unwrap_or(error.code);
                said["failed"] = json!(error);
            }
        }
        Ok(said)
    }

    fn call(&self, made: &Made) -> Result<Value, StepError> {
        let mut fields = made.args.as_object().cloned().unwrap_or_default();
        let (body, input) = match made.kind.as_str() {
            "agent" | "skill" | "command" => ("agent".to_owned(), None),
            // Whoever sleeps takes nobody's place, like whoever waits for an answer.
            "ask" | "sleep" => ("ask".to_owned(), None),
            "workflow" => {
                let name = fields.get("workflow").and_then(Value::as_str).unwrap_or_default();
                self.refuse_unknown(name, made)?;
                (name.to_owned(), fields.remove("input"))
            }
            _ => ("work".to_owned(), None),
        };
        fields.insert("kind".to_owned(), made.kind.clone().into());
        let mut call = json!({
            "key": made.key,
            "body": body,
            "kind": made.kind,
            "hash": hash(&made.args),
            "call": fields,
        });
        if let Some(at) = &made.at {
            call["at"] = written(at).into();
        }
        if let Some(input) = input {
            call["input"] = input;
        }
        Ok(call)
    }

    /// Which workflows are inside must be known before a run, because they are checked with it.
    fn refuse_unknown(&self, name: &str, made: &Made) -> Result<(), StepError> {
        if self.workflows.iter().any(|known| known == name) {
            return Ok(());
        }
        let place = place(made);
        let message = format!(
            "ctx.workflow(\"{name}\"){place}: which workflows are called must be known before the \
             run; write the name as a literal, or list it in defineWorkflow({{ workflows: [\"{name}\"] }})"
        );
        Err(StepError::new(code::FUNCTION, message))
    }
}

impl Advance for Scripts {
    fn check(&self, call: &ScriptCall<'_>) -> Result<(), StepError> {
        if call.history.is_empty() {
            return Ok(());
        }
        self.begin(call).map(drop)
    }

    fn advance(&self, call: &ScriptCall<'_>) -> Result<Value, StepError> {
        let mut all = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let there = all.remove(call.step).filter(|live| {
            // Anything else means that something was told which is no fact.
            call.delivery.is_some() && live.told == call.history.len()
        });
        let (mut live, first) = match there {
            Some(live) => (live, None),
            None => self.begin(call)?,
        };
        let turn = match (first, call.delivery) {
            (Some(turn), None) => turn,
            (None, Some(delivery)) => {
                let mut turn = live.script.deliver(read(delivery)?, call.now);
                // Another one has not come to an end, and this one has gone with it.
                if turn.as_ref().is_err_and(|trouble| trouble.kind == TroubleKind::Gone) {
                    (live, _) = self.begin(call)?;
                    turn = live.script.deliver(read(delivery)?, call.now);
                }
                live.told += 1;
                turn.map_err(failure)?
            }
            // A beginning that was recorded is not asked for again, nor a delivery before it.
            (Some(_), Some(_)) | (None, None) => {
                let message = "the function is told something before it has begun";
                return Err(StepError::new(code::FUNCTION, message));
            }
        };
        let said = self.said(turn, call)?;
        if said.get("done").is_none() && said.get("failed").is_none() {
            all.insert(call.step.clone(), live);
        }
        Ok(said)
    }
}

/// The code of an error, where it is the one that the function was told with the failure of a call
/// and has not dealt with.
fn heard_code(call: &ScriptCall<'_>, trouble: &Trouble) -> Option<String> {
    let code = trouble.code.as_deref()?;
    let before = call.history.iter().filter_map(|told| told.delivery.as_ref());
    let is_it = |told: &&Arc<Value>| {
        let is_cause = trouble.about.calls.iter().any(|key| key == key_of(told));
        is_cause && told.pointer("/error/code").and_then(Value::as_str) == Some(code)
    };
    before.chain(call.delivery).find(is_it).map(|_| code.to_owned())
}

/// What the function is given when it begins.
fn base(call: &ScriptCall<'_>) -> Arg {
    let value = |value: Value| Arg::Value(Arc::new(value));
    let known = |key: &str| call.state.get(key).cloned().unwrap_or_default();
    let folder = call.paths.progress.parent().map(|folder| folder.display().to_string());
    Arg::Object(vec![
        ("prompt".to_owned(), Arg::Value(known("prompt"))),
        ("sessionId".to_owned(), value(call.session.into())),
        ("sessionDir".to_owned(), value(folder.into())),
        ("state".to_owned(), state(call.state)),
    ])
}

/// The same chance each time this visit of this session is run again, whatever becomes of its
/// state.
fn seed(call: &ScriptCall<'_>) -> u64 {
    let digest = Sha256::digest(format!("\"{}\"\n{}", call.root, call.step.as_str()));
    digest.iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

fn read(delivery: &Value) -> Result<Delivery, StepError> {
    let key = key_of(delivery).to_owned();
    let outcome = if let Some(value) = delivery.get("value") {
        Outcome::Value(Arc::new(value.clone()))
    } else if let Some(error) = delivery.get("error") {
        let word =
            |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Outcome::Failed { code: word("code"), message: word("message") }
    } else if delivery.get("cancelled").is_some() {
        Outcome::Cancelled
    } else {
        let message = format!("what has become of `{key}` cannot be read: {delivery}");
        return Err(StepError::new(code::FUNCTION, message));
    };
    Ok(Delivery { key, outcome })
}

fn key_of(delivery: &Value) -> &str {
    delivery.get("key").and_then(Value::as_str).unwrap_or_default()
}

fn is_same(before: &Issued, now: &Made) -> bool {
    before.key == now.key && before.kind == now.kind && before.hash == hash(&now.args)
}

/// The failure that a function does not do again what it did before.
fn diverged(what: &str) -> StepError {
    let message = format!(
        "the function does not do again what it did before: {what}; let it make the calls it made \
         then, with a `key` for those whose number has changed, and use `atomic resume --upgrade`"
    );
    StepError::new(code::DIVERGED, message)
}

/// Where a call is written.
fn place(made: &Made) -> String {
    placed(made.at.as_ref())
}

fn placed(at: Option<&Place>) -> String {
    parenthesised(at.map(written).as_deref())
}

fn parenthesised(place: Option<&str>) -> String {
    place.map(|place| format!(" ({place})")).unwrap_or_default()
}

fn written(at: &Place) -> String {
    format!("{}:{}:{}", shown(&at.file).display(), at.line, at.column)
}

/// A hash of a value that does not depend on the order of keys.
fn hash(value: &Value) -> String {
    hex(&Sha256::digest(sorted(value).to_string()))
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, Value> =
                fields.iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(
                fields.into_iter().map(|(key, value)| (key.clone(), value)).collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
