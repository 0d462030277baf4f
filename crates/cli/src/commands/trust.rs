//! `atomic trust`: which folders may run what is in them.

use std::path::Path;
use std::process::ExitCode;

use atomic_workflow::typescript::{Authored, hash_of};

use crate::args::TrustArgs;
use crate::failure::Failure;
use crate::trust::Trust;
use crate::{paint, shelf};

pub(crate) fn trust(args: &TrustArgs) -> Result<ExitCode, Failure> {
    let mut trust = Trust::read();
    let Some(folder) = &args.folder else {
        list(&trust);
        return Ok(ExitCode::SUCCESS);
    };
    let root =
        folder.canonicalize().ok().filter(|folder| folder.is_dir()).ok_or_else(|| {
            Failure::Usage(format!("{}: there is no such folder", folder.display()))
        })?;
    if args.withdraw {
        trust.withdraw(&root)?;
        paint::line(&format!("Nothing in {} is trusted any more.", root.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let mut broken = 0;
    for path in shelf::documents_in(&root) {
        let Ok(text) = shelf::text_of(&path) else { continue };
        let inside = path.strip_prefix(&root).unwrap_or(&path);
        trust.remember_file(&root, inside, &hash_of(&text))?;
        paint::line(&paint::printable(&format!("trusted  {}", inside.display())));
    }
    for path in shelf::code_in(&root) {
        match Authored::read(&path, &shelf::root_of(&path)) {
            Ok(authored) => {
                let inside = authored.found().strip_prefix(&root).unwrap_or(&path);
                trust.remember_file(&root, inside, authored.hash())?;
                paint::line(&paint::printable(&format!("trusted  {}", inside.display())));
            }
            Err(_) => {
                broken += 1;
                let text =
                    format!("left out  {}: it cannot be read; see atomic check", path.display());
                paint::line(&paint::printable(&text));
            }
        }
    }
    trust.remember_folder(&root, args.always)?;
    paint::line(&paint::printable(&told(&root, args.always)));
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn told(root: &Path, always: bool) -> String {
    let workflows = if always {
        "its workflows, whatever becomes of them"
    } else {
        "its workflows as they are now"
    };
    format!("{} may run: its hooks and MCP servers, {workflows}.", root.display())
}

fn list(trust: &Trust) {
    let folders = trust.folders();
    if folders.is_empty() {
        paint::line("Nothing is trusted.");
    }
    for (root, standing) in folders {
        paint::line(&paint::printable(&root.display().to_string()));
        if standing.folder {
            paint::line("  hooks and MCP servers");
        }
        if standing.always {
            paint::line("  workflows, whatever becomes of them");
        }
        for (file, hash) in standing.files {
            let short: String = hash.chars().take(12).collect();
            paint::line(&paint::printable(&format!("  {}  {short}", file.display())));
        }
    }
}
