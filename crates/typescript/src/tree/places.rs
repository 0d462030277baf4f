//! From a key of a value to where it is written.

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    self, ExportDefaultDeclarationKind as DefaultKind, Expression, ObjectPropertyKind, Program,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};

use super::{constant, deep, exported, parse};
use crate::fault::Page;
use crate::text;

/// From where in a file a path is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anchor {
    /// The call that begins here; the path goes on in its first argument that is an object.
    Call {
        /// The line, from 1.
        line: u32,
        /// The column, from 1, in characters.
        column: u32,
    },
    /// The value of this export.
    Export(String),
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A key of an object.
    Key(String),
    /// A place in a list.
    Index(usize),
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
    /// The line of the first byte, from 1.
    pub line: u32,
    /// The column of the first byte, from 1, in characters.
    pub column: u32,
    /// How many steps of the path could be followed.
    pub followed: usize,
}

/// Follows a path through what is written in a file, as deep as it goes: object and list
/// literals, and constants of the same file. Nothing if there is no such anchor, or if the file
/// cannot be parsed.
#[must_use]
pub fn locate(file: &Path, text: &str, anchor: &Anchor, path: &[Step]) -> Option<Located> {
    let page = Page { file, text };
    deep::check(page).ok()?;
    let find = || {
        let allocator = Allocator::default();
        let program = parse(&allocator, page).ok()?;
        let (span, followed) = match anchor {
            Anchor::Call { line, column } => from_call(&program, page, (*line, *column), path)?,
            Anchor::Export(name) => from_export(&program, name, path)?,
        };
        let at = page.place(span);
        let (line, column) = (at.line, at.column);
        Some(Located { start: span.start, end: span.end, line, column, followed })
    };
    deep::run(file, find).ok().flatten()
}

fn from_export<'a>(program: &Program<'a>, name: &str, path: &[Step]) -> Option<(Span, usize)> {
    let Some(value) = exported(program, name) else {
        return declared(program).filter(|_| name == "default").map(|span| (span, 0));
    };
    Some(follow(program, value, path).unwrap_or((value.span(), 0)))
}

/// The name of the function or class that is the default export, or where it begins.
fn declared(program: &Program<'_>) -> Option<Span> {
    program.body.iter().find_map(|statement| {
        let ast::Statement::ExportDefaultDeclaration(export) = statement else { return None };
        let made = &export.declaration;
        let (name, whole) = if let DefaultKind::FunctionDeclaration(one) = made {
            (&one.id, one.span)
        } else if let DefaultKind::ClassDeclaration(one) = made {
            (&one.id, one.span)
        } else {
            return None;
        };
        let begins = Span::new(whole.start, whole.start + 1);
        Some(name.as_ref().map_or(begins, |name| name.span))
    })
}

fn from_call<'a>(
    program: &Program<'a>,
    page: Page<'_>,
    (line, column): (u32, u32),
    path: &[Step],
) -> Option<(Span, usize)> {
    let at = text::clamp(text::offset_of(page.text, line, column));
    let mut search = Calls { program, at, path, best: None, far: u32::MAX };
    search.visit_program(program);
    search.best
}

/// Looks for the call that a place belongs to: one whose name is exactly there, or else the
/// smallest whose callee reaches over it.
struct Calls<'s, 'a> {
    program: &'s Program<'a>,
    at: u32,
    path: &'s [Step],
    best: Option<(Span, usize)>,
    /// How far the best is from what is sought: the size of its callee, or 0.
    far: u32,
}

impl<'a> Visit<'a> for Calls<'_, 'a> {
    fn visit_call_expression(&mut self, call: &ast::CallExpression<'a>) {
        let callee = call.callee.span();
        let head = Span::new(call.span.start, callee.end);
        let named = call.callee.get_inner_expression();
        let name = if let Expression::StaticMemberExpression(member) = named {
            member.property.span
        } else {
            named.span()
        };
        let reaches = head.start <= self.at && self.at <= head.end;
        let far = if name.start == self.at { 0 } else { head.end - head.start };
        if reaches && far < self.far {
            self.far = far;
            let arguments = call.arguments.iter().filter_map(ast::Argument::as_expression);
            let followed =
                arguments.filter_map(|argument| follow(self.program, argument, self.path));
            self.best = Some(followed.max_by_key(|found| found.1).unwrap_or((name, 0)));
        }
        walk::walk_call_expression(self, call);
    }
}

/// As deep as the path can be followed, if at least one step of it can.
fn follow<'a>(
    program: &Program<'a>,
    value: &Expression<'a>,
    path: &[Step],
) -> Option<(Span, usize)> {
    let mut value = resolve(program, value);
    let mut found = None;
    for (index, step) in path.iter().enumerate() {
        let (span, next) = match step {
            Step::Key(key) => {
                let Some(object) = object_in(value) else { break };
                let Some(property) = property(object, key) else { break };
                // The key alone where the value says nothing: a function is long.
                let is_last = index + 1 == path.len();
                let is_long = property.value.is_function() || property.method;
                let span =
                    if is_last && !is_long { property.value.span() } else { property.key.span() };
                (span, Some(&property.value))
            }
            Step::Index(at) => {
                let Expression::ArrayExpression(array) = value else { break };
                let Some(element) = element(array, *at) else { break };
                (element.span(), element.as_expression())
            }
        };
        found = Some((span, index + 1));
        let Some(next) = next else { break };
        value = resolve(program, next);
    }
    found
}

/// An object, or the first one that is given to a call: a factory keeps what it is given.
fn object_in<'p, 'a>(value: &'p Expression<'a>) -> Option<&'p ast::ObjectExpression<'a>> {
    if let Expression::CallExpression(call) = value {
        let arguments = call.arguments.iter().filter_map(ast::Argument::as_expression);
        return arguments.map(Expression::get_inner_expression).find_map(object);
    }
    object(value)
}

fn object<'p, 'a>(value: &'p Expression<'a>) -> Option<&'p ast::ObjectExpression<'a>> {
    if let Expression::ObjectExpression(object) = value { Some(object) } else { None }
}

/// The last one counts, as it does when it runs; what is spread is not followed.
fn property<'p, 'a>(
    object: &'p ast::ObjectExpression<'a>,
    key: &str,
) -> Option<&'p ast::ObjectProperty<'a>> {
    object.properties.iter().rev().find_map(|one| {
        let ObjectPropertyKind::ObjectProperty(property) = one else { return None };
        let name = property.key.static_name()?;
        (name == key).then_some(&**property)
    })
}

/// What stands before a spread has a known place; what stands behind it has not.
fn element<'p, 'a>(
    array: &'p ast::ArrayExpression<'a>,
    at: usize,
) -> Option<&'p ast::ArrayExpressionElement<'a>> {
    let elements = array.elements.get(..=at)?;
    if elements.iter().any(ast::ArrayExpressionElement::is_spread) {
        return None;
    }
    elements.last()
}

fn resolve<'p, 'a>(program: &'p Program<'a>, value: &'p Expression<'a>) -> &'p Expression<'a> {
    let mut value = value.get_inner_expression();
    // Constants can be defined by each other.
    for _ in 0..64 {
        let Expression::Identifier(name) = value else { break };
        let Some(next) = constant(program, name.name.as_str()) else { break };
        value = next.get_inner_expression();
    }
    value
}
