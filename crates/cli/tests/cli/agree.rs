//! Every front end gives the same answer in the same folder: trust, backend, model, limits.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::acp::Raw;
use crate::env::{TestEnv, ran};
use crate::scene::{Scene, agent, gave_up, say, worker};

/// A project that wants something of every class of settings, and brings instructions along.
fn project() -> TestEnv {
    let env = TestEnv::new();
    let script = Scene::of(&[("#1", &[])])
        .turn(worker("Task ").does([gave_up("not today")]))
        .turn(agent("assistant").does([say("Hello.")]))
        .toml();
    let script = env.script(&script);
    let write = |path: &str, text: &str| {
        let path = env.outside(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let own = json!({"backend": "copilot", "model": "opus", "check": ["true"], "workers": 2,
                     "max_cost": 50, "max_attempts": 1});
    write("work/.atomic/settings.json", &own.to_string());
    write("work/CLAUDE.md", "Be kind.\n");
    write("work/features.json", r#"[{"description": "Do it", "steps": ["a"], "passes": false}]"#);
    let users = json!({"script": script, "max_cost": 9});
    write("home/.atomic/settings.json", &users.to_string());
    env
}

fn atomic(env: &TestEnv, args: &[&str]) -> Command {
    let mut command = env.atomic(args);
    let script = env.outside("script.toml");
    command.env("ATOMIC_TEST_STAND_IN", format!("copilot={}", script.display()));
    command
}

/// What the newest fact with settings says, in the only session, which is then removed.
fn recorded(env: &TestEnv) -> Value {
    let facts = env.facts();
    let first = &facts[0];
    let newest = facts.iter().rev().find(|fact| fact.get("settings").is_some()).unwrap();
    let settings = &newest["settings"];
    let found = json!({
        "trusted": settings["trusted"], "backend": first["backend"], "model": first["model"],
        "workers": settings["workers"], "maxCost": settings["maxCostUsd"].as_f64(),
        "attempts": settings["limits"]["attempts"],
    });
    fs::remove_dir_all(env.session().parent().unwrap()).unwrap();
    found
}

/// What `atomic config` says, in the same words; trust is what `atomic doctor` says.
fn shown(env: &TestEnv) -> Value {
    let listed = ran(atomic(env, &["config", "list", "--json"]));
    let rows: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let value = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap()["value"].clone();
    let doctor = ran(atomic(env, &["doctor", "--json"])).stdout;
    let remarks: Vec<Value> =
        doctor.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = |check: &str, begin: &str| {
        let of_check = remarks.iter().filter(|remark| remark["check"] == check);
        let texts: Vec<&str> = of_check.map(|remark| remark["text"].as_str().unwrap()).collect();
        texts.iter().any(|text| text.starts_with(begin))
    };
    let backend = ["copilot", "script"].into_iter().find(|name| text("Backend", name)).unwrap();
    json!({
        "trusted": text("Trust", "the repository is trusted"), "backend": backend,
        "model": value("model"), "workers": value("workers"), "maxCost": value("max_cost").as_f64(),
        "attempts": value("max_attempts"),
    })
}

/// What a run that an editor starts has.
fn in_an_editor(env: &TestEnv, prompt: &str) -> Value {
    let mut raw = Raw::start_as_it_is(atomic(env, &["acp"]));
    raw.initialize();
    let session = raw.open(env);
    raw.prompt(3, &session, prompt);
    loop {
        let heard = raw.hear(|heard| heard.get("id").is_some());
        if heard["method"] == "session/request_permission" {
            // Nobody answers the question about trust.
            let answer = json!({"jsonrpc": "2.0", "id": heard["id"],
                                "result": {"outcome": {"outcome": "cancelled"}}});
            raw.write(&answer.to_string());
        } else if heard["id"] == 3 {
            break;
        }
    }
    raw.close_input();
    raw.process.end();
    recorded(env)
}

fn all_agree(env: &TestEnv, expected: &Value) {
    let front_ends: [(&str, &[&str]); 3] = [
        ("run", &["run", "ralph", "Build it"]),
        ("-p", &["-p", "Hello"]),
        ("migrate", &["migrate", "features.json", "--ralph"]),
    ];
    for (name, args) in front_ends {
        let ended = ran(atomic(env, args));
        assert!(matches!(ended.code, Some(0 | 1)), "{name}: {ended:?}");
        assert_eq!(recorded(env), *expected, "{name}");
    }
    // A session keeps its backend, and follows the trust there is now.
    assert_eq!(ran(atomic(env, &["run", "ralph", "Build it"])).code, Some(1));
    assert_eq!(ran(atomic(env, &["resume", "last"])).code, Some(1));
    assert!(env.facts().iter().any(|fact| fact["type"] == "session_resumed"));
    assert_eq!(recorded(env), *expected, "resume");
    assert_eq!(in_an_editor(env, "/ralph Build it"), *expected, "acp, a workflow");
    assert_eq!(in_an_editor(env, "/worker Build it"), *expected, "acp, an agent");
    assert_eq!(shown(env), *expected, "config and doctor");
    let servers = ran(atomic(env, &["mcp"]));
    let is_told = servers.stdout.contains("not trusted");
    let has_servers = expected["backend"] == "copilot";
    assert!(is_told || expected["trusted"] == true || !has_servers, "{servers:?}");
}

#[test]
fn all_front_ends_give_the_same_answer() {
    let env = project();
    let without = json!({"trusted": false, "backend": "script", "model": null, "workers": 2,
                         "maxCost": 9.0, "attempts": 1});
    all_agree(&env, &without);
    assert_eq!(env.run(["trust", "."]).code, Some(0));
    let with = json!({"trusted": true, "backend": "copilot", "model": "opus", "workers": 2,
                      "maxCost": 9.0, "attempts": 1});
    all_agree(&env, &with);
    assert_eq!(env.run(["trust", ".", "--withdraw"]).code, Some(0));
    all_agree(&env, &without);
}
