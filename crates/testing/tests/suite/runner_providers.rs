//! Waits for providers, in virtual time: the timers of the runtime are paused, and hours pass at once.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use atomic_backend::{Backend, BackendError, BoxFuture, Conversation, OpenRequest, Turn};
use atomic_event::{
    Answer, BackendId, ConversationId, Outage, QuestionId, Report, StepError, Stop, TurnEvent,
    Usage,
};
use atomic_runner::{Clock as _, OtherBackends, Outcome, ResumeOptions, Run, Shown, Stage};
use atomic_testing::clock::TimerClock;
use atomic_testing::ralph_script::{Flaw, TASKS, script};
use atomic_workflow::Source;
use atomic_workflow::descriptor::{Document, NoLibrary, read};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::runner_stand::Stand;

/// Runs a test's body on one thread, with timers that need no time.
fn in_virtual_time<T>(body: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(body)
}

/// A prompt as it reached a provider.
#[derive(Clone, Debug, PartialEq)]
struct Request {
    /// In whole seconds since the test began.
    at: u64,
    step: String,
    conversation: String,
    prompt: String,
    is_refused: bool,
}

/// What a provider says to a request at this second: nothing when it answers.
type Refuses = dyn Fn(u64, &str) -> Option<StepError> + Send + Sync;

/// A provider behind one or more backends.
#[derive(Clone)]
struct Provider {
    clock: TimerClock,
    refuses: Arc<Refuses>,
    requests: Arc<Mutex<Vec<Request>>>,
    /// How long an answer takes.
    takes: Duration,
    /// How long a program tries by itself before it gives a turn up.
    gives_up_after: Duration,
}

/// A 429, with the seconds after which the provider can be asked again.
fn limited(clock: TimerClock, retry_after: Option<u64>) -> StepError {
    let now = clock.now().0.as_millisecond();
    let retry_at_ms = retry_after.map(|seconds| now + i64::try_from(seconds).unwrap() * 1_000);
    let outage = Some(Outage { status: Some(429), retry_at_ms });
    StepError { outage, ..StepError::new("rate_limited", "limited") }
}

impl Provider {
    fn new(
        refuses: impl Fn(TimerClock, u64, &str) -> Option<StepError> + Send + Sync + 'static,
    ) -> Self {
        let clock = TimerClock::now_on();
        let refuses = move |at: u64, step: &str| refuses(clock, at, step);
        let takes = Duration::from_secs(1);
        let gives_up_after = Duration::ZERO;
        Self { clock, refuses: Arc::new(refuses), requests: Arc::default(), takes, gives_up_after }
    }

    /// Refuses everything until this second.
    fn down_until(second: u64, retry_after: Option<u64>) -> Self {
        Self::new(move |clock, at, _| (at < second).then(|| limited(clock, retry_after)))
    }

    fn backend(&self, id: &'static str, says_first: bool) -> Named {
        Named { id, provider: self.clone(), says_first }
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// When requests came, and whether they were refused.
    fn times(&self) -> Vec<(u64, bool)> {
        self.requests().iter().map(|request| (request.at, request.is_refused)).collect()
    }
}

/// An agent program of this provider.
struct Named {
    id: &'static str,
    provider: Provider,
    says_first: bool,
}

struct Talk {
    id: ConversationId,
    step: String,
    provider: Provider,
    says_first: bool,
    interrupt: Arc<tokio::sync::Notify>,
}

impl Backend for Named {
    fn id(&self) -> BackendId {
        BackendId::from(self.id)
    }

    fn reports_cost(&self) -> bool {
        true
    }

    fn open(
        &self,
        request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        let step = request.marker.split('/').skip(1).collect::<Vec<_>>().join("/");
        let id = request.resume.unwrap_or_else(|| format!("{}:{step}", self.id).into());
        let (provider, says_first) = (self.provider.clone(), self.says_first);
        Box::pin(async move {
            let talk = Talk { id, step, provider, says_first, interrupt: Arc::default() };
            Ok(Box::new(talk) as Box<dyn Conversation>)
        })
    }
}

impl Conversation for Talk {
    fn id(&self) -> ConversationId {
        self.id.clone()
    }

    fn send(&self, prompt: String) -> BoxFuture<'_, Result<Turn, BackendError>> {
        let (events, turn) = mpsc::channel(10);
        let at = self.provider.clock.seconds();
        let refusal = (self.provider.refuses)(at, &self.step);
        self.provider.requests.lock().unwrap().push(Request {
            at,
            step: self.step.clone(),
            conversation: self.id.to_string(),
            prompt,
            is_refused: refusal.is_some(),
        });
        let Provider { takes, gives_up_after, .. } = self.provider;
        let (interrupt, says_first) = (Arc::clone(&self.interrupt), self.says_first);
        tokio::spawn(async move {
            if says_first {
                let said = Report::Said { text: "so far".to_owned() };
                let _ = events.send(TurnEvent::Reported(said)).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            let stop = match refusal {
                Some(error) => tokio::select! {
                    () = tokio::time::sleep(gives_up_after) => Stop::Failed(error),
                    () = interrupt.notified() => Stop::Interrupted,
                },
                None => tokio::select! {
                    () = tokio::time::sleep(takes) => {
                        let said = Report::Said { text: "done".to_owned() };
                        let _ = events.send(TurnEvent::Reported(said)).await;
                        Stop::Done { text: "done".to_owned() }
                    }
                    () = interrupt.notified() => Stop::Interrupted,
                },
            };
            let _ = events.send(TurnEvent::Ended(stop)).await;
        });
        Box::pin(async { Ok(turn) })
    }

    fn answer(&self, _: QuestionId, _: Answer) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async { Ok(()) })
    }

    fn interrupt(&self) -> BoxFuture<'_, ()> {
        self.interrupt.notify_one();
        Box::pin(async {})
    }

    fn compact(&self) -> BoxFuture<'_, Result<Option<Usage>, StepError>> {
        Box::pin(async { Ok(None) })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

/// A workflow on such backends.
struct Night {
    stand: Stand,
    provider: Provider,
    /// The provider of the backend `copilot`, where it is not the same.
    other: Option<Provider>,
    /// Whether the model says something before its provider refuses.
    says_first: bool,
}

impl Night {
    fn new(mut workflow: Value, provider: Provider) -> Self {
        workflow["sessionsDir"] = ".ralph/sessions".into();
        let source = Source::new("night.json", workflow.to_string());
        let mut stand = Stand::new();
        stand.workflow = read(&Document::plain(source), &NoLibrary).into_workflow().unwrap();
        Self { stand, provider, other: None, says_first: false }
    }

    fn stage(&self) -> Stage {
        let other = self.other.clone().unwrap_or_else(|| self.provider.clone());
        let others = OtherBackends::made_by(move |_| {
            Ok(Arc::new(other.backend("copilot", false)) as Arc<dyn Backend>)
        });
        let backend = Arc::new(self.provider.backend("agent", self.says_first));
        Stage { backend, others, clock: Arc::new(self.provider.clock), ..self.stand.stage() }
    }

    async fn ends(&self) -> Outcome {
        let (run, _show) = Run::start(self.stage(), self.stand.request()).unwrap();
        drive(run).await
    }

    async fn resumed(&self, options: ResumeOptions) -> Outcome {
        let (dir, find) =
            (self.stand.session().unwrap(), |_: &str| Ok(self.stand.workflow.clone()));
        let (run, _show) = Run::resume(self.stage(), dir, options, find, |_| {}).unwrap();
        drive(run).await
    }

    /// Drives the run in a process that is killed in the second `at`.
    async fn killed_at(&self, at: u64) {
        let (run, _show) = Run::start(self.stage(), self.stand.request()).unwrap();
        let limit = Duration::from_secs(at.saturating_sub(self.provider.clock.seconds()));
        let ended = tokio::time::timeout(limit, drive(run)).await;
        assert!(ended.is_err(), "it ended before it was killed: {ended:?}");
    }

    /// The facts of a kind, by one of their fields.
    fn facts(&self, kind: &str, key: &str) -> Vec<Value> {
        let facts = self.stand.facts().into_iter().filter(|fact| fact["type"] == kind);
        facts.map(|fact| fact[key].clone()).collect()
    }

    fn count(&self, kind: &str) -> usize {
        self.facts(kind, "type").len()
    }
}

async fn drive(run: Run) -> Outcome {
    let (_wishes, intents) = mpsc::channel(1);
    run.drive(intents).await.unwrap().outcome
}

fn agent(id: &str) -> Value {
    json!({"type": "agent", "id": id, "prompt": format!("Do {id}")})
}

/// Agents side by side.
fn side_by_side(ids: &[&str]) -> Value {
    let branches: Vec<Value> = ids.iter().map(|id| agent(id)).collect();
    json!({"nodes": [{"type": "parallel", "id": "all", "branches": branches}, agent("last")]})
}

#[test]
fn nothing_is_asked_before_the_recorded_time_then_one_turn_then_the_rest() {
    in_virtual_time(async {
        let night =
            Night::new(side_by_side(&["a", "b", "c", "d"]), Provider::down_until(70, Some(70)));
        assert_eq!(night.ends().await, Outcome::Completed);
        let times = night.provider.times();
        assert_eq!(times[..4], [(0, true); 4], "the turns under way are refused");
        assert_eq!(times[4], (70, false), "one turn tries");
        assert_eq!(times[5..8], [(71, false); 3], "the others follow when it is answered");
        assert_eq!((times.len(), times[8].1), (9, false), "{times:?}");
        assert_eq!(night.count("step_failed") + night.count("step_lost"), 0);
        let attempts = night.facts("step_started", "attempt");
        assert!(attempts.iter().all(|attempt| *attempt == 1), "{attempts:?}");
        assert_eq!((night.count("provider_waiting"), night.count("provider_back")), (4, 1));
        assert_eq!(night.facts("provider_waiting", "status"), [429, 429, 429, 429]);
        // Each goes on in its own conversation.
        let requests = night.provider.requests();
        for step in ["a", "b", "c", "d"] {
            let of_step: Vec<_> =
                requests.iter().filter(|r| r.step.contains(&format!("/{step}#1"))).collect();
            assert_eq!(of_step.len(), 2, "{requests:?}");
            assert_eq!(of_step[0].conversation, of_step[1].conversation);
            assert!(of_step[1].prompt.contains("Your turn was cut off"), "{}", of_step[1].prompt);
        }
    });
}

#[test]
fn without_a_time_the_waits_double_and_an_outage_of_an_hour_fails_nothing() {
    in_virtual_time(async {
        let night = Night::new(side_by_side(&["a", "b"]), Provider::down_until(3_600, None));
        assert_eq!(night.ends().await, Outcome::Completed);
        let times = night.provider.times();
        let tries: Vec<u64> =
            times.iter().filter(|(_, refused)| *refused).map(|(at, _)| *at).collect();
        assert_eq!(tries, [0, 0, 30, 90, 210, 450, 930, 1530, 2130, 2730, 3330]);
        assert_eq!(times[tries.len()], (3_930, false));
        assert_eq!(night.count("step_failed") + night.count("step_lost"), 0);
        let since = night.facts("provider_waiting", "since");
        assert!(since.iter().all(|moment| *moment == since[0]), "{since:?}");
        let waited = night.facts("provider_back", "waited_ms");
        assert!(waited[0].as_u64().unwrap() >= 3_930_000, "{waited:?}");
    });
}

#[test]
fn at_the_end_of_the_window_the_run_pauses_and_a_resume_goes_on_with_the_same_attempts() {
    in_virtual_time(async {
        let mut night = Night::new(side_by_side(&["a", "b"]), Provider::down_until(1_000, None));
        night.stand.settings.program.retry_window_secs = 300;
        assert_eq!(night.ends().await, Outcome::Paused);
        let tries = |night: &Night| -> Vec<u64> {
            let mut tries: Vec<u64> = night.provider.times().iter().map(|(at, _)| *at).collect();
            tries.dedup();
            tries
        };
        assert_eq!(tries(&night), [0, 30, 90, 210, 300], "the last is at the end of the window");
        let reasons = night.facts("run_paused", "reason");
        assert!(reasons[0].as_str().unwrap().contains("--retry-window"), "{reasons:?}");
        assert_eq!(night.count("step_failed"), 0);
        // Each resume begins a new window.
        assert_eq!(night.resumed(ResumeOptions::default()).await, Outcome::Paused);
        assert_eq!(tries(&night)[5..], [330, 390, 510, 600]);
        while night.resumed(ResumeOptions::default()).await == Outcome::Paused {}
        assert_eq!(night.facts("run_finished", "ending")[0]["kind"], "completed");
        let attempts = night.facts("step_started", "attempt");
        assert!(attempts.iter().all(|attempt| *attempt == 1), "{attempts:?}");
        assert_eq!(night.count("step_lost") + night.count("step_failed"), 0);
    });
}

#[test]
fn a_wait_without_hope_pauses_at_once_and_other_work_ends_first() {
    in_virtual_time(async {
        let provider = Provider::new(|clock, _, step| {
            step.contains("hopeless").then(|| limited(clock, Some(100_000)))
        });
        let mut night = Night::new(side_by_side(&["hopeless", "b"]), provider);
        night.stand.settings.program.retry_window_secs = 600;
        assert_eq!(night.ends().await, Outcome::Paused);
        assert!(night.provider.clock.seconds() <= 2, "{}", night.provider.clock.seconds());
        assert_eq!(night.count("step_finished"), 1, "the other was not stopped");
    });
}

#[test]
fn a_killed_wait_keeps_to_the_recorded_time_and_nothing_is_lost() {
    in_virtual_time(async {
        let night =
            Night::new(side_by_side(&["a", "b", "c"]), Provider::down_until(600, Some(600)));
        night.killed_at(100).await;
        assert_eq!(night.resumed(ResumeOptions::default()).await, Outcome::Completed);
        let times = night.provider.times();
        assert_eq!(times[..4], [(0, true), (0, true), (0, true), (600, false)], "{times:?}");
        assert_eq!(night.count("step_lost") + night.count("step_failed"), 0);
        let attempts = night.facts("step_started", "attempt");
        assert!(attempts.iter().all(|attempt| *attempt == 1), "{attempts:?}");
    });
}

#[test]
fn resume_now_tries_at_once() {
    in_virtual_time(async {
        let night = Night::new(side_by_side(&["a", "b"]), Provider::down_until(50, Some(600)));
        night.killed_at(100).await;
        let options = ResumeOptions { now: true, ..ResumeOptions::default() };
        assert_eq!(night.resumed(options).await, Outcome::Completed);
        let times = night.provider.times();
        assert_eq!(times[2], (100, false), "{times:?}");
        assert_eq!(
            times[3],
            (101, false),
            "the other follows when the first is answered: {times:?}"
        );
    });
}

#[test]
fn a_window_of_zero_fails_at_once() {
    in_virtual_time(async {
        let mut night =
            Night::new(json!({"nodes": [agent("a")]}), Provider::down_until(50, Some(60)));
        night.stand.settings.program.retry_window_secs = 0;
        assert!(matches!(night.ends().await, Outcome::Failed { .. }));
        assert_eq!((night.count("provider_waiting"), night.provider.times().len()), (0, 1));
    });
}

#[test]
fn without_a_connection_from_the_start_the_run_pauses_after_two_minutes() {
    let cut = |clock: TimerClock| StepError {
        outage: Some(Outage { status: None, retry_at_ms: None }),
        ..limited(clock, None)
    };
    let cut = move |clock| StepError { code: "unavailable".to_owned(), ..cut(clock) };
    in_virtual_time(async {
        let night =
            Night::new(side_by_side(&["a"]), Provider::new(move |clock, _, _| Some(cut(clock))));
        assert_eq!(night.ends().await, Outcome::Paused);
        assert_eq!(night.provider.times(), [(0, true), (30, true), (90, true), (120, true)]);
        // After an answered turn a lost connection is a matter of the whole window.
        let night = Night::new(
            json!({"nodes": [agent("first"), agent("second")]}),
            Provider::new(move |clock, at, _| (at > 0 && at < 3_600).then(|| cut(clock))),
        );
        assert_eq!(night.ends().await, Outcome::Completed);
        assert!(night.provider.clock.seconds() > 3_600);
    });
}

#[test]
fn limits_stand_still_while_their_steps_wait() {
    in_virtual_time(async {
        let mut limited_agent = agent("a");
        limited_agent["timeoutMs"] = 5_000.into();
        let inner = json!({"type": "parallel", "id": "all", "timeoutMs": 8_000,
            "branches": [limited_agent]});
        let night = Night::new(json!({"nodes": [inner]}), Provider::down_until(500, None));
        assert_eq!(night.ends().await, Outcome::Completed);
        // Without a wait the limits hold.
        let slow = Provider { takes: Duration::from_secs(60), ..Provider::down_until(40, None) };
        let mut plain = agent("a");
        plain["timeoutMs"] = 3_600_000.into();
        let inner =
            json!({"type": "parallel", "id": "all", "timeoutMs": 8_000, "branches": [plain]});
        let night = Night::new(json!({"nodes": [inner]}), slow);
        assert!(matches!(night.ends().await, Outcome::Failed { .. }));
        let seconds = night.provider.clock.seconds();
        assert!(
            (96..100).contains(&seconds),
            "eight seconds of work after 90 of waiting: {seconds}"
        );
    });
}

/// A fan whose limit of eight seconds is around a node that waits, and around other work.
fn limited_fan(limit_ms: u64, branches: &Value) -> Value {
    json!({"nodes": [
        {"type": "parallel", "id": "all", "timeoutMs": limit_ms, "branches": branches},
    ]})
}

fn on_copilot(id: &str) -> Value {
    json!({"type": "agent", "id": id, "prompt": id, "backend": "copilot"})
}

#[test]
fn limits_stand_still_also_after_a_kill() {
    in_virtual_time(async {
        let workflow = limited_fan(8_000, &json!([agent("a"), agent("b")]));
        let night = Night::new(workflow, Provider::down_until(600, Some(600)));
        night.killed_at(100).await;
        assert_eq!(night.resumed(ResumeOptions::default()).await, Outcome::Completed);
        assert_eq!(night.count("timer_fired"), 0);
    });
}

#[test]
fn limits_stand_still_around_steps_that_are_not_begun() {
    in_virtual_time(async {
        let lane = json!({"type": "subgraph", "id": "lane", "timeoutMs": 8_000,
            "graph": {"nodes": [on_copilot("first"), agent("b")]}});
        let workflow = json!({"nodes": [
            {"type": "parallel", "id": "all", "branches": [agent("a"), lane]},
        ]});
        let provider = Provider::down_until(600, Some(600));
        let quick = Provider { clock: provider.clock, ..Provider::down_until(0, None) };
        let night = Night { other: Some(quick), ..Night::new(workflow, provider) };
        assert_eq!(night.ends().await, Outcome::Completed);
        assert_eq!(night.count("timer_fired"), 0);
    });
}

#[test]
fn limits_run_on_when_the_step_that_waited_is_stopped() {
    in_virtual_time(async {
        let race = json!({"type": "parallel", "id": "race", "strategy": "race",
            "branches": [agent("waits"), on_copilot("wins")]});
        let provider = Provider::down_until(50_000, Some(50_000));
        let slow = Provider {
            clock: provider.clock,
            takes: Duration::from_secs(5),
            ..Provider::down_until(0, None)
        };
        let lane = json!({"type": "subgraph", "id": "lane",
            "graph": {"nodes": [race, on_copilot("second"), on_copilot("third")]}});
        let workflow = limited_fan(8_000, &json!([lane]));
        let night = Night { other: Some(slow), ..Night::new(workflow, provider) };
        assert!(matches!(night.ends().await, Outcome::Failed { .. }));
        assert_eq!(night.provider.clock.seconds(), 13, "five seconds of waiting, eight of work");
    });
}

/// Fifteen refused turns of two minutes each are half an hour, which is the time of one turn.
#[test]
fn refused_turns_do_not_use_up_the_time_of_a_turn() {
    in_virtual_time(async {
        let provider = Provider {
            gives_up_after: Duration::from_secs(120),
            ..Provider::down_until(4 * 3_600, None)
        };
        let mut night = Night::new(json!({"nodes": [agent("a")]}), provider);
        night.stand.settings.turn_timeout_secs = 600;
        assert_eq!(night.ends().await, Outcome::Completed);
        assert_eq!(night.count("step_failed"), 0);
    });
}

#[test]
fn a_turn_that_never_reached_the_provider_lets_no_other_follow() {
    in_virtual_time(async {
        let provider = Provider::new(|clock, at, step| match at {
            0..100 => Some(limited(clock, Some(100))),
            _ if step.contains("/a#1") => Some(StepError::new("not_installed", "it is gone")),
            _ => None,
        });
        let branches: Vec<Value> = ["a", "b", "c", "d"].map(agent).to_vec();
        let workflow = json!({"nodes": [
            {"type": "parallel", "id": "all", "onError": "skip", "branches": branches},
        ]});
        let night = Night::new(workflow, provider);
        let _ = night.ends().await;
        let times = night.provider.times();
        assert_eq!(times[4..], [(100, true), (100, false), (101, false), (101, false)]);
        assert_eq!(night.count("provider_back"), 1);
    });
}

#[test]
fn resume_now_begins_a_new_window_however_late_it_comes() {
    in_virtual_time(async {
        let mut night = Night::new(side_by_side(&["a", "b"]), Provider::down_until(50, Some(60)));
        night.stand.settings.program.retry_window_secs = 600;
        night.killed_at(10).await;
        tokio::time::sleep(Duration::from_secs(5_000)).await;
        let options = ResumeOptions { now: true, ..ResumeOptions::default() };
        assert_eq!(night.resumed(options).await, Outcome::Completed);
    });
}

#[test]
fn a_run_with_a_wait_that_has_hope_is_not_paused_for_one_that_has_none() {
    in_virtual_time(async {
        let workflow = json!({"nodes": [
            {"type": "parallel", "id": "all", "branches": [agent("a"), on_copilot("b")]},
        ]});
        let provider = Provider::down_until(100_000, Some(100_000));
        let back_soon = Provider { clock: provider.clock, ..Provider::down_until(30, Some(30)) };
        let mut night = Night { other: Some(back_soon.clone()), ..Night::new(workflow, provider) };
        night.stand.settings.program.retry_window_secs = 600;
        assert_eq!(night.ends().await, Outcome::Paused);
        assert_eq!(back_soon.times(), [(0, true), (30, false)]);
        assert_eq!(night.count("step_finished"), 1);
    });
}

/// A provider that answers a part of a turn and refuses the rest has not answered a turn.
#[test]
fn partial_answers_do_not_move_the_window() {
    in_virtual_time(async {
        let provider = Provider::down_until(50_000, None);
        let mut night = Night::new(json!({"nodes": [agent("a")]}), provider);
        night.says_first = true;
        night.stand.settings.program.retry_window_secs = 600;
        assert_eq!(night.ends().await, Outcome::Paused);
        assert_eq!(night.provider.clock.seconds(), 600);
        assert!(night.count("provider_back") > 1);
    });
}

#[test]
fn the_time_of_the_whole_run_goes_on_and_ends_a_wait() {
    in_virtual_time(async {
        let mut night = Night::new(side_by_side(&["a", "b"]), Provider::down_until(5_000, None));
        night.stand.settings.timeout_secs = Some(100);
        assert!(matches!(night.ends().await, Outcome::Failed { ceiling: true, .. }));
        assert_eq!(night.provider.clock.seconds(), 100);
    });
}

#[test]
fn a_step_that_is_not_needed_any_more_is_not_waited_for() {
    in_virtual_time(async {
        let race = json!({"nodes": [
            {"type": "parallel", "id": "race", "strategy": "race", "branches": [
                agent("waits"),
                {"type": "agent", "id": "wins", "prompt": "Win", "backend": "copilot"},
            ]},
        ]});
        let refuses = Provider::new(|clock, at, _| (at < 5_000).then(|| limited(clock, None)));
        let quick = Provider { clock: refuses.clock, ..Provider::down_until(0, None) };
        let night = Night { other: Some(quick), ..Night::new(race, refuses) };
        assert_eq!(night.ends().await, Outcome::Completed);
        assert!(night.provider.clock.seconds() < 5);
        assert_eq!(night.count("step_cancelled"), 1);
    });
}

#[test]
fn a_wait_of_one_backend_holds_up_no_other() {
    in_virtual_time(async {
        let other =
            |id: &str| json!({"type": "agent", "id": id, "prompt": id, "backend": "copilot"});
        let lane = |first: Value, second: Value| {
            json!({"type": "subgraph", "id": format!("lane-{}", first["id"].as_str().unwrap()),
                "graph": {"nodes": [first, second]}})
        };
        let workflow = json!({"nodes": [{"type": "parallel", "id": "both", "branches": [
            lane(agent("a"), agent("b")), lane(other("c"), other("d")),
        ]}]});
        let provider = Provider::down_until(1_000, Some(1_000));
        let quick = Provider { clock: provider.clock, ..Provider::down_until(0, None) };
        let night = Night { other: Some(quick.clone()), ..Night::new(workflow, provider) };
        assert_eq!(night.ends().await, Outcome::Completed);
        assert_eq!(quick.times(), [(0, false), (1, false)]);
        assert_eq!(night.provider.times(), [(0, true), (1_000, false), (1_001, false)]);
    });
}

#[test]
fn a_step_that_comes_while_its_backend_waits_does_not_start_before_the_wait_is_over() {
    in_virtual_time(async {
        let first = json!({"type": "agent", "id": "c", "prompt": "c", "backend": "copilot"});
        let lane =
            json!({"type": "subgraph", "id": "lane", "graph": {"nodes": [first, agent("b")]}});
        let workflow = json!({"nodes": [
            {"type": "parallel", "id": "both", "branches": [agent("a"), lane]},
        ]});
        let provider = Provider::down_until(1_000, Some(1_000));
        let quick = Provider { clock: provider.clock, ..Provider::down_until(0, None) };
        let night = Night { other: Some(quick), ..Night::new(workflow, provider) };
        night.killed_at(100).await;
        let started = |night: &Night| {
            let steps = night.facts("step_started", "step");
            steps.iter().filter(|step| step.as_str().unwrap().ends_with("/b#1")).count()
        };
        assert_eq!(started(&night), 0, "it is not begun in the journal either");
        assert_eq!(night.resumed(ResumeOptions::default()).await, Outcome::Completed);
        assert_eq!(night.provider.times(), [(0, true), (1_000, false), (1_001, false)]);
        assert_eq!(started(&night), 1);
    });
}

#[test]
fn ralph_on_a_script_gets_through_an_outage_with_no_failed_attempt() {
    let ended = |outage: Value| {
        in_virtual_time(async {
            let mut script = script(Flaw::Reported, 0);
            script["outage"] = outage;
            let stand = Stand::playing(script);
            let clock = TimerClock::now_on();
            let (run, mut show) = {
                let stage = Stage { clock: Arc::new(clock), ..stand.stage() };
                Run::start(stage, stand.request()).unwrap()
            };
            let (wishes, intents) = mpsc::channel(4);
            let answering = async move {
                while let Some(shown) = show.next().await {
                    if let Shown::Fact(fact) = shown
                        && let atomic_event::Event::QuestionAsked { id, .. } = &fact.event
                    {
                        let answer = Answer { chosen: vec!["Blue".to_owned()] };
                        let question = id.clone();
                        let _ =
                            wishes.send(atomic_event::Intent::Answer { question, answer }).await;
                    }
                }
            };
            let (ended, ()) = tokio::join!(run.drive(intents), answering);
            assert_eq!(ended.unwrap().outcome, Outcome::Completed);
            let failed =
                stand.facts().into_iter().filter(|fact| fact["type"] == "step_failed").count();
            let waits =
                stand.facts().into_iter().filter(|fact| fact["type"] == "provider_waiting").count();
            (stand.finale().tasks.len(), failed, waits > 0, clock.seconds())
        })
    };
    let (tasks, failed, waited, _) = ended(json!([]));
    assert_eq!((tasks, waited), (TASKS.len(), false));
    let outage = json!([{"for_s": 590, "fail": "rate_limit", "retry_after_s": 600}]);
    let (tasks_after, failed_after, waited, seconds) = ended(outage);
    assert_eq!((tasks_after, failed_after, waited), (tasks, failed, true));
    assert!((600..610).contains(&seconds), "{seconds}");
    let (tasks_after, failed_after, waited, seconds) =
        ended(json!([{"for_s": 3_600, "fail": "overloaded"}]));
    assert_eq!((tasks_after, failed_after, waited), (tasks, failed, true));
    assert!(seconds >= 3_600, "{seconds}");
}
