//! Names of crates and modules.

use std::path::Path;

use syn::visit::{self, Visit};

use super::rules::EMPTY_NAMES;
use super::source::Source;
use super::{Findings, files_below};
use crate::metadata::Package;

/// Looks at the crate's name and at every file and folder of code in it.
pub(super) fn check(package: &Package, findings: &mut Findings<'_>) -> Result<(), String> {
    if EMPTY_NAMES.contains(&package.short_name()) {
        findings.add(&package.manifest_path, 1, problem("crate", package.short_name()));
    }
    let wanted = |path: &Path| !path.ends_with("tests/fixtures");
    for part in ["src", "tests"] {
        let folder = package.folder().join(part);
        for path in files_below(&folder, &wanted)? {
            if path.extension().is_some_and(|extension| extension == "rs") {
                check_path(&folder, &path, findings);
            }
        }
    }
    Ok(())
}

fn check_path(folder: &Path, path: &Path, findings: &mut Findings<'_>) {
    let module = path.with_extension("");
    let inside = module.strip_prefix(folder).unwrap_or(&module);
    for part in inside {
        if let Some(name) = EMPTY_NAMES.iter().find(|name| part == **name) {
            findings.add(path, 1, problem("module", name));
        }
    }
}

/// Modules without a file of their own.
pub(super) fn check_modules(source: &Source, findings: &mut Findings<'_>) {
    Modules { path: &source.path, findings }.visit_file(&source.tree);
}

struct Modules<'a, 'b> {
    path: &'a Path,
    findings: &'a mut Findings<'b>,
}

impl<'ast> Visit<'ast> for Modules<'_, '_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let name = module.ident.to_string();
        if module.content.is_some() && EMPTY_NAMES.contains(&name.as_str()) {
            let line = module.ident.span().start().line;
            self.findings.add(self.path, line, problem("module", &name));
        }
        visit::visit_item_mod(self, module);
    }
}

fn problem(what: &str, name: &str) -> String {
    format!("{what} `{name}`: the name says nothing; call it by what it does")
}
