//! What is said between us, Claude Code and its model.

use std::fs;

use atomic_backend::{Backend as _, Inherit, OpenRequest, Place};
use atomic_event::{Report, Stop};
use atomic_testing::conformance::backend::{exchange, in_time};
use atomic_testing::model::{Action, Chosen, Reply, Script, Turn};
use serde_json::{Value, json};

use super::stand::{Stand, in_both_versions, last_words, offered, text, texts};

in_both_versions! {
    prompts_reach_the_model_as_they_are
    thoughts_and_lists_are_told
    a_list_kept_entry_by_entry_is_told
    a_summary_takes_the_place_of_what_was_said
    models_are_listed
    structured_output_is_the_final_text
}

async fn prompts_reach_the_model_as_they_are(version: &str) {
    let stand = Stand::new(version, Script::new().with(Turn::default().reply(Reply::say("Yes."))));
    fs::write(stand.workspace.path().join("note.txt"), "the text of the note").unwrap();
    let conversation = stand.open(stand.request()).await;
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
        "two\nlines with \u{1f980} and \"quotes\"",
    ];
    for prompt in prompts {
        let (_, stop) = exchange(conversation.as_ref(), prompt).await;
        assert_eq!(stop, Stop::Done { text: "Yes.".to_owned() }, "{prompt}");
        let asked = stand.server.take_requests();
        let body = &asked.last().unwrap().body;
        assert_eq!(last_words(body), prompt);
        assert!(!body.to_string().contains("the text of the note"), "{prompt} shows the file");
    }
    assert!(!stand.made("made"));
}

async fn thoughts_and_lists_are_told(version: &str) {
    let todos = json!({ "todos": [
        { "content": "Look", "status": "completed", "activeForm": "Looking" },
        { "content": "Leap", "status": "pending", "activeForm": "Leaping" },
    ] });
    let think = Reply::default()
        .and(Action::Think("I should look before I leap.".to_owned()))
        .and(Action::Say("I look.".to_owned()))
        .and(Action::Call { tool: "TodoWrite".to_owned(), input: todos });
    let turn = Turn::default().reply(think).reply(Reply::say("Done."));
    // Both versions have the list, but give the model another one unless told so.
    let listing = [
        ("CLAUDE_CODE_ENABLE_TASKS", "0"),
        ("CLAUDE_CODE_ENABLE_TODO_TOOLS", "1"),
        ("ENABLE_TOOL_SEARCH", "false"),
    ];
    let stand = Stand::with(version, Script::new().with(turn), |config| {
        config.env.extend(listing.map(|(name, value)| (name.to_owned(), value.to_owned())));
    });
    let conversation = stand.open(stand.request()).await;
    let (heard, stop) = exchange(conversation.as_ref(), "go").await;
    assert_eq!(text(stop), "Done.");
    assert_eq!(heard.thought.concat(), "I should look before I leap.");
    assert_eq!(heard.typed.concat(), "I look.Done.");
    assert_eq!(heard.said, ["I look.", "Done."]);
    let body = stand.asked("go").body;
    let reports = heard.others.iter();
    let lists: Vec<_> = reports
        .filter_map(|report| if let Report::Todos { items } = report { Some(items) } else { None })
        .collect();
    assert!(offered(&body).contains(&"TodoWrite"), "{:?}", offered(&body));
    let [items] = lists.as_slice() else { panic!("{lists:?}") };
    let items: Vec<_> = items.iter().map(|i| (i.content.as_str(), i.status.as_str())).collect();
    assert_eq!(items, [("Look", "completed"), ("Leap", "pending")]);
}

/// The list as the program offers it by itself.
async fn a_list_kept_entry_by_entry_is_told(version: &str) {
    let make = |subject: &str| json!({ "subject": subject, "description": "as asked" });
    let finish = json!({ "taskId": "1", "status": "completed" });
    let turn = Turn::default()
        .reply(Reply::call("TaskCreate", make("Look")))
        .reply(Reply::call("TaskCreate", make("Leap")))
        .reply(Reply::call("TaskUpdate", finish))
        .reply(Reply::say("Done."));
    let stand = Stand::new(version, Script::new().with(turn));
    let conversation = stand.open(stand.request()).await;
    let (heard, _) = exchange(conversation.as_ref(), "go").await;
    let last =
        heard.others.iter().rev().find_map(|report| {
            if let Report::Todos { items } = report { Some(items) } else { None }
        });
    let items: Vec<_> =
        last.unwrap().iter().map(|i| (i.content.as_str(), i.status.as_str())).collect();
    assert_eq!(items, [("Look", "completed"), ("Leap", "pending")]);
}

async fn a_summary_takes_the_place_of_what_was_said(version: &str) {
    let summary = "<summary>They spoke of the first thing.</summary>";
    let script = Script::new()
        .with(Turn::default().user("create a detailed summary of").reply(Reply::say(summary)))
        .with(Turn::default().reply(Reply::say("Yes.")));
    let stand = Stand::new(version, script);
    let conversation = stand.open(stand.request()).await;
    // The older program does not summarise a few words.
    for prompt in ["the first thing, in full", "go on", "and on"] {
        assert_eq!(text(exchange(conversation.as_ref(), prompt).await.1), "Yes.");
    }
    let spent = in_time("summarising", conversation.compact()).await.unwrap();
    assert!(spent.is_some_and(|usage| usage.input_tokens > 0), "a summary costs something");
    let (heard, stop) = exchange(conversation.as_ref(), "the second thing").await;
    assert_eq!(text(stop), "Yes.");
    // What is left of the summary's own turn is not heard in the next.
    assert_eq!(heard.said, ["Yes."]);
    let body = stand.asked("the second thing").body;
    let said = texts(&body, "user").concat();
    assert!(said.contains("They spoke of the first thing."), "{said}");
    assert!(!said.contains("the first thing, in full"), "{said}");
}

async fn models_are_listed(version: &str) {
    let stand = Stand::new(version, Script::new());
    let place = Place { workspace: stand.workspace.path().to_owned(), inherit: Inherit::default() };
    let models = in_time("listing", stand.backend.models(place)).await.unwrap();
    assert!(models.len() > 1 && models.iter().all(|model| !model.name.is_empty()), "{models:?}");
    assert!(models.iter().any(|model| !model.about.is_empty()), "{models:?}");
    let asked = stand.server.requests();
    assert!(asked.iter().all(|received| received.chosen == Chosen::Aside), "{asked:?}");
}

async fn structured_output_is_the_final_text(version: &str) {
    let given = json!({ "colour": "blue", "count": 3 });
    let good = Turn::default()
        .user("well")
        .reply(
            Reply::say("Let me see.")
                .and(Action::Call { tool: "StructuredOutput".to_owned(), input: given.clone() }),
        )
        .reply(Reply::say("Given."));
    let script = Script::new().with(good).with(Turn::default().reply(Reply::say("I will not.")));
    let stand = Stand::new(version, script);
    let schema = json!({
        "type": "object",
        "properties": { "colour": { "type": "string" }, "count": { "type": "integer" } },
        "required": ["colour", "count"],
    });
    let request = OpenRequest { schema: Some(schema), ..stand.request() };
    let conversation = stand.open(request).await;
    let (_, stop) = exchange(conversation.as_ref(), "well").await;
    assert_eq!(serde_json::from_str::<Value>(&text(stop)).ok(), Some(given));
    // Whether it is what was asked for is for the caller to see.
    let (_, stop) = exchange(conversation.as_ref(), "badly").await;
    assert_eq!(text(stop), "I will not.");
    assert!(offered(&stand.asked("badly").body).contains(&"StructuredOutput"));
}
