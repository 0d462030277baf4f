//! Where calls are written.
//!
//! The engine says where a call is by the last thing it did before, which may be deep inside an
//! argument. Together with the name of what was called, the call itself can be found.

use oxc_ast::ast::{self, Expression};
use oxc_ast_visit::{Visit, walk};
use oxc_span::Span;

use crate::text;

/// A call of something that has a name.
#[derive(Debug)]
pub(crate) struct CallSite {
    span: Span,
    name: String,
    /// Where the name is.
    at: u32,
}

/// All calls of a file.
pub(super) fn read(program: &ast::Program<'_>) -> Vec<CallSite> {
    let mut finder = Finder(Vec::new());
    finder.visit_program(program);
    finder.0
}

/// Where the name of the innermost call of `name` is, that reaches over a place.
pub(crate) fn refine(
    calls: &[CallSite],
    source: &str,
    (line, column): (u32, u32),
    name: &str,
) -> Option<(u32, u32)> {
    let at = text::clamp(text::offset_of(source, line, column));
    let reaches = |call: &&CallSite| call.span.start <= at && at < call.span.end;
    let named = calls.iter().filter(|call| call.name == name).filter(reaches);
    let innermost = named.min_by_key(|call| call.span.end - call.span.start)?;
    Some(text::place_of(source, innermost.at as usize))
}

struct Finder(Vec<CallSite>);

impl<'a> Visit<'a> for Finder {
    fn visit_call_expression(&mut self, call: &ast::CallExpression<'a>) {
        let callee = call.callee.get_inner_expression();
        let named = if let Expression::Identifier(name) = callee {
            Some((name.name.to_string(), name.span.start))
        } else if let Expression::StaticMemberExpression(member) = callee {
            Some((member.property.name.to_string(), member.property.span.start))
        } else {
            None
        };
        if let Some((name, at)) = named {
            self.0.push(CallSite { span: call.span, name, at });
        }
        walk::walk_call_expression(self, call);
    }
}
