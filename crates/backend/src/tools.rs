//! What an agent may use.

use serde_json::Value;

/// What an agent may use, in the names of the backend's own program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRules {
    /// Only these, when there is such a list.
    pub only: Option<Vec<ToolRule>>,
    /// None of these.
    pub without: Vec<ToolRule>,
}

/// A tool, or some of its uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRule {
    /// The tool's name; `*` at its end stands for anything.
    pub tool: String,
    /// Which uses of it, such as `git:*` for a shell or `src/**` for a file; without it, all.
    pub uses: Option<String>,
}

impl ToolRule {
    /// Reads `Bash(git:*)` or `Bash`.
    pub fn read(text: &str) -> Self {
        match text.strip_suffix(')').and_then(|open| open.split_once('(')) {
            Some((tool, uses)) => Self::new(tool, Some(uses)),
            None => Self::new(text, None),
        }
    }

    /// A tool, or some of its uses.
    pub fn new(tool: &str, uses: Option<&str>) -> Self {
        let everything = |uses: &&str| matches!(*uses, "" | "*" | ":*");
        let uses = uses.map(str::trim).filter(|uses| !everything(uses)).map(str::to_owned);
        Self { tool: tool.trim().to_owned(), uses }
    }

    fn is_about(&self, tool: &str) -> bool {
        match self.tool.strip_suffix('*') {
            Some(start) => {
                tool.get(..start.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(start))
            }
            None => self.tool.eq_ignore_ascii_case(tool),
        }
    }

    /// Whether this use of the tool is surely one the rule is about.
    fn covers(&self, input: &Value) -> bool {
        let Some(uses) = &self.uses else { return true };
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        if let Some(command) = text("command") {
            return is_plain(command) && starts_like(uses, command);
        }
        if let Some(domain) = uses.strip_prefix("domain:") {
            return text("url").and_then(host).is_some_and(|host| is_inside(host, domain));
        }
        let named = ["file_path", "notebook_path", "path"].into_iter().find_map(text);
        named.is_some_and(|path| fits_path(uses, path))
    }

    /// Whether this use of the tool may be one the rule is about.
    fn may_cover(&self, input: &Value) -> bool {
        let command = input.get("command").and_then(Value::as_str);
        match (&self.uses, command) {
            (Some(uses), Some(command)) if !is_plain(command) => {
                let start = uses.strip_suffix(":*").unwrap_or(uses);
                command.contains(start)
            }
            _ => self.covers(input),
        }
    }
}

impl ToolRules {
    /// Whether nothing is ruled out.
    pub fn allow_everything(&self) -> bool {
        self.only.is_none() && self.without.is_empty()
    }

    /// Why a use of a tool is not allowed, when it is not. What cannot be judged is not allowed.
    pub fn refusal(&self, tool: &str, input: &Value) -> Option<String> {
        let off = |rule: &&ToolRule| rule.is_about(tool) && rule.may_cover(input);
        if self.without.iter().any(|rule| off(&rule)) {
            return Some(format!("{tool} is not among the tools of this agent"));
        }
        let only = self.only.as_ref()?;
        let about: Vec<_> = only.iter().filter(|rule| rule.is_about(tool)).collect();
        if about.iter().any(|rule| rule.covers(input)) {
            return None;
        }
        let uses: Vec<&str> = about.iter().filter_map(|rule| rule.uses.as_deref()).collect();
        Some(match uses.as_slice() {
            [] => format!("{tool} is not among the tools of this agent"),
            uses => format!("this agent may use {tool} only as {}", uses.join(", ")),
        })
    }

    /// The names of the tools, without those of which no use is allowed; nothing when all are.
    pub fn offered(&self) -> Option<Vec<&str>> {
        let only = self.only.as_ref()?;
        let off = |name: &str| self.without.iter().any(|r| r.uses.is_none() && r.is_about(name));
        let mut names: Vec<&str> = vec![];
        for rule in only {
            if !off(&rule.tool) && !names.contains(&rule.tool.as_str()) {
                names.push(&rule.tool);
            }
        }
        Some(names)
    }
}

/// Whether a command is one command: what is behind `;`, `&&` or inside `$(…)` is another.
fn is_plain(command: &str) -> bool {
    !command.contains([';', '|', '&', '`', '$', '<', '>', '(', '{', '\n', '\r'])
}

/// `git:*` is `git` with anything behind it, `git log*` anything that starts so.
fn starts_like(uses: &str, command: &str) -> bool {
    let command = command.trim();
    if let Some(start) = uses.strip_suffix(":*") {
        let rest = command.strip_prefix(start);
        return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
    }
    match uses.strip_suffix('*') {
        Some(start) => command.starts_with(start),
        None => command == uses,
    }
}

fn host(url: &str) -> Option<&str> {
    let rest = url.split_once("://")?.1;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    Some(host.split(':').next().unwrap_or(host))
}

fn is_inside(host: &str, domain: &str) -> bool {
    let (host, domain) = (host.to_ascii_lowercase(), domain.trim().to_ascii_lowercase());
    host == domain || host.strip_suffix(&domain).is_some_and(|rest| rest.ends_with('.'))
}

/// Patterns of paths are relative to some folder, which is not known here: the end has to fit.
fn fits_path(pattern: &str, path: &str) -> bool {
    if path.split('/').any(|part| part == "..") {
        return false;
    }
    let pattern = pattern.trim_start_matches("./");
    match pattern.strip_prefix("//").or(pattern.starts_with('/').then_some(pattern)) {
        Some(whole) => fast_glob::glob_match(format!("/{}", whole.trim_start_matches('/')), path),
        None => {
            fast_glob::glob_match(pattern, path)
                || fast_glob::glob_match(format!("**/{pattern}"), path)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ToolRule, ToolRules};

    fn rules(only: &[&str], without: &[&str]) -> ToolRules {
        let read = |texts: &[&str]| texts.iter().map(|text| ToolRule::read(text)).collect();
        ToolRules { only: (!only.is_empty()).then(|| read(only)), without: read(without) }
    }

    fn shell(command: &str) -> Value {
        json!({ "command": command })
    }

    #[test]
    fn a_list_of_tools_allows_nothing_else() {
        let git = rules(&["Read", "Bash(git:*)", "Edit(src/**)", "WebFetch(domain:docs.rs)"], &[]);
        let table = [
            ("Read", json!({"file_path": "/a"}), true),
            ("Write", json!({"file_path": "/a"}), false),
            ("mcp__x__y", json!({}), false),
            ("Bash", shell("git log"), true),
            ("Bash", shell("git"), true),
            ("Bash", shell("gitk"), false),
            ("Bash", shell("git log; rm -r ."), false),
            ("Bash", shell("git log && rm x"), false),
            ("Bash", shell("git log $(rm x)"), false),
            ("Bash", shell("git log > x"), false),
            ("Bash", shell("rm x\ngit log"), false),
            ("Bash", json!({}), false),
            ("Edit", json!({"file_path": "/p/src/a/b.rs"}), true),
            ("Edit", json!({"file_path": "/p/src/../x"}), false),
            ("Edit", json!({"file_path": "/p/lib.rs"}), false),
            ("WebFetch", json!({"url": "https://docs.rs/x"}), true),
            ("WebFetch", json!({"url": "https://a.docs.rs:443/x"}), true),
            ("WebFetch", json!({"url": "https://evildocs.rs/x"}), false),
            ("WebFetch", json!({"url": "https://docs.rs@evil.org/"}), false),
        ];
        for (tool, input, allowed) in table {
            assert_eq!(git.refusal(tool, &input).is_none(), allowed, "{tool} {input}");
        }
        assert_eq!(
            git.refusal("Bash", &shell("ls")).as_deref(),
            Some("this agent may use Bash only as git:*")
        );
        assert_eq!(git.offered(), Some(vec!["Read", "Bash", "Edit", "WebFetch"]));
    }

    #[test]
    fn what_is_taken_away_stays_away_whatever_surrounds_it() {
        let no_push = rules(&[], &["Write", "Bash(git push:*)", "mcp__*"]);
        let table = [
            ("Read", json!({}), true),
            ("Write", json!({}), false),
            ("mcp__x__y", json!({}), false),
            ("Bash", shell("git log"), true),
            ("Bash", shell("git push origin"), false),
            ("Bash", shell("true && git push"), false),
            ("Bash", shell("cargo build && cargo test"), true),
        ];
        for (tool, input, allowed) in table {
            assert_eq!(no_push.refusal(tool, &input).is_none(), allowed, "{tool} {input}");
        }
        assert_eq!(no_push.offered(), None);
        assert!(!no_push.allow_everything());
        assert!(ToolRules::default().allow_everything());
        assert_eq!(rules(&["Read", "Write"], &["Write"]).offered(), Some(vec!["Read"]));
    }

    #[test]
    fn nothing_is_a_list_too() {
        let nothing = ToolRules { only: Some(vec![]), without: vec![] };
        assert!(nothing.refusal("Read", &json!({})).is_some());
        assert_eq!(nothing.offered(), Some(vec![]));
    }
}
