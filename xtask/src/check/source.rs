//! Source files and their sizes. Tests are left out: a long table of cases is a good test.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

use super::{Findings, files_below};

/// Exclusive: a function has fewer lines than this.
const FUNCTION_LINES: usize = 80;
/// Exclusive: a file without its tests.
const FILE_LINES: usize = 500;
/// Exclusive: also for a variant with named fields.
const FIELDS: usize = 15;
/// Exclusive.
const VARIANTS: usize = 25;
/// Inclusive, `self` counted.
const PARAMETERS: usize = 5;

/// A parsed file of production code.
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) tree: syn::File,
    lines: usize,
}

/// Reads the code of the crate in `folder`, without what is compiled for tests only.
pub(super) fn load(folder: &Path) -> Result<Vec<Source>, String> {
    let mut sources = Vec::new();
    let mut test_modules = BTreeSet::new();
    for path in files_below(&folder.join("src"), &|path| !path.ends_with("tests"))? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.ends_with(".rs") || name.ends_with("_tests.rs") {
            continue;
        }
        let source = parse(&path)?;
        source.collect_test_modules(&mut test_modules);
        sources.push(source);
    }
    sources.retain(|source| !test_modules.iter().any(|module| is_in(&source.path, module)));
    Ok(sources)
}

fn parse(path: &Path) -> Result<Source, String> {
    let text =
        fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let tree = syn::parse_file(&text).map_err(|e| {
        let at = e.span().start();
        format!("{}:{}: cannot be parsed: {e}", path.display(), at.line)
    })?;
    Ok(Source { path: path.to_owned(), tree, lines: text.lines().count() })
}

/// Whether the file is the module's own or that of a module inside it.
fn is_in(file: &Path, module: &Path) -> bool {
    file.with_extension("") == module || file.starts_with(module)
}

impl Source {
    /// Modules in files of their own that are compiled for tests only, as paths without `.rs`.
    fn collect_test_modules(&self, modules: &mut BTreeSet<PathBuf>) {
        let own = self.path.with_extension("");
        let is_root = ["lib", "main", "mod"].iter().any(|name| own.ends_with(name));
        let folder = if is_root { own.parent().unwrap_or(&own) } else { &own };
        for item in &self.tree.items {
            if let syn::Item::Mod(module) = item
                && module.content.is_none()
                && is_test_only(&module.attrs)
            {
                modules.insert(folder.join(module.ident.to_string()));
            }
        }
    }

    /// Reports everything in the file that is too large.
    pub(super) fn check_sizes(&self, findings: &mut Findings<'_>) {
        let mut sizes = Sizes { path: &self.path, test_lines: 0, findings };
        sizes.visit_file(&self.tree);
        let lines = self.lines.saturating_sub(sizes.test_lines);
        if lines >= FILE_LINES {
            let problem =
                format!("file has {lines} lines without its tests, limit: under {FILE_LINES}");
            findings.add(&self.path, 1, problem);
        }
    }
}

/// `#[cfg(test)]`, also together with further conditions.
pub(super) fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let condition = list.tokens.to_string().replace(' ', "");
        list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all(test,"))
    })
}

struct Sizes<'a, 'b> {
    path: &'a Path,
    test_lines: usize,
    findings: &'a mut Findings<'b>,
}

impl Sizes<'_, '_> {
    fn function(&mut self, signature: &syn::Signature, body: Option<&syn::Block>) {
        let first = signature.fn_token.span.start().line;
        let last = body.map_or(first, |body| body.brace_token.span.close().end().line);
        let what = format!("function `{}`", signature.ident);
        let lines = last + 1 - first;
        if lines >= FUNCTION_LINES {
            self.too_large(first, &what, &format!("{lines} lines, limit: under {FUNCTION_LINES}"));
        }
        let parameters = signature.inputs.len();
        if parameters > PARAMETERS {
            let size = format!("{parameters} parameters, limit: {PARAMETERS}");
            self.too_large(first, &what, &size);
        }
    }

    fn fields(&mut self, kind: &str, name: &syn::Ident, fields: &syn::Fields) {
        if fields.len() >= FIELDS {
            let size = format!("{} fields, limit: under {FIELDS}", fields.len());
            self.too_large(name.span().start().line, &format!("{kind} `{name}`"), &size);
        }
    }

    fn too_large(&mut self, line: usize, what: &str, size: &str) {
        self.findings.add(self.path, line, format!("{what} has {size}"));
    }
}

impl<'ast> Visit<'ast> for Sizes<'_, '_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test_only(&module.attrs) {
            visit::visit_item_mod(self, module);
            return;
        }
        let first = module.attrs.first().map_or(module.mod_token.span, |a| a.pound_token.span);
        let last = module.content.as_ref().map_or(first, |(brace, _)| brace.span.close());
        self.test_lines += last.end().line + 1 - first.start().line;
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig, Some(&function.block));
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig, Some(&function.block));
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.function(&function.sig, function.default.as_ref());
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.fields("struct", &item.ident, &item.fields);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        let variants = item.variants.len();
        if variants >= VARIANTS {
            let size = format!("{variants} variants, limit: under {VARIANTS}");
            let line = item.ident.span().start().line;
            self.too_large(line, &format!("enum `{}`", item.ident), &size);
        }
        visit::visit_item_enum(self, item);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.fields("variant", &variant.ident, &variant.fields);
        visit::visit_variant(self, variant);
    }
}
