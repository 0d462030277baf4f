//! Checks of what is said, done and asked.
#![expect(clippy::panic, reason = "a check that fails panics")]

use atomic_event::{Answer, ConversationId, QuestionId, Stop, Usage};

use super::hearing::{Open, folder, in_time, open, open_in, request};
use super::{Act, Scenario, Stage};

pub(super) fn done(text: &str) -> Stop {
    Stop::Done { text: text.to_owned() }
}

/// Opening gives an id, another one each time, and sending does not change it.
pub async fn the_id_is_known_before_the_first_prompt(stage: &dyn Stage) {
    let backend = stage.backend(&Scenario::Text);
    let first = open(backend.as_ref()).await;
    let second = open(backend.as_ref()).await;
    let id = first.conversation.id();
    assert!(!id.as_str().is_empty());
    assert_ne!(id, second.conversation.id());
    first.exchange("go").await;
    assert_eq!(first.conversation.id(), id);
}

/// Text comes in pieces; the pieces, what is kept and the final text are the same.
pub async fn text_is_streamed_and_kept(stage: &dyn Stage) {
    let open = open(stage.backend(&Scenario::Text).as_ref()).await;
    let (heard, stop) = open.exchange("go").await;
    assert!(heard.typed.len() > 1, "in one piece: {:?}", heard.typed);
    assert_eq!(heard.typed.concat(), Scenario::TEXT);
    assert_eq!(heard.said, [Scenario::TEXT]);
    assert_eq!(stop, done(Scenario::TEXT));
}

/// An agent that says nothing has not failed.
pub async fn silence_is_an_empty_text(stage: &dyn Stage) {
    let open = open(stage.backend(&Scenario::Silence).as_ref()).await;
    let (heard, stop) = open.exchange("go").await;
    assert_eq!(heard.typed, [""; 0]);
    assert_eq!(stop, done(""));
}

/// Tools do their work in the workspace and say whether it went well.
pub async fn tools_are_reported(stage: &dyn Stage) {
    let write = Act::write(Scenario::FILE, Scenario::CONTENT);
    let scenario = Scenario::Acts(vec![write, Act::run(Scenario::FAILING)]);
    let open = open(stage.backend(&scenario).as_ref()).await;
    let (heard, stop) = open.exchange("go").await;
    assert_eq!(stop, done(Scenario::TEXT));
    let made = std::fs::read_to_string(open.workspace.path().join(Scenario::FILE));
    assert_eq!(made.ok().as_deref(), Some(Scenario::CONTENT));
    let went = |summary: &str| {
        let used = heard.tools.iter().find(|tool| tool.summary.contains(summary));
        used.map(|tool| (tool.tool.is_empty(), tool.ok))
    };
    assert_eq!(went(Scenario::FILE), Some((false, true)), "{:?}", heard.tools);
    assert_eq!(went(Scenario::FAILING), Some((false, false)), "{:?}", heard.tools);
}

/// Neither a large file nor a large output holds anything up.
pub async fn much_is_written_and_printed(stage: &dyn Stage) {
    let write = Act::write(Scenario::FILE, Scenario::large_content());
    let scenario = Scenario::Acts(vec![write, Act::run(Scenario::PRINTS_MUCH)]);
    let open = open(stage.backend(&scenario).as_ref()).await;
    let (heard, stop) = open.exchange("go").await;
    assert_eq!(stop, done(Scenario::TEXT));
    let made = std::fs::read_to_string(open.workspace.path().join(Scenario::FILE));
    assert!(made.is_ok_and(|made| made == Scenario::large_content()), "the whole file is there");
    let went: Vec<bool> = heard.tools.iter().map(|tool| tool.ok).collect();
    assert_eq!(went, [true, true], "{:?}", heard.tools);
    assert!(heard.tools.iter().all(|tool| tool.summary.len() < 1_000), "summaries are short");
}

/// Tokens are counted, and money exactly when the backend says that it knows it.
pub async fn usage_is_reported(stage: &dyn Stage) {
    let backend = stage.backend(&Scenario::Text);
    let open = open(backend.as_ref()).await;
    let (heard, _) = open.exchange("go").await;
    let counted = counted(&heard.spent);
    assert!(counted.iter().map(|usage| usage.input_tokens).sum::<u64>() > 0);
    assert!(counted.iter().map(|usage| usage.output_tokens).sum::<u64>() > 0);
    let has_cost = heard.spent.iter().any(|usage| usage.cost_usd.is_some());
    assert_eq!(has_cost, backend.reports_cost());
}

/// The reports of a turn that count: its total replaces those before it.
pub(super) fn counted(spent: &[Usage]) -> &[Usage] {
    let first = spent.iter().rposition(|usage| usage.is_total).unwrap_or(0);
    &spent[first..]
}

/// What a turn costs is told in money.
pub async fn the_price_is_told(stage: &dyn Stage) {
    let open = open(stage.backend(&Scenario::Text).as_ref()).await;
    let (heard, _) = open.exchange("go").await;
    let price: f64 = heard.spent.iter().filter_map(|usage| usage.cost_usd).sum();
    assert!(price > 0.0, "no price is told: {:?}", heard.spent);
}

/// A question waits for its answer, takes it once, and the turn goes on with it.
pub async fn a_question_is_asked_and_the_answer_goes_on(stage: &dyn Stage) {
    let open = open(stage.backend(&Scenario::Question).as_ref()).await;
    let mut listener = open.send("go").await;
    let (id, question) = listener.until_asked().await;
    assert_eq!(question.question, Scenario::QUESTION);
    let labels: Vec<&str> = question.options.iter().map(|choice| choice.label.as_str()).collect();
    assert_eq!(labels, Scenario::OPTIONS);

    assert_eq!(answer(&open, QuestionId::from("another")).await, Err("misused"));
    assert_eq!(answer(&open, id.clone()).await, Ok(()));
    assert_eq!(answer(&open, id.clone()).await, Err("misused"));

    let (_, stop) = listener.until_end().await;
    let Stop::Done { text } = stop else { panic!("{stop:?}") };
    assert!(text.contains(Scenario::OPTIONS[1]), "{text:?}");
    assert_eq!(answer(&open, id).await, Err("misused"));
}

async fn answer(open: &Open, question: QuestionId) -> Result<(), &'static str> {
    answer_with(open, question, &[Scenario::OPTIONS[1]]).await
}

async fn answer_with(
    open: &Open,
    question: QuestionId,
    chosen: &[&str],
) -> Result<(), &'static str> {
    let answer = Answer { chosen: chosen.iter().map(|text| (*text).to_owned()).collect() };
    let answered = in_time("answering", open.conversation.answer(question, answer)).await;
    answered.map_err(|error| error.code())
}

/// Questions come one at a time; several options can be chosen, or none of them.
pub async fn several_questions_are_asked_one_after_the_other(stage: &dyn Stage) {
    let several = Scenario::OPTIONS.join(", ");
    for (given, expected) in [(&Scenario::OPTIONS[..], several.as_str()), (&["round"], "round")] {
        let open = open(stage.backend(&Scenario::Questions).as_ref()).await;
        let mut listener = open.send("go").await;
        let (first, question) = listener.until_asked().await;
        assert_eq!(
            (question.question.as_str(), question.multi_select),
            (Scenario::QUESTION, false)
        );
        assert_eq!(answer(&open, first.clone()).await, Ok(()));

        let (second, question) = listener.until_asked().await;
        assert_ne!(first, second);
        assert_eq!(question.question, Scenario::OTHER_QUESTION);
        assert!(question.multi_select && question.free_text, "{question:?}");
        assert_eq!(answer(&open, first).await, Err("misused"));
        assert_eq!(answer_with(&open, second, given).await, Ok(()));

        let (heard, stop) = listener.until_end().await;
        assert!(matches!(stop, Stop::Done { .. }), "{stop:?}");
        let said = heard.said.concat();
        assert!(said.contains(Scenario::OPTIONS[1]) && said.contains(expected), "{said:?}");
    }
}

/// One turn at a time; the turn under way does not notice, and afterwards there may be another.
pub async fn a_second_prompt_during_a_turn_is_refused(stage: &dyn Stage) {
    let open = open(stage.backend(&Scenario::Question).as_ref()).await;
    for _ in 0..2 {
        let mut listener = open.send("go").await;
        let (id, _) = listener.until_asked().await;
        let second = in_time("sending", open.conversation.send("more".to_owned())).await;
        assert_eq!(second.map(|_| ()).map_err(|error| error.code()), Err("misused"));
        assert_eq!(answer(&open, id).await, Ok(()));
        let (_, stop) = listener.until_end().await;
        assert!(matches!(stop, Stop::Done { .. }), "{stop:?}");
    }
}

/// After everything is closed, the id is enough to go on.
pub async fn a_conversation_is_continued_by_its_id(stage: &dyn Stage) {
    let backend = stage.backend(&Scenario::Text);
    let first = open(backend.as_ref()).await;
    let id = first.conversation.id();
    first.exchange("go").await;
    let Open { conversation, workspace, .. } = first;
    in_time("closing", conversation.close()).await;
    drop(backend);

    let request = request(workspace.path(), Some(id.clone()));
    let again = open_in(stage.backend(&Scenario::Text).as_ref(), workspace, request).await;
    assert_eq!(again.conversation.id(), id);
    assert_eq!(again.exchange("go on").await.1, done(Scenario::TEXT));
}

/// An id that the program does not know is told apart from other failures.
pub async fn an_unknown_conversation_is_gone(stage: &dyn Stage) {
    let workspace = folder();
    let unknown = Some(ConversationId::from("never-heard-of"));
    let opened = stage.backend(&Scenario::Text).open(request(workspace.path(), unknown)).await;
    assert_eq!(opened.err().map(|error| error.code()), Some("conversation_gone"));
}

/// What is said in one conversation is not heard in another.
pub async fn two_conversations_at_once_do_not_mix(stage: &dyn Stage) {
    let backend = stage.backend(&Scenario::Two);
    let (first, second) = (open(backend.as_ref()).await, open(backend.as_ref()).await);
    for _ in 0..3 {
        let (alpha, beta) =
            tokio::join!(first.exchange(Scenario::ALPHA), second.exchange(Scenario::BETA));
        assert_eq!(alpha.0.typed.concat(), Scenario::TEXT);
        assert_eq!(alpha.1, done(Scenario::TEXT));
        assert_eq!(beta.0.typed.concat(), Scenario::OTHER_TEXT);
        assert_eq!(beta.1, done(Scenario::OTHER_TEXT));
    }
}
