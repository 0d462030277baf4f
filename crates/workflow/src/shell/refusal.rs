//! Why a template may not stand where it stands, and what to write instead.

use std::fmt;

/// A place in a shell command where a template is refused.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The place, for a sentence: "inside `$(…)`".
    pub place: &'static str,
    /// Replacement to suggest; `{key}` stands for the template.
    pub hint: &'static str,
    /// Whether `check` refuses the template even when nothing is known to set its key. Program
    /// texts such as `awk '{print}'` have braces of their own.
    pub always: bool,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.place)
    }
}

const FIRST: &str = "put the value into a variable at the beginning of the command, \
                     value={key}; and use \"$value\" here";

const fn refusal(place: &'static str, hint: &'static str) -> Refusal {
    Refusal { place, hint, always: true }
}

pub(super) static SUBSTITUTION: Refusal = refusal("inside `$(…)`", FIRST);
pub(super) static BACKTICKS: Refusal = refusal("inside backticks", FIRST);
pub(super) static PARAMETER: Refusal = refusal(
    "inside `${…}`",
    // Bash evaluates positions and indexes, also those that come from a variable.
    "put the value into a variable at the beginning of the command, value={key}; and use \"$value\" \
     as a word of its own, outside of ${…}",
);
pub(super) static ARITHMETIC: Refusal = refusal(
    "in an arithmetic expression, which the shell evaluates",
    "compute with the value in another program, such as `expr`, or compare it with [ … ]",
);
pub(super) static HERE_DOCUMENT: Refusal = refusal(
    "in a here-document",
    "use a pipe, printf '%s\\n' {key} | command, or a file that Atomic writes: command {file:key}",
);
pub(super) static DESCRIPTOR: Refusal = refusal(
    "behind `>&`, where bash expands the name of the file twice",
    "write >file 2>&1 with the value in the name of the file",
);
pub(super) static COMMENT: Refusal = refusal("in a comment", "remove the template");
pub(super) static ANSI_QUOTES: Refusal =
    refusal("inside `$'…'`, which not every `sh` knows", "use single or double quotes");
pub(super) static UNCLEAR: Refusal =
    refusal("behind shell syntax that Atomic does not follow to its end", FIRST);
pub(super) static PROGRAM: Refusal = refusal(
    "where the name of a program or script stands",
    "write the name of the program, and pass the value as an argument",
);
pub(super) static EXPANSION: Refusal = refusal(
    "behind a variable or a substitution that may be the name of a program",
    "write the name of the program instead of the variable, and put quotes around a variable that is \
     one argument: timeout \"$LIMIT\" deploy {key}",
);
pub(super) static UNKNOWN_OPTION: Refusal = refusal(
    "where the name of a program or script may stand, behind an option that Atomic does not know",
    "write the option and its value as one word, --option=value, or leave out the option",
);
pub(super) static EVALUATED: Refusal = refusal(
    "in an argument that is itself run as a shell command",
    "call the program directly and pass the value as an argument",
);
pub(super) static REMOTE: Refusal = refusal(
    "in an argument of `ssh`, `scp` or `rsync` that the shell on the other machine may parse",
    "send the value as input: printf '%s' {key} | ssh host 'cat > file'",
);
pub(super) static SHELL_CODE: Refusal = refusal(
    "in the program text of a shell (`sh -c`)",
    "pass the value as an argument behind the program text: sh -c '… \"$1\" …' sh {key}",
);
pub(super) static CODE: Refusal = Refusal {
    place: "in the program text of an interpreter (`python -c`, `awk`, `sed`, …)",
    hint: "pass the value as an argument behind the program text, or as a variable of the program \
           (awk -v name={key})",
    always: false,
};
pub(super) static PERL_FILES: Refusal = refusal(
    "where `perl -n` or `perl -p` opens a file, and runs a name such as `command|`",
    "pass the file as the input: perl -ne '…' <{key}",
);
pub(super) static CONDITION: Refusal = refusal(
    "in `[[ … ]]` behind `&&`, `||` or the end of a line, where dash begins a new command",
    "use [ … ] for each test: [ -n {key} ] && [ … ]",
);
pub(super) static INPUT: Refusal = refusal(
    "in a command whose output is the program text of a shell or an interpreter",
    "do not pipe the value into the program; pass it as an argument: sh script.sh {key}",
);
pub(super) static VARIABLE: Refusal = refusal(
    "in a variable that decides which commands are run",
    "pass the value in a variable of another name, in lower case: value={key}",
);
pub(super) static MAKE: Refusal = refusal(
    "in an argument of `make`, which runs text such as `A:=$(shell command)`",
    "pass the value in the environment, name={key} make, and use \"$$name\" in the Makefile; for a \
     target, t={key}; case \"$t\" in build|test) make \"$t\";; esac",
);
pub(super) static FORMAT: Refusal = refusal(
    "where `printf` expects its format or an option",
    "write the format: printf '%s' {key}",
);
pub(super) static NAMES: Refusal = refusal(
    "where the shell expects the name of a variable",
    "write the name of the variable; a value is assigned with name={key}",
);
