//! Commands that would run a value: each attack works without the refusal, and is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::super::scan::templates;
use super::super::templates_in;
use super::{filled, shells};

/// A folder with the script `evil`, which leaves the file `RAN` behind.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("atomic-shell-{name}-{}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        folder.reset();
        folder
    }

    /// Writes the files again that a command may have changed.
    fn reset(&self) {
        fs::write(self.0.join("evil"), "#!/bin/sh\n: >RAN\n").unwrap();
        fs::set_permissions(self.0.join("evil"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(self.0.join("f"), "a\n").unwrap();
        fs::write(self.0.join("q.c"), "int q;\n").unwrap();
    }

    /// Runs a command, and returns whether it has run `evil`.
    fn runs_evil(&self, shell: &[&str], text: &str, env: &[(String, String)]) -> bool {
        let _ = fs::remove_file(self.0.join("RAN"));
        // A command that does not end is stopped after 10 seconds of CPU time.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -t 10; exec \"$@\"", "sh"]).args(shell);
        command.args(["-c", text, "sh", "argument"]).current_dir(&self.0);
        command.env("HOME", &self.0).envs(env.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().unwrap();
        self.0.join("RAN").exists()
    }

    /// Fills every template with the value, also where that is refused.
    fn forced(&self, template: &str, value: &str) -> (String, Vec<(String, String)>) {
        let mut text = template.to_owned();
        for found in templates(template).into_iter().rev() {
            let variable = if found.written.is_file { "\"$FILE\"" } else { "\"$VALUE\"" };
            let quoted = template[..found.range.start].ends_with('"');
            let variable = if quoted { variable.trim_matches('"') } else { variable };
            text.replace_range(found.range, variable);
        }
        let file = self.path("value");
        fs::write(&file, value).unwrap();
        let file = file.to_string_lossy().into_owned();
        (text, vec![("VALUE".to_owned(), value.to_owned()), ("FILE".to_owned(), file)])
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.0).join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Commands with a value that they run, in dash, in bash or in both.
const SHELL_ATTACKS: &[(&str, &str)] = &[
    ("command . {file:x}", "./evil"),
    ("builtin . {file:x}", "./evil"),
    ("time . {file:x}", "./evil"),
    ("for a do eval {x}; done", "./evil"),
    ("for a do {x}; done", "./evil"),
    ("for ((;;)) do eval {x}; break; done", "./evil"),
    ("for PATH in {x}; do evil; done", "."),
    ("printf -v PATH %s {x}; evil", "."),
    ("read -r PATH <{file:x}; evil", ".\n"),
    ("PATH={x}; evil", "."),
    ("echo {x} | bash --debugger", "./evil"),
    ("echo {x} | bash -o", "./evil"),
    ("(sh) <{file:x}", "./evil"),
    ("{ sh; } <{file:x}", "./evil"),
    ("exec <{file:x}; sh", "./evil"),
    ("exec 3<{file:x}; sh <&3", "./evil"),
    ("while :; do sh; break; done <{file:x}", "./evil"),
    ("case a in a) sh;; esac <{file:x}", "./evil"),
    ("f() { sh; }; f <{file:x}", "./evil"),
    ("f() { sh; }; echo {x} | f", "./evil"),
    ("((sh); true) <{file:x}", "./evil"),
    ("echo {x} | ((sh))", "./evil"),
    ("echo {x} | echo $((sh); true)", "./evil"),
    ("{ echo {x}; } > >(sh); wait $!", "./evil"),
    ("exec > >(sh); echo {x}; exec >&-; wait $!", "./evil"),
    ("trap sh EXIT; exec <{file:x}", "./evil"),
    ("echo {x} | sh -c 'true; sh'", "./evil"),
    ("declare -i n; n={x}", "a[$(./evil)]"),
    ("declare -n r={x}; : $r", "a[$(./evil)]"),
    ("echo {x} | { declare -i n; read n; }", "a[$(./evil)]"),
    ("alias e=eval\ne {x}", "./evil"),
    ("[[ {x} -eq 1 ]]", "a[$(./evil)]"),
    ("[[ -v {x} ]]", "a[$(./evil)]"),
    ("[[ a = b || {x} = b ]]", "./evil"),
    ("[ {x} 'a[$(./evil)]' ]; o={x}; [ \"$o\" {x} ]", "-v"),
    ("printf -v a {x} b", "-vb[$(./evil)]"),
    ("hash -p {x} ls; ls", "./evil"),
    ("jobs -x {x}", "./evil"),
    ("\"$(command -v bash)\" {file:x}", "./evil"),
    ("TOOL=bash; $TOOL -c {x}", "./evil"),
    ("FLAGS=-e; sh $FLAGS {file:x}", "./evil"),
    ("/bin/ba?h {file:x}", "./evil"),
];

/// Attacks on programs of this machine, with the program that has to be installed.
const PROGRAM_ATTACKS: &[(&str, &str, &str)] = &[
    ("perl", "perl -pe 's/a/b/' {x}", "./evil|"),
    ("perl", "perl -lne print -- {x}", "./evil|"),
    ("perl", "echo {x} | xargs perl -ne print", "./evil|"),
    ("xargs", "echo {x} | xargs find", ". -maxdepth 0 -exec ./evil ;"),
    ("git", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.z GIT_CONFIG_VALUE_0={x} git z", "!./evil"),
];

fn assert_works_and_is_refused(folder: &Folder, template: &str, value: &str) {
    let (text, env) = folder.forced(template, value);
    let works = shells().any(|shell| folder.runs_evil(shell, &text, &env));
    assert!(works, "{text} does not run {value}");
    let refused = templates_in(template).iter().any(|used| used.refusal.is_some());
    assert!(refused, "{template} is accepted");
}

#[test]
fn attacks_on_the_shell_work_and_are_refused() {
    let folder = Folder::new("attacks");
    for (template, value) in SHELL_ATTACKS {
        assert_works_and_is_refused(&folder, template, value);
    }
}

#[test]
fn attacks_on_programs_work_and_are_refused() {
    let folder = Folder::new("programs");
    for (program, template, value) in PROGRAM_ATTACKS {
        let mut installed = Command::new(program);
        installed.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if installed.status().is_ok() {
            assert_works_and_is_refused(&folder, template, value);
        }
    }
}

/// Pieces of commands that read files, run programs and share their input. None uses a variable again: a
/// value that the author runs by way of a variable (`v={x}; $v`) is not the concern of templates. None begins a
/// loop without end or a function, which could call itself.
const PIECES: &[&str] = &[
    "{x}",
    "{x} ",
    "{x} ",
    "{file:x} ",
    "\"{x}\" ",
    " <{x} ",
    "<{file:x} ",
    "v={x} ",
    "v={x}; ",
    "echo {x} ",
    "echo ",
    "cat ",
    "sh ",
    "sh -c ",
    "bash ",
    "eval ",
    ". ",
    "command ",
    "builtin ",
    "exec ",
    "time ",
    "env ",
    "! ",
    "$((",
    "))",
    "((",
    "$(",
    ")",
    "(",
    " )",
    "`",
    "{ ",
    "; } ",
    "; ",
    "; ",
    "\n",
    " | ",
    " | ",
    "&& ",
    "|| ",
    "for a in ",
    "for a ",
    "for PATH in ",
    "; do ",
    "do ",
    "; done ",
    "if read a; then ",
    "if ",
    "; then ",
    "; fi ",
    "case a in a) ",
    ";; esac ",
    "case ",
    " in ",
    "[[ ",
    " ]] ",
    "[ ",
    " ] ",
    "-eq ",
    "-n ",
    "= ",
    "-v ",
    "declare -i n; ",
    "n=",
    "xargs ",
    ">out ",
    "> >(",
    "<(",
    "3",
    "<&3 ",
    "printf %s ",
    "printf -v ",
    "export ",
    "trap ",
    "read ",
    "break",
    "'",
    "\"",
    "\\",
    "PATH=",
    "select a in ",
];

fn pieces() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(PIECES), 1..12)
        .prop_map(|parts| parts.concat())
}

/// Compound commands, around and between two commands. Every one ends: a loop has a `break`, and a function is
/// called only behind its definition in the same braces, so that none calls itself.
const AROUND: &[(&str, &str, &str)] = &[
    ("", "; ", ""),
    ("", " | ", ""),
    ("", " && ", ""),
    ("", "\n", ""),
    ("{ ", "; ", "; }"),
    ("(", "; ", ")"),
    ("{ ", "; ", "; } <{file:x}"),
    ("(", "; ", ") <{file:x}"),
    ("((", "); ", ")"),
    ("echo $(", "; ", ")"),
    ("if ", "; then ", "; fi"),
    ("for a do ", "; ", "; done"),
    ("for a in {x}; do ", "; ", "; done"),
    ("while read a; do ", "; ", "; break; done <{file:x}"),
    ("case {x} in *) ", ";; b) ", ";; esac"),
    ("{ f() { ", "; }; f; ", "; }"),
    ("{ f() { ", "; } <{file:x}; f; ", "; }"),
    ("echo {x} | (", "; ", ")"),
    ("{ ", "; ", "; } > >(sh)"),
    ("for ((;;)) do ", "; ", "; break; done"),
    ("[[ -n {x} ]] && { ", "; ", "; }"),
];

/// Commands that the shells can parse, with values as arguments, inputs and parts of compound commands.
fn commands() -> impl Strategy<Value = String> {
    let before = proptest::sample::select(vec![
        "",
        "",
        "",
        "command ",
        "exec ",
        "time ",
        "! ",
        "V={x} ",
        "<{file:x} ",
    ]);
    let program = proptest::sample::select(vec![
        "echo",
        "cat",
        "sh",
        "bash -s",
        "sh f",
        "eval",
        ".",
        "read a",
        "printf %s",
        "xargs echo",
        "[ -n",
        "env",
        ":",
        "set --",
        "[[ -n a &&",
        "[[ 1 -eq",
        "declare -i n;",
        "n=",
        "exec",
        "sudo",
        "trap",
    ]);
    let behind = proptest::sample::select(vec![
        "",
        "",
        " {x}",
        " \"{x}\"",
        " {file:x}",
        " <{x}",
        " <{file:x}",
        " 3<{file:x}",
        " <&3",
        " ]",
        " ]]",
        " -c {x}",
        " > >(sh)",
        " $(sh)",
        " $((1 + 2))",
    ]);
    let simple = (before, program, behind.clone(), behind)
        .prop_map(|(before, program, first, second)| format!("{before}{program}{first}{second}"));
    simple.prop_recursive(4, 12, 2, |inner| {
        let around = proptest::sample::select(AROUND);
        (around, inner.clone(), inner).prop_map(|((open, middle, close), one, two)| {
            format!("{open}{one}{middle}{two}{close}")
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the command is: where its templates are accepted, no shell runs the value.
    #[test]
    fn an_accepted_value_is_never_run(template in prop_oneof![pieces(), commands()]) {
        let used = templates_in(&template);
        if used.is_empty() || used.iter().any(|used| used.refusal.is_some()) {
            return Ok(());
        }
        let folder = Folder::new("random");
        for value in ["./evil", "a[$(./evil)]"] {
            let mut command = filled(&template, value);
            for (number, (variable, text)) in command.files.iter().enumerate() {
                let file = folder.path(&format!("value{number}"));
                fs::write(&file, text).unwrap();
                command.env.push((variable.clone(), file.to_string_lossy().into_owned()));
            }
            for shell in shells().take(3) {
                folder.reset();
                let runs = folder.runs_evil(shell, &command.text, &command.env);
                prop_assert!(!runs, "{:?}: {:?} runs {}", shell, template, value);
            }
        }
    }
}
