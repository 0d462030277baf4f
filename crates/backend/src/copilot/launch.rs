//! What a session is made with.

use serde_json::{Map, Value, json};

use super::talker::{QUESTION, as_known_here};
use crate::{Inherit, OpenRequest, Persona, ToolRules};

/// A provider of the user's own, by the variables that the program itself reads elsewhere: its server
/// has to be told with every session.
pub(super) fn provider(variable: &dyn Fn(&str) -> Option<String>) -> Option<Value> {
    let of = |name: &str| variable(&format!("COPILOT_PROVIDER_{name}"));
    let mut provider = Map::new();
    provider.insert("baseUrl".to_owned(), json!(of("BASE_URL")?));
    let texts = [
        ("type", "TYPE"),
        ("wireApi", "WIRE_API"),
        ("apiKey", "API_KEY"),
        ("bearerToken", "BEARER_TOKEN"),
        ("modelId", "MODEL_ID"),
        ("wireModel", "WIRE_MODEL"),
    ];
    for (key, name) in texts {
        provider.extend(of(name).map(|value| (key.to_owned(), json!(value))));
    }
    for (key, name) in
        [("maxPromptTokens", "MAX_PROMPT_TOKENS"), ("maxOutputTokens", "MAX_OUTPUT_TOKENS")]
    {
        let number = of(name).and_then(|value| value.parse::<u64>().ok());
        provider.extend(number.map(|value| (key.to_owned(), json!(value))));
    }
    let headers = of("HEADERS").and_then(|text| serde_json::from_str::<Value>(&text).ok());
    provider.extend(headers.map(|headers| ("headers".to_owned(), headers)));
    Some(Value::Object(provider))
}

/// Everything a session is told when it is made, and again when it is continued.
pub(super) fn session(
    id: &str,
    request: &OpenRequest,
    model: Option<&str>,
    provider: Option<&Value>,
) -> Value {
    let mut session = json!({
        "sessionId": id,
        "workingDirectory": request.workspace,
        "streaming": true,
        "clientName": "atomic",
        "requestPermission": true,
        "requestUserInput": request.questions,
        "requestElicitation": false,
        "requestExitPlanMode": false,
        "requestAutoModeSwitch": false,
        "requestMcpApps": false,
        // Asked before every use of every tool, helpers' too.
        "hooks": true,
        "envValueMode": "direct",
        "toolFilterPrecedence": "excluded",
        "enableConfigDiscovery": request.inherit != Inherit::None,
        "skipCustomInstructions": request.inherit == Inherit::None,
        "includeSubAgentStreamingEvents": false,
        "customAgents": request.helpers.iter().map(helper).collect::<Vec<_>>(),
    });
    if let Some(model) = model {
        session["model"] = json!(model);
    }
    if let Some(provider) = provider {
        session["provider"] = provider.clone();
    }
    if !request.system_prompt.is_empty() {
        session["systemMessage"] = json!({ "mode": "replace", "content": request.system_prompt });
    }
    if let Some(mut offered) = offered(&request.tools) {
        offered.extend(request.questions.then(|| QUESTION.to_owned()));
        session["availableTools"] = json!(offered);
    }
    let excluded = withheld(&request.tools);
    if !excluded.is_empty() {
        session["excludedTools"] = json!(excluded);
    }
    session
}

fn offered(rules: &ToolRules) -> Option<Vec<String>> {
    let rules = as_known_here(rules);
    let names = rules.offered()?;
    Some(names.into_iter().map(str::to_owned).collect())
}

fn withheld(rules: &ToolRules) -> Vec<String> {
    let rules = as_known_here(rules);
    let whole = rules.without.into_iter().filter(|rule| rule.uses.is_none());
    whole.map(|rule| rule.tool).collect()
}

fn helper(persona: &Persona) -> Value {
    let Persona { name, description, prompt, tools, model } = persona;
    let mut about = json!({
        "name": name,
        "displayName": name,
        "description": description,
        "prompt": prompt,
    });
    if let Some(offered) = offered(tools) {
        about["tools"] = json!(offered);
    }
    if let Some(model) = model {
        about["model"] = json!(model);
    }
    about
}
