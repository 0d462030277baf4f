//! Values too big for a line.

use std::path::{Path, PathBuf};

use atomic_event::Event;
use atomic_session::SessionError;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{DIR, JOURNAL, at, create, memory, noted, open};

fn patched(value: Value) -> Event {
    Event::StatePatched { patch: [("k".into(), value)].into(), reason: "r".to_owned() }
}

fn blobs() -> PathBuf {
    Path::new(DIR).join("blobs")
}

#[test]
fn a_big_value_goes_to_a_file_named_by_its_content_once() {
    let (double, disk) = memory();
    let mut session = create(&disk, DIR);
    let text = "é\"\n".repeat(8_000);
    let events = vec![noted(text.as_str()), patched(json!({"deep": [text, text]}))];
    let returned = session.append(events, at()).unwrap();
    let names = disk.list(&blobs()).unwrap();
    assert_eq!(names.len(), 1, "the same value is kept once");
    let journal = disk.read(Path::new(JOURNAL), u64::MAX).unwrap();
    assert!(journal.len() < 2_000, "{} bytes", journal.len());
    let line = journal.split(|b| *b == b'\n').nth(1).unwrap();
    let line: Value = serde_json::from_slice(line).unwrap();
    let bytes = serde_json::to_vec(&text).unwrap().len();
    assert_eq!(line["text"], json!({"$blob": names[0], "bytes": bytes}));
    drop(session);
    double.crash();
    assert_eq!(open(&disk, DIR).unwrap().1.facts[1..], returned);
}

#[test]
fn a_list_that_is_big_only_as_a_whole_goes_to_a_file_too() {
    let (_, disk) = memory();
    let mut session = create(&disk, DIR);
    let list: Vec<String> = (0..1_000).map(|n| format!("item number {n}, not long")).collect();
    let returned = session.append(vec![patched(json!(list))], at()).unwrap();
    assert_eq!(disk.list(&blobs()).unwrap().len(), 1);
    drop(session);
    assert_eq!(open(&disk, DIR).unwrap().1.facts[1..], returned);
}

#[test]
fn small_values_stay_in_the_line() {
    let (_, disk) = memory();
    let mut session = create(&disk, DIR);
    session.append(vec![noted("x".repeat(16_000))], at()).unwrap();
    assert_eq!(disk.list(&blobs()).unwrap().len(), 0);
}

#[test]
fn a_missing_or_changed_file_is_named() {
    let (_, disk) = memory();
    let mut session = create(&disk, DIR);
    session.append(vec![noted("x".repeat(20_000))], at()).unwrap();
    drop(session);
    let path = blobs().join(&disk.list(&blobs()).unwrap()[0]);
    disk.replace(&path, b"\"other\"").unwrap();
    let changed = open(&disk, DIR).unwrap_err();
    disk.remove(&path).unwrap();
    let missing = open(&disk, DIR).unwrap_err();
    for (error, word) in [(changed, "was changed"), (missing, "is missing")] {
        let named = error.to_string().contains(&path.display().to_string());
        assert!(named && error.to_string().contains(word), "{error}");
        assert!(matches!(error, SessionError::Corrupt { offset, .. } if offset > 0));
    }
}

/// After a crash between writing the value and its sync, the file is there but not durable.
#[test]
fn a_value_that_is_merely_there_is_written_again() {
    let (_, disk) = memory();
    let mut session = create(&disk, DIR);
    let text = "x".repeat(20_000);
    session.append(vec![noted(text.as_str())], at()).unwrap();
    drop(session);
    let path = blobs().join(&disk.list(&blobs()).unwrap()[0]);
    let bytes = disk.read(&path, u64::MAX).unwrap();

    let (double_two, disk_two) = memory();
    let mut session = create(&disk_two, DIR);
    disk_two.log(&path, &bytes).unwrap();
    session.append(vec![noted(text.as_str())], at()).unwrap();
    drop(session);
    double_two.crash();
    open(&disk_two, DIR).unwrap();
}

fn json_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        8 => "[a-z$\"\\\\é]{0,8}",
        1 => (5_000_usize..40_000).prop_map(|n| "x\"".repeat(n / 2)),
        1 => Just("$blob".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let key = prop::sample::select(vec!["$blob", "$$blob", "$$$blob", "blob", "bytes", "$", "k"]);
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|fields| fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_value_comes_back_unchanged(values in prop::collection::vec(json_value(), 1..4)) {
        let (double, disk) = memory();
        let mut session = create(&disk, DIR);
        let mut events: Vec<Event> = values.iter().cloned().map(patched).collect();
        events.push(Event::Unknown(json!({"type": "moon_landed", "$blob": 1, "$$blob": values})));
        let returned = session.append(events, at()).unwrap();
        drop(session);
        double.crash();
        prop_assert_eq!(&open(&disk, DIR).unwrap().1.facts[1..], &returned[..]);
    }
}

#[test]
fn a_reference_lookalike_is_data() {
    let (_, disk) = memory();
    let mut session = create(&disk, DIR);
    let lookalike = json!({"$blob": "../../../etc/passwd", "bytes": 1, "$$blob": {"$blob": []}});
    let returned = session.append(vec![patched(lookalike)], at()).unwrap();
    drop(session);
    assert_eq!(open(&disk, DIR).unwrap().1.facts[1..], returned);
}
