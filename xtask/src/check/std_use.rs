//! What a crate takes from the standard library. Cargo's metadata shows that a pure crate has no
//! clock among its dependencies; only its source shows that it does not read one.

use syn::visit::{self, Visit};

use super::Findings;
use super::rules::{RULES, Rule};
use super::source::{Source, is_test_only};

/// Compares every path in the file with the crate's rule.
pub(super) fn check(name: &str, source: &Source, findings: &mut Findings<'_>) {
    // A crate without a rule is reported where the dependencies are checked.
    let Some(rule) = RULES.iter().find(|rule| rule.name == name) else { return };
    if rule.not_std.is_empty() {
        return;
    }
    let mut paths = Paths::default();
    paths.visit_file(&source.tree);
    for (line, path) in paths.found {
        if let Some(forbidden) = rule.not_std.iter().find(|forbidden| uses(&path, forbidden)) {
            let Rule { name, must_not, .. } = rule;
            let problem = format!("{name} uses {forbidden}: {name} must not {must_not}");
            findings.add(&source.path, line, problem);
        }
    }
}

/// Whether `path` is `forbidden` or something in it, written out or by way of an imported module
/// (`process::Command` for `std::process::Command`).
fn uses(path: &str, forbidden: &str) -> bool {
    let below = |parent: &str| {
        path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let in_module = forbidden.strip_prefix("std::").filter(|short| short.contains("::"));
    below(forbidden) || in_module.is_some_and(below)
}

/// Every path in a file, with its line.
#[derive(Default)]
struct Paths {
    found: Vec<(usize, String)>,
}

impl Paths {
    fn add(&mut self, ident: &syn::Ident, path: String) {
        self.found.push((ident.span().start().line, path));
    }

    fn import(&mut self, before: &str, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                self.import(&format!("{before}{}::", path.ident), &path.tree);
            }
            syn::UseTree::Name(name) => self.add(&name.ident, format!("{before}{}", name.ident)),
            syn::UseTree::Rename(name) => self.add(&name.ident, format!("{before}{}", name.ident)),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(before, tree);
                }
            }
            // The lints do not let a wildcard through.
            syn::UseTree::Glob(_) => {}
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test_only(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import("", &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(first) = path.segments.first() {
            let names: Vec<_> = path.segments.iter().map(|s| s.ident.to_string()).collect();
            self.add(&first.ident, names.join("::"));
        }
        visit::visit_path(self, path);
    }
}
