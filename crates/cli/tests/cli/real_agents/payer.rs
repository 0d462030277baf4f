//! Who pays for a run: said before the first call, refused where nobody has chosen, never chosen by a
//! project.

use std::fs;

use atomic_testing::agents::CLAUDE;
use atomic_testing::model::{Reply, Script, Turn};
use serde_json::{Value, json};

use super::program::Program::{self, Claude, Copilot, OpenCode};
use super::{Stand, facts};
use crate::env::{Ran, ran};

/// The secret of the homes of tests.
const KEY: &str = "of-no-use-anywhere";

fn stand(program: Program) -> Stand {
    Stand::of(&[program], Script::new().with(Turn::default().reply(Reply::say("Hello."))))
}

/// Runs `atomic` with more variables.
fn run_with(stand: &Stand, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = stand.atomic(args);
    command.envs(variables.iter().copied());
    ran(command)
}

/// A login of Claude Code in its own file.
fn log_in(stand: &Stand) {
    let until = far_future();
    let login = json!({ "claudeAiOauth": {
        "accessToken": "of-the-login", "refreshToken": "of-the-refresh", "expiresAt": until,
        "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
    } });
    let folder = stand.claude.path().join(".claude");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(".credentials.json"), login.to_string()).unwrap();
}

/// Milliseconds since 1970, in the year 2100.
fn far_future() -> u64 {
    4_102_444_800_000
}

/// The credentials of the calls since the last time.
fn credentials(stand: &Stand) -> Vec<String> {
    stand.server.take_requests().into_iter().flat_map(|asked| asked.credentials).collect()
}

/// The address of the model without its scheme.
fn gateway(stand: &Stand) -> String {
    stand.server.url().trim_start_matches("http://").to_owned()
}

fn flow(stand: &Stand, nodes: &Value) -> String {
    let path = stand.env.outside("flow.json");
    fs::write(&path, json!({ "name": "flow", "nodes": nodes }).to_string()).unwrap();
    path.display().to_string()
}

/// Who pays, as the journal has it, and that it is there before a conversation is.
fn paid_by(stand: &Stand) -> Vec<Value> {
    let facts = facts(stand);
    let place = |kind: &str| facts.iter().position(|fact| fact["type"] == kind);
    assert!(place("payer_found") < place("conversation_opened"), "{facts:#?}");
    facts.into_iter().filter(|fact| fact["type"] == "payer_found").collect()
}

fn says_who_pays(program: Program, line: &str, kind: &str) {
    let stand = stand(program);
    let (name, gateway) = (program.name(), gateway(&stand));
    let line = format!("{line}, through the gateway {gateway}\n");
    let flow = flow(&stand, &json!([{ "type": "agent", "id": "one", "prompt": "Hello" }]));
    let ended = stand.run(&["run", &flow, "Go", "--backend", name]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains(&line), "{line}: {ended:?}");
    let told = paid_by(&stand);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!((&told[0]["kind"], &told[0]["gateway"]), (&json!(kind), &json!(gateway)));
    let session = fs::read_dir(stand.env.work().join(".atomic/sessions")).unwrap();
    let session = session.map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let summary = fs::read_to_string(session.join("session.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["paidBy"][0]["backend"], name, "{summary:#}");
    assert_eq!(summary["paidBy"][0]["source"], told[0]["source"]);
    let journal = fs::read_to_string(session.join("journal.jsonl")).unwrap();
    assert!(!journal.contains(KEY), "a secret is recorded");

    let turn = stand.run(&["-p", "Hello", "--backend", name]);
    assert_eq!((turn.code, turn.stdout.as_str()), (Some(0), "Hello.\n"), "{turn:?}");
    assert!(turn.stderr.contains(&line), "{turn:?}");
    let json = stand.run(&["-p", "Hello", "--json", "--backend", name]);
    assert!(json.stdout.contains(r#""type":"payer_found""#), "{json:?}");
}

#[test]
fn claude_says_who_pays_before_the_first_call() {
    says_who_pays(Claude(CLAUDE), "claude: paid by the API key in ANTHROPIC_API_KEY", "key");
}

#[test]
fn opencode_says_who_pays_before_the_first_call() {
    let source = "provider.scripted.options.apiKey of your OpenCode settings";
    let line = format!("opencode (scripted): paid by the API key in {source}");
    says_who_pays(OpenCode, &line, "key");
}

#[test]
fn copilot_says_who_pays_before_the_first_call() {
    says_who_pays(Copilot, "copilot: paid by the API key in COPILOT_PROVIDER_API_KEY", "key");
}

/// The choice reaches the program: the calls carry the credential that was named and no other.
#[test]
fn claude_with_a_login_and_a_key_is_refused_until_one_is_chosen() {
    let stand = stand(Claude(CLAUDE));
    log_in(&stand);
    let refused = stand.run(&["-p", "Hello"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for told in [
        "error: claude: 2 credentials could pay: the API key in ANTHROPIC_API_KEY, the subscription \
         (max) in ",
        ".claude/.credentials.json",
        "hint: choose one with --pay key | --pay subscription",
    ] {
        assert!(refused.stderr.contains(told), "{told}: {refused:?}");
    }
    assert_eq!(credentials(&stand), [""; 0], "nothing was sent");
    for (pay, credential) in [("key", KEY), ("subscription", "Bearer of-the-login")] {
        for trust in ["--trust", "--no-trust"] {
            let ended = stand.run(&["-p", "Hello", "--pay", pay, trust]);
            assert_eq!(ended.code, Some(0), "{pay}: {ended:?}");
            let sent = credentials(&stand);
            assert!(!sent.is_empty() && sent.iter().all(|it| it == credential), "{pay}: {sent:?}");
            assert!(!ended.stderr.contains("also found"), "{ended:?}");
        }
    }
    let missing = stand.run(&["-p", "Hello", "--pay", "helper"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    let told = "claude: no credential `helper` was found\n  hint: choose one with --pay key";
    assert!(missing.stderr.contains(told), "{missing:?}");
    let unknown = stand.run(&["-p", "Hello", "--pay", "cash"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

#[test]
fn claude_with_a_key_in_a_variable_and_in_the_settings_file_is_refused_until_one_is_chosen() {
    let stand = stand(Claude(CLAUDE));
    let own = stand.claude.path().join(".claude/settings.json");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, json!({ "env": { "ANTHROPIC_API_KEY": "of-the-file" } }).to_string()).unwrap();
    let refused = run_with(&stand, &["-p", "Hello"], &[]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--pay settings | --pay key"), "{refused:?}");
    for (pay, credential) in [("key", KEY), ("settings", "of-the-file")] {
        for trust in ["--trust", "--no-trust"] {
            let ended = run_with(&stand, &["-p", "Hello", trust], &[("ATOMIC_PAY", pay)]);
            assert_eq!(ended.code, Some(0), "{pay}: {ended:?}");
            let sent = credentials(&stand);
            assert!(!sent.is_empty() && sent.iter().all(|it| it == credential), "{pay}: {sent:?}");
        }
    }
    // The same key in both places is one credential.
    let same = run_with(&stand, &["-p", "Hello"], &[("ANTHROPIC_API_KEY", "of-the-file")]);
    assert_eq!(same.code, Some(0), "{same:?}");
}

#[test]
fn opencode_with_a_stored_key_and_one_in_the_settings_is_refused_until_one_is_chosen() {
    let stand = stand(OpenCode);
    let data = stand.opencode.path().join(".local/share/opencode");
    fs::create_dir_all(&data).unwrap();
    let stored = json!({ "scripted": { "type": "api", "key": "of-the-store" } });
    fs::write(data.join("auth.json"), stored.to_string()).unwrap();
    let refused = stand.run(&["-p", "Hello", "--backend", "opencode"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--pay settings | --pay stored"), "{refused:?}");
    for (pay, credential) in [("settings", KEY), ("stored", "of-the-store")] {
        let ended = stand.run(&["-p", "Hello", "--backend", "opencode", "--pay", pay]);
        assert_eq!(ended.code, Some(0), "{pay}: {ended:?}");
        let sent = credentials(&stand);
        assert!(!sent.is_empty() && sent.iter().all(|it| it == credential), "{pay}: {sent:?}");
    }
}

#[test]
fn a_run_that_is_resumed_with_another_credential_says_so() {
    let stand = stand(Claude(CLAUDE));
    let agent = |id: &str| json!({ "type": "agent", "id": id, "prompt": "Hello" });
    let ask = json!({ "type": "askUser", "id": "ask", "question": "On?", "options": ["Yes"] });
    let flow = flow(&stand, &json!([agent("one"), ask, agent("two")]));
    assert_eq!(stand.run(&["run", &flow, "Go"]).code, Some(3));
    assert_eq!(credentials(&stand), [KEY]);
    let mut command = stand.atomic(&["answer", "last", "Yes", "--resume"]);
    command.env_remove("ANTHROPIC_API_KEY").env("ANTHROPIC_AUTH_TOKEN", "of-the-token");
    let ended = ran(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = "claude: paid by the token in ANTHROPIC_AUTH_TOKEN";
    assert!(ended.stdout.contains(told), "{ended:?}");
    assert_eq!(credentials(&stand), ["Bearer of-the-token"]);
    let sources: Vec<Value> = paid_by(&stand).iter().map(|fact| fact["source"].clone()).collect();
    assert_eq!(sources, ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"]);
}

/// Files of every program that could name a credential, in a folder that is trusted.
#[test]
fn no_file_of_a_trusted_project_chooses_who_pays() {
    for program in [Claude(CLAUDE), OpenCode, Copilot] {
        let stand = stand(program);
        let write = |name: &str, text: &str| {
            let path = stand.env.work().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let thief = "of-the-thief";
        let variables = format!(
            "ANTHROPIC_API_KEY={thief}\nANTHROPIC_AUTH_TOKEN={thief}\nCOPILOT_GITHUB_TOKEN={thief}\n\
             GH_TOKEN={thief}\nCOPILOT_PROVIDER_API_KEY={thief}\nOPENCODE_AUTH_CONTENT={{}}\n\
             CLAUDE_CODE_OAUTH_TOKEN={thief}\nATOMIC_PAY=subscription\n"
        );
        write(".env", &variables);
        write(".env.local", &variables);
        let claude = json!({
            "env": { "ANTHROPIC_API_KEY": thief, "ANTHROPIC_AUTH_TOKEN": thief,
                     "CLAUDE_CODE_OAUTH_TOKEN": thief, "CLAUDE_CODE_USE_BEDROCK": "1" },
            "apiKeyHelper": format!("echo {thief}"), "forceLoginMethod": "console",
        });
        write(".claude/settings.json", &claude.to_string());
        let opencode = json!({ "provider": { "scripted": { "options": { "apiKey": thief } } } });
        write("opencode.json", &opencode.to_string());
        let copilot = json!({ "providers": [{ "name": "p", "baseUrl": "http://127.0.0.1:9/v1",
            "apiKey": thief }], "models": [{ "id": "plain-1", "provider": "p" }] });
        for name in ["providers.json", ".github/copilot/settings.json", ".copilot/providers.json"] {
            write(name, &copilot.to_string());
        }
        let settings = json!({ "pay": "subscription", "backend": program.name() });
        write(".atomic/settings.json", &settings.to_string());
        let ended = stand.run(&["-p", "Hello", "--trust"]);
        assert_eq!(ended.code, Some(0), "{program:?}: {ended:?}");
        let sent = credentials(&stand);
        let is_users = |it: &String| it.trim_start_matches("Bearer ") == KEY;
        assert!(!sent.is_empty() && sent.iter().all(is_users), "{program:?}: {sent:?}");
        let line = ended.stderr.lines().find(|line| line.contains(": paid by the API key in "));
        let chose = "; .atomic/settings.json chose the backend";
        assert!(line.is_some_and(|line| line.ends_with(chose)), "{program:?}: {ended:?}");
        assert!(ended.stderr.contains("`pay`"), "{program:?}: {ended:?}");
    }
}

#[test]
fn a_credential_that_was_named_and_is_missing_is_never_replaced_by_another() {
    let stand = stand(Claude(CLAUDE));
    let key = stand.run(&["-p", "Hello", "--pay", "stored"]);
    assert_eq!(key.code, Some(2), "{key:?}");
    let mut without = stand.atomic(&["-p", "Hello", "--pay", "key"]);
    without.env_remove("ANTHROPIC_API_KEY");
    let none = ran(without);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains("claude: no credential `key` was found"), "{none:?}");
    // A login may be in a keychain, so the program is asked. The key is withheld from it.
    let login = stand.run(&["-p", "Hello", "--pay", "subscription"]);
    assert_eq!(login.code, Some(1), "{login:?}");
    assert!(login.stderr.contains("no credential `subscription` was found"), "{login:?}");
    log_in(&stand);
    let spaces = run_with(&stand, &["-p", "Hello", "--pay", "key"], &[("ANTHROPIC_API_KEY", "  ")]);
    assert_eq!(spaces.code, Some(2), "{spaces:?}");
    assert_eq!(credentials(&stand), [""; 0], "nothing was sent");
}

#[test]
fn claude_with_two_credentials_of_one_name_is_used_once_that_is_named() {
    let stand = stand(Claude(CLAUDE));
    log_in(&stand);
    let with_token = |args: &[&str]| {
        let mut command = stand.atomic(args);
        command.env_remove("ANTHROPIC_API_KEY").env("CLAUDE_CODE_OAUTH_TOKEN", "of-the-variable");
        ran(command)
    };
    let refused = with_token(&["-p", "Hello"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("hint: choose one with --pay subscription\n"), "{refused:?}");
    assert_eq!(credentials(&stand), [""; 0]);
    let ended = with_token(&["-p", "Hello", "--pay", "subscription"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("also found: the subscription (max) in "), "{ended:?}");
    let sent = credentials(&stand);
    let is_named = |it: &String| it == "Bearer of-the-variable";
    assert!(!sent.is_empty() && sent.iter().all(is_named), "{sent:?}");
}

#[test]
fn one_choice_does_for_all_backends_of_a_run() {
    let script = Script::new().with(Turn::default().reply(Reply::say("Hello.")));
    let script = script.with(Turn::default().reply(Reply::say("Hello.")));
    let stand = Stand::of(&[Claude(CLAUDE), OpenCode], script);
    log_in(&stand);
    let one = json!({ "type": "agent", "id": "one", "prompt": "Hello" });
    let two = json!({ "type": "agent", "id": "two", "prompt": "Hello", "backend": "opencode" });
    let flow = flow(&stand, &json!([one, two]));
    let refused = stand.run(&["run", &flow, "Go", "--backend", "claude"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let hint = "hint: choose one with --pay subscription | --pay key\n";
    assert!(refused.stderr.contains(hint), "{refused:?}");
    assert_eq!(credentials(&stand), [""; 0]);
    let args = ["run", &flow, "Go", "--backend", "claude", "--pay", "subscription"];
    let ended = stand.run(&args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("opencode (scripted): paid by the API key in "), "{ended:?}");
    let sent = credentials(&stand);
    assert!(sent.iter().any(|it| it == "Bearer of-the-login"), "{sent:?}");
    assert!(sent.iter().any(|it| it.trim_start_matches("Bearer ") == KEY), "{sent:?}");
}

/// The line stands on standard output, so a person at a terminal does not see it in a file.
#[test]
fn a_run_whose_output_goes_into_a_file_is_refused_at_a_terminal_as_well() {
    let stand = stand(Claude(CLAUDE));
    log_in(&stand);
    let flow = flow(&stand, &json!([{ "type": "agent", "id": "one", "prompt": "Hello" }]));
    let command = stand.atomic(&["run", &flow, "Go", "--no-trust"]);
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let line = format!("{} > '{}'", words.join(" "), stand.env.outside("out").display());
    let mut terminal = std::process::Command::new("script");
    terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    terminal.env_clear().current_dir(command.get_current_dir().unwrap());
    terminal.stdin(std::process::Stdio::null());
    terminal.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let refused = ran(terminal);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stdout.contains("2 credentials could pay"), "{refused:?}");
    assert_eq!(credentials(&stand), [""; 0], "nothing was sent");
}

/// The backends and models of a script are known only while it runs.
#[test]
fn an_agent_of_a_script_with_two_credentials_is_refused_before_its_first_call() {
    let stand = Stand::of(
        &[Claude(CLAUDE), OpenCode],
        Script::new().with(Turn::default().reply(Reply::say("Hello."))),
    );
    let data = stand.opencode.path().join(".local/share/opencode");
    fs::create_dir_all(&data).unwrap();
    let stored = json!({ "scripted": { "type": "api", "key": "of-the-store" } });
    fs::write(data.join("auth.json"), stored.to_string()).unwrap();
    let path = stand.env.outside("flow.ts");
    let text = "import { defineWorkflow } from \"atomic/workflows\";\n\
                export default defineWorkflow({ name: \"flow\" }).run(async (ctx: any) => {\n\
                  return ctx.agent(\"worker\", \"Hello\", { backend: \"opencode\" });\n\
                });\n";
    fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    let ended = stand.run(&["run", &path, "Go", "--backend", "claude", "--trust"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let all = format!("{}{}", ended.stdout, ended.stderr);
    assert!(all.contains("opencode: 2 credentials could pay"), "{ended:?}");
    assert_eq!(credentials(&stand), [""; 0], "nothing was sent");
}
