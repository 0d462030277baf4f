//! For tests: a script that is played under the name of another backend, so that a run can have two.
//! `ATOMIC_TEST_STAND_IN` is `<backend>=<file>`.

use std::path::Path;
use std::sync::Arc;

use atomic_backend::guard::Guard;
use atomic_backend::script::{Script, ScriptBackend};
use atomic_backend::{Backend, BackendError, BoxFuture, Conversation, OpenRequest};
use atomic_event::BackendId;

use crate::failure::Failure;

/// The backend of this name, if one stands in for it.
pub(crate) fn find(name: &str, guard: &Guard) -> Option<Result<Arc<dyn Backend>, Failure>> {
    let given = std::env::var("ATOMIC_TEST_STAND_IN").ok()?;
    let (_, file) = given.split_once('=').filter(|(backend, _)| *backend == name)?;
    let id = BackendId::from(name);
    let made = Script::load(Path::new(file)).map(|script| {
        let script = ScriptBackend::new(script, guard.clone());
        Arc::new(StandIn { id, script }) as Arc<dyn Backend>
    });
    Some(made.map_err(Failure::from))
}

struct StandIn {
    id: BackendId,
    script: ScriptBackend,
}

impl Backend for StandIn {
    fn id(&self) -> BackendId {
        self.id.clone()
    }

    fn reports_cost(&self) -> bool {
        self.script.reports_cost()
    }

    fn knows_price(&self, model: Option<&str>) -> bool {
        self.script.knows_price(model)
    }

    fn remembers(&self) -> bool {
        self.script.remembers()
    }

    fn open(
        &self,
        request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        self.script.open(request)
    }
}
