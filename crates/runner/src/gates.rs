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

fn has_npm_test(package: &str) -> bool {
    let package: Value = serde_json::from_str(package).unwrap_or_default();
    let script = package.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    !script.trim().is_empty() && !script.contains(NPM_PLACEHOLDER)
}

#[cfg(test)]
mod tests {
    use super::found_gates;

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
