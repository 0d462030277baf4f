//! The model of a script, for trying it with a real agent program and no account.
//!
//! `model-server <script.toml> [--port N]`; see `docs/model-server.md`.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use atomic_testing::model::{ModelServer, Received, Script};

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
    writeln!(out, "The model listens at {url}. End it with Ctrl+C. To use it with claude:\n")?;
    for (name, value) in [
        ("ANTHROPIC_BASE_URL", url),
        ("ANTHROPIC_API_KEY", "any"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ] {
        writeln!(out, "export {name}={value}")?;
    }
    writeln!(out)?;
    out.flush()
}

/// A request in one line.
fn line(received: &Received) -> String {
    let Received { method, path, chosen, body, .. } = received;
    let model = body.get("model").and_then(|model| model.as_str()).unwrap_or("-");
    let messages = body.get("messages").and_then(|list| list.as_array()).map_or(0, Vec::len);
    format!("{method} {path} {model} {messages} messages: {chosen}")
}
