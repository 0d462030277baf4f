//! Settings from files, variables and flags; `atomic config` and `atomic init`.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use atomic_registry::settings::{Class, Preset, SETTINGS, template};
use serde_json::{Value, json};

use crate::env::{Ran, TestEnv, ran};
use crate::scene::{Scene, done, fail, gave_up, worker};

const USER: &str = "home/.atomic/settings.json";
const PROJECT: &str = "work/.atomic/settings.json";

fn write(env: &TestEnv, file: &str, text: &str) {
    let path = env.outside(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A command with variables.
fn with(env: &TestEnv, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = env.atomic(args);
    command.envs(variables.iter().copied());
    ran(command)
}

/// What a command said, without the folder of the test.
fn told(env: &TestEnv, ran: &Ran) -> String {
    let text = format!("exit {}\n{}{}", ran.code.unwrap(), ran.stdout, ran.stderr);
    text.replace(env.outside("").to_str().unwrap(), "/")
}

/// The settings a session was started with.
fn settings_of(env: &TestEnv) -> Value {
    env.facts()[0]["settings"].clone()
}

fn one_task() -> Scene {
    Scene::of(&[("#1", &[])]).rest()
}

/// The line of `atomic config` about a setting.
fn line_about(env: &TestEnv, key: &str, variables: &[(&str, &str)]) -> String {
    let listed = with(env, &["config"], variables);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed:?}");
    let root = env.outside("").display().to_string();
    let line = listed.stdout.lines().find(|line| line.starts_with(&format!("{key} "))).unwrap();
    line.replace(&root, "/").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_users_file_counts_more_than_what_is_built_in() {
    let env = TestEnv::new();
    assert_eq!(line_about(&env, "workers", &[]), "workers (1 for `ralph`, else 4) built-in");
    write(&env, USER, "{\n  // few\n  \"workers\": 2,\n}\n");
    assert_eq!(line_about(&env, "workers", &[]), "workers 2 user /home/.atomic/settings.json:3");
    assert_eq!(env.ralph(&one_task().toml(), &[]).code, Some(0));
    assert_eq!(settings_of(&env)["workers"], 2);
}

#[test]
fn the_folder_of_the_user_can_be_another() {
    let env = TestEnv::new();
    write(&env, "away/settings.json", "{\"workers\": 6}");
    let home = env.outside("away");
    let line = line_about(&env, "workers", &[("ATOMIC_HOME", home.to_str().unwrap())]);
    assert_eq!(line, "workers 6 user /away/settings.json:1");
}

#[test]
fn a_project_can_lower_a_limit_of_the_user_and_not_raise_it() {
    let env = TestEnv::new();
    write(&env, USER, "{\"workers\": 3}");
    write(&env, PROJECT, "{\"workers\": 2}");
    assert_eq!(line_about(&env, "workers", &[]), "workers 2 project /work/.atomic/settings.json:1");
    assert_eq!(env.ralph(&one_task().toml(), &[]).code, Some(0));
    assert_eq!(settings_of(&env)["workers"], 2);
    for (user, own) in [("{\"max_cost\": 1}", "{\"max_cost\": 50}"), ("{}", "{\"workers\": 9}")] {
        let env = TestEnv::new();
        write(&env, USER, user);
        write(&env, PROJECT, own);
        let ended = env.ralph(&one_task().toml(), &["--trust"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("is not used: a project can only be stricter"), "{ended:?}");
        let settings = settings_of(&env);
        let (cost, workers) = (settings["maxCostUsd"].as_f64(), settings["workers"].as_u64());
        assert!(cost != Some(50.0) && workers.is_none(), "{settings}");
    }
}

#[test]
fn a_variable_counts_more_than_the_projects_file_unless_it_is_empty() {
    let env = TestEnv::new();
    write(&env, PROJECT, "{\"workers\": 3}");
    let variables = [("ATOMIC_WORKERS", "5")];
    assert_eq!(line_about(&env, "workers", &variables), "workers 5 variable ATOMIC_WORKERS");
    let empty = line_about(&env, "workers", &[("ATOMIC_WORKERS", "")]);
    assert_eq!(empty, "workers 3 project /work/.atomic/settings.json:1");
    let mut command = env.ralph_command(&one_task().toml(), &[]);
    assert_eq!(
        ran({
            command.envs(variables);
            command
        })
        .code,
        Some(0)
    );
    assert_eq!(settings_of(&env)["workers"], 5);
}

#[test]
fn a_flag_counts_more_than_a_variable() {
    let env = TestEnv::new();
    let mut command = env.ralph_command(&one_task().toml(), &["--workers", "7"]);
    command.env("ATOMIC_WORKERS", "5");
    assert_eq!(ran(command).code, Some(0));
    assert_eq!(settings_of(&env)["workers"], 7);
}

/// In a file, in variables and by flags, everything there is arrives at the run.
#[test]
fn every_setting_arrives_from_a_file_a_variable_and_a_flag() {
    let scene = one_task().toml();
    let sessions: Vec<Value> = ["file", "variable", "flag"]
        .map(|layer| {
            let env = TestEnv::new();
            let script = env.script(&scene);
            let mut command = env.atomic(["run", "ralph", "Build it"]);
            let (mut project, mut user) = (serde_json::Map::new(), serde_json::Map::new());
            for setting in SETTINGS.iter().filter(|setting| setting.flag.is_some()) {
                // A project's limits count when they are lower than those that are built in.
                let example = match setting.key {
                    "backend" => "script",
                    "script" => script.to_str().unwrap(),
                    "check" => "true",
                    "inherit" => "none",
                    // Required checks need one worker.
                    "workers" => "1",
                    "max_attempts" | "max_review_rounds" => "2",
                    "max_iterations" => "50",
                    "turn_timeout" => "10m",
                    "on_question" => "fail",
                    _ => setting.example,
                };
                let json = setting.parse(example).unwrap().to_json();
                let is_users = setting.class == Class::User || setting.key == "backend";
                let file = if is_users { &mut user } else { &mut project };
                match layer {
                    "file" => drop(file.insert(setting.key.to_owned(), json)),
                    "variable" => drop(command.env(setting.variable, example)),
                    _ => drop(command.arg(format!("--{}={example}", setting.flag.unwrap()))),
                }
            }
            write(&env, PROJECT, &Value::Object(project).to_string());
            write(&env, USER, &Value::Object(user).to_string());
            let ended = ran(command);
            assert_eq!(ended.code, Some(0), "{layer}: {ended:?}");
            let mut created = env.facts()[0].clone();
            created["settings"]["script"] = "SCRIPT".into();
            json!([created["settings"], created["backend"], created["model"]])
        })
        .into();
    insta::assert_snapshot!(serde_json::to_string_pretty(&sessions[0]).unwrap());
    assert_eq!(sessions[1], sessions[0], "by variables");
    assert_eq!(sessions[2], sessions[0], "by flags");
}

/// What the table says is built in is what a run does when nobody sets anything.
#[test]
fn what_is_said_to_be_built_in_is() {
    let env = TestEnv::new();
    assert_eq!(env.ralph(&one_task().toml(), &[]).code, Some(0));
    let without = settings_of(&env);
    let env = TestEnv::new();
    let mut flags = vec![];
    for setting in SETTINGS.iter().filter(|setting| setting.key != "backend") {
        if let Preset::Value(text) = setting.preset {
            flags.push(format!("--{}={text}", setting.flag.unwrap()));
        }
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    assert_eq!(env.ralph(&one_task().toml(), &flags).code, Some(0));
    let mut given = settings_of(&env);
    given["script"] = without["script"].clone();
    assert_eq!(given, without);
}

/// Wrong values of each kind.
const WRONG: [(&str, &str, &str); 8] = [
    ("workers", "0", "0"),
    ("workers", "-1", "-1"),
    ("workers", "many", "\"4\""),
    ("max_cost", "nan", "-1"),
    ("timeout", "0s", "\"0s\""),
    ("on_question", "paus", "\"paus\""),
    ("backend", "claud", "\"claud\""),
    ("check", " ", "[\"\"]"),
];

#[test]
fn a_wrong_value_is_refused_wherever_it_stands() {
    let env = TestEnv::new();
    let script = env.script(&one_task().toml());
    let run = ["run", "ralph", "Build it", "--script", script.to_str().unwrap()];
    let mut all = String::new();
    for (key, typed, in_file) in WRONG {
        let setting = atomic_registry::settings::find(key).unwrap();
        let _ = writeln!(all, "== {key}");
        write(&env, PROJECT, &format!("{{\n  \"{key}\": {in_file}\n}}\n"));
        let ended = env.run(run);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        all += &told(&env, &ended);
        write(&env, PROJECT, "{}");
        let ended = with(&env, &run, &[(setting.variable, typed)]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        all += &told(&env, &ended);
        let flag = format!("--{}={typed}", setting.flag.unwrap());
        let ended = env.run(run.iter().copied().chain([flag.as_str()]));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        all += &told(&env, &ended).replace("\nFor more information, try '--help'.\n", "");
        let ended = env.run(["config", "set", key, typed]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        all += &told(&env, &ended);
        assert_eq!(fs::read_to_string(env.outside(PROJECT)).unwrap(), "{}", "nothing is written");
    }
    assert!(!env.work().join(".ralph").exists(), "nothing was started");
    insta::assert_snapshot!(all);
}

#[test]
fn a_file_that_cannot_be_read_keeps_a_run_from_starting() {
    let env = TestEnv::new();
    for text in ["{ \"workers\": 4", "[1]"] {
        write(&env, USER, text);
        for args in
            [&["run", "ralph", "Build it"] as &[&str], &["config"], &["config", "get", "model"]]
        {
            let ended = env.run(args);
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
            let place = format!("{}:1:", env.outside(USER).display());
            assert!(ended.stderr.contains(&place), "{}", ended.stderr);
        }
    }
    let mut pipe = std::process::Command::new("mkfifo");
    fs::remove_file(env.outside(USER)).unwrap();
    assert!(pipe.arg(env.outside(USER)).status().unwrap().success());
    let ended = env.run(["run", "ralph", "Build it"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("is a FIFO, not a regular file"), "{}", ended.stderr);
}

#[test]
fn a_key_that_does_not_exist_is_warned_about_and_kept() {
    let env = TestEnv::new();
    let text = "{\n  \"wrokers\": 9,\n  \"$schema\": \"x\"\n}\n";
    write(&env, PROJECT, text);
    let misspelt = format!("ATOMIC_{}", "MAX_COTS");
    let mut command = env.ralph_command(&one_task().toml(), &[]);
    command.env(&misspelt, "1").env(format!("ATOMIC_{}", "ENERGY"), "1");
    let ended = ran(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    let place = format!("warning: {}:2:3: ", env.outside(PROJECT).display());
    assert!(lines[0].starts_with(&place), "{lines:#?}");
    assert!(lines[0].contains("`wrokers` (did you mean `workers`?)"), "{lines:#?}");
    assert!(lines[1].contains("(did you mean ATOMIC_MAX_COST?)"), "{lines:#?}");
    assert_eq!(fs::read_to_string(env.outside(PROJECT)).unwrap(), text);
}

#[test]
fn a_resumed_session_keeps_its_settings_but_for_variables_and_flags() {
    let env = TestEnv::new();
    write(&env, PROJECT, "{\"workers\": 3, \"max_attempts\": 7, \"max_tokens\": 1000000}");
    let broken = Scene::of(&[("#1", &[])]).turn(worker("Task #1:").does([fail("login")])).rest();
    assert_eq!(env.ralph(&broken.toml(), &[]).code, Some(1));

    write(&env, PROJECT, "{\"workers\": 9, \"max_attempts\": 9, \"max_tokens\": nonsense");
    env.script(&one_task().toml());
    let variables = [("ATOMIC_MAX_ATTEMPTS", "8"), ("ATOMIC_MAX_TOKENS", "5")];
    let args = ["resume", "last", "--max-tokens", "2000000"];
    let refused = with(&env, &args, &[("ATOMIC_MAX_ATTEMPTS", "-1")]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let resumed = with(&env, &args, &variables);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let facts = env.facts();
    let resumed = facts.iter().find(|fact| fact["type"] == "session_resumed").unwrap();
    let settings = &resumed["settings"];
    assert_eq!(settings["workers"], 3, "from the file it was started with");
    assert_eq!(settings["limits"]["attempts"], 8, "from the variable");
    assert_eq!(settings["maxTokens"], 2_000_000, "from the flag");
}

/// A path is meant from where it was written, not from where somebody resumes.
#[test]
fn a_script_is_found_again_from_elsewhere() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("Task #1").and("attempt at this task failed").does([done("at last")]))
        .turn(worker("Task #1").does([gave_up("not yet")]))
        .rest();
    write(&env, "work/scene.toml", &scene.toml());
    let run = ["run", "ralph", "x", "--script", "scene.toml", "--check", "true"];
    let failed = env.run([&run[..], &["--max-attempts", "1"]].concat());
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let mut resume = env.atomic(["resume", "last", "--all", "--max-attempts", "2"]);
    resume.current_dir(env.outside("home"));
    let ended = ran(resume);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn the_list_shows_every_setting_and_where_it_comes_from() {
    let env = TestEnv::new();
    write(&env, USER, "{\n  \"model\": \"sonnet\",\n  \"workers\": 2\n}\n");
    write(
        &env,
        PROJECT,
        "{\n  \"maxCost\": 2.50,\n  \"check\": [\"true\", \"echo \\\"a b\\\"\"]\n}\n",
    );
    assert_eq!(env.run(["trust", "."]).code, Some(0));
    let variables = [("ATOMIC_WORKERS", "6"), ("ATOMIC_TIMEOUT", "90m")];
    let listed = with(&env, &["config", "list"], &variables);
    insta::assert_snapshot!("config_list", told(&env, &listed));
    assert_eq!(with(&env, &["config"], &variables).stdout, listed.stdout, "the same by itself");

    let listed = with(&env, &["config", "list", "--json"], &variables);
    let rows: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(rows.len(), SETTINGS.len());
    let place = env.outside(PROJECT).display().to_string();
    for expected in [
        json!({"key": "model", "value": "sonnet", "origin": "user",
               "place": format!("{}:2", env.outside(USER).display())}),
        json!({"key": "max_cost", "value": 2.5, "origin": "project", "place": format!("{place}:2")}),
        json!({"key": "timeout", "value": "90m", "origin": "variable", "place": "ATOMIC_TIMEOUT"}),
        json!({"key": "max_tokens", "value": null, "origin": "built-in", "place": null}),
        json!({"key": "max_attempts", "value": 4, "origin": "built-in", "place": null}),
    ] {
        assert!(rows.contains(&expected), "{expected} is not in {}", listed.stdout);
    }
}

#[test]
fn a_value_is_printed_alone_for_scripts() {
    let env = TestEnv::new();
    write(&env, PROJECT, "{\"check\": [\"true\", \"echo a\"], \"maxCost\": 2.50}");
    assert_eq!(env.run(["trust", "."]).code, Some(0));
    for (key, printed) in [
        ("max_cost", "2.5\n"),
        ("maxCost", "2.5\n"),
        ("max-cost", "2.5\n"),
        ("turn_timeout", "30m\n"),
        ("check", "true\necho a\n"),
        ("max_tokens", ""),
    ] {
        let got = env.run(["config", "get", key]);
        assert_eq!((got.code, got.stdout.as_str(), got.stderr.as_str()), (Some(0), printed, ""));
    }
    let got = env.run(["config", "get", "wrokers"]);
    assert_eq!((got.code, got.stdout.as_str()), (Some(2), ""), "{got:?}");
    assert!(got.stderr.contains("(did you mean `workers`?)"), "{}", got.stderr);
}

#[test]
fn what_is_set_can_be_read_and_removed_again() {
    let env = TestEnv::new();
    let mut session = String::new();
    let commands: [&[&str]; 15] = [
        &["config", "set", "workers", "8"],
        &["config", "set", "--user", "workers", "2"],
        &["config", "get", "workers"],
        &["config", "set", "check", "cargo test", "echo \"ä\""],
        &["config", "get", "check"],
        &["config", "set", "--project", "maxCost", "$2.50"],
        &["config", "get", "max_cost"],
        &["config", "unset", "workers"],
        &["config", "get", "workers"],
        &["config", "unset", "workers"],
        &["config", "unset", "--user", "workers"],
        &["config", "get", "workers"],
        &["config", "unset", "wrokers"],
        &["config", "set", "workers", "1", "2"],
        &["config", "set", "--user", "--project", "workers", "1"],
    ];
    for args in commands {
        let _ = writeln!(session, "$ atomic {}", args.join(" "));
        session += &told(&env, &env.run(args));
    }
    for file in [USER, PROJECT] {
        let text = fs::read_to_string(env.outside(file)).unwrap();
        let _ = write!(session, "{file}:\n{text}");
    }
    insta::assert_snapshot!(session);
}

#[test]
fn several_processes_can_set_something_at_once() {
    let env = TestEnv::new();
    let of_project = || SETTINGS.iter().filter(|setting| setting.class != Class::User);
    let children: Vec<_> = of_project()
        .map(|setting| {
            let mut command = env.atomic(["config", "set", setting.key, setting.example]);
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let listed = env.run(["config", "list", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let text = fs::read_to_string(env.outside(PROJECT)).unwrap();
    for setting in of_project() {
        assert!(text.contains(&format!("\"{}\":", setting.key)), "{}: {text}", setting.key);
    }
    // Whatever the user sets counts without another question, as far as a project has a say.
    for key in ["model", "check", "backend"] {
        let row = rows.iter().find(|row| row["key"] == key).unwrap();
        assert_eq!(row["origin"], "project", "{}", listed.stdout);
    }
    let left = fs::read_dir(env.work().join(".atomic")).unwrap().count();
    assert_eq!(left, 1, "nothing is left beside the file");
}

/// What a project says about itself does not count, and cannot be said there by mistake.
#[test]
fn a_project_cannot_trust_itself() {
    let env = TestEnv::new();
    fs::write(env.work().join("CLAUDE.md"), "x").unwrap();
    write(&env, PROJECT, "{ \"trust\": true, \"inherit\": \"all\" }");
    let ended = env.ralph(&one_task().toml(), &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("`trust` is not used"), "{}", ended.stderr);
    assert_eq!(settings_of(&env)["trusted"], false);
    let refused = env.run(["config", "set", "trust", "true"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--user"), "{}", refused.stderr);
    assert_eq!(env.run(["config", "set", "--user", "trust", "true"]).code, Some(0));
    let env_of_user = env.ralph(&one_task().toml(), &["--inherit", "project"]);
    assert_eq!(env_of_user.code, Some(0), "{env_of_user:?}");
}

#[test]
fn a_malformed_file_is_not_changed() {
    let env = TestEnv::new();
    let text = "{\n  \"workers\": 4\n  \"model\": \"x\"\n}\n";
    write(&env, PROJECT, text);
    for args in [&["config", "set", "workers", "8"] as &[&str], &["config", "unset", "workers"]] {
        let ended = env.run(args);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let place = format!("{}:2:15: ", env.outside(PROJECT).display());
        assert!(ended.stderr.contains(&place), "{}", ended.stderr);
        assert_eq!(fs::read_to_string(env.outside(PROJECT)).unwrap(), text);
    }
}

#[test]
fn without_a_home_folder_there_are_no_settings_of_the_user() {
    let env = TestEnv::new();
    let homeless = |args: &[&str]| {
        let mut command = env.atomic(args);
        command.env_remove("HOME");
        ran(command)
    };
    assert_eq!(homeless(&["config"]).code, Some(0));
    let ended = homeless(&["config", "set", "--user", "workers", "8"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("set HOME or ATOMIC_HOME"), "{}", ended.stderr);
}

/// Every file and folder below a folder.
fn below(folder: &Path) -> Vec<String> {
    let mut found = vec![];
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.strip_prefix(folder).unwrap().display().to_string());
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn init_makes_what_is_missing_and_leaves_the_rest_alone() {
    let env = TestEnv::new();
    let first = env.run(["init"]);
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""), "{first:?}");
    let made = below(&env.work());
    insta::assert_snapshot!("init", format!("{}{}", first.stdout, made.join("\n")));
    assert_eq!(fs::read_to_string(env.outside(PROJECT)).unwrap(), template());
    let checked = env.run(["config"]);
    assert_eq!((checked.code, checked.stderr.as_str()), (Some(0), ""), "{checked:?}");
    assert!(checked.stdout.lines().all(|line| line.ends_with("built-in")), "{}", checked.stdout);

    write(&env, PROJECT, "{\"workers\": 9} // mine");
    write(&env, "work/.atomic/agents/own.md", "---\ndescription: Mine\n---\nx\n");
    fs::remove_dir_all(env.work().join(".atomic/skills")).unwrap();
    let again = env.run(["init"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    insta::assert_snapshot!("init_again", again.stdout);
    assert_eq!(fs::read_to_string(env.outside(PROJECT)).unwrap(), "{\"workers\": 9} // mine");
    let third = env.run(["init"]);
    assert!(third.stdout.contains("nothing was changed"), "{}", third.stdout);
}

#[test]
fn init_makes_nothing_when_something_is_in_the_way() {
    for (way, says) in [
        (".atomic", "this is to be a folder"),
        (".atomic/agents", "this is to be a folder"),
        (".atomic/workflows", "this is to be a folder"),
        (".atomic/settings.json/x", "this is to be a file"),
    ] {
        let env = TestEnv::new();
        write(&env, &format!("work/{way}"), "mine");
        let before = below(&env.work());
        let ended = env.run(["init"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{way}: {ended:?}");
        let named = way.trim_end_matches("/x");
        assert!(ended.stderr.starts_with(&format!("error: {named}: {says}")), "{}", ended.stderr);
        assert_eq!(below(&env.work()), before, "{way}: nothing is made");
    }
    for way in ["agents", "settings.json"] {
        let env = TestEnv::new();
        write(&env, "work/.atomic/mine", "mine");
        symlink("nowhere", env.work().join(".atomic").join(way)).unwrap();
        let before = below(&env.work());
        let ended = env.run(["init"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{way}: {ended:?}");
        assert!(ended.stderr.contains("a link is in its place that leads nowhere"), "{ended:?}");
        assert_eq!(below(&env.work()), before, "{way}: nothing is made");
    }
}

#[test]
fn a_lock_that_somebody_keeps_is_not_waited_for_without_end() {
    let env = TestEnv::new();
    write(&env, PROJECT, "{}\n");
    let folder = fs::File::open(env.work().join(".atomic")).unwrap();
    folder.lock().unwrap();
    for words in [&["config", "set", "workers", "3"] as &[&str], &["config", "unset", "workers"]] {
        let ran = crate::process::Running::start(env.atomic(words)).end();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let told = told(&env, &ran);
        let problem = "/work/.atomic/settings.json: another program keeps the folder \
                       /work/.atomic locked";
        assert!(told.contains(problem), "{told}");
        assert!(told.contains("nothing was changed"), "{told}");
        assert_eq!(fs::read_to_string(env.outside(PROJECT)).unwrap(), "{}\n");
    }
    folder.unlock().unwrap();
    assert_eq!(env.run(["config", "set", "workers", "3"]).code, Some(0));
}

#[test]
fn a_script_that_is_no_file_is_refused() {
    let env = TestEnv::new();
    let pipe = env.work().join("pipe.toml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::create_dir(env.work().join("folder.toml")).unwrap();
    for name in ["pipe.toml", "folder.toml"] {
        let command = env.atomic(["run", "ralph", "Build it", "--script", name]);
        let ran = crate::process::Running::start(command).end();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(
            ran.stderr.contains(&format!("{name}: cannot read the script: the file is a")),
            "{ran:?}"
        );
        assert!(!env.work().join(".ralph").exists());
    }
    // What a script takes its texts from is a file, too.
    let script = "[[turn]]\ndo = [{ write = { path = \"a\", from = \"pipe.toml\" } }]\n";
    fs::write(env.work().join("script.toml"), script).unwrap();
    let command = env.atomic(["run", "ralph", "Build it", "--script", "script.toml"]);
    let ran = crate::process::Running::start(command).end();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("script.toml:2:") && ran.stderr.contains("is a FIFO"), "{ran:?}");
}
