//! Which files define checks, and which part of each.

use std::path::Path;

use serde_json::{Map, Value};

use super::command::{Unit, words};

/// The part of a file that defines checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// All of it where a check runs one of these programs.
    WholeFor(&'static [&'static str]),
    /// The test scripts and test settings of a JSON file such as `package.json`.
    Scripts,
    /// The sections of a TOML or INI file whose names contain one of these words, and the values
    /// anywhere that have one of those keys.
    Sections(&'static [&'static str], &'static [&'static str]),
    /// The lines that contain one of these words.
    Lines(&'static [&'static str]),
}

/// Files that define checks wherever they lie.
const WHOLE: &[&str] = &[
    // Task runners.
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Justfile",
    ".justfile",
    "Taskfile.yml",
    "Taskfile.yaml",
    "taskfile.yml",
    "taskfile.yaml",
    "Taskfile.dist.yml",
    "Taskfile.dist.yaml",
    "Rakefile",
    "rakefile",
    "Rakefile.rb",
    "Earthfile",
    "SConstruct",
    "Jakefile",
    "magefile.go",
    "mise.toml",
    ".mise.toml",
    "turbo.json",
    "nx.json",
    "lerna.json",
    "pnpm-workspace.yaml",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    // Test runners and the programs that start them.
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "conftest.py",
    "tox.ini",
    "tox.toml",
    "noxfile.py",
    ".coveragerc",
    ".rspec",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".nycrc",
    ".nycrc.json",
    ".taprc",
    "jasmine.json",
    "deno.jsonc",
    "bunfig.toml",
    "nextest.toml",
    "go.work",
    "dart_test.yaml",
    "phpunit.xml",
    "phpunit.xml.dist",
    // CI.
    "Jenkinsfile",
];

/// Endings of files that define checks.
const ENDINGS: &[&str] = &["mk", "just", "runsettings"];

/// How the names of files that configure a test runner begin.
const RUNNERS: &[&str] = &[
    "jest.config.",
    "jest.setup.",
    "vitest.config.",
    "vitest.setup.",
    "vitest.workspace.",
    "playwright.config.",
    "cypress.config.",
    "karma.conf.",
    "ava.config.",
    "codecept.conf.",
    "nightwatch.conf.",
    "web-test-runner.config.",
    ".mocharc.",
    "wdio.conf.",
    "gulpfile.",
    "Gruntfile.",
];

/// Files of CI services at the root of a project.
const CI: &[&str] = &[
    ".gitlab-ci.yml",
    ".travis.yml",
    ".drone.yml",
    ".woodpecker.yml",
    ".woodpecker.yaml",
    ".cirrus.yml",
    ".appveyor.yml",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "buildspec.yml",
    "cloudbuild.yaml",
];

/// Folders of CI services.
const CI_FOLDERS: &[&str] = &[
    ".github/workflows",
    ".github/actions",
    ".gitea/workflows",
    ".forgejo/workflows",
    ".circleci",
    ".buildkite",
    ".woodpecker",
    ".semaphore",
];

/// Keys of a `package.json` or `deno.json` that belong to its tests, besides the scripts.
const PACKAGE_KEYS: &[&str] =
    &["jest", "mocha", "vitest", "ava", "nyc", "c8", "tap", "jasmine", "wireit", "test"];

/// Keys of JSON files that hold commands by name.
const SCRIPT_KEYS: [&str; 2] = ["scripts", "tasks"];

/// Tables of `pyproject.toml` for tests, and of programs that run commands for it.
const PYPROJECT: &[&str] = &[
    "pytest",
    "tox",
    "nox",
    "test",
    "coverage",
    "tool.poe",
    "taskipy",
    "tool.hatch.envs",
    "tool.pdm.scripts",
    "tool.rye.scripts",
];

const CARGO: Part = Part::Sections(
    &["[test]", "profile.test", "metadata.nextest"],
    &["test", "doctest", "harness", "autotests", "exclude", "default-members"],
);

/// Which part of a file defines checks, if any does.
pub(super) fn defines_checks(place: &Path) -> Option<Part> {
    let name = place.file_name()?.to_str()?;
    let ending = place.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    // A service reads the folder at the root of the repository, which may lie above the project.
    let from_root = place.strip_prefix("..").unwrap_or(place);
    if WHOLE.contains(&name)
        || ENDINGS.contains(&ending)
        || RUNNERS.iter().any(|start| name.starts_with(start))
        || CI.contains(&name)
        || CI_FOLDERS.iter().any(|folder| from_root.starts_with(folder))
        || (place.parent().is_some_and(|folder| folder.ends_with(".cargo"))
            && matches!(name, "config.toml" | "config"))
    {
        return Some(Part::Whole);
    }
    // In a package these are modules like others.
    match place.to_str() {
        Some("tasks.py") => return Some(Part::WholeFor(&["invoke", "inv"])),
        Some("dodo.py") => return Some(Part::WholeFor(&["doit"])),
        _ => {}
    }
    Some(match name {
        "package.json" | "composer.json" | "deno.json" => Part::Scripts,
        "pyproject.toml" => Part::Sections(PYPROJECT, &[]),
        "setup.cfg" => Part::Sections(&["pytest", "tox", "testenv", "coverage", "aliases"], &[]),
        "Cargo.toml" => CARGO,
        "CMakeLists.txt" => Part::Lines(&["add_test", "enable_testing", "discover_tests"]),
        "pom.xml" => Part::Lines(&["skip", "surefire", "failsafe", "testFailureIgnore"]),
        "build.gradle" | "build.gradle.kts" => {
            Part::Lines(&["test {", "tasks.test", "exclude", "ignoreFailures", "useJUnit"])
        }
        _ => return None,
    })
}

/// Whether a file holds commands under names: rules of a Makefile, scripts of a `package.json`.
pub(super) fn has_units(place: &Path) -> bool {
    let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let ending = place.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    matches!(ending, "mk" | "just")
        || matches!(name.to_ascii_lowercase().trim_start_matches('.'), "makefile" | "justfile")
        || name == "GNUmakefile"
        || defines_checks(place) == Some(Part::Scripts)
}

impl Part {
    /// The text that defines checks; empty when none does. `wanted` are the words of the checks,
    /// which can be names of scripts.
    pub(super) fn of(self, bytes: &[u8], wanted: &[String]) -> Vec<u8> {
        let text = || String::from_utf8_lossy(bytes);
        match self {
            // A file without text still says something, such as that there are no tests to run.
            Self::Whole => [bytes, b"\n"].concat(),
            Self::WholeFor(programs) => {
                let is_run = wanted.iter().any(|word| programs.contains(&word.as_str()));
                if is_run { [bytes, b"\n"].concat() } else { vec![] }
            }
            Self::Scripts => package(&text(), wanted).into_bytes(),
            Self::Sections(names, keys) => sections(&text(), names, keys).into_bytes(),
            Self::Lines(parts) => {
                let text = text();
                let lines = text.lines().map(str::trim);
                let kept = lines.filter(|line| parts.iter().any(|part| line.contains(part)));
                kept.flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
            }
        }
    }
}

/// The test scripts of a `package.json`, with the scripts that they run and what runs before and
/// after them, and the settings of its test runner.
fn package(text: &str, wanted: &[String]) -> String {
    let Ok(Value::Object(package)) = serde_json::from_str(text) else { return String::new() };
    let mut kept = Map::new();
    for key in SCRIPT_KEYS {
        let Some(scripts) = package.get(key).and_then(Value::as_object) else { continue };
        for name in reached(scripts, wanted) {
            kept.extend(scripts.get(&name).map(|it| (format!("{key}.{name}"), it.clone())));
        }
    }
    for key in PACKAGE_KEYS {
        kept.extend(package.get(*key).map(|value| ((*key).to_owned(), value.clone())));
    }
    if kept.is_empty() { String::new() } else { Value::Object(kept).to_string() }
}

/// The names of scripts that a check can run: those for tests, those it names, and what these run.
fn reached(scripts: &Map<String, Value>, wanted: &[String]) -> Vec<String> {
    let is_first = |name: &&String| name.contains("test") || wanted.contains(name);
    let mut found: Vec<String> = scripts.keys().filter(is_first).cloned().collect();
    let mut next = 0;
    while let Some(name) = found.get(next).cloned() {
        next += 1;
        let text = scripts.get(&name).map(Value::to_string).unwrap_or_default();
        let words = words(&text);
        let is_run = |other: &str| {
            let is_named = |word: &&str| match word.strip_suffix('*') {
                Some(start) => start.len() > 1 && other.starts_with(start),
                None => *word == other,
            };
            let is_beside = |start: &str| other.strip_prefix(start) == Some(name.as_str());
            is_beside("pre") || is_beside("post") || words.iter().any(is_named)
        };
        let more: Vec<String> =
            scripts.keys().filter(|it| !found.contains(it) && is_run(it)).cloned().collect();
        found.extend(more);
    }
    found
}

/// The scripts of a `package.json` that a check can run.
pub(super) fn package_units(text: &str, wanted: &[String]) -> Vec<Unit> {
    let Ok(Value::Object(package)) = serde_json::from_str(text) else { return vec![] };
    let tables = SCRIPT_KEYS.iter().filter_map(|key| package.get(*key)?.as_object());
    let units = tables.flat_map(|scripts| {
        reached(scripts, wanted).into_iter().map(|name| {
            let text = match scripts.get(&name) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(all)) => {
                    all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
                }
                _ => String::new(),
            };
            Unit { name, text, words: String::new(), is_variable: false, is_first: true }
        })
    });
    units.collect()
}

fn sections(text: &str, names: &[&str], keys: &[&str]) -> String {
    let mut kept = String::new();
    let (mut inside, mut is_kept, mut depth) = (false, false, 0);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if depth == 0 {
            if line.starts_with('[') {
                inside = names.iter().any(|name| line.contains(name));
            }
            is_kept = inside || has_key(line, names, keys);
        }
        // A list can go on for several lines, and what begins with a bracket there is no header.
        if depth > 0 || line.split_once('=').is_some_and(|(_, value)| value.contains('[')) {
            depth = (depth + open_brackets(line)).max(0);
        }
        if is_kept {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Whether a line sets one of these keys, or one of a table whose name contains one of these names.
fn has_key(line: &str, names: &[&str], keys: &[&str]) -> bool {
    let mut parts = line.split('=');
    let first = parts.next().filter(|_| line.contains('=')).unwrap_or_default().trim();
    let is_dotted = first.contains('.') && names.iter().any(|name| first.contains(name));
    let ends = line.split('=').map(|part| {
        let part = part.trim_end().trim_end_matches(['"', '\'']);
        part.rsplit(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').next()
    });
    // The part behind the last `=` is a value.
    let count = line.matches('=').count();
    is_dotted || ends.take(count).flatten().any(|key| keys.contains(&key))
}

/// How many more brackets a line of TOML opens than it closes, outside of texts and comments.
fn open_brackets(line: &str) -> i32 {
    let (mut depth, mut quote) = (0, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') => break,
            (None, '[') => depth += 1,
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    depth
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::defines_checks;

    fn part(name: &str, text: &str) -> Option<Vec<u8>> {
        let wanted = ["npm", "run", "verify"].map(str::to_owned);
        let part = defines_checks(Path::new(name)).map(|part| part.of(text.as_bytes(), &wanted));
        part.filter(|text| !text.is_empty())
    }

    type Case = (&'static str, &'static str, &'static str);

    const SAME: &[Case] = &[
        (
            "package.json",
            r#"{"scripts": {"test": "jest"}, "dependencies": {}}"#,
            r#"{"dependencies": {"a": "1"}, "scripts": {"build": "b", "test": "jest"}}"#,
        ),
        ("Cargo.toml", "[package]\nname = \"a\"\n", "[package]\nname = \"b\"\n"),
        ("pyproject.toml", "[project]\nname = \"a\"\n", "[project]\nname = \"b\"\n"),
        (
            "Cargo.toml",
            "[workspace]\nexclude = [\n\"a\",\n]\n[lib]\npath = \"a\"\n",
            "[workspace]\nexclude = [\n\"a\",\n]\n[lib]\npath = \"b\"\n",
        ),
        ("Cargo.toml", "[dependencies]\na = { v = \"test\" }\n", "[dependencies]\n"),
        ("build.gradle", "dependencies {\n}\n", "dependencies {\nimplementation 'a'\n}\n"),
        (
            "pnpm/package.json",
            r#"{"scripts": {"test": "a"}}"#,
            r#"{"scripts": {"test": "a", "b": "c"}}"#,
        ),
        ("src/lib.rs", "a", "b"),
    ];

    const OTHER: &[Case] = &[
        ("package.json", r#"{"scripts": {"test": "jest"}}"#, r#"{"scripts": {"test": "true"}}"#),
        ("web/package.json", r#"{"jest": {}}"#, r#"{"jest": {"testMatch": []}}"#),
        ("Cargo.toml", "[lib]\nname = \"a\"\n", "[lib]\nname = \"a\"\ntest = false\n"),
        ("Cargo.toml", "", "[[test]]\nname = \"a\"\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\na = 1", "[tool.pytest.ini_options]\n"),
        ("tests/conftest.py", "a", ""),
        (".cargo/config.toml", "a", "b"),
        (".github/workflows/ci.yml", "a", "b"),
        ("Makefile", "test:\n\tcargo test\n", "test:\n"),
        ("vitest.config.mts", "a", "b"),
        ("../.github/workflows/ci.yml", "a", "b"),
        ("sub/rules.mk", "a", "b"),
        (
            "package.json",
            r#"{"scripts": {"test": "npm run unit", "unit": "a"}}"#,
            r#"{"scripts": {"test": "npm run unit", "unit": "true"}}"#,
        ),
        (
            "package.json",
            r#"{"scripts": {"verify": "run-s unit:*", "unit:a": "a", "preunit:a": "b"}}"#,
            r#"{"scripts": {"verify": "run-s unit:*", "unit:a": "a", "preunit:a": "true"}}"#,
        ),
        (
            "Cargo.toml",
            "[workspace]\ndefault-members = [\n  \"a\",\n\n  \"b\",\n]\n",
            "[workspace]\ndefault-members = [\n  \"a\",\n]\n",
        ),
        ("Cargo.toml", "lib = { test = true }\n", "lib = { test = false }\n"),
        ("Cargo.toml", "[package]\nname = \"a\"\n", "[package]\nname = \"a\"\nlib.test = false\n"),
        (
            "pyproject.toml",
            "[tool.pytest]\na = [\n[\"b\"],\n]\nc = 1\n",
            "[tool.pytest]\na = [\n[\"b\"],\n]\nc = 2\n",
        ),
        ("pyproject.toml", "[tool]\npytest.ini_options.a = 1\n", "[tool]\n"),
        ("pom.xml", "<a/>\n", "<skipTests>true</skipTests>\n"),
    ];

    #[test]
    fn only_what_defines_checks_counts() {
        for (name, before, after) in SAME {
            assert_eq!(part(name, before), part(name, after), "{name}");
        }
        for name in [
            ".pytest.ini",
            "tox.toml",
            "Taskfile.yaml",
            ".justfile",
            "Rakefile",
            "go.work",
            ".npmrc",
            ".drone.yml",
            ".woodpecker.yml",
            ".gitea/workflows/ci.yml",
            "sub/ci.just",
        ] {
            assert_ne!(part(name, "a"), part(name, "b"), "{name}");
        }
        for (name, before, after) in OTHER {
            assert_ne!(part(name, before), part(name, after), "{name}");
        }
    }
}
