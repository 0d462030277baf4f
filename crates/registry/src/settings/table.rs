//! Every setting and every environment variable of the program, declared once. Flags, files,
//! variables, `atomic config`, `atomic init` and `docs/settings.md` are made from this.

use super::value::Kind;
use super::variables::VARIABLES;
use crate::programs::{AGENT_PROGRAMS, BACKENDS};

/// Something that can be set: by a key of a settings file, a variable, or a flag.
#[derive(Debug)]
pub struct Setting {
    /// Its key in a settings file.
    pub key: &'static str,
    /// The environment variable that sets it.
    pub variable: &'static str,
    /// The flag that sets it, without the dashes; settings of a machine or a user have none.
    pub flag: Option<&'static str>,
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
    /// Whether it counts when a project's file sets it.
    pub class: Class,
}

/// When a value counts that a project's settings file sets. Flags, variables and the user's file
/// always count. A setting has no default class: whoever adds one decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Always: the value can do no harm.
    Free,
    /// When it is stricter than the user's value: a project can lower a limit, never raise one.
    Stricter {
        /// The value to compare with where the user has set none; empty: no limit.
        unless_set: &'static str,
        /// The values of a choice, the strictest first; empty for numbers, where less is stricter.
        order: &'static [&'static str],
    },
    /// When the user trusts the repository.
    Trusted,
    /// Never.
    User,
}

/// A number, amount or time of which a project can lower the user's.
const LIMIT: Class = Class::Stricter { unless_set: "", order: &[] };

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
    flag: Some("backend"),
    kind: Kind::Choice(&BACKENDS),
    preset: Preset::Words("`script` when a script is given, else the first that is installed"),
    example: AGENT_PROGRAMS[0].name,
    meaning: "The agent program that does the work",
    only_at_start: true,
    class: Class::Trusted,
};

/// The model.
pub static MODEL: Setting = Setting {
    key: "model",
    variable: "ATOMIC_MODEL",
    flag: Some("model"),
    kind: Kind::Text,
    preset: Preset::Words("the backend's own"),
    example: "sonnet",
    meaning: "The model to use",
    only_at_start: true,
    class: Class::Trusted,
};

/// The file of canned turns.
pub static SCRIPT: Setting = Setting {
    key: "script",
    variable: "ATOMIC_SCRIPT",
    flag: Some("script"),
    kind: Kind::Path,
    preset: Preset::Words("none"),
    example: "turns.toml",
    meaning: "File of canned turns, for the backend `script`",
    only_at_start: false,
    class: Class::User,
};

/// How many agents at once.
pub static WORKERS: Setting = Setting {
    key: "workers",
    variable: "ATOMIC_WORKERS",
    flag: Some("workers"),
    kind: Kind::Number { least: 1, most: LARGEST },
    preset: Preset::Words("1 for `ralph`, else 4"),
    example: "2",
    meaning: "How many agents at once",
    only_at_start: false,
    class: Class::Stricter { unless_set: "4", order: &[] },
};

/// The checks.
pub static CHECK: Setting = Setting {
    key: "check",
    variable: "ATOMIC_CHECK",
    flag: Some("check"),
    kind: Kind::Commands,
    preset: Preset::Words("what is found"),
    example: "cargo test",
    meaning: "Command that checks the result; may be given several times",
    only_at_start: false,
    class: Class::Trusted,
};

/// Whether everything has to be verified by checks.
pub static REQUIRE_CHECKS: Setting = Setting {
    key: "require_checks",
    variable: "ATOMIC_REQUIRE_CHECKS",
    flag: Some("require-checks"),
    kind: Kind::Switch,
    preset: Preset::Value("false"),
    example: "true",
    meaning: "Refuse to start without a check, and fail when a task is not verified by one",
    only_at_start: false,
    class: Class::Stricter { unless_set: "false", order: &["true", "false"] },
};

/// What becomes of a question.
pub static ON_QUESTION: Setting = Setting {
    key: "on_question",
    variable: "ATOMIC_ON_QUESTION",
    flag: Some("on-question"),
    kind: Kind::Choice(&[
        ("pause", "Go on with what can go on, then wait for `atomic answer`"),
        ("recommended", "Take the option marked as recommended; without one, wait"),
        ("fail", "The step that asks has failed"),
    ]),
    preset: Preset::Words("ask who is there, else pause"),
    example: "fail",
    meaning: "What to do with a question",
    only_at_start: false,
    class: Class::Stricter { unless_set: "pause", order: &["fail", "pause", "recommended"] },
};

/// Most starts of a worker.
pub static MAX_ITERATIONS: Setting = Setting {
    key: "max_iterations",
    variable: "ATOMIC_MAX_ITERATIONS",
    flag: Some("max-iterations"),
    kind: Kind::Number { least: 0, most: LARGEST },
    preset: Preset::Words("100, or 4 for each task"),
    example: "50",
    meaning: "Most starts of a worker",
    only_at_start: false,
    class: Class::Stricter { unless_set: "100", order: &[] },
};

/// Most attempts at one task.
pub static MAX_ATTEMPTS: Setting = Setting {
    key: "max_attempts",
    variable: "ATOMIC_MAX_ATTEMPTS",
    flag: Some("max-attempts"),
    kind: Kind::Number { least: 0, most: LARGEST },
    preset: Preset::Value("4"),
    example: "2",
    meaning: "Most attempts at one task",
    only_at_start: false,
    class: LIMIT,
};

/// Most reviews.
pub static MAX_REVIEW_ROUNDS: Setting = Setting {
    key: "max_review_rounds",
    variable: "ATOMIC_MAX_REVIEW_ROUNDS",
    flag: Some("max-review-rounds"),
    kind: Kind::Number { least: 0, most: LARGEST },
    preset: Preset::Value("3"),
    example: "5",
    meaning: "Most reviews",
    only_at_start: false,
    class: LIMIT,
};

/// Most money.
pub static MAX_COST: Setting = Setting {
    key: "max_cost",
    variable: "ATOMIC_MAX_COST",
    flag: Some("max-cost"),
    kind: Kind::Money,
    preset: NO_LIMIT,
    example: "20",
    meaning: "Most money to spend, in US dollars",
    only_at_start: false,
    class: LIMIT,
};

/// Most money for one task.
pub static MAX_TASK_COST: Setting = Setting {
    key: "max_task_cost",
    variable: "ATOMIC_MAX_TASK_COST",
    flag: Some("max-task-cost"),
    kind: Kind::Money,
    preset: NO_LIMIT,
    example: "5",
    meaning: "Most money to spend on one task, all attempts together, in US dollars",
    only_at_start: false,
    class: LIMIT,
};

/// Most tokens.
pub static MAX_TOKENS: Setting = Setting {
    key: "max_tokens",
    variable: "ATOMIC_MAX_TOKENS",
    flag: Some("max-tokens"),
    kind: Kind::Number { least: 0, most: u64::MAX },
    preset: NO_LIMIT,
    example: "5000000",
    meaning: "Most tokens to spend",
    only_at_start: false,
    class: LIMIT,
};

/// Most launches.
pub static MAX_LAUNCHES: Setting = Setting {
    key: "max_launches",
    variable: "ATOMIC_MAX_LAUNCHES",
    flag: Some("max-launches"),
    kind: Kind::Number { least: 1, most: u64::MAX },
    preset: NO_LIMIT,
    example: "200",
    meaning: "Most launches of an agent",
    only_at_start: false,
    class: LIMIT,
};

/// Longest time for the run.
pub static TIMEOUT: Setting = Setting {
    key: "timeout",
    variable: "ATOMIC_TIMEOUT",
    flag: Some("timeout"),
    kind: Kind::Time { least: 1 },
    preset: NO_LIMIT,
    example: "8h",
    meaning: "Longest time for the whole run, such as 90s, 30m or 8h",
    only_at_start: false,
    class: LIMIT,
};

/// Longest time for a turn.
pub static TURN_TIMEOUT: Setting = Setting {
    key: "turn_timeout",
    variable: "ATOMIC_TURN_TIMEOUT",
    flag: Some("turn-timeout"),
    kind: Kind::Time { least: 1 },
    preset: Preset::Value("30m"),
    example: "1h",
    meaning: "Longest time for one turn or check",
    only_at_start: false,
    class: LIMIT,
};

/// The longest wait for a provider.
pub static RETRY_WINDOW: Setting = Setting {
    key: "retry_window",
    variable: "ATOMIC_RETRY_WINDOW",
    flag: Some("retry-window"),
    kind: Kind::Time { least: 0 },
    preset: Preset::Words("6h; 2m for `-p` and editors"),
    example: "12h",
    meaning: "Longest wait for a provider that refuses requests; then the run pauses. 0 fails at once",
    only_at_start: false,
    class: Class::User,
};

/// The credential that pays.
pub static PAY: Setting = Setting {
    key: "pay",
    variable: "ATOMIC_PAY",
    flag: Some("pay"),
    kind: Kind::Choice(&[
        ("subscription", "The login of the program with an account that has a plan"),
        ("key", "The API key in an environment variable"),
        ("token", "The token in an environment variable"),
        ("settings", "The key or token in your settings file of the program"),
        ("helper", "The command in your settings file of the program that prints a key"),
        ("stored", "The key that the program itself has stored"),
        ("cloud", "The account of a cloud provider"),
    ]),
    preset: Preset::Words("the only credential; several are refused without a terminal"),
    example: "subscription",
    meaning: "The credential that pays; the others are withheld from the program",
    only_at_start: false,
    class: Class::User,
};

/// Whether the machine is kept awake.
pub static INHIBIT_SLEEP: Setting = Setting {
    key: "inhibit_sleep",
    variable: "ATOMIC_INHIBIT_SLEEP",
    flag: Some("inhibit-sleep"),
    kind: Kind::Switch,
    preset: Preset::Value("true"),
    example: "false",
    meaning: "Keep the machine from sleeping while `run` or `resume` works",
    only_at_start: false,
    class: Class::User,
};

/// What agents take over.
pub static INHERIT: Setting = Setting {
    key: "inherit",
    variable: "ATOMIC_INHERIT",
    flag: Some("inherit"),
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
    class: Class::Stricter { unless_set: "all", order: &["none", "project", "all"] },
};

/// Variables that workflows may read.
pub static ENV_ALLOW: Setting = Setting {
    key: "env_allow",
    variable: "ATOMIC_ENV_ALLOW",
    flag: Some("env-allow"),
    kind: Kind::Names,
    preset: Preset::Words("HOME, USER, LANG, TERM, PATH, CI, TZ, SHELL, PWD and TMPDIR only"),
    example: "GITHUB_TOKEN",
    meaning: "Further environment variables that a workflow's own code may read",
    only_at_start: false,
    class: Class::User,
};

/// Whether the repository is trusted this time, whatever was decided before.
pub static TRUST: Setting = Setting {
    key: "trust",
    variable: "ATOMIC_TRUST",
    flag: Some("trust"),
    kind: Kind::Switch,
    preset: Preset::Words("what you decided for the repository"),
    example: "true",
    meaning: "Use what the project defines: hooks, MCP servers, checks, agents, workflows",
    only_at_start: false,
    class: Class::User,
};

/// Folders below which everything is trusted.
pub static TRUSTED_FOLDERS: Setting = Setting {
    key: "trusted_folders",
    variable: "ATOMIC_TRUSTED_FOLDERS",
    flag: None,
    kind: Kind::Names,
    preset: Preset::Words("none"),
    example: "~/work",
    meaning: "Folders in which every repository is trusted without a question",
    only_at_start: false,
    class: Class::User,
};

/// Whether agents may work without permission prompts as root.
pub static ALLOW_ROOT: Setting = Setting {
    key: "allow_root",
    variable: "ATOMIC_ALLOW_ROOT",
    flag: Some("allow-root"),
    kind: Kind::Switch,
    preset: Preset::Value("false"),
    example: "true",
    meaning: "Let agents work without permission prompts as root, on a disposable machine",
    only_at_start: false,
    class: Class::User,
};

/// A setting that names the agent to use for a role of Ralph.
const fn role(key: &'static str, variable: &'static str, meaning: &'static str) -> Setting {
    Setting {
        key,
        variable,
        flag: None,
        kind: Kind::Text,
        preset: Preset::Words("the built-in agent, or `.atomic/agents`"),
        example: "my-agent",
        meaning,
        only_at_start: true,
        class: Class::User,
    }
}

/// The agent that plans in Ralph.
pub static RALPH_PLANNER: Setting =
    role("ralph.planner", "ATOMIC_RALPH_PLANNER", "Agent that plans the tasks of Ralph");

/// The agent that works in Ralph.
pub static RALPH_WORKER: Setting =
    role("ralph.worker", "ATOMIC_RALPH_WORKER", "Agent that implements the tasks of Ralph");

/// The agent that reviews in Ralph.
pub static RALPH_REVIEWER: Setting =
    role("ralph.reviewer", "ATOMIC_RALPH_REVIEWER", "Agent that reviews the work of Ralph");

/// Every setting, in the order in which they are shown.
pub static SETTINGS: &[&Setting] = &[
    &BACKEND,
    &MODEL,
    &SCRIPT,
    &WORKERS,
    &CHECK,
    &REQUIRE_CHECKS,
    &ON_QUESTION,
    &MAX_ITERATIONS,
    &MAX_ATTEMPTS,
    &MAX_REVIEW_ROUNDS,
    &MAX_COST,
    &MAX_TASK_COST,
    &MAX_TOKENS,
    &MAX_LAUNCHES,
    &TIMEOUT,
    &TURN_TIMEOUT,
    &RETRY_WINDOW,
    &PAY,
    &INHIBIT_SLEEP,
    &INHERIT,
    &ENV_ALLOW,
    &TRUST,
    &TRUSTED_FOLDERS,
    &ALLOW_ROOT,
    &RALPH_PLANNER,
    &RALPH_WORKER,
    &RALPH_REVIEWER,
];

/// The setting with this key, also in camelCase or kebab-case.
pub fn find(key: &str) -> Option<&'static Setting> {
    let key = snake_case(key);
    SETTINGS.iter().copied().find(|setting| setting.key == key)
}

/// The key of a setting that had another name.
pub fn renamed(key: &str) -> Option<&'static str> {
    (snake_case(key) == "sandbox").then_some(ALLOW_ROOT.key)
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
