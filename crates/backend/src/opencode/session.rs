//! Finding and making sessions.

use std::path::Path;

use atomic_event::{BackendId, ConversationId};
use serde_json::{Value, json};

use super::ID;
use super::server::Server;
use super::wire::Session;
use crate::{BackendError, OpenRequest};

/// Makes a session. With a title of ours, the program need not ask a model for one.
pub(super) async fn made(server: &Server, request: &OpenRequest) -> Result<String, BackendError> {
    let body = json!({ "title": format!("atomic: {}", request.agent) });
    let session: Session = server.http.post("/session", &request.workspace, &body).await?;
    Ok(session.id)
}

/// Whether the program still knows a session.
pub(super) async fn known(server: &Server, id: &str, folder: &Path) -> Result<(), BackendError> {
    let gone = || BackendError::ConversationGone {
        backend: BackendId::from(ID),
        conversation: ConversationId::from(id.to_owned()),
    };
    if !id.starts_with("ses_") || !id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(gone());
    }
    match server.http.get::<Session>(&format!("/session/{id}"), folder).await {
        Ok(_) => Ok(()),
        Err(BackendError::Rejected { .. }) => Err(gone()),
        Err(error) => Err(error),
    }
}

/// The MCP servers of the place, where some of their tools may be ruled out.
pub(super) async fn servers(server: &Server, request: &OpenRequest) -> Vec<String> {
    if request.tools.allow_everything() {
        return vec![];
    }
    // Without the list they are offered, and refused when they are used.
    let told: Value = server.http.get("/mcp", &request.workspace).await.unwrap_or_default();
    told.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}
