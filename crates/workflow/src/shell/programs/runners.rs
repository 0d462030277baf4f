//! Programs that run another one behind a subcommand: `uv run pytest`, `docker exec box ls`.

use super::tables::{UNTIL_DASHES, Wrapper, wrapper};

/// A program with such subcommands.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) names: &'static [&'static str],
    /// Subcommands behind which another subcommand stands: `docker compose run`.
    pub(super) groups: &'static [&'static str],
    /// Subcommands behind which a program stands.
    pub(super) runs: &'static [&'static str],
    /// Subcommands that run or evaluate any of their arguments.
    pub(super) evaluates: &'static [&'static str],
    /// The options before the subcommand.
    pub(super) options: &'static Wrapper,
    /// The arguments between the subcommand and the program.
    pub(super) wrapper: &'static Wrapper,
}

/// How the word before the next one ended, in front of the subcommand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    /// The next word is an option or the subcommand.
    Plain,
    /// The next word is the value of an option.
    Value,
    /// The next word may be the value of an option that is not in the tables.
    Unknown,
}

static NO_OPTIONS: Wrapper = wrapper(&[], ["qv", ""], &["quiet", "verbose", "silent"], 0);

static PACKAGE: Wrapper = wrapper(&[], ["Aqvs", ""], &["allow-all", "quiet", "silent"], 0);

static BEHIND_DASHES: Wrapper = wrapper(&[], ["", ""], &[], UNTIL_DASHES);

/// A folder, an image or an environment stands before the program.
static WITH_OPERAND: Wrapper = wrapper(&[], ["", ""], &[], 1);

/// Options of `uv` and `uv run`, as of uv 0.8. `-m` says that a module follows, which is a program.
static UV: Wrapper = wrapper(
    &[],
    ["qvnmsU", "pwfiPC"],
    &[
        "active",
        "all-extras",
        "all-groups",
        "all-packages",
        "cache-dir=",
        "color=",
        "config-file=",
        "default-index=",
        "dev",
        "directory=",
        "env-file=",
        "exact",
        "extra=",
        "extra-index-url=",
        "find-links=",
        "frozen",
        "group=",
        "index=",
        "index-url=",
        "isolated",
        "locked",
        "managed-python",
        "module",
        "native-tls",
        "no-cache",
        "no-config",
        "no-default-groups",
        "no-dev",
        "no-editable",
        "no-env-file",
        "no-extra=",
        "no-group=",
        "no-index",
        "no-managed-python",
        "no-progress",
        "no-project",
        "no-sync",
        "offline",
        "only-dev",
        "only-group=",
        "package=",
        "project=",
        "python=",
        "quiet",
        "refresh",
        "script",
        "upgrade",
        "verbose",
        "with=",
        "with-editable=",
        "with-requirements=",
    ],
    0,
);

/// Options of `deno run`, as of Deno 2; permissions take a value only behind `=`.
static DENO: Wrapper = wrapper(
    &[],
    ["AqrENRWSI", "cL"],
    &[
        "allow-all",
        "allow-env",
        "allow-ffi",
        "allow-import",
        "allow-net",
        "allow-read",
        "allow-run",
        "allow-sys",
        "allow-write",
        "cached-only",
        "cert=",
        "check",
        "config=",
        "env-file",
        "import-map=",
        "location=",
        "lock",
        "log-level=",
        "no-check",
        "no-config",
        "no-lock",
        "no-npm",
        "no-prompt",
        "no-remote",
        "node-modules-dir",
        "quiet",
        "reload",
        "seed=",
        "unstable",
        "watch",
    ],
    0,
);

/// Options of `go run`; `-exec` is left out, because its value is a program.
static GO: Wrapper = wrapper(
    &[GO_RUN],
    ["", ""],
    &[
        "-C=",
        "-a",
        "-asan",
        "-cover",
        "-gcflags=",
        "-ldflags=",
        "-mod=",
        "-modcacherw",
        "-modfile=",
        "-msan",
        "-n",
        "-p=",
        "-race",
        "-tags=",
        "-trimpath",
        "-v",
        "-work",
        "-x",
    ],
    0,
);

/// Mark of the wrapper in which `.` is a folder and not the command of the shell.
pub(super) const GO_RUN: &str = "go run";

/// Options of npm 11 and pnpm 10; `--call`, `--script-shell` and `--node-options` are left out, because
/// their values are run.
static NPM: Wrapper = wrapper(
    &[],
    ["yqsdgr", "wpCF"],
    &[
        "bail",
        "cache=",
        "color",
        "dir=",
        "filter=",
        "global",
        "if-present",
        "ignore-scripts",
        "include-workspace-root",
        "json",
        "loglevel=",
        "no",
        "no-audit",
        "no-bail",
        "no-color",
        "no-fund",
        "no-install",
        "offline",
        "package=",
        "parallel",
        "prefer-offline",
        "prefix=",
        "production",
        "quiet",
        "recursive",
        "registry=",
        "silent",
        "sort",
        "stream",
        "verbose",
        "workspace=",
        "workspace-root",
        "workspaces",
        "yes",
    ],
    0,
);

/// Options before the subcommand of `docker`, `docker compose` and `podman`.
static DOCKER: Wrapper = wrapper(
    &[],
    ["D", "cfHlp"],
    &[
        "all-resources",
        "ansi=",
        "compatibility",
        "config=",
        "context=",
        "debug",
        "dry-run",
        "env-file=",
        "file=",
        "host=",
        "log-level=",
        "parallel=",
        "profile=",
        "progress=",
        "project-directory=",
        "project-name=",
        "tls",
        "tlsverify",
    ],
    0,
);

/// Options before the subcommand of `kubectl`.
static KUBECTL: Wrapper = wrapper(
    &[],
    ["", "nsv"],
    &[
        "as=",
        "cluster=",
        "context=",
        "kubeconfig=",
        "namespace=",
        "request-timeout=",
        "server=",
        "user=",
    ],
    0,
);

static CONDA: Wrapper = wrapper(
    &[],
    ["v", "np"],
    &["name=", "prefix=", "cwd=", "no-capture-output", "live-stream", "verbose"],
    0,
);

/// Options of Docker and Podman that take a value or none, as of Docker 27; `--entrypoint` is left out,
/// because its value is a program.
static CONTAINER: Wrapper = wrapper(
    &[],
    ["ditPTq", "acehlmpuvw"],
    &[
        "add-host=",
        "attach=",
        "build",
        "cap-add=",
        "cap-drop=",
        "cpus=",
        "detach",
        "device=",
        "dns=",
        "env-file=",
        "env=",
        "gpus=",
        "group-add=",
        "hostname=",
        "index=",
        "init",
        "interactive",
        "ipc=",
        "label=",
        "memory=",
        "mount=",
        "name=",
        "net=",
        "network=",
        "no-deps",
        "no-TTY",
        "pid=",
        "platform=",
        "privileged",
        "publish=",
        "pull=",
        "quiet",
        "read-only",
        "restart=",
        "rm",
        "security-opt=",
        "service-ports",
        "shm-size=",
        "tmpfs=",
        "tty",
        "ulimit=",
        "user=",
        "userns=",
        "volume=",
        "volumes-from=",
        "workdir=",
    ],
    1,
);

static POD: Wrapper = wrapper(
    &[],
    ["itq", "cnf"],
    &[
        "container=",
        "namespace=",
        "context=",
        "image=",
        "stdin",
        "tty",
        "quiet",
        "rm",
        "restart=",
        "command",
        "target=",
        "env=",
        "cwd=",
        "user=",
    ],
    1,
)
.permuting();

const fn runner(
    names: &'static [&'static str],
    [groups, runs, evaluates]: [&'static [&'static str]; 3],
    [options, wrapper]: [&'static Wrapper; 2],
) -> Runner {
    Runner { names, groups, runs, evaluates, options, wrapper }
}

/// In `npm run NAME` and `pnpm run NAME` the name is looked up in `package.json` and never parsed by a
/// shell, so these subcommands are not here. `yarn run` and `bun run` also run other programs.
pub(super) static RUNNERS: &[Runner] = &[
    runner(&["uv"], [&["tool"], &["run", "x"], &[]], [&UV, &UV]),
    runner(&["deno"], [&[], &["run", "x", "eval", "serve"], &["task", "repl"]], [&DENO, &DENO]),
    runner(
        &["yarn", "bun"],
        [
            &["workspaces", "foreach"],
            &["run", "exec", "dlx", "x", "create", "init"],
            &["config", "repl"],
        ],
        [&NPM, &PACKAGE],
    ),
    runner(
        &[
            "poetry", "pipx", "hatch", "pdm", "rye", "pipenv", "bundle", "asdf", "pixi", "rbenv",
            "pyenv",
        ],
        [&[], &["run", "exec", "runpip"], &["shell"]],
        [&NO_OPTIONS, &PACKAGE],
    ),
    runner(
        &["npm", "pnpm", "lerna"],
        [
            &[],
            &["exec", "dlx", "x", "create", "init"],
            &["config", "set", "pkg", "set-script", "c"],
        ],
        [&NPM, &NPM],
    ),
    runner(
        &["corepack"],
        [&["yarn", "pnpm", "npm"], &["exec", "dlx", "x", "run"], &[]],
        [&NPM, &NPM],
    ),
    runner(&["go"], [&["tool"], &["run"], &["generate"]], [&GO, &GO]),
    runner(&["cargo"], [&[], &[], &["watch", "script", "make"]], [&NO_OPTIONS, &PACKAGE]),
    runner(&["rails"], [&[], &[], &["runner", "r", "console", "c"]], [&NO_OPTIONS, &PACKAGE]),
    runner(
        &["nix"],
        [&[], &["run"], &["develop", "shell", "eval", "build", "repl"]],
        [&NO_OPTIONS, &PACKAGE],
    ),
    runner(&["conda", "mamba", "micromamba"], [&[], &["run"], &[]], [&NO_OPTIONS, &CONDA]),
    runner(&["direnv"], [&[], &["exec"], &[]], [&NO_OPTIONS, &WITH_OPERAND]),
    runner(
        &["apptainer", "singularity", "multipass", "limactl", "crictl", "runc", "crun"],
        [&[], &["exec", "run", "shell"], &[]],
        [&NO_OPTIONS, &WITH_OPERAND],
    ),
    runner(&["ip"], [&["netns"], &["exec"], &[]], [&NO_OPTIONS, &WITH_OPERAND]),
    runner(
        &["mise", "op", "doppler", "infisical", "chamber", "aws-vault", "guix"],
        [&[], &["run", "exec", "x", "shell"], &[]],
        [&NO_OPTIONS, &BEHIND_DASHES],
    ),
    runner(
        &["adb"],
        [&[], &[], &["shell", "exec-out"]],
        [&wrapper(&[], ["de", "stHPL"], &[], 0), &PACKAGE],
    ),
    runner(&["vagrant"], [&[], &[], &["ssh", "winrm", "powershell"]], [&NO_OPTIONS, &PACKAGE]),
    runner(
        &["gcloud"],
        [&["compute", "alpha", "beta"], &[], &["ssh", "tpus"]],
        [&wrapper(&[], ["q", ""], &["project=", "zone=", "account=", "quiet"], 0), &PACKAGE],
    ),
    runner(
        &["docker", "podman", "nerdctl", "docker-compose"],
        [&["compose", "container"], &["exec", "run", "create"], &[]],
        [&DOCKER, &CONTAINER],
    ),
    runner(
        &["kubectl", "oc", "lxc", "incus"],
        [&[], &["exec", "run", "debug"], &[]],
        [&KUBECTL, &POD],
    ),
];
