//! The programs that run what they are given.

/// A program that runs another one.
#[derive(Debug)]
pub(super) struct Wrapper {
    pub(super) names: &'static [&'static str],
    /// The letters of options whose value is the next word.
    pub(super) values: &'static str,
    /// The arguments before the name of the program.
    pub(super) operands: u8,
}

/// A program that runs the program text it is given.
#[derive(Debug)]
pub(super) struct Interpreter {
    pub(super) names: &'static [&'static str],
    /// The letters of options with program text.
    pub(super) code: &'static str,
    /// The letters of other options whose value is the next word.
    pub(super) values: &'static str,
    /// The letter of the option that names a module or a file to run.
    pub(super) file: &'static str,
    /// Meaning of the first plain argument.
    pub(super) first: First,
    pub(super) is_shell: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Script,
    Code,
    Data,
}

const fn wrapper(names: &'static [&'static str], values: &'static str, operands: u8) -> Wrapper {
    Wrapper { names, values, operands }
}

pub(super) static WRAPPERS: [Wrapper; 10] = [
    wrapper(&["command", "builtin", "nohup", "setsid", "busybox", "caffeinate", "npx"], "", 0),
    wrapper(&["env", "doas"], "uC", 0),
    wrapper(&["exec"], "a", 0),
    wrapper(&["sudo"], "ugpCrtTUhR", 0),
    wrapper(&["nice", "ionice"], "ncp", 0),
    wrapper(&["time", "stdbuf"], "fioe", 0),
    wrapper(&["timeout"], "ks", 1),
    wrapper(&["flock", "chroot", "taskset"], "wE", 1),
    wrapper(&["sshpass"], "pfd", 0),
    wrapper(&[XARGS], "IELnPsda", 0),
];

pub(super) const XARGS: &str = "xargs";

const fn interpreter(
    names: &'static [&'static str],
    [code, values, file]: [&'static str; 3],
    first: First,
) -> Interpreter {
    Interpreter { names, code, values, file, first, is_shell: false }
}

const SHELL_RULE: Interpreter = Interpreter {
    names: &["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "fish", "csh", "tcsh"],
    code: "c",
    values: "oO",
    file: "",
    first: First::Script,
    is_shell: true,
};

static SHELL: Interpreter = SHELL_RULE;

/// A program whose name is known only when the command runs.
pub(super) static UNKNOWN_PROGRAM: Interpreter = Interpreter { first: First::Data, ..SHELL_RULE };

static INTERPRETERS: [Interpreter; 11] = [
    interpreter(&["python", "pypy"], ["c", "WX", "m"], First::Script),
    interpreter(&["perl"], ["eE", "I", ""], First::Script),
    interpreter(&["ruby"], ["e", "rI", ""], First::Script),
    interpreter(&["node", "nodejs", "bun"], ["ep", "r", ""], First::Script),
    interpreter(&["php"], ["rBRE", "dcz", "f"], First::Script),
    interpreter(&["lua", "luajit", "osascript", "Rscript"], ["e", "l", ""], First::Script),
    interpreter(&["awk", "gawk", "mawk", "nawk"], ["e", "vF", "f"], First::Code),
    interpreter(&["sed", "gsed"], ["e", "l", "f"], First::Code),
    interpreter(&["rsync"], ["e", "", ""], First::Data),
    interpreter(&["vim", "vi", "nvim", "ex"], ["c", "", ""], First::Data),
    interpreter(&["psql", "mysql", "mariadb", "expect", "script"], ["ce", "", ""], First::Data),
];

/// Variables whose value is run as a command, or that decide what the names of programs mean.
pub(super) const DECIDING: [&str; 27] = [
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "PS4",
    "PROMPT_COMMAND",
    "SHELL",
    "SHELLOPTS",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "BROWSER",
    "LESSOPEN",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "GIT_EXTERNAL_DIFF",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "NODE_OPTIONS",
    "PERL5OPT",
    "RUBYOPT",
];

/// Words after which a command begins.
pub(super) const KEYWORDS: [&str; 14] = [
    "if", "then", "elif", "else", "fi", "do", "done", "while", "until", "esac", "!", "{", "}", "in",
];

/// The interpreter of this name; `python3.12` is `python`.
pub(super) fn rule_for(name: &str) -> Option<&'static Interpreter> {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    std::iter::once(&SHELL)
        .chain(&INTERPRETERS)
        .find(|rule| rule.names.contains(&name) || rule.names.contains(&plain))
}
