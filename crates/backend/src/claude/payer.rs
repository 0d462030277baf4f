//! The credentials that Claude Code finds, and the choice among them.
//!
//! Measured with 2.1.197 and 2.1.325 against a model on the loopback: a cloud that is switched on wins.
//! Then a key (`x-api-key`) and a token (`Authorization`) are both sent where both are set; `env` in
//! settings wins over a variable of the same name; a key helper stands for whichever of the two is
//! missing. A login is used where there is neither a key, nor a token, nor a helper, and
//! `CLAUDE_CODE_OAUTH_TOKEN` wins over the login in the file. An empty variable counts as not set.

use std::path::Path;

use atomic_event::{Payer, PayerKind};
use serde_json::Value;

use super::login::{Users, config_folder};
use crate::login::{Credential, Environment, Pay, chosen_first, gateway, json_object, tilde};

/// The variables with a credential, each with its name in the setting `pay`.
const VARIABLES: [(&str, Pay, PayerKind); 3] = [
    ("ANTHROPIC_API_KEY", Pay::Key, PayerKind::Key),
    ("ANTHROPIC_AUTH_TOKEN", Pay::Token, PayerKind::Token),
    (LOGIN, Pay::Subscription, PayerKind::Subscription),
];

/// The variable with the token of a login.
const LOGIN: &str = "CLAUDE_CODE_OAUTH_TOKEN";

/// Switches for cloud providers, with their names and the variables with their addresses.
const CLOUDS: [(&str, &str, &str); 5] = [
    ("CLAUDE_CODE_USE_BEDROCK", "Amazon Bedrock", "ANTHROPIC_BEDROCK_BASE_URL"),
    ("CLAUDE_CODE_USE_MANTLE", "Amazon Bedrock", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL"),
    ("CLAUDE_CODE_USE_ANTHROPIC_AWS", "AWS", "ANTHROPIC_AWS_BASE_URL"),
    ("CLAUDE_CODE_USE_VERTEX", "Google Vertex AI", "ANTHROPIC_VERTEX_BASE_URL"),
    ("CLAUDE_CODE_USE_FOUNDRY", "Microsoft Foundry", "ANTHROPIC_FOUNDRY_BASE_URL"),
];

/// The settings of the machine's administrator. They win over everything else, so nothing can be
/// withheld from the program where they have a credential.
const MANAGED: &str = "/etc/claude-code/managed-settings.json";

/// The command that prints a key.
const HELPER: &str = "apiKeyHelper";

/// Variables to set for the program, so that only the chosen credential is left of those in our
/// environment.
pub(super) fn withheld_variables(pay: Pay) -> Vec<(String, String)> {
    let credentials = VARIABLES.iter().filter(|(_, of, _)| *of != pay).map(|(name, ..)| *name);
    let clouds = CLOUDS.iter().filter(|_| pay != Pay::Cloud).map(|(name, ..)| *name);
    credentials.chain(clouds).map(|name| (name.to_owned(), String::new())).collect()
}

/// Whether a variable in the user's settings file is withheld.
pub(super) fn is_withheld_variable(name: &str, pay: Pay) -> bool {
    let is_credential = VARIABLES.iter().any(|(known, ..)| *known == name);
    let of = if name == LOGIN { Pay::Subscription } else { Pay::Settings };
    let is_switch = CLOUDS.iter().any(|(known, ..)| *known == name);
    is_credential && of != pay || is_switch && pay != Pay::Cloud
}

/// Whether a key of the user's settings file is withheld.
pub(super) fn is_withheld_key(key: &str, pay: Pay) -> bool {
    key == HELPER && pay != Pay::Helper
}

/// The credentials that the program would find; the one that pays is the first.
pub(super) fn credentials(
    env: &Environment<'_>,
    pay: Option<Pay>,
) -> Result<Vec<Credential>, String> {
    if let Some(managed) = managed(Path::new(MANAGED)) {
        return Ok(vec![managed]);
    }
    let folder = config_folder(env)?;
    let users = Users::read(&folder)?;
    let file = tilde(&folder.join("settings.json"), env);
    let value =
        |name: &str| users.env.get(name).cloned().or_else(|| env.get(name)).unwrap_or_default();
    let mut found = vec![];
    for (name, cloud, address) in CLOUDS {
        if !is_on(&value(name)) {
            continue;
        }
        let payer = Payer {
            account: Some(cloud.to_owned()),
            gateway: gateway(&value(address), &[]),
            ..Payer::new(PayerKind::Cloud, place(name, users.env.contains_key(name), &file))
        };
        found.push(Credential { is_explicit: true, ..Credential::new(Pay::Cloud, payer) });
    }
    let mut tokens = vec![];
    for (name, of, kind) in VARIABLES {
        let in_file = users.env.get(name).filter(|value| !value.is_empty());
        let in_variable = env.get(name).filter(|value| in_file != Some(value));
        let into = if name == LOGIN { &mut tokens } else { &mut found };
        if in_file.is_some() {
            let of = if name == LOGIN { of } else { Pay::Settings };
            into.push(Credential::of(of, kind, place(name, true, &file)));
        }
        // An empty value in the file counts, too: it wins over the variable.
        if in_variable.is_some() && users.env.get(name).is_none_or(|value| !value.is_empty()) {
            into.push(Credential::of(of, kind, name));
        }
    }
    if users.keys.get(HELPER).and_then(Value::as_str).is_some_and(|command| !command.is_empty()) {
        found.push(Credential::of(Pay::Helper, PayerKind::Key, place(HELPER, true, &file)));
    }
    let is_logged_in = !tokens.is_empty();
    found.extend(tokens);
    found.extend(login(&folder, env).filter(|_| !is_logged_in));
    if !found.iter().any(|one| one.pay == Pay::Subscription) {
        found.extend(stored(&folder, env));
    }
    let mut found = chosen_first(found, pay);
    if pay.is_none() {
        mark_sent(&mut found);
    }
    let address = gateway(&value("ANTHROPIC_BASE_URL"), &["api.anthropic.com"]);
    for credential in found.iter_mut().filter(|one| one.pay != Pay::Cloud) {
        credential.payer.gateway.clone_from(&address);
    }
    Ok(found)
}

/// The credential in the administrator's settings.
fn managed(file: &Path) -> Option<Credential> {
    let settings = json_object(file).ok()??;
    let is_set = |value: Option<&Value>| value?.as_str().map(|text| !text.is_empty());
    let of_env = |name: &str| is_set(settings.get("env")?.get(name));
    let variable = VARIABLES.iter().find(|(name, ..)| of_env(name) == Some(true));
    let helper = is_set(settings.get(HELPER)) == Some(true);
    let helper = helper.then_some((HELPER, PayerKind::Key));
    let (name, kind) = variable.map(|(name, _, kind)| (*name, *kind)).or(helper)?;
    let source = place(name, true, &file.display().to_string());
    let credential = Credential::of(Pay::Settings, kind, source);
    Some(Credential { is_explicit: true, ..credential })
}

/// Marks what is sent beside the first credential: a token or a helper beside a key, and the other
/// way round.
fn mark_sent(found: &mut [Credential]) {
    let Some((first, rest)) = found.split_first_mut() else { return };
    let is_of_account =
        |one: &Credential| matches!(one.pay, Pay::Cloud | Pay::Subscription | Pay::Stored);
    if is_of_account(first) {
        return;
    }
    for one in rest {
        one.is_sent_as_well =
            !is_of_account(one) && (one.payer.kind != first.payer.kind || one.pay == Pay::Helper);
    }
}

/// The payer that the program has reported when it was ready, where that is another kind than the one
/// that was found before. A login in a keychain is known only to the program.
pub(super) fn reported(ready: &Value, expected: Option<&Payer>) -> Option<Payer> {
    let account = ready.get("account")?;
    let text = |key: &str| account.get(key).and_then(Value::as_str);
    let kind = match (text("apiProvider"), text("apiKeySource"), text("tokenSource")) {
        (Some(other), _, _) if other != "firstParty" => {
            let payer = Payer { account: Some(other.to_owned()), ..Payer::of(PayerKind::Cloud) };
            return Some(payer).filter(|_| expected.map(|one| one.kind) != Some(PayerKind::Cloud));
        }
        (_, Some("/login managed key"), _) if text("subscriptionType").is_some() => {
            Payer::of(PayerKind::Subscription)
        }
        (_, Some(source), _) => Payer::new(PayerKind::Key, source),
        (_, None, Some("none")) => return None,
        (_, None, Some(LOGIN)) => Payer::new(PayerKind::Subscription, LOGIN),
        (_, None, Some(source)) if source != "claude.ai" => Payer::new(PayerKind::Token, source),
        (_, None, _) => Payer::of(PayerKind::Subscription),
    };
    let is_known = expected.is_some_and(|one| {
        one.kind == kind.kind
            // Both are sent, and the program names the key.
            || [PayerKind::Key, PayerKind::Token].contains(&one.kind) && text("tokenSource").is_some()
    });
    let account = text("subscriptionType").filter(|_| kind.kind == PayerKind::Subscription);
    let gateway = expected.and_then(|one| one.gateway.clone());
    (!is_known).then(|| Payer { account: account.map(str::to_owned), gateway, ..kind })
}

/// A variable or a key, with the file it stands in.
fn place(name: &str, is_in_file: bool, file: &str) -> String {
    if is_in_file { format!("{name} of {file}") } else { name.to_owned() }
}

fn is_on(value: &str) -> bool {
    !["", "0", "false"].contains(&value.trim())
}

/// The login in the program's file.
fn login(folder: &Path, env: &Environment<'_>) -> Option<Credential> {
    let file = folder.join(".credentials.json");
    let kept = json_object(&file).ok()??;
    let login = kept.get("claudeAiOauth")?;
    login.get("accessToken")?.as_str().filter(|token| !token.is_empty())?;
    let account = login.get("subscriptionType").and_then(Value::as_str).map(str::to_owned);
    let payer = Payer { account, ..Payer::new(PayerKind::Subscription, tilde(&file, env)) };
    Some(Credential::new(Pay::Subscription, payer))
}

/// The key that a login with an account for the API has made.
fn stored(folder: &Path, env: &Environment<'_>) -> Option<Credential> {
    let is_named = env.get_os("CLAUDE_CONFIG_DIR").is_some();
    let file = if is_named { folder.to_owned() } else { env.home() }.join(".claude.json");
    let kept = json_object(&file).ok()??;
    kept.get("primaryApiKey")?.as_str().filter(|key| !key.is_empty())?;
    Some(Credential::of(Pay::Stored, PayerKind::Key, tilde(&file, env)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::{credentials, reported};
    use crate::login::{Credential, Environment, Pay};

    /// What is found in a home with these files, as lines.
    fn found(variables: &[(&str, &str)], files: &[(&str, Value)], pay: Option<Pay>) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        for (name, value) in files {
            let path = home.path().join(".claude").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value.to_string()).unwrap();
        }
        let home = home.path().display().to_string();
        let config = format!("{home}/.claude");
        let mut own = vec![("HOME", home.as_str()), ("CLAUDE_CONFIG_DIR", &config)];
        own.extend(
            ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"].map(|n| (n, "")),
        );
        own.extend(["CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK"].map(|n| (n, "")));
        own.extend(variables);
        let own: Vec<_> =
            own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let found = credentials(&Environment(&own), pay).unwrap();
        found.iter().map(Credential::offer).collect()
    }

    fn login() -> (&'static str, Value) {
        let login = json!({ "accessToken": "secret", "subscriptionType": "max" });
        (".credentials.json", json!({ "claudeAiOauth": login }))
    }

    #[test]
    fn credentials_are_found_in_the_order_of_the_program() {
        let key = ("ANTHROPIC_API_KEY", "secret");
        let token = ("ANTHROPIC_AUTH_TOKEN", "secret");
        let settings = |value: Value| ("settings.json", value);
        let in_file = settings(json!({ "env": { "ANTHROPIC_API_KEY": "other" } }));
        let same = settings(json!({ "env": { "ANTHROPIC_API_KEY": "secret" } }));
        let helper = settings(json!({ "apiKeyHelper": "pass show key" }));
        let stored = (".claude.json", json!({ "primaryApiKey": "secret" }));
        const KEY: &str = "the API key in ANTHROPIC_API_KEY (--pay key)";
        const LOGIN: &str =
            "the subscription (max) in ~/.claude/.credentials.json (--pay subscription)";
        const FILE: &str =
            "the API key in ANTHROPIC_API_KEY of ~/.claude/settings.json (--pay settings)";
        const TOKEN: &str = "the token in ANTHROPIC_AUTH_TOKEN (--pay token)";
        const HELPER: &str =
            "the API key in apiKeyHelper of ~/.claude/settings.json (--pay helper)";
        let as_well = |text: &str| format!("{text}, which is sent as well");
        assert_eq!(found(&[], &[], None), [""; 0]);
        assert_eq!(found(&[key], &[login()], None), [KEY, LOGIN]);
        assert_eq!(found(&[key], &[login()], Some(Pay::Subscription)), [LOGIN, KEY]);
        assert_eq!(found(&[key], &[in_file], None), [FILE, KEY]);
        assert_eq!(found(&[key], &[same], None), [FILE]);
        assert_eq!(found(&[key, token], &[], None), [KEY, &as_well(TOKEN)]);
        assert_eq!(found(&[token], std::slice::from_ref(&helper), None), [TOKEN, &as_well(HELPER)]);
        assert_eq!(found(&[], &[helper, login()], None), [HELPER, LOGIN]);
        assert_eq!(found(&[], &[login(), stored.clone()], None), [LOGIN]);
        assert_eq!(
            found(&[], &[stored], None),
            ["the API key in ~/.claude/.claude.json (--pay stored)"]
        );
        let cloud = ("CLAUDE_CODE_USE_BEDROCK", "1");
        let bedrock = "the cloud account (Amazon Bedrock) in CLAUDE_CODE_USE_BEDROCK (--pay cloud)";
        assert_eq!(found(&[key, cloud], &[], None), [bedrock, KEY]);
    }

    #[test]
    fn the_settings_of_the_administrator_are_the_only_credential() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("managed-settings.json");
        let found = |text: &str| {
            fs::write(&file, text).unwrap();
            super::managed(&file).map(|one| one.payer.to_string())
        };
        assert_eq!(found(r#"{ "env": { "ANTHROPIC_API_KEY": "" }, "hooks": {} }"#), None);
        let key = found(r#"{ "env": { "ANTHROPIC_API_KEY": "secret" } }"#).unwrap();
        assert_eq!(key, format!("the API key in ANTHROPIC_API_KEY of {}", file.display()));
        let helper = found(r#"{ "apiKeyHelper": "print it" }"#).unwrap();
        assert!(helper.starts_with("the API key in apiKeyHelper of "), "{helper}");
    }

    /// As both versions report it.
    #[test]
    fn what_the_program_reports_counts_where_it_is_another_kind() {
        let table = [
            (json!({ "tokenSource": "none", "apiProvider": "firstParty" }), None),
            (
                json!({ "tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY" }),
                Some("the API key in ANTHROPIC_API_KEY"),
            ),
            (
                json!({ "subscriptionType": "Claude Max", "apiProvider": "firstParty" }),
                Some("the subscription (Claude Max)"),
            ),
            (
                json!({ "subscriptionType": "Claude Max", "apiKeySource": "/login managed key" }),
                Some("the subscription (Claude Max)"),
            ),
            (
                json!({ "tokenSource": "ANTHROPIC_AUTH_TOKEN" }),
                Some("the token in ANTHROPIC_AUTH_TOKEN"),
            ),
            (json!({ "apiProvider": "bedrock" }), Some("the cloud account (bedrock)")),
        ];
        for (account, expected) in table {
            let ready = json!({ "account": account });
            let payer = reported(&ready, None);
            assert_eq!(payer.as_ref().map(ToString::to_string).as_deref(), expected, "{account}");
            assert_eq!(reported(&ready, payer.as_ref()), None, "{account}");
        }
    }
}
