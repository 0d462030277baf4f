//! The types of the SDK for TypeScript, checked with the real compiler: the SDK itself, every
//! sample and every example are right, and every file of `xtask/tsc/wrong` is wrong where it says
//! so.
//!
//! The compiler is pinned in `xtask/tsc` and installed by npm into a cache outside the tree; only
//! this suite uses it. After a change to it, in its folder: `npm install --package-lock-only
//! --ignore-scripts --omit-lockfile-registry-resolved`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Log;
use super::npm::Packages;

const PACKAGES: &str = include_str!("../../tsc/package.json");
const PACKAGE_LOCK: &str = include_str!("../../tsc/package-lock.json");
const COMPILER: &str = "node_modules/typescript/bin/tsc";
const TYPESCRIPT: Packages = Packages {
    name: "tsc",
    what: "the TypeScript compiler",
    wanted: PACKAGES,
    locked: PACKAGE_LOCK,
    file: COMPILER,
};

/// The SDK, and how it is checked.
const SDK: &str = "crates/typescript/sdk";
const SDK_CONFIG: &str = include_str!("../../tsc/sdk.json");
/// What editors get, with which the files of users are checked.
const TYPES: &str = "crates/typescript/sdk/atomic.d.ts";
const CONFIG: &str = "crates/typescript/sdk/tsconfig.json";

/// The folders with files that are right.
const RIGHT: [&str; 2] = ["crates/workflow/tests/samples", "examples"];
/// The folder with files that are wrong; `//! TS2322` at the end of a line says how.
const WRONG: &str = "xtask/tsc/wrong";
const MARK: &str = "//! ";

/// The compiler, installed first where it is missing; the error says why it cannot be had.
pub(super) fn compiler(log: &Log) -> Result<PathBuf, String> {
    Ok(TYPESCRIPT.folder(log)?.join(COMPILER))
}

/// Checks the files of the tree in `root`, in a folder that is made for it.
pub(super) fn check(log: &Log, compiler: &Path, root: &Path, scratch: &Path) -> Result<(), String> {
    let own = Project { folder: scratch.join("sdk"), sources: "", types: None };
    own.begin(root)?;
    own.add(&root.join(SDK))?;
    own.is_right(log, compiler)?;
    let right = Project::of_user(scratch.join("right"));
    right.begin(root)?;
    for folder in RIGHT {
        right.add(&root.join(folder))?;
    }
    right.is_right(log, compiler)?;
    let wrong = Project::of_user(scratch.join("wrong"));
    wrong.begin(root)?;
    let expected = wrong.add(&root.join(WRONG))?;
    let said = wrong.compile(compiler)?;
    log.write(&said);
    compare(&expected, &said.lines().filter_map(complaint).collect())
}

fn compare(expected: &BTreeSet<String>, found: &BTreeSet<String>) -> Result<(), String> {
    if expected.is_empty() {
        return Err(format!("nothing is expected of {WRONG}"));
    }
    let missing = expected.difference(found).map(|mark| format!("not found: {mark}"));
    let more = found.difference(expected).map(|mark| format!("not expected: {mark}"));
    let wrong: Vec<String> = missing.chain(more).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Files that are compiled together.
struct Project {
    folder: PathBuf,
    /// Where in it the files are.
    sources: &'static str,
    /// Whether they are checked as those of users are: with the types and the rules for editors.
    types: Option<&'static str>,
}

impl Project {
    fn of_user(folder: PathBuf) -> Self {
        Self { folder, sources: "workflows", types: Some("types/atomic.d.ts") }
    }

    /// Makes the folder anew, without files.
    fn begin(&self, root: &Path) -> Result<(), String> {
        let folder = &self.folder;
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(failed(folder))?;
        }
        fs::create_dir_all(folder.join(self.sources)).map_err(failed(folder))?;
        let config = folder.join("tsconfig.json");
        let Some(types) = self.types else {
            return fs::write(&config, SDK_CONFIG).map_err(failed(&config));
        };
        fs::create_dir_all(folder.join("types")).map_err(failed(folder))?;
        for (from, to) in [(TYPES, folder.join(types)), (CONFIG, config)] {
            let from = root.join(from);
            fs::copy(&from, to).map_err(failed(&from))?;
        }
        Ok(())
    }

    /// Adds the files of a folder; says what is expected to be wrong with them.
    fn add(&self, source: &Path) -> Result<BTreeSet<String>, String> {
        let mut expected = BTreeSet::new();
        for entry in source.read_dir().map_err(failed(source))? {
            let path = entry.map_err(failed(source))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if !name.ends_with(".ts") || name.ends_with(".d.ts") {
                continue;
            }
            let text = fs::read_to_string(&path).map_err(failed(&path))?;
            expected.extend(marks_of(name, &text));
            let copy = self.folder.join(self.sources).join(name);
            fs::write(&copy, text).map_err(failed(&copy))?;
        }
        Ok(expected)
    }

    /// What the compiler has to say about them.
    fn compile(&self, compiler: &Path) -> Result<String, String> {
        let mut node = Command::new("node");
        node.arg(compiler).args(["-p", ".", "--pretty", "false"]).current_dir(&self.folder);
        let output = node.stdin(Stdio::null()).output();
        let output = output.map_err(|e| format!("cannot start node: {e}"))?;
        let said = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        if said.is_empty() && !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(said)
    }

    fn is_right(&self, log: &Log, compiler: &Path) -> Result<(), String> {
        let said = self.compile(compiler)?;
        log.write(&said);
        if said.is_empty() { Ok(()) } else { Err("files that are right are refused".to_owned()) }
    }
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> String + use<> {
    let path = path.display().to_string();
    move |e| format!("cannot use {path}: {e}")
}

/// What a file says is wrong with it.
fn marks_of(name: &str, text: &str) -> Vec<String> {
    let marked = text.lines().zip(1..).filter_map(|(line, number)| {
        let (_, code) = line.rsplit_once(MARK)?;
        Some(format!("{name}:{number} {}", code.trim()))
    });
    marked.collect()
}

/// `workflows/a.ts(3,7): error TS2322: …` as `a.ts:3 TS2322`.
fn complaint(line: &str) -> Option<String> {
    let (place, rest) = line.split_once("): error ")?;
    let (file, position) = place.rsplit_once('(')?;
    let name = file.rsplit('/').next()?;
    let (number, _) = position.split_once(',')?;
    let (code, _) = rest.split_once(':')?;
    Some(format!("{name}:{number} {code}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::{PACKAGE_LOCK, PACKAGES, compare, complaint, marks_of};

    #[test]
    fn the_compiler_is_pinned() {
        let packages: Value = serde_json::from_str(PACKAGES).unwrap();
        let lock: Value = serde_json::from_str(PACKAGE_LOCK).unwrap();
        let wanted = packages["dependencies"]["typescript"].as_str().unwrap();
        let locked = &lock["packages"]["node_modules/typescript"];
        assert_eq!(locked["version"], wanted);
        assert!(locked["integrity"].as_str().unwrap().starts_with("sha512-"));
    }

    #[test]
    fn complaints_and_marks_are_told_in_the_same_way() {
        let line = "workflows/a.ts(2,7): error TS2322: Type 'x' is not (right): yes";
        assert_eq!(complaint(line).as_deref(), Some("a.ts:2 TS2322"));
        assert_eq!(complaint("  Type 'x' is not assignable"), None);
        assert_eq!(marks_of("a.ts", "ok();\nbad(); //! TS2322\n"), ["a.ts:2 TS2322"]);
    }

    #[test]
    fn what_is_missing_and_what_is_too_much_is_said() {
        let set = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        let (one, two): (BTreeSet<String>, BTreeSet<String>) = (set(&["a"]), set(&["b"]));
        assert_eq!(compare(&one, &one), Ok(()));
        assert_eq!(compare(&one, &two), Err("not found: a\nnot expected: b".to_owned()));
        assert!(compare(&set(&[]), &set(&[])).is_err());
    }
}
