//! Which names a module has for others, and which it wants from them.

use std::collections::BTreeSet;

use oxc_ast::ast::{self, Statement};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};

/// The names a module exports as values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exports {
    pub(crate) names: BTreeSet<String>,
    /// The modules of `export * from`.
    pub(crate) stars: Vec<String>,
}

/// A module that another asks for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) specifier: String,
    pub(crate) span: Span,
    pub(crate) names: Vec<Wanted>,
}

/// A name that is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) span: Span,
    /// By `export { name } from`.
    pub(crate) is_passed_on: bool,
}

/// What a module asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests {
    pub(crate) modules: Vec<Request>,
    /// `import(…)` of something that is known only when it runs.
    pub(crate) computed: Vec<Span>,
}

/// Reads them from a tree that has no types in it any more.
pub(super) fn read(program: &ast::Program<'_>) -> (Exports, Requests) {
    let mut reader = Reader::default();
    for statement in &program.body {
        reader.statement(statement);
    }
    reader.visit_program(program);
    (reader.exports, reader.requests)
}

#[derive(Default)]
struct Reader {
    exports: Exports,
    requests: Requests,
}

impl Reader {
    fn statement(&mut self, statement: &Statement<'_>) {
        if let Statement::ImportDeclaration(import) = statement {
            let wanted = import.specifiers.iter().flatten().filter_map(wanted_by_import).collect();
            self.request(&import.source, wanted);
        } else if let Statement::ExportFromDeclaration(export) = statement {
            let mut wanted = Vec::new();
            for one in &export.specifiers {
                if export.export_kind.is_value() && one.export_kind.is_value() {
                    self.exports.names.insert(one.exported.name().to_string());
                }
                wanted.push(Wanted {
                    name: one.local.name().to_string(),
                    span: one.local.span(),
                    is_passed_on: true,
                });
            }
            self.request(&export.source, wanted);
        } else if let Statement::ExportAllDeclaration(export) = statement {
            match &export.exported {
                Some(name) => drop(self.exports.names.insert(name.name().to_string())),
                None => self.exports.stars.push(export.source.value.to_string()),
            }
            self.request(&export.source, Vec::new());
        } else if let Statement::ExportNamedDeclaration(export) = statement {
            let is_value = export.export_kind.is_value();
            let values =
                export.specifiers.iter().filter(|one| is_value && one.export_kind.is_value());
            self.exports.names.extend(values.map(|one| one.exported.name().to_string()));
        } else if let Statement::ExportDefaultDeclaration(_) = statement {
            self.exports.names.insert("default".to_owned());
        } else if let Statement::ExportDeclaration(export) = statement
            && !export.declaration.is_type()
            && !export.declaration.declare()
        {
            self.exports.names.extend(export.declaration.bound_names());
        }
    }

    fn request(&mut self, source: &ast::StringLiteral<'_>, names: Vec<Wanted>) {
        let specifier = source.value.to_string();
        self.requests.modules.push(Request { specifier, span: source.span, names });
    }
}

impl<'a> Visit<'a> for Reader {
    fn visit_import_expression(&mut self, import: &ast::ImportExpression<'a>) {
        let source = import.source.get_inner_expression();
        if let ast::Expression::StringLiteral(literal) = source {
            self.request(literal, Vec::new());
        } else if let ast::Expression::TemplateLiteral(template) = source
            && let Some(text) = template.single_quasi()
        {
            let (specifier, span) = (text.to_string(), template.span);
            self.requests.modules.push(Request { specifier, span, names: Vec::new() });
        } else {
            self.requests.computed.push(import.source.span());
        }
        walk::walk_import_expression(self, import);
    }
}

fn wanted_by_import(one: &ast::ImportDeclarationSpecifier<'_>) -> Option<Wanted> {
    let (name, span) = match one {
        ast::ImportDeclarationSpecifier::ImportSpecifier(named) => {
            (named.imported.name().to_string(), named.imported.span())
        }
        ast::ImportDeclarationSpecifier::ImportDefaultSpecifier(default) => {
            ("default".to_owned(), default.span)
        }
        ast::ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => return None,
    };
    Some(Wanted { name, span, is_passed_on: false })
}

/// What declares names.
trait BoundNames {
    fn bound_names(&self) -> Vec<String>;
}

impl BoundNames for ast::Declaration<'_> {
    fn bound_names(&self) -> Vec<String> {
        if let Self::VariableDeclaration(variables) = self {
            let mut names = Names(Vec::new());
            for declarator in &variables.declarations {
                names.visit_binding_pattern(&declarator.id);
            }
            names.0
        } else {
            self.id().map(|id| id.name.to_string()).into_iter().collect()
        }
    }
}

/// Collects the names in `const { a, b: [c] } = …`.
struct Names(Vec<String>);

impl<'a> Visit<'a> for Names {
    fn visit_binding_identifier(&mut self, id: &ast::BindingIdentifier<'a>) {
        self.0.push(id.name.to_string());
    }

    // Defaults are expressions, and may contain functions with parameters.
    fn visit_expression(&mut self, _: &ast::Expression<'a>) {}
}
