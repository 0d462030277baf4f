//! Workflows in TypeScript, killed with SIGKILL at their facts and taken up again, with no Node,
//! Bun or Deno in sight: they end as if nothing had happened, and nothing that was finished is done
//! twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use atomic_testing::sample::Sample;
use serde_json::Value;

use crate::crash::enough_were_killed;
use crate::crash_case::{Case, side_by_side};
use crate::crash_scene::Scene;
use crate::env::{TestEnv, ran};
use crate::typescript::only_plain_programs;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A scene in which a workflow of this folder is run, with what its script says about its test.
fn scene(folder: &Path, name: &'static str, script: &str) -> Scene {
    let test: toml::Table = script.parse().unwrap();
    let test = test.get("test").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let word = |key: &str| test.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let code = files.filter(|path| path.extension().is_some_and(|ending| ending == "ts"));
    let code: Vec<_> = code
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (format!(".atomic/workflows/{name}"), fs::read_to_string(path).unwrap())
        })
        .collect();
    let (prompt, setup) = (word("prompt").unwrap_or("Do it".to_owned()), word("setup"));
    Scene::of_code(name, code, script.to_owned()).begun_with(prompt, move |env: &TestEnv| {
        if let Some(setup) = &setup {
            let mut command = Command::new("sh");
            command.args(["-c", setup]).current_dir(env.work());
            assert_eq!(ran(command).code, Some(0), "{setup}");
        }
        only_plain_programs(&env.outside("bin"))
    })
}

/// What came of it: files, and the steps that finished.
fn end(case: &Case<'_>) -> (BTreeMap<PathBuf, Vec<u8>>, BTreeSet<String>) {
    let facts = case.facts();
    let last = facts.last().unwrap();
    assert_eq!(last["ending"]["kind"], "completed", "{last}");
    let mut files = case.files();
    // These are other ones in every run, or are not written by the workflow.
    files.retain(|path, _| {
        let name = path.to_str().unwrap();
        !(name == "chance.json" || name == "order.txt" || name.starts_with(".git"))
    });
    (files, finished(&facts))
}

fn finished(facts: &[Value]) -> BTreeSet<String> {
    let of_kind = facts.iter().filter(|fact| fact["type"] == "step_finished");
    let steps = of_kind.map(|fact| fact["step"].as_str().unwrap().to_owned());
    // Whether one that has lost a race still comes to its end depends on the moment.
    steps.filter(|step| !step.contains("[p2.") && !step.contains("[p3.")).collect()
}

/// Nothing is begun again that has finished.
fn nothing_twice(case: &Case<'_>) {
    let mut done = BTreeSet::new();
    for fact in case.facts() {
        let step = fact["step"].as_str().unwrap_or_default().to_owned();
        if fact["type"] == "step_started" {
            assert!(!done.contains(&step), "{step} had finished and was begun again");
        } else if fact["type"] == "step_finished" {
            done.insert(step);
        }
    }
    for kill in &case.kills {
        assert!(case.facts().starts_with(&kill.facts), "facts that were on disk have changed");
    }
}

/// Kills the scene at every `stride`-th fact, and sees what comes of it.
fn survives(scene: &Scene, name: &str, stride: usize) {
    let model = Case::new(scene, format!("{name}, undisturbed"));
    model.ends(model.run(), 0);
    let expected = end(&model);
    nothing_twice(&model);
    let facts = model.hits()["append.fact"];
    assert!(facts > 8, "{name} has only {facts} facts");
    let places = Sample::from_env().of((1..=facts).step_by(stride).collect::<Vec<_>>());
    let (armed, killed) = (places.len(), AtomicUsize::new(0));
    side_by_side(places, |n| {
        let mut case = Case::new(scene, format!("{name}, killed at fact {n}"));
        let mut dies = case.dies_at(case.run(), "append.fact", n);
        killed.fetch_add(usize::from(dies), Ordering::Relaxed);
        if dies && !case.note_kill(n % 2 == 1) {
            return;
        }
        let is_over = case.facts().last().is_some_and(|fact| fact["type"] == "run_finished");
        if dies && n % 3 == 2 && !is_over {
            dies = case.dies_at(case.resume(), "append.fact", 1 + n % 5);
            assert!(!dies || case.note_kill(true));
        }
        if dies {
            case.resume_to_the_end();
        }
        assert_eq!(end(&case), expected, "{name}, killed at fact {n}");
        nothing_twice(&case);
        case.nothing_survives();
    });
    enough_were_killed(killed.into_inner(), armed, 80);
}

const ANSWERS: &str = r#"
[[turn]]
do = [{ run = 'echo "$ATOMIC_STEP" >> "$LEDGER"' }, { say = "right" }]
"#;

#[test]
fn a_script_with_everything_in_it_survives_being_killed() {
    survives(&scene(&folder("tests/scripts"), "everything", ANSWERS), "everything", 1);
}

#[test]
fn the_examples_survive_being_killed() {
    let examples = folder("../../examples");
    let names = [
        "issue-to-pr",
        "migrate",
        "module-research",
        "morning",
        "nightly",
        "release-notes",
        "review-cycle",
    ];
    let there = fs::read_dir(&examples).unwrap().map(|entry| entry.unwrap().path());
    let there = there.filter(|path| path.extension().is_some_and(|ending| ending == "ts"));
    assert_eq!(there.count(), names.len(), "every example is killed here");
    for name in names {
        let script = fs::read_to_string(examples.join(format!("{name}.script.toml"))).unwrap();
        survives(&scene(&examples, name, &script), name, 4);
    }
}
