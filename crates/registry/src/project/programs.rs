//! Definitions in the files of agent programs: Claude Code, OpenCode, GitHub Copilot.
//!
//! The tables name what is known. Everything else in a program's folder counts as well, by its
//! name: a program may learn to load a file that no table names.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use serde_json::{Map, Value};

use super::{
    Definition, DefinitionKind as Kind, ProjectFiles, Reach, commands, digest, folders_between,
    number, readable, setting_lines,
};
use crate::files;

/// Files of settings, each key of which is a definition.
const SETTINGS: &[&str] = &[
    ".claude/settings.json",
    ".claude/settings.local.json",
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
    ".github/copilot/settings.json",
    ".github/copilot/settings.local.json",
    ".copilot/config.json",
    ".copilot/settings.json",
];

/// Keys of settings whose values are definitions by name.
const BY_NAME: &[(&str, Kind)] = &[
    ("hooks", Kind::Hook),
    ("mcp", Kind::McpServer),
    ("mcpServers", Kind::McpServer),
    ("lsp", Kind::LanguageServer),
    ("formatter", Kind::LanguageServer),
];

/// Keys of settings that change nothing but the look.
const NOT_DEFINITIONS: &[&str] = &["$schema", "theme", "keybinds", "tui"];

/// Keys of settings with agents and commands, each of which is a definition: it has a prompt, a model
/// and restrictions, and OpenCode 1.18.33 replaces `{file:…}` and `{env:…}` anywhere in its texts.
const ENTITIES: &[&str] = &["agent", "command"];

/// Keys of settings that say how a provider is reached. A project's are never used, trusted or not;
/// they count all the same, so that a program is not shown the file before the project is trusted.
const NEVER_USED: &[&str] = &[
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "gcpAuthRefresh",
    "otelHeadersHelper",
    "provider",
    "enabled_providers",
    "disabled_providers",
];

/// Whether a definition is not used, also where the project is trusted.
pub fn is_never_used(definition: &Definition) -> bool {
    definition.kind == Kind::ProgramSetting && NEVER_USED.contains(&definition.name.as_str())
}

/// Files with servers, and the key under which they stand.
const SERVERS: &[(&str, &str, Kind)] = &[
    (".mcp.json", "mcpServers", Kind::McpServer),
    (".github/mcp.json", "mcpServers", Kind::McpServer),
    (".copilot/mcp-config.json", "mcpServers", Kind::McpServer),
    (".vscode/mcp.json", "servers", Kind::McpServer),
    (".github/lsp.json", "lspServers", Kind::LanguageServer),
    (".lsp.json", "lspServers", Kind::LanguageServer),
];

/// Folders with code, every file of which is a definition.
const CODE: &[(&str, Kind)] = &[
    (".github/hooks", Kind::Hook),
    (".opencode/plugin", Kind::Plugin),
    (".opencode/plugins", Kind::Plugin),
    (".opencode/tool", Kind::Plugin),
    (".opencode/tools", Kind::Plugin),
    (".github/extensions", Kind::Plugin),
];

/// Texts, and folders of texts, that programs read by themselves: into every conversation, or, as
/// their skills, commands and agents, into a list that every conversation begins with.
const INSTRUCTIONS: &[&str] = &[
    ".claude/agents",
    ".claude/commands",
    ".claude/skills",
    ".opencode/agent",
    ".opencode/agents",
    ".opencode/command",
    ".opencode/commands",
    ".opencode/skill",
    ".opencode/skills",
    ".github/agents",
    ".github/skills",
    ".copilot/agents",
    ".copilot/skills",
    ".agents/skills",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "AGENTS.override.md",
    // OpenCode 1.18.33 reads this one, Copilot 1.0.102 the others.
    "CONTEXT.md",
    "GEMINI.md",
    "agents.md",
    "claude.md",
    "gemini.md",
    ".claude/CLAUDE.md",
    ".claude/rules",
    ".github/copilot-instructions.md",
    ".github/instructions",
    ".opencode/AGENTS.md",
];

/// Folders of programs, and what in them is no definition: the registry reads it, a definition
/// leads to it, or it is the program's own.
const FOLDERS: &[(&str, &[&str])] = &[
    (".claude", &["hooks", "worktrees", ".gitignore"]),
    (".opencode", &["node_modules", ".gitignore", "bun.lock", "package-lock.json"]),
    (".copilot", &[]),
    (".github/copilot", &[]),
    (".agents", &[]),
];

/// How deep in a project's folder code is looked for.
const DEEPEST: usize = 12;

/// The largest number of files of code that are read.
const MOST_CODE: usize = 5_000;

/// The largest number of names in a folder that are definitions of their own.
const MOST_NAMES: usize = 1_000;

/// The largest number of files behind these limits whose sizes and times are looked at.
const MOST_REST: usize = 100_000;

/// The definitions for agent programs in a folder and those above it, up to `top`. Paths in the
/// repository are from its root; without git `top` may lie above the root, and paths there are
/// absolute.
pub fn program_definitions(root: &Path, top: &Path, folder: &Path) -> Vec<Definition> {
    let mut found = vec![];
    let files = ProjectFiles::at_root(top).ok();
    for folder in folders_between(top, folder) {
        let seen = BTreeSet::new();
        let mut reader = Reader { root, files: files.as_ref(), folder, seen, found: vec![] };
        SETTINGS.iter().for_each(|file| reader.settings(file));
        SERVERS.iter().for_each(|(file, key, kind)| reader.servers(file, key, *kind));
        CODE.iter().for_each(|(folder, kind)| reader.code(folder, *kind));
        INSTRUCTIONS.iter().for_each(|name| reader.instructions(name));
        FOLDERS.iter().for_each(|(folder, known)| reader.others(folder, known));
        let place = folder.strip_prefix(root).unwrap_or(folder);
        found.extend(reader.found.into_iter().map(|one| one.within(place, Reach::Below)));
    }
    number(&mut found);
    found
}

struct Reader<'r> {
    root: &'r Path,
    files: Option<&'r ProjectFiles>,
    folder: &'r Path,
    /// Folders that were looked through. Links to folders above would lead round in circles.
    seen: BTreeSet<PathBuf>,
    found: Vec<Definition>,
}

impl Reader<'_> {
    fn add(&mut self, kind: Kind, file: &str, name: &str, value: &Value) {
        let is_setting = kind == Kind::ProgramSetting;
        let lines = if is_setting { setting_lines(value) } else { commands(value) };
        let definition = Definition::new(kind, self.relative(file), name, &value.to_string());
        let is_never_used = is_never_used(&definition);
        let lines = if is_never_used { vec!["never used".to_owned()] } else { lines };
        self.found.push(definition.listing(lines).keeping(&readable(value)));
    }

    /// An agent or a command in OpenCode's settings. The question shows the beginning of its texts.
    fn add_entity(&mut self, file: &str, name: String, value: &Value) {
        const SHOWN: usize = 200;
        let text = readable(value);
        let kind = Kind::ProgramSetting;
        let definition = Definition::new(kind, self.relative(file), name, &value.to_string());
        let detail: String = match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text.clone(),
        };
        self.found.push(definition.detailed(detail).keeping(&text));
    }

    fn relative(&self, file: &str) -> PathBuf {
        let path = self.folder.join(file);
        path.strip_prefix(self.root).unwrap_or(&path).to_owned()
    }

    /// The text of a file in the repository.
    fn read(&self, file: &str) -> Result<String, ()> {
        let files = self.files.ok_or(())?;
        let read = files::read_in(&self.folder.join(file), Some(files));
        read.map(|text| text.text).map_err(|_| ())
    }

    /// Where a link leads; nothing for a file. What lies outside of the repository is not read, so
    /// of a link out of it the target counts.
    fn link_target(&self, file: &str) -> String {
        let target = fs::read_link(self.folder.join(file));
        target.map(|target| format!("link to {}", target.display())).unwrap_or_default()
    }

    /// What counts of a file that is not read: where a link leads, or else its size and time. A
    /// change of a file that is too large to be read has to be noticed as well.
    fn unreadable(&self, file: &str) -> String {
        let target = self.link_target(file);
        if !target.is_empty() {
            return target;
        }
        let about = fs::symlink_metadata(self.folder.join(file));
        about.map_or_else(
            |_| String::new(),
            |about| format!("{} bytes, {}.{}", about.len(), about.mtime(), about.mtime_nsec()),
        )
    }

    fn is_there(&self, file: &str) -> bool {
        fs::symlink_metadata(self.folder.join(file)).is_ok()
    }

    /// The object in a file. One that cannot be read is a definition as a whole: a program may
    /// read what we cannot.
    fn object(&mut self, file: &str) -> Option<Map<String, Value>> {
        if !self.is_there(file) {
            return None;
        }
        let text = self.read(file).unwrap_or_else(|()| self.unreadable(file));
        let bare = text.strip_prefix('\u{feff}').unwrap_or(&text);
        match jsonc_parser::parse_to_serde_value(bare, &ParseOptions::default()) {
            Ok(Value::Object(fields)) => Some(fields),
            _ => {
                let whole = Definition::new(Kind::OtherFile, self.relative(file), file, &text);
                self.found.push(whole.detailed("cannot be read as JSON"));
                None
            }
        }
    }

    fn settings(&mut self, file: &str) {
        for (key, value) in self.object(file).into_iter().flatten() {
            let by_name = BY_NAME.iter().find(|(name, _)| *name == key);
            match (by_name, value) {
                (Some((_, kind)), Value::Object(all)) => {
                    all.iter().for_each(|(name, value)| self.add(*kind, file, name, value));
                }
                (Some((_, kind)), value) => self.add(*kind, file, &key, &value),
                (None, Value::Object(all)) if ENTITIES.contains(&key.as_str()) => {
                    for (name, value) in &all {
                        self.add_entity(file, format!("{key}.{name}"), value);
                    }
                }
                (None, Value::Array(all)) if key == "plugin" => {
                    for value in &all {
                        let name = value.as_str().unwrap_or(&key).to_owned();
                        self.add(Kind::Plugin, file, &name, value);
                    }
                }
                (None, _) if NOT_DEFINITIONS.contains(&key.as_str()) => {}
                (None, value) => self.add(Kind::ProgramSetting, file, &key, &value),
            }
        }
    }

    fn servers(&mut self, file: &str, key: &str, kind: Kind) {
        let Some(mut fields) = self.object(file) else { return };
        match fields.remove(key) {
            Some(Value::Object(all)) => {
                all.iter().for_each(|(name, value)| self.add(kind, file, name, value));
            }
            Some(value) => self.add(kind, file, key, &value),
            // Some versions read the servers without a key around them.
            None => fields.iter().for_each(|(name, value)| self.add(kind, file, name, value)),
        }
    }

    /// Files of code in a folder and below it.
    fn code(&mut self, folder: &str, kind: Kind) {
        let real = self.folder.join(folder).canonicalize().unwrap_or_default();
        if !self.seen.insert(real) {
            return;
        }
        let is_deep = folder.matches('/').count() > DEEPEST;
        if is_deep || self.found.len() > MOST_CODE {
            self.rest(folder, kind, &[String::new()]);
            return;
        }
        for name in self.names_in(folder, kind) {
            let file = format!("{folder}/{name}");
            let path = self.folder.join(&file);
            let is_out = self.files.is_none_or(|files| files::leads_out(files, &path));
            if !is_out && path.is_dir() {
                self.code(&file, kind);
                continue;
            }
            let text = self.read(&file).unwrap_or_else(|()| self.unreadable(&file));
            let definition = Definition::new(kind, self.relative(&file), &name, &text);
            let lines = serde_json::from_str::<Value>(&text).map(|value| commands(&value));
            self.found.push(definition.listing(lines.unwrap_or_default()));
        }
    }

    /// Instructions count by being there: a question about every edit of a text helps nobody.
    fn instructions(&mut self, name: &str) {
        if self.is_there(name) {
            self.found.push(Definition::new(Kind::Instructions, self.relative(name), name, ""));
        }
    }

    /// What else is in the folder of a program.
    fn others(&mut self, folder: &str, known: &[&str]) {
        for name in self.names_in(folder, Kind::OtherFile) {
            let file = format!("{folder}/{name}");
            let is_read = SETTINGS.contains(&file.as_str())
                || SERVERS.iter().any(|(server, _, _)| *server == file)
                || CODE.iter().any(|(code, _)| *code == file)
                || INSTRUCTIONS.contains(&file.as_str());
            if !is_read && !known.contains(&name.as_str()) {
                self.found.push(Definition::new(Kind::OtherFile, self.relative(&file), &file, ""));
            }
        }
    }

    /// The names in a folder. Beyond the first [`MOST_NAMES`] the rest is one definition.
    fn names_in(&mut self, folder: &str, kind: Kind) -> Vec<String> {
        let path = self.folder.join(folder);
        if self.files.is_none_or(|files| files::leads_out(files, &path)) {
            // A program follows the link, so the link itself is what needs trust.
            let target = self.link_target(folder);
            let link = Definition::new(kind, self.relative(folder), folder, &target);
            self.found.push(link.detailed(format!("{target}, out of the repository")));
            return vec![];
        }
        let entries = fs::read_dir(self.folder.join(folder)).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        if names.len() > MOST_NAMES {
            let rest = names.split_off(MOST_NAMES);
            self.rest(folder, kind, &rest);
        }
        names
    }

    /// Adds one definition for files that are not read one by one: their names, sizes and
    /// modification times count. Of other files only the names count.
    fn rest(&mut self, folder: &str, kind: Kind, names: &[String]) {
        let mut open: Vec<PathBuf> =
            names.iter().map(|name| self.folder.join(folder).join(name)).collect();
        let mut lines = vec![];
        while let Some(path) = open.pop().filter(|_| lines.len() < MOST_REST) {
            let Ok(about) = fs::symlink_metadata(&path) else { continue };
            let name = path.strip_prefix(self.folder).unwrap_or(&path).as_os_str();
            let name = name.as_encoded_bytes().escape_ascii();
            if kind == Kind::OtherFile {
                lines.push(name.to_string());
                continue;
            }
            if about.is_dir() {
                let inside = fs::read_dir(&path).into_iter().flatten().flatten();
                let mut inside: Vec<PathBuf> = inside.map(|entry| entry.path()).collect();
                // In the same order each time, so that the same files are beyond the limit.
                inside.sort();
                open.extend(inside);
                continue;
            }
            let (size, seconds, nanos) = (about.len(), about.mtime(), about.mtime_nsec());
            lines.push(format!("{name} {size} {seconds}.{nanos}"));
        }
        lines.sort();
        let text = digest(&lines.join("\n"));
        let rest =
            Definition::new(kind, self.relative(folder), format!("{folder}, the rest"), &text);
        self.found.push(rest.detailed(format!("{} more files", lines.len())));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::program_definitions;
    use crate::project::DefinitionId;

    /// The ids and hashes of what one settings file defines.
    fn remembered(settings: &Value) -> BTreeMap<DefinitionId, String> {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::write(root.join("opencode.json"), settings.to_string()).unwrap();
        let found = program_definitions(&root, &root, &root);
        let remembered: BTreeMap<DefinitionId, String> =
            found.iter().map(|one| (one.id(), one.digest.clone())).collect();
        assert_eq!(remembered.len(), found.len(), "two definitions share an id: {found:?}");
        remembered
    }

    /// A folder with many files has definitions for some of them, and one for the rest.
    #[test]
    fn a_change_is_noticed_in_a_folder_with_many_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let folder = root.join(".opencode/plugin");
        std::fs::create_dir_all(&folder).unwrap();
        for number in 0..2_500 {
            std::fs::write(folder.join(format!("{number}.js")), "").unwrap();
        }
        let found = || -> BTreeMap<DefinitionId, String> {
            let found = program_definitions(&root, &root, &root);
            found.iter().map(|one| (one.id(), one.digest.clone())).collect()
        };
        let mut before = found();
        assert_eq!(before.len(), 1_001);
        assert_eq!(found(), before);
        for name in ["0.js", "1500.js", "2499.js", "999.js", "998.js", "997.js", "a.js"] {
            std::fs::write(folder.join(name), name).unwrap();
            let after = found();
            assert_ne!(after, before, "{name}");
            before = after;
        }
    }

    fn settings() -> impl Strategy<Value = Value> {
        let plugins =
            [json!("x"), json!(["x", {}]), json!(["x", {"a": 1}]), json!({"b": 2}), json!(1)];
        let plugins = prop::collection::btree_set(0..plugins.len(), 0..4)
            .prop_map(move |all| all.into_iter().map(|at| plugins[at].clone()).collect::<Vec<_>>());
        let servers = prop::collection::btree_map("[a ]{1,2}", "[c ]{1,2}", 0..3);
        (plugins, servers.clone(), servers).prop_map(
            |(plugins, one, other)| json!({"plugin": plugins, "mcp": one, "mcpServers": other}),
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

        #[test]
        fn no_two_definitions_share_an_id(one in settings(), other in settings()) {
            let swapped = |value: &Value| {
                // Both keys define servers, so it does not matter under which of them one stands.
                let key = |key: &str| value[key].as_object().unwrap().clone();
                let mut servers: Vec<_> = key("mcp").into_iter().chain(key("mcpServers")).collect();
                servers.sort_by_key(|(name, value)| (name.clone(), value.to_string()));
                servers.dedup();
                (value["plugin"].clone(), servers)
            };
            let is_same = swapped(&one) == swapped(&other);
            prop_assert_eq!(remembered(&one) == remembered(&other), is_same);
        }
    }
}
