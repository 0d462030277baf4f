//! What only Claude Code says to us and to its model.

use atomic_backend::{Backend as _, Inherit, Place};
use atomic_event::Report;
use atomic_testing::conformance::backend::{exchange, in_time};
use atomic_testing::model::{Chosen, Reply, Script, Turn};
use serde_json::json;

use super::stand::{Stand, in_both_versions, text};

in_both_versions! {
    a_list_that_is_written_whole_is_told
    listing_models_asks_none
}

/// The list as the program has it besides the one that is kept entry by entry.
async fn a_list_that_is_written_whole_is_told(version: &str) {
    let todos = json!({ "todos": [
        { "content": "Look", "status": "completed", "activeForm": "Looking" },
        { "content": "Leap", "status": "pending", "activeForm": "Leaping" },
    ] });
    let turn = Turn::default().reply(Reply::call("TodoWrite", todos)).reply(Reply::say("Done."));
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
    let asked = stand.asked("go");
    assert!(asked.tools().contains(&"TodoWrite"), "{:?}", asked.tools());
    let reports = heard.others.iter();
    let lists: Vec<_> = reports
        .filter_map(|report| if let Report::Todos { items } = report { Some(items) } else { None })
        .collect();
    let [items] = lists.as_slice() else { panic!("{lists:?}") };
    let items: Vec<_> = items.iter().map(|i| (i.content.as_str(), i.status.as_str())).collect();
    assert_eq!(items, [("Look", "completed"), ("Leap", "pending")]);
}

async fn listing_models_asks_none(version: &str) {
    let stand = Stand::new(version, Script::new());
    let place = Place { workspace: stand.workspace.path().to_owned(), inherit: Inherit::default() };
    in_time("listing", stand.backend.models(place)).await.unwrap();
    let asked = stand.server.requests();
    assert!(asked.iter().all(|received| received.chosen == Chosen::Aside), "{asked:?}");
}
