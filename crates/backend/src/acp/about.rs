//! What an agent says about itself and about a session. No IO.

use serde_json::Value;

use super::decode::Who;
use super::line::{News, Unanswered};
use super::trouble::words;
use crate::ModelOffer;

/// The version of the protocol that is spoken here.
pub(super) const PROTOCOL: u64 = 1;

/// How a session can be taken up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continues {
    /// As it is.
    Resume,
    /// With everything that was said told again.
    Load,
}

/// What an agent says about itself.
#[derive(Debug, Default)]
pub(super) struct About {
    pub(super) who: Who,
    /// What it calls itself, for the user.
    pub(super) title: String,
    pub(super) continues: Option<Continues>,
    pub(super) lists: bool,
    /// Its settings for the session.
    options: Vec<Value>,
    /// Its commands.
    commands: Vec<String>,
}

impl About {
    /// From its first answer.
    pub(super) fn read(answer: &Value) -> Self {
        let can = |pointer: &str| {
            let told = answer.pointer(pointer);
            told.is_some_and(|told| !matches!(told, Value::Null | Value::Bool(false)))
        };
        let continues = match () {
            () if can("/agentCapabilities/sessionCapabilities/resume") => Some(Continues::Resume),
            () if can("/agentCapabilities/loadSession") => Some(Continues::Load),
            () => None,
        };
        let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
        let name = text("/agentInfo/name").unwrap_or_default();
        Self {
            who: Who::called(name),
            title: text("/agentInfo/title").unwrap_or(name).to_owned(),
            continues,
            lists: can("/agentCapabilities/sessionCapabilities/list"),
            ..Self::default()
        }
    }

    /// Another version that it speaks, in its first answer, or in what the crate makes of it.
    pub(super) fn other_version(answer: &Result<Value, Unanswered>) -> Option<String> {
        match answer {
            Ok(answer) => {
                let version = answer.get("protocolVersion").unwrap_or(&Value::Null);
                (version.as_u64() != Some(PROTOCOL)).then(|| version.to_string())
            }
            Err(Unanswered::Refused(error)) => {
                let words = words(error);
                let (_, rest) = words.split_once("unsupported ACP protocol version ")?;
                Some(rest.split(';').next().unwrap_or(rest).to_owned())
            }
            Err(Unanswered::Garbled(_) | Unanswered::Gone) => None,
        }
    }

    /// Takes in what comes while a session is opened, of which only this matters; says what else is
    /// of use.
    pub(super) fn learn(&mut self, news: &News) {
        if let News::Noted { method, params } = news
            && method == "session/update"
            && let Some(update) = params.get("update")
        {
            self.learn_update(update);
        }
    }

    /// Takes in an update about settings and commands.
    pub(super) fn learn_update(&mut self, update: &Value) {
        self.learn_options(update);
        if let Some(commands) = update.get("availableCommands").and_then(Value::as_array) {
            let name = |command: &Value| Some(command.get("name")?.as_str()?.to_owned());
            self.commands = commands.iter().filter_map(name).collect();
        }
    }

    /// Takes in the settings in an answer or an update, where there are any.
    pub(super) fn learn_options(&mut self, told: &Value) {
        if let Some(options) = told.get("configOptions").and_then(Value::as_array) {
            self.options.clone_from(options);
        }
    }

    /// Whether it can be told to summarise. OpenCode can, and does not list it.
    pub(super) fn compacts(&self) -> bool {
        self.who == Who::OpenCode || self.commands.iter().any(|name| name == "compact")
    }

    /// The setting for the model: what it is called, and what can be chosen.
    pub(super) fn model(&self) -> Option<(&str, Vec<ModelOffer>)> {
        let is_model = |option: &&Value| {
            let text = |key: &str| option.get(key).and_then(Value::as_str);
            text("category") == Some("model") || text("id") == Some("model")
        };
        let option = self.options.iter().find(is_model)?;
        Some((option.get("id")?.as_str()?, offers(option.get("options")?)))
    }

    /// Whether there is no model to choose from, where there should be some: nobody is logged in.
    pub(super) fn lacks_models(&self) -> bool {
        self.model().is_some_and(|(_, offers)| offers.is_empty())
    }

    /// The setting by which nothing is asked, and the value for it.
    pub(super) fn allow_all(&self) -> Option<(&str, &'static str)> {
        let is_it = |option: &&Value| {
            let text = |key: &str| option.get(key).and_then(Value::as_str);
            text("category") == Some("permissions") || text("id") == Some("allow_all")
        };
        let option = self.options.iter().find(is_it)?;
        let has_on = offers(option.get("options")?).iter().any(|offer| offer.name == "on");
        has_on.then_some((option.get("id")?.as_str()?, "on"))
    }
}

/// What can be chosen, which may be in groups.
fn offers(options: &Value) -> Vec<ModelOffer> {
    let all = options.as_array().into_iter().flatten();
    let one = |option: &Value| {
        if let Some(inner) = option.get("options") {
            return offers(inner);
        }
        let text = |key: &str| option.get(key).and_then(Value::as_str);
        let about = text("description").or(text("name")).unwrap_or_default().to_owned();
        let offer = text("value").map(|value| ModelOffer { name: value.to_owned(), about });
        offer.into_iter().collect()
    };
    all.flat_map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{About, Continues};

    #[test]
    fn what_an_agent_can_do_is_read_from_its_answer() {
        let read = |capabilities| About::read(&json!({ "agentCapabilities": capabilities }));
        let both = json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } });
        assert_eq!(read(both).continues, Some(Continues::Resume));
        assert_eq!(read(json!({ "loadSession": true })).continues, Some(Continues::Load));
        assert_eq!(read(json!({ "loadSession": false })).continues, None);
        assert_eq!(read(json!(7)).continues, None);
        assert!(read(json!({ "sessionCapabilities": { "list": {} } })).lists);
        assert!(!read(json!({ "sessionCapabilities": { "list": null } })).lists);
    }

    #[test]
    fn settings_are_found_by_what_they_are_for() {
        let mut about = About::default();
        about.learn_options(&json!({ "configOptions": [
            { "id": "m", "category": "model", "options": [
                { "group": "g", "options": [{ "value": "a/1", "name": "One" }] },
                { "value": "b/2", "name": "Two" },
            ] },
            { "id": "allow_all", "options": [{ "value": "on" }, { "value": "off" }] },
        ] }));
        let (id, offers) = about.model().unwrap();
        let names: Vec<&str> = offers.iter().map(|offer| offer.name.as_str()).collect();
        assert_eq!((id, names), ("m", vec!["a/1", "b/2"]));
        assert_eq!(about.allow_all(), Some(("allow_all", "on")));
        about.learn_options(&json!({ "configOptions": [{ "id": "mode" }] }));
        assert!(about.model().is_none() && about.allow_all().is_none());
    }
}
