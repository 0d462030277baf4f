//! `atomic init`: the folders and the settings of a project.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use atomic_registry::settings::{FILE_NAME, PROJECT_FOLDER, template};

use crate::editor::{self, Base, Done};
use crate::failure::Failure;
use crate::paint;

/// The folders of a project.
const FOLDERS: [&str; 4] = ["agents", "skills", "commands", "workflows"];

/// Keeps an empty folder in git; what looks for agents and the like passes over it.
const KEEPER: &str = ".gitkeep";

/// Something to be made.
struct Piece {
    path: PathBuf,
    /// The text of a file; a folder has none.
    text: Option<String>,
}

pub(crate) fn init() -> Result<ExitCode, Failure> {
    let root = Path::new(PROJECT_FOLDER);
    let base = Base::here()?;
    let folder = |path: PathBuf| Piece { path, text: None };
    let mut pieces = vec![folder(root.to_owned())];
    pieces.push(Piece { path: root.join(FILE_NAME), text: Some(template()) });
    pieces.extend(FOLDERS.map(|name| folder(root.join(name))));
    // Everything is looked at before anything is made, so that a half of it is never left.
    let there: Vec<bool> =
        pieces.iter().map(|piece| piece.is_there(&base)).collect::<Result<_, _>>()?;
    let mut made = 0;
    for (piece, is_there) in pieces.iter().zip(there) {
        let is_new = !is_there && piece.make(&base)?;
        made += usize::from(is_new);
        let verb = if is_new { "made" } else { "kept" };
        let slash = if piece.text.is_none() { "/" } else { "" };
        paint::line(&format!("{verb}  {}{slash}", piece.path.display()));
    }
    for (path, done) in editor::equip(&base, root)? {
        made += usize::from(done != Done::Kept);
        paint::line(&format!("{}  {}", done.verb(), path.display()));
    }
    paint::line(match made {
        0 => "Everything was there already; nothing was changed.",
        _ => "See what holds with: atomic config list",
    });
    Ok(ExitCode::SUCCESS)
}

impl Piece {
    /// Whether it is there already; something else in its place is an error.
    fn is_there(&self, base: &Base) -> Result<bool, Failure> {
        let path = self.path.display();
        let remedy = "move it away and run `atomic init` again; nothing was changed";
        let failed = |message: String| Err(Failure::Failed(format!("{path}: {message}; {remedy}")));
        if let Base::Project(files) = base
            && let Err(error) = files.require_inside(&self.path)
            && let Some(refused) = atomic_files::refusal(&error)
        {
            return failed(refused.to_string());
        }
        match (fs::metadata(&self.path), &self.text) {
            (Ok(found), None) if !found.is_dir() => {
                failed("this is to be a folder, and a file is in its place".to_owned())
            }
            (Ok(found), Some(_)) if !found.is_file() => {
                failed("this is to be a file, and something else is in its place".to_owned())
            }
            (Ok(_), _) => Ok(true),
            (Err(error), _) if error.kind() == ErrorKind::NotFound => {
                match fs::symlink_metadata(&self.path) {
                    Ok(_) => failed("a link is in its place that leads nowhere".to_owned()),
                    Err(_) => Ok(false),
                }
            }
            // The folder it is in is no folder, which is told first.
            (Err(error), _) => failed(format!("it cannot be looked at: {error}")),
        }
    }

    /// Makes it; whether it was not there, for somebody else may have made it just now.
    fn make(&self, base: &Base) -> Result<bool, Failure> {
        let done = match &self.text {
            Some(text) => editor::write_new(base, &self.path, text),
            None => base.create_folder(&self.path).and_then(|_| {
                // The outer folder has something in it.
                let is_inner = self.path.parent().is_some_and(|parent| parent != Path::new(""));
                let keeper = || editor::write_new(base, &self.path.join(KEEPER), "");
                if is_inner { keeper() } else { Ok(Done::Made) }
            }),
        };
        match done {
            Ok(done) => Ok(done != Done::Kept),
            Err(error) => {
                let path = self.path.display();
                Err(Failure::Failed(format!("{path}: it cannot be made: {error}")))
            }
        }
    }
}
