//! Which files the commands of checks name, also through rules of Makefiles, scripts of packages
//! and shell scripts.

use std::collections::BTreeSet;

/// Programs that run the file that is named after them.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python2", "python3", "pypy3", "node",
    "nodejs", "deno", "bun", "tsx", "ts-node", "ruby", "perl", "php", "lua", "Rscript", "julia",
    "pwsh", "source", ".", "uv", "poetry", "pipenv", "pdm", "hatch", "rye", "bundle", "npx",
    "bunx", "pnpm", "yarn",
];

/// Words before the program of a command.
const BEFORE: &[&str] = &[
    "env", "exec", "sudo", "time", "nice", "nohup", "timeout", "xargs", "command", "if", "then",
    "else", "elif", "while", "until", "do", "!", "eval", "not", "and", "or",
];

/// Words between an interpreter and its file.
const BETWEEN: &[&str] = &["run", "exec", "test", "dlx", "x", "--"];

/// Options whose value is a folder in which the rest happens.
const INTO: &[&str] = &["-C", "--directory", "--prefix", "--cwd", "--dir"];

/// A command that has a name in a file: a rule of a Makefile, a variable, a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) name: String,
    pub(super) text: String,
    /// Whether it counts although no check names it.
    pub(super) is_first: bool,
}

/// The names in commands that can be files or folders of the project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) files: BTreeSet<String>,
    /// Folders in which the rest of the commands happens.
    pub(super) folders: BTreeSet<String>,
}

fn is_end(c: char) -> bool {
    c.is_whitespace() || "\"'`;|&<>(){}=,\\".contains(c)
}

/// The words of a text, which can be names of rules and scripts.
pub(super) fn words(text: &str) -> Vec<&str> {
    text.split(is_end).filter(|word| !word.is_empty()).collect()
}

/// The names in the command of a check: every word that can be one.
pub(super) fn named_in_check(command: &str) -> Names {
    let mut names = Names::default();
    // A name with blanks in it stands in quotes.
    let quoted = command.split(['"', '\'']).skip(1).step_by(2);
    let commands = command.split(|c: char| "\n;|&()`".contains(c)).filter(|it| !only_looks(it));
    let single = commands.flat_map(|command| command.split(|c: char| is_end(c) && c != ','));
    for word in single.chain(quoted) {
        names.files.extend(forms(word));
        if !word.starts_with('-') {
            names.folders.extend(forms(word));
        }
    }
    names
}

/// Whether a command only asks about a file: `test -e done` is about the work, and not defined by it.
fn only_looks(command: &str) -> bool {
    let mut words = command.split_whitespace().skip_while(|word| BEFORE.contains(word));
    words.next().is_some_and(|word| matches!(word, "test" | "[" | "[["))
}

/// The names in a recipe or script: files that it runs, and settings that it hands to a program.
/// Other words are often what is built and tested.
pub(super) fn named_in_recipe(text: &str) -> Names {
    let mut names = Names::default();
    let text = with_plain_variables(&text.replace("\\\n", " "));
    for command in text.split(|c: char| "\n;|&()`".contains(c)) {
        let command = command.trim_start().trim_start_matches(['@', '-', '+']);
        if !command.starts_with('#') {
            take_command(command, &mut names);
        }
    }
    names
}

/// Writes `$(NAME)` and `${NAME}` as `$NAME`: one word, and not the beginning of a command.
fn with_plain_variables(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        plain.push_str(before);
        plain.push('$');
        let inside = behind.strip_prefix(['(', '{']).and_then(|it| it.split_once([')', '}']));
        let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
        rest = match inside.filter(|(name, _)| is_name(name)) {
            Some((name, behind)) => {
                plain.push_str(name);
                behind
            }
            None => behind,
        };
    }
    plain + rest
}

/// The place of the next word in a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Program,
    /// The file that an interpreter runs.
    Script,
    Argument,
    Folder,
    /// The value of an option that names settings.
    Settings,
}

fn take_command(command: &str, names: &mut Names) {
    let mut next = Next::Program;
    for word in command.split(|c: char| c.is_whitespace() || "\"'{}<>".contains(c)) {
        let program = word.rsplit('/').next().unwrap_or_default();
        next = match next {
            _ if word.is_empty() => next,
            Next::Folder => {
                names.folders.extend(forms(word));
                Next::Argument
            }
            Next::Settings => {
                names.files.extend(forms(word));
                Next::Argument
            }
            _ if INTO.contains(&word) => Next::Folder,
            _ if word.starts_with('-') => {
                let (option, value) = word.split_once('=').unwrap_or((word, ""));
                let is_settings = ["conf", "rc", "file", "require", "setup", "import"]
                    .iter()
                    .any(|part| option.contains(part))
                    || matches!(option, "-f" | "-c" | "-r");
                match (value.is_empty(), is_settings) {
                    // The shell's `-c` has a command.
                    (true, true) if next == Next::Argument => Next::Settings,
                    (false, true) => {
                        names.files.extend(forms(value));
                        next
                    }
                    _ => next,
                }
            }
            Next::Program if matches!(word, "cd" | "pushd") => Next::Folder,
            Next::Program if matches!(word, "include" | "-include" | "sinclude") => Next::Settings,
            Next::Program
                if BEFORE.contains(&word)
                    || word.contains('=')
                    || word.chars().all(|c| c.is_ascii_digit()) =>
            {
                Next::Program
            }
            // A file can have such a name as well.
            Next::Script if BETWEEN.contains(&word) => {
                names.files.extend(forms(word));
                Next::Script
            }
            Next::Program | Next::Script if INTERPRETERS.contains(&program) => {
                names.files.extend(forms(word));
                Next::Script
            }
            Next::Program | Next::Script => {
                names.files.extend(forms(word));
                Next::Argument
            }
            Next::Argument => next,
        };
    }
}

/// Names that a word can stand for: without the folder that a variable or another command stands
/// for, without the option that it is glued to, without the test in the file.
fn forms(word: &str) -> Vec<String> {
    let word = word.split("::").next().unwrap_or_default().trim_start_matches('@');
    if word.is_empty() || word.len() > 300 {
        return vec![];
    }
    let mut forms = vec![];
    if let Some(option) = word.strip_prefix('-') {
        forms.extend(option.get(1..).filter(|value| !value.is_empty() && !option.starts_with('-')));
    } else if word.starts_with(['$', '~']) {
        forms.extend(word.split_once('/').map(|(_, rest)| rest));
    } else {
        forms.push(word);
        if word.starts_with('/') {
            // `$(pwd)/ci/check.sh` ends as `/ci/check.sh`.
            forms.push(word.trim_start_matches('/'));
        }
    }
    forms.into_iter().filter(|form| !form.is_empty()).map(str::to_owned).collect()
}

/// The rules and variables of a Makefile or justfile, and the files that it includes.
pub(super) fn make_units(text: &str) -> (Vec<Unit>, Vec<String>) {
    let text = text.replace("\\\n", " ");
    let (mut units, mut included): (Vec<Unit>, Vec<String>) = (vec![], vec![]);
    let mut current = 0;
    let unit = |name: &str, text: &str| Unit {
        name: name.trim().to_owned(),
        text: text.to_owned(),
        is_first: false,
    };
    for line in text.lines() {
        if line.starts_with([' ', '\t']) {
            for unit in units.iter_mut().rev().take(current) {
                unit.text.push('\n');
                unit.text.push_str(line.trim());
            }
            continue;
        }
        let mut words = line.split_whitespace();
        if matches!(words.next(), Some("include" | "-include" | "sinclude" | "import")) {
            included.extend(words.map(|word| word.trim_matches(['"', '\'']).to_owned()));
        } else if let Some((name, value)) = assignment(line) {
            current = 0;
            units.push(unit(name.trim_start_matches("export "), value));
        } else if let Some((targets, rest)) = line.split_once(':') {
            // Prerequisites are words, and a recipe can follow on the same line.
            let text = rest.trim_start_matches(':').replace(';', "\n");
            let targets: Vec<Unit> =
                targets.split_whitespace().map(|target| unit(target, &text)).collect();
            current = targets.len();
            units.extend(targets);
        }
    }
    (units, included)
}

fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+', '!']);
    (!name.contains([':', '#'])).then_some((name.trim(), value))
}

/// The units that can be reached from some words: those with such a name, and those that these name.
pub(super) fn reached<'u, U>(units: &'u [U], wanted: &[String]) -> Vec<&'u U>
where
    U: AsRef<Unit>,
{
    let mut wanted: BTreeSet<String> = wanted.iter().cloned().collect();
    let mut is_found = vec![false; units.len()];
    loop {
        let mut more = vec![];
        for (found, unit) in is_found.iter_mut().zip(units) {
            let it = unit.as_ref();
            if !*found && (it.is_first || wanted.contains(&it.name)) {
                *found = true;
                more.extend(words(&it.text).into_iter().map(|word| word.trim_start_matches('@')));
            }
        }
        if more.is_empty() {
            break;
        }
        wanted.extend(more.into_iter().map(str::to_owned));
    }
    is_found.iter().zip(units).filter_map(|(found, unit)| found.then_some(unit)).collect()
}
