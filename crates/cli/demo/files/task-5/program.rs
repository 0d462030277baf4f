//! The finished program, from the outside.

use std::process::{Command, Output, Stdio};

fn snake(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_snake"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

#[test]
fn autoplay_prints_the_last_frame_and_is_the_same_every_time() {
    let first = snake(&["--autoplay", "200"]);
    assert!(first.status.success());
    let text = String::from_utf8_lossy(&first.stdout);
    assert!(text.contains("@@"), "{text}");
    assert!(text.ends_with(" 200 steps played\n"), "{text}");
    assert_eq!(first.stdout, snake(&["--autoplay", "200"]).stdout);
}

#[test]
fn without_a_terminal_it_says_what_to_do_instead() {
    let output = snake(&[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("try `--autoplay 200` instead"), "{text}");
}

#[test]
fn a_wrong_option_is_a_usage_error() {
    let output = snake(&["--fast"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("Usage: snake"), "{text}");
}
