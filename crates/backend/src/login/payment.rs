//! The credentials that a program could use for its model calls, and the choice among them.

use std::path::Path;

use atomic_event::{Payer, PayerKind};

use super::Environment;

/// The name of a credential in the setting `pay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pay {
    /// The login of the program with an account that has a plan.
    Subscription,
    /// The API key in an environment variable.
    Key,
    /// The token in an environment variable.
    Token,
    /// The key or token in the user's settings file of the program.
    Settings,
    /// The command in the user's settings file that prints a key.
    Helper,
    /// The key that the program itself has stored.
    Stored,
    /// The account of a cloud provider.
    Cloud,
}

impl Pay {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Subscription,
        Self::Key,
        Self::Token,
        Self::Settings,
        Self::Helper,
        Self::Stored,
        Self::Cloud,
    ];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Subscription => "subscription",
            Self::Key => "key",
            Self::Token => "token",
            Self::Settings => "settings",
            Self::Helper => "helper",
            Self::Stored => "stored",
            Self::Cloud => "cloud",
        }
    }

    /// The kind of payer, as far as the name alone says it.
    pub fn kind(self) -> PayerKind {
        match self {
            Self::Subscription => PayerKind::Subscription,
            Self::Key | Self::Settings | Self::Helper | Self::Stored => PayerKind::Key,
            Self::Token => PayerKind::Token,
            Self::Cloud => PayerKind::Cloud,
        }
    }

    /// The credential with this name.
    pub fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pay| pay.name() == name)
    }
}

/// A credential that was found for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Its name in the setting `pay`.
    pub pay: Pay,
    /// What is told about it.
    pub payer: Payer,
    /// Whether the user has said that this one pays: by a switch for a cloud, or by the address of a
    /// provider.
    pub is_explicit: bool,
    /// Whether the program sends it together with the first one.
    pub is_sent_as_well: bool,
}

impl Credential {
    pub(crate) fn new(pay: Pay, payer: Payer) -> Self {
        Self { pay, payer, is_explicit: false, is_sent_as_well: false }
    }

    pub(crate) fn of(pay: Pay, kind: PayerKind, source: impl Into<String>) -> Self {
        Self::new(pay, Payer::new(kind, source))
    }

    /// The credential that an agent program chooses without saying which.
    pub(crate) fn of_agent() -> Self {
        let payer = Payer::of(PayerKind::Agent);
        Self { is_explicit: true, ..Self::new(Pay::Stored, payer) }
    }

    /// The credential with the argument that chooses it.
    pub fn offer(&self) -> String {
        let as_well = if self.is_sent_as_well { ", which is sent as well" } else { "" };
        format!("{} (--pay {}){as_well}", self.payer, self.pay.name())
    }
}

/// The credentials with the chosen one first. Without a choice the order stays.
pub(crate) fn chosen_first(mut found: Vec<Credential>, pay: Option<Pay>) -> Vec<Credential> {
    if let Some(pay) = pay {
        // The sort is stable.
        found.sort_by_key(|credential| credential.pay != pay);
        for credential in &mut found {
            credential.is_sent_as_well = false;
        }
    }
    found
}

/// The host and port of an address, unless it is the provider's own.
pub(crate) fn gateway(address: &str, own: &[&str]) -> Option<String> {
    let address = reqwest::Url::parse(address.trim()).ok()?;
    let host = address.host_str()?;
    if own.contains(&host) {
        return None;
    }
    Some(address.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// A path as users write it.
pub(crate) fn tilde(path: &Path, env: &Environment<'_>) -> String {
    match path.strip_prefix(env.home()) {
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Pay, gateway};

    #[test]
    fn names_are_read_as_they_are_written() {
        for pay in Pay::ALL {
            assert_eq!(Pay::read(pay.name()), Some(pay));
        }
        assert_eq!(Pay::read("cash"), None);
    }

    #[test]
    fn a_gateway_is_a_host_with_its_port() {
        let own = ["api.anthropic.com"];
        for (address, expected) in [
            ("http://127.0.0.1:4010/v1?a=b", Some("127.0.0.1:4010")),
            ("https://user:secret@gateway.example.com/", Some("gateway.example.com")),
            ("https://api.anthropic.com/v1", None),
            ("no address", None),
        ] {
            assert_eq!(gateway(address, &own).as_deref(), expected, "{address}");
        }
    }
}
