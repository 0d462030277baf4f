//! Programs that run program text, and their options.

use super::tables::{First, Interpreter};

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

pub(super) static SHELL: Interpreter = Interpreter {
    is_shell: true,
    long: &["commands"],
    ..script(
        &[
            "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash", "fish", "csh", "tcsh",
            "nu", "yash", "posh", "xonsh", "elvish", "osh", "ysh",
        ],
        ["c", "", ""],
        ["oO", "abefghiklmnprstuvxBCDEHIPTVqX", ""],
    )
};

static INTERPRETERS: &[Interpreter] = &[
    script(
        &["python", "pypy", "ipython", "jython", "micropython"],
        ["c", "m", "WX"],
        ["", "bBdEhiIOPqRsStuvVx", ""],
    ),
    script(&["perl"], ["eE", "", "MmI"], ["", "acfnpsStTuUvVwWX", "0CdDFilx"]),
    script(&["ruby"], ["e", "", "rI"], ["CE", "acdhlnpsSUvwy", "0FiKTWx"]),
    script(&["node", "nodejs", "bun", "tsx"], ["ep", "", "r"], ["C", "ichv", ""]),
    script(&["php"], ["rBRE", "f", "cz"], ["d", "aehilmnqvsw", ""]),
    script(&["tclsh", "wish", "ts-node", "groovy", "scala"], ["ep", "", "r"], ["", "hv", ""]),
    script(
        &["elixir", "iex", "racket", "guile", "clojure", "clj", "bb", "octave", "ghc", "runghc"],
        ["ecE", "f", "rSl"],
        ["", "hv", ""],
    ),
    Interpreter {
        long: &["-eval", "-s", "-run"],
        ..script(&["erl", "swipl", "sbcl"], ["g", "", ""], ["", "", ""])
    },
    Interpreter {
        first: First::Code,
        permutes: true,
        ..script(&["rename", "prename", "file-rename"], ["eE", "", ""], ["", "fnvsd0", ""])
    },
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
    Interpreter { file: "f", reads: true, ..tool(&["psql"], "c") },
    Interpreter { reads: true, ..tool(&["mysql", "mariadb"], "e") },
    Interpreter { reads: true, file: "f", ..tool(&["mongosh", "mongo"], "") },
    Interpreter { reads: true, ..tool(&["script"], "c") },
    script(&["expect"], ["c", "f", ""], ["", "diDNnv", ""]),
    Interpreter { long: &["-exec", "-toolexec", "-vettool", "-overlay"], ..tool(&["go"], "") },
    tool(&["cmake"], "PCE"),
    tool(&["rake"], "eEpfrR"),
    tool(&["ansible"], "a"),
    Interpreter { long: &["config-option", "editor-cmd", "diff-cmd"], ..tool(&["svn"], "") },
    Interpreter { long: &["config"], ..tool(&["hg"], "") },
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
pub(super) const LONG_CODE: &[&str] = &[
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
pub(super) const LONG_LOADS: &[&str] = &[
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
pub(super) const LONG_VALUES: &[&str] = &["conditions", "assign", "field-separator", "input-type"];

/// Long options of interpreters without a value.
pub(super) const HARMLESS_LONG: &[&str] = &[
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
    "trace-deprecation",
    "trace-exit",
    "trace-sigint",
    "trace-sync-io",
    "trace-gc",
    "throw-deprecation",
    "pending-deprecation",
    "preserve-symlinks",
    "abort-on-uncaught-exception",
    "experimental-sqlite",
    "experimental-test-coverage",
    "experimental-json-modules",
    "experimental-wasm-modules",
    "permission",
    "yjit",
    "jit",
    "rjit",
    "debug",
    "disable-gems",
    "enable-frozen-string-literal",
    "disable-frozen-string-literal",
];

/// Modules of Python that run their arguments or their input as program text.
pub(super) const RUN_MODULES: &[&str] = &[
    "timeit", "code", "pdb", "cProfile", "profile", "trace", "runpy", "IPython", "asyncio",
    "doctest",
];

/// Whether a long option is one of these, or an abbreviation that programs accept.
pub(super) fn is_one_of(options: &[&str], name: &str) -> bool {
    name.len() > 2 && options.iter().any(|option| option.starts_with(name))
}

/// The interpreter of this name; `python3.12` is `python`.
pub(super) fn rule_for(name: &str) -> Option<&'static Interpreter> {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    std::iter::once(&SHELL)
        .chain(INTERPRETERS)
        .find(|rule| rule.names.contains(&name) || rule.names.contains(&plain))
}
