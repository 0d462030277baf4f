//! What can be typed.

use std::path::PathBuf;
use std::time::Duration;

use atomic_runner::{OnQuestion, Settings, StreamMode};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde_json::Value;

/// Drive coding agents through workflows that never lose or repeat finished work
#[derive(Debug, Parser)]
#[command(name = "atomic", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 waiting for an answer, 4 paused (state saved), \
5 a ceiling of the whole run ended it, 130 second Ctrl+C.";

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch Ralph build a small game with a scripted agent: no model, no account
    Demo(DemoArgs),
    /// Run a workflow
    Run(RunArgs),
    /// Continue a session that was paused, is waiting, was interrupted or has failed
    Resume(ResumeArgs),
    /// Answer a question of a session, from anywhere
    Answer(AnswerArgs),
    /// Make a new session from the beginning of another one, up to a finished step
    Fork(ForkArgs),
    /// Find everything that is wrong with workflows, commands, skills and agents, before they run
    Check(CheckArgs),
    /// Draw a workflow, or a run of one
    Graph(GraphArgs),
    /// List everything that can be called by name: commands, workflows, skills, agents
    List(ListArgs),
    /// Show what a name means: where it comes from, what it overrides, its prompt
    Show(ShowArgs),
    /// Turn an old feature list into a file of tasks, or into a session of Ralph
    Migrate(Box<MigrateArgs>),
    /// Find out what is missing, odd or wrong: files, workflows, agent programs
    Doctor(DoctorArgs),
    /// List sessions, or show one
    Sessions(SessionsArgs),
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// What to check: files or names [default: everything there is]
    #[arg(value_name = "FILE|NAME")]
    pub(crate) what: Vec<String>,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only these
    #[arg(value_enum, value_name = "KIND")]
    pub(crate) sort: Option<Sort>,
    /// Also those that are marked as hidden
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print each as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Say what was read from the folders of each provider
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// What can be listed, in the order in which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Sort {
    /// Commands, those of the chat too
    Commands,
    /// Workflows
    Workflows,
    /// Skills
    Skills,
    /// Agents
    Agents,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A name, such as `commit`, or with its kind, such as `agent:worker`
    pub(crate) name: String,
}

/// Arguments of `graph`.
#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    /// What to draw: a file, the name of a workflow, or a session (its id, the beginning of it, or
    /// `last`), which is coloured by how far it has come
    #[arg(value_name = "FILE|WORKFLOW|SESSION")]
    pub(crate) what: String,
    /// How to draw it
    #[arg(long, value_enum, default_value_t = Format::Tree)]
    pub(crate) format: Format,
    /// File to write to [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// How to draw a graph.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Lines for the terminal
    Tree,
    /// A Mermaid flowchart
    Mermaid,
    /// A Graphviz file
    Dot,
    /// A picture
    Svg,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Folder to build the game in; must not exist yet [default: a new one for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Another script for the agent
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Workflow to run: a name such as `ralph`, or a file
    pub(crate) workflow: String,
    /// What to do: a text, or the path of a file that holds it
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prompt: String,
    /// Say how often agents can be launched at most, and start nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// The agent program that does the work
    #[arg(long, env = "ATOMIC_BACKEND", value_name = "NAME", default_value = "script")]
    pub(crate) backend: String,
    /// The model to use
    #[arg(long, env = "ATOMIC_MODEL", value_name = "NAME")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Session to continue: its id, the beginning of it, or `last`
    pub(crate) session: String,
    /// Something to tell every agent started from now on
    pub(crate) instruction: Option<String>,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `migrate`.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// The list: features or tasks in JSON, alone or under `features` or `tasks`; it is not changed
    #[arg(value_name = "FEATURE-LIST")]
    pub(crate) file: PathBuf,
    /// File of tasks to write [default: standard output, unless --ralph is given]
    #[arg(long = "output", short = 'o', value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// Overwrite that file
    #[arg(long, requires = "to")]
    pub(crate) force: bool,
    /// Start a session of Ralph on the tasks; nothing is planned, and what is done stays done
    #[arg(long)]
    pub(crate) ralph: bool,
    /// The agent program that does the work
    #[arg(
        long,
        env = "ATOMIC_BACKEND",
        value_name = "NAME",
        default_value = "script",
        help_heading = WITH_RALPH
    )]
    pub(crate) backend: String,
    /// The model to use
    #[arg(long, env = "ATOMIC_MODEL", value_name = "NAME", help_heading = WITH_RALPH)]
    pub(crate) model: Option<String>,
    #[command(flatten, next_help_heading = WITH_RALPH)]
    pub(crate) settings: SettingsArgs,
    #[command(flatten, next_help_heading = WITH_RALPH)]
    pub(crate) output: OutputArgs,
}

const WITH_RALPH: &str = "With --ralph";

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXIT_CODES)]
pub(crate) struct DoctorArgs {
    /// Print every remark as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const DOCTOR_EXIT_CODES: &str = "\
Nothing from the project is run. Exit codes: 0 there is no problem (warnings and notes do not \
count), 1 there is one.";

/// Arguments of `answer`.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// Session that asks: its id, the beginning of it, or `last`
    pub(crate) session: String,
    /// Which question, when there are several, then the answer: option labels, their numbers, or
    /// a text of your own where that is allowed
    #[arg(required = true, num_args = 1.., value_name = "[QUESTION] ANSWER")]
    pub(crate) answer: Vec<String>,
    /// Continue the session at once
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `fork`.
#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// Session to fork (its id, the beginning of it, or `last`) and the last step to take over,
    /// such as `review#2`; without a step, the last that finished
    #[arg(value_name = "SESSION[@STEP]")]
    pub(crate) place: String,
    /// Change a value of the state in the new session: JSON, or else a text; may be given several
    /// times
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, Value)>,
    /// Continue the new session at once
    #[arg(long)]
    pub(crate) run: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `sessions`.
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// What to do with them
    #[command(subcommand)]
    pub(crate) command: Option<SessionsCommand>,
}

/// What can be done with sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List all sessions, newest first
    List,
    /// Show one session: its tasks, its questions, what happened
    Show {
        /// Session to show: its id, the beginning of it, or `last`
        session: String,
    },
}

/// How to print what happens.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OutputArgs {
    /// Say what was read from the folders of each provider
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print every fact as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// With --json: also what the agents are typing
    #[arg(long, requires = "json")]
    pub(crate) deltas: bool,
    /// Print what happens as lines of JSON in these modes, in this order, such as updates,values
    #[arg(long, value_enum, value_name = "MODES", value_delimiter = ',', conflicts_with = "json")]
    pub(crate) stream: Vec<Stream>,
}

impl OutputArgs {
    /// Whether what is printed is for another program to read.
    pub(crate) fn for_programs(&self) -> bool {
        self.json || !self.stream.is_empty()
    }

    /// The modes in which what happens is printed.
    pub(crate) fn modes(&self) -> Vec<StreamMode> {
        let mode = |stream: &Stream| match stream {
            Stream::Values => StreamMode::Values,
            Stream::Updates => StreamMode::Updates,
            Stream::Events => StreamMode::Events,
            Stream::Debug => StreamMode::Debug,
        };
        self.stream.iter().map(mode).collect()
    }
}

/// What a stream shows.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Stream {
    /// The whole state each time it has changed
    Values,
    /// What each step changes and returns
    Updates,
    /// Every fact
    Events,
    /// Every fact, what follows from it, and how long things took
    Debug,
}

/// How a run is to behave. What is not given is left as it is.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SettingsArgs {
    /// File of canned turns, for the backend `script`
    #[arg(long, env = "ATOMIC_SCRIPT", value_name = "FILE")]
    script: Option<PathBuf>,
    /// How many agents at once [default: 4]
    #[arg(long, env = "ATOMIC_WORKERS", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    workers: Option<u32>,
    /// Command that checks the result; may be given several times [default: what is found]
    #[arg(long = "check", env = "ATOMIC_CHECK", value_name = "COMMAND")]
    checks: Vec<String>,
    /// What to do with a question when nobody is there [default: pause]
    #[arg(long, env = "ATOMIC_ON_QUESTION", value_enum, value_name = "POLICY")]
    on_question: Option<Policy>,
    /// Most starts of a worker [default: 100, or 4 for each task]
    #[arg(long, env = "ATOMIC_MAX_ITERATIONS", value_name = "N")]
    max_iterations: Option<u32>,
    /// Most attempts at one task [default: 4]
    #[arg(long, env = "ATOMIC_MAX_ATTEMPTS", value_name = "N")]
    max_attempts: Option<u32>,
    /// Most reviews [default: 3]
    #[arg(long, env = "ATOMIC_MAX_REVIEW_ROUNDS", value_name = "N")]
    max_review_rounds: Option<u32>,
    /// Most money to spend, in US dollars [default: no limit]
    #[arg(long, env = "ATOMIC_MAX_COST", value_name = "USD", value_parser = money)]
    max_cost: Option<f64>,
    /// Most tokens to spend [default: no limit]
    #[arg(long, env = "ATOMIC_MAX_TOKENS", value_name = "N")]
    max_tokens: Option<u64>,
    /// Most launches of an agent [default: no limit]
    #[arg(long, env = "ATOMIC_MAX_LAUNCHES", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_launches: Option<u64>,
    /// Longest time for the whole run, such as 90s, 30m or 8h [default: no limit]
    #[arg(long, env = "ATOMIC_TIMEOUT", value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Longest time for one turn or check [default: 30m]
    #[arg(long, env = "ATOMIC_TURN_TIMEOUT", value_name = "TIME", value_parser = duration)]
    turn_timeout: Option<Duration>,
}

/// What to do with a question when nobody is there.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Policy {
    /// Go on with what can go on, then wait for `atomic answer`
    Pause,
    /// Take the option marked as recommended; without one, wait
    Recommended,
    /// The step that asks has failed
    Fail,
}

impl SettingsArgs {
    /// Changes what was given. `somebody` is whether a person can answer questions here.
    pub(crate) fn apply(&self, settings: &mut Settings, somebody: bool) {
        let given = self.clone();
        settings.script = given.script.map(absolute).or(settings.script.take());
        settings.workers = given.workers.unwrap_or(settings.workers);
        settings.checks = Some(given.checks).filter(|c| !c.is_empty()).or(settings.checks.take());
        settings.limits.iterations = given.max_iterations.or(settings.limits.iterations);
        settings.limits.attempts = given.max_attempts.unwrap_or(settings.limits.attempts);
        settings.limits.review_rounds =
            given.max_review_rounds.unwrap_or(settings.limits.review_rounds);
        settings.max_cost_usd = given.max_cost.or(settings.max_cost_usd);
        settings.max_tokens = given.max_tokens.or(settings.max_tokens);
        settings.max_launches = given.max_launches.or(settings.max_launches);
        let timeout = given.timeout.map(|time| time.as_secs().max(1));
        settings.timeout_secs = timeout.or(settings.timeout_secs);
        if let Some(time) = given.turn_timeout {
            settings.turn_timeout_secs = time.as_secs().max(1);
        }
        settings.on_question = match given.on_question {
            Some(Policy::Pause) => OnQuestion::Pause,
            Some(Policy::Recommended) => OnQuestion::Recommended,
            Some(Policy::Fail) => OnQuestion::Fail,
            None => match settings.on_question {
                policy @ (OnQuestion::Recommended | OnQuestion::Fail) => policy,
                OnQuestion::Ask | OnQuestion::Pause if somebody => OnQuestion::Ask,
                OnQuestion::Ask | OnQuestion::Pause => OnQuestion::Pause,
            },
        };
    }
}

/// A session is resumed from anywhere, so a path in it must not depend on where we are.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// Ten years; much more cannot be added to a point in time.
const LONGEST_SECS: u64 = 10 * 365 * 24 * 3_600;

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| wrong_duration(text))?;
    let seconds = match &text[digits.len()..] {
        "" | "s" => Some(number),
        "m" => number.checked_mul(60),
        "h" => number.checked_mul(3_600),
        _ => None,
    };
    let sensible = |seconds: &u64| (1..=LONGEST_SECS).contains(seconds);
    seconds.filter(sensible).map(Duration::from_secs).ok_or_else(|| wrong_duration(text))
}

/// A ceiling that nothing can reach, such as `nan`, would be none.
fn money(text: &str) -> Result<f64, String> {
    let amount = text.trim_start_matches('$').parse().ok();
    amount
        .filter(|amount: &f64| amount.is_finite() && *amount > 0.0)
        .ok_or_else(|| format!("`{text}` is no amount of money; write 5 or 2.50"))
}

/// `key=value`, where the value is JSON, or else a text.
fn assignment(text: &str) -> Result<(String, Value), String> {
    match text.split_once('=').map(|(key, value)| (key.trim(), value)) {
        Some((key, value)) if !key.is_empty() => {
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            Ok((key.to_owned(), value))
        }
        _ => Err(format!("`{text}` sets nothing; write key=value")),
    }
}

fn wrong_duration(text: &str) -> String {
    format!("`{text}` is no length of time; write 90s, 30m or 8h")
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn lengths_of_time_are_read_with_their_unit() {
        let seconds = |text: &str| duration(text).map(|d| d.as_secs()).ok();
        let table = [("90s", Some(90)), ("30m", Some(1800)), ("8h", Some(28_800)), ("5", Some(5))];
        for (text, expected) in table {
            assert_eq!(seconds(text), expected, "{text}");
        }
        for wrong in
            ["", "h", "0s", "1d", "-1", "1.5h", "99999999999999999999h", "5000000000000000h"]
        {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
