//! What a session is made with.

use std::path::Path;

use atomic_files::{PROJECT_LIMIT, Root};
use serde_json::{Map, Value, json};

use super::talker::{LANGUAGE_SERVERS, QUESTION, QUESTIONS, as_known_here, told};
use crate::{Inherit, OpenRequest, Persona, ToolRules};

/// The tools an agent can have.
const TOOLS: [&str; 16] = [
    "task",
    "bash",
    "read_bash",
    "write_bash",
    "stop_bash",
    "list_bash",
    "view",
    "create",
    "edit",
    "apply_patch",
    "glob",
    "grep",
    "web_fetch",
    "web_search",
    "sql",
    "skill",
];

/// A provider of the user's own, by the variables that the program itself reads elsewhere: its server
/// has to be told with every session.
pub(super) fn provider(variable: &dyn Fn(&str) -> Option<String>) -> Option<Value> {
    let of = |name: &str| variable(&format!("COPILOT_PROVIDER_{name}"));
    let mut provider = Map::new();
    provider.insert("baseUrl".to_owned(), json!(of("BASE_URL")?));
    let texts = [
        ("type", "TYPE"),
        ("wireApi", "WIRE_API"),
        ("transport", "TRANSPORT"),
        ("apiKey", "API_KEY"),
        ("apiKeyCommand", "API_KEY_COMMAND"),
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
    let version = of("AZURE_API_VERSION").map(|version| json!({ "apiVersion": version }));
    provider.extend(version.map(|version| ("azure".to_owned(), version)));
    provider.extend(of("HEADERS").map(|text| ("headers".to_owned(), headers(&text))));
    Some(Value::Object(provider))
}

/// `Name: Value`, a line each; the lines may also be divided by a written `\\n`.
fn headers(text: &str) -> Value {
    let text = text.replace("\\n", "\n");
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.trim().to_owned(), json!(value.trim()))).collect()
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
        // The hooks of the project.
        "enableFileHooks": request.inherit != Inherit::None,
        "enableConfigDiscovery": request.inherit != Inherit::None,
        "enableOnDemandInstructionDiscovery": request.inherit != Inherit::None,
        "skipCustomInstructions": request.inherit == Inherit::None,
        "includeSubAgentStreamingEvents": false,
        "customAgents": helpers(request),
    });
    if request.questions {
        session["tools"] = json!([asking()]);
    }
    if request.inherit != Inherit::None {
        session["mcpServers"] = Value::Object(servers(&request.workspace));
    }
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
        if request.questions {
            offered.extend([QUESTION, QUESTIONS].map(str::to_owned));
        }
        session["availableTools"] = json!(offered);
    }
    let mut excluded = withheld(&request.tools);
    if request.inherit == Inherit::None {
        // It starts the language servers that the project names.
        excluded.push(LANGUAGE_SERVERS.to_owned());
    }
    if !excluded.is_empty() {
        session["excludedTools"] = json!(excluded);
    }
    session
}

/// The MCP servers of a project. The program's server does not look for them itself.
fn servers(workspace: &Path) -> Map<String, Value> {
    let mut servers = Map::new();
    // Links may lead to other folders of the repository.
    let repository = workspace.ancestors().find(|folder| folder.join(".git").exists());
    let root = Root::open(repository.unwrap_or(workspace)).ok();
    for file in [".mcp.json", ".github/mcp.json"] {
        let read = |root: &Root| root.read_text(&workspace.join(file), PROJECT_LIMIT).ok();
        let text = root.as_ref().and_then(read).unwrap_or_default();
        let told: Value = serde_json::from_str(&text).unwrap_or_default();
        let declared = told.get("mcpServers").and_then(Value::as_object).into_iter().flatten();
        for (name, about) in declared {
            let mut about = about.clone();
            if let Some(fields) = about.as_object_mut() {
                let kind = if fields.contains_key("url") { "http" } else { "local" };
                fields.entry("type").or_insert(json!(kind));
                fields.entry("tools").or_insert(json!(["*"]));
                servers.insert(name.clone(), about);
            }
        }
    }
    servers
}

fn offered(rules: &ToolRules) -> Option<Vec<String>> {
    let rules = as_known_here(rules);
    let names = rules.offered()?;
    Some(names.into_iter().map(told).collect())
}

fn withheld(rules: &ToolRules) -> Vec<String> {
    let rules = as_known_here(rules);
    rules.withheld().into_iter().map(told).collect()
}

/// Our tool for questions.
fn asking() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let option = json!({
        "type": "object",
        "properties": {
            "label": text("The answer, in a few words"),
            "description": text("What it means or leads to"),
        },
        "required": ["label"],
    });
    let question = json!({
        "type": "object",
        "properties": {
            "question": text("The whole question, to be understood without anything else"),
            "header": text("What it is about, in one or two words"),
            "options": { "type": "array", "items": option, "description": "Answers to choose from" },
            "multiSelect": {
                "type": "boolean",
                "description": "Whether several of the options can be chosen",
            },
        },
        "required": ["question"],
    });
    json!({
        "name": QUESTIONS,
        "description": "Asks the user one question or several, each with options to choose from, and \
                        waits for the answers. The user can always answer in other words. For what \
                        only the user can decide.",
        "parameters": {
            "type": "object",
            "properties": { "questions": { "type": "array", "items": question, "minItems": 1 } },
            "required": ["questions"],
        },
        "skipPermission": true,
        "defer": "never",
    })
}

fn helpers(request: &OpenRequest) -> Vec<Value> {
    let mut helpers: Vec<Value> = request.helpers.iter().map(helper).collect();
    if request.questions {
        let lists = helpers.iter_mut().filter_map(|helper| helper.get_mut("tools")?.as_array_mut());
        lists.for_each(|tools| tools.push(json!(QUESTIONS)));
    }
    helpers
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
    } else if !tools.allow_everything() {
        // There is no list of what it has not.
        let off = withheld(tools);
        let rest = TOOLS.into_iter().filter(|tool| !off.iter().any(|off| off == tool));
        about["tools"] = json!(rest.collect::<Vec<_>>());
    }
    if let Some(model) = model {
        about["model"] = json!(model);
    }
    about
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::provider;

    fn made_of(variables: &[(&str, &str)]) -> Option<Value> {
        let of = |name: &str| {
            let found =
                variables.iter().find(|(known, _)| format!("COPILOT_PROVIDER_{known}") == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        provider(&of)
    }

    #[test]
    fn a_provider_of_ones_own_is_told_as_the_variables_have_it() {
        assert_eq!(made_of(&[("API_KEY", "k")]), None, "without an address there is none");
        let all = [
            ("BASE_URL", "http://here/v1"),
            ("TYPE", "azure"),
            ("API_KEY_COMMAND", "pass show it"),
            ("AZURE_API_VERSION", "2026-01-01"),
            ("MAX_PROMPT_TOKENS", "1000"),
            ("MAX_OUTPUT_TOKENS", "many"),
            ("HEADERS", "X-A: one: two\nX-B:  b\\nX-C: c\nnothing"),
        ];
        let expected = json!({
            "baseUrl": "http://here/v1",
            "type": "azure",
            "apiKeyCommand": "pass show it",
            "azure": { "apiVersion": "2026-01-01" },
            "maxPromptTokens": 1000,
            "headers": { "X-A": "one: two", "X-B": "b", "X-C": "c" },
        });
        assert_eq!(made_of(&all), Some(expected));
    }
}
