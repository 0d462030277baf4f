//! The real binary, killed with SIGKILL wherever it can be, and taken up again: it ends as if
//! nothing had happened, and nothing that was finished is done twice.
//!
//! SIGKILL leaves what was written but not synced, so `append.written` and `append.synced` find
//! the same disk here; the disk that forgets is in the tests of the session and of the runner.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use atomic_testing::sample::Sample;

use crate::crash_case::{Case, Model, side_by_side};
use crate::crash_scene::Scene;
use crate::env::eventually;
use crate::process::{SOON, signal};

/// A place to be killed at: the name of a fail-point, and at which hit of it.
type Place = (&'static str, usize);

pub(crate) fn undisturbed(scene: &Scene) -> Model {
    let model = Case::model(scene, |case| case.ends(case.run(), 0));
    let all_once = model.begun.values().all(|times| *times == 1);
    assert!(all_once, "without a kill everything is begun once: {:?}", model.begun);
    model
}

/// Every place that is passed when the scene is played.
fn places(
    scene: &Scene,
    points: impl IntoIterator<Item = &'static str>,
    play: impl Fn(&Case<'_>) + Sync,
) -> Vec<Place> {
    // Who comes first decides which facts share an append, so one run has more of them than
    // another. The least of a few is passed nearly always.
    let runs = Mutex::new(vec![]);
    side_by_side(vec![(); 3], |()| {
        let case = Case::new(scene, "undisturbed");
        play(&case);
        runs.lock().unwrap().push(case.hits());
    });
    let runs = runs.into_inner().unwrap();
    let least = |point: &'static str| {
        let hits = runs.iter().filter_map(|hits| hits.get(point)).min().copied();
        let hits = hits
            .unwrap_or_else(|| panic!("{point} is never passed; is the feature `failpoints` on?"));
        (1..=hits).map(move |n| (point, n))
    };
    points.into_iter().flat_map(least).collect()
}

/// Every place that is passed when the scene is played from its start to its end.
fn all_places(scene: &Scene, points: &[&'static str]) -> Vec<Place> {
    places(scene, points.iter().copied(), |case| case.ends(case.run(), 0))
}

/// Runs the scene once for each place, or for a sample of them, kills it there, and resumes it.
fn killed_at_each(scene: &Scene, model: &Model, places: Vec<Place>) {
    let places = Sample::from_env().of(places);
    let facts_only = places.iter().all(|(point, _)| *point == "append.fact");
    let (armed, killed) = (places.len(), AtomicUsize::new(0));
    side_by_side(places, |(point, n)| {
        let mut case = Case::new(scene, format!("{} killed at {point}:{n}", scene.workflow));
        if case.dies_at(case.run(), point, n) {
            killed.fetch_add(1, Ordering::Relaxed);
            // Every other time the next one comes at once, and has to end what is left.
            if !case.note_kill(n % 2 == 0) {
                return;
            }
            case.resume_to_the_end();
        }
        case.check(model);
    });
    let percent = if facts_only { 95 } else { 75 };
    enough_were_killed(killed.into_inner(), armed, percent);
}

/// A place is missed only by a run that does not pass it, which is seen to elsewhere. There are
/// as many facts in every run; into how many appends and files they go depends on what finishes
/// together, and on a busy machine more does. Of the few places of a sample, more may be missed.
pub(crate) fn enough_were_killed(killed: usize, armed: usize, percent: usize) {
    let percent = if Sample::from_env().share() == 1 { percent } else { percent.min(50) };
    assert!(killed * 100 >= armed * percent, "only {killed} of {armed} were killed");
}

#[test]
fn killed_at_every_fact() {
    let scene = Scene::house();
    let model = undisturbed(&scene);
    let places = all_places(&scene, &["append.fact"]);
    assert!(places.len() > 120, "only {} facts", places.len());
    killed_at_each(&scene, &model, places);
}

#[test]
fn killed_around_every_append() {
    let scene = Scene::house();
    let model = undisturbed(&scene);
    let points = ["append.before", "append.written", "append.synced"];
    killed_at_each(&scene, &model, all_places(&scene, &points));
}

#[test]
fn killed_when_something_is_done_but_not_recorded() {
    let scene = Scene::house();
    let model = undisturbed(&scene);
    let points = [
        "effect.done",
        "replace.before_rename",
        "replace.after_rename",
        "link.before",
        "link.after",
    ];
    killed_at_each(&scene, &model, all_places(&scene, &points));
}

/// What is lost is recorded together with how it goes on; here that is cut short as well.
#[test]
fn killed_again_while_it_is_taken_up() {
    let scene = Scene::house();
    let model = undisturbed(&scene);
    let again = |point, hits: usize| (1..=hits).map(move |n| (point, n));
    let mut places: Vec<Place> = again("append.fact", 12).collect();
    places.extend(again("append.before", 3).chain(again("append.synced", 3)));
    places.extend(again("effect.done", 3).chain(again("replace.before_rename", 3)));
    side_by_side(Sample::from_env().of(places), |(point, n)| {
        let mut case = Case::new(&scene, format!("resumed and killed at {point}:{n}"));
        // Two planners, the baseline, a worker and his check; then three workers side by side.
        assert!(case.dies_at(case.run(), "effect.done", 6) && case.note_kill(n % 2 == 0));
        assert!(case.dies_at(case.resume(), point, n) && case.note_kill(n % 2 == 1));
        case.resume_to_the_end();
        case.check(&model);
    });
}

#[test]
fn killed_while_a_workflow_asks() {
    let scene = Scene::second_opinion();
    let model = undisturbed(&scene);
    let points = ["append.before", "append.fact", "append.synced", "effect.done"];
    killed_at_each(&scene, &model, all_places(&scene, &points));
}

fn answer(case: &Case<'_>, more: &[&str]) -> Command {
    let mut command = case.env.atomic(["answer", "last", "Red (Recommended)"]);
    command.args(more).env("ATOMIC_FAILPOINT_LOG", case.env.outside("hits"));
    command
}

fn answered_later(scene: &Scene) -> Model {
    Case::model(scene, |case| {
        case.ends(case.run(), 3);
        case.ends(answer(case, &[]), 0);
        case.ends(case.resume(), 0);
    })
}

const APPENDS: [&str; 4] = ["append.before", "append.fact", "append.synced", "effect.done"];

#[test]
fn killed_before_anybody_answers() {
    let scene = Scene::unanswered();
    let model = answered_later(&scene);
    let places = places(&scene, APPENDS, |case| case.ends(case.run(), 3));
    let places = Sample::from_env().of(places);
    let (armed, killed) = (places.len(), AtomicUsize::new(0));
    side_by_side(places, |(point, n)| {
        let mut case = Case::new(&scene, format!("killed before the answer at {point}:{n}"));
        if case.dies_at(case.run(), point, n) {
            killed.fetch_add(1, Ordering::Relaxed);
            if !case.note_kill(n % 2 == 0) {
                return;
            }
        }
        if !case.facts().iter().any(|fact| fact["type"] == "question_asked") {
            case.ends(case.resume(), 3);
        }
        case.ends(answer(&case, &[]), 0);
        case.resume_to_the_end();
        case.check(&model);
    });
    enough_were_killed(killed.into_inner(), armed, 75);
}

#[test]
fn killed_while_an_answer_is_taken_in() {
    let scene = Scene::unanswered();
    let model = answered_later(&scene);
    let points = APPENDS.into_iter().chain(["replace.before_rename", "replace.after_rename"]);
    let places = places(&scene, points, |case| {
        case.ends(case.run(), 3);
        case.forget_hits();
        case.ends(answer(case, &["--resume"]), 0);
    });
    let places = Sample::from_env().of(places);
    let (armed, killed) = (places.len(), AtomicUsize::new(0));
    side_by_side(places, |(point, n)| {
        let mut case = Case::new(&scene, format!("killed with the answer at {point}:{n}"));
        case.ends(case.run(), 3);
        if case.dies_at(answer(&case, &["--resume"]), point, n) {
            killed.fetch_add(1, Ordering::Relaxed);
            assert!(case.note_kill(n % 2 == 0));
            let arrived = case.has_answer();
            assert!(arrived || (point, n) == ("replace.before_rename", 1), "the answer is lost");
            // Whoever does not know whether it has arrived gives it again; there may be nothing
            // left to be answered.
            if !arrived || n % 3 == 0 {
                let (status, said) = case.ended(answer(&case, &[]));
                assert!(matches!(status.code(), Some(0 | 1)), "{status}: {said}");
            }
            case.resume_to_the_end();
        }
        case.check(&model);
    });
    enough_were_killed(killed.into_inner(), armed, 75);
}

/// Numbers that look random and are the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to below 1.
    pub(crate) fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The seed in `ATOMIC_CRASH_SEED`, or another one each time.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("ATOMIC_CRASH_SEED").ok().map(|seed| seed.parse().unwrap());
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    given.unwrap_or_else(clock)
}

#[test]
fn killed_two_hundred_times_at_random() {
    const MOST_PER_SESSION: usize = 3;
    let kills = 200 / Sample::from_env().share();
    let scene = Scene::house();
    let model = undisturbed(&scene);
    let (seed, killed) = (seed(), AtomicUsize::new(0));
    // On a machine that other work slows down, the next run may be much faster than the last one.
    let shortest = Mutex::new(model.duration);
    side_by_side((0..50 * kills as u64).collect(), |session| {
        if killed.load(Ordering::Relaxed) >= kills {
            return;
        }
        let name = format!("session {session} with ATOMIC_CRASH_SEED={seed}");
        let mut dice = Dice(seed ^ session.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let mut case = Case::new(&scene, name);
        let mut command = case.run();
        while case.kills.len() < MOST_PER_SESSION {
            let delay = shortest.lock().unwrap().mul_f64(dice.roll());
            if !case.dies_after(command, delay) {
                let mut shortest = shortest.lock().unwrap();
                *shortest = delay.min(*shortest);
                drop(shortest);
                return case.check(&model);
            }
            killed.fetch_add(1, Ordering::Relaxed);
            if !case.note_kill(dice.roll() < 0.5) {
                return;
            }
            if case.facts().last().is_some_and(|fact| fact["type"] == "run_finished") {
                break;
            }
            command = case.resume();
        }
        case.resume_to_the_end();
        case.check(&model);
    });
    let killed = killed.into_inner();
    assert!(killed >= kills, "only {killed} were killed, ATOMIC_CRASH_SEED={seed}");
}

/// Snapshots only shorten reading: they may be there, broken, or gone.
#[test]
fn killed_with_and_without_snapshots() {
    let scene = Scene::talkative_house();
    let model = undisturbed(&scene);
    let with_snapshot = AtomicUsize::new(0);
    let every_fifth = all_places(&scene, &["append.fact"]).into_iter().step_by(5).enumerate();
    let sample = Sample::from_env();
    side_by_side(sample.of(every_fifth.collect()), |(number, (point, n))| {
        let mut case = Case::new(&scene, format!("talkative, killed at {point}:{n}"));
        if case.dies_at(case.run(), point, n) {
            if !case.note_kill(false) {
                return;
            }
            let folder = case.session().unwrap().join("checkpoints");
            let snapshots: Vec<_> =
                fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
            with_snapshot.fetch_add(usize::from(!snapshots.is_empty()), Ordering::Relaxed);
            match number % 3 {
                0 => fs::remove_dir_all(&folder).unwrap(),
                1 => snapshots.iter().for_each(|path| {
                    let bytes = fs::read(path).unwrap();
                    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
                }),
                _ => {}
            }
            case.resume_to_the_end();
        }
        case.check(&model);
    });
    let with_snapshot = with_snapshot.into_inner();
    assert!(
        with_snapshot * sample.share() >= 6,
        "only {with_snapshot} had a snapshot when they were killed"
    );
}

/// A guard that was killed as well cannot end anything; whoever takes the session up does, before
/// anything else.
#[test]
fn killed_together_with_its_guards() {
    let scene = Scene::hanging();
    let mut case = Case::new(&scene, "killed with its guards");
    let hanging = case.env.outside("ledger.hanging");
    let mut atomic = case.spawn(case.run());
    let is_there = || fs::read_to_string(&hanging).is_ok_and(|id| id.ends_with('\n'));
    eventually("the worker hangs", SOON, is_there);
    let guards: Vec<_> = case
        .processes()
        .into_iter()
        .filter(|(_, arguments)| arguments.contains("__guard"))
        .collect();
    assert_eq!(guards.len(), 1, "{guards:?}");
    // Stopped first, so that it does not see what is coming.
    signal(guards[0].0, "STOP");
    atomic.kill().unwrap();
    atomic.wait().unwrap();
    signal(guards[0].0, "KILL");
    let left = || case.processes().into_iter().map(|(_, arguments)| arguments).collect::<Vec<_>>();
    eventually("only the worker is left", SOON, || left() == ["sleep 1000 "]);
    assert!(case.note_kill(false));
    case.resume_to_the_end();
    case.check_rules(&case.facts(), &case.env.ledger());
    assert!(!case.env.outside("ledger.met").exists(), "the worker has met its old self");
}

#[test]
fn killed_during_real_cargo_tests() {
    const KILLS: usize = 5;
    let scene = Scene::tiny_crate();
    let model = undisturbed(&scene);
    let seed = seed();
    let mut dice = Dice(seed);
    let mut case = Case::new(&scene, format!("cargo test with ATOMIC_CRASH_SEED={seed}"));
    let mut command = case.run();
    for kill in 1..=KILLS {
        // There are five checks; each is met once, at some point of its work.
        let mut child = case.spawn(command);
        eventually("the next check is run", SOON, || checks_begun(&case) >= kill);
        std::thread::sleep(Duration::from_secs_f64(0.2 * dice.roll()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(case.note_kill(true));
        command = case.resume();
    }
    case.resume_to_the_end();
    case.check(&model);
    let cut_off = case.env.ledger().iter().filter(|line| line.starts_with("gate ")).count() - KILLS;
    assert!(cut_off >= 2, "only {cut_off} checks were cut off");
}

/// How many of the checks were begun at least once.
fn checks_begun(case: &Case<'_>) -> usize {
    let step = |line: &String| line.rsplit_once('/').map(|(step, _attempt)| step.to_owned());
    let checks = case.env.ledger().into_iter().filter(|line| line.starts_with("gate "));
    checks.filter_map(|line| step(&line)).collect::<BTreeSet<_>>().len()
}
