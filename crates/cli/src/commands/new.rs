//! `atomic new workflow`: a first file that runs, and an editor that helps with it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use atomic_registry::settings::PROJECT_FOLDER;
use atomic_workflow::descriptor::is_callable;
use atomic_workflow::typescript::Authored;

use crate::args::{Form, New, NewArgs, NewWorkflowArgs};
use crate::editor::{self, Base, Done};
use crate::failure::Failure;
use crate::shelf::{self, is_workflow};
use crate::trust::allow_code;
use crate::{home, paint};

pub(crate) fn new(args: &NewArgs) -> Result<ExitCode, Failure> {
    match &args.what {
        New::Workflow(args) => workflow(args),
    }
}

fn workflow(args: &NewWorkflowArgs) -> Result<ExitCode, Failure> {
    let name = args.name.strip_suffix(".ts").unwrap_or(&args.name);
    if is_workflow(Path::new(name)) {
        return Err(Failure::Usage(format!(
            "\"{name}\" ends like a file; give the name alone, and it becomes a file in TypeScript"
        )));
    }
    if !is_callable(name) {
        return Err(Failure::Usage(format!(
            "\"{name}\" cannot be typed as the name of a workflow; use letters, digits, `-` and `_`"
        )));
    }
    if shelf::built_in(name).is_some() && !args.force {
        return Err(Failure::Usage(format!(
            "{name}: this workflow is built in, and yours would replace it\n  hint: choose another \
             name, or pass --force"
        )));
    }
    let folder = place(args.user)?;
    let base = if args.user { Base::User } else { Base::here()? };
    let path = folder.join("workflows").join(format!("{name}.ts"));
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Failed(match atomic_files::refusal(&error) {
            Some(refused) => format!(
                "{}: {refused}\n  hint: replace the link by a folder of its own",
                path.display()
            ),
            None => format!("{}: it cannot be made: {error}", path.display()),
        })
    };
    let workflows = folder.join("workflows");
    base.create_folder(&workflows).map_err(|error| failed(&workflows, error))?;
    let done = editor::write_new(&base, &path, &text(args.form, name));
    let done = done.map_err(|error| failed(&path, error))?;
    if done == Done::Kept {
        return Err(Failure::Failed(format!(
            "{}: it is there already; choose another name, or change that one",
            path.display()
        )));
    }
    paint::line(&format!("made  {}", path.display()));
    for (path, done) in editor::equip(&base, &folder)? {
        paint::line(&format!("{}  {}", done.verb(), path.display()));
    }
    trust_as_written(&path);
    paint::line(&format!("Look at it with: atomic graph {name}"));
    paint::line(&format!("Run it with: atomic run {name} \"what to do\""));
    Ok(ExitCode::SUCCESS)
}

/// Trusts the file as it was written: its code is Atomic's own.
fn trust_as_written(path: &Path) {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(authored) = Authored::read(&path, &shelf::root_of(&path)) {
        // Without a home folder the first run asks.
        let _ = allow_code(authored.found(), authored.hash());
    }
}

/// The folder `.atomic` it belongs into.
fn place(user: bool) -> Result<PathBuf, Failure> {
    if !user {
        return Ok(PathBuf::from(PROJECT_FOLDER));
    }
    home::folder().ok_or_else(|| {
        Failure::Failed("there is no home folder; set HOME or ATOMIC_HOME".to_owned())
    })
}

/// A workflow of this name to begin with.
fn text(form: Form, name: &str) -> String {
    let text = match form {
        Form::Graph => include_str!("../../templates/graph.ts"),
        Form::Builder => include_str!("../../templates/builder.ts"),
        Form::Script => include_str!("../../templates/script.ts"),
    };
    text.replace("NAME", name)
}
