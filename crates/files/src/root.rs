//! A folder below which nothing leads out.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::folder::{Folder, Permissions};
use crate::open::{self, PASSAGE};
use crate::read::{bounded, regular, text};
use crate::refusal::{FileKind, Refusal};

/// The root of a repository, or another folder that paths must not leave. Links above the root, and
/// the root itself as a link, are followed.
#[derive(Debug)]
pub struct Root {
    given: PathBuf,
    folder: OwnedFd,
    /// The real path, needed only where a link is absolute.
    real: OnceLock<PathBuf>,
}

impl Root {
    /// Opens a root.
    pub fn open(path: &Path) -> io::Result<Self> {
        let shown = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let folder = rustix::fs::open(shown, PASSAGE, Mode::empty())?;
        Ok(Self { given: path.to_owned(), folder, real: OnceLock::new() })
    }

    /// Reads a regular file of at most `limit` bytes. Links that stay below the root are followed.
    pub fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        bounded(self.open_file(path)?, limit)
    }

    /// The same for a text in UTF-8.
    pub fn read_text(&self, path: &Path, limit: u64) -> io::Result<String> {
        text(self.read(path, limit)?)
    }

    /// Opens a regular file for reading. Links that stay below the root are followed.
    pub fn open_file(&self, path: &Path) -> io::Result<File> {
        let inside = self.relative(path)?;
        let opened = match open::with_links_beneath(self.folder.as_fd(), &inside) {
            // An absolute link that stays inside, or one that leaves. Only its real path tells, and
            // that path is opened without links: when a link was swapped in meanwhile, it fails.
            Err(Errno::XDEV | Errno::LOOP) => {
                let real = self.locate(path)?;
                open::without_links(
                    self.folder.as_fd(),
                    &real,
                    OFlags::RDONLY | open::SAFE,
                    Mode::empty(),
                )
            }
            done => done,
        };
        match opened {
            Ok(file) => regular(file),
            Err(Errno::NXIO) => Err(Refusal::NotRegular(FileKind::Socket).into()),
            Err(Errno::LOOP) => Err(Refusal::Link.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a path leads to a regular file below the root.
    pub fn is_file(&self, path: &Path) -> bool {
        self.open_file(path).is_ok()
    }

    /// Where a path really leads, from the root; an error when that is outside. The answer may be
    /// outdated a moment later, so whoever opens it does so without links.
    pub fn locate(&self, path: &Path) -> io::Result<PathBuf> {
        let root = self.real()?;
        let real = root.join(self.relative(path)?).canonicalize()?;
        real.strip_prefix(root).map(Path::to_owned).map_err(|_| Refusal::Outside.into())
    }

    /// Opens a folder below the root. No component of its path may be a link.
    pub fn folder(&self, path: &Path) -> io::Result<Folder> {
        let inside = self.relative(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match open::without_links(self.folder.as_fd(), &inside, flags, Mode::empty()) {
            Ok(folder) => Ok(Folder::new(folder)),
            Err(Errno::LOOP | Errno::XDEV) => Err(Refusal::Link.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a folder below the root and creates what is missing of its path, durable when this
    /// returns. No component of the path may be a link.
    pub fn create_folder(&self, path: &Path, mode: u32) -> io::Result<Folder> {
        match self.folder(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
        let mut folder = self.folder(Path::new(""))?;
        for part in self.relative(path)?.components() {
            match part {
                Component::Normal(name) => folder = folder.create_folder(name, mode)?,
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(Refusal::Link.into());
                }
            }
        }
        Ok(folder)
    }

    /// Opens the folder of a file; no component may be a link. Returns the file's name in it, too.
    pub fn folder_of<'p>(&self, path: &'p Path) -> io::Result<(Folder, &'p std::ffi::OsStr)> {
        let (folder, name) = split(path)?;
        Ok((self.folder(folder)?, name))
    }

    /// Replaces a file, all or nothing, durable when this returns. A link that stays below the root
    /// is kept, and the file it leads to is replaced.
    pub fn replace(&self, path: &Path, bytes: &[u8], permissions: Permissions) -> io::Result<()> {
        let real = self.target(path)?;
        let (folder, name) = self.folder_of(&real)?;
        let staged = folder.stage(name, bytes, permissions)?;
        staged.sync()?;
        staged.commit()?;
        folder.sync()
    }

    /// The file that is written when something is written to `path`, from the root: where a link
    /// leads, or the path itself where nothing is yet. Folders on the way may be links that stay
    /// below the root.
    pub fn target(&self, path: &Path) -> io::Result<PathBuf> {
        match self.locate(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
        let (folder, name) = split(path)?;
        let folder = self.locate(folder)?;
        match Folder::kind(&self.folder(&folder)?, name)? {
            // A link to a file that is not there.
            Some(FileKind::Link) => Err(Refusal::Link.into()),
            // Another process may have created the file since it was not found.
            Some(_) | None => Ok(folder.join(name)),
        }
    }

    /// A path from the root. A relative one is from the root already.
    fn relative(&self, path: &Path) -> io::Result<PathBuf> {
        if !path.is_absolute() {
            return Ok(path.to_owned());
        }
        let given = path.strip_prefix(&self.given).ok();
        let inside = match given {
            Some(inside) => inside,
            None => path.strip_prefix(self.real()?).map_err(|_| Refusal::Outside)?,
        };
        Ok(inside.to_owned())
    }

    fn real(&self) -> io::Result<&Path> {
        if let Some(real) = self.real.get() {
            return Ok(real);
        }
        let shown = if self.given.as_os_str().is_empty() { Path::new(".") } else { &self.given };
        let real = shown.canonicalize()?;
        Ok(self.real.get_or_init(|| real))
    }
}

fn split(path: &Path) -> io::Result<(&Path, &std::ffi::OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((path.parent().unwrap_or(Path::new("")), name))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;
    use std::process::Command;

    use super::Root;
    use crate::{FileKind, Permissions, Refusal, read, refusal};

    /// A folder `root` with a secret beside it.
    struct Tree {
        around: tempfile::TempDir,
        root: Root,
    }

    impl Tree {
        fn new() -> Self {
            let around = tempfile::tempdir().unwrap();
            fs::write(around.path().join("secret"), "secret").unwrap();
            fs::create_dir_all(around.path().join("root/sub")).unwrap();
            fs::write(around.path().join("root/file"), "text").unwrap();
            let root = Root::open(&around.path().join("root")).unwrap();
            Self { around, root }
        }

        fn path(&self, name: &str) -> std::path::PathBuf {
            self.around.path().join("root").join(name)
        }

        fn read(&self, name: &str) -> Result<String, String> {
            let read = self.root.read_text(Path::new(name), 100);
            read.map_err(|error| error.to_string())
        }
    }

    fn fifo(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn links_are_read_when_they_stay_inside() {
        let tree = Tree::new();
        for (link, target) in [
            ("plain", "file".to_owned()),
            ("sub/up", "../file".to_owned()),
            ("whole", tree.path("file").display().to_string()),
            ("folder", "sub".to_owned()),
            ("chain", "plain".to_owned()),
        ] {
            symlink(target, tree.path(link)).unwrap();
        }
        for name in ["file", "plain", "sub/up", "whole", "folder/up", "chain"] {
            assert_eq!(tree.read(name).as_deref(), Ok("text"), "{name}");
            let whole = tree.path(name);
            assert_eq!(tree.root.read(&whole, 100).unwrap(), b"text", "{name}");
        }
    }

    #[test]
    fn nothing_outside_is_read() {
        let tree = Tree::new();
        let secret = tree.around.path().join("secret").display().to_string();
        let outside = Refusal::Outside.to_string();
        for (link, target) in [
            ("out", "../secret"),
            ("absolute", secret.as_str()),
            ("folder", ".."),
            ("zero", "/dev/zero"),
            ("self", "/proc/self/environ"),
        ] {
            symlink(target, tree.path(link)).unwrap();
        }
        symlink("out", tree.path("chain")).unwrap();
        for name in ["out", "absolute", "folder/secret", "zero", "self", "chain", "../secret"] {
            assert_eq!(tree.read(name), Err(outside.clone()), "{name}");
        }
        let elsewhere = tree.root.read(Path::new("/etc/passwd"), 100).unwrap_err();
        assert_eq!(refusal(&elsewhere), Some(Refusal::Outside));
    }

    /// A link that changes all the time between a file inside and one outside.
    #[test]
    fn a_link_that_is_swapped_while_it_is_read_shows_nothing_outside() {
        let tree = Tree::new();
        fs::create_dir(tree.path("a")).unwrap();
        fs::write(tree.path("a/secret"), "text").unwrap();
        let outside = tree.around.path().to_owned();
        symlink("a", tree.path("swapped")).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let ordering = std::sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(ordering) {
                    for target in [&outside, &tree.path("a")] {
                        symlink(target, tree.path("next")).unwrap();
                        fs::rename(tree.path("next"), tree.path("swapped")).unwrap();
                    }
                }
            });
            let (mut texts, mut folders) = (vec![], 0);
            for _ in 0..3_000 {
                texts.extend(tree.read("swapped/secret"));
                let folder = tree.root.create_folder(Path::new("swapped/new"), 0o700);
                folders += usize::from(folder.is_ok());
            }
            is_over.store(true, ordering);
            assert!(!texts.is_empty() && texts.iter().all(|text| text == "text"));
            assert_eq!(folders, 0, "folders were reached through a link");
        });
        assert!(!outside.join("new").exists());
    }

    #[test]
    fn only_regular_files_are_read_and_not_without_end() {
        let tree = Tree::new();
        fifo(&tree.path("fifo"));
        symlink("fifo", tree.path("to-fifo")).unwrap();
        fs::write(tree.path("large"), vec![b'x'; 101]).unwrap();
        fs::File::create(tree.path("sparse")).unwrap().set_len(1 << 40).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(tree.path("socket")).unwrap();
        let not = |kind| Refusal::NotRegular(kind);
        for (name, expected) in [
            ("fifo", not(FileKind::Fifo)),
            ("to-fifo", not(FileKind::Fifo)),
            ("socket", not(FileKind::Socket)),
            ("sub", not(FileKind::Folder)),
            ("large", Refusal::TooLarge { limit: 100 }),
            ("sparse", Refusal::TooLarge { limit: 100 }),
        ] {
            let error = tree.root.read(Path::new(name), 100).unwrap_err();
            assert_eq!(refusal(&error), Some(expected), "{name}");
            let error = read(&tree.path(name), 100).unwrap_err();
            assert_eq!(refusal(&error), Some(expected), "{name}, by its path");
        }
        let zero = read(Path::new("/dev/zero"), 100).unwrap_err();
        assert_eq!(refusal(&zero), Some(not(FileKind::Device)));
        // The kernel's own files claim to be empty.
        assert!(!read(Path::new("/proc/self/stat"), 10_000).unwrap().is_empty());
    }

    #[test]
    fn a_folder_is_not_reached_through_a_link() {
        let tree = Tree::new();
        symlink("..", tree.path("out")).unwrap();
        symlink("sub", tree.path("inside")).unwrap();
        for name in ["out", "inside", "inside/new", "out/new"] {
            let error = tree.root.create_folder(Path::new(name), 0o700).unwrap_err();
            assert_eq!(refusal(&error), Some(Refusal::Link), "{name}");
        }
        tree.root.create_folder(Path::new("sub/a/b"), 0o700).unwrap();
        assert!(tree.path("sub/a/b").is_dir());
        assert!(!tree.around.path().join("new").exists() && !tree.path("sub/new").exists());
        let file = tree.root.create_folder(Path::new("file/x"), 0o700).unwrap_err();
        assert_eq!(file.kind(), std::io::ErrorKind::NotADirectory);
    }

    /// A file that is missing at the first look can be there at the next.
    #[test]
    fn a_file_that_comes_and_goes_is_not_a_link() {
        let tree = Tree::new();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    fs::write(tree.path("new"), "").unwrap();
                    fs::remove_file(tree.path("new")).unwrap();
                }
            });
            let targets: Vec<_> = (0..10_000).map(|_| tree.root.target(Path::new("new"))).collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(targets.iter().all(|target| target.as_deref().is_ok_and(|it| it == "new")));
        });
    }

    #[test]
    fn new_files_and_files_that_grow_are_nobody_elses() {
        let tree = Tree::new();
        let folder = tree.root.folder(Path::new("")).unwrap();
        symlink("../secret", tree.path("link")).unwrap();
        symlink("../nothing", tree.path("dangling")).unwrap();
        fs::hard_link(tree.around.path().join("secret"), tree.path("hard")).unwrap();
        fifo(&tree.path("fifo"));
        let table = [
            ("link", Refusal::Link),
            ("dangling", Refusal::Link),
            ("hard", Refusal::HardLinks),
            ("fifo", Refusal::NotRegular(FileKind::Fifo)),
            ("sub", Refusal::NotRegular(FileKind::Folder)),
        ];
        for (name, expected) in table {
            let name = OsStr::new(name);
            let error = folder.open_append(name, 0o600).unwrap_err();
            assert_eq!(refusal(&error), Some(expected), "{name:?}");
            let error = folder.open_writable(name, 0o600).unwrap_err();
            assert_eq!(refusal(&error), Some(expected), "{name:?}");
            let error = folder.create_new(name, 0o600).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists, "{name:?}");
        }
        assert_eq!(fs::read(tree.around.path().join("secret")).unwrap(), b"secret");
        assert!(!tree.around.path().join("nothing").exists());
        for name in ["../x", "a/b", "..", ".", ""] {
            assert!(folder.create_new(OsStr::new(name), 0o600).is_err(), "{name}");
        }
    }

    #[test]
    fn a_file_is_replaced_where_a_link_inside_leads() {
        let tree = Tree::new();
        symlink("../file", tree.path("sub/link")).unwrap();
        symlink("../secret", tree.path("out")).unwrap();
        symlink("../nothing", tree.path("dangling")).unwrap();
        fs::set_permissions(tree.path("file"), fs::Permissions::from_mode(0o640)).unwrap();
        let keep = Permissions::KeptOr(0o666);
        tree.root.replace(Path::new("sub/link"), b"new", keep).unwrap();
        assert_eq!(fs::read(tree.path("file")).unwrap(), b"new");
        assert!(tree.path("sub/link").is_symlink());
        let mode = fs::metadata(tree.path("file")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        for name in ["out", "dangling", "sub"] {
            tree.root.replace(Path::new(name), b"new", keep).unwrap_err();
        }
        assert_eq!(fs::read(tree.around.path().join("secret")).unwrap(), b"secret");
        let names: Vec<_> = fs::read_dir(tree.path("")).unwrap().collect();
        assert_eq!(names.len(), 4, "no temporary file is left: {names:?}");
    }

    #[test]
    fn a_removed_folder_takes_links_and_not_their_targets() {
        let tree = Tree::new();
        fs::create_dir_all(tree.path("gone/deep")).unwrap();
        symlink("../../sub", tree.path("gone/deep/link")).unwrap();
        fs::write(tree.path("sub/kept"), "").unwrap();
        let folder = tree.root.folder(Path::new("")).unwrap();
        folder.remove_folder(OsStr::new("gone")).unwrap();
        assert!(!tree.path("gone").exists() && tree.path("sub/kept").exists());
        symlink("sub", tree.path("gone")).unwrap();
        assert!(folder.remove_folder(OsStr::new("gone")).is_err());
        assert!(tree.path("sub/kept").exists());
    }
}
