//! Texts made from the table: the reference page, and the file `atomic init` writes.

use std::fmt::Write as _;

use super::table::{BACKEND, Class, Preset, SETTINGS, Setting};
use super::value::{Kind, Value};
use super::variables::{Audience, VARIABLES, Variable};

/// What stands above the settings in `docs/settings.md`.
const ABOVE: &str = "\
# Settings

<!-- Written by `cargo xtask docs` from crates/registry/src/settings; do not edit. -->

Every setting has a key for files and an environment variable, most have a flag of `atomic run` and,
unless it says otherwise, `atomic resume`. The later of these wins:

1. the built-in value,
2. `settings.json` in the user's folder, `~/.atomic` unless `ATOMIC_HOME` names another,
3. `.atomic/settings.json` in the project, the folder in which `atomic` is run, as far as a project
   may set it: each setting says when ([security](security.md) says why),
4. the environment variable; an empty one counts as not set,
5. the flag.

`atomic config list` shows every value and where it comes from. A session keeps the settings it was
started with; when it is resumed, only variables and flags given then change them, files do not.
`atomic demo` takes nothing from files or variables.

## Files

`atomic init` writes a file with everything in it, commented out; `atomic config set <key> <value>`
and `atomic config unset <key>` change the project's file, with `--user` the user's.

A file is JSON; comments and trailing commas are fine. Keys may also be written in camelCase or
kebab-case (`maxCost`, `max-cost`). Numbers and amounts stand without quotes, a time as `\"30m\"` or
as a number of seconds, commands as a list of texts or one text. A relative path in a file is taken from
the project's folder, in the user's file too; in a variable or a flag it is taken from the folder in
which `atomic` is run.

A key that does not exist is kept, and warned about. A wrong value, a key that is set twice or a
file that cannot be read is an error: nothing is started, because a ceiling that is not kept costs
money. If the user's file and the project's are the same, it is read once, as the user's.
";

/// The reference page.
pub fn reference() -> String {
    let mut page = format!("{ABOVE}\n## All settings\n");
    for setting in SETTINGS {
        page.push_str(&section(setting));
    }
    page.push_str("\n## Other variables\n");
    for (audience, heading) in [
        (Audience::Users, "For users:"),
        (Audience::Processes, "Given to the processes that `atomic` starts:"),
        (Audience::Tests, "For the tests, the benchmarks and CI of Atomic itself only:"),
    ] {
        let _ = write!(page, "\n{heading}\n\n| variable | meaning |\n|---|---|\n");
        let own = VARIABLES.iter().filter(|variable| variable.audience == audience);
        for Variable { name, meaning, .. } in own {
            let _ = writeln!(page, "| `{name}` | {meaning} |");
        }
    }
    page
}

fn section(setting: &Setting) -> String {
    let Setting { key, variable, flag, meaning, .. } = setting;
    let preset = match setting.preset {
        Preset::Value(text) => format!("`{text}`"),
        Preset::Words(text) => text.to_owned(),
    };
    let values = setting.kind.words();
    let flag = flag.map_or_else(String::new, |flag| format!(", flag `--{flag}`"));
    let mut text = format!(
        "\n### `{key}`\n\n{meaning}.\n\n- variable `{variable}`{flag}\n- values: \
         {values}\n- built-in: {preset}\n- example: `\"{key}\": {}`\n",
        example(setting)
    );
    if let Kind::Choice(choices) = setting.kind {
        for (name, meaning) in choices {
            let _ = writeln!(text, "- `{name}`: {meaning}");
        }
    }
    if setting.kind == Kind::Commands {
        text.push_str("- the variable holds one command; an empty list in a file: none at all\n");
    }
    if setting.key == BACKEND.key {
        text.push_str("- a command (`acp:…`) or `script` in the project's file never counts\n");
    }
    let _ = writeln!(text, "- in the project's file: {}", in_project(setting));
    if setting.only_at_start {
        text.push_str("- only for `atomic run`: a session keeps it\n");
    }
    text
}

/// When a project's file can set it.
fn in_project(setting: &Setting) -> String {
    match setting.class {
        Class::Free => "counts".to_owned(),
        Class::Stricter { order: [], unless_set: "" } => {
            "counts when it is smaller than yours".to_owned()
        }
        Class::Stricter { order: [], unless_set } => {
            format!("counts when it is smaller than yours, or than {unless_set} if you set none")
        }
        Class::Stricter { order, .. } => {
            let order: Vec<String> = order.iter().map(|name| format!("`{name}`")).collect();
            format!("counts when it is stricter than yours ({})", order.join(", then "))
        }
        Class::Trusted => "counts when you trust the repository".to_owned(),
        Class::User => "never counts".to_owned(),
    }
}

/// An example as it stands in a file.
fn example(setting: &Setting) -> String {
    shown(setting, setting.example)
}

fn shown(setting: &Setting, text: &str) -> String {
    let value = setting.parse(text).unwrap_or_else(|_| Value::Text(text.to_owned()));
    value.to_json().to_string()
}

/// A settings file in which everything is commented out.
pub fn template() -> String {
    let mut text = "\
// Settings of this project. Each line below is commented out; built-in values hold until one is not.
// `atomic config list` shows what holds now and why. Comments and trailing commas are fine.
{
"
    .to_owned();
    for setting in SETTINGS.iter().filter(|setting| setting.class != Class::User) {
        let meaning = match setting.kind {
            Kind::Choice(_) => format!("{}: {}", setting.meaning, setting.kind.words()),
            Kind::Text
            | Kind::Path
            | Kind::Number { .. }
            | Kind::Money
            | Kind::Time { .. }
            | Kind::Commands
            | Kind::Names
            | Kind::Switch => setting.meaning.to_owned(),
        };
        let line = match setting.preset {
            Preset::Value(preset) => format!("\"{}\": {},", setting.key, shown(setting, preset)),
            Preset::Words(words) => {
                format!("\"{}\": {}, // built-in: {words}", setting.key, example(setting))
            }
        };
        let _ = write!(text, "  // {}\n  // {line}\n", meaning.replace('`', ""));
    }
    text.push_str("}\n");
    text
}
