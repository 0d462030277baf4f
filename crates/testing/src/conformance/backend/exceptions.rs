//! What some program cannot do by its protocol, out of the table of capabilities.
#![expect(clippy::expect_used, reason = "a table that cannot be read fails every check")]

use std::sync::LazyLock;

use serde::Deserialize;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("capabilities.toml")).expect("a table of capabilities")
});

#[derive(Deserialize)]
struct Table {
    #[serde(default)]
    exception: Vec<Exception>,
    #[cfg(test)]
    capability: Vec<Capability>,
    #[cfg(test)]
    failure: Vec<Capability>,
}

/// A check that a backend does not pass.
#[derive(Deserialize)]
struct Exception {
    backend: String,
    check: String,
    fails_with: String,
}

/// What a check has to fail with on a backend, where it is declared that it fails.
pub(super) fn fails_with(backend: &str, check: &str) -> Option<&'static str> {
    let is_it = |it: &&Exception| it.backend == backend && it.check == check;
    TABLE.exception.iter().find(is_it).map(|it| it.fails_with.as_str())
}

#[cfg(test)]
#[derive(Deserialize)]
struct Capability {
    checks: Vec<String>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{TABLE, fails_with};
    use crate::conformance::backend::Check;

    #[test]
    fn every_check_proves_something_and_everything_is_proved_by_checks() {
        let named = TABLE.capability.iter().chain(&TABLE.failure).flat_map(|it| &it.checks);
        let named: Vec<&str> = named.map(String::as_str).collect();
        let distinct: BTreeSet<&str> = named.iter().copied().collect();
        assert_eq!(distinct.len(), named.len(), "a check proves one thing");
        assert_eq!(distinct, Check::all().map(|check| check.name).collect());
    }

    #[test]
    fn an_exception_is_for_one_check_of_one_backend() {
        let one = &TABLE.exception[0];
        assert_eq!(fails_with(&one.backend, &one.check), Some(one.fails_with.as_str()));
        assert_eq!(fails_with("another", &one.check), None);
        assert_eq!(fails_with(&one.backend, "another"), None);
        assert!(TABLE.exception.iter().all(|it| !it.fails_with.is_empty()));
    }
}
