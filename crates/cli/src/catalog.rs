//! Everything that can be named in a project: its workflows, commands, skills and agents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use atomic_graph::check::{Known, nearest};
use atomic_registry::settings::Values;
use atomic_registry::{
    Entity, Folders, Kind, Model, Names, OpenCodeEnvironment, Provider, Registry, Severity,
    instead_of,
};
use atomic_runner::Settings;
use atomic_workflow::Workflow;
use atomic_workflow::descriptor::{self, Fault, Library as _};

use crate::failure::Failure;
use crate::gate::{Gate, UNTRUSTED};
use crate::load::{Loaded, faulty, judge, judge_ready};
use crate::shelf::{Shelf, built_in, is_code, is_workflow, text_of, unreadable};
use crate::trust::{Asking, ProjectTrust};
use crate::{home, paint, roles, trust};

/// A project as every command sees it: whether it is trusted, its settings, and everything that
/// can be named in it.
pub(crate) struct Catalog {
    pub(crate) project: PathBuf,
    pub(crate) registry: Arc<Registry>,
    pub(crate) shelf: Shelf,
    /// The flags that were given.
    flags: Values,
    /// What names a workflow may use, once a command asked.
    known: OnceLock<Known>,
}

impl Catalog {
    /// Opens the project in the current folder, with the flags that were given.
    pub(crate) fn here(flags: Values) -> Result<Self, Failure> {
        Ok(Self::open(&here()?, flags))
    }

    /// Opens a project, with the flags that were given. Asks nobody whether it is trusted:
    /// commands that act do so with [`Self::settle_trust`].
    pub(crate) fn open(project: &Path, flags: Values) -> Self {
        let registry = read_registry(project, false);
        let files = crate::settings::files(project);
        let definitions = trust::definitions_of(project, &registry, &files);
        let users = flags.clone().over(crate::settings::users_own(&files));
        let trust = ProjectTrust::of(project, definitions, &users);
        let mut catalog = Self {
            project: project.to_owned(),
            registry: Arc::new(registry),
            shelf: Shelf::default(),
            flags,
            known: OnceLock::new(),
        };
        catalog.follow(trust);
        catalog
    }

    /// Makes everything in the project follow a decision about it.
    pub(crate) fn follow(&mut self, trust: ProjectTrust) {
        let is_trusted = trust.is_trusted();
        if is_trusted != self.registry.is_trusted() {
            self.registry = Arc::new(read_registry(&self.project, is_trusted));
        }
        let gate = std::mem::take(&mut self.shelf.gate);
        self.shelf = Shelf::of(&self.project, is_trusted);
        self.shelf.gate = Gate { trust: Some(trust), ..gate };
    }

    /// Settles whether the project is trusted, before a command acts in it.
    pub(crate) fn settle_trust(&mut self, asking: Asking) -> Result<(), Failure> {
        let Some(mut trust) = self.shelf.gate.trust.take() else { return Ok(()) };
        let settled = trust.settle(asking);
        self.follow(trust);
        settled
    }

    /// The trust in the project.
    pub(crate) fn trust(&self) -> Option<&ProjectTrust> {
        self.shelf.gate.trust.as_ref()
    }

    /// Whether what the project defines is used.
    pub(crate) fn is_trusted(&self) -> bool {
        self.trust().is_some_and(ProjectTrust::is_trusted)
    }

    /// The settings that hold in the project, from all layers.
    pub(crate) fn values(&self) -> Result<Values, Failure> {
        let below = crate::settings::below_flags(&self.project, self.is_trusted())?;
        Ok(self.flags.clone().over(below))
    }

    /// All names, and what each of them means.
    pub(crate) fn names(&self) -> Names {
        Names::new(self.shelf.named(), &self.registry)
    }

    /// A path as short as a person would write it here.
    pub(crate) fn shown(&self, path: &Path) -> String {
        if let Ok(inside) = path.strip_prefix(&self.project) {
            return inside.display().to_string();
        }
        let at_home =
            home::user().and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned));
        at_home.map_or_else(|| path.display().to_string(), |rest| format!("~/{}", rest.display()))
    }

    /// What a person should hear before anything starts: what was read, when they want to know,
    /// and that something could not be read, always.
    pub(crate) fn introduce(&self, verbose: bool) {
        if verbose {
            count(&self.registry);
        }
        let left_out = self.registry.findings.iter().filter(|f| f.severity == Severity::Skipped);
        let left_out = left_out.map(|finding| finding.path.as_path());
        let left_out: BTreeSet<&Path> =
            left_out.chain(self.shelf.unreadable.iter().map(|(path, _)| path.as_path())).collect();
        match left_out.len() {
            0 => {}
            1 => paint::aside("1 file is left out; atomic doctor says why"),
            count => paint::aside(&format!("{count} files are left out; atomic doctor says why")),
        }
        self.tell_denied();
    }

    /// Reports definitions with unknown tools, or with restrictions that cannot be understood or
    /// applied: more tools are denied to them than their authors may expect.
    fn tell_denied(&self) {
        let is_denied = |entity: &&Entity| entity.tools.unclear || !entity.tools.unknown.is_empty();
        let names: Vec<&str> =
            self.registry.all().filter(is_denied).map(|entity| entity.name.as_str()).collect();
        let some = match names.as_slice() {
            [] => return,
            [one] => (*one).to_owned(),
            [first, .., last] if names.len() == 2 => format!("{first} and {last}"),
            [first, ..] => format!("{first} and {} others", names.len() - 1),
        };
        let text = format!(
            "some tools of {some} are denied: a tool is unknown, or a restriction cannot be applied; \
             run: atomic doctor"
        );
        paint::aside(&paint::printable(&text));
    }

    /// Says what takes the place of something built in when this workflow is run, and what does
    /// not although it has the name for it. An agent that the user has chosen for a role has to be
    /// there.
    pub(crate) fn tell_replacements(
        &self,
        workflow: &Workflow,
        settings: &Settings,
    ) -> Result<(), Failure> {
        let name = workflow.name.as_str();
        if let Some(path) = self.shelf.file(name).filter(|_| built_in(name).is_some())
            && workflow.source.is_some()
        {
            let text = format!("{name}: {} replaces the built-in workflow", self.shown(path));
            paint::aside(&paint::printable(&text));
        }
        for (role, used) in roles::agents(self, &workflow.graph, settings)? {
            if let Some(path) = used.origin.path.as_deref() {
                let text = format!("{role}: {} has this role", self.shown(path));
                paint::aside(&paint::printable(&text));
            }
            for entity in self.registry.unused_for_role(&role) {
                let Some(path) = entity.origin.path.as_deref() else { continue };
                let text = format!(
                    "{role}: {} is not used for this role, only files in .atomic/agents are",
                    self.shown(path)
                );
                paint::aside(&paint::printable(&text));
            }
        }
        Ok(())
    }

    /// Loads the workflow that is meant: a file, or a name.
    pub(crate) fn load(&self, text: &str) -> Result<Loaded, Failure> {
        // As it is typed in the chat, or as `doctor` says it can be.
        let bare = text.strip_prefix('/').filter(|rest| !rest.contains('/')).unwrap_or(text);
        let bare = bare.strip_prefix("workflow:").unwrap_or(bare);
        let name = self.shelf.meant(bare);
        let text = if text != bare && self.shelf.is_name(name) { name } else { text };
        let path = Path::new(text);
        let is_file = text.contains('/') || is_workflow(path);
        match self.shelf.file(name).filter(|_| !is_file) {
            _ if is_file => self.read(path),
            // A name first: a file that happens to be called `ralph` is not in its way.
            Some(path) => self.read(path),
            None => match built_in(name) {
                Some(workflow) => Ok(judge_ready(workflow, self.known())),
                None if path.is_file() => self.read(path),
                None => Err(Failure::Usage(self.not_found(text))),
            },
        }
    }

    /// The workflow that is meant, when it is sound.
    pub(crate) fn workflow(&self, text: &str) -> Result<Workflow, Failure> {
        let loaded = self.load(text)?;
        loaded.sound()
    }

    /// Refuses a workflow whose documents nobody has trusted.
    pub(crate) fn admit_documents(&self, workflow: &Workflow) -> Result<(), Failure> {
        let told = |faults: Vec<Fault>| {
            faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        self.shelf.gate.admit_documents(workflow).map_err(|faults| Failure::Failed(told(faults)))
    }

    /// Loads the workflow in a file.
    pub(crate) fn read(&self, path: &Path) -> Result<Loaded, Failure> {
        text_of(path).map_err(|error| {
            // Code has codes for what is wrong with it, also where that is not in its text.
            let is_there = path.symlink_metadata().is_ok();
            Failure::Failed(match is_code(path) && is_there {
                true => unreadable(path, &error).to_string(),
                false => format!("{}: the workflow cannot be read: {error}", path.display()),
            })
        })?;
        let document = match self.shelf.open(path) {
            Ok(document) => document,
            Err(faults) => return Ok(faulty(&faults)),
        };
        Ok(judge(descriptor::read(&document, &self.shelf), self.known()))
    }

    /// Returns the errors and warnings of a workflow file that are known without running code; the gate
    /// must be set to [`crate::gate::UntrustedCode::NeverRun`].
    pub(crate) fn problems_in(&self, path: &Path) -> (Vec<String>, Vec<String>) {
        match self.read(path) {
            Ok(Loaded { mut errors, warnings, .. }) => {
                // Another workflow in it may be code.
                errors.retain(|text| !text.contains(UNTRUSTED));
                (errors, warnings)
            }
            Err(failure) => (vec![failure.to_string()], vec![]),
        }
    }

    fn not_found(&self, text: &str) -> String {
        let names = self.shelf.names();
        let near = nearest(text, names.iter().map(String::as_str));
        let near = near.map_or_else(String::new, |near| format!(" (did you mean \"{near}\"?)"));
        let mut lines = vec![format!("Workflow not found: {text}{near}")];
        if let Some(instead) = instead_of(text) {
            lines.push(instead.to_owned());
        } else if let Some(named) = self.names().find(text) {
            lines.push(format!(
                "There is a {} of that name, which is no workflow",
                named.class.word()
            ));
        }
        lines.push(format!("There are: {}", names.join(", ")));
        lines.join("\n")
    }

    /// What names a workflow may use.
    fn known(&self) -> &Known {
        let of = |kind: Kind| -> Option<BTreeSet<String>> {
            Some(self.registry.names(kind).map(str::to_owned).collect())
        };
        self.known.get_or_init(|| Known {
            agents: of(Kind::Agent),
            skills: of(Kind::Skill),
            commands: of(Kind::Command),
            models: Some(judge_model),
            ..Known::default()
        })
    }
}

fn read_registry(project: &Path, trusted: bool) -> Registry {
    let (home, own) = (home::user(), home::folder());
    let opencode = OpenCodeEnvironment::read(|name| std::env::var_os(name));
    Registry::read(&Folders { project: project.to_owned(), home, own, opencode, trusted })
}

/// Says of a model that looks like nobody's what was probably meant.
fn judge_model(name: &str) -> Result<(), Option<String>> {
    match Model::read(name).filter(|model| !model.looks_known()) {
        Some(model) => Err(model.near()),
        None => Ok(()),
    }
}

/// Says how much there is of each provider, as in `claude: 5 skills, 7 agents, 2 commands`.
pub(crate) fn count(registry: &Registry) {
    for provider in Provider::ALL.map(Some).into_iter().chain([None]) {
        let some = [Kind::Skill, Kind::Agent, Kind::Command].into_iter().filter_map(|kind| {
            let count = registry.count(provider, kind);
            let plural = if count == 1 { "" } else { "s" };
            (count > 0).then(|| format!("{count} {}{plural}", kind.word()))
        });
        let some: Vec<String> = some.collect();
        let some = if some.is_empty() { "nothing".to_owned() } else { some.join(", ") };
        paint::aside(&format!("{}: {some}", provider.map_or("built-in", Provider::name)));
    }
}

/// The current folder.
pub(crate) fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::Failed(format!("the current folder cannot be used: {error}")))
}
