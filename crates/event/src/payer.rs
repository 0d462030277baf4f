//! Who pays for the model calls of a backend.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::BackendId;

/// The kind of credential with which a backend calls its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PayerKind {
    /// A login with an account that pays for a plan.
    Subscription,
    /// An API key, billed by use.
    Key,
    /// A token whose account only the provider or the gateway knows.
    Token,
    /// An account of a cloud provider, such as Amazon Bedrock.
    Cloud,
    /// No credential is sent.
    Nobody,
    /// The agent program decides and does not report it.
    Agent,
    /// Not known: the program may send a credential that Atomic does not find.
    Unknown,
}

/// A credential with which a backend calls its model, never the secret itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Payer {
    /// The kind of credential.
    pub kind: PayerKind,
    /// The provider of the models, where the backend has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The variable, file or command that the credential comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The kind of account, as the program reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The host and port of the gateway, where calls do not go to the provider itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
}

impl Payer {
    /// A credential of a kind that comes from a source.
    pub fn new(kind: PayerKind, source: impl Into<String>) -> Self {
        Self { source: Some(source.into()), ..Self::of(kind) }
    }

    /// A credential of which only the kind is known.
    pub fn of(kind: PayerKind) -> Self {
        Self { kind, provider: None, source: None, account: None, gateway: None }
    }
}

/// The credential, as in `the API key in ANTHROPIC_API_KEY`.
impl fmt::Display for Payer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            PayerKind::Subscription => "the subscription",
            PayerKind::Key => "the API key",
            PayerKind::Token => "the token",
            PayerKind::Cloud => "the cloud account",
            PayerKind::Nobody => return f.write_str("no credential"),
            PayerKind::Unknown => return f.write_str("a credential that is not known"),
            PayerKind::Agent => return f.write_str("the account that the agent program chooses"),
        })?;
        if let Some(account) = &self.account {
            write!(f, " ({account})")?;
        }
        match &self.source {
            Some(source) => write!(f, " in {source}"),
            None => Ok(()),
        }
    }
}

/// The payer of a backend was found out. Recorded before the first call of a run, whenever a run is
/// resumed, and again when the program reports another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PayerFound {
    /// The backend.
    pub backend: BackendId,
    /// Who pays.
    #[serde(flatten)]
    pub payer: Payer,
    /// Other credentials that were found and are not meant to pay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
    /// The project's settings file that chose the backend, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_by: Option<String>,
}

/// One line for people.
impl fmt::Display for PayerFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { backend, payer, unused, chosen_by } = self;
        write!(f, "{backend}")?;
        if let Some(provider) = &payer.provider {
            write!(f, " ({provider})")?;
        }
        if payer.kind == PayerKind::Nobody {
            write!(f, ": {payer} is sent")?;
        } else {
            write!(f, ": paid by {payer}")?;
        }
        if let Some(gateway) = &payer.gateway {
            write!(f, ", through the gateway {gateway}")?;
        }
        if !unused.is_empty() {
            write!(f, "; also found: {}", unused.join(", "))?;
        }
        match chosen_by {
            Some(file) => write!(f, "; {file} chose the backend"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Payer, PayerFound, PayerKind};

    #[test]
    fn the_line_names_the_credential_its_source_and_the_gateway() {
        let payer = |payer: Payer| PayerFound {
            backend: "claude".into(),
            payer,
            unused: vec![],
            chosen_by: None,
        };
        let mut key = payer(Payer::new(PayerKind::Key, "ANTHROPIC_API_KEY"));
        assert_eq!(key.to_string(), "claude: paid by the API key in ANTHROPIC_API_KEY");
        key.payer.gateway = Some("127.0.0.1:4010".to_owned());
        key.unused = vec!["the token in ANTHROPIC_AUTH_TOKEN (--pay token)".to_owned()];
        key.chosen_by = Some(".atomic/settings.json".to_owned());
        assert_eq!(
            key.to_string(),
            "claude: paid by the API key in ANTHROPIC_API_KEY, through the gateway 127.0.0.1:4010; \
             also found: the token in ANTHROPIC_AUTH_TOKEN (--pay token); .atomic/settings.json \
             chose the backend"
        );
        let plan = Payer { account: Some("max".to_owned()), ..Payer::of(PayerKind::Subscription) };
        assert_eq!(payer(plan).to_string(), "claude: paid by the subscription (max)");
    }
}
