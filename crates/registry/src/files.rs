//! Files on disk, whatever state they are in: nothing here hangs, panics or reads without an end.

use std::collections::BTreeSet;
use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use atomic_files::{FileKind, PROJECT_LIMIT, Refusal, refusal};

use crate::finding::Finding;
use crate::project::ProjectFiles;

/// The largest file that is read, in bytes.
pub(crate) const MOST_BYTES: u64 = PROJECT_LIMIT;

/// How many folders inside each other are looked into.
const DEEPEST: usize = 6;

/// A folder that is being looked through.
pub(crate) struct Walk<'f> {
    pub(crate) findings: &'f mut Vec<Finding>,
    /// The project, when links must not lead out of it.
    project: Option<&'f ProjectFiles>,
    /// Links that would have led out of it.
    pub(crate) links_out: Vec<PathBuf>,
    /// Folders that were looked into, by what they really are.
    seen: BTreeSet<(u64, u64)>,
    /// How many files and folders may still be looked at; nothing once there were too many.
    left: Option<usize>,
}

/// What is in a folder, sorted by name.
#[derive(Default)]
pub(crate) struct Listing {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) folders: Vec<PathBuf>,
}

impl<'f> Walk<'f> {
    /// A walk that looks at no more than so many files and folders. With a project, links out of
    /// its repository are not followed.
    pub(crate) fn new(
        findings: &'f mut Vec<Finding>,
        entries: usize,
        project: Option<&'f ProjectFiles>,
    ) -> Self {
        let (seen, links_out) = (BTreeSet::new(), vec![]);
        Self { findings, project, links_out, seen, left: Some(entries) }
    }

    /// Whether a link leads out of the project; tells so.
    pub(crate) fn leads_out(&mut self, path: &Path) -> bool {
        let is_out = self.project.is_some_and(|project| leads_out(project, path));
        if is_out {
            self.findings.push(outside(path));
            self.links_out.push(path.to_owned());
        }
        is_out
    }

    /// Whether there was more than may be looked at.
    pub(crate) fn has_more(&self) -> bool {
        self.left.is_none()
    }

    /// What is in a folder; nothing where there is none, or where it was told why it is not read.
    pub(crate) fn list(&mut self, folder: &Path, depth: usize) -> Option<Listing> {
        self.left?;
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if is_absent(folder, &error) => return None,
            Err(error) => {
                let message = format!("the folder cannot be read: {error}");
                self.findings.push(Finding::skipped(folder, message, "make it readable"));
                return None;
            }
        };
        if depth > DEEPEST {
            let message = format!("more than {DEEPEST} folders are inside each other here");
            self.findings.push(Finding::skipped(folder, message, "make it flatter"));
            return None;
        }
        if let Ok(meta) = fs::metadata(folder)
            && !self.seen.insert((meta.dev(), meta.ino()))
        {
            let message = "the folder leads back to one that was read";
            self.findings.push(Finding::skipped(folder, message, "remove the link"));
            return None;
        }
        let mut found: Vec<(PathBuf, io::Result<FileType>)> = vec![];
        for entry in entries {
            self.left = self.left.and_then(|left| left.checked_sub(1));
            if self.left.is_none() {
                break;
            }
            match entry {
                Ok(entry) => found.push((entry.path(), entry.file_type())),
                Err(error) => {
                    let message = format!("the folder cannot be read to its end: {error}");
                    self.findings.push(Finding::skipped(folder, message, "make it readable"));
                    break;
                }
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut listing = Listing::default();
        for (path, kind) in found {
            self.sort_in(path, kind.ok(), &mut listing);
        }
        Some(listing)
    }

    fn sort_in(&mut self, path: PathBuf, kind: Option<FileType>, listing: &mut Listing) {
        let is_hidden =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if is_hidden {
            // Nothing has to be done about it, but whoever looks for it shall find it.
            let message = "its name begins with a dot, so nobody is meant to see it";
            self.findings.push(Finding::aside(&path, message));
            return;
        }
        // Only a link has to be looked up: of everything else the folder says what it is.
        if kind.is_some_and(|kind| kind.is_symlink()) && self.leads_out(&path) {
            return;
        }
        let kind = match kind.filter(|kind| !kind.is_symlink()) {
            Some(kind) => Ok(kind),
            None => fs::metadata(&path).map(|meta| meta.file_type()),
        };
        match kind {
            Ok(kind) if kind.is_dir() => listing.folders.push(path),
            Ok(kind) if kind.is_file() => listing.files.push(path),
            Ok(kind) => {
                let message = Refusal::NotRegular(kind_of(kind)).to_string();
                self.findings.push(Finding::skipped(&path, message, "remove it"));
            }
            Err(error) => {
                let message = format!("it cannot be read: {error}");
                self.findings.push(Finding::skipped(&path, message, "mend or remove it"));
            }
        }
    }
}

/// The text of a file.
pub(crate) struct Text {
    pub(crate) text: String,
    /// What is odd about it.
    pub(crate) oddity: Option<Finding>,
}

/// Whether an error says that nothing is at a place. A link that leads nowhere is something, and
/// what cannot be looked at may be.
pub(crate) fn is_absent(path: &Path, error: &io::Error) -> bool {
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    is_missing(error) && fs::symlink_metadata(path).is_err_and(|error| is_missing(&error))
}

/// What keeps people out of a folder, and why: the last thing on the way to it that is there, when
/// that is no folder one can enter. Nothing for a folder that can be entered or is only missing.
pub fn obstacle(folder: &Path) -> Option<(PathBuf, io::Error)> {
    let last = folder.ancestors().find(|place| fs::symlink_metadata(place).is_ok())?;
    // Only what is inside a folder says whether it may be entered.
    fs::metadata(last.join(".")).err().map(|error| (last.to_owned(), error))
}

/// Reads a file. In a project, links out of its repository are not followed.
pub(crate) fn read_in(path: &Path, project: Option<&ProjectFiles>) -> Result<Text, Finding> {
    let bytes = match project {
        Some(project) => project.read(path, MOST_BYTES),
        None => atomic_files::read(path, MOST_BYTES),
    };
    match bytes {
        Ok(bytes) => decoded(path, bytes),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// Reads a file of the user's, or one that the user has allowed.
pub(crate) fn read(path: &Path) -> Result<Text, Finding> {
    read_in(path, None)
}

fn unreadable(path: &Path, error: &io::Error) -> Finding {
    match refusal(error) {
        Some(Refusal::Outside) => outside(path),
        Some(refused @ Refusal::TooLarge { .. }) => {
            Finding::skipped(path, refused.to_string(), "shorten it")
        }
        Some(refused) => Finding::skipped(path, refused.to_string(), "remove it"),
        None => Finding::skipped(path, format!("it cannot be read: {error}"), "make it readable"),
    }
}

/// The finding about a link out of the repository.
pub(crate) fn outside(path: &Path) -> Finding {
    let remedy =
        "copy what it leads to into the repository, or look at it, then run: atomic trust .";
    Finding::skipped(path, Refusal::Outside.to_string(), remedy)
}

/// Whether a path leads out of a project's repository.
pub(crate) fn leads_out(project: &ProjectFiles, path: &Path) -> bool {
    let inside = project.require_inside(path);
    inside.is_err_and(|error| refusal(&error) == Some(Refusal::Outside))
}

fn kind_of(found: FileType) -> FileKind {
    if found.is_fifo() {
        FileKind::Fifo
    } else if found.is_socket() {
        FileKind::Socket
    } else {
        FileKind::Device
    }
}

/// The text of a file.
fn decoded(path: &Path, bytes: Vec<u8>) -> Result<Text, Finding> {
    if let Some(text) = utf16(&bytes) {
        let message = "it is UTF-16, which other programs do not read";
        let oddity = Finding::odd(path, message, "save it as UTF-8");
        return Ok(Text { text, oddity: Some(oddity) });
    }
    if bytes.contains(&0) {
        return Err(Finding::skipped(path, "it is no text", "remove it"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Text { text, oddity: None }),
        Err(error) => {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let message = "it is not UTF-8; what could not be read is shown as \u{fffd}";
            let oddity = Finding::odd(path, message, "save it as UTF-8").at(line);
            Ok(Text { text, oddity: Some(oddity) })
        }
    }
}

/// The text of bytes that say they are UTF-16.
fn utf16(bytes: &[u8]) -> Option<String> {
    let unit = match bytes.get(..2)? {
        [0xff, 0xfe] => u16::from_le_bytes,
        [0xfe, 0xff] => u16::from_be_bytes,
        _ => return None,
    };
    let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: String = char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect();
    // Something else may begin with these bytes.
    (!text.contains('\0')).then_some(text)
}
