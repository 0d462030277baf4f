//! Files as people really write them: the table in `tests/quirks`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use atomic_registry::{Entity, Finding, Folders, Kind, Registry, Severity};
use serde::Deserialize;

/// The table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    quirk: Vec<Quirk>,
}

/// One quirk, and the files that have it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Quirk {
    name: String,
    about: String,
    file: Vec<Expected>,
}

/// What is to come of one file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
struct Expected {
    path: String,
    is: Option<String>,
    description: Option<String>,
    tools: Option<String>,
    model: Option<String>,
    aliases: Option<String>,
    hint: Option<String>,
    prompt: Option<String>,
    told: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/quirks")
}

fn table() -> Table {
    toml::from_str(&fs::read_to_string(folder().join("table.toml")).unwrap()).unwrap()
}

impl Quirk {
    fn path(&self, path: &str) -> PathBuf {
        folder().join(&self.name).join(path)
    }

    fn registry(&self) -> Registry {
        let (project, home) = (self.path("project"), Some(self.path("home")));
        Registry::read(&Folders::trusted(project, home))
    }

    /// What really came of a file.
    fn found(&self, registry: &Registry, expected: &Expected) -> Expected {
        let path = self.path(&expected.path);
        let mut told: Vec<String> =
            registry.findings.iter().filter(|finding| finding.path == path).map(told).collect();
        told.sort();
        let mut found = Expected { path: expected.path.clone(), told, ..Expected::default() };
        if let Some(entity) = own(registry).find(|one| one.origin.path.as_deref() == Some(&path)) {
            found.is = Some(format!("{} {}", entity.kind.word(), entity.name));
            found.description = Some(entity.description.to_string());
            found.tools = Some(entity.tools.to_string()).filter(|tools| tools != "all");
            found.model = entity.model.as_ref().map(|model| match model.family {
                Some(family) => format!("{} ({})", model.raw, family.name()),
                None => model.raw.clone(),
            });
            found.aliases = Some(entity.aliases.join(",")).filter(|aliases| !aliases.is_empty());
            found.hint = entity.arguments.hint.clone();
            let prompt = registry.prompt(entity).unwrap();
            found.prompt = expected.prompt.as_ref().map(|_| prompt);
        }
        found
    }
}

/// Those that are not part of the program.
fn own(registry: &Registry) -> impl Iterator<Item = &Entity> {
    registry.all().filter(|entity| entity.origin.path.is_some())
}

/// A finding as the table has it: the line, whether the file is left out, and what is wrong.
fn told(finding: &Finding) -> String {
    let line = finding.line.map_or(String::new(), |line| format!("{line}: "));
    let skipped = match finding.severity {
        Severity::Skipped | Severity::Aside => "left out: ",
        Severity::Odd => "",
    };
    format!("{line}{skipped}{}", finding.message)
}

#[test]
fn every_quirk_comes_to_what_a_person_expects() {
    let mut wrong = vec![];
    for quirk in table().quirk {
        let registry = quirk.registry();
        for expected in &quirk.file {
            let mut sorted = expected.clone();
            sorted.told.sort();
            let found = quirk.found(&registry, expected);
            if found != sorted {
                let (quirk, about) = (&quirk.name, &quirk.about);
                wrong.push(format!("{quirk}: {about}\nexpected {sorted:#?}\nfound {found:#?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} files of the table:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn there_are_enough_of_them_and_most_are_read() {
    let table = table();
    let names: BTreeSet<&str> = table.quirk.iter().map(|quirk| quirk.name.as_str()).collect();
    assert_eq!(names.len(), table.quirk.len(), "every quirk has its own name");
    assert!(names.len() >= 40, "{} quirks", names.len());
    let (mut files, mut loaded) = (0, 0);
    for quirk in &table.quirk {
        let paths: BTreeSet<&str> = quirk.file.iter().map(|file| file.path.as_str()).collect();
        assert!(paths.len() >= 3, "{} has {} files", quirk.name, paths.len());
        files += paths.len();
        let registry = quirk.registry();
        let read: BTreeSet<_> = own(&registry).filter_map(|one| one.origin.path.clone()).collect();
        loaded += read.len();
    }
    assert!(files >= 150, "{files} files");
    assert!(loaded >= 120, "{loaded} files are read");
}

/// A file belongs to what it stands for, to the skill it lies beside, or to what was told of it or
/// of a folder around it.
#[test]
fn no_file_is_in_neither_the_listing_nor_the_findings() {
    for quirk in table().quirk {
        let registry = quirk.registry();
        let told = registry.findings.iter().map(|finding| finding.path.as_path());
        let mut known: BTreeSet<&Path> = told.collect();
        for entity in own(&registry) {
            let path = entity.origin.path.as_deref().unwrap();
            known.insert(if entity.kind == Kind::Skill { path.parent().unwrap() } else { path });
        }
        let mut files = vec![];
        for root in ["project", "home"] {
            walk(&quirk.path(root), &mut files);
        }
        assert!(!files.is_empty(), "{} has no files", quirk.name);
        for file in files {
            let is_known = file.ancestors().any(|path| known.contains(path));
            assert!(is_known, "{}: nobody says anything about {}", quirk.name, file.display());
        }
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}
