//! Reading the files that checks name.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use atomic_registry::project::ProjectFiles;

use super::command::{Names, Unit, make_units, named_in_check, named_in_recipe, reached};
use super::definition::package_units;
use super::reading::{MOST_SOURCES, Reading, Source};
use super::test_file::may_hold_tests;

/// The largest number of names that are tried.
const MOST_TRIED: usize = 3_000;

/// A search for the files that checks name.
struct Search<'f> {
    files: &'f ProjectFiles,
    /// Names, with the folders from which they may be.
    queue: VecDeque<(Vec<PathBuf>, Names)>,
    /// Folders whose rules and scripts the checks can run.
    folders: BTreeSet<PathBuf>,
    tried: BTreeSet<PathBuf>,
}

/// A rule or script, with the folder in which it runs.
struct Placed {
    folder: PathBuf,
    unit: Unit,
}

impl AsRef<Unit> for Placed {
    fn as_ref(&self) -> &Unit {
        &self.unit
    }
}

impl Reading {
    /// Takes in the files that commands name: themselves, in recipes and scripts that they run, and
    /// in shell scripts. A link that stays in the repository is followed.
    pub(super) fn take_named(&mut self, files: &ProjectFiles, commands: &[String]) {
        let above = (0..=files.depth()).map(|depth| [".."].repeat(depth).iter().collect());
        let mut search = Search {
            files,
            queue: commands.iter().map(|it| (vec![PathBuf::new()], named_in_check(it))).collect(),
            folders: above.collect(),
            tried: BTreeSet::new(),
        };
        self.take_queued(&mut search);
        let mut count = 0;
        // A rule can lead to rules in another folder or file.
        loop {
            let units = self.units(&search);
            let found = reached(&units, &self.scan.words);
            if found.len() == count {
                return;
            }
            count = found.len();
            let variables = found.iter().map(|it| &it.unit).filter(|unit| unit.is_variable);
            let variables: BTreeMap<&str, &str> =
                variables.map(|unit| (unit.name.as_str(), unit.words.as_str())).collect();
            for Placed { folder, unit } in found {
                let names = named_in_recipe(&unit.text, &variables);
                search.queue.push_back((vec![folder.clone()], names));
            }
            self.take_queued(&mut search);
        }
    }

    fn take_queued(&mut self, search: &mut Search<'_>) {
        while let Some((mut bases, Names { files, tested, folders })) = search.queue.pop_front() {
            for folder in folders {
                let inner = bases.iter().map(|base| base.join(&folder)).find_map(|path| {
                    let place = search.files.place(&path)?;
                    search.files.folder(&place).is_ok().then_some(place)
                });
                if let Some(place) = inner {
                    search.folders.insert(place.clone());
                    bases.push(place);
                }
            }
            let names =
                files.iter().map(|it| (it, false)).chain(tested.iter().map(|it| (it, true)));
            let names: Vec<(&String, bool)> = names.collect();
            for (base, (name, is_tested)) in
                bases.iter().flat_map(|base| names.iter().map(move |it| (base, *it)))
            {
                // Files with tests are not added to the definitions one by one.
                let is_tested = is_tested || name.contains(['*', '?']);
                for path in expanded(search.files, &base.join(name)) {
                    if !(is_tested && may_hold_tests(&path)) {
                        self.take_path(search, base, &path);
                    }
                }
            }
        }
    }

    fn take_path(&mut self, search: &mut Search<'_>, base: &Path, path: &Path) {
        let Some(place) = search.files.place(path) else { return };
        if search.tried.len() >= MOST_TRIED || !search.tried.insert(place.clone()) {
            return;
        }
        let Some(text) = self.take_as_named(search.files, &place) else { return };
        if is_shell(&place, &text) {
            let folder = place.parent().unwrap_or(Path::new("")).to_owned();
            search.queue.push_back((
                vec![base.to_owned(), folder],
                named_in_recipe(&text, &BTreeMap::new()),
            ));
        }
    }

    /// The rules and scripts in the folders of a search.
    fn units(&mut self, search: &Search<'_>) -> Vec<Placed> {
        let mut units = vec![];
        let mut next = 0;
        while let Some(Source { folder, place, text }) = self.scan.sources.get(next).cloned() {
            next += 1;
            if !search.folders.contains(&folder) {
                continue;
            }
            let is_json = place.extension() == Some(OsStr::new("json"));
            let (found, included) = match is_json {
                true => (package_units(&text, &self.scan.words), vec![]),
                false => make_units(&text),
            };
            for path in included.iter().flat_map(|it| expanded(search.files, &folder.join(it))) {
                self.include(search.files, &folder, &path);
            }
            units.extend(found.into_iter().map(|unit| Placed { folder: folder.clone(), unit }));
        }
        // Without a name `make` runs what comes first.
        let is_named = units.iter().any(|it| self.scan.words.contains(&it.unit.name));
        if !is_named && self.scan.words.iter().any(|word| word == "make" || word == "just") {
            units.iter_mut().for_each(|it| it.unit.is_first = true);
        }
        units
    }

    /// Adds a file that a Makefile includes. Its rules run in the folder of that Makefile.
    fn include(&mut self, files: &ProjectFiles, folder: &Path, path: &Path) {
        let Some(place) = files.place(path) else { return };
        let sources = &self.scan.sources;
        let is_known = sources.iter().any(|it| it.place == place && it.folder == folder);
        if is_known || sources.len() >= MOST_SOURCES {
            return;
        }
        let read = sources.iter().find(|it| it.place == place).map(|it| it.text.clone());
        if let Some(text) = read.or_else(|| self.take_as_named(files, &place)) {
            self.scan.sources.push(Source { folder: folder.to_owned(), place, text });
        }
    }
}

/// The files that a name with a wildcard in its last part fits; any other name is itself.
fn expanded(files: &ProjectFiles, path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    if !name.contains(['*', '?']) {
        return vec![path.to_owned()];
    }
    let Some(folder) = path.parent() else { return vec![] };
    let place = files.place(folder);
    let entries = place.and_then(|place| files.folder(&place).ok()?.entries().ok());
    let fits = |(found, _): &(std::ffi::OsString, _)| {
        found.to_str().is_some_and(|found| fast_glob::glob_match(name, found))
    };
    let fitting = entries.unwrap_or_default().into_iter().filter(fits);
    fitting.map(|(found, _)| folder.join(found)).collect()
}

fn is_shell(place: &Path, text: &str) -> bool {
    let is_named = ["sh", "bash", "zsh"].iter().any(|it| place.extension() == Some(OsStr::new(it)));
    let first = text.lines().next().unwrap_or_default();
    is_named || (first.starts_with("#!") && first.contains("sh"))
}
