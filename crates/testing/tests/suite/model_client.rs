//! The smallest HTTP client that sees when a connection breaks.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longer than anything here takes; a test that waits so long has failed.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A connection that stays open.
pub(crate) struct Client(BufReader<TcpStream>);

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The lines, in small letters.
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
    /// Whether it ended in good order.
    pub(crate) is_whole: bool,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        Self(BufReader::new(stream))
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, body: &str) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: model\r\nx-api-key: secret\r\nx-app: test\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let stream = self.0.get_mut();
        stream.write_all(head.as_bytes()).expect("the head is sent");
        stream.write_all(body.as_bytes()).expect("the body is sent");
    }

    /// The next answer; none when the connection ends before there is one.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let (status, headers) = self.head()?;
        let has = |line: &str| headers.iter().any(|header| header == line);
        let length = headers.iter().find_map(|line| line.strip_prefix("content-length: "));
        let (body, is_whole) = if has("transfer-encoding: chunked") {
            let mut body = Vec::new();
            let is_whole = loop {
                match self.chunk() {
                    Some(chunk) if chunk.is_empty() => break true,
                    Some(chunk) => body.extend(chunk),
                    None => break false,
                }
            };
            (body, is_whole)
        } else {
            let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a length"))];
            let is_whole = self.0.read_exact(&mut body).is_ok();
            (body, is_whole)
        };
        Some(Answer { status, headers, body: String::from_utf8(body).expect("text"), is_whole })
    }

    /// Status and headers.
    pub(crate) fn head(&mut self) -> Option<(u16, Vec<String>)> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let lines = std::iter::from_fn(|| self.line());
        let headers = lines.take_while(|line| !line.is_empty()).map(|line| line.to_lowercase());
        Some((status, headers.collect()))
    }

    /// The next chunk of a body; an empty one is the last.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line()?, 16).expect("a size");
        let mut chunk = vec![0; size + 2];
        self.0.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        Some(chunk)
    }

    /// Whether the connection is open and nothing is there to be read.
    pub(crate) fn is_waiting(&self) -> bool {
        let stream = self.0.get_ref();
        stream.set_nonblocking(true).expect("it can be looked at");
        let seen = stream.peek(&mut [0]).map_err(|error| error.kind());
        stream.set_nonblocking(false).expect("it can be waited for");
        self.0.buffer().is_empty() && seen == Err(ErrorKind::WouldBlock)
    }

    /// The next line; none at the end of the connection.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("nothing came"),
            Err(_) => None,
        }
    }
}

/// Asks a model over a connection of its own.
pub(crate) fn ask(address: SocketAddr, body: &Value) -> Answer {
    let mut client = Client::new(address);
    client.send("POST", "/v1/messages?beta=true", &body.to_string());
    client.answer().expect("an answer")
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The events of a stream; each event's name is the one in its data.
    pub(crate) fn events(&self) -> Vec<Value> {
        let events = self.body.split_terminator("\n\n").map(|event| {
            let (name, data) = event.split_once("\ndata: ").expect("an event with data");
            let data: Value = serde_json::from_str(data).expect("JSON");
            assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
            data
        });
        events.collect()
    }

    /// What the events of a stream hold, but for the word that ends some of them.
    pub(crate) fn data(&self) -> Vec<Value> {
        let lines = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let lines = lines.filter(|data| *data != "[DONE]");
        lines.map(|data| serde_json::from_str(data).expect("JSON")).collect()
    }

    /// The text of a message that was not streamed.
    pub(crate) fn said(&self) -> String {
        self.json()["content"][0]["text"].as_str().expect("a text").to_owned()
    }
}
