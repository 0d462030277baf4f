//! Which module is meant by the text of an import.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use atomic_files::{PROJECT_LIMIT, Root};

use crate::{sdk, text};

/// What an import leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Sdk(&'static str),
    File(PathBuf),
}

/// Why an import leads nowhere, and what to do.
#[derive(Debug, Clone)]
pub(crate) struct Unresolved {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) help: String,
}

/// A file with more is not something a person has written.
pub(crate) const LARGEST: u64 = 2 << 20;

/// Where files come from.
pub(crate) trait Files {
    /// Whether there is such a file, and whether it may be used.
    fn look(&self, path: &Path) -> Look;

    /// Its text.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn read(&self, path: &Path) -> Result<String, String>;
}

/// What is known about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    There,
    Missing,
    Outside,
}

/// The files below a folder. The real paths decide: no link leads out.
pub(crate) struct Disk {
    root: PathBuf,
    real_root: PathBuf,
    files: Root,
}

impl Disk {
    /// # Errors
    /// The folder is not there.
    pub(crate) fn new(root: &Path) -> io::Result<Self> {
        let (given, real_root) = (normalize(&std::path::absolute(root)?), root.canonicalize()?);
        let files = Root::open(&real_root)?;
        Ok(Self { root: given, real_root, files })
    }
}

impl Files for Disk {
    fn look(&self, path: &Path) -> Look {
        match path.canonicalize() {
            Ok(real) if !real.starts_with(&self.real_root) => Look::Outside,
            Ok(real) if real.is_file() => Look::There,
            Ok(_) => Look::Missing,
            // Whether there is something outside is nobody's business.
            Err(_) if path.starts_with(&self.root) || path.starts_with(&self.real_root) => {
                Look::Missing
            }
            Err(_) => Look::Outside,
        }
    }

    fn read(&self, path: &Path) -> Result<String, String> {
        // Opened below the root, and only then looked at: a link or a pipe that was put there since
        // `look` is not followed.
        let inside = path.strip_prefix(&self.root).or_else(|_| path.strip_prefix(&self.real_root));
        let inside = inside.unwrap_or(path);
        let bytes =
            self.files.read(inside, PROJECT_LIMIT).map_err(|error| match atomic_files::refusal(
                &error,
            ) {
                Some(refused) => format!("the file {refused}"),
                None => format!("it cannot be read: {error}"),
            })?;
        let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }
}

/// Files that somebody has kept: there are no others.
impl Files for BTreeMap<PathBuf, String> {
    fn look(&self, path: &Path) -> Look {
        if self.contains_key(path) { Look::There } else { Look::Missing }
    }

    fn read(&self, path: &Path) -> Result<String, String> {
        self.get(path).cloned().ok_or_else(|| "it was not kept".to_owned())
    }
}

/// Without `.` and `..`, by the text alone.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(component),
        }
    }
    out
}

/// What `specifier` means in `importer`.
///
/// # Errors
/// It means nothing.
pub(crate) fn resolve(
    files: &impl Files,
    importer: &Path,
    specifier: &str,
) -> Result<Target, Unresolved> {
    if let Some(module) = sdk::imported_as(specifier) {
        return Ok(Target::Sdk(module));
    }
    let is_path = ["./", "../", "/"].iter().any(|start| specifier.starts_with(start));
    if !is_path && specifier != "." && specifier != ".." {
        return Err(unknown(specifier));
    }
    let folder = importer.parent().unwrap_or(Path::new("/"));
    let path = normalize(&folder.join(specifier));
    let mut is_outside = false;
    for candidate in candidates(&path) {
        match files.look(&candidate) {
            Look::There => return Ok(Target::File(candidate)),
            Look::Outside => is_outside = true,
            Look::Missing => {}
        }
    }
    if is_outside {
        return Err(Unresolved {
            code: "ATM705",
            message: format!("`{specifier}` is outside of the folder that imports may come from"),
            help: "move the file next to the workflow, or below its folder".to_owned(),
        });
    }
    Err(Unresolved {
        code: "ATM704",
        message: format!("there is no file `{specifier}`"),
        help: format!(
            "looked for {} as it is, with .ts, .mts, .js, .mjs and .json, and for \
                       index.ts in it",
            path.display()
        ),
    })
}

const EXTENSIONS: &[&str] = &["ts", "mts", "tsx", "js", "mjs", "json"];

/// What a path in an import may stand for, the likeliest first.
fn candidates(path: &Path) -> Vec<PathBuf> {
    let text = path.to_string_lossy();
    let mut all = Vec::new();
    let extension = path.extension().and_then(|extension| extension.to_str());
    if extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) {
        all.push(path.to_owned());
    }
    // The name that the compiled file would have.
    for (compiled, source) in [("js", "ts"), ("mjs", "mts"), ("jsx", "tsx")] {
        if extension == Some(compiled) {
            all.push(path.with_extension(source));
        }
    }
    all.extend(EXTENSIONS.iter().map(|extension| PathBuf::from(format!("{text}.{extension}"))));
    all.extend(["index.ts", "index.mts", "index.js"].map(|index| path.join(index)));
    all
}

/// Modules of Node.js, and what a workflow does instead.
const INSTEAD: &[(&str, &str)] = &[
    ("fs", "use readFile, writeFile, exists and glob of \"atomic/host\""),
    ("fs/promises", "use readFile, writeFile, exists and glob of \"atomic/host\""),
    ("path", "put paths together with templates: `${folder}/${name}`"),
    ("child_process", "use shell of \"atomic/host\""),
    ("http", "use fetch of \"atomic/host\""),
    ("https", "use fetch of \"atomic/host\""),
    ("net", "use fetch of \"atomic/host\""),
    ("crypto", "use the global crypto.randomUUID()"),
    ("process", "use env of \"atomic/host\""),
    ("os", "use env of \"atomic/host\""),
    ("timers/promises", "use ctx.sleep"),
];

/// Others that are easily taken for packages.
const NODE: &[&str] =
    &["assert", "buffer", "events", "stream", "util", "url", "worker_threads", "readline", "zlib"];

fn unknown(specifier: &str) -> Unresolved {
    let bare = specifier.strip_prefix("node:").unwrap_or(specifier);
    let instead = INSTEAD.iter().find(|(name, _)| *name == bare).map(|(_, instead)| *instead);
    let is_bun = bare == "bun" || bare.starts_with("bun:");
    let is_node = specifier.starts_with("node:") || instead.is_some() || NODE.contains(&bare);
    let (message, help) = if is_node || is_bun {
        let owner = if is_bun { "Bun" } else { "Node.js" };
        let instead = instead.unwrap_or("use what \"atomic/host\" has");
        let help = format!("workflows run inside Atomic, without {owner}: {instead}");
        (format!("`{specifier}` is a module of {owner}"), help)
    } else if let Some(near) = text::nearest(specifier, sdk::names()) {
        (format!("there is no module `{specifier}`"), format!("did you mean \"{near}\"?"))
    } else {
        let help = "packages cannot be imported; a workflow has \"@atomic/workflows\", \
                    \"atomic/host\", \"atomic/types\", and files by a path that begins with ./";
        (format!("there is no module `{specifier}`"), help.to_owned())
    };
    Unresolved { code: "ATM703", message, help }
}
