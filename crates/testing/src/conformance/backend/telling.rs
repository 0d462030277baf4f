//! Checks of what the model is told, and of what is told of it besides its texts.
#![expect(clippy::expect_used, clippy::panic, reason = "a check that fails panics")]

use atomic_backend::{Inherit, OpenRequest, Place};
use atomic_event::{Report, Stop, Usage};
use serde_json::Value;

use super::hearing::{Open, folder, in_time, open, open_as, open_in, request, unique};
use super::talking::done;
use super::{Failure, Scenario, Sent, Stage, sent};

/// What an agent is told to be is what its model is told.
pub async fn the_system_prompt_reaches_the_model(stage: &dyn Stage) {
    let [system_prompt, prompt] = ["You are a test.", "go"].map(unique);
    let told = |request| OpenRequest { system_prompt: system_prompt.clone(), ..request };
    let open = open_as(stage.backend(&Scenario::Text).as_ref(), told).await;
    assert_eq!(open.exchange(&prompt).await.1, done(Scenario::TEXT));
    let system = sent(stage, &prompt).system();
    assert!(system.contains(&system_prompt), "{system}");
}

/// Who goes on with a conversation knows what was said, and is who is wanted now.
pub async fn somebody_else_goes_on_with_what_was_said(stage: &dyn Stage) {
    let backend = stage.backend(&Scenario::Text);
    let [first, second] = ["You are one.", "You are somebody else."].map(unique);
    let [said, prompt] = ["go", "go on"].map(unique);
    let told = |request| OpenRequest { system_prompt: first.clone(), ..request };
    let open = open_as(backend.as_ref(), told).await;
    open.exchange(&said).await;
    let id = open.conversation.id();
    let Open { conversation, workspace, .. } = open;
    in_time("closing", conversation.close()).await;

    let request = request(workspace.path(), Some(id));
    let request = OpenRequest { system_prompt: second.clone(), ..request };
    let open = open_in(backend.as_ref(), workspace, request).await;
    assert_eq!(open.exchange(&prompt).await.1, done(Scenario::TEXT));
    let sent = sent(stage, &prompt);
    assert_eq!(sent.said().contains(&said), backend.remembers(), "{}", sent.said());
    let system = sent.system();
    assert!(system.contains(&second) && !system.contains(&first), "{system}");
}

/// A prompt is what the model reads: no command, no file and no note is made of it.
pub async fn prompts_reach_the_model_as_they_are(stage: &dyn Stage) {
    let system_prompt = unique("You are a test.");
    let told = |request| OpenRequest { system_prompt: system_prompt.clone(), ..request };
    let open = open_as(stage.backend(&Scenario::Text).as_ref(), told).await;
    let note = open.workspace.path().join("note.txt");
    std::fs::write(note, "the text of the note").expect("a file is made");
    let prompts = [
        "/help me, said somebody",
        "/compact",
        "/cost",
        "Look at @note.txt and say what it is.",
        "@note.txt",
        "See @note.txt, @\"note.txt\" and @note.txt again.",
        "/help @note.txt",
        "# remember this",
        "!touch made",
        "$ARGUMENTS and !`touch made` and $1",
        "two\nlines with \u{1f980} and \"quotes\"",
    ];
    for prompt in prompts {
        assert_eq!(open.exchange(prompt).await.1, done(Scenario::TEXT), "{prompt}");
        let received = stage.received();
        let sent = Sent::all(&received);
        let own = sent.filter(|sent| sent.system().contains(&system_prompt)).last();
        let own = own.unwrap_or_else(|| panic!("{prompt} did not reach the model"));
        assert_eq!(own.last_words(), prompt);
        assert!(!own.whole().contains("the text of the note"), "{prompt} shows the file");
    }
    assert!(!open.workspace.path().join("made").exists());
}

/// What the model thinks is told, and is not part of what it says.
pub async fn thoughts_are_told(stage: &dyn Stage) {
    let open = open(stage.backend(&Scenario::Thought).as_ref()).await;
    let (heard, stop) = open.exchange("go").await;
    assert_eq!(heard.thought.concat(), Scenario::THOUGHT);
    assert_eq!(heard.typed.concat(), Scenario::TEXT);
    assert_eq!(heard.said, [Scenario::TEXT]);
    assert_eq!(stop, done(Scenario::TEXT));
}

/// The list that an agent keeps of what it means to do is told whole.
pub async fn the_agents_list_is_told(stage: &dyn Stage) {
    let open = open(stage.backend(&Scenario::Todos).as_ref()).await;
    let (heard, stop) = open.exchange("go").await;
    assert_eq!(stop, done(Scenario::TEXT));
    let mut lists = heard
        .others
        .iter()
        .filter_map(|report| if let Report::Todos { items } = report { Some(items) } else { None });
    let last = lists.next_back().unwrap_or_else(|| panic!("no list: {:?}", heard.others));
    let items: Vec<_> = last.iter().map(|it| (it.content.as_str(), it.status.as_str())).collect();
    let [first, second] = Scenario::TODOS;
    assert_eq!(items, [(first, "completed"), (second, "pending")]);
}

/// A summary takes the place of what was said, and what it cost is known where costs are.
pub async fn a_summary_takes_the_place_of_what_was_said(stage: &dyn Stage) {
    let backend = stage.backend(&Scenario::Summary);
    let open = open(backend.as_ref()).await;
    let last = unique("the second thing");
    // A program may not think a few words worth a summary.
    for prompt in ["the first thing", "go on", "and on"] {
        assert_eq!(open.exchange(prompt).await.1, done(Scenario::TEXT));
    }
    let spent = in_time("summarising", open.conversation.compact()).await.expect("a summary");
    if backend.reports_cost() {
        assert!(spent.is_some_and(|usage| usage.input_tokens > 0), "a summary costs something");
    }
    let (heard, stop) = open.exchange(&last).await;
    assert_eq!(stop, done(Scenario::TEXT));
    assert_eq!(heard.said, [Scenario::TEXT], "nothing is left of the summary's own turn");
    let sent = sent(stage, &last);
    let said = sent.said();
    assert!(said.contains(Scenario::SUMMARY), "{said}");
    // A program may keep what the user said, or the last answer; not all of them.
    let answers = sent.whole().matches(Scenario::TEXT).count();
    assert!(answers < 3, "{answers} answers of 3: {}", sent.whole());
}

/// A turn costs what it costs, whatever was spent before it and whoever counts.
pub async fn what_was_spent_is_counted_once(stage: &dyn Stage) {
    let backend = stage.backend(&Scenario::Spends);
    let mut open = open(backend.as_ref()).await;
    let id = open.conversation.id();
    let mut costs = vec![];
    for turn in 0..5 {
        if turn == 3 {
            // Somebody else takes the conversation up, and may go on counting where it was.
            let Open { conversation, workspace, .. } = open;
            in_time("closing", conversation.close()).await;
            let request = request(workspace.path(), Some(id.clone()));
            open = open_in(backend.as_ref(), workspace, request).await;
        }
        let (heard, _) = open.exchange("go on").await;
        let counted = super::talking::counted(&heard.spent);
        let sum = |part: fn(&Usage) -> u64| counted.iter().map(part).sum::<u64>();
        let tokens = (sum(|usage| usage.input_tokens), sum(|usage| usage.output_tokens));
        assert_eq!(tokens, (Scenario::READ, Scenario::WRITTEN), "turn {turn}: {:?}", heard.spent);
        costs.push(counted.iter().filter_map(|usage| usage.cost_usd).sum::<f64>());
    }
    assert_eq!(costs.iter().any(|cost| *cost > 0.0), backend.reports_cost(), "{costs:?}");
    assert!(costs.iter().all(|cost| (cost - costs[0]).abs() < 1e-9), "{costs:?}");
}

/// How full the model's window is, and how large it is, is told.
pub async fn the_context_is_measured(stage: &dyn Stage) {
    let open = open(stage.backend(&Scenario::Spends).as_ref()).await;
    let (heard, _) = open.exchange("go").await;
    let last = heard.spent.last().expect("something is spent");
    let filled = Scenario::READ..=Scenario::READ + Scenario::WRITTEN;
    assert!(last.context_tokens.is_some_and(|it| filled.contains(&it)), "{last:?}");
    assert!(last.context_window.is_some_and(|it| it > Scenario::READ), "{last:?}");
}

/// The models that can be asked for have names.
pub async fn models_are_listed(stage: &dyn Stage) {
    let workspace = folder();
    let place = Place { workspace: workspace.path().to_owned(), inherit: Inherit::default() };
    let backend = stage.backend(&Scenario::Text);
    let models = in_time("listing", backend.models(place)).await.expect("a list");
    assert!(models.len() > 1 && models.iter().all(|model| !model.name.is_empty()), "{models:?}");
    assert!(models.iter().any(|model| !model.about.is_empty()), "{models:?}");
}

/// What is asked for as structured output is the final text, as JSON.
pub async fn structured_output_is_the_final_text(stage: &dyn Stage) {
    let stop = structured(stage, Scenario::ALPHA).await;
    let Stop::Done { text } = stop else { panic!("{stop:?}") };
    assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(Scenario::structure()), "{text}");
}

/// Whether an agent has kept to a schema is for the caller to see: the turn itself is done.
pub async fn a_text_in_place_of_structured_output_is_told(stage: &dyn Stage) {
    assert_eq!(structured(stage, Scenario::BETA).await, done(Scenario::TEXT));
}

async fn structured(stage: &dyn Stage, prompt: &str) -> Stop {
    let wanting = |request| OpenRequest { schema: Some(Scenario::schema()), ..request };
    let open = open_as(stage.backend(&Scenario::Structure).as_ref(), wanting).await;
    open.exchange(prompt).await.1
}

/// A program that tries again by itself is not silent about it.
pub async fn a_wait_for_the_provider_is_told(stage: &dyn Stage) {
    let failure = Failure::RateLimit;
    let open = open(stage.backend(&Scenario::Failure(failure)).as_ref()).await;
    let (heard, stop) = open.exchange("go").await;
    assert!(matches!(stop, Stop::Failed(_)), "{stop:?}");
    let is_first = |report: &Report| matches!(report, Report::Waited(wait) if wait.code == failure.code() && wait.attempt == 1);
    assert!(heard.others.iter().any(is_first), "{:?}", heard.others);
}
