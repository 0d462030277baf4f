//! Whether what the project defines is used, and what that is.

use atomic_registry::project::{Definition, is_never_used};

use super::{Known, Remark, Severity};
use crate::trust::{Change, Standing};

pub(super) fn look(known: &Known) -> Vec<Remark> {
    let Some(trust) = known.catalog.trust() else { return vec![] };
    let mut remarks = vec![match &trust.standing {
        Standing::Nothing => Remark::fine("the project defines nothing that needs trust"),
        Standing::Trusted | Standing::Once => Remark::fine("the repository is trusted"),
        Standing::InTrustedFolder => {
            Remark::fine("the repository lies in one of your trusted_folders")
        }
        Standing::Said(true) => Remark::fine("your settings trust every repository"),
        Standing::Said(false) => {
            Remark::new(Severity::Note, "your settings trust no repository", "")
        }
        Standing::Declined | Standing::Undecided => {
            let remedy = "look at the definitions, then run: atomic trust .";
            Remark::new(Severity::Note, "the repository is not trusted", remedy)
        }
        Standing::Changed(changes) => {
            let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
            let text = format!(
                "definitions have changed since you trusted the repository\n{}",
                lines.join("\n")
            );
            let remedy = "look at the definitions, then run: atomic trust .";
            Remark::new(Severity::Warning, text, remedy)
        }
        Standing::Unseen(unseen) => {
            let lines = unseen.iter().filter_map(Change::definition).map(ToString::to_string);
            let lines: Vec<String> = lines.collect();
            let text = format!(
                "you trust the repository, but have not decided about what this folder adds\n{}",
                lines.join("\n")
            );
            let remedy = "look at the definitions, then run: atomic trust .";
            Remark::new(Severity::Note, text, remedy)
        }
    }];
    let used = if trust.is_trusted() { "used" } else { "not used" };
    remarks.extend(trust.definitions.iter().map(|definition| remark(definition, used)));
    remarks
}

fn remark(definition: &Definition, used: &str) -> Remark {
    let heading = definition.kind.heading();
    let text = match is_never_used(definition) {
        true => format!("{heading}: {definition}"),
        false => format!("{heading}: {definition}, {used}"),
    };
    // A name in a file of the project must not look like another remark.
    let text = text.replace('\n', "\\n");
    Remark::new(Severity::Note, text, "")
}
