//! A file and all that it imports, read once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::fault::{Fault, Page};
use crate::resolve::{Disk, Files, Look, Target, normalize, resolve};
use crate::tree::exports::Wanted;
use crate::tree::forgotten::{Follow, ValueImport, is_value};
use crate::tree::transpile::{Module, transpile};
use crate::tree::{deep, metadata};
use crate::{sdk, text};

/// No workflow is made of more.
const MOST_FILES: usize = 500;

/// A file and all that it imports, as texts: what happens to the files afterwards does not
/// matter. Cheap to clone.
#[derive(Clone)]
pub struct Bundle(Arc<Contents>);

struct Contents {
    entry: PathBuf,
    sources: BTreeMap<PathBuf, Source>,
    links: BTreeMap<PathBuf, BTreeMap<String, Target>>,
    warnings: Vec<Fault>,
    metadata: (metadata::Metadata, Vec<Fault>),
}

/// A file of a bundle.
pub(crate) struct Source {
    pub(crate) text: String,
    /// Nothing for JSON.
    pub(crate) module: Option<Module>,
}

impl Bundle {
    /// Reads a file and its imports from the disk. None of them may be outside of `root`.
    ///
    /// # Errors
    /// Everything that is wrong with any of the files.
    pub fn read(entry: &Path, root: &Path) -> Result<Self, Vec<Fault>> {
        let cannot = |e| vec![Fault::about("ATM709", entry, format!("it cannot be read: {e}"))];
        let path = normalize(&std::path::absolute(entry).map_err(cannot)?);
        // The engine knows modules by their paths, and its texts are Unicode.
        if path.to_str().is_none() {
            let message = "its path is not UTF-8, so its code cannot be run";
            let fault = Fault::about("ATM709", entry, message);
            return Err(vec![fault.with_help("rename the file, or the folder it is in")]);
        }
        let disk = Disk::new(root).map_err(cannot)?;
        if disk.look(&path) == Look::Outside {
            let message = format!("it is outside of {}", root.display());
            return Err(vec![Fault::about("ATM705", entry, message)]);
        }
        Self::gather(path, &disk, true)
    }

    /// The bundle of files that somebody has kept. Nothing is read from the disk.
    ///
    /// # Errors
    /// Everything that is wrong with any of the files.
    pub fn from_files(entry: &Path, files: &BTreeMap<PathBuf, String>) -> Result<Self, Vec<Fault>> {
        Self::gather(entry.to_owned(), files, false)
    }

    /// `is_new` is `false` for the files of a session, which goes on as what it began as.
    fn gather(
        entry: PathBuf,
        files: &(impl Files + Sync),
        is_new: bool,
    ) -> Result<Self, Vec<Fault>> {
        let file = entry.clone();
        deep::run(&file, || {
            let mut gathering = Gathering::default();
            gathering.gather(&entry, files);
            gathering.check_names();
            gathering.finish(entry, is_new.then_some(files))
        })?
    }

    /// The file that is run.
    #[must_use]
    pub fn entry(&self) -> &Path {
        &self.0.entry
    }

    /// All files with their texts, in order.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.0.sources.iter().map(|(path, source)| (path.as_path(), source.text.as_str()))
    }

    /// The text of one file.
    #[must_use]
    pub fn text(&self, file: &Path) -> Option<&str> {
        self.0.sources.get(file).map(|source| source.text.as_str())
    }

    /// The lines around a place, with a mark under so many characters of it.
    #[must_use]
    pub fn frame(&self, file: &Path, line: u32, column: u32, length: u32) -> String {
        let Some(text) = self.text(file) else { return String::new() };
        text::frame(text, line, column, length)
    }

    /// What does not keep the files from running, but should be known.
    #[must_use]
    pub fn warnings(&self) -> &[Fault] {
        &self.0.warnings
    }

    /// What the entry says about itself, and what is wrong with that.
    #[must_use]
    pub fn metadata(&self) -> (metadata::Metadata, Vec<Fault>) {
        self.0.metadata.clone()
    }

    /// The SHA-256, in hexadecimal, of all texts and of where they are as seen from the entry:
    /// the same files in another folder have the same.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        let folder = self.entry().parent().unwrap_or(Path::new(""));
        for (path, text) in self.files() {
            let name = relative(folder, path);
            // With their lengths, so that no two bundles run together to the same bytes.
            for part in [name.as_str(), text] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
        }
        hash.finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    pub(crate) fn source(&self, file: &Path) -> Option<&Source> {
        self.0.sources.get(file)
    }

    /// What an import leads to while it runs: something of this bundle or of the SDK.
    pub(crate) fn target(&self, importer: &Path, specifier: &str) -> Result<Target, String> {
        let known = self.0.links.get(importer).and_then(|links| links.get(specifier));
        if let Some(target) = known {
            return Ok(target.clone());
        }
        resolve(self, importer, specifier).map_err(|unresolved| {
            format!(
                "cannot import \"{specifier}\": only files that are imported by a literal name \
                 somewhere in the workflow can be ({})",
                unresolved.message
            )
        })
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.sources.keys()).finish()
    }
}

/// While it runs there are the files of the bundle and no others.
impl Files for Bundle {
    fn look(&self, path: &Path) -> Look {
        if self.0.sources.contains_key(path) { Look::There } else { Look::Missing }
    }

    fn read(&self, path: &Path) -> Result<String, String> {
        self.text(path).map(str::to_owned).ok_or_else(|| "it is not there".to_owned())
    }
}

/// A path as seen from a folder, with `/` on every system.
fn relative(folder: &Path, path: &Path) -> String {
    let mut folder_parts = folder.components().peekable();
    let mut parts = path.components().peekable();
    while folder_parts.peek().is_some() && folder_parts.peek() == parts.peek() {
        folder_parts.next();
        parts.next();
    }
    let up = folder_parts.map(|_| "..".to_owned());
    let down = parts.map(|part: Component<'_>| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

/// A bundle in the making.
#[derive(Default)]
struct Gathering {
    sources: BTreeMap<PathBuf, Source>,
    links: BTreeMap<PathBuf, BTreeMap<String, Target>>,
    /// Files that are wrong in themselves: nothing is said about what they export.
    broken: BTreeSet<PathBuf>,
    faults: Vec<Fault>,
}

impl Gathering {
    fn gather(&mut self, entry: &Path, files: &impl Files) {
        let mut open = vec![entry.to_owned()];
        while let Some(path) = open.pop() {
            if self.sources.contains_key(&path) || self.broken.contains(&path) {
                continue;
            }
            if self.sources.len() >= MOST_FILES {
                let message = format!("a workflow of more than {MOST_FILES} files is not read");
                self.faults.push(Fault::about("ATM709", &path, message));
                return;
            }
            match load(&path, files) {
                Ok(source) => {
                    self.link(&path, &source, files);
                    let links = self.links.get(&path).into_iter().flat_map(BTreeMap::values);
                    for target in links {
                        if let Target::File(next) = target {
                            open.push(next.clone());
                        }
                    }
                    self.sources.insert(path, source);
                }
                Err(faults) => {
                    self.faults.extend(faults);
                    self.broken.insert(path);
                }
            }
        }
    }

    /// Finds out what the imports of a file mean.
    fn link(&mut self, path: &Path, source: &Source, files: &impl Files) {
        let Some(module) = &source.module else { return };
        let page = Page { file: path, text: &source.text };
        for request in &module.requests.modules {
            match resolve(files, path, &request.specifier) {
                Ok(target) => {
                    let links = self.links.entry(path.to_owned()).or_default();
                    links.insert(request.specifier.clone(), target);
                }
                Err(wrong) => {
                    let fault = page.fault(wrong.code, request.span, wrong.message);
                    self.faults.push(fault.with_help(wrong.help));
                }
            }
        }
        for span in &module.requests.computed {
            let message = "what is imported here is known only when it runs";
            let help = "only files that are imported by a literal name somewhere can be loaded";
            self.faults.push(page.fault("ATM719", *span, message).with_help(help).into_warning());
        }
    }

    /// Compares what is asked for with what is there.
    fn check_names(&mut self) {
        let mut faults = Vec::new();
        for (path, source) in &self.sources {
            let Some(module) = &source.module else { continue };
            let page = Page { file: path, text: &source.text };
            for request in &module.requests.modules {
                let target = self.links.get(path).and_then(|links| links.get(&request.specifier));
                let Some(names) = target.and_then(|target| self.exports(target)) else { continue };
                let missing = request.names.iter().filter(|wanted| !names.contains(&wanted.name));
                faults.extend(missing.map(|wanted| {
                    let message = missing_message(wanted, &request.specifier);
                    let fault = page.fault("ATM707", wanted.span, message);
                    fault.with_help(missing_help(wanted, &names))
                }));
            }
        }
        self.faults.extend(faults);
    }

    /// All names a module exports; nothing if that cannot be known.
    fn exports(&self, target: &Target) -> Option<Cow<'static, BTreeSet<String>>> {
        if let Target::Sdk(module) = target {
            return sdk::exports(module).map(Cow::Borrowed);
        }
        let mut names = BTreeSet::new();
        let mut open = vec![target.clone()];
        let mut seen = BTreeSet::new();
        while let Some(target) = open.pop() {
            let path = match target {
                Target::Sdk(module) => {
                    let passed = sdk::exports(module)?.iter().filter(|name| *name != "default");
                    names.extend(passed.cloned());
                    continue;
                }
                Target::File(path) => path,
            };
            if !seen.insert(path.clone()) {
                continue;
            }
            let source = self.sources.get(&path)?;
            let Some(module) = &source.module else {
                // JSON has a default export only.
                if seen.len() == 1 {
                    names.insert("default".to_owned());
                }
                continue;
            };
            // `export *` passes on everything but the default export.
            let is_star = seen.len() > 1;
            let own = module.exports.names.iter().filter(|name| !is_star || *name != "default");
            names.extend(own.cloned());
            for star in &module.exports.stars {
                open.push(self.links.get(&path)?.get(star)?.clone());
            }
        }
        Some(Cow::Owned(names))
    }

    fn finish(mut self, entry: PathBuf, new: Option<&impl Files>) -> Result<Bundle, Vec<Fault>> {
        self.faults.sort_by(|a, b| a.at.cmp(&b.at));
        let is_broken = self.faults.iter().any(|fault| !fault.is_warning);
        if is_broken {
            return Err(self.faults);
        }
        let text = self.sources.get(&entry).map_or("", |source| source.text.as_str());
        let page = Page { file: &entry, text };
        let exports = self.exports(&Target::File(entry.clone())).unwrap_or_default().into_owned();
        let look = new.map(|files| move |import: &ValueImport| follow(page, import, files));
        let follow = look.as_ref().map(|look| look as &Follow<'_>);
        let metadata = metadata::read(page, metadata::Outside { exports, follow });
        let Self { sources, links, faults: warnings, .. } = self;
        Ok(Bundle(Arc::new(Contents { entry, sources, links, warnings, metadata })))
    }
}

/// Finds out whether an imported file uses the SDK, also when nothing of it is used: the engine is
/// not given such an import, but its author has written it.
fn follow(
    page: Page<'_>,
    import: &ValueImport,
    files: &impl Files,
) -> Result<Option<String>, Vec<Fault>> {
    let target = resolve(files, page.file, &import.from).map_err(|wrong| {
        vec![page.fault(wrong.code, import.span, wrong.message).with_help(wrong.help)]
    })?;
    let Target::File(path) = &target else { return Ok(None) };
    let mut gathering = Gathering::default();
    gathering.gather(path, files);
    gathering.faults.retain(|fault| !fault.is_warning);
    if !gathering.faults.is_empty() {
        return Err(gathering.faults);
    }
    let exports = gathering.exports(&target);
    let uses = import.names.iter().any(|name| is_value(name, exports.as_deref()));
    if !uses && !import.names.is_empty() {
        return Ok(None);
    }
    let mut links = gathering.links.values().flatten();
    let used = links.find(|(_, target)| matches!(target, Target::Sdk(_)));
    Ok(used.map(|(specifier, _)| specifier.clone()))
}

fn missing_message(wanted: &Wanted, specifier: &str) -> String {
    if wanted.name == "default" {
        return format!("`{specifier}` has no default export");
    }
    format!("`{specifier}` does not export `{}`", wanted.name)
}

fn missing_help(wanted: &Wanted, names: &BTreeSet<String>) -> String {
    if let Some(near) = text::nearest(&wanted.name, names.iter().map(String::as_str)) {
        return format!("did you mean `{near}`?");
    }
    if wanted.is_passed_on {
        return "if it is a type, write `export type { … }`".to_owned();
    }
    let shown: Vec<&str> = names.iter().map(String::as_str).take(12).collect();
    let more = if names.len() > shown.len() { ", …" } else { "" };
    match shown.as_slice() {
        [] => "it exports no values; if it is a type, write `import type { … }`".to_owned(),
        shown => format!("it exports {}{more}", shown.join(", ")),
    }
}

/// Reads one file and makes it run.
fn load(path: &Path, files: &impl Files) -> Result<Source, Vec<Fault>> {
    let text = files.read(path).map_err(|why| vec![Fault::about("ATM709", path, why)])?;
    if path.extension().is_none_or(|extension| extension != "json") {
        let module = Some(transpile(path, &text)?);
        return Ok(Source { text, module });
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => Ok(Source { text, module: None }),
        Err(e) => {
            let (line, column) = (text::clamp(e.line()), text::clamp(e.column()).max(1));
            let start = text::clamp(text::offset_of(&text, line, column));
            let span = oxc_span::Span::new(start, start + 1);
            let said = e.to_string();
            let said = said.split(" at line ").next().unwrap_or_default();
            let page = Page { file: path, text: &text };
            Err(vec![page.fault("ATM706", span, format!("this is not JSON: {said}"))])
        }
    }
}
