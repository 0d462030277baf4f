//! What has to be so after a crash, told from the journal and the ledger alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// All attempts at each step, in order.
pub(crate) type Story = BTreeMap<String, Vec<Attempt>>;

/// One attempt at a step, as the journal tells it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attempt {
    how: String,
    /// Whether it is for an agent or a check, which put themselves in the ledger.
    acts: bool,
    /// Whether a conversation was opened in it.
    opened: bool,
    end: Option<End>,
}

#[derive(Clone, Debug, PartialEq)]
enum End {
    Finished,
    Failed,
    Lost { reason: String },
}

impl Attempt {
    /// Whether it can be continued: it has opened a conversation, or was to go on with one.
    fn has_conversation(&self) -> bool {
        self.opened || self.how == "continued"
    }

    /// Whether it was given up because it needed an answer, and went on when that came.
    fn has_waited(&self) -> bool {
        matches!(&self.end, Some(End::Lost { reason }) if reason.contains("waiting for an answer"))
    }
}

/// A line of the ledger: `<kind> <session>/<step>/<attempt>`.
type Entry = (String, String, usize);

fn text<'v>(fact: &'v Value, field: &str) -> &'v str {
    fact[field].as_str().unwrap_or_default()
}

/// Reads the attempts at each step from the facts. A finished step that is started again, or an
/// attempt that is out of order, is found here.
pub(crate) fn story(facts: &[Value]) -> Story {
    let mut story = Story::new();
    for fact in facts {
        let attempts = story.entry(text(fact, "step").to_owned()).or_default();
        let is_current = fact["attempt"].as_u64() == Some(attempts.len() as u64);
        let kind = text(fact, "type");
        if kind == "step_started" {
            let before = attempts.last().and_then(|attempt| attempt.end.clone());
            let may_start = attempts.is_empty() || matches!(before, Some(End::Lost { .. }));
            assert!(may_start, "a step is started though it has ended or still runs: {fact}");
            assert_eq!(fact["attempt"], attempts.len() + 1, "{fact}");
            attempts.push(Attempt {
                how: text(fact, "how").to_owned(),
                acts: fact.get("workspace").is_some(),
                opened: false,
                end: None,
            });
            continue;
        }
        let end = match kind {
            "conversation_opened" => None,
            "step_finished" => Some(End::Finished),
            "step_failed" => Some(End::Failed),
            "step_lost" => Some(End::Lost { reason: text(fact, "reason").to_owned() }),
            _ => continue,
        };
        let current = attempts.last_mut().filter(|attempt| is_current && attempt.end.is_none());
        let current = current.unwrap_or_else(|| panic!("this attempt does not run: {fact}"));
        current.opened |= end.is_none();
        current.end = end;
    }
    story.retain(|_, attempts| !attempts.is_empty());
    story
}

/// The steps that were carried out to their end.
pub(crate) fn finished(story: &Story) -> BTreeSet<String> {
    let ended =
        |attempts: &[Attempt]| attempts.last().is_some_and(|a| a.end == Some(End::Finished));
    story.iter().filter(|(_, attempts)| ended(attempts)).map(|(step, _)| step.clone()).collect()
}

fn entries(ledger: &[String]) -> Vec<Entry> {
    let entry = |line: &String| {
        let (kind, marker) = line.split_once(' ')?;
        let (_session, place) = marker.split_once('/')?;
        let (step, attempt) = place.rsplit_once('/')?;
        Some((kind.to_owned(), step.to_owned(), attempt.parse().ok()?))
    };
    let read = |line| entry(line).unwrap_or_else(|| panic!("no line of the ledger: {line:?}"));
    ledger.iter().map(read).collect()
}

/// The steps in the ledger, with how often each kind of turn was begun in them.
pub(crate) fn begun(ledger: &[String]) -> BTreeMap<(String, String), usize> {
    let mut begun = BTreeMap::new();
    for (kind, step, _) in entries(ledger) {
        *begun.entry((kind, step)).or_default() += 1;
    }
    begun
}

/// Nothing was begun that is not on disk as started, no agent was prompted before it was on disk
/// how to find it again, nothing was done twice in one attempt, and whatever has finished was
/// really begun.
pub(crate) fn check_ledger(story: &Story, ledger: &[String]) {
    let entries = entries(ledger);
    let mut seen = BTreeSet::new();
    for entry in &entries {
        let (kind, step, attempt) = entry;
        let started = story.get(step).and_then(|attempts| attempts.get(attempt - 1));
        let started =
            started.unwrap_or_else(|| panic!("{entry:?} was begun before it was on disk"));
        assert!(started.opened || kind == "gate", "{entry:?} was prompted too early");
        assert!(seen.insert(entry), "{entry:?} is in the ledger twice for the same attempt");
    }
    for (step, attempts) in story {
        let last = attempts.len();
        if attempts.iter().any(|attempt| attempt.acts && attempt.end == Some(End::Finished)) {
            let found = entries.iter().any(|(_, s, attempt)| s == step && *attempt == last);
            assert!(found, "{step} is finished, but its last attempt is not in the ledger");
        }
    }
}

/// What was on disk, and in the ledger, when the program was killed.
pub(crate) struct Kill {
    pub(crate) facts: Vec<Value>,
    /// Known when everything of the killed program was gone before the next began.
    pub(crate) ledger: Option<Vec<String>>,
}

/// What was on disk is still there, what was finished was not done again, and what was cut off is
/// said to be, and is continued or run again.
pub(crate) fn check_kill(kill: &Kill, facts: &[Value]) {
    assert!(facts.starts_with(&kill.facts), "facts that were on disk have changed");
    let (before, after) = (story(&kill.facts), story(facts));
    for (step, attempts) in &before {
        let cut_off = attempts.len() - 1;
        if matches!(attempts[cut_off].end, Some(End::Finished | End::Failed)) {
            assert_eq!(after[step].len(), attempts.len(), "{step} had ended and was started again");
            continue;
        }
        let lost = &after[step][cut_off];
        // A question of the workflow is no work: it waits for its answer, whoever was killed.
        if asks(&kill.facts, step) && !lost.acts && lost.end == Some(End::Finished) {
            continue;
        }
        assert!(
            matches!(lost.end, Some(End::Lost { .. })),
            "{step} was cut off: {:?}",
            after[step]
        );
        let next = after[step].get(cut_off + 1);
        let next = next.unwrap_or_else(|| panic!("{step} was cut off and never started again"));
        let expected = if lost.has_conversation() { "continued" } else { "run_again" };
        assert_eq!(next.how, expected, "{step} was cut off: {:?}", after[step]);
    }
}

fn asks(facts: &[Value], step: &str) -> bool {
    facts.iter().any(|fact| fact["type"] == "question_asked" && text(fact, "step") == step)
}

/// After the last kill each step is begun once more exactly if its finish was not on disk (and
/// again after each time it had to wait for somebody to answer).
pub(crate) fn check_last_kill(kill: &Kill, facts: &[Value], ledger: &[String]) {
    let Some(ledger_then) = &kill.ledger else { return };
    let (story_then, story_now) = (story(&kill.facts), story(facts));
    check_ledger(&story_then, ledger_then);
    let (done_then, begun_then) = (finished(&story_then), begun(ledger_then));
    for (turn, now) in &begun(ledger) {
        let step = &turn.1;
        let attempts_then = story_then.get(step).map_or(0, Vec::len);
        let waited = story_now[step][attempts_then..].iter().filter(|a| a.has_waited()).count();
        let then = begun_then.get(turn).copied().unwrap_or(0);
        let more = if done_then.contains(step) { 0 } else { 1 + waited };
        assert_eq!(*now, then + more, "{turn:?} in the ledger: {:?}", story_now[step]);
    }
}

/// Nothing is called lost that no kill and no waiting cut off.
pub(crate) fn check_losses(kills: &[Kill], facts: &[Value]) {
    let cut_off: usize = kills
        .iter()
        .flat_map(|kill| story(&kill.facts).into_values())
        .filter(|attempts| attempts.last().is_some_and(|attempt| attempt.end.is_none()))
        .count();
    let lost =
        |attempt: &&Attempt| matches!(attempt.end, Some(End::Lost { .. })) && !attempt.has_waited();
    let lost = story(facts).values().flatten().filter(lost).count();
    assert!(lost <= cut_off, "{lost} attempts are called lost, {cut_off} were cut off");
}

/// Each question is asked, answered and delivered once.
pub(crate) fn check_questions(facts: &[Value], expected: usize) {
    let ids = |kind: &str| -> Vec<String> {
        let of_kind = facts.iter().filter(|fact| fact["type"] == kind);
        let mut ids: Vec<_> = of_kind.map(|fact| text(fact, "id").to_owned()).collect();
        ids.sort();
        ids
    };
    let asked = ids("question_asked");
    let distinct: BTreeSet<_> = asked.iter().collect();
    assert_eq!((asked.len(), distinct.len()), (expected, expected), "questions: {asked:?}");
    assert_eq!(ids("question_answered"), asked, "answers");
    assert_eq!(ids("answer_delivered"), asked, "deliveries");
}
