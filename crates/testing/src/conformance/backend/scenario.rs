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
    /// Makes [`FILE`](Self::FILE) with [`large_content`](Self::large_content), runs
    /// [`PRINTS_MUCH`](Self::PRINTS_MUCH) in a shell, and says [`TEXT`](Self::TEXT).
    Much,
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
    /// Says [`TEXT`](Self::TEXT) when its model is [`MODEL`](Self::MODEL), and
    /// [`OTHER_TEXT`](Self::OTHER_TEXT) when it is [`OTHER_MODEL`](Self::OTHER_MODEL).
    Models,
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
    pub const FILE: &'static str = "made/by-the-agent.txt";
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
    /// A model.
    pub const MODEL: &'static str = "claude-alpha-1";
    /// Another model.
    pub const OTHER_MODEL: &'static str = "claude-beta-1";

    /// 2 MB of text.
    pub fn large_content() -> String {
        "a line of forty characters, and a break\n".repeat(50_000)
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
    /// Every one.
    pub const ALL: [Self; 11] = [
        Self::Exit,
        Self::Garbage,
        Self::RateLimit,
        Self::Overloaded,
        Self::ContextOverflow,
        Self::Login,
        Self::Quota,
        Self::Unavailable,
        Self::Refused,
        Self::ModelUnknown,
        Self::Rejected,
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
            Self::Quota => "quota",
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
            Self::ModelUnknown => "model_unknown",
            Self::Rejected => "rejected",
        }
    }
}
