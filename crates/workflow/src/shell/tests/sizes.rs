//! Large values and large commands.

use serde_json::{Value, json};

use super::super::{ShellTemplateError, render_shell, templates_in};
use super::{filled, state};

#[test]
fn values_that_fit_into_no_environment_are_errors_that_name_the_way_out() {
    let long = "x".repeat(100 * 1024);
    filled("echo {x}", &long);
    let error = render_shell("echo {x}", &state(json!({"x": format!("{long}x")}))).unwrap_err();
    assert!(error.to_string().contains("102401 bytes"), "{error}");
    assert!(error.to_string().contains("{file:x}"), "{error}");
    filled("cat {file:x}", &format!("{long}x\0"));
    let error = render_shell("echo {x}", &state(json!({"x": "a\0b"}))).unwrap_err();
    assert!(error.to_string().contains("NUL") && error.to_string().contains("{file:x}"), "{error}");
    let keys: Vec<String> = (0..6).map(|n| format!("k{n}")).collect();
    let values = keys.iter().map(|key| (key.clone(), json!(long))).collect();
    let template = keys.iter().map(|key| format!("{{{key}}} ")).collect::<String>();
    let error =
        render_shell(&format!("echo {template}"), &state(Value::Object(values))).unwrap_err();
    assert!(matches!(error, ShellTemplateError::TooLongTogether { .. }), "{error}");
    assert!(error.to_string().contains("{file:k"), "{error}");
}

/// A hostile file must not keep `atomic check` busy: the scan takes linear time.
#[test]
fn a_huge_command_is_scanned_in_one_go() {
    for piece in [
        "{",
        "${",
        "$(",
        "\"",
        "{x}",
        "'{x}'",
        "\"$(",
        "echo {x} | sh;",
        "<<A\n",
        "`",
        "((",
        "a={x}",
        "{x} ",
        "ssh a ",
        "sh -c 'sh -c ",
        "trap ",
        "f(){ ",
        "[[ {x} -eq ",
    ] {
        let text = piece.repeat(200_000 / piece.len());
        let start = std::time::Instant::now();
        templates_in(&text);
        assert!(start.elapsed().as_secs() < 60, "{piece}");
    }
}
