//! Names that mean something else than one would think, and files that others replace.

use atomic_registry::Entity;
use atomic_workflow::builtin;

use super::{Known, Remark, Severity};

pub(super) fn look(known: &Known) -> Vec<Remark> {
    let catalog = &known.catalog;
    let mut remarks = vec![];
    for shadowed in catalog.names().shadowed() {
        let remedy = "give one of them another name, or type what is said here";
        remarks.push(Remark::new(Severity::Note, shadowed.to_string(), remedy));
    }
    let replaced = catalog.registry.replaced().filter_map(|(entity, meant)| {
        // What ships with the program is there to be replaced; two in one folder are told there.
        let place = |entity: &Entity| (entity.origin.scope, entity.origin.provider);
        let path = entity.origin.path.as_ref().filter(|_| place(entity) != place(meant))?;
        // Without trust a built-in one replaces the project's, which is told with the trust.
        let by = meant.origin.path.as_ref().map(|path| catalog.shown(path))?;
        let what = format!("the {} `{}`", entity.kind.word(), entity.name);
        Some(format!("{}: {what} is replaced by {by}", catalog.shown(path)))
    });
    let workflows = catalog.shelf.replaced.iter().filter_map(|(path, name)| {
        let by = catalog.shelf.file(name).map(|path| catalog.shown(path))?;
        Some(format!("{}: the workflow `{name}` is replaced by {by}", catalog.shown(path)))
    });
    let built_in = builtin::all().into_iter().filter_map(|workflow| {
        let path = catalog.shelf.file(workflow.name.as_str())?;
        let name = &workflow.name;
        Some(format!("{}: replaces the built-in workflow `{name}`", catalog.shown(path)))
    });
    remarks.extend(
        replaced.chain(workflows).chain(built_in).map(|text| Remark::new(Severity::Note, text, "")),
    );
    if remarks.is_empty() {
        remarks.push(Remark::fine("every name means what it says"));
    }
    remarks
}
