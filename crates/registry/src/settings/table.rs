//! Every setting and every environment variable of the program, declared once. Flags, files,
//! variables, `atomic config`, `atomic init` and `docs/settings.md` are made from this.

use super::value::Kind;
use crate::programs::{AGENT_PROGRAMS, BACKENDS};

/// Something that can be set: by a key of a settings file, a variable, or a flag.
#[derive(Debug)]
pub struct Setting {
    /// Its key in a settings file.
    pub key: &'static str,
    /// The environment variable that sets it.
    pub variable: &'static str,
    /// The flag that sets it, without the dashes.
    pub flag: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// What holds when nobody sets it.
    pub preset: Preset,
    /// A value somebody might choose, as it is typed.
    pub example: &'static str,
    /// What it means, in one line.
    pub meaning: &'static str,
    /// Whether a session keeps it from its start to its end.
    pub only_at_start: bool,
    /// Whether only the user can say it: what a project says about itself does not count.
    pub users_word: bool,
}

/// What holds when nobody sets something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// This value, as it is typed.
    Value(&'static str),
    /// No value; this is what happens instead.
    Words(&'static str),
}

impl Preset {
    /// What it says.
    pub fn text(self) -> &'static str {
        match self {
            Self::Value(text) | Self::Words(text) => text,
        }
    }
}

const NO_LIMIT: Preset = Preset::Words("no limit");
const LARGEST: u64 = u32::MAX as u64;

/// The agent program.
pub static BACKEND: Setting = Setting {
    key: "backend",
    variable: "ATOMIC_BACKEND",
    flag: "backend",
    kind: Kind::Choice(&BACKENDS),
    preset: Preset::Words("`script` when a script is given, else the first that is installed"),
    example: AGENT_PROGRAMS[0].name,
    meaning: "The agent program that does the work",
    only_at_start: true,
    users_word: false,
};

/// The model.
pub static MODEL: Setting = Setting {
    key: "model",
    variable: "ATOMIC_MODEL",
    flag: "model",
    kind: Kind::Text,
    preset: Preset::Words("the backend's own"),
    example: "sonnet",
    meaning: "The model to use",
    only_at_start: true,
    users_word: false,
};

/// The file of canned turns.
pub static SCRIPT: Setting = Setting {
    key: "script",
    variable: "ATOMIC_SCRIPT",
    flag: "script",
    kind: Kind::Path,
    preset: Preset::Words("none"),
    example: "turns.toml",
    meaning: "File of canned turns, for the backend `script`",
    only_at_start: false,
    users_word: false,
};

/// How many agents at once.
pub static WORKERS: Setting = Setting {
    key: "workers",
    variable: "ATOMIC_WORKERS",
    flag: "workers",
    kind: Kind::Number { least: 1, most: LARGEST },
    preset: Preset::Value("4"),
    example: "8",
    meaning: "How many agents at once",
    only_at_start: false,
    users_word: false,
};

/// The checks.
pub static CHECK: Setting = Setting {
    key: "check",
    variable: "ATOMIC_CHECK",
    flag: "check",
    kind: Kind::Commands,
    preset: Preset::Words("what is found"),
    example: "cargo test",
    meaning: "Command that checks the result; may be given several times",
    only_at_start: false,
    users_word: false,
};

/// What becomes of a question.
pub static ON_QUESTION: Setting = Setting {
    key: "on_question",
    variable: "ATOMIC_ON_QUESTION",
    flag: "on-question",
    kind: Kind::Choice(&[
        ("pause", "Go on with what can go on, then wait for `atomic answer`"),
        ("recommended", "Take the option marked as recommended; without one, wait"),
        ("fail", "The step that asks has failed"),
    ]),
    preset: Preset::Words("ask who is there, else pause"),
    example: "recommended",
    meaning: "What to do with a question",
    only_at_start: false,
    users_word: false,
};

/// Most starts of a worker.
pub static MAX_ITERATIONS: Setting = Setting {
    key: "max_iterations",
    variable: "ATOMIC_MAX_ITERATIONS",
    flag: "max-iterations",
    kind: Kind::Number { least: 0, most: LARGEST },
    preset: Preset::Words("100, or 4 for each task"),
    example: "200",
    meaning: "Most starts of a worker",
    only_at_start: false,
    users_word: false,
};

/// Most attempts at one task.
pub static MAX_ATTEMPTS: Setting = Setting {
    key: "max_attempts",
    variable: "ATOMIC_MAX_ATTEMPTS",
    flag: "max-attempts",
    kind: Kind::Number { least: 0, most: LARGEST },
    preset: Preset::Value("4"),
    example: "2",
    meaning: "Most attempts at one task",
    only_at_start: false,
    users_word: false,
};

/// Most reviews.
pub static MAX_REVIEW_ROUNDS: Setting = Setting {
    key: "max_review_rounds",
    variable: "ATOMIC_MAX_REVIEW_ROUNDS",
    flag: "max-review-rounds",
    kind: Kind::Number { least: 0, most: LARGEST },
    preset: Preset::Value("3"),
    example: "5",
    meaning: "Most reviews",
    only_at_start: false,
    users_word: false,
};

/// Most money.
pub static MAX_COST: Setting = Setting {
    key: "max_cost",
    variable: "ATOMIC_MAX_COST",
    flag: "max-cost",
    kind: Kind::Money,
    preset: NO_LIMIT,
    example: "20",
    meaning: "Most money to spend, in US dollars",
    only_at_start: false,
    users_word: false,
};

/// Most tokens.
pub static MAX_TOKENS: Setting = Setting {
    key: "max_tokens",
    variable: "ATOMIC_MAX_TOKENS",
    flag: "max-tokens",
    kind: Kind::Number { least: 0, most: u64::MAX },
    preset: NO_LIMIT,
    example: "5000000",
    meaning: "Most tokens to spend",
    only_at_start: false,
    users_word: false,
};

/// Most launches.
pub static MAX_LAUNCHES: Setting = Setting {
    key: "max_launches",
    variable: "ATOMIC_MAX_LAUNCHES",
    flag: "max-launches",
    kind: Kind::Number { least: 1, most: u64::MAX },
    preset: NO_LIMIT,
    example: "200",
    meaning: "Most launches of an agent",
    only_at_start: false,
    users_word: false,
};

/// Longest time for the run.
pub static TIMEOUT: Setting = Setting {
    key: "timeout",
    variable: "ATOMIC_TIMEOUT",
    flag: "timeout",
    kind: Kind::Time,
    preset: NO_LIMIT,
    example: "8h",
    meaning: "Longest time for the whole run, such as 90s, 30m or 8h",
    only_at_start: false,
    users_word: false,
};

/// Longest time for a turn.
pub static TURN_TIMEOUT: Setting = Setting {
    key: "turn_timeout",
    variable: "ATOMIC_TURN_TIMEOUT",
    flag: "turn-timeout",
    kind: Kind::Time,
    preset: Preset::Value("30m"),
    example: "1h",
    meaning: "Longest time for one turn or check",
    only_at_start: false,
    users_word: false,
};

/// How long an agent program may try again by itself.
pub static RETRY_WINDOW: Setting = Setting {
    key: "retry_window",
    variable: "ATOMIC_RETRY_WINDOW",
    flag: "retry-window",
    kind: Kind::Time,
    preset: Preset::Value("2m"),
    example: "10m",
    meaning: "How long an agent program may try again by itself when its provider is in trouble",
    only_at_start: false,
    users_word: false,
};

/// What agents take over.
pub static INHERIT: Setting = Setting {
    key: "inherit",
    variable: "ATOMIC_INHERIT",
    flag: "inherit",
    kind: Kind::Choice(&[
        ("all", "Everything the agent program finds by itself, the user's own included"),
        ("project", "The project's settings, hooks, MCP servers and rules, nothing of the user's"),
        ("none", "Nothing"),
    ]),
    preset: Preset::Words(
        "project; for `-p`, `models` and `mcp` all; none in a folder that is not trusted",
    ),
    example: "none",
    meaning: "What agents take over from the settings of their program",
    only_at_start: false,
    users_word: false,
};

/// Variables that workflows may read.
pub static ENV_ALLOW: Setting = Setting {
    key: "env_allow",
    variable: "ATOMIC_ENV_ALLOW",
    flag: "env-allow",
    kind: Kind::Names,
    preset: Preset::Words("HOME, USER, LANG, TERM, PATH, CI, TZ, SHELL, PWD and TMPDIR only"),
    example: "GITHUB_TOKEN",
    meaning: "Further environment variables that a workflow's own code may read",
    only_at_start: false,
    users_word: true,
};

/// Whether what is in the project may be run.
pub static TRUST: Setting = Setting {
    key: "trust",
    variable: "ATOMIC_TRUST",
    flag: "trust",
    kind: Kind::Switch,
    preset: Preset::Value("false"),
    example: "true",
    meaning: "Trust the project: its own hooks and MCP servers may run",
    only_at_start: false,
    users_word: true,
};

/// Whether the machine may be harmed.
pub static SANDBOX: Setting = Setting {
    key: "sandbox",
    variable: "ATOMIC_SANDBOX",
    flag: "sandbox",
    kind: Kind::Switch,
    preset: Preset::Value("false"),
    example: "true",
    meaning: "This machine is a sandbox: agents may work unasked also for root",
    only_at_start: false,
    users_word: true,
};

/// Every setting, in the order in which they are shown.
pub static SETTINGS: &[&Setting] = &[
    &BACKEND,
    &MODEL,
    &SCRIPT,
    &WORKERS,
    &CHECK,
    &ON_QUESTION,
    &MAX_ITERATIONS,
    &MAX_ATTEMPTS,
    &MAX_REVIEW_ROUNDS,
    &MAX_COST,
    &MAX_TOKENS,
    &MAX_LAUNCHES,
    &TIMEOUT,
    &TURN_TIMEOUT,
    &RETRY_WINDOW,
    &INHERIT,
    &ENV_ALLOW,
    &TRUST,
    &SANDBOX,
];

/// An environment variable that is no setting.
#[derive(Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Who has to do with it.
    pub audience: Audience,
    /// What it means, in one line.
    pub meaning: &'static str,
}

/// Who has to do with a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Users set it.
    Users,
    /// The program gives it to the processes it starts.
    Processes,
    /// Tests, benchmarks and CI set it; users have no need for it.
    Tests,
}

/// A variable of tests and CI.
const fn test(name: &'static str, meaning: &'static str) -> Variable {
    Variable { name, audience: Audience::Tests, meaning }
}

/// Every variable that is no setting.
pub static VARIABLES: &[Variable] = &[
    Variable {
        name: "ATOMIC_HOME",
        audience: Audience::Users,
        meaning: "The folder for settings, workflows and the list of sessions of the user, in \
                  place of `~/.atomic`",
    },
    Variable {
        name: "ATOMIC_STEP",
        audience: Audience::Processes,
        meaning: "Marks every process of a step as `<run>/<step>/<attempt>`, so that none is left \
                  behind",
    },
    Variable {
        name: "ATOMIC_GATE",
        audience: Audience::Processes,
        meaning: "The socket at which `opencode` asks `atomic` before it uses a tool",
    },
    test(
        "ATOMIC_FAILPOINT",
        "Dies at the n-th hit of a named place, as `<name>:<n>` (feature `failpoints`)",
    ),
    test(
        "ATOMIC_FAILPOINT_LOG",
        "File to which the name of every place hit is added (feature `failpoints`)",
    ),
    test("ATOMIC_TEST_CLOCK_AHEAD", "Seconds by which the clock is ahead (feature `failpoints`)"),
    test(
        "ATOMIC_TEST_STAND_IN",
        "Script that is played under the name of another backend, as `<backend>=<file>` (feature \
         `failpoints`)",
    ),
    test("ATOMIC_TEST_DIR", "Folder of a test that runs in a process of its own"),
    test("ATOMIC_TEST_HOLD", "Session that a test holds in a process of its own"),
    test("ATOMIC_TEST_OPENCODE", "The `opencode` that a program stands in front of"),
    test("ATOMIC_TEST_OPENCODE_LINES", "File in which the events of that `opencode` are kept"),
    test(
        "ATOMIC_TEST_OPENCODE_VERSION",
        "The version that is told in place of that of `opencode`, which is not started then",
    ),
    test("ATOMIC_CRASH_SEED", "The seed of a run of the crash tests that is to be repeated"),
    test("ATOMIC_SEED", "The seed of the one random graph to test"),
    test("ATOMIC_SEEDS", "How many random graphs that nobody has tried to test"),
    test(
        "ATOMIC_TOOLS",
        "Folder for tools that the tests install, in place of `~/.cache/atomic-tools`",
    ),
    test("ATOMIC_AGENTS", "Folder of the real agent programs, as `cargo xtask agents` prints it"),
    test(
        "ATOMIC_ACP_CLIENT",
        "Folder of the client that drives `atomic acp`, as `cargo xtask client` prints it",
    ),
    test(
        "ATOMIC_CONFORMANCE",
        "Folder in which the tests of backends note what has passed, for `docs/backends.md`",
    ),
    test("ATOMIC_CI_TARGET", "Folder in which CI keeps what it has built; nothing: none is kept"),
];

/// The setting with this key, also in camelCase or kebab-case.
pub fn find(key: &str) -> Option<&'static Setting> {
    let key = snake_case(key);
    SETTINGS.iter().copied().find(|setting| setting.key == key)
}

/// The key that was probably meant.
pub fn nearest_key(key: &str) -> Option<&'static str> {
    let keys = SETTINGS.iter().map(|setting| setting.key);
    atomic_graph::check::nearest(&snake_case(key), keys)
}

/// The names of all variables.
pub fn variable_names() -> impl Iterator<Item = &'static str> {
    let settings = SETTINGS.iter().map(|setting| setting.variable);
    settings.chain(VARIABLES.iter().map(|variable| variable.name))
}

/// `max_cost` for `maxCost` and `max-cost`.
fn snake_case(key: &str) -> String {
    let mut snake = String::with_capacity(key.len() + 4);
    let mut after_small = false;
    for letter in key.chars() {
        if letter.is_uppercase() && after_small {
            snake.push('_');
        }
        after_small = letter.is_lowercase() || letter.is_numeric();
        if letter == '-' { snake.push('_') } else { snake.extend(letter.to_lowercase()) }
    }
    snake
}
