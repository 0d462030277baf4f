//! What can be typed.

mod author;
mod session;

use std::path::PathBuf;

use atomic_registry::settings::Scope;
use atomic_runner::StreamMode;
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde_json::Value;

pub(crate) use author::{Form, New, NewArgs, NewWorkflowArgs, TestArgs, TrustArgs};
pub(crate) use session::{SessionArgs, SessionsArgs, SessionsCommand};

use crate::settings::{PlaceArgs, SettingsArgs, StartArgs};

/// Drive coding agents through workflows that never lose or repeat finished work
#[derive(Debug, Parser)]
#[command(
    name = "atomic",
    version,
    max_term_width = 100,
    after_help = EXIT_CODES,
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten, next_help_heading = ONE_TURN)]
    pub(crate) turn: TurnArgs,
}

const ONE_TURN: &str = "One turn";

/// Arguments of `atomic -p`.
#[derive(Debug, Args)]
pub(crate) struct TurnArgs {
    /// Prompt an agent once and print what it answers; `-` reads the prompt from standard input
    #[arg(long, short, value_name = "PROMPT", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// The agent to prompt, such as `debugger` [default: the program as it is]
    #[arg(long, value_name = "NAME", requires = "prompt")]
    pub(crate) agent: Option<String>,
    /// Keep no session
    #[arg(long, requires = "prompt")]
    pub(crate) no_session: bool,
    #[command(flatten, next_help_heading = ONE_TURN)]
    pub(crate) start: StartArgs,
    #[command(flatten, next_help_heading = ONE_TURN)]
    pub(crate) settings: SettingsArgs,
    #[command(flatten, next_help_heading = ONE_TURN)]
    pub(crate) output: OutputArgs,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 waiting for an answer, 4 paused (state saved), \
5 a ceiling of the whole run ended it, 130 second Ctrl+C.";

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch Ralph build a small game with a scripted agent: no model, no account
    Demo(DemoArgs),
    /// Make the folders and the settings of a project
    Init,
    /// Make something new: a workflow
    New(NewArgs),
    /// Trust a repository: use its hooks, MCP servers, checks, agents and workflows
    Trust(TrustArgs),
    /// Run workflows on scripted agents, in folders of their own, and say whether they do as expected
    Test(TestArgs),
    /// Run a workflow
    Run(RunArgs),
    /// Be an agent for an editor: speak the Agent Client Protocol on standard input and output
    Acp(Box<AcpArgs>),
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
    /// List the models that the agent program can be asked for
    Models(BackendArgs),
    /// List the MCP servers that the agent program has here, and how they are
    Mcp(BackendArgs),
    /// Turn an old feature list into a file of tasks, or into a session of Ralph
    Migrate(Box<MigrateArgs>),
    /// Find out what is missing, odd or wrong: files, workflows, agent programs
    Doctor(DoctorArgs),
    /// List sessions, or show one
    Sessions(SessionsArgs),
    /// Show settings and where they come from, or change them
    Config(ConfigArgs),
}

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// What to do with them
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
}

/// What can be done with settings.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List every setting, its value here and where that comes from
    List {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a value and nothing else; nothing where nothing is set
    Get {
        /// Setting to look up, such as `workers`
        key: String,
        /// Print it as JSON, with where it comes from
        #[arg(long)]
        json: bool,
    },
    /// Set a value in a settings file
    Set {
        /// Setting to set, such as `workers`
        key: String,
        /// Its value; several for a list
        #[arg(required = true, num_args = 1.., allow_negative_numbers = true)]
        value: Vec<String>,
        #[command(flatten)]
        place: FileArgs,
    },
    /// Remove a value from a settings file
    Unset {
        /// Setting to remove, such as `workers`
        key: String,
        #[command(flatten)]
        place: FileArgs,
    },
}

/// Which settings file is meant.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FileArgs {
    /// The project's: .atomic/settings.json in the current folder [default]
    #[arg(long, conflicts_with = "user")]
    project: bool,
    /// The user's, for all projects: ~/.atomic/settings.json
    #[arg(long, alias = "global")]
    user: bool,
}

impl FileArgs {
    /// Whose file it is.
    pub(crate) fn scope(self) -> Scope {
        if self.user { Scope::User } else { Scope::Project }
    }
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// What to check: files or names [default: everything there is]
    #[arg(value_name = "FILE|NAME")]
    pub(crate) what: Vec<String>,
    /// Run the code of workflow files, which is how their graphs are found, although nobody has
    /// trusted it
    #[arg(long)]
    pub(crate) trust: bool,
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

/// Arguments of `models` and `mcp`.
#[derive(Debug, Args)]
pub(crate) struct BackendArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Print each as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
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
    /// Run the code of a workflow file, which is how its graph is found, although nobody has
    /// trusted it
    #[arg(long)]
    pub(crate) trust: bool,
    #[command(flatten)]
    pub(crate) place: SessionArgs,
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
    #[command(flatten)]
    pub(crate) start: StartArgs,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `acp`.
#[derive(Clone, Debug, Args)]
#[command(after_help = IN_AN_EDITOR)]
pub(crate) struct AcpArgs {
    #[command(flatten)]
    pub(crate) start: StartArgs,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

const IN_AN_EDITOR: &str = "\
Editors start this; docs/editors.md has what to set in which. Prompts go to the agent program that \
is chosen here or in the settings; /ralph and every other workflow, command, skill and agent can be \
typed in the editor. It ends when its input ends: runs are paused, and can be resumed.";

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Session to continue: its id, the beginning of it, `last`, or its folder
    pub(crate) session: String,
    /// Something to tell every agent started from now on
    pub(crate) instruction: Option<String>,
    /// Go on with the workflow as it is now, and not as it was when the session began
    #[arg(long)]
    pub(crate) upgrade: bool,
    /// Try the provider at once, although the run waits for it until a recorded time
    #[arg(long)]
    pub(crate) now: bool,
    #[command(flatten)]
    pub(crate) place: SessionArgs,
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
    #[command(flatten, next_help_heading = WITH_RALPH)]
    pub(crate) start: StartArgs,
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
    /// Session that asks: its id, the beginning of it, `last`, or its folder
    pub(crate) session: String,
    /// Which question, when there are several, then the answer: option labels, their numbers, or
    /// a text of your own where that is allowed
    #[arg(required = true, num_args = 1.., value_name = "[QUESTION] ANSWER")]
    pub(crate) answer: Vec<String>,
    /// Continue the session at once
    #[arg(long)]
    pub(crate) resume: bool,
    /// Answer a session that was not begun by you on this machine: it can run commands
    #[arg(long)]
    pub(crate) trust: bool,
    #[command(flatten)]
    pub(crate) place: SessionArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `fork`.
#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// Session to fork (its id, the beginning of it, `last`, or its folder) and the last step to
    /// take over, such as `review#2`; without a step, the last that finished
    #[arg(value_name = "SESSION[@STEP]")]
    pub(crate) from: String,
    /// Change a value of the state in the new session: JSON, or else a text; may be given several
    /// times
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, Value)>,
    /// Continue the new session at once
    #[arg(long)]
    pub(crate) run: bool,
    /// Take over a session that was not begun by you on this machine: it can run commands
    #[arg(long)]
    pub(crate) trust: bool,
    #[command(flatten)]
    pub(crate) place: SessionArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
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

    /// Whether standard output has every fact of the run, and so also why it ended.
    pub(crate) fn shows_facts(&self) -> bool {
        let has_facts = |stream: &Stream| matches!(stream, Stream::Events | Stream::Debug);
        self.json || self.stream.iter().any(has_facts)
    }

    /// The first of these that was given, without its dashes.
    pub(crate) fn first_flag(&self) -> Option<&'static str> {
        let given =
            [(self.json, "json"), (!self.stream.is_empty(), "stream"), (self.verbose, "verbose")];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag)
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
