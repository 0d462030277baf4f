//! The tools that an entity may use, as they were written.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::entity::Provider;
use crate::normal::is_yes;
use crate::permission::{self, Decision};
use crate::tools::{self, Meaning};

/// The tools that an entity may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// Only these, when there is such a list. A rule stands in parentheses: `bash(git:*)`.
    pub only: Option<Vec<String>>,
    /// None of these.
    pub without: Vec<String>,
    /// Ordered decisions, as in OpenCode's `permission`. In each layer the last one that fits a
    /// use holds, and every layer has to allow it. The first layer is the entity's own.
    pub layers: Vec<Vec<Decision>>,
    /// Names that are not known; they allow nothing.
    pub unknown: Vec<String>,
    /// Names of what only the file's own program can do.
    pub elsewhere: Vec<String>,
    /// The keys that restrict, such as `tools` or `permission`.
    pub by: Vec<&'static str>,
    /// Whether something about tools could not be understood and is denied therefore.
    pub unclear: bool,
}

impl Tools {
    /// Reads what stands behind `tools` in a file of a provider; the error says what is wrong.
    pub fn read(value: &Value, provider: Provider) -> Result<Self, String> {
        let reader = Reader { provider };
        match value {
            // A restriction without a value does not mean everything.
            Value::Null => Err("nothing stands behind it".to_owned()),
            Value::String(text) => reader.text(text),
            Value::Array(items) => reader.list(items),
            Value::Object(fields) if fields.is_empty() => Err("it is empty".to_owned()),
            Value::Object(fields) => match provider {
                Provider::OpenCode | Provider::Atomic => Ok(Self::switched(fields)),
                Provider::Copilot => reader.keys(fields),
                Provider::Claude => Err("a mapping is not a list of tools".to_owned()),
            },
            Value::Bool(_) | Value::Number(_) => Err(format!("{value} is not a list of tools")),
        }
    }

    /// Switches of single tools, as OpenCode has them: everything that is not named stays on.
    fn switched(fields: &Map<String, Value>) -> Self {
        let mut tools = Self::default();
        let problems = tools.decide(Some(fields), None);
        tools.unclear = !problems.is_empty();
        tools
    }

    /// Adds a layer of decisions; what could not be understood is denied and returned.
    pub(crate) fn decide(
        &mut self,
        switches: Option<&Map<String, Value>>,
        permission: Option<&Value>,
    ) -> Vec<String> {
        let decided = permission::read(switches, permission);
        self.unknown.extend(decided.layer.iter().filter_map(Decision::unknown));
        self.layers.push(decided.layer);
        decided.problems
    }

    /// Returns the restriction that allows no tool.
    pub(crate) fn none() -> Self {
        Self { only: Some(vec![]), ..Self::default() }
    }

    /// Returns the restriction that allows no tool because the written one is not understood.
    pub(crate) fn denied() -> Self {
        Self { unclear: true, ..Self::none() }
    }

    /// The same without those that another list names.
    pub(crate) fn except(mut self, other: Self) -> Self {
        self.unknown.extend(other.unknown);
        let Some(names) = other.only else { return Self::none() };
        let companions: Vec<String> = names.iter().flat_map(|name| companions(name)).collect();
        let is_new = |name: &String| !names.contains(name);
        self.without.extend(companions.into_iter().filter(is_new));
        self.without.extend(names.iter().cloned());
        self.without_forbidden()
    }

    /// Adds the restrictions of another entity: a use has to be allowed by both.
    pub(crate) fn restrict(&mut self, other: &Self) {
        let new = other.layers.iter().filter(|layer| !self.layers.contains(layer));
        let new: Vec<Vec<Decision>> = new.cloned().collect();
        self.layers.extend(new);
        self.without.extend(other.without.iter().cloned());
        self.only = match (self.only.take(), &other.only) {
            (Some(mine), Some(theirs)) => {
                Some(mine.into_iter().filter(|name| theirs.contains(name)).collect())
            }
            (mine, theirs) => mine.or_else(|| theirs.clone()),
        };
        self.unclear |= other.unclear;
        for key in &other.by {
            if !self.by.contains(key) {
                self.by.push(key);
            }
        }
    }

    /// Whether nothing is restricted.
    pub fn is_everything(&self) -> bool {
        let is_open = |layer: &Vec<Decision>| layer.iter().all(|decision| decision.allowed);
        self.only.is_none() && self.without.is_empty() && self.layers.iter().all(is_open)
    }

    /// Whether some use of one of our tools is allowed.
    pub fn may_use(&self, ours: &str) -> bool {
        let is_it = |name: &String| tool(name) == ours;
        let off = self.without.iter().any(|name| !name.contains('(') && is_it(name));
        let is_in = |only: &Vec<String>| only.iter().any(is_it);
        let by_layers = self.layers.iter().all(|layer| permission::may_use(layer, ours));
        !off && self.only.as_ref().is_none_or(is_in) && by_layers
    }

    /// Whether files can be changed.
    pub fn may_edit(&self) -> bool {
        ["edit", "write", "multiedit", "patch"].iter().any(|tool| self.may_use(tool))
    }

    /// Whether commands can be run.
    pub fn may_run(&self) -> bool {
        self.may_use("bash")
    }

    /// Whether files can be read. A shell can read them, too.
    pub fn may_read(&self) -> bool {
        self.may_use("read") || self.may_run()
    }

    /// Takes out of the list what is forbidden. Without a rule, a tool is forbidden whatever rule
    /// allows some of it.
    fn without_forbidden(mut self) -> Self {
        if self.without.is_empty() {
            return self;
        }
        let taken: BTreeSet<String> = self.without.iter().map(|name| whole(name)).collect();
        if let Some(only) = &mut self.only {
            only.retain(|name| !taken.contains(&whole(name)) && !taken.contains(&tool(name)));
        }
        self
    }
}

/// Reads names as a provider means them.
struct Reader {
    provider: Provider,
}

impl Reader {
    fn text(&self, text: &str) -> Result<Tools, String> {
        let names = split(text)?;
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        let is_sentence = words.first().is_some_and(|word| word.eq_ignore_ascii_case("all"))
            || words.iter().any(|word| EXCEPTIONS.contains(&word.to_lowercase().as_str()));
        match words.as_slice() {
            [all] | [all, "tools"] if all.eq_ignore_ascii_case("all") => Ok(Tools::default()),
            _ if is_sentence && !text.contains(',') => Err(format!("`{text}` is a sentence")),
            [none] if none.eq_ignore_ascii_case("none") => Ok(Tools::none()),
            _ => self.only(&names),
        }
    }

    fn list(&self, items: &[Value]) -> Result<Tools, String> {
        let (mut names, mut off) = (vec![], vec![]);
        for item in items {
            match item {
                Value::Null => {}
                Value::String(text) => names.push(text.clone()),
                Value::Object(fields) => {
                    for (name, value) in fields {
                        let rule = value.as_str().filter(|_| name.contains('('));
                        match (rule, is_yes(value)) {
                            // `- Bash(git add: x)` has a colon in it.
                            (Some(rule), _) => names.push(format!("{name}: {rule}")),
                            (None, Some(true)) => names.push(name.clone()),
                            (None, Some(false)) => off.push(name.clone()),
                            (None, None) => {
                                let problem = "is neither true nor false";
                                return Err(format!("`{name}: {value}` {problem}"));
                            }
                        }
                    }
                }
                Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                    return Err(format!("{item} is not the name of a tool"));
                }
            }
        }
        // A comma in a rule parts what belongs together, so they are put together first.
        let names = split_at(&names.join(", "), is_comma)?;
        let only = match names.is_empty() && !off.is_empty() {
            true => Tools::default(),
            false => self.only(&names)?,
        };
        Ok(if off.is_empty() { only } else { only.except(self.only(&off)?) })
    }

    /// Keys as a list of tools, as in VS Code. Beside `*` a key with `false` is an exception.
    fn keys(&self, fields: &Map<String, Value>) -> Result<Tools, String> {
        let mut listed = Keys::default();
        listed.read(fields, "")?;
        let tools = self.only(&listed.on)?;
        match tools.only.is_none() && !listed.off.is_empty() {
            true => Ok(tools.except(self.only(&listed.off)?)),
            false => Ok(tools),
        }
    }

    /// Only the named tools. A name for all tools has to stand alone: beside others the author may
    /// have meant an exception, as in `["*", "!Bash"]`.
    fn only(&self, names: &[String]) -> Result<Tools, String> {
        let mut tools = Tools { only: Some(vec![]), ..Tools::default() };
        let (mut only, mut seen) = (vec![], BTreeSet::new());
        let names: Vec<String> = names.iter().map(|name| lower(name)).collect();
        if let Some(all) = names.iter().find(|name| is_all(name)) {
            return match names.iter().find(|name| !is_all(name)) {
                None => Ok(Tools::default()),
                Some(other) => Err(format!("`{all}` stands beside `{other}`")),
            };
        }
        for name in names {
            let rule = name.find('(').map_or("", |at| &name[at..]);
            let bare = name.split_once('(').map_or(name.as_str(), |(bare, _)| bare).trim();
            let meant = match tools::meaning(self.provider, bare) {
                // No tool has a name of several words. In VS Code a server may have one.
                _ if self.provider != Provider::Copilot
                    && bare.contains(char::is_whitespace)
                    && !bare.contains('/') =>
                {
                    tools.unknown.push(bare.to_owned());
                    vec![bare.to_owned()]
                }
                Meaning::Tools(meant) => meant,
                Meaning::Elsewhere => {
                    tools.elsewhere.push(name);
                    continue;
                }
                // The name stays, so that a list of such names is not an empty one.
                Meaning::Unknown => {
                    tools.unknown.push(bare.to_owned());
                    vec![bare.to_owned()]
                }
            };
            let all = meant.into_iter().map(|tool| format!("{tool}{rule}"));
            only.extend(all.filter(|name| seen.insert(name.clone())));
        }
        tools.only = Some(only);
        Ok(tools)
    }
}

impl fmt::Display for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layers: Vec<String> =
            self.layers.iter().map(|layer| permission::shown(layer)).collect();
        let layers: Vec<&str> =
            layers.iter().map(String::as_str).filter(|shown| *shown != "all").collect();
        let listed = match (&self.only, self.without.as_slice()) {
            (Some(only), _) if only.is_empty() || layers.contains(&"none") => {
                return f.write_str("none");
            }
            (None, _) if layers.contains(&"none") => return f.write_str("none"),
            (Some(only), without) => {
                // Of what is not in the list nothing has to be said.
                let named: BTreeSet<String> = only.iter().map(|name| tool(name)).collect();
                let but = without.iter().filter(|name| named.contains(&tool(name)));
                let but: Vec<&str> = but.map(String::as_str).collect();
                let but =
                    if but.is_empty() { String::new() } else { format!(" but {}", but.join(", ")) };
                format!("{}{but}", only.join(", "))
            }
            (None, []) if layers.is_empty() => return f.write_str("all"),
            (None, []) => String::new(),
            (None, without) => {
                // A tool that goes with another one need not be named beside it.
                let implied: BTreeSet<String> =
                    without.iter().flat_map(|name| companions(name)).collect();
                let named = without.iter().filter(|name| !implied.contains(*name));
                let named: Vec<&str> = named.map(String::as_str).collect();
                format!("all but {}", named.join(", "))
            }
        };
        let all: Vec<&str> =
            [listed.as_str()].into_iter().filter(|it| !it.is_empty()).chain(layers).collect();
        f.write_str(&all.join("; of these "))
    }
}

/// A tool by the name we have for it, without its rule.
fn tool(name: &str) -> String {
    let bare = name.split_once('(').map_or(name, |(bare, _)| bare).trim();
    tools::find(bare).map_or_else(|| bare.to_owned(), |tool| tool.name.to_owned())
}

/// Tools that do the same as another one. An agent that must not use it must not use them either.
fn companions(name: &str) -> Vec<String> {
    let others: &[&str] = match tool(name).as_str() {
        "bash" => &["monitor"],
        "edit" => &["multiedit", "notebookedit"],
        _ => &[],
    };
    let rule = name.find('(').map_or("", |at| &name[at..]);
    others.iter().map(|other| format!("{other}{rule}")).collect()
}

/// The same with its rule.
fn whole(name: &str) -> String {
    let rule = name.find('(').map_or("", |at| &name[at..]);
    format!("{}{rule}", tool(name))
}

/// A tool in lower case; the rule in parentheses stays as it is.
fn lower(tool: &str) -> String {
    let tool = tool.trim();
    match tool.find('(') {
        Some(rule) => format!("{}{}", tool[..rule].trim_end().to_lowercase(), &tool[rule..]),
        None => tool.to_lowercase(),
    }
}

/// Words that begin an exception. Of a sentence with one of them the opposite may be meant.
const EXCEPTIONS: [&str; 6] = ["no", "not", "but", "except", "without", "never"];

/// Whether a name in lower case stands for all tools.
fn is_all(name: &str) -> bool {
    matches!(name, "*" | "all" | "all tools")
}

/// The names in a mapping, as VS Code writes them: `{read: true, search: {codebase: true}}`. A tool
/// in a set is called by both names, `search/codebase`.
#[derive(Default)]
struct Keys {
    on: Vec<String>,
    off: Vec<String>,
}

impl Keys {
    fn read(&mut self, fields: &Map<String, Value>, set: &str) -> Result<(), String> {
        for (key, value) in fields {
            let name = format!("{set}{}", key.trim());
            match (value, is_yes(value)) {
                (Value::Null, _) | (_, Some(true)) => self.on.push(name),
                (_, Some(false)) => self.off.push(name),
                (Value::Object(inner), None) if !inner.is_empty() && set.is_empty() => {
                    self.read(inner, &format!("{name}/"))?;
                }
                (_, None) => return Err(format!("`{name}: {value}` is neither true nor false")),
            }
        }
        Ok(())
    }
}

/// Names between commas, or between spaces where there are no commas; both count only outside of
/// parentheses. The error names a parenthesis that is not closed.
fn split(text: &str) -> Result<Vec<String>, String> {
    let by_comma = split_at(text, is_comma)?;
    if by_comma.len() > 1 { Ok(by_comma) } else { split_at(text, char::is_whitespace) }
}

fn is_comma(c: char) -> bool {
    matches!(c, ',' | ';' | '\n')
}

fn split_at(text: &str, is_end: fn(char) -> bool) -> Result<Vec<String>, String> {
    let text = text.trim();
    let text =
        text.strip_prefix('[').map_or(text, |inner| inner.strip_suffix(']').unwrap_or(inner));
    let (mut depth, mut parts) = (0_usize, vec![String::new()]);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && is_end(c) {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    if depth > 0 {
        return Err(format!("a parenthesis in `{text}` is not closed"));
    }
    let mut names: Vec<String> = vec![];
    for part in &parts {
        // Lists that were put on one line still have their dashes.
        let part = part.trim();
        let part = part.strip_prefix("- ").unwrap_or(part).trim_matches(['"', '\'', '`']);
        match (part, names.last_mut()) {
            ("" | "-", _) => {}
            // A blank before a rule: `Bash (git:*)`.
            (rule, Some(before)) if rule.starts_with('(') && !before.contains('(') => {
                before.push_str(rule);
            }
            (rule, before) if rule.starts_with('(') => {
                let tool = before.and_then(|before| before.split_once('('));
                let (tool, _) = tool.ok_or_else(|| format!("`{rule}` has no tool before it"))?;
                let name = format!("{}{rule}", tool.trim_end());
                names.push(name);
            }
            (name, _) => names.push(name.to_owned()),
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Tools;
    use crate::entity::Provider;

    #[test]
    fn tools_are_one_list_however_they_are_written() {
        for (value, shown) in [
            (json!("*"), "all"),
            (json!(["all"]), "all"),
            (json!([]), "none"),
            (json!(""), "none"),
            (json!("Read, Write"), "read, write"),
            (json!("Read Write"), "read, write"),
            (json!("Bash(git:*), Edit"), "bash(git:*), edit"),
            (json!("Bash(npm run test, npm run lint)"), "bash(npm run test, npm run lint)"),
            (json!("[Read, Grep"), "read, grep"),
            (json!(["Read", "read", "Bash(Git:*)"]), "read, bash(Git:*)"),
            (json!(["Read, Write"]), "read, write"),
            (json!(["Bash(a", "b)", "Read"]), "bash(a, b), read"),
            (json!([{"Bash(git add": "*)"}, null]), "bash(git add: *)"),
            (json!([{"bash": true}, {"write": false}]), "bash"),
            (json!([{"bash": true}, "Read, bash"]), "bash, read"),
            (json!("All tools"), "all"),
            (json!("None"), "none"),
            (json!("- Read - Edit"), "read, edit"),
            (json!("mcp__github__create_issue"), "mcp__github__create_issue"),
            (json!("Bash (git:*)"), "bash(git:*)"),
            (json!("Bash (git:*) Read"), "bash(git:*), read"),
            (json!("Read, Bash (git:*), (npm:*)"), "read, bash(git:*), bash(npm:*)"),
            (json!(["Bash (git:*)"]), "bash(git:*)"),
            (json!(["Bash", "(git:*)"]), "bash(git:*)"),
            (json!(["Read Write"]), "read write"),
            (json!(["*", "All"]), "all"),
            (json!(["all tools"]), "all"),
            (json!([{"*": true}, {"bash": false}]), "all but bash"),
        ] {
            assert_eq!(
                Tools::read(&value, Provider::Claude).map(|tools| tools.to_string()),
                Ok(shown.to_owned()),
                "{value}"
            );
        }
        let wrong: [(Value, &str); 16] = [
            (json!("(git:*)"), "`(git:*)` has no tool before it"),
            (json!("all, but no Bash"), "`all` stands beside `but no bash`"),
            (json!("Read, All"), "`all` stands beside `read`"),
            (json!("*, -Bash"), "`*` stands beside `-bash`"),
            (json!(["*", "!Bash"]), "`*` stands beside `!bash`"),
            (json!("everything but Bash"), "`everything but Bash` is a sentence"),
            (json!("no Bash"), "`no Bash` is a sentence"),
            (json!({"bash": true}), "a mapping is not a list of tools"),
            (json!({"read": true, "bash": false}), "a mapping is not a list of tools"),
            (json!(null), "nothing stands behind it"),
            (json!("All tools except Bash"), "`All tools except Bash` is a sentence"),
            (json!("Bash(git"), "a parenthesis in `Bash(git` is not closed"),
            (json!(7), "7 is not a list of tools"),
            (json!([7]), "7 is not the name of a tool"),
            (json!([{"bash": 7}]), "`bash: 7` is neither true nor false"),
            (json!({}), "it is empty"),
        ];
        for (value, message) in wrong {
            assert_eq!(Tools::read(&value, Provider::Claude), Err(message.to_owned()));
        }
    }

    /// OpenCode switches single tools, VS Code lists tools by keys.
    #[test]
    fn a_mapping_means_what_its_own_program_means_by_it() {
        for (value, switched, listed) in [
            (json!({"view": true, "write": false}), Ok("all but edit"), Ok("read, notebookread")),
            (json!({"view": true}), Ok("all"), Ok("read, notebookread")),
            (json!({"*": false}), Ok("none"), Ok("none")),
            (json!({"*": false, "read": "yes"}), Ok("read"), Ok("read, notebookread")),
            (json!({"*": true, "webfetch": false}), Ok("all but webfetch"), Ok("all but webfetch")),
            (json!({"*": true, "read": true}), Ok("all"), Err(())),
            (json!({"read": null}), Ok("all but read"), Ok("read, notebookread")),
            (json!({"bash": {"git": 7}}), Ok("all but bash"), Err(())),
            (json!({"bash": {}}), Ok("all but bash"), Err(())),
            (json!({"bash": "ask"}), Ok("all but bash"), Err(())),
        ] {
            for (provider, shown) in [
                (Provider::OpenCode, switched),
                (Provider::Atomic, switched),
                (Provider::Copilot, listed),
            ] {
                let read = Tools::read(&value, provider).map(|tools| tools.to_string());
                let read = read.as_deref().map_err(|_| ());
                assert_eq!(read, shown, "{provider:?}: {value}");
            }
        }
        let nested = json!({"read": true, "search": {"codebase": true, "usages": false}});
        let nested = Tools::read(&nested, Provider::Copilot).unwrap();
        assert!(nested.may_use("read") && nested.may_use("grep"), "{nested}");
        assert!(!nested.may_edit() && !nested.may_run(), "{nested}");
    }
}
