//! What of the user's and the project's settings GitHub Copilot takes over.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use atomic_backend::{Backend as _, Inherit, OpenRequest};
use atomic_testing::agents::{COPILOT, CopilotHome, program};
use atomic_testing::conformance::backend::{Sent, exchange, in_time, request};
use atomic_testing::model::{ModelServer, Reply, Script, Turn};
use serde_json::{Value, json};

use super::copilot::{WINDOW, backend};
use super::stand::{text, until};

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A command that leaves a file of this name.
struct Traps<'a>(&'a Path);

impl Traps<'_> {
    fn command(&self, name: &str) -> String {
        format!("touch {}", self.0.join(name).display())
    }

    fn hooks(&self, name: &str) -> Value {
        let hook = |when: &str| json!([{ "type": "command", "bash": self.command(&format!("{name} {when}").replace(' ', "-")) }]);
        json!({ "version": 1, "hooks": {
            "sessionStart": hook("start"), "userPromptSubmitted": hook("prompt"), "preToolUse": hook("tool"),
        } })
    }

    fn server(&self, name: &str) -> Value {
        let run = json!(["-c", self.command(name)]);
        json!({ name: { "type": "local", "command": "/bin/sh", "args": run, "tools": ["*"] } })
    }

    fn sprung(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Everything that can be set up by the user and by a project. A project is full of commands.
fn set_up(home: &Path, project: &Path, traps: &Traps<'_>) {
    let users = home.join(".copilot");
    write(&users.join("hooks/it.json"), &traps.hooks("user").to_string());
    write(&users.join("settings.json"), &traps.hooks("user-settings").to_string());
    let servers = json!({ "mcpServers": traps.server("user-server") });
    write(&users.join("mcp-config.json"), &servers.to_string());
    write(&users.join("copilot-instructions.md"), "rules of user");

    write(&project.join(".github/hooks/it.json"), &traps.hooks("project").to_string());
    write(
        &project.join(".github/copilot/settings.json"),
        &traps.hooks("project-settings").to_string(),
    );
    let run =
        json!([{ "hooks": [{ "type": "command", "command": traps.command("project-claude") }] }]);
    let claude = json!({ "hooks": { "SessionStart": run } });
    write(&project.join(".claude/settings.json"), &claude.to_string());
    let servers = json!({ "mcpServers": traps.server("project-server") });
    write(&project.join(".mcp.json"), &servers.to_string());
    let run = json!(["-c", traps.command("project-language-server")]);
    let about = json!({ "command": "/bin/sh", "args": run, "fileExtensions": { ".py": "python" } });
    let servers = json!({ "lspServers": { "language": about } });
    write(&project.join(".github/lsp.json"), &servers.to_string());
    write(&project.join("AGENTS.md"), "rules of project");
    write(&project.join("it.py"), "x = 1\n");
    let initialised = std::process::Command::new("git").args(["init", "-q"]).arg(project).status();
    assert!(initialised.unwrap().success());
}

fn script(project: &Path) -> Script {
    let file = project.join("it.py");
    let symbols = json!({ "operation": "documentSymbol", "file": file, "filePath": file });
    let turn = Turn::default()
        .reply(Reply::call("view", json!({ "path": file })))
        .reply(Reply::call("bash", json!({ "command": "true", "description": "as asked" })))
        .reply(Reply::call("lsp", symbols))
        .reply(Reply::say("Yes."));
    Script::new().with(turn)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_are_taken_over_as_asked_for() {
    let (home, folder, ran) =
        (CopilotHome::default(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let project = folder.path();
    let traps = Traps(ran.path());
    set_up(home.path(), project, &traps);
    let model = ModelServer::start(script(project)).unwrap();
    let copilot = backend(program("copilot", COPILOT), WINDOW, home.env(&model.url()));

    let hooks = |whose: &str| ["start", "prompt", "tool"].map(|when| format!("{whose}-{when}"));
    let of_project = [hooks("project"), hooks("project-settings")]
        .concat()
        .into_iter()
        .chain(["project-claude", "project-server", "project-language-server"].map(str::to_owned));
    let of_user = [hooks("user"), hooks("user-settings")].concat().into_iter();
    let of_user = of_user.chain(["user-server".to_owned()]);
    for (inherit, expected, rules) in [
        (Inherit::None, BTreeSet::new(), [false, false]),
        (Inherit::Project, of_project.clone().collect(), [true, false]),
        (Inherit::All, of_project.chain(of_user).collect(), [true, true]),
    ] {
        // Nobody's own prompt: what the program says by itself is where rules are told.
        let request =
            OpenRequest { inherit, system_prompt: String::new(), ..request(project, None) };
        let conversation = in_time("opening", copilot.open(request)).await.unwrap();
        let prompt = format!("inherit {inherit:?}");
        assert_eq!(text(exchange(conversation.as_ref(), &prompt).await.1), "Yes.");
        // Servers come up beside the turn.
        until("all of it has run", || traps.sprung().is_superset(&expected)).await;
        in_time("closing", conversation.close()).await;
        assert_eq!(traps.sprung(), expected, "{inherit:?}");
        let requests = model.requests();
        let sent = requests.iter().filter_map(Sent::read);
        let told: Vec<String> = sent
            .filter(|sent| sent.last_words().contains(&prompt))
            .map(|sent| sent.whole())
            .collect();
        let are_told = ["project", "user"]
            .map(|whose| told.iter().any(|told| told.contains(&format!("rules of {whose}"))));
        assert_eq!(are_told, rules, "{inherit:?}");
        for trap in traps.sprung() {
            fs::remove_file(ran.path().join(trap)).unwrap();
        }
    }
    in_time("ending", copilot.end_resting()).await;
}

/// A hook of a project that wants somebody to be asked holds nothing up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_asks_holds_nothing_up() {
    let (home, folder) = (CopilotHome::default(), tempfile::tempdir().unwrap());
    let project = folder.path();
    let asks = json!({ "permissionDecision": "ask" }).to_string();
    let hook = json!([{ "type": "command", "bash": format!("echo '{asks}'") }]);
    let hooks = json!({ "version": 1, "hooks": { "preToolUse": hook } });
    write(&project.join(".github/hooks/it.json"), &hooks.to_string());
    let run = json!({ "command": "touch made", "description": "as asked" });
    let turn = Turn::default().reply(Reply::call("bash", run)).reply(Reply::say("Yes."));
    let model = ModelServer::start(Script::new().with(turn)).unwrap();
    let copilot = backend(program("copilot", COPILOT), WINDOW, home.env(&model.url()));
    let request = OpenRequest { inherit: Inherit::Project, ..request(project, None) };
    let conversation = in_time("opening", copilot.open(request)).await.unwrap();
    assert_eq!(text(exchange(conversation.as_ref(), "go").await.1), "Yes.");
    assert!(project.join("made").exists());
    in_time("closing", conversation.close()).await;
    in_time("ending", copilot.end_resting()).await;
}
