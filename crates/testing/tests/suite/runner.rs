//! Whole runs of the scripted Ralph in one process: what they record, do and leave.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use atomic_runner::Outcome;
use atomic_session::{InboxAnswer, leave_answer};
use atomic_testing::ralph_script::{ANSWER, QUESTION, TASKS, asking_ralph};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::runner_stand::{Stand, on_one_thread};

#[test]
fn a_ralph_with_everything_in_it_ends_well() {
    for stand in [Stand::new(), Stand::with_gate()] {
        let finale = on_one_thread(stand.see_through()).unwrap();
        assert_eq!(stand.misdeeds(), [""; 0]);
        assert_eq!(finale.ending, r#"{"kind":"completed"}"#);
        assert_eq!(finale.status, "Completed");
        assert_eq!(finale.tasks, TASKS.map(|task| format!("{task} Completed []")));
        assert_eq!(finale.answers, [1, 1]);
        assert_eq!(finale.files.len(), 4, "{:?}", finale.files);
    }
}

/// The facts without what differs from session to session.
fn comparable(stand: &Stand) -> Vec<String> {
    let facts = stand.facts();
    let session = facts[0]["session"].as_str().unwrap().to_owned();
    let text = |fact: &Value| {
        let mut fact = fact.clone();
        fact.as_object_mut().unwrap().remove("crc");
        fact.to_string().replace(&session, "SESSION")
    };
    facts.iter().map(text).collect()
}

#[test]
fn the_same_definition_under_another_name_records_the_same_facts() {
    let ralph = Stand::new();
    on_one_thread(ralph.see_through()).unwrap();
    let mut foo = ralph.beside();
    foo.workflow = asking_ralph("foo");
    on_one_thread(foo.see_through()).unwrap();
    assert_eq!(foo.misdeeds(), [""; 0]);
    let [ralph, foo] = [comparable(&ralph), comparable(&foo)];
    assert_eq!(ralph[0].replacen("\"workflow\":\"ralph\"", "\"workflow\":\"foo\"", 1), foo[0]);
    assert_eq!(ralph[1..], foo[1..]);
    assert!(foo.iter().all(|fact| !fact.contains("\"ralph\"")), "something knows the name");
}

#[test]
fn an_answer_an_hour_later_is_recorded_once_and_delivered_once() {
    let stand = Stand::new();
    let outcome = on_one_thread(async {
        let (run, _show) = stand.start().unwrap();
        let (_wishes, intents) = mpsc::channel(1);
        run.drive(intents).await.unwrap().outcome
    });
    let Outcome::Waiting(questions) = outcome else { panic!("{outcome:?}") };
    let [(id, question)] = questions.as_slice() else { panic!("{questions:?}") };
    assert_eq!(question.question, QUESTION);
    let waiting = stand.finale();
    assert_eq!(waiting.status, "Waiting");
    assert_eq!(waiting.tasks[0], "#1 Completed []", "its sibling has gone on");

    stand.disk.crash();
    stand.clock.advance(3_600);
    let dir = stand.session().unwrap();
    // Twice, as somebody impatient may do; the second is too late.
    for given in [ANSWER, "Red"] {
        let left = InboxAnswer { question: Some(id.clone()), given: vec![given.to_owned()] };
        leave_answer(&stand.disk, &dir, &left).unwrap();
    }
    let finale = on_one_thread(stand.see_through()).unwrap();
    assert_eq!(finale.ending, r#"{"kind":"completed"}"#);
    assert_eq!(finale.answers, [1, 1]);
    let facts = stand.facts();
    let of = |kind: &str| facts.iter().find(|fact| fact["type"] == kind).unwrap();
    assert_eq!(of("question_asked")["at"], "2026-11-15T10:00:00Z");
    assert_eq!(of("question_answered")["at"], "2026-11-15T11:00:00Z");
    assert_eq!(of("question_answered")["answer"]["chosen"], json!([ANSWER]));
    assert_eq!(of("question_answered")["by"], "person");
    assert_eq!(of("answer_delivered")["live"], false);
    let told =
        |(_, prompt): &(String, String)| prompt.contains(&format!("The user's answer: {ANSWER}"));
    assert_eq!(stand.ledger.sent().iter().filter(|sent| told(sent)).count(), 1);
}
