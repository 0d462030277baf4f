//! What of the user's and the project's settings OpenCode takes over, what its tools' shells see, and
//! what is left behind.

use std::fs;
use std::path::Path;

use atomic_backend::{Backend as _, Inherit, OpenRequest, Persona, Place};
use atomic_testing::conformance::backend::{Sent, exchange, in_time};
use atomic_testing::model::{Received, Reply, Script, Turn};
use serde_json::{Value, json};

use super::opencode_stand::{Stand, dens, helper, nothing_is_left, run};
use super::serving_stand::when;
use super::stand::{text, until};

/// Everything that can be set up in a folder, all of which says whose it is.
fn set_up(folder: &Path, whose: &str, ran: &Path) {
    let write = |name: String, text: String| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let ran = ran.join(whose).display().to_string();
    let plugin = format!(
        "import {{ appendFileSync }} from 'node:fs'\n\
         export const P = async () => {{ appendFileSync({ran:?}, 'plugin\\n'); return {{}} }}\n"
    );
    write("plugin/it.js".to_owned(), plugin);
    write(
        format!("agent/{whose}-agent.md"),
        format!("---\ndescription: agent of {whose}\nmode: subagent\n---\nI am of {whose}.\n"),
    );
}

fn servers(ran: &Path, whose: &str) -> Value {
    let command = format!("echo server >> {}", ran.join(whose).display());
    json!({ "mcp": { format!("{whose}-server"): {
        "type": "local", "command": ["sh", "-c", command],
    } } })
}

/// Adds to a file of settings.
fn add(file: &Path, more: &Value) {
    let text = fs::read_to_string(file).unwrap_or_else(|_| "{}".to_owned());
    let mut settings: Value = serde_json::from_str(&text).unwrap();
    for (key, value) in more.as_object().unwrap() {
        settings[key] = value.clone();
    }
    fs::write(file, settings.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_are_taken_over_as_asked_for() {
    let stand = Stand::new(Script::new().with(Turn::default().reply(Reply::say("Yes."))));
    let (home, project) = (stand.home.path(), stand.workspace.path());
    let ran = tempfile::tempdir().unwrap();
    set_up(&home.join(".config/opencode"), "user", ran.path());
    set_up(&home.join(".opencode"), "home", ran.path());
    set_up(&project.join(".opencode"), "project", ran.path());
    add(&home.join(".config/opencode/opencode.json"), &servers(ran.path(), "user"));
    add(&project.join("opencode.json"), &servers(ran.path(), "project"));
    fs::write(home.join(".config/opencode/AGENTS.md"), "rules of user").unwrap();
    fs::write(project.join("AGENTS.md"), "rules of project").unwrap();
    for folder in [home.join(".opencode"), project.join(".opencode")] {
        // The program fetches a package of types into every folder of settings that has none.
        for name in ["package.json", "package-lock.json"] {
            fs::copy(home.join(".config/opencode").join(name), folder.join(name)).unwrap();
        }
        fs::create_dir(folder.join("node_modules")).unwrap();
    }
    let initialised = std::process::Command::new("git").args(["init", "-q"]).arg(project).status();
    assert!(initialised.unwrap().success());
    // The program would run what a project brings along, whatever it is told about the project.
    let strange = OpenRequest { inherit: Inherit::None, ..stand.request("worker") };
    let refused = stand.backend.open(strange).await.err().unwrap().to_string();
    assert!(
        refused.contains("/.opencode/plugin/it.js") && refused.contains("--trust"),
        "{refused}"
    );
    let (plugins, aside) = (project.join(".opencode/plugin"), ran.path().join("aside"));
    fs::rename(&plugins, &aside).unwrap();

    for (inherit, expected) in [
        (Inherit::None, vec![]),
        (Inherit::Project, vec!["project"]),
        (Inherit::All, vec!["home", "project", "user"]),
    ] {
        let request = OpenRequest { inherit, ..stand.request("worker") };
        let conversation = stand.open(request).await;
        let prompt = format!("inherit {inherit:?}");
        assert_eq!(text(exchange(conversation.as_ref(), &prompt).await.1), "Yes.");
        let sent = stand.asked(&prompt).whole();
        for whose in ["user", "home", "project"] {
            let is_expected = expected.contains(&whose);
            let agent = sent.contains(&format!("agent of {whose}"));
            assert_eq!(agent, is_expected, "{inherit:?}: the agent of {whose}");
            let did: String = fs::read_to_string(ran.path().join(whose)).unwrap_or_default();
            assert_eq!(did.contains("plugin"), is_expected, "{inherit:?}: the plugin of {whose}");
            if whose != "home" {
                let rules = sent.contains(&format!("rules of {whose}"));
                assert_eq!(rules, is_expected, "{inherit:?}: the rules of {whose}");
                assert_eq!(did.contains("server"), is_expected, "{inherit:?}: {whose}: {did}");
            }
        }
        in_time("closing", conversation.close()).await;
        if inherit == Inherit::None {
            fs::rename(&aside, &plugins).unwrap();
        }
        for whose in expected {
            fs::remove_file(ran.path().join(whose)).unwrap();
        }
    }
    in_time("ending", stand.backend.end_resting()).await;
    nothing_is_left(&stand).await;
}

/// What a process that was killed leaves.
fn left_by_a_killed_process() -> std::path::PathBuf {
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let left = std::env::temp_dir().join(format!("atomic-opencode-{}-left", gone.id()));
    fs::create_dir_all(left.join("config")).unwrap();
    left
}

fn secretive() -> Persona {
    Persona {
        description: "Knows {env:HOME} and {file:/etc/passwd}".to_owned(),
        // Larger than one argument or variable can be.
        prompt: format!("{{env:HOME}} {{file:/etc/passwd}} {}", "at length ".repeat(20_000)),
        ..helper("secretive")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_told_what_is_not_for_them() {
    let script = Script::new()
        .with(when("show it").reply(run("env > shown")).reply(Reply::say("Shown.")))
        .with(when("be secretive").reply(super::opencode_stand::help("secretive", "say nothing")))
        .with(Turn::default().reply(Reply::say("Yes.")));
    let stand = Stand::new(script);
    nothing_is_begun_without_a_model(&stand).await;
    let left = left_by_a_killed_process();
    let request = OpenRequest { helpers: vec![secretive()], ..stand.request("shows") };
    let conversation = stand.open(request).await;
    assert!(!left.exists(), "what a killed process has left is swept");
    assert_eq!(text(exchange(conversation.as_ref(), "show it").await.1), "Shown.");
    shells_see_their_own(&stand);
    // What follows is said to a helper; what it says is of no importance.
    exchange(conversation.as_ref(), "be secretive").await;
    secrets_are_kept(&stand);
    only_who_is_set_up_is_asked(&stand).await;
    drop(conversation);
    let Stand { backend, .. } = stand;
    drop(backend);
    until("the folders are gone", || dens().is_empty()).await;
}

async fn nothing_is_begun_without_a_model(stand: &Stand) {
    let file = stand.home.path().join(".config/opencode/opencode.json");
    let settings = fs::read_to_string(&file).unwrap();
    let mut without: Value = serde_json::from_str(&settings).unwrap();
    without.as_object_mut().unwrap().remove("model");
    fs::write(&file, without.to_string()).unwrap();
    let refused = stand.backend.open(stand.request("none")).await.err().unwrap();
    assert_eq!(refused.code(), "misconfigured");
    assert!(refused.to_string().contains("--model PROVIDER/MODEL"), "{refused}");
    assert!(stand.servers().is_empty() && dens().is_empty());
    fs::write(&file, settings).unwrap();
}

fn shells_see_their_own(stand: &Stand) {
    let shown = fs::read_to_string(stand.workspace.path().join("shown")).unwrap();
    let value = |name: &str| {
        let start = format!("{name}=");
        shown.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default()
    };
    for name in ["OPENCODE_SERVER_PASSWORD", "ATOMIC_GATE", "OPENCODE_CONFIG_CONTENT"] {
        assert_eq!(value(name), "", "{name}");
    }
    assert_eq!(value("ATOMIC_STEP"), stand.marker("shows"));
    assert_eq!(Path::new(value("TMPDIR")), std::env::temp_dir());
    assert_eq!(Path::new(value("XDG_CONFIG_HOME")), stand.home.path().join(".config"));
    let den = dens()[0].display().to_string();
    assert!(!shown.contains(&den), "{shown}");
}

fn secrets_are_kept(stand: &Stand) {
    let requests: Vec<Received> = stand.model.requests();
    let sent: Vec<Sent> = requests.iter().filter_map(Sent::read).collect();
    let to_helper = sent.iter().find(|sent| sent.last_words().contains("say nothing")).unwrap();
    assert!(to_helper.system().contains("{env:HOME} {file:/etc/passwd} at length at length"));
    assert!(
        sent.iter().any(|sent| sent.whole().contains("Knows {env:HOME} and {file:/etc/passwd}"))
    );
    assert!(!sent.iter().any(|sent| sent.whole().contains("root:x:0")));
}

async fn only_who_is_set_up_is_asked(stand: &Stand) {
    let place = Place { workspace: stand.workspace.path().to_owned(), inherit: Inherit::None };
    let models = in_time("listing", stand.backend.models(place)).await.unwrap();
    assert!(models.iter().any(|model| model.name == "scripted/plain-1"));
    // It is offered by the program, but a conversation does not know it.
    let hosted = OpenRequest { model: Some("other/one".to_owned()), ..stand.request("hosted") };
    assert_eq!(stand.backend.open(hosted).await.err().unwrap().code(), "model_unknown");
}
