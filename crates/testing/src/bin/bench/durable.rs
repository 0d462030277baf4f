//! What it costs to put a step on disk, beside a bare append and sync of the same bytes.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use atomic_event::{Created, Event, FORMAT, How, Origin, Started, StepId, StepResult};
use atomic_runner::{Clock as _, SystemClock};
use atomic_session::{RealDisk, Session};
use serde_json::json;

use crate::measure::{best_and_median, timed};
use crate::{Scale, say, text};

pub(crate) fn measure(scale: Scale) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    say(&format!(
        "\nOn disk: one transition (a step finished, the next started) per append and sync, in {}\n",
        folder.path().display()
    ));
    let mut session = session(folder.path())?;
    let mut raw = Raw::new(&folder.path().join("raw"))?;
    let (mut ours, mut bare) = (vec![], vec![]);
    // Turn by turn, so that a disturbance meets both alike.
    for number in 0..scale.durable_steps {
        let before = session.length()?;
        ours.push(session.append(transition(number))?);
        let bytes = usize::try_from(session.length()? - before).unwrap_or(0);
        bare.push(raw.append(bytes)?);
    }
    let rate = |micros: f64| 1_000_000.0 / micros;
    let (our_best, our_median) = best_and_median(ours);
    let (bare_best, bare_median) = best_and_median(bare);
    say("| | best, µs | median, µs | per second (median) |");
    say("|---|---:|---:|---:|");
    for (name, best, median) in
        [("session", our_best, our_median), ("append + fdatasync", bare_best, bare_median)]
    {
        say(&format!("| {name} | {best:.0} | {median:.0} | {:.0} |", rate(median)));
    }
    let [best, median] = [our_best / bare_best, our_median / bare_median];
    say(&format!("| ratio | {best:.2} | {median:.2} | |"));
    fan(scale, &mut session, our_median)
}

/// Many steps that finish together are one append.
fn fan(scale: Scale, session: &mut Held, one_by_one: f64) -> Result<(), String> {
    let steps = scale.sizes[0];
    let mut together = vec![];
    for _ in 0..scale.repeats {
        let all = (0..steps).flat_map(transition).collect();
        together.push(session.append(all)? / steps as f64);
    }
    let (best, median) = best_and_median(together);
    say(&format!(
        "\nA fan of {steps} that finishes together: {best:.1} µs a step at best, {median:.1} in the \
         median, {:.0} times the rate of one by one",
        one_by_one / median
    ));
    Ok(())
}

/// A session and where its journal is.
struct Held {
    session: Session,
    journal: File,
}

impl Held {
    /// Records these facts; says how many microseconds that took.
    fn append(&mut self, events: Vec<Event>) -> Result<f64, String> {
        let at = SystemClock.now();
        let (time, _) = timed(|| self.session.append(events, at).map_err(text))?;
        Ok(time.as_secs_f64() * 1_000_000.0)
    }

    fn length(&self) -> Result<u64, String> {
        self.journal.metadata().map(|data| data.len()).map_err(text)
    }
}

fn session(folder: &Path) -> Result<Held, String> {
    let dir = folder.join("session");
    let first = Event::SessionCreated(Box::new(Created {
        format: FORMAT,
        session: "bench".into(),
        version: "0.0.0".to_owned(),
        workflow: "bench".into(),
        graph: json!({}),
        graph_hash: String::new(),
        prompt: String::new(),
        original_prompt: String::new(),
        workspace: folder.to_owned(),
        backend: "script".into(),
        model: None,
        settings: json!({}),
        state: [].into(),
        origin: Origin::default(),
    }));
    let at = SystemClock.now();
    let created =
        Session::create(Arc::new(RealDisk::default()), dir.clone(), "a benchmark", first, at);
    let (session, _) = created.map_err(text)?;
    let journal = File::open(dir.join("journal.jsonl")).map_err(text)?;
    Ok(Held { session, journal })
}

/// A step finished, the next one started.
fn transition(number: usize) -> Vec<Event> {
    let step = |number: usize| StepId::new(format!("loop#1[{number}]/work#1"));
    vec![
        Event::StepFinished {
            step: step(number),
            attempt: 1,
            result: StepResult::output("done").set("n", number),
            commit: None,
        },
        Event::StepStarted(Started {
            step: step(number + 1),
            attempt: 1,
            how: How::First,
            description: Some("Working".to_owned()),
            agent: None,
            backend: None,
            workspace: None,
            iteration: None,
            clears_context: false,
            lane: None,
        }),
    ]
}

/// A file that is only appended to.
struct Raw(File);

impl Raw {
    fn new(path: &Path) -> Result<Self, String> {
        OpenOptions::new().create(true).append(true).open(path).map(Self).map_err(text)
    }

    fn append(&mut self, bytes: usize) -> Result<f64, String> {
        let line = vec![b'x'; bytes];
        let (time, ()) = timed(|| {
            self.0.write_all(&line).map_err(text)?;
            self.0.sync_data().map_err(text)
        })?;
        Ok(time.as_secs_f64() * 1_000_000.0)
    }
}
