//! Tables: inputs with their times, and the effects that follow.

use std::time::Duration;

use atomic_event::{Answer, Question, QuestionId, Report, StepError, Stop, TurnEvent, Usage};
use proptest::prelude::{Just, Strategy, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use tokio::time::Instant;

use super::machine::{Effect, Input, Now, TurnKind, TurnMachine, TurnSettings};
use crate::BackendError;
use crate::trouble::{Kind, Trouble};

/// Time of the day at which every scenario starts.
const START: i64 = 1_000_000_000_000;

fn settings() -> TurnSettings {
    TurnSettings { backend: "test".to_owned(), patience: Duration::from_secs(100), questions: true }
}

/// Applies inputs at times, in milliseconds. Returns a line for each input with its effects, if any.
fn effects(inputs: &[(u64, Input)]) -> Vec<String> {
    let mut machine = TurnMachine::new(settings());
    let start = Instant::now();
    let mut lines = vec![];
    for (at, input) in inputs {
        let timer = start + Duration::from_millis(*at);
        let unix_ms = START + i64::try_from(*at).unwrap();
        let effects = machine.apply(input.clone(), Now { timer, unix_ms });
        if !effects.is_empty() {
            let words: Vec<String> = effects.iter().map(word).collect();
            lines.push(format!("{at} {}", words.join(" ")));
        }
    }
    let left = machine.deadline().map(|deadline| deadline.duration_since(start).as_millis());
    lines.extend(left.map(|left| format!("deadline {left}")));
    lines
}

/// An effect in short.
fn word(effect: &Effect) -> String {
    let end = |stop: &Stop| match stop {
        Stop::Done { text } => format!("done:{text}"),
        Stop::Interrupted => "interrupted".to_owned(),
        Stop::Failed(error) => format!("failed:{}", error.code),
    };
    match effect {
        Effect::Emit(TurnEvent::Typed { text }) => format!("typed:{text}"),
        Effect::Emit(TurnEvent::Asked { id, more, .. }) => format!("asked:{id}+{more}"),
        Effect::Emit(TurnEvent::Reported(Report::Spent(usage))) => {
            format!("spent:{}", usage.input_tokens)
        }
        Effect::Emit(event) => format!("{event:?}"),
        Effect::Finish(stop) => end(stop),
        Effect::Summarised(Ok(usage)) => {
            format!("summarised:{}", usage.map_or(0, |usage| usage.input_tokens))
        }
        Effect::Summarised(Err(error)) => format!("unsummarised:{}", error.code),
        Effect::Interrupt => "interrupt".to_owned(),
        Effect::Abandon => "abandon".to_owned(),
        Effect::StopUnwanted => "stop-unwanted".to_owned(),
        Effect::Reply { request, answers } => format!("reply:{request}={}", answers.len()),
        Effect::Decline { request, questions } => format!("decline:{request}={questions}"),
        Effect::Withdraw { request } => format!("withdraw:{request}"),
        Effect::Resend => "resend".to_owned(),
        Effect::CheckIdle => "check-idle".to_owned(),
        Effect::Conclude => "conclude".to_owned(),
    }
}

fn begin() -> Input {
    Input::Begin(TurnKind::Prompt)
}

fn typed(text: &str) -> Input {
    Input::Event(TurnEvent::Typed { text: text.to_owned() })
}

fn spent(input_tokens: u64, is_total: bool) -> Input {
    let usage = Usage { input_tokens, is_total, ..Usage::default() };
    Input::Event(TurnEvent::Reported(Report::Spent(usage)))
}

fn ended(text: &str) -> Input {
    Input::Ended(Stop::Done { text: text.to_owned() })
}

fn failed() -> Input {
    Input::Ended(Stop::Failed(StepError::new("rejected", "")))
}

/// The next retry is in this time, in milliseconds after the start.
fn trouble(kind: Kind, retry_at: Option<i64>) -> Input {
    Input::Trouble(Trouble::new(kind, "").with_retry_at(retry_at.map(|at| START + at)))
}

fn lost(may_resend: bool) -> Input {
    let error = BackendError::Exited { backend: "test".into(), status: "1".to_owned() };
    Input::Lost { error, may_resend }
}

fn question(text: &str) -> Question {
    Question {
        question: text.to_owned(),
        header: String::new(),
        options: vec![],
        multi_select: false,
        free_text: true,
    }
}

fn asked(request: &str, count: usize) -> Input {
    let questions = (0..count).map(|number| question(&number.to_string())).collect();
    Input::Asked { request: request.to_owned(), questions }
}

/// A name, inputs with their times, and the effects that are expected.
type Scenario<'a> = (&'a str, Vec<(u64, Input)>, &'a [&'a str]);

fn check(table: &[Scenario<'_>]) {
    for (scenario, inputs, expected) in table {
        assert_eq!(effects(inputs), *expected, "{scenario}");
    }
}

#[test]
fn a_turn_ends_once() {
    check(&[
        (
            "text",
            vec![(0, begin()), (1, typed("a")), (2, ended("b")), (3, ended("c")), (4, typed("d"))],
            &["1 typed:a", "2 done:b"],
        ),
        ("failure", vec![(0, begin()), (1, failed()), (2, ended("b"))], &["1 failed:rejected"]),
        (
            "costs between two turns belong to the next",
            vec![(0, spent(5, false)), (1, begin()), (2, ended(""))],
            &["1 spent:5", "2 done:"],
        ),
    ]);
}

#[test]
fn an_interrupted_turn_ends_in_time() {
    check(&[
        (
            "the program stops",
            vec![(0, begin()), (5, Input::Interrupt), (9, Input::Ended(Stop::Interrupted))],
            &["5 interrupt", "9 interrupted"],
        ),
        (
            "a failure of an interrupted turn is its interruption",
            vec![(0, begin()), (5, Input::Interrupt), (9, failed())],
            &["5 interrupt", "9 interrupted"],
        ),
        (
            "the answer was faster",
            vec![(0, begin()), (5, Input::Interrupt), (9, ended("a"))],
            &["5 interrupt", "9 done:a"],
        ),
        (
            "the program ignores it and talks on",
            vec![(0, begin()), (5, Input::Interrupt), (9, typed("a")), (2005, Input::Tick)],
            &["5 interrupt", "9 typed:a", "2005 abandon interrupted"],
        ),
        (
            "a second interruption does not extend the deadline",
            vec![(0, begin()), (5, Input::Interrupt), (1000, Input::Interrupt)],
            &["5 interrupt", "deadline 2005"],
        ),
        ("without a turn", vec![(0, Input::Interrupt), (1, Input::Tick)], &[]),
        (
            "the program begins only after the interruption",
            vec![(0, begin()), (5, Input::Interrupt), (9, Input::Began)],
            &["5 interrupt", "9 interrupt", "deadline 2005"],
        ),
        ("work without a turn", vec![(0, Input::Began)], &["0 stop-unwanted"]),
        (
            "a failure that has to be stopped wins over the interruption",
            vec![
                (0, begin()),
                (5, Input::Failed(StepError::new("refused", ""))),
                (9, Input::Ended(Stop::Interrupted)),
            ],
            &["5 interrupt", "9 failed:refused"],
        ),
    ]);
}

#[test]
fn retries_are_limited_by_the_first_failure() {
    let rate = |retry_at| trouble(Kind::RateLimited, retry_at);
    check(&[
        (
            "trouble that lasts",
            vec![
                (0, begin()),
                (1_000, rate(None)),
                (90_000, rate(Some(91_000))),
                (100_999, Input::Tick),
                (101_000, Input::Tick),
                (101_001, Input::Ended(Stop::Interrupted)),
            ],
            &["101000 interrupt", "101001 failed:rate_limited"],
        ),
        (
            "trouble that ends",
            vec![(0, begin()), (1_000, rate(None)), (2_000, Input::Recovered)],
            &[],
        ),
        (
            "an arriving answer is not cut off",
            vec![
                (0, begin()),
                (1_000, rate(None)),
                (2_000, Input::Streaming),
                (101_000, Input::Tick),
                (102_000, ended("a")),
            ],
            &["102000 done:a"],
        ),
        (
            "an arriving answer that breaks off is the last try",
            vec![
                (0, begin()),
                (1_000, rate(None)),
                (2_000, Input::Streaming),
                (102_000, rate(None)),
            ],
            &["102000 interrupt", "deadline 104000"],
        ),
        (
            "a far retry is not awaited",
            vec![(0, begin()), (1_000, rate(Some(61_001)))],
            &["1000 interrupt", "deadline 3000"],
        ),
        (
            "a near retry is awaited",
            vec![(0, begin()), (1_000, rate(Some(61_000)))],
            &["deadline 101000"],
        ),
        (
            "a retry after the limit is not awaited",
            vec![(0, begin()), (1_000, rate(None)), (99_000, rate(Some(102_000)))],
            &["99000 interrupt", "deadline 101000"],
        ),
        (
            "trouble that does not pass",
            vec![(0, begin()), (1_000, trouble(Kind::Rejected, None)), (11_000, Input::Tick)],
            &["11000 interrupt", "deadline 13000"],
        ),
        (
            "after an interruption",
            vec![(0, begin()), (5, Input::Interrupt), (9, rate(Some(500_000)))],
            &["5 interrupt", "deadline 2005"],
        ),
        ("without a turn", vec![(0, rate(Some(500_000)))], &[]),
    ]);
}

#[test]
fn questions_are_put_once_and_withdrawn_with_the_turn() {
    check(&[
        (
            "asked twice",
            vec![(0, begin()), (1, asked("r", 2)), (2, asked("r", 2))],
            &["1 asked:r/0+1 asked:r/1+0"],
        ),
        (
            "interrupted",
            vec![(0, begin()), (1, asked("r", 1)), (2, Input::Interrupt), (3, asked("s", 1))],
            &["1 asked:r/0+0", "2 interrupt withdraw:r", "3 decline:s=1", "deadline 2002"],
        ),
        (
            "withdrawn by the program",
            vec![
                (0, begin()),
                (1, asked("r", 1)),
                (2, Input::Withdrawn { request: "r".to_owned() }),
                (3, Input::Interrupt),
            ],
            &["1 asked:r/0+0", "3 interrupt", "deadline 2003"],
        ),
        ("nothing is asked", vec![(0, begin()), (1, asked("r", 0))], &["1 decline:r=0"]),
        ("without a turn", vec![(0, asked("r", 1))], &["0 decline:r=1"]),
        (
            "while summarising",
            vec![(0, Input::Begin(TurnKind::Summary)), (1, asked("r", 1))],
            &["1 decline:r=1"],
        ),
    ]);
    let mut machine = TurnMachine::new(settings());
    machine.apply(begin(), Now::read());
    machine.apply(asked("r", 2), Now::read());
    let mut answer = |id: &str| {
        let answer = Answer { chosen: vec!["yes".to_owned()] };
        let effects = machine.answer(&QuestionId::from(id.to_owned()), &answer)?;
        Some(effects.iter().map(word).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(answer("r/1").as_deref(), Some(""));
    assert_eq!(answer("r/1"), None);
    assert_eq!(answer("r/2"), None);
    assert_eq!(answer("r/0").as_deref(), Some("reply:r=2"));
    assert_eq!(answer("r/0"), None);
}

#[test]
fn a_prompt_that_was_not_received_is_sent_again_once() {
    check(&[
        (
            "twice",
            vec![(0, begin()), (1, lost(true)), (2, lost(true))],
            &["1 resend", "2 failed:exited"],
        ),
        ("received", vec![(0, begin()), (1, Input::Heard), (2, lost(true))], &["2 failed:exited"]),
        ("not allowed", vec![(0, begin()), (1, lost(false))], &["1 failed:exited"]),
        (
            "interrupted",
            vec![(0, begin()), (1, Input::Interrupt), (2, lost(true))],
            &["1 interrupt", "2 interrupted"],
        ),
        ("without a turn", vec![(0, lost(true))], &[]),
    ]);
}

#[test]
fn an_idle_program_is_asked_before_its_turn_ends() {
    let maybe = Input::MaybeEnded;
    let idle = |is_idle| Input::Checked { is_idle };
    check(&[
        (
            "idle",
            vec![
                (0, begin()),
                (1, Input::Began),
                (2, maybe.clone()),
                (301, Input::Tick),
                (302, Input::Tick),
                (310, idle(true)),
            ],
            &["302 check-idle", "310 conclude"],
        ),
        (
            "busy again",
            vec![(0, begin()), (1, Input::Began), (2, maybe.clone()), (3, Input::Busy)],
            &[],
        ),
        (
            "busy",
            vec![
                (0, begin()),
                (1, Input::Began),
                (2, maybe.clone()),
                (302, Input::Tick),
                (310, idle(false)),
            ],
            &["302 check-idle"],
        ),
        (
            "not begun yet",
            vec![(0, begin()), (2, maybe), (302, Input::Tick), (310, idle(true))],
            &["302 check-idle", "deadline 610"],
        ),
    ]);
    let mut machine = TurnMachine::new(settings());
    machine.apply(begin(), Now::read());
    let checks = (0..).take_while(|_| machine.apply(idle(true), Now::read()).is_empty()).count();
    assert_eq!(checks, 30);
}

#[test]
fn a_summary_returns_its_costs_and_emits_nothing() {
    let summary = || Input::Begin(TurnKind::Summary);
    check(&[
        (
            "sum",
            vec![
                (0, summary()),
                (1, typed("a")),
                (2, spent(5, false)),
                (3, spent(6, false)),
                (4, ended("")),
            ],
            &["4 summarised:11"],
        ),
        (
            "total",
            vec![(0, summary()), (2, spent(5, false)), (3, spent(6, true)), (4, ended(""))],
            &["4 summarised:6"],
        ),
        ("failure", vec![(0, summary()), (4, failed())], &["4 unsummarised:rejected"]),
        (
            "interrupted",
            vec![(0, summary()), (4, Input::Interrupt), (2004, Input::Tick)],
            &["4 interrupt", "2004 abandon unsummarised:misused"],
        ),
    ]);
}

fn inputs() -> impl Strategy<Value = Vec<(u64, Input)>> {
    let input = prop_oneof![
        Just(begin()),
        Just(Input::Heard),
        Just(typed("a")),
        Just(spent(1, false)),
        Just(asked("r", 2)),
        Just(asked("s", 1)),
        Just(Input::Withdrawn { request: "r".to_owned() }),
        Just(trouble(Kind::Overloaded, None)),
        Just(trouble(Kind::RateLimited, Some(500_000))),
        Just(Input::Streaming),
        Just(Input::Recovered),
        Just(Input::Failed(StepError::new("refused", ""))),
        Just(Input::Busy),
        Just(Input::Began),
        Just(Input::MaybeEnded),
        Just(Input::Checked { is_idle: true }),
        Just(ended("a")),
        Just(failed()),
        Just(lost(true)),
        Just(Input::Interrupt),
        Just(Input::Tick),
    ];
    prop::collection::vec((0_u64..3_000, input), 0..60)
}

proptest! {
    /// Turns end at most once, nothing is emitted outside of a turn, an interrupted turn has a deadline,
    /// and a second machine does the same.
    #[test]
    fn every_sequence_keeps_the_rules_of_a_turn(steps in inputs()) {
        let mut machine = TurnMachine::new(settings());
        let mut other = TurnMachine::new(settings());
        let start = Instant::now();
        let (mut time, mut is_open, mut interrupted_at) = (0, false, None);
        for (wait, input) in steps {
            // A second turn begins only after the end of the first.
            if input == begin() && machine.is_busy() {
                continue;
            }
            time += wait;
            let unix_ms = START + i64::try_from(time).unwrap();
            let now = Now { timer: start + Duration::from_millis(time), unix_ms };
            is_open |= input == begin();
            let effects = machine.apply(input.clone(), now);
            prop_assert_eq!(&effects, &other.apply(input, now));
            for effect in effects {
                if matches!(effect, Effect::Emit(_)) {
                    prop_assert!(is_open);
                } else if matches!(effect, Effect::Finish(_)) {
                    prop_assert!(std::mem::take(&mut is_open));
                    interrupted_at = None;
                } else if effect == Effect::Interrupt {
                    interrupted_at.get_or_insert(time);
                }
            }
            prop_assert_eq!(is_open, machine.is_busy());
            if let Some(at) = interrupted_at {
                let latest = start + Duration::from_millis(at + 2_000);
                prop_assert!(machine.deadline().is_some_and(|deadline| deadline <= latest));
            }
        }
    }
}
