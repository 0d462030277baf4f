//! Comparison of the definitions in a folder with those that the user has trusted.

use atomic_registry::project::{Definition, DefinitionId, DefinitionKind, digest};
use atomic_registry::settings::{Origin, TRUST, Values};

use super::{Change, ProjectTrust, Standing, digests, refusal};
use crate::failure::Failure;

impl ProjectTrust {
    pub(super) fn found(&self, users: &Values) -> Standing {
        let said = users.get(&TRUST).and_then(|said| Some((users.switch(&TRUST)?, &said.origin)));
        let is_withdrawn = self.remembered.is_withdrawn;
        match said {
            // What was said about all repositories does not outdo what was said about this one.
            Some((true, Origin::File { .. })) if is_withdrawn => {}
            Some((is_trusted, _)) => return Standing::Said(is_trusted),
            None => {}
        }
        if !is_withdrawn && self.is_in_trusted_folder(&self.repository.root) {
            return Standing::InTrustedFolder;
        }
        let (changes, unseen) = (self.changes(), self.unseen());
        let remembered = &self.remembered;
        match changes.is_empty() && unseen.is_empty() {
            true if self.definitions.is_empty() => Standing::Nothing,
            true => Standing::Trusted,
            false if remembered.declined.contains(&digests(&self.definitions)) => {
                Standing::Declined
            }
            false if !remembered.is_trusted => Standing::Undecided,
            false if changes.is_empty() => Standing::Unseen(unseen),
            false => {
                let unseen = unseen.into_iter().map(Change::Added);
                Standing::Changed(changes.into_iter().chain(unseen).collect())
            }
        }
    }

    /// Definitions that the user has not decided about.
    fn new_ones(&self) -> impl Iterator<Item = &Definition> {
        let known = &self.remembered.trusted;
        let is_new = |one: &&Definition| !known.contains_key(&one.id());
        let follows = |one: &&Definition| self.remembered.is_trusted && self.follows(one);
        self.definitions.iter().filter(is_new).filter(move |one| !follows(one))
    }

    /// Whether a definition that is new in a trusted repository is used without a question.
    fn follows(&self, definition: &Definition) -> bool {
        // `npm run` and direnv add folders of the project to PATH. In a repository that is trusted
        // this is the user's doing.
        if definition.kind == DefinitionKind::Programs {
            return true;
        }
        // A text such as `CLAUDE.md` of another folder: agents read the project's texts anyway.
        // Folders of texts have hooks in them, and settings name files.
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

    /// The definitions of a folder in which the user has not decided yet.
    fn unseen(&self) -> Vec<Definition> {
        let unseen = self.new_ones().filter(|one| !self.was_listed(one)).cloned();
        unseen.collect()
    }

    /// The differences to what was trusted.
    fn changes(&self) -> Vec<Change> {
        let known = &self.remembered.trusted;
        let is_changed =
            |one: &&Definition| known.get(&one.id()).is_some_and(|digest| *digest != one.digest);
        let changed = self.definitions.iter().filter(is_changed).cloned().map(Change::Changed);
        let added = self.new_ones().filter(|one| self.was_listed(one)).cloned().map(Change::Added);
        let mut changes: Vec<Change> = changed.chain(added).collect();
        if self.remembered.is_trusted {
            let current = digests(&self.definitions);
            let gone = known.keys().filter(|id| !current.contains_key(*id));
            let gone = gone.filter(|id| self.may_protect(id));
            changes.extend(gone.map(|id| Change::Removed(id.clone())));
        }
        changes
    }

    /// The ids of definitions that were trusted and are gone.
    pub(super) fn removed(&self) -> Vec<DefinitionId> {
        let removed = self.changes().into_iter().filter_map(|change| match change {
            Change::Removed(id) => Some(id),
            Change::Added(_) | Change::Changed(_) => None,
        });
        removed.collect()
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

    /// Why a command is refused where nobody answers: without something that was trusted it would
    /// go on without what may protect.
    pub(super) fn refusal(&self) -> Option<Failure> {
        let changes = match &self.standing {
            Standing::Changed(changes) => changes.clone(),
            Standing::Unseen(unseen) => {
                let mut trusted = self.remembered.trusted.keys();
                trusted.any(|id| self.may_protect(id)).then_some(())?;
                unseen.iter().cloned().map(Change::Added).collect()
            }
            Standing::Said(_)
            | Standing::Nothing
            | Standing::InTrustedFolder
            | Standing::Trusted
            | Standing::Once
            | Standing::Declined
            | Standing::Undecided => return None,
        };
        Some(Failure::Usage(refusal(&self.repository.root, &changes)))
    }
}
