//! Finding entities on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::allowed::Tools;
use crate::entity::{Entity, Kind, Origin, Prompt, Provider, Scope};
use crate::files::{self, Walk};
use crate::finding::Finding;
use crate::frontmatter;
use crate::inherit::OpenCodeSettings;
use crate::keys::spelled;
use crate::opencode::SettingsFile;
use crate::parse::{self, Found, Place};
use crate::places::{self, Folders};
use crate::project::ProjectFiles;

/// What was found, the nearest first, and what is to be said about it.
#[derive(Debug, Default)]
pub(crate) struct Discovered {
    pub(crate) entities: Vec<Entity>,
    pub(crate) findings: Vec<Finding>,
    /// Links out of a project that is not trusted, which were not followed, and the kind of entity
    /// that is looked for there.
    pub(crate) links_out: Vec<(Kind, PathBuf)>,
    /// The restrictions that OpenCode has for turns without an agent.
    pub(crate) turns: Tools,
    /// Agents of OpenCode in folders above the project's, of which only the restrictions count.
    above: Vec<Entity>,
}

/// A file to be read.
struct Candidate {
    path: PathBuf,
    place: usize,
    name: String,
    aliases: Vec<String>,
}

/// Names, as they are written, of files that explain a folder: entities only with a head. In other
/// case they are names like any other: `/readme`, `/agents`.
const EXPLANATIONS: [&str; 3] = ["README", "CLAUDE", "AGENTS"];

/// From how many files on it pays to read with several threads.
const FEW: usize = 48;

/// How many files a thread takes at a time.
const SHARE: usize = 16;

/// How many findings are kept of a folder that has too much in it.
const TOLD: usize = 8;

/// Looks everywhere, at no more than so many files and folders in each place.
pub(crate) fn discover(
    folders: &Folders,
    project: Option<&ProjectFiles>,
    entries: usize,
) -> Discovered {
    let mut findings = vec![];
    let mut links_out = vec![];
    let mut ways = Ways::default();
    let places = folders.places();
    let mut candidates = vec![];
    for (index, place) in places.iter().enumerate() {
        let project = project.filter(|_| place.scope == Scope::Project);
        if !ways.lead_to(&place.folder, project, &mut findings) {
            links_out.extend(ways.link_out(&place.folder).map(|link| (place.kind, link)));
            continue;
        }
        let told = findings.len();
        // Every place is looked through for itself: the same folder may be linked from several.
        let mut walk = Walk::new(&mut findings, entries, project);
        if !walk.leads_out(&place.folder) {
            match place.kind {
                Kind::Skill => skills(&mut walk, index, &place.folder, 0, &mut candidates),
                Kind::Command | Kind::Agent => {
                    texts(&mut walk, (index, place), &place.folder, &mut vec![], &mut candidates);
                }
            }
        }
        links_out.extend(walk.links_out.drain(..).map(|link| (place.kind, link)));
        if walk.has_more() {
            findings.truncate(told + TOLD);
            let message = format!(
                "there are more than {entries} files and folders in it: the rest is left out"
            );
            let remedy = "put less into it; if it is a link, mend it";
            findings.push(Finding::skipped(&place.folder, message, remedy));
        }
    }
    let mut read = read_all(&candidates, &places, project);
    findings.append(&mut read.findings);
    let mut settings = OpenCodeSettings::new(folders.trusted);
    for entity in std::mem::take(&mut read.above) {
        settings.add_above(entity);
    }
    for config in folders.config_files() {
        let project = project.filter(|_| config.scope == Scope::Project);
        if config.text.is_some() || ways.lead_to(&config.path, project, &mut findings) {
            match crate::opencode::read(&config, project, &mut read.entities, &mut findings) {
                SettingsFile::Absent => {}
                SettingsFile::Lost => settings.add(config.scope, None),
                SettingsFile::Read(file) => settings.add(config.scope, Some(file)),
            }
        } else if ways.may_hold(&config.path) {
            settings.add(config.scope, None);
        }
    }
    let turns = settings.restrict(&mut read.entities, &mut findings);
    Discovered { entities: read.entities, findings, links_out, turns, above: vec![] }
}

/// The folders of providers, and whether they can be entered.
#[derive(Default)]
struct Ways {
    known: BTreeMap<PathBuf, bool>,
    /// What is in the way, which is told once.
    told: BTreeSet<PathBuf>,
    /// Folders that are links out of a project.
    out: BTreeSet<PathBuf>,
}

impl Ways {
    /// Whether one can go on to something in a folder; tells what is in the way.
    fn lead_to(
        &mut self,
        path: &Path,
        project: Option<&ProjectFiles>,
        findings: &mut Vec<Finding>,
    ) -> bool {
        let folder = path.parent().unwrap_or(path);
        if let Some(is_open) = self.known.get(folder) {
            return *is_open;
        }
        if project.is_some_and(|project| files::leads_out(project, folder)) {
            self.known.insert(folder.to_owned(), false);
            self.out.insert(folder.to_owned());
            findings.push(files::outside(folder));
            return false;
        }
        let obstacle = files::obstacle(folder);
        self.known.insert(folder.to_owned(), obstacle.is_none());
        let Some((place, error)) = obstacle else { return true };
        if self.told.insert(place.clone()) {
            let message = format!("the folder cannot be read: {error}");
            let remedy = "make it a folder that can be read, or remove it";
            findings.push(Finding::skipped(&place, message, remedy));
        }
        false
    }

    /// Whether a file to which nothing leads may be there all the same.
    fn may_hold(&self, path: &Path) -> bool {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        let is_absent = |error: std::io::Error| matches!(error.kind(), NotFound | NotADirectory);
        self.link_out(path).is_some() || !std::fs::symlink_metadata(path).is_err_and(is_absent)
    }

    /// The link out of a project that is in the way to something.
    fn link_out(&self, path: &Path) -> Option<PathBuf> {
        self.out.get(path.parent()?).cloned()
    }
}

/// Markdown files in a folder and those inside it.
fn texts(
    walk: &mut Walk<'_>,
    (index, place): (usize, &places::Place),
    folder: &Path,
    inside: &mut Vec<String>,
    candidates: &mut Vec<Candidate>,
) {
    let Some(listing) = walk.list(folder, inside.len()) else { return };
    for path in listing.files {
        let Some(stem) = stem(&path) else {
            let message = format!("{}s are files that end in `.md`", place.kind.word());
            walk.findings.push(Finding::skipped(&path, message, "rename or remove it"));
            continue;
        };
        let namespaced = place.kind == Kind::Command && !inside.is_empty();
        let (name, aliases) = if namespaced {
            (format!("{}:{stem}", inside.join(":")), vec![stem])
        } else {
            (stem, vec![])
        };
        candidates.push(Candidate { path, place: index, name, aliases });
    }
    for path in listing.folders {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        inside.push(name);
        texts(walk, (index, place), &path, inside, candidates);
        inside.pop();
    }
}

/// The name of a Markdown file without its ending.
fn stem(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy();
    let at = name.len().checked_sub(3)?;
    let ending = name.get(at..)?;
    let stem = name.get(..at)?;
    // Copilot calls its agents `reviewer.agent.md`, and called them `reviewer.chatmode.md`.
    let says_kind = [".agent", ".chatmode", ".prompt"];
    let stem = says_kind.iter().find_map(|kind| stem.strip_suffix(kind)).unwrap_or(stem);
    (ending.eq_ignore_ascii_case(".md") && !stem.is_empty()).then(|| stem.to_owned())
}

/// Folders with a `SKILL.md`.
fn skills(
    walk: &mut Walk<'_>,
    index: usize,
    folder: &Path,
    depth: usize,
    candidates: &mut Vec<Candidate>,
) {
    let Some(listing) = walk.list(folder, depth) else { return };
    let is_skill = |path: &&PathBuf| {
        path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("SKILL.md"))
    };
    let mut own = listing.files.iter().filter(is_skill);
    if depth > 0
        && let Some(path) = own.next()
    {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        candidates.push(Candidate { path: path.clone(), place: index, name, aliases: vec![] });
        for other in own {
            let message = format!("{} is there too and is read", path.display());
            walk.findings.push(Finding::skipped(other, message, "remove one of them"));
        }
        // What else is in the folder belongs to the skill, unless it is one itself.
        for folder in listing.folders.iter().filter(|folder| has_skill(folder)) {
            skills(walk, index, folder, depth + 1, candidates);
        }
        return;
    }
    if depth > 0 && listing.folders.is_empty() {
        let message = "there is no `SKILL.md` in it";
        walk.findings.push(Finding::skipped(folder, message, "add one, or remove the folder"));
    } else {
        for path in &listing.files {
            let message = "a skill is a folder with a `SKILL.md` in it";
            walk.findings.push(Finding::skipped(path, message, "move it to `<name>/SKILL.md`"));
        }
    }
    for folder in listing.folders {
        skills(walk, index, &folder, depth + 1, candidates);
    }
}

/// Whether there is a skill in a folder; its other files are not looked at.
fn has_skill(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().eq_ignore_ascii_case("SKILL.md"))
}

/// Reads files, several at a time where there are many; what comes of it is in their order.
fn read_all(
    candidates: &[Candidate],
    places: &[places::Place],
    project: Option<&ProjectFiles>,
) -> Discovered {
    let threads = match candidates.len() {
        0..FEW => 1,
        _ => std::thread::available_parallelism().map_or(1, usize::from).min(8),
    };
    let parts: Vec<Mutex<Discovered>> =
        candidates.chunks(SHARE).map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    // Whoever is done takes the next share: a thread that has to wait holds nobody up.
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(index) else { return };
            let mut read = Discovered::default();
            for candidate in candidates.iter().skip(index * SHARE).take(SHARE) {
                let place = &places[candidate.place];
                let project = project.filter(|_| place.scope == Scope::Project);
                let entity = read_one(candidate, place, project, &mut read.findings);
                match place.is_above {
                    true => read.above.extend(entity),
                    false => read.entities.extend(entity),
                }
            }
            if let Ok(mut part) = part.lock() {
                *part = read;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let mut all = Discovered::default();
    for part in parts {
        let part = part.into_inner().unwrap_or_default();
        all.entities.extend(part.entities);
        all.above.extend(part.above);
        all.findings.extend(part.findings);
    }
    all
}

fn read_one(
    candidate: &Candidate,
    place: &places::Place,
    project: Option<&ProjectFiles>,
    findings: &mut Vec<Finding>,
) -> Option<Entity> {
    let path = &candidate.path;
    let text = match files::read_in(path, project) {
        Ok(text) => text,
        Err(finding) => {
            findings.push(finding);
            return None;
        }
    };
    findings.extend(text.oddity);
    let document = match frontmatter::read(&text.text) {
        Ok(document) => document,
        Err(problem) => {
            let message = format!("its head is no YAML: {}", problem.message);
            let remedy = "mend the lines between the two `---`";
            findings.push(Finding::skipped(path, message, remedy).at(problem.line));
            return None;
        }
    };
    if text.text.trim_start_matches('\u{feff}').trim().is_empty() {
        findings.push(Finding::skipped(path, "it is empty", "write something, or remove it"));
        return None;
    }
    let explains = EXPLANATIONS.iter().any(|word| path.file_stem() == Some(word.as_ref()));
    if document.head.is_empty() && explains {
        findings.push(Finding::aside(path, "it has no head, so it explains the folder"));
        return None;
    }
    for oddity in document.oddities {
        findings.push(Finding::odd(path, oddity.message, "").at(oddity.line));
    }
    let (scope, provider): (_, Provider) = (place.scope, place.provider);
    let restricts = |key: &str| parse::restricts(&spelled(key), place.kind, provider);
    let unread = document.unread_tools.into_iter().find(|(_, key)| restricts(key));
    let found = Found {
        kind: place.kind,
        origin: Origin { scope, provider, path: Some(path.clone()) },
        name: candidate.name.clone(),
        aliases: candidate.aliases.clone(),
        prompt: Prompt::InFile,
    };
    if document.body.trim().is_empty() {
        let message = "there is nothing below its head";
        findings.push(Finding::odd(path, message, "write what the agent is to be told"));
    }
    let place = Place::Head(&document.lines);
    let mut entity = parse::entity(found, document.head, place, &document.body, findings)?;
    if let Some((line, key)) = unread {
        let message = format!("`{key}` is not in a head, so all tools are denied");
        let remedy = "put the head at the top, between two lines of `---`";
        findings.push(Finding::odd(path, message, remedy).at(line));
        entity.tools = Tools::denied();
    }
    Some(entity)
}
