//! Changing settings files: one key changes, everything else stays as it was.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use atomic_registry::settings::{
    Class, Files, SETTINGS, Setting, Value, find, set, template, unset,
};
use proptest::prelude::*;

use crate::settings::some_setting;
use crate::tree::Tree;

const FILE: &str = "project/.atomic/settings.json";

fn number(key: &str, number: u64) -> (&'static Setting, Value) {
    (find(key).unwrap(), Value::Number(number))
}

fn list(texts: &[&str]) -> Value {
    Value::List(texts.iter().map(|text| (*text).to_owned()).collect())
}

/// The file after `workers` was set to 8.
fn with_workers(before: &str) -> String {
    let tree = Tree::of(&[(FILE, before)]);
    let (setting, value) = number("workers", 8);
    set(&tree.path(FILE), None, setting, &value).unwrap();
    fs::read_to_string(tree.path(FILE)).unwrap()
}

/// The file after a key was removed.
fn without(key: &str, before: &str) -> String {
    let tree = Tree::of(&[(FILE, before)]);
    assert!(unset(&tree.path(FILE), None, key).unwrap(), "{key} is in {before}");
    fs::read_to_string(tree.path(FILE)).unwrap()
}

#[test]
fn a_key_is_set_and_nothing_else_changes() {
    let table = [
        ("", "{\n  \"workers\": 8\n}\n"),
        ("// mine", "// mine\n{\n  \"workers\": 8\n}\n"),
        ("{}", "{\n  \"workers\": 8\n}"),
        ("{\n}\n", "{\n  \"workers\": 8\n}\n"),
        ("{ \"a\": 1 }\n", "{ \"a\": 1, \"workers\": 8 }\n"),
        ("{ \"a\": 1, }\n", "{ \"a\": 1, \"workers\": 8, }\n"),
        ("{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"workers\": 8\n}\n"),
        ("{\n\t\"a\": 1,\n}\n", "{\n\t\"a\": 1,\n\t\"workers\": 8,\n}\n"),
        ("{\r\n    \"a\": 1\r\n}\r\n", "{\r\n    \"a\": 1,\r\n    \"workers\": 8\r\n}\r\n"),
        (
            "{\n  \"a\": 1 // one\n  // last\n}\n",
            "{\n  \"a\": 1, // one\n  // last\n  \"workers\": 8\n}\n",
        ),
        ("{\n   // \"b\": 1\n}\n", "{\n   // \"b\": 1\n   \"workers\": 8\n}\n"),
        ("{ // a\n}", "{ // a\n  \"workers\": 8\n}"),
        ("\u{feff}{}", "\u{feff}{\n  \"workers\": 8\n}"),
        (
            "{\"Workers\": /* few */ 4 /* x */, \"a\": [1,2]} // end",
            "{\"Workers\": /* few */ 8 /* x */, \"a\": [1,2]} // end",
        ),
        ("{\"workers\": [\n1\n]}", "{\"workers\": 8}"),
        ("{\"a\": {\"workers\": 1}}", "{\"a\": {\"workers\": 1}, \"workers\": 8}"),
    ];
    for (before, after) in table {
        assert_eq!(with_workers(before), after, "{before:?}");
    }
}

#[test]
fn a_key_is_removed_and_nothing_else_changes() {
    let table = [
        ("{\n  \"workers\": 8\n}\n", "{\n}\n"),
        ("{\"workers\": 8}", "{}"),
        ("{ \"workers\": 8 }", "{ }"),
        ("{ \"a\": 1, \"workers\": 8 }", "{ \"a\": 1 }"),
        ("{ \"workers\": 8, \"a\": 1 }", "{ \"a\": 1 }"),
        ("{\n  \"a\": 1,\n  \"workers\": 8\n}\n", "{\n  \"a\": 1\n}\n"),
        ("{\n  \"a\": 1,\n  \"workers\": 8,\n}\n", "{\n  \"a\": 1,\n}\n"),
        ("{\r\n  \"workers\": 8,\r\n  \"a\": 1\r\n}\r\n", "{\r\n  \"a\": 1\r\n}\r\n"),
        (
            "{\n  // many\n  \"workers\": 8, // why\n  \"a\": 1\n}\n",
            "{\n  // many\n  // why\n  \"a\": 1\n}\n",
        ),
        ("{\n  \"workers\": 8 /* x */, \"a\": 1\n}", "{\n  /* x */ \"a\": 1\n}"),
        ("{\"a\": 1 // x\n, \"workers\": 8}", "{\"a\": 1 // x\n}"),
        ("{\"workers\": 8, \"Workers\": 9, \"a\": 1}", "{\"a\": 1}"),
        ("{\n  \"workers\": [\n    8\n  ],\n  \"a\": 1\n}", "{\n  \"a\": 1\n}"),
    ];
    for (before, after) in table {
        assert_eq!(without("workers", before), after, "{before:?}");
    }
    assert_eq!(without("wrokers", "{\"wrokers\": 1, \"a\": 2}"), "{\"a\": 2}", "a key of nobody's");
}

#[test]
fn what_is_not_there_is_not_removed_and_nothing_is_written() {
    let tree = Tree::of(&[(FILE, "{\"a\": 1}")]);
    assert_eq!(unset(&tree.path(FILE), None, "workers"), Ok(false));
    assert_eq!(fs::read_to_string(tree.path(FILE)).unwrap(), "{\"a\": 1}");
    assert_eq!(unset(&tree.path("project/elsewhere/settings.json"), None, "workers"), Ok(false));
    assert!(!tree.path("project/elsewhere").exists());
}

#[test]
fn a_file_that_is_malformed_is_left_alone() {
    let (setting, value) = number("workers", 8);
    for text in ["{\n  \"workers\" 4\n}", "[]", "{\"workers\": 1, \"workers\": 2}", "{"] {
        let tree = Tree::of(&[(FILE, text)]);
        let problem = set(&tree.path(FILE), None, setting, &value).unwrap_err().to_string();
        assert!(problem.starts_with(tree.path(FILE).to_str().unwrap()), "{problem}");
        assert!(problem.contains(".json:"), "the line is named: {problem}");
        assert_eq!(fs::read_to_string(tree.path(FILE)).unwrap(), text);
    }
    let tree = Tree::of(&[("project/.atomic", "a file")]);
    let problem = set(&tree.path(FILE), None, setting, &value).unwrap_err().to_string();
    assert!(problem.contains("the folder"), "{problem}");
}

#[test]
fn a_link_stays_a_link_and_permissions_stay() {
    let tree = Tree::of(&[("home/shared.json", "{}\n")]);
    let real = tree.path("home/shared.json");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir_all(tree.path("project/.atomic")).unwrap();
    symlink("../../home/shared.json", tree.path(FILE)).unwrap();
    let (setting, value) = number("workers", 8);
    set(&tree.path(FILE), None, setting, &value).unwrap();
    assert!(fs::symlink_metadata(tree.path(FILE)).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "{\n  \"workers\": 8\n}\n");
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    let left: Vec<_> = fs::read_dir(tree.path("home")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left beside it: {left:?}");
}

#[test]
fn changes_at_the_same_time_are_all_kept() {
    let tree = Tree::of(&[]);
    let path = tree.path(FILE);
    std::thread::scope(|scope| {
        for setting in SETTINGS.iter().copied().filter(|setting| setting.class != Class::User) {
            let path = &path;
            scope.spawn(move || set(path, None, setting, &setting.parse(setting.example).unwrap()));
        }
    });
    let text = fs::read_to_string(&path).unwrap();
    for setting in SETTINGS.iter().filter(|setting| setting.class != Class::User) {
        assert!(text.contains(&format!("\"{}\":", setting.key)), "{} is lost", setting.key);
    }
}

/// A settings file as people write them, with comments `// 0`, `/* 1 */`, … in order.
fn some_file() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("//"),
        Just("/*"),
        Just(""),
        Just("\"other\": {\"workers\": [1, {}]},"),
        Just("\"Other-Key\": \"} // no comment\","),
        Just("\"workers\": 3,"),
        Just("\"maxCost\": 1.5,"),
        Just("\"check\": [\n\"a\", // c\n\"b\"\n],"),
        Just("\"timeout\": \"8h\","),
    ];
    let lines = prop::collection::vec((line, any::<bool>(), 0..3usize), 0..8);
    (lines, prop_oneof![Just("\n"), Just("\r\n")], prop_oneof![Just("  "), Just("\t"), Just("")])
        .prop_map(|(lines, end, indent)| {
            let mut text = format!("// head{end}{{{end}");
            let mut seen = std::collections::BTreeSet::new();
            for (number, (line, breaks, remark)) in lines.into_iter().enumerate() {
                let line = match line {
                    "//" => format!("// {number}{end}"),
                    "/*" => format!("/* {number}{end} */ "),
                    key if key.is_empty() || !seen.insert(key) => end.to_owned(),
                    key => format!("{key}{}", if breaks { end } else { " " }),
                };
                text.push_str(indent);
                text.push_str(&line);
                if remark == 0 {
                    text.push_str(&format!("/* remark {number} */ // it{end}"));
                }
            }
            text + "}" + end
        })
}

/// The comments of a text, but for those inside a value that is replaced.
fn comments(text: &str) -> Vec<String> {
    let (mut found, mut rest, mut quoted) = (vec![], text, false);
    while let Some(letter) = rest.chars().next() {
        let length = match (quoted, letter) {
            (true, '\\') => 2,
            (_, '"') => {
                quoted = !quoted;
                1
            }
            (false, '/') if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            (false, '/') if rest.starts_with("/*") => rest.find("*/").unwrap() + 2,
            (true | false, letter) => letter.len_utf8(),
        };
        if !quoted && length > 1 && letter == '/' {
            found.push(rest[..length].trim_end().to_owned());
        }
        rest = &rest[length..];
    }
    found.retain(|comment| comment != "// c");
    found
}

/// The same file as the user's, of which everything counts.
fn as_users(tree: &Tree) -> Files {
    Files::new(Some(&tree.path("project/.atomic")), &tree.path("elsewhere"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_set_is_read_back_and_everything_else_stays(
        text in some_file(),
        (setting, value) in some_setting(),
        (other, _) in some_setting(),
    ) {
        let tree = Tree::of(&[(FILE, &text)]);
        let path = tree.path(FILE);
        let before = as_users(&tree).read(true);
        prop_assert!(before.problems.is_empty(), "{text}: {before:?}");

        set(&path, None, setting, &value).unwrap();
        let changed = fs::read_to_string(&path).unwrap();
        let after = as_users(&tree).read(true);
        prop_assert!(after.problems.is_empty(), "{changed}: {after:?}");
        prop_assert_eq!(&after.values.get(setting).unwrap().value, &value, "{}", changed);
        prop_assert_eq!(comments(&changed), comments(&text), "{}", changed);
        prop_assert_eq!(after.warnings.len(), before.warnings.len(), "{}", changed);
        for kept in SETTINGS.iter().filter(|kept| kept.key != setting.key) {
            let value = |reading: &atomic_registry::settings::Reading| {
                reading.values.get(kept).map(|found| found.value.clone())
            };
            prop_assert_eq!(value(&after), value(&before), "{}", changed);
        }

        let was_there = after.values.get(other).is_some();
        prop_assert_eq!(unset(&path, None, other.key), Ok(was_there));
        let changed = fs::read_to_string(&path).unwrap();
        let last = as_users(&tree).read(true);
        prop_assert!(last.problems.is_empty(), "{changed}: {last:?}");
        prop_assert!(last.values.get(other).is_none(), "{}", changed);
        prop_assert_eq!(comments(&changed), comments(&text), "{}", changed);
        prop_assert_eq!(last.warnings.len(), before.warnings.len(), "{}", changed);
    }

    #[test]
    fn no_text_is_too_much_to_change(
        text in "([{}\\[\\]:,\"/*\n -]|\"workers\": ?|\"check\"|4,?|//|true|ä){0,40}",
    ) {
        let tree = Tree::of(&[(FILE, &text)]);
        let (setting, value) = number("workers", 8);
        match set(&tree.path(FILE), None, setting, &value) {
            Ok(()) => {
                let read = as_users(&tree).read(true);
                prop_assert_eq!(read.values.number(setting), Some(8), "{}", text);
                prop_assert_eq!(unset(&tree.path(FILE), None, "workers"), Ok(true));
            }
            Err(_) => prop_assert_eq!(fs::read_to_string(tree.path(FILE)).unwrap(), text),
        }
    }
}

#[test]
fn the_file_of_init_can_be_changed() {
    let tree = Tree::of(&[(FILE, &template())]);
    set(&tree.path(FILE), None, find("check").unwrap(), &list(&["cargo test", "echo \"ä\""]))
        .unwrap();
    let text = fs::read_to_string(tree.path(FILE)).unwrap();
    assert!(text.ends_with("\n  \"check\": [\"cargo test\", \"echo \\\"ä\\\"\"]\n}\n"), "{text}");
    assert!(unset(&tree.path(FILE), None, "check").unwrap());
    assert_eq!(fs::read_to_string(tree.path(FILE)).unwrap(), template());
}
