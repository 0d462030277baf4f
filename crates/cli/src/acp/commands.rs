//! What can be typed after a slash in an editor.

use std::fmt::Write as _;
use std::path::Path;

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate,
    UnstructuredCommandInput,
};
use atomic_registry::settings::Values;
use atomic_registry::{Class, Kind, Named, Names};

use crate::catalog::Catalog;

/// The commands of the chat that an editor has no other way to.
const OF_THE_CHAT: [&str; 5] = ["help", "clear", "compact", "model", "resume"];

/// Everything that can be typed in a folder.
pub(super) fn available(folder: &Path) -> SessionUpdate {
    let names = Catalog::open(folder, Values::default()).names();
    let command = |(typed, named): (String, &Named)| {
        let hint = named
            .hint
            .clone()
            .map(|hint| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
        AvailableCommand::new(typed, described(named)).input(hint)
    };
    let commands = offered(&names).into_iter().map(command).collect();
    SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))
}

fn described(named: &Named) -> String {
    let about = named.description.lines().next().unwrap_or_default();
    if about.is_empty() {
        format!("{} {}", named.class.word(), named.name)
    } else {
        about.to_owned()
    }
}

/// What is offered, each as it is typed: by its name, or with its class where that means another.
fn offered(names: &Names) -> Vec<(String, &Named)> {
    let is_offered = |named: &&Named| {
        let is_known = named.class != Class::BuiltIn || is_of_the_chat(&named.name);
        is_known && !named.hidden
    };
    let typed = |named: &Named| {
        let is_meant = names.find(&named.name).is_some_and(|meant| std::ptr::eq(meant, named));
        if is_meant { named.name.clone() } else { named.qualified() }
    };
    names.all().into_iter().filter(is_offered).map(|named| (typed(named), named)).collect()
}

/// Whether a command of the chat is one here, too.
pub(super) fn is_of_the_chat(name: &str) -> bool {
    OF_THE_CHAT.contains(&name)
}

/// The answer to `/help [command]`.
pub(super) fn help(folder: &Path, about: &str) -> String {
    let names = Catalog::open(folder, Values::default()).names();
    if !about.is_empty() {
        let found = names.get(about);
        return found.map_or_else(
            |unknown| unknown.to_string(),
            |named| {
                let hint = named.hint.as_deref().unwrap_or_default();
                format!("`{}`: {}", format!("/{} {hint}", named.name).trim_end(), named.description)
            },
        );
    }
    let classes = [
        ("Commands", vec![Class::BuiltIn, Class::Entity(Kind::Command)]),
        ("Workflows", vec![Class::Workflow]),
        ("Skills", vec![Class::Entity(Kind::Skill)]),
        ("Sub-agents", vec![Class::Entity(Kind::Agent)]),
    ];
    let offered = offered(&names);
    let mut text = String::new();
    for (title, classes) in classes {
        let of_class = offered.iter().filter(|(_, named)| classes.contains(&named.class));
        let lines: String = of_class.map(|(typed, named)| line(typed, named)).collect();
        if !lines.is_empty() {
            let _ = write!(text, "**{title}**\n{lines}\n");
        }
    }
    text
}

fn line(typed: &str, named: &Named) -> String {
    let hint = named.hint.as_ref().map_or_else(String::new, |hint| format!(" {hint}"));
    format!("- `/{typed}{hint}`: {}\n", described(named))
}
