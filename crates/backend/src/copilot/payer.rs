//! The credentials that GitHub Copilot finds, and the choice among them.
//!
//! Of several providers in the user's file, the one that the model's name begins with is called; a model
//! that is not in the file is GitHub's. `auth.getStatus` reports a login only after GitHub was asked (1.0.102), so it cannot be used before
//! the first call of a run without a network, and the sources are resolved here. A provider of the
//! user's own is passed with every session and wins over every login. The order of the tokens is that of
//! `copilot help environment`. Nothing was tested with a login.

use atomic_event::{Payer, PayerKind};
use jsonc_parser::ParseOptions;
use serde_json::Value;

use super::home::Home;
use super::launch;
use crate::login::{Credential, Environment, Pay, chosen_first, gateway, read_text, tilde};

/// The variable with the address of a provider of the user's own.
const ADDRESS: &str = "COPILOT_PROVIDER_BASE_URL";

/// The variables with a token of GitHub, the first that is set counts.
const TOKENS: [&str; 3] = ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"];

/// Variables to set for the program, so that only the chosen credential is left of those in our
/// environment.
pub(super) fn withheld_variables(pay: Pay) -> Vec<(String, String)> {
    let provider = (pay != Pay::Key).then_some(ADDRESS);
    let tokens = TOKENS.iter().copied().filter(|_| pay != Pay::Token);
    provider.into_iter().chain(tokens).map(|name| (name.to_owned(), String::new())).collect()
}

/// The credentials that the program would find; the one that pays is the first.
pub(super) fn credentials(
    env: &Environment<'_>,
    model: Option<&str>,
    pay: Option<Pay>,
) -> Result<Vec<Credential>, String> {
    env.path("COPILOT_HOME")?;
    let home = Home::of(&|name| env.get(name));
    let mut found = vec![];
    let own = launch::provider(&|name| env.get(name));
    if let Some(provider) = &own {
        let (kind, source) = credential_of(provider);
        let source = source.map(|name| format!("COPILOT_PROVIDER_{name}"));
        found.push(of_provider(Pay::Key, provider, kind, source));
    }
    found.extend(match in_file(&home, env, model) {
        // The program does not read the file where the variable is set, unless that is withheld.
        Err(_) if own.is_some() && pay != Some(Pay::Settings) => None,
        credential => credential?,
    });
    let token = TOKENS.iter().find(|name| env.get(name).is_some());
    let token = token.map(|name| Credential::of(Pay::Token, PayerKind::Subscription, *name));
    let login = login(&home, env).or_else(|| login_of_gh(env));
    // The token that Codespaces sets does not win over a login.
    let is_injected = env.get("CODESPACES").as_deref() == Some("true")
        && token.as_ref().is_some_and(|one| one.payer.source.as_deref() == Some("GITHUB_TOKEN"));
    let (first, last) = if is_injected { (login, token) } else { (token, login) };
    found.extend(first.into_iter().chain(last));
    Ok(chosen_first(found, pay))
}

/// The provider in the user's file that the model belongs to.
fn in_file(
    home: &Home,
    env: &Environment<'_>,
    model: Option<&str>,
) -> Result<Option<Credential>, String> {
    let named = env.path("COPILOT_PROVIDERS_CONFIG")?;
    let all = home.providers(named.clone())?.unwrap_or_default();
    let Some(provider) = model.and_then(|model| all.provider_of(model)) else { return Ok(None) };
    let (kind, _) = credential_of(provider);
    let file = tilde(&home.providers_file(named), env);
    let mut credential = of_provider(Pay::Settings, provider, kind, Some(file));
    credential.payer.provider = provider.get("name").and_then(Value::as_str).map(str::to_owned);
    Ok(Some(credential))
}

/// The login of the `gh` program, which Copilot falls back to.
fn login_of_gh(env: &Environment<'_>) -> Option<Credential> {
    let folder = env.path("GH_CONFIG_DIR").ok()?;
    let folder = match folder {
        Some(folder) => folder,
        None => {
            let config = env.path("XDG_CONFIG_HOME").ok()?;
            config.unwrap_or_else(|| env.home().join(".config")).join("gh")
        }
    };
    let file = folder.join("hosts.yml");
    let hosts = read_text(&file).ok()??;
    let is_in = hosts.lines().any(|line| line.trim_end().ends_with(':') && !line.starts_with(' '));
    is_in.then(|| Credential::of(Pay::Subscription, PayerKind::Subscription, tilde(&file, env)))
}

fn of_provider(pay: Pay, provider: &Value, kind: PayerKind, source: Option<String>) -> Credential {
    let address = provider.get("baseUrl").and_then(Value::as_str).unwrap_or_default();
    let payer = Payer { source, gateway: gateway(address, &[]), ..Payer::of(kind) };
    Credential { is_explicit: true, ..Credential::new(pay, payer) }
}

/// The kind of a provider's credential, and the end of the variable that sets it.
fn credential_of(provider: &Value) -> (PayerKind, Option<&'static str>) {
    let known = [
        ("bearerToken", PayerKind::Token, "BEARER_TOKEN"),
        ("apiKey", PayerKind::Key, "API_KEY"),
        ("apiKeyCommand", PayerKind::Key, "API_KEY_COMMAND"),
        ("headers", PayerKind::Token, "HEADERS"),
    ];
    let found = known.into_iter().find(|(key, ..)| provider.get(*key).is_some());
    found.map_or((PayerKind::Nobody, None), |(_, kind, name)| (kind, Some(name)))
}

/// The login that the program keeps, as far as its file names it.
fn login(home: &Home, env: &Environment<'_>) -> Option<Credential> {
    let file = home.config_file();
    let kept = read_text(&file).ok()??;
    let kept: Value = jsonc_parser::parse_to_serde_value(&kept, &ParseOptions::default()).ok()?;
    let lists = ["loggedInUsers", "logged_in_users"].map(|key| kept.get(key));
    let is_in =
        lists.into_iter().flatten().any(|list| list.as_array().is_some_and(|l| !l.is_empty()));
    is_in.then(|| Credential::of(Pay::Subscription, PayerKind::Subscription, tilde(&file, env)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::credentials;
    use crate::login::{Environment, Pay};

    #[test]
    fn credentials_are_found_in_the_order_in_which_they_pay() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".copilot");
        fs::create_dir(&folder).unwrap();
        let found_for = |more: &[(&str, &str)], model, pay| {
            let home = home.path().display().to_string();
            let mut own = vec![("HOME".to_owned(), home)];
            let names = ["COPILOT_HOME", "COPILOT_PROVIDERS_CONFIG", super::ADDRESS, "CODESPACES"];
            let more_names = ["GH_CONFIG_DIR", "XDG_CONFIG_HOME"];
            let names = names.iter().chain(&more_names).chain(&super::TOKENS);
            own.extend(names.map(|name| ((*name).to_owned(), String::new())));
            own.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
            let found = credentials(&Environment(&own), model, pay).unwrap();
            found
                .iter()
                .map(|one| format!("{} {:?}", one.offer(), one.payer.gateway))
                .collect::<Vec<_>>()
        };
        let found = |more: &[(&str, &str)], pay| found_for(more, None, pay);
        const TOKEN: &str = "the subscription in GH_TOKEN (--pay token) None";
        const LOGIN: &str = "the subscription in ~/.copilot/config.json (--pay subscription) None";
        assert_eq!(found(&[], None), [""; 0]);
        assert_eq!(found(&[("GH_TOKEN", "t"), ("GITHUB_TOKEN", "u")], None), [TOKEN]);
        let gh = home.path().join(".config/gh");
        fs::create_dir_all(&gh).unwrap();
        fs::write(gh.join("hosts.yml"), "github.com:\n    user: me\n").unwrap();
        const GH: &str = "the subscription in ~/.config/gh/hosts.yml (--pay subscription) None";
        assert_eq!(found(&[], None), [GH]);
        assert_eq!(found(&[("GH_TOKEN", "t")], None), [TOKEN, GH]);
        let users = "// kept\n{ \"loggedInUsers\": [{ \"login\": \"me\" }] }";
        fs::write(folder.join("config.json"), users).unwrap();
        assert_eq!(found(&[("GH_TOKEN", "t")], None), [TOKEN, LOGIN]);
        assert_eq!(found(&[("GH_TOKEN", "t")], Some(Pay::Subscription)), [LOGIN, TOKEN]);
        let own = [(super::ADDRESS, "http://127.0.0.1:1/v1"), ("COPILOT_PROVIDER_API_KEY", "k")];
        let key = "the API key in COPILOT_PROVIDER_API_KEY (--pay key) Some(\"127.0.0.1:1\")";
        assert_eq!(found(&own, None), [key, LOGIN]);
        let injected = [("CODESPACES", "true"), ("GITHUB_TOKEN", "t")];
        let token = "the subscription in GITHUB_TOKEN (--pay token) None";
        assert_eq!(found(&injected, None), [LOGIN, token]);
        assert_eq!(found(&[("GITHUB_TOKEN", "t")], None), [token, LOGIN]);
        let file = r#"{
            "providers": [{ "name": "corp", "baseUrl": "https://corp/v1" },
                          { "name": "lab", "baseUrl": "https://lab/v1", "apiKey": "k" }],
            "models": [{ "provider": "corp", "id": "big" }, { "provider": "lab", "id": "small" }]
        }"#;
        fs::write(folder.join("providers.json"), file).unwrap();
        const CORP: &str = "no credential (--pay settings) Some(\"corp\")";
        const LAB: &str = "the API key in ~/.copilot/providers.json (--pay settings) Some(\"lab\")";
        assert_eq!(found(&[], None), [LOGIN]);
        assert_eq!(found_for(&[], Some("gpt-5.5"), None), [LOGIN]);
        assert_eq!(found_for(&[], Some("corp/big"), None), [CORP, LOGIN]);
        assert_eq!(found_for(&[], Some("lab/small"), None), [LAB, LOGIN]);
        assert_eq!(found_for(&[], Some("lab/big"), None), [LOGIN], "not a model of the file");
        assert_eq!(found_for(&own, Some("lab/small"), None), [key, LAB, LOGIN]);
        let chosen = Some(Pay::Settings);
        assert_eq!(found_for(&own, Some("lab/small"), chosen), [LAB, key, LOGIN]);
    }
}
