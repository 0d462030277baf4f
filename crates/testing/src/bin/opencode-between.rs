//! Stands between us and `opencode serve`, for tests of what goes wrong on the way: what it hears is
//! passed on, but after an event that says `garbage, please` comes one that is none, and from one that
//! says `swallow, please` to one that says `enough, please` none is passed on, and then the stream is
//! cut. Events are written down in the file of `ATOMIC_TEST_OPENCODE_LINES`. With a version in `ATOMIC_TEST_OPENCODE_VERSION` it is the server itself, of that version, and
//! nothing else.
#![expect(clippy::print_stdout, reason = "it says where it listens, as the program does")]

use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

const SPOIL: &str = "garbage, please";
const SWALLOW: &str = "swallow, please";
const ENOUGH: &str = "enough, please";

/// An event, in the form of a piece of a body of unknown length, in which there is no JSON.
const GARBAGE: &[u8] = b"9\r\ndata: %\n\n\r\n";

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let here = listener.local_addr()?;
    if let Ok(version) = std::env::var("ATOMIC_TEST_OPENCODE_VERSION") {
        println!("opencode server listening on http://{here}");
        return be(&listener, &version).await;
    }
    let program = std::env::var_os("ATOMIC_TEST_OPENCODE").unwrap_or_default();
    let mut child =
        Command::new(program).args(std::env::args().skip(1)).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or(std::io::ErrorKind::Other)?).lines();
    let mut there = String::new();
    while let Some(line) = lines.next_line().await? {
        if let Some((_, address)) = line.split_once("listening on http://") {
            address.trim().clone_into(&mut there);
            break;
        }
    }
    println!("opencode server listening on http://{here}");
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let there = there.clone();
                if let Ok((client, _)) = accepted {
                    tokio::spawn(async move { pass_on(client, &there).await });
                }
            }
            status = child.wait() => std::process::exit(status?.code().unwrap_or(137)),
        }
    }
}

async fn be(listener: &TcpListener, version: &str) -> std::io::Result<()> {
    loop {
        let (mut client, _) = listener.accept().await?;
        let mut request = [0; 4096];
        let _ = client.read(&mut request).await?;
        let body = format!("{{\"healthy\":true,\"version\":\"{version}\"}}");
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        client.write_all(format!("{head}{body}").as_bytes()).await?;
    }
}

async fn pass_on(client: TcpStream, there: &str) -> std::io::Result<()> {
    let server = TcpStream::connect(there).await?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let answers = tokio::spawn(copy_spoilt(from_server, to_client));
    // When one side is over, so is the other.
    tokio::select! {
        done = copy(from_client, to_server) => done,
        done = answers => done?,
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> std::io::Result<()> {
    tokio::io::copy(&mut from, &mut to).await?;
    to.shutdown().await
}

async fn copy_spoilt(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> std::io::Result<()> {
    let mut bytes = vec![0; 256 * 1024];
    let mut swallows = false;
    let mut kept = Kept::new()?;
    loop {
        let read = from.read(&mut bytes).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        let piece = &bytes[..read];
        kept.take(piece)?;
        let says = |words: &str| piece.windows(words.len()).any(|part| part == words.as_bytes());
        let is_event = piece.ends_with(b"\r\n") && says("data: ");
        swallows |= is_event && says(SWALLOW);
        if swallows && says(ENOUGH) {
            return to.shutdown().await;
        }
        if !swallows {
            to.write_all(piece).await?;
        }
        if is_event && says(SPOIL) {
            to.write_all(GARBAGE).await?;
        }
    }
}

/// The events of one connection, in a file.
struct Kept {
    file: Option<File>,
    line: Vec<u8>,
}

impl Kept {
    fn new() -> std::io::Result<Self> {
        let open = |path| File::options().create(true).append(true).open(path);
        let file = std::env::var_os("ATOMIC_TEST_OPENCODE_LINES").map(open).transpose()?;
        Ok(Self { file, line: vec![] })
    }

    fn take(&mut self, piece: &[u8]) -> std::io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        for byte in piece {
            self.line.push(*byte);
            if *byte == b'\n' {
                if let Some(event) = self.line.strip_prefix(b"data: ") {
                    file.write_all(event)?;
                }
                self.line.clear();
            }
        }
        Ok(())
    }
}
