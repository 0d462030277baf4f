//! What backends there are, and what they say about themselves.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use atomic_registry::AGENT_PROGRAMS;
use serde_json::{Value, json};

use crate::env::{Ran, TestEnv, ran};

/// `atomic` with nothing on its path but what is in the test's own folder `bin`.
fn bare(env: &TestEnv, args: &[&str]) -> Command {
    let mut command = env.atomic(args);
    command.env("PATH", env.outside("bin")).env("ATOMIC_ALLOW_ROOT", "true");
    command
}

/// A program that says it is Claude Code, has these models and, when it is asked for the third
/// time, these servers; until then they are connecting.
fn with_program(models: &Value, servers: &Value) -> TestEnv {
    let env = TestEnv::new();
    let mut connecting = servers.clone();
    for server in connecting.as_array_mut().unwrap() {
        server["status"] = json!("pending");
    }
    let ready = json!({ "models": models, "claude_code_version": "2.1.325" });
    for (name, answer) in [
        ("ready", ready),
        ("servers", json!({ "mcpServers": servers })),
        ("connecting", json!({ "mcpServers": connecting })),
    ] {
        fs::write(env.outside(name), answer.to_string()).unwrap();
    }
    let program = r#"#!/bin/sh
PATH=/usr/bin:/bin
asked=0
say() {
  id=$(printf '%s' "$line" | sed -n 's/.*"request_id":"\([^"]*\)".*/\1/p')
  printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":' "$id"
  cat "$1"
  printf '}}\n'
}
case "$*" in *--version*) echo '2.1.325 (Claude Code)'; exit ;; esac
while read -r line; do
  case "$line" in
    *'"subtype":"initialize"'*) say ROOT/ready ;;
    *'"subtype":"mcp_status"'*)
      asked=$((asked + 1))
      if [ $asked -lt 3 ]; then say ROOT/connecting; else say ROOT/servers; fi ;;
  esac
done
"#;
    let program = program.replace("ROOT/", &env.outside("").display().to_string());
    fs::create_dir(env.outside("bin")).unwrap();
    let path = env.outside("bin/claude");
    fs::write(&path, program).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    env
}

fn told(ran: &Ran) -> String {
    format!("exit {}\n{}{}", ran.code.unwrap(), ran.stdout, ran.stderr)
}

/// Choices, messages and what is really there are the same.
#[test]
fn whatever_can_be_chosen_can_be_made() {
    let env = TestEnv::new();
    for program in &AGENT_PROGRAMS {
        let ran = ran(bare(&env, &["models", "--backend", program.name]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        let said = format!("{} is not installed", program.name);
        assert!(ran.stderr.contains(&said) && ran.stderr.contains(program.install), "{ran:?}");
    }
    for verb in ["models", "mcp"] {
        let none = ran(bare(&env, &[verb]));
        assert_eq!((none.code, none.stdout.as_str()), (Some(1), ""), "{none:?}");
        for said in ["no agent program is installed", "npm install -g", "atomic demo"] {
            assert!(none.stderr.contains(said), "{said}: {none:?}");
        }
        let wrong = ran(bare(&env, &[verb, "--backend", "claud"]));
        assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(2), ""), "{wrong:?}");
        assert!(wrong.stderr.contains("did you mean `claude`?"), "{wrong:?}");
        let mut wrong = bare(&env, &[verb]);
        wrong.env("ATOMIC_BACKEND", "claud");
        let wrong = ran(wrong);
        assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(2), ""), "{wrong:?}");
        assert!(wrong.stderr.contains("did you mean `claude`?"), "{wrong:?}");
    }
}

/// Any program by its command; one that cannot be is told with what to do, and none is taken from a
/// project's own settings.
#[test]
fn a_command_that_speaks_acp_can_be_chosen() {
    let env = TestEnv::new();
    let wrong: [(&str, i32, &[&str]); 6] = [
        ("acp:", 2, &["`acp:` is not complete", "`acp:<command>`"]),
        ("acp: ", 2, &["`acp: ` is not complete"]),
        ("acp:<command>", 2, &["is not complete"]),
        ("acp", 2, &["`acp` is no choice"]),
        (
            "acp:nowhere --acp",
            1,
            &["needs nowhere, which is not installed", "acp:/path/to/nowhere"],
        ),
        ("acp:nowhere 'a", 2, &["a quote (') is not closed", "acp:opencode acp"]),
    ];
    for (backend, code, says) in wrong {
        let refused = ran(bare(&env, &["models", "--backend", backend]));
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(code), ""), "{refused:?}");
        assert!(says.iter().all(|says| refused.stderr.contains(says)), "{backend}: {refused:?}");
        let mut by_variable = bare(&env, &["models"]);
        by_variable.env("ATOMIC_BACKEND", backend);
        assert_eq!(ran(by_variable).code, Some(code), "{backend}");
    }
    let program = env.work().join("agent");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let inside = format!("acp:{}", program.display());
    let refused = ran(bare(&env, &["models", "--backend", &inside]));
    assert!(refused.stderr.contains("nothing from there is run"), "{refused:?}");

    let set = |place: &str| ran(bare(&env, &["config", "set", place, "backend", "acp:nowhere x"]));
    let refused = set("--project");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("cannot be set by a project"), "{refused:?}");
    fs::create_dir_all(env.work().join(".atomic")).unwrap();
    let settings = env.work().join(".atomic/settings.json");
    fs::write(&settings, r#"{ "backend": "acp:nowhere --acp" }"#).unwrap();
    let ignored = ran(bare(&env, &["models"]));
    assert!(ignored.stderr.contains("no agent program is installed"), "{ignored:?}");
    assert!(
        ignored.stderr.contains("`backend` is not used: a project cannot set it"),
        "{ignored:?}"
    );
    fs::remove_file(settings).unwrap();
    assert_eq!(set("--user").code, Some(0));
    let users = ran(bare(&env, &["models"]));
    assert!(users.stderr.contains("needs nowhere"), "{users:?}");
    let doctor = ran(bare(&env, &["doctor"]));
    assert!(doctor.stdout.contains("needs nowhere"), "{doctor:?}");
}

/// A script need not be there to be told about.
#[test]
fn a_script_takes_any_model_and_has_no_servers() {
    let env = TestEnv::new();
    let lists: [(&[&str], &str, &str); 4] = [
        (
            &["models", "--backend", "script"],
            "script has no list of models: any name will do.\n",
            "",
        ),
        (&["mcp", "--backend", "script"], "script has no MCP servers.\n", ""),
        // What another program reads has nothing else in it.
        (
            &["models", "--json", "--backend", "script"],
            "",
            "script has no list of models: any name will do.\n",
        ),
        (&["mcp", "--json", "--backend", "script"], "", "script has no MCP servers.\n"),
    ];
    for (args, stdout, stderr) in lists {
        let ran = ran(bare(&env, args));
        let found = (ran.code, ran.stdout.as_str(), ran.stderr.as_str());
        assert_eq!(found, (Some(0), stdout, stderr), "{args:?}");
    }
}

#[test]
fn models_stand_below_each_other_and_nothing_in_them_acts_on_a_terminal() {
    let models = json!([
        { "value": "default", "description": "What is\nusual" },
        { "value": "größer", "description": "\u{1b}[31mRed\u{202e}" },
        { "value": "x\ny" },
        { "description": "without a name" },
    ]);
    let env = with_program(&models, &json!([]));
    insta::assert_snapshot!("models", told(&ran(bare(&env, &["models"]))));
    insta::assert_snapshot!("models_json", told(&ran(bare(&env, &["models", "--json"]))));
}

#[test]
fn servers_are_waited_for_and_told_with_what_is_wrong() {
    let servers = json!([
        { "name": "good", "status": "connected" },
        { "name": "a bad one", "status": "failed", "error": "spawn\n\u{1b}[2Jno/such ENOENT" },
        { "name": "web", "status": "needs-auth" },
    ]);
    let env = with_program(&json!([]), &servers);
    insta::assert_snapshot!("mcp", told(&ran(bare(&env, &["mcp", "--trust"]))));
    insta::assert_snapshot!("mcp_json", told(&ran(bare(&env, &["mcp", "--trust", "--json"]))));
}

/// Where there is nothing, it is said why, and what to do.
#[test]
fn without_servers_it_is_said_where_they_come_from() {
    let env = with_program(&json!([]), &json!([]));
    let lists: [(&str, &[&str]); 4] = [
        ("trusted", &["mcp", "--trust"]),
        ("not trusted", &["mcp"]),
        ("not trusted, for another program", &["mcp", "--json"]),
        ("not wanted", &["mcp", "--trust", "--inherit", "none"]),
    ];
    let told = lists.map(|(how, args)| format!("{how}: {}", told(&ran(bare(&env, args)))));
    insta::assert_snapshot!("mcp_nothing", told.join("\n"));
}

/// More than fits into a pipe, for a reader that wants one line.
#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let model = |n: usize| json!({ "value": format!("model-{n}"), "description": "x".repeat(100) });
    let server = |n: usize| json!({ "name": format!("server-{n}"), "status": "connected" });
    let models: Vec<Value> = (0..3_000).map(model).collect();
    let servers: Vec<Value> = (0..6_000).map(server).collect();
    let env = with_program(&json!(models), &json!(servers));
    for (verb, first) in [("models", "model-0 "), ("mcp --trust", "server-0 ")] {
        for json in ["", "--json"] {
            let atomic = bare(&env, &[]);
            let line = format!(
                "{{ {} {verb} {json}; echo $? >&2; }} | /usr/bin/head -n 1",
                atomic.get_program().display()
            );
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &line]).current_dir(env.work()).env_clear();
            let variables = atomic.get_envs().filter_map(|(name, value)| Some((name, value?)));
            shell.envs(variables);
            let ran = ran(shell);
            assert_eq!(ran.stderr, "0\n", "{verb} {json}");
            assert_eq!(ran.stdout.lines().count(), 1, "{verb} {json}");
            assert!(!json.is_empty() || ran.stdout.starts_with(first), "{}", ran.stdout);
        }
    }
}
