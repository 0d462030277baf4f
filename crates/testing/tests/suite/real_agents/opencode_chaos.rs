//! OpenCode when things break under it: the same conversations go on afterwards.

use atomic_backend::Backend as _;
use atomic_testing::conformance::backend::in_time;
use atomic_testing::model::{Reply, Script, Turn};

use super::opencode_stand::{Stand, nothing_is_left, question, run};
use super::serving_chaos::{
    LASTING, killed_between_turns, killed_in_three_turns_at_once, standing_still,
};
use super::serving_stand::{hang, when};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_killed_and_stands_still() {
    let script = Script::new()
        .with(when("stream it").reply(hang()))
        .with(when("use it").reply(run(LASTING)))
        .with(when("ask it").reply(Reply::call("question", question("Which?"))))
        .with(Turn::default().reply(Reply::say("Yes.")));
    let stand = Stand::new(script);
    killed_in_three_turns_at_once(&stand).await;
    killed_between_turns(&stand).await;
    standing_still(&stand).await;
    in_time("ending", stand.backend.end_resting()).await;
    nothing_is_left(&stand).await;
}
