//! Uses of tools as tool calls.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    Diff, SessionUpdate, ToolCall as Call, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use atomic_event::{StepId, ToolCall, ToolUse};

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// There is no such file.
    Nothing,
    /// A text.
    Text(String),
    /// It cannot be said, or not be shown.
    Unknown,
}

/// Looks into files, for somebody who may.
pub type Look = fn(&Path) -> Seen;

/// The tools that are being used. Ours have no names of their own: the oldest use of the same tool
/// on the same thing is the one that has ended.
#[derive(Debug)]
pub(crate) struct Tools {
    /// What begins the name of every call.
    prefix: String,
    count: u64,
    open: Vec<Open>,
    look: Look,
    /// Files that are or were changed, as they were seen last.
    files: BTreeMap<PathBuf, Seen>,
}

#[derive(Debug)]
struct Open {
    id: String,
    step: StepId,
    tool: String,
    summary: String,
    by: Option<String>,
}

impl Tools {
    pub(crate) fn new(prefix: &str, look: Look) -> Self {
        let (prefix, files) = (prefix.to_owned(), BTreeMap::new());
        Self { prefix, count: 0, open: vec![], look, files }
    }

    fn next_id(&mut self) -> String {
        self.count += 1;
        format!("{}{}", self.prefix, self.count)
    }

    pub(crate) fn began(&mut self, step: &StepId, call: &ToolCall, folder: &Path) -> SessionUpdate {
        let id = self.next_id();
        let ToolCall { tool, summary, by } = call.clone();
        if let Some(path) = changed(&tool, &summary, folder) {
            let seen = (self.look)(&path);
            self.files.insert(path, seen);
        }
        let shown = shown(&id, &tool, &summary, by.as_deref(), folder);
        self.open.push(Open { id, step: step.clone(), tool, summary, by });
        SessionUpdate::ToolCall(shown.status(ToolCallStatus::InProgress))
    }

    pub(crate) fn ended(&mut self, step: &StepId, used: &ToolUse, folder: &Path) -> SessionUpdate {
        let status = if used.ok { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        let fits =
            |open: &&Open| open.step == *step && open.tool == used.tool && open.by == used.by;
        let same = self.open.iter().find(|open| fits(open) && open.summary == used.summary);
        let id = same.or_else(|| self.open.iter().find(fits)).map(|open| open.id.clone());
        let path = changed(&used.tool, &used.summary, folder).filter(|_| used.ok);
        let content: Vec<_> = path.and_then(|path| self.diff(path)).into_iter().collect();
        let Some(id) = id else {
            // Its beginning was passed over, or it has none.
            let id = self.next_id();
            let call = shown(&id, &used.tool, &used.summary, used.by.as_deref(), folder);
            return SessionUpdate::ToolCall(call.status(status).content(content));
        };
        self.open.retain(|open| open.id != id);
        let mut fields = ToolCallUpdateFields::new().status(status);
        if !content.is_empty() {
            fields = fields.content(content);
        }
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields))
    }

    /// What has become of a file since it was seen last, where both can be shown.
    fn diff(&mut self, path: PathBuf) -> Option<ToolCallContent> {
        let now = (self.look)(&path);
        let before = self.files.insert(path.clone(), now.clone())?;
        let (old, Seen::Text(new)) = (before.clone(), &now) else { return None };
        let old = match old {
            Seen::Nothing => None,
            Seen::Text(text) => Some(text),
            Seen::Unknown => return None,
        };
        let diff = Diff::new(path, new.clone()).old_text(old);
        (before != now).then_some(ToolCallContent::Diff(diff))
    }

    /// Nothing more will be heard of what is being used, in one step or at all. Where the step went
    /// well, it did, too.
    pub(crate) fn close(&mut self, step: Option<&StepId>, ok: bool) -> Vec<SessionUpdate> {
        let gone = |open: &Open| step.is_none_or(|step| open.step == *step);
        let gone = self.open.extract_if(.., |open| gone(open));
        let status = if ok { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        let over = |open: Open| {
            let fields = ToolCallUpdateFields::new().status(status);
            SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(open.id, fields))
        };
        gone.map(over).collect()
    }
}

fn shown(id: &str, tool: &str, summary: &str, by: Option<&str>, folder: &Path) -> Call {
    let kind = kind(tool);
    let what = if summary.is_empty() {
        tool.to_owned()
    } else if kind == ToolKind::Execute {
        // A command says itself what it is.
        format!("`{summary}`")
    } else {
        format!("{tool} {summary}")
    };
    let title = by.map_or_else(|| what.clone(), |by| format!("{by}: {what}"));
    let is_file =
        matches!(kind, ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move)
            && !summary.is_empty();
    let place = is_file.then(|| ToolCallLocation::new(located(summary, folder)));
    Call::new(id.to_owned(), title)
        .name(tool.to_owned())
        .kind(kind)
        .locations(place.into_iter().collect())
}

/// The file that a tool changes.
fn changed(tool: &str, summary: &str, folder: &Path) -> Option<PathBuf> {
    let is_change = kind(tool) == ToolKind::Edit && !summary.is_empty();
    is_change.then(|| located(summary, folder))
}

/// Clients want whole paths.
fn located(path: &str, folder: &Path) -> PathBuf {
    folder.join(path)
}

fn kind(tool: &str) -> ToolKind {
    match tool {
        "read" | "notebookread" => ToolKind::Read,
        "write" | "edit" | "multiedit" | "notebookedit" | "patch" | "apply_patch" => ToolKind::Edit,
        "delete" => ToolKind::Delete,
        "move" => ToolKind::Move,
        "grep" | "glob" | "search" | "list" | "ls" | "websearch" => ToolKind::Search,
        "shell" | "check" => ToolKind::Execute,
        "webfetch" | "fetch" => ToolKind::Fetch,
        "task" | "agent" | "think" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}
