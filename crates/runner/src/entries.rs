//! Skills and commands by name: prompts that a workflow can run.

use std::collections::BTreeMap;

use atomic_graph::check::nearest;
use atomic_workflow::EntryKind;

/// The skills and commands a run can use.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    skills: BTreeMap<String, String>,
    commands: BTreeMap<String, String>,
}

impl Entries {
    /// Adds an entry.
    #[must_use]
    pub fn with(mut self, kind: EntryKind, name: &str, prompt: &str) -> Self {
        let entries = match kind {
            EntryKind::Skill => &mut self.skills,
            EntryKind::Command => &mut self.commands,
        };
        entries.insert(name.to_owned(), prompt.to_owned());
        self
    }

    /// The names of one kind.
    pub fn names(&self, kind: EntryKind) -> impl Iterator<Item = &str> {
        let entries = match kind {
            EntryKind::Skill => &self.skills,
            EntryKind::Command => &self.commands,
        };
        entries.keys().map(String::as_str)
    }

    /// An entry's prompt with its arguments; the error says what there is instead.
    pub(crate) fn prompt(&self, kind: EntryKind, name: &str, args: &str) -> Result<String, String> {
        let (entries, word) = match kind {
            EntryKind::Skill => (&self.skills, "Skill"),
            EntryKind::Command => (&self.commands, "Command"),
        };
        let wanted = name.to_lowercase();
        let mut all = entries.iter();
        let Some((_, prompt)) = all.find(|(known, _)| known.to_lowercase() == wanted) else {
            let hint = nearest(name, self.names(kind));
            let hint =
                hint.map_or_else(String::new, |known| format!(" (did you mean \"{known}\"?)"));
            return Err(format!("{word} not found: \"{name}\"{hint}"));
        };
        Ok(with_arguments(prompt, args.trim(), kind))
    }
}

/// Puts arguments where the prompt wants them, or at its end.
fn with_arguments(prompt: &str, args: &str, kind: EntryKind) -> String {
    const PLACE: &str = "$ARGUMENTS";
    match (prompt.contains(PLACE), args.is_empty(), kind) {
        (true, true, EntryKind::Skill) => prompt.replace(PLACE, "[no arguments]"),
        (true, _, _) => prompt.replace(PLACE, args),
        (false, true, _) => prompt.to_owned(),
        (false, false, _) => format!("{prompt}\n\n{args}"),
    }
}

#[cfg(test)]
mod tests {
    use atomic_workflow::EntryKind;

    use super::Entries;

    #[test]
    fn arguments_go_where_the_prompt_wants_them_or_to_its_end() {
        let entries = Entries::default()
            .with(EntryKind::Skill, "a", "x $ARGUMENTS y $ARGUMENTS")
            .with(EntryKind::Command, "b", "x $ARGUMENTS.")
            .with(EntryKind::Command, "c", "plain")
            .with(EntryKind::Command, "changelog", "plain");
        let prompt = |kind, name: &str, args: &str| entries.prompt(kind, name, args).unwrap();
        assert_eq!(prompt(EntryKind::Skill, "a", "1"), "x 1 y 1");
        assert_eq!(prompt(EntryKind::Skill, "A", "1"), "x 1 y 1", "in any case");
        assert_eq!(prompt(EntryKind::Skill, "a", ""), "x [no arguments] y [no arguments]");
        assert_eq!(prompt(EntryKind::Command, "b", ""), "x .");
        assert_eq!(prompt(EntryKind::Command, "c", "1"), "plain\n\n1");
        assert_eq!(prompt(EntryKind::Command, "c", ""), "plain");
        let problem = entries.prompt(EntryKind::Command, "chanelog", "").unwrap_err();
        assert_eq!(problem, "Command not found: \"chanelog\" (did you mean \"changelog\"?)");
    }
}
