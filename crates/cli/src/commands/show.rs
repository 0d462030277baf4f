//! `atomic show <name>`: what a name means, where it comes from, and what an agent is told.

use std::process::ExitCode;

use atomic_registry::settings::Values;
use atomic_registry::{Class, Entity, Kind, Named, Names};
use console::style;

use crate::access::Access;
use crate::args::ShowArgs;
use crate::catalog::Catalog;
use crate::failure::Failure;
use crate::gate::UntrustedCode;
use crate::paint;

pub(crate) fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let mut catalog = Catalog::here(Values::default())?;
    catalog.shelf.gate.untrusted = UntrustedCode::NeverRun;
    let names = catalog.names();
    let named = names.get(&args.name).map_err(|unknown| Failure::Usage(unknown.to_string()))?;
    match named.class {
        Class::BuiltIn => {
            head(&names, named);
            field("from", "built-in");
            paint::line("\nIt belongs to the chat, which this version does not have yet.");
        }
        Class::Workflow => workflow(&catalog, &names, named),
        Class::Entity(kind) => entity(&catalog, &names, (named, kind))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn workflow(catalog: &Catalog, names: &Names, named: &Named) {
    head(names, named);
    match catalog.shelf.file(&named.name) {
        Some(path) => {
            field("from", &catalog.shown(path));
            if !catalog.problems_in(path).0.is_empty() {
                let name = paint::label(&named.name);
                field("broken", &format!("cannot be run; see: atomic check {name}"));
            }
        }
        None => field("from", "built-in"),
    }
    for (path, _) in catalog.shelf.replaced.iter().filter(|(_, name)| *name == named.name) {
        field("overrides", &catalog.shown(path));
    }
    if catalog.shelf.file(&named.name).is_some() && crate::shelf::built_in(&named.name).is_some() {
        field("overrides", "built-in");
    }
    paint::line(&format!("\natomic graph {} draws it.", paint::label(&named.name)));
}

fn entity(catalog: &Catalog, names: &Names, (named, kind): (&Named, Kind)) -> Result<(), Failure> {
    let registry = &catalog.registry;
    let entity = registry.get(kind, &named.name).map_err(|e| Failure::Usage(e.to_string()))?;
    let prompt = registry.prompt(entity).map_err(|finding| Failure::Failed(finding.to_string()))?;
    head(names, named);
    if let Some(model) = &entity.model {
        field("model", &model.raw);
    }
    tools(entity, kind);
    field("from", &origin(catalog, entity));
    for other in registry.overridden(entity) {
        field("overrides", &origin(catalog, other));
    }
    for (page, text) in registry.pages(entity) {
        field("page", &format!("{page} ({} lines)", text.lines().count()));
    }
    paint::line(&format!("\n{}", paint::printable(&prompt)));
    Ok(())
}

/// The tools of an entity, as they were written and as each backend grants them.
fn tools(entity: &Entity, kind: Kind) {
    let tools = &entity.tools;
    if tools.is_everything() {
        field("tools", "all (it names none)");
    } else {
        let by = match tools.by.as_slice() {
            [] => String::new(),
            keys => format!(" (by {})", keys.join(", ")),
        };
        field("tools", &format!("{tools}{by}"));
    }
    if tools.unclear {
        field(
            "unclear",
            "a restriction cannot be applied as written, so more is denied; run: atomic doctor",
        );
    }
    if !tools.unknown.is_empty() {
        field("unknown", &format!("{} (allows nothing)", tools.unknown.join(", ")));
    }
    if !tools.elsewhere.is_empty() {
        let provider = entity.origin.provider.name();
        field("left out", &format!("{} (only in {provider})", tools.elsewhere.join(", ")));
    }
    if kind == Kind::Agent || !tools.is_everything() {
        for access in Access::everywhere(entity) {
            field(access.backend, &access.lines().join("\n"));
        }
    }
}

/// What every name has.
fn head(names: &Names, named: &Named) {
    let name = style(paint::label(&format!("/{}", named.name))).bold();
    paint::line(&format!("{name}  {}", named.class.word()));
    field("about", &named.description);
    if !named.aliases.is_empty() {
        field("also", &named.aliases.join(", "));
    }
    if let Some(hint) = &named.hint {
        let is_meant = names.find(&named.name).is_some_and(|meant| std::ptr::eq(meant, named));
        let name = if is_meant { named.name.clone() } else { named.qualified() };
        field("type", &format!("/{name} {hint}"));
    }
    for shadowed in names.shadowed().filter(|s| std::ptr::eq(s.loser, named)) {
        field("hidden", &shadowed.to_string());
    }
    for shadowed in names.shadowed().filter(|s| std::ptr::eq(s.winner, named)) {
        field(
            "hides",
            &format!(
                "the {} `{}`: {}",
                shadowed.loser.class.word(),
                shadowed.loser.name,
                shadowed.reach
            ),
        );
    }
}

fn origin(catalog: &Catalog, entity: &Entity) -> String {
    let scope = entity.origin.scope.name();
    match &entity.origin.path {
        Some(path) => {
            format!("{} ({scope}, {})", catalog.shown(path), entity.origin.provider.name())
        }
        None => scope.to_owned(),
    }
}

fn field(name: &str, text: &str) {
    let text = paint::printable(text);
    // What goes on in further lines stays in its column.
    let text = text.replace('\n', "\n             ");
    paint::line(&format!("  {}  {text}", style(format!("{name:<9}")).dim()));
}
