//! `atomic list`: everything that can be called by name.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use atomic_registry::settings::Values;
use atomic_registry::{Class, Decision, Entity, Kind, Named, Names};
use console::{Alignment, Term, measure_text_width, pad_str, style, truncate_str};
use serde_json::{Value, json};

use crate::args::{ListArgs, Sort};
use crate::catalog::Catalog;
use crate::failure::Failure;
use crate::gate::UntrustedCode;
use crate::paint;

/// Columns in which a name and what it is for can be read.
const NARROW: usize = 60;

/// The most characters a name may push the descriptions to the right.
const WIDEST_NAME: usize = 30;

pub(crate) fn list(args: &ListArgs) -> Result<ExitCode, Failure> {
    let mut catalog = Catalog::here(Values::default())?;
    catalog.shelf.gate.untrusted = UntrustedCode::NeverRun;
    let names = catalog.names();
    let mut wanted: Vec<&Named> = names
        .all()
        .into_iter()
        .filter(|named| args.sort.is_none_or(|sort| sort == sort_of(named.class)))
        .filter(|named| args.all || !named.hidden)
        .collect();
    wanted.sort_by_key(|named| sort_of(named.class));
    let lines: Vec<String> = if args.json {
        wanted.iter().map(|named| as_json(&catalog, named).to_string()).collect()
    } else {
        table(&catalog, &names, &wanted)
    };
    // All at once: a line at a time would be a thousand writes.
    paint::line(&lines.join("\n"));
    catalog.introduce(args.verbose);
    Ok(ExitCode::SUCCESS)
}

fn table(catalog: &Catalog, names: &Names, wanted: &[&Named]) -> Vec<String> {
    let label = |named: &Named| {
        let is_meant = names.find(&named.name).is_some_and(|meant| std::ptr::eq(meant, named));
        let name = if is_meant { named.name.clone() } else { named.qualified() };
        paint::label(&format!("/{name}"))
    };
    let width = wanted.iter().map(|named| measure_text_width(&label(named))).max().unwrap_or(0);
    let width = width.min(WIDEST_NAME);
    let columns = std::io::stdout().is_terminal().then(|| usize::from(Term::stdout().size().1));
    let (mut group, mut lines) = (None, vec![]);
    for named in wanted {
        let sort = sort_of(named.class);
        if group != Some(sort) {
            let gap = if group.is_some() { "\n" } else { "" };
            lines.push(format!("{gap}{}", style(title(sort)).bold()));
            group = Some(sort);
        }
        let origin = paint::label(&short_origin(catalog, named));
        let mark = if is_broken(catalog, named) {
            format!(
                "  {}",
                style(format!("[broken: atomic check {}]", paint::label(&named.name))).red()
            )
        } else {
            String::new()
        };
        let origin = format!("{}{mark}", style(format!("({origin})")).dim());
        let line = format!(
            "  {}  {}  {origin}",
            pad_str(&label(named), width, Alignment::Left, None),
            paint::printable(&paint::one_line(&named.description)),
        );
        lines.push(match columns {
            Some(columns) => shortened(&line, &origin, columns),
            None => line,
        });
    }
    lines
}

/// A line that fits, with its end in sight.
fn shortened(line: &str, end: &str, columns: usize) -> String {
    if measure_text_width(line) <= columns {
        return line.to_owned();
    }
    let beginning = line.strip_suffix(end).unwrap_or(line).trim_end();
    let room = columns.saturating_sub(measure_text_width(end) + 2);
    // What it is for says more than where it is.
    if room < NARROW {
        return truncate_str(beginning, columns, "…").into_owned();
    }
    format!("{}  {end}", truncate_str(beginning, room, "…"))
}

/// Whose it is, in two words.
fn short_origin(catalog: &Catalog, named: &Named) -> String {
    match named.class {
        Class::BuiltIn => "built-in".to_owned(),
        Class::Workflow => match catalog.shelf.file(&named.name) {
            Some(path) => catalog.shown(path),
            None => "built-in".to_owned(),
        },
        Class::Entity(kind) => {
            let entity = catalog.registry.find(kind, &named.name);
            let path = entity.and_then(|entity| entity.origin.path.as_deref());
            path.map_or("built-in".to_owned(), |path| catalog.shown(path))
        }
    }
}

/// Whether a workflow cannot be run, as far as that is known without running its code.
fn is_broken(catalog: &Catalog, named: &Named) -> bool {
    let Some(path) = catalog.shelf.file(&named.name).filter(|_| named.class == Class::Workflow)
    else {
        return false;
    };
    !catalog.problems_in(path).0.is_empty()
}

fn as_json(catalog: &Catalog, named: &Named) -> Value {
    let mut value = json!({
        "kind": match named.class {
            Class::BuiltIn => "command",
            Class::Workflow | Class::Entity(_) => named.class.word(),
        },
        "name": named.name,
        "aliases": named.aliases,
        "description": *named.description,
        "argumentHint": named.hint,
        "hidden": named.hidden,
        "scope": "built-in",
    });
    let path = match named.class {
        Class::BuiltIn => None,
        Class::Workflow => {
            let path = catalog.shelf.file(&named.name);
            if let Some(path) = path {
                let is_project = path.starts_with(&catalog.project);
                value["broken"] = is_broken(catalog, named).into();
                value["scope"] = if is_project { "project" } else { "user" }.into();
            }
            path.map(ToOwned::to_owned)
        }
        Class::Entity(kind) => catalog.registry.find(kind, &named.name).and_then(|entity| {
            value["scope"] = entity.origin.scope.name().into();
            value["provider"] = entity.origin.provider.name().into();
            value["model"] = entity.model.as_ref().map(|model| model.raw.clone()).into();
            value["tools"] = json!({
                "only": entity.tools.only,
                "without": entity.tools.without,
                "decisions": decisions(entity),
            });
            entity.origin.path.clone()
        }),
    };
    value["path"] = path.map(|path| path.display().to_string()).into();
    value
}

/// The ordered decisions about tools, in the form of OpenCode's `permission`.
fn decisions(entity: &Entity) -> Value {
    let decision = |it: &Decision| {
        let action = if it.allowed { "allow" } else { "deny" };
        json!({ "permission": it.key, "pattern": it.uses.as_deref().unwrap_or("*"), "action": action })
    };
    let layer = |layer: &Vec<Decision>| layer.iter().map(decision).collect::<Vec<_>>();
    json!(entity.tools.layers.iter().map(layer).collect::<Vec<_>>())
}

fn sort_of(class: Class) -> Sort {
    match class {
        Class::BuiltIn | Class::Entity(Kind::Command) => Sort::Commands,
        Class::Workflow => Sort::Workflows,
        Class::Entity(Kind::Skill) => Sort::Skills,
        Class::Entity(Kind::Agent) => Sort::Agents,
    }
}

fn title(sort: Sort) -> &'static str {
    match sort {
        Sort::Commands => "Commands",
        Sort::Workflows => "Workflows",
        Sort::Skills => "Skills",
        Sort::Agents => "Sub-agents",
    }
}
