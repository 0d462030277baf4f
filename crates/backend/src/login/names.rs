//! Environment variables by which a program chooses its provider, the credential for it, and the
//! way to it. The families follow the lists in Claude Code 2.1.325.

/// Beginnings of names of cloud providers, which many other programs read as well.
const CLOUDS: [&str; 7] =
    ["AWS_", "AZURE_", "CLOUDSDK_", "CLOUD_ML_", "GCE_", "GCLOUD_", "GOOGLE_"];

/// Beginnings of names of the model's provider.
const PROVIDERS: [&str; 2] = ["ANTHROPIC_", "VERTEX_REGION_"];

/// Beginnings of names of the program itself, of which those with one of [`WORDS`] count.
const PROGRAM: [&str; 3] = ["CLAUDE_", "_CLAUDE_", "CCR_"];

/// Words in a variable of the program that make it one about the provider.
const WORDS: [&str; 26] = [
    "API",
    "ANTHROPIC",
    "AUTH",
    "AWS",
    "BEARER",
    "BEDROCK",
    "BODY",
    "CERT",
    "CLIENT",
    "CONFIG",
    "CREDENTIALS",
    "CREDS",
    "DESCRIPTOR",
    "ENDPOINT",
    "FOUNDRY",
    "GATEWAY",
    "HOST",
    "KEY",
    "MANTLE",
    "OAUTH",
    "PROVIDER",
    "PROXY",
    "SECRET",
    "TOKEN",
    "URL",
    "VERTEX",
];

/// The way to the provider: certificates and time limits. Proxies are known by their ending.
const TRANSPORT: [&str; 7] = [
    "API_TIMEOUT_MS",
    "METADATA_SERVER_DETECTION",
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "NODE_USE_SYSTEM_CA",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Whether a variable says how the provider is reached. Programs compare some of these names
/// without regard to case, so case does not count.
pub(crate) fn reaches_provider(name: &str) -> bool {
    let name = name.to_uppercase();
    let begins = |families: &[&str]| families.iter().any(|family| name.starts_with(family));
    let is_of_program = begins(&PROGRAM) && name.split('_').any(|word| WORDS.contains(&word));
    is_of_program
        || begins(&PROVIDERS)
        || is_of_cloud(&name)
        || name.ends_with("_PROXY")
        || TRANSPORT.contains(&name.as_str())
}

/// Whether a variable belongs to a cloud provider.
pub(crate) fn is_of_cloud(name: &str) -> bool {
    let name = name.to_uppercase();
    CLOUDS.iter().any(|family| name.starts_with(family))
}

/// Whether a variable names a model, which a trusted project may do.
pub(crate) fn names_model(name: &str) -> bool {
    name.to_uppercase().split('_').any(|word| word == "MODEL")
}

/// Whether a variable is never taken from a project's file: one about the provider, one that moves
/// the folders where credentials are kept, or one that says where telemetry is sent.
pub(crate) fn is_withheld(name: &str) -> bool {
    let upper = name.to_uppercase();
    let moves_folders = ["HOME", "XDG_CONFIG_HOME", "NODE_OPTIONS"].contains(&upper.as_str());
    let is_telemetry = ["OTEL_EXPORTER_", "ANT_OTEL_", "BETA_TRACING_"]
        .iter()
        .any(|family| upper.starts_with(family));
    moves_folders || is_telemetry || reaches_provider(name) && !names_model(name)
}

#[cfg(test)]
mod tests {
    use super::{is_withheld, reaches_provider};

    #[test]
    fn variables_about_a_provider_are_told_from_others() {
        for name in [
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_CUSTOM_HEADERS",
            "ANTHROPIC_UNIX_SOCKET",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_SKIP_VERTEX_AUTH",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_API_BASE_URL",
            "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
            "CLAUDE_CODE_CLIENT_CERT",
            "CLAUDE_CODE_HTTPS_PROXY",
            "CLAUDE_CODE_EXTRA_BODY",
            "CLAUDE_CONFIG_DIR",
            "AWS_ENDPOINT_URL_BEDROCK",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "https_proxy",
            "ALL_PROXY",
            "NODE_EXTRA_CA_CERTS",
            "API_TIMEOUT_MS",
        ] {
            assert!(reaches_provider(name) && is_withheld(name), "{name}");
        }
        for name in ["ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL_NAME"] {
            assert!(reaches_provider(name) && !is_withheld(name), "{name}");
        }
        for name in ["HOME", "NODE_OPTIONS", "OTEL_EXPORTER_OTLP_ENDPOINT"] {
            assert!(!reaches_provider(name) && is_withheld(name), "{name}");
        }
        for name in [
            "PATH",
            "DATABASE_URL",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "CLAUDE_CODE_MAX_RETRIES",
            "MAX_THINKING_TOKENS",
            "BASH_DEFAULT_TIMEOUT_MS",
        ] {
            assert!(!reaches_provider(name) && !is_withheld(name), "{name}");
        }
    }
}
