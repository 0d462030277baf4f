//! A file that was meant to be a workflow, and exports none.
//!
//! A file without a graph runs as a chat, with all permissions of one. An author who imports a value of
//! the SDK has written a workflow, so its export is forgotten or misspelt.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use oxc_allocator::Allocator;
use oxc_ast::ast::{self, Expression, Program, Statement};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_span::{GetSpan as _, SourceType, Span};

use super::{exported, variables};
use crate::fault::{Fault, Page};
use crate::{sdk, text};

/// Exports that have a meaning of their own, and are not a misspelt `graphConfig`.
const OTHER: [&str; 3] = ["defaultConfig", "createState", "migrateState"];

/// Names that people give to what should be `graphConfig`.
const MEANT: [&str; 6] = ["graphConfig", "config", "graph", "workflow", "workflowConfig", "flow"];

/// Values that a file imports from one module, or passes on from there.
#[derive(Debug)]
pub(crate) struct ValueImport {
    /// The names, of which some may be types; empty for everything that the module exports.
    pub(crate) names: Vec<String>,
    pub(crate) from: String,
    pub(crate) span: Span,
}

/// Looks at an imported file: the module of the SDK that the file uses, if any, and everything that
/// is wrong with the import.
pub(crate) type Follow<'f> = dyn Fn(&ValueImport) -> Result<Option<String>, Vec<Fault>> + 'f;

/// Returns the faults of a file that uses the SDK and exports no workflow. Without `follow` only the
/// file itself is looked at.
pub(super) fn workflow(
    page: Page<'_>,
    program: &Program<'_>,
    exports: &BTreeSet<String>,
    follow: Option<&Follow<'_>>,
) -> Vec<Fault> {
    let imports = value_imports(program);
    if let Some((import, what)) = imports.iter().find_map(|one| Some((one, used_of_sdk(one)?))) {
        let message = format!("the file imports {what} from \"{}\"", import.from);
        return vec![fault(page, program, exports, (import.span, message))];
    }
    let mut faults = vec![];
    for import in &imports {
        match follow.map_or(Ok(None), |follow| follow(import)) {
            Ok(None) => {}
            Ok(Some(module)) => {
                let from = &import.from;
                let message = format!("the file imports \"{from}\", which uses \"{module}\"");
                return vec![fault(page, program, exports, (import.span, message))];
            }
            Err(wrong) => faults.extend(wrong),
        }
    }
    faults
}

fn fault(
    page: Page<'_>,
    program: &Program<'_>,
    exports: &BTreeSet<String>,
    (span, message): (Span, String),
) -> Fault {
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
    let message = format!("{message}, but exports no workflow{asked}");
    page.fault("ATM722", span, message).with_help(help)
}

/// Returns the fault of a file whose `graphConfig` is `null` or `undefined`.
pub(super) fn empty(page: Page<'_>, program: &Program<'_>) -> Option<Fault> {
    let value = exported(program, "graphConfig")?.get_inner_expression();
    let is_empty = value.is_null_or_undefined();
    let message = "`graphConfig` is empty, so the file exports no workflow";
    let help = "export a graph: `export const graphConfig = { startNode, nodes, edges }`; for a \
                chat remove the export";
    is_empty.then(|| page.fault("ATM722", value.span(), message).with_help(help))
}

fn is_near(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| !matches!(c, '_' | '-' | '$')).collect();
    MEANT.iter().any(|meant| meant.eq_ignore_ascii_case(&plain))
        || text::nearest(&plain, ["graphConfig"]).is_some()
}

/// The values that a file imports, or passes on, in the order of the text; those of `import()` last.
fn value_imports(program: &Program<'_>) -> Vec<ValueImport> {
    let mut dynamic = Dynamic(vec![]);
    dynamic.visit_program(program);
    let mut imports: Vec<_> = program.body.iter().filter_map(value_import).collect();
    imports.append(&mut dynamic.0);
    imports
}

fn value_import(statement: &Statement<'_>) -> Option<ValueImport> {
    let (source, span, names) = if let Statement::ImportDeclaration(import) = statement {
        if !import.import_kind.is_value() {
            return None;
        }
        // `import "module"` has no list of names.
        let names = match &import.specifiers {
            Some(specifiers) => imported_names(specifiers)?,
            None => vec![],
        };
        (&import.source, import.span, names)
    } else if let Statement::ExportFromDeclaration(export) = statement {
        let values = export.specifiers.iter().filter(|one| one.export_kind.is_value());
        let names: Vec<String> = values.map(|one| one.local.name().to_string()).collect();
        if !export.export_kind.is_value() || names.is_empty() {
            return None;
        }
        (&export.source, export.span, names)
    } else if let Statement::ExportAllDeclaration(export) = statement {
        if !export.export_kind.is_value() {
            return None;
        }
        (&export.source, export.span, vec![])
    } else {
        return None;
    };
    Some(ValueImport { names, from: source.value.to_string(), span })
}

/// The names that may be values; `None` when all are marked as types.
fn imported_names(specifiers: &[ast::ImportDeclarationSpecifier<'_>]) -> Option<Vec<String>> {
    let mut names = vec![];
    for one in specifiers {
        match one {
            ast::ImportDeclarationSpecifier::ImportSpecifier(named) => {
                if named.import_kind.is_value() {
                    names.push(named.imported.name().to_string());
                }
            }
            ast::ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => {
                names.push("default".to_owned());
            }
            ast::ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => return Some(vec![]),
        }
    }
    (!names.is_empty()).then_some(names)
}

/// The values of the SDK that are imported, for a sentence.
fn used_of_sdk(import: &ValueImport) -> Option<String> {
    let module = sdk::imported_as(&import.from)?;
    if import.names.is_empty() {
        return Some("everything".to_owned());
    }
    let (values, types) = (sdk::exports(module), sdk_types(&import.from));
    let is_type = |name: &&String| {
        types.is_some_and(|types| types.contains(*name))
            && !values.is_some_and(|values| values.contains(*name))
    };
    let value = import.names.iter().find(|name| !is_type(name))?;
    Some(format!("`{value}`"))
}

/// Whether a name that is imported from a file of the project is a value. Types can be imported
/// without saying so; their names begin with a capital.
pub(crate) fn is_value(name: &str, exports: Option<&BTreeSet<String>>) -> bool {
    let is_known = exports.is_some_and(|exports| exports.contains(name));
    is_known || !name.starts_with(|c: char| c.is_uppercase())
}

/// The types that files can import from a module of the SDK, by the name they write for the module.
fn sdk_types(module: &str) -> Option<&'static BTreeSet<String>> {
    static TYPES: LazyLock<BTreeMap<String, BTreeSet<String>>> = LazyLock::new(read_sdk_types);
    TYPES.get(module)
}

fn read_sdk_types() -> BTreeMap<String, BTreeSet<String>> {
    let mut modules: BTreeMap<String, (BTreeSet<String>, Vec<String>)> = BTreeMap::new();
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, crate::TYPES, SourceType::d_ts()).parse();
    for statement in &parsed.program.body {
        let Statement::TSExternalModuleDeclaration(module) = statement else { continue };
        let (types, stars) = modules.entry(module.id.value.to_string()).or_default();
        for statement in module.body.iter().flat_map(|block| &block.body) {
            if let Statement::ExportAllDeclaration(star) = statement {
                stars.push(star.source.value.to_string());
            } else if let Statement::ExportDeclaration(export) = statement {
                types.extend(type_name(&export.declaration));
            }
        }
    }
    let all = modules.keys().map(|module| {
        let (mut names, mut open, mut seen) = (BTreeSet::new(), vec![module], BTreeSet::new());
        while let Some(module) = open.pop() {
            if let Some((types, stars)) = modules.get(module).filter(|_| seen.insert(module)) {
                names.extend(types.iter().cloned());
                open.extend(stars);
            }
        }
        (module.clone(), names)
    });
    all.collect()
}

fn type_name(declaration: &ast::Declaration<'_>) -> Option<String> {
    if let ast::Declaration::TSInterfaceDeclaration(interface) = declaration {
        return Some(interface.id.name.to_string());
    }
    let ast::Declaration::TSTypeAliasDeclaration(alias) = declaration else { return None };
    Some(alias.id.name.to_string())
}

/// Collects every `import("…")`.
struct Dynamic(Vec<ValueImport>);

impl<'a> Visit<'a> for Dynamic {
    fn visit_import_expression(&mut self, import: &ast::ImportExpression<'a>) {
        let source = import.source.get_inner_expression();
        let source = if let Expression::StringLiteral(source) = source {
            Some(source.value)
        } else if let Expression::TemplateLiteral(source) = source {
            source.single_quasi()
        } else {
            None
        };
        if let Some(source) = source {
            let from = source.to_string();
            self.0.push(ValueImport { names: vec![], from, span: import.span });
        }
        walk::walk_import_expression(self, import);
    }
}
