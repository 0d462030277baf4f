//! GitHub Copilot: what is said at the same time as something else gets where it belongs.

use atomic_backend::Backend as _;
use atomic_event::Stop;
use atomic_testing::conformance::backend::{exchange, in_time, send};
use atomic_testing::model::{Reply, Script};
use rustix::process::Signal;

use super::copilot::Copilot;
use super::copilot_stand::Stand;
use super::scripts::Tongue as _;
use super::serving_stand::{hang, when};
use super::stand::text;

/// How often what depends on who is faster is tried.
const TIMES: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prompts_and_interrupts_follow_each_other_at_once() {
    let script = Script::new()
        .with(when("hold on").reply(hang()))
        .with(when("run long").reply(Copilot::run("touch run; sleep 300")))
        .with(
            when("run short")
                .reply(Copilot::run("sleep 0.3; touch short"))
                .reply(Reply::say("Ran.")),
        );
    let stand = Stand::new(script);
    let conversation = stand.open(stand.request("order")).await;
    let conversation = conversation.as_ref();
    assert_eq!(text(exchange(conversation, "hello").await.1), "Yes.");
    for time in 0..TIMES {
        // Before anything was heard, and at some point after.
        let held = format!("hold on {time}");
        let mut turn = send(conversation, &held).await;
        if time % 2 == 1 {
            turn.until_typed().await;
        }
        in_time("interrupting", conversation.interrupt()).await;
        assert_eq!(turn.until_end().await.1, Stop::Interrupted);
        let next = format!("after that, {time}");
        let (heard, stop) = exchange(conversation, &next).await;
        assert_eq!((text(stop).as_str(), heard.said), ("Yes.", vec!["Yes.".to_owned()]), "{time}");
        assert_eq!(stand.times_asked(&next), 1);
    }
    for time in 0..TIMES {
        let turn = send(conversation, "run long").await;
        stand.is_made("run").await;
        std::fs::remove_file(stand.workspace.path().join("run")).unwrap();
        in_time("interrupting", conversation.interrupt()).await;
        assert_eq!(turn.until_end().await.1, Stop::Interrupted);
        // What is ended is what the turn before has left, and nothing else.
        let (heard, stop) = exchange(conversation, "run short").await;
        assert_eq!(text(stop).as_str(), "Ran.");
        assert!(heard.tools[0].ok && stand.made("short"), "{time} {:?}", heard.tools);
        std::fs::remove_file(stand.workspace.path().join("short")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_open_once_or_not_at_all() {
    let stand = Stand::new(Script::new());
    let conversation = stand.open(stand.request("once")).await;
    assert_eq!(text(exchange(conversation.as_ref(), "hello").await.1), "Yes.");
    let id = conversation.id();
    let resume = || stand.resume("again", id.clone());
    let twice = in_time("refusing", stand.backend.open(resume())).await;
    assert_eq!(twice.err().unwrap().code(), "misused");
    in_time("closing", conversation.close()).await;
    // Two at once: one of them is.
    let (one, other) = tokio::join!(stand.backend.open(resume()), stand.backend.open(resume()));
    let (opened, refused): (Vec<_>, Vec<_>) = [one, other].into_iter().partition(Result::is_ok);
    assert_eq!((opened.len(), refused.len()), (1, 1));
    for refused in refused {
        assert_eq!(refused.err().unwrap().code(), "misused");
    }
    for opened in opened {
        in_time("closing", opened.unwrap().close()).await;
    }
    // One that nobody waits for any more while it is being opened.
    stand.signal(Signal::STOP);
    {
        let mut opening = stand.backend.open(resume());
        let mut new = stand.backend.open(stand.request("new"));
        tokio::select! {
            biased;
            _ = &mut opening => panic!("it stands still"),
            _ = &mut new => panic!("it stands still"),
            () = tokio::task::yield_now() => {}
        }
    }
    stand.signal(Signal::CONT);
    let conversation = stand.open(resume()).await;
    stand.goes_on(conversation.as_ref(), "hello").await;
    drop(conversation);
    stand.end().await;
}

/// What is large for one must not be in the way of the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_go_on_beside_large_streams() {
    // Both go on until the others are done.
    let print = "yes 'a line of the output' | head -c 50000000; touch printed; \
                 while [ ! -e enough ]; do sleep 0.05; done";
    let script = Script::new()
        .with(when("print it").reply(Copilot::run(print)).reply(Reply::say("Printed.")))
        .with(when("remember").reply(hang()));
    let stand = Stand::new(script);
    let requests = ["prints", "remembers", "other"].map(|step| stand.open(stand.request(step)));
    let [prints, remembers, other] = requests;
    let (prints, remembers, other) = tokio::join!(prints, remembers, other);
    let printing = send(prints.as_ref(), "print it").await;
    let much = format!("remember {}", "word ".repeat(800_000));
    let mut remembering = send(remembers.as_ref(), &much).await;
    assert_eq!(text(exchange(other.as_ref(), "hello").await.1), "Yes.");
    stand.is_made("printed").await;
    remembering.until_typed().await;
    stand.goes_on(other.as_ref(), "hello").await;
    in_time("interrupting", remembers.interrupt()).await;
    assert_eq!(remembering.until_end().await.1, Stop::Interrupted);
    // All of it is in the history, and sent with every event about that.
    let after = exchange(remembers.as_ref(), "after that").await;
    assert_eq!(text(after.1), "Yes.");
    assert!(stand.asked("after that").said().len() > much.len());
    std::fs::write(stand.workspace.path().join("enough"), "").unwrap();
    let (heard, stop) = printing.until_end().await;
    assert_eq!(text(stop), "Printed.");
    assert!(heard.tools[0].ok, "{:?}", heard.tools);
    stand.goes_on(other.as_ref(), "hello").await;
    assert_eq!(stand.servers().len(), 1);
}
