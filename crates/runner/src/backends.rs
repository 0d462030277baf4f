//! Who does the work: the run's own backend, and those that nodes name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atomic_backend::{Backend, guard};
use atomic_event::BackendId;
use atomic_graph::Graph;
use atomic_workflow::launchers;

use crate::run::RunError;
use crate::settings::Settings;
use crate::stage::Stage;

/// Makes a backend; the error says, for the user, why it cannot be used here.
pub type MakeBackend = dyn Fn(&BackendId) -> Result<Arc<dyn Backend>, String> + Send + Sync;

/// The backends besides the run's own. Each is made when it is first asked for, and kept.
#[derive(Clone)]
pub struct OtherBackends {
    make: Arc<MakeBackend>,
    made: Arc<Mutex<BTreeMap<BackendId, Arc<dyn Backend>>>>,
}

impl OtherBackends {
    /// Those that `make` makes.
    pub fn made_by(
        make: impl Fn(&BackendId) -> Result<Arc<dyn Backend>, String> + Send + Sync + 'static,
    ) -> Self {
        Self { make: Arc::new(make), made: Arc::default() }
    }

    fn find(&self, id: &BackendId) -> Result<Arc<dyn Backend>, String> {
        if let Some(known) = self.made().get(id) {
            return Ok(Arc::clone(known));
        }
        let backend = (self.make)(id)?;
        Ok(Arc::clone(self.made().entry(id.clone()).or_insert(backend)))
    }

    fn made(&self) -> MutexGuard<'_, BTreeMap<BackendId, Arc<dyn Backend>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// No other backends.
impl Default for OtherBackends {
    fn default() -> Self {
        Self::made_by(|id| Err(format!("there is no backend `{id}` here")))
    }
}

impl fmt::Debug for OtherBackends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.made().keys()).finish()
    }
}

impl Stage {
    /// The backend of this name, or the run's own.
    pub(crate) fn backend(&self, named: Option<&BackendId>) -> Result<Arc<dyn Backend>, String> {
        match named {
            Some(id) if *id != self.backend.id() => self.others.find(id),
            Some(_) | None => Ok(Arc::clone(&self.backend)),
        }
    }

    /// Uses this backend from now on instead of the one with the same name.
    pub(crate) fn replace(&mut self, backend: &Arc<dyn Backend>) {
        if backend.id() == self.backend.id() {
            self.backend = Arc::clone(backend);
        } else {
            self.others.made().insert(backend.id(), Arc::clone(backend));
        }
    }

    /// Ends every program that rests, of whichever backend, and what killed guards have left: nobody
    /// may have waited for such a guard.
    pub(crate) async fn end_resting(&self) {
        self.backend.end_resting().await;
        let others: Vec<_> = self.others.made().values().cloned().collect();
        for other in others {
            other.end_resting().await;
        }
        // The program names what cannot be ended when it ends.
        let _ = tokio::task::spawn_blocking(guard::end_orphans).await;
    }
}

/// Says what cannot be used, before anything is spent: every backend that a node names is made now.
/// A limit on cost holds only where every price is known.
pub(crate) fn refuse_unusable(
    stage: &Stage,
    graph: &Graph,
    model: Option<&str>,
    settings: &Settings,
) -> Result<(), RunError> {
    let mut problems = BTreeMap::new();
    for launcher in launchers(graph) {
        let named = launcher.backend.as_ref();
        let id = named.cloned().unwrap_or_else(|| stage.backend.id());
        let runs_here = match named {
            Some(_) => format!("the node `{launcher}` runs on {id}, but "),
            None => String::new(),
        };
        match stage.backend(named) {
            Err(why) => {
                problems.entry(id).or_insert(format!("{runs_here}{why}"));
            }
            Ok(backend) if settings.budget.limits_money() => {
                // The run's model is one of the run's own backend.
                let runs = model.filter(|_| id == stage.backend.id());
                let model = launcher.model.as_deref().or(runs);
                if !backend.knows_price(model) {
                    problems.entry(id.clone()).or_insert(unpriced(&runs_here, &id, model));
                }
            }
            Ok(_) => {}
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(RunError::Refused(problems.into_values().collect::<Vec<_>>().join("\n")))
}

/// A limit on cost is wanted, and neither the program nor the price table has a price.
fn unpriced(runs_here: &str, id: &BackendId, model: Option<&str>) -> String {
    match model {
        Some(model) => format!(
            "{runs_here}no price is known for the model `{model}` on {id}, so a limit on cost \
             cannot hold; choose a model with a known price, or use --max-tokens or --timeout"
        ),
        None => format!(
            "{runs_here}{id} does not report what its turns cost, so a limit on cost cannot hold; \
             name a model with a known price (--model), or use --max-tokens or --timeout"
        ),
    }
}
