//! The credentials that OpenCode finds for a provider, and the choice among them.
//!
//! Measured with 1.18.33 against a model on the loopback: `options.apiKey` in the settings wins over
//! `auth.json`, which wins over a variable. `/config/providers` reports the source `config` for every
//! provider that the settings mention, wherever its key comes from, so the source is resolved here.

use atomic_event::{Payer, PayerKind};
use serde_json::{Map, Value, json};

use super::settings::{Found, Places};
use crate::login::{Credential, Environment, Pay, chosen_first, gateway, tilde};

/// The variables with the keys of providers, as in the program's own list. The user's settings can
/// name others.
const VARIABLES: [(&str, &[&str]); 14] = [
    ("anthropic", &["ANTHROPIC_API_KEY"]),
    ("openai", &["OPENAI_API_KEY"]),
    ("google", &["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"]),
    ("openrouter", &["OPENROUTER_API_KEY"]),
    ("opencode", &["OPENCODE_API_KEY"]),
    ("groq", &["GROQ_API_KEY"]),
    ("mistral", &["MISTRAL_API_KEY"]),
    ("deepseek", &["DEEPSEEK_API_KEY"]),
    ("xai", &["XAI_API_KEY"]),
    ("cerebras", &["CEREBRAS_API_KEY"]),
    ("togetherai", &["TOGETHER_API_KEY"]),
    ("fireworks-ai", &["FIREWORKS_API_KEY"]),
    ("vercel", &["AI_GATEWAY_API_KEY"]),
    ("github-copilot", &["GITHUB_TOKEN"]),
];

/// A credential with its secret, which stays in this module.
struct Secret {
    credential: Credential,
    value: String,
}

/// The credentials for a provider; the one that pays is the first.
pub(super) fn credentials(
    places: &Places,
    found: &Found,
    provider: &str,
    pay: Option<Pay>,
) -> Vec<Credential> {
    let address = option(found, provider, "baseURL");
    let address = address.and_then(|address| gateway(address, &[]));
    let secrets = secrets(places, found, provider).into_iter();
    let all = secrets.map(|Secret { mut credential, .. }| {
        credential.payer.provider = Some(provider.to_owned());
        credential.payer.gateway.clone_from(&address);
        credential
    });
    let mut all: Vec<Credential> = all.collect();
    if all.is_empty() && address.is_some() {
        // A model on the user's own machine needs no credential.
        let payer = Payer {
            provider: Some(provider.to_owned()),
            gateway: address,
            ..Payer::of(PayerKind::Nobody)
        };
        all.push(Credential::new(Pay::Settings, payer));
    }
    chosen_first(all, pay)
}

/// Changes the user's settings so that the chosen credential of a provider pays. A key in the settings
/// wins over every other one.
pub(super) fn choose(places: &Places, found: &mut Found, provider: &str, pay: Pay) {
    let secrets = secrets(places, found, provider);
    let chosen = secrets.into_iter().find(|secret| secret.credential.pay == pay);
    let Some(chosen) = chosen else { return };
    let providers = found.users.entry("provider").or_insert_with(|| json!({}));
    let Some(about) = object(providers).map(|all| all.entry(provider).or_insert(json!({}))) else {
        return;
    };
    let Some(options) = object(about).map(|about| about.entry("options").or_insert(json!({})))
    else {
        return;
    };
    let Some(options) = object(options) else { return };
    if pay == Pay::Subscription {
        options.remove("apiKey");
    } else {
        options.insert("apiKey".to_owned(), json!(chosen.value));
    }
}

/// Variables to set for the program, so that no key in our environment pays.
pub(super) fn withheld_variables(pay: Pay) -> Vec<(String, String)> {
    if pay == Pay::Key {
        return vec![];
    }
    let names = VARIABLES.iter().flat_map(|(_, names)| names.iter());
    names.map(|name| ((*name).to_owned(), String::new())).collect()
}

fn secrets(places: &Places, found: &Found, provider: &str) -> Vec<Secret> {
    let env = Environment(places.own());
    let secret = |pay, kind, source: String, value: &str| Secret {
        credential: Credential::of(pay, kind, source),
        value: value.to_owned(),
    };
    let mut all = vec![];
    let declared = found.users.get("provider").and_then(|all| all.get(provider)?.get("env"));
    let declared = declared.and_then(Value::as_array).into_iter().flatten();
    let known = VARIABLES.iter().find(|(name, _)| *name == provider);
    let known = known.into_iter().flat_map(|(_, names)| names.iter().copied());
    let names = declared.filter_map(Value::as_str).chain(known);
    let variable = names.into_iter().find_map(|name| Some((name, env.get(name)?)));
    let is_variable = |value: &str| variable.as_ref().is_some_and(|(_, known)| known == value);
    // A reference such as `{env:ANTHROPIC_API_KEY}` was filled in: it is the variable that pays.
    let in_settings = option(found, provider, "apiKey").filter(|key| !key.is_empty());
    if let Some(key) = in_settings.filter(|key| !is_variable(key)) {
        let source = format!("provider.{provider}.options.apiKey of your OpenCode settings");
        all.push(secret(Pay::Settings, PayerKind::Key, source, key));
    }
    let key = variable
        .as_ref()
        .map(|(name, key)| secret(Pay::Key, PayerKind::Key, (*name).to_owned(), key));
    let (first, last) =
        if in_settings.is_some_and(is_variable) { (key, None) } else { (None, key) };
    all.extend(first);
    let logins = places.logins();
    if let Some(login) = logins.get(provider) {
        let text = |key: &str| login.get(key).and_then(Value::as_str).unwrap_or_default();
        let (pay, kind, value) = match text("type") {
            "oauth" => (Pay::Subscription, PayerKind::Subscription, text("access")),
            "api" => (Pay::Stored, PayerKind::Key, text("key")),
            _ => (Pay::Stored, PayerKind::Token, text("token")),
        };
        let source = match env.get("OPENCODE_AUTH_CONTENT") {
            Some(_) => "OPENCODE_AUTH_CONTENT".to_owned(),
            None => tilde(&places.logins_file(), &env),
        };
        if !is_variable(value) {
            all.push(secret(pay, kind, source, value));
        }
    }
    all.extend(last);
    all
}

/// An option of a provider in the user's settings.
fn option<'f>(found: &'f Found, provider: &str, key: &str) -> Option<&'f str> {
    found.users.get("provider")?.get(provider)?.get("options")?.get(key)?.as_str()
}

fn object(value: &mut Value) -> Option<&mut Map<String, Value>> {
    value.as_object_mut()
}
