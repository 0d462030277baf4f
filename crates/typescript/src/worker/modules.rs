//! Gives the engine the modules it asks for: those of the bundle, and those of the SDK.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use rquickjs::loader::bundle::Bundle as Compiled;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Module, Result};

use crate::bundle::Bundle;
use crate::resolve::Target;
use crate::sdk;

/// The first module of the SDK that a file has imported, as it was named there.
pub(super) type SdkImport = Rc<RefCell<Option<String>>>;

/// Knows what imports mean. Nothing is looked for on the disk.
pub(super) struct Names(pub(super) Bundle, pub(super) SdkImport);

impl Resolver for Names {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        // Only a module of ours, or Rust, sees the others.
        if (base.is_empty() || sdk::module(base).is_some())
            && let Some(module) = sdk::imported_inside(name)
        {
            return Ok(module.to_owned());
        }
        if base.is_empty() && self.0.source(Path::new(name)).is_some() {
            return Ok(name.to_owned());
        }
        match self.0.target(Path::new(base), name) {
            Ok(Target::Sdk(module)) => {
                self.1.borrow_mut().get_or_insert_with(|| name.to_owned());
                Ok(module.to_owned())
            }
            Ok(Target::File(path)) => Ok(path.to_string_lossy().into_owned()),
            Err(why) => Err(Error::new_resolving_message(base, name, why)),
        }
    }
}

/// Has their code.
pub(super) struct Codes(pub(super) Bundle);

impl Loader for Codes {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let broken = |why: String| Error::new_loading_message(name, why);
        if sdk::module(name).is_some() {
            return Compiled(sdk::MODULES).load(ctx, name, None);
        }
        let source = self.0.source(Path::new(name));
        let source = source.ok_or_else(|| broken("it is not part of the workflow".to_owned()))?;
        if let Some(module) = &source.module {
            return Module::declare(ctx.clone(), name, module.code.as_str());
        }
        // As a text that is parsed: `{"__proto__": …}` is only a key in JSON.
        let text = serde_json::to_string(&source.text).map_err(|e| broken(e.to_string()))?;
        Module::declare(ctx.clone(), name, format!("export default JSON.parse({text});"))
    }
}
