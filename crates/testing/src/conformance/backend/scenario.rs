//! What the agent of a test is to do.

use serde_json::{Value, json};

/// What the agent does when it is prompted, whatever the prompt, unless the scenario says more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Says [`TEXT`](Self::TEXT) in one message and reports what it spent.
    Text,
    /// Says [`TEXT`](Self::TEXT) and then goes on for ever without another word.
    EndlessText,
    /// Never does anything.
    Hang,
    /// Ends without a word.
    Silence,
    /// Does these one after the other, also when one of them fails, and says
    /// [`TEXT`](Self::TEXT).
    Acts(Vec<Act>),
    /// Thinks [`THOUGHT`](Self::THOUGHT) and says [`TEXT`](Self::TEXT).
    Thought,
    /// Notes [`TODOS`](Self::TODOS) in a list of its own, of which the first is done and the second
    /// is not, and says [`TEXT`](Self::TEXT).
    Todos,
    /// Asks [`QUESTION`](Self::QUESTION) with [`OPTIONS`](Self::OPTIONS); then says a text that
    /// contains the answer.
    Question,
    /// Asks [`QUESTION`](Self::QUESTION) and then [`OTHER_QUESTION`](Self::OTHER_QUESTION), both
    /// with [`OPTIONS`](Self::OPTIONS) and the second so that several of them or another text can
    /// be answered; says texts that contain both answers.
    Questions,
    /// Says [`TEXT`](Self::TEXT) when prompted with [`ALPHA`](Self::ALPHA), and
    /// [`OTHER_TEXT`](Self::OTHER_TEXT) when prompted with [`BETA`](Self::BETA).
    Two,
    /// Says [`TEXT`](Self::TEXT) when its model is the first of
    /// [`Words::models`](super::Words::models), and [`OTHER_TEXT`](Self::OTHER_TEXT) when it is the
    /// second.
    Models,
    /// Says [`TEXT`](Self::TEXT) at every prompt, for which its provider counts
    /// [`READ`](Self::READ) tokens that were read, all kinds of them together, and
    /// [`WRITTEN`](Self::WRITTEN) that were written.
    Spends,
    /// Says [`SUMMARY`](Self::SUMMARY) when its program wants a summary, and
    /// [`TEXT`](Self::TEXT) when prompted.
    Summary,
    /// Gives [`structure`](Self::structure) in the way its program wants it when prompted with
    /// [`ALPHA`](Self::ALPHA), and says [`TEXT`](Self::TEXT) and nothing else when prompted with
    /// [`BETA`](Self::BETA).
    Structure,
    /// Cannot be started: the program is not there.
    NotInstalled,
    /// Cannot be started: the program is one that says a version before the oldest that will do.
    TooOld,
    /// Fails.
    Failure(Failure),
    /// Fails when prompted with [`ALPHA`](Self::ALPHA), and says [`TEXT`](Self::TEXT) when prompted
    /// with [`BETA`](Self::BETA).
    FailureThenText(Failure),
}

impl Scenario {
    /// A text of several words.
    pub const TEXT: &'static str = "Every word of this text comes on its own; the whole is kept.";
    /// Another text.
    pub const OTHER_TEXT: &'static str = "Nothing of the other one is in here at any time.";
    /// A file in the workspace.
    pub const FILE: &'static str = "made-by-the-agent.txt";
    /// What is in it.
    pub const CONTENT: &'static str = "made\n";
    /// A command that fails.
    pub const FAILING: &'static str = "exit 3";
    /// A command that prints 2 MB.
    pub const PRINTS_MUCH: &'static str = "head -c 2000000 /dev/zero | tr '\\0' x";
    /// A question.
    pub const QUESTION: &'static str = "Which colour?";
    /// Another question.
    pub const OTHER_QUESTION: &'static str = "And which shapes?";
    /// What can be answered.
    pub const OPTIONS: [&'static str; 2] = ["Red", "Blue"];
    /// A prompt.
    pub const ALPHA: &'static str = "alpha";
    /// Another prompt.
    pub const BETA: &'static str = "beta";
    /// What it thinks.
    pub const THOUGHT: &'static str = "I should look before I leap.";
    /// What it means to do.
    pub const TODOS: [&'static str; 2] = ["Look", "Leap"];
    /// What it says of a conversation.
    pub const SUMMARY: &'static str = "They spoke of the first thing.";
    /// How many tokens are read.
    pub const READ: u64 = 1_700;
    /// How many tokens are written.
    pub const WRITTEN: u64 = 100;
    /// A helper.
    pub const HELPER: &'static str = "scout";
    /// What a helper is to do, in a few words.
    pub const TASK: &'static str = "look around";
    /// An MCP server.
    pub const SERVER: &'static str = "host";
    /// Its tool, without input.
    pub const SERVER_TOOL: &'static str = "touch";

    /// 2 MB of text.
    pub fn large_content() -> String {
        "a line of forty characters, and a break\n".repeat(50_000)
    }

    /// What fits [`schema`](Self::schema).
    pub fn structure() -> Value {
        json!({ "colour": "blue", "count": 3 })
    }

    /// What a final text can be asked to be.
    pub fn schema() -> Value {
        json!({
            "type": "object",
            "properties": { "colour": { "type": "string" }, "count": { "type": "integer" } },
            "required": ["colour", "count"],
        })
    }
}

/// Something an agent does with a tool, whether the tool is on offer or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Runs a command in a shell.
    Run(String),
    /// Reads a file.
    Read(String),
    /// Makes a file.
    Write {
        /// Its path.
        path: String,
        /// What is in it.
        text: String,
    },
    /// Uses [`SERVER_TOOL`](Scenario::SERVER_TOOL) of [`SERVER`](Scenario::SERVER).
    UseServer,
    /// Asks [`QUESTION`](Scenario::QUESTION) with [`OPTIONS`](Scenario::OPTIONS).
    Ask,
    /// Starts [`HELPER`](Scenario::HELPER) with [`TASK`](Scenario::TASK).
    Help {
        /// What it is told, in words that are in no other text.
        prompt: String,
        /// What it does before it says [`OTHER_TEXT`](Scenario::OTHER_TEXT).
        acts: Vec<Self>,
    },
}

impl Act {
    /// Runs a command.
    pub fn run(command: impl Into<String>) -> Self {
        Self::Run(command.into())
    }

    /// Makes a file.
    pub fn write(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Write { path: path.into(), text: text.into() }
    }
}

/// A way in which a turn fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The program ends.
    Exit,
    /// The program sends something that is not its protocol.
    Garbage,
    /// The provider asks us to wait.
    RateLimit,
    /// The provider cannot keep up.
    Overloaded,
    /// The conversation has outgrown the model.
    ContextOverflow,
    /// The user has to log in.
    Login,
    /// What was paid for is used up.
    Quota,
    /// The provider is out of order.
    Unavailable,
    /// The model will not do it.
    Refused,
    /// There is no such model.
    ModelUnknown,
    /// The provider does not take the request.
    Rejected,
}

impl Failure {
    /// The code the turn's error must have.
    pub fn code(self) -> &'static str {
        match self {
            Self::Exit => "exited",
            Self::Garbage => "garbled",
            Self::RateLimit => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::ContextOverflow => "context_overflow",
            Self::Login => "login_needed",
            Self::Quota => "quota",
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
            Self::ModelUnknown => "model_unknown",
            Self::Rejected => "rejected",
        }
    }
}
