//! Finding a project's checks.

use std::path::Path;

use atomic_files::PROJECT_LIMIT;
use atomic_registry::project::ProjectFiles;
use serde_json::Value;

/// The script that `npm init` writes; it tests nothing.
const NPM_PLACEHOLDER: &str = "no test specified";

/// The checks a project has, by what lies in its folder. A FIFO, a link out of the repository or a
/// file over 1 MB counts as not there.
pub fn found_gates(folder: &Path) -> Vec<String> {
    let Ok(files) = ProjectFiles::of(folder, std::env::home_dir().as_deref()) else {
        return vec![];
    };
    let has = |name: &str| files.is_file(Path::new(name));
    let text = |name: &str| files.read_text(Path::new(name), PROJECT_LIMIT).unwrap_or_default();
    let mut found = vec![];
    if has("Cargo.toml") {
        found.push("cargo test");
    }
    if has_npm_test(&text("package.json")) {
        found.push("npm test");
    }
    let python = has("pytest.ini") || has("conftest.py") || has("tests/conftest.py");
    if python
        || text("pyproject.toml").contains("[tool.pytest")
        || text("tox.ini").contains("[pytest]")
    {
        found.push("pytest");
    }
    if has("go.mod") {
        found.push("go test ./...");
    }
    let is_target = |line: &str| line.starts_with("test:") && !line.starts_with("test:=");
    if ["Makefile", "makefile", "GNUmakefile"].iter().any(|name| text(name).lines().any(is_target))
    {
        found.push("make test");
    }
    found.into_iter().map(str::to_owned).collect()
}

/// Words that the shell itself carries out, and that begin a command with syntax of its own.
const SHELL_WORDS: [&str; 36] = [
    "!", ".", ":", "[", "alias", "break", "case", "cd", "command", "continue", "do", "echo", "env",
    "eval", "exec", "exit", "export", "false", "for", "function", "if", "local", "printf", "pwd",
    "read", "readonly", "return", "set", "shift", "test", "time", "trap", "true", "umask", "until",
    "while",
];

/// Whether the shell can find the program that a command begins with. A command that begins with
/// anything but a plain word may be run.
pub(crate) fn can_start(command: &str, folder: &Path) -> bool {
    let mut words = command.split_whitespace();
    let word = words.find(|word| !is_assignment(word)).unwrap_or_default();
    let word = word.split([';', '|', '&', '<', '>']).next().unwrap_or_default();
    let is_plain = |c: char| c.is_alphanumeric() || "_-+./@%:,".contains(c);
    let sets_path = command.trim_start().starts_with("PATH=") || command.contains(" PATH=");
    if sets_path || !word.chars().all(is_plain) || word.is_empty() || SHELL_WORDS.contains(&word) {
        return true;
    }
    if word.contains('/') {
        return is_program(&folder.join(word));
    }
    let Some(path) = std::env::var_os("PATH") else { return true };
    std::env::split_paths(&path).any(|dir| is_program(&folder.join(dir).join(word)))
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let found = std::fs::metadata(path);
    found.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

fn has_npm_test(package: &str) -> bool {
    let package: Value = serde_json::from_str(package).unwrap_or_default();
    let script = package.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    !script.trim().is_empty() && !script.contains(NPM_PLACEHOLDER)
}

#[cfg(test)]
mod tests {
    use super::{can_start, found_gates};

    #[test]
    fn a_command_can_start_when_the_shell_finds_its_program() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        for (name, mode) in [("good.sh", 0o755), ("plain.sh", 0o644)] {
            let path = dir.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let table = [
            ("./good.sh --all", true),
            ("A=1 B='x' ./good.sh", true),
            ("./good.sh;true", true),
            ("./plain.sh", false),
            ("./gone.sh", false),
            ("A=1 ./gone.sh", false),
            ("no-such-program-anywhere", false),
            ("no-such-program-anywhere|cat", false),
            ("sh plain.sh", true),
            ("test -e x", true),
            ("if true; then true; fi", true),
            ("(./gone.sh)", true),
            ("\"$TOOL\" x", true),
            ("A=\"x y\" ./gone.sh", true),
            ("PATH=bin:$PATH gone", true),
        ];
        for (command, expected) in table {
            assert_eq!(can_start(command, dir.path()), expected, "{command}");
        }
    }

    #[test]
    fn checks_are_found_by_what_lies_in_the_folder() {
        let npm = |script: &str| format!(r#"{{"scripts": {{"test": "{script}"}}}}"#);
        let placeholder = npm(r#"echo \"Error: no test specified\" && exit 1"#);
        let table: &[(&str, &str, &[&str])] = &[
            ("Cargo.toml", "", &["cargo test"]),
            ("package.json", &npm("vitest"), &["npm test"]),
            ("package.json", &placeholder, &[]),
            ("package.json", "not json", &[]),
            ("pyproject.toml", "[tool.pytest.ini_options]", &["pytest"]),
            ("go.mod", "", &["go test ./..."]),
            ("Makefile", "all:\n\ntest: all\n\ttrue\n", &["make test"]),
            ("Makefile", "testing: all\n", &[]),
            ("README.md", "", &[]),
        ];
        for (name, content, expected) in table {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(name), content).unwrap();
            assert_eq!(found_gates(dir.path()), *expected, "{name}: {content}");
        }
    }
}
