//! Facts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AgentName, Answer, AnsweredBy, BackendId, Certified, ConversationId, How, NodeId, Patch,
    ProjectRead, ProviderEvent, Question, QuestionId, Report, SessionId, StepError, StepId,
    StepResult, Verified, WorkflowName,
};

/// A point in time, written as RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub Timestamp);

impl Moment {
    /// A point in time as precise as a journal needs it.
    pub fn to_the_millisecond(time: Timestamp) -> Self {
        Self(Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time))
    }

    /// The time of day here, with the date where `now` is on another day.
    pub fn local(self, now: Self) -> String {
        let zone = jiff::tz::TimeZone::system();
        let (then, now) = (self.0.to_zoned(zone.clone()), now.0.to_zoned(zone));
        let pattern = if then.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
        then.strftime(pattern).to_string()
    }

    /// Milliseconds from `earlier` to here; zero when the clock went backwards.
    pub fn millis_since(self, earlier: Self) -> u64 {
        let millis = self.0.as_millisecond() - earlier.0.as_millisecond();
        u64::try_from(millis).unwrap_or(0)
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl JsonSchema for Moment {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// A fact about a session: past tense, never changed, on disk before anything acts on it.
///
/// The format is additive: fields and variants may be added, never renamed, removed or given
/// another meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A session was created. Always the first fact.
    SessionCreated(Box<Created>),
    /// A program took the session up again.
    SessionResumed(Resumed),
    /// A step is about to be carried out.
    StepStarted(Started),
    /// A backend opened or reopened a conversation; nothing was sent yet.
    ConversationOpened {
        /// The step that uses it.
        step: StepId,
        /// Which attempt of it.
        attempt: u32,
        /// The program.
        backend: BackendId,
        /// The program's own id, by which the conversation can be continued.
        conversation: ConversationId,
        /// Whether later steps of the same lane continue it.
        #[serde(default)]
        shared: bool,
    },
    /// The backend said or did something worth keeping.
    StepReported {
        /// During which step.
        step: StepId,
        /// Which attempt of it.
        attempt: u32,
        /// What.
        report: Report,
    },
    /// A step succeeded. It is never carried out again.
    StepFinished {
        /// Which step.
        step: StepId,
        /// Which attempt of it.
        attempt: u32,
        /// What it returned.
        result: StepResult,
        /// The commit the project was at when it ended, for steps that use its files.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
    },
    /// An attempt at a step failed.
    StepFailed {
        /// Which step.
        step: StepId,
        /// Which attempt of it.
        attempt: u32,
        /// Why.
        error: StepError,
    },
    /// A step was found started but not finished.
    StepLost {
        /// Which step.
        step: StepId,
        /// Which attempt of it.
        attempt: u32,
        /// Whether the attempt had got anywhere, as far as the journal shows.
        progressed: bool,
        /// What cut it short.
        reason: String,
    },
    /// A step was stopped because what it was for had been settled; nothing of it is left.
    StepCancelled {
        /// Which step.
        step: StepId,
        /// Which attempt of it.
        attempt: u32,
    },
    /// Time that was set for a node is up.
    TimerFired {
        /// The visit to that node.
        step: StepId,
        /// What the time was set for.
        timer: Timer,
    },
    /// A function of the workflow was evaluated; recorded so that it is not evaluated again.
    FunctionEvaluated {
        /// For which step.
        step: StepId,
        /// Which function; empty for a condition that could not be evaluated.
        #[serde(default)]
        call: String,
        /// What it returned.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        value: Value,
        /// Why it returned nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<StepError>,
    },
    /// A branch was chosen; recorded so that a resumed run chooses the same.
    BranchChosen {
        /// The step after which there was a choice.
        step: StepId,
        /// The number of the first condition that held, if any did.
        chosen: Option<u32>,
        /// Where that leads, for the reader.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<NodeId>,
    },
    /// Somebody asks the user.
    QuestionAsked {
        /// Its id in this session.
        id: QuestionId,
        /// The step that asks.
        step: StepId,
        /// What is asked.
        question: Question,
        /// Whether it is Atomic itself that asks, about a step that was cut off.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        about_lost: bool,
        /// Whether the step is done and asks by a signal.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_signal: bool,
    },
    /// The answer is known.
    QuestionAnswered(Answered),
    /// The answer was given to the one who asked.
    AnswerDelivered {
        /// Which question.
        id: QuestionId,
        /// `live`: as the result of the call that waits for it; otherwise as a message.
        live: bool,
    },
    /// The user gave an instruction for every agent started from now on.
    Instructed {
        /// What the user said.
        text: String,
    },
    /// The state was changed from outside the graph, such as a list a person edited.
    StatePatched {
        /// The change.
        patch: Patch,
        /// What brought it about.
        reason: String,
    },
    /// How often agents can be launched at most, from here on, was worked out.
    LaunchesCertified(Certified),
    /// The session was made from the beginning of another one, which ends here.
    SessionForked(Forked),
    /// Something the user should know, said aloud.
    Noted {
        /// What.
        text: String,
    },
    /// The run ended.
    RunFinished {
        /// How.
        ending: Ending,
        /// What the function of a plain async workflow returned, if it returned anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// How many tasks were verified, where the workflow runs checks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verified: Option<Verified>,
    },
    /// The run was stopped before its end: `run_paused` or `run_waiting`.
    #[serde(untagged)]
    RunStopped(RunStopped),
    /// About the provider of a backend: `provider_waiting`, `provider_back` or `payer_found`.
    #[serde(untagged)]
    Provider(ProviderEvent),
    /// A fact written by a newer version. Kept, shown to nobody, acted on by nobody.
    #[serde(untagged)]
    Unknown(Value),
}

/// The run was stopped before its end. Everything it had started is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunStopped {
    /// The run was paused.
    RunPaused {
        /// Why.
        reason: String,
    },
    /// Nothing can go on until these questions are answered.
    RunWaiting {
        /// The open questions.
        questions: Vec<QuestionId>,
    },
}

/// What a session is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Created {
    /// Major version of the journal's format.
    pub format: u32,
    /// The session's id.
    pub session: SessionId,
    /// The version of Atomic that made it.
    pub version: String,
    /// The workflow's name.
    pub workflow: WorkflowName,
    /// The compiled graph, as it was then.
    pub graph: Value,
    /// Hash of the graph, to tell whether the workflow has changed since.
    pub graph_hash: String,
    /// What the run is asked to do.
    pub prompt: String,
    /// The same before anybody refined it.
    pub original_prompt: String,
    /// The folder the run works in.
    pub workspace: PathBuf,
    /// The program that does the work.
    pub backend: BackendId,
    /// The model, when one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The settings of the run: ceilings, checks, policies.
    #[serde(default)]
    pub settings: Value,
    /// The state the run begins with.
    pub state: Patch,
    /// Where it comes from.
    #[serde(flatten)]
    pub origin: Origin,
}

impl Created {
    /// The session that this one goes back to: itself, unless it was forked.
    pub fn root(&self) -> &SessionId {
        let origin = &self.origin;
        origin.root.as_ref().or(origin.forked_from.as_ref()).unwrap_or(&self.session)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Where a session comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// The session this one was taken from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// The first of the sessions it goes back to, if it was taken from one: chance in its scripts
    /// starts from that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<SessionId>,
    /// The file the workflow was read from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The version of the shape of the state that the workflow has.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub state_version: u64,
}

/// The file a workflow was read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Where it was.
    pub path: PathBuf,
    /// What it said.
    pub text: String,
    /// The files of all workflows inside it, by the names they are used by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uses: BTreeMap<String, Self>,
    /// The texts of the files it imports.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub imports: BTreeMap<PathBuf, String>,
    /// When its code was run, in milliseconds since 1970: what it describes may depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<i64>,
    /// The link that led to it, after which it is called where it does not say a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<PathBuf>,
}

impl Source {
    /// A file that uses no other.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
            uses: BTreeMap::new(),
            imports: BTreeMap::new(),
            run_at: None,
            link: None,
        }
    }

    /// Where it was found.
    pub fn found(&self) -> &Path {
        self.link.as_deref().unwrap_or(&self.path)
    }
}

/// What time was set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    /// The longest time for what is inside a node.
    Limit,
    /// The wait before its next attempt.
    Rest,
}

/// Where a session was taken from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forked {
    /// The other session.
    pub from: SessionId,
    /// The step after which it was taken; none when the other session had finished no step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepId>,
    /// The last fact of the other one's journal that is part of this one.
    pub up_to: u64,
}

/// A session goes on with another version of its workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Upgraded {
    /// The compiled graph from here on.
    pub graph: Value,
    /// Its hash.
    pub graph_hash: String,
    /// The file the workflow is read from, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The version of the shape of the state before.
    #[serde(default)]
    pub from: u64,
    /// The version of the shape of the state from here on.
    #[serde(default)]
    pub to: u64,
    /// What becomes of the state of the run where its shape is another one: values by key, null
    /// for those that go.
    #[serde(default, skip_serializing_if = "Patch::is_empty")]
    pub state: Patch,
}

/// A session was taken up again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// The version of Atomic that resumed it.
    pub version: String,
    /// The settings from now on.
    #[serde(default)]
    pub settings: Value,
    /// Whether a failed run was given another chance.
    #[serde(default)]
    pub revived: bool,
    /// The other version of the workflow that the session runs from here on, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgraded: Option<Box<Upgraded>>,
    /// What differs from the last reading of the files that decide what the checks mean: nobody but
    /// the user has changed them since the run was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Box<ProjectRead>>,
    /// Whether providers are tried at once, whatever waits are recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
}

/// A step is about to be carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// Which step.
    pub step: StepId,
    /// Which attempt of it, from 1.
    pub attempt: u32,
    /// Why this attempt.
    #[serde(default)]
    pub how: How,
    /// What the node does, for the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The persona, when an agent does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The backend it runs on, where that is not the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendId>,
    /// The folder it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// Which iteration of the run this begins, when it begins one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// Whether the lane's next agent starts a new conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clears_context: bool,
    /// The lane whose conversation it shares, where that is not the one of its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// Which question.
    pub id: QuestionId,
    /// The answer.
    pub answer: Answer,
    /// Who gave it.
    pub by: AnsweredBy,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ending {
    /// Everything was done. Whether checks have verified it is a field of its own.
    Completed,
    /// It could not be done.
    Failed {
        /// Why.
        error: StepError,
        /// Whether it was the step's own failure or a ceiling of the whole run.
        #[serde(default)]
        why: Why,
    },
}

/// What ended a run that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A step failed.
    #[default]
    Step,
    /// A ceiling or budget of the whole run was met.
    Ceiling,
}
