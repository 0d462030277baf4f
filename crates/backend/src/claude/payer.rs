//! The credentials that Claude Code finds, and the choice among them.
//!
//! Measured with 2.1.197 and 2.1.325 against a model on the loopback: a cloud that is switched on wins.
//! Then a key (`x-api-key`) and a token (`Authorization`) are both sent where both are set; `env` in
//! settings wins over a variable of the same name; a key helper stands for whichever of the two is
//! missing. A login is used where there is neither a key, nor a token, nor a helper, and
//! `CLAUDE_CODE_OAUTH_TOKEN` wins over the login in the file. An empty variable, or one with spaces only,
//! counts as not set.

use std::path::Path;

use atomic_event::{Payer, PayerKind};
use serde_json::Value;

use super::login::{Users, config_folder};
use crate::login::{Credential, Environment, Pay, chosen_first, gateway, json_object, tilde};

/// The variables with a credential, each with its name in the setting `pay`.
const VARIABLES: [(&str, Pay, PayerKind); 7] = [
    ("ANTHROPIC_API_KEY", Pay::Key, PayerKind::Key),
    ("CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR", Pay::Key, PayerKind::Key),
    ("ANTHROPIC_AUTH_TOKEN", Pay::Token, PayerKind::Token),
    (LOGIN, Pay::Subscription, PayerKind::Subscription),
    (LOGIN_DESCRIPTOR, Pay::Subscription, PayerKind::Subscription),
    (PROFILE, Pay::Token, PayerKind::Token),
    (FEDERATION, Pay::Token, PayerKind::Token),
];

/// The variables of [`FEDERATION`] that mean nothing alone.
const IDENTITY: [&str; 3] =
    ["ANTHROPIC_ORGANIZATION_ID", "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_IDENTITY_TOKEN_FILE"];

/// The variable that chooses an account of `ant auth`.
const PROFILE: &str = "ANTHROPIC_PROFILE";

/// The variable that switches on workload identity.
const FEDERATION: &str = "ANTHROPIC_FEDERATION_RULE_ID";

/// The variable with more headers, a line each.
pub(super) const HEADERS: &str = "ANTHROPIC_CUSTOM_HEADERS";

/// The headers that carry a credential.
const SECRET_HEADERS: [(&str, Pay, PayerKind); 2] =
    [("x-api-key", Pay::Key, PayerKind::Key), ("authorization", Pay::Token, PayerKind::Token)];

/// The variable with the token of a login.
const LOGIN: &str = "CLAUDE_CODE_OAUTH_TOKEN";

/// The variable with the file descriptor of that token.
const LOGIN_DESCRIPTOR: &str = "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR";

/// Switches for cloud providers, with their names and the variables with their addresses.
const CLOUDS: [(&str, &str, &str); 6] = [
    ("CLAUDE_CODE_USE_BEDROCK", "Amazon Bedrock", "ANTHROPIC_BEDROCK_BASE_URL"),
    ("CLAUDE_CODE_USE_MANTLE", "Amazon Bedrock", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL"),
    ("CLAUDE_CODE_USE_ANTHROPIC_AWS", "AWS", "ANTHROPIC_AWS_BASE_URL"),
    ("CLAUDE_CODE_USE_VERTEX", "Google Vertex AI", "ANTHROPIC_VERTEX_BASE_URL"),
    ("CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "Google Cloud", "ANTHROPIC_GOOGLE_CLOUD_BASE_URL"),
    ("CLAUDE_CODE_USE_FOUNDRY", "Microsoft Foundry", "ANTHROPIC_FOUNDRY_BASE_URL"),
];

/// The settings of the machine's administrator. They win over everything else, so nothing can be
/// withheld from the program where they have a credential.
const MANAGED: &str = "/etc/claude-code/managed-settings.json";

/// The name that the program gives to the key in its own file.
const MANAGED_KEY: &str = "/login managed key";

/// The command that prints a key.
const HELPER: &str = "apiKeyHelper";

/// Variables to set for the program, so that only the chosen credential is left of those in our
/// environment.
pub(super) fn withheld_variables(pay: Pay, env: &Environment<'_>) -> Vec<(String, String)> {
    let credentials = VARIABLES.iter().filter(|(_, of, _)| *of != pay).map(|(name, ..)| *name);
    let clouds = CLOUDS.iter().filter(|_| pay != Pay::Cloud).map(|(name, ..)| *name);
    let identity = IDENTITY.iter().filter(|_| pay != Pay::Token).copied();
    let empty = credentials.chain(clouds).chain(identity);
    let mut all: Vec<_> = empty.map(|name| (name.to_owned(), String::new())).collect();
    let headers = env.get(HEADERS).and_then(|text| without_secrets(&text, Some(pay)));
    all.extend(headers.map(|text| (HEADERS.to_owned(), text)));
    all
}

/// Headers without those that carry a credential other than the chosen one; nothing where all of them
/// stay.
pub(super) fn without_secrets(headers: &str, pay: Option<Pay>) -> Option<String> {
    let stays = |line: &&str| secret_header(line).is_none_or(|(_, of, _)| Some(of) == pay);
    let kept: Vec<&str> = headers.lines().filter(stays).collect();
    (kept.len() < headers.lines().count()).then(|| kept.join("\n"))
}

fn secret_header(line: &str) -> Option<(&'static str, Pay, PayerKind)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim().to_lowercase();
    SECRET_HEADERS.into_iter().find(|(known, ..)| *known == name && !value.trim().is_empty())
}

/// Whether a variable in the user's settings file is withheld.
pub(super) fn is_withheld_variable(name: &str, pay: Pay) -> bool {
    let is_credential = VARIABLES.iter().any(|(known, ..)| *known == name);
    let is_switch = CLOUDS.iter().any(|(known, ..)| *known == name);
    let is_identity = IDENTITY.contains(&name) && pay != Pay::Settings;
    is_credential && in_settings(name) != pay || is_identity || is_switch && pay != Pay::Cloud
}

/// The name of the credential in a variable that stands in the settings file.
fn in_settings(name: &str) -> Pay {
    if name.starts_with(LOGIN) { Pay::Subscription } else { Pay::Settings }
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
    found.extend(headers(&users, env, &file));
    let mut accounts = vec![];
    for (name, of, kind) in VARIABLES {
        let in_file = users.env.get(name).filter(|value| is_set(value));
        let in_variable =
            env.get(name).filter(|value| is_set(value)).filter(|value| in_file != Some(value));
        let into = if is_account(name) { &mut accounts } else { &mut found };
        if in_file.is_some() {
            into.push(Credential::of(in_settings(name), kind, place(name, true, &file)));
        }
        // An empty value in the file counts, too: it wins over the variable.
        if in_variable.is_some() && users.env.get(name).is_none_or(|value| is_set(value)) {
            into.push(Credential::of(of, kind, name));
        }
    }
    if users.keys.get(HELPER).and_then(Value::as_str).is_some_and(is_set) {
        found.push(Credential::of(Pay::Helper, PayerKind::Key, place(HELPER, true, &file)));
    }
    found.extend(accounts);
    found.extend(login(&folder, env));
    if !found.iter().any(|one| one.pay == Pay::Subscription) {
        found.extend(stored(&folder, env));
    }
    let mut found = chosen_first(found, pay);
    mark_sent(&mut found, pay);
    let address = gateway(&value("ANTHROPIC_BASE_URL"), &["api.anthropic.com"]);
    for credential in found.iter_mut().filter(|one| one.pay != Pay::Cloud) {
        credential.payer.gateway.clone_from(&address);
    }
    Ok(found)
}

/// The credential in the administrator's settings.
fn managed(file: &Path) -> Option<Credential> {
    let settings = json_object(file).ok()??;
    let is_set = |value: Option<&Value>| value?.as_str().map(is_set);
    let of_env = |name: &str| is_set(settings.get("env")?.get(name));
    let variable = VARIABLES.iter().find(|(name, ..)| of_env(name) == Some(true));
    let helper = is_set(settings.get(HELPER)) == Some(true);
    let helper = helper.then_some((HELPER, PayerKind::Key));
    let (name, kind) = variable.map(|(name, _, kind)| (*name, *kind)).or(helper)?;
    let source = place(name, true, &file.display().to_string());
    let credential = Credential::of(Pay::Settings, kind, source);
    Some(Credential { is_explicit: true, ..credential })
}

/// The credentials in the headers that the user adds to every call.
fn headers(users: &Users, env: &Environment<'_>, file: &str) -> Vec<Credential> {
    let in_file = users.env.get(HEADERS);
    let Some(text) = in_file.cloned().or_else(|| env.get(HEADERS)) else { return vec![] };
    let found = text.lines().filter_map(secret_header).map(|(header, of, kind)| {
        let of = if in_file.is_some() { Pay::Settings } else { of };
        let source = format!("{header} of {}", place(HEADERS, in_file.is_some(), file));
        Credential::of(of, kind, source)
    });
    found.collect()
}

/// Whether a variable stands for a login, which the program uses without any key or token.
fn is_account(name: &str) -> bool {
    name.starts_with(LOGIN) || [PROFILE, FEDERATION].contains(&name)
}

/// Marks what is sent beside the first credential: a token or a helper beside a key, and the other
/// way round. With a choice the others are withheld.
fn mark_sent(found: &mut [Credential], pay: Option<Pay>) {
    let Some((first, rest)) = found.split_first_mut() else { return };
    let is_of_account = |one: &Credential| {
        let source = one.payer.source.as_deref().unwrap_or_default();
        matches!(one.pay, Pay::Cloud | Pay::Subscription | Pay::Stored) || is_account(source)
    };
    if is_of_account(first) || pay.is_some_and(|pay| pay != first.pay) {
        return;
    }
    for one in rest {
        one.is_sent_as_well = !is_of_account(one)
            && pay.is_none_or(|pay| pay == one.pay)
            && (one.payer.kind != first.payer.kind || one.pay == Pay::Helper);
    }
}

/// The payer that the program has reported when it was ready, where that is another kind than the one
/// that was found before. A login in a keychain is known only to the program.
pub(super) fn reported(ready: &Value, expected: Option<&Payer>) -> Option<Payer> {
    let payer = account(ready)?;
    let names_token = ready["account"].get("tokenSource").is_some();
    let is_known = expected.is_some_and(|one| {
        one.kind == payer.kind
            // Both are sent, and the program names the key.
            || [PayerKind::Key, PayerKind::Token].contains(&one.kind)
                && payer.kind != PayerKind::Cloud
                && names_token
    });
    let gateway = expected.and_then(|one| one.gateway.clone());
    (!is_known).then_some(Payer { gateway, ..payer })
}

/// The payer in the program's reply to `initialize`.
fn account(ready: &Value) -> Option<Payer> {
    let account = ready.get("account")?;
    let text = |key: &str| account.get(key).and_then(Value::as_str).filter(|text| *text != "none");
    let plan = text("subscriptionType");
    let subscription =
        Payer { account: plan.map(str::to_owned), ..Payer::of(PayerKind::Subscription) };
    Some(match (text("apiProvider"), text("apiKeySource"), text("tokenSource")) {
        (Some(other), _, _) if other != "firstParty" => {
            Payer { account: Some(other.to_owned()), ..Payer::of(PayerKind::Cloud) }
        }
        (_, Some(MANAGED_KEY), _) if plan.is_some() => subscription,
        (_, Some(source), _) => Payer::new(PayerKind::Key, source),
        (_, None, Some(source)) if source.starts_with(LOGIN) => {
            Payer { source: Some(source.to_owned()), ..subscription }
        }
        (_, None, Some(source)) if source != "claude.ai" => Payer::new(PayerKind::Token, source),
        (_, None, None) if plan.is_none() => return None,
        (_, None, _) => subscription,
    })
}

/// Why nothing may be sent: the program reports another payer than the chosen one, or none where
/// Atomic has not found the chosen one either.
pub(super) fn refusal(ready: &Value, pay: Pay, is_found: bool) -> Option<String> {
    let name = pay.name();
    let Some(payer) = account(ready) else {
        let problem = format!("claude: no credential `{name}` was found");
        let hint = "log in with: claude /login";
        return (!is_found).then(|| format!("{problem}\n  hint: {hint}"));
    };
    let allowed: &[Pay] = match (payer.kind, payer.source.as_deref()) {
        // `settings` also names the helper of the administrator.
        (_, Some(HELPER)) => &[Pay::Helper, Pay::Settings],
        (_, Some(MANAGED_KEY)) => &[Pay::Stored],
        (PayerKind::Key, _) => &[Pay::Key, Pay::Settings],
        (PayerKind::Token, _) => &[Pay::Token, Pay::Settings],
        (PayerKind::Cloud, _) => &[Pay::Cloud],
        _ => &[Pay::Subscription],
    };
    (!allowed.contains(&pay)).then(|| {
        let names: Vec<String> =
            allowed.iter().map(|one| format!("--pay {}", one.name())).collect();
        format!(
            "claude: {payer} would pay, and not the credential `{name}`\n  hint: correct that \
             credential, or choose {}",
            names.join(" | ")
        )
    })
}

/// A variable or a key, with the file it stands in.
fn place(name: &str, is_in_file: bool, file: &str) -> String {
    if is_in_file { format!("{name} of {file}") } else { name.to_owned() }
}

/// Whether a switch is on, by the values that the program takes for it.
pub(super) fn is_on(value: &str) -> bool {
    ["1", "true", "yes", "on"].contains(&value.trim().to_lowercase().as_str())
}

/// Whether a variable counts as set for the program.
fn is_set(value: &str) -> bool {
    !value.trim().is_empty()
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

    use super::{credentials, refusal, reported, withheld_variables, without_secrets};
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
        own.extend([super::HEADERS, super::PROFILE, super::FEDERATION].map(|n| (n, "")));
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
    fn every_credential_counts_also_where_two_have_the_same_name() {
        let env = json!({ "ANTHROPIC_API_KEY": "one", "ANTHROPIC_AUTH_TOKEN": "two" });
        let both = ("settings.json", json!({ "env": env }));
        const KEY: &str =
            "the API key in ANTHROPIC_API_KEY of ~/.claude/settings.json (--pay settings)";
        const TOKEN: &str = "the token in ANTHROPIC_AUTH_TOKEN of ~/.claude/settings.json (--pay \
                             settings), which is sent as well";
        assert_eq!(found(&[], std::slice::from_ref(&both), None), [KEY, TOKEN]);
        assert_eq!(found(&[], &[both], Some(Pay::Settings)), [KEY, TOKEN]);
        let token = ("CLAUDE_CODE_OAUTH_TOKEN", "secret");
        assert_eq!(
            found(&[token], &[login()], None),
            [
                "the subscription in CLAUDE_CODE_OAUTH_TOKEN (--pay subscription)",
                "the subscription (max) in ~/.claude/.credentials.json (--pay subscription)",
            ]
        );
    }

    #[test]
    fn credentials_of_accounts_and_headers_are_found_and_withheld() {
        let table = [
            ("CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR", "3", Pay::Subscription),
            ("CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR", "3", Pay::Key),
            ("ANTHROPIC_PROFILE", "work", Pay::Token),
            ("ANTHROPIC_FEDERATION_RULE_ID", "rule", Pay::Token),
            ("CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "1", Pay::Cloud),
            ("ANTHROPIC_CUSTOM_HEADERS", "X-Tenant: 1\nX-API-Key: secret", Pay::Key),
            ("ANTHROPIC_CUSTOM_HEADERS", "Authorization: Bearer secret", Pay::Token),
        ];
        for (name, value, pay) in table {
            let all = found(&[(name, value)], &[], None);
            assert_eq!(all.len(), 1, "{name}: {all:?}");
            let offer = format!("--pay {}", pay.name());
            assert!(all[0].contains(name) && all[0].contains(&offer), "{all:?}");
            let own = [(name.to_owned(), value.to_owned())];
            let env = Environment(&own);
            let is_withheld =
                |pay| withheld_variables(pay, &env).iter().any(|(known, _)| known == name);
            assert!(!is_withheld(pay) && is_withheld(Pay::Settings), "{name}");
        }
        let names = withheld_variables(Pay::Key, &Environment(&[]));
        assert!(names.iter().any(|(name, _)| name == "ANTHROPIC_IDENTITY_TOKEN"), "{names:?}");
        let headers = "X-Tenant: 1\nx-api-key: secret\nX-B: 2";
        assert_eq!(without_secrets(headers, None).as_deref(), Some("X-Tenant: 1\nX-B: 2"));
        assert_eq!(without_secrets(headers, Some(Pay::Key)), None);
        assert_eq!(found(&[("ANTHROPIC_CUSTOM_HEADERS", "X-Tenant: 1")], &[], None), [""; 0]);
    }

    #[test]
    fn values_count_as_they_do_for_the_program() {
        assert_eq!(found(&[("ANTHROPIC_API_KEY", " \t")], &[], None), [""; 0]);
        let in_file = ("settings.json", json!({ "env": { "ANTHROPIC_AUTH_TOKEN": " " } }));
        assert_eq!(found(&[("ANTHROPIC_AUTH_TOKEN", "secret")], &[in_file], None), [""; 0]);
        for (value, is_on) in [
            ("1", true),
            ("TRUE", true),
            ("Yes", true),
            ("on", true),
            ("no", false),
            ("off", false),
            ("0", false),
            (" ", false),
            ("2", false),
        ] {
            let found = found(&[("CLAUDE_CODE_USE_BEDROCK", value)], &[], None);
            assert_eq!(!found.is_empty(), is_on, "{value}: {found:?}");
        }
    }

    #[test]
    fn nothing_is_sent_where_the_program_reports_another_payer_than_the_chosen_one() {
        let plan = json!({ "subscriptionType": "Claude Max", "apiProvider": "firstParty" });
        let key = json!({ "tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY" });
        let token = json!({ "tokenSource": "ANTHROPIC_AUTH_TOKEN" });
        let helper = json!({ "tokenSource": "apiKeyHelper" });
        let managed = json!({ "apiKeySource": "/login managed key" });
        let cloud = json!({ "apiProvider": "bedrock" });
        let none = json!({ "tokenSource": "none", "apiProvider": "firstParty" });
        let fits: [(&Value, &[Pay]); 6] = [
            (&plan, &[Pay::Subscription]),
            (&key, &[Pay::Key, Pay::Settings]),
            (&token, &[Pay::Token, Pay::Settings]),
            (&helper, &[Pay::Helper, Pay::Settings]),
            (&managed, &[Pay::Stored]),
            (&cloud, &[Pay::Cloud]),
        ];
        for (account, allowed) in fits {
            let ready = json!({ "account": account });
            for pay in Pay::ALL {
                let problem = refusal(&ready, pay, true);
                assert_eq!(problem.is_none(), allowed.contains(&pay), "{account} {pay:?}");
            }
        }
        let told = refusal(&json!({ "account": plan }), Pay::Key, true).unwrap();
        assert_eq!(
            told,
            "claude: the subscription (Claude Max) would pay, and not the credential `key`\n  hint: \
             correct that credential, or choose --pay subscription"
        );
        let ready = json!({ "account": none });
        assert_eq!(refusal(&ready, Pay::Key, true), None, "nothing else is known to pay");
        let told = refusal(&ready, Pay::Subscription, false).unwrap();
        assert!(told.starts_with("claude: no credential `subscription` was found"), "{told}");
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
