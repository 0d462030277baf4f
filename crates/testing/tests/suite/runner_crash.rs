//! The power goes at every point of a run, on a disk that then forgets everything not synced.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use atomic_runner::OnQuestion;
use atomic_session::MemoryDisk;
use atomic_testing::sample::Sample;

use crate::runner_stand::{Finale, Stand, on_one_thread};

/// A run without any trouble.
fn undisturbed(make: fn() -> Stand) -> Finale {
    let stand = make();
    let finale = on_one_thread(stand.see_through()).unwrap();
    assert_eq!(stand.misdeeds(), [""; 0]);
    finale
}

/// The power goes after every `stride`-th operation of the disk, or after a sample of these, and the
/// session is resumed.
fn at_every_operation(make: fn() -> Stand, stride: usize, crash: impl Fn(&MemoryDisk, u64)) {
    let expected = undisturbed(make);
    let sample = Sample::from_env();
    let mut length = 0;
    let mut problems = vec![];
    let played = (0..).step_by(stride).enumerate().filter(|(index, _)| sample.contains(*index));
    for (_, operations) in played {
        length = operations;
        let stand = make();
        stand.disk.cut_power_after(operations);
        let Err(error) = on_one_thread(stand.see_through()) else { break };
        assert!(error.to_string().contains("the power is off"), "{error}");
        crash(&stand.disk, operations);
        problems.extend(resumed(&stand, &expected, &format!("cut after {operations} operations")));
    }
    assert_eq!(problems, [""; 0]);
    assert!(length > 200, "only {length} operations: the run is shorter than it was");
}

/// Resumes after a crash; says what is not as it should be.
fn resumed(stand: &Stand, expected: &Finale, context: &str) -> Vec<String> {
    let mut problems = stand.misdeeds();
    match on_one_thread(stand.see_through()) {
        Ok(finale) => problems.extend(finale.differences(expected)),
        Err(error) => problems.push(error.to_string()),
    }
    problems.extend(stand.misdeeds());
    problems.iter().map(|problem| format!("{context}: {problem}")).collect()
}

#[test]
fn crash_at_every_operation_forgetting_all_that_was_not_synced() {
    at_every_operation(Stand::new, 1, |disk, _| disk.crash());
}

#[test]
fn crash_at_every_operation_keeping_some_of_what_was_not_synced() {
    at_every_operation(Stand::new, 1, MemoryDisk::crash_keeping_some);
}

#[test]
fn crash_at_every_operation_with_the_answer_given_live() {
    let live = || {
        let mut stand = Stand::new();
        stand.settings.on_question = OnQuestion::Ask;
        stand
    };
    at_every_operation(live, 2, |disk, seed| disk.crash_keeping_some(seed * 7 + 1));
}

#[test]
fn crash_with_real_checks() {
    at_every_operation(Stand::with_gate, 5, |disk, _| disk.crash());
}

/// A crash at some point, and another two while it is being resumed; what was not synced is torn.
#[test]
fn crash_again_and_again_while_resuming() {
    let expected = undisturbed(Stand::new);
    let mut problems = vec![];
    for seed in Sample::from_env().of((0..150).collect()) {
        let stand = Stand::new();
        for cut in [(seed * 37) % 240, seed % 25, (seed * 7) % 31] {
            stand.disk.cut_power_after(cut);
            let Err(error) = on_one_thread(stand.see_through()) else { break };
            assert!(error.to_string().contains("the power is off"), "{error}, seed {seed}");
            stand.disk.crash_keeping_some(seed);
        }
        problems.extend(resumed(&stand, &expected, &format!("seed {seed}")));
    }
    assert_eq!(problems, [""; 0]);
}

/// Every beginning of a journal that ends with a whole line is what some crash leaves: between
/// two appends, or in the middle of one. The journal is of a run that was itself cut off once.
#[test]
fn crash_after_every_fact() {
    let whole = Stand::new();
    whole.disk.cut_power_after(120);
    let _ = on_one_thread(whole.see_through()).unwrap_err();
    whole.disk.crash();
    let expected = on_one_thread(whole.see_through()).unwrap();
    let journal = whole.journal();
    let ends = (1..=journal.len()).filter(|end| journal[end - 1] == b'\n');
    let mut problems = vec![];
    for (facts, end) in Sample::from_env().of((1..).zip(ends).collect::<Vec<(usize, usize)>>()) {
        let stand = whole.with_journal(&journal[..end]);
        problems.extend(resumed(&stand, &expected, &format!("after fact {facts}")));
    }
    assert_eq!(problems, [""; 0]);
}
