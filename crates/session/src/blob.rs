//! Big values, kept in files of their own that are named by their content.
//!
//! A value over [`INLINE`] bytes is written to `blobs/<sha256>` and stands in the journal as
//! `{"$blob":"<sha256>","bytes":n}`. So that nothing else is ever taken for such a reference, a
//! key of the form `$blob`, `$$blob`, … in what is recorded gets one more `$`.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_files::{Refusal, refusal};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::keep::is_folder_gone;
use crate::{Disk, SessionError, limits, line};

/// The most bytes a value may have and stand in a line.
pub(crate) const INLINE: usize = 16 * 1024;

/// The folder of the big values.
pub(crate) const BLOBS: &str = "blobs";

const REFERENCE: &str = "$blob";

/// Fields every reader needs before it can follow a reference.
const ALWAYS_INLINE: &[&str] = &["seq", "at", "type"];

/// The hash of some bytes as text.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a line may contain a reference, or a key that could be taken for one.
pub(crate) fn may_mention(line: &[u8]) -> bool {
    let pattern = b"$blob\"";
    line.windows(pattern.len()).any(|part| part == pattern)
}

/// The big values of one session.
#[derive(Debug)]
pub(crate) struct Blobs {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// The folder of their second links.
    keep: Option<PathBuf>,
    /// The reason why new values get no second link any more.
    unkept: Option<io::Error>,
    /// Those this handle has made durable. One that is merely there may be lost in a power cut,
    /// when the process that wrote it died before its sync.
    durable: HashSet<String>,
}

impl Blobs {
    pub(crate) fn new(disk: Arc<dyn Disk>, dir: &Path, keep: Option<&Path>) -> Self {
        let keep = keep.map(|keep| keep.join(BLOBS));
        Self { disk, folder: dir.join(BLOBS), keep, unkept: None, durable: HashSet::new() }
    }

    /// Gives new values no second link from now on.
    pub(crate) fn stop_keeping(&mut self) {
        self.keep = None;
    }

    /// The error that has ended the second links, once.
    pub(crate) fn take_unkept(&mut self) -> Option<io::Error> {
        self.unkept.take()
    }

    /// Moves the big values of a fact into files of their own.
    pub(crate) fn lift(&mut self, fact: &mut Value) -> Result<(), SessionError> {
        let Value::Object(fields) = fact else { return Ok(()) };
        rename_keys(fields, is_reserved, |key| format!("${key}"));
        for (name, value) in fields.iter_mut() {
            if !ALWAYS_INLINE.contains(&name.as_str()) {
                self.lift_value(value)?;
            }
        }
        Ok(())
    }

    /// Returns how many bytes the value takes where it was.
    pub(crate) fn lift_value(&mut self, value: &mut Value) -> Result<usize, SessionError> {
        let mut size = 0;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => return Ok(value.to_string().len()),
            Value::String(text) => {
                // Escaping makes a text at most six times as long.
                if text.len() > INLINE / 6 {
                    size = encode(&*text)?.len();
                }
                size = size.max(text.len() + 2);
            }
            Value::Array(items) => {
                for item in items {
                    size += self.lift_value(item)? + 1;
                }
            }
            Value::Object(fields) => {
                rename_keys(fields, is_reserved, |key| format!("${key}"));
                for (name, field) in fields {
                    size += name.len() + 4 + self.lift_value(field)?;
                }
            }
        }
        if size <= INLINE {
            return Ok(size);
        }
        let bytes = encode(&*value)?;
        *value = json!({ REFERENCE: self.store(&bytes)?, "bytes": bytes.len() });
        Ok(value.to_string().len())
    }

    /// Copies the big values that a fact of another session refers to, each checked, and those they
    /// refer to in turn.
    pub(crate) fn copy(
        &mut self,
        from: &mut Resolver<'_>,
        value: &Value,
    ) -> Result<(), SessionError> {
        self.copy_at(from, value, 0)
    }

    fn copy_at(
        &mut self,
        from: &mut Resolver<'_>,
        value: &Value,
        depth: usize,
    ) -> Result<(), SessionError> {
        from.require_depth(depth)?;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
            Value::Array(items) => {
                items.iter().try_for_each(|item| self.copy_at(from, item, depth + 1))
            }
            Value::Object(fields) => {
                let Some(name) = fields.get(REFERENCE) else {
                    let mut fields = fields.values();
                    return fields.try_for_each(|field| self.copy_at(from, field, depth + 1));
                };
                if name.as_str().is_some_and(|name| self.durable.contains(name)) {
                    return Ok(());
                }
                let (bytes, inner) = from.load(name)?;
                self.copy_at(from, &inner, depth + 1)?;
                self.store(&bytes).map(drop)
            }
        }
    }

    fn store(&mut self, bytes: &[u8]) -> Result<String, SessionError> {
        let name = sha256(bytes);
        if !self.durable.contains(&name) {
            let path = self.folder.join(&name);
            self.write(&name, bytes).map_err(SessionError::while_doing("write", &path))?;
            self.durable.insert(name.clone());
        }
        Ok(name)
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.folder.join(name);
        let Some(kept) = self.keep.as_ref().map(|keep| keep.join(name)) else {
            return self.disk.replace(&path, bytes);
        };
        if let Err(error) = self.disk.replace(&kept, bytes) {
            self.disk.replace(&path, bytes)?;
            // Where only the folder was removed, the next look at the journal makes it again.
            if !is_folder_gone(&error) {
                self.keep = None;
                self.unkept = Some(error);
            }
            return Ok(());
        }
        let linked = self.disk.link(&kept, &path).and_then(|()| self.disk.sync_dir(&self.folder));
        let written = match linked {
            Ok(()) => return Ok(()),
            // A value that was there before may not be durable, or not be ours.
            Err(error) if !is_folder_gone(&error) => self.disk.replace(&path, bytes),
            gone => gone,
        };
        match written {
            // The folder of the session was deleted. It is written again from the second links.
            Err(error) if is_folder_gone(&error) => Ok(()),
            done => done,
        }
    }
}

/// Reads the big values of one fact of a session.
pub(crate) struct Resolver<'s> {
    disk: &'s dyn Disk,
    dir: &'s Path,
    /// Makes an error of what is wrong with a value.
    damaged: &'s dyn Fn(String) -> SessionError,
    /// Bytes that may still be read. A value can refer to another one many times, and so on: a few
    /// small files would fill the memory.
    left: u64,
}

impl<'s> Resolver<'s> {
    pub(crate) fn new(
        disk: &'s dyn Disk,
        dir: &'s Path,
        damaged: &'s dyn Fn(String) -> SessionError,
    ) -> Self {
        Self { disk, dir, damaged, left: limits::FACT }
    }

    /// Puts the big values back into a fact.
    pub(crate) fn resolve(&mut self, fact: &mut Value) -> Result<(), SessionError> {
        self.resolve_at(fact, 0)
    }

    fn resolve_at(&mut self, value: &mut Value, depth: usize) -> Result<(), SessionError> {
        self.require_depth(depth)?;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
            Value::Array(items) => {
                items.iter_mut().try_for_each(|item| self.resolve_at(item, depth + 1))
            }
            Value::Object(fields) => {
                if let Some(name) = fields.get(REFERENCE) {
                    (_, *value) = self.load(name)?;
                    return self.resolve_at(value, depth + 1);
                }
                rename_keys(
                    fields,
                    |key| is_reserved(key) && key != REFERENCE,
                    |key| key[1..].into(),
                );
                fields.values_mut().try_for_each(|field| self.resolve_at(field, depth + 1))
            }
        }
    }

    /// Refuses values inside each other without end. A fact is nested at most [`line::DEEPEST`]
    /// levels, and each level can be a value of its own.
    fn require_depth(&self, depth: usize) -> Result<(), SessionError> {
        if depth <= 2 * line::DEEPEST + 2 {
            return Ok(());
        }
        Err((self.damaged)(format!("its values are nested deeper than {} levels", line::DEEPEST)))
    }

    /// A big value, checked: its bytes and the JSON in them.
    fn load(&mut self, name: &Value) -> Result<(Vec<u8>, Value), SessionError> {
        let damaged = self.damaged;
        let is_hash = |name: &&str| name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit());
        let Some(name) = name.as_str().filter(is_hash) else {
            return Err(damaged(format!("{name} does not name a file in {BLOBS}")));
        };
        let path = self.dir.join(BLOBS).join(name);
        let bytes = match self.disk.read(&path, self.left) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(damaged(format!(
                    "the value it keeps in {} is missing",
                    path.display()
                )));
            }
            Err(error) if matches!(refusal(&error), Some(Refusal::TooLarge { .. })) => {
                let most = limits::FACT >> 20;
                return Err(damaged(format!("its values are larger than {most} MB")));
            }
            Err(error) => return Err(SessionError::while_doing("read", &path)(error)),
        };
        // An empty file is not a value, so each one takes something.
        self.left -= bytes.len() as u64;
        if sha256(&bytes) != name {
            let problem = format!("the value it keeps in {} was changed", path.display());
            return Err(damaged(problem));
        }
        let value = serde_json::from_slice(&bytes)
            .map_err(|e| damaged(format!("{} is not valid JSON: {e}", path.display())))?;
        Ok((bytes, value))
    }
}

fn encode(value: &impl serde::Serialize) -> Result<Vec<u8>, SessionError> {
    serde_json::to_vec(value).map_err(|e| SessionError::Unrecordable { problem: e.to_string() })
}

/// `$blob`, `$$blob`, and so on.
fn is_reserved(key: &str) -> bool {
    key.strip_suffix("blob").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b == b'$'))
}

fn rename_keys(
    fields: &mut Map<String, Value>,
    applies: impl Fn(&str) -> bool,
    rename: impl Fn(&str) -> String,
) {
    if !fields.keys().any(|key| applies(key)) {
        return;
    }
    let renamed = std::mem::take(fields).into_iter().map(|(key, value)| {
        let key = if applies(&key) { rename(&key) } else { key };
        (key, value)
    });
    *fields = renamed.collect();
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::{BLOBS, Resolver, sha256};
    use crate::{Disk as _, MemoryDisk, SessionError};

    /// Small values that refer to each other, many times or deeper and deeper.
    #[test]
    fn values_that_grow_without_end_are_damage() {
        let disk = MemoryDisk::new();
        let dir = Path::new("/session");
        disk.create_dir(&dir.join(BLOBS)).unwrap();
        let reference = |value: &Value| {
            let bytes = value.to_string().into_bytes();
            let name = sha256(&bytes);
            disk.replace(&dir.join(BLOBS).join(&name), &bytes).unwrap();
            json!({ "$blob": name, "bytes": bytes.len() })
        };
        let damaged = |problem: String| SessionError::Unrecordable { problem };
        for (levels, times, problem) in [
            (4, 20, "its values are larger than 256 MB"),
            (300, 1, "its values are nested deeper than 127 levels"),
        ] {
            let mut value = json!("leaf");
            for _ in 0..levels {
                value = reference(&json!(vec![value; times]));
            }
            // A fact may take 256 MB, which would take long here.
            let mut resolver = Resolver::new(&disk, dir, &damaged);
            resolver.left = 1 << 20;
            let error = resolver.resolve(&mut value.clone()).unwrap_err();
            assert!(error.to_string().contains(problem), "{levels} levels: {error}");
        }
        let mut fine = reference(&json!([[reference(&json!("leaf"))], "leaf"]));
        Resolver::new(&disk, dir, &damaged).resolve(&mut fine).unwrap();
        assert_eq!(fine, json!([["leaf"], "leaf"]));
    }
}
