//! The turn under way.

use std::collections::BTreeSet;

use atomic_event::StepError;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::asking::Asking;
use crate::trouble::Trouble;

/// The turn under way.
#[derive(Default)]
pub(super) struct CurrentTurn {
    /// Those that are open.
    pub(super) questions: Vec<Asking>,
    /// Everything that was asked, so that nothing is asked twice.
    pub(super) asked: BTreeSet<String>,
    /// By when it has to end, when it was interrupted.
    pub(super) interrupted: Option<Instant>,
    /// What to report in place of the interruption.
    pub(super) failure: Option<StepError>,
    /// The prompt, until anything has been heard since.
    pub(super) unheard: Option<Value>,
    /// When it is over, if nothing more is said.
    pub(super) settling: Option<Instant>,
    /// Whether the program was heard to do something for it.
    pub(super) has_begun: bool,
    /// How often it was looked at before that.
    pub(super) looks: u32,
}

/// How the program stands.
#[derive(Default)]
pub(super) struct Standing {
    /// Why it tries again, when it does.
    pub(super) trial: Option<Trial>,
    /// Since when a summary is wanted that was not made.
    pub(super) unmade: Option<String>,
    /// Whether it may still be busy with a turn that is over for us.
    pub(super) may_be_busy: bool,
}

/// The program tries again and again.
pub(super) struct Trial {
    /// For how long it may.
    pub(super) until: Instant,
    pub(super) trouble: Trouble,
}

impl CurrentTurn {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.settling.into_iter().chain(self.interrupted).min()
    }

    pub(super) fn knows(&self, request: &str) -> bool {
        self.asked.contains(request)
    }

    pub(super) fn ask(&mut self, asking: Asking) {
        self.asked.insert(asking.request.clone());
        self.questions.push(asking);
    }
}

/// All answers in their order, when all are there.
pub(super) fn answered(asking: &Asking) -> Option<Value> {
    Some(asking.answered()?.into_iter().map(|(_, answer)| json!(answer.chosen)).collect())
}

/// What is answered where nobody is.
pub(super) fn nobody_to_ask(asking: Asking) -> (String, Value) {
    let answer = "Nobody can be asked here. Decide yourself and say what you decided.";
    let answers = asking.questions.iter().map(|_| json!([answer])).collect();
    (asking.request, answers)
}

/// A new id of a message, in the program's own form: the time, so that ids grow, and chance.
pub(super) fn message_id() -> String {
    let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
    let time = (now << 12) & 0xffff_ffff_ffff;
    let chance = uuid::Uuid::new_v4().simple().to_string();
    format!("msg_{time:012x}{}", &chance[..14])
}
