//! Variables that decide what a command runs.
//!
//! Every program has its own, so names are judged by a table and by the endings that programs share
//! (`…FLAGS`, `…_EDITOR`). Names in lower case are accepted, except for those of npm: they belong to
//! the author of the command.

/// Whether a variable of this name is run, or decides which program or library is loaded.
pub(super) fn decides(name: &str) -> bool {
    let is_upper = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    if !is_upper {
        return name.to_ascii_lowercase().starts_with("npm_config_");
    }
    let ends = |ending: &&str| {
        let rest = name.strip_suffix(*ending);
        // `OUT_PATH` is a name that authors choose; `CLASSPATH` is not.
        rest.is_some_and(|rest| *ending != "PATH" || !rest.ends_with('_'))
    };
    DECIDING.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || SUFFIXES.iter().any(ends)
}

/// Whether bash evaluates what is assigned to a variable of this name as arithmetic.
pub(super) fn is_evaluated(name: &str) -> bool {
    ["RANDOM", "OPTIND", "SECONDS", "LINENO", "HISTCMD"].contains(&name)
}

const PREFIXES: &[&str] = &[
    "LD_",
    "DYLD_",
    "BASH_",
    "GIT_CONFIG",
    "GIT_SSH",
    "NPM_CONFIG_",
    "CARGO_TARGET_",
    "CARGO_BUILD_",
    "CARGO_ALIAS_",
    "MAKE",
    "PYTHON",
    "PERL5",
];

const SUFFIXES: &[&str] = &[
    "FLAGS",
    "OPTIONS",
    "OPTS",
    "_OPT",
    "_RSH",
    "EDITOR",
    "PAGER",
    "_COMMAND",
    "_CMD",
    "_SHELL",
    "_ASKPASS",
    "_WRAPPER",
    "_LINKER",
    "_RUNNER",
    "_EXEC",
    "_HELPER",
    "_HOOK",
    "_PRELOAD",
    "_STARTUP",
    "_INIT",
    "BROWSER",
    "HOME",
    "PATH",
    "LAUNCHER",
    "_CONFIG_FILE",
];

const DECIDING: &[&str] = &[
    "IFS",
    "ENV",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PROMPT_COMMAND",
    "SHELL",
    "VISUAL",
    "FCEDIT",
    "ZDOTDIR",
    "INPUTRC",
    "MYVIMRC",
    "SCREENRC",
    "WGETRC",
    "SUDO_ASKPASS",
    "LESSOPEN",
    "LESSCLOSE",
    "LESS",
    "GIT_EXTERNAL_DIFF",
    "GIT_TEMPLATE_DIR",
    "GIT_EXEC_PATH",
    "GIT_PROXY_COMMAND",
    "GCONV_PATH",
    "RUBYOPT",
    "RUBYLIB",
    "GEM_PATH",
    "BUNDLE_GEMFILE",
    "NODE_PATH",
    "LUA_INIT",
    "LUA_PATH",
    "LUA_CPATH",
    "PHP_INI_SCAN_DIR",
    "R_PROFILE",
    "R_PROFILE_USER",
    "R_ENVIRON",
    "R_LIBS",
    "JULIA_LOAD_PATH",
    "JULIA_DEPOT_PATH",
    "CC",
    "CXX",
    "CPP",
    "LD",
    "AR",
    "AS",
    "FC",
    "RUSTC",
    "RUSTDOC",
    "CARGO",
    "GOROOT",
    "GOTOOLDIR",
    "GOTOOLCHAIN",
    "CMAKE_PREFIX_PATH",
    "CMAKE_TOOLCHAIN_FILE",
    "PKG_CONFIG",
    "PKG_CONFIG_PATH",
    "LIBRARY_PATH",
    "COMPILER_PATH",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "KUBECONFIG",
    "EMACSLOADPATH",
    "VIMINIT",
    "EXINIT",
    "VIMRUNTIME",
    "TEXINPUTS",
    "XDG_CONFIG_DIRS",
];
