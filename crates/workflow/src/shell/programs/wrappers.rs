//! Programs that run another program with the arguments they are given.

use super::tables::{Wrapper, wrapper};

pub(super) const XARGS: &str = "xargs";

pub(super) static WRAPPERS: &[Wrapper] = &[
    wrapper(&["command"], ["p", ""], &[], 0),
    wrapper(
        &[
            "builtin",
            "nohup",
            "busybox",
            "toybox",
            "dbus-run-session",
            "fakeroot",
            "eatmydata",
            "unbuffer",
            "cross-env",
            "linux32",
            "linux64",
            "catchsegv",
        ],
        ["", ""],
        &[],
        0,
    ),
    wrapper(&["prlimit", "setpriv", "pkexec", "proot", "bwrap", "firejail"], ["", ""], &[], 0),
    wrapper(&["ssh-agent"], ["csDd", "aEtPO"], &[], 0),
    wrapper(&["xvfb-run"], ["a", "efnsp"], &["auto-servernum", "server-args=", "server-num="], 0),
    wrapper(&["valgrind", "rlwrap", "numactl"], ["qv", ""], &["quiet", "verbose"], 0),
    wrapper(&["gosu", "su-exec", "faketime", "chrt", "setarch"], ["", ""], &[], 1),
    wrapper(&["setsid"], ["cfw", ""], &["ctty", "fork", "wait"], 0),
    wrapper(&["caffeinate"], ["disu", "t"], &[], 0),
    wrapper(
        &["npx", "bunx", "uvx", "pnpx"],
        ["yq", "p"],
        &["yes", "no", "no-install", "quiet", "package=", "bun", "from=", "with=", "python="],
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
