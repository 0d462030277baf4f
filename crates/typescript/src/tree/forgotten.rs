//! A file that was meant to be a workflow, and exports none.
//!
//! A file without a graph runs as a chat, with all permissions of one. An author who imports a value of
//! the SDK has written a workflow, so its export is forgotten or misspelt.

use std::collections::BTreeSet;

use oxc_ast::ast::{self, Expression, Program, Statement};
use oxc_ast_visit::{Visit, walk};
use oxc_span::Span;

use super::variables;
use crate::fault::{Fault, Page};
use crate::{sdk, text};

/// Exports that have a meaning of their own, and are not a misspelt `graphConfig`.
const OTHER: [&str; 3] = ["defaultConfig", "createState", "migrateState"];

/// Names that people give to what should be `graphConfig`.
const MEANT: [&str; 6] = ["graphConfig", "config", "graph", "workflow", "workflowConfig", "flow"];

/// Returns the fault of a file that uses the SDK and exports no workflow.
pub(super) fn workflow(
    page: Page<'_>,
    program: &Program<'_>,
    exports: &BTreeSet<String>,
) -> Option<Fault> {
    let Import { what, from, span } = value_of_the_sdk(program)?;
    let near = exports.iter().find(|name| {
        let is_other = OTHER.contains(&name.as_str()) || super::metadata::is_key(name);
        !is_other && is_near(name)
    });
    let is_local = variables(program).any(|(_, declarator)| {
        declarator.id.get_identifier_name().is_some_and(|name| name.as_str() == "graphConfig")
    });
    let (asked, help) = match near {
        Some(name) => {
            let help = format!("rename the export `{name}` to `graphConfig`");
            (format!(" (did you mean `graphConfig` by `{name}`?)"), help)
        }
        None if is_local => (String::new(), "write `export` before `const graphConfig`".to_owned()),
        None => {
            let help = "add `export const graphConfig = …` or `export default …`; a file that is \
                        only a chat imports nothing but types from the SDK";
            (String::new(), help.to_owned())
        }
    };
    let message =
        format!("the file imports {what} from \"{from}\", but exports no workflow{asked}");
    Some(page.fault("ATM722", span, message).with_help(help))
}

fn is_near(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| !matches!(c, '_' | '-' | '$')).collect();
    MEANT.iter().any(|meant| meant.eq_ignore_ascii_case(&plain))
        || text::nearest(&plain, ["graphConfig"]).is_some()
}

/// An import of the SDK.
struct Import {
    what: String,
    from: String,
    span: Span,
}

/// The first value that a file imports from the SDK, or passes on from there.
fn value_of_the_sdk(program: &Program<'_>) -> Option<Import> {
    let mut dynamic = Dynamic(None);
    dynamic.visit_program(program);
    program.body.iter().find_map(imported).or(dynamic.0)
}

fn imported(statement: &Statement<'_>) -> Option<Import> {
    if let Statement::ImportDeclaration(import) = statement {
        let from = import.source.value.as_str();
        let module = sdk::imported_as(from)?;
        let what = match &import.specifiers {
            Some(names) => names.iter().find_map(|one| imported_name(module, one))?,
            None => "values".to_owned(),
        };
        let is_value = import.import_kind.is_value();
        return is_value.then(|| Import { what, from: from.to_owned(), span: import.span });
    }
    let (source, span, is_value) = if let Statement::ExportFromDeclaration(export) = statement {
        (&export.source, export.span, export.export_kind.is_value())
    } else if let Statement::ExportAllDeclaration(export) = statement {
        (&export.source, export.span, export.export_kind.is_value())
    } else {
        return None;
    };
    let from = source.value.as_str();
    sdk::imported_as(from).filter(|_| is_value)?;
    Some(Import { what: "values".to_owned(), from: from.to_owned(), span })
}

/// The value that is imported, for a sentence. Types can be imported without saying so; their
/// names begin with a capital.
fn imported_name(module: &str, one: &ast::ImportDeclarationSpecifier<'_>) -> Option<String> {
    match one {
        ast::ImportDeclarationSpecifier::ImportSpecifier(named) => {
            let name = named.imported.name();
            let is_known = sdk::exports(module).is_some_and(|known| known.contains(name.as_str()));
            let is_value = is_known || !name.starts_with(|c: char| c.is_uppercase());
            (named.import_kind.is_value() && is_value).then(|| format!("`{name}`"))
        }
        ast::ImportDeclarationSpecifier::ImportDefaultSpecifier(_)
        | ast::ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => {
            Some("everything".to_owned())
        }
    }
}

/// Finds the first `import("atomic/…")`.
struct Dynamic(Option<Import>);

impl<'a> Visit<'a> for Dynamic {
    fn visit_import_expression(&mut self, import: &ast::ImportExpression<'a>) {
        let source = match import.source.get_inner_expression() {
            Expression::StringLiteral(source) => Some(source.value),
            Expression::TemplateLiteral(source) => source.single_quasi(),
            _ => None,
        };
        if let Some(source) = source.filter(|source| sdk::imported_as(source.as_str()).is_some()) {
            let (what, from) = ("everything".to_owned(), source.to_string());
            self.0.get_or_insert(Import { what, from, span: import.span });
        }
        walk::walk_import_expression(self, import);
    }
}
