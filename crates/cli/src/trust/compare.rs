//! Comparison of the definitions in a folder with those that the user has decided about.

use std::collections::BTreeSet;
use std::path::Path;

use atomic_files::shell_quoted;
use atomic_registry::project::{Definition, DefinitionId, DefinitionKind, digest, on_one_line};
use atomic_registry::settings::{Origin, TRUST, Values};

use super::{Change, ProjectTrust, Standing};
use crate::failure::Failure;
use crate::paint;

impl ProjectTrust {
    pub(super) fn found(&self, users: &Values) -> Standing {
        let said = users.get(&TRUST).and_then(|said| Some((users.switch(&TRUST)?, &said.origin)));
        // A decision about this repository outranks settings about all of them.
        let is_refused = self.remembered.is_withdrawn || self.has_declined_some();
        match said {
            Some((true, Origin::File { .. })) if is_refused => {}
            Some((is_trusted, _)) => return Standing::Said(is_trusted),
            None => {}
        }
        if !is_refused && self.is_in_trusted_folder(&self.repository) {
            return Standing::InTrustedFolder;
        }
        let open = self.open();
        if open.is_empty() {
            let is_nothing = self.definitions.is_empty();
            return if is_nothing { Standing::Nothing } else { Standing::Trusted };
        }
        if self.is_declined(&open) {
            return Standing::Declined;
        }
        if !self.remembered.is_trusted {
            return Standing::Undecided;
        }
        match open.iter().all(|change| matches!(change, Change::Unseen(_))) {
            true => Standing::Unseen(open),
            false => Standing::Changed(open),
        }
    }

    /// Everything in this folder that the user has not trusted.
    pub(super) fn open(&self) -> Vec<Change> {
        let open = self.definitions.iter().filter_map(|definition| self.change_of(definition));
        open.chain(self.removed()).collect()
    }

    fn change_of(&self, definition: &Definition) -> Option<Change> {
        let (id, trusted) = (definition.id(), &self.remembered.trusted);
        if trusted.has(&id, &definition.digest) {
            return None;
        }
        let definition = definition.clone();
        if let Some(known) = trusted.newest(&id) {
            return Some(Change::Changed { definition, before: known.text.clone() });
        }
        if self.remembered.is_trusted && self.follows(&definition) {
            return None;
        }
        match self.was_listed(&definition) {
            true => Some(Change::Added(definition)),
            false => Some(Change::Unseen(definition)),
        }
    }

    /// The definitions that were trusted, may protect something here, and are gone. A worktree from
    /// which the user has seen them gone is not asked about again.
    fn removed(&self) -> Vec<Change> {
        if !self.remembered.is_trusted {
            return vec![];
        }
        let trusted = &self.remembered.trusted;
        let there: BTreeSet<DefinitionId> = self.definitions.iter().map(Definition::id).collect();
        let gone = trusted.ids().filter(|id| self.may_protect(id) && !there.contains(*id));
        let gone = gone.filter(|id| !trusted.lacks(&self.repository.root, id));
        let removed = gone.map(|id| {
            let before = trusted.newest(id).map(|version| version.text.clone());
            Change::Removed { id: id.clone(), before: before.unwrap_or_default() }
        });
        removed.collect()
    }

    /// Whether a definition that is new in a trusted repository is used without a question.
    fn follows(&self, definition: &Definition) -> bool {
        // `npm run` and direnv add folders of the project to PATH. In a repository that is trusted
        // this is the user's doing.
        if definition.kind == DefinitionKind::Programs {
            return true;
        }
        // A text such as `CLAUDE.md` of another folder: agents read the project's texts anyway.
        // Folders of texts have hooks in them.
        definition.kind == DefinitionKind::Instructions
            && definition.path.parent() == Some(&definition.folder)
            && definition.digest == digest("")
            && !self.was_listed(definition)
    }

    /// Whether a definition would have been listed when the user decided to trust, had it been
    /// there.
    fn was_listed(&self, definition: &Definition) -> bool {
        let folder = self.repository.root.join(&definition.folder);
        let mut decided = self.remembered.folders.iter();
        decided.any(|place| definition.reach.covers(&folder, &self.repository.root.join(place)))
    }

    /// Whether the user goes on without everything that is open. Folders in `PATH` alone are not
    /// worth another question.
    fn is_declined(&self, open: &[Change]) -> bool {
        let declined = &self.remembered.declined;
        let is_program = |change: &Change| {
            change.definition().is_some_and(|one| one.kind == DefinitionKind::Programs)
        };
        let covers =
            |change: &Change| declined.covers(change, &self.repository.root) || is_program(change);
        !declined.is_empty() && open.iter().all(covers)
    }

    /// Whether the user goes on without a definition that is there.
    fn has_declined_some(&self) -> bool {
        let declined = &self.remembered.declined;
        self.definitions.iter().any(|one| declined.has(&one.id(), &one.digest))
    }

    /// Whether a definition that was trusted may protect something here: one that counts in this
    /// folder, and is of a kind that acts by itself.
    fn may_protect(&self, id: &DefinitionId) -> bool {
        let acts = match id.kind {
            DefinitionKind::Hook
            | DefinitionKind::McpServer
            | DefinitionKind::LanguageServer
            | DefinitionKind::Plugin
            | DefinitionKind::Git
            | DefinitionKind::Agent
            | DefinitionKind::Skill
            | DefinitionKind::Command
            | DefinitionKind::ProgramSetting => true,
            DefinitionKind::Check
            | DefinitionKind::Workflow
            | DefinitionKind::Setting
            | DefinitionKind::Instructions
            | DefinitionKind::Programs
            | DefinitionKind::OtherFile => false,
        };
        acts && id.reach.covers(&self.repository.root.join(&id.folder), &self.folder)
    }

    /// Returns the refusal of a command where nobody answers: the run would go on without a
    /// definition that may protect something.
    pub(super) fn refusal(&self) -> Option<Failure> {
        let path = |path: &Path| on_one_line(&path.display().to_string());
        let (about, changes) = match &self.standing {
            Standing::Changed(changes) => {
                let root = path(&self.repository.root);
                (
                    format!("{root}: definitions have changed since you trusted this repository"),
                    changes,
                )
            }
            Standing::Unseen(unseen) => {
                let mut trusted = self.remembered.trusted.ids();
                trusted.any(|id| self.may_protect(id)).then_some(())?;
                let folder = path(&self.folder);
                (format!("{folder}: you have not decided about these definitions"), unseen)
            }
            Standing::Said(_)
            | Standing::Nothing
            | Standing::InTrustedFolder
            | Standing::Trusted
            | Standing::Once
            | Standing::Declined
            | Standing::Undecided => return None,
        };
        let lines = changes.iter().flat_map(Change::lines).map(|line| format!("  {line}"));
        let lines = paint::printable(&lines.collect::<Vec<_>>().join("\n"));
        let command = self.command();
        Some(Failure::Usage(format!(
            "{about}:\n{lines}\n  hint: look at them, then run: {command}\n  hint: or pass --trust or \
             --no-trust for this time"
        )))
    }

    /// The command that trusts this folder, typed in the folder the user is in.
    pub(super) fn command(&self) -> String {
        let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
        match here.as_ref() == Some(&self.folder) {
            true => "atomic trust .".to_owned(),
            false => format!("atomic trust {}", shell_quoted(&self.folder)),
        }
    }
}
