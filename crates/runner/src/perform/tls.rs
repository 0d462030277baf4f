//! How the network is reached, encrypted or not.

/// A client that follows redirects, and trusts whom the machine trusts.
pub(super) fn client() -> Result<reqwest::Client, String> {
    // Fails where somebody has chosen already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let unusable = |error: reqwest::Error| {
        let mut cause: &dyn std::error::Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        format!("the network cannot be used: {cause}")
    };
    reqwest::Client::builder().build().map_err(unusable)
}
