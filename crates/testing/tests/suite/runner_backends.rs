//! One run on two backends: the run's own, and one that nodes name.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use atomic_backend::{Backend, BackendError, BoxFuture, Conversation, OpenRequest, Turn};
use atomic_event::{
    Answer, BackendId, ConversationId, Event, Intent, Question, QuestionId, Report, StepError,
    Stop, TurnEvent, Usage,
};
use atomic_runner::{
    OnQuestion, OtherBackends, Outcome, ResumeOptions, Run, RunError, Shown, Stage, StartRequest,
};
use atomic_session::{InboxAnswer, leave_answer};
use atomic_workflow::Source;
use atomic_workflow::descriptor::{Document, NoLibrary, read};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::runner_stand::{Stand, on_one_thread};

/// What happened on all backends, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Heard>>>);

/// What a backend was asked for.
#[derive(Clone, Debug)]
struct Heard {
    backend: String,
    conversation: String,
    request: OpenRequest,
    prompt: String,
}

impl Log {
    /// Everything that was asked, or of one backend.
    fn of(&self, backend: &str) -> Vec<Heard> {
        let heard = self.0.lock().unwrap().clone();
        heard.into_iter().filter(|heard| backend.is_empty() || heard.backend == backend).collect()
    }
}

/// A backend under any name. Whoever is told to ask does, unless it was cut off; whoever is told to
/// fill its window has; whoever is slow begins with the answer and does not end.
#[derive(Clone)]
struct Named {
    id: &'static str,
    reports_cost: bool,
    remembers: bool,
    log: Log,
    opened: Arc<AtomicUsize>,
    rests_ended: Arc<AtomicUsize>,
}

impl Named {
    fn new(id: &'static str, log: &Log) -> Self {
        let (opened, rests_ended) = (Arc::default(), Arc::default());
        Self { id, reports_cost: true, remembers: true, log: log.clone(), opened, rests_ended }
    }
}

impl Backend for Named {
    fn id(&self) -> BackendId {
        BackendId::from(self.id)
    }

    fn reports_cost(&self) -> bool {
        self.reports_cost
    }

    fn remembers(&self) -> bool {
        self.remembers
    }

    fn open(
        &self,
        request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        Box::pin(async move {
            let id = match &request.resume {
                Some(known) if known.as_str().starts_with(self.id) => known.clone(),
                Some(foreign) => panic!("{} was to go on with {foreign}", self.id),
                None => {
                    let number = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
                    ConversationId::from(format!("{}-{number}", self.id))
                }
            };
            let turn = Mutex::default();
            Ok(Box::new(Talk { id, of: self.clone(), request, turn }) as Box<dyn Conversation>)
        })
    }

    fn end_resting(&self) -> BoxFuture<'_, ()> {
        self.rests_ended.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {})
    }
}

struct Talk {
    id: ConversationId,
    of: Named,
    request: OpenRequest,
    turn: Mutex<Option<mpsc::Sender<TurnEvent>>>,
}

impl Talk {
    fn note(&self, prompt: &str) {
        self.of.log.0.lock().unwrap().push(Heard {
            backend: self.of.id.to_owned(),
            conversation: self.id.to_string(),
            request: self.request.clone(),
            prompt: prompt.to_owned(),
        });
    }

    fn done(&self, text: &str) -> TurnEvent {
        TurnEvent::Ended(Stop::Done { text: format!("{}: {text}", self.of.id) })
    }
}

impl Conversation for Talk {
    fn id(&self) -> ConversationId {
        self.id.clone()
    }

    fn send(&self, prompt: String) -> BoxFuture<'_, Result<Turn, BackendError>> {
        self.note(&prompt);
        let (events, turn) = mpsc::channel(10);
        if prompt.contains("fill") {
            let (context_tokens, context_window) = (Some(9), Some(10));
            let usage = Usage { context_tokens, context_window, ..Usage::default() };
            events.try_send(TurnEvent::Reported(Report::Spent(usage))).unwrap();
        }
        if prompt.contains("ask") && !prompt.contains("cut off") {
            let question = Question {
                question: format!("What does {} do?", self.of.id),
                free_text: true,
                ..Question::default()
            };
            let asked = TurnEvent::Asked { id: QuestionId::from("own"), question, more: 0 };
            events.try_send(asked).unwrap();
            *self.turn.lock().unwrap() = Some(events);
        } else {
            events.try_send(self.done("done")).unwrap();
        }
        Box::pin(async { Ok(turn) })
    }

    fn answer(&self, _: QuestionId, answer: Answer) -> BoxFuture<'_, Result<(), BackendError>> {
        let mut turn = self.turn.lock().unwrap();
        let events = turn.as_ref().unwrap();
        if self.request.system_prompt.contains("slow") {
            let said = Report::Said { text: "I see".to_owned() };
            events.try_send(TurnEvent::Reported(said)).unwrap();
        } else {
            events.try_send(self.done(&answer.text())).unwrap();
            *turn = None;
        }
        Box::pin(async { Ok(()) })
    }

    fn interrupt(&self) -> BoxFuture<'_, ()> {
        if let Some(events) = self.turn.lock().unwrap().take() {
            events.try_send(TurnEvent::Ended(Stop::Interrupted)).unwrap();
        }
        Box::pin(async {})
    }

    fn compact(&self) -> BoxFuture<'_, Result<Option<Usage>, StepError>> {
        self.note("(compact)");
        Box::pin(async { Ok(None) })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

/// A run of a workflow whose own backend is `claude`; its nodes can name `copilot`.
struct Two {
    stand: Stand,
    log: Log,
    claude: Named,
    copilot: Named,
}

impl Two {
    fn of(mut workflow: Value) -> Self {
        workflow["sessionsDir"] = ".ralph/sessions".into();
        let source = Source::new("two.json", workflow.to_string());
        let mut stand = Stand::new();
        stand.workflow = read(&Document::plain(source), &NoLibrary).into_workflow().unwrap();
        stand.settings.on_question = OnQuestion::Pause;
        let log = Log::default();
        let (claude, copilot) = (Named::new("claude", &log), Named::new("copilot", &log));
        Self { stand, log, claude, copilot }
    }

    fn stage(&self) -> Stage {
        let copilot = self.copilot.clone();
        let others = OtherBackends::made_by(move |id| match id.as_str() {
            "copilot" => Ok(Arc::new(copilot.clone()) as Arc<dyn Backend>),
            other => Err(format!("{other} is not installed")),
        });
        Stage { backend: Arc::new(self.claude.clone()), others, ..self.stand.stage() }
    }

    fn start(&self) -> Result<(Run, atomic_runner::Show), RunError> {
        let request = StartRequest { model: Some("sonnet".to_owned()), ..self.stand.request() };
        Run::start(self.stage(), request)
    }

    fn resume(&self) -> Result<(Run, atomic_runner::Show), RunError> {
        let (dir, options) = (self.stand.session().unwrap(), ResumeOptions::default());
        let find = |_: &str| Ok(self.stand.workflow.clone());
        Run::resume(self.stage(), dir, options, find, |_| {})
    }

    /// Starts the run, or takes it up again, and sees how it ends.
    fn ends(&self) -> Outcome {
        let start = || if self.stand.session().is_some() { self.resume() } else { self.start() };
        on_one_thread(async {
            let (run, _show) = start().unwrap();
            let (_wishes, intents) = mpsc::channel(1);
            run.drive(intents).await.unwrap().outcome
        })
    }

    /// Drives the run in a process that is killed once two such facts are there. Until then
    /// questions are answered at once, or by nobody.
    fn killed_after_two(&self, is_it: impl Fn(&Event) -> bool, answers: bool) {
        on_one_thread(async {
            let (run, mut show) = self.start().unwrap();
            let (wishes, intents) = mpsc::channel(4);
            let driving = run.drive(intents);
            tokio::pin!(driving);
            let mut seen = 0;
            while seen < 2 {
                tokio::select! {
                    biased;
                    shown = show.next() => if let Some(Shown::Fact(fact)) = shown {
                        seen += usize::from(is_it(&fact.event));
                        if let Event::QuestionAsked { id, .. } = &fact.event && answers {
                            let answer = Answer { chosen: vec!["so".to_owned()] };
                            wishes.try_send(Intent::Answer { question: id.clone(), answer }).unwrap();
                        }
                    },
                    ended = &mut driving => panic!("it ended: {ended:?}"),
                }
            }
            self.stand.disk.kill();
        });
    }

    /// The facts of a kind, as the step and what is under a key.
    fn facts(&self, kind: &str, key: &str) -> Vec<(String, Value)> {
        let facts = self.stand.facts().into_iter().filter(|fact| fact["type"] == kind);
        facts.map(|f| (f["step"].as_str().unwrap().to_owned(), f[key].clone())).collect()
    }

    /// Why it does not even begin.
    fn refused(&self) -> String {
        let Err(RunError::Refused(why)) = self.start() else { panic!("it began") };
        assert!(self.stand.session().is_none(), "nothing is left of it");
        assert!(self.log.of("").is_empty(), "nobody was asked");
        why
    }
}

fn agent(id: &str, backend: &str) -> Value {
    let backend = Some(backend).filter(|name| !name.is_empty());
    json!({"type": "agent", "id": id, "prompt": format!("Do {id}"), "backend": backend})
}

fn strings<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

#[test]
fn branches_on_two_backends_are_each_spoken_to_in_their_own_words() {
    let locator = |id: &str, more: Value| {
        let mut node = json!({"type": "subagent", "id": id, "agent": "codebase-locator",
            "task": format!("Do {id}")});
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        node
    };
    let two = Two::of(
        json!({"model": "opus", "nodes": [{"type": "parallel", "id": "both", "branches": [
            locator("mine", json!({})),
            locator("other", json!({"backend": "copilot", "model": "gpt-5"})),
            locator("plain", json!({"agentType": "copilot"})),
            {"type": "skill", "id": "skill", "skill": "explain-code", "args": "x", "backend": "copilot"},
            locator("named", json!({"backend": "claude"})),
        ]}]}),
    );
    assert_eq!(two.ends(), Outcome::Completed);
    let find = |id: &str| {
        let all = two.log.of("");
        let found: Vec<Heard> =
            all.into_iter().filter(|h| h.request.marker.contains(&format!("/{id}#1/"))).collect();
        assert_eq!(found.len(), 1, "{id}: {found:?}");
        found[0].clone()
    };
    let tools = |heard: &Heard| -> Vec<String> {
        let only = heard.request.tools.only.clone().unwrap();
        only.iter().map(|rule| rule.tool.clone()).collect()
    };
    let (mine, other, plain) = (find("mine"), find("other"), find("plain"));
    assert_eq!(
        [&mine, &other, &plain].map(|h| h.backend.as_str()),
        ["claude", "copilot", "copilot"]
    );
    assert_eq!([&mine, &other].map(|h| h.prompt.as_str()), ["Do mine", "Do other"]);
    assert!(tools(&mine).contains(&"Grep".to_owned()), "{:?}", tools(&mine));
    assert!(tools(&other).contains(&"grep".to_owned()), "{:?}", tools(&other));
    let models = [&mine, &other, &plain, &find("named")].map(|h| h.request.model.clone());
    let [opus, gpt] = ["opus", "gpt-5"].map(|name| Some(name.to_owned()));
    assert_eq!(models, [opus.clone(), gpt, None, opus], "a model is one of its own backend");
    let skill = find("skill");
    assert_eq!((skill.backend.as_str(), skill.request.model.clone()), ("copilot", None));
    let helper = skill.request.helpers.iter().find(|h| h.name == "codebase-locator").unwrap();
    let helps_with = helper.tools.only.clone().unwrap();
    assert!(helps_with.iter().any(|rule| rule.tool == "view" || rule.tool == "grep"));
    assert!(helps_with.iter().all(|rule| rule.tool != "Grep"), "{helps_with:?}");
    let started = two.facts("step_started", "backend");
    let elsewhere = started.iter().filter(|(_, backend)| backend == "copilot").count();
    let here = started.iter().filter(|(_, backend)| backend.is_null()).count();
    assert_eq!((elsewhere, here), (3, 2), "{started:?}");
    let summary = two.stand.facts()[0]["backend"].clone();
    assert_eq!(summary, "claude", "the session's is the run's own");
    let ended = [&two.claude, &two.copilot].map(|b| b.rests_ended.load(Ordering::Relaxed));
    assert_eq!(ended, [1, 1], "nothing is left running of either");
}

#[test]
fn the_runs_model_is_the_runs_backends() {
    let two = Two::of(json!({"nodes": [agent("mine", ""), agent("other", "copilot")]}));
    assert_eq!(two.ends(), Outcome::Completed);
    let models: Vec<_> = two.log.of("").into_iter().map(|h| h.request.model).collect();
    assert_eq!(models, [Some("sonnet".to_owned()), None]);
}

fn both_ask() -> Two {
    let mut two = Two::of(json!({"nodes": [{"type": "parallel", "id": "both", "branches": [
        {"type": "agent", "id": "mine", "prompt": "You ask"},
        {"type": "agent", "id": "other", "prompt": "And you ask", "backend": "copilot"},
    ]}, agent("after", "copilot")]}));
    two.copilot.remembers = false;
    two
}

/// Both questions are open at once, are answered in one place, and each answer goes back to who
/// asked, in the conversation it asked in.
fn both_are_answered(two: &Two) {
    let dir = two.stand.session().unwrap();
    let asked = two.facts("question_asked", "question");
    assert_eq!(asked.len(), 2);
    for fact in two.stand.facts().iter().filter(|fact| fact["type"] == "question_asked") {
        let question = fact["id"].as_str().unwrap();
        let given = vec![format!("to {}", fact["step"].as_str().unwrap())];
        let left = InboxAnswer { question: Some(QuestionId::from(question)), given };
        leave_answer(&two.stand.disk, &dir, &left).unwrap();
    }
    assert_eq!(two.ends(), Outcome::Completed);
    let of = |backend: &str| -> Vec<(String, String)> {
        let heard = two.log.of(backend).into_iter();
        heard.map(|heard| (heard.conversation, heard.prompt)).collect()
    };
    let (claude, copilot) = (of("claude"), of("copilot"));
    assert_eq!(claude.len(), 2, "{claude:?}");
    assert_eq!(claude[0].0, claude[1].0, "it goes on where it asked");
    assert!(claude[1].1.ends_with("The user's answer: to both#1[mine]/mine#1"), "{claude:?}");
    assert!(!claude[1].1.contains("You ask\n"), "it remembers: {claude:?}");
    assert_eq!(copilot.len(), 3, "{copilot:?}");
    assert_eq!(copilot[0].0, copilot[1].0, "it goes on where it asked");
    assert!(copilot[1].1.starts_with("And you ask\n"), "it does not remember: {copilot:?}");
    assert!(copilot[1].1.ends_with("The user's answer: to both#1[other]/other#1"), "{copilot:?}");
    let opened = two.facts("conversation_opened", "backend");
    let mine = opened.iter().filter(|(step, _)| step.ends_with("mine#1"));
    assert!(mine.into_iter().all(|(_, backend)| backend == "claude"), "{opened:?}");
}

#[test]
fn questions_of_both_backends_wait_together_and_are_answered_in_one_place() {
    let two = both_ask();
    let Outcome::Waiting(open) = two.ends() else { panic!("it does not wait") };
    assert_eq!(open.len(), 2, "{open:?}");
    both_are_answered(&two);
}

#[test]
fn after_a_kill_each_goes_on_with_its_own_backend() {
    let two = both_ask();
    two.killed_after_two(|event| matches!(event, Event::QuestionAsked { .. }), false);
    both_are_answered(&two);
}

/// Who has gone on with an answer and was cut off then is told it again only if it forgets.
#[test]
fn an_answer_that_was_heard_is_told_again_to_a_backend_that_forgets() {
    let slow = |id: &str, backend: &str| {
        let mut node = agent(id, backend);
        node["prompt"] = "ask".into();
        node["systemPrompt"] = "You are slow".into();
        node
    };
    let branches = [slow("mine", ""), slow("other", "copilot")];
    let mut two =
        Two::of(json!({"nodes": [{"type": "parallel", "id": "both", "branches": branches}]}));
    two.copilot.remembers = false;
    two.stand.settings.on_question = OnQuestion::Ask;
    two.killed_after_two(|event| matches!(event, Event::StepReported { .. }), true);
    assert_eq!(two.ends(), Outcome::Completed);
    let told = |backend: &str| {
        let last = two.log.of(backend).pop().unwrap();
        assert!(last.prompt.contains("cut off"), "{}", last.prompt);
        last.prompt.contains("The user's answer: so")
    };
    assert_eq!((told("claude"), told("copilot")), (false, true));
}

#[test]
fn a_lane_has_a_conversation_with_each_backend() {
    let two = Two::of(json!({"nodes": [
        agent("one", ""), agent("two", "copilot"), agent("three", "claude"), agent("four", "copilot"),
        {"type": "clearContext"},
        agent("five", "copilot"), agent("six", ""), agent("seven", "copilot"),
    ]}));
    assert_eq!(two.ends(), Outcome::Completed);
    let spoken: Vec<String> = two.log.of("").into_iter().map(|heard| heard.conversation).collect();
    let before = ["claude-1", "copilot-1", "claude-1", "copilot-1"];
    let after = ["copilot-2", "claude-2", "copilot-2"];
    assert_eq!(spoken, [before.as_slice(), after.as_slice()].concat());
}

/// Agents of a lane that run at once are in each other's way only on the same backend.
#[test]
fn agents_of_a_lane_on_two_backends_may_speak_at_once() {
    let edges = json!([{"from": "one", "to": "left"}, {"from": "one", "to": "right"},
        {"from": ["left", "right"], "to": "end"}]);
    let nodes =
        [agent("one", "copilot"), agent("left", ""), agent("right", "copilot"), agent("end", "")];
    let two = Two::of(json!({"nodes": nodes, "edges": edges}));
    assert_eq!(two.ends(), Outcome::Completed);
    let of = |backend: &str| -> Vec<String> {
        two.log.of(backend).into_iter().map(|heard| heard.conversation).collect()
    };
    assert_eq!(of("copilot"), strings(["copilot-1", "copilot-1"]));
    assert_eq!(of("claude"), strings(["claude-1", "claude-1"]));
}

#[test]
fn the_fullest_conversation_of_a_lane_is_summarised_by_who_has_it() {
    let two = Two::of(json!({"nodes": [
        {"type": "agent", "id": "one", "prompt": "fill it", "backend": "copilot"},
        agent("two", ""), {"type": "contextMonitor", "threshold": 0.8},
    ]}));
    assert_eq!(two.ends(), Outcome::Completed);
    let last = two.log.of("").pop().unwrap();
    assert_eq!((last.conversation.as_str(), last.prompt.as_str()), ("copilot-1", "(compact)"));
    assert_eq!(last.request.model, None, "the run's model is not one of copilot's");
}

/// The node that names copilot is deep inside.
fn deep() -> Two {
    let inner = json!({"type": "loop", "id": "again", "maxIterations": 1,
        "node": agent("judge", "copilot")});
    Two::of(json!({"nodes": [agent("one", ""),
        {"type": "subgraph", "id": "apart", "graph": {"nodes": [inner]}}]}))
}

#[test]
fn a_ceiling_in_money_is_refused_where_any_backend_hides_its_cost() {
    let mut two = deep();
    two.stand.settings.budget.max_cost_usd = Some(5.0);
    two.copilot.reports_cost = false;
    assert_eq!(
        two.refused(),
        "the node `apart/again/judge` runs on copilot, but copilot does not report what its turns \
         cost, so a limit on cost cannot hold; name a model with a known price (--model), or use \
         --max-tokens or --timeout"
    );
    two.claude.reports_cost = false;
    assert_eq!(two.refused().lines().count(), 2, "both are told");
    two.stand.settings.budget.max_cost_usd = None;
    assert_eq!(two.ends(), Outcome::Completed, "without a ceiling nobody minds");
}

#[test]
fn a_backend_that_nobody_runs_on_need_not_say_what_it_costs() {
    let mut two = Two::of(json!({"nodes": [agent("one", "copilot")]}));
    two.stand.settings.budget.max_cost_usd = Some(5.0);
    two.claude.reports_cost = false;
    assert_eq!(two.ends(), Outcome::Completed);
}

#[test]
fn a_program_that_is_missing_is_told_before_anything_is_spent() {
    let nodes = [
        agent("one", ""),
        agent("two", "opencode"),
        agent("three", "opencode"),
        agent("four", "acp:gemini"),
    ];
    let two = Two::of(json!({"nodes": nodes}));
    assert_eq!(
        two.refused(),
        "the node `four` runs on acp:gemini, but acp:gemini is not installed\n\
         the node `two` runs on opencode, but opencode is not installed"
    );
}

#[test]
fn a_program_that_has_gone_is_told_on_resume() {
    let two = both_ask();
    assert!(matches!(two.ends(), Outcome::Waiting(_)));
    let (dir, options) = (two.stand.session().unwrap(), ResumeOptions::default());
    let stage = Stage { others: OtherBackends::default(), ..two.stage() };
    let find = |_: &str| Ok(two.stand.workflow.clone());
    let before = two.stand.journal();
    let resumed = Run::resume(stage, dir, options, find, |_| {});
    let Err(RunError::Refused(why)) = resumed else { panic!("it was resumed") };
    let expected =
        "the node `both/other/other` runs on copilot, but there is no backend `copilot` here";
    assert_eq!(why, expected);
    assert_eq!(two.stand.journal(), before);
}
