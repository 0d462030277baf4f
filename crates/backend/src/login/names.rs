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
const WORDS: [&str; 30] = [
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
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "DESCRIPTOR",
    "ENDPOINT",
    "FOUNDRY",
    "GATEWAY",
    "HEADERS",
    "HOST",
    "KEY",
    "MANTLE",
    "OAUTH",
    "ORIGIN",
    "PROVIDER",
    "PROXY",
    "SECRET",
    "SOCKET",
    "TOKEN",
    "URL",
    "VERTEX",
];

/// Words in a variable of the program that make it one about other settings: a file with settings that
/// win over all others, or a list of models with their addresses.
const ABOUT_SETTINGS: [&str; 2] = ["CATALOG", "SETTINGS"];

/// Words that may follow `MODEL` in the name of a variable that names a model.
const OF_A_MODEL: [&str; 6] =
    ["CAPABILITIES", "DESCRIPTION", "FORCE", "NAME", "OPTION", "SUPPORTED"];

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

/// Whether a variable names a model, which a trusted project may do: `ANTHROPIC_DEFAULT_OPUS_MODEL`
/// and its name for people, and not `CLAUDE_CODE_MODEL_CATALOG_URL`.
pub(crate) fn names_model(name: &str) -> bool {
    let name = name.to_uppercase();
    let mut words = name.split('_').skip_while(|word| *word != "MODEL");
    let is_about_provider = |word: &str| word != "ANTHROPIC" && WORDS.contains(&word);
    words.next().is_some()
        && words.all(|word| OF_A_MODEL.contains(&word))
        && !name.split('_').any(is_about_provider)
}

/// Whether a variable is never taken from a project's file: one about the provider or about other
/// settings, one that moves the folders where credentials are kept, or one that says where telemetry
/// and sessions are sent.
pub(crate) fn is_withheld(name: &str) -> bool {
    let upper = name.to_uppercase();
    let moves_folders = ["HOME", "XDG_CONFIG_HOME", "NODE_OPTIONS", "SESSION_INGRESS_URL"]
        .contains(&upper.as_str());
    let is_about_settings = PROGRAM.iter().any(|family| upper.starts_with(family))
        && upper.split('_').any(|word| ABOUT_SETTINGS.contains(&word));
    let is_telemetry = ["OTEL_EXPORTER_", "ANT_OTEL_", "BETA_TRACING_"]
        .iter()
        .any(|family| upper.starts_with(family));
    moves_folders
        || is_about_settings
        || is_telemetry
        || reaches_provider(name) && !names_model(name)
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
            "CLAUDE_CODE_MODEL_CATALOG_URL",
            "CLAUDE_CODE_GATEWAY_MODEL_DISCOVERY_TIMEOUT_MS",
            "CLAUDE_AI_ORIGIN",
            "CLAUDE_CODE_CCR_WORKER_SOCKET",
            "ANTHROPIC_MODEL_ENDPOINT",
            "ANTHROPIC_MODEL_KEY",
            "ANTHROPIC_TOKEN_MODEL",
            "claude_code_model_host",
            "ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION",
        ] {
            assert!(reaches_provider(name) && is_withheld(name), "{name}");
        }
        for name in [
            "ANTHROPIC_MODEL",
            "ANTHROPIC_DEFAULT_OPUS_MODEL_NAME",
            "ANTHROPIC_DEFAULT_OPUS_MODEL_SUPPORTED_CAPABILITIES",
            "ANTHROPIC_CUSTOM_MODEL_OPTION_DESCRIPTION",
        ] {
            assert!(reaches_provider(name) && !is_withheld(name), "{name}");
        }
        for name in [
            "HOME",
            "NODE_OPTIONS",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "CLAUDE_CODE_MODEL_CATALOG",
            "CLAUDE_CODE_MANAGED_SETTINGS_PATH",
            "SESSION_INGRESS_URL",
        ] {
            assert!(!reaches_provider(name) && is_withheld(name), "{name}");
        }
        for name in [
            "PATH",
            "DATABASE_URL",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "CLAUDE_CODE_MAX_RETRIES",
            "MAX_THINKING_TOKENS",
            "BASH_DEFAULT_TIMEOUT_MS",
            "CLAUDE_CODE_SUBAGENT_MODEL",
            "CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP",
        ] {
            assert!(!reaches_provider(name) && !is_withheld(name), "{name}");
        }
    }
}
