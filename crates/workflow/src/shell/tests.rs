//! The rendered commands are run by the shells of this machine.

use std::process::{Command, Stdio};

use atomic_graph::State;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::scan::templates;
use super::{ShellCommand, ShellTemplateError, VARIABLE, render_shell, templates_in};

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

/// Commands that print the value, with what they print around it.
const ACCEPTED: &[(&str, &str, &str)] = &[
    ("printf %s {x}", "", ""),
    ("printf %s \"{x}\"", "", ""),
    ("printf %s '{x}'", "", ""),
    ("printf %s a{x}b", "a", "b"),
    ("printf %s \"a {x} b\"", "a ", " b"),
    ("printf %s 'a {x} b'", "a ", " b"),
    ("printf %s \"it's {x}\"", "it's ", ""),
    ("printf %s 'say \"{x}\"'", "say \"", "\""),
    ("printf %s \\\"{x}\\\"", "\"", "\""),
    ("printf %s \\\\{x}", "\\", ""),
    ("printf %s 'a\\{x}'", "a\\", ""),
    ("printf %s \"a\\\\{x}\"", "a\\", ""),
    ("printf %s \\'\"{x}\"\\'", "'", "'"),
    ("printf %s \\\n  {x}", "", ""),
    ("printf %s --flag={x}", "--flag=", ""),
    ("printf %s ~{x}", "~", ""),
    ("printf %s \"$(printf a)\"{x}`printf b`", "a", "b"),
    ("printf %s \"$(printf '%s' \"a)\")${U-c}\"{x}$((1+2))", "a)c", "3"),
    ("printf %s \"${U+\\\"}{x}\"", "", ""),
    ("U=7; printf %s \"$U{x}\"", "7", ""),
    ("U=7; printf %s $U{x}${U}", "7", "7"),
    ("v={x}; printf %s \"$v\"", "", ""),
    ("v=\"{x}\" w='{x}'; printf %s \"$w\"", "", ""),
    ("export V={x}; printf %s \"$V\"", "", ""),
    ("V='{x}' env sh -c 'printf %s \"$V\"'", "", ""),
    ("env V=\"{x}\" sh -c 'printf %s \"$V\"'", "", ""),
    ("sh -c 'printf %s \"$1\"' sh {x}", "", ""),
    ("set -- {x} b; printf %s \"$1\"", "", ""),
    ("f() { printf %s \"$1\"; }; f \"{x}\"", "", ""),
    ("printf %s {x} | cat", "", ""),
    ("for i in {x}; do printf %s \"$i\"; done", "", ""),
    ("case {x} in '') printf %s {x};; *) printf %s \"{x}\";; esac", "", ""),
    ("if [ -n \"a{x}\" ] && true; then printf %s {x}; fi", "", ""),
    ("if [ {x} = {x} ]; then printf %s {x}; else printf no; fi", "", ""),
    ("{ printf %s {x}; }", "", ""),
    ("(printf %s {x})", "", ""),
    ("! true || printf %s {x}", "", ""),
    (": # it's a comment\nprintf %s {x}", "", ""),
    ("cat <<'EOF' >/dev/null\nit's $(\nEOF\nprintf %s {x}", "", ""),
    ("cat <<-EOF; printf %s {x}\n\ta`true`\n\tEOF\n", "a\n", ""),
    ("printf %s { {x} } >/dev/null; printf %s {x} 2>/dev/null", "", ""),
    ("timeout 60 printf %s {x}", "", ""),
    ("printf %s {x} | xargs -0 printf %s", "", ""),
    ("awk 'BEGIN { printf \"%s\", substr(ARGV[1], 2) }' a{x}", "", ""),
];

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, failure_persistence: None, ..ProptestConfig::default() })]

    /// Many commands in one process of each shell.
    #[test]
    fn every_accepted_place_gives_back_the_text(texts in proptest::collection::vec(text(), 4)) {
        let mut script = String::new();
        let (mut env, mut expected) = (vec![], vec![]);
        let cases = texts.iter().flat_map(|text| ACCEPTED.iter().map(move |case| (text, case)));
        for (number, (text, (template, before, after))) in cases.enumerate() {
            let command = filled(template, text);
            prop_assert!(command.text != *template, "{template} was not filled");
            let own = |name: &str| name.replace(VARIABLE, &format!("C{number}_"));
            script.push_str(&format!("(\n{}\n)\nprintf '\\000'\n", own(&command.text)));
            env.extend(command.env.iter().map(|(name, value)| (own(name), value.clone())));
            expected.push((*template, format!("{before}{text}{after}")));
        }
        for shell in shells() {
            let (_, output) = run(shell, &script, &env);
            let printed: Vec<_> = output.split(|byte| *byte == 0).collect();
            prop_assert_eq!(printed.len(), expected.len() + 1, "{:?}", shell);
            for (printed, (template, expected)) in printed.iter().zip(&expected) {
                let printed = String::from_utf8_lossy(printed);
                prop_assert_eq!(printed, expected.as_str(), "{:?} {}", shell, template);
            }
        }
    }
}

#[test]
fn values_are_passed_in_the_environment() {
    let command = filled("echo {x} \"{x}\" '{x}' {file:x} ${HOME} {none}", "a");
    let expected = "echo \"${ATOMIC_ARG1}\" \"${ATOMIC_ARG1}\" ''\"${ATOMIC_ARG1}\"'' \
                    \"${ATOMIC_ARG2}\" ${HOME} {none}";
    assert_eq!(command.text, expected);
    assert_eq!(command.env, [("ATOMIC_ARG1".to_owned(), "a".to_owned())]);
    assert_eq!(command.files, [("ATOMIC_ARG2".to_owned(), "a".to_owned())]);
    let command = filled("ATOMIC_ARG1=b; echo {x}", "a");
    let other = format!("{VARIABLE}_1");
    assert_eq!(command.text, format!("ATOMIC_ARG1=b; echo \"${{{other}}}\""));
}

#[test]
fn braces_that_are_not_templates_stay() {
    for text in [
        "echo ${x} \\{x} \"\\{x}\" {} {x,y} {0} { x } ${x:-y} HEAD@\\{x}",
        "awk '{print $1}' file",
        "echo $$ ${x} $${x} '${x}' `echo ${x}` # ${x}",
        "sh -c 'echo ${x}'; cat <<EOF\n${x}\nEOF",
    ] {
        let command = filled(text, "value");
        assert_eq!((command.text.as_str(), command.env.len()), (text, 0));
        assert_eq!(templates_in(text).len(), 0, "{text}");
    }
}

const REFUSED: &[(&str, &[&str])] = &[
    (
        "decides which commands are run",
        &[
            "PS4={x}; set -x; true",
            "PATH=\"{x}\" make",
            "env GIT_SSH_COMMAND={x} git fetch",
            "export EDITOR='{x}'",
            "LD_PRELOAD=a:{x} ls",
            "PYTHONPATH={x} a",
            "PERL5LIB={x} a",
            "NODE_PATH={x} a",
            "GIT_CONFIG_GLOBAL={x} a",
            "MANPAGER={x} a",
            "GH_PAGER={x} a",
            "MAKEFLAGS={x} a",
            "CC={x} a",
            "RUSTC_WRAPPER={x} a",
            "HOME={x} a",
        ],
    ),
    (
        "argument of `make`",
        &[
            "make deploy TARGET={x}",
            "make 'A=b {x}'",
            "make {x}",
            "make --eval={x}",
            "make -f {x}",
            "make -C {x}",
        ],
    ),
    ("format", &["printf {x}", "printf \"{x}\\n\" a", "printf -{x} a"]),
    (
        "inside `$(…)`",
        &[
            "echo $(echo {x})",
            "echo \"$(echo {x})\"",
            "echo \"$(echo \"{x}\")\"",
            "echo $(echo '{x}')",
            "echo $( (echo {x}) )",
            "echo $(# it's )\necho {x})",
            "cat <(echo {x})",
            "echo $(\\\necho {x})",
        ],
    ),
    ("inside backticks", &["echo `echo {x}`", "echo \"`echo {x}`\"", "echo `echo \\`echo {x}\\``"]),
    ("inside `${…}`", &["echo ${U:-{x}}", "echo \"${U:-{x}}\"", "echo ${U#'{x}'}"]),
    (
        "in an arithmetic",
        &[
            "echo $(( {x} + 1 ))",
            "echo \"$((1+{x}))\"",
            "(( {x} > 1 ))",
            "let y={x}",
            "[[ {x} -eq 1 ]]",
            "RANDOM={x}",
            "OPTIND={x}",
            "export SECONDS={x}",
            "[[ -n a && 1 -eq {x} ]]",
            "[[ -n a ||\n 1 -eq {x} ]]",
            "[[ a == \"]]\" && 1 -eq {x} ]]",
            "[[ ( a < b ) && 1 -eq {x} ]]",
        ],
    ),
    (
        "in a here-document",
        &[
            "cat <<EOF\n{x}\nEOF",
            "cat <<'EOF'\n{x}\nEOF",
            "cat <<-\"EOF\"\n\t{x}\n\tEOF",
            "cat <<A <<B\na\nA\n{x}\nB",
            "cat <<<{x}",
            "cat <<< \"{x}\"",
        ],
    ),
    ("behind `>&`", &["echo a >& log-{x}", "echo a >&{x}", "echo a 2>& \"{x}\""]),
    ("in a comment", &["echo # {x}", "# {x}\necho", "echo a;#{x}"]),
    ("inside `$'…'`", &["echo $'{x}'"]),
    (
        "behind shell syntax",
        &[
            "echo $'\\'' {x}",
            "echo $(case a in a) echo;; esac) {x}",
            "cat <<$A\n{x}\n$A",
            "echo $\\\n(echo {x})",
            "echo \"${U:-'}\" {x}",
            "echo $(cat <<EOF\n)\nEOF\n) {x}",
            "echo $\"{x}\"",
            "echo $[{x}]",
            "cat <\\\n<EOF\n{x}\nEOF",
            "function f { eval {x}; }",
            "cat <<EOF $(\n{x}\nEOF\n)",
        ],
    ),
    (
        "name of a program",
        &[
            "{x}",
            "{x} --flag",
            "\"{x}\" a",
            "./{x}.sh",
            "A=1 {x}",
            "echo a; {x}",
            "true && {x}",
            "echo a | {x}",
            "( {x} )",
            "{ {x}; }",
            "if {x}; then :; fi",
            "! {x}",
            "echo\n{x}",
            ">f {x}",
            "env {x}",
            "env A=1 {x}",
            "sudo -u root {x}",
            "exec {x}",
            "command {x}",
            "xargs {x}",
            "timeout 5 {x}",
            "nohup {x} &",
            "find . -exec {x} \\;",
            "{x}=1",
            "sh {x}",
            "bash -e {x}",
            "python3 {x}",
            "python3 -m {x}",
            "\"A\"={x}",
            "A[{x}]=1",
            "case a in {x}) ;; esac",
            "env -S {x}",
            "find . -exec true \\; -exec {x} \\;",
            "find . -exec echo {} + -execdir {x} \\;",
            "bunx {x}",
            "uvx {x}",
            "uv run {x}",
            "uv --directory d run {x}",
            "poetry run {x}",
            "pipx run {x}",
            "pnpm dlx {x}",
            "pnpm exec {x}",
            "yarn dlx {x}",
            "npm exec -c {x}",
            "npm exec -- {x}",
            "deno eval {x}",
            "deno run -A {x}",
            "strace -f {x}",
            "strace -o f {x}",
            "git {x}",
            "timeout --signal KILL 5 {x}",
            "env --chdir /d {x}",
            "sudo --user bob {x}",
            "sudo -iu bob {x}",
            "nice --adjustment 5 {x}",
            "flock --timeout 5 lock {x}",
            "xargs -0n 1 {x}",
            "xargs --arg-file f {x}",
            "node --env-file .env {x}",
            "node --unknown a {x}",
            "node -r {x} a.js",
            "node --require={x} a.js",
            "node --import {x} a.js",
            "ruby -r {x} a.rb",
            "perl -M{x} a.pl",
            "python3 -X importtime {x}",
            "env -S \"a {x}\"",
            "npx --call {x}",
        ],
    ),
    (
        "itself run as a shell command",
        &[
            "eval {x}",
            "eval \"{x}\"",
            "eval echo '{x}'",
            "ev\\\nal {x}",
            "\\eval {x}",
            "'eval' {x}",
            "command eval {x}",
            "trap '{x}' EXIT",
            ". {x}",
            "source ./{x}",
            "watch {x}",
            "alias a={x}",
            "su root -c {x}",
            "true; eval {x}",
            "if true; then eval {x}; fi",
            "git -c core.sshCommand={x} fetch",
            "git rebase --exec {x} main",
            "git rebase --exec={x} main",
            "git submodule foreach {x}",
            "git bisect run {x}",
            "compgen -W {x}",
            "runuser -u bob -c {x}",
            "tmux new-session -d {x}",
            "hyperfine {x}",
            "pwsh -c {x}",
            "just {x}",
            "nix-shell --run {x}",
            "git --git-dir .git -c alias.z=\"!{x}\" z",
            "git --work-tree w -c {x} z",
            "git --unknown a {x}",
            "git clone -u {x} a",
            "git clone --upload-pack={x} a",
            "git clone --upload-p={x} a",
            "git fetch --upload-pack {x} a",
            "git push --receive-pack={x} a",
            "git clone -c core.sshCommand={x} a",
            "git clone --template={x} a",
            "git --exec-path={x} status",
            "git difftool --extcmd={x}",
            "git difftool -x {x}",
            "git rebase -ix {x} main",
            "git config core.pager {x}",
            "git config alias.z \"!{x}\"",
            "git config {x} a",
            "git grep -O{x} a",
            "git grep --open-files-in-pager={x} a",
            "A=1 eval {x}",
            ">f eval {x}",
        ],
    ),
    (
        "`ssh`",
        &[
            "ssh host {x}",
            "ssh host \"ls '{x}'\"",
            "ssh {x} ls",
            "sshpass -p a ssh host {x}",
            "timeout 5 ssh h {x}",
        ],
    ),
    (
        "program text of a shell",
        &[
            "sh -c '{x}'",
            "sh -c {x}",
            "bash -c \"{x}\"",
            "bash -lc \"a {x}\"",
            "/bin/sh -ec {x}",
            "env sh -c {x}",
            "xargs sh -c '{x}'",
            "docker exec box sh -c \"{x}\"",
            "sh -e -c 'a' b; sh -c {x}",
            "sh -c -o errexit '{x}'",
            "$SHELL -c {x}",
            "busybox sh -c {x}",
            "find . -exec sh -c '{x}' \\;",
            "bash -eo pipefail -c {x}",
            "zsh -c {x}",
            "sudo -u bob sh -c {x}",
            "sh \\\n-c {x}",
            "bash -co pipefail {x}",
            "bash -{x}",
            "\"sh\" -c {x}",
            "s''h -c {x}",
        ],
    ),
    (
        "an interpreter",
        &[
            "python3 -c '{x}'",
            "python3.12 -c \"{x}\"",
            "perl -ne '{x}' f",
            "perl -e{x}",
            "ruby -e \"{x}\"",
            "node -e {x}",
            "node --eval={x}",
            "node --print {x}",
            "php -r '{x}'",
            "awk '{x}' f",
            "awk -v a=1 \"{x}\" f",
            "sed 's/a/{x}/' f",
            "sed -n -e 's/{x}/b/p' f",
            "sed -i.bak {x} f",
            "docker run img python -c {x}",
            "sed f -e \"s/a/{x}/\"",
            "sed --expression=\"s/a/{x}/\" f",
            "sed --expr=\"s/a/{x}/\" f",
            "vim -es f -c \"{x}\"",
            "script -q out -c \"{x}\"",
            "psql mydb -c \"select {x}\"",
            "psql -Ue -c {x}",
            "mysql -u root db -e \"select {x}\"",
            "rsync -a s d -e \"{x}\"",
            "rsync --rsh={x} a b",
            "rsync --rsync-path {x} a b",
            "awk -f a.awk -e {x}",
            "gawk --source={x}",
            "tar --to-command={x} -xf a",
            "rg --pre {x} a",
            "tsx -e {x}",
            "julia -e {x}",
            "R -e {x}",
            "psql -c {x}",
            "sqlite3 a.db \"select {x}\"",
            "mysql -e {x}",
            "rsync -ae {x} a b",
            "vim -c {x} f",
        ],
    ),
    (
        "whose output is the program text",
        &[
            "echo {x} | sh",
            "printf '%s' \"{x}\" | sudo bash",
            "echo {x} | tee f | sh -s a",
            "(echo {x}) | sh",
            "echo {x} |\n sh",
            "echo {x} |& sh",
            "sh <{x}",
            "<{x} sh",
            "echo {x} | python3",
            "echo {x} | python3 -",
            "echo {x} | xargs -I{} sh -c 'echo {}'",
            "echo {x} | sh /dev/stdin",
            "echo {x} | tee >(sh)",
            "echo {x} | tee >(cat | sudo bash -s)",
            "echo {x} > >(sh)",
            "echo {x} | echo \"$(sh)\"",
            "echo {x} | echo `sh`",
            "echo {x} | a=$(sh)",
            "echo {x} | echo \"${a:-$(sh)}\"",
            "echo {x} | echo $(echo $(echo $(sh)))",
            "echo {x} | echo $($TOOL)",
            "echo {x} | cat <(python3 -)",
            "echo {x} | su",
            "echo {x} | su bob",
            "echo {x} | runuser bob",
            "echo {x} | eval \"$(cat)\"",
            "echo {x} | sqlite3 a.db",
            "echo {x} | xargs env",
            "echo {x} | xargs npx",
            "echo {x} | xargs -n 1 sudo -u bob",
            "echo {x} | xargs sh -c",
            "echo {x} | xargs ssh host",
            "echo {x} | xargs git",
            "echo {x} | xargs -I{} python3 -c \"print({})\"",
            "echo {x} | make -f -",
            "echo {x} | make --file=-",
            "echo {x} | ${SHELL:-sh}",
            "echo {x} | $TOOL -x",
            "echo {x} | ex f",
            "echo {x} | timeout --unknown 5 sh",
            "echo {x} | bash /dev/fd/0",
            "echo {x} | sed -f - f",
            "echo {x} | awk -f /dev/stdin f",
            "echo {x} | psql mydb",
            "echo {x} | psql -f - mydb",
            "echo {x} | mysql -u root db",
            "echo {x} | ssh host",
            "echo {x} | ssh -p 22 -A host",
            "echo {x} | at now",
            "echo {x} | . /dev/stdin",
            "echo {x} | docker exec -i box sh",
        ],
    ),
    (
        "name of a variable",
        &[
            "read {x}",
            "unset {x}",
            "export {x}",
            "declare -i y={x}",
            "[ -v {x} ]",
            "test -v {x}",
            "printf -v {x} a",
            "getopts a {x}",
            "local {x}",
        ],
    ),
];

#[test]
fn a_template_is_refused_wherever_its_value_would_be_parsed() {
    let state = state(json!({"x": "value"}));
    let mut wrong = vec![];
    for (place, commands) in REFUSED {
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

const ARGUMENTS: &[&str] = &[
    "deploy.sh {x}",
    "sh test.sh {x}",
    "sh -e ./a.sh {x}",
    "bash -c 'echo \"$1\"' bash {x}",
    "python3 a.py {x}",
    "python3 -m pytest {x}",
    "python3 -c 'import sys' {x}",
    "awk '{print}' {x}",
    "sed -n 's/a/b/p' {x}",
    "sed -i '' 's/a/b/' {x}",
    "awk -v name={x} 'BEGIN { print name }'",
    "perl -pe 's/a/b/' {x}",
    "git commit -m \"{x}\"",
    "grep -r sh {x}",
    "git commit -c {x}",
    "git -c user.name={x} commit",
    "git log --grep {x} -- {x}",
    "git -C {x} status",
    "rsync -a {x} host:",
    "grep PATH={x} f",
    "printf '%s' {x} | ssh -p 22 host 'cat > f'",
    "echo {x} | docker run -i img cat",
    "echo eval {x}",
    "timeout {x} make",
    "nice -n {x} make",
    "env A={x} make",
    "A={x} make",
    "cat <{x} >{x} 2>>{x}",
    "echo a >&2 {x}",
    "echo a >&2 >{x}",
    "[[ -n a && -n b ]] && echo {x}",
    "find . -name {x} -exec grep -l a '{}' \\;",
    "[ {x} = a ]",
    "test -n \"{x}\"",
    "export A={x} B=\"{x}\"",
    "for a in {x} b; do echo \"$a\"; done",
    "case {x} in a) ;; esac",
    "printf '%s' {x} | ssh host 'cat > f'",
    "echo {x} | grep a",
    "echo {x} | sh script.sh",
    "$TOOL {x}",
    "curl {x}",
    "npx eslint {x}",
    "docker exec box ls {x}",
    "a=$(git rev-parse HEAD); echo \"$a\" {x}",
    "mkdir -p out/{x}",
    "echo {x} | tee >(grep a)",
    "a=$(sh b.sh); echo \"$a\" {x} | cat",
    "grep \"$($TOOL)\" {x}",
    "printf -- {x}",
    "printf 'a{x}'",
    "printf 'a %s' {x}",
    "npm run build -- {x}",
    "npm test -- {x}",
    "uv run pytest {x}",
    "poetry run pytest {x}",
    "deno run a.ts {x}",
    "echo {x} | xargs grep a",
    "echo {x} | xargs -n 1 git add",
    "strace -f -o t ls {x}",
    "pnpm exec eslint {x}",
    "yarn add {x}",
    "uv pip install {x}",
    "git cherry-pick -x {x}",
    "git clean -fdx {x}",
    "git bisect good {x}",
    "git config user.name {x}",
    "git config --global user.email {x}",
    "git --git-dir={x} status",
    "git --no-pager log {x}",
    "git checkout -b {x}",
    "git log --format={x}",
    "git push -u origin {x}",
    "git add {x}",
    "git grep -e {x}",
    "echo {x} | sed -n p -",
    "echo {x} | psql -c 'copy a from stdin'",
    "awk -vname={x} 'BEGIN { print name }'",
    "node --test {x}",
    "command -v {x}",
    "sudo -u bob deploy {x}",
    "timeout --signal=KILL 5 deploy {x}",
    "npx -y eslint {x}",
    "node --no-warnings a.js {x}",
    "perl -i.bak -pe s/a/b/ {x}",
    "xargs -P4 -n 1 grep {x}",
    "psql -h db -f a.sql -v name={x}",
    "rg --hidden -e {x} src",
    "tar -xzf a.tgz -C {x}",
    "sed -E -i.bak s/a/b/ {x}",
    "awk -F, -f a.awk {x}",
    "bash --noprofile --norc a.sh {x}",
];

#[test]
fn a_template_is_accepted_where_its_value_is_only_an_argument() {
    for command in ARGUMENTS {
        for used in templates_in(command) {
            assert_eq!(used.refusal.filter(|refusal| refusal.always), None, "{command:?}");
        }
        filled(command, "value");
    }
}

/// `${s:0:$value}` is evaluated by bash, so the hint must not lead there.
#[test]
fn the_hint_for_an_expansion_leads_out_of_it() {
    let error = render_shell("echo ${s:0:{x}}", &state(json!({"x": "1"}))).unwrap_err();
    assert!(error.to_string().contains("outside of ${…}"), "{error}");
}

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
    ] {
        let text = piece.repeat(200_000 / piece.len());
        let start = std::time::Instant::now();
        templates_in(&text);
        assert!(start.elapsed().as_secs() < 60, "{piece}");
    }
}

/// Pieces of commands, put together at random: quotes, substitutions and what ends them.
fn soup() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "\"a {x} \"",
        "\"$(printf a){x}${U-b}\"",
        "'a {x}'",
        "\"it's {x}\"",
        "`printf b`",
        "${U-c}",
        "{x}",
        "{x}",
        "{x}",
        "'",
        "'",
        "\"",
        "\"",
        "`",
        "$(",
        ")",
        "${U-",
        "}",
        "$((",
        "))",
        "\\",
        "\n",
        " ",
        " printf %s ",
        "; printf %s ",
        "a",
        "$U",
        "$#",
        "#",
        " # ",
        "$'",
        "\\\n",
        "<<E\n",
        "\nE\n",
        "| cat ",
        "=",
        "v=",
        "\\\"",
        "{",
        "$",
    ]);
    proptest::collection::vec(piece, 1..14)
        .prop_map(|parts| format!("printf %s {}", parts.concat()))
}

/// A word that means nothing in any place, and cannot be part of a name before it.
const WORD: &str = ".QZ.";

/// The command that an author would write who knows the value.
fn with_word(template: &str, word: &str) -> String {
    let mut text = template.to_owned();
    for found in templates(template).into_iter().rev().filter(|found| found.key == "x") {
        text.replace_range(found.range, word);
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a command looks like: where every template is accepted, a value behaves like a
    /// plain word that the author wrote at its place.
    #[test]
    fn a_value_is_never_more_than_the_word_it_stands_for(template in soup(), text in text()) {
        let used = templates_in(&template);
        // The number of the process differs.
        if template.replace("\\\n", "").contains("$$") || used.is_empty() || used.iter().any(|used| used.refusal.is_some()) {
            return Ok(());
        }
        for shell in shells().take(2) {
            let plain = run(shell, &with_word(&template, WORD), &[]);
            let word = filled(&template, WORD);
            let (ran, printed) = run(shell, &word.text, &word.env);
            prop_assert_eq!((ran, &printed), (plain.0, &plain.1), "{:?}: {} {}", shell, template, word.text);
            let hostile = filled(&template, &text);
            let (ran, hostile_printed) = run(shell, &hostile.text, &hostile.env);
            let expected = String::from_utf8_lossy(&printed).replace(WORD, &text);
            prop_assert_eq!(ran, plain.0, "{:?}: {} {}", shell, template, word.text);
            prop_assert_eq!(String::from_utf8_lossy(&hostile_printed), expected, "{:?}: {}", shell, template);
        }
    }
}
