//! Forks in one process: conversations and questions of the other session.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::{Event, Patch};
use atomic_graph::{Graph, Node};
use atomic_runner::{Clock as _, Fork, ForkRequest, ForkTools, Outcome, fork};
use atomic_session::{InboxAnswer, Session, leave_answer};
use atomic_testing::ralph_script::ANSWER;
use atomic_workflow::{Action, AgentAction, Functions, Initial, Launch, Text, Workflow};
use serde_json::json;
use tokio::sync::mpsc;

use crate::runner_stand::{Stand, on_one_thread};

fn forked(stand: &Stand, dir: &Path, step: Option<&str>) -> Fork {
    let tools = ForkTools {
        disk: Arc::new(stand.disk.clone()),
        index: None,
        holder: "a test".to_owned(),
        at: stand.clock.now(),
    };
    let step = step.map(str::to_owned);
    fork(
        &tools,
        ForkRequest { dir: dir.to_owned(), step, set: Patch::new(), workspace: None, whole: false },
    )
    .unwrap()
}

fn events(stand: &Stand, dir: &Path) -> Vec<Event> {
    let facts = Session::read_only(Arc::new(stand.disk.clone()), dir).unwrap();
    facts.map(|fact| fact.unwrap().event).collect()
}

fn resumed(stand: &Stand, dir: &Path) -> Outcome {
    on_one_thread(async {
        let (run, _show) = stand.resume(dir).unwrap();
        let (_wishes, intents) = mpsc::channel(1);
        run.drive(intents).await.unwrap().outcome
    })
}

/// The conversations that were opened, as `step conversation`.
fn conversations(events: &[Event]) -> Vec<String> {
    let opened = |event: &Event| {
        let Event::ConversationOpened { step, conversation, .. } = event else { return None };
        Some(format!("{step} {conversation}"))
    };
    events.iter().filter_map(opened).collect()
}

/// Two agents that share a conversation.
fn dialogue() -> Workflow {
    let agent = |id: &str, prompt: &str| {
        let action = AgentAction {
            instructions: Some(String::new()),
            ..AgentAction::new("helper", Text::Verbatim(prompt.to_owned()))
        };
        Node::work(id, serde_json::to_value(Action::Agent(action)).unwrap())
    };
    fn named(launch: &Launch) -> Patch {
        [("executionId".into(), launch.session.clone().into())].into()
    }
    Workflow {
        name: "dialogue".into(),
        aliases: vec![],
        description: String::new(),
        sessions_dir: ".ralph/sessions".to_owned(),
        graph: Graph::starting_at("ask")
            .node(agent("ask", "Which colour?"))
            .node(agent("doubt", "Are you sure?"))
            .edge("ask", "doubt"),
        functions: Functions::default(),
        initial_state: Initial::made(named),
        source: None,
        state_shape: atomic_workflow::StateShape::default(),
    }
}

#[test]
fn a_conversation_of_the_other_session_is_never_continued() {
    let says = json!({"turn": [{"agent": "helper", "prompt": [], "do": [{"say": "Blue."}]}]});
    let mut stand = Stand::playing(says);
    stand.workflow = dialogue();
    assert_eq!(on_one_thread(stand.live()).unwrap(), Outcome::Completed);
    let old = stand.session().unwrap();
    let before = conversations(&events(&stand, &old));
    assert_eq!(before, ["ask#1 script-ask#1", "doubt#1 script-ask#1"], "they share one");

    let new = forked(&stand, &old, Some("ask#1"));
    assert_eq!((new.step.as_ref().unwrap().as_str(), new.under_way.len()), ("ask#1", 0));
    assert_eq!(resumed(&stand, &new.dir), Outcome::Completed);
    let after = conversations(&events(&stand, &new.dir));
    assert_eq!(after, ["ask#1 script-ask#1", "doubt#1 script-doubt#1"]);
    assert_eq!(conversations(&events(&stand, &old)), before);
    let Event::SessionCreated(created) = &new.facts[0].event else { panic!("{:?}", new.facts) };
    assert_eq!(created.state["executionId"], new.session.as_str(), "it has an id of its own");
    assert_eq!(stand.ledger.violations(), [""; 0]);
}

#[test]
fn a_question_that_was_open_is_open_in_both_and_answered_in_each() {
    let stand = Stand::new();
    let outcome = on_one_thread(async {
        let (run, _show) = stand.start().unwrap();
        let (_wishes, intents) = mpsc::channel(1);
        run.drive(intents).await.unwrap().outcome
    });
    let Outcome::Waiting(questions) = outcome else { panic!("{outcome:?}") };
    let [(id, _)] = questions.as_slice() else { panic!("{questions:?}") };
    let old = stand.session().unwrap();
    let new = forked(&stand, &old, None);
    assert_eq!(new.under_way, [], "who waits for the user is not lost");
    assert!(matches!(resumed(&stand, &new.dir), Outcome::Waiting(_)));

    let answer = |dir: &PathBuf| {
        let left = InboxAnswer { question: Some(id.clone()), given: vec![ANSWER.to_owned()] };
        leave_answer(&stand.disk, dir, &left).unwrap();
        assert_eq!(resumed(&stand, dir), Outcome::Completed);
    };
    answer(&new.dir);
    let own: Vec<Event> = events(&stand, &new.dir);
    let own = own.split_at(new.facts[1].seq as usize - 1).1;
    let old_ones = conversations(&events(&stand, &old));
    assert!(old_ones.len() >= 3, "{old_ones:?}");
    let asked_again: Vec<_> =
        own.iter().filter(|event| matches!(event, Event::StepLost { .. })).collect();
    assert_eq!(asked_again.len(), 1, "it is begun again with the answer");
    let told = |step: &str, prompt: &str| step.contains("[#2]") && prompt.contains(ANSWER);
    assert!(stand.ledger.sent().iter().any(|(step, prompt)| told(step, prompt)));
    let how = own.iter().find_map(|event| {
        let Event::StepStarted(started) = event else { return None };
        (started.attempt == 2).then_some(started.how)
    });
    assert_eq!(how, Some(atomic_event::How::RunAgain));
    answer(&old);
}
