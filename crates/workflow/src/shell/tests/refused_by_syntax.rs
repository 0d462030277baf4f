//! Places where the shell itself would parse a value, or evaluate it.

use serde_json::json;

use super::super::render_shell;
use super::{assert_refused, state};

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
fn a_template_is_refused_where_the_shell_would_parse_its_value() {
    assert_refused(REFUSED);
}

/// `${s:0:$value}` is evaluated by bash, so the hint must not lead there.
#[test]
fn the_hint_for_an_expansion_leads_out_of_it() {
    let error = render_shell("echo ${s:0:{x}}", &state(json!({"x": "1"}))).unwrap_err();
    assert!(error.to_string().contains("outside of ${…}"), "{error}");
}
