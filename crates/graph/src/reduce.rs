//! How a change meets the value that is already there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::FunctionId;

/// A rule for combining a value with a change to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Reducer {
    /// The change is the new value.
    #[default]
    Replace,
    /// Lists are joined; any other value is appended, and null adds nothing.
    Concat,
    /// Objects are merged, key by key, one level deep.
    Merge,
    /// Lists of objects with an `id`: known ids are merged, new ones appended, or put right after
    /// the one named by their `$after`, which is not kept; null is the top of the list. A row with
    /// `$removed: true` is taken out.
    MergeById,
    /// The larger number.
    Max,
    /// The smaller number.
    Min,
    /// The sum.
    Sum,
    /// Whether either is true.
    Or,
    /// Whether both are true.
    And,
    /// The change, unless it is null.
    IfDefined,
    /// As [`Reducer::MergeById`], by another field.
    MergeBy(String),
    /// A function of the workflow combines the two.
    Call(FunctionId),
}

impl Reducer {
    /// Combines `change` with `value` in place, so that a list that grows step by step is not
    /// copied at every step; the error says what does not fit, and then nothing is changed.
    /// A function is the caller's to evaluate: here the change is taken as it is.
    pub(crate) fn reduce(&self, value: &mut Value, change: &Value) -> Result<(), String> {
        if value.is_null() {
            *value = match self {
                Self::Concat if change.is_null() => Value::Array(vec![]),
                Self::Concat if !change.is_array() => Value::Array(vec![change.clone()]),
                Self::MergeById => merge_by(vec![], change, "id")?,
                Self::MergeBy(field) => merge_by(vec![], change, field)?,
                Self::Replace
                | Self::Concat
                | Self::Merge
                | Self::Max
                | Self::Min
                | Self::Sum
                | Self::Or
                | Self::And
                | Self::IfDefined
                | Self::Call(_) => change.clone(),
            };
            return Ok(());
        }
        match self {
            Self::Concat => return concat(value, change),
            Self::Merge => return merge(value, change),
            Self::MergeById => return merge_list_by(value, change, "id"),
            Self::MergeBy(field) => return merge_list_by(value, change, field),
            Self::IfDefined if change.is_null() => return Ok(()),
            Self::Replace
            | Self::IfDefined
            | Self::Max
            | Self::Min
            | Self::Sum
            | Self::Or
            | Self::And
            | Self::Call(_) => {}
        }
        *value = self.combined(value, change)?;
        Ok(())
    }

    /// Whether `change` can be combined with `value`, without doing it.
    pub(crate) fn accepts(&self, value: &Value, change: &Value) -> Result<(), String> {
        let by_field = |field: &str| {
            if !value.is_array() && !value.is_null() {
                return Err(misfit("mergeById", value, change));
            }
            rows(change, field).map(drop)
        };
        match self {
            Self::MergeById => by_field("id"),
            Self::MergeBy(field) => by_field(field),
            _ if value.is_null() => Ok(()),
            Self::Concat if !value.is_array() => Err(misfit("concat", value, change)),
            Self::Merge if !(value.is_object() && change.is_object()) => {
                Err(misfit("merge", value, change))
            }
            Self::Concat | Self::Merge | Self::Replace | Self::IfDefined | Self::Call(_) => Ok(()),
            Self::Max | Self::Min | Self::Sum | Self::Or | Self::And => {
                self.combined(value, change).map(drop)
            }
        }
    }

    /// Whether changes can be combined with `value` at all.
    pub(crate) fn begins_with(&self, value: &Value) -> Result<(), String> {
        let change = match self {
            Self::Replace | Self::IfDefined | Self::Call(_) => return Ok(()),
            Self::Concat | Self::MergeById | Self::MergeBy(_) => Value::Array(vec![]),
            Self::Merge => Value::Object(Map::new()),
            Self::Max | Self::Min | Self::Sum => Value::from(0),
            Self::Or | Self::And => Value::Bool(true),
        };
        self.accepts(value, &change)
    }

    /// The small values, which are simply replaced.
    fn combined(&self, old: &Value, change: &Value) -> Result<Value, String> {
        match self {
            Self::Replace
            | Self::IfDefined
            | Self::Call(_)
            | Self::Concat
            | Self::Merge
            | Self::MergeById
            | Self::MergeBy(_) => Ok(change.clone()),
            Self::Max => number(old, change, "max", |a, b| if b > a { change } else { old }),
            Self::Min => number(old, change, "min", |a, b| if b < a { change } else { old }),
            Self::Sum => sum(old, change),
            Self::Or => boolean(old, change, "or", |a, b| a || b),
            Self::And => boolean(old, change, "and", |a, b| a && b),
        }
    }
}

fn misfit(reducer: &str, old: &Value, change: &Value) -> String {
    format!("`{reducer}` cannot combine {} with {}", kind(old), kind(change))
}

/// What a value is, for a sentence.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn concat(list: &mut Value, change: &Value) -> Result<(), String> {
    let Value::Array(list) = list else { return Err(misfit("concat", list, change)) };
    match change {
        Value::Array(more) => list.extend(more.iter().cloned()),
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            list.push(change.clone());
        }
    }
    Ok(())
}

fn merge(all: &mut Value, change: &Value) -> Result<(), String> {
    match (all, change) {
        (Value::Object(all), Value::Object(change)) => {
            all.extend(change.iter().map(|(key, value)| (key.clone(), value.clone())));
            Ok(())
        }
        (old, change) => Err(misfit("merge", old, change)),
    }
}

const AFTER: &str = "$after";
const REMOVED: &str = "$removed";

fn merge_list_by(value: &mut Value, change: &Value, field: &str) -> Result<(), String> {
    let Value::Array(list) = value else { return Err(misfit("mergeById", value, change)) };
    rows(change, field)?;
    *value = merge_by(std::mem::take(list), change, field)?;
    Ok(())
}

/// The rows of a change, when every one of them can be told by its `field`.
fn rows<'c>(change: &'c Value, field: &str) -> Result<&'c [Value], String> {
    let rows =
        change.as_array().ok_or_else(|| misfit("mergeById", &Value::Array(vec![]), change))?;
    for row in rows {
        let fields = row.as_object().ok_or_else(|| {
            format!("`mergeById` needs objects with an `{field}`, not {}", kind(row))
        })?;
        if !fields.contains_key(field) {
            return Err(format!("`mergeById` needs an `{field}` in every object"));
        }
    }
    Ok(rows)
}

fn merge_by(mut list: Vec<Value>, change: &Value, field: &str) -> Result<Value, String> {
    let place = |list: &[Value], id: Option<&Value>| {
        list.iter().position(|row| id.is_some() && row.get(field) == id)
    };
    for change in rows(change, field)? {
        let Value::Object(fields) = change else { continue };
        if fields.get(REMOVED) == Some(&Value::Bool(true)) {
            list.retain(|row| row.get(field) != fields.get(field));
            continue;
        }
        if let Some(known) = place(&list, fields.get(field)) {
            if let Some(Value::Object(row)) = list.get_mut(known) {
                row.extend(fields.iter().map(|(key, value)| (key.clone(), value.clone())));
                row.remove(AFTER);
            }
            continue;
        }
        let mut row: Map<_, _> = fields.clone();
        let at = match row.remove(AFTER) {
            Some(Value::Null) => 0,
            after => place(&list, after.as_ref()).map_or(list.len(), |after| after + 1),
        };
        list.insert(at, Value::Object(row));
    }
    Ok(Value::Array(list))
}

fn number<'v>(
    old: &'v Value,
    change: &'v Value,
    name: &str,
    pick: impl Fn(f64, f64) -> &'v Value,
) -> Result<Value, String> {
    match (old.as_f64(), change.as_f64()) {
        (Some(a), Some(b)) => Ok(pick(a, b).clone()),
        _ => Err(misfit(name, old, change)),
    }
}

fn sum(old: &Value, change: &Value) -> Result<Value, String> {
    if let (Some(a), Some(b)) = (old.as_i64(), change.as_i64())
        && let Some(sum) = a.checked_add(b)
    {
        return Ok(sum.into());
    }
    match (old.as_f64(), change.as_f64()) {
        (Some(a), Some(b)) => Ok((a + b).into()),
        _ => Err(misfit("sum", old, change)),
    }
}

fn boolean(
    old: &Value,
    change: &Value,
    name: &str,
    combine: impl Fn(bool, bool) -> bool,
) -> Result<Value, String> {
    match (old.as_bool(), change.as_bool()) {
        (Some(a), Some(b)) => Ok(combine(a, b).into()),
        _ => Err(misfit(name, old, change)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Reducer;

    #[test]
    fn each_reducer_combines_as_its_name_says() {
        let row = |id: &str, n: u32| json!({"id": id, "n": n});
        let table = [
            (Reducer::Replace, json!(1), json!(2), Ok(json!(2))),
            (Reducer::Concat, json!([1]), json!([2, 3]), Ok(json!([1, 2, 3]))),
            (Reducer::Concat, Value::Null, json!(2), Ok(json!([2]))),
            (Reducer::Concat, json!([1]), Value::Null, Ok(json!([1]))),
            (Reducer::Concat, Value::Null, Value::Null, Ok(json!([]))),
            (Reducer::Concat, json!([1]), json!([null]), Ok(json!([1, null]))),
            (
                Reducer::Concat,
                json!(1),
                json!([2]),
                Err("`concat` cannot combine a number with a list"),
            ),
            (Reducer::Merge, json!({"a": 1}), json!({"b": 2}), Ok(json!({"a": 1, "b": 2}))),
            (
                Reducer::MergeById,
                json!([row("a", 1), row("b", 1)]),
                json!([{"id": "a", "n": 2}, {"id": "c", "n": 3, "$after": "a"}, row("d", 4)]),
                Ok(json!([row("a", 2), row("c", 3), row("b", 1), row("d", 4)])),
            ),
            (
                Reducer::MergeById,
                json!([row("a", 1)]),
                json!([{"id": "b", "n": 2, "$after": null}, {"id": "c", "n": 3, "$after": "b"}]),
                Ok(json!([row("b", 2), row("c", 3), row("a", 1)])),
            ),
            (
                Reducer::MergeById,
                Value::Null,
                json!([1]),
                Err("`mergeById` needs objects with an `id`, not a number"),
            ),
            (Reducer::Max, json!(3), json!(2.5), Ok(json!(3))),
            (Reducer::Min, json!(3), json!(2.5), Ok(json!(2.5))),
            (Reducer::Sum, json!(3), json!(2), Ok(json!(5))),
            (Reducer::Sum, json!("3"), json!(2), Err("`sum` cannot combine a text with a number")),
            (Reducer::Or, json!(false), json!(true), Ok(json!(true))),
            (Reducer::And, json!(false), json!(true), Ok(json!(false))),
            (Reducer::IfDefined, json!(1), Value::Null, Ok(json!(1))),
        ];
        for (reducer, old, change, expected) in table {
            let mut value = old.clone();
            let got = reducer.reduce(&mut value, &change).map(|()| value);
            assert_eq!(got, expected.map_err(str::to_owned), "{reducer:?} {old} {change}");
        }
    }
}
