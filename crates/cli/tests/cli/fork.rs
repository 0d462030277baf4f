//! Forks: a new session from the beginning of another one, which stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::engine::Project;
use crate::env::{Ran, TestEnv, eventually, ran};
use crate::process::{Running, SOON};
use crate::scene::{Scene, done, fail, note, planner, review, reviewer, run, wait_for, worker};
use crate::typescript;

/// Of the two tasks that need the first, one is done at once and the other waits to be let go.
fn waiting() -> Scene {
    Scene::of(&[("#1", &[]), ("#2", &["#1"]), ("#3", &["#1"])])
        .turn(worker("Task #3:").does([note(), wait_for("go"), done("let go")]))
        .workers()
        .turn(reviewer().does([note(), review(&[])]))
}

/// The last step that is finished while the third worker waits; the next one is a check, which
/// waits, too, until it has the files for itself.
const SECOND: &str = "select-ready-tasks#1[#2]/worker#1";

/// Whether the journal says so; its last line may be half there.
fn has_finished(env: &TestEnv, step: &str) -> bool {
    let text = fs::read_to_string(env.session().join("journal.jsonl")).unwrap();
    let facts: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    finished(&facts).iter().any(|done| done == step)
}

/// Runs the scene until nothing can go on.
fn at_work(env: &TestEnv) -> Running {
    let running = Running::start(
        env.ralph_command(&waiting().toml(), &["--check", "true", "--workers", "2"]),
    );
    eventually("the third worker waits and the second is done", SOON, || {
        let third = env.ledger().iter().any(|line| line.contains("[#3]/worker"));
        third && has_finished(env, SECOND)
    });
    running
}

/// Three tasks one after the other; every agent puts its step in the ledger.
fn chain() -> Scene {
    Scene::of(&[("#1", &[]), ("#2", &["#1"]), ("#3", &["#2"])])
        .workers()
        .turn(reviewer().does([note(), review(&[])]))
}

/// Every file below a folder, with its content.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.insert(path.clone(), vec![]);
            files.extend(content(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

/// The sessions of the project, hidden left-overs included, by name.
fn sessions(env: &TestEnv) -> BTreeSet<String> {
    let folder = fs::read_dir(env.work().join(".ralph/sessions")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != ".gitignore").collect()
}

fn dir(env: &TestEnv, session: &str) -> PathBuf {
    env.work().join(".ralph/sessions").join(session)
}

fn facts(env: &TestEnv, session: &str) -> Vec<Value> {
    let text = fs::read_to_string(dir(env, session).join("journal.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn json_in(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn statuses(env: &TestEnv, session: &str) -> Vec<String> {
    let rows = json_in(&dir(env, session).join("tasks.json"));
    let rows = rows.as_array().unwrap().clone();
    rows.iter()
        .map(|row| format!("{} {}", row["id"].as_str().unwrap(), row["status"].as_str().unwrap()))
        .collect()
}

/// What was begun in a session, as `step/attempt`, by the ledger.
fn begun(env: &TestEnv, session: &str) -> Vec<String> {
    let own = format!("{session}/");
    env.ledger().iter().filter_map(|line| line.strip_prefix(&own)).map(str::to_owned).collect()
}

/// Forks, and returns the id of the new session and what was said.
fn forked(env: &TestEnv, place: &str, more: &[&str]) -> (String, String) {
    let ran = env.run(["fork", place].iter().chain(more));
    let folder = |line: &&str| !line.starts_with("Works in: ");
    let told: Vec<&str> = ran.stderr.lines().filter(folder).collect();
    assert_eq!((ran.code, &told[..]), (Some(0), &[][..]), "{ran:?}");
    let id = ran.stdout.lines().find_map(|line| line.strip_prefix("Forked Ralph session: "));
    (id.unwrap().to_owned(), ran.stdout)
}

fn ends_well(env: &TestEnv, session: &str) {
    // One that was killed may not be in the list yet.
    let ran = env.run(["resume", session, "--trust"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let all = ["#1 completed", "#2 completed", "#3 completed"];
    assert_eq!(statuses(env, session), all);
    assert_eq!(json_in(&dir(env, session).join("session.json"))["status"], "completed");
    assert_eq!(facts(env, session).last().unwrap()["ending"]["kind"], "completed");
}

/// A session that was paused there.
fn paused() -> (TestEnv, String) {
    let env = TestEnv::new();
    let mut running = at_work(&env);
    running.signal("INT");
    assert_eq!(running.end().code, Some(4));
    let session = env.session().file_name().unwrap().to_str().unwrap().to_owned();
    (env, session)
}

#[test]
fn a_fork_and_the_session_it_was_taken_from_both_come_to_their_end() {
    let (env, old) = paused();
    let before = content(&dir(&env, &old));
    let (new, said) = forked(&env, &format!("{old}@{SECOND}"), &[]);
    assert!(said.contains(&old) && said.contains(SECOND), "{said}");
    assert!(said.contains("Under way then, and begun again: #3 worker#1."), "{said}");
    assert!(said.contains("are as they are now, not as they were then"), "{said}");
    assert!(!said.contains("commit"), "no repository, no commit: {said}");
    assert!(said.ends_with(&format!("Resume with: atomic resume {new}\n")), "{said}");
    assert_eq!(content(&dir(&env, &old)), before, "the old one is as it was");
    assert_eq!(sessions(&env), BTreeSet::from([old.clone(), new.clone()]));

    let listed = env.run(["sessions"]).stdout;
    let line = listed.lines().next().unwrap();
    assert!(line.starts_with(&new) && line.contains("paused") && line.contains("1/3"), "{listed}");
    let made = facts(&env, &new);
    assert_eq!((&made[0]["session"], &made[0]["forked_from"]), (&json!(new), &json!(old)));
    let taken = made.iter().position(|fact| fact["type"] == "session_forked").unwrap();
    assert_eq!(made[taken]["up_to"], taken);
    assert_eq!(made[1..taken], facts(&env, &old)[1..taken], "taken over as they are");

    fs::write(env.work().join("go"), "").unwrap();
    ends_well(&env, &new);
    assert_eq!(content(&dir(&env, &old)), before, "the old one is as it was");
    let again = begun(&env, &new);
    let third = "select-ready-tasks#1[#3]/worker#1/2";
    assert_eq!(again, [third, "reviewer#1/1"], "what was finished is not begun again");

    let after = facts(&env, &new).split_off(taken);
    let lost = after.iter().find(|fact| fact["type"] == "step_lost").unwrap();
    assert_eq!(lost["reason"], "the session was forked while it was under way");
    let is_third = |fact: &&Value| fact["type"] == "step_started" && fact["attempt"] == 2;
    let third = after.iter().find(is_third).unwrap();
    assert_eq!((&third["how"], &third["attempt"]), (&json!("run_again"), &json!(2)), "{third}");
    let calls = fs::read_to_string(dir(&env, &new).join("logs/agent-calls.jsonl")).unwrap();
    let calls: Vec<Value> = calls.lines().map(|call| serde_json::from_str(call).unwrap()).collect();
    assert!(calls.iter().all(|call| call["resume"].is_null()), "no old conversation: {calls:?}");

    ends_well(&env, &old);
    let mut begun = begun(&env, &old);
    begun.sort();
    let fan = "select-ready-tasks#1";
    let thirds = [1, 2].map(|n| format!("{fan}[#3]/worker#1/{n}"));
    let once = [format!("{fan}[#1]/worker#1/1"), format!("{fan}[#2]/worker#1/1")];
    assert_eq!(begun[1..], [once, thirds].concat(), "nor there");
}

#[test]
fn a_session_that_is_being_worked_on_can_be_forked() {
    let env = TestEnv::new();
    let running = at_work(&env);
    let old = env.session().file_name().unwrap().to_str().unwrap().to_owned();
    let journal = dir(&env, &old).join("journal.jsonl");
    let before = fs::read(&journal).unwrap();
    let (new, said) = forked(&env, "last", &[]);
    assert!(said.contains("is at work in the same files right now (process "), "{said}");
    fs::write(env.work().join("go"), "").unwrap();
    let ran = running.end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(fs::read(&journal).unwrap().starts_with(&before));
    assert_eq!(finished(&facts(&env, &new)).last().unwrap(), SECOND);
    ends_well(&env, &new);
}

fn completed() -> (TestEnv, String) {
    let env = TestEnv::new();
    let ran = env.ralph(&chain().toml(), &["--check", "true"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let session = env.session().file_name().unwrap().to_str().unwrap().to_owned();
    (env, session)
}

fn finished(facts: &[Value]) -> Vec<String> {
    let finished = facts.iter().filter(|fact| fact["type"] == "step_finished");
    finished.map(|fact| fact["step"].as_str().unwrap().to_owned()).collect()
}

/// Whatever the step: what was finished up to it stays, the rest is done once, and the end is the
/// same.
#[test]
fn a_completed_session_can_be_forked_after_each_of_its_steps() {
    let (env, old) = completed();
    let before = content(&dir(&env, &old));
    let steps = finished(&facts(&env, &old));
    assert!(steps.len() >= 12, "{steps:?}");
    let ledger = begun(&env, &old);
    for (number, step) in steps.iter().enumerate() {
        let (new, _) = forked(&env, &format!("{old}@{step}"), &[]);
        assert_eq!(finished(&facts(&env, &new)), steps[..=number]);
        ends_well(&env, &new);
        assert_eq!(finished(&facts(&env, &new)), steps, "forked after {step}");
        let is_left = |line: &&String| {
            steps[..=number].iter().all(|done| !line.starts_with(&format!("{done}/")))
        };
        let left: Vec<_> = ledger.iter().filter(is_left).cloned().collect();
        assert_eq!(begun(&env, &new), left, "forked after {step}");
        let progress = |session: &str| {
            let text = fs::read_to_string(dir(&env, session).join("progress.txt")).unwrap();
            text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(progress(&new), progress(&old), "forked after {step}");
    }
    assert_eq!(content(&dir(&env, &old)), before, "the old one is as it was");
}

#[test]
fn a_fork_can_be_forked() {
    let (env, first) = completed();
    let (second, _) = forked(&env, &format!("{first}@#1 settle#1"), &["--set", "colour=blue"]);
    ends_well(&env, &second);
    let before = content(&dir(&env, &second));
    let (third, _) = forked(&env, &format!("{second}@#2 worker#1"), &["--run"]);
    assert_eq!(facts(&env, &third)[0]["forked_from"], second.as_str());
    assert_eq!(statuses(&env, &third), ["#1 completed", "#2 completed", "#3 completed"]);
    assert_eq!(content(&dir(&env, &second)), before);
    let forks: Vec<Value> =
        facts(&env, &third).into_iter().filter(|fact| fact["type"] == "session_forked").collect();
    assert_eq!(forks.len(), 2);
    assert_eq!((&forks[0]["from"], &forks[1]["from"]), (&json!(first), &json!(second)));
    assert_eq!(begun(&env, &third), ["select-ready-tasks#1[#3]/worker#1/1", "reviewer#1/1"]);
}

#[test]
fn values_of_the_state_can_be_set() {
    let (env, old) = completed();
    let set = ["--set", "maxReviews=7", "--set", "colour=blue", "--set", "task=[1, {\"a\": null}]"];
    let combined = ["--set", "tasks=[{\"id\": \"#3\", \"content\": \"Paint it\"}]"];
    let (new, said) = forked(&env, &format!("{old}@#1 settle#1"), &[&set[..], &combined].concat());
    let line =
        |start: &str| said.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
    assert_eq!(line("maxReviews"), "  maxReviews is now 7");
    assert_eq!(line("colour"), "  colour is now \"blue\" (a new key of the state)");
    let new_key = "(a new key of the state; did you mean `tasks`?)";
    assert_eq!(line("task "), format!("  task is now [1,{{\"a\":null}}] {new_key}"));
    assert!(line("tasks").ends_with("… (combined with what was there, as its reducer says)"));

    let patched: Vec<Value> =
        facts(&env, &new).into_iter().filter(|fact| fact["type"] == "state_patched").collect();
    assert_eq!(patched.len(), 1);
    let patch = &patched[0]["patch"];
    assert_eq!((&patch["maxReviews"], &patch["colour"]), (&json!(7), &json!("blue")));
    assert_eq!(
        patched[0]["reason"],
        format!("forked from {old} after select-ready-tasks#1[#1]/settle#1")
    );

    let ran = env.run(["resume", &new, "--stream", "values"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let values = &last["values"];
    assert_eq!((&values["maxReviews"], &values["colour"]), (&json!(7), &json!("blue")));
    assert_eq!(values["task"], json!([1, {"a": null}]));
    assert_eq!(values["tasks"][2]["content"], "Paint it");
    let calls = fs::read_to_string(dir(&env, &new).join("logs/agent-calls.jsonl")).unwrap();
    assert!(calls.contains("Task #3: Paint it"), "the worker is told what was set");
}

fn refused(ran: &Ran, code: i32, says: &[&str]) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{ran:?}");
    for said in says {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
}

#[test]
fn what_cannot_be_forked_is_refused_and_nothing_is_made() {
    let (env, old) = paused();
    let before = content(&env.work().join(".ralph"));
    let list = env.outside("home/.atomic/sessions-index.jsonl");
    let listed = fs::read(&list).unwrap();
    let table: &[(&str, &[&str], i32, &[&str])] = &[
        ("last@planer#1", &[], 1, &[&old, "`planer#1`", "did you mean `planner#1`?"]),
        ("last@planner", &[], 1, &["did you mean `planner#1`?"]),
        ("last@nonsense", &[], 1, &["no finished step `nonsense`", "the last ones are `select-"]),
        ("last@", &[], 1, &["no finished step ``"]),
        ("last@select-ready-tasks#1[#3]/worker#1", &[], 1, &["has begun but not finished"]),
        ("last@planner#1", &["--set", "outputs={}"], 1, &["`outputs`", "cannot be set"]),
        ("last@planner#1", &["--set", "tasks=5"], 1, &["key `tasks`"]),
        ("last@planner#1", &["--set", "tasks"], 2, &["`tasks` sets nothing; write key=value"]),
        ("last@planner#1", &["--set", "=5"], 2, &["write key=value"]),
        ("0000@planner#1", &[], 1, &["there is no session `0000`"]),
    ];
    for (place, more, code, says) in table {
        refused(&env.run(["fork", place].iter().chain(*more)), *code, says);
    }
    assert_eq!(content(&env.work().join(".ralph")), before);
    assert_eq!(fs::read(&list).unwrap(), listed);
}

#[test]
fn a_session_without_a_finished_step_has_nothing_to_fork() {
    let env = TestEnv::new();
    let scene = Scene::default().turn(planner().does([note(), fail("hang")]));
    let mut running = Running::start(env.ralph_command(&scene.toml(), &[]));
    eventually("the planner is at work", SOON, || env.ledger().len() == 1);
    running.signal("INT");
    assert_eq!(running.end().code, Some(4));
    refused(&env.run(["fork", "last"]), 1, &["has no finished step yet"]);
    assert_eq!(sessions(&env).len(), 1);
}

#[test]
fn a_damaged_session_is_not_forked() {
    let (env, old) = completed();
    let journal = dir(&env, &old).join("journal.jsonl");
    let mut bytes = fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&journal, &bytes).unwrap();
    refused(&env.run(["fork", &old]), 1, &["is damaged at byte"]);
    assert_eq!(sessions(&env), BTreeSet::from([old]));
}

/// Where a fork can be killed: the name of a fail-point, and at which hit of it.
fn places(env: &TestEnv) -> Vec<(String, usize)> {
    let log = env.outside("hits");
    let mut command = env.atomic(["fork", "last@#2 worker#1", "--set", "colour=blue"]);
    command.env("ATOMIC_FAILPOINT_LOG", &log);
    assert_eq!(ran(command).code, Some(0));
    let mut hits = BTreeMap::<String, usize>::new();
    let log = fs::read_to_string(&log).unwrap_or_default();
    log.lines().for_each(|name| *hits.entry(name.to_owned()).or_default() += 1);
    for name in ["append.fact", "replace.after_rename", "rename.before", "rename.after"] {
        assert!(hits.contains_key(name), "{name} is never passed; is the feature on?");
    }
    hits.into_iter().flat_map(|(name, n)| (1..=n).map(move |hit| (name.clone(), hit))).collect()
}

#[test]
fn a_fork_killed_anywhere_is_whole_or_not_there() {
    let env = TestEnv::new();
    // The plan is too long for a line of the journal.
    let plan = format!(
        "{}\n{}",
        "Let me think. ".repeat(2_000),
        crate::scene::plan(&[("#1", &[]), ("#2", &["#1"]), ("#3", &["#2"]),])
    );
    let scene = Scene::default().turn(planner().does([crate::scene::say(&plan)])).rest();
    assert_eq!(env.ralph(&scene.toml(), &["--check", "true"]).code, Some(0));
    let old = env.session().file_name().unwrap().to_str().unwrap().to_owned();
    let before = content(&dir(&env, &old));
    assert!(before.keys().any(|path| path.parent().unwrap().ends_with("blobs")));
    let places = places(&env);
    assert!(places.len() >= 16, "{places:?}");
    let (mut whole, mut none) = (0, 0);
    for (point, n) in places {
        let known = sessions(&env);
        let mut command = env.atomic(["fork", &format!("{old}@#2 worker#1"), "--set", "a=b"]);
        command.env("ATOMIC_FAILPOINT", format!("{point}:{n}"));
        assert_eq!(ran(command).code, None, "{point}:{n} was not met");
        assert_eq!(content(&dir(&env, &old)), before, "{point}:{n}: the old one is as it was");
        let listed = env.run(["sessions"]).stdout;
        assert!(!listed.contains("gone") && !listed.contains("unreadable"), "{point}:{n} {listed}");
        let new = sessions(&env).difference(&known).find(|name| !name.starts_with('.')).cloned();
        let Some(new) = new else {
            none += 1;
            continue;
        };
        whole += 1;
        // Whole, whether it came as far as the list or not.
        let facts = facts(&env, &new);
        assert_eq!(facts.last().unwrap()["type"], "run_paused", "{point}:{n}");
        assert_eq!(json_in(&dir(&env, &new).join("session.json"))["status"], "paused");
        if listed.contains(&new) {
            ends_well(&env, &new);
        }
    }
    assert!(whole >= 1 && none >= 14, "{whole} whole, {none} not there");
    let (new, _) = forked(&env, &old, &[]);
    ends_well(&env, &new);
    let left: Vec<_> = sessions(&env).into_iter().filter(|name| name.ends_with(".tmp")).collect();
    assert_eq!(left, [""; 0], "left-overs are cleared away");
}

fn git(folder: &Path, args: &[&str]) -> String {
    let fixed = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    let output = Command::new("git").current_dir(folder).args(fixed).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_finished_step_says_at_which_commit_it_ended() {
    let env = TestEnv::new();
    git(&env.work(), &["init", "--quiet", "--initial-branch=main"]);
    git(&env.work(), &["commit", "--quiet", "--allow-empty", "--message=start"]);
    let start = git(&env.work(), &["rev-parse", "HEAD"]);
    let commit = "n=$(git rev-list --count HEAD); touch part$n; git add part$n; \
                  git -c user.name=t -c user.email=t@example.org commit --quiet --message=$n; \
                  echo \"$ATOMIC_STEP $(git rev-parse HEAD)\" >> \"$LEDGER\"";
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"]), ("#3", &["#2"])])
        .turn(worker("Task ").does([run(commit), done("committed")]))
        .turn(reviewer().does([review(&[])]));
    assert_eq!(env.ralph(&scene.toml(), &["--check", "true"]).code, Some(0));
    let old = env.session().file_name().unwrap().to_str().unwrap().to_owned();

    let ledger = env.ledger();
    let made: BTreeMap<&str, &str> =
        ledger.iter().map(|line| line.rsplit_once(' ').unwrap()).collect();
    assert_eq!(made.len(), 3);
    let (mut uses_files, mut at, mut seen) = (BTreeSet::new(), start, 0);
    for fact in facts(&env, &old) {
        let step = fact["step"].as_str().unwrap_or_default().to_owned();
        if fact["type"] == "step_started" && !fact["workspace"].is_null() {
            uses_files.insert(step);
        } else if fact["type"] == "step_finished" && uses_files.contains(&step) {
            if let Some(commit) = made.get(format!("{old}/{step}/1").as_str()) {
                at = (*commit).to_owned();
            }
            assert_eq!(fact["commit"], at, "{step}");
            seen += 1;
        }
    }
    assert_eq!(at, git(&env.work(), &["rev-parse", "HEAD"]));
    assert!(seen >= 9, "planner, baseline, three workers, three checks, reviewer: {seen}");

    // A step that touches no files ended where the last one did that does.
    let (new, said) = forked(&env, &format!("{old}@#2 settle#1"), &[]);
    let second = made[format!("{old}/select-ready-tasks#1[#2]/worker#1/1").as_str()];
    assert!(said.contains(&format!("at commit {second}")), "{said}");
    let hint = said.lines().find(|line| line.trim_start().starts_with("git ")).unwrap();
    let status = Command::new("sh").args(["-c", hint]).status().unwrap();
    assert!(status.success(), "{hint}");
    let tree = PathBuf::from(format!("{}-{}", env.work().display(), &new[..8]));
    assert_eq!(git(&tree, &["rev-parse", "HEAD"]), second);
    assert!(tree.join("part2").exists() && !tree.join("part3").exists());
}

#[test]
fn for_programs_a_fork_prints_its_own_facts() {
    let (env, old) = completed();
    let ran = env.run(["fork", &format!("{old}@#2 settle#1"), "--set", "a=1", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["session_created", "session_forked", "state_patched", "run_paused"]);
    assert_eq!(lines[1]["step"], "select-ready-tasks#1[#2]/settle#1");
    ends_well(&env, lines[0]["session"].as_str().unwrap());
}

/// Keeps paths into the session's folder in its state, one of them made by a step.
const KEEPS_PATHS: &str = r#"import { graph, toolNode } from "atomic/workflows";
export const createState = (p: any) => ({
  prompt: p.prompt, outputs: {}, own: { dir: p.sessionDir, id: p.sessionId },
});
export default () => graph<any>()
  .start(toolNode<any>({ id: "note", execute: (s: any) => ({ notes: { file: s.own.dir + "/notes.md" } }) }))
  .then(toolNode<any>({ id: "write", command: "test -e ready && echo more >> {notes.file}" }))
  .end().compile();
"#;

/// A fork in a copy, and a session in a project that was moved, write to their own folder.
#[test]
fn paths_into_the_folder_of_a_session_follow_it() {
    let project = Project::new();
    project.write(".atomic/workflows/flow.ts", KEEPS_PATHS);
    let ended = typescript::run(&project, "flow", &["--trust"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let (dir, env) = (project.session(), &project.env);
    let id = dir.file_name().unwrap().to_str().unwrap();
    let (copy, moved) = (env.outside("copy"), env.outside("moved"));
    let copied = Command::new("cp").arg("-r").arg(env.work()).arg(&copy).status().unwrap();
    assert!(copied.success());
    let resumed_in = |folder: &Path, more: &[&str]| {
        fs::write(folder.join("ready"), "").unwrap();
        let mut command = env.atomic(["resume", id, "--trust"]);
        command.args(more).current_dir(folder);
        let resumed = ran(command);
        assert_eq!(resumed.code, Some(0), "{resumed:?}");
    };
    let sessions = |folder: &Path| folder.join(".atomic/sessions");
    let text = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    let of_type = |dir: &Path, kind: &str| {
        let journal = text(dir.join("journal.jsonl"));
        let facts = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        facts.filter(|fact| fact["type"] == kind).collect::<Vec<_>>()
    };

    resumed_in(&copy, &["--here"]);
    assert!(!dir.join("notes.md").exists(), "the original is left alone");
    let fork = fs::read_dir(sessions(&copy)).unwrap().map(|entry| entry.unwrap().path());
    let fork = fork.into_iter().find(|path| path.is_dir() && !path.ends_with(id)).unwrap();
    assert_eq!(text(fork.join("notes.md")), "more\n");
    let own = json!({"dir": &fork, "id": fork.file_name().unwrap().to_str().unwrap()});
    assert_eq!(of_type(&fork, "session_created")[0]["state"]["own"], own);
    assert_eq!(of_type(&fork, "state_patched").len(), 1);

    fs::rename(env.work(), &moved).unwrap();
    resumed_in(&moved, &[]);
    let dir = sessions(&moved).join(id);
    assert!(!env.work().exists(), "the old place stays empty");
    assert_eq!(text(dir.join("notes.md")), "more\n");
    let patched = of_type(&dir, "state_patched");
    let patch = json!({"own": {"dir": &dir, "id": id}, "notes": {"file": dir.join("notes.md")}});
    assert_eq!(patched[0]["patch"], patch);
}
