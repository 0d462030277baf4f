//! Checks of what agents and their helpers may do, and may not.
#![expect(clippy::panic, reason = "a check that fails panics")]

use std::fs;
use std::path::Path;

use atomic_backend::{Inherit, OpenRequest, Persona, Place, ToolRule, ToolRules};
use atomic_event::{Answer, Helper, HelperState, Report};

use super::hearing::{Heard, Open, folder, in_time, open_as, unique};
use super::talking::done;
use super::{Act, Scenario, Sent, Stage, Words, sent};

/// Only these rules, in the words of the program: `{shell}(git:*)`.
fn only(words: &Words, rules: &[&str]) -> ToolRules {
    ToolRules { only: Some(read(words, rules)), ..ToolRules::default() }
}

/// Everything but these.
fn without(words: &Words, rules: &[&str]) -> ToolRules {
    ToolRules { without: read(words, rules), ..ToolRules::default() }
}

fn read(words: &Words, rules: &[&str]) -> Vec<ToolRule> {
    let in_its_words = |rule: &&str| {
        let known = [
            ("{shell}", words.shell),
            ("{read}", words.read),
            ("{write}", words.write),
            ("{edit}", words.edit),
            ("{help}", words.help),
            ("{server_tool}", words.server_tool),
        ];
        let text =
            known.iter().fold((*rule).to_owned(), |text, (ours, its)| text.replace(ours, its));
        ToolRule::read(&text)
    };
    rules.iter().map(in_its_words).collect()
}

/// Which of our tools went well, in their order.
fn went_well(heard: &Heard) -> Vec<&str> {
    heard.tools.iter().filter(|used| used.ok).map(|used| used.tool.as_str()).collect()
}

fn made(open: &Open, name: &str) -> bool {
    open.workspace.path().join(name).exists()
}

fn assert_not_made(open: &Open, names: &[&str], heard: &Heard) {
    for name in names {
        assert!(!made(open, name), "{name} was made: {:?}", heard.tools);
    }
}

/// No tool asks, wherever it reaches and however dangerous it looks.
pub async fn every_tool_runs_unasked(stage: &dyn Stage) {
    let outside = folder();
    let place = outside.path().display();
    let acts = vec![
        Act::write(format!("{place}/note"), "x"),
        Act::Read(format!("{place}/note")),
        Act::run(format!(
            "mkdir {place}/folder && rm -rf {place}/folder && chmod 777 {place}/note"
        )),
        Act::run("git init -q . && git reset --hard -q || true"),
        Act::write(".git/hooks/post-commit", "x"),
        Act::write(".env", "SECRET=x"),
        Act::Read(".env".to_owned()),
        Act::run("printf 'touch made' | sh"),
        Act::run(format!("cat /etc/passwd > {place}/copy && chmod 777 {place}/copy")),
    ];
    let count = acts.len();
    let backend = stage.backend(&Scenario::Acts(acts));
    let open = open_as(backend.as_ref(), |request| request).await;
    let (heard, stop) = open.exchange("go").await;
    assert_eq!(stop, done(Scenario::TEXT));
    assert!(heard.tools.len() == count && heard.tools.iter().all(|used| used.ok), "{heard:?}");
    assert_eq!(heard.began.len(), count, "each is shown when it begins: {:?}", heard.began);
    assert!(made(&open, "made") && outside.path().join("copy").exists());
}

/// A list of tools allows these, and of a shell only the commands it names.
pub async fn a_list_of_tools_allows_nothing_else(stage: &dyn Stage) {
    let words = stage.words();
    let acts = vec![
        Act::write("written", "x"),
        Act::run("git --version; touch behind"),
        Act::run("touch made"),
        Act::UseServer,
        Act::run("git init -q inner"),
    ];
    let rules = only(&words, &["{read}", "{shell}(git:*)"]);
    let prompt = unique("go");
    let (open, heard) = acting(stage, acts, rules, &prompt).await;
    assert_eq!(went_well(&heard), ["shell"], "{:?}", heard.tools);
    assert_not_made(&open, &["written", "behind", "made", BY_SERVER], &heard);
    assert!(made(&open, "inner/.git"));
    let sent = sent(stage, &prompt);
    let (mut offered, mut expected) = (sent.tools(), [words.shell, words.read]);
    offered.sort_unstable();
    expected.sort_unstable();
    assert_eq!(offered, expected);
}

/// What is taken away cannot be used, and everything else can.
pub async fn what_is_taken_away_cannot_be_used(stage: &dyn Stage) {
    let words = stage.words();
    let acts = || {
        vec![
            Act::write("written", "x"),
            Act::run("touch behind && git push"),
            Act::UseServer,
            Act::run("touch ok"),
        ]
    };
    let prompt = unique("go");
    let rules = without(&words, &["{write}", "{edit}", "{shell}(git push:*)", "{server_tool}"]);
    let (open, heard) = acting(stage, acts(), rules, &prompt).await;
    assert_eq!(went_well(&heard), ["shell"], "{:?}", heard.tools);
    assert_not_made(&open, &["written", "behind", BY_SERVER], &heard);
    assert!(made(&open, "ok"));
    assert_offered(stage, &prompt, &[words.shell, words.read], &[words.write, words.server_tool]);

    // With other rules: it is the rules that make the difference.
    let prompt = unique("go");
    let rules = only(&words, &["{shell}", "{write}", "{server_tool}"]);
    let (open, heard) = acting(stage, acts(), rules, &prompt).await;
    assert_eq!(went_well(&heard).len(), 3, "{:?}", heard.tools);
    assert!(made(&open, "written") && made(&open, "behind") && made(&open, BY_SERVER));
    assert_offered(stage, &prompt, &[words.write, words.server_tool], &[words.read]);
}

/// The turn of an agent with these rules, in a project with a server.
async fn acting(
    stage: &dyn Stage,
    acts: Vec<Act>,
    tools: ToolRules,
    prompt: &str,
) -> (Open, Heard) {
    let backend = stage.backend(&Scenario::Acts(acts));
    let restricted = |request: OpenRequest| {
        add_server(stage, &request.workspace);
        OpenRequest { tools, questions: false, inherit: Inherit::Project, ..request }
    };
    let open = open_as(backend.as_ref(), restricted).await;
    let (heard, stop) = open.exchange(prompt).await;
    assert_eq!(stop, done(Scenario::TEXT), "{heard:?}");
    (open, heard)
}

/// Some tools are on offer where this is the prompt, and some are not.
fn assert_offered(stage: &dyn Stage, prompt: &str, some: &[&str], others: &[&str]) {
    let sent = sent(stage, prompt);
    let offered = sent.tools();
    assert!(some.iter().all(|name| offered.contains(name)), "{some:?}: {offered:?}");
    assert!(!others.iter().any(|name| offered.contains(name)), "{others:?}: {offered:?}");
}

/// A server of MCP with one tool, which makes a file in the project.
const SERVER: &str = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"method":"initialize"'*) say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"host","version":"1"}}' ;;
    *'"method":"tools/list"'*) say '{"tools":[{"name":"touch","description":"Makes a file","inputSchema":{"type":"object","properties":{}}}]}' ;;
    *'"method":"tools/call"'*) touch "$1/by-server"; say '{"content":[{"type":"text","text":"made"}]}' ;;
    *'"id":'*) say '{}' ;;
  esac
done
"#;

/// The file it makes.
const BY_SERVER: &str = "by-server";

fn add_server(stage: &dyn Stage, project: &Path) {
    let program = project.join("server.sh");
    if let Err(error) = fs::write(&program, SERVER) {
        panic!("cannot write {}: {error}", program.display());
    }
    let command = [Path::new("sh"), &program, project];
    stage.add_server(project, &command.map(|word| word.display().to_string()));
}

/// The servers of a project are used where what is the project's is taken over, and only there.
pub async fn servers_of_the_project_are_used(stage: &dyn Stage) {
    let words = stage.words();
    let backend = stage.backend(&Scenario::Acts(vec![Act::UseServer]));
    for (inherit, used) in [(Inherit::Project, true), (Inherit::None, false)] {
        let prompt = unique("go");
        let taking_over = |request: OpenRequest| {
            add_server(stage, &request.workspace);
            OpenRequest { inherit, ..request }
        };
        let open = open_as(backend.as_ref(), taking_over).await;
        let (heard, stop) = open.exchange(&prompt).await;
        assert_eq!(stop, done(Scenario::TEXT));
        assert_eq!(made(&open, BY_SERVER), used, "{inherit:?}: {heard:?}");
        let offered = sent(stage, &prompt);
        assert_eq!(offered.tools().contains(&words.server_tool), used, "{inherit:?}");
        assert_eq!(went_well(&heard).len(), usize::from(used), "{:?}", heard.tools);
    }
}

/// How the servers of a project are can be asked for.
pub async fn servers_are_listed(stage: &dyn Stage) {
    let project = folder();
    add_server(stage, project.path());
    let backend = stage.backend(&Scenario::Text);
    let workspace = project.path().to_owned();
    for (inherit, expected) in [(Inherit::Project, Some("connected")), (Inherit::None, None)] {
        let place = Place { workspace: workspace.clone(), inherit };
        let listed = in_time("listing", backend.servers(place)).await;
        let servers = listed.unwrap_or_else(|error| panic!("no list: {error}"));
        let host = servers.iter().find(|server| server.name == Scenario::SERVER);
        assert_eq!(host.map(|host| host.status.as_str()), expected, "{inherit:?}: {servers:?}");
    }
}

/// An agent that may not ask has no tool for it, and one that tries goes on without.
pub async fn without_questions_there_is_no_tool_for_them(stage: &dyn Stage) {
    let words = stage.words();
    let backend = stage.backend(&Scenario::Acts(vec![Act::Ask]));
    for tools in [ToolRules::default(), only(&words, &["{read}"])] {
        let prompt = unique("go");
        let quiet = |request| OpenRequest { questions: false, tools, ..request };
        let open = open_as(backend.as_ref(), quiet).await;
        // A question would be an error of the listener.
        assert_eq!(open.exchange(&prompt).await.1, done(Scenario::TEXT));
        assert_offered(stage, &prompt, &[words.read], &[words.ask]);
    }
    // Whether it may ask is said apart from its tools.
    let prompt = unique("go");
    let asking = |request| OpenRequest { tools: only(&words, &["{read}"]), ..request };
    let open = open_as(backend.as_ref(), asking).await;
    let mut listener = open.send(&prompt).await;
    assert_eq!(listener.until_asked().await.1.question, Scenario::QUESTION);
    assert_offered(stage, &prompt, &[words.read, words.ask], &[words.write]);
}

/// A helper that looks around.
fn scout(tools: ToolRules) -> Persona {
    Persona {
        name: Scenario::HELPER.to_owned(),
        description: "Looks around".to_owned(),
        prompt: unique("You look around."),
        tools,
        model: None,
    }
}

/// The turn of an agent that does some things and then starts a helper that does others.
struct Helped {
    before: Vec<Act>,
    acts: Vec<Act>,
    tools: ToolRules,
    helper: Persona,
}

impl Helped {
    /// Takes place; `prompt` is what the helper is told.
    async fn turn(self, stage: &dyn Stage, prompt: &str) -> (Open, Heard) {
        let Self { before, acts, tools, helper } = self;
        let help = Act::Help { prompt: prompt.to_owned(), acts };
        let acts = before.into_iter().chain([help]).collect();
        let backend = stage.backend(&Scenario::Acts(acts));
        let helped =
            |request| OpenRequest { tools, helpers: vec![helper], questions: false, ..request };
        let open = open_as(backend.as_ref(), helped).await;
        let (heard, stop) = open.exchange("go").await;
        assert_eq!(stop, done(Scenario::TEXT), "{heard:?}");
        (open, heard)
    }
}

/// Who a helper is, what it does, and when it is done, is told.
pub async fn helpers_are_told(stage: &dyn Stage) {
    let prompt = unique("helper: look around");
    let helper = scout(ToolRules::default());
    let told = helper.prompt.clone();
    let before = vec![Act::write("own", "x")];
    let acts = vec![Act::write("helped", "x"), Act::run("exit 3")];
    let helped = Helped { before, acts, tools: ToolRules::default(), helper };
    let (open, heard) = helped.turn(stage, &prompt).await;
    assert!(made(&open, "own") && made(&open, "helped"));
    let system = sent(stage, &prompt).system();
    assert!(system.contains(&told), "{system}");

    let reports = helper_reports(&heard);
    let [started, .., finished] = reports.as_slice() else { panic!("{reports:?}") };
    assert_eq!(started.state, HelperState::Started);
    let about = (started.agent.as_str(), started.task.as_str());
    assert_eq!(about, (Scenario::HELPER, Scenario::TASK));
    assert_eq!((finished.state, finished.tools_used), (HelperState::Finished, 2), "{finished:?}");
    assert!(finished.tokens > 0 && finished.id == started.id, "{finished:?}");

    let by = |summary: &str, ok| {
        let mut used = heard.tools.iter().filter(|it| it.ok == ok);
        used.find(|it| it.summary.contains(summary)).map(|it| it.by.as_deref())
    };
    let helper = Some(Some(started.id.as_str()));
    let found = [by("own", true), by("helped", true), by("exit 3", false)];
    assert_eq!(found, [Some(None), helper, helper], "{:?}", heard.tools);
    let began = |by: Option<&str>| heard.began.iter().filter(|it| it.by.as_deref() == by).count();
    assert_eq!(began(Some(&started.id)), 2, "{:?}", heard.began);
}

fn helper_reports(heard: &Heard) -> Vec<&Helper> {
    let reports = heard.others.iter();
    reports
        .filter_map(|it| if let Report::Helper(helper) = it { Some(helper) } else { None })
        .collect()
}

/// What a helper tries: two things that are not allowed, and one that is.
fn tries() -> Vec<Act> {
    vec![Act::run("touch made"), Act::write("written", "x"), Act::run("git init -q inner")]
}

/// A helper may do what the agent that started it may, and no more.
pub async fn a_helper_of_a_restricted_agent_is_restricted(stage: &dyn Stage) {
    let tools = only(&stage.words(), &["{help}", "{read}", "{shell}(git:*)"]);
    let helper = scout(ToolRules::default());
    let helped = Helped { before: vec![], acts: tries(), tools, helper };
    let (open, heard) = helped.turn(stage, &unique("helper: try")).await;
    assert_not_made(&open, &["made", "written"], &heard);
    assert!(made(&open, "inner/.git"), "{:?}", heard.tools);
}

/// A helper may be restricted where the agent that starts it is not.
pub async fn a_helper_has_rules_of_its_own(stage: &dyn Stage) {
    let words = stage.words();
    let some = only(&words, &["{shell}(git:*)"]);
    let rest = without(&words, &["{write}", "{edit}", "{shell}(touch:*)"]);
    for (rules, offered) in [(some, words.shell), (rest, words.read)] {
        let prompt = unique("helper: try");
        let before = vec![Act::write("own", "x")];
        let tools = ToolRules::default();
        let helped = Helped { before, acts: tries(), tools, helper: scout(rules) };
        let (open, heard) = helped.turn(stage, &prompt).await;
        assert!(made(&open, "own"), "{:?}", heard.tools);
        assert_not_made(&open, &["made", "written"], &heard);
        assert!(made(&open, "inner/.git"), "{:?}", heard.tools);
        assert_offered(stage, &prompt, &[offered], &[words.write]);
    }
}

/// The question of a helper is the user's to answer.
pub async fn a_helper_asks(stage: &dyn Stage) {
    let [prompt, given] = ["helper: ask", "violet"].map(unique);
    let help = Act::Help { prompt: prompt.clone(), acts: vec![Act::Ask] };
    let backend = stage.backend(&Scenario::Acts(vec![help]));
    let helpers = vec![scout(ToolRules::default())];
    let open = open_as(backend.as_ref(), |request| OpenRequest { helpers, ..request }).await;
    let mut listener = open.send("go").await;
    let (id, question) = listener.until_asked().await;
    assert_eq!(question.question, Scenario::QUESTION);
    let answer = Answer { chosen: vec![given.clone()] };
    let answered = in_time("answering", open.conversation.answer(id, answer)).await;
    assert_eq!(answered, Ok(()));
    let (_, stop) = listener.until_end().await;
    assert_eq!(stop, done(Scenario::TEXT));
    let received = stage.received();
    let mut helpers = Sent::all(&received).filter(|sent| sent.last_words().contains(&prompt));
    assert!(helpers.any(|sent| sent.whole().contains(&given)), "the helper is told the answer");
}
