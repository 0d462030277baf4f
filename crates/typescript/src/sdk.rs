//! The modules that a workflow can import without having them: `sdk/*.ts`, compiled in.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};

use rquickjs::loader::bundle::{HasByteCode, ScaBundleData};
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Context, Ctx, Error, Module as JsModule, Runtime};

use crate::fault::Fault;
use crate::tree::deep;
use crate::tree::transpile::{Module, transpile};

/// A module of the SDK.
pub(crate) struct Sdk {
    module: LazyLock<Result<Module, Vec<Fault>>>,
    /// What the engine has made of it.
    compiled: OnceLock<Vec<u8>>,
    exports: OnceLock<BTreeSet<String>>,
}

impl Sdk {
    /// What is run. It is made when it is first needed.
    ///
    /// # Errors
    /// The SDK is broken, which the tests make sure of that it is not.
    pub(crate) fn module(&self) -> Result<&Module, &[Fault]> {
        self.module.as_ref().map_err(Vec::as_slice)
    }
}

macro_rules! modules {
    ($($name:literal: $file:literal,)*) => {
        &[$(($name, {
            static MODULE: Sdk = Sdk {
                module: LazyLock::new(|| strip($name, include_str!(concat!("../sdk/", $file)))),
                compiled: OnceLock::new(),
                exports: OnceLock::new(),
            };
            &MODULE
        }),)*]
    };
}

/// All of them, by what the engine calls them. [`prepare`] comes before they are loaded from here.
pub(crate) static MODULES: ScaBundleData<&'static Sdk> = modules![
    "atomic:boot": "boot.ts",
    "atomic:natives": "natives.ts",
    "atomic:graph": "graph.ts",
    "atomic:describe": "describe.ts",
    "atomic:script": "script.ts",
    "atomic:host": "host.ts",
    "atomic:types": "types.ts",
];

/// What begins the name of a module of ours, and of no file.
pub(crate) const PREFIX: &str = "atomic:";

/// The names under which files import them.
const NAMES: &[(&str, &str)] = &[
    ("@atomic/graph", "atomic:graph"),
    ("@atomic/workflows", "atomic:graph"),
    ("atomic/workflows", "atomic:graph"),
    ("atomic/workflows/graph", "atomic:graph"),
    ("atomic/types", "atomic:types"),
    ("atomic/host", "atomic:host"),
];

fn strip(name: &str, text: &str) -> Result<Module, Vec<Fault>> {
    let file = PathBuf::from(format!("{name}.ts"));
    deep::run(&file, || transpile(&file, text))?
}

/// The engine takes what it has written itself, in this process, and nothing else: no file and no
/// other version of it has a say in this.
impl HasByteCode<'static> for &'static Sdk {
    fn get_bytecode(&self) -> &'static [u8] {
        self.compiled.get().map_or(&[], Vec::as_slice)
    }
}

/// Makes what is not made yet, so that no file is blamed for the time that takes.
///
/// An engine that is thrown away compiles all modules. To compile them in every engine would take
/// longer than everything else that happens before a file is run.
///
/// # Errors
/// The SDK is broken, which the tests make sure of that it is not.
pub(crate) fn prepare() -> Result<(), &'static str> {
    static PREPARED: LazyLock<Result<(), String>> =
        LazyLock::new(|| compile().map_err(|error| error.to_string()));
    PREPARED.as_ref().copied().map_err(String::as_str)
}

fn compile() -> rquickjs::Result<()> {
    let runtime = Runtime::new()?;
    runtime.set_loader(Inside, Inside);
    Context::full(&runtime)?.with(|ctx| {
        let mut loader = Inside;
        for (name, module) in MODULES {
            // With others that import it, or that it imports.
            if module.compiled.get().is_none() {
                loader.load(&ctx, name, None)?;
            }
        }
        Ok(())
    })
}

/// Gives modules of ours to each other.
struct Inside;

impl Resolver for Inside {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        let found = imported_inside(name).ok_or_else(|| Error::new_resolving(base, name))?;
        Ok(found.to_owned())
    }
}

impl Loader for Inside {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<JsModule<'js, Declared>> {
        let own = module(name).ok_or_else(|| Error::new_loading(name))?;
        let stripped = own.module().map_err(|faults| {
            let first = faults.first().map_or_else(String::new, ToString::to_string);
            Error::new_loading_message(name, first)
        })?;
        let made = JsModule::declare(ctx.clone(), name, stripped.code.as_str())?;
        // Nobody is told of places in the SDK, or looks at the code of its functions; every engine
        // would have to keep both.
        let options =
            WriteOptions { strip_source: true, strip_debug: true, ..WriteOptions::default() };
        let _ = own.compiled.set(made.write(options)?);
        Ok(made)
    }
}

/// The module of this name.
pub(crate) fn module(name: &str) -> Option<&'static Sdk> {
    MODULES.iter().find(|(own, _)| *own == name).map(|(_, module)| *module)
}

/// The module that a file means.
pub(crate) fn imported_as(specifier: &str) -> Option<&'static str> {
    NAMES.iter().find(|(name, _)| *name == specifier).map(|(_, module)| *module)
}

/// The names that files may import.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name)
}

/// The module that one of our own means: `./graph.ts`, `./graph` or `atomic:graph`.
pub(crate) fn imported_inside(specifier: &str) -> Option<&'static str> {
    let name = specifier.strip_prefix(PREFIX).or_else(|| specifier.strip_prefix("./"))?;
    let stem = Path::new(name).file_stem()?.to_str()?;
    MODULES.iter().map(|(name, _)| *name).find(|name| name.strip_prefix(PREFIX) == Some(stem))
}

/// The names that a module of ours exports, those it passes on included.
pub(crate) fn exports(name: &str) -> Option<&'static BTreeSet<String>> {
    Some(module(name)?.exports.get_or_init(|| find_exports(name)))
}

fn find_exports(name: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    let mut seen = Vec::new();
    while let Some(name) = open.pop() {
        if seen.contains(&name) {
            continue;
        }
        if let Some(Ok(module)) = module(&name).map(Sdk::module) {
            names.extend(module.exports.names.iter().cloned());
            let stars = module.exports.stars.iter().filter_map(|star| imported_inside(star));
            open.extend(stars.map(str::to_owned));
        }
        seen.push(name);
    }
    names
}
