//! A workflow file: what it says about itself, and what it is when it is run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use atomic_event::Patch;
use atomic_graph::Count;
use atomic_graph::check::{Use, UseKind};
use atomic_typescript::{
    self as typescript, Anchor, Bundle, Form, Metadata, NamedCall, Options, Place, Trouble, Worker,
    locate,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::advance::Scripts;
use super::functions::{self, created, failure};
use super::laid::Laid;
use crate::descriptor::{Document, Extras, Fault, Location, ScriptPart};
use crate::version::unmet;
use crate::{Source, StateShape};

/// A file that has been read, and of which nothing has been run.
#[derive(Debug)]
pub struct Authored {
    bundle: Bundle,
    about: Metadata,
    hash: String,
    /// When it was run before, in milliseconds since 1970.
    run_at: Option<i64>,
    /// The link that led to it.
    link: Option<PathBuf>,
}

/// What a file says about itself, as far as it can be told without running it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Other names.
    pub aliases: Vec<String>,
    /// What to type after its name.
    pub argument_hint: Option<String>,
}

/// What a file says about itself. What is wrong with it is told when it is read.
pub fn about(path: &Path, text: &str) -> About {
    let (about, _) = typescript::metadata(path, text);
    let Metadata { name, description, aliases, argument_hint, .. } = about;
    About { name, description, aliases, argument_hint }
}

/// The SHA-256 of a text, in hexadecimal.
pub fn hash_of(text: &str) -> String {
    super::advance::hex(&Sha256::digest(text))
}

/// A path as a person in this folder would write it.
pub fn shown(path: &Path) -> PathBuf {
    let here = std::env::current_dir().ok();
    let inside = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    inside.unwrap_or_else(|| path.to_owned())
}

impl Authored {
    /// Reads a file and all that it imports, none of it outside of `root`. Nothing is run.
    pub fn read(path: &Path, root: &Path) -> Result<Self, Vec<Fault>> {
        // A link to a file is read as the file.
        let real = path.canonicalize();
        let real = real.as_deref().unwrap_or(path);
        let bundle = Bundle::read(real, root);
        Ok(Self { link: link(path), ..Self::new(bundle, |_| true)? })
    }

    /// The file of a session, as it was when the session began.
    pub fn kept(source: &Source) -> Result<Self, Vec<Fault>> {
        let mut files = source.imports.clone();
        files.insert(source.path.clone(), source.text.clone());
        // A session that has begun as a chat goes on as one.
        let bundle = Bundle::from_files(&source.path, &files);
        let authored = Self::new(bundle, |fault| fault.code != FORGOTTEN)?;
        Ok(Self { run_at: source.run_at, link: source.link.clone(), ..authored })
    }

    /// `counts` says which faults of the file itself keep it from being run.
    fn new(
        bundle: Result<Bundle, Vec<typescript::Fault>>,
        counts: impl Fn(&typescript::Fault) -> bool,
    ) -> Result<Self, Vec<Fault>> {
        let all = |faults: Vec<typescript::Fault>| faults.into_iter().map(fault).collect();
        let bundle = bundle.map_err(all)?;
        let (about, mut faults) = bundle.metadata();
        faults.retain(counts);
        faults.extend(too_new(&about, &bundle));
        if faults.iter().any(|fault| !fault.is_warning) {
            return Err(all(faults));
        }
        let hash = bundle.hash();
        Ok(Self { bundle, about, hash, run_at: None, link: None })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.bundle.entry()
    }

    /// Where it was found: the file, or a link to it.
    pub fn found(&self) -> &Path {
        self.link.as_deref().unwrap_or_else(|| self.path())
    }

    /// The SHA-256 of the file and everything it imports.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// How many files it imports.
    pub fn imports(&self) -> usize {
        self.bundle.files().count().saturating_sub(1)
    }

    /// What it says it is for.
    pub fn description(&self) -> Option<&str> {
        self.about.description.as_deref()
    }

    /// Runs the file: the document it describes, and its functions.
    pub fn run(self) -> Result<Document, Vec<Fault>> {
        let Self { bundle, about, hash, run_at, link } = self;
        let now = run_at.unwrap_or_else(now);
        let seed = hash.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let options =
            Options { seed: seed.unwrap_or_default(), now: Some(now), ..Options::default() };
        let worker = Worker::start(&bundle, &options);
        let loaded = worker
            .load(&about.default_config.clone().unwrap_or(Value::Null))
            .map_err(|trouble| vec![fault(placed(trouble, &bundle, about.form))])?;
        let mut described = loaded.descriptor;
        let chat = described.as_object_mut().and_then(|fields| fields.remove("$chat"));
        if let Some(export) = chat.as_ref().and_then(Value::as_str).filter(|_| run_at.is_none()) {
            if !export.is_empty() || about.form != Form::Chat {
                return Err(vec![without_value(export, &bundle)]);
            }
            if let Some(module) = &loaded.imported_sdk {
                return Err(vec![without_export(module, &bundle)]);
            }
        }
        // A session has begun with what it says: nothing is chosen by it any more.
        let unread = unread(&described, &about, &bundle);
        if run_at.is_none() && !unread.is_empty() {
            return Err(unread);
        }
        let mut extras = take_extras(&mut described, &worker, &about);
        if let Some(script) = &mut extras.script {
            script.names = about.calls.iter().map(|call| named(call, &bundle)).collect();
        }
        let warnings = bundle.warnings().iter().cloned().map(fault).collect();
        let source = Source { link, ..source(&bundle, now) };
        let laid = Laid::out(&described, bundle.entry(), about.form);
        let (json, locate) = laid.locator(bundle);
        let functions = functions::table(worker);
        Ok(Document {
            json: Some(json.into()),
            locate: Some(locate),
            extras,
            warnings,
            ..Document::with_functions(source, functions)
        })
    }
}

/// Where a link lies, if the file is one.
fn link(path: &Path) -> Option<PathBuf> {
    path.symlink_metadata().ok().filter(std::fs::Metadata::is_symlink)?;
    let path = std::path::absolute(path).ok()?;
    let folder = path.parent()?.canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}

/// The time, in milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// What a session keeps of a file.
fn source(bundle: &Bundle, now: i64) -> Source {
    let text = bundle.text(bundle.entry()).unwrap_or_default();
    let files = bundle.files().filter(|(path, _)| *path != bundle.entry());
    let imports: BTreeMap<PathBuf, String> =
        files.map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
    Source { imports, run_at: Some(now), ..Source::new(bundle.entry(), text) }
}

/// Takes what is not the graph's out of a description.
fn take_extras(described: &mut Value, worker: &Worker, about: &Metadata) -> Extras {
    let mut take = |key: &str| described.as_object_mut().and_then(|fields| fields.remove(key));
    let function = |value: Option<Value>| {
        let id = value.as_ref()?.get("$fn")?.as_u64()?;
        u32::try_from(id).ok()
    };
    let create = function(take("$createState"));
    let migrate = function(take("$migrateState"));
    let script = function(take("$script"));
    let (workflows, max_calls) = (take("$workflows"), take("$maxCalls"));
    let named = workflows.as_ref().and_then(Value::as_array).into_iter().flatten();
    let named = named.filter_map(Value::as_str).map(str::to_owned);
    let mut workflows: Vec<String> = named.chain(about.workflows.iter().cloned()).collect();
    workflows.sort();
    workflows.dedup();
    Extras {
        create: create.map(|id| {
            let worker = worker.clone();
            let make: Arc<crate::descriptor::CreateFn> =
                Arc::new(move |launch, defaults: &Patch| created(&worker, id, launch, defaults));
            make
        }),
        state_shape: StateShape {
            version: about.state_version.unwrap_or_default(),
            migrate: migrate.map(|id| {
                let worker = worker.clone();
                let migrate: Arc<crate::MigrateFn> = Arc::new(move |old, from| {
                    let args =
                        [old, from.into()].map(|value| typescript::Arg::Value(Arc::new(value)));
                    worker.call(id, args.into()).map_err(failure)
                });
                migrate
            }),
        },
        script: script.map(|id| ScriptPart {
            advance: Arc::new(Scripts::new(worker.clone(), id, workflows.clone())),
            workflows,
            max_calls: max_calls.and_then(|number| number.as_u64()).map(Count::Fixed),
            names: vec![],
        }),
    }
}

/// What a script calls by its name, and where.
fn named(call: &NamedCall, bundle: &Bundle) -> (Use, Location) {
    let kind = match call.kind {
        "skill" => UseKind::Skill,
        "command" => UseKind::Command,
        _ => UseKind::Agent,
    };
    let Place { file, line, column } = &call.at;
    let length = u32::try_from(call.name.chars().count() + 2).unwrap_or(1);
    let frame = bundle.frame(file, *line, *column, length);
    let frame = Some(frame).filter(|frame| !frame.is_empty());
    let at = Location { file: shown(file), line: *line, column: *column, frame };
    (Use::new(kind, call.name.as_str()), at)
}

/// A file that asks for a version of this program that does not exist yet.
fn too_new(about: &Metadata, bundle: &Bundle) -> Option<typescript::Fault> {
    let unmet = unmet(about.min_sdk_version.as_deref()?)?;
    let place = about.places.get("minSDKVersion")?;
    let frame = bundle.frame(&place.file, place.line, place.column, 1);
    Some(typescript::Fault {
        code: "ATM712".into(),
        at: place.clone(),
        message: unmet.message,
        help: Some(unmet.help),
        frame,
        is_warning: false,
    })
}

/// What a file says about itself only when it is run: it was listed, chosen and let through by
/// what could be read.
fn unread(described: &Value, about: &Metadata, bundle: &Bundle) -> Vec<Fault> {
    let said = |key: &&str| {
        let said = described.get(*key).unwrap_or(&Value::Null);
        let is_nothing = said.is_null() || said.as_array().is_some_and(Vec::is_empty);
        !is_nothing && *said != about.value(key)
    };
    let entry = bundle.entry();
    let fault_of = |key: &str| {
        let said = described.get(key).unwrap_or(&Value::Null);
        let message = format!(
            "`{key}` has to be known without running the file, and only when it is run it is {said}"
        );
        let help = "write the value itself into this file: a default export that is an object, \
                    or `export const`";
        at_export(key, bundle, Fault::of_file(&shown(entry), "ATM710", message, help))
    };
    Metadata::KEYS.into_iter().filter(said).map(fault_of).collect()
}

/// A workflow that is exported and has no value when the file is run, which must not become a chat.
fn without_value(export: &str, bundle: &Bundle) -> Fault {
    let name = if export == "default" { "the default export" } else { "`graphConfig`" };
    let message =
        format!("{name} has no nodes when the file is run, so the file exports no workflow");
    let help = "export a graph: `export const graphConfig = { startNode, nodes, edges }`; for a \
                chat remove the export";
    let fault = Fault::of_file(&shown(bundle.entry()), FORGOTTEN, message, help);
    at_export(export, bundle, fault)
}

/// A chat that imports the SDK by a name that is known only when the file is run.
fn without_export(module: &str, bundle: &Bundle) -> Fault {
    let message = format!("the file imports \"{module}\" when it is run, but exports no workflow");
    let help = "add `export const graphConfig = …` or `export default …`; a file that is only a \
                chat imports nothing but types from the SDK";
    let fault = Fault::of_file(&shown(bundle.entry()), FORGOTTEN, message, help);
    let is_computed = |warning: &&typescript::Fault| warning.code == "ATM719";
    match bundle.warnings().iter().find(is_computed) {
        Some(warning) if warning.at.file == bundle.entry() => {
            Fault { line: warning.at.line, column: warning.at.column, ..fault }
        }
        _ => fault,
    }
}

/// Moves a fault to where something is exported.
fn at_export(export: &str, bundle: &Bundle, fault: Fault) -> Fault {
    let entry = bundle.entry();
    let text = bundle.text(entry).unwrap_or_default();
    match locate(entry, text, &Anchor::Export(export.to_owned()), &[]) {
        Some(found) => Fault { line: found.line, column: found.column, ..fault },
        None => fault,
    }
}

/// What went wrong while a file was loaded. What no line of it has thrown is told where the
/// workflow is exported.
fn placed(trouble: Trouble, bundle: &Bundle, form: Form) -> typescript::Fault {
    let (entry, is_placed) = (bundle.entry(), trouble.at().is_some());
    let path = trouble.about.path.clone();
    let mut fault = trouble.into_fault(entry);
    let export = if form == Form::Graph { "graphConfig" } else { "default" };
    let text = bundle.text(entry).unwrap_or_default();
    let anchor = Anchor::Export(export.to_owned());
    if let Some(found) = locate(entry, text, &anchor, &path).filter(|_| !is_placed) {
        (fault.at.line, fault.at.column) = (found.line, found.column);
        let length = found.end.saturating_sub(found.start);
        fault.frame = bundle.frame(entry, found.line, found.column, length);
    }
    fault
}

/// What can be wrong with a file, see `docs/workflows.md`.
const CODES: [&str; 20] = [
    "ATM701", "ATM702", "ATM703", "ATM704", "ATM705", "ATM706", "ATM707", "ATM708", "ATM709",
    "ATM710", "ATM711", "ATM712", "ATM713", "ATM714", "ATM715", "ATM716", "ATM717", "ATM718",
    "ATM719", FORGOTTEN,
];

/// A file that uses the SDK and exports no workflow.
const FORGOTTEN: &str = "ATM722";

/// What is wrong with a file, in the words of documents.
fn fault(fault: typescript::Fault) -> Fault {
    let typescript::Fault { code, at, message, help, frame, is_warning } = fault;
    // The SDK gives its errors codes of their own, and a file could give them any.
    let code = CODES.iter().find(|known| **known == code).copied().unwrap_or("ATM713");
    Fault {
        code,
        is_error: !is_warning,
        file: shown(&at.file),
        line: at.line,
        column: at.column,
        path: String::new(),
        message,
        remedy: help.unwrap_or_default(),
        frame: Some(frame).filter(|frame| !frame.is_empty()),
    }
}
