//! The script backend from the outside, as far as no process is started; the rest is in
//! `atomic_testing`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use atomic_event::{AgentName, ConversationId, Report, Stop, TurnEvent};
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest,
};
use serde_json::{Value, json};

use super::{FileSource, Format, Script, ScriptBackend};
use crate::guard::Guard;
use crate::{Backend as _, BackendError, Conversation, OpenRequest, Turn};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

const NO_FILES: FileSource = FileSource::Embedded(&[]);

fn problem(text: &str, format: Format) -> String {
    Script::parse(text, format, &NO_FILES).unwrap_err().to_string()
}

/// What is wrong with each of these TOML scripts, one a line.
fn toml_problems(scripts: &[&str]) -> String {
    let problems: Vec<String> = scripts.iter().map(|text| problem(text, Format::Toml)).collect();
    problems.join("\n")
}

/// A TOML script of one turn with this `do` entry.
fn doing(entry: &str) -> String {
    format!("[[turn]]\n[[turn.do]]\n{entry}\n")
}

fn toml(text: &str) -> ScriptBackend {
    let script = Script::parse(text, Format::Toml, &NO_FILES).unwrap();
    ScriptBackend::new(script, Guard::new(PathBuf::from("/nonexistent")))
}

fn request(workspace: &Path) -> OpenRequest {
    OpenRequest::new("worker", workspace.to_owned(), "run/step/1".to_owned())
}

async fn events(conversation: &dyn Conversation, prompt: &str) -> Vec<TurnEvent> {
    let mut turn = conversation.send(prompt.to_owned()).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = turn.recv().await {
        events.push(event);
    }
    events
}

async fn play(backend: &ScriptBackend, workspace: &Path, prompt: &str) -> Vec<TurnEvent> {
    let conversation = backend.open(request(workspace)).await.unwrap();
    events(conversation.as_ref(), prompt).await
}

fn end(events: &[TurnEvent]) -> String {
    match events.last() {
        Some(TurnEvent::Ended(Stop::Done { text })) => text.clone(),
        Some(TurnEvent::Ended(Stop::Failed(error))) => format!("{}: {}", error.code, error.message),
        other => format!("{other:?}"),
    }
}

fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            found.insert(name, std::fs::read_to_string(path).unwrap());
        }
    }
    found
}

#[test]
fn a_mistake_in_the_file_is_named_with_its_place() {
    insta::assert_snapshot!(toml_problems(&[
        "[[turn]]\nagnet = \"worker\"\n",
        "[[turn]\n",
        "reports_cost = true\n",
        &doing("sya = \"hello\""),
        &doing("say = \"a\"\nrun = \"b\""),
        &doing(""),
        &doing("say = 5"),
        &doing("write = { path = \"../x\", text = \"\" }"),
        &doing("delete = \"/etc/passwd\""),
        &doing("delete = \".\""),
        &doing("write = { path = \"x\" }"),
        &doing("edit = { path = \"x\", find = \"\", replace = \"y\" }"),
        &doing("edit = { path = \"x\", find = \"y\", replace = \"y\" }"),
        &doing("run = { comand = \"true\" }"),
        &doing("run = 5"),
        &doing("usage = { cost_usd = -1.0 }"),
        &doing("fail = \"explode\""),
        &doing("ask = { question = \"?\", options = [{ lable = \"A\" }] }"),
    ]), @r"
    the embedded script:2:1: unknown key `agnet`, expected one of `agent`, `system`, `model`, `prompt`, `absent`, `conversation`, `do`
    the embedded script:1:8: unclosed array table, expected `]`
    the embedded script:1:1: missing key `turn`
    the embedded script:3:1: unknown key `sya`, expected one of `say`, `pause_ms`, `write`, `edit`, `delete`, `run`, `ask`, `usage`, `fail`
    the embedded script:2:1: an entry of `do` does several things; give each its own entry
    the embedded script:2:1: an entry of `do` is empty; say what is to be done
    the embedded script:3:7: invalid type: integer `5`, expected a string
    the embedded script:3:18: the path `../x` leads out of the workspace; write it relative to the workspace and without `..`
    the embedded script:3:10: the path `/etc/passwd` leads out of the workspace; write it relative to the workspace and without `..`
    the embedded script:3:10: the path `.` names no file
    the embedded script:3:9: `write` needs either `text` or `from`
    the embedded script:3:8: `find` is empty; name the text to replace
    the embedded script:3:8: `find` and `replace` are the same, so there is nothing to edit
    the embedded script:3:9: unknown key `comand`, expected `command` or `timeout_ms`
    the embedded script:3:7: invalid type: integer `5`, expected a command, or `{ command, timeout_ms }`
    the embedded script:3:22: a cost is a number that is not negative
    the embedded script:3:8: unknown word `explode`, expected one of `exit`, `hang`, `garbage`, `silence`, `rate_limit`, `overloaded`, `context_overflow`, `login`, `quota`, `unavailable`, `refused`, `model_unknown`, `rejected`
    the embedded script:3:38: unknown key `lable`, expected `label` or `description`
    ");
}

#[test]
fn the_same_mistakes_are_found_in_json() {
    let scripts = [
        "{\n  \"turn\": [\n    { \"agnet\": 1 }\n  ]\n}",
        "{\n  \"turn\": [}\n}",
        "{ \"turn\": [\n  { \"do\": [{ \"delete\": \"../x\" }] }\n] }",
        "{ \"turn\": [\n  { \"do\": [{ \"say\": \"a\", \"run\": \"b\" }] }\n] }",
        "{ \"turn\": [\n  { \"do\": [{ \"run\": { \"comand\": 1 } }] }\n] }",
        "{ \"turn\": [{ \"do\": [{ \"write\": { \"path\": \"x\",\n \"from\": \"x\" } }] }] }",
    ];
    let problems = scripts.map(|text| problem(text, Format::Json));
    insta::assert_snapshot!(problems.join("\n"), @r"
    the embedded script:3:13: unknown key `agnet`, expected one of `agent`, `system`, `model`, `prompt`, `absent`, `conversation`, `do`
    the embedded script:2:12: expected value
    the embedded script:2:31: the path `../x` leads out of the workspace; write it relative to the workspace and without `..`
    the embedded script:2:38: an entry of `do` does several things; give each its own entry
    the embedded script:2:30: unknown key `comand`, expected `command` or `timeout_ms`
    the embedded script:2:10: cannot read `x`: it is not among the embedded files
    ");
}

#[test]
fn a_turn_that_could_not_be_played_twice_is_refused() {
    let both = |first: &str, second: &str| doing(&format!("{first}\n[[turn.do]]\n{second}"));
    let edit = "edit = { path = \"d/x\", find = \"a\", replace = \"b\" }";
    let write = |path: &str| format!("write = {{ path = \"{path}\", text = \"\" }}");
    insta::assert_snapshot!(toml_problems(&[
        &both("fail = \"exit\"", "say = \"too late\""),
        &both(edit, "delete = \"d\""),
        &both(edit, &write("./d/x")),
        &both(&write("d"), &write("d/x")),
    ]), @r"
    the embedded script:1:1: nothing after `fail` is ever played; put it last
    the embedded script:1:1: this turn edits `d/x` and then writes or deletes it; leave out the edit
    the embedded script:1:1: this turn edits `d/x` and then writes or deletes it; leave out the edit
    the embedded script:1:1: this turn writes `d` both as a file and as the folder of `d/x`
    ");
}

#[test]
fn files_come_from_beside_the_script_or_out_of_the_binary() {
    let folder = tempfile::tempdir().unwrap();
    let script = "[[turn]]\n[[turn.do]]\nwrite = { path = \"files/a\", from = \"files/a\" }\n";
    let path = folder.path().join("demo.toml");
    std::fs::write(&path, script).unwrap();
    let shown = |error: BackendError| {
        error.to_string().replace(&folder.path().display().to_string(), "<folder>")
    };

    insta::assert_snapshot!(shown(Script::load(&path).unwrap_err()), @"<folder>/demo.toml:3:36: cannot read `files/a`: No such file or directory (os error 2)");
    insta::assert_snapshot!(problem(script, Format::Toml), @"the embedded script:3:36: cannot read `files/a`: it is not among the embedded files");
    insta::assert_snapshot!(shown(Script::load(&folder.path().join("no.toml")).unwrap_err()), @"<folder>/no.toml: cannot read the script: No such file or directory (os error 2)");
    insta::assert_snapshot!(shown(Script::load(&folder.path().join("no.yaml")).unwrap_err()), @"<folder>/no.yaml: a script is a `.toml` or a `.json` file");

    std::fs::create_dir(folder.path().join("files")).unwrap();
    std::fs::write(folder.path().join("files/a"), "text").unwrap();
    Script::load(&path).unwrap();
    let embedded = FileSource::Embedded(&[("files/a", "text")]);
    Script::parse(script, Format::Toml, &embedded).unwrap();
}

#[tokio::test]
async fn the_first_turn_that_fits_is_played() {
    let backend = toml(
        r#"
        turn = [
            { agent = "reviewer", do = [{ say = "by agent" }] },
            { conversation = "script-7", do = [{ say = "by conversation" }] },
            { prompt = ["alpha", "beta"], absent = ["gamma"], do = [{ say = "by prompt" }] },
            { prompt = ["alpha"], do = [{ say = "by half of it" }] },
        ]
        "#,
    );
    let folder = tempfile::tempdir().unwrap();
    let table = [
        ("reviewer", "script-7", "alpha beta", "by agent"),
        ("worker", "script-7", "alpha beta", "by conversation"),
        ("worker", "script-8", "beta alpha", "by prompt"),
        ("worker", "script-8", "alpha beta gamma", "by half of it"),
        (
            "worker",
            "script-8",
            "beta\n\"quoted\"",
            "misconfigured: script: the embedded script has no turn for the agent `worker` and \
             the prompt \"beta\\n\\\"quoted\\\"\"; add a turn that fits it",
        ),
    ];
    for (agent, conversation, prompt, expected) in table {
        let agent = AgentName::from(agent);
        let resume = Some(ConversationId::from(conversation));
        let request = OpenRequest { agent, resume, ..request(folder.path()) };
        let conversation = backend.open(request).await.unwrap();
        // The same again: nothing is counted.
        for _ in 0..2 {
            let events = events(conversation.as_ref(), prompt).await;
            assert_eq!(end(&events), expected, "for {prompt:?}");
        }
    }
}

#[tokio::test]
async fn a_turn_is_chosen_by_what_the_agent_is_told_to_be_and_by_its_model() {
    let backend = toml(
        r#"
        turn = [
            { system = ["who", "what"], do = [{ say = "by system prompt" }] },
            { model = "opus", do = [{ say = "by model" }] },
            { do = [{ say = "otherwise" }] },
        ]
        "#,
    );
    let folder = tempfile::tempdir().unwrap();
    let opus = || Some("opus".to_owned());
    for (system, model, expected) in [
        ("what and who", opus(), "by system prompt"),
        ("who", opus(), "by model"),
        ("who", Some("sonnet".to_owned()), "otherwise"),
        ("", None, "otherwise"),
    ] {
        let system_prompt = system.to_owned();
        let request = OpenRequest { system_prompt, model, ..request(folder.path()) };
        let conversation = backend.open(request).await.unwrap();
        assert_eq!(end(&events(conversation.as_ref(), "Go").await), expected);
    }
}

#[tokio::test]
async fn a_long_prompt_is_quoted_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let prompt = "ä".repeat(5000);
    let message = end(&play(&toml("turn = []"), folder.path(), &prompt).await);
    assert!(message.contains(&format!("{}…\"", "ä".repeat(300))), "{message}");
    assert!(message.len() < 1000, "{message}");
}

#[tokio::test]
async fn file_tools_do_what_they_say_and_are_reported() {
    let backend = toml(
        r#"
        [[turn]]
        [[turn.do]]
        write = { path = "deep/er/new.txt", text = "new" }
        [[turn.do]]
        edit = { path = "run.sh", find = "exit 1", replace = "exit 0" }
        [[turn.do]]
        delete = "old"
        [[turn.do]]
        delete = "never/was"
        [[turn.do]]
        usage = { input_tokens = 3 }
        "#,
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.sh"), "exit 1\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("run.sh"), executable).unwrap();
    std::fs::create_dir(folder.path().join("old")).unwrap();
    std::fs::write(folder.path().join("old/file"), "").unwrap();
    // What a kill in the middle of a write leaves behind.
    std::fs::create_dir_all(folder.path().join("deep/er")).unwrap();
    std::fs::write(folder.path().join("deep/er/.new.txt.atomic-tmp"), "ne").unwrap();

    let shown: Vec<String> = play(&backend, folder.path(), "go").await.iter().map(show).collect();

    insta::assert_snapshot!(shown.join("\n"), @r#"
    write deep/er/new.txt ok
    edit run.sh ok
    delete old ok
    delete never/was ok
    Reported(Spent(Usage { input_tokens: 3, output_tokens: 0, cost_usd: None, context_tokens: None, context_window: None }))
    Ended(Done { text: "" })
    "#);
    let expected = [("deep/er/new.txt", "new"), ("run.sh", "exit 0\n")];
    let expected: BTreeMap<_, _> = expected.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
    assert_eq!(tree(folder.path()), expected);
    let mode = std::fs::metadata(folder.path().join("run.sh")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o755);
}

fn show(event: &TurnEvent) -> String {
    if let TurnEvent::Reported(Report::ToolUsed(tool)) = event {
        let how = if tool.ok { "ok" } else { "failed" };
        return format!("{} {} {how}", tool.tool, tool.summary);
    }
    format!("{event:?}")
}

#[tokio::test]
async fn an_edit_that_cannot_be_made_fails_the_turn() {
    let table = [
        ("c", "xy", "neither \"ab\" nor what replaces it is in the file"),
        ("c", "ab ab", "\"ab\" is in the file 2 times; give more of the text"),
        (
            "",
            "aabb",
            "replacing \"ab\" would make this turn do something else when it is played again; \
             make one edit of those that touch the same text",
        ),
    ];
    for (replace, content, expected) in table {
        let entry = format!("edit = {{ path = \"f\", find = \"ab\", replace = \"{replace}\" }}");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), content).unwrap();
        let events = play(&toml(&doing(&entry)), folder.path(), "go").await;
        assert_eq!(show(&events[0]), "edit f failed");
        assert_eq!(end(&events), format!("tool_failed: script: cannot edit `f`: {expected}"));
        assert_eq!(tree(folder.path())["f"], content);
    }
}

#[tokio::test]
async fn an_edit_may_keep_the_text_it_finds() {
    let backend = toml(&doing("edit = { path = \"f\", find = \"a\", replace = \"a b\" }"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f"), "(a)").unwrap();
    for _ in 0..2 {
        assert_eq!(end(&play(&backend, folder.path(), "go").await), "");
        assert_eq!(tree(folder.path())["f"], "(a b)");
    }
}

#[tokio::test]
async fn edits_of_the_same_text_need_a_beginning_that_the_turn_wrote() {
    let edits = r#"
        [[turn.do]]
        edit = { path = "f", find = "one", replace = "two" }
        [[turn.do]]
        edit = { path = "f", find = "two", replace = "three" }
        "#;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f"), "one").unwrap();
    let events = play(&toml(&format!("[[turn]]{edits}")), folder.path(), "go").await;
    assert!(end(&events).contains("played again; make one edit"), "{events:?}");

    let write = doing("write = { path = \"f\", text = \"one\" }");
    for _ in 0..2 {
        let events = play(&toml(&format!("{write}{edits}")), folder.path(), "go").await;
        assert_eq!(end(&events), "");
        assert_eq!(tree(folder.path())["f"], "three");
    }
}

#[tokio::test]
async fn a_backend_that_does_not_report_cost_leaves_it_out() {
    let folder = tempfile::tempdir().unwrap();
    let entry = "usage = { input_tokens = 1, cost_usd = 0.5 }";
    let table = [("", Some(0.5)), ("reports_cost = false\n", None)];
    for (head, cost) in table {
        let backend = toml(&format!("{head}{}", doing(entry)));
        assert_eq!(backend.reports_cost(), cost.is_some());
        let events = play(&backend, folder.path(), "go").await;
        let TurnEvent::Reported(Report::Spent(usage)) = events[0] else { panic!("{events:?}") };
        assert_eq!(usage.cost_usd, cost);
    }
}

#[tokio::test]
async fn conversations_of_other_programs_are_not_continued() {
    let folder = tempfile::tempdir().unwrap();
    let resume = Some(ConversationId::from("claude-1"));
    let request = OpenRequest { resume, ..request(folder.path()) };
    let error = toml("turn = []").open(request).await.err().unwrap();
    assert_eq!(error.code(), "conversation_gone");
}

/// Waits until the turn can do nothing but wait for us.
async fn until_full(turn: &Turn) {
    let full = async {
        while turn.capacity() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, full).await.unwrap();
}

#[tokio::test]
async fn a_receiver_that_does_not_read_still_gets_the_whole_text_and_the_end() {
    let words = "word ".repeat(1000);
    let backend = toml(&doing(&format!("say = \"{words}\"")));
    let folder = tempfile::tempdir().unwrap();
    let conversation = backend.open(request(folder.path())).await.unwrap();
    let mut turn = conversation.send("go".to_owned()).await.unwrap();
    until_full(&turn).await;
    let mut typed = String::new();
    let mut last = None;
    while let Some(event) = turn.recv().await {
        if let TurnEvent::Typed { text } = &event {
            typed.push_str(text);
        }
        last = Some(event);
    }
    assert_eq!(typed, words);
    assert_eq!(last, Some(TurnEvent::Ended(Stop::Done { text: words })));
}

#[tokio::test]
async fn closing_does_not_wait_for_a_receiver_that_does_not_read() {
    let backend = toml(&doing(&format!("say = \"{}\"", "word ".repeat(1000))));
    let folder = tempfile::tempdir().unwrap();
    let conversation = backend.open(request(folder.path())).await.unwrap();
    let mut turn = conversation.send("go".to_owned()).await.unwrap();
    until_full(&turn).await;
    tokio::time::timeout(PATIENCE, conversation.close()).await.unwrap();
    let mut last = None;
    while let Some(event) = turn.recv().await {
        last = Some(event);
    }
    assert_eq!(last, Some(TurnEvent::Ended(Stop::Interrupted)));
}

/// Few letters and few names, so that edits and files get in each other's way.
fn any_text(letters: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!['a', 'b', 'c']), letters)
        .prop_map(|letters| letters.into_iter().collect())
}

/// Every letter once, so that most edits find what they look for.
fn initial_text() -> impl Strategy<Value = String> {
    Just(vec!['a', 'b', 'c']).prop_shuffle().prop_map(|letters| letters.into_iter().collect())
}

fn any_path() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just("f"), 1 => Just("./f"), 1 => Just("d"), 2 => Just("d/f")]
}

fn any_action() -> impl Strategy<Value = Value> {
    let write = (any_path(), initial_text())
        .prop_map(|(path, text)| json!({ "write": { "path": path, "text": text } }));
    let edit = (any_path(), any_text(1..3), any_text(0..3)).prop_map(
        |(path, find, replace)| json!({ "edit": { "path": path, "find": find, "replace": replace } }),
    );
    let delete = any_path().prop_map(|path| json!({ "delete": path }));
    prop_oneof![2 => write, 5 => edit, 1 => delete]
}

fn turn_of(actions: &[Value]) -> Option<ScriptBackend> {
    let text = json!({ "turn": [{ "do": actions }] }).to_string();
    let script = Script::parse(&text, Format::Json, &NO_FILES).ok()?;
    Some(ScriptBackend::new(script, Guard::new(PathBuf::from("/nonexistent"))))
}

/// Plays these turns one after the other on the same files; `None` when the last one fails.
async fn files_after(
    initial: &[(&str, String)],
    turns: &[&ScriptBackend],
) -> Option<BTreeMap<String, String>> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in initial {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut last = Vec::new();
    for turn in turns {
        last = play(turn, folder.path(), "go").await;
    }
    let done = matches!(last.last(), Some(TurnEvent::Ended(Stop::Done { .. })));
    done.then(|| tree(folder.path()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_turn_played_again_or_cut_short_before_leaves_the_same_files(
        actions in prop::collection::vec(any_action(), 1..5),
        (f, other, is_folder) in (initial_text(), initial_text(), any::<bool>()),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let initial = [("f", f), (if is_folder { "d/f" } else { "d" }, other)];
            let Some(whole) = turn_of(&actions) else { return Ok(()) };
            let Some(once) = files_after(&initial, &[&whole]).await else { return Ok(()) };
            for cut in 0..=actions.len() {
                let part = turn_of(&actions[..cut]).unwrap();
                let again = files_after(&initial, &[&part, &whole]).await;
                prop_assert_eq!(again.as_ref(), Some(&once), "cut after {} entries", cut);
            }
            Ok(())
        })?;
    }
}
