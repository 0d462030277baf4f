//! Starting the program, for the first time and again.

use std::sync::Arc;
use std::time::Duration;

use atomic_event::{BackendId, StepError, Stop};
use serde_json::Value;

use super::ID;
use super::decode::{Decoder, Heard};
use super::program::ClaudeProgram;
use crate::claude::login::settings_file;
use crate::claude::new_id;
use crate::process::{Exit, Process};
use crate::trouble::Kind;
use crate::turn::Input;
use crate::words::shorten;
use crate::{BackendError, OpenRequest};

/// How long the program may take until it is ready; many at once on a small machine take long.
const READY: Duration = Duration::from_secs(120);

/// Whether the program has kept the conversation, and so can continue it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    No,
    /// It was told something, and may have ended before it kept it.
    Perhaps,
    Yes,
}

impl ClaudeProgram {
    /// Starts the program and waits until it is ready; returns what it says about itself.
    pub(super) async fn launch(&mut self) -> Result<Value, BackendError> {
        let ready = self.launch_once().await;
        if self.known == Known::Perhaps
            && matches!(ready, Err(BackendError::ConversationGone { .. }))
        {
            // It ended before it had kept anything of the first turn: there is nothing to lose.
            self.known = Known::No;
            let again = self.launch_once().await;
            if !again.as_ref().is_err_and(is_id_taken) {
                return again;
            }
            // Claude Code 2.1.325 makes the file of a conversation before it writes the first prompt
            // into it. When it is killed in between, it can neither continue the conversation nor
            // begin another one with its id.
            self.rename(new_id());
            return self.launch_once().await;
        }
        ready
    }

    async fn launch_once(&mut self) -> Result<Value, BackendError> {
        let starts = Arc::clone(&self.shared.starts);
        let _place = starts.acquire().await;
        let OpenRequest { workspace, inherit, .. } = &self.launch.request;
        let settings = settings_file(workspace, *inherit, &self.launch.env, self.launch.pay)?;
        self.launch.settings = settings.map(Arc::new);
        let job = self.launch.job(&self.current_id(), self.known != Known::No);
        let started = Process::start(&self.shared.guard, &job);
        self.process =
            Some(started.map_err(|error| BackendError::Misconfigured(error.to_string()))?);
        self.decoder = Decoder::default();
        self.early.clear();
        let wish = self.launch.initialize();
        let request = self.send_request(&wish);
        let ready = async {
            loop {
                let Some(line) = self.line().await else {
                    return Err(self.why_not_ready(None).await);
                };
                for heard in self.decoder.line(&line) {
                    if let Heard::Replied { request: answered, response } = &heard
                        && *answered == request
                    {
                        return response.clone().map_err(BackendError::Misconfigured);
                    }
                    if let Heard::Ended(Stop::Failed(error)) = heard {
                        return Err(self.why_not_ready(Some(error)).await);
                    }
                    if heard == Heard::Garbled {
                        return Err(garbled(&line));
                    }
                    let input = self.on_heard(heard);
                    // An end or a retry during a start belongs to no turn.
                    self.early.extend(input.filter(|input| matches!(input, Input::Event(_))));
                }
            }
        };
        let ready = match tokio::time::timeout(READY, ready).await {
            Ok(ready) => ready,
            Err(_) => Err(BackendError::Exited {
                backend: BackendId::from(ID),
                status: format!("it was not ready after {} s", READY.as_secs()),
            }),
        };
        if ready.is_err()
            && let Some(unready) = self.process.take()
        {
            unready.kill().await;
        }
        ready
    }

    async fn why_not_ready(&mut self, said: Option<StepError>) -> BackendError {
        let Some(process) = self.process.take() else {
            return BackendError::Misconfigured("the program was not started".to_owned());
        };
        let exit = process.exit().await;
        let gone = said.as_ref().is_some_and(|error| error.code == Kind::ConversationGone.code())
            || exit.complaint.contains("No conversation found");
        if gone {
            let conversation = self.current_id();
            return BackendError::ConversationGone { backend: BackendId::from(ID), conversation };
        }
        if matches!(exit.code, Some(126 | 127)) {
            let program = self.launch.program.clone();
            return BackendError::NotInstalled { backend: BackendId::from(ID), program };
        }
        let said = said.map(|error| error.message).filter(|text| !text.is_empty());
        exited(&Exit { complaint: said.unwrap_or(exit.complaint.clone()), ..exit })
    }
}

/// Whether a new conversation was refused because there is a file of one with its id.
fn is_id_taken(error: &BackendError) -> bool {
    matches!(error, BackendError::Exited { status, .. } if status.contains("is already in use"))
}

pub(super) fn exited(exit: &Exit) -> BackendError {
    let mut status = exit.status.clone();
    if !exit.complaint.is_empty() {
        status = format!("{status}: {}", shorten(&exit.complaint));
    }
    BackendError::Exited { backend: BackendId::from(ID), status }
}

pub(super) fn garbled(line: &str) -> BackendError {
    BackendError::Garbled { backend: BackendId::from(ID), line: shorten(line) }
}
