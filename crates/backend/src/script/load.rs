//! Reading a script, with messages that say where the mistake is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atomic_event::{AgentName, Choice, ConversationId, Question, Usage};
use atomic_files::PROMPT_LIMIT;

use super::wire::{
    AskEntry, Content, EditEntry, Entry, FailEntry, InsidePath, Lasts, OutageEntry, ScriptFile,
    TurnEntry, UsageEntry,
};
use crate::{BackendError, OpenRequest};

/// Canned turns, ready to be played.
#[derive(Clone, Debug)]
pub struct Script {
    name: Arc<str>,
    reports_cost: bool,
    outages: Arc<[OutageEntry]>,
    turns: Arc<[Arc<CannedTurn>]>,
    /// What is said about a test of a workflow with this script; null where nothing is.
    pub test: serde_json::Value,
}

/// How a script is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TOML.
    Toml,
    /// JSON, in the same shape.
    Json,
}

/// Where the files are that a script writes with `from = "…"`.
#[derive(Clone, Debug)]
pub enum FileSource {
    /// In this folder.
    Folder(PathBuf),
    /// In our binary: names and texts.
    Embedded(&'static [(&'static str, &'static str)]),
}

/// What is played when a prompt fits.
#[derive(Debug)]
pub(super) struct CannedTurn {
    agent: Option<AgentName>,
    system: Vec<String>,
    model: Option<String>,
    prompt: Vec<String>,
    absent: Vec<String>,
    conversation: Option<ConversationId>,
    pub(super) actions: Vec<Action>,
}

/// One thing an agent does.
#[derive(Debug)]
pub(super) enum Action {
    Say(String),
    Pause(Duration),
    Write { path: InsidePath, text: String },
    Edit(EditEntry),
    Delete(InsidePath),
    Run { command: String, limit: Option<Duration> },
    Ask(Question),
    Spend(Usage),
    Fail(FailEntry),
}

impl Script {
    /// Reads a script from a `.toml` or `.json` file; files it names are looked for beside it.
    pub fn load(path: &Path) -> Result<Self, BackendError> {
        let name = path.display().to_string();
        let fail = |problem: &str| BackendError::Misconfigured(format!("{name}: {problem}"));
        let format = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Format::Toml,
            Some("json") => Format::Json,
            Some(_) | None => return Err(fail("a script is a `.toml` or a `.json` file")),
        };
        let text = read_file(path)
            .map_err(|problem| fail(&format!("cannot read the script: {problem}")))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Self::read(&name, &text, format, &FileSource::Folder(folder))
    }

    /// Reads a script that is not a file of its own; files it names are looked for in `base`.
    pub fn parse(text: &str, format: Format, base: &FileSource) -> Result<Self, BackendError> {
        Self::read("the embedded script", text, format, base)
    }

    /// Whether its turns say what they cost.
    pub(super) fn reports_cost(&self) -> bool {
        self.reports_cost
    }

    /// The outage in which a turn is sent, if it is sent in one, so long after the backend was made.
    pub(super) fn outage(&self, age: Duration, workspace: &Path) -> Option<&OutageEntry> {
        self.outages.iter().find(|outage| match &outage.lasts {
            Lasts::For(time) => age < *time,
            Lasts::WhileFile(file) => workspace.join(file.as_path()).exists(),
        })
    }

    /// The first turn that fits; the error quotes the prompt.
    pub(super) fn turn_for(
        &self,
        request: &OpenRequest,
        conversation: &ConversationId,
        prompt: &str,
    ) -> Result<Arc<CannedTurn>, BackendError> {
        let agent = &request.agent;
        let fits = |turn: &&Arc<CannedTurn>| turn.fits(request, conversation, prompt);
        self.turns.iter().find(fits).cloned().ok_or_else(|| {
            BackendError::Misconfigured(format!(
                "script: {} has no turn for the agent `{agent}` and the prompt {:?}; \
                 add a turn that fits it",
                self.name,
                shorten(prompt, 300)
            ))
        })
    }

    fn read(
        name: &str,
        text: &str,
        format: Format,
        base: &FileSource,
    ) -> Result<Self, BackendError> {
        let fail = |mistake: Mistake| {
            let Mistake { position, problem } = mistake;
            let (line, column) = position;
            BackendError::Misconfigured(format!("{name}:{line}:{column}: {problem}"))
        };
        let file = match format {
            Format::Toml => toml::from_str(text).map_err(|error| Mistake::in_toml(text, &error)),
            Format::Json => serde_json::from_str(text).map_err(|error| Mistake::in_json(&error)),
        };
        let file: ScriptFile = file.map_err(fail)?;
        let turn = match file.turn {
            None if file.test.is_null() => return Err(fail(Mistake::without_turns())),
            turn => turn.unwrap_or_default(),
        };
        let turns: Result<Vec<_>, Mistake> =
            turn.into_iter().map(|turn| CannedTurn::new(turn, text, base)).collect();
        let turns = turns.map_err(fail)?.into_iter().map(Arc::new).collect();
        let (reports_cost, outages) = (file.reports_cost, file.outage.into());
        Ok(Self { name: name.into(), reports_cost, outages, turns, test: file.test })
    }
}

/// Reads a script, or a file that it names.
fn read_file(path: &Path) -> Result<String, String> {
    atomic_files::read_text(path, PROMPT_LIMIT).map_err(|error| {
        let refused = atomic_files::refusal(&error);
        refused.map_or_else(|| error.to_string(), |refused| format!("the file {refused}"))
    })
}

impl FileSource {
    fn read(&self, name: &str) -> Result<String, String> {
        match self {
            Self::Folder(folder) => read_file(&folder.join(name)),
            Self::Embedded(files) => files
                .iter()
                .find(|(embedded, _)| *embedded == name)
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| "it is not among the embedded files".to_owned()),
        }
    }
}

impl CannedTurn {
    fn new(entry: TurnEntry, script: &str, base: &FileSource) -> Result<Self, Mistake> {
        let action = |entry| Action::new(entry, script, base);
        let actions: Result<Vec<_>, _> = entry.actions.into_iter().map(action).collect();
        Ok(Self {
            agent: entry.agent.map(AgentName::from),
            system: entry.system,
            model: entry.model,
            prompt: entry.prompt,
            absent: entry.absent,
            conversation: entry.conversation.map(ConversationId::from),
            actions: actions?,
        })
    }

    /// Looks only at what a real program would see, so that a restart changes nothing.
    fn fits(&self, request: &OpenRequest, conversation: &ConversationId, prompt: &str) -> bool {
        self.agent.as_ref().is_none_or(|wanted| *wanted == request.agent)
            && self.model.as_ref().is_none_or(|wanted| Some(wanted) == request.model.as_ref())
            && self.system.iter().all(|part| request.system_prompt.contains(part))
            && self.conversation.as_ref().is_none_or(|wanted| wanted == conversation)
            && self.prompt.iter().all(|part| prompt.contains(part))
            && !self.absent.iter().any(|part| prompt.contains(part))
    }
}

impl Action {
    fn new(entry: Entry, script: &str, base: &FileSource) -> Result<Self, Mistake> {
        Ok(match entry {
            Entry::Say(text) => Self::Say(text),
            Entry::Pause(millis) => Self::Pause(Duration::from_millis(millis)),
            Entry::Write(write) => {
                let text = match write.content {
                    Content::Text(text) => text,
                    Content::From(name) => base.read(&name).map_err(|problem| Mistake {
                        position: position(script, offset_of_from(script, &name).unwrap_or(0)),
                        problem: format!("cannot read `{name}`: {problem}"),
                    })?,
                };
                Self::Write { path: write.path, text }
            }
            Entry::Edit(edit) => Self::Edit(edit),
            Entry::Delete(path) => Self::Delete(path),
            Entry::Run(run) => {
                Self::Run { command: run.command, limit: run.timeout_ms.map(Duration::from_millis) }
            }
            Entry::Ask(ask) => Self::Ask(ask.into()),
            Entry::Usage(usage) => Self::Spend(usage.into()),
            Entry::Fail(how) => Self::Fail(how),
        })
    }
}

impl From<AskEntry> for Question {
    fn from(ask: AskEntry) -> Self {
        let choice = |option: super::wire::OptionEntry| Choice {
            label: option.label,
            description: option.description,
        };
        Self {
            question: ask.question,
            header: ask.header,
            options: ask.options.into_iter().map(choice).collect(),
            multi_select: ask.multi_select,
            free_text: ask.free_text,
        }
    }
}

impl From<UsageEntry> for Usage {
    fn from(usage: UsageEntry) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cost_usd: usage.cost_usd.map(|cost| cost.0),
            estimated_usd: usage.estimated_usd.map(|cost| cost.0),
            is_total: usage.is_total,
            context_tokens: usage.context_tokens,
            context_window: usage.context_window,
        }
    }
}

/// What is wrong with a script, and where.
struct Mistake {
    /// Line and column, both from 1.
    position: (usize, usize),
    problem: String,
}

impl Mistake {
    fn in_toml(text: &str, error: &toml::de::Error) -> Self {
        let offset = error.span().map_or(0, |span| span.start);
        Self { position: position(text, offset), problem: plain(error.message()) }
    }

    fn without_turns() -> Self {
        Self { position: (1, 1), problem: "missing key `turn`".to_owned() }
    }

    fn in_json(error: &serde_json::Error) -> Self {
        let shown = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let problem = plain(shown.strip_suffix(&place).unwrap_or(&shown));
        Self { position: (error.line(), error.column()), problem }
    }
}

/// The reader's message in the words of somebody who writes scripts.
fn plain(message: &str) -> String {
    message
        .replace("unknown field", "unknown key")
        .replace("unknown variant", "unknown word")
        .replace("missing field", "missing key")
        .replace("duplicate field", "repeated key")
}

fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    (line, before.get(line_start..).unwrap_or("").chars().count() + 1)
}

/// Where the script says `from = "name"`. Only the parsed value is at hand when the file turns out
/// to be missing, and JSON values do not remember their place.
fn offset_of_from(script: &str, name: &str) -> Option<usize> {
    let is_value_of_from = |offset: &usize| {
        let before = script.get(..*offset).unwrap_or("").trim_end();
        let key = before.strip_suffix(['=', ':']).map(str::trim_end);
        key.is_some_and(|key| key.trim_end_matches('"').ends_with("from"))
    };
    [format!("{name:?}"), format!("'{name}'")].iter().find_map(|quoted| {
        script.match_indices(quoted.as_str()).map(|(offset, _)| offset).find(is_value_of_from)
    })
}

/// The beginning of a text that may be long.
pub(super) fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
