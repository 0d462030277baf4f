//! `xtask backends`: `docs/backends.md`, made of what has passed on the real agent programs.
//!
//! The suite of backends notes every check that passes in a folder. A table says which checks prove
//! which capability, and what a program cannot do; whatever is neither proved nor declared, or both,
//! is an error.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::metadata::Metadata;
use crate::test;

/// The page.
const PAGE: &str = "docs/backends.md";

/// The table.
const TABLE: &str = "crates/testing/src/conformance/backend/capabilities.toml";

/// Tells the tests the folder.
pub(crate) const VARIABLE: &str = "ATOMIC_CONFORMANCE";

/// The folder in which a file `<backend>/<version>/<check>` stands for a check that has passed.
pub(crate) fn folder(metadata: &Metadata) -> PathBuf {
    metadata.target_directory.join("conformance")
}

/// Forgets what has passed before.
pub(crate) fn forget(metadata: &Metadata) -> Result<(), String> {
    let folder = folder(metadata);
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(&folder).map_err(|e| format!("cannot remove {}: {e}", folder.display()))
}

/// Writes the page.
pub(crate) fn write(metadata: &Metadata) -> Result<(), String> {
    let page = page(metadata, false)?;
    let path = metadata.workspace_root.join(PAGE);
    fs::write(path, page).map_err(|e| format!("cannot write {PAGE}: {e}"))
}

/// Fails when the page is not what [`write`] would write. In a `sampled` run only some of the checks
/// were played in older versions of a program; those that were not played are not required.
pub(crate) fn compare(metadata: &Metadata, sampled: bool) -> Result<(), String> {
    let page = page(metadata, sampled)?;
    let found = fs::read_to_string(metadata.workspace_root.join(PAGE))
        .map_err(|e| format!("cannot read {PAGE}: {e}; run cargo xtask backends"))?;
    if found == page {
        return Ok(());
    }
    Err(format!("{PAGE} is not what the agent programs can do; run cargo xtask backends"))
}

fn page(metadata: &Metadata, sampled: bool) -> Result<String, String> {
    let path = metadata.workspace_root.join(TABLE);
    let text = fs::read_to_string(path).map_err(|e| format!("cannot read {TABLE}: {e}"))?;
    let table: Table = toml::from_str(&text).map_err(|e| format!("{TABLE}: {e}"))?;
    let folder = folder(metadata);
    if !folder.exists() {
        let folder = folder.display();
        return Err(format!(
            "nothing has been noted in {folder}; run cargo xtask test --full first"
        ));
    }
    let columns: Vec<Column> =
        table.backends.iter().map(|backend| Column::read(backend, &folder, sampled)).collect();
    table.check(&columns)?;
    Ok(table.draw(&columns))
}

/// What is declared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    backends: Vec<Backend>,
    #[serde(default)]
    exception: Vec<Exception>,
    capability: Vec<Capability>,
    failure: Vec<Capability>,
    #[serde(default)]
    trouble: Vec<Trouble>,
}

/// Trouble with a provider, as a program tells it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trouble {
    trouble: String,
    backend: String,
    /// The field of the program's protocol.
    field: String,
    /// What it says, shortened.
    sample: String,
    /// What is made of it: the code, the status, and the time of the next try.
    becomes: String,
}

/// A backend with a column.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Backend {
    name: String,
    title: String,
}

/// A check that a backend does not pass.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    backend: String,
    check: String,
    /// For the suite, which sees that it fails, and with this.
    #[serde(rename = "fails_with")]
    _fails_with: String,
    instead: String,
}

/// A line of the page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Capability {
    name: String,
    checks: Vec<String>,
}

/// What has passed on a backend.
struct Column {
    name: String,
    title: String,
    /// The tested versions, the newest last.
    versions: Vec<Version>,
}

/// A version of an agent program.
struct Version {
    number: &'static str,
    passed: BTreeSet<String>,
    /// Whether only some of the checks were played.
    is_sampled: bool,
}

impl Column {
    fn read(backend: &Backend, folder: &Path, sampled: bool) -> Self {
        let passed = |version: &str| {
            let entries = fs::read_dir(folder.join(&backend.name).join(version));
            let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
            names.filter_map(|name| name.into_string().ok()).collect()
        };
        let version = |number| Version { number, passed: passed(number), is_sampled: sampled };
        let mut versions: Vec<Version> = test::versions(&backend.name).map(version).collect();
        if let Some(newest) = versions.last_mut() {
            newest.is_sampled = false;
        }
        let (name, title) = (backend.name.clone(), backend.title.clone());
        Self { name, title, versions }
    }

    fn heading(&self) -> String {
        let versions: Vec<&str> = self.versions.iter().map(|version| version.number).collect();
        format!("{} {}", self.title, versions.join(", "))
    }
}

impl Table {
    /// Says everything that is neither proved nor declared, or both.
    fn check(&self, columns: &[Column]) -> Result<(), String> {
        let mut problems = vec![];
        for Column { name, versions, .. } in columns {
            if versions.is_empty() {
                problems.push(format!("no version of {name} is installed by cargo xtask agents"));
            }
            for Version { number: version, passed, is_sampled } in versions {
                for check in self.checks() {
                    let is_exception = self.exception(name, check).is_some();
                    match (passed.contains(check), is_exception) {
                        (true, false) | (false, true) => {}
                        (false, false) if *is_sampled => {}
                        (false, false) => {
                            problems.push(format!("{check} has not passed on {name} {version}"));
                        }
                        (true, true) => problems.push(format!(
                            "{check} has passed on {name} {version}: it is no exception any more"
                        )),
                    }
                }
            }
        }
        let known: BTreeSet<&str> = self.checks().collect();
        for Exception { backend, check, .. } in &self.exception {
            let is_backend = columns.iter().any(|column| column.name == *backend);
            if !is_backend || !known.contains(check.as_str()) {
                problems.push(format!("the exception {check} of {backend} is about nothing here"));
            }
        }
        for Trouble { backend, trouble, .. } in &self.trouble {
            if !columns.iter().any(|column| column.name == *backend) {
                problems.push(format!("the trouble {trouble} is about no backend: {backend}"));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(format!("{TABLE}: {}", problems.join("\n"))) }
    }

    fn checks(&self) -> impl Iterator<Item = &str> {
        let lines = self.capability.iter().chain(&self.failure);
        lines.flat_map(|line| line.checks.iter().map(String::as_str))
    }

    fn exception(&self, backend: &str, check: &str) -> Option<&Exception> {
        self.exception.iter().find(|it| it.backend == backend && it.check == check)
    }

    fn draw(&self, columns: &[Column]) -> String {
        let capabilities = self.draw_lines("", &self.capability, columns);
        let failures = self.draw_lines("code", &self.failure, columns);
        let trouble = self.draw_trouble(columns);
        format!(
            "\
# Backends

<!-- Written by `cargo xtask backends` from {TABLE}
     and from what has passed; do not edit. -->

One suite runs on every backend, with the real programs in the versions named here and a
[scripted model](model-server.md). *Yes* means that every check of that line has passed in each of
them, in the last run of `cargo xtask test --full`; where a program cannot do something, it says what you
see instead.

{capabilities}
## Failures that are told apart

Each has a code of its own, a message that says what to do, and a policy: wait, try again, or fail.

{failures}
## Provider trouble

The words of each program for trouble with its provider, recorded with the versions in the table, and
what Atomic makes of them: the code, the status, and the time of the next try (`retry_at`). The status
decides where the program tells one, and words where it does not; among errors with the status 429,
words tell a used up quota from a limited rate. Inside a turn trouble may last two minutes, and a turn
whose next try is more than a minute away is ended at once. *Untested* means that it cannot be seen
without a login.

{trouble}"
        )
    }

    fn draw_trouble(&self, columns: &[Column]) -> String {
        let mut text = "| trouble | program | field | sample | becomes |\n".to_owned();
        text.push_str("|---|---|---|---|---|\n");
        for Trouble { trouble, backend, field, sample, becomes } in &self.trouble {
            let column = columns.iter().find(|column| column.name == *backend);
            let program = column.map(Column::heading).unwrap_or_default();
            let row = [trouble, &program, field, sample, becomes].map(|it| it.replace('|', "\\|"));
            text.push_str(&format!("| {} |\n", row.join(" | ")));
        }
        text
    }

    fn draw_lines(&self, corner: &str, lines: &[Capability], columns: &[Column]) -> String {
        let headings: Vec<String> = columns.iter().map(Column::heading).collect();
        let mut text = format!("| {corner} | {} |\n", headings.join(" | "));
        text.push_str(&format!("|---|{}\n", "---|".repeat(columns.len())));
        for line in lines {
            let cells: Vec<String> = columns.iter().map(|it| self.cell(line, &it.name)).collect();
            text.push_str(&format!("| {} | {} |\n", line.name, cells.join(" | ")));
        }
        text
    }

    /// Only after everything was checked.
    fn cell(&self, line: &Capability, backend: &str) -> String {
        let exceptions = line.checks.iter().filter_map(|check| self.exception(backend, check));
        let instead: Vec<&str> = exceptions.map(|it| it.instead.as_str()).collect();
        match instead.len() {
            0 => "yes".to_owned(),
            some if some < line.checks.len() => format!("partly: {}", instead.join("; ")),
            _ => format!("no: {}", instead.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Column, Table, Version};

    const TABLE: &str = r#"
        backends = [{ name = "one", title = "The One" }]

        [[exception]]
        backend = "one"
        check = "sings"
        fails_with = "no voice"
        instead = "it hums"

        [[capability]]
        name = "Talking"
        checks = ["talks", "listens"]

        [[capability]]
        name = "Music"
        checks = ["sings"]

        [[capability]]
        name = "Stage"
        checks = ["dances"]

        [[failure]]
        name = "`gone`"
        checks = ["is_told"]

        [[trouble]]
        trouble = "429"
        backend = "one"
        field = "`status`"
        sample = "`busy|60`"
        becomes = "`rate_limited`"
    "#;

    fn table(more: &str) -> Table {
        toml::from_str(&format!("{TABLE}\n{more}")).unwrap()
    }

    /// What has passed in the newer version; in the older one everything has that can.
    fn column(passed: &str) -> Column {
        let names = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let version = |number, passed| Version { number, passed: names(passed), is_sampled: false };
        let versions = vec![version("1.0", "talks listens dances is_told"), version("1.1", passed)];
        Column { name: "one".to_owned(), title: "The One".to_owned(), versions }
    }

    #[test]
    fn whatever_is_neither_proved_nor_declared_or_both_is_said() {
        let all = "talks listens dances is_told";
        let exception = |backend: &str, check: &str| {
            format!(
                "[[exception]]\nbackend = '{backend}'\ncheck = '{check}'\nfails_with = 'x'\n\
                 instead = 'it claps'"
            )
        };
        let table_of = [
            ("", all, None),
            ("", "talks dances", Some("listens has not passed on one 1.1\nis_told has not passed")),
            (
                "",
                "talks listens dances is_told sings",
                Some("sings has passed on one 1.1: it is no exception any more"),
            ),
            (&exception("two", "talks"), all, Some("the exception talks of two is about nothing")),
            (&exception("one", "walks"), all, Some("the exception walks of one is about nothing")),
            // In the older version it has.
            (
                &exception("one", "dances"),
                "talks listens is_told",
                Some("dances has passed on one 1.0: it is no exception"),
            ),
        ];
        for (more, passed, expected) in table_of {
            let said = table(more).check(&[column(passed)]).err();
            let fits = match (&said, expected) {
                (Some(said), Some(part)) => said.contains(part),
                (said, expected) => said.is_none() && expected.is_none(),
            };
            assert!(fits, "{more} {passed}: {said:?}");
        }
        let none = Column { versions: vec![], ..column("") };
        let said = table("").check(&[none]).unwrap_err();
        assert!(said.contains("no version of one is installed"), "{said}");
    }

    #[test]
    fn a_sampled_version_need_not_prove_everything_but_must_not_pass_an_exception() {
        let mut column = column("talks listens dances is_told");
        column.versions[0].is_sampled = true;
        column.versions[0].passed = ["talks".to_owned()].into();
        assert_eq!(table("").check(&[column]), Ok(()));

        let mut column = self::column("talks listens dances is_told");
        column.versions[0].is_sampled = true;
        column.versions[0].passed = ["sings".to_owned()].into();
        let said = table("").check(&[column]).unwrap_err();
        assert!(said.contains("sings has passed on one 1.0: it is no exception"), "{said}");
    }

    #[test]
    fn a_cell_says_what_there_is_instead() {
        let more = "[[exception]]\nbackend = 'one'\ncheck = 'listens'\nfails_with = 'x'\n\
                    instead = 'it nods'";
        let page = table(more).draw(&[column("")]);
        for line in [
            "|  | The One 1.0, 1.1 |",
            "| Talking | partly: it nods |",
            "| Music | no: it hums |",
            "| Stage | yes |",
            "| code | The One 1.0, 1.1 |",
            "| `gone` | yes |",
            "| 429 | The One 1.0, 1.1 | `status` | `busy\\|60` | `rate_limited` |",
        ] {
            assert!(page.lines().any(|it| it == line), "{line}\n{page}");
        }
    }
}
