//! The keys of one object: each is asked for, and what nobody asked for is a mistake.

use atomic_graph::check::nearest;

use super::fault::{Faults, code};
use super::json::{Body, Entry, Item};

/// The keys of an object that is being read.
pub(super) struct Fields<'d> {
    pub(super) at: usize,
    /// What the object is, for a sentence: `an agent node`.
    what: String,
    entries: &'d [Entry],
    asked: Vec<&'static str>,
}

impl<'d> Fields<'d> {
    pub(super) fn new(item: &'d Item, entries: &'d [Entry], what: impl Into<String>) -> Self {
        Self { at: item.at, what: what.into(), entries, asked: vec![] }
    }

    /// Says what the object is, once that is known.
    pub(super) fn turn_out(&mut self, what: impl Into<String>) {
        self.what = what.into();
    }

    /// The value of a key; `null` counts as absent.
    pub(super) fn take(&mut self, key: &'static str) -> Option<&'d Item> {
        self.take_even_null(key).filter(|item| !matches!(item.body, Body::Null))
    }

    /// The value of a key for which `null` is a value too.
    pub(super) fn take_even_null(&mut self, key: &'static str) -> Option<&'d Item> {
        self.asked.push(key);
        self.peek(key)
    }

    /// The value of a key that goes by several names.
    pub(super) fn take_one_of(
        &mut self,
        keys: &[&'static str],
        faults: &mut Faults<'_>,
    ) -> Option<&'d Item> {
        let mut first = None;
        for key in keys {
            let Some(item) = self.take(key) else { continue };
            match first {
                None => first = Some((key, item)),
                Some((first, _)) => {
                    let message = format!("\"{first}\" and \"{key}\" mean the same");
                    faults.add(code::SAID_TWICE, item.at, message, "remove one of the two");
                }
            }
        }
        first.map(|(_, item)| item)
    }

    /// The value of a key that must be there.
    pub(super) fn need(
        &mut self,
        keys: &[&'static str],
        what_for: &str,
        faults: &mut Faults<'_>,
    ) -> Option<&'d Item> {
        let item = self.take_one_of(keys, faults);
        if item.is_none() {
            self.lacks(keys.first().copied().unwrap_or_default(), what_for, faults);
        }
        item
    }

    /// Reports that a key is missing.
    pub(super) fn lacks(&self, key: &str, what_for: &str, faults: &mut Faults<'_>) {
        let message = format!("{} needs \"{key}\"", self.what);
        faults.add(code::MISSING_KEY, self.at, message, format!("add \"{key}\": {what_for}"));
    }

    /// The value of a key, without asking for it.
    pub(super) fn peek(&self, key: &str) -> Option<&'d Item> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item)
    }

    /// Reports every key that nobody asked for.
    pub(super) fn finish(mut self, faults: &mut Faults<'_>) {
        self.asked.sort_unstable();
        self.asked.dedup();
        for entry in self.entries {
            let key = entry.key.as_str();
            if self.asked.binary_search(&key).is_ok() || UNREAD.contains(&key) {
                continue;
            }
            let what = &self.what;
            let (message, remedy) = match nearest(key, self.asked.iter().copied()) {
                Some(meant) => (
                    format!("{what} has no \"{key}\" (did you mean \"{meant}\"?)"),
                    format!("write \"{meant}\", or remove it"),
                ),
                None => {
                    let known: Vec<_> = self.asked.iter().map(|k| format!("\"{k}\"")).collect();
                    (
                        format!("{what} has no \"{key}\""),
                        format!("remove it; there are {}", known.join(", ")),
                    )
                }
            };
            faults.add(code::UNKNOWN_KEY, entry.at, message, remedy);
        }
    }
}

/// Keys that may stand everywhere and mean nothing: JSON has no comments, and what was written
/// elsewhere may say where.
const UNREAD: [&str; 2] = ["$comment", "$at"];
