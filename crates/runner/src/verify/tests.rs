//! Verdicts from facts.

use CheckedBefore::{Green, New, Red};
use atomic_event::{
    CheckResult, Checked, CheckedBefore, Event, ProjectRead, Report, Started, StepId, TestFile,
    Verified,
};
use atomic_session::TaskVerdict;

use super::{TaskDone, Verification, verified_line};

fn facts() -> Verification {
    let mut known = Verification { is_on: true, ..Verification::default() };
    read(
        &mut known,
        "baseline#1",
        ProjectRead {
            first: true,
            branch: Some("main".to_owned()),
            definitions: [("Makefile".to_owned(), Some("1".to_owned()))].into(),
            tests: [("tests/a.rs".to_owned(), Some(test_file("a", 9)))].into(),
            ..ProjectRead::default()
        },
    );
    known
}

fn test_file(hash: &str, lines: u64) -> TestFile {
    TestFile { hash: hash.to_owned(), lines, tests: 1, skipped: 0 }
}

fn read(known: &mut Verification, step: &str, read: ProjectRead) {
    let report = Report::ProjectRead(Box::new(read));
    known.learn(&Event::StepReported { step: StepId::new(step), attempt: 1, report });
}

fn work(known: &mut Verification, item: &str) {
    known.learn(&Event::StepStarted(Started {
        step: StepId::new(format!("fan#1[{item}]/worker#1")),
        attempt: 1,
        how: atomic_event::How::First,
        description: None,
        agent: Some("worker".into()),
        backend: None,
        workspace: None,
        iteration: None,
        clears_context: false,
        lane: None,
    }));
}

fn check(known: &mut Verification, item: &str, checks: &[(CheckedBefore, bool)]) -> TaskVerdict {
    check_mending(known, item, checks, None)
}

/// The same for a task that mends another one.
fn check_mending(
    known: &mut Verification,
    item: &str,
    checks: &[(CheckedBefore, bool)],
    mends: Option<&str>,
) -> TaskVerdict {
    let step = StepId::new(format!("fan#1[{item}]/check#1"));
    let result = |(before, green): &(CheckedBefore, bool)| CheckResult {
        command: "make test".to_owned(),
        green: *green,
        before: *before,
    };
    let mends = mends.map(str::to_owned);
    let checks = checks.iter().map(result).collect();
    let checked = Checked { checks, mends, ..Checked::default() };
    let report = Report::Checked(checked);
    known.learn(&Event::StepReported { step: step.clone(), attempt: 1, report });
    known.verdict_of(&step).unwrap()
}

#[test]
fn a_check_counts_when_it_was_green_before_and_is_green() {
    let table: &[(&[(CheckedBefore, bool)], TaskVerdict)] = &[
        (&[], TaskVerdict::None),
        (&[(Green, true)], TaskVerdict::Checked),
        (&[(Green, false)], TaskVerdict::None),
        (&[(Red, false)], TaskVerdict::None),
        (&[(Red, true)], TaskVerdict::None),
        (&[(New, true)], TaskVerdict::Own),
        (&[(New, false)], TaskVerdict::None),
        (&[(Green, true), (Red, false)], TaskVerdict::Checked),
        (&[(Green, true), (New, true)], TaskVerdict::Checked),
        (&[(Green, true), (New, false)], TaskVerdict::None),
    ];
    for (checks, expected) in table {
        let mut known = facts();
        work(&mut known, "#1");
        assert_eq!(check(&mut known, "#1", checks), *expected, "{checks:?}");
    }
}

#[test]
fn a_changed_definition_verifies_nothing_until_the_task_and_its_bug_fixes_are_done() {
    let mut known = facts();
    let changed = ProjectRead {
        definitions: [("Makefile".to_owned(), Some("2".to_owned()))].into(),
        ..ProjectRead::default()
    };
    work(&mut known, "#1");
    read(&mut known, "fan#1[#1]/worker#1", changed);
    // The failed attempt is remembered.
    assert_eq!(check(&mut known, "#1", &[(Green, false)]), TaskVerdict::None);
    work(&mut known, "#1-bug-1");
    let mended = check_mending(&mut known, "#1-bug-1", &[(Green, true)], Some("#1"));
    assert_eq!(mended, TaskVerdict::Own);
    work(&mut known, "#1");
    assert_eq!(check(&mut known, "#1", &[(Green, true)]), TaskVerdict::Own);
    assert_eq!(known.remarks(), ["Changed checks: Makefile (#1)"]);
    work(&mut known, "#2");
    assert_eq!(check(&mut known, "#2", &[(Green, true)]), TaskVerdict::Checked);
}

#[test]
fn a_definition_that_is_restored_is_the_one_that_was_green() {
    let makefile = |hash: &str| ProjectRead {
        definitions: [("Makefile".to_owned(), Some(hash.to_owned()))].into(),
        ..ProjectRead::default()
    };
    let mut known = facts();
    work(&mut known, "#1");
    read(&mut known, "fan#1[#1]/worker#1", makefile("2"));
    work(&mut known, "#1");
    read(&mut known, "fan#1[#1]/worker#2", makefile("1"));
    assert_eq!(check(&mut known, "#1", &[(Green, true)]), TaskVerdict::Checked);
}

/// A failed attempt turned the check green; nothing was green before its task.
#[test]
fn a_check_that_a_failed_attempt_turned_green_does_not_verify_its_task() {
    let mut known = facts();
    work(&mut known, "#1");
    let failed = check(&mut known, "#1", &[(Red, true), (Green, false)]);
    assert_eq!(failed, TaskVerdict::None);
    assert!(known.is_unaccepted("#1"));
    work(&mut known, "#1");
    assert_eq!(check(&mut known, "#1", &[(Green, true)]), TaskVerdict::None);
    work(&mut known, "#2");
    assert_eq!(check(&mut known, "#2", &[(Green, true)]), TaskVerdict::Checked);
}

/// The planner, a reviewer and the user are no task: what they change counts from the task after
/// the next on.
#[test]
fn a_definition_that_no_task_has_changed_is_unproven_as_well() {
    let changed = ProjectRead {
        definitions: [("Makefile".to_owned(), None)].into(),
        ..ProjectRead::default()
    };
    let mut known = facts();
    read(&mut known, "planner#1", changed);
    for (item, expected) in [("#1", TaskVerdict::Own), ("#2", TaskVerdict::Checked)] {
        work(&mut known, item);
        assert_eq!(check(&mut known, item, &[(Green, true)]), expected, "{item}");
    }
    assert_eq!(known.remarks(), ["Changed checks: Makefile"]);
}

#[test]
fn a_task_that_is_worked_on_again_is_not_verified_until_it_is_checked_again() {
    let mut known = facts();
    let done = |id: &str| TaskDone { id: id.to_owned(), is_done: true, was_done_before: false };
    work(&mut known, "#1");
    check(&mut known, "#1", &[(Green, true)]);
    assert_eq!(known.counted(&[done("#1")]).checked, 1);
    work(&mut known, "#1");
    assert_eq!(known.counted(&[done("#1")]).checked, 0);
}

#[test]
fn tests_that_come_back_are_not_named_and_moved_ones_never_were() {
    let tests = |name: &str, file: Option<TestFile>| ProjectRead {
        tests: [(name.to_owned(), file)].into(),
        ..ProjectRead::default()
    };
    let mut known = facts();
    read(&mut known, "fan#1[#1]/worker#1", tests("tests/a.rs", Some(test_file("b", 3))));
    assert_eq!(known.remarks(), ["Removed tests: tests/a.rs shortened (#1)"]);
    read(&mut known, "fan#1[#2]/worker#1", tests("tests/a.rs", Some(test_file("c", 4))));
    assert_eq!(known.remarks(), ["Removed tests: tests/a.rs shortened (#2)"]);
    read(&mut known, "fan#1[#2]/worker#1", tests("tests/a.rs", Some(test_file("d", 10))));
    assert!(known.remarks().is_empty());
    let mut moved = tests("tests/a.rs", None);
    moved.tests.insert("tests/b.rs".to_owned(), Some(test_file("d", 10)));
    read(&mut known, "fan#1[#2]/worker#1", moved);
    assert!(known.remarks().is_empty());
}

#[test]
fn on_another_branch_nothing_is_verified_until_it_is_left() {
    let branch =
        |name: &str| ProjectRead { branch: Some(name.to_owned()), ..ProjectRead::default() };
    let mut known = facts();
    work(&mut known, "#1");
    read(&mut known, "fan#1[#1]/worker#1", branch("side"));
    assert_eq!(check(&mut known, "#1", &[(Green, true)]), TaskVerdict::None);
    assert_eq!(known.remarks(), ["Changed branch: branch side instead of main (#1)"]);
    work(&mut known, "#2");
    read(&mut known, "fan#1[#2]/worker#1", branch("main"));
    assert_eq!(check(&mut known, "#2", &[(Green, true)]), TaskVerdict::Checked);
    assert!(known.remarks().is_empty());
}

#[test]
fn the_last_line_says_how_many_and_by_what() {
    let line = |checked, own, total, by: &[&str]| {
        let by = by.iter().map(|it| (*it).to_owned()).collect();
        verified_line(&Verified { checked, own, total, by })
    };
    let expected = "Completed: 5 of 6 tasks verified by \"cargo test\", 1 by its own check";
    assert_eq!(line(5, 1, 6, &["cargo test"]), expected);
    assert_eq!(line(0, 0, 6, &[]), "Completed, not verified");
    assert_eq!(line(1, 0, 1, &["a"]), "Completed: 1 of 1 task verified by \"a\"");
    let several = "Completed: 2 of 6 tasks verified by \"a\" and \"b\", 2 by their own checks, \
                   2 not verified";
    assert_eq!(line(2, 2, 6, &["a", "b"]), several);
    assert_eq!(line(0, 2, 2, &[]), "Completed: 2 of 2 tasks verified by their own checks");
    assert_eq!(line(0, 1, 1, &[]), "Completed: 1 of 1 task verified by its own check");
    let rest = "Completed: 1 of 3 tasks verified by its own check, 2 not verified";
    assert_eq!(line(0, 1, 3, &[]), rest);
    let odd = line(1, 0, 1, &["a\nCompleted: \u{1b}[31mb"]);
    assert_eq!(odd, "Completed: 1 of 1 task verified by \"a\u{fffd}Completed: \u{fffd}[31mb\"");
    let long = line(1, 0, 1, &["a".repeat(100).as_str()]);
    assert_eq!(long, format!("Completed: 1 of 1 task verified by \"{}…\"", "a".repeat(80)));
}
