//! Asking a backend about itself, in the folder one is in.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atomic_backend::{Backend, BackendError, Place};
use atomic_runner::{Inherit, Settings};

use super::demo;
use crate::catalog::{self, Catalog};
use crate::failure::Failure;
use crate::settings::{self, PlaceArgs};
use crate::stage;

/// The longest that a program may take to answer, with everything it starts for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A backend, and the place in which it is asked.
pub(super) struct Here {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) settings: Settings,
    workspace: PathBuf,
}

impl Here {
    /// The backend that would be used here, with what it would take over.
    pub(super) fn with(args: &PlaceArgs) -> Result<Self, Failure> {
        let workspace = catalog::here()?;
        let catalog = Catalog::open(&workspace, args.into());
        let given = catalog.values()?;
        // What the user types is not part of a workflow, and gets what the user has.
        let mut wanted = Settings { inherit: Inherit::All, ..Settings::default() };
        settings::apply(&given, &mut wanted, false);
        wanted.program.trusted = catalog.is_trusted();
        // Nothing is played, so any script will do.
        wanted.script.get_or_insert_with(|| PathBuf::from(demo::EMBEDDED));
        let guard = stage::guard(&wanted, &workspace);
        let backend = stage::backend(settings::backend(&given), &wanted, &workspace, &guard)?;
        Ok(Self { backend, settings: wanted, workspace })
    }

    /// Asks the backend, and waits for its answer.
    pub(super) fn ask<T, A>(
        &self,
        question: impl FnOnce(Arc<dyn Backend>, Place) -> A,
    ) -> Result<T, Failure>
    where
        A: Future<Output = Result<T, BackendError>>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::Failed(format!("the program could not start: {error}")))?;
        let (workspace, inherit) = (self.workspace.clone(), self.settings.inherited());
        let answer = question(Arc::clone(&self.backend), Place { workspace, inherit });
        let answered = runtime.block_on(async { tokio::time::timeout(PATIENCE, answer).await });
        let late = |_| {
            let (name, limit) = (self.backend.id(), PATIENCE.as_secs());
            Failure::Failed(format!("{name} did not answer within {limit} s; try again later"))
        };
        Ok(answered.map_err(late)??)
    }
}
