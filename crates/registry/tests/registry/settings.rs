//! Settings: the table, the layers, and what is wrong with files and variables.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::process::Command;

use atomic_registry::settings::{
    Class, Files, Kind, Origin, Preset, Reading, SETTINGS, Scope, Setting, Sourced, Value, Values,
    WORKERS, find, findings, read, read_variables, template, variable_names,
};
use proptest::prelude::*;

use crate::tree::Tree;

/// No variables.
const NONE: [(OsString, OsString); 0] = [];

pub(crate) fn files(tree: &Tree) -> Files {
    Files::new(Some(&tree.path("home/.atomic")), &tree.path("project"))
}

fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, text)| (name.into(), text.into())).collect()
}

/// A project with this settings file.
fn project(text: &str) -> Tree {
    Tree::of(&[("project/.atomic/settings.json", text)])
}

fn problems(tree: &Tree, reading: &Reading) -> String {
    let mut text = String::new();
    for problem in &reading.problems {
        let _ = writeln!(text, "{problem}");
    }
    for warning in &reading.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text.replace(tree.path("").to_str().unwrap(), "")
}

#[test]
fn the_table_keeps_its_own_rules() {
    let names: Vec<&str> = variable_names().collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "each is there once");
    for setting in SETTINGS {
        let key = setting.key;
        assert_eq!(setting.variable, format!("ATOMIC_{}", key.replace('.', "_").to_uppercase()));
        assert!(setting.flag.is_none_or(|flag| flag == key.replace('_', "-")), "{key}");
        assert_eq!(find(key).unwrap().key, key);
        assert!(setting.parse(setting.example).is_ok(), "{key}");
        if let Preset::Value(text) = setting.preset {
            assert_eq!(setting.parse(text).unwrap().to_string(), text, "{key}");
        }
    }
    for (spelling, key) in
        [("maxReviewRounds", "max_review_rounds"), ("turn-timeout", "turn_timeout")]
    {
        assert_eq!(find(spelling).unwrap().key, key);
    }
}

#[test]
fn values_are_read_as_they_are_typed() {
    let table = [
        ("timeout", "90s", Some("90s")),
        ("timeout", "30m", Some("30m")),
        ("timeout", "60m", Some("1h")),
        ("timeout", "8h", Some("8h")),
        ("timeout", "5", Some("5s")),
        ("max_cost", "2.50", Some("2.5")),
        ("max_cost", "$5", Some("5")),
        ("max_tokens", "18446744073709551615", Some("18446744073709551615")),
        ("workers", "004", Some("4")),
        ("max_review_rounds", "0", Some("0")),
        ("check", "[ -e built ] && true", Some("[ -e built ] && true")),
    ];
    for (key, text, expected) in table {
        let value = find(key).unwrap().parse(text).ok().map(|value| value.to_string());
        assert_eq!(value.as_deref(), expected, "{key} {text}");
    }
    let wrong = [
        ("timeout", &["", "h", "0s", "1d", "-1", "+1", "1.5h", "1 h", "99999999999h"] as &[&str]),
        ("max_cost", &["", "0", "-1", "nan", "inf", "1e999", "a", "$"]),
        ("workers", &["", "0", "-1", "+1", "4.0", "4294967296", "99999999999999999999", "\"4\""]),
        ("on_question", &["", "Pause", "ask"]),
        ("model", &["", " ", "a\0b"]),
        ("check", &["", "\n", "true\0"]),
    ];
    for (key, texts) in wrong {
        for text in texts {
            assert!(find(key).unwrap().parse(text).is_err(), "{key} {text:?}");
        }
    }
}

#[test]
fn everything_wrong_with_a_file_is_told_at_once_with_its_place() {
    let tree = project(
        "\u{feff}// mine\n{\n  \"$schema\": \"x\", \"workers\": \"4\",\n  \"maxAttempts\": 0.5,\n  \
         \"max-cost\": -1, \"timeout\": \"0s\",\n\t\"ä\": {\"workers\": 0}, \"turn_timeout\": true,\n  \
         \"on_question\": \"paus\", \"check\": [\"true\", 1],\n  \"model\": null, \"model\": \"x\",\n  \
         \"max_tokens\": 99999999999999999999,\n  \"worker\": 3,\n}\n",
    );
    insta::assert_snapshot!(problems(&tree, &files(&tree).read(true)));
}

#[test]
fn files_that_are_no_settings_are_told() {
    let mut told = String::new();
    let malformed: [&[u8]; 13] = [
        b"{\"workers\": 4",
        b"{\n  \"workers\" 4\n}",
        b"{\"workers\": 4 \"check\": []}",
        b"{workers: 4}",
        b"{'workers': 4}",
        b"{\"workers\": 0x4}",
        b"{\"max_cost\": NaN}",
        b"{} {}",
        b"[]",
        b"\"workers\"",
        b"{\"a\": \"\xff\"}",
        b"\xff\xfe{\0}\0",
        b"{\"a\": 1}\0",
    ];
    for bytes in malformed {
        let tree = project("");
        fs::write(tree.path("project/.atomic/settings.json"), bytes).unwrap();
        told += &problems(&tree, &files(&tree).read(true));
    }
    let tree = Tree::of(&[]);
    let path = tree.path("project/.atomic/settings.json");
    fs::create_dir_all(&path).unwrap();
    told += &problems(&tree, &files(&tree).read(true));
    fs::remove_dir(&path).unwrap();
    symlink("nowhere", &path).unwrap();
    told += &problems(&tree, &files(&tree).read(true));
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    told += &problems(&tree, &files(&tree).read(true));
    fs::remove_file(&path).unwrap();
    fs::File::create(&path).unwrap().set_len(100 * 1024 * 1024).unwrap();
    told += &problems(&tree, &files(&tree).read(true));
    fs::write(&path, "[".repeat(1024 * 1024)).unwrap();
    told += &problems(&tree, &files(&tree).read(true));
    insta::assert_snapshot!(told);
}

/// As many keys as fit into a file: where each of them stands is not worth finding out.
#[test]
fn of_many_mistakes_the_first_are_told() {
    for (line, told) in
        [("\"k{}\": 1", "69980 more like these"), ("\"workers\": 1", "69979 more like these")]
    {
        let lines: Vec<String> = (0..70_000).map(|n| line.replace("{}", &n.to_string())).collect();
        for joint in [",", ",\n"] {
            let tree = project(&format!("{{{}}}", lines.join(joint)));
            let told_all = problems(&tree, &files(&tree).read(true));
            assert_eq!(told_all.lines().count(), 21, "{line}");
            let last = told_all.lines().last().unwrap();
            assert!(last.contains(&format!(".atomic/settings.json: {told}; ")), "{last}");
        }
    }
}

#[test]
fn a_file_may_be_empty_or_hold_only_comments() {
    for text in ["", " \n", "// nothing yet", "/* nothing */\n", "{}", "{ /* a */ }", "\u{feff}{}"]
    {
        let tree = project(text);
        assert_eq!(files(&tree).read(true), Reading::default(), "{text:?}");
    }
    let tree = Tree::of(&[("project/.atomic", "a file")]);
    assert_eq!(files(&tree).read(true), Reading::default(), "there are no settings in a file");
}

#[test]
fn a_file_that_is_the_users_and_the_projects_is_read_once() {
    let tree = project("{\"workers\": 9, \"wrokers\": 1}");
    let same = Files::new(Some(&tree.path("project/.atomic")), &tree.path("project"));
    fs::create_dir_all(tree.path("home")).unwrap();
    symlink(tree.path("project/.atomic"), tree.path("home/.atomic")).unwrap();
    for files in [same, files(&tree)] {
        let reading = files.read(false);
        assert_eq!(reading.warnings.len(), 1, "{reading:?}");
        let origin = &reading.values.get(&WORKERS).unwrap().origin;
        assert_eq!(origin.word(), "user");
    }
}

#[test]
fn variables_are_checked_and_an_empty_one_is_not_set() {
    let tree = Tree::of(&[]);
    let misspelt = format!("ATOMIC_{}", "WORKER");
    let strange = format!("ATOMIC_{}", "ENERGY");
    let mut given = variables(&[
        ("ATOMIC_WORKERS", "0"),
        ("ATOMIC_MAX_COST", "nan"),
        ("ATOMIC_ON_QUESTION", "never"),
        ("ATOMIC_TIMEOUT", ""),
        ("ATOMIC_HOME", "/x"),
        ("ATOMIC_STEP", "1/2/3"),
        ("ATOM", "x"),
        (&misspelt, "3"),
        (&strange, "42"),
    ]);
    given.push(("ATOMIC_MODEL".into(), OsString::from_vec(vec![0xff])));
    let reading = read_variables(given.clone());
    assert_eq!(reading.values, Values::default());
    insta::assert_snapshot!(problems(&tree, &reading));

    let all = findings(&files(&tree), given);
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(all.len(), 6, "the strange one too: {all:#?}");
    assert!(all.iter().any(|line| line.starts_with(&strange)), "{all:#?}");
}

#[test]
fn findings_are_those_of_every_file_and_variable() {
    let tree = Tree::of(&[
        ("home/.atomic/settings.json", "{\n  \"workers\": 0\n}"),
        ("project/.atomic/settings.json", "{\n\n  \"wrokers\": 1\n}"),
    ]);
    let found = findings(&files(&tree), variables(&[("ATOMIC_TIMEOUT", "soon")]));
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    let found = found.join("\n").replace(tree.path("").to_str().unwrap(), "");
    insta::assert_snapshot!(found);
}

#[test]
fn the_file_of_init_sets_nothing_and_every_line_of_it_can_be_used() {
    let tree = project(&template());
    assert_eq!(files(&tree).read(true), Reading::default());
    let lines: Vec<String> = template()
        .lines()
        .map(|line| match line.split_once("// \"") {
            Some((before, rest)) => format!("{before}\"{rest}"),
            None => line.to_owned(),
        })
        .collect();
    let tree = project(&lines.join("\n"));
    let reading = files(&tree).read(true);
    assert_eq!(problems(&tree, &reading), "");
    // Limits are written as they are built in, and so are no stricter.
    for setting in SETTINGS.iter().filter(|setting| setting.class == Class::Trusted) {
        assert!(reading.values.get(setting).is_some(), "{}: {reading:?}", setting.key);
    }
}

/// A value of a setting.
fn value(setting: &'static Setting) -> BoxedStrategy<Value> {
    let text = || "[a-zA-Zäß\"\\\\/{}:,.'$ ]{0,8}[a-z]".prop_map(|text: String| text);
    match setting.kind {
        Kind::Text | Kind::Path => text().prop_map(Value::Text).boxed(),
        Kind::Number { least, most } => (least..=most).prop_map(Value::Number).boxed(),
        Kind::Money => (1e-6..1e12).prop_map(Value::Money).boxed(),
        Kind::Time { .. } => (1..=300_000u64).prop_map(Value::Seconds).boxed(),
        Kind::Choice(choices) => {
            // One choice stands for any command.
            let named = |((name, _), command): ((&str, _), String)| {
                Value::Text(name.replace("<command>", &command))
            };
            (prop::sample::select(choices), text()).prop_map(named).boxed()
        }
        Kind::Commands => text().prop_map(|text| Value::List(vec![text])).boxed(),
        Kind::Names => "[A-Z_]{1,8}".prop_map(|name: String| Value::List(vec![name])).boxed(),
        Kind::Switch => prop::bool::ANY.prop_map(Value::Switch).boxed(),
    }
}

/// A setting that a project's file can hold, and a value of it.
pub(crate) fn some_setting() -> impl Strategy<Value = (&'static Setting, Value)> {
    let all: Vec<&'static Setting> =
        SETTINGS.iter().copied().filter(|setting| setting.class != Class::User).collect();
    prop::sample::select(all).prop_flat_map(|setting| (Just(setting), value(setting)))
}

/// Whether a value in a project's file counts, written down apart from the code under test.
fn counts(setting: &Setting, own: &Value, user: Option<&Value>, trusted: bool) -> bool {
    let runs = |text: &str| text == "script" || text.starts_with("acp:");
    let smaller = |own: &Value, user: &Value| match (own, user) {
        (Value::Number(own), Value::Number(user)) => own < user,
        (Value::Seconds(own), Value::Seconds(user)) => own < user,
        (Value::Money(own), Value::Money(user)) => own < user,
        (Value::Text(own), Value::Text(user)) => {
            let order = ["none", "project", "all", "fail", "pause", "recommended"];
            let rank = |text: &String| order.iter().position(|one| one == text).unwrap();
            rank(own) < rank(user)
        }
        (own, user) => unreachable!("{own:?} and {user:?}"),
    };
    match setting.key {
        "backend" => trusted && !matches!(own, Value::Text(text) if runs(text)),
        "model" | "check" => trusted,
        "workers" | "max_attempts" | "max_review_rounds" | "max_iterations" | "turn_timeout" => {
            let preset = match setting.key {
                "workers" | "max_attempts" => Value::Number(4),
                "max_review_rounds" => Value::Number(3),
                "max_iterations" => Value::Number(100),
                _ => Value::Seconds(1800),
            };
            smaller(own, user.unwrap_or(&preset))
        }
        "max_cost" | "max_task_cost" | "max_tokens" | "max_launches" | "timeout" => {
            user.is_none_or(|user| smaller(own, user))
        }
        "require_checks" => *own == Value::Switch(true) && user != Some(&Value::Switch(true)),
        "on_question" => smaller(own, user.unwrap_or(&Value::Text("pause".into()))),
        "inherit" => smaller(own, user.unwrap_or(&Value::Text("all".into()))),
        "script" | "retry_window" | "pay" | "inhibit_sleep" | "env_allow" | "trust"
        | "trusted_folders" | "allow_root" | "ralph.planner" | "ralph.worker"
        | "ralph.reviewer" => false,
        key => unreachable!("a project's say in `{key}` is not decided"),
    }
}

/// A value for each layer, or none: user, project, variable, flag.
type Layers = [Option<Value>; 4];

fn all_layers() -> impl Strategy<Value = Vec<Layers>> {
    let layer = |setting: &'static Setting| prop::option::of(value(setting));
    let layers = |setting| [0; 4].map(|_| layer(setting).boxed());
    SETTINGS.iter().map(|setting| layers(setting)).collect::<Vec<_>>()
}

/// A settings file with the values of one layer.
fn file_of(all: &[Layers], layer: usize) -> String {
    let entry = |(setting, layers): (&&Setting, &Layers)| {
        let value = layers[layer].as_ref()?.to_json();
        Some(format!("  \"{}\": {value},\n", setting.key))
    };
    format!("{{\n{}}}\n", SETTINGS.iter().zip(all).filter_map(entry).collect::<String>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is set in whichever layers, the last layer that counts wins, for every setting by
    /// itself.
    #[test]
    fn the_last_layer_that_counts_wins(all in all_layers(), trusted in prop::bool::ANY) {
        let tree = Tree::of(&[
            ("home/.atomic/settings.json", &file_of(&all, 0)),
            ("project/.atomic/settings.json", &file_of(&all, 1)),
        ]);
        let mut flags = Values::default();
        let mut variables = vec![];
        for (setting, layers) in SETTINGS.iter().copied().zip(&all) {
            if let Some(value) = &layers[2] {
                variables.push((setting.variable.into(), value.to_string().into()));
            }
            if let Some(value) = layers[3].clone() {
                flags.insert(setting, Sourced { value, origin: Origin::Flag(setting.key) });
            }
        }
        let reading = read(&files(&tree), trusted, variables);
        prop_assert_eq!(&reading.problems, &[]);
        let values = flags.over(reading.values);
        for (setting, layers) in SETTINGS.iter().zip(&all) {
            let has_say = |layer: usize| match (&layers[layer], layer) {
                (Some(own), 1) => counts(setting, own, layers[0].as_ref(), trusted),
                (value, _) => value.is_some(),
            };
            let last = (0..4).rev().find(|layer| has_say(*layer));
            let found = values.get(setting);
            let word = found.map_or("built-in", |found| found.origin.word());
            let expected = last.map_or("built-in", |n| ["user", "project", "variable", "flag"][n]);
            prop_assert_eq!(word, expected, "{}", setting.key);
            let expected = match (last, setting.preset) {
                (Some(layer), _) => layers[layer].clone(),
                (None, Preset::Value(text)) => setting.parse(text).ok(),
                (None, Preset::Words(_)) => None,
            };
            prop_assert_eq!(found.map(|found| found.value.clone()), expected, "{}", setting.key);
        }
    }

    #[test]
    fn what_is_shown_can_be_typed((setting, value) in some_setting()) {
        prop_assert_eq!(setting.parse(&value.to_string()), Ok(value));
    }

    #[test]
    fn no_file_is_too_much(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let tree = project("");
        fs::write(tree.path("project/.atomic/settings.json"), bytes).unwrap();
        let _ = findings(&files(&tree), NONE);
    }

    #[test]
    fn no_text_is_too_much(text in "([{}\\[\\]:,\"/*\n -]|\"workers\"|\"check\"|4|//|true|ä){0,40}") {
        let _ = findings(&files(&project(&text)), NONE);
    }
}

/// Where each file is.
#[test]
fn the_files_are_where_they_are_said_to_be() {
    let tree = Tree::of(&[]);
    let files = files(&tree);
    let project = tree.path("project/.atomic/settings.json");
    assert_eq!(files.path(Scope::Project), Some(project.as_path()));
    let user = tree.path("home/.atomic/settings.json");
    assert_eq!(files.path(Scope::User), Some(user.as_path()));
    assert_eq!(Files::new(None, &tree.path("project")).path(Scope::User), None);
}
