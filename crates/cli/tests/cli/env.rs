//! A place of its own for each test: home, project, script, and nothing of the machine's settings.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Deadline of one run, so that only a hang reaches it: Ralph on a real agent program takes two
/// minutes, and took over twelve on two cores with a load average of 30.
const LONGEST_RUN: Duration = Duration::from_secs(1500);

/// A home and a project that nobody else sees.
pub(crate) struct TestEnv {
    root: TempDir,
}

/// What a finished `atomic` left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Path of the `atomic` under test: the one that `ATOMIC_TEST_BINARY` names, as
/// `cargo xtask test --against` does, or else the one built together with the tests.
pub(crate) fn program() -> PathBuf {
    let built = || env!("CARGO_BIN_EXE_atomic").into();
    std::env::var_os("ATOMIC_TEST_BINARY").map_or_else(built, PathBuf::from)
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().unwrap();
        fs::create_dir(root.path().join("home")).unwrap();
        fs::create_dir(root.path().join("work")).unwrap();
        Self { root }
    }

    /// The folder of the project.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// A file outside the project.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes the agent's script.
    pub(crate) fn script(&self, toml: &str) -> PathBuf {
        let path = self.outside("script.toml");
        fs::write(&path, toml).unwrap();
        path
    }

    /// `atomic` in the project, with a clean environment. `LEDGER` names a file outside it to
    /// which scripts and checks can add lines.
    pub(crate) fn atomic<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(program());
        command.args(args).current_dir(self.work()).env_clear().stdin(Stdio::null());
        for name in ["PATH", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        // rustup finds its toolchains by HOME unless it is told.
        if let Some(home) = std::env::var_os("HOME") {
            for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
                if std::env::var_os(name).is_none() {
                    command.env(name, Path::new(&home).join(folder));
                }
            }
        }
        command.env("HOME", self.outside("home")).env("LEDGER", self.outside("ledger"));
        command
    }

    /// Runs `atomic` to its end.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        ran(self.atomic(args))
    }

    /// Runs Ralph on a script.
    pub(crate) fn ralph(&self, toml: &str, more: &[&str]) -> Ran {
        ran(self.ralph_command(toml, more))
    }

    /// `atomic run ralph` on a script.
    pub(crate) fn ralph_command(&self, toml: &str, more: &[&str]) -> Command {
        let script = self.script(toml);
        let mut command = self.atomic(["run", "ralph", "Build it", "--backend", "script"]);
        command.arg("--script").arg(script).args(more);
        command
    }

    /// The folder of the only session.
    pub(crate) fn session(&self) -> PathBuf {
        let folders = [".ralph/sessions", ".atomic/sessions"].map(|name| self.work().join(name));
        let [ralphs, others] = folders;
        let folder = if ralphs.exists() { ralphs } else { others };
        let mut found: Vec<_> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect();
        assert_eq!(found.len(), 1, "exactly one session in {}", folder.display());
        found.remove(0)
    }

    /// The journal of the only session, as far as it is written.
    pub(crate) fn journal(&self) -> String {
        let sessions = fs::read_dir(self.work().join(".atomic/sessions"));
        let mut journals = sessions.into_iter().flatten().flatten();
        let found =
            journals.find_map(|it| fs::read_to_string(it.path().join("journal.jsonl")).ok());
        found.unwrap_or_default()
    }

    /// The facts of the only session.
    pub(crate) fn facts(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.session().join("journal.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The task list of the only session as `id status` lines.
    pub(crate) fn tasks(&self) -> Vec<String> {
        let text = fs::read_to_string(self.session().join("tasks.json")).unwrap();
        let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
        let field = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
        rows.iter().map(|row| format!("{} {}", field(row, "id"), field(row, "status"))).collect()
    }

    /// What `session.json` says.
    pub(crate) fn summary(&self) -> Value {
        let text = fs::read_to_string(self.session().join("session.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// The lines scripts and checks have added to the ledger.
    pub(crate) fn ledger(&self) -> Vec<String> {
        let text = fs::read_to_string(self.outside("ledger")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Runs a command to its end, which must come.
pub(crate) fn ran(mut command: Command) -> Ran {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = all_of(child.stdout.take().unwrap());
    let stderr = all_of(child.stderr.take().unwrap());
    let deadline = Instant::now() + LONGEST_RUN;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
            panic!("{command:?} has not ended in {LONGEST_RUN:?}\n{stdout}\n{stderr}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let code = child.wait().unwrap().code();
    Ran { code, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

/// Reads while others go on.
fn all_of(mut source: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = vec![];
        source.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Looks again and again until something is so.
pub(crate) fn eventually(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
