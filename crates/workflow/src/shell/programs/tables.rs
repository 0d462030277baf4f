//! The programs that run what they are given.

/// A program that runs another one. Behind an option that is not listed, any word may be the
/// program.
#[derive(Debug)]
pub(super) struct Wrapper {
    pub(super) names: &'static [&'static str],
    /// The letters of options without a value.
    flags: &'static str,
    /// The letters of options whose value is the next word, or the rest of this one.
    values: &'static str,
    /// The long options without a value, and with a `=` behind those whose value is the next word.
    long: &'static [&'static str],
    /// The arguments before the name of the program.
    pub(super) operands: u8,
}

impl Wrapper {
    /// Whether the next word is the value of this option; `None` when the option is not known.
    pub(super) fn takes_value(&self, option: &str) -> Option<bool> {
        if let Some(name) = option.strip_prefix("--") {
            let known = self.long.iter().find(|known| {
                known.trim_end_matches('=') == { name.split('=').next().unwrap_or(name) }
            });
            return match known {
                _ if name.is_empty() => Some(false),
                Some(known) => Some(known.ends_with('=') && !name.contains('=')),
                None => None,
            };
        }
        let letters = &option[1..];
        for (at, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                return Some(at + letter.len_utf8() == letters.len());
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(false)
    }

    /// Whether this beginning of a word is an option with the beginning of its value: `--user=`, `-u`.
    pub(super) fn begins_value(&self, text: &str) -> bool {
        if let Some(name) = text.strip_prefix("--") {
            let name = name.split_once('=').map(|(name, _)| format!("{name}="));
            return name.is_some_and(|name| self.long.contains(&name.as_str()));
        }
        let Some(letters) = text.strip_prefix('-') else { return false };
        let is_value = |letter| self.values.contains(letter);
        let flags = letters.split(is_value).next().unwrap_or_default();
        flags.len() < letters.len() && flags.chars().all(|letter| self.flags.contains(letter))
    }
}

/// A program that runs the program text it is given.
#[derive(Debug)]
pub(super) struct Interpreter {
    pub(super) names: &'static [&'static str],
    /// The letters of options with program text.
    pub(super) code: &'static str,
    /// The letter of the option that names a module or a file to run.
    pub(super) file: &'static str,
    /// The letters of options that name something to load before the program.
    pub(super) loads: &'static str,
    /// The letters of other options whose value is the next word, or the rest of this one.
    pub(super) values: &'static str,
    /// The letters of options without a value.
    pub(super) flags: &'static str,
    /// The letters of options whose value can only be the rest of the word.
    pub(super) attached: &'static str,
    /// Its own long options with a command; those of all interpreters are in [`LONG_CODE`].
    pub(super) long: &'static [&'static str],
    /// Whether its first argument is letters of options, also without a dash: `tar xf`.
    pub(super) bundles: bool,
    /// Meaning of the first plain argument.
    pub(super) first: First,
    pub(super) is_shell: bool,
    /// Whether options may also stand behind plain arguments.
    pub(super) permutes: bool,
    /// Whether it runs what it reads when no program text is given, although its first plain
    /// argument is not a script.
    pub(super) reads: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Script,
    Code,
    Data,
}

pub(super) const fn wrapper(
    names: &'static [&'static str],
    [flags, values]: [&'static str; 2],
    long: &'static [&'static str],
    operands: u8,
) -> Wrapper {
    Wrapper { names, flags, values, long, operands }
}

pub(super) static WRAPPERS: [Wrapper; 19] = [
    wrapper(&["command"], ["p", ""], &[], 0),
    wrapper(&["builtin", "nohup", "busybox"], ["", ""], &[], 0),
    wrapper(&["setsid"], ["cfw", ""], &["ctty", "fork", "wait"], 0),
    wrapper(&["caffeinate"], ["disu", "t"], &[], 0),
    wrapper(
        &["npx", "bunx", "uvx", "pnpx"],
        ["yq", "p"],
        &["yes", "no", "no-install", "quiet", "package=", "bun"],
        0,
    ),
    wrapper(
        &["env"],
        ["i0v", "uC"],
        &["ignore-environment", "null", "debug", "unset=", "chdir="],
        0,
    ),
    wrapper(&["doas"], ["ns", "uC"], &[], 0),
    wrapper(&["exec"], ["cl", "a"], &[], 0),
    wrapper(
        &["sudo"],
        ["AbEHiknPSs", "ugpCrtTUhRD"],
        &["preserve-env", "login", "non-interactive", "set-home", "stdin", "user=", "group="],
        0,
    ),
    wrapper(&["nice", "ionice"], ["0123456789t", "ncp"], &["adjustment=", "class=", "idle"], 0),
    wrapper(
        &["time", "stdbuf"],
        ["pvaq", "fioe"],
        &["portability", "verbose", "input=", "output=", "error=", "format="],
        0,
    ),
    wrapper(
        &["timeout"],
        ["vfp", "ks"],
        &["foreground", "preserve-status", "verbose", "signal=", "kill-after="],
        1,
    ),
    wrapper(
        &["flock", "chroot", "taskset"],
        ["sxeunFoav", "wE"],
        &["shared", "exclusive", "nonblock", "nb", "close", "timeout=", "wait=", "verbose"],
        1,
    ),
    wrapper(&["strace", "ltrace"], ["cCdDfFhiknqrtTvVwxyYzZ", "aeEoOpPsSuIbUX"], &[], 0),
    wrapper(&["sshpass"], ["ev", "pfdP"], &[], 0),
    wrapper(
        &[XARGS],
        ["0rtpxoi", "IELnPsda"],
        &[
            "null",
            "no-run-if-empty",
            "verbose",
            "replace",
            "max-args=",
            "max-procs=",
            "max-lines=",
            "max-chars=",
            "delimiter=",
            "arg-file=",
        ],
        0,
    ),
    wrapper(
        &["nsenter", "unshare"],
        ["mupinCUTrafFcZ", "tSGRw"],
        &["target=", "mount", "uts", "ipc", "net", "pid", "user", "fork", "mount-proc", "all"],
        0,
    ),
    wrapper(
        &["systemd-run"],
        ["tPqGdr", "upEMH"],
        &["user", "scope", "wait", "pipe", "pty", "quiet", "collect", "unit=", "property=", "uid="],
        0,
    ),
    // `-s` gives the program to a shell.
    wrapper(&["entr"], ["acdnprxz", ""], &[], 0),
];

/// Variables that bash evaluates as arithmetic when they are set.
pub(super) const EVALUATED_NUMBERS: [&str; 5] =
    ["RANDOM", "OPTIND", "SECONDS", "LINENO", "HISTCMD"];

pub(super) const XARGS: &str = "xargs";

const PLAIN: Interpreter = Interpreter {
    names: &[],
    code: "",
    file: "",
    loads: "",
    values: "",
    flags: "",
    attached: "",
    long: &[],
    bundles: false,
    first: First::Data,
    is_shell: false,
    permutes: false,
    reads: false,
};

/// A program whose plain arguments are data, and whose options are read everywhere.
const fn tool(names: &'static [&'static str], code: &'static str) -> Interpreter {
    Interpreter { names, code, permutes: true, ..PLAIN }
}

/// A program whose first plain argument is a script.
const fn script(
    names: &'static [&'static str],
    [code, file, loads]: [&'static str; 3],
    [values, flags, attached]: [&'static str; 3],
) -> Interpreter {
    let first = First::Script;
    Interpreter { names, code, file, loads, values, flags, attached, first, ..PLAIN }
}

const SHELL_RULE: Interpreter = Interpreter {
    is_shell: true,
    ..script(
        &["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "fish", "csh", "tcsh"],
        ["c", "", ""],
        ["oO", "abefghiklmnprstuvxBCDEHIPTVqX", ""],
    )
};

pub(super) static SHELL: Interpreter = SHELL_RULE;

/// A program whose name is known only when the command runs.
pub(super) static UNKNOWN_PROGRAM: Interpreter = Interpreter { first: First::Data, ..SHELL_RULE };

static INTERPRETERS: [Interpreter; 25] = [
    script(&["python", "pypy"], ["c", "m", "WX"], ["", "bBdEhiIOPqRsStuvVx", ""]),
    script(&["perl"], ["eE", "", "MmI"], ["", "acfnpsStTuUvVwWX", "0CdDFilx"]),
    script(&["ruby"], ["e", "", "rI"], ["CE", "acdhlnpsSUvwy", "0FiKTWx"]),
    script(&["node", "nodejs", "bun", "tsx"], ["ep", "", "r"], ["C", "ichv", ""]),
    script(&["php"], ["rBRE", "f", "cz"], ["d", "aehilmnqvsw", ""]),
    script(&["tclsh", "wish", "ts-node", "groovy", "scala"], ["ep", "", "r"], ["", "hv", ""]),
    script(&["lua", "luajit"], ["e", "", "l"], ["", "ivEW", ""]),
    script(&["osascript", "Rscript", "R", "julia"], ["eE", "f", "LJ"], ["lst", "hiqv", ""]),
    Interpreter {
        first: First::Code,
        ..script(&["awk", "gawk", "mawk", "nawk"], ["e", "fE", "il"], ["vF", "bcCghnMNOPrsStV", ""])
    },
    Interpreter {
        first: First::Code,
        permutes: true,
        ..script(&["sed", "gsed"], ["e", "f", ""], ["l", "nErsuz", "i"])
    },
    tool(&["rsync"], "e"),
    tool(&["vim", "vi", "nvim", "ex"], "cS"),
    Interpreter { file: "f", reads: true, ..tool(&["psql"], "c") },
    Interpreter { reads: true, ..tool(&["mysql", "mariadb"], "e") },
    tool(&["expect", "script"], "c"),
    Interpreter {
        bundles: true,
        long: &["info-script", "new-volume-script", "rsh-command", "rmt-command"],
        ..tool(&["tar", "gtar", "bsdtar"], "IF")
    },
    tool(&["rg"], ""),
    Interpreter { long: &["compress-program"], ..tool(&["sort"], "") },
    Interpreter { long: &["filter"], ..tool(&["split"], "") },
    Interpreter { long: &["exec", "sh-exec"], ..tool(&["nc", "ncat", "netcat"], "ec") },
    Interpreter { long: &["unzip-command"], ..tool(&["zip"], "T") },
    Interpreter { long: &["use-askpass"], ..tool(&["wget"], "e") },
    Interpreter { long: &["pager", "html"], ..tool(&["man"], "PH") },
    Interpreter { long: &["config"], ..tool(&["cargo"], "") },
    tool(&["scp"], "SoFD"),
];

/// Long options with program text or a command.
pub(super) const LONG_CODE: [&str; 14] = [
    "eval",
    "print",
    "command",
    "execute",
    "expression",
    "source",
    "rsh",
    "rsync-path",
    "cmd",
    "init-command",
    "to-command",
    "checkpoint-action",
    "use-compress-program",
    "pre",
];

/// Long options that name something to load before the program.
pub(super) const LONG_LOADS: [&str; 8] = [
    "require",
    "import",
    "loader",
    "experimental-loader",
    "rcfile",
    "init-file",
    "preload",
    "env-file",
];

/// Long options of interpreters with any other value in the next word.
pub(super) const LONG_VALUES: [&str; 4] = ["conditions", "assign", "field-separator", "input-type"];

/// Long options of interpreters without a value.
pub(super) const HARMLESS_LONG: [&str; 28] = [
    "login",
    "norc",
    "noprofile",
    "posix",
    "restricted",
    "verbose",
    "version",
    "help",
    "experimental-strip-types",
    "experimental-transform-types",
    "experimental-vm-modules",
    "no-warnings",
    "enable-source-maps",
    "trace-warnings",
    "trace-uncaught",
    "inspect",
    "inspect-brk",
    "expose-gc",
    "watch",
    "check",
    "quiet",
    "silent",
    "in-place",
    "regexp-extended",
    "null-data",
    "separate",
    "sandbox",
    "vanilla",
];

/// Whether a long option is one of these, or an abbreviation that programs accept.
pub(super) fn is_one_of(options: &[&str], name: &str) -> bool {
    name.len() > 2 && options.iter().any(|option| option.starts_with(name))
}

/// Variables whose value is run as a command, or that decide what the names of programs mean.
pub(super) const DECIDING: [&str; 51] = [
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
    "RUBYLIB",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PERL5LIB",
    "NODE_PATH",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_PROXY_COMMAND",
    "MANPAGER",
    "GH_PAGER",
    "GH_EDITOR",
    "LESSCLOSE",
    "MAKEFLAGS",
    "CC",
    "CXX",
    "RUSTC",
    "RUSTC_WRAPPER",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "HOME",
    "XDG_CONFIG_HOME",
];

/// Programs that run what they read, whatever their arguments are.
pub(super) const RUN_INPUT: [&str; 21] = [
    ".",
    "source",
    "eval",
    "su",
    "runuser",
    "parallel",
    "at",
    "batch",
    "crontab",
    "ssh",
    "slogin",
    "autossh",
    "sqlite3",
    "ex",
    "ed",
    "gdb",
    "gnuplot",
    "dc",
    "sftp",
    "pwsh",
    "powershell",
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
