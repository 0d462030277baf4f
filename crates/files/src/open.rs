//! Opening a path below a folder that is already open.

use std::path::{Component, Path};

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::{Errno, Result};

/// Flags for every open: a FIFO does not block, a terminal does not become ours.
pub(crate) const SAFE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// For a folder that is only gone through.
#[cfg(target_os = "linux")]
pub(crate) const PASSAGE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(crate) const PASSAGE: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Attempts at an open that a rename elsewhere disturbs.
#[cfg(target_os = "linux")]
const ATTEMPTS: u32 = 16;

/// Opens a path below `root`. No component of the path may be a link; `LOOP` says that one is.
pub(crate) fn without_links(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match resolved(root, path, (flags, mode), resolve) {
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
            done => return done,
        }
    }
    step_by_step(root, path, flags, mode)
}

/// Opens a path below `root` for reading. Links are followed as long as they are relative and
/// nothing on the way leaves `root`; other links are an error, and the caller finds out more.
pub(crate) fn with_links_beneath(root: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | SAFE;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match resolved(root, path, (flags, Mode::empty()), resolve) {
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
            done => return done,
        }
    }
    step_by_step(root, path, flags, Mode::empty())
}

#[cfg(target_os = "linux")]
fn resolved(
    root: BorrowedFd<'_>,
    path: &Path,
    (flags, mode): (OFlags, Mode),
    resolve: rustix::fs::ResolveFlags,
) -> Result<OwnedFd> {
    let mut attempt = 1;
    loop {
        match rustix::fs::openat2(root, path, flags | OFlags::CLOEXEC, mode, resolve) {
            Err(Errno::AGAIN) if attempt < ATTEMPTS => attempt += 1,
            done => return done,
        }
    }
}

/// The same for systems without `openat2`: every folder is opened in the one before, none of them
/// through a link.
fn step_by_step(root: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    let mut names = vec![];
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(Errno::XDEV);
            }
        }
    }
    let Some((last, before)) = names.split_last() else {
        return openat(root, ".", flags | OFlags::CLOEXEC, mode);
    };
    let mut folder: Option<OwnedFd> = None;
    let at = |folder: &Option<OwnedFd>, name: &std::ffi::OsStr, flags: OFlags, mode: Mode| {
        let inside = folder.as_ref().map_or(root, rustix::fd::AsFd::as_fd);
        openat(inside, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode).map_err(|error| {
            // A link where a folder is wanted is not a folder on one system, and a loop on another.
            match error {
                Errno::NOTDIR | Errno::MLINK if is_link(inside, name) => Errno::LOOP,
                other => other,
            }
        })
    };
    for name in before {
        folder = Some(at(&folder, name, PASSAGE, Mode::empty())?);
    }
    at(&folder, last, flags, mode)
}

fn is_link(folder: BorrowedFd<'_>, name: &std::ffi::OsStr) -> bool {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use rustix::fd::AsFd as _;
    use rustix::fs::{Mode, OFlags, open};
    use rustix::io::Errno;

    use super::{PASSAGE, step_by_step, without_links};

    /// Kernels before 5.6 and some sandboxes have no `openat2`.
    #[test]
    fn both_ways_to_open_agree() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::create_dir_all(path("a/b")).unwrap();
        fs::write(path("a/b/c"), "").unwrap();
        symlink("b", path("a/link")).unwrap();
        symlink("c", path("a/b/last")).unwrap();
        let folder = open(root.path(), PASSAGE, Mode::empty()).unwrap();
        for (name, expected) in [
            ("", Ok(())),
            ("a/b/c", Ok(())),
            ("./a/b", Ok(())),
            ("a/link/c", Err(Errno::LOOP)),
            ("a/b/last", Err(Errno::LOOP)),
            ("a/x", Err(Errno::NOENT)),
            ("a/b/c/d", Err(Errno::NOTDIR)),
            ("../x", Err(Errno::XDEV)),
            ("/etc", Err(Errno::XDEV)),
        ] {
            for way in [without_links, step_by_step] {
                let opened = way(folder.as_fd(), Path::new(name), OFlags::RDONLY, Mode::empty());
                assert_eq!(opened.map(drop), expected, "{name}");
            }
        }
    }
}
