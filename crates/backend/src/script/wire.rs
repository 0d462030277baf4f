//! The script file as it is written.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};

/// A whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptFile {
    #[serde(default = "yes")]
    pub(super) reports_cost: bool,
    /// May be missing where there is a test: not every workflow has agents.
    pub(super) turn: Option<Vec<TurnEntry>>,
    /// What `atomic test` reads; it is none of an agent's business.
    #[serde(default)]
    pub(super) test: serde_json::Value,
    /// When the provider refuses every turn.
    #[serde(default)]
    pub(super) outage: Vec<OutageEntry>,
}

/// One `[[outage]]`: while it lasts every turn is refused.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawOutage")]
pub(super) struct OutageEntry {
    pub(super) lasts: Lasts,
    pub(super) fail: FailEntry,
    /// What the provider says about the time after which it can be asked again.
    pub(super) retry_after: Option<Duration>,
}

/// How long an outage lasts.
#[derive(Clone, Debug)]
pub(super) enum Lasts {
    /// So long after the script was read.
    For(Duration),
    /// As long as this file is in the workspace.
    WhileFile(InsidePath),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOutage {
    for_s: Option<u64>,
    while_file: Option<InsidePath>,
    fail: FailEntry,
    retry_after_s: Option<u64>,
}

impl TryFrom<RawOutage> for OutageEntry {
    type Error = &'static str;

    fn try_from(raw: RawOutage) -> Result<Self, &'static str> {
        let lasts = match (raw.for_s, raw.while_file) {
            (Some(seconds), None) => Lasts::For(Duration::from_secs(seconds)),
            (None, Some(file)) => Lasts::WhileFile(file),
            (None, None) | (Some(_), Some(_)) => {
                return Err("an outage needs either `for_s` or `while_file`");
            }
        };
        let retry_after = raw.retry_after_s.map(Duration::from_secs);
        Ok(Self { lasts, fail: raw.fail, retry_after })
    }
}

/// One `[[turn]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTurn {
    agent: Option<String>,
    #[serde(default)]
    system: Vec<String>,
    model: Option<String>,
    #[serde(default)]
    prompt: Vec<String>,
    #[serde(default)]
    absent: Vec<String>,
    conversation: Option<String>,
    #[serde(default, rename = "do")]
    actions: Vec<Entry>,
}

/// One `[[turn]]` that can be played twice with the same effect.
#[derive(Debug, Deserialize)]
#[serde(try_from = "RawTurn")]
pub(super) struct TurnEntry {
    pub(super) agent: Option<String>,
    pub(super) system: Vec<String>,
    pub(super) model: Option<String>,
    pub(super) prompt: Vec<String>,
    pub(super) absent: Vec<String>,
    pub(super) conversation: Option<String>,
    pub(super) actions: Vec<Entry>,
}

impl TryFrom<RawTurn> for TurnEntry {
    type Error = String;

    fn try_from(raw: RawTurn) -> Result<Self, String> {
        nothing_follows_a_failure(&raw.actions)?;
        no_file_is_also_a_folder(&raw.actions)?;
        edits_are_not_overwritten(&raw.actions)?;
        let RawTurn { agent, system, model, prompt, absent, conversation, actions } = raw;
        Ok(Self { agent, system, model, prompt, absent, conversation, actions })
    }
}

/// One `[[turn.do]]`.
#[derive(Debug, Deserialize)]
#[serde(try_from = "RawEntry")]
pub(super) enum Entry {
    Say(String),
    Pause(u64),
    Write(WriteEntry),
    Edit(EditEntry),
    Delete(InsidePath),
    Run(RunEntry),
    Ask(AskEntry),
    Usage(UsageEntry),
    Fail(FailEntry),
}

/// One `[[turn.do]]`, whose keys exclude each other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    say: Option<String>,
    pause_ms: Option<u64>,
    write: Option<WriteEntry>,
    edit: Option<EditEntry>,
    delete: Option<InsidePath>,
    run: Option<RunEntry>,
    ask: Option<AskEntry>,
    usage: Option<UsageEntry>,
    fail: Option<FailEntry>,
}

impl TryFrom<RawEntry> for Entry {
    type Error = &'static str;

    fn try_from(raw: RawEntry) -> Result<Self, &'static str> {
        let given = [
            raw.say.map(Self::Say),
            raw.pause_ms.map(Self::Pause),
            raw.write.map(Self::Write),
            raw.edit.map(Self::Edit),
            raw.delete.map(Self::Delete),
            raw.run.map(Self::Run),
            raw.ask.map(Self::Ask),
            raw.usage.map(Self::Usage),
            raw.fail.map(Self::Fail),
        ];
        let mut given = given.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err("an entry of `do` is empty; say what is to be done"),
            (Some(_), Some(_)) => {
                Err("an entry of `do` does several things; give each its own entry")
            }
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWrite {
    path: InsidePath,
    text: Option<String>,
    from: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "RawWrite")]
pub(super) struct WriteEntry {
    pub(super) path: InsidePath,
    pub(super) content: Content,
}

/// What is written to a file.
#[derive(Debug)]
pub(super) enum Content {
    /// This text.
    Text(String),
    /// The text of a file that comes with the script.
    From(String),
}

impl TryFrom<RawWrite> for WriteEntry {
    type Error = &'static str;

    fn try_from(raw: RawWrite) -> Result<Self, &'static str> {
        let content = match (raw.text, raw.from) {
            (Some(text), None) => Content::Text(text),
            (None, Some(from)) => Content::From(from),
            (None, None) | (Some(_), Some(_)) => {
                return Err("`write` needs either `text` or `from`");
            }
        };
        Ok(Self { path: raw.path, content })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEdit {
    path: InsidePath,
    find: String,
    replace: String,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "RawEdit")]
pub(super) struct EditEntry {
    pub(super) path: InsidePath,
    pub(super) find: String,
    pub(super) replace: String,
}

impl TryFrom<RawEdit> for EditEntry {
    type Error = &'static str;

    fn try_from(RawEdit { path, find, replace }: RawEdit) -> Result<Self, &'static str> {
        if find.is_empty() {
            return Err("`find` is empty; name the text to replace");
        }
        if find == replace {
            return Err("`find` and `replace` are the same, so there is nothing to edit");
        }
        Ok(Self { path, find, replace })
    }
}

/// A command, bare or with its time limit.
#[derive(Debug)]
pub(super) struct RunEntry {
    pub(super) command: String,
    pub(super) timeout_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitedRun {
    command: String,
    timeout_ms: Option<u64>,
}

// By hand, because an untagged enum forgets where in the file the mistake is.
impl<'de> Deserialize<'de> for RunEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BareOrLimited;

        impl<'de> Visitor<'de> for BareOrLimited {
            type Value = RunEntry;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a command, or `{ command, timeout_ms }`")
            }

            fn visit_str<E>(self, command: &str) -> Result<RunEntry, E> {
                Ok(RunEntry { command: command.to_owned(), timeout_ms: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RunEntry, A::Error> {
                let run = LimitedRun::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RunEntry { command: run.command, timeout_ms: run.timeout_ms })
            }
        }

        deserializer.deserialize_any(BareOrLimited)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskEntry {
    pub(super) question: String,
    #[serde(default)]
    pub(super) header: String,
    #[serde(default)]
    pub(super) options: Vec<OptionEntry>,
    #[serde(default)]
    pub(super) multi_select: bool,
    #[serde(default)]
    pub(super) free_text: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OptionEntry {
    pub(super) label: String,
    #[serde(default)]
    pub(super) description: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageEntry {
    #[serde(default)]
    pub(super) input_tokens: u64,
    #[serde(default)]
    pub(super) output_tokens: u64,
    #[serde(default)]
    pub(super) cost_usd: Option<Money>,
    #[serde(default)]
    pub(super) estimated_usd: Option<Money>,
    #[serde(default)]
    pub(super) is_total: bool,
    #[serde(default)]
    pub(super) context_tokens: Option<u64>,
    #[serde(default)]
    pub(super) context_window: Option<u64>,
}

/// An amount that can be added up.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(super) struct Money(pub(super) f64);

impl TryFrom<f64> for Money {
    type Error = &'static str;

    fn try_from(amount: f64) -> Result<Self, &'static str> {
        if amount.is_finite() && amount >= 0.0 {
            return Ok(Self(amount));
        }
        Err("a cost is a number that is not negative")
    }
}

/// A named way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FailEntry {
    Exit,
    Hang,
    Garbage,
    Silence,
    RateLimit,
    Overloaded,
    ContextOverflow,
    Login,
    Quota,
    Unavailable,
    Refused,
    ModelUnknown,
    Rejected,
}

/// A path that cannot leave the folder it is joined to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct InsidePath(PathBuf);

impl InsidePath {
    pub(super) fn as_path(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<String> for InsidePath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut inside = PathBuf::new();
        for component in Path::new(&text).components() {
            match component {
                Component::Normal(name) => inside.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(format!(
                        "the path `{text}` leads out of the workspace; \
                         write it relative to the workspace and without `..`"
                    ));
                }
            }
        }
        if inside.as_os_str().is_empty() {
            return Err(format!("the path `{text}` names no file"));
        }
        Ok(Self(inside))
    }
}

fn nothing_follows_a_failure(actions: &[Entry]) -> Result<(), String> {
    let before_last = actions.split_last().map_or(actions, |(_, before)| before);
    if before_last.iter().any(|action| matches!(action, Entry::Fail(_))) {
        return Err("nothing after `fail` is ever played; put it last".to_owned());
    }
    Ok(())
}

/// Played again, the file would be in the way of the folder or the other way round.
fn no_file_is_also_a_folder(actions: &[Entry]) -> Result<(), String> {
    let written: Vec<&Path> = actions.iter().filter_map(written_path).collect();
    for file in &written {
        if let Some(beneath) =
            written.iter().find(|other| *other != file && other.starts_with(file))
        {
            return Err(format!(
                "this turn writes `{}` both as a file and as the folder of `{}`",
                file.display(),
                beneath.display()
            ));
        }
    }
    Ok(())
}

/// Played again, the edit would not find the text it is about, unless the turn itself wrote it.
fn edits_are_not_overwritten(actions: &[Entry]) -> Result<(), String> {
    for (index, action) in actions.iter().enumerate() {
        let Entry::Edit(edit) = action else { continue };
        let path = edit.path.as_path();
        let (before, after) = actions.split_at(index);
        if before.iter().filter_map(written_path).any(|written| written == path) {
            continue;
        }
        let overwritten = |later: &Entry| match later {
            Entry::Delete(gone) => path.starts_with(gone.as_path()),
            Entry::Write(write) => path == write.path.as_path(),
            Entry::Say(_) | Entry::Pause(_) | Entry::Edit(_) | Entry::Run(_) => false,
            Entry::Ask(_) | Entry::Usage(_) | Entry::Fail(_) => false,
        };
        if after.iter().any(overwritten) {
            return Err(format!(
                "this turn edits `{}` and then writes or deletes it; leave out the edit",
                path.display()
            ));
        }
    }
    Ok(())
}

fn written_path(action: &Entry) -> Option<&Path> {
    if let Entry::Write(write) = action { Some(write.path.as_path()) } else { None }
}

fn yes() -> bool {
    true
}
