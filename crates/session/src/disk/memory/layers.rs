//! Files and folders in two layers: what seems to be there, and what a power cut would leave.

use std::collections::{BTreeMap, BTreeSet};

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) cached: Vec<u8>,
    pub(super) durable: Vec<u8>,
    /// How much of `durable` is also the beginning of `cached`.
    pub(super) common: usize,
    /// How often the content was changed.
    pub(super) changes: i64,
    /// A sync failed: as on Linux, later ones succeed and write nothing.
    pub(super) lost: bool,
}

/// The names in a folder.
#[derive(Debug, Default)]
pub(super) struct Folder {
    pub(super) cached: BTreeMap<String, Entry>,
    pub(super) durable: BTreeMap<String, Entry>,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    File(usize),
    Folder,
}

/// What is being told apart in a power cut.
pub(super) type Survival<'a> = &'a mut dyn FnMut(usize) -> usize;

impl Content {
    /// Copies only what is new, so that a long journal costs no more per sync than a short one.
    pub(super) fn make_durable(&mut self) {
        self.durable.truncate(self.common);
        self.durable.extend_from_slice(&self.cached[self.common..]);
        self.common = self.durable.len();
    }

    pub(super) fn cut(&mut self, len: usize) {
        self.cached.truncate(len);
        self.common = self.common.min(len);
    }

    pub(super) fn settle(&mut self, survive: Survival<'_>) {
        if self.common == self.durable.len() {
            let added = self.cached.len() - self.durable.len();
            self.cached.truncate(self.durable.len() + survive(added));
        } else if survive(1) == 0 {
            self.cached.clone_from(&self.durable);
        }
        self.durable.clone_from(&self.cached);
        self.common = self.durable.len();
        self.lost = false;
    }
}

impl Folder {
    pub(super) fn settle(&mut self, survive: Survival<'_>) {
        let names: BTreeSet<_> = self.cached.keys().chain(self.durable.keys()).cloned().collect();
        for name in names {
            if self.cached.get(&name) == self.durable.get(&name) || survive(1) == 1 {
                continue;
            }
            match self.durable.get(&name) {
                Some(entry) => self.cached.insert(name, *entry),
                None => self.cached.remove(&name),
            };
        }
        self.durable.clone_from(&self.cached);
    }
}
