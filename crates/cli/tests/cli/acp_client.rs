//! `atomic acp`, driven by an independent client: the TypeScript SDK of the protocol. `ATOMIC_ACP_CLIENT`
//! names the folder it is installed in; `cargo xtask client` prints it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::env::{TestEnv, program, ran};
use crate::scene::{Scene, agent, ask, planner, run, say, wait_for};

const CLIENT: &str = include_str!("../acp/client.mjs");

/// Where the client is, in a folder of its own beside the packages it needs.
fn client(env: &TestEnv) -> PathBuf {
    let installed = std::env::var_os("ATOMIC_ACP_CLIENT").map(PathBuf::from);
    let installed = installed
        .unwrap_or_else(|| panic!("ATOMIC_ACP_CLIENT names no folder; see cargo xtask client"));
    let folder = env.outside("client");
    let path = folder.join("client.mjs");
    if !path.exists() {
        fs::create_dir(&folder).unwrap();
        symlink(installed.join("node_modules"), folder.join("node_modules")).unwrap();
        fs::write(&path, CLIENT).unwrap();
    }
    path
}

/// What a client heard, in order.
struct Heard(Vec<(String, Value)>);

impl Heard {
    fn all(&self, what: &str) -> Vec<&Value> {
        self.0.iter().filter(|(heard, _)| heard == what).map(|(_, value)| value).collect()
    }

    fn one(&self, what: &str) -> &Value {
        let all = self.all(what);
        assert_eq!(all.len(), 1, "one {what} of {:#?}", self.0);
        all[0]
    }

    fn updates(&self, kind: &str) -> Vec<&Value> {
        let updates = self.all("update").into_iter().map(|params| &params["update"]);
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// Everything of a kind that is a text.
    fn text(&self, kind: &str) -> String {
        let chunks = self.updates(kind).into_iter();
        chunks.map(|chunk| chunk["content"]["text"].as_str().unwrap()).collect()
    }

    fn said(&self) -> String {
        self.text("agent_message_chunk")
    }

    fn stops(&self) -> Vec<&str> {
        let answers = self.all("answered").into_iter();
        answers.map(|answer| answer["stopReason"].as_str().unwrap()).collect()
    }

    fn session(&self) -> String {
        self.one("opened")["sessionId"].as_str().unwrap().to_owned()
    }
}

/// Plays a scene against `atomic acp` on a script.
fn play(env: &TestEnv, script: &str, scene: Value) -> Heard {
    let script = env.script(script);
    let mut scene = scene;
    scene["program"] = json!(program());
    scene["args"] = json!(["acp", "--backend", "script", "--script", script]);
    scene["cwd"] = json!(env.work());
    let mut command = Command::new("node");
    command.arg(client(env)).arg(scene.to_string()).current_dir(env.work());
    // The surroundings of `atomic` are those of every other test.
    let plain = env.atomic(["acp"]);
    command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = ran(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let heard = ended.stdout.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["what"].as_str().unwrap().to_owned(), line["value"].clone())
    });
    let heard = Heard(heard.collect());
    assert_eq!(heard.one("ended"), &json!(0), "{}", ended.stderr);
    heard
}

fn assistant() -> crate::scene::Turn {
    agent("assistant")
}

#[test]
fn a_chat_is_heard_as_it_goes() {
    let env = TestEnv::new();
    let turn = assistant().and("Fix `/w/a.rs`").and("let a = 1;").does([
        say("First I look."),
        run("echo looked > looked.txt"),
        "{ write = { path = \"a.txt\", text = \"one\" } }".to_owned(),
        wait_for("\"$LEDGER.seen\""),
        "{ edit = { path = \"a.txt\", find = \"one\", replace = \"two\" } }".to_owned(),
        say("Done."),
    ]);
    let script = Scene::default().turn(turn).turn(assistant().does([say("Hello.")])).toml();
    let server = json!({"name": "files", "command": "files", "args": [], "env": []});
    let embedded = json!({"uri": "file:///w/a.rs", "text": "let a = 1;\n"});
    let prompt =
        json!([{"type": "text", "text": "Fix"}, {"type": "resource", "resource": embedded}]);
    let seen = json!({"at": "write a.txt", "write": env.outside("ledger.seen")});
    let heard = play(
        &env,
        &script,
        json!({"steps": [
            {"new": {"mcpServers": [server]}}, {"prompt": prompt, "then": seen}, {"prompt": "Hi"},
        ]}),
    );
    let able = &heard.one("initialized")["agentCapabilities"];
    assert_eq!(
        (&able["loadSession"], &able["promptCapabilities"]["embeddedContext"]),
        (&json!(true), &json!(true))
    );
    let commands = &heard.updates("available_commands_update")[0]["availableCommands"];
    let named = |name: &str| {
        let mut all = commands.as_array().unwrap().iter();
        all.find(|command| command["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    assert_eq!(named("ralph")["input"]["hint"], "\"<prompt-or-spec-path>\" | --resume <uuid>");
    assert!(named("debugger")["description"].as_str().unwrap().len() > 20);
    let _ = (named("commit"), named("resume"));
    assert_eq!(heard.stops(), ["end_turn", "end_turn"]);
    let said = heard.said();
    assert!(said.contains("First I look.\n\nDone.") && said.ends_with("Hello."), "{said}");
    assert_eq!(said.matches("not passed on to agents (files)").count(), 1, "{said}");
    let calls = heard.updates("tool_call");
    let titles: Vec<&str> = calls.iter().map(|call| call["title"].as_str().unwrap()).collect();
    let waits = "`while [ ! -e \"$LEDGER.seen\" ]; do sleep 0.02; done`";
    assert_eq!(titles, ["`echo looked > looked.txt`", "write a.txt", waits, "edit a.txt"]);
    let path = env.work().join("a.txt");
    assert_eq!(calls[1]["locations"], json!([{"path": path}]));
    let diff = json!([{"type": "diff", "path": path, "oldText": "one", "newText": "two"}]);
    assert_eq!(calls[3]["content"], diff);
}

#[test]
fn ralph_runs_with_its_task_list_as_the_plan() {
    let env = TestEnv::new();
    let script = Scene::of(&[("#1", &[]), ("#2", &["#1"])]).rest().toml();
    let heard = play(
        &env,
        &script,
        json!({"steps": [{"new": {}}, {"prompt": "/ralph \"Build it\""}, {"prompt": "/loop"}]}),
    );
    assert_eq!(heard.stops(), ["end_turn", "end_turn"]);
    let said = heard.said();
    let session = env.session();
    let id = session.file_name().unwrap().to_str().unwrap();
    for line in [
        "Starting **ralph** workflow...",
        &format!("Started Ralph session: {id}"),
        "**Workflow Progress:** Planning the tasks\n",
        "2 of 2 tasks are completed.",
        &format!("Completed Ralph session: {id}"),
        "Please provide a prompt for the ralph workflow.",
    ] {
        assert!(said.contains(line), "{line} in {said}");
    }
    let plans = heard.updates("plan");
    let statuses = |plan: &Value| -> String {
        let entries = plan["entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["status"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    let statuses: Vec<String> = plans.iter().map(|plan| statuses(plan)).collect();
    assert_eq!(statuses.first().unwrap(), "pending pending");
    assert_eq!(statuses.last().unwrap(), "completed completed");
    assert!(statuses.contains(&"completed in_progress".to_owned()), "{statuses:?}");
    assert_eq!(plans[0]["entries"][0]["content"], "#1 Make part 1");
}

/// An agent that asks, and says what it was told.
fn asking() -> String {
    let told = assistant().and("You asked: Which?").and("The user's answer: Green");
    Scene::default()
        .turn(told.does([say("Green it is.")]))
        .turn(assistant().does([ask("Which?", &["Red", "Blue"]), say("You chose {answer}.")]))
        .toml()
}

#[test]
fn a_question_is_a_form_or_a_choice_of_permissions() {
    let env = TestEnv::new();
    let form = json!({"action": "accept", "content": {"answer": "Blue"}});
    let steps = json!([{"new": {}}, {"prompt": "Go"}]);
    let heard = play(&env, &asking(), json!({"forms": true, "answers": [form], "steps": steps}));
    assert_eq!(
        heard.one("form")["requestedSchema"]["properties"]["answer"]["oneOf"][1]["const"],
        "Blue"
    );
    assert_eq!(heard.said(), "You chose Blue.");
    let heard = play(&env, &asking(), json!({"answers": ["Red"], "steps": steps}));
    let options = heard.one("permission")["options"].as_array().unwrap();
    assert!(options.iter().all(|option| option["kind"] == "allow_once"), "{options:?}");
    assert_eq!(heard.said(), "You chose Red.");
    // Nobody answers: nothing is made up, and the next message does.
    let steps = json!([{"new": {}}, {"prompt": "Go"}, {"prompt": "Green"}]);
    let decline = json!({"action": "decline"});
    let heard = play(&env, &asking(), json!({"forms": true, "answers": [decline], "steps": steps}));
    let said = heard.said();
    assert!(said.contains("The agent asks: Which?") && said.ends_with("Green it is."), "{said}");
    assert_eq!(heard.stops(), ["end_turn", "end_turn"]);
}

/// Writes a workflow of the project that is trusted.
fn workflow(env: &TestEnv, name: &str, document: &Value) {
    let folder = env.work().join(".atomic/workflows");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{name}.json")), document.to_string()).unwrap();
}

#[test]
fn a_workflow_waits_for_an_answer_that_nobody_gives() {
    let env = TestEnv::new();
    let asks = json!({"nodes": [
        {"type": "askUser", "id": "why", "question": "Why?"},
        {"type": "agent", "id": "work", "prompt": "because {outputs.why}"},
    ]});
    workflow(&env, "curious", &asks);
    let trusted = env.run(["trust", env.work().to_str().unwrap()]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    let script = "[[turn]]\ndo = [{ say = \"I see.\" }]\n";
    // A free text cannot be put without a form.
    let steps = json!([{"new": {}}, {"prompt": "/curious Go"}]);
    let heard = play(&env, script, json!({"steps": steps}));
    assert_eq!(heard.stops(), ["end_turn"]);
    let id = env.summary()["sessionId"].as_str().unwrap().to_owned();
    let said = heard.said();
    assert!(said.contains(&format!("`atomic answer {id} <answer>`")), "{said}");
    assert!(said.contains(&format!("Resume with: /resume {id}")), "{said}");
    assert_eq!(env.summary()["status"], "waiting");
    assert_eq!(heard.all("permission").len() + heard.all("form").len(), 0);
    // With one it can.
    let form = json!({"action": "accept", "content": {"answer": "no reason"}});
    let steps = json!([{"load": id}, {"prompt": "and be quick"}]);
    let heard = play(&env, script, json!({"forms": true, "answers": [form], "steps": steps}));
    assert!(
        heard.said().contains("is waiting. Your next message continues it"),
        "{}",
        heard.said()
    );
    assert_eq!(heard.stops(), ["end_turn"]);
    assert_eq!(env.summary()["status"], "completed");
    let facts = env.facts();
    let of = |kind: &str| facts.iter().find(|fact| fact["type"] == kind).unwrap();
    assert_eq!(of("question_answered")["answer"]["chosen"], json!(["no reason"]));
    assert_eq!(of("instructed")["text"], "and be quick");
}

#[test]
fn what_can_go_on_goes_on_when_a_question_is_declined() {
    let env = TestEnv::new();
    // The other branch ends some time after somebody was asked.
    let after = "until grep -q question_asked .atomic/sessions/*/journal.jsonl; do sleep 0.02; done; \
                 sleep 0.5; touch after.txt";
    let asks = json!({"nodes": [{"type": "parallel", "id": "both", "branches": [
        {"type": "askUser", "id": "which", "question": "Which?", "options": ["A", "B"]},
        {"type": "tool", "id": "after", "command": after},
    ]}]});
    workflow(&env, "both", &asks);
    let trusted = env.run(["trust", env.work().to_str().unwrap()]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    let script = Scene::default().turn(planner()).toml();
    let steps = json!([{"new": {}}, {"prompt": "/both Go"}]);
    let heard = play(&env, &script, json!({"answers": [null], "steps": steps}));
    assert_eq!(heard.stops(), ["end_turn"]);
    let _ = heard.one("permission");
    assert!(heard.said().contains("Waiting Both session: "), "{}", heard.said());
    assert!(env.work().join("after.txt").exists());
    assert_eq!(env.summary()["status"], "waiting");
}

#[test]
fn a_workflow_that_is_cancelled_is_paused_and_goes_on_in_another_process() {
    let env = TestEnv::new();
    let stuck = Scene::of(&[("#1", &[])]);
    let script = |scene: Scene| scene.rest().toml();
    let hangs = stuck
        .clone()
        .turn(crate::scene::worker("Task #1").does([say("I begin."), wait_for("\"$LEDGER.go\"")]));
    let steps = json!([{"new": {}}, {"prompt": "/ralph Build it", "cancelAt": "I begin."}]);
    let heard = play(&env, &script(hangs), json!({"steps": steps}));
    assert_eq!(heard.stops(), ["cancelled"]);
    let session = env.session();
    let id = session.file_name().unwrap().to_str().unwrap();
    let said = heard.said();
    let resume = format!("Paused Ralph session: {id}\n\nResume with: /ralph --resume {id}");
    assert!(said.trim_end().ends_with(&resume), "{said}");
    assert_eq!(env.summary()["status"], "paused");

    let steps = json!([{"load": heard.session()}, {"prompt": "Hurry"}]);
    let loaded = play(&env, &script(stuck), json!({"steps": steps}));
    assert_eq!(loaded.text("user_message_chunk"), "/ralph Build it");
    let said = loaded.said();
    assert!(said.contains(&resume) && said.contains("Your next message continues it"), "{said}");
    assert_eq!(loaded.stops(), ["end_turn"]);
    assert!(said.contains(&format!("Resumed Ralph session: {id}")), "{said}");
    assert!(said.contains(&format!("Completed Ralph session: {id}")), "{said}");
    assert_eq!(env.summary()["status"], "completed");
    assert!(env.facts().iter().any(|fact| fact["type"] == "instructed" && fact["text"] == "Hurry"));
    // What was heard before the answer is the whole of it.
    let order: Vec<&str> = loaded.0.iter().map(|(what, _)| what.as_str()).collect();
    let place = |what: &str| order.iter().position(|heard| *heard == what).unwrap();
    assert!(place("update") < place("loaded"), "{order:?}");
}

#[test]
fn without_a_replay_a_paused_workflow_waits_until_it_is_meant() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[])]);
    let hangs = crate::scene::worker("Task #1").does([say("Begun."), wait_for("\"$LEDGER.go\"")]);
    let steps = json!([
        {"new": {}}, {"prompt": "/ralph Build it", "cancelAt": "Begun."}, {"prompt": "Hi"},
    ]);
    let chat = assistant().does([say("Hello.")]);
    let script = scene.clone().turn(hangs).turn(chat.clone()).toml();
    let paused = play(&env, &script, json!({"steps": steps}));
    assert_eq!(paused.stops(), ["cancelled", "end_turn"]);
    assert!(paused.said().ends_with("Hello."), "{}", paused.said());
    let steps = json!([{"resume": paused.session()}, {"prompt": "Hi"}, {"prompt": "/resume"}]);
    let resumed = play(&env, &scene.turn(chat).rest().toml(), json!({"steps": steps}));
    assert_eq!(resumed.stops(), ["end_turn", "end_turn"]);
    let said = resumed.said();
    assert!(said.starts_with("Hello.Resumed Ralph session: "), "{said}");
    assert_eq!(env.summary()["status"], "completed");
}

#[test]
fn a_chat_that_is_cancelled_goes_on_in_the_same_conversation() {
    let env = TestEnv::new();
    let hangs = assistant().and("Wait").does([say("Waiting."), wait_for("never")]);
    let script = Scene::default().turn(hangs).turn(assistant().does([say("Hello.")])).toml();
    let steps = json!([{"new": {}}, {"prompt": "Wait", "cancelAt": "Waiting."}, {"prompt": "Hi"}]);
    let heard = play(&env, &script, json!({"steps": steps}));
    assert_eq!(heard.stops(), ["cancelled", "end_turn"]);
    let id = heard.session();
    let steps = json!([
        {"resume": id}, {"prompt": "Again"}, {"list": {"cwd": env.work()}}, {"close": true},
        {"prompt": "Nobody hears this"},
    ]);
    let resumed = play(&env, &script, json!({"steps": steps}));
    assert_eq!(resumed.text("user_message_chunk"), "");
    assert_eq!(resumed.said(), "Hello.");
    let listed = &resumed.one("listed")["sessions"][0];
    assert_eq!((&listed["sessionId"], &listed["title"]), (&json!(id), &json!("Wait")));
    assert_eq!(resumed.one("failed")["code"], -32_602);
    let path = env.outside("home/.atomic/acp").join(format!("{id}.jsonl"));
    let kept = fs::read_to_string(&path).unwrap();
    assert_eq!(kept.matches("\"conversed\"").count(), 1, "{kept}");
    assert_eq!(kept.matches("\"prompted\"").count(), 3, "{kept}");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn names_are_looked_up_and_agents_answer_apart() {
    let env = TestEnv::new();
    let told = assistant()
        .and("asked debugger: look here")
        .and("It was the cache.")
        .does([say("I know.")]);
    let script = Scene::default()
        .turn(agent("debugger").and("look here").does([say("It was the cache.")]))
        .turn(told)
        .turn(assistant().and("Explain the code").does([say("Explained.")]))
        .turn(assistant().does([say("Something else.")]))
        .toml();
    let folder = env.work().join(".claude/commands");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("tell.md"), "Explain the code in $ARGUMENTS").unwrap();
    let steps = json!([
        {"new": {}},
        {"prompt": "/comit"},
        {"prompt": "/ralph --yolo x"},
        {"prompt": "/debugger \"look here\""},
        {"prompt": "Do you know?"},
        {"prompt": "/tell src"},
        {"prompt": "/help"},
        {"prompt": "/help ralph"},
    ]);
    let heard = play(&env, &script, json!({"steps": steps}));
    assert_eq!(heard.stops(), ["end_turn"; 7]);
    let said = heard.said();
    for text in [
        "(did you mean \"commit\"?)",
        "--yolo is gone",
        "It was the cache.",
        "I know.",
        "Explained.",
        "**Sub-agents**",
        "`/ralph \"<prompt-or-spec-path>\" | --resume <uuid>`: Plan,",
    ] {
        assert!(said.contains(text), "{text} in {said}");
    }
    assert!(!said.contains("Something else."), "{said}");
    let titles = heard.updates("session_info_update");
    assert_eq!(titles.len(), 1, "{titles:?}");
    assert_eq!(titles[0]["title"], "/comit");
}

#[test]
fn code_that_nobody_has_trusted_is_asked_about() {
    let env = TestEnv::new();
    let made =
        json!({"nodes": [{"type": "tool", "id": "make", "command": "echo made > made.txt"}]});
    workflow(&env, "maker", &made);
    let script = Scene::default().turn(planner()).toml();
    let steps = json!([{"new": {}}, {"prompt": "/maker Go"}]);
    let refused = play(&env, &script, json!({"answers": ["Go on without it"], "steps": steps}));
    assert_eq!(refused.stops(), ["end_turn"]);
    assert!(refused.said().contains("atomic trust"), "{}", refused.said());
    let about = refused.one("permission").to_string();
    assert!(about.contains("maker.json") && !env.work().join("made.txt").exists(), "{about}");
    // Another session does not ask again, until the workflow changes.
    let again = play(&env, &script, json!({"answers": [], "steps": steps}));
    assert!(again.said().contains("atomic trust"), "{}", again.said());
    assert!(!env.work().join("made.txt").exists());
    let changed =
        json!({"nodes": [{"type": "tool", "id": "do", "command": "echo made > made.txt"}]});
    workflow(&env, "maker", &changed);
    let steps = json!([{"new": {}}, {"prompt": "/maker Go"}, {"prompt": "/maker Go"}]);
    let trust = "Trust it, and ask again when a definition changes";
    let allowed = play(&env, &script, json!({"answers": [trust], "steps": steps}));
    assert_eq!(allowed.stops(), ["end_turn", "end_turn"]);
    let _ = allowed.one("permission");
    assert!(env.work().join("made.txt").exists(), "{}", allowed.said());
}

#[test]
fn one_prompt_at_a_time() {
    let env = TestEnv::new();
    let waits = assistant().does([say("Waiting."), wait_for("now"), say("Now.")]);
    let script = Scene::default().turn(waits).toml();
    let again = json!({"at": "Waiting.", "prompt": "Another", "write": env.work().join("now")});
    let steps = json!([{"new": {}}, {"prompt": "Wait", "then": again}]);
    let heard = play(&env, &script, json!({"steps": steps}));
    assert_eq!(heard.stops(), ["end_turn"]);
    assert_eq!(heard.one("failed")["code"], -32_600, "{:?}", heard.0);
    assert!(heard.said().ends_with("Now."), "{}", heard.said());
}
