//! What is written alike in every API: streams, their ends, and everything that can break.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::answer::{Answer, End, Piece};
use super::asked::Asked;
use super::dialect::Spoken;
use super::script::{Action, ApiError, Break, Ending, Reply};

pub(super) const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";
/// What programs hand back with a thought and never look into.
pub(super) const SEAL: &str = "c2NyaXB0ZWQ=";
/// What the event of [`Break::ErrorEvent`] says.
pub(super) const OVERLOADED: &str = "The script says it is overloaded.";

/// A reply in the format of one API.
pub(super) trait Format {
    /// All of it at once; without its end, nothing is said of why the model stopped.
    fn whole(&self, with_end: bool) -> Value;

    /// The events of a stream but for those that end it.
    fn begin(&self, events: &mut Events);

    /// The events that end a stream.
    fn end(&self, events: &mut Events);

    /// The event that says that the server is overloaded.
    fn overloaded(&self, events: &mut Events);

    /// The same where nothing is streamed: the status and the body.
    fn overloaded_at_once(&self) -> (u16, Value);
}

/// Sends a reply as its script wants it to end.
pub(super) fn send(format: &dyn Format, reply: &Reply, stream: bool) -> Answer {
    match &reply.ending {
        Ending::Broken(how) if stream => broken_stream(format, reply, *how),
        Ending::Broken(how) => broken(format, *how),
        Ending::Hang if stream => Answer { end: End::Hang, ..begun(format, reply).into_answer() },
        Ending::Hang => Answer { end: End::Hang, ..half(format) },
        Ending::Finish | Ending::Error(_) if stream => {
            let mut events = begun(format, reply);
            format.end(&mut events);
            events.into_answer()
        }
        Ending::Finish | Ending::Error(_) => at_once(&format.whole(true)),
    }
}

fn begun(format: &dyn Format, reply: &Reply) -> Events {
    let mut events = Events::new(reply);
    format.begin(&mut events);
    events
}

fn at_once(value: &Value) -> Answer {
    Answer::whole(200, JSON, value.to_string())
}

/// The first half of what is not streamed.
fn half(format: &dyn Format) -> Answer {
    let mut bytes = format.whole(true).to_string().into_bytes();
    bytes.truncate(bytes.len() / 2);
    Answer::whole(200, JSON, bytes)
}

fn broken_stream(format: &dyn Format, reply: &Reply, how: Break) -> Answer {
    let mut events = begun(format, reply);
    match how {
        Break::Cut => {
            events.cut_in_half();
            Answer { end: End::Cut, ..events.into_answer() }
        }
        Break::Garbage => Answer::whole(200, EVENTS, "%%%% not an event\n\u{fffd}:: {{{\n\n"),
        Break::BadJson => {
            events.break_the_first();
            events.into_answer()
        }
        Break::ErrorEvent => {
            events.cut_in_half();
            format.overloaded(&mut events);
            events.into_answer()
        }
        Break::NoFinish => events.into_answer(),
        Break::Close | Break::Empty | Break::Html => without_content(how, EVENTS),
    }
}

fn broken(format: &dyn Format, how: Break) -> Answer {
    match how {
        Break::Cut => Answer { end: End::Cut, ..half(format) },
        Break::Garbage => Answer::whole(200, JSON, "%%%% not JSON"),
        Break::BadJson => half(format),
        Break::ErrorEvent => {
            let (status, body) = format.overloaded_at_once();
            Answer::whole(status, JSON, body.to_string())
        }
        Break::NoFinish => at_once(&format.whole(false)),
        Break::Close | Break::Empty | Break::Html => without_content(how, JSON),
    }
}

/// An answer in which nothing of the reply is left.
fn without_content(how: Break, content: &str) -> Answer {
    match how {
        Break::Html => {
            let page = "<!doctype html><title>Sign in</title><p>Sign in to use this network.";
            Answer::whole(200, "text/html", page)
        }
        Break::Close => Answer { end: End::Close, ..Answer::whole(200, content, "") },
        Break::Cut
        | Break::Garbage
        | Break::BadJson
        | Break::ErrorEvent
        | Break::NoFinish
        | Break::Empty => Answer::whole(200, content, ""),
    }
}

/// An error with its body, and when to try again.
pub(super) fn refusal(error: &ApiError, body: &Value) -> Answer {
    let mut answer = Answer::whole(error.status, JSON, body.to_string());
    if let Some(seconds) = error.retry_after {
        answer.headers.push(("retry-after".into(), seconds.to_string()));
    }
    answer
}

/// The sentence of an error.
pub(super) fn sentence(error: &ApiError) -> String {
    let message = error.message.clone();
    message.unwrap_or_else(|| format!("The script answers with {}.", error.status))
}

/// How many tokens so many bytes may be.
pub(super) fn tokens(size: usize) -> u64 {
    (size as u64 / 4).max(1)
}

/// An id that was never given before.
pub(super) fn new_id(kind: &str) -> String {
    format!("{kind}_{}", Uuid::new_v4().simple())
}

/// The text that a part is streamed as.
pub(super) fn text_of(part: &Action) -> Cow<'_, str> {
    match part {
        Action::Say(text) | Action::Think(text) => Cow::Borrowed(text),
        Action::Call { input, .. } => Cow::Owned(input.to_string()),
    }
}

/// What a reply costs in tokens: what the script says, or an estimate.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    /// Without what has to do with the cache.
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
}

impl Cost {
    pub(super) fn new(spoken: &Spoken<'_>, asked: &Asked<'_>) -> Self {
        let usage = &spoken.reply.usage;
        let written = || spoken.parts.iter().map(|part| text_of(part).len()).sum();
        Self {
            input: usage.input.unwrap_or_else(|| tokens(asked.size)),
            output: usage.output.unwrap_or_else(|| tokens(written())),
            cache_read: usage.cache_read.unwrap_or(0),
            cache_write: usage.cache_write.unwrap_or(0),
        }
    }

    /// Everything that was read, be it from the cache or not.
    pub(super) fn all_input(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }
}

/// Whose words tell why a model stopped.
#[derive(Clone, Copy)]
pub(super) enum Words {
    Anthropic,
    Completions,
    Responses,
}

const END: [&str; 3] = ["end_turn", "stop", "completed"];
const CALL: [&str; 3] = ["tool_use", "tool_calls", "completed"];

/// Why models stop, in the words of each API; those in a line mean the same.
const STOPS: [[&str; 3]; 4] = [
    END,
    CALL,
    ["max_tokens", "length", "max_output_tokens"],
    ["refusal", "content_filter", "content_filter"],
];

/// Why the model stopped, in the words of an API: a script may use those of another.
pub(super) fn stop(spoken: &Spoken<'_>, words: Words) -> String {
    let calls = spoken.parts.iter().any(|part| matches!(part, Action::Call { .. }));
    let row = match &spoken.reply.stop {
        None if calls => CALL,
        None => END,
        Some(wanted) => match STOPS.into_iter().find(|row| row.contains(&wanted.as_str())) {
            Some(row) => row,
            None => return wanted.clone(),
        },
    };
    let [anthropic, completions, responses] = row;
    let word = match words {
        Words::Anthropic => anthropic,
        Words::Completions => completions,
        Words::Responses => responses,
    };
    word.to_owned()
}

/// A text in pieces of so many characters.
fn in_pieces(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// Events of a stream, in as few pieces as the pauses between them allow.
pub(super) struct Events {
    /// Each event, and how long it is waited for.
    written: Vec<(Duration, String)>,
    /// How many characters a piece of a text has.
    chunk: usize,
    /// How long to wait between two pieces of texts.
    pause: Duration,
    /// Whether there was a piece of a text.
    had_piece: bool,
    /// How long to wait before the next event.
    due: Duration,
}

impl Events {
    fn new(reply: &Reply) -> Self {
        Self {
            written: Vec::new(),
            chunk: reply.chunk.map_or(usize::MAX, usize::from),
            pause: reply.pause,
            had_piece: false,
            due: Duration::ZERO,
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.written.len()
    }

    /// An event with a name, which its data repeats.
    pub(super) fn add(&mut self, kind: &str, fields: Value) {
        let mut data = json!({ "type": kind });
        if let (Some(data), Value::Object(fields)) = (data.as_object_mut(), fields) {
            data.extend(fields);
        }
        self.push(format!("event: {kind}\ndata: {data}\n\n"));
    }

    /// An event without a name.
    pub(super) fn add_data(&mut self, data: &str) {
        self.push(format!("data: {data}\n\n"));
    }

    fn push(&mut self, event: String) {
        self.written.push((mem::take(&mut self.due), event));
    }

    /// Adds an event for each piece of a text, with pauses between.
    pub(super) fn add_pieces(&mut self, text: &str, mut add: impl FnMut(&mut Self, &str)) {
        for piece in in_pieces(text, self.chunk) {
            if mem::replace(&mut self.had_piece, true) {
                self.due = self.pause;
            }
            add(self, piece);
        }
    }

    /// Keeps the first half, at least one event and not all.
    fn cut_in_half(&mut self) {
        self.written.truncate(self.written.len().div_ceil(2));
    }

    /// Keeps the first, and of its JSON only what is before the first key of the second object:
    /// programs that look at the parser's words hear the same in every API.
    fn break_the_first(&mut self) {
        self.written.truncate(1);
        if let Some((_, event)) = self.written.first_mut()
            && let Some((end, _)) = event.match_indices('{').nth(1)
        {
            event.truncate(end + 1);
            event.push_str("\n\n");
        }
    }

    fn into_answer(self) -> Answer {
        let mut pieces: VecDeque<(Duration, String)> = VecDeque::new();
        for (after, event) in self.written {
            match pieces.back_mut() {
                Some((_, text)) if after.is_zero() => text.push_str(&event),
                _ => pieces.push_back((after, event)),
            }
        }
        let piece = |(after, text): (_, String)| Piece { after, bytes: text.into() };
        let pieces = pieces.into_iter().map(piece).collect();
        let headers = vec![("content-type".into(), EVENTS.to_owned())];
        Answer { status: 200, headers, pieces, end: End::Finish }
    }
}
