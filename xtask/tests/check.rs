//! `xtask check` from the outside: on workspaces that keep the rules and on ones that do not.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Whether the check passed, and what it printed.
fn check(workspace: &Path) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["check", "--manifest"])
        .arg(workspace.join("Cargo.toml"))
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

/// The violations, one a line, without the closing line.
fn violations(workspace: &Path) -> String {
    let (passed, said) = check(workspace);
    assert!(!passed, "the check passed: {said}");
    let (lines, closing) = said.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(closing, format!("{} rules broken", lines.lines().count()));
    lines.to_owned()
}

/// A copy of the clean workspace with `files` added.
fn clean_with(files: &[(&str, &str)]) -> TempDir {
    let copy = TempDir::new().unwrap();
    copy_folder(&fixture("clean"), copy.path());
    for (path, text) in files {
        let path = copy.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn a_workspace_that_keeps_the_rules_passes() {
    assert_eq!(check(&fixture("clean")), (true, "4 crates, 4 files: in order\n".to_owned()));
}

#[test]
fn a_forbidden_dependency_is_named_with_the_rule_it_breaks() {
    let expected = "\
crates/backend/Cargo.toml:8: backend → indicatif is forbidden: only cli may use indicatif
crates/backend/Cargo.toml:11: backend → session is forbidden: backend must not know workflows, sessions, nor the user interface; it may know files, event
crates/event/Cargo.toml:7: event → testing is forbidden: testing may only be a dev-dependency
crates/graph/Cargo.toml:7: graph → session is forbidden: graph must not do IO, async, clocks or randomness, nor know agents; it may know no other crate
crates/graph/Cargo.toml:8: graph → uuid is forbidden: graph must not do IO, async, clocks or randomness, nor know agents, and may only use jsonschema, schemars, serde, serde_json, thiserror
crates/session/Cargo.toml:8: session → tokio is forbidden: session must not interpret a workflow, nor be asynchronous
crates/wizard/Cargo.toml:2: crate `atomic-wizard` has no rule; say in xtask/src/check/rules.rs what it must not do";
    assert_eq!(violations(&fixture("forbidden-edges")), expected);
}

/// Code in which everything has the given sizes.
fn sized(lines: usize, fields: usize, variants: usize, parameters: usize) -> String {
    let repeat = |count, text: fn(usize) -> String| (0..count).map(text).collect::<String>();
    let body = repeat(lines - 2, |i| format!("    let _v{i} = {i};\n"));
    let fields = repeat(fields, |i| format!("f{i}: u8, "));
    let variants = repeat(variants, |i| format!("V{i}, "));
    let parameters = repeat(parameters, |i| format!("_p{i}: u8, "));
    format!(
        "fn long() {{\n{body}}}\n\
         struct Wide {{ {fields} }}\n\
         enum Many {{ {variants} }}\n\
         impl Wide {{\n    fn busy({parameters}) {{}}\n}}\n"
    )
}

#[test]
fn what_is_too_large_is_reported_all_at_once_and_the_limit_itself_is_kept() {
    let within = sized(79, 14, 24, 5);
    let (passed, said) = check(clean_with(&[("crates/graph/src/fits.rs", &within)]).path());
    assert!(passed, "{said}");

    let beyond = sized(80, 15, 25, 6);
    let found = violations(clean_with(&[("crates/graph/src/large.rs", &beyond)]).path());
    let expected = "\
crates/graph/src/large.rs:1: function `long` has 80 lines, limit: under 80
crates/graph/src/large.rs:81: struct `Wide` has 15 fields, limit: under 15
crates/graph/src/large.rs:82: enum `Many` has 25 variants, limit: under 25
crates/graph/src/large.rs:84: function `busy` has 6 parameters, limit: 5";
    assert_eq!(found, expected);
}

#[test]
fn a_file_is_measured_without_its_tests() {
    let code = |lines: usize| "// a line\n".repeat(lines);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", sized(300, 20, 30, 9));
    let fits = clean_with(&[
        ("crates/graph/src/fits.rs", &(code(499) + &tests)),
        ("crates/graph/src/parent.rs", "#[cfg(test)]\nmod proofs;\n"),
        ("crates/graph/src/parent/proofs.rs", &code(600)),
        ("crates/graph/src/fits_tests.rs", &code(600)),
        ("crates/graph/tests/all.rs", &sized(300, 20, 30, 9)),
    ]);
    let (passed, said) = check(fits.path());
    assert!(passed, "{said}");

    let long = clean_with(&[("crates/graph/src/long.rs", &(code(500) + &tests))]);
    let expected =
        "crates/graph/src/long.rs:1: file has 500 lines without its tests, limit: under 500";
    assert_eq!(violations(long.path()), expected);
}

#[test]
fn a_pure_crate_cannot_reach_for_the_standard_library_either() {
    let code = "\
use std::collections::{BTreeMap, HashMap};
use std::time::{self, Duration};
fn now() -> time::Instant { time::Instant::now() }
fn read() -> String { std::fs::read_to_string(\"x\").unwrap_or_default() }
#[cfg(test)]
mod tests { use std::fs; }
";
    let found = violations(clean_with(&[("crates/graph/src/impure.rs", code)]).path());
    let rule = "graph must not do IO, async, clocks or randomness, nor know agents";
    let expected = [
        format!("crates/graph/src/impure.rs:1: graph uses std::collections::HashMap: {rule}"),
        format!("crates/graph/src/impure.rs:3: graph uses std::time::Instant: {rule}"),
        format!("crates/graph/src/impure.rs:4: graph uses std::fs: {rule}"),
    ];
    assert_eq!(found, expected.join("\n"));

    let elsewhere = clean_with(&[("crates/testing/src/impure.rs", code)]);
    assert!(check(elsewhere.path()).0, "the rule is about graph only");
}

#[test]
fn a_name_that_says_nothing_is_refused() {
    let found = violations(
        clean_with(&[
            ("crates/event/src/helpers/mod.rs", ""),
            ("crates/event/src/lib.rs", "//! A crate.\n\nmod utils {}\n"),
            ("crates/event/src/typesetting.rs", ""),
            ("crates/event/tests/common.rs", ""),
        ])
        .path(),
    );
    let expected = "\
crates/event/src/helpers/mod.rs:1: module `helpers`: the name says nothing; call it by what it does
crates/event/src/lib.rs:3: module `utils`: the name says nothing; call it by what it does
crates/event/tests/common.rs:1: module `common`: the name says nothing; call it by what it does";
    assert_eq!(found, expected);
}

#[test]
fn a_crate_without_the_workspace_lints_is_refused() {
    let manifest = "[package]\nname = \"atomic-graph\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    let found = violations(clean_with(&[("crates/graph/Cargo.toml", manifest)]).path());
    let expected = "crates/graph/Cargo.toml:1: crate `atomic-graph` does not take the workspace's \
                    lints; add [lints] workspace = true";
    assert_eq!(found, expected);
}

#[test]
fn a_package_registry_is_named_nowhere_but_in_the_form_of_cargos_lock_file() {
    // In pieces, so that this file keeps the rule.
    let host = ["crates", "io"].join(".");
    let index = ["registry", "+https://github.com/rust-lang/", &host, "-index"].concat();
    let mirror = ["sparse", "+https://mirror.example/"].concat();
    let npm_host = ["registry", "npmjs", "org"].join(".");
    let npm_lock = format!(
        "\"version\": \"1.0.0\",\n\"integrity\": \"sha512-x\",\n\
         \"resolved\": \"https://{npm_host}/a.tgz\",\n\
         \"resolved\": \"https://mirror.example/a.tgz\",\n"
    );
    let lock = format!("source = \"{index}\"\nsource = \"{mirror}\"\n");
    let found = violations(
        clean_with(&[
            ("Cargo.lock", &lock),
            ("Cargo.lock.orig", &format!("source = \"{index}\"\n")),
            ("README.md", &format!("my{host}, {host}ta\nsee https://{host}/crates/x\n")),
            (".cargo/config.toml", "[alias]\nx = \"run\"\n[source.mirror]\n"),
            ("agents/.npmrc", "fund=false\n@us:registry=https://mirror.example/\n"),
            ("agents/package-lock.json", &npm_lock),
        ])
        .path(),
    );
    let says = |place: &str, what: &str| {
        format!("{place}: names a package registry ({what}); leave that to the machine")
    };
    let expected = [
        says(".cargo/config.toml:3", "[source"),
        says("Cargo.lock:2", &["sparse", "+http"].concat()),
        says("Cargo.lock.orig:1", &host),
        says("README.md:2", &host),
        says("agents/.npmrc:2", "registry"),
        says("agents/package-lock.json:3", npm_host.trim_start_matches("registry.")),
        says("agents/package-lock.json:4", "\"resolved\": \"http"),
    ];
    assert_eq!(found, expected.join("\n"));
}

#[test]
fn a_variable_that_is_not_declared_is_refused() {
    // In pieces, so that this file keeps the rule.
    let name = ["ATOMIC", "FROBNICATE"].join("_");
    let script = format!("echo \"${{{name}:-}}\" # ATOMIC_WORKERS, MY_ATOMIC_THING, ATOMIC_*\n");
    let found = violations(clean_with(&[(".ci/run", &script), ("docs/x.md", &name)]).path());
    let table = "crates/registry/src/settings/table.rs";
    assert_eq!(found, format!(".ci/run:1: {name} is not declared in {table}"));

    let manifest = "[package]\nname = \"atomic-registry\"\nversion = \"0.1.0\"\n\
                    edition = \"2024\"\n[lints]\nworkspace = true\n";
    let unused = clean_with(&[
        ("crates/registry/Cargo.toml", manifest),
        ("crates/registry/src/lib.rs", "//! A crate.\n"),
        (table, "// ATOMIC_STEP\n"),
        ("crates/event/src/home.rs", "// ATOMIC_HOME\n"),
    ]);
    let found = violations(unused.path());
    assert!(found.contains(&format!("{table}:1: nothing uses ATOMIC_STEP")), "{found}");
    assert!(!found.contains("ATOMIC_HOME") && !found.contains("ATOMIC_WORKERS"), "{found}");
}
