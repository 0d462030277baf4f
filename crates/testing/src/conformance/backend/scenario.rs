//! What the agent of a test is to do.

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
    /// Makes [`FILE`](Self::FILE) with [`CONTENT`](Self::CONTENT), runs
    /// [`FAILING`](Self::FAILING) in a shell, and says [`TEXT`](Self::TEXT).
    Tools,
    /// Runs a command in a shell.
    Command {
        /// The command.
        command: String,
    },
    /// Asks [`QUESTION`](Self::QUESTION) with [`OPTIONS`](Self::OPTIONS); then says a text that
    /// contains the answer.
    Question,
    /// Says [`TEXT`](Self::TEXT) when prompted with [`ALPHA`](Self::ALPHA), and
    /// [`OTHER_TEXT`](Self::OTHER_TEXT) when prompted with [`BETA`](Self::BETA).
    Two,
    /// Fails.
    Failure(Failure),
}

impl Scenario {
    /// A text of several words.
    pub const TEXT: &'static str = "Every word of this text comes on its own; the whole is kept.";
    /// Another text.
    pub const OTHER_TEXT: &'static str = "Nothing of the other one is in here at any time.";
    /// A file in the workspace.
    pub const FILE: &'static str = "made/by-the-agent.txt";
    /// What is in it.
    pub const CONTENT: &'static str = "made\n";
    /// A command that fails.
    pub const FAILING: &'static str = "exit 3";
    /// A question.
    pub const QUESTION: &'static str = "Which colour?";
    /// What can be answered.
    pub const OPTIONS: [&'static str; 2] = ["Red", "Blue"];
    /// A prompt.
    pub const ALPHA: &'static str = "alpha";
    /// Another prompt.
    pub const BETA: &'static str = "beta";
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
}

impl Failure {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::Exit,
        Self::Garbage,
        Self::RateLimit,
        Self::Overloaded,
        Self::ContextOverflow,
        Self::Login,
    ];

    /// The code the turn's error must have.
    pub fn code(self) -> &'static str {
        match self {
            Self::Exit => "exited",
            Self::Garbage => "garbled",
            Self::RateLimit => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::ContextOverflow => "context_overflow",
            Self::Login => "login_needed",
        }
    }
}
