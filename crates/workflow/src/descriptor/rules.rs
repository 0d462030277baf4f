//! Conditions, reducers, counts, and what to do about failures.

use atomic_graph::{Condition, Count, Key, Node, NodeId, OnError, OnLost, Reducer, Retry};
use serde_json::Value;

use super::Role;
use super::fault::code;
use super::fields::Fields;
use super::json::{Body, Item};
use super::reader::{Reader, is_function};

/// The back-off of a node that asks for retries and does not say more.
const ATTEMPTS: u32 = 3;
const BACKOFF_MS: u64 = 1_000;

/// How a condition is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// To choose among edges, so there may be an `otherwise`.
    OnEdge,
    /// On its own.
    Alone,
}

/// What stands for a condition that could not be read.
pub(super) fn unreadable() -> Condition {
    Condition::Equals { key: Key::from(""), value: Value::Null }
}

impl<'d> Reader<'d, '_, '_> {
    pub(super) fn condition(&mut self, item: &'d Item, asked: Asked) -> Condition {
        if is_function(item) {
            return self.function(item, Role::Condition).map_or_else(unreadable, Condition::Call);
        }
        match item.as_text() {
            Some("otherwise") if asked == Asked::OnEdge => return Condition::Otherwise,
            Some("otherwise") => {
                let message = "\"otherwise\" has a meaning only where edges are chosen";
                let remedy = "write {\"key\": …, \"equals\": …}";
                self.faults.add(code::WRONG_TYPE, item.at, message, remedy);
                return unreadable();
            }
            Some(_) | None => {}
        }
        let Some(entries) = item.as_object() else {
            let remedy = "write {\"key\": …, \"equals\": …}, {\"says\": {\"node\": …, \"text\": \
                          …}}, {\"not\": …}, or where edges are chosen \"otherwise\"";
            self.wrong(item, "a condition", remedy);
            return unreadable();
        };
        let mut fields = Fields::new(item, entries, "a condition");
        let (not, says) = (fields.take("not"), fields.take("says"));
        let condition = if let Some(other) = not {
            Condition::Not(Box::new(self.condition(other, Asked::Alone)))
        } else if let Some(says) = says {
            self.says(says)
        } else {
            let key = fields.need(&["key"], "which value of the state", &mut self.faults);
            let key = key.and_then(|key| self.name(key));
            let value = fields.take_even_null("equals");
            if value.is_none() && key.is_some() {
                fields.lacks("equals", "what the value must be", &mut self.faults);
            }
            let value = value.map(|value| self.value(value)).unwrap_or_default();
            Condition::Equals { key: Key::from(key.unwrap_or_default()), value }
        };
        fields.finish(&mut self.faults);
        condition
    }

    fn says(&mut self, item: &'d Item) -> Condition {
        let Some(mut fields) = self.object(item, "what a node says") else { return unreadable() };
        let node = fields.need(&["node"], "whose output", &mut self.faults);
        let node = node.and_then(|node| self.name(node)).unwrap_or_default();
        let text = fields.need(&["text"], "what it must contain", &mut self.faults);
        let text = text.and_then(|text| self.words(text)).unwrap_or_default();
        fields.finish(&mut self.faults);
        Condition::Says { node: NodeId::from(node), text: text.to_owned() }
    }

    /// How changes to a key are combined.
    pub(super) fn reducer(&mut self, item: &'d Item) -> Reducer {
        let known = [
            ("replace", Reducer::Replace),
            ("concat", Reducer::Concat),
            ("merge", Reducer::Merge),
            ("mergeById", Reducer::MergeById),
            ("max", Reducer::Max),
            ("min", Reducer::Min),
            ("sum", Reducer::Sum),
            ("or", Reducer::Or),
            ("and", Reducer::And),
            ("ifDefined", Reducer::IfDefined),
        ];
        if item.as_text().is_some() {
            return self.word(item, &known).unwrap_or_default();
        }
        if is_function(item) {
            // What the engine knows itself it does itself, much faster.
            let native = item.find("native").and_then(Item::as_text);
            let native = native.and_then(|name| known.into_iter().find(|(word, _)| *word == name));
            let field = item.find("args").and_then(|args| args.as_list()?.first()?.as_text());
            return match (native, field) {
                (Some((_, Reducer::MergeById)), Some(field)) => merge_by(field),
                (Some((_, native)), _) => native,
                (None, _) => {
                    self.function(item, Role::Reducer).map_or(Reducer::Replace, Reducer::Call)
                }
            };
        }
        let Some(mut fields) = self.object(item, "a reducer") else { return Reducer::Replace };
        let what_for = "the field that tells the rows of a list apart";
        let field = fields.need(&["mergeBy", "mergeById"], what_for, &mut self.faults);
        let field = field.and_then(|field| self.name(field));
        fields.finish(&mut self.faults);
        field.map_or(Reducer::Replace, merge_by)
    }

    /// A number, or the key of the state under which it is found.
    pub(super) fn count(&mut self, item: &'d Item) -> Option<Count> {
        if item.as_text().is_some() {
            return self.name(item).map(|key| Count::Key(Key::from(key)));
        }
        self.number(item, 1).map(Count::Fixed)
    }

    pub(super) fn retry(&mut self, item: &'d Item) -> Retry {
        let Some(mut fields) = self.object(item, "a retry rule") else { return Retry::default() };
        let mut retry = Retry { attempts: ATTEMPTS, delay_ms: BACKOFF_MS, ..Retry::default() };
        if let Some(item) = fields.take("maxAttempts") {
            retry.attempts = self.number(item, 1).unwrap_or(1);
        }
        if let Some(item) = fields.take("backoffMs") {
            retry.delay_ms = self.number(item, 0).unwrap_or(0);
        }
        if let Some(item) = fields.take("backoffMultiplier") {
            retry.factor = self.fraction(item, 1_000.0).unwrap_or(1.0);
        }
        if let Some(item) = fields.take("codes") {
            retry.codes = self.names(item).into_iter().map(str::to_owned).collect();
        }
        if let Some(item) = fields.take("retryOn") {
            retry.when = self.function(item, Role::RetryOn);
        }
        fields.finish(&mut self.faults);
        retry
    }

    /// What to do when the node failed for good; `has_retry` when its author has said how often
    /// it is tried.
    pub(super) fn on_error(&mut self, item: &'d Item, node: &mut Node, has_retry: bool) {
        // To try again on an error is what retries are; without a number it is done a few times.
        let try_again = |node: &mut Node, delay_ms: Option<u64>| {
            if !has_retry {
                node.retry.attempts = OnError::ATTEMPTS;
            }
            node.retry.delay_ms = delay_ms.unwrap_or(node.retry.delay_ms);
        };
        if is_function(item) {
            node.on_error =
                self.function(item, Role::OnError).map_or(OnError::Abort, OnError::Call);
            return;
        }
        if item.as_text().is_some() {
            let known = [("retry", What::Retry), ("skip", What::Skip), ("abort", What::Abort)];
            match self.word(item, &known) {
                Some(What::Retry) => try_again(node, None),
                Some(What::Skip) => node.on_error = OnError::Skip,
                Some(What::Abort | What::Goto) | None => {}
            }
            return;
        }
        let Some(mut fields) = self.object(item, "a rule for failures") else { return };
        let action = fields.need(&["action"], "what to do", &mut self.faults);
        match action.and_then(|action| self.word(action, &WHATS)) {
            Some(What::Retry) => {
                let delay = fields.take("delayMs").and_then(|delay| self.number(delay, 0));
                try_again(node, delay);
            }
            Some(What::Skip) => {
                let update = fields.take("stateUpdate");
                node.on_error = update.map_or(OnError::Skip, |update| self.skip_with(update));
            }
            Some(What::Goto) => {
                let to = fields.need(&["node", "nodeId"], "where to go", &mut self.faults);
                if let Some(to) = to.and_then(|to| self.name(to)) {
                    node.on_error = OnError::Goto(NodeId::from(to));
                }
            }
            Some(What::Abort) => {}
            None => ["delayMs", "stateUpdate", "node", "nodeId"].into_iter().for_each(|key| {
                fields.take(key);
            }),
        }
        fields.finish(&mut self.faults);
    }

    fn skip_with(&mut self, item: &'d Item) -> OnError {
        let Some(entries) = item.as_object() else {
            self.wrong(item, "an object", "write the keys of the state and their new values");
            return OnError::Skip;
        };
        let patch = entries.iter().map(|e| (Key::from(e.key.as_str()), self.value(&e.item)));
        OnError::SkipWith(patch.collect())
    }

    pub(super) fn on_lost(&mut self, item: &'d Item) -> OnLost {
        let known =
            [("continue", OnLost::Continue), ("runAgain", OnLost::RunAgain), ("ask", OnLost::Ask)];
        self.word(item, &known).unwrap_or_default()
    }

    /// A JSON Schema; whether it is one is found out with the graph.
    pub(super) fn schema(&mut self, item: &'d Item) -> Option<Value> {
        if matches!(item.body, Body::Object(_) | Body::Bool(_)) {
            return Some(self.value(item));
        }
        self.wrong(item, "a JSON Schema", "write an object such as {\"type\": \"object\"}");
        None
    }
}

#[derive(Clone, Copy)]
enum What {
    Retry,
    Skip,
    Abort,
    Goto,
}

const WHATS: [(&str, What); 4] =
    [("retry", What::Retry), ("skip", What::Skip), ("abort", What::Abort), ("goto", What::Goto)];

fn merge_by(field: &str) -> Reducer {
    if field == "id" { Reducer::MergeById } else { Reducer::MergeBy(field.to_owned()) }
}
