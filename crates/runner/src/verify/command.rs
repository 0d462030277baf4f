//! Which files the commands of checks name, also through rules of Makefiles, scripts of packages
//! and shell scripts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
    /// The commands of a rule or script.
    pub(super) text: String,
    /// Prerequisites of a rule, or the value of a variable.
    pub(super) words: String,
    pub(super) is_variable: bool,
    /// Whether it counts although no check names it.
    pub(super) is_first: bool,
}

/// The names in commands that can be files or folders of the project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) files: BTreeSet<String>,
    /// Names behind `test` or `--test`. Those of files with tests define no check.
    pub(super) tested: BTreeSet<String>,
    /// Folders in which the rest of the commands happens.
    pub(super) folders: BTreeSet<String>,
}

impl Names {
    fn take(&mut self, names: Vec<String>, is_test: bool) {
        if is_test { &mut self.tested } else { &mut self.files }.extend(names);
    }
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
    for name in quoted.filter(|it| it.contains(char::is_whitespace)) {
        names.files.extend(forms(name));
        names.folders.extend(forms(name));
    }
    let commands = command.split(|c: char| "\n;|&()`".contains(c)).filter(|it| !only_looks(it));
    for command in commands {
        let (mut is_test, mut program) = (false, "");
        let words = command.split(|c: char| is_end(c) && c != ',');
        for word in words.filter(|word| !word.is_empty()) {
            // `cd test` goes into a folder, and `sh test` runs a file.
            is_test |= word == "--test" || (!program.is_empty() && word == "test");
            program = if program.is_empty() { word } else { program };
            names.take(forms(word), is_test);
            if !word.starts_with('-') {
                names.folders.extend(forms(word));
            }
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
/// Other words are often what is built and tested. `variables` are those of a Makefile.
pub(super) fn named_in_recipe(text: &str, variables: &BTreeMap<&str, &str>) -> Names {
    let mut names = Names::default();
    // A variable can contain itself.
    let mut expansions = 100;
    let mut queue: VecDeque<String> = commands(text).into();
    while let Some(command) = queue.pop_front() {
        take_command(&command, variables, &mut expansions, &mut queue, &mut names);
    }
    names
}

fn commands(text: &str) -> Vec<String> {
    let text = with_plain_variables(&text.replace("\\\n", " "));
    let commands = text.split(|c: char| "\n;|&()`".contains(c));
    let commands = commands.map(|it| it.trim_start().trim_start_matches(['@', '-', '+']));
    commands.filter(|it| !it.starts_with('#')).map(str::to_owned).collect()
}

/// Writes `$(NAME)` and `${NAME}` as `$NAME`: one word, and not the beginning of a command.
fn with_plain_variables(text: &str) -> String {
    let mut plain = String::new();
    // The form of a justfile.
    let text = text.replace("{{ ", "$").replace("{{", "$").replace(" }}", "").replace("}}", "");
    let mut rest = text.as_str();
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

fn take_command(
    command: &str,
    variables: &BTreeMap<&str, &str>,
    expansions: &mut u32,
    queue: &mut VecDeque<String>,
    names: &mut Names,
) {
    let mut rest: VecDeque<String> = split(command).into();
    let (mut next, mut after) = (Next::Program, Next::Argument);
    let (mut program, mut is_test) = (String::new(), false);
    while let Some(word) = rest.pop_front() {
        let word = word.as_str();
        if next != Next::Argument
            && *expansions > 0
            && let Some(value) = expanded(word, variables)
        {
            *expansions -= 1;
            names.take(forms(word), is_test);
            let mut parts = commands(&value).into_iter();
            for part in split(&parts.next().unwrap_or_default()).into_iter().rev() {
                rest.push_front(part);
            }
            queue.extend(parts);
            continue;
        }
        let name = word.rsplit('/').next().unwrap_or_default();
        is_test |= word == "--test" || (!program.is_empty() && word == "test");
        next = match next {
            Next::Folder => {
                names.folders.extend(forms(word));
                after
            }
            Next::Settings => {
                names.files.extend(forms(word));
                after
            }
            _ if INTO.contains(&word) => {
                after = next;
                Next::Folder
            }
            _ if word.starts_with('-') => {
                let (option, value) = word.split_once('=').unwrap_or((word, ""));
                match (value.is_empty(), names_settings(&program, option)) {
                    (true, true) => {
                        after = next;
                        Next::Settings
                    }
                    (false, true) => {
                        names.files.extend(forms(value));
                        next
                    }
                    _ if only_parses(&program, option) => Next::Argument,
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
                names.take(forms(word), is_test);
                Next::Script
            }
            Next::Program | Next::Script => {
                names.take(forms(word), is_test);
                program = if word.starts_with("./") { word } else { name }.to_owned();
                if INTERPRETERS.contains(&name) { Next::Script } else { Next::Argument }
            }
            Next::Argument => next,
        };
    }
}

fn split(text: &str) -> Vec<String> {
    let is_end = |c: char| c.is_whitespace() || "\"'{}<>".contains(c);
    text.split(is_end).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The value of the variable with which a word begins, and the rest of the word.
fn expanded(word: &str, variables: &BTreeMap<&str, &str>) -> Option<String> {
    let word = word.strip_prefix('$')?;
    let (name, rest) = word.split_at(word.find('/').unwrap_or(word.len()));
    variables.get(name).map(|value| format!("{}{rest}", value.trim()))
}

/// Whether the value of an option is a file with settings. Short options have another meaning in
/// other programs: `cc -c` is followed by a source, and `rm -f` by any file.
fn names_settings(program: &str, option: &str) -> bool {
    let Some(long) = option.strip_prefix("--") else {
        return match option {
            "-f" => {
                matches!(program, "make" | "gmake" | "$MAKE" | "just" | "docker" | "docker-compose")
            }
            "-c" => {
                matches!(program, "pytest" | "jest" | "vitest" | "nyc" | "tox" | "playwright")
                    || program.starts_with("./")
            }
            "-r" => matches!(program, "node" | "nodejs" | "mocha" | "ts-node"),
            _ => false,
        };
    };
    let mut spread = String::new();
    for c in long.chars() {
        if c.is_uppercase() {
            spread.push('-');
        }
        spread.extend(c.to_lowercase());
    }
    let has = |wanted: &[&str]| spread.split(['-', '_', '.']).any(|part| wanted.contains(&part));
    has(&["config", "conf", "rc", "rcfile", "nycrc", "require", "setup", "import", "file"])
        && !has(&["out", "output", "log", "report", "junit", "xml"])
}

/// Whether an interpreter only checks the syntax of its file.
fn only_parses(program: &str, option: &str) -> bool {
    match program {
        "node" | "nodejs" => matches!(option, "-c" | "--check"),
        "ruby" | "perl" => option == "-c",
        "php" => option == "-l",
        "sh" | "bash" | "dash" | "zsh" | "ksh" => option == "-n",
        _ => false,
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
        text: String::new(),
        words: text.to_owned(),
        is_variable: false,
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
            // A compiler writes the prerequisites of objects to `*.d`.
            let words = words.filter(|word| !word.ends_with(".d"));
            included.extend(words.map(|word| word.trim_matches(['"', '\'']).to_owned()));
        } else if let Some((name, value)) = assignment(line) {
            current = 0;
            let variable = unit(name.trim_start_matches("export "), value);
            units.push(Unit { is_variable: true, ..variable });
        } else if let Some((targets, rest)) = line.split_once(':') {
            // Prerequisites are words, and a recipe can follow on the same line.
            let rest = rest.trim_start_matches(':');
            let (words, recipe) = rest.split_once(';').unwrap_or((rest, ""));
            let rule = |target| Unit { text: recipe.to_owned(), ..unit(target, words) };
            let targets: Vec<Unit> = targets.split_whitespace().map(rule).collect();
            current = targets.len();
            units.extend(targets);
        }
    }
    for unit in &mut units {
        let first = unit.words.split_whitespace().next().unwrap_or_default();
        unit.text = unit.text.replace("$<", first).replace("$^", unit.words.trim());
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
                let all = words(&it.text).into_iter().chain(words(&it.words));
                more.extend(all.map(|word| word.trim_start_matches('@')));
            }
        }
        if more.is_empty() {
            break;
        }
        wanted.extend(more.into_iter().map(str::to_owned));
    }
    is_found.iter().zip(units).filter_map(|(found, unit)| found.then_some(unit)).collect()
}
