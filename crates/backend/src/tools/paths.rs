//! Rules about files.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::wildcard;

/// Whether a path surely fits a pattern, wherever links in it lead.
pub(super) fn is_allowed(pattern: &str, path: &str, workspace: &Path) -> bool {
    let places = Places::of(pattern, path, workspace);
    places.is_some_and(|places| fits(&places.real_base, &places.rest, &places.real))
}

/// Whether a path may fit a pattern, as it is written or where links in it lead.
pub(super) fn may_be_prohibited(pattern: &str, path: &str, workspace: &Path) -> bool {
    let Some(places) = Places::of(pattern, path, workspace) else { return true };
    let Places { base, real_base, rest, written, real } = places;
    fits(&base, &rest, &written) || fits(&real_base, &rest, &real)
}

/// Whether a path surely fits a pattern in which `*` stands for any characters, `/` too, wherever
/// links in it lead.
pub(super) fn fits_wildcard(pattern: &str, path: &str, workspace: &Path) -> bool {
    let (Some(pattern), Some(found)) = (at_home(pattern), Located::of(path, workspace)) else {
        return false;
    };
    match found.real.strip_prefix(&found.real_workspace) {
        Ok(below) if !pattern.starts_with('/') => fits_text(&pattern, below),
        _ => pattern.starts_with('/') && fits_text(&pattern, &found.real),
    }
}

/// Whether a path may fit such a pattern, as it is written or where links in it lead.
pub(super) fn may_fit_wildcard(pattern: &str, path: &str, workspace: &Path) -> bool {
    let (Some(pattern), Some(found)) = (at_home(pattern), Located::of(path, workspace)) else {
        return true;
    };
    let Located { workspace, real_workspace, written, real } = found;
    let below = [written.strip_prefix(&workspace), real.strip_prefix(&real_workspace)];
    let is_out = below.iter().any(Result::is_err);
    let is_above = pattern.starts_with("..") && is_out;
    let below = below.into_iter().flatten();
    // Some versions read `**/` as any folders or none.
    let patterns = [pattern.replace("**/", "*"), pattern];
    let fits = |path: &Path| patterns.iter().any(|pattern| fits_text(pattern, path));
    is_above || below.chain([written.as_path(), real.as_path()]).any(fits)
}

/// Whether a path may lead out of the workspace.
pub(super) fn may_lead_out(path: &str, workspace: &Path) -> bool {
    Located::of(path, workspace).is_none_or(|found| {
        !found.written.starts_with(&found.workspace)
            || !found.real.starts_with(&found.real_workspace)
    })
}

/// A path, as it is written and where it leads.
struct Located {
    workspace: PathBuf,
    real_workspace: PathBuf,
    written: PathBuf,
    real: PathBuf,
}

impl Located {
    /// Nothing when it cannot be judged.
    fn of(path: &str, workspace: &Path) -> Option<Self> {
        if path.is_empty() || path.trim() != path || path.starts_with('~') {
            return None;
        }
        let (workspace, written) = (plain(workspace)?, plain(&workspace.join(path))?);
        let (real_workspace, real) = (resolved(&workspace)?, resolved(&written)?);
        Some(Self { workspace, real_workspace, written, real })
    }
}

/// A pattern with the home folder in place of `~` and `$HOME`.
fn at_home(pattern: &str) -> Option<String> {
    let rest = pattern.strip_prefix('~').or_else(|| pattern.strip_prefix("$HOME"));
    match rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        Some(rest) => Some(format!("{}{rest}", std::env::home_dir()?.to_str()?)),
        None => Some(pattern.trim_start_matches("./").to_owned()),
    }
}

fn fits_text(pattern: &str, path: &Path) -> bool {
    path.to_str().is_some_and(|path| wildcard::fits(pattern, path))
}

/// A path and a pattern in the same terms.
struct Places {
    /// The folder that the pattern is relative to.
    base: PathBuf,
    real_base: PathBuf,
    /// The pattern below that folder.
    rest: String,
    written: PathBuf,
    real: PathBuf,
}

impl Places {
    /// Nothing when it cannot be judged.
    fn of(pattern: &str, path: &str, workspace: &Path) -> Option<Self> {
        // Programs differ in what they make of these.
        if path.is_empty() || path.trim() != path || path.starts_with('~') {
            return None;
        }
        let written = plain(&workspace.join(path))?;
        let (base, rest) = anchor(pattern, workspace)?;
        let (real_base, real) = (resolved(&base)?, resolved(&written)?);
        Some(Self { base, real_base, rest, written, real })
    }
}

/// The folder that a pattern is relative to, and the rest of it.
fn anchor(pattern: &str, workspace: &Path) -> Option<(PathBuf, String)> {
    let whole = match pattern.strip_prefix("~/") {
        Some(rest) => Some(std::env::home_dir()?.join(rest).to_str()?.to_owned()),
        None => pattern.starts_with('/').then(|| pattern.to_owned()),
    };
    let Some(whole) = whole else {
        let pattern = pattern.trim_start_matches("./");
        // As everywhere where such patterns are written: a name alone is one at any depth.
        let is_name = !pattern.trim_end_matches('/').contains('/');
        let rest = if is_name { format!("**/{pattern}") } else { pattern.to_owned() };
        return Some((plain(workspace)?, rest));
    };
    let parts: Vec<&str> = whole.split('/').filter(|part| !part.is_empty()).collect();
    let is_open = |part: &&str| part.contains(['*', '?', '[', '{', '!', '\\']);
    let literal = parts.iter().position(is_open).unwrap_or(parts.len());
    let (base, rest) = parts.split_at(literal);
    Some((plain(&Path::new("/").join(base.join("/")))?, rest.join("/")))
}

fn fits(base: &Path, rest: &str, path: &Path) -> bool {
    let Ok(below) = path.strip_prefix(base) else { return false };
    below.to_str().is_some_and(|below| fast_glob::glob_match(rest, below))
}

/// The path without empty parts. Where `..` leads depends on links, and on who follows them.
fn plain(path: &Path) -> Option<PathBuf> {
    let is_back = path.components().any(|part| part == Component::ParentDir);
    (path.is_absolute() && !is_back).then(|| path.components().collect())
}

/// Where a path leads, as far as it exists.
fn resolved(path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().find_map(|ancestor| match ancestor.canonicalize() {
        Ok(real) => Some(Some((ancestor, real))),
        // A link to what is not there leads to where it would be made.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            ancestor.symlink_metadata().is_ok().then_some(None)
        }
        Err(_) => Some(None),
    });
    let (ancestor, real) = there??;
    let rest = path.strip_prefix(ancestor).ok()?;
    Some(real.components().chain(rest.components()).collect())
}
