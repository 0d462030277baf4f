//! State of the turns of one conversation, without IO and without a clock.
//!
//! A backend decodes the messages of its program into [`Input`]s. [`TurnMachine::apply`] returns the
//! [`Effect`]s that follow, and [`TurnMachine::deadline`] the time of the next [`Input::Tick`]. The same
//! inputs at the same times always give the same effects.

use std::collections::BTreeSet;
use std::time::Duration;

use atomic_event::{Answer, Question, QuestionId, Report, StepError, Stop, TurnEvent, Usage};
use tokio::time::Instant;

use crate::BackendError;
use crate::asking::Asking;
use crate::trouble::{MAX_RETRY_DELAY, Trouble, now_ms};

/// A point in time on both clocks: of timers, and of the day, in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) timer: Instant,
    pub(crate) unix_ms: i64,
}

impl Now {
    pub(crate) fn read() -> Self {
        Self { timer: Instant::now(), unix_ms: now_ms() }
    }
}

/// Time that an interrupted turn has to end by itself.
pub(crate) const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time during which a program that reported to be idle may still continue the turn. OpenCode 1.18.33
/// reports twice to be idle when something failed, the first time too early.
const SETTLE_TIME: Duration = Duration::from_millis(300);

/// Number of times a program may be idle before the turn has begun: about ten seconds. OpenCode 1.18.33
/// accepts a prompt before it does anything for it.
const MAX_IDLE_CHECKS: u32 = 30;

/// Settings of a conversation that turns depend on.
#[derive(Clone, Debug)]
pub(crate) struct TurnSettings {
    /// Name of the backend, for errors.
    pub(crate) backend: String,
    /// Maximum duration of provider trouble inside a turn.
    pub(crate) patience: Duration,
    /// Whether questions may be put to the user.
    pub(crate) questions: bool,
}

/// Kinds of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnKind {
    Prompt,
    /// The program summarises the conversation. Its events are not emitted, only its result.
    Summary,
}

/// Something that happened to a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    /// A prompt, or the request for a summary, is about to be sent.
    Begin(TurnKind),
    /// The program sent a message, so it has received the prompt.
    Heard,
    /// A decoded event of the turn.
    Event(TurnEvent),
    /// The agent asks the user.
    Asked { request: String, questions: Vec<Question> },
    /// The program does not wait for the answer any more.
    Withdrawn { request: String },
    /// The provider refused a call, and the program is going to retry it.
    Trouble(Trouble),
    /// A part of an answer arrived while the program was retrying.
    Streaming,
    /// The provider answered, so the trouble is over.
    Recovered,
    /// The turn cannot succeed any more and has to be stopped.
    Failed(StepError),
    /// The program is busy, so a report that it was idle belonged to the turn before.
    Busy,
    /// The program has begun to ask its model.
    Began,
    /// The program is idle, which may belong to the turn before.
    MaybeEnded,
    /// Answer to [`Effect::CheckIdle`].
    Checked { is_idle: bool },
    /// The turn is over.
    Ended(Stop),
    /// The connection to the program is lost.
    Lost { error: BackendError, may_resend: bool },
    /// The user, or the caller, interrupts the turn.
    Interrupt,
    /// The time of [`TurnMachine::deadline`] has come.
    Tick,
}

/// Something that has to be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Emit an event to the consumer of the turn.
    Emit(TurnEvent),
    /// Emit the end of the turn. No event follows.
    Finish(Stop),
    /// Return the result of the summary.
    Summarised(Result<Option<Usage>, StepError>),
    /// Ask the program to stop the turn.
    Interrupt,
    /// Stop waiting for the program: it ignored the interruption.
    Abandon,
    /// Stop work that no turn asked for, such as Copilot's reaction to the end of a background command.
    StopUnwanted,
    /// Send the answers to the questions of a request, in their order.
    Reply { request: String, answers: Vec<(Question, Answer)> },
    /// Answer a request that no user can answer.
    Decline { request: String, questions: usize },
    /// Close a question that is not answered any more.
    Withdraw { request: String },
    /// Reconnect and send the prompt again: the program ended before it received it.
    Resend,
    /// Check whether the program is idle; the result is [`Input::Checked`].
    CheckIdle,
    /// Read how the turn ended; the result is [`Input::Ended`].
    Conclude,
}

/// The turn under way.
struct CurrentTurn {
    kind: TurnKind,
    /// Costs of a summary.
    spent: Option<Usage>,
    open_questions: Vec<Asking>,
    /// Requests of this turn, so that none is put twice after a reconnection.
    asked: BTreeSet<String>,
    interrupt_deadline: Option<Instant>,
    /// Error that the end reports instead of the interruption it caused.
    failure: Option<StepError>,
    retrying: Option<Retrying>,
    is_heard: bool,
    has_begun: bool,
    settle_deadline: Option<Instant>,
    idle_checks: u32,
}

/// The program retries a call that its provider refused.
struct Retrying {
    until: Instant,
    trouble: Trouble,
    /// An answer that is arriving is not cut off. Another failure ends the turn.
    is_streaming: bool,
}

impl CurrentTurn {
    fn begin(&mut self) {
        self.settle_deadline = None;
        self.has_begun = true;
    }

    fn stream(&mut self) {
        if let Some(retrying) = &mut self.retrying {
            retrying.is_streaming = true;
        }
    }
}

/// The turns of one conversation, at most one at a time.
pub(crate) struct TurnMachine {
    settings: TurnSettings,
    turn: Option<CurrentTurn>,
    /// Costs that were reported between two turns. They are emitted with the next turn.
    unbilled: Vec<TurnEvent>,
}

impl TurnMachine {
    pub(crate) fn new(settings: TurnSettings) -> Self {
        Self { settings, turn: None, unbilled: vec![] }
    }

    /// Whether a turn is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether a turn is under way that was not interrupted.
    fn is_running(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.interrupt_deadline.is_none())
    }

    /// Time at which the machine needs an [`Input::Tick`].
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let turn = self.turn.as_ref()?;
        let retrying = turn.retrying.as_ref().filter(|retrying| !retrying.is_streaming);
        let deadlines = [
            turn.interrupt_deadline,
            turn.settle_deadline,
            retrying.map(|retrying| retrying.until),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Applies one input and returns what has to be done, in order.
    pub(crate) fn apply(&mut self, input: Input, now: Now) -> Vec<Effect> {
        match input {
            Input::Begin(kind) => self.begin(kind),
            Input::Heard => self.update(|turn| turn.is_heard = true),
            Input::Event(event) => self.event(event),
            Input::Asked { request, questions } => self.ask(request, questions),
            Input::Withdrawn { request } => {
                self.update(|turn| turn.open_questions.retain(|it| it.request != request))
            }
            Input::Trouble(trouble) => self.retry(trouble, now),
            Input::Streaming => self.update(CurrentTurn::stream),
            Input::Recovered => self.update(|turn| turn.retrying = None),
            Input::Failed(error) => self.fail(error, now),
            Input::Busy => self.update(CurrentTurn::begin),
            Input::Began => self.began(),
            Input::MaybeEnded => {
                self.update(|turn| turn.settle_deadline = Some(now.timer + SETTLE_TIME))
            }
            Input::Checked { is_idle } => self.checked(is_idle, now),
            Input::Ended(stop) => self.finish(stop),
            Input::Lost { error, may_resend } => self.lost(error, may_resend),
            Input::Interrupt => self.interrupt(now),
            Input::Tick => self.tick(now),
        }
    }

    /// Changes the turn under way, if there is one.
    fn update(&mut self, change: impl FnOnce(&mut CurrentTurn)) -> Vec<Effect> {
        self.turn.as_mut().map(change);
        vec![]
    }

    /// Takes an answer of the user. Returns `None` when the question is not open.
    pub(crate) fn answer(&mut self, id: &QuestionId, answer: &Answer) -> Option<Vec<Effect>> {
        let open = &mut self.turn.as_mut()?.open_questions;
        let place = open.iter_mut().position(|asking| asking.answer(id, answer))?;
        let Some(answers) = open[place].answered() else { return Some(vec![]) };
        let owned = |(question, answer): (&Question, &Answer)| (question.clone(), answer.clone());
        let answers = answers.into_iter().map(owned).collect();
        let request = open.remove(place).request;
        Some(vec![Effect::Reply { request, answers }])
    }

    fn begin(&mut self, kind: TurnKind) -> Vec<Effect> {
        self.turn = Some(CurrentTurn {
            kind,
            spent: None,
            open_questions: vec![],
            asked: BTreeSet::new(),
            interrupt_deadline: None,
            failure: None,
            retrying: None,
            is_heard: false,
            has_begun: false,
            settle_deadline: None,
            idle_checks: 0,
        });
        match kind {
            TurnKind::Prompt => self.unbilled.drain(..).map(Effect::Emit).collect(),
            TurnKind::Summary => vec![],
        }
    }

    fn event(&mut self, event: TurnEvent) -> Vec<Effect> {
        match (&mut self.turn, event) {
            (None, event @ TurnEvent::Reported(Report::Spent(_))) => {
                self.unbilled.push(event);
                vec![]
            }
            (None, _) => vec![],
            (Some(turn), event) if turn.kind == TurnKind::Summary => {
                if let TurnEvent::Reported(Report::Spent(usage)) = event {
                    turn.spent = Some(sum(turn.spent, usage));
                }
                vec![]
            }
            (Some(_), event) => vec![Effect::Emit(event)],
        }
    }

    fn ask(&mut self, request: String, questions: Vec<Question>) -> Vec<Effect> {
        let may_ask = self.settings.questions && !questions.is_empty() && self.is_running();
        let Some(turn) = self.turn.as_mut().filter(|turn| {
            may_ask && turn.kind == TurnKind::Prompt && !turn.asked.contains(&request)
        }) else {
            let is_known = self.turn.as_ref().is_some_and(|turn| turn.asked.contains(&request));
            let declined = Effect::Decline { request, questions: questions.len() };
            return if is_known { vec![] } else { vec![declined] };
        };
        turn.asked.insert(request.clone());
        let asking = Asking::new(request, questions);
        let effects = asking.events().map(Effect::Emit).collect();
        turn.open_questions.push(asking);
        effects
    }

    /// The program may retry for a while, counted from the first failure, unless the next retry is too
    /// far away to be awaited inside a turn.
    fn retry(&mut self, trouble: Trouble, now: Now) -> Vec<Effect> {
        let patience = trouble.kind.patience(self.settings.patience);
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.interrupt_deadline.is_none()) else {
            return vec![];
        };
        let before = turn.retrying.take().map(|retrying| retrying.until);
        let latest = now.timer + patience;
        let until = before.map_or(latest, |before| before.min(latest));
        let wait = trouble.retry_in(now.unix_ms).unwrap_or_default();
        let left = until.saturating_duration_since(now.timer);
        if left.is_zero() || wait > left.min(MAX_RETRY_DELAY) {
            return self.fail(trouble.into_error_at(&self.settings.backend, now.unix_ms), now);
        }
        turn.retrying = Some(Retrying { until, trouble, is_streaming: false });
        vec![]
    }

    fn fail(&mut self, error: StepError, now: Now) -> Vec<Effect> {
        if let Some(turn) = &mut self.turn {
            turn.failure.get_or_insert(error);
        }
        self.interrupt(now)
    }

    fn interrupt(&mut self, now: Now) -> Vec<Effect> {
        let running = self.turn.as_mut().filter(|turn| turn.interrupt_deadline.is_none());
        let Some(turn) = running else { return vec![] };
        turn.interrupt_deadline = Some(now.timer + INTERRUPT_TIMEOUT);
        turn.retrying = None;
        let open = std::mem::take(&mut turn.open_questions).into_iter();
        let withdrawn = open.map(|asking| Effect::Withdraw { request: asking.request });
        std::iter::once(Effect::Interrupt).chain(withdrawn).collect()
    }

    fn began(&mut self) -> Vec<Effect> {
        let Some(turn) = &mut self.turn else { return vec![Effect::StopUnwanted] };
        turn.begin();
        match turn.interrupt_deadline {
            // The interruption was sent before the program had begun, and had nothing to stop.
            Some(_) => vec![Effect::Interrupt],
            None => vec![],
        }
    }

    fn checked(&mut self, is_idle: bool, now: Now) -> Vec<Effect> {
        let Some(turn) = self.turn.as_mut().filter(|_| is_idle) else { return vec![] };
        let may_begin = !turn.has_begun && turn.interrupt_deadline.is_none();
        if may_begin && turn.idle_checks < MAX_IDLE_CHECKS {
            turn.idle_checks += 1;
            turn.settle_deadline = Some(now.timer + SETTLE_TIME);
            return vec![];
        }
        vec![Effect::Conclude]
    }

    fn lost(&mut self, error: BackendError, may_resend: bool) -> Vec<Effect> {
        let is_running = self.is_running();
        match &mut self.turn {
            Some(turn) if may_resend && is_running && !turn.is_heard => {
                // Once: a second program that ends at once would end again.
                turn.is_heard = true;
                vec![Effect::Resend]
            }
            _ => self.finish(Stop::Failed(error.into())),
        }
    }

    fn tick(&mut self, now: Now) -> Vec<Effect> {
        let Some(turn) = &mut self.turn else { return vec![] };
        if turn.interrupt_deadline.is_some_and(|deadline| deadline <= now.timer) {
            let mut effects = vec![Effect::Abandon];
            effects.extend(self.finish(Stop::Interrupted));
            return effects;
        }
        let due = |retrying: &mut Retrying| !retrying.is_streaming && retrying.until <= now.timer;
        if let Some(retrying) = turn.retrying.take_if(due) {
            let error = retrying.trouble.into_error_at(&self.settings.backend, now.unix_ms);
            return self.fail(error, now);
        }
        match turn.settle_deadline.take_if(|deadline| *deadline <= now.timer) {
            Some(_) => vec![Effect::CheckIdle],
            None => vec![],
        }
    }

    fn finish(&mut self, stop: Stop) -> Vec<Effect> {
        let Some(turn) = self.turn.take() else { return vec![] };
        let stop = match (stop, turn.failure) {
            (Stop::Interrupted | Stop::Failed(_), Some(failure)) => Stop::Failed(failure),
            (Stop::Failed(_), None) if turn.interrupt_deadline.is_some() => Stop::Interrupted,
            (stop, _) => stop,
        };
        if turn.kind == TurnKind::Prompt {
            return vec![Effect::Finish(stop)];
        }
        let interrupted = || BackendError::Misused {
            backend: self.settings.backend.as_str().into(),
            problem: "the summary was interrupted".to_owned(),
        };
        vec![Effect::Summarised(match stop {
            Stop::Done { .. } => Ok(turn.spent),
            Stop::Interrupted => Err(interrupted().into()),
            Stop::Failed(error) => Err(error),
        })]
    }
}

/// Adds a report to the costs so far. A total replaces them.
fn sum(before: Option<Usage>, usage: Usage) -> Usage {
    let Some(before) = before.filter(|_| !usage.is_total) else { return usage };
    let add = |one: Option<f64>, other: Option<f64>| {
        [one, other].into_iter().flatten().reduce(|one, other| one + other)
    };
    Usage {
        input_tokens: before.input_tokens.saturating_add(usage.input_tokens),
        output_tokens: before.output_tokens.saturating_add(usage.output_tokens),
        cost_usd: add(before.cost_usd, usage.cost_usd),
        estimated_usd: add(before.estimated_usd, usage.estimated_usd),
        ..usage
    }
}
