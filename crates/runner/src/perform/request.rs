//! What work may ask of the world outside: commands, files of the project, the network, a few
//! variables. Each request is told of as the use of a tool, in short: never with what is in a file,
//! and never with a header.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use atomic_backend::guard::{Guard, Job, Kept};
use atomic_event::ToolUse;
use atomic_files::{FileKind, Permissions, Root, Staged, refusal};
use atomic_graph::State;
use atomic_session::ValueFiles;
use atomic_workflow::{ShellCommand, render_shell};
use serde::Deserialize;
use serde_json::{Value, json};

use super::fetch::{FetchArgs, fetch, without_secrets};
use super::tool::short;

/// How much of each output of a command, of a file and of an answer is kept.
const KEPT: usize = 1024 * 1024;
/// The largest file that is read or written, and the largest answer.
pub(super) const LARGEST: usize = 16 * 1024 * 1024;
/// How many files a pattern may find.
const MOST_FOUND: usize = 10_000;

/// How long a request to the disk that is under way is waited for when its step is over.
const STOPPING: Duration = Duration::from_secs(1);

/// The variables that may be read when nobody says otherwise.
const PLAIN_VARIABLES: [&str; 10] =
    ["HOME", "USER", "LANG", "TERM", "PATH", "CI", "TZ", "SHELL", "PWD", "TMPDIR"];

/// What a step's requests reach.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    pub(super) guard: Guard,
    pub(super) workspace: PathBuf,
    pub(super) marker: String,
    /// Further variables that may be read.
    pub(super) env_allow: Vec<String>,
    /// Where values are written that a command reads from a file.
    pub(super) values: ValueFiles,
}

/// What came of a request, and what to tell of it.
pub(super) struct Answered {
    pub(super) result: Result<Value, Refusal>,
    pub(super) tool: ToolUse,
}

/// Why a request has come to nothing.
pub(super) struct Refusal {
    /// The kind of failure, for programs.
    pub(super) code: &'static str,
    /// A sentence for people.
    pub(super) message: String,
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self { code: "request", message }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ShellArgs {
    command: String,
    cwd: Option<String>,
    #[serde(default)]
    env: std::collections::BTreeMap<String, String>,
    /// Values for the templates of the command; without it braces are only braces.
    values: Option<serde_json::Map<String, Value>>,
    timeout_ms: Option<u64>,
    stdin: Option<String>,
    /// Whether a status other than 0 is an error.
    #[serde(default)]
    check: bool,
}

#[derive(Deserialize)]
struct PathArgs {
    path: String,
}

#[derive(Deserialize)]
struct WriteArgs {
    path: String,
    text: String,
}

#[derive(Deserialize)]
struct GlobArgs {
    pattern: String,
}

#[derive(Deserialize)]
struct EnvArgs {
    name: String,
}

/// Where a path leads.
enum Place {
    There(PathBuf),
    /// To a link that leads nowhere.
    Nowhere,
}

/// Every request there is, read.
enum Asked {
    Shell(ShellArgs),
    ReadFile(PathArgs),
    WriteFile(WriteArgs),
    Exists(PathArgs),
    Glob(GlobArgs),
    Fetch(FetchArgs),
    Env(EnvArgs),
}

impl Asked {
    fn read(name: &str, args: Value) -> Result<Self, String> {
        fn read<T: for<'a> Deserialize<'a>>(name: &str, args: Value) -> Result<T, String> {
            if let Some(problem) = odd_time(&args) {
                return Err(format!("`{name}`: {problem}"));
            }
            serde_json::from_value(args).map_err(|problem| format!("`{name}`: {problem}"))
        }
        Ok(match name {
            "shell" => Self::Shell(read(name, args)?),
            "readFile" => Self::ReadFile(read(name, args)?),
            "writeFile" => Self::WriteFile(read(name, args)?),
            "exists" => Self::Exists(read(name, args)?),
            "glob" => Self::Glob(read(name, args)?),
            "fetch" => Self::Fetch(read(name, args)?),
            "env" => Self::Env(read(name, args)?),
            other => return Err(format!("nothing here is called `{other}`")),
        })
    }

    /// What it is about, in short.
    fn summary(&self) -> String {
        match self {
            Self::Shell(shell) => short(&shell.command),
            Self::ReadFile(file) | Self::Exists(file) => short(&file.path),
            Self::WriteFile(file) => {
                format!("{} ({} bytes)", short(&file.path), file.text.len())
            }
            Self::Glob(glob) => short(&glob.pattern),
            Self::Fetch(fetch) => {
                let method = fetch.method.as_deref().unwrap_or("GET").to_uppercase();
                format!("{method} {}", short(&without_secrets(&fetch.url)))
            }
            Self::Env(env) => short(&env.name),
        }
    }
}

/// What is wrong with the time limit of a request.
fn odd_time(args: &Value) -> Option<String> {
    let limit = args.get("timeoutMs").filter(|limit| !limit.is_null() && !limit.is_u64())?;
    Some(format!("`timeoutMs` must be a whole number of milliseconds from 0 on, not {limit}"))
}

impl Reach {
    /// Carries out a request. Once `cancel` is ready it is given up; when this returns, nothing of
    /// it is left.
    pub(super) async fn carry_out(
        &self,
        name: &str,
        args: Value,
        cancel: impl Future<Output = ()>,
    ) -> Answered {
        let told = |summary: String, ok: bool| ToolUse::new(name, summary, ok);
        let asked = match Asked::read(name, args) {
            Ok(asked) => asked,
            Err(problem) => {
                let tool = told(short(&problem), false);
                return Answered { tool, result: Err(problem.into()) };
            }
        };
        let summary = asked.summary();
        let result = match asked {
            Asked::Shell(shell) => self.shell(shell, cancel).await,
            Asked::Fetch(args) => tokio::select! {
                answer = fetch(args) => answer.map_err(Refusal::from),
                () = cancel => Err("it was stopped".to_owned().into()),
            },
            quick @ (Asked::ReadFile(_)
            | Asked::WriteFile(_)
            | Asked::Exists(_)
            | Asked::Glob(_)
            | Asked::Env(_)) => {
                let reach = self.clone();
                let mut work = tokio::task::spawn_blocking(move || reach.quick(quick));
                let done = tokio::select! {
                    biased;
                    done = &mut work => Some(done),
                    () = cancel => {
                        // What has not begun never will; what has begun is done, as a rule.
                        work.abort();
                        tokio::time::timeout(STOPPING, work).await.ok()
                    }
                };
                // A disk that does not answer keeps its thread, but not the step.
                let stopped = || Err("it was stopped".to_owned());
                let broken = || Err("it broke down inside atomic itself".to_owned());
                let done = match done {
                    None => stopped(),
                    Some(Err(error)) if error.is_cancelled() => stopped(),
                    Some(done) => done.unwrap_or_else(|_| broken()),
                };
                done.map_err(Refusal::from)
            }
        };
        let ok = match &result {
            Ok(value) => value.get("code").is_none_or(|code| *code == 0) || name != "shell",
            Err(_) => false,
        };
        Answered { tool: told(summary, ok), result }
    }

    /// What takes no time worth speaking of.
    fn quick(&self, asked: Asked) -> Result<Value, String> {
        match asked {
            Asked::ReadFile(PathArgs { path }) => self.read_file(&path),
            Asked::WriteFile(WriteArgs { path, text }) => self.write_file(&path, &text),
            Asked::Exists(PathArgs { path }) => {
                // What is outside is nobody's business, whether it is there or not.
                match self.place_of(&path)? {
                    Place::There(place) => Ok(json!(place.exists())),
                    Place::Nowhere => Ok(json!(false)),
                }
            }
            Asked::Glob(GlobArgs { pattern }) => self.glob(&pattern),
            Asked::Env(EnvArgs { name }) => self.variable(&name),
            Asked::Shell(_) | Asked::Fetch(_) => Err("that takes time".to_owned()),
        }
    }

    async fn shell(
        &self,
        args: ShellArgs,
        cancel: impl Future<Output = ()>,
    ) -> Result<Value, Refusal> {
        let cwd = match &args.cwd {
            Some(cwd) => self.inside(cwd)?,
            None => self.workspace.clone(),
        };
        let command = match args.values {
            Some(values) => {
                let values = values.into_iter().map(|(key, value)| (key.into(), value));
                render_shell(&args.command, &State::new(values.collect()))
                    .map_err(|error| Refusal { code: "template", message: error.to_string() })?
            }
            None => ShellCommand::verbatim(&args.command),
        };
        let mut env: Vec<(String, String)> = args.env.into_iter().collect();
        env.extend(self.variables(&command)?);
        let job = Job {
            argv: vec!["sh".to_owned(), "-c".to_owned(), command.text],
            cwd,
            env,
            marker: self.marker.clone(),
            stdin: false,
        };
        let limit = args.timeout_ms.map(Duration::from_millis);
        let ran = self.guard.capture(&job, args.stdin, (limit, KEPT), cancel).await;
        let command = short(&args.command);
        let ran = ran.map_err(|error| format!("`{command}` could not be run: {error}"))?;
        let Some(status) = ran.status else {
            return Err(match args.timeout_ms {
                Some(limit) => format!("`{command}` took longer than {limit} ms, or was stopped"),
                None => format!("`{command}` was stopped"),
            }
            .into());
        };
        use std::os::unix::process::ExitStatusExt as _;
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        let (stdout, stderr) = (text(ran.stdout), text(ran.stderr));
        if args.check && code != Some(0) {
            let status = code.unwrap_or_default();
            let message = format!("`{command}` ended with status {status}");
            let said = if stderr.trim().is_empty() { &stdout } else { &stderr };
            let message = match end_of(said) {
                "" => message,
                said => format!("{message}: {said}"),
            };
            return Err(Refusal { code: "shell", message });
        }
        Ok(json!({ "code": code, "stdout": stdout, "stderr": stderr }))
    }

    /// The variables with the values of a command. Values that it reads from files are written.
    pub(super) fn variables(
        &self,
        command: &ShellCommand,
    ) -> Result<Vec<(String, String)>, String> {
        let mut variables = command.env.clone();
        for (name, value) in &command.files {
            let path = self.values.write(&format!("{}/{name}", self.marker), value);
            let path = path.map_err(|error| error.to_string())?;
            let path = path.into_os_string().into_string();
            let path = path.map_err(|path| {
                format!("the path of the session is not UTF-8: {}", path.display())
            })?;
            variables.push((name.clone(), path));
        }
        Ok(variables)
    }

    /// The place of a path in the project, which does not lead nowhere.
    fn inside(&self, path: &str) -> Result<PathBuf, String> {
        match self.place_of(path)? {
            Place::There(place) => Ok(place),
            Place::Nowhere => Err(format!("`{path}` leads nowhere")),
        }
    }

    /// The place of a path in the project. Nothing on the way to it leads out.
    fn place_of(&self, path: &str) -> Result<Place, String> {
        let outside = || format!("`{path}` is outside the project");
        let root = self.workspace.canonicalize();
        let root = root.map_err(|error| format!("the project cannot be read: {error}"))?;
        let wanted = self.workspace.join(path);
        let mut plain = PathBuf::new();
        for part in wanted.components() {
            match part {
                Component::ParentDir => {
                    // What is really there counts, not what the path looks like.
                    plain = plain.canonicalize().unwrap_or(plain);
                    plain.pop();
                }
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                    plain.push(part);
                }
            }
        }
        // As much of it as there is, and the rest, which has no links in it.
        let mut there = plain.as_path();
        let mut rest = PathBuf::new();
        let mut is_nowhere = false;
        let real = loop {
            if let Ok(real) = there.canonicalize() {
                break real;
            }
            is_nowhere |= there.symlink_metadata().is_ok();
            let (Some(parent), Some(name)) = (there.parent(), there.file_name()) else {
                return Err(outside());
            };
            // Joined to nothing it would end in a slash.
            let before = PathBuf::from(name);
            rest = if rest.as_os_str().is_empty() { before } else { before.join(&rest) };
            there = parent;
        };
        if !real.starts_with(&root) {
            return Err(outside());
        }
        if is_nowhere {
            return Ok(Place::Nowhere);
        }
        Ok(Place::There(if rest.as_os_str().is_empty() { real } else { real.join(rest) }))
    }

    fn read_file(&self, path: &str) -> Result<Value, String> {
        let place = self.inside(path)?;
        // The real path is opened without links: a link that was put there since is not followed.
        let bytes = self.root().and_then(|root| {
            let (folder, name) = root.folder_of(&place)?;
            folder.read(name, LARGEST as u64)
        });
        let bytes = bytes.map_err(|error| match refusal(&error) {
            Some(refused) => format!("`{path}` {refused}"),
            None => format!("`{path}` cannot be read: {error}"),
        })?;
        let text = String::from_utf8(bytes).map_err(|_| format!("`{path}` is no text (UTF-8)"))?;
        Ok(Value::String(text))
    }

    /// The project, as it really is.
    fn root(&self) -> std::io::Result<Root> {
        Root::open(&self.workspace.canonicalize()?)
    }

    /// Writes a file beside it first, so that whoever reads it sees the old one or the new one.
    fn write_file(&self, path: &str, text: &str) -> Result<Value, String> {
        if text.len() > LARGEST {
            return Err(format!("`{path}` would have {} bytes, more than {LARGEST}", text.len()));
        }
        let place = self.inside(path)?;
        let unwritable = |error: std::io::Error| format!("`{path}` cannot be written: {error}");
        let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else {
            return Err(format!("`{path}` is no file"));
        };
        let root = self.root().map_err(unwritable)?;
        let folder = root.create_folder(folder, 0o777).map_err(unwritable)?;
        if folder.kind(name).map_err(unwritable)? == Some(FileKind::Folder) {
            return Err(format!("`{path}` is a folder"));
        }
        let staged = folder.stage(name, text.as_bytes(), Permissions::KeptOr(0o666));
        staged.and_then(Staged::commit).map_err(unwritable)?;
        Ok(Value::Null)
    }

    fn glob(&self, pattern: &str) -> Result<Value, String> {
        let parts = Path::new(pattern).components();
        if parts.clone().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(format!("the pattern `{pattern}` leads outside the project"));
        }
        let pattern = pattern.trim_start_matches("./");
        fast_glob::validate(pattern).map_err(|problem| {
            format!("`{pattern}` is no pattern for files: {problem}; `\\` before a sign means the sign itself")
        })?;
        let mut found = vec![];
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            // A folder that cannot be read has nothing in it for us.
            let Ok(entries) = std::fs::read_dir(self.workspace.join(&folder)) else { continue };
            for entry in entries.flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                let path = folder.join(entry.file_name());
                if kind.is_dir() {
                    // Links are not followed, so this ends.
                    if entry.file_name() != ".git" {
                        folders.push(path);
                    }
                } else if fast_glob::glob_match(pattern, path.to_string_lossy().as_ref()) {
                    found.push(path.to_string_lossy().into_owned());
                }
            }
            if found.len() > MOST_FOUND {
                return Err(format!("more than {MOST_FOUND} files match `{pattern}`"));
            }
        }
        found.sort_unstable();
        Ok(json!(found))
    }

    fn variable(&self, name: &str) -> Result<Value, String> {
        if !PLAIN_VARIABLES.contains(&name) && !self.env_allow.iter().any(|known| known == name) {
            return Err(format!(
                "the variable `{name}` may not be read; add it to the setting `env_allow`"
            ));
        }
        Ok(json!(std::env::var(name).ok()))
    }
}

/// What a command printed; what had to be left out is said.
fn text(kept: Kept) -> String {
    match kept.left_out {
        0 => kept.text,
        bytes => format!("[the first {bytes} bytes were left out]\n{}", kept.text),
    }
}

/// The end of what a command printed, for a sentence.
fn end_of(said: &str) -> &str {
    const LONGEST: usize = 2000;
    let said = said.trim();
    let from = said.char_indices().rev().take(LONGEST).last();
    from.map_or("", |(from, _)| &said[from..])
}
