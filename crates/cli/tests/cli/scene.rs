//! Scripts for the agent, put together from turns.

use serde_json::{Value, json};

/// How the planner is told that its plan was refused.
pub(crate) const REFUSED: &str = "Your plan cannot be used";

/// How an agent is told that its turn was cut off.
pub(crate) const CUT_OFF: &str = "Your turn was cut off";

/// How a worker is told that the task failed before.
pub(crate) const TRIED: &str = "An earlier attempt at this task failed";

/// A script: of its turns the first that fits is played.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scene {
    head: String,
    turns: Vec<Turn>,
}

/// A canned turn.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    agent: String,
    system: Vec<String>,
    model: Option<String>,
    prompt: Vec<String>,
    absent: Vec<String>,
    actions: Vec<String>,
}

impl Scene {
    /// A script whose planner returns these tasks, each an id and what blocks it.
    pub(crate) fn of(tasks: &[(&str, &[&str])]) -> Self {
        Self::default().turn(planner().does([say(&plan(tasks))]))
    }

    /// Says that turns do not report what they cost.
    pub(crate) fn without_costs(mut self) -> Self {
        self.head.push_str("reports_cost = false\n");
        self
    }

    pub(crate) fn turn(mut self, turn: Turn) -> Self {
        self.turns.push(turn);
        self
    }

    /// Every other worker does its task, and every other review is content.
    pub(crate) fn rest(self) -> Self {
        self.workers().turn(reviewer().does([review(&[])]))
    }

    /// Every other worker notes its step in the ledger and does its task.
    pub(crate) fn workers(self) -> Self {
        self.turn(worker("Task ").does([note(), done("as asked")]))
    }

    /// The script as its file holds it.
    pub(crate) fn toml(&self) -> String {
        let turns: Vec<String> = self.turns.iter().map(Turn::toml).collect();
        format!("{}\n{}", self.head, turns.join("\n"))
    }
}

impl Turn {
    fn new(agent: &str, prompt: &[&str]) -> Self {
        let prompt = prompt.iter().map(|part| (*part).to_owned()).collect();
        Self {
            agent: agent.to_owned(),
            system: vec![],
            model: None,
            prompt,
            absent: vec![],
            actions: vec![],
        }
    }

    /// Only for an agent that is told to be this.
    pub(crate) fn system(mut self, part: &str) -> Self {
        self.system.push(part.to_owned());
        self
    }

    /// Only for this model.
    pub(crate) fn model(mut self, model: &str) -> Self {
        self.model = Some(model.to_owned());
        self
    }

    /// Only when the prompt also has this.
    pub(crate) fn and(mut self, part: &str) -> Self {
        self.prompt.push(part.to_owned());
        self
    }

    /// Only when the prompt does not have this.
    pub(crate) fn without(mut self, part: &str) -> Self {
        self.absent.push(part.to_owned());
        self
    }

    pub(crate) fn does<const N: usize>(mut self, actions: [String; N]) -> Self {
        self.actions.extend(actions);
        self
    }

    fn toml(&self) -> String {
        let model = self.model.iter().map(|model| format!("model = {}\n", json!(model)));
        format!(
            "[[turn]]\nagent = {}\n{}system = {}\nprompt = {}\nabsent = {}\ndo = [\n  {}\n]\n",
            json!(self.agent),
            model.collect::<String>(),
            json!(self.system),
            json!(self.prompt),
            json!(self.absent),
            self.actions.join(",\n  ")
        )
    }
}

pub(crate) fn planner() -> Turn {
    Turn::new("planner", &[])
}

pub(crate) fn worker(prompt: &str) -> Turn {
    Turn::new("worker", &[prompt])
}

pub(crate) fn reviewer() -> Turn {
    Turn::new("reviewer", &[])
}

/// A turn of some other agent.
pub(crate) fn agent(name: &str) -> Turn {
    Turn::new(name, &[])
}

// A JSON string is a TOML string, too.

pub(crate) fn say(text: &str) -> String {
    format!("{{ say = {} }}", json!(text))
}

pub(crate) fn run(command: &str) -> String {
    format!("{{ run = {} }}", json!(command))
}

pub(crate) fn fail(how: &str) -> String {
    format!("{{ fail = {} }}", json!(how))
}

pub(crate) fn ask(question: &str, labels: &[&str]) -> String {
    let options: Vec<String> =
        labels.iter().map(|label| format!("{{ label = {} }}", json!(label))).collect();
    format!("{{ ask = {{ question = {}, options = [{}] }} }}", json!(question), options.join(", "))
}

pub(crate) fn tokens(count: u32) -> String {
    format!("{{ usage = {{ input_tokens = {count}, output_tokens = 0, cost_usd = 0.0 }} }}")
}

pub(crate) fn cost(usd: f64) -> String {
    format!("{{ usage = {{ input_tokens = 1, output_tokens = 1, cost_usd = {usd:?} }} }}")
}

/// Adds the step to the ledger.
pub(crate) fn note() -> String {
    run("echo \"$ATOMIC_STEP\" >> \"$LEDGER\"")
}

/// Waits until the file is there.
pub(crate) fn wait_for(file: &str) -> String {
    run(&format!("while [ ! -e {file} ]; do sleep 0.02; done"))
}

/// The report of a worker that did its task.
pub(crate) fn done(summary: &str) -> String {
    say(&json!({"status": "completed", "summary": summary}).to_string())
}

/// The report of a worker that could not.
pub(crate) fn gave_up(error: &str) -> String {
    say(&json!({"status": "failed", "summary": "", "error": error}).to_string())
}

/// A review with these blocking findings.
pub(crate) fn review(titles: &[&str]) -> String {
    let finding = |title: &&str| json!({"title": title, "body": "", "path": "a", "priority": 1});
    let findings: Vec<Value> = titles.iter().map(finding).collect();
    let verdict = if titles.is_empty() { "correct" } else { "incorrect" };
    say(&json!({"findings": findings, "verdict": verdict}).to_string())
}

/// A plan as the planner writes it.
pub(crate) fn plan(tasks: &[(&str, &[&str])]) -> String {
    let row = |(id, blocked_by): &(&str, &[&str])| {
        let content = format!("Make part {}", id.trim_start_matches('#'));
        json!({"id": id, "content": content, "blockedBy": blocked_by})
    };
    let rows: Vec<Value> = tasks.iter().map(row).collect();
    serde_json::to_string(&rows).unwrap()
}
