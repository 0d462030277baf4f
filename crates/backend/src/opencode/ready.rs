//! Waiting until a server answers.

use std::time::Duration;

use atomic_event::BackendId;
use reqwest::Method;
use serde_json::Value;

use super::http::{Http, garbled, read, unreachable};
use super::server::ended;
use super::{ID, OLDEST, OpenCodeConfig};
use crate::BackendError;
use crate::process::{Exit, Process};
use crate::version::Version;

/// How long one question whether it is ready may take: some of the first ones are never answered.
pub(super) const ASKING: Duration = Duration::from_secs(2);

/// Between two such questions.
pub(super) const AGAIN: Duration = Duration::from_millis(50);

/// What it says before the address where it listens.
const LISTENING: &str = "listening on ";

/// Why a program cannot be used.
pub(super) enum Unready {
    Ended,
    Unfit(BackendError),
}

impl From<BackendError> for Unready {
    fn from(error: BackendError) -> Self {
        Self::Unfit(error)
    }
}

/// Waits until the program answers.
pub(super) async fn ready(
    config: &OpenCodeConfig,
    process: &mut Process,
    password: String,
) -> Result<Http, Unready> {
    let address = loop {
        let Some(line) = process.line().await else { return Err(Unready::Ended) };
        if let Some((_, address)) = line.split_once(LISTENING) {
            break address.trim().to_owned();
        }
    };
    let http = Http::new(address, password)?;
    let health = loop {
        let asked = http.request(Method::GET, "/global/health").timeout(ASKING).send().await;
        match asked {
            Ok(response) => break read::<Value>(Ok(response)).await?,
            Err(error) if error.is_timeout() || error.is_connect() => {}
            Err(error) => return Err(unreachable(&error).into()),
        }
        tokio::select! {
            line = process.line() => if line.is_none() {
                return Err(Unready::Ended);
            },
            () = tokio::time::sleep(AGAIN) => {}
        }
    };
    let version = health.get("version").and_then(Value::as_str).unwrap_or_default();
    match Version::read(version) {
        Some(found) if found < OLDEST => Err(Unready::Unfit(BackendError::TooOld {
            backend: BackendId::from(ID),
            program: config.program.clone(),
            found: found.to_string(),
            needed: OLDEST.to_string(),
        })),
        Some(_) => Ok(http),
        None => Err(garbled(&health.to_string()).into()),
    }
}

pub(super) fn why_not_ready(config: &OpenCodeConfig, exit: &Exit) -> BackendError {
    if matches!(exit.code, Some(126 | 127)) {
        let (backend, program) = (BackendId::from(ID), config.program.clone());
        return BackendError::NotInstalled { backend, program };
    }
    ended(exit)
}
