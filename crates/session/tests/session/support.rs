//! What the tests share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::{Created, Envelope, Event, FORMAT, Moment, Origin};
use atomic_session::{Disk, MemoryDisk, Opened, Session, SessionError};
use serde_json::json;

pub(crate) const DIR: &str = "/project/.atomic/sessions/one";
pub(crate) const JOURNAL: &str = "/project/.atomic/sessions/one/journal.jsonl";

pub(crate) fn at() -> Moment {
    Moment("2026-11-15T10:00:00Z".parse().unwrap())
}

pub(crate) fn created_with(format: u32) -> Event {
    Event::SessionCreated(Box::new(Created {
        format,
        session: "0b7c".into(),
        version: "0.1.0".to_owned(),
        workflow: "ralph".into(),
        graph: json!({}),
        graph_hash: String::new(),
        prompt: "build it".to_owned(),
        original_prompt: "build it".to_owned(),
        workspace: PathBuf::from("/project"),
        backend: "script".into(),
        model: None,
        settings: json!({}),
        state: [].into(),
        origin: Origin::default(),
    }))
}

pub(crate) fn created() -> Event {
    created_with(FORMAT)
}

pub(crate) fn noted(text: impl Into<String>) -> Event {
    Event::Noted { text: text.into() }
}

pub(crate) fn memory() -> (MemoryDisk, Arc<dyn Disk>) {
    let memory = MemoryDisk::new();
    (memory.clone(), Arc::new(memory))
}

pub(crate) fn create(disk: &Arc<dyn Disk>, dir: impl AsRef<Path>) -> Session {
    let dir = dir.as_ref().to_owned();
    Session::create(Arc::clone(disk), dir, "a test", created(), at()).unwrap().0
}

pub(crate) fn open(
    disk: &Arc<dyn Disk>,
    dir: impl AsRef<Path>,
) -> Result<(Session, Opened), SessionError> {
    Session::open(Arc::clone(disk), dir.as_ref().to_owned(), "a test")
}

/// Opens a session that must be good and returns what was said in it, after the first fact.
pub(crate) fn texts(disk: &Arc<dyn Disk>, dir: impl AsRef<Path>) -> Vec<String> {
    let (_, opened) = open(disk, dir).unwrap();
    texts_of(&opened.facts)
}

pub(crate) fn texts_of(facts: &[Envelope]) -> Vec<String> {
    let text = |fact: &Envelope| {
        let Event::Noted { text } = &fact.event else { return None };
        Some(text.clone())
    };
    facts.iter().filter_map(text).collect()
}
