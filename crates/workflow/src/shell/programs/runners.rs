//! Programs that run another one behind a subcommand: `uv run pytest`, `docker exec box ls`.

use super::tables::{Wrapper, wrapper};

/// A program with such subcommands.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) names: &'static [&'static str],
    /// Subcommands behind which another subcommand stands: `docker compose run`.
    pub(super) groups: &'static [&'static str],
    /// Subcommands behind which a program stands.
    pub(super) runs: &'static [&'static str],
    /// The arguments between the subcommand and the program.
    pub(super) wrapper: &'static Wrapper,
}

static PACKAGE: Wrapper = wrapper(&[], ["Aqvs", ""], &["allow-all", "quiet", "silent"], 0);

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
);

/// In `npm run NAME` and `pnpm run NAME` the name is looked up in `package.json` and never parsed by a
/// shell, so these subcommands are not here. `yarn run` and `bun run` also run other programs.
pub(super) static RUNNERS: [Runner; 5] = [
    Runner {
        names: &["uv", "poetry", "pipx", "yarn", "deno", "hatch", "pdm", "rye", "mise", "bun"],
        groups: &["tool"],
        runs: &["run", "exec", "dlx", "x", "eval"],
        wrapper: &PACKAGE,
    },
    Runner {
        names: &["npm", "pnpm", "corepack"],
        groups: &[],
        runs: &["exec", "dlx", "x"],
        wrapper: &PACKAGE,
    },
    Runner { names: &["go"], groups: &[], runs: &["run"], wrapper: &PACKAGE },
    Runner {
        names: &["docker", "podman", "nerdctl", "docker-compose"],
        groups: &["compose", "container"],
        runs: &["exec", "run", "create"],
        wrapper: &CONTAINER,
    },
    Runner {
        names: &["kubectl", "oc", "lxc", "incus"],
        groups: &[],
        runs: &["exec", "run", "debug"],
        wrapper: &POD,
    },
];
