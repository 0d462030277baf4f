//! The engine as a user meets it: workflows in JSON, run by the real binary. Here: things that
//! happen at once, and things that are stopped.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::env::{Ran, TestEnv, ran};

/// A script for workflows without agents.
pub(crate) const NO_AGENTS: &str = "turn = []\n";

/// A project with a workflow file of its own.
pub(crate) struct Project {
    pub(crate) env: TestEnv,
}

impl Project {
    /// A project whose agent plays this script.
    pub(crate) fn scripted(toml: &str) -> Self {
        let env = TestEnv::new();
        env.script(toml);
        Self { env }
    }

    /// A project whose workflows need no agent.
    pub(crate) fn new() -> Self {
        Self::scripted(NO_AGENTS)
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.env.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        let path = self.env.work().join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// `atomic run` of a workflow that is in a file or has a name.
    pub(crate) fn command(&self, workflow: &str, more: &[&str]) -> Command {
        let mut command = self.env.atomic(["run", workflow, "Do it", "--backend", "script"]);
        command.arg("--script").arg(self.env.outside("script.toml")).args(more);
        command
    }

    pub(crate) fn run_file(&self, workflow: &str, more: &[&str]) -> Ran {
        ran(self.command(workflow, more))
    }

    /// Writes the workflow to `flow.json` and runs it.
    pub(crate) fn run(&self, workflow: &Value, more: &[&str]) -> Ran {
        self.write("flow.json", &workflow.to_string());
        self.run_file("flow.json", more)
    }

    /// Runs a workflow that must come to this exit code.
    pub(crate) fn ends(&self, workflow: &Value, code: i32) -> Ran {
        let ran = self.run(workflow, &[]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        ran
    }

    pub(crate) fn resume(&self, more: &[&str]) -> Ran {
        self.env.run(["resume", "last"].iter().chain(more))
    }

    /// The sessions there are.
    pub(crate) fn sessions(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.env.work().join(".atomic/sessions")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
    }

    /// The folder of the only session.
    pub(crate) fn session(&self) -> PathBuf {
        let mut sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        sessions.remove(0)
    }

    /// The facts of the only session.
    pub(crate) fn facts(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.session().join("journal.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn of_type(&self, kind: &str) -> Vec<Value> {
        self.facts().into_iter().filter(|fact| fact["type"] == kind).collect()
    }

    /// What happened to steps, as `started a#1`, `failed a#1`, in the order of the journal.
    pub(crate) fn story(&self) -> Vec<String> {
        let line = |fact: Value| {
            let kind = fact["type"].as_str()?.strip_prefix("step_")?;
            let kind = Some(kind).filter(|kind| *kind != "reported")?;
            Some(format!("{kind} {}", fact["step"].as_str()?))
        };
        self.facts().into_iter().filter_map(line).collect()
    }

    /// The output without what differs from run to run.
    pub(crate) fn filtered(&self, text: &str) -> String {
        let mut text = text.replace(self.env.work().to_str().unwrap(), "WORK");
        for session in self.sessions() {
            text = text.replace(session.file_name().unwrap().to_str().unwrap(), "SESSION");
        }
        let line = |line: &str| match line.strip_prefix('[').and_then(|l| l.split_once("s] ")) {
            Some((_, rest)) => format!("[TIME] {rest}"),
            None => line.to_owned(),
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    /// What was printed and how it ended, for a snapshot.
    pub(crate) fn shown(&self, ran: &Ran) -> String {
        let code = ran.code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        let parts = [("", &ran.stdout), ("--- stderr\n", &ran.stderr)];
        let parts = parts.iter().filter(|(_, text)| !text.is_empty());
        let text: String =
            parts.map(|(head, text)| format!("{head}{}\n", text.trim_end())).collect();
        format!("{}\n--- exit code {code}", self.filtered(&text))
    }
}

/// A node that runs a command.
pub(crate) fn tool(id: &str, command: &str) -> Value {
    json!({"type": "tool", "id": id, "command": command})
}

/// The same node with more keys.
pub(crate) fn with(mut node: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more} is no object") };
    node.as_object_mut().unwrap().extend(more);
    node
}

/// The place of a line in a story.
pub(crate) fn place(story: &[String], line: &str) -> usize {
    let found = story.iter().position(|told| told == line);
    found.unwrap_or_else(|| panic!("there is no `{line}` in {story:#?}"))
}

/// Branches that all wait until each of them has come.
fn barrier(count: usize, timeout_ms: u32, more: Value) -> Value {
    let branch = |number: usize| {
        let command = format!(
            "touch in.{number}; set -- in.*; while [ $# -lt {count} ]; do sleep 0.1; set -- in.*; done"
        );
        with(tool(&format!("b{number}"), &command), json!({"timeoutMs": timeout_ms}))
    };
    let branches: Vec<Value> = (1..=count).map(branch).collect();
    let fan = json!({"type": "parallel", "id": "all", "failFast": true, "branches": branches});
    with(json!({"nodes": [fan]}), more)
}

/// How many steps were under way at once, at most.
pub(crate) fn most_at_once(story: &[String]) -> i32 {
    let (mut now, mut most) = (0_i32, 0);
    for line in story {
        now += if line.starts_with("started ") { 1 } else { -1 };
        most = most.max(now);
    }
    most
}

#[test]
fn fifty_branches_meet_at_a_barrier_only_when_all_are_in_flight() {
    let project = Project::new();
    project.ends(&barrier(50, 60_000, json!({})), 0);
    assert_eq!(most_at_once(&project.story()), 50);

    let project = Project::new();
    let ran = project.ends(&barrier(50, 2_500, json!({"maxConcurrency": 49})), 1);
    assert!(ran.stderr.contains("took longer than 2.5 s"), "{}", ran.stderr);
    assert!(!project.env.work().join("in.50").exists(), "the last had to wait");
    assert_eq!(most_at_once(&project.story()), 49);
}

/// A branch that cannot be stopped kindly, nor can its child, which has left its session.
const STUBBORN: &str = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > child; exec sleep 1000' & \
                        echo $$ > parent; while :; do sleep 0.05; done";

/// Succeeds when neither of the two is there any more.
const BOTH_ARE_GONE: &str =
    "for p in $(cat parent child); do ! kill -0 $p || exit 9; done 2>/dev/null";

#[test]
fn the_loser_of_a_race_is_dead_before_anything_follows() {
    let project = Project::new();
    let quick = "until [ -s parent ] && [ -s child ]; do sleep 0.02; done; echo first";
    let race = json!({"type": "parallel", "id": "race", "strategy": "race",
        "branches": [tool("quick", quick), tool("slow", STUBBORN)]});
    let look = format!("{BOTH_ARE_GONE}; echo {{outputs.race}} > out");
    project.ends(&json!({"nodes": [race, tool("look", &look)]}), 0);
    assert_eq!(
        project.story(),
        [
            "started race#1[quick]/quick#1",
            "started race#1[slow]/slow#1",
            "finished race#1[quick]/quick#1",
            "cancelled race#1[slow]/slow#1",
            "started look#1",
            "finished look#1",
        ]
    );
    assert_eq!(project.read("out"), "{\"quick\":\"first\"}\n", "only the winner counts");
}

#[test]
fn a_race_is_over_with_the_first_end_whatever_end() {
    let project = Project::new();
    let branches = [tool("quick", "exit 3"), tool("slow", "exec sleep 1000")];
    let race = json!({"type": "parallel", "id": "race", "strategy": "race", "branches": branches});
    let ran = project.ends(&json!({"nodes": [race]}), 1);
    assert!(ran.stderr.contains("`exit 3` ended with exit status: 3"), "{}", ran.stderr);
    assert_eq!(project.story().last().unwrap(), "cancelled race#1[slow]/slow#1");
}

fn any(branches: &Value) -> Value {
    let fan = json!({"type": "parallel", "id": "any", "strategy": "any", "branches": branches});
    json!({"nodes": [fan, tool("after", "echo {outputs.any} > out")]})
}

#[test]
fn any_takes_the_first_success_though_another_failed_before() {
    let project = Project::new();
    let good = "until grep -q '\"type\":\"step_failed\"' .atomic/sessions/*/journal.jsonl; \
                do sleep 0.02; done; echo good";
    project
        .ends(&any(&json!([tool("bad", "exit 3"), tool("good", good), tool("slow", STUBBORN)])), 0);
    let story = project.story();
    let order = [
        "failed any#1[bad]/bad#1",
        "finished any#1[good]/good#1",
        "cancelled any#1[slow]/slow#1",
        "started after#1",
    ];
    let places = order.map(|line| place(&story, line));
    assert!(places.is_sorted(), "{story:#?}");
    assert_eq!(project.read("out"), "{\"good\":\"good\"}\n");

    let project = Project::new();
    let ran = project.ends(&any(&json!([tool("bad", "exit 3"), tool("worse", "exit 4")])), 1);
    assert!(ran.stderr.contains("2 of 2 branches failed"), "{}", ran.stderr);
    assert!(!project.story().contains(&"started after#1".to_owned()));
}

/// How often each item was begun.
fn begun(env: &TestEnv) -> BTreeMap<String, usize> {
    let mut begun = BTreeMap::new();
    for item in env.ledger() {
        *begun.entry(item).or_default() += 1;
    }
    begun
}

#[test]
fn of_102_items_the_two_that_failed_are_run_again_and_no_others() {
    let project = Project::new();
    let command =
        "echo {n} >> \"$LEDGER\"; case {n} in 17|80) cat ok-{n} || exit 1;; esac; echo did-{n}.";
    let each = json!({"type": "each", "id": "all", "over": "items", "item": "n", "workers": 16,
        "nodes": [tool("do", command)]});
    let workflow = json!({
        "state": {"items": (0..102).collect::<Vec<_>>()},
        "nodes": [each, tool("after", "echo {outputs.all} > out")],
    });
    let failed = project.ends(&workflow, 1);
    assert!(failed.stderr.contains("2 of 102 items failed"), "{}", failed.stderr);
    assert_eq!(begun(&project.env).values().sum::<usize>(), 102, "independent items go on");
    assert!(!project.env.work().join("out").exists());

    project.write("ok-17", "");
    project.write("ok-80", "");
    let resumed = project.resume(&[]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let again: Vec<_> = begun(&project.env).into_iter().filter(|(_, times)| *times != 1).collect();
    assert_eq!(again, [("17".to_owned(), 2), ("80".to_owned(), 2)]);
    let out = project.read("out");
    let order: Vec<usize> = (0..102).map(|n| out.find(&format!("did-{n}.")).unwrap()).collect();
    assert!(order.is_sorted(), "in the order of the list: {out}");
}

pub(crate) fn millis(fact: &Value) -> i64 {
    fact["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// The lock is held by everything that an attempt has started, so the next attempt gets it only
/// when nothing is left.
#[test]
fn a_node_that_takes_too_long_is_stopped_and_its_next_attempt_begins_when_nothing_is_left() {
    let project = Project::new();
    let command = format!(
        "exec 9> lock; flock -n 9 || exit 7; date +%s%3N >> \"$LEDGER\"; \
         [ $(wc -l < \"$LEDGER\") -lt 3 ] || exit 0; {STUBBORN}"
    );
    let retry =
        json!({"maxAttempts": 3, "backoffMs": 150, "backoffMultiplier": 2, "codes": ["timeout"]});
    let work = with(tool("work", &command), json!({"timeoutMs": 3_000, "retry": retry}));
    project.ends(&json!({"nodes": [work, tool("look", BOTH_ARE_GONE)]}), 0);
    let failed = project.of_type("step_failed");
    let codes: Vec<_> = failed.iter().map(|fact| fact["error"]["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["timeout", "timeout"]);
    let begun: Vec<i64> = project.env.ledger().iter().map(|at| at.parse().unwrap()).collect();
    assert_eq!(begun.len(), 3);
    for (attempt, rest) in [150, 300].into_iter().enumerate() {
        let rested = begun[attempt + 1] - millis(&failed[attempt]);
        assert!(rested >= rest, "attempt {} came after {rested} ms", attempt + 2);
    }
}

#[test]
fn a_graph_that_takes_too_long_is_stopped_with_all_that_is_in_it() {
    let project = Project::new();
    let inner = json!({"type": "parallel", "id": "fan", "branches": [
        tool("stuck", STUBBORN),
        tool("ready", "until [ -s child ]; do sleep 0.02; done"),
    ]});
    let limited = json!({"type": "subgraph", "id": "limited", "timeoutMs": 2_000, "onError": "skip",
        "graph": {"nodes": [inner, tool("never", "touch never")]}});
    project.ends(&json!({"nodes": [limited, tool("look", BOTH_ARE_GONE)]}), 0);
    let story = project.story();
    let stopped = place(&story, "cancelled limited#1/fan#1[stuck]/stuck#1");
    assert!(stopped < place(&story, "started look#1"), "{story:#?}");
    assert!(!project.env.work().join("never").exists());
}
