//! Settings on their way from files, variables and flags to a run.

use std::path::{Path, PathBuf};

use atomic_registry::settings::{
    ALLOW_ROOT, BACKEND, CHECK, ENV_ALLOW, Files, INHERIT, INHIBIT_SLEEP, Kind, MAX_ATTEMPTS,
    MAX_COST, MAX_ITERATIONS, MAX_LAUNCHES, MAX_REVIEW_ROUNDS, MAX_TASK_COST, MAX_TOKENS, MODEL,
    ON_QUESTION, Origin, PAY, Problem, RALPH_PLANNER, RALPH_REVIEWER, RALPH_WORKER, REQUIRE_CHECKS,
    RETRY_WINDOW, Reading, SCRIPT, SETTINGS, Scope, Setting, Sourced, TIMEOUT, TRUST, TURN_TIMEOUT,
    Value, Values, WORKERS, read, read_users_own, read_variables,
};
use atomic_runner::{Inherit, OnQuestion, Settings};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::failure::Failure;
use crate::{home, paint};

/// The flags of settings that a session keeps from its start on.
#[derive(Clone, Debug, Default)]
pub(crate) struct StartArgs(Values);

/// The flags of settings that can be changed when a session is resumed.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingsArgs(Values);

/// The flags of settings that decide what an agent program has in a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlaceArgs(Values);

/// Reads a value of a setting, as files and variables do.
#[derive(Clone)]
struct Parser(&'static Setting);

impl TypedValueParser for Parser {
    type Value = Value;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Value, clap::Error> {
        let parse = |text: &str| self.0.parse(text);
        parse.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let Kind::Choice(choices) = self.0.kind else { return None };
        let choice = |(name, meaning): &(&'static str, &'static str)| {
            PossibleValue::new(*name).help(*meaning)
        };
        Some(Box::new(choices.iter().map(choice)))
    }
}

/// The flag of a setting. Its variable is named, but not read here: files come between the two.
fn flag(setting: &'static Setting) -> Arg {
    let Setting { key, variable, flag, meaning, preset, kind, .. } = setting;
    let flag = flag.unwrap_or(key);
    let about = format!("{meaning} [default: {}]", preset.text());
    let is_list = matches!(kind, Kind::Commands | Kind::Names);
    let mut arg = Arg::new(*key);
    if *kind == Kind::Switch {
        arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true");
    }
    arg.long(flag)
        .value_name(kind.placeholder())
        .value_parser(Parser(setting))
        .action(if is_list { ArgAction::Append } else { ArgAction::Set })
        .help(format!("{about} [env: {variable}]"))
        .long_help(format!("{about}\n\n[env: {variable}]"))
}

/// Says which settings have their flags given together.
type Group = fn(&&'static Setting) -> bool;

const AT_START: Group = |setting| setting.only_at_start;
const AT_ANY_TIME: Group = |setting| !setting.only_at_start;
const OF_A_PLACE: Group = |setting| {
    [&BACKEND, &SCRIPT, &INHERIT, &TRUST, &ALLOW_ROOT].iter().any(|one| one.key == setting.key)
};

fn settings_of(group: Group) -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().copied().filter(|setting| setting.flag.is_some()).filter(group)
}

/// The id of the flag that says the opposite of `--trust`.
const NO_TRUST: &str = "no_trust";

/// The flags of a group, and those that belong to one of them.
fn flags_of(group: Group) -> Vec<Arg> {
    let mut flags: Vec<Arg> = settings_of(group).map(flag).collect();
    if settings_of(group).any(|setting| setting.key == TRUST.key) {
        let about = "Go on without what the project defines, whatever you decided before";
        let no_trust = Arg::new(NO_TRUST).long("no-trust").help(about);
        flags.push(no_trust.action(ArgAction::SetTrue).conflicts_with(TRUST.key));
        let sandbox = Arg::new("sandbox").long("sandbox").hide(true).num_args(0..=1);
        flags.push(sandbox.default_missing_value("true").value_parser(renamed_sandbox));
    }
    flags
}

/// Refuses `--sandbox`, which is kept free for confining agents.
fn renamed_sandbox(_: &str) -> Result<bool, String> {
    Err("--sandbox is now --allow-root; it lets agents work as root and confines nothing"
        .to_owned())
}

fn given(matches: &ArgMatches, group: Group) -> Values {
    let mut values = Values::default();
    for setting in settings_of(group) {
        let Some(found) = matches.get_many::<Value>(setting.key) else { continue };
        let value = found.cloned().reduce(joined);
        let origin = Origin::Flag(setting.flag.unwrap_or_default());
        values.extend(value.map(|value| (setting, Sourced { value, origin })));
    }
    if matches.try_get_one::<bool>(NO_TRUST).ok().flatten() == Some(&true) {
        values.insert(&TRUST, Sourced { value: false.into(), origin: Origin::Flag("no-trust") });
    }
    values
}

/// The values of a command whose one flag of a setting is `--trust`.
pub(crate) fn trust_flag(is_given: bool) -> Values {
    let mut values = Values::default();
    if is_given {
        values.insert(&TRUST, Sourced { value: true.into(), origin: Origin::Flag("trust") });
    }
    values
}

/// What is given several times: all of a list, else the last.
pub(crate) fn joined(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::List(mut all), Value::List(more)) => {
            all.extend(more);
            Value::List(all)
        }
        (_, second) => second,
    }
}

/// Lets a type take the flags of its group from the command line.
macro_rules! flags {
    ($args:ident, $group:expr) => {
        impl FromArgMatches for $args {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self(given(matches, $group)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                self.0 = given(matches, $group).over(std::mem::take(&mut self.0));
                Ok(())
            }
        }

        impl Args for $args {
            fn augment_args(command: Command) -> Command {
                command.args(flags_of($group))
            }

            fn augment_args_for_update(command: Command) -> Command {
                Self::augment_args(command)
            }
        }
    };
}

flags!(StartArgs, AT_START);
flags!(SettingsArgs, AT_ANY_TIME);
flags!(PlaceArgs, OF_A_PLACE);

impl From<&PlaceArgs> for Values {
    fn from(args: &PlaceArgs) -> Self {
        args.0.clone()
    }
}

/// The flags of a run that begins.
pub(crate) fn start_flags(start: &StartArgs, more: &SettingsArgs) -> Values {
    start.0.clone().over(more.0.clone())
}

impl StartArgs {
    /// The first flag that was given, without its dashes.
    pub(crate) fn first_flag(&self) -> Option<&'static str> {
        first_flag(&self.0)
    }
}

impl SettingsArgs {
    /// The flag `--trust`, if it was given, and no other.
    pub(crate) fn trusting(is_given: bool) -> Self {
        Self(trust_flag(is_given))
    }

    /// The first flag that was given, without its dashes.
    pub(crate) fn first_flag(&self) -> Option<&'static str> {
        first_flag(&self.0)
    }
}

fn first_flag(given: &Values) -> Option<&'static str> {
    given.iter().find_map(|(setting, _)| setting.flag)
}

/// The settings files of the project in this folder, and of the user.
pub(crate) fn files(project: &Path) -> Files {
    Files::new(home::folder().as_deref(), project).with_home(home::user())
}

/// Everything below the flags in the project in this folder; what is odd is told.
pub(crate) fn below_flags(project: &Path, trusted: bool) -> Result<Values, Failure> {
    sound(read(&files(project), trusted, std::env::vars_os()))
}

/// The values below the flags that are the user's own. Problems are told by [`below_flags`].
pub(crate) fn users_own(files: &Files) -> Values {
    read_users_own(files, std::env::vars_os()).values
}

/// What is to be changed in a session that is resumed. What it was started with stays, so files
/// have no say.
pub(crate) fn for_resume(flags: &SettingsArgs) -> Result<Values, Failure> {
    Ok(flags.0.clone().over(sound(read_variables(std::env::vars_os()))?))
}

/// The values, when nothing is wrong. A ceiling that is silently left out costs money.
fn sound(reading: Reading) -> Result<Values, Failure> {
    for warning in &reading.warnings {
        paint::warn(&warning.to_string());
    }
    if reading.problems.is_empty() {
        return Ok(reading.values);
    }
    let text: Vec<String> = reading.problems.iter().map(Problem::to_string).collect();
    let text = text.join("\n");
    let is_usage = reading.problems.iter().all(Problem::is_in_variable);
    Err(if is_usage { Failure::Usage(text) } else { Failure::Failed(text) })
}

/// The agent program, when one was chosen. Whoever names a script wants it played.
pub(crate) fn backend(values: &Values) -> Option<&str> {
    let by_script = values.get(&SCRIPT).map(|_| "script");
    values.text(&BACKEND).or(by_script)
}

/// The project's settings file that chose the backend, where one did.
pub(crate) fn backend_from(values: &Values, project: &Path) -> Option<String> {
    let Origin::File { scope: Scope::Project, path, .. } = &values.get(&BACKEND)?.origin else {
        return None;
    };
    let path = path.strip_prefix(project).unwrap_or(path);
    Some(path.display().to_string())
}

/// The model.
pub(crate) fn model(values: &Values) -> Option<String> {
    values.text(&MODEL).map(str::to_owned)
}

/// Changes what was set. `somebody` is whether a person can answer questions here.
pub(crate) fn apply(values: &Values, settings: &mut Settings, somebody: bool) {
    let limits = &mut settings.limits;
    limits.iterations = values.small_number(&MAX_ITERATIONS).or(limits.iterations);
    limits.attempts = values.small_number(&MAX_ATTEMPTS).unwrap_or(limits.attempts);
    limits.review_rounds = values.small_number(&MAX_REVIEW_ROUNDS).unwrap_or(limits.review_rounds);
    limits.require_checks = values.switch(&REQUIRE_CHECKS).unwrap_or(limits.require_checks);
    if let Some(path) = values.text(&SCRIPT) {
        settings.script = Some(absolute(path));
    }
    settings.workers = values.small_number(&WORKERS).or(settings.workers);
    if let Some(commands) = values.list(&CHECK) {
        settings.checks = Some(commands.to_vec());
    }
    if let Some(names) = values.list(&ENV_ALLOW) {
        settings.env_allow = names.to_vec();
    }
    let budget = &mut settings.budget;
    budget.max_cost_usd = values.money(&MAX_COST).or(budget.max_cost_usd);
    budget.max_task_cost_usd = values.money(&MAX_TASK_COST).or(budget.max_task_cost_usd);
    budget.max_tokens = values.number(&MAX_TOKENS).or(budget.max_tokens);
    settings.max_launches = values.number(&MAX_LAUNCHES).or(settings.max_launches);
    settings.timeout_secs = values.seconds(&TIMEOUT).or(settings.timeout_secs);
    settings.turn_timeout_secs =
        values.seconds(&TURN_TIMEOUT).unwrap_or(settings.turn_timeout_secs);
    let program = &mut settings.program;
    program.retry_window_secs = values.seconds(&RETRY_WINDOW).unwrap_or(program.retry_window_secs);
    program.pay = values.text(&PAY).map(str::to_owned).or(program.pay.take());
    program.inhibit_sleep = values.switch(&INHIBIT_SLEEP).unwrap_or(program.inhibit_sleep);
    program.allow_root = values.switch(&ALLOW_ROOT).unwrap_or(program.allow_root);
    settings.inherit = match values.text(&INHERIT) {
        Some("all") => Inherit::All,
        Some("project") => Inherit::Project,
        Some("none") => Inherit::None,
        _ => settings.inherit,
    };
    for (role, setting) in
        [("planner", &RALPH_PLANNER), ("worker", &RALPH_WORKER), ("reviewer", &RALPH_REVIEWER)]
    {
        if let Some(agent) = values.text(setting) {
            settings.roles.insert(role.to_owned(), agent.to_owned());
        }
    }
    settings.on_question = match (values.text(&ON_QUESTION), settings.on_question) {
        (Some("recommended"), _) | (None, OnQuestion::Recommended) => OnQuestion::Recommended,
        (Some("fail"), _) | (None, OnQuestion::Fail) => OnQuestion::Fail,
        (None, OnQuestion::Ask | OnQuestion::Pause) if somebody => OnQuestion::Ask,
        (Some(_), _) | (None, OnQuestion::Ask | OnQuestion::Pause) => OnQuestion::Pause,
    };
}

/// A session is resumed from anywhere, so a path in it must not depend on where we are.
fn absolute(path: &str) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path))
}
