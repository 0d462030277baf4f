//! The real GitHub Copilot, its home, a scripted model and a workspace, for one test.

use std::time::Duration;

use atomic_backend::Backend as _;
use atomic_backend::copilot::CopilotBackend;
use atomic_testing::agents::{COPILOT, CopilotHome, program};
use atomic_testing::conformance::backend::in_time;
use atomic_testing::model::{ModelServer, Reply, Script, Turn};

use super::copilot::{WINDOW, backend};
use super::serving_stand;
use super::stand::until;

/// One user, whose conversations share a program.
pub(super) type Stand = serving_stand::Stand<CopilotBackend, CopilotHome>;

impl Stand {
    /// What the script has no turn for is answered by `Yes.`.
    pub(super) fn new(script: Script) -> Self {
        Self::with(script, WINDOW)
    }

    /// Where the program may try again by itself for another time than usual.
    pub(super) fn with(script: Script, window: Duration) -> Self {
        let script = script.with(Turn::default().reply(Reply::say("Yes.")));
        let model = ModelServer::start(script).unwrap();
        let home = CopilotHome::default();
        let program = program("copilot", COPILOT);
        let backend = backend(program.clone(), window, home.env(&model.url()));
        Self::of(model, home, program, backend)
    }

    /// Ends the program, which nobody uses any more.
    pub(super) async fn end(self) {
        in_time("ending", self.backend.end_resting()).await;
        until("the program is gone", || self.servers().is_empty()).await;
    }
}
