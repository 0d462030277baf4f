//! A hard night: fourteen tasks in a lattice, first tries that fail, a question, a review finding and
//! a shell check, while `atomic` and its guards are killed again and again and workers clean the
//! folder, reset it, rewrite the check and edit the task file. The night ends as an undisturbed one
//! does, and the ledger outside shows that nothing finished was done again.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use atomic_testing::sample::Sample;
use serde_json::Value;

use crate::crash::{Dice, seed, undisturbed};
use crate::crash_case::{Case, side_by_side};
use crate::crash_scene::Scene;
use crate::env::eventually;
use crate::process::{SOON, signal};

/// Kills in all nights together.
const KILLS: usize = 150;

/// Atomic gives up a step that was lost five times in a row without progress. A step with this many losses on
/// disk is lost once more when the killed run is resumed, so the resume after this many is not killed.
const MOST_LOSSES: usize = 3;

#[test]
fn a_hard_night() {
    let kills = KILLS / Sample::from_env().share();
    let scene = Scene::night();
    let model = undisturbed(&scene);
    let (seed, killed) = (seed(), AtomicUsize::new(0));
    side_by_side((0..KILLS as u64).collect(), |night| {
        if killed.load(Ordering::Relaxed) >= kills {
            return;
        }
        let name = format!("night {night} with ATOMIC_CRASH_SEED={seed}");
        let mut dice = Dice::new(seed ^ night.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let mut case = Case::new(&scene, name);
        let mut command = case.run();
        while dies(&mut case, command, &mut dice) {
            killed.fetch_add(1, Ordering::Relaxed);
            if !case.note_kill(dice.roll() < 0.5) {
                return;
            }
            if case.facts().last().is_some_and(|fact| fact["type"] == "run_finished") {
                case.resume_to_the_end();
                break;
            }
            command = case.resume();
        }
        case.check(&model);
    });
    let killed = killed.into_inner();
    assert!(killed >= kills, "only {killed} were killed, ATOMIC_CRASH_SEED={seed}");
}

/// Runs a command that is killed somewhere, one time in four together with its guards, and says
/// whether it was.
fn dies(case: &mut Case<'_>, command: Command, dice: &mut Dice) -> bool {
    if losses_in_a_row(&case.facts()) >= MOST_LOSSES {
        case.ends(command, 0);
        return false;
    }
    if dice.roll() < 0.75 {
        // A resume with four workers needs some sixteen facts until each of them has made progress.
        return case.dies_at(command, "append.fact", 16 + (dice.roll() * 30.0) as usize);
    }
    let begun = case.env.ledger().len() + 1 + (dice.roll() * 3.0) as usize;
    let mut atomic = case.spawn(command);
    let mut status = None;
    eventually("the night goes on", SOON, || {
        status = atomic.try_wait().unwrap();
        status.is_some() || case.env.ledger().len() >= begun
    });
    if let Some(status) = status {
        assert!(status.success(), "{status}\n{}", case.said());
        return false;
    }
    let guards: Vec<_> = case.processes();
    let guards: Vec<_> =
        guards.into_iter().filter(|(_, arguments)| arguments.contains("__guard")).collect();
    // Stopped first, so that they do not see what is coming; one may have ended meanwhile.
    let stopped: Vec<_> = guards.iter().filter(|(id, _)| is_signalled(*id, "STOP")).collect();
    signal(atomic.id(), "KILL");
    let status = atomic.wait().unwrap();
    for (id, _) in stopped {
        is_signalled(*id, "KILL");
    }
    !status.success()
}

/// The largest number of losses without progress that one step has had in a row.
fn losses_in_a_row(facts: &[Value]) -> usize {
    let mut losses: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for fact in facts {
        let lost = losses.entry(fact["step"].as_str()).or_default();
        match fact["type"].as_str() {
            Some("step_lost") if fact["progressed"] == false => *lost += 1,
            Some("step_lost" | "step_finished") => *lost = 0,
            _ => {}
        }
    }
    losses.into_values().max().unwrap_or(0)
}

/// Sends a signal to a process that may have ended.
fn is_signalled(id: u32, name: &str) -> bool {
    let kill = format!("kill -{name} {id} 2>/dev/null");
    Command::new("sh").args(["-c", &kill]).status().unwrap().success()
}

/// What a worker writes into the journal stops the run, which names the journal.
#[test]
fn a_night_whose_journal_a_worker_edits() {
    let scene = Scene::night_with("sed -i s/part/hole/ .ralph/sessions/*/journal.jsonl");
    let case = Case::new(&scene, "the journal is edited");
    let (status, said) = case.ended(case.run());
    assert_eq!(status.code(), Some(1), "{said}");
    let journal = case.session().unwrap().join("journal.jsonl");
    let told = "journal.jsonl: the journal was changed by another program: it is another file";
    assert!(said.contains(told), "{said}");
    assert!(fs::read_to_string(journal).is_ok());
    case.nothing_survives();
}
