//! The credentials that OpenCode finds for a provider, and the choice among them.
//!
//! Measured with 1.18.33 against a model on the loopback: `options.apiKey` in the settings wins over
//! `auth.json`, which wins over a variable. `/config/providers` reports the source `config` for every
//! provider that the settings mention, wherever its key comes from, so the source is resolved here.

use atomic_event::{Payer, PayerKind};
use serde_json::{Map, Value, json};

use super::settings::{Found, Places};
use super::variables::VARIABLES;
use crate::login::{Credential, Environment, Pay, chosen_first, gateway, tilde};

/// The headers that carry a credential.
const SECRET_HEADERS: [(&str, PayerKind); 2] =
    [("authorization", PayerKind::Token), ("x-api-key", PayerKind::Key)];

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
    // A model on the user's own machine needs no credential.
    let is_free = address.is_some() && has_no_secret(found, provider);
    if all.is_empty() && (is_free || pay.is_none()) {
        let kind = if is_free { PayerKind::Nobody } else { PayerKind::Unknown };
        let payer =
            Payer { provider: Some(provider.to_owned()), gateway: address, ..Payer::of(kind) };
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
    if pay != Pay::Settings
        && let Some(headers) = options.get_mut("headers").and_then(object)
    {
        headers.retain(|name, _| secret_header(name).is_none());
    }
    if pay == Pay::Subscription {
        options.remove("apiKey");
    } else if !chosen.value.is_empty() {
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
    all.extend(headers(found, provider, !all.is_empty()));
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

/// The headers with a credential that the user adds to every call of a provider. They have no value
/// here: they are kept or left out, and never become a key.
fn headers(found: &Found, provider: &str, is_sent_as_well: bool) -> Vec<Secret> {
    let headers = options(found, provider).and_then(|options| options.get("headers")?.as_object());
    let secrets = headers.into_iter().flatten().filter_map(|(name, value)| {
        let kind = secret_header(name).filter(|_| value != "")?;
        let source =
            format!("provider.{provider}.options.headers.{name} of your OpenCode settings");
        let credential = Credential::of(Pay::Settings, kind, source);
        let credential = Credential { is_sent_as_well, ..credential };
        Some(Secret { credential, value: String::new() })
    });
    secrets.collect()
}

fn secret_header(name: &str) -> Option<PayerKind> {
    let name = name.to_lowercase();
    SECRET_HEADERS.into_iter().find(|(known, _)| *known == name).map(|(_, kind)| kind)
}

/// Whether no option of a provider can hold a credential, as far as their names say it.
fn has_no_secret(found: &Found, provider: &str) -> bool {
    let names = options(found, provider).and_then(Value::as_object).into_iter().flatten();
    let is_secret = |name: &str| {
        let name = name.to_lowercase();
        ["key", "token", "secret", "auth", "credential", "password"]
            .iter()
            .any(|word| name.contains(word))
    };
    !names.filter(|(_, value)| *value != "").any(|(name, _)| is_secret(name))
}

fn options<'f>(found: &'f Found, provider: &str) -> Option<&'f Value> {
    found.users.get("provider")?.get(provider)?.get("options")
}

/// An option of a provider in the user's settings.
fn option<'f>(found: &'f Found, provider: &str, key: &str) -> Option<&'f str> {
    options(found, provider)?.get(key)?.as_str()
}

fn object(value: &mut Value) -> Option<&mut Map<String, Value>> {
    value.as_object_mut()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Map, Value, json};

    use super::{choose, credentials, withheld_variables};
    use crate::login::{Credential, Pay};
    use crate::opencode::settings::{Found, Places};

    /// What is found for a provider with these settings, variables and stored keys.
    fn found(
        provider: &str,
        options: &Value,
        variables: &[(&str, &str)],
        stored: &Value,
    ) -> Vec<String> {
        let data = tempfile::tempdir().unwrap();
        let own = own(data.path().to_str().unwrap(), variables);
        let folder = data.path().join("opencode");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("auth.json"), stored.to_string()).unwrap();
        let found = settings(provider, options);
        let all = credentials(&Places::of_environment(&own), &found, provider, None);
        all.iter()
            .map(Credential::offer)
            .map(|offer| offer.replace(data.path().to_str().unwrap(), "DATA"))
            .collect()
    }

    fn own(data: &str, variables: &[(&str, &str)]) -> Vec<(String, String)> {
        let all = [("XDG_DATA_HOME", data), ("OPENCODE_AUTH_CONTENT", ""), ("NVIDIA_API_KEY", "")];
        let all = all.iter().chain(variables);
        all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn settings(provider: &str, options: &Value) -> Found {
        let mut users = Map::new();
        if !options.is_null() {
            users.insert("provider".to_owned(), json!({ provider: { "options": options } }));
        }
        Found { users, ..Found::default() }
    }

    #[test]
    fn a_key_is_found_wherever_the_program_finds_it() {
        let (none, nothing) = (Value::Null, json!({}));
        let here = json!({ "baseURL": "http://127.0.0.1:1/v1" });
        let variable = [("NVIDIA_API_KEY", "secret")];
        const KEY: &str = "the API key in NVIDIA_API_KEY (--pay key)";
        assert_eq!(found("nvidia", &here, &variable, &nothing), [KEY]);
        assert_eq!(found("nvidia", &none, &variable, &nothing), [KEY]);
        let stored = json!({ "nvidia": { "type": "api", "key": "other" } });
        let store = "the API key in DATA/opencode/auth.json (--pay stored)";
        assert_eq!(found("nvidia", &here, &variable, &stored), [store, KEY]);
        let headers = json!({ "baseURL": "http://127.0.0.1:1/v1",
            "headers": { "Authorization": "Bearer secret", "X-Tenant": "1" } });
        let header = "the token in provider.lab.options.headers.Authorization of your OpenCode \
                      settings (--pay settings)";
        assert_eq!(found("lab", &headers, &[], &nothing), [header]);
        assert_eq!(found("lab", &here, &[], &nothing), ["no credential (--pay settings)"]);
        let unknown = "a credential that is not known (--pay settings)";
        let profile = json!({ "baseURL": "http://127.0.0.1:1/v1", "authProfile": "x" });
        assert_eq!(found("lab", &profile, &[], &nothing), [unknown]);
        assert_eq!(found("lab", &none, &[], &nothing), [unknown]);
    }

    #[test]
    fn what_is_not_chosen_is_withheld() {
        let names = withheld_variables(Pay::Settings);
        assert!(names.iter().any(|(name, _)| name == "NVIDIA_API_KEY"), "{names:?}");
        let data = tempfile::tempdir().unwrap();
        let places =
            Places::of_environment(&own(data.path().to_str().unwrap(), &[("NVIDIA_API_KEY", "k")]));
        let headers = json!({ "x-api-key": "secret", "X-Tenant": "1" });
        let options = |pay| {
            let mut found = settings("nvidia", &json!({ "headers": headers }));
            choose(&places, &mut found, "nvidia", pay);
            found.users["provider"]["nvidia"]["options"].clone()
        };
        assert_eq!(options(Pay::Settings), json!({ "headers": headers }));
        assert_eq!(options(Pay::Key), json!({ "headers": { "X-Tenant": "1" }, "apiKey": "k" }));
    }
}
