//! Whole runs of the scripted Ralph in one process: what they record, do and leave.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use atomic_testing::ralph_script::TASKS;

use crate::runner_stand::{Stand, on_one_thread};

#[test]
fn a_ralph_with_everything_in_it_ends_well() {
    for stand in [Stand::new(), Stand::with_gate()] {
        let finale = on_one_thread(stand.see_through()).unwrap();
        stand.check_ledger("a run without any trouble");
        assert_eq!((finale.outcome.as_str(), finale.status.as_str()), ("Completed", "Completed"));
        assert_eq!(finale.tasks, TASKS.map(|task| format!("{task} Completed []")));
        assert_eq!(finale.answers, [1, 1]);
        assert_eq!(finale.files.len(), 4, "{:?}", finale.files);
        eprintln!("{} ops, {} facts, {finale:#?}", stand.disk.operations(), stand.facts().len());
    }
}
