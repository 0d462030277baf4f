//! Everything a project defines that needs trust, from all its files.

use std::path::{Path, PathBuf};

use atomic_registry::Registry;
use atomic_registry::project::{
    Definition, DefinitionKind, Reach, Repository, commands_in_git, number, program_definitions,
    setting_lines,
};
use atomic_registry::settings::Files;
use atomic_runner::found_gates;
use atomic_workflow::typescript::{Authored, hash_of};

use crate::programs::SearchPath;
use crate::{home, shelf};

/// The definitions of the project in a folder.
pub(crate) fn definitions_of(folder: &Path, registry: &Registry, files: &Files) -> Vec<Definition> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if home::user().and_then(|home| home.canonicalize().ok()).as_ref() == Some(&folder) {
        // The home folder is the user's own.
        return vec![];
    }
    let repository = Repository::of(&folder, home::user().as_deref());
    let root = &repository.root;
    let mut found = program_definitions(root, &top_of(root, &folder), &folder);
    found.extend(commands_in_git(&repository));
    let place = folder.strip_prefix(root).unwrap_or(&folder);
    let own = [registry.definitions(root), settings(root, files), checks(place, &folder)];
    let own = own.into_iter().flatten();
    found.extend(own.map(|definition| definition.within(place, Reach::Folder)));
    found.extend(workflows(root, &folder));
    found.extend(programs(root, &folder));
    number(&mut found);
    found
}

/// The outermost folder whose files agent programs load. Without a git repository Claude Code 2.1.325
/// and OpenCode 1.18.33 look for their files in every folder above; those that hold the home folder
/// are the user's.
fn top_of(root: &Path, folder: &Path) -> PathBuf {
    if root.join(".git").symlink_metadata().is_ok() {
        return root.to_owned();
    }
    let home = home::user().map(|home| home.canonicalize().unwrap_or(home));
    let holds_home = |above: &Path| home.as_ref().is_some_and(|home| home.starts_with(above));
    let above = folder.ancestors().take_while(|above| !holds_home(above));
    above.last().unwrap_or(root).to_owned()
}

fn settings(root: &Path, files: &Files) -> Vec<Definition> {
    let mut found = vec![];
    for (setting, sourced) in files.needing_trust().iter() {
        let path = sourced.origin.path().unwrap_or(Path::new(""));
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let path = path.strip_prefix(root).unwrap_or(&path);
        let value = sourced.value.to_json();
        let lines = setting_lines(&value);
        let kind = DefinitionKind::Setting;
        let definition = Definition::new(kind, path, setting.key, &value.to_string());
        found.push(definition.keeping(&lines.join("\n")).listing(lines));
    }
    found
}

/// Of a check that is found, the command line counts, and not what it runs.
fn checks(place: &Path, folder: &Path) -> Vec<Definition> {
    let check = |command: &String| {
        Definition::new(DefinitionKind::Check, place, command, command).detailed("")
    };
    found_gates(folder).iter().map(check).collect()
}

/// Folders of the project in which every process would look for programs.
fn programs(root: &Path, folder: &Path) -> Vec<Definition> {
    let folders = SearchPath::of_environment(folder).in_project(folder);
    let definition = |path: &PathBuf| {
        let path = path.canonicalize().unwrap_or_else(|_| path.clone());
        let inside = path.strip_prefix(root).unwrap_or(&path).to_owned();
        let name = if inside.as_os_str().is_empty() { Path::new(".") } else { &inside };
        let name = name.display().to_string();
        Definition::new(DefinitionKind::Programs, inside, name, "")
    };
    folders.iter().map(definition).collect()
}

fn workflows(root: &Path, folder: &Path) -> Vec<Definition> {
    let definition = |path: &Path, is_code: bool| {
        let text = shelf::text_of(path).unwrap_or_default();
        let authored = is_code.then(|| Authored::read(path, &shelf::root_of(path)));
        let hash = match authored {
            Some(Ok(authored)) => authored.hash().to_owned(),
            // Code that cannot be read cannot be run either.
            Some(Err(_)) | None => hash_of(&text),
        };
        workflow_definition(root, path, &hash).keeping(&text)
    };
    let code = shelf::code_in(folder).into_iter().map(|path| definition(&path, true));
    let documents = shelf::documents_in(folder).into_iter().map(|path| definition(&path, false));
    code.chain(documents).collect()
}

/// The definition that the code of a workflow file is.
pub(crate) fn workflow_definition(root: &Path, path: &Path, hash: &str) -> Definition {
    // The folder counts as what it is, the file as where it was found: a link must not be a way
    // around the question.
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let found: PathBuf = match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    };
    let inside = found.strip_prefix(root).unwrap_or(&found);
    let name = inside.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let around = inside.ancestors().find(|above| above.ends_with(".atomic")).unwrap_or(inside);
    let place = around.parent().unwrap_or(Path::new("")).to_owned();
    let mut definition = Definition::new(DefinitionKind::Workflow, inside, name, "");
    hash.clone_into(&mut definition.digest);
    definition.within(place, Reach::Folder)
}
