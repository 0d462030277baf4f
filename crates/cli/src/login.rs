//! Settings about providers in a project's files, which are not used.

use std::path::{Path, PathBuf};

use atomic_backend::login::{UnusedSetting, unused_settings, users_file};

use atomic_registry::project::on_one_line;

use crate::paint;

/// The maximum number of keys that are named in a line.
const NAMED: usize = 8;

/// Warns about settings in a project's files that say how an agent program reaches its provider.
pub(crate) fn tell_unused_settings(program: &str, project: &Path) {
    for line in lines(program, project) {
        paint::warn(&line);
    }
}

/// Returns a line for each file with such settings.
pub(crate) fn lines(program: &str, project: &Path) -> Vec<String> {
    let mut files: Vec<(PathBuf, Vec<String>)> = vec![];
    for UnusedSetting { file, key } in unused_settings(program, project) {
        match files.iter_mut().find(|(known, _)| *known == file) {
            Some((_, keys)) => keys.push(key),
            None => files.push((file, vec![key])),
        }
    }
    let real = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    let own = users_file(program).unwrap_or("your own settings");
    let line = |(file, keys): (PathBuf, Vec<String>)| {
        let file =
            file.strip_prefix(&real).or_else(|_| file.strip_prefix(project)).unwrap_or(&file);
        let mut named: Vec<String> = keys.iter().take(NAMED).map(|key| on_one_line(key)).collect();
        if keys.len() > NAMED {
            named.push(format!("and {} more", keys.len() - NAMED));
        }
        format!(
            "{}: {} not used, only {own} and your environment say how {program} reaches its provider",
            on_one_line(&file.display().to_string()),
            named.join(", ")
        )
    };
    files.into_iter().map(line).collect()
}
