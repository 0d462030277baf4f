//! Places by their quotes.

use proptest::prelude::*;

use super::super::{VARIABLE, templates_in};
use super::{filled, run, shells, text};

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
    let command = filled("echo {x} \"{x}\" '{x}' {file:x} ${HOME} @{none}", "a");
    let expected = "echo \"${ATOMIC_ARG1}\" \"${ATOMIC_ARG1}\" ''\"${ATOMIC_ARG1}\"'' \
                    \"${ATOMIC_ARG2}\" ${HOME} @{none}";
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
        "echo '\\{x}' 'a\\\\{x}' # \\{x}",
        "cat <<'EOF'\n\\{x}\nEOF",
        "echo $(curl -w '%{''x}' a) \"$(git rev-parse @\\{x})\"",
        "echo $$ ${x} $${x} '${x}' `echo ${x}` # ${x}",
        "sh -c 'echo ${x}'; cat <<EOF\n${x}\nEOF",
    ] {
        let command = filled(text, "value");
        assert_eq!((command.text.as_str(), command.env.len()), (text, 0));
        assert_eq!(templates_in(text).len(), 0, "{text}");
    }
}
