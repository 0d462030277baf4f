//! Which files define checks, and which part of each.

use std::path::Path;

use serde_json::{Map, Value};

/// The part of a file that defines checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// The test sections of a `package.json`.
    Package,
    /// The sections of a TOML or INI file whose names contain one of these words, and the lines
    /// anywhere that begin with one of those keys.
    Sections(&'static [&'static str], &'static [&'static str]),
}

/// Files that define checks wherever they lie.
const WHOLE: [&str; 17] = [
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Justfile",
    "Taskfile.yml",
    "pytest.ini",
    "conftest.py",
    "tox.ini",
    "noxfile.py",
    ".coveragerc",
    ".rspec",
    "nextest.toml",
    "bunfig.toml",
    "Jenkinsfile",
    "phpunit.xml",
    "phpunit.xml.dist",
];

/// How the names of files that configure a test runner begin.
const RUNNERS: [&str; 9] = [
    "jest.config.",
    "vitest.config.",
    "vitest.workspace.",
    "playwright.config.",
    "cypress.config.",
    "karma.conf.",
    "ava.config.",
    ".mocharc.",
    "wdio.conf.",
];

/// Files of CI services at the root of a project.
const CI: [&str; 4] =
    [".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml"];

/// Folders of CI services.
const CI_FOLDERS: [&str; 3] = [".github/workflows", ".circleci", ".buildkite"];

/// Keys of a `package.json` that belong to its tests, besides the scripts.
const PACKAGE_KEYS: [&str; 7] = ["jest", "mocha", "vitest", "ava", "nyc", "c8", "tap"];

/// Which part of a file defines checks, if any does.
pub(super) fn defines_checks(place: &Path) -> Option<Part> {
    let name = place.file_name()?.to_str()?;
    if WHOLE.contains(&name)
        || RUNNERS.iter().any(|start| name.starts_with(start))
        || CI.contains(&name)
        || CI_FOLDERS.iter().any(|folder| place.starts_with(folder))
        || (place.parent().is_some_and(|folder| folder.ends_with(".cargo"))
            && matches!(name, "config.toml" | "config"))
    {
        return Some(Part::Whole);
    }
    match name {
        "package.json" => Some(Part::Package),
        "pyproject.toml" => {
            Some(Part::Sections(&["pytest", "tox", "nox", "test", "coverage"], &[]))
        }
        "setup.cfg" => Some(Part::Sections(&["pytest", "tox", "testenv", "coverage"], &[])),
        "Cargo.toml" => Some(Part::Sections(
            &["[test]", "profile.test", "metadata.nextest"],
            &["test", "doctest", "harness", "autotests", "exclude", "default-members"],
        )),
        _ => None,
    }
}

impl Part {
    /// The text that defines checks; empty when none does.
    pub(super) fn of(self, text: &str) -> String {
        match self {
            // A file without text still says something, such as that there are no tests to run.
            Self::Whole => format!("{text}\n"),
            Self::Package => package(text),
            Self::Sections(names, keys) => sections(text, names, keys),
        }
    }
}

/// The test scripts of a `package.json`, with what runs before and after them, and the settings of
/// its test runner.
fn package(text: &str) -> String {
    let Ok(Value::Object(package)) = serde_json::from_str(text) else { return String::new() };
    let mut kept = Map::new();
    let scripts = package.get("scripts").and_then(Value::as_object);
    for (name, script) in scripts.into_iter().flatten() {
        if name.contains("test") {
            kept.insert(format!("scripts.{name}"), script.clone());
        }
    }
    for key in PACKAGE_KEYS {
        kept.extend(package.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    if kept.is_empty() { String::new() } else { Value::Object(kept).to_string() }
}

fn sections(text: &str, names: &[&str], keys: &[&str]) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with('[') {
            inside = names.iter().any(|name| line.contains(name));
        }
        let key = line.split(['=', ' ']).next().unwrap_or_default();
        if inside || (line.contains('=') && keys.contains(&key)) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The words of commands that can be names of files in the project.
pub(super) fn named_in_commands(commands: &[String]) -> Vec<String> {
    let is_end = |c: char| c.is_whitespace() || "\"'`;|&<>()=".contains(c);
    let words = commands.iter().flat_map(|command| command.split(is_end));
    let can_be = |word: &&str| {
        let is_path = word.contains('.') || word.contains('/');
        is_path && !word.starts_with(['-', '/', '$', '~']) && word.len() < 200
    };
    words.filter(can_be).map(|word| word.trim_start_matches("./").to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{defines_checks, named_in_commands};

    fn part(name: &str, text: &str) -> Option<String> {
        let part = defines_checks(Path::new(name)).map(|part| part.of(text));
        part.filter(|text| !text.is_empty())
    }

    #[test]
    fn only_what_defines_checks_counts() {
        let same = [
            (
                "package.json",
                r#"{"scripts": {"test": "jest"}, "dependencies": {}}"#,
                r#"{"dependencies": {"a": "1"}, "scripts": {"build": "b", "test": "jest"}}"#,
            ),
            ("Cargo.toml", "[package]\nname = \"a\"\n", "[package]\nname = \"b\"\n"),
            ("pyproject.toml", "[project]\nname = \"a\"\n", "[project]\nname = \"b\"\n"),
            ("src/lib.rs", "a", "b"),
        ];
        for (name, before, after) in same {
            assert_eq!(part(name, before), part(name, after), "{name}");
        }
        let other = [
            (
                "package.json",
                r#"{"scripts": {"test": "jest"}}"#,
                r#"{"scripts": {"test": "true"}}"#,
            ),
            ("web/package.json", r#"{"jest": {}}"#, r#"{"jest": {"testMatch": []}}"#),
            ("Cargo.toml", "[lib]\nname = \"a\"\n", "[lib]\nname = \"a\"\ntest = false\n"),
            ("Cargo.toml", "", "[[test]]\nname = \"a\"\n"),
            ("pyproject.toml", "[tool.pytest.ini_options]\na = 1", "[tool.pytest.ini_options]\n"),
            ("tests/conftest.py", "a", ""),
            (".cargo/config.toml", "a", "b"),
            (".github/workflows/ci.yml", "a", "b"),
            ("Makefile", "test:\n\tcargo test\n", "test:\n"),
            ("vitest.config.mts", "a", "b"),
        ];
        for (name, before, after) in other {
            assert_ne!(part(name, before), part(name, after), "{name}");
        }
    }

    #[test]
    fn files_that_a_command_names_are_found() {
        let command = "FOO=1 sh ./ci/test.sh --quick && python3 -m pytest 'tests/a b.py' > /tmp/x";
        assert_eq!(named_in_commands(&[command.to_owned()]), ["ci/test.sh", "tests/a", "b.py"]);
    }
}
