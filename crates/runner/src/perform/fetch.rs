//! What work may ask of the network.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::request::LARGEST;

/// How long an answer may take when nobody says otherwise.
const FETCH_LIMIT: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FetchArgs {
    pub(super) url: String,
    pub(super) method: Option<String>,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    body: Option<String>,
    timeout_ms: Option<u64>,
}

/// An address without what may be a secret: who asks, and what comes after the path.
pub(super) fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// Asks an address for something.
pub(super) async fn fetch(args: FetchArgs) -> Result<Value, String> {
    let FetchArgs { url, method, headers, body, timeout_ms } = args;
    let limit = timeout_ms.map_or(FETCH_LIMIT, Duration::from_millis);
    let shown = without_secrets(&url);
    let failed = |what: &str, error: &reqwest::Error| format!("{shown} {what}: {}", chain(error));
    let method = method.unwrap_or_else(|| "GET".to_owned()).to_uppercase();
    let method = reqwest::Method::from_bytes(method.as_bytes())
        .map_err(|_| format!("`{method}` is no method of HTTP"))?;
    let client = super::tls::client().map_err(|problem| format!("{shown}: {problem}"))?;
    let mut request = client.request(method, &url).timeout(limit);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(body) = body {
        request = request.body(body);
    }
    let mut answer = request.send().await.map_err(|error| failed("did not answer", &error))?;
    let status = answer.status().as_u16();
    let mut headers = Map::new();
    for (name, value) in answer.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        let known = headers.entry(name.as_str()).or_insert_with(|| json!(""));
        let all = known.as_str().filter(|all| !all.is_empty()).map(|all| format!("{all}, {value}"));
        *known = json!(all.unwrap_or_else(|| value.into_owned()));
    }
    let mut bytes = vec![];
    while let Some(chunk) = answer.chunk().await.map_err(|error| failed("broke off", &error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > LARGEST {
            return Err(format!("{shown} answered with more than {LARGEST} bytes"));
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(json!({ "status": status, "headers": headers, "text": text }))
}

/// What went wrong, down to its cause; the address is said elsewhere, and may hold a secret.
fn chain(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it took too long".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
