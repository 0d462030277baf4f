//! A workflow with most kinds of nodes, killed with SIGKILL at its facts and taken up again: it ends
//! as if nothing had happened, and nothing that was finished is done twice. The other kinds are in
//! `engine_crash_more`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use atomic_testing::sample::Sample;
use serde_json::{Value, json};

use crate::crash::enough_were_killed;
use crate::crash_case::{Case, side_by_side};
use crate::crash_scene::Scene;
use crate::engine::with;

/// A command that first puts its step in the ledger.
pub(crate) fn tool(id: &str, command: &str) -> Value {
    crate::engine::tool(id, &format!("echo \"$ATOMIC_STEP\" >> \"$LEDGER\"; {command}"))
}

pub(crate) fn agent(id: &str) -> Value {
    json!({"type": "agent", "id": id, "prompt": format!("Do {id}")})
}

pub(crate) const FILE: &str = "everything.json";

const SCRIPT: &str = r#"
[[turn]]
do = [{ run = 'echo "$ATOMIC_STEP" >> "$LEDGER"' }, { say = "A PLAN" }]
"#;

pub(crate) fn nodes() -> Value {
    // The round is known by the step's name, so it does not matter how often a round is begun.
    let enough = "case \"$ATOMIC_STEP\" in *'[2]'*) echo enough;; *) echo more;; esac";
    let says = json!({"says": {"node": "plan", "text": "PLAN"}});
    let inner = json!({"type": "each", "id": "deep", "over": "items", "node": tool("in", "echo {item} > deep-{item}")});
    let report = "printf '%s\\n' {outputs.plan} {outputs.both} {outputs.race} {outputs.files} \
                  {outputs.again} {outputs.joined} {outputs.ask} {outputs.breaks} > report";
    json!([
        tool("begin", "echo begun > begun"),
        agent("plan"),
        {"type": "parallel", "id": "both", "branches": [
            tool("left", "echo left"),
            {"id": "right", "nodes": [agent("ask-it"), tool("note-it", "echo {outputs.ask-it}")]},
        ]},
        {"type": "parallel", "id": "race", "strategy": "race", "branches": [
            tool("quick", "echo quick"), tool("hangs", "exec sleep 1000"),
        ]},
        {"type": "each", "id": "files", "over": "items", "item": "name", "workers": 2,
            "nodes": [tool("make", "echo {name} > made-{name}"), tool("show", "cat made-{name}")]},
        {"type": "loop", "id": "again", "maxIterations": 5, "nodes": [tool("count", enough)],
            "until": {"says": {"node": "count", "text": "enough"}}},
        {"type": "decision", "id": "which", "routes": [{"condition": says, "target": "yes"}],
            "fallback": "no"},
        tool("yes", "true"),
        tool("no", "touch wrong-way"),
        tool("one", "echo 1"),
        tool("two", "echo 2"),
        tool("joined", "echo {outputs.one}{outputs.two}"),
        {"type": "subgraph", "id": "apart", "graph": {"nodes": [inner, tool("sum", "echo {outputs.deep}")]}},
        {"type": "askUser", "id": "ask", "question": "Well?", "options": ["No", "Yes (Recommended)"]},
        tool("breaks", "exit 3"),
        tool("never", "touch wrong-way"),
        tool("rescue", "echo rescued > rescued"),
        tool("report", report),
    ])
}

fn everything() -> Scene {
    let in_a_row = ["begin", "plan", "both", "race", "files", "again", "which"];
    let after = ["joined", "apart", "ask", "breaks", "never"];
    let row = |nodes: &[&str]| -> Vec<Value> {
        nodes.windows(2).map(|pair| json!({"from": pair[0], "to": pair[1]})).collect()
    };
    let mut edges = row(&in_a_row);
    for way in ["yes", "no"] {
        edges.extend([json!({"from": way, "to": "one"}), json!({"from": way, "to": "two"})]);
    }
    edges.push(json!({"from": ["one", "two"], "to": "joined"}));
    edges.extend(row(&after));
    edges.push(json!({"from": "rescue", "to": "report"}));
    let more = json!({"nodes": nodes(), "edges": edges, "catch": "rescue"});
    let workflow = with(json!({"state": {"items": ["x", "y", "z"]}}), more);
    Scene::of_file(FILE, workflow.to_string(), SCRIPT.to_owned())
}

/// What came of it.
#[derive(Debug, PartialEq)]
pub(crate) struct End {
    pub(crate) files: BTreeMap<String, String>,
    /// The steps that came to an end, with how.
    steps: BTreeSet<(String, String)>,
}

fn steps(facts: &[Value], kind: &str) -> BTreeSet<String> {
    let of_kind = facts.iter().filter(|fact| fact["type"] == kind);
    of_kind.map(|fact| fact["step"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn end(case: &Case<'_>) -> End {
    let facts = case.facts();
    let last = facts.last().unwrap();
    assert_eq!(last["ending"]["kind"], "completed", "{last}");
    // What has lost the race is stopped, or was cut off with the program.
    let kinds = ["step_finished", "step_failed"];
    let ends =
        |kind: &str| steps(&facts, kind).into_iter().map(move |s| (s, kind.to_owned())).collect();
    let steps = kinds.iter().flat_map(|kind| -> Vec<_> { ends(kind) }).collect();
    let files = fs::read_dir(case.env.work()).unwrap().map(|entry| entry.unwrap().path());
    let own = |path: &PathBuf| path.is_dir() || path.ends_with(FILE);
    let files = files.filter(|path| !own(path)).map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    End { files: files.collect(), steps }
}

/// How often each step was begun, by the ledger; no attempt is begun twice.
pub(crate) fn begun(ledger: &[String]) -> BTreeMap<String, usize> {
    let attempts: BTreeSet<&String> = ledger.iter().collect();
    assert_eq!(attempts.len(), ledger.len(), "an attempt was begun twice: {ledger:#?}");
    let mut begun = BTreeMap::new();
    for line in ledger {
        let (_session, place) = line.split_once('/').unwrap();
        let (step, _attempt) = place.rsplit_once('/').unwrap();
        *begun.entry(step.to_owned()).or_default() += 1;
    }
    begun
}

/// Nothing that was finished when the program was killed was begun again.
pub(crate) fn check_kills(case: &Case<'_>) {
    let now = begun(&case.env.ledger());
    for kill in &case.kills {
        assert!(case.facts().starts_with(&kill.facts), "facts that were on disk have changed");
        let Some(ledger) = &kill.ledger else { continue };
        let then = begun(ledger);
        for step in steps(&kill.facts, "step_finished") {
            assert_eq!(now.get(&step), then.get(&step), "{step} had finished");
        }
    }
    for (step, times) in now {
        assert!(times <= 1 + case.kills.len(), "{step} was begun {times} times");
    }
}

#[test]
fn nodes_of_most_kinds_survive_being_killed() {
    let scene = everything();
    let model = Case::new(&scene, "undisturbed");
    model.ends(model.run(), 0);
    let expected = end(&model);
    let all_once = begun(&model.env.ledger()).values().all(|times| *times == 1);
    assert!(all_once, "{:?}", model.env.ledger());
    insta::assert_snapshot!(expected.files["report"], @r#"
    A PLAN
    {"left":"left","right":"A PLAN"}
    {"quick":"quick"}
    {"0":"x","1":"y","2":"z"}
    enough
    12
    Yes (Recommended)
    {"error":{"code":"shell","message":"`echo \"$ATOMIC_STEP\" >> \"$LEDGER\"; exit 3` ended with exit status: 3","detail":""}}
    "#);
    let hits = model.hits();
    assert!(hits["append.fact"] > 90, "only {} facts", hits["append.fact"]);
    let places = |point: &'static str| (1..=hits[point]).step_by(2).map(move |n| (point, n));
    let places: Vec<_> = places("append.fact").chain(places("effect.done")).collect();
    let places = Sample::from_env().of(places);
    let (armed, killed) = (places.len(), AtomicUsize::new(0));
    side_by_side(places, |(point, n)| {
        let mut case = Case::new(&scene, format!("everything, killed at {point}:{n}"));
        let mut dies = case.dies_at(case.run(), point, n);
        killed.fetch_add(usize::from(dies), Ordering::Relaxed);
        if dies && !case.note_kill(n % 4 == 1) {
            return;
        }
        // Every other time it is killed once more while it is taken up.
        if dies && n % 4 == 3 {
            dies = case.dies_at(case.resume(), "append.fact", 1 + n % 5);
            assert!(!dies || case.note_kill(true));
        }
        if dies {
            case.resume_to_the_end();
        }
        assert_eq!(end(&case), expected, "killed at {point}:{n}");
        check_kills(&case);
        case.nothing_survives();
    });
    enough_were_killed(killed.into_inner(), armed, 80);
}
