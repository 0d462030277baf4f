//! What a file says about itself, read without running it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{self, Expression, ObjectPropertyKind, Program, Statement};
use oxc_span::{GetSpan as _, Span};
use serde_json::Value;

use super::forgotten::Follow;
use super::named::{self, Named};
use super::{constant, deep, exported, forgotten, literal, parse};
use crate::fault::{Fault, Page, Place};

/// What kind of workflow a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// It exports `graphConfig`.
    Graph,
    /// Its default export is a function that gives a graph.
    Builder,
    /// Its default export is `defineWorkflow(…).run(…)`.
    Script,
    /// None of these: only a name, or not even that.
    #[default]
    Chat,
}

/// What a file says about itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata {
    /// `name`
    pub name: Option<String>,
    /// `description`
    pub description: Option<String>,
    /// `aliases`
    pub aliases: Vec<String>,
    /// `version`
    pub version: Option<String>,
    /// `minSDKVersion`
    pub min_sdk_version: Option<String>,
    /// `stateVersion`
    pub state_version: Option<u64>,
    /// `argumentHint`
    pub argument_hint: Option<String>,
    /// `sessionsDir`
    pub sessions_dir: Option<String>,
    /// `defaultConfig`, if it can be read without running anything
    pub default_config: Option<Value>,
    /// What kind of workflow it is.
    pub form: Form,
    /// The names of other workflows that a script uses.
    pub workflows: Vec<String>,
    /// The agents, skills and commands that a script calls by names that are written down.
    pub calls: Vec<NamedCall>,
    /// The names it exports.
    pub exports: BTreeSet<String>,
    /// Where the values above are written, by the name in the file.
    pub places: BTreeMap<String, Place>,
}

/// An agent, a skill or a command that is called by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCall {
    /// `agent`, `skill` or `command`.
    pub kind: &'static str,
    /// The name.
    pub name: String,
    /// Where it is written.
    pub at: Place,
}

/// The part of a file's meaning that other files decide.
#[derive(Default)]
pub(crate) struct Outside<'o> {
    /// Names that `export * from` adds to the file's own.
    pub(crate) exports: BTreeSet<String>,
    /// Looks at imported files; `None` where no other file is looked at.
    pub(crate) follow: Option<&'o Follow<'o>>,
}

/// Reads what a file says about itself. Nothing of it is run, and no other file is looked at.
///
/// What is wrong is in the second part, and never keeps the rest from being read; only a file
/// that is not TypeScript at all says nothing.
#[must_use]
pub fn metadata(file: &Path, text: &str) -> (Metadata, Vec<Fault>) {
    match deep::run(file, || read(Page { file, text }, Outside::default())) {
        Ok(read) => read,
        Err(faults) => (Metadata::default(), faults),
    }
}

/// The same. It recurses: see [`deep::run`].
pub(crate) fn read(page: Page<'_>, outside: Outside<'_>) -> (Metadata, Vec<Fault>) {
    let allocator = Allocator::default();
    match deep::check(page).and_then(|()| parse(&allocator, page)) {
        Ok(program) => {
            let mut reader = Reader::new(page, &program);
            reader.read(outside);
            (reader.metadata, reader.faults)
        }
        Err(faults) => (Metadata::default(), faults),
    }
}

impl Metadata {
    /// What was read under one of these words; nothing where it was not written down.
    pub fn value(&self, key: &str) -> Value {
        match key {
            "name" => self.name.clone().into(),
            "description" => self.description.clone().into(),
            "aliases" if self.aliases.is_empty() => Value::Null,
            "aliases" => self.aliases.clone().into(),
            "version" => self.version.clone().into(),
            "minSDKVersion" => self.min_sdk_version.clone().into(),
            "stateVersion" => self.state_version.into(),
            "argumentHint" => self.argument_hint.clone().into(),
            "sessionsDir" => self.sessions_dir.clone().into(),
            _ => Value::Null,
        }
    }

    /// The words that are read, in the order in which they are complained about.
    pub const KEYS: [&str; 8] = [
        "name",
        "description",
        "aliases",
        "version",
        "minSDKVersion",
        "stateVersion",
        "argumentHint",
        "sessionsDir",
    ];
}

/// Whether a file says something about itself by this name.
pub(super) fn is_key(name: &str) -> bool {
    Metadata::KEYS.contains(&name)
}

/// So deep are objects spread in each other.
const DEEPEST_SPREAD: usize = 8;

struct Reader<'p, 'a> {
    page: Page<'p>,
    program: &'p Program<'a>,
    metadata: Metadata,
    faults: Vec<Fault>,
}

impl<'p, 'a> Reader<'p, 'a> {
    fn new(page: Page<'p>, program: &'p Program<'a>) -> Self {
        Self { page, program, metadata: Metadata::default(), faults: Vec::new() }
    }

    fn read(&mut self, outside: Outside<'_>) {
        self.metadata.exports = export_names(self.program);
        self.metadata.exports.extend(outside.exports);
        let script = find_script(self.program);
        self.metadata.form = self.find_form(script.is_some());
        if self.metadata.form == Form::Chat {
            let exports = &self.metadata.exports;
            let found = forgotten::workflow(self.page, self.program, exports, outside.follow);
            self.faults.extend(found);
        } else if self.metadata.form == Form::Graph {
            self.faults.extend(forgotten::empty(self.page, self.program));
        }
        for key in Metadata::KEYS {
            if let Some(value) = exported(self.program, key) {
                self.take(key, value);
            }
        }
        if let Some(value) = exported(self.program, "defaultConfig") {
            self.take_config(value);
        }
        match script {
            Some(script) => self.read_script(script),
            None => {
                let default = exported(self.program, "default");
                if let Some(object) = default.and_then(|default| self.object(default)) {
                    self.take_all(object, 0);
                }
            }
        }
    }

    fn find_form(&mut self, is_script: bool) -> Form {
        let has_graph = self.metadata.exports.contains("graphConfig");
        let default = default_span(self.program);
        if let Some(span) = default.filter(|_| has_graph) {
            let message = "the file has two workflows: `graphConfig` and a default export";
            let fault = self.page.fault("ATM718", span, message);
            self.faults
                .push(fault.with_help("keep one of them, and move the other to its own file"));
        }
        if has_graph {
            Form::Graph
        } else if is_script {
            Form::Script
        } else if default.is_some() {
            Form::Builder
        } else {
            Form::Chat
        }
    }

    /// What `defineWorkflow({…})` says, and which workflows the script uses.
    fn read_script(&mut self, definition: &'p ast::CallExpression<'a>) {
        let argument = definition.arguments.first().and_then(ast::Argument::as_expression);
        if let Some(object) = argument.and_then(|argument| self.object(argument)) {
            self.take_all(object, 0);
        }
        for Named { kind, name, span } in named::calls(self.program) {
            let at = self.page.place(span);
            if kind == "workflow" && !self.metadata.workflows.contains(&name) {
                self.metadata.workflows.push(name);
            } else if kind != "workflow" {
                self.metadata.calls.push(NamedCall { kind, name, at });
            }
        }
    }

    /// What an object says about the workflow, and the objects of this file that are spread in it.
    fn take_all(&mut self, object: &'p ast::ObjectExpression<'a>, depth: usize) {
        for one in &object.properties {
            let property = match one {
                ObjectPropertyKind::ObjectProperty(property) => property,
                ObjectPropertyKind::SpreadProperty(spread) => {
                    // The depth is against constants that are defined by each other.
                    let inner = self.object(&spread.argument).filter(|_| depth < DEEPEST_SPREAD);
                    if let Some(inner) = inner {
                        self.take_all(inner, depth + 1);
                    }
                    continue;
                }
            };
            let Some(name) = property.key.static_name() else { continue };
            if let Some(key) = Metadata::KEYS.iter().find(|key| **key == name) {
                self.take(key, &property.value);
            } else if name == "defaultConfig" {
                self.take_config(&property.value);
            } else if name == "workflows"
                && let Some(names) = self.strings("workflows", &property.value)
            {
                self.metadata.workflows = names;
            }
        }
    }

    fn object(&self, expression: &'p Expression<'a>) -> Option<&'p ast::ObjectExpression<'a>> {
        let expression = expression.get_inner_expression();
        if let Expression::ObjectExpression(object) = expression {
            return Some(object);
        }
        let Expression::Identifier(name) = expression else { return None };
        let Expression::ObjectExpression(object) =
            constant(self.program, name.name.as_str())?.get_inner_expression()
        else {
            return None;
        };
        Some(object)
    }

    fn take(&mut self, key: &'static str, value: &Expression<'_>) {
        match key {
            "name" => self.metadata.name = self.string(key, value),
            "description" => self.metadata.description = self.string(key, value),
            "aliases" => self.metadata.aliases = self.strings(key, value).unwrap_or_default(),
            "version" => self.metadata.version = self.string(key, value),
            "minSDKVersion" => self.metadata.min_sdk_version = self.string(key, value),
            "stateVersion" => self.metadata.state_version = self.whole_number(key, value),
            "argumentHint" => self.metadata.argument_hint = self.string(key, value),
            "sessionsDir" => self.metadata.sessions_dir = self.string(key, value),
            _ => {}
        }
    }

    fn take_config(&mut self, value: &Expression<'_>) {
        let place = self.page.place(value.span());
        self.metadata.places.insert("defaultConfig".to_owned(), place);
        self.metadata.default_config = literal::read(self.program, value).ok();
    }

    fn string(&mut self, key: &str, value: &Expression<'_>) -> Option<String> {
        let read = self.literal(key, value)?;
        if let Value::String(text) = read {
            return Some(text);
        }
        self.wrong_type(key, "a string", &read, value.span());
        None
    }

    fn whole_number(&mut self, key: &str, value: &Expression<'_>) -> Option<u64> {
        let read = self.literal(key, value)?;
        let number = read.as_u64();
        if number.is_none() {
            self.wrong_type(key, "a whole number", &read, value.span());
        }
        number
    }

    fn strings(&mut self, key: &str, value: &Expression<'_>) -> Option<Vec<String>> {
        let read = self.literal(key, value)?;
        let strings = read.as_array().and_then(|list| {
            list.iter().map(|one| one.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        if strings.is_none() {
            self.wrong_type(key, "a list of strings", &read, value.span());
        }
        strings
    }

    fn literal(&mut self, key: &str, value: &Expression<'_>) -> Option<Value> {
        self.metadata.places.insert(key.to_owned(), self.page.place(value.span()));
        match literal::read(self.program, value) {
            Ok(read) => Some(read),
            Err(span) => {
                let message = format!("`{key}` has to be known without running the file");
                let help = "write the value itself: text, numbers, lists and objects of these, or \
                            the name of a `const` of this file that is one";
                self.faults.push(self.page.fault("ATM710", span, message).with_help(help));
                None
            }
        }
    }

    fn wrong_type(&mut self, key: &str, wanted: &str, found: &Value, span: Span) {
        let found = match found {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list of something else",
            Value::Object(_) => "an object",
        };
        let found = if wanted.starts_with("a list") || found != "a list of something else" {
            found
        } else {
            "a list"
        };
        let message = format!("`{key}` has to be {wanted}, and is {found}");
        self.faults.push(self.page.fault("ATM711", span, message));
    }
}

/// The names a file exports, as far as they are written in it.
fn export_names(program: &Program<'_>) -> BTreeSet<String> {
    let (exports, _) = super::exports::read(program);
    exports.names
}

fn default_span(program: &Program<'_>) -> Option<Span> {
    program.body.iter().find_map(|statement| {
        if let Statement::ExportDefaultDeclaration(export) = statement {
            return Some(export.span);
        }
        let specifiers = if let Statement::ExportNamedDeclaration(export) = statement {
            &export.specifiers
        } else if let Statement::ExportFromDeclaration(export) = statement {
            &export.specifiers
        } else {
            return None;
        };
        specifiers.iter().find(|one| one.exported.name() == "default").map(|one| one.span)
    })
}

/// The call of `defineWorkflow` that the default export is made of.
fn find_script<'p, 'a>(program: &'p Program<'a>) -> Option<&'p ast::CallExpression<'a>> {
    let mut expression = exported(program, "default")?.get_inner_expression();
    // Every step goes to an inner expression or to another constant; the count is against
    // constants that are defined by each other.
    for _ in 0..64 {
        expression = if let Expression::Identifier(name) = expression {
            constant(program, name.name.as_str())?
        } else {
            let Expression::CallExpression(call) = expression else { return None };
            let callee = call.callee.get_inner_expression();
            if let Expression::Identifier(name) = callee
                && name.name == "defineWorkflow"
            {
                return Some(call);
            }
            let Expression::StaticMemberExpression(member) = callee else { return None };
            &member.object
        }
        .get_inner_expression();
    }
    None
}
