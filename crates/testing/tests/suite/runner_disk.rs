//! A full disk and a sync that fails: the run stops, says so, does nothing more, and goes on once
//! it can.

use atomic_runner::{RunError, Shown};
use tokio::sync::mpsc;

use crate::runner_stand::{Stand, on_one_thread};

#[test]
fn a_full_disk_stops_the_run_and_with_room_it_goes_on() {
    let whole = Stand::new();
    let expected = on_one_thread(whole.see_through()).unwrap();
    let all = whole.disk.bytes_written();
    let mut stopped = 0;
    for part in 0..40 {
        let stand = Stand::new();
        stand.disk.fail_after_bytes(all * part / 40);
        if let Err(error) = on_one_thread(stand.see_through()) {
            let text = error.to_string();
            assert!(text.contains("there is no room left on the disk for "), "{text}");
            assert!(text.contains("; make room and resume the session"), "{text}");
            stopped += 1;
        }
        assert_eq!(stand.misdeeds(), [""; 0], "{part} fortieths");
        stand.disk.make_room();
        stand.disk.kill();
        let finale = on_one_thread(stand.see_through()).unwrap();
        assert_eq!(finale.differences(&expected), [""; 0], "{part} fortieths");
        assert_eq!(stand.misdeeds(), [""; 0], "{part} fortieths");
    }
    assert!(stopped >= 30, "only {stopped} runs met the end of the disk");
}

/// Drives a new run; the first sync after fact `number` fails.
async fn with_a_failing_sync(stand: &Stand, number: usize) -> Result<(), RunError> {
    let (run, mut show) = stand.start()?;
    let (_wishes, intents) = mpsc::channel(1);
    let mut seen = 0;
    let driving = run.drive(intents);
    tokio::pin!(driving);
    loop {
        tokio::select! {
            biased;
            shown = show.next() => {
                seen += usize::from(matches!(shown, Some(Shown::Fact(_))));
                if seen == number {
                    stand.disk.fail_next_sync();
                    seen += 1;
                }
            }
            ended = &mut driving => return ended.map(drop),
        }
    }
}

#[test]
fn a_failing_sync_stops_the_run_and_a_resumed_one_goes_on() {
    let expected = on_one_thread(Stand::new().see_through()).unwrap();
    let mut stopped = 0;
    for number in 1.. {
        let stand = Stand::new();
        let Err(error) = on_one_thread(with_a_failing_sync(&stand, number)) else { break };
        let text = error.to_string();
        assert!(text.contains("could not ") && text.contains("input/output error"), "{text}");
        stopped += 1;
        // Nobody knows what such a disk has kept; it is what a power cut leaves.
        stand.disk.crash();
        assert_eq!(stand.misdeeds(), [""; 0], "after fact {number}");
        let finale = on_one_thread(stand.see_through()).unwrap();
        assert_eq!(finale.differences(&expected), [""; 0], "after fact {number}");
        assert_eq!(stand.misdeeds(), [""; 0], "after fact {number}");
    }
    assert!(stopped >= 20, "only {stopped} runs met a failing sync");
}
