//! What a script calls by a name that is written down: `ctx.agent("worker", …)`.

use oxc_ast::ast::{self, Argument, Expression, ObjectPropertyKind, Program};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};

/// Methods of `ctx` whose first argument is a name.
const KINDS: [&str; 4] = ["workflow", "agent", "skill", "command"];

/// A call by name.
pub(super) struct Named {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) span: Span,
}

/// All calls by name in a file, in their order.
pub(super) fn calls(program: &Program<'_>) -> Vec<Named> {
    let mut calls = Calls(Vec::new());
    calls.visit_program(program);
    calls.0
}

struct Calls(Vec<Named>);

impl<'a> Visit<'a> for Calls {
    fn visit_call_expression(&mut self, call: &ast::CallExpression<'a>) {
        self.0.extend(named(call));
        walk::walk_call_expression(self, call);
    }
}

fn named(call: &ast::CallExpression<'_>) -> Option<Named> {
    let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else {
        return None;
    };
    let kind = *KINDS.iter().find(|kind| member.property.name == **kind)?;
    let Expression::StringLiteral(name) = argument(call, 0)?.get_inner_expression() else {
        return None;
    };
    // A graph has verbs of the same names, and is built by a chain of calls. An agent with a prompt
    // of its own is nobody else's.
    let is_own = kind != "workflow"
        && (!matches!(member.object.get_inner_expression(), Expression::Identifier(_))
            || (1..=2).any(|place| argument(call, place).is_some_and(brings_prompt)));
    (!is_own).then(|| Named { kind, name: name.value.to_string(), span: name.span() })
}

fn argument<'c, 'a>(call: &'c ast::CallExpression<'a>, place: usize) -> Option<&'c Expression<'a>> {
    call.arguments.get(place).and_then(Argument::as_expression)
}

/// Whether options have, or may have, a `systemPrompt`.
fn brings_prompt(options: &Expression<'_>) -> bool {
    let options = options.get_inner_expression();
    if let Expression::ObjectExpression(object) = options {
        return object.properties.iter().any(|one| match one {
            ObjectPropertyKind::ObjectProperty(property) => {
                property.key.static_name().is_none_or(|name| name == "systemPrompt")
            }
            ObjectPropertyKind::SpreadProperty(_) => true,
        });
    }
    // Anything that is not surely a prompt may be options that somebody has put together elsewhere.
    !matches!(
        options,
        Expression::StringLiteral(_)
            | Expression::TemplateLiteral(_)
            | Expression::BinaryExpression(_)
            | Expression::CallExpression(_)
            | Expression::StaticMemberExpression(_)
    )
}
