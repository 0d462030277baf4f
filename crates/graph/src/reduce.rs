//! How a change meets the value that is already there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A rule for combining a value with a change to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Reducer {
    /// The change is the new value.
    #[default]
    Replace,
    /// Lists are joined; a change that is no list is appended.
    Concat,
    /// Objects are merged, key by key, one level deep.
    Merge,
    /// Lists of objects with an `id`: known ids are merged, new ones appended, or put right after
    /// the one named by their `$after`, which is not kept.
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
}

impl Reducer {
    /// Combines; the error says what does not fit.
    pub(crate) fn reduce(self, old: Option<&Value>, change: &Value) -> Result<Value, String> {
        let Some(old) = old.filter(|old| !old.is_null()) else {
            return match self {
                Self::Concat if !change.is_array() => Ok(Value::Array(vec![change.clone()])),
                Self::MergeById => merge_by_id(&[], change),
                Self::Replace
                | Self::Concat
                | Self::Merge
                | Self::Max
                | Self::Min
                | Self::Sum
                | Self::Or
                | Self::And
                | Self::IfDefined => Ok(change.clone()),
            };
        };
        match self {
            Self::Replace => Ok(change.clone()),
            Self::IfDefined => Ok(if change.is_null() { old.clone() } else { change.clone() }),
            Self::Concat => concat(old, change),
            Self::Merge => merge(old, change),
            Self::MergeById => {
                let list = old.as_array().ok_or_else(|| misfit("mergeById", old, change))?;
                merge_by_id(list, change)
            }
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

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn concat(old: &Value, change: &Value) -> Result<Value, String> {
    let mut list = old.as_array().ok_or_else(|| misfit("concat", old, change))?.clone();
    match change {
        Value::Array(more) => list.extend(more.iter().cloned()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            list.push(change.clone());
        }
    }
    Ok(Value::Array(list))
}

fn merge(old: &Value, change: &Value) -> Result<Value, String> {
    let (Value::Object(old), Value::Object(change)) = (old, change) else {
        return Err(misfit("merge", old, change));
    };
    let mut all = old.clone();
    all.extend(change.iter().map(|(key, value)| (key.clone(), value.clone())));
    Ok(Value::Object(all))
}

const AFTER: &str = "$after";

fn merge_by_id(old: &[Value], change: &Value) -> Result<Value, String> {
    let changes = change.as_array().ok_or_else(|| misfit("mergeById", &old.into(), change))?;
    let mut list = old.to_vec();
    for change in changes {
        let fields = change.as_object().ok_or_else(|| {
            format!("`mergeById` needs objects with an `id`, not {}", kind(change))
        })?;
        let id = fields.get("id").ok_or("`mergeById` needs an `id` in every object")?;
        if let Some(known) = position(&list, id) {
            if let Some(Value::Object(row)) = list.get_mut(known) {
                row.extend(fields.iter().map(|(key, value)| (key.clone(), value.clone())));
                row.remove(AFTER);
            }
            continue;
        }
        let mut row: Map<_, _> = fields.clone();
        let after = row.remove(AFTER).and_then(|after| position(&list, &after));
        let at = after.map_or(list.len(), |after| after + 1);
        list.insert(at, Value::Object(row));
    }
    Ok(Value::Array(list))
}

fn position(list: &[Value], id: &Value) -> Option<usize> {
    list.iter().position(|row| row.get("id") == Some(id))
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
            let got = reducer.reduce(Some(&old), &change);
            assert_eq!(got, expected.map_err(str::to_owned), "{reducer:?} {old} {change}");
        }
    }
}
