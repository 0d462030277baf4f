//! A project and a home folder, written for one test.

use std::fs;
use std::path::Path;

use atomic_registry::{Folders, Registry};
use tempfile::TempDir;

/// A project and a home folder.
pub(crate) struct Tree {
    root: TempDir,
}

impl Tree {
    /// Writes files; `project/…` and `home/…` are the two folders.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let tree = Self { root: tempfile::tempdir().unwrap() };
        for folder in ["project", "home"] {
            fs::create_dir_all(tree.path(folder)).unwrap();
        }
        for (path, text) in files {
            tree.write(path, text);
        }
        tree
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        self.write_bytes(path, text.as_bytes());
    }

    pub(crate) fn write_bytes(&self, path: &str, bytes: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn path(&self, path: &str) -> std::path::PathBuf {
        self.root.path().join(path)
    }

    pub(crate) fn folders(&self) -> Folders {
        Folders::trusted(self.path("project"), Some(self.path("home")))
    }

    pub(crate) fn registry(&self) -> Registry {
        Registry::read(&self.folders())
    }

    /// Everything that is not built in, and everything that was found out, one line each.
    pub(crate) fn listing(&self) -> String {
        let registry = self.registry();
        let mut lines = vec![];
        for entity in registry.all().filter(|entity| entity.origin.path.is_some()) {
            let model = entity.model.as_ref().map_or("-", |model| model.raw.as_str());
            let aliases = entity.aliases.join(",");
            lines.push(format!(
                "{} {} [{aliases}] {} tools={} model={model} ({})",
                entity.kind.word(),
                entity.name,
                entity.description,
                entity.tools,
                self.plain(&entity.origin.to_string()),
            ));
            for other in registry.overridden(entity) {
                lines.push(format!("  hides ({})", self.plain(&other.origin.to_string())));
            }
        }
        let findings = registry.findings.iter().map(|finding| self.plain(&finding.to_string()));
        lines.extend(findings);
        lines.join("\n")
    }

    pub(crate) fn plain(&self, text: &str) -> String {
        let root: &Path = self.root.path();
        text.replace(&format!("{}/", root.display()), "")
    }
}
