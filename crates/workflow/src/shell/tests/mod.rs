//! The rendered commands are run by the shells of this machine.

mod arguments;
mod attacks;
mod quoting;
mod random;
mod refused_by_program;
mod refused_by_syntax;
mod sizes;

use std::process::{Command, Stdio};

use atomic_graph::State;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ShellCommand, ShellTemplateError, render_shell, templates_in};

fn state(values: Value) -> State {
    State::new(serde_json::from_value(values).unwrap())
}

fn filled(template: &str, text: &str) -> ShellCommand {
    let state = state(json!({"x": text, "outputs": {}}));
    render_shell(template, &state).unwrap_or_else(|error| panic!("{template}: {error}"))
}

/// The shells of this machine that can be `/bin/sh`.
fn shells() -> impl Iterator<Item = &'static [&'static str]> {
    let known: [&[&str]; 4] = [&["dash"], &["bash", "--posix"], &["bash"], &["busybox", "sh"]];
    known.into_iter().filter(|shell| {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).args(["-c", ":"]).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

fn run(shell: &[&str], text: &str, env: &[(String, String)]) -> (bool, Vec<u8>) {
    let output = Command::new(shell[0])
        .args(&shell[1..])
        .args(["-c", text])
        .current_dir(std::env::temp_dir())
        .env_remove("U")
        .envs(env.iter().cloned())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    (output.status.success(), output.stdout)
}

/// Texts that a shell would do something with, and any others. No NUL: a variable cannot have it.
fn text() -> impl Strategy<Value = String> {
    let signs = proptest::sample::select(vec![
        "'",
        "\"",
        "`",
        "$",
        "$(",
        ")",
        "${",
        "}",
        "{",
        "{x}",
        "\\",
        "\n",
        " ",
        "\t",
        "*",
        "?",
        "~",
        "#",
        ";",
        "&",
        "|",
        "<",
        ">",
        "<<EOF\n",
        "EOF\n",
        "!",
        "=",
        "-",
        "--",
        "a",
        "$HOME",
        "$(echo evil)",
        "`echo evil`",
        "'; echo evil; '",
        "\"; echo evil; \"",
        "é",
        "\u{81}",
        "\u{ff}",
        "漢",
        "\u{1b}",
        "%s",
        "\r",
        "$ATOMIC_ARG1",
        "a[$(echo evil)]",
    ]);
    prop_oneof![
        proptest::collection::vec(signs, 0..12).prop_map(|parts| parts.concat()),
        "[^\\x00]{0,40}",
        "[a-z'\"$` \\n]{2000}",
    ]
}

/// Checks that the one template of each command is refused, with these words about its place.
fn assert_refused(table: &[(&str, &[&str])]) {
    let state = state(json!({"x": "value"}));
    let mut wrong = vec![];
    for (place, commands) in table {
        for command in *commands {
            let refused: Vec<_> =
                templates_in(command).into_iter().map(|used| used.refusal).collect();
            let [Some(refusal)] = refused.as_slice() else {
                wrong.push(format!("{command:?} is not refused: {refused:?}"));
                continue;
            };
            if !refusal.place.contains(place) {
                wrong.push(format!("{command:?}: {refusal}"));
            }
            let error = render_shell(command, &state).unwrap_err();
            assert!(matches!(error, ShellTemplateError::Refused { .. }), "{command:?}: {error}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
