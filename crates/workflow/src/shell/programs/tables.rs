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
    /// Options that are words behind a single dash have the dash here: `-race` of `go`.
    long: &'static [&'static str],
    /// The arguments before the name of the program, or [`UNTIL_DASHES`].
    pub(super) operands: u8,
    /// Whether options may also stand behind these arguments: `kubectl exec pod -c box -- ls`.
    pub(super) permutes: bool,
}

/// The program stands behind `--`, whatever stands before: `mise exec node@22 -- node`.
pub(super) const UNTIL_DASHES: u8 = u8::MAX;

impl Wrapper {
    /// The same, with options also behind the operands.
    pub(super) const fn permuting(mut self) -> Self {
        self.permutes = true;
        self
    }

    /// Whether the next word is the value of this option; `None` when the option is not known.
    pub(super) fn takes_value(&self, option: &str) -> Option<bool> {
        let (name, value) = option.split_once('=').map_or((option, None), |(n, v)| (n, Some(v)));
        if let Some(known) = self.long_option(name) {
            return Some(known.ends_with('=') && value.is_none());
        }
        if let Some(name) = name.strip_prefix("--") {
            // A value behind `=` is part of the word, whatever the option means.
            return (name.is_empty() || value.is_some()).then_some(false);
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

    /// The entry of an option that is a word: `--user`, or `-race` of `go`.
    fn long_option(&self, option: &str) -> Option<&'static str> {
        let name = option.strip_prefix("--").unwrap_or(option);
        self.long.iter().copied().find(|known| known.trim_end_matches('=') == name)
    }

    /// Whether this beginning of a word is an option with the beginning of its value: `--user=`, `-u`.
    pub(super) fn begins_value(&self, text: &str) -> bool {
        if let Some((name, _)) = text.split_once('=')
            && let Some(known) = self.long_option(name)
        {
            return known.ends_with('=');
        }
        let Some(letters) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
            return false;
        };
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
    /// Its own long options with a command; those of all interpreters are in `LONG_CODE`. Options that
    /// are words behind a single dash have the dash here: `-exec` of `go`.
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
    Wrapper { names, flags, values, long, operands, permutes: false }
}

/// Words after which a command begins.
pub(super) const KEYWORDS: [&str; 14] = [
    "if", "then", "elif", "else", "fi", "do", "done", "while", "until", "esac", "!", "{", "}", "in",
];

/// Programs that run or evaluate any of their arguments.
pub(super) const EVALUATE: &[&str] = &[
    ".",
    "alias",
    "at",
    "batch",
    "bind",
    "compgen",
    "complete",
    "concurrently",
    "crontab",
    "enable",
    "eval",
    "fc",
    "hash",
    "hyperfine",
    "jobs",
    "just",
    "nix-shell",
    "nodemon",
    "parallel",
    "runuser",
    "screen",
    "socat",
    "source",
    "su",
    "task",
    "tmux",
    "trap",
    "watch",
    "watchexec",
    "xterm",
];

/// Programs whose arguments are program text of their own, or whose file names can be commands
/// (`vim +command`, `ed '!command'`).
pub(super) const EDIT: &[&str] = &[
    "dc",
    "duckdb",
    "ed",
    "emacs",
    "emacsclient",
    "ex",
    "gdb",
    "gnuplot",
    "gvim",
    "lldb",
    "m4",
    "nvim",
    "red",
    "rvim",
    "sqlite3",
    "vi",
    "view",
    "vim",
    "vimdiff",
];

/// Programs whose arguments a shell on another machine parses.
pub(super) const REMOTE_SHELLS: &[&str] =
    &["ssh", "slogin", "autossh", "mosh", "rsh", "dbclient", "plink", "pdsh", "pssh", "clush"];

pub(super) const MAKES: &[&str] = &["make", "gmake", "bmake", "pmake", "remake"];

/// Commands whose arguments are names of variables.
pub(super) const NAME_VARIABLES: &[&str] =
    &["read", "unset", "mapfile", "readarray", "getopts", "wait"];

/// Programs that run what they read, whatever their arguments are.
pub(super) const RUN_INPUT: &[&str] = &[
    ".",
    "source",
    "eval",
    "su",
    "runuser",
    "parallel",
    "at",
    "batch",
    "crontab",
    "sftp",
    "pwsh",
    "powershell",
    "jshell",
];

/// Programs that start a shell when no program is named.
pub(super) const START_SHELL: &[&str] =
    &["sudo", "doas", "chroot", "nsenter", "unshare", "fakeroot"];

/// Programs that GNU also installs with a `g` before the name, as Homebrew does.
pub(super) const GNU: &[&str] = &[
    "chroot", "env", "find", "make", "nice", "nohup", "printf", "sed", "sort", "split", "stdbuf",
    "tar", "test", "time", "timeout", "xargs",
];
