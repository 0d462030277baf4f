//! The real LangGraph, as something to compare with.
//!
//! It lives in a virtual environment in the cache folder, made once for a set of pinned packages
//! and a version of Python. Whoever cannot have it is told why; nothing is skipped.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, thread};

const PACKAGES: &str = include_str!("langgraph.txt");

/// Runs a script in a Python that has LangGraph, and returns what it printed.
pub fn run(script: &str, arguments: &[String], input: &str) -> Result<String, String> {
    let mut python = Command::new(python()?);
    // Isolated: what the user has installed or set for Python must not change the outcome.
    python.args(["-I", "-c", script]).args(arguments);
    // A user of LangGraph may have told it to report every run to a server.
    for variable in ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"] {
        python.env(variable, "false");
    }
    output(&mut python, "the script in LangGraph", input)
}

/// The Python of the virtual environment, which is made first where it is missing.
fn python() -> Result<PathBuf, String> {
    let cache = std::path::absolute(cache()).map_err(|e| format!("no place for a cache: {e}"))?;
    fs::create_dir_all(&cache).map_err(|e| format!("cannot create {}: {e}", cache.display()))?;
    let installed = cache.join(format!("langgraph-{:016x}", key()?));
    let python = installed.join("bin/python");
    // Held until we return, so that two runs do not install over each other.
    let lock = File::create(cache.join("langgraph.lock"))
        .and_then(|file| file.lock().map(|()| file))
        .map_err(|e| format!("cannot lock {}: {e}", cache.display()))?;
    if !python.exists() {
        install(&cache.join("langgraph-staging"), &installed)?;
    }
    drop(lock);
    Ok(python)
}

/// Stands for the packages and the Python they were installed for.
fn key() -> Result<u64, String> {
    let version = output(Command::new("python3").arg("--version"), "python3", "").map_err(|e| {
        format!("LangGraph needs a `python3` (3.10 or newer) in the PATH; install one. {e}")
    })?;
    let mut hasher = DefaultHasher::new();
    (PACKAGES, version.trim()).hash(&mut hasher);
    Ok(hasher.finish())
}

/// The folder in which things to compare with are kept; `xtask` keeps its tools there as well.
pub fn cache() -> PathBuf {
    let folder =
        |variable: &str| env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from);
    folder("ATOMIC_TOOLS")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("atomic-tools")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/atomic-tools")))
        .unwrap_or_else(|| env::temp_dir().join("atomic-tools"))
}

/// Installs into a folder of its own and renames it, so that what is there is whole. The programs
/// of the environment remember the old name, but its Python, all we use, goes by its own place.
fn install(staging: &Path, installed: &Path) -> Result<(), String> {
    let failed = |e| format!("cannot put {} in place: {e}", installed.display());
    for left_over in [staging, installed] {
        if left_over.exists() {
            fs::remove_dir_all(left_over).map_err(failed)?;
        }
    }
    output(Command::new("python3").args(["-m", "venv"]).arg(staging), "python3 -m venv", "")
        .map_err(|e| {
            format!("LangGraph needs a virtual environment; on Debian: `python3-venv`. {e}")
        })?;
    let packages = staging.join("packages.txt");
    fs::write(&packages, PACKAGES).map_err(failed)?;
    let pip = |arguments: &[&str]| {
        let mut pip = Command::new(staging.join("bin/python"));
        pip.args(["-m", "pip", "--disable-pip-version-check"]).args(arguments);
        pip
    };
    let mut all = pip(&["install", "--quiet", "--no-deps", "--requirement"]);
    output(all.arg(&packages), "pip install", "").map_err(|e| {
        format!("LangGraph could not be installed; the first time needs the network. {e}")
    })?;
    output(&mut pip(&["check"]), "pip check", "")
        .map_err(|e| format!("the packages pinned for LangGraph do not fit this Python. {e}"))?;
    fs::rename(staging, installed).map_err(failed)
}

/// What a program printed; the error has what it printed instead.
fn output(command: &mut Command, name: &str, input: &str) -> Result<String, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("cannot start {name}: {e}"))?;
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        // Beside the reading, because a full pipe would keep both sides waiting. One that ends
        // before it has read everything says why by itself.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        child.wait_with_output()
    });
    let output = output.map_err(|e| format!("cannot wait for {name}: {e}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(printed);
    }
    let problem = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} ended with {}:\n{printed}{problem}", output.status))
}
