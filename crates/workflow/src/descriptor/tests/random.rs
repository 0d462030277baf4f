//! No text makes it panic, and a valid document with one change is either fine or has a place.

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use proptest::{prop_assert, prop_assert_eq};
use serde_json::{Map, Value};

use super::{document, read_alone};
use crate::descriptor::node::Type;
use crate::descriptor::{NoLibrary, read};

const WORDS: &[&str] = &[
    "name",
    "nodes",
    "edges",
    "type",
    "id",
    "from",
    "to",
    "condition",
    "key",
    "equals",
    "not",
    "says",
    "graph",
    "branches",
    "taskNodes",
    "routes",
    "target",
    "fallback",
    "retry",
    "onError",
    "$fn",
    "over",
    "agents",
    "agent",
    "prompt",
    "until",
    "stateAnnotations",
    "default",
    "reducer",
    "nodeDescriptions",
    "workflow",
    "execute",
    "options",
    "otherwise",
    "skip",
    "concat",
    "x",
    "",
];

fn word() -> impl Strategy<Value = String> {
    let types: Vec<&str> = Type::ALL.iter().map(|(word, _)| *word).collect();
    prop_oneof![
        4 => prop::sample::select(WORDS).prop_map(str::to_owned),
        2 => prop::sample::select(types).prop_map(str::to_owned),
        1 => ".{0,6}",
    ]
}

/// JSON in which our own words come up often.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..7)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A document that is fine.
fn whole() -> impl Strategy<Value = Value> {
    let samples = [
        include_str!("samples/plan-work-review.json"),
        include_str!("samples/named-nodes.json"),
        include_str!("samples/builder.json"),
        include_str!("samples/my-workflow.json"),
    ];
    prop::sample::select(samples.to_vec()).prop_map(|text| serde_json::from_str(text).unwrap())
}

/// Every value inside, by its place.
fn pointers(value: &Value, here: &str, all: &mut Vec<String>) {
    all.push(here.to_owned());
    match value {
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                pointers(item, &format!("{here}/{number}"), all);
            }
        }
        Value::Object(fields) => {
            for (key, item) in fields {
                pointers(item, &format!("{here}/{key}"), all);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Reads, checks, and looks at everything that is said.
fn survives(text: &str) -> bool {
    let draft = read(&document("x.json", text), &NoLibrary);
    let lines = u32::try_from(text.lines().count().max(1)).unwrap();
    let placed = draft.faults.iter().all(|fault| {
        (1..=lines + 1).contains(&fault.line) && fault.column >= 1 && !fault.to_string().is_empty()
    });
    let _ = draft.check(&Default::default());
    let explained = draft.graph().is_some() || !draft.faults.is_empty();
    let _ = draft.into_workflow();
    placed && explained
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,80}") {
        prop_assert!(survives(&text));
    }

    #[test]
    fn any_json_is_read_or_refused(value in json()) {
        prop_assert!(survives(&value.to_string()));
        prop_assert!(survives(&serde_json::to_string_pretty(&value).unwrap()));
    }

    #[test]
    fn a_changed_document_is_read_or_refused(
        mut value in whole(), place in any::<prop::sample::Index>(), other in json(),
    ) {
        let mut all = vec![];
        pointers(&value, "", &mut all);
        *value.pointer_mut(&all[place.index(all.len())]).unwrap() = other;
        prop_assert!(survives(&serde_json::to_string_pretty(&value).unwrap()));
    }

    #[test]
    fn a_document_cut_anywhere_is_refused(value in whole(), cut in any::<prop::sample::Index>()) {
        let text = value.to_string();
        let mut end = cut.index(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        prop_assert!(read_alone(&text[..end]).into_workflow().is_err());
        prop_assert!(survives(&text[..end]));
    }

    #[test]
    fn an_unknown_key_is_found_exactly_where_it_is(
        mut value in whole(), place in any::<prop::sample::Index>(), word in "[a-z]{1,8}",
    ) {
        let mut all = vec![];
        pointers(&value, "", &mut all);
        all.retain(|pointer| value.pointer(pointer).is_some_and(Value::is_object));
        // What these two say is the author's.
        all.retain(|pointer| !pointer.ends_with("stateAnnotations") && !pointer.ends_with("nodeDescriptions"));
        all.retain(|pointer| !pointer.ends_with("/state") && !pointer.contains("/state/"));
        all.retain(|pointer| !pointer.ends_with("/reducer"));
        let key = format!("zz ü {word}");
        let object = value.pointer_mut(&all[place.index(all.len())]).unwrap().as_object_mut().unwrap();
        object.insert(key.clone(), Value::from(1));
        let text = serde_json::to_string_pretty(&value).unwrap();
        let draft = read_alone(&text);
        let quoted = Value::from(key).to_string();
        let (line, before) = text
            .lines()
            .enumerate()
            .find_map(|(number, line)| Some((number + 1, line.split_once(&quoted)?.0)))
            .unwrap();
        let found: Vec<_> =
            draft.faults.iter().map(|f| (f.code, f.line as usize, f.column as usize)).collect();
        prop_assert_eq!(found, [("ATM611", line, before.chars().count() + 1)]);
    }
}
