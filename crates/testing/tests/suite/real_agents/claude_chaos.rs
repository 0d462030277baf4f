//! Claude Code when things break under it: the same conversation goes on afterwards.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use atomic_backend::Conversation;
use atomic_event::{Stop, TurnEvent};
use atomic_testing::conformance::backend::{exchange, in_time, send};
use atomic_testing::model::{Break, Ending, ModelServer, Reply, Script, Turn};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::stand::{PATIENCE, Stand, WINDOW, error, in_both_versions, text};

in_both_versions! {
    the_provider_goes_away_and_comes_back
    a_provider_that_recovers_is_waited_for
    a_broken_answer_is_not_the_end
    the_program_is_killed_in_the_middle_of_a_turn
    the_program_is_killed_before_it_keeps_a_prompt
    the_program_is_killed_between_two_turns
    the_input_of_the_program_is_closed
    a_program_that_stands_still_holds_nobody_up
}

fn saying(text: &str) -> Script {
    Script::new().with(Turn::default().reply(Reply::say(text)))
}

fn hanging() -> Script {
    let reply = Reply { ending: Ending::Hang, ..Reply::say("Well") };
    Script::new().with(Turn::default().reply(reply))
}

/// Not for the prompts of [`goes_on`].
fn unless_after(turn: Turn) -> Turn {
    Turn { absent: vec!["after".to_owned()], ..turn }
}

/// The conversation goes on, and the model is told what was said before.
async fn goes_on(stand: &Stand, conversation: &dyn Conversation, before: &str) {
    let prompt = format!("after {before}");
    let (_, stop) = exchange(conversation, &prompt).await;
    assert_eq!(text(stop), "Yes.");
    let said = stand.asked(&prompt).said();
    assert!(said.contains(before), "{said}");
}

/// The same, once more, by a program that is started anew.
async fn goes_on_elsewhere(stand: &Stand, conversation: Box<dyn Conversation>, before: &str) {
    let id = conversation.id();
    in_time("closing", conversation.close()).await;
    let conversation = stand.open(stand.resume(id)).await;
    goes_on(stand, conversation.as_ref(), before).await;
}

async fn the_provider_goes_away_and_comes_back(version: &'static str) {
    let mut stand = Stand::new(version, saying("Yes."));
    let address = stand.server.address();
    let conversation = stand.open(stand.request()).await;
    goes_on(&stand, conversation.as_ref(), "").await;

    let elsewhere = ModelServer::start(Script::new()).unwrap();
    std::mem::replace(&mut stand.server, elsewhere).stop();
    let start = Instant::now();
    let (_, stop) = exchange(conversation.as_ref(), "is anybody there").await;
    let error = error(stop);
    assert_eq!(error.code, "unavailable", "{}", error.message);
    assert!(error.message.contains("cannot be reached"), "{}", error.message);
    assert!(start.elapsed() < WINDOW + Duration::from_secs(60), "{:?}", start.elapsed());

    stand.server = ModelServer::start_at(saying("Yes."), address).unwrap();
    goes_on(&stand, conversation.as_ref(), "is anybody there").await;

    // And in the middle of a turn.
    stand.server.replace(hanging());
    let mut listener = send(conversation.as_ref(), "hold on").await;
    listener.until_typed().await;
    let elsewhere = ModelServer::start(Script::new()).unwrap();
    std::mem::replace(&mut stand.server, elsewhere).stop();
    let error = super::stand::error(listener.until_end().await.1);
    assert_eq!(error.code, "unavailable", "{}", error.message);
    stand.server = ModelServer::start_at(saying("Yes."), address).unwrap();
    goes_on(&stand, conversation.as_ref(), "hold on").await;
    goes_on_elsewhere(&stand, conversation, "hold on").await;
}

async fn a_provider_that_recovers_is_waited_for(version: &'static str) {
    let mut stand = Stand::with(version, saying("Yes."), |config| config.patience = PATIENCE);
    let address = stand.server.address();
    let conversation = stand.open(stand.request()).await;
    for (status, code) in [(429, "rate_limited"), (500, "unavailable")] {
        stand.server.replace(Script::new().with(Turn::default().reply(Reply::error(status))));
        let mut listener = send(conversation.as_ref(), &format!("status {status}")).await;
        assert_eq!(listener.until_waited().await, code);
        let now = stand.server.requests().last().unwrap().number;
        let tries = if status == 429 { 2 } else { 0 };
        stand.server.wait_for(|received| received.number >= now + tries, PATIENCE).unwrap();
        stand.server.replace(saying("Yes."));
        assert_eq!(text(listener.until_end().await.1), "Yes.");
        goes_on(&stand, conversation.as_ref(), &format!("status {status}")).await;
    }
    // Nobody is there when the turn begins, and somebody is before it fails.
    let elsewhere = ModelServer::start(Script::new()).unwrap();
    std::mem::replace(&mut stand.server, elsewhere).stop();
    let mut listener = send(conversation.as_ref(), "wait for it").await;
    assert_eq!(listener.until_waited().await, "unavailable");
    stand.server = ModelServer::start_at(saying("Yes."), address).unwrap();
    assert_eq!(text(listener.until_end().await.1), "Yes.");
    goes_on(&stand, conversation.as_ref(), "wait for it").await;
}

async fn a_broken_answer_is_not_the_end(version: &'static str) {
    let stand = Stand::new(version, saying("Yes."));
    let conversation = stand.open(stand.request()).await;
    let breaks = [Break::Cut, Break::Garbage, Break::Close];
    for how in breaks {
        let before = format!("broken by {how:?}");
        let script = Script::new().with(Turn::default().reply(Reply::broken(how)));
        stand.server.replace(script);
        let error = error(exchange(conversation.as_ref(), &before).await.1);
        assert_eq!(error.code, "unavailable", "{how:?}: {}", error.message);
        assert!(error.message.starts_with("claude: the provider cannot be reached"), "{error:?}");
        stand.server.replace(saying("Yes."));
        goes_on(&stand, conversation.as_ref(), &before).await;

        // Only the stream is broken: the program asks again without one, and nobody notices.
        let stream = Turn { stream: Some(true), ..Turn::default() }.reply(Reply::broken(how));
        stand
            .server
            .replace(Script::new().with(stream).with(Turn::default().reply(Reply::say("Whole."))));
        if how == Break::Garbage {
            assert_eq!(text(exchange(conversation.as_ref(), "again").await.1), "Whole.");
        }
        stand.server.replace(saying("Yes."));
    }
    goes_on_elsewhere(&stand, conversation, "broken by Cut").await;
}

fn kill(process: i32) {
    signal(process, Signal::KILL);
}

fn signal(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

/// It reads nothing, not even that it is interrupted, and a large prompt does not fit into the pipe.
async fn a_program_that_stands_still_holds_nobody_up(version: &'static str) {
    let stand = Stand::new(version, saying("Yes."));
    let conversation = stand.open(stand.request()).await;
    assert_eq!(text(exchange(conversation.as_ref(), "first").await.1), "Yes.");
    stand.is_kept(&conversation.id(), "first").await;
    signal(stand.process(), Signal::STOP);
    let listener = send(conversation.as_ref(), &"long ".repeat(200_000)).await;
    in_time("interrupting", conversation.interrupt()).await;
    assert_eq!(listener.until_end().await.1, Stop::Interrupted);
    goes_on(&stand, conversation.as_ref(), "first").await;
    signal(stand.process(), Signal::STOP);
    in_time("closing", conversation.close()).await;
    assert!(stand.processes().is_empty());
}

async fn the_program_is_killed_in_the_middle_of_a_turn(version: &'static str) {
    let command = json!({ "command": "touch started; sleep 300" });
    let tool = unless_after(Turn::default().user("use it")).reply(Reply::call("Bash", command));
    let hang = Reply { ending: Ending::Hang, ..Reply::say("Well") };
    let say = unless_after(Turn::default().user("say it")).reply(hang);
    let script = Script::new().with(tool).with(say).with(Turn::default().reply(Reply::say("Yes.")));
    let stand = Stand::new(version, script);
    let conversation = stand.open(stand.request()).await;
    let mut id = conversation.id();
    // The program keeps nothing of a first turn that does not come far; later ones it does keep.
    for (prompt, kept) in [("say it", ""), ("use it", "use it"), ("say it again", "say it again")] {
        let mut listener = send(conversation.as_ref(), prompt).await;
        if prompt == "use it" {
            stand.is_made("started").await;
        } else {
            listener.until_typed().await;
        }
        if !kept.is_empty() {
            // The older program writes down what was said a little later.
            stand.is_kept(&id, prompt).await;
        }
        let process = stand.process();
        kill(process);
        let error = error(listener.until_end().await.1);
        assert_eq!(error.code, "exited");
        assert!(error.message.contains("(signal: 9 (SIGKILL)"), "{}", error.message);
        goes_on(&stand, conversation.as_ref(), kept).await;
        assert_ne!(stand.process(), process);
        // With nothing kept, it may have begun anew.
        assert!(kept.is_empty() || conversation.id() == id);
        id = conversation.id();
    }
    goes_on_elsewhere(&stand, conversation, "use it").await;
}

async fn the_program_is_killed_before_it_keeps_a_prompt(version: &'static str) {
    let hang = Reply { ending: Ending::Hang, ..Reply::say("Well") };
    let say = unless_after(Turn::default().user("say it")).reply(hang);
    let stand = Stand::new(
        version,
        Script::new().with(say).with(Turn::default().reply(Reply::say("Yes."))),
    );
    let before = stand.open(stand.request()).await;
    goes_on(&stand, before.as_ref(), "").await;
    let kept = stand.is_kept(&before.id(), "after").await;
    let conversation = stand.open(stand.request()).await;
    let mut listener = send(conversation.as_ref(), "say it").await;
    listener.until_typed().await;
    in_time("closing", before.close()).await;
    kill(stand.process());
    assert_eq!(error(listener.until_end().await.1).code, "exited");
    // It has begun the file, and no more.
    let first = "{\"type\":\"mode\",\"mode\":\"normal\"}\n";
    fs::write(kept.with_file_name(format!("{}.jsonl", conversation.id())), first).unwrap();
    goes_on(&stand, conversation.as_ref(), "").await;
    goes_on_elsewhere(&stand, conversation, "after").await;
}

async fn the_program_is_killed_between_two_turns(version: &'static str) {
    let stand = Stand::new(version, saying("Yes."));
    let mut conversation = stand.open(stand.request()).await;
    let id = conversation.id();
    // Before the program has heard anything, there is nothing it could continue.
    kill(stand.process());
    stand.is_deserted().await;
    assert_eq!(text(exchange(conversation.as_ref(), "first").await.1), "Yes.");
    assert_eq!(conversation.id(), id);
    // The older program writes down what was said only after the end of the turn.
    stand.is_kept(&id, "first").await;
    kill(stand.process());
    stand.is_deserted().await;
    goes_on(&stand, conversation.as_ref(), "first").await;

    // While it rests.
    in_time("resting", conversation.rest()).await;
    stand.is_kept(&id, "after first").await;
    kill(stand.process());
    stand.is_deserted().await;
    conversation = stand.open(stand.resume(id)).await;
    goes_on(&stand, conversation.as_ref(), "after first").await;
    in_time("closing", conversation.close()).await;
    assert!(stand.processes().is_empty());
}

/// A program whose input ends after so many lines when it is started for the first time.
fn deaf(folder: &Path, program: &Path, lines: usize) -> PathBuf {
    let deaf = folder.join("claude");
    let (program, once) = (program.display(), folder.join("once"));
    let script = format!(
        "#!/bin/sh\n\
         if [ \"$1\" = --version ] || ! mkdir '{}' 2>/dev/null; then exec '{program}' \"$@\"; fi\n\
         i=0\n\
         while [ $i -lt {lines} ] && IFS= read -r line; do\n\
         printf '%s\\n' \"$line\"; i=$((i + 1))\n\
         done | '{program}' \"$@\"\n",
        once.display()
    );
    fs::write(&deaf, script).unwrap();
    fs::set_permissions(&deaf, fs::Permissions::from_mode(0o755)).unwrap();
    deaf
}

async fn the_input_of_the_program_is_closed(version: &'static str) {
    let question = json!({ "questions": [{
        "question": "Which?",
        "header": "Which",
        "multiSelect": false,
        "options": [{ "label": "A", "description": "A" }, { "label": "B", "description": "B" }],
    }] });
    let ask = unless_after(Turn::default().user("first"))
        .reply(Reply::call("AskUserQuestion", question))
        .reply(Reply::say("Then not."));
    let script = Script::new().with(ask).with(Turn::default().reply(Reply::say("Yes.")));
    let folder = tempfile::tempdir().unwrap();
    // It hears that it is to begin, and the prompt, but no answer.
    let stand = Stand::with(version, script, |config| {
        config.program = deaf(folder.path(), &config.program, 2);
    });
    let conversation = stand.open(stand.request()).await;
    let mut turn = in_time("sending", conversation.send("first".to_owned())).await.unwrap();
    let end = loop {
        // It may ask or not; nobody could answer.
        if let TurnEvent::Ended(stop) = in_time("listening", turn.recv()).await.unwrap() {
            break stop;
        }
    };
    assert_eq!(text(end), "Then not.");
    goes_on(&stand, conversation.as_ref(), "first").await;
}
