//! What a migration must keep, or refuse to lose.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::env::{TestEnv, ran};
use crate::migrate::{migrated, prompts, ralph, tasks_of};
use crate::scene::Scene;

const ONE: &str = r#"[{"description": "one"}]"#;

#[test]
fn both_keys_of_dependencies_count() {
    let list = r##"[{"id": "feat-1", "description": "a"}, {"id": "feat-2", "description": "b"},
        {"id": "feat-3", "description": "c", "dependencies": [], "blockedBy": ["feat-2"]},
        {"id": "feat-4", "description": "d", "dependencies": ["feat-1", "#feat-2"], "blockedBy": ["feat-2", "feat-3"]},
        {"id": "feat-5", "description": "e", "dependencies": null, "blockedBy": ["feat-1"]}]"##;
    let tasks = tasks_of(list);
    assert_eq!(tasks[2]["dependencies"], json!(["feat-2"]));
    assert_eq!(tasks[3]["dependencies"], json!(["feat-1", "feat-2", "feat-3"]));
    assert_eq!(tasks[4]["dependencies"], json!(["feat-1"]));
    for task in tasks.as_array().unwrap() {
        assert_eq!(task["metadata"]["blockedBy"], Value::Null, "{task}");
    }

    let list = "[{\"description\": \"a\", \"dependencies\": [],\n\"blockedBy\": [\"x\"]},\n\
         {\"description\": \"b\",\n\"dependencies\": [],\n\"blockedBy\": \"y\"}]";
    let (_, ran) = migrated(list, &[]);
    for told in [
        "feature-list.json:2: 1 depends on x, which is not in the list",
        "feature-list.json:5: entry 2: `blockedBy: \"y\"` is no list of ids",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
}

/// The shape of the task lists of earlier sessions.
#[test]
fn an_earlier_error_and_the_words_for_what_goes_on_are_kept() {
    let list = r##"[
        {"id": "#1", "content": "Set up", "status": "completed", "activeForm": "Setting up", "implementedAt": "2026-02-06"},
        {"id": "#2", "content": "Limit the rate", "status": "failed", "activeForm": "Limiting the rate",
         "error": "rate limiter crashes\non concurrent requests", "blockedBy": ["#1"]},
        {"id": "#3", "content": "Write tests", "status": "pending", "activeForm": null, "error": null}
    ]"##;
    let env = TestEnv::new();
    let ran = ran(ralph(&env, list, Scene::default().rest(), &["--workers", "1"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rows = fs::read_to_string(env.session().join("tasks.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let forms: Vec<_> = rows.iter().map(|row| row["activeForm"].as_str().unwrap()).collect();
    assert_eq!(forms, ["Setting up", "Limiting the rate", "Write tests"]);

    let error = "rate limiter crashes\non concurrent requests";
    let prompts = prompts(&env);
    let told = format!("An earlier attempt at this task failed: {error}");
    assert!(prompts[0].contains(&told), "{}", prompts[0]);
    assert!(!prompts[1].contains("An earlier attempt"), "{}", prompts[1]);
    let progress = fs::read_to_string(env.session().join("progress.txt")).unwrap();
    let kept = "  It failed before: rate limiter crashes\n  on concurrent requests";
    assert!(progress.contains(kept), "{progress}");
    assert!(progress.contains("Implemented at: 2026-02-06"), "{progress}");
    assert_eq!(env.facts()[0]["state"]["tasks"][1]["error"], error);
}

#[test]
fn a_key_that_stands_twice_is_told() {
    let table = [
        ("[{\"description\": \"a\",\n\"description\": \"b\"}]", 2, "`description`"),
        ("[{\"description\": \"a\", \"metadata\": {\n\"x\": 1,\n\"x\": 2}}]", 3, "`x`"),
        ("{\"tasks\": [{\"description\": \"a\"}],\n\"tasks\": []}", 2, "`tasks`"),
        ("{\"description\": \"a\",\n\"st\\u0065ps\": [],\n\"steps\": [1]}", 3, "`steps`"),
    ];
    for (list, line, key) in table {
        let (_, ran) = migrated(list, &[]);
        let told = format!(
            "error: feature-list.json:{line}: {key} stands twice in one object; first on line {}\n  \
             help: leave one of them out\n",
            line - 1
        );
        assert_eq!((ran.code, ran.stdout, ran.stderr), (Some(1), String::new(), told), "{list}");
    }
}

#[test]
fn a_list_of_a_newer_version_is_refused() {
    for version in ["\"2.0\"", "2", "2.5", "\"v3\"", "\"10.1\"", "\"next\"", "true"] {
        let list = format!("{{\"tasks\": {ONE},\n\"version\": {version}}}");
        let (env, ran) = migrated(&list, &["-o", "tasks.json"]);
        let told = format!("error: feature-list.json:2: this is a list of version {version}");
        assert!(ran.stderr.starts_with(&told), "{ran:?}");
        assert!(ran.stderr.contains("\n  help: "), "{ran:?}");
        assert_eq!(ran.code, Some(1), "{version}");
        assert!(!env.work().join("tasks.json").exists(), "{version}");
    }
    for version in ["\"1.0\"", "1", "\"1.7\"", "null", "\"0.9\"", "\"v1\""] {
        tasks_of(&format!("{{\"tasks\": {ONE}, \"version\": {version}}}"));
    }
}

#[test]
fn ids_that_ralph_cannot_write_stay_distinct() {
    let list = r#"[{"id": "a/b", "description": "first"}, {"id": "a-b", "description": "second"},
        {"id": "a\tb", "description": "third", "dependencies": ["a/b"]}]"#;
    let env = TestEnv::new();
    let ran = ran(ralph(&env, list, Scene::default().rest(), &["--workers", "1"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(env.tasks(), ["#a-b-2 completed", "#a-b completed", "#a-b-3 completed"]);
    let facts = env.facts();
    let tasks = &facts[0]["state"]["tasks"];
    assert_eq!(tasks[2]["blockedBy"], json!(["#a-b-2"]));
    let description = tasks[0]["description"].as_str().unwrap();
    assert!(description.contains("In the list its id is \"a/b\""), "{description}");
}

#[test]
fn flags_that_count_only_with_ralph_are_refused_without() {
    let table: [&[&str]; 6] = [
        &["--workers", "2"],
        &["--model", "m"],
        &["--json"],
        &["--json", "--deltas"],
        &["--stream", "updates"],
        &["--verbose"],
    ];
    for flags in table {
        let (_, ran) = migrated(ONE, flags);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{flags:?}");
        let told = format!("error: {} counts only with --ralph; ", flags[0]);
        assert!(ran.stderr.starts_with(&told), "{ran:?}");
    }
    // What is set for all runs does not stand in the way.
    let env = TestEnv::new();
    fs::write(env.work().join("list.json"), ONE).unwrap();
    fs::create_dir(env.work().join(".atomic")).unwrap();
    fs::write(env.work().join(".atomic/settings.json"), "{\"workers\": 2}").unwrap();
    let mut command = env.atomic(["migrate", "list.json"]);
    command.env("ATOMIC_MODEL", "m");
    assert_eq!(ran(command).code, Some(0));
}

#[test]
fn a_folder_that_is_missing_is_named_with_what_to_do() {
    let (env, ran) = migrated(ONE, &["-o", "research/deep/t.json"]);
    let told = "error: research/deep/t.json: there is no folder research/deep; make it first, or \
                name a file somewhere else\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), told));
    assert!(!env.work().join("research").exists());
}

#[test]
fn a_link_is_followed_and_only_a_file_is_overwritten() {
    let (env, _) = migrated(ONE, &[]);
    let work = env.work();
    let forced =
        |name: &str| env.run(["migrate", "feature-list.json", "--force", "--output", name]);
    fs::create_dir(work.join("deep")).unwrap();
    fs::write(work.join("deep/real.json"), "old").unwrap();
    fs::set_permissions(work.join("deep/real.json"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("deep/real.json", work.join("link.json")).unwrap();
    assert_eq!(forced("link.json").code, Some(0));
    assert!(fs::symlink_metadata(work.join("link.json")).unwrap().is_symlink());
    let real = work.join("deep/real.json");
    assert!(fs::read_to_string(&real).unwrap().contains("\"one\""));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);

    assert!(Command::new("mkfifo").arg(work.join("pipe")).status().unwrap().success());
    symlink("nowhere.json", work.join("dangling.json")).unwrap();
    let no_file = "this is no file (a pipe, a socket or a device); name another one";
    let nowhere = "this link leads nowhere; make the file it names, or name another one";
    for (name, told) in [
        ("pipe", no_file),
        ("/dev/null", no_file),
        ("/dev/stdout", no_file),
        ("dangling.json", nowhere),
    ] {
        let ran = forced(name);
        assert_eq!((ran.code, ran.stderr), (Some(1), format!("error: {name}: {told}\n")));
    }
    assert!(fs::symlink_metadata(work.join("pipe")).unwrap().file_type().is_fifo());
    assert!(fs::symlink_metadata(work.join("dangling.json")).unwrap().is_symlink());
    assert!(!work.join("nowhere.json").exists());

    // Where our output goes to, somebody else may be writing as well.
    let file = fs::File::create(work.join("out")).unwrap();
    let mut command = env.atomic(["migrate", "feature-list.json", "--force", "-o", "/dev/stdout"]);
    let output = command.stdout(Stdio::from(file)).stderr(Stdio::piped()).output().unwrap();
    let told = "error: /dev/stdout: this is where the output goes anyway; leave --output away\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), told);
    assert_eq!(fs::read_to_string(work.join("out")).unwrap(), "");
}
