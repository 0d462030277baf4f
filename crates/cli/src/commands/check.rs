//! `atomic check`: everything that is wrong with a workflow, before it runs.

use std::process::ExitCode;

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::{load, paint};

pub(crate) fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let all = load::names();
    let workflows = if args.workflows.is_empty() { &all } else { &args.workflows };
    let mut broken = 0;
    for text in workflows {
        let loaded = match load::load(text) {
            Ok(loaded) => loaded,
            Err(failure) => {
                broken += 1;
                paint::complain(&failure.to_string());
                continue;
            }
        };
        for problem in loaded.errors.iter().chain(&loaded.warnings) {
            paint::line(problem);
        }
        if !loaded.errors.is_empty() {
            broken += 1;
        }
        paint::line(&format!("{text}: {}", verdict(loaded.errors.len(), loaded.warnings.len())));
    }
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn verdict(errors: usize, warnings: usize) -> String {
    let count = |number: usize, what: &str| {
        if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
    };
    match (errors, warnings) {
        (0, 0) => "ok".to_owned(),
        (0, warnings) => format!("ok, {}", count(warnings, "warning")),
        (errors, 0) => count(errors, "error"),
        (errors, warnings) => {
            format!("{}, {}", count(errors, "error"), count(warnings, "warning"))
        }
    }
}
