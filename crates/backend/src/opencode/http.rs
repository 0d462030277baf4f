//! Asking the server for something.

use std::path::Path;
use std::time::Duration;

use atomic_event::BackendId;
use reqwest::{Method, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ID;
use crate::BackendError;
use crate::trouble::words_of;
use crate::words::shorten;

/// Who we are to the server.
pub(super) const USER: &str = "opencode";

/// How long an answer may take that needs no model. A folder is looked through when it is first
/// asked about, many at once on a small machine take long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a server is, and the password to it.
#[derive(Clone, Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    address: String,
    password: String,
}

/// Encryption that trusts nobody.
fn no_one() -> Result<rustls::ClientConfig, BackendError> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions();
    let config = config.map_err(|error| BackendError::Misconfigured(error.to_string()))?;
    let nobody = rustls::RootCertStore::empty();
    Ok(config.with_root_certificates(nobody).with_no_client_auth())
}

impl Http {
    pub(super) fn new(address: String, password: String) -> Result<Self, BackendError> {
        // It is on this machine: nothing between us may be asked, whatever the environment says.
        // Nothing is encrypted, so whom the machine trusts need not be read.
        let client = reqwest::Client::builder().no_proxy().tls_backend_preconfigured(no_one()?);
        // The server closes connections that are idle for some seconds. A request that is sent on one
        // just then fails with a reset (seen on a machine under load), so none is kept.
        let client = client.pool_max_idle_per_host(0).build();
        let client = client.map_err(|error| BackendError::Misconfigured(error.to_string()))?;
        Ok(Self { client, address, password })
    }

    /// A request without a limit of time.
    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.address));
        request.basic_auth(USER, Some(&self.password))
    }

    /// Gets something that belongs to a folder.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        folder: &Path,
    ) -> Result<T, BackendError> {
        let request = self.request(Method::GET, path).query(&[("directory", folder)]);
        read(request.timeout(PATIENCE).send().await).await
    }

    /// Deletes something that belongs to a folder.
    pub(super) async fn delete(&self, path: &str, folder: &Path) -> Result<Value, BackendError> {
        let request = self.request(Method::DELETE, path).query(&[("directory", folder)]);
        read(request.timeout(PATIENCE).send().await).await
    }

    /// Sends something that belongs to a folder.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        folder: &Path,
        body: &Value,
    ) -> Result<T, BackendError> {
        let request = self.request(Method::POST, path).query(&[("directory", folder)]);
        read(request.json(body).timeout(PATIENCE).send().await).await
    }
}

/// The answer, when it is one. The server has a page for everything it does not know.
pub(super) async fn read<T: DeserializeOwned>(
    response: reqwest::Result<Response>,
) -> Result<T, BackendError> {
    let response = response.map_err(|error| unreachable(&error))?;
    let status = response.status();
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| kind.starts_with("application/json"));
    let bytes = response.bytes().await.map_err(|error| unreachable(&error))?;
    let text = String::from_utf8_lossy(&bytes);
    // Whoever is told nothing is told so without a kind.
    if status.is_success() && (is_json || bytes.is_empty()) {
        let text = if bytes.is_empty() { "null" } else { &text };
        return serde_json::from_str(text).map_err(|_| garbled(text));
    }
    if !is_json {
        return Err(garbled(&text));
    }
    let said: Value = serde_json::from_str(&text).unwrap_or_default();
    let words = words_of(said.get("data").unwrap_or(&said));
    let message = format!("{} ({status})", shorten(&words));
    Err(BackendError::Rejected { backend: BackendId::from(ID), message })
}

pub(super) fn garbled(text: &str) -> BackendError {
    BackendError::Garbled { backend: BackendId::from(ID), line: shorten(text) }
}

pub(super) fn unreachable(error: &reqwest::Error) -> BackendError {
    let cause = std::iter::successors(Some(error as &dyn std::error::Error), |e| e.source()).last();
    let cause = cause.map(ToString::to_string).unwrap_or_default();
    let status = format!("its server does not answer: {cause}");
    BackendError::Exited { backend: BackendId::from(ID), status }
}
