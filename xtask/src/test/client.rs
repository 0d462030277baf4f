//! The independent client of the Agent Client Protocol that drives `atomic acp` in tests. After a
//! change to its packages, in `xtask/client`: `npm install --package-lock-only --ignore-scripts
//! --omit-lockfile-registry-resolved`.

use super::npm::Packages;

/// Tells the tests the folder with its `node_modules`.
pub(super) const VARIABLE: &str = "ATOMIC_ACP_CLIENT";

pub(super) const CLIENT: Packages = Packages {
    name: "acp-client",
    what: "the client of the Agent Client Protocol",
    wanted: include_str!("../../client/package.json"),
    locked: include_str!("../../client/package-lock.json"),
    file: "node_modules/@agentclientprotocol/sdk/package.json",
};

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::CLIENT;

    #[test]
    fn the_client_is_pinned() {
        let wanted: Value = serde_json::from_str(CLIENT.wanted).unwrap();
        let locked: Value = serde_json::from_str(CLIENT.locked).unwrap();
        for (name, version) in wanted["dependencies"].as_object().unwrap() {
            let package = &locked["packages"][format!("node_modules/{name}")];
            assert_eq!(package["version"], *version, "{name}");
            assert!(package["integrity"].as_str().unwrap().starts_with("sha512-"), "{name}");
        }
    }
}
