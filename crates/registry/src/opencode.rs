//! Commands and agents in OpenCode's own settings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
use serde_json::{Map, Value, json};

use crate::allowed::Tools;
use crate::entity::{Entity, Kind, Origin, Prompt, Provider};
use crate::files;
use crate::finding::Finding;
use crate::inherit::{FileRestrictions, OWN_AGENTS, UnlistedAgent};
use crate::normal::is_yes;
use crate::parse::{self, Found, Place};
use crate::permission;
use crate::places::ConfigFile;
use crate::project::ProjectFiles;

/// A file of settings.
pub(crate) enum SettingsFile {
    Absent,
    /// A file that cannot be read, or whose restrictions cannot.
    Lost,
    Read(FileRestrictions),
}

/// Reads a file of settings, and adds its commands and agents.
pub(crate) fn read(
    config: &ConfigFile,
    project: Option<&ProjectFiles>,
    entities: &mut Vec<Entity>,
    findings: &mut Vec<Finding>,
) -> SettingsFile {
    let path = &config.path;
    let text = match text_of(config, project) {
        Ok(None) => return SettingsFile::Absent,
        Ok(Some(text)) => text,
        Err(finding) => {
            findings.push(Finding { message: lost(&finding.message), ..finding });
            return SettingsFile::Lost;
        }
    };
    findings.extend(text.oddity);
    let text = text.text;
    let settings = match parsed(&text) {
        Ok(settings) => settings,
        Err((line, message)) => {
            let remedy = "correct it; comments and trailing commas are allowed";
            let message = lost(&format!("it is not valid JSON: {message}"));
            findings.push(Finding::skipped(path, message, remedy).at(line));
            return SettingsFile::Lost;
        }
    };
    findings.extend(doubles(&text).into_iter().map(|finding| finding.of(path)));
    let lines = lines_of_keys(&text);
    let unlisted = entities_of(&settings, config, &lines, entities, findings);
    let disabled = disabled(&settings);
    let odd = |key: &str, message: String, remedy: &str| {
        let finding = Finding::odd(path, message, remedy);
        Finding { line: lines.get(key).copied(), ..finding }
    };
    let tools = settings.get("tools").filter(|it| !it.is_null());
    let switches = tools.and_then(Value::as_object);
    if tools.is_some() && switches.is_none() {
        let message = lost("`tools` is not an object");
        findings.push(odd("tools", message, "write `{\"bash\": false}`"));
        return SettingsFile::Lost;
    }
    let permission = settings.get("permission").filter(|it| **it != json!({}) && !it.is_null());
    let decided = permission::read(switches, permission);
    for problem in decided.problems {
        let message = format!("`permission` cannot be read, so that is denied: {problem}");
        findings.push(odd("permission", message, "write allow, ask or deny"));
    }
    let default_agent = default_agent(&settings);
    SettingsFile::Read(FileRestrictions { layer: decided.layer, default_agent, unlisted, disabled })
}

/// A problem of settings that cannot be read, with what follows from it.
fn lost(problem: &str) -> String {
    format!("{problem}; OpenCode's agents and commands have no tools until it can be read")
}

/// The agent of turns that name none.
fn default_agent(settings: &Map<String, Value>) -> Option<String> {
    match settings.get("default_agent")? {
        Value::Null => None,
        Value::String(name) => Some(name.clone()),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Some(other.to_string())
        }
    }
}

/// The agents that are disabled, or enabled again, by their names in lower case.
fn disabled(settings: &Map<String, Value>) -> BTreeMap<String, bool> {
    let agents = |key: &str| settings.get(key).and_then(Value::as_object).into_iter().flatten();
    let is_disabled = |(name, fields): (&String, &Value)| {
        Some((name.to_lowercase(), is_yes(fields.get("disable")?)?))
    };
    agents(MODES).chain(agents("agent")).filter_map(is_disabled).collect()
}

/// The text of a file of settings; nothing when there is none.
fn text_of(
    config: &ConfigFile,
    project: Option<&ProjectFiles>,
) -> Result<Option<files::Text>, Finding> {
    if let Some(text) = &config.text {
        return Ok(Some(files::Text { text: text.clone(), oddity: None }));
    }
    let path = &config.path;
    match std::fs::metadata(path) {
        Ok(_) => files::read_in(path, project).map(Some),
        Err(error) if files::is_absent(path, &error) => Ok(None),
        Err(error) => {
            let message = format!("it cannot be read: {error}");
            Err(Finding::skipped(path, message, "make it readable, or remove it"))
        }
    }
}

/// Adds the commands and agents of a file of settings. Returns the agents that are not listed.
fn entities_of(
    settings: &Map<String, Value>,
    config: &ConfigFile,
    lines: &BTreeMap<&str, usize>,
    entities: &mut Vec<Entity>,
    findings: &mut Vec<Finding>,
) -> Vec<UnlistedAgent> {
    let path = &config.path;
    let (mut pieces, mut unlisted) = (Pieces::default(), vec![]);
    for (kind, key, prompt) in [
        (Kind::Command, "command", "template"),
        (Kind::Agent, "agent", "prompt"),
        // Older settings call agents modes. Only their restrictions are read.
        (Kind::Agent, MODES, "prompt"),
    ] {
        match settings.get(key) {
            None => {}
            Some(Value::Object(all)) => {
                for (name, fields) in all {
                    let line = lines.get(name.as_str()).copied();
                    let mut told = vec![];
                    let written = Written { kind, prompt, name, fields };
                    let entity = match key == MODES || config.only_restricts {
                        true => None,
                        false => written.entity(config, &mut pieces, &mut told),
                    };
                    if entity.is_none() && kind == Kind::Agent {
                        unlisted.push(written.unlisted(config, &mut told));
                    }
                    entities.extend(entity);
                    findings.extend(told.into_iter().map(|finding| Finding { line, ..finding }));
                }
            }
            Some(_) => {
                let message = format!("`{key}` is no object and is left out");
                let finding = Finding::odd(path, message, "write `{\"name\": {…}}`");
                findings.push(Finding { line: lines.get(key).copied(), ..finding });
            }
        }
    }
    unlisted
}

/// The key of agents in older settings.
const MODES: &str = "mode";

fn parsed(text: &str) -> Result<Map<String, Value>, (usize, String)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value: Value = jsonc_parser::parse_to_serde_value(text, &ParseOptions::default())
        .map_err(|error| (error.line_display(), error.kind().to_string()))?;
    match value {
        Value::Object(settings) => Ok(settings),
        Value::Null => Ok(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err((1, "an object was expected".to_owned()))
        }
    }
}

/// A command or an agent as it stands in the settings.
struct Written<'s> {
    kind: Kind,
    /// The key of its prompt.
    prompt: &'static str,
    name: &'s str,
    fields: &'s Value,
}

impl Written<'_> {
    fn entity(
        &self,
        config: &ConfigFile,
        pieces: &mut Pieces,
        findings: &mut Vec<Finding>,
    ) -> Option<Entity> {
        let (path, name, kind) = (&config.path, self.name, self.kind);
        let Value::Object(fields) = self.fields else {
            let message = format!("`{name}` is no object and is left out");
            findings.push(Finding::odd(path, message, "write its fields in braces"));
            return None;
        };
        let mut fields = fields.clone();
        let text = match fields.remove(self.prompt) {
            Some(Value::String(text)) => text,
            None if kind == Kind::Agent && OWN_AGENTS.contains(&name) => {
                let message = format!("`{name}` has no `prompt`: it is an agent of OpenCode's own");
                findings.push(Finding::aside(path, message));
                return None;
            }
            // OpenCode gives it the prompt that it gives everybody.
            None if kind == Kind::Agent => String::new(),
            None | Some(_) => {
                let prompt = self.prompt;
                let message =
                    format!("the {} `{name}` has no `{prompt}` and is left out", kind.word());
                findings.push(Finding::odd(path, message, "write the text it stands for"));
                return None;
            }
        };
        let is_filled_in = text.contains(MARK) || text.contains(VARIABLE);
        if is_filled_in && !config.reads_files {
            let source = if text.contains(MARK) { "a file" } else { "a variable" };
            let message = format!("`{name}` takes its text from {source} and is left out");
            findings.push(Finding::odd(path, message, "look at it, then run: atomic trust ."));
            return None;
        }
        let beginning = match pieces.beginning(&text, config, name) {
            Ok(beginning) => beginning,
            Err(finding) => {
                findings.push(finding);
                return None;
            }
        };
        // The key is its name, whatever else is said.
        fields.insert("name".to_owned(), Value::String(name.to_owned()));
        let origin =
            Origin { scope: config.scope, provider: Provider::OpenCode, path: Some(path.clone()) };
        // As small as they are, settings may name large files often.
        let prompt = if text.contains(MARK) {
            Prompt::WithFiles { text, home: config.home.clone() }
        } else {
            Prompt::Text(text)
        };
        let found = Found { kind, origin, name: name.to_owned(), aliases: vec![], prompt };
        let mut told = vec![];
        let entity = parse::entity(found, fields, Place::Unknown, &beginning, &mut told);
        findings.extend(told.into_iter().map(|finding| {
            let message = format!("`{name}`: {}", finding.message);
            Finding { message, ..finding }
        }));
        entity
    }
}

impl Written<'_> {
    /// The restrictions of an agent that is not listed.
    fn unlisted(&self, config: &ConfigFile, findings: &mut Vec<Finding>) -> UnlistedAgent {
        let (path, name) = (config.path.clone(), self.name.to_owned());
        let origin = Origin { scope: config.scope, provider: Provider::OpenCode, path: Some(path) };
        let tools = match self.fields {
            Value::Object(fields) => {
                let mut told = vec![];
                let tools = parse::restrictions(&origin, fields.clone(), &mut told);
                findings.extend(told.into_iter().map(|finding| {
                    let message = format!("`{name}`: {}", finding.message);
                    Finding { message, ..finding }
                }));
                tools
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Tools::denied(),
        };
        UnlistedAgent { name, origin, tools }
    }
}

/// A key that is there twice, and where the second one is.
struct Double {
    key: String,
    line: usize,
}

impl Double {
    fn of(self, path: &Path) -> Finding {
        let message = format!("`{}` is there twice; the last one holds", self.key);
        Finding::odd(path, message, "remove one of them").at(self.line)
    }
}

/// Keys of commands and agents that are there twice: all but the last are lost.
fn doubles(text: &str) -> Vec<Double> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    let Ok(Some(ast::Value::Object(settings))) = parsed.map(|parsed| parsed.value) else {
        return vec![];
    };
    let is_read =
        |property: &&ast::ObjectProp<'_>| matches!(property.name.as_str(), "agent" | "command");
    let mut found = vec![];
    collect_doubles(settings.properties.iter().filter(is_read), &mut found);
    let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    found.into_iter().take(TOLD).map(|(key, at)| Double { key, line: line(at) }).collect()
}

/// How many keys that are there twice are told.
const TOLD: usize = 20;

fn collect_doubles<'t: 'o, 'o>(
    properties: impl Iterator<Item = &'o ast::ObjectProp<'t>>,
    found: &mut Vec<(String, usize)>,
) {
    let mut seen = BTreeSet::new();
    for property in properties {
        let name = property.name.as_str();
        if !seen.insert(name) {
            found.push((name.to_owned(), property.start()));
        }
        if let ast::Value::Object(inner) = &property.value {
            collect_doubles(inner.properties.iter(), found);
        }
    }
}

/// The first line of every key, to say where something is.
fn lines_of_keys(text: &str) -> BTreeMap<&str, usize> {
    let mut lines = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        let parts: Vec<&str> = line.split('"').collect();
        for pair in parts.windows(2) {
            if pair[1].trim_start().starts_with(':') {
                lines.entry(pair[0]).or_insert(number);
            }
        }
    }
    lines
}

/// What stands before the path of a file whose text is meant.
const MARK: &str = "{file:";

/// Prefix of a reference to a variable. OpenCode 1.18.33 fills in variables first, so one that is
/// not set can hide the other mark: `{fi{env:NONE}le:/etc/passwd}`.
const VARIABLE: &str = "{env:";

/// As many bytes of other files as are looked at for one file of settings.
const MOST_LOOKED_AT: u64 = 64 * 1024 * 1024;

/// As much of a text as is looked at for its first words.
const BEGINNING: usize = 4 * 1024;

/// Files that settings take texts from, as far as is needed to describe those.
#[derive(Default)]
struct Pieces {
    /// By their real paths: how long they are, and how they begin; or why they cannot be read.
    known: BTreeMap<PathBuf, Result<(u64, String), String>>,
    /// How many bytes were read.
    looked_at: u64,
}

impl Pieces {
    /// The beginning of a text with those of the files in it, if it can be had as a whole.
    fn beginning(
        &mut self,
        text: &str,
        config: &ConfigFile,
        name: &str,
    ) -> Result<String, Finding> {
        let path = &config.path;
        let mut whole = String::new();
        let mut length = 0;
        for part in parts(text) {
            let (size, beginning) = match part {
                Part::Text(text) => (text.len() as u64, text),
                Part::File(file) => {
                    let file = located(file, path, config.home.as_deref());
                    let piece = self.piece(&file);
                    let (size, beginning) =
                        piece.as_ref().map_err(|why| unreadable(path, name, &file, why))?;
                    (*size, beginning.as_str())
                }
            };
            length += size;
            if length > files::MOST_BYTES {
                return Err(too_large(path, name));
            }
            let room = BEGINNING.saturating_sub(whole.len());
            whole.extend(beginning.chars().take(room));
        }
        Ok(whole)
    }

    fn piece(&mut self, file: &Path) -> &Result<(u64, String), String> {
        // However often it is named, and in however many spellings.
        let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        if !self.known.contains_key(&real) {
            let found = match files::read(file) {
                _ if self.looked_at > MOST_LOOKED_AT => {
                    Err(format!("together they are larger than {} MiB", MOST_LOOKED_AT >> 20))
                }
                Ok(text) => {
                    let text = text.text.trim_end();
                    self.looked_at += text.len() as u64;
                    Ok((text.len() as u64, text.chars().take(BEGINNING).collect()))
                }
                Err(finding) => Err(finding.message),
            };
            self.known.insert(real.clone(), found);
        }
        &self.known[&real]
    }
}

/// The text of an entity with those of the files in it: `{file:./prompts/x.md}` is beside the
/// settings.
pub(crate) fn filled(entity: &Entity, text: &str, home: Option<&Path>) -> Result<String, Finding> {
    let path = entity.origin.path.clone().unwrap_or_default();
    let mut whole = String::new();
    for part in parts(text) {
        match part {
            Part::Text(text) => whole.push_str(text),
            Part::File(file) => {
                let file = located(file, &path, home);
                let text = files::read(&file)
                    .map_err(|finding| unreadable(&path, &entity.name, &file, &finding.message))?;
                whole.push_str(text.text.trim_end());
            }
        }
        if whole.len() as u64 > files::MOST_BYTES {
            return Err(too_large(&path, &entity.name));
        }
    }
    Ok(whole)
}

fn unreadable(path: &Path, name: &str, file: &Path, why: &str) -> Finding {
    let message = format!("`{name}` takes its text from {}, left out: {why}", file.display());
    Finding::odd(path, message, "mend the path")
}

fn too_large(path: &Path, name: &str) -> Finding {
    let message = format!("`{name}` is larger than {} KiB", files::MOST_BYTES / 1024);
    Finding::odd(path, message, "take shorter files")
}

/// A part of a text in the settings.
enum Part<'t> {
    Text(&'t str),
    /// The path of a file.
    File(&'t str),
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut parts, mut rest) = (vec![], text);
    while let Some((before, behind)) = rest.split_once(MARK) {
        let Some((file, after)) = behind.split_once('}') else { break };
        parts.extend([Part::Text(before), Part::File(file.trim())]);
        rest = after;
    }
    parts.push(Part::Text(rest));
    parts
}

/// Where a file is that is named in the settings.
fn located(file: &str, settings: &Path, home: Option<&Path>) -> PathBuf {
    let at_home = file.strip_prefix("~/").and_then(|rest| Some(home?.join(rest)));
    at_home.unwrap_or_else(|| settings.parent().unwrap_or(Path::new("")).join(file))
}
