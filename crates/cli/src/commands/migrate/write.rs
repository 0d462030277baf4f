//! Writing the new file: whole or not at all, and never over the old list.

use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::args::MigrateArgs;
use crate::failure::Failure;

/// Writes the file, when nothing speaks against it.
pub(super) fn write(output: &Path, args: &MigrateArgs, text: &str) -> Result<(), Failure> {
    let place = output.display();
    let refused = |why: String| Failure::Failed(format!("{place}: {why}"));
    let real = place_of(output, args).map_err(refused)?;
    replace(&real, text).map_err(|error| {
        let folder = folder_of(&real);
        if folder.is_dir() {
            return refused(format!("it cannot be written: {error}"));
        }
        refused(format!(
            "there is no folder {}; make it first, or name a file somewhere else",
            folder.display()
        ))
    })
}

/// Where the file really is, or will be; else why nothing may be written there.
fn place_of(output: &Path, args: &MigrateArgs) -> Result<PathBuf, String> {
    let found = match fs::metadata(output) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if fs::symlink_metadata(output).is_ok() {
                let remedy = "make the file it names, or name another one";
                return Err(format!("this link leads nowhere; {remedy}"));
            }
            return Ok(output.to_owned());
        }
        Err(error) => return Err(format!("it cannot be written: {error}")),
    };
    if fs::metadata(&args.file).is_ok_and(|list| is_same(&found, &list)) {
        return Err("this is the file that is migrated; name another one".to_owned());
    }
    if found.is_dir() {
        return Err("this is a folder; name a file in it".to_owned());
    }
    if !found.is_file() {
        return Err("this is no file (a pipe, a socket or a device); name another one".to_owned());
    }
    if is_our_output(&found) {
        return Err("this is where the output goes anyway; leave --output away".to_owned());
    }
    if !args.force {
        return Err("it exists; name another file, or overwrite it with --force".to_owned());
    }
    // What a link leads to is overwritten; the link stays.
    output.canonicalize().map_err(|error| format!("it cannot be written: {error}"))
}

/// Whether it is one file, by whatever name.
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Whether our own output goes there: others may be writing to it, too, and would lose it.
fn is_our_output(found: &Metadata) -> bool {
    let streams =
        [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
    let files = streams.into_iter().filter_map(|stream| File::from(stream.ok()?).metadata().ok());
    files.into_iter().any(|stream| is_same(found, &stream))
}

/// The folder a file is in.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let beside = format!(".{}.{}", name.to_string_lossy(), std::process::id());
    let temporary = path.with_file_name(beside);
    let mut file = File::create_new(&temporary)?;
    let mut fill = || {
        file.write_all(text.as_bytes())?;
        if let Ok(before) = fs::metadata(path) {
            file.set_permissions(before.permissions())?;
        }
        file.sync_all()
    };
    let written = fill().and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // What counts is the first error.
        let _ = fs::remove_file(&temporary);
    }
    written
}
