//! `atomic mcp`: the MCP servers that an agent has here.

use std::process::ExitCode;

use atomic_backend::ServerState;
use atomic_registry::{ACP, ServersFile, agent_program};
use atomic_runner::Inherit;
use console::style;
use serde_json::json;

use super::here::Here;
use crate::args::BackendArgs;
use crate::failure::Failure;
use crate::paint;

pub(crate) fn mcp(args: &BackendArgs) -> Result<ExitCode, Failure> {
    let here = Here::with(&args.place)?;
    let servers = here.ask(async |backend, place| backend.servers(place).await)?;
    let lines: Vec<String> = if args.json {
        servers.iter().map(|server| as_json(&here, server)).collect()
    } else {
        paint::aligned(&servers.iter().map(row).collect::<Vec<_>>())
    };
    if !lines.is_empty() {
        paint::line(&lines.join("\n"));
    }
    match remark(&here, servers.is_empty()) {
        Some(remark) if args.json || !servers.is_empty() => paint::aside(&remark),
        Some(remark) => paint::line(&remark),
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(here: &Here, ServerState { name, status, error }: &ServerState) -> String {
    let backend = here.backend.id();
    json!({ "backend": backend, "name": name, "status": status, "error": error }).to_string()
}

fn row(ServerState { name, status, error }: &ServerState) -> [String; 3] {
    let error = error.as_deref().unwrap_or_default();
    let label = paint::label(status);
    let status = match status.as_str() {
        "connected" => style(label).green(),
        "failed" => style(label).red(),
        _ => style(label).yellow(),
    };
    [paint::label(name), status.to_string(), paint::printable(&paint::one_line(error))]
}

/// Why there is nothing, or not all that one may look for.
fn remark(here: &Here, is_empty: bool) -> Option<String> {
    let backend = here.backend.id();
    let Some(place) = agent_program(backend.as_str()).map(|program| program.servers) else {
        let says = match backend.as_str().starts_with(ACP) {
            true => "does not tell of its MCP servers: the protocol has no words for it",
            false => "has no MCP servers",
        };
        return is_empty.then(|| format!("{backend} {says}."));
    };
    let ServersFile { file, key } = place;
    let place = format!("`{key}` in {file}");
    let settings = &here.settings;
    if settings.inherit == Inherit::None {
        return Some(format!("{backend} is given no MCP servers, because `inherit` is `none`."));
    }
    if !settings.program.trusted {
        return Some(format!(
            "This project is not trusted: MCP servers, its own ({place}) and yours, are neither \
             started nor shown. If you trust it: atomic trust . (or, for this once, --trust)"
        ));
    }
    is_empty.then(|| format!("{backend} has no MCP servers here. They are put into {place}."))
}
