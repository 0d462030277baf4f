//! Snapshots of the events, exit codes and messages of `atomic` in the same scenarios on every backend.
//! A refactoring of the backends must not change them. `cargo xtask test --against <binary> transcripts`
//! compares another build.

use std::collections::BTreeMap;
use std::fs;

use atomic_testing::agents::CLAUDE;
use atomic_testing::model::{Action, Break, Ending, Reply, Script, Turn, Usage};
use serde_json::{Value, json};

use super::Stand;
use super::program::Program;
use crate::env::{Ran, eventually};
use crate::process::{Running, SOON};

/// Backends under test.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Agent {
    Scripted,
    Itself(Program),
    OverAcp(Program),
}

/// Actions of the agent in a turn.
#[derive(Clone, Debug)]
enum Act {
    Say(&'static str),
    Think(&'static str),
    Run(&'static str),
    Read(&'static str),
    Write(&'static str, &'static str),
    Edit(&'static str, &'static str, &'static str),
    Ask(&'static [&'static str]),
    /// The model never answers.
    Hang,
    /// The provider refuses with a status.
    Refuse(u16),
    /// The model declines to answer.
    Decline,
    /// The answer is cut off.
    Cut,
}

use Act::{Ask, Cut, Decline, Edit, Hang, Read, Refuse, Run, Say, Think, Write};

impl Agent {
    fn programs(self) -> Vec<Program> {
        match self {
            Self::Scripted => vec![],
            Self::Itself(program) | Self::OverAcp(program) => vec![program],
        }
    }

    fn backend(self) -> &'static str {
        match self {
            Self::Scripted => "script",
            Self::Itself(program) => program.name(),
            Self::OverAcp(Program::Copilot) => "acp:copilot --acp",
            Self::OverAcp(_) => "acp:opencode acp",
        }
    }

    /// The replies of a model that has the program do this.
    fn reply(program: Program, act: &Act) -> Reply {
        let reply = match act {
            Say(text) => Reply { chunk: 7.try_into().ok(), ..Reply::say(text) },
            Think(text) => Reply::default().and(Action::Think((*text).to_owned())),
            Run(command) => program.runs(command),
            Read(path) => program.reads(path),
            Write(path, text) => program.writes(path, text),
            Edit(path, old, new) => program.edits(path, old, new),
            Ask(questions) => program.asks(questions),
            Hang => Reply { ending: Ending::Hang, ..Reply::default() },
            Refuse(status) => Reply::error(*status),
            Decline => Reply { stop: Some("refusal".to_owned()), ..Reply::default() },
            Cut => Reply::broken(Break::Cut),
        };
        let usage = Usage {
            input: Some(1_000),
            output: Some(100),
            cache_read: Some(0),
            cache_write: Some(0),
        };
        Reply { usage, ..reply }
    }

    /// The same in the words of a script.
    fn scripted(act: &Act) -> Vec<Value> {
        let fail = |how: &str| vec![json!({ "fail": how })];
        match act {
            Say(text) => vec![json!({ "say": text })],
            // It has no thoughts.
            Think(_) => vec![],
            Run(command) => vec![json!({ "run": command })],
            Read(path) => vec![json!({ "run": format!("cat {path}") })],
            Write(path, text) => vec![json!({ "write": { "path": path, "text": text } })],
            Edit(path, find, replace) => {
                vec![json!({ "edit": { "path": path, "find": find, "replace": replace } })]
            }
            Ask(questions) => {
                let options = [json!({ "label": "Red" }), json!({ "label": "Blue" })];
                let ask = |question: &&str| json!({ "ask": { "question": question, "options": options } });
                questions.iter().map(ask).collect()
            }
            Hang => fail("hang"),
            Refuse(401) => fail("login"),
            Refuse(404) => fail("model_unknown"),
            Refuse(429) => fail("rate_limit"),
            Refuse(500) => fail("unavailable"),
            Refuse(529) => fail("overloaded"),
            Refuse(_) => fail("rejected"),
            Decline => fail("refused"),
            Cut => fail("exit"),
        }
    }
}

/// A scenario that is played on an agent, and what has been seen of it.
struct Scene {
    agent: Agent,
    stand: Stand,
    seen: String,
    /// Names of conversations in the transcript, by their ids.
    names: BTreeMap<String, String>,
    /// How many events were seen.
    events: usize,
    /// Whether costs and the number of events depend on the moment at which something happens.
    is_timed: bool,
    /// Whether the provider is out of order, which programs tell in changing words.
    is_outage: bool,
}

impl Scene {
    /// An agent that does this when it is prompted so.
    fn new(agent: Agent, turns: &[(&str, &[Act])]) -> Self {
        let stand = Stand::of(&agent.programs(), Script::new());
        let scene = Self {
            agent,
            stand,
            seen: String::new(),
            names: BTreeMap::new(),
            events: 0,
            is_timed: false,
            is_outage: false,
        };
        fs::write(scene.stand.env.work().join("notes.txt"), "It is noted.\n").unwrap();
        scene.does(turns);
        scene
    }

    /// From now on it does this.
    fn does(&self, turns: &[(&str, &[Act])]) {
        match self.agent {
            Agent::Scripted => {
                let turn = |(prompt, acts): &(&str, &[Act])| {
                    let acts: Vec<Value> = acts.iter().flat_map(Agent::scripted).collect();
                    json!({ "prompt": [prompt], "do": acts })
                };
                let turns: Vec<Value> = turns.iter().map(turn).collect();
                let path = self.stand.env.outside("script.json");
                fs::write(path, json!({ "turn": turns }).to_string()).unwrap();
            }
            Agent::Itself(program) | Agent::OverAcp(program) => {
                let turn = |(prompt, acts): &(&str, &[Act])| {
                    let replies = acts.iter().map(|act| Agent::reply(program, act));
                    replies.fold(Turn::default().user(prompt), Turn::reply)
                };
                self.stand.server.replace(turns.iter().map(turn).fold(Script::new(), Script::with));
            }
        }
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.stand.atomic(args);
        if ["-p", "run"].contains(&args[0]) {
            command.args(["--backend", self.agent.backend()]);
            if self.agent == Agent::Scripted {
                command.arg("--script").arg(self.stand.env.outside("script.json"));
            }
        }
        command
    }

    /// Runs `atomic` to its end.
    fn runs(&mut self, args: &[&str]) {
        let ran = crate::env::ran(self.command(args));
        self.saw(&args.join(" "), ran);
    }

    /// Does something to `atomic` once the agent has used a tool.
    fn once_busy(&mut self, args: &[&str], then: impl FnOnce(Running) -> Ran) {
        let running = Running::start(self.command(args));
        let is_busy = || self.stand.env.journal().contains("\"tool_used\"");
        eventually("a tool was used", SOON, is_busy);
        let ran = then(running);
        self.saw(&args.join(" "), ran);
    }

    /// Writes down what was seen of a process: its output besides the events, and the events.
    fn saw(&mut self, what: &str, ran: Ran) {
        let Ran { code, stdout, stderr } = ran;
        let code = code.map_or("a signal".to_owned(), |code| code.to_string());
        let journal = self.stand.env.journal();
        let events: Vec<Value> = journal
            .lines()
            .skip(self.events)
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        self.events += events.len();
        for event in &events {
            if let Some(id) = event["session"].as_str() {
                self.names.entry(id.to_owned()).or_insert("<session>".to_owned());
            }
            if let Some(id) = event["conversation"].as_str() {
                let count = self.names.len();
                self.names.entry(id.to_owned()).or_insert(format!("conversation-{count}"));
            }
        }
        let events: Vec<String> = events.into_iter().map(|event| self.event(event)).collect();
        let work = self.stand.env.work().display().to_string();
        let what = self.normal(&what.replace(&work, "<work>"));
        self.seen += &format!("$ atomic {what}\nexit {code}\n");
        for (name, text) in [("stdout", &stdout), ("stderr", &stderr)] {
            for line in text.lines() {
                // `--json` prints the events.
                let event = serde_json::from_str(line).ok().map(|event| self.event(event));
                if event.is_none_or(|event| !events.contains(&event)) {
                    let line = self.normal(line);
                    self.seen += &format!("{name}: {line}\n");
                }
            }
        }
        let mut kept: Vec<&String> = vec![];
        for event in &events {
            // The number of retries and of turns in a time depends on chance, and so does their cost.
            let is_retry = event.contains("\"kind\":\"waited\"");
            let is_cost = event.contains("\"kind\":\"spent\"");
            // A broken answer may count as one.
            let is_back = event.starts_with("provider_back ");
            let may_repeat = is_retry || self.is_timed;
            let is_left_out = is_cost && self.is_timed || is_back && self.is_outage;
            if !(may_repeat && kept.contains(&event) || is_left_out) {
                kept.push(event);
                self.seen += event;
                self.seen.push('\n');
            }
        }
    }

    /// An event without what differs from run to run.
    fn event(&self, event: Value) -> String {
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let left_out: &[&str] = match kind.as_str() {
            "session_created" => &[
                "format",
                "session",
                "version",
                "graph",
                "graph_hash",
                "settings",
                "state",
                "original_prompt",
            ],
            "session_resumed" => &["version", "settings"],
            _ => &[],
        };
        let Value::Object(fields) = event else { panic!("not an event: {event}") };
        let general = ["seq", "at", "crc", "type", "workspace"];
        let kept = fields.into_iter().filter(|(name, _)| {
            !general.contains(&name.as_str()) && !left_out.contains(&name.as_str())
        });
        let mut sorted: BTreeMap<String, Value> = kept
            .map(|(name, value)| {
                let value = steady(&name, value);
                (name, value)
            })
            .collect();
        // Over ACP Copilot 1.0.102 tells an estimate of it.
        if self.agent == Agent::OverAcp(Program::Copilot)
            && let Some(report) = sorted.get_mut("report").and_then(Value::as_object_mut)
        {
            report.remove("context_tokens");
        }
        if self.is_outage {
            sorted.retain(|name, _| !["message", "reason"].contains(&name.as_str()));
        }
        self.normal(&format!("{kind} {}", serde_json::to_string(&sorted).unwrap()))
    }

    fn normal(&self, text: &str) -> String {
        let root = self.stand.env.outside("").display().to_string();
        let mut text = text.replace(root.trim_end_matches('/'), "<root>");
        let url = self.stand.server.url();
        text = text.replace(&url, "<model>").replace(url.trim_start_matches("http://"), "<model>");
        for (id, name) in &self.names {
            text = text.replace(id, name);
        }
        // Copilot adds how long it has retried.
        if let Some((head, tail)) = text.split_once("retry wait time: ")
            && let Some((_, tail)) = tail.split_once(" seconds")
        {
            text = format!("{head}retry wait time: <time> seconds{tail}");
        }
        without_clock(&text)
    }

    /// Compares what was seen with what was seen before.
    fn is(self, name: &str) {
        self.stand.has_no_processes();
        insta::assert_snapshot!(name, self.seen);
    }
}

/// A value without times and durations.
fn steady(name: &str, value: Value) -> Value {
    let is_time = ["until", "since", "retry_at"].contains(&name) || name.ends_with("_ms");
    match value {
        Value::Object(mut fields) => {
            if fields.get("kind").is_some_and(|kind| kind == "waited") {
                // The number of the retry.
                fields.remove("attempt");
            }
            let steady = |(name, value): (String, Value)| {
                let value = steady(&name, value);
                (name, value)
            };
            let sorted: BTreeMap<String, Value> = fields.into_iter().map(steady).collect();
            json!(sorted)
        }
        Value::Number(_) | Value::String(_) if is_time => json!("<time>"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            value
        }
    }
}

/// Replaces times of the day, such as `23:16:33`.
fn without_clock(text: &str) -> String {
    let is_clock = |part: &[u8]| {
        part.len() == 8
            && part.iter().enumerate().all(|(place, byte)| match place {
                2 | 5 => *byte == b':',
                _ => byte.is_ascii_digit(),
            })
    };
    let (mut rest, mut steady) = (text, String::new());
    while let Some(place) = rest.as_bytes().windows(8).position(is_clock) {
        steady += &rest[..place];
        steady += "<clock>";
        rest = &rest[place + 8..];
    }
    steady + rest
}

const TURN: [&str; 3] = ["-p", "Greet", "--json"];

fn text(agent: Agent) -> Scene {
    let mut scene = Scene::new(agent, &[("Greet", &[Say("Hello, you.")])]);
    scene.runs(&TURN);
    scene
}

fn streamed(agent: Agent) -> Scene {
    let acts = [Think("Let me see."), Say("First I look."), Run("true"), Say("Hello, you.")];
    let mut scene = Scene::new(agent, &[("Greet", &acts)]);
    scene.runs(&TURN[..2]);
    scene
}

fn tools(agent: Agent) -> Scene {
    let acts = [
        Read("notes.txt"),
        Run("echo out; echo err >&2"),
        Write("made.txt", "one\n"),
        Read("made.txt"),
        Edit("made.txt", "one", "two"),
        Say("It is done."),
    ];
    let mut scene = Scene::new(agent, &[("Greet", &acts)]);
    scene.runs(&TURN);
    scene
}

fn failing_tools(agent: Agent) -> Scene {
    let acts = [Run("echo no; exit 3"), Read("missing.txt"), Say("It did not work.")];
    let mut scene = Scene::new(agent, &[("Greet", &acts)]);
    scene.runs(&TURN);
    scene
}

fn a_question(agent: Agent) -> Scene {
    let ask: &[Act] = &[Ask(&["Which colour?"]), Say("So be it.")];
    let told: &[Act] = &[Say("Blue it is.")];
    let mut scene = Scene::new(agent, &[("answer: Blue", told), ("Greet", ask)]);
    scene.runs(&TURN);
    scene.runs(&["answer", "last", "Blue", "--resume", "--json"]);
    scene
}

fn nobody_to_ask(agent: Agent) -> Scene {
    let mut scene = Scene::new(agent, &[("Greet", &[Ask(&["Which colour?"]), Say("I decided.")])]);
    scene.runs(&[&TURN[..], &["--on-question", "fail"]].concat());
    scene
}

fn interrupted(agent: Agent) -> Scene {
    let mut scene = Scene::new(agent, &[("Greet", &[Run("true"), Hang])]);
    scene.is_timed = true;
    scene.once_busy(&TURN, |mut running| {
        running.signal("INT");
        running.end()
    });
    scene.does(&[("", &[Say("Hello again.")])]);
    scene.runs(&["resume", "last", "--json"]);
    scene
}

fn killed(agent: Agent) -> Scene {
    let mut scene = Scene::new(agent, &[("Greet", &[Run("true"), Hang])]);
    scene.is_timed = true;
    scene.once_busy(&TURN, |mut running| {
        running.signal("KILL");
        running.read_to_the_end()
    });
    scene.stand.has_no_processes();
    scene.does(&[("", &[Say("Hello again.")])]);
    scene.runs(&["resume", "last", "--json"]);
    scene
}

fn too_late(agent: Agent) -> Scene {
    let mut scene = Scene::new(agent, &[("Greet", &[Hang])]);
    let workflow = json!({ "name": "slow", "nodes": [
        { "type": "agent", "id": "slow", "prompt": "Greet", "timeoutMs": 8_000 },
    ] });
    scene.runs_workflow(&workflow);
    scene
}

fn a_lane(agent: Agent) -> Scene {
    let mut scene = Scene::new(
        agent,
        &[("Three", &[Say("Third.")]), ("Two", &[Say("Second.")]), ("One", &[Say("First.")])],
    );
    let workflow = json!({ "name": "lane", "nodes": [
        { "type": "agent", "id": "one", "prompt": "One" },
        { "type": "agent", "id": "two", "prompt": "Two" },
        { "type": "agent", "id": "three", "prompt": "Three", "fresh": true },
    ] });
    scene.runs_workflow(&workflow);
    scene
}

fn a_budget(agent: Agent) -> Scene {
    let acts = [Run("true"), Run("true"), Say("Nobody hears it.")];
    let mut scene = Scene::new(agent, &[("Greet", &acts)]);
    scene.runs(&[&TURN[..], &["--max-tokens", "1650"]].concat());
    scene
}

fn outage(agent: Agent, act: Act) -> Scene {
    let mut scene = Scene::new(agent, &[("Greet", &[act])]);
    (scene.is_timed, scene.is_outage) = (true, true);
    scene.runs(&TURN);
    scene
}

fn refused(agent: Agent, act: Act) -> Scene {
    let mut scene = Scene::new(agent, &[("Greet", &[act])]);
    scene.runs(&TURN);
    scene
}

impl Scene {
    fn runs_workflow(&mut self, workflow: &Value) {
        let path = self.stand.env.outside("workflow.json");
        fs::write(&path, workflow.to_string()).unwrap();
        let path = path.display().to_string();
        self.runs(&["run", &path, "Go", "--json"]);
    }
}

macro_rules! on_each_agent {
    ($($scenario:ident = $play:expr;)*) => {
        $(
            mod $scenario {
                use super::*;

                on_each_agent! { @of $scenario
                    scripted Agent::Scripted
                }

                mod long {
                    use super::*;

                    on_each_agent! { @of $scenario
                        claude Agent::Itself(Program::Claude(CLAUDE))
                        opencode Agent::Itself(Program::OpenCode)
                        copilot Agent::Itself(Program::Copilot)
                        opencode_over_acp Agent::OverAcp(Program::OpenCode)
                        copilot_over_acp Agent::OverAcp(Program::Copilot)
                    }
                }

                fn play(agent: Agent) -> Scene {
                    let play: fn(Agent) -> Scene = $play;
                    play(agent)
                }
            }
        )*
    };
    (@of $scenario:ident $($name:ident $agent:expr)*) => {
        $(
            #[test]
            fn $name() {
                let name = concat!(stringify!($scenario), "_", stringify!($name));
                play($agent).is(name);
            }
        )*
    };
}

on_each_agent! {
    says_a_text = text;
    is_streamed = streamed;
    uses_tools = tools;
    tools_fail = failing_tools;
    asks = a_question;
    has_nobody_to_ask = nobody_to_ask;
    is_interrupted = interrupted;
    is_killed = killed;
    takes_too_long = too_late;
    shares_a_lane = a_lane;
    meets_its_budget = a_budget;
    is_rejected = |agent| refused(agent, Refuse(400));
    is_not_logged_in = |agent| refused(agent, Refuse(401));
    has_no_such_model = |agent| refused(agent, Refuse(404));
    is_limited = |agent| outage(agent, Refuse(429));
    is_unavailable = |agent| outage(agent, Refuse(500));
    declines = |agent| refused(agent, Decline);
    is_cut_off = |agent| outage(agent, Cut);
}
