//! `atomic acp`: Atomic as an agent in editors, over standard input and output.
//!
//! What is said in the protocol's words comes from `atomic_acp`; here it is wired up. `wire` moves
//! lines, `desk` knows the sessions, `turn` answers a prompt: by `slash` what was typed after a
//! slash, by `play` a run, else by `chat` a turn of the session's own conversation. `record` is what
//! is kept of a session.

mod ask;
mod chat;
mod commands;
mod desk;
mod exchange;
mod payer;
mod play;
mod record;
mod seat;
mod slash;
mod start;
mod trouble;
mod turn;
mod wait;
mod wire;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    CancelNotification, CloseSessionRequest, InitializeRequest, ListSessionsRequest,
    LoadSessionRequest, NewSessionRequest, PromptRequest, ResumeSessionRequest,
};
use agent_client_protocol::{Agent, ConnectTo, Error, on_receive_notification, on_receive_request};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::AcpArgs;
use crate::commands::run::runtime;
use crate::failure::Failure;
use crate::paint;
use desk::Desk;

/// How long what was said last may take to be read once the input has ended.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How long the rest may take once nobody listens any more.
const LAST_WORK: Duration = Duration::from_secs(10);

pub(crate) fn acp(args: &AcpArgs) -> Result<ExitCode, Failure> {
    let runtime = runtime()?;
    let desk = Arc::new(Desk::new(args));
    let code = runtime.block_on(async {
        let told = told_to_end()?;
        let (lines, input) = wire::lines();
        let ended = tokio::select! {
            ended = serve(&desk, lines) => ended,
            () = told => Ok(()),
            // Who does not listen any more may not read either.
            () = async { let _ = input.await; tokio::time::sleep(LAST_LINES).await } => Ok(()),
        };
        let code = match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                paint::complain(&format!("the connection with the editor broke: {error}"));
                ExitCode::FAILURE
            }
        };
        if tokio::time::timeout(LAST_WORK, desk.close()).await.is_err() {
            paint::complain("not everything could be stopped in time");
            return Ok(ExitCode::FAILURE);
        }
        Ok(code)
    });
    // Somebody may still wait for a line that never comes.
    runtime.shutdown_background();
    code
}

/// Answers until the other side is gone.
async fn serve(desk: &Arc<Desk>, lines: impl ConnectTo<Agent>) -> Result<(), Error> {
    let [introduce, new, load, resume, list, close, prompt, cancel] =
        std::array::from_fn(|_| Arc::clone(desk));
    Agent
        .v1()
        .name("atomic")
        .on_receive_request(
            async move |asked: InitializeRequest, responder, _| {
                responder.respond(introduce.introduce(&asked))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: NewSessionRequest, responder, line| {
                new.open(&asked, responder, &line)
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: LoadSessionRequest, responder, line| {
                responder.respond_with_result(load.load(&asked, &line))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: ResumeSessionRequest, responder, line| {
                responder.respond_with_result(resume.resume(&asked, &line))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: ListSessionsRequest, responder, _| {
                responder.respond(list.list(asked.cwd.as_deref()))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: CloseSessionRequest, responder, _| {
                close.leave(&asked.session_id, responder)
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: PromptRequest, responder, line| {
                prompt.prompt(&asked, responder, &line)
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |told: CancelNotification, _| {
                cancel.cancel(&told.session_id);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(lines)
        .await
}

/// Waits for a signal that ends programs.
fn told_to_end() -> Result<impl Future<Output = ()>, Failure> {
    let caught = |error| Failure::Failed(format!("signals cannot be caught: {error}"));
    let [mut interrupt, mut terminate, mut hangup] = [
        signal(SignalKind::interrupt()).map_err(caught)?,
        signal(SignalKind::terminate()).map_err(caught)?,
        signal(SignalKind::hangup()).map_err(caught)?,
    ];
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}
