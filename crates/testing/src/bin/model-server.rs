//! The model of a script, for trying it with a real agent program and no account.
//!
//! `model-server <script.toml> [--port N]`; see `docs/model-server.md`.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use atomic_testing::model::{ModelServer, Received, Script};
use serde_json::{Value, json};

const USAGE: &str = "usage: model-server <script.toml> [--port N]";
/// The program is ended with Ctrl+C; nothing depends on how long a wait is.
const LONG: Duration = Duration::from_secs(3600);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, problem }) => {
            let _ = writeln!(io::stderr(), "{problem}");
            ExitCode::from(code)
        }
    }
}

struct Failure {
    code: u8,
    problem: String,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self { code: 1, problem: format!("model-server: {error}") }
    }
}

fn run() -> Result<(), Failure> {
    let wrong = |problem: String| Failure { code: 2, problem };
    let (path, port) = arguments(std::env::args().skip(1)).map_err(wrong)?;
    let text = std::fs::read_to_string(&path)
        .map_err(|error| wrong(format!("{path}: {error}; name a script that can be read")))?;
    let script = Script::parse(&text).map_err(|error| wrong(format!("{path}:{error}")))?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let server = ModelServer::start_at(script, address).map_err(|error| Failure {
        code: 1,
        problem: format!("model-server: cannot listen at {address}: {error}; use another --port"),
    })?;
    let mut out = io::stdout().lock();
    greet(&mut out, &server.url())?;
    loop {
        let _ = server.wait_for(|_| true, LONG);
        for received in server.take_requests() {
            writeln!(out, "{}", line(&received))?;
        }
        out.flush()?;
    }
}

fn arguments(mut given: impl Iterator<Item = String>) -> Result<(String, u16), String> {
    let (mut path, mut port) = (None, 0);
    while let Some(argument) = given.next() {
        if argument == "--port" {
            let number = given.next().and_then(|number| number.parse().ok());
            port = number.ok_or(format!("--port wants a number up to 65535\n{USAGE}"))?;
        } else if argument.starts_with('-') || path.is_some() {
            return Err(format!("`{argument}` is not understood\n{USAGE}"));
        } else {
            path = Some(argument);
        }
    }
    path.map(|path| (path, port)).ok_or_else(|| USAGE.to_owned())
}

fn greet(out: &mut impl io::Write, url: &str) -> io::Result<()> {
    writeln!(out, "The model listens at {url}. End it with Ctrl+C.\n")?;
    let base = format!("{url}/v1");
    let providers = opencode(&base).to_string();
    tell(
        out,
        "claude",
        &[
            ("ANTHROPIC_BASE_URL", url),
            ("ANTHROPIC_API_KEY", "any"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ],
    )?;
    tell(
        out,
        "opencode (--model completions/scripted, responses/scripted or messages/scripted)",
        &[("OPENCODE_CONFIG_CONTENT", &format!("'{providers}'"))],
    )?;
    tell(
        out,
        "copilot (or responses instead of completions)",
        &[
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_PROVIDER_TYPE", "openai"),
            ("COPILOT_PROVIDER_WIRE_API", "completions"),
            ("COPILOT_PROVIDER_BASE_URL", &base),
            ("COPILOT_PROVIDER_API_KEY", "any"),
            ("COPILOT_MODEL", "scripted"),
        ],
    )?;
    out.flush()
}

/// Tells what to set for a program.
fn tell(out: &mut impl io::Write, program: &str, variables: &[(&str, &str)]) -> io::Result<()> {
    writeln!(out, "To use it with {program}:\n")?;
    for (name, value) in variables {
        writeln!(out, "export {name}={value}")?;
    }
    writeln!(out)
}

/// Settings of opencode with a provider for each API, and nothing that leaves the machine.
fn opencode(base: &str) -> Value {
    let provider = |package: &str| {
        json!({
            "npm": format!("@ai-sdk/{package}"),
            "options": { "baseURL": base, "apiKey": "any" },
            "models": { "scripted": {
                "tool_call": true,
                "reasoning": true,
                "limit": { "context": 200_000, "output": 8192 },
            } },
        })
    };
    json!({
        "enabled_providers": ["completions", "responses", "messages"],
        "model": "completions/scripted",
        "small_model": "completions/scripted",
        "share": "disabled",
        "autoupdate": false,
        "provider": {
            "completions": provider("openai-compatible"),
            "responses": provider("openai"),
            "messages": provider("anthropic"),
        },
    })
}

/// A request in one line.
fn line(received: &Received) -> String {
    let Received { method, path, chosen, body, .. } = received;
    let model = body.get("model").and_then(|model| model.as_str()).unwrap_or("-");
    let list = body.get("messages").or_else(|| body.get("input"));
    let messages = list.and_then(|list| list.as_array()).map_or(0, Vec::len);
    format!("{method} {path} {model} {messages} messages: {chosen}")
}
