//! Values that can be read without running anything.

use oxc_ast::ast::{self, Expression, ObjectPropertyKind};
use oxc_span::{GetSpan as _, Span};
use serde_json::{Map, Number, Value};

use super::constant;

/// `const a = b; const b = a;` leads nowhere.
const DEEPEST: usize = 64;

/// What an expression is.
///
/// # Errors
/// The part of it that has to be run to know.
pub(super) fn read(program: &ast::Program<'_>, expression: &Expression<'_>) -> Result<Value, Span> {
    at_depth(program, expression, 0)
}

fn at_depth(
    program: &ast::Program<'_>,
    expression: &Expression<'_>,
    depth: usize,
) -> Result<Value, Span> {
    let unknown = Err(expression.span());
    if depth > DEEPEST {
        return unknown;
    }
    let read = |inner: &Expression<'_>| at_depth(program, inner, depth + 1);
    let expression = expression.get_inner_expression();
    if let Expression::StringLiteral(literal) = expression {
        Ok(literal.value.as_str().into())
    } else if let Expression::NumericLiteral(literal) = expression {
        Ok(number(literal.value))
    } else if let Expression::BooleanLiteral(literal) = expression {
        Ok(literal.value.into())
    } else if let Expression::NullLiteral(_) = expression {
        Ok(Value::Null)
    } else if let Expression::TemplateLiteral(template) = expression {
        let text = template.single_quasi();
        text.map(|text| text.as_str().into()).ok_or_else(|| template.span)
    } else if let Expression::UnaryExpression(unary) = expression {
        let inner = read(&unary.argument)?;
        let negated = unary.operator == ast::UnaryOperator::UnaryNegation;
        inner.as_f64().filter(|_| negated).map(|inner| number(-inner)).ok_or(unary.span)
    } else if let Expression::BinaryExpression(binary) = expression {
        let (left, right) = (read(&binary.left)?, read(&binary.right)?);
        match (&left, &right) {
            (Value::String(left), Value::String(right))
                if binary.operator == ast::BinaryOperator::Addition =>
            {
                Ok(format!("{left}{right}").into())
            }
            _ => Err(binary.span),
        }
    } else if let Expression::ArrayExpression(array) = expression {
        let elements = array.elements.iter();
        elements.map(|one| one.as_expression().ok_or(one.span()).and_then(read)).collect()
    } else if let Expression::ObjectExpression(object) = expression {
        let properties = object.properties.iter();
        let read = properties.map(|one| property(one, read)).collect::<Result<Map<_, _>, _>>();
        read.map(Value::Object)
    } else if let Expression::Identifier(identifier) = expression {
        let value = constant(program, identifier.name.as_str()).ok_or(identifier.span)?;
        // What is pointed at is the use: that is where a person looks first.
        read(value).map_err(|_| identifier.span)
    } else {
        unknown
    }
}

fn property(
    one: &ObjectPropertyKind<'_>,
    read: impl Fn(&Expression<'_>) -> Result<Value, Span>,
) -> Result<(String, Value), Span> {
    let ObjectPropertyKind::ObjectProperty(property) = one else { return Err(one.span()) };
    let name = property.key.static_name().filter(|_| !property.computed).ok_or(property.span)?;
    Ok((name.into_owned(), read(&property.value)?))
}

/// Whole numbers as such, so that 3 is not 3.0.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value {
        return whole.into();
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
