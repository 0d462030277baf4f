//! Reading what a head says about tools. A restriction that cannot be understood denies.

use serde_json::Value;

use super::hooks::{self, Guarded};
use super::{Head, TOLD, shortened};
use crate::allowed::Tools;
use crate::entity::{Kind, Provider};
use crate::finding::Finding;
use crate::permission::{self, Mode};

impl Head<'_> {
    /// Takes out what is said about tools.
    pub(super) fn tools(
        &mut self,
        kind: Kind,
        provider: Provider,
        findings: &mut Vec<Finding>,
    ) -> Tools {
        let allowed = match restricts(ALLOWED, kind, provider) {
            true => self.fields.shift_remove(ALLOWED),
            false => None,
        };
        let tools = self.fields.shift_remove("tools");
        if tools.is_some() && allowed.is_some() {
            let message = "`tools` and `allowed-tools` are both there; `tools` holds";
            findings.push(self.odd(ALLOWED, message, "remove one of them"));
        }
        let key = if tools.is_some() { "tools" } else { ALLOWED };
        let permission = self.fields.shift_remove("permission");
        let by = self.restricting(tools.is_some() || allowed.is_some(), key, permission.is_some());
        let mut may = match tools.or(allowed) {
            None => Tools::default(),
            // In OpenCode switches are older names for permissions, which come after them.
            Some(Value::Object(switches)) if !switches.is_empty() && has_switches(provider) => {
                let mut may = Tools::default();
                let understood = permission.as_ref().filter(|it| understood(it));
                let problems = may.decide(Some(&switches), understood);
                self.tell_denied(key, problems, &mut may, findings);
                may
            }
            Some(value) => Tools::read(&value, provider).unwrap_or_else(|problem| {
                let mut may = Tools::denied();
                self.tell_denied(key, vec![problem], &mut may, findings);
                may
            }),
        };
        if let Some(value) = self.fields.shift_remove("disallowed-tools").filter(|it| !it.is_null())
        {
            may = match Tools::read(&value, provider) {
                Ok(without) => may.except(without),
                Err(problem) => {
                    may = Tools::denied();
                    self.tell_denied("disallowed-tools", vec![problem], &mut may, findings);
                    may
                }
            };
        }
        self.permissions(permission, &mut may, findings);
        self.mode(&mut may, findings);
        let mut may = self.without_guarded(may, provider, findings);
        if provider == Provider::Copilot {
            self.helpers(&mut may, findings);
        }
        if !may.is_everything() {
            may.by = by;
        }
        may
    }

    /// The keys that say something about tools.
    fn restricting(&self, has_tools: bool, key: &str, has_permission: bool) -> Vec<&'static str> {
        let tools = if key == "tools" { "tools" } else { ALLOWED };
        let has = |key: &str| self.fields.contains_key(key);
        let keys = [
            (has_tools, tools),
            (has("disallowed-tools"), "disallowedTools"),
            (has_permission, "permission"),
            (has("permissions"), "permissions"),
            (has("permission-mode"), "permissionMode"),
            (has("agents"), "agents"),
            (has("hooks"), "hooks"),
        ];
        keys.into_iter().filter(|(is_there, _)| *is_there).map(|(_, key)| key).collect()
    }

    /// Adds what `permission` and `permissions` say.
    fn permissions(
        &mut self,
        permission: Option<Value>,
        may: &mut Tools,
        findings: &mut Vec<Finding>,
    ) {
        let others = self.fields.shift_remove("permissions");
        for (key, value) in [("permission", permission), ("permissions", others)] {
            let Some(value) = value else { continue };
            let problems = match denied_by_claude(&value) {
                Some(Ok(without)) => {
                    *may = std::mem::take(may).except(without);
                    vec![]
                }
                Some(Err(problem)) => {
                    // A list that is lost may have named any tool.
                    *may = Tools::denied();
                    vec![problem]
                }
                None if understood(&value) && !may.layers.is_empty() && key == "permission" => {
                    // The permissions are part of the layer with the switches.
                    vec![]
                }
                None if understood(&value) => may.decide(None, Some(&value)),
                None => {
                    let layers = std::mem::take(&mut may.layers);
                    *may = Tools { layers, ..Tools::denied() };
                    vec!["nothing stands behind it".to_owned()]
                }
            };
            self.tell_denied(key, problems, may, findings);
        }
    }

    /// Adds what Claude Code's `permissionMode` says.
    fn mode(&mut self, may: &mut Tools, findings: &mut Vec<Finding>) {
        let key = "permission-mode";
        let Some(value) = self.fields.shift_remove(key) else { return };
        match value.as_str().map_or(Mode::Unknown, permission::mode) {
            Mode::Free => {}
            Mode::Reading(layer) => may.layers.push(layer),
            Mode::Unknown => {
                *may = Tools::denied();
                let value = shortened(&value.to_string());
                self.tell_denied(key, vec![format!("{value} is not a mode")], may, findings);
            }
        }
    }

    /// Denies the tools that hooks guard.
    fn without_guarded(
        &self,
        may: Tools,
        provider: Provider,
        findings: &mut Vec<Finding>,
    ) -> Tools {
        let key = "hooks";
        // OpenCode has no such key.
        let hooks = self.fields.get(key).filter(|_| provider != Provider::OpenCode);
        let guarded = hooks.map_or(Guarded::Nothing, |hooks| hooks::guarded(hooks, provider));
        let (denied, without) = match guarded {
            Guarded::Nothing => return may,
            Guarded::Tools(names) => {
                let names = names.join(", ");
                (names.clone(), Tools::read(&Value::String(names), Provider::Claude))
            }
            Guarded::Everything(why) => (format!("all tools; {why}"), Err(why)),
        };
        let message =
            format!("Atomic does not run `{key}`, so the tools they guard are denied: {denied}");
        let remedy = "remove the hooks, and restrict it with `disallowedTools` instead";
        findings.push(self.odd(key, message, remedy));
        match without {
            Ok(without) => Tools { unclear: true, ..may.except(without) },
            Err(_) => Tools::denied(),
        }
    }

    /// Adds what VS Code's `agents` says: which others an agent may start.
    fn helpers(&mut self, may: &mut Tools, findings: &mut Vec<Finding>) {
        let key = "agents";
        if !self.fields.contains_key(key) {
            return;
        }
        let problem = match self.fields.get(key) {
            Some(Value::Array(_) | Value::String(_)) => None,
            _ => Some("it is not a list".to_owned()),
        };
        let names = match problem {
            None => self.list(key, findings),
            Some(_) => vec![],
        };
        self.fields.shift_remove(key);
        self.tell_denied(key, problem.into_iter().collect(), may, findings);
        let typed = names.iter().map(|name| super::name(name).unwrap_or_else(|_| name.clone()));
        may.layers.push(permission::helpers(typed));
    }

    /// Reports a restriction that cannot be understood. What it is about is denied.
    fn tell_denied(
        &self,
        key: &str,
        problems: Vec<String>,
        may: &mut Tools,
        findings: &mut Vec<Finding>,
    ) {
        let remedy = match key {
            "permission" | "permissions" => "write allow, ask or deny, such as `edit: deny`",
            "permission-mode" => "write default, acceptEdits, plan or bypassPermissions",
            "agents" => "write a list of names, such as `agents: [reviewer]`",
            _ => "write a list of names, such as `tools: Read, Edit`",
        };
        let is_none = may.only.as_ref().is_some_and(Vec::is_empty);
        for problem in problems.into_iter().take(TOLD) {
            may.unclear = true;
            let message = match is_none {
                true => format!("`{key}` cannot be read, so it may use none: {problem}"),
                false => format!("`{key}` cannot be read, so that is denied: {problem}"),
            };
            findings.push(self.odd(key, message, remedy));
        }
    }
}

/// The key for tools that are allowed.
const ALLOWED: &str = "allowed-tools";

/// Whether a key about tools restricts. In commands and skills of agent programs `allowed-tools`
/// names tools that need no approval; every other tool can be used as well.
pub(crate) fn restricts(key: &str, kind: Kind, provider: Provider) -> bool {
    key != ALLOWED || kind == Kind::Agent || provider == Provider::Atomic
}

/// Whether a mapping behind `tools` switches single tools in files of a provider. In VS Code its keys
/// are a list of tools, and Claude Code has no such form.
fn has_switches(provider: Provider) -> bool {
    matches!(provider, Provider::OpenCode | Provider::Atomic)
}

/// Whether a value says something: one that is empty does not mean everything.
fn understood(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.trim().is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => true,
    }
}

/// The denied tools, where permissions are written as in Claude Code's settings; the error says what
/// is wrong.
fn denied_by_claude(value: &Value) -> Option<Result<Tools, String>> {
    const LISTS: [&str; 3] = ["allow", "ask", "deny"];
    const OTHERS: [&str; 2] = ["additionalDirectories", "disableBypassPermissionsMode"];
    let is_one_of = |key: &str, known: &[&str]| known.iter().any(|it| it.eq_ignore_ascii_case(key));
    let fields = value.as_object()?;
    if !fields.keys().any(|key| is_one_of(key, &LISTS)) {
        return None;
    }
    let is_known = |key: &&String| is_one_of(key, &LISTS) || is_one_of(key, &OTHERS);
    if let Some(key) = fields.keys().find(|key| !is_known(key)) {
        return Some(Err(format!("`{key}` is not known beside allow, ask and deny")));
    }
    let denied = fields.iter().find(|(key, _)| key.eq_ignore_ascii_case("deny"));
    Some(match denied {
        Some((_, list)) => {
            Tools::read(list, Provider::Claude).map_err(|it| format!("`deny`: {it}"))
        }
        None => Ok(Tools { only: Some(vec![]), ..Tools::default() }),
    })
}
