//! Every environment variable of the program that does not set a setting, declared once.

/// An environment variable that is no setting.
#[derive(Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Who has to do with it.
    pub audience: Audience,
    /// What it means, in one line.
    pub meaning: &'static str,
}

/// Who has to do with a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Users set it.
    Users,
    /// The program gives it to the processes it starts.
    Processes,
    /// Tests, benchmarks and CI set it; users have no need for it.
    Tests,
}

/// A variable of tests and CI.
const fn test(name: &'static str, meaning: &'static str) -> Variable {
    Variable { name, audience: Audience::Tests, meaning }
}

/// Every variable that is no setting.
pub static VARIABLES: &[Variable] = &[
    Variable {
        name: "ATOMIC_HOME",
        audience: Audience::Users,
        meaning: "The folder for settings, workflows and the list of sessions of the user, in \
                  place of `~/.atomic`",
    },
    Variable {
        name: "ATOMIC_STEP",
        audience: Audience::Processes,
        meaning: "Marks every process of a step as `<run>/<step>/<attempt>`, so that none is left \
                  behind",
    },
    Variable {
        name: "ATOMIC_ARG",
        audience: Audience::Processes,
        meaning: "Followed by a number: a value of a template in a shell command",
    },
    Variable {
        name: "ATOMIC_GATE",
        audience: Audience::Processes,
        meaning: "The socket at which `opencode` asks `atomic` before it uses a tool",
    },
    test(
        "ATOMIC_FAILPOINT",
        "Dies at the n-th hit of a named place, as `<name>:<n>` (feature `failpoints`)",
    ),
    test(
        "ATOMIC_FAILPOINT_LOG",
        "File to which the name of every place hit is added (feature `failpoints`)",
    ),
    test("ATOMIC_TEST_CLOCK_AHEAD", "Seconds by which the clock is ahead (feature `failpoints`)"),
    test(
        "ATOMIC_TEST_STAND_IN",
        "Script that is played under the name of another backend, as `<backend>=<file>` (feature \
         `failpoints`)",
    ),
    test(
        "ATOMIC_TEST_SYSTEMD_INHIBIT",
        "Program in the place of `systemd-inhibit` (feature `failpoints`)",
    ),
    test("ATOMIC_TEST_DIR", "Folder of a test that runs in a process of its own"),
    test("ATOMIC_TEST_HOLD", "Session that a test holds in a process of its own"),
    test("ATOMIC_TEST_OPENCODE", "The `opencode` that a program stands in front of"),
    test("ATOMIC_TEST_OPENCODE_LINES", "File in which the events of that `opencode` are kept"),
    test(
        "ATOMIC_TEST_OPENCODE_VERSION",
        "The version that is told in place of that of `opencode`, which is not started then",
    ),
    test(
        "ATOMIC_TEST_BINARY",
        "The `atomic` that the process tests start, in place of the one built with them",
    ),
    test(
        "ATOMIC_TEST_SAMPLE",
        "The seed of the tenth of the long tests that is played; without it all of them are",
    ),
    test("ATOMIC_CRASH_SEED", "The seed of a run of the crash tests that is to be repeated"),
    test("ATOMIC_SEED", "The seed of the one random graph to test"),
    test("ATOMIC_SEEDS", "How many random graphs that nobody has tried to test"),
    test(
        "ATOMIC_TOOLS",
        "Folder for tools that the tests install, in place of `~/.cache/atomic-tools`",
    ),
    test("ATOMIC_AGENTS", "Folder of the real agent programs, as `cargo xtask agents` prints it"),
    test(
        "ATOMIC_ACP_CLIENT",
        "Folder of the client that drives `atomic acp`, as `cargo xtask client` prints it",
    ),
    test(
        "ATOMIC_CONFORMANCE",
        "Folder in which the tests of backends note what has passed, for `docs/backends.md`",
    ),
    test("ATOMIC_CI_TARGET", "Folder in which CI keeps what it has built; nothing: none is kept"),
];
