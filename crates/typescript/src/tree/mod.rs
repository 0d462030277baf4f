//! What can be read from the syntax tree of a file.

pub(crate) mod calls;
pub(crate) mod deep;
pub(crate) mod exports;
pub(crate) mod forgotten;
mod literal;
pub(crate) mod metadata;
mod named;
pub(crate) mod places;
mod scan;
pub(crate) mod transpile;
mod unsupported;

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{self, Expression, Program, Statement};
use oxc_parser::Parser;
use oxc_span::SourceType;

use crate::fault::{Fault, Page};

/// The text between two tags looks like anything, so [`deep::check`] knows nothing about a file
/// with tags: it must be so small that it does not matter how deep it is.
const LARGEST_WITH_JSX: usize = 8 << 10;

/// Parses a file as a module, whatever its name says.
///
/// # Errors
/// All that the parser, and the list of what we do not support, have to say.
pub(super) fn parse<'a>(
    allocator: &'a Allocator,
    page: Page<'a>,
) -> Result<Program<'a>, Vec<Fault>> {
    let kind = source_type(page.file);
    let parsed = Parser::new(allocator, page.text, kind).parse();
    if parsed.diagnostics.is_empty() {
        let faults = unsupported::find(&parsed.program, page);
        return if faults.is_empty() { Ok(parsed.program) } else { Err(faults) };
    }
    // `<a/>` is no syntax at all in a `.ts` file, and what a parser says about it helps nobody.
    if page.text.len() <= LARGEST_WITH_JSX {
        let with_jsx = Parser::new(allocator, page.text, kind.with_jsx(true)).parse();
        if with_jsx.diagnostics.is_empty() {
            let faults = unsupported::find(&with_jsx.program, page);
            if !faults.is_empty() {
                return Err(faults);
            }
        }
    }
    let faults = parsed.diagnostics.iter().map(|said| {
        // Well-formed, but not there: this one is the parser's only because of where it is found.
        let is_early = said.message.contains("only allowed within async functions");
        page.said(if is_early { "ATM702" } else { "ATM701" }, said)
    });
    Err(faults.collect())
}

fn source_type(file: &Path) -> SourceType {
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let kind = match extension {
        "js" | "mjs" | "jsx" => SourceType::mjs(),
        _ => SourceType::ts(),
    };
    kind.with_module(true)
}

/// The variables that a file declares at its top, exported or not.
pub(super) fn variables<'p, 'a>(
    program: &'p Program<'a>,
) -> impl Iterator<Item = (&'p ast::VariableDeclaration<'a>, &'p ast::VariableDeclarator<'a>)> {
    program.body.iter().filter_map(variable_declaration).flat_map(|declaration| {
        declaration.declarations.iter().map(move |declarator| (declaration, declarator))
    })
}

fn variable_declaration<'p, 'a>(
    statement: &'p Statement<'a>,
) -> Option<&'p ast::VariableDeclaration<'a>> {
    if let Statement::VariableDeclaration(declaration) = statement {
        return Some(declaration);
    }
    let Statement::ExportDeclaration(export) = statement else { return None };
    if let ast::Declaration::VariableDeclaration(declaration) = &export.declaration {
        Some(declaration)
    } else {
        None
    }
}

/// What a `const` of this name is at the top of the file.
pub(super) fn constant<'p, 'a>(program: &'p Program<'a>, name: &str) -> Option<&'p Expression<'a>> {
    variables(program)
        .filter(|(declaration, _)| declaration.kind.is_const())
        .find(|(_, declarator)| {
            declarator.id.get_identifier_name().is_some_and(|found| found.as_str() == name)
        })
        .and_then(|(_, declarator)| declarator.init.as_ref())
}

/// What an exported name is: the value of `export const`, of `export { local as name }`, and of
/// `export default`.
pub(super) fn exported<'p, 'a>(program: &'p Program<'a>, name: &str) -> Option<&'p Expression<'a>> {
    for statement in &program.body {
        if let Statement::ExportDefaultDeclaration(export) = statement
            && name == "default"
        {
            return export.declaration.as_expression();
        }
        if let Statement::ExportNamedDeclaration(export) = statement {
            let found = export.specifiers.iter().find(|one| one.exported.name().as_str() == name);
            if let Some(found) = found {
                return constant(program, found.local.name().as_str());
            }
        }
        if let Statement::ExportDeclaration(export) = statement
            && let ast::Declaration::VariableDeclaration(declaration) = &export.declaration
        {
            let found = declaration.declarations.iter().find(|declarator| {
                declarator.id.get_identifier_name().is_some_and(|found| found.as_str() == name)
            });
            if let Some(found) = found {
                return found.init.as_ref();
            }
        }
    }
    None
}
