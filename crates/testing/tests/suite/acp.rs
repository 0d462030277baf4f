//! The backend for ACP with an agent that does what real ones do not do, or not yet.

use std::path::PathBuf;

use atomic_backend::acp::{AcpBackend, AcpConfig};
use atomic_backend::guard::Guard;
use atomic_backend::{Backend as _, BackendError, Conversation, OpenRequest, Place, ToolRule};
use atomic_event::{Answer, Report, Stop, TurnEvent};
use atomic_testing::conformance::backend::{Heard, exchange, in_time, request, send};
use tempfile::TempDir;

/// An agent with manners of its own, and a folder to work in.
struct Stand {
    backend: AcpBackend,
    workspace: TempDir,
}

impl Stand {
    fn new(manner: &str) -> Self {
        Self::of(PathBuf::from(env!("CARGO_BIN_EXE_acp-agent")), manner)
    }

    fn of(program: PathBuf, manner: &str) -> Self {
        let config = AcpConfig {
            command: "fake --acp".to_owned(),
            program,
            arguments: vec!["--acp".to_owned(), manner.to_owned()],
            starts: 2,
            env: vec![],
        };
        let guard = Guard::new(env!("CARGO_BIN_EXE_guard-host").into());
        let workspace = tempfile::tempdir().unwrap();
        Self { backend: AcpBackend::new(config, guard), workspace }
    }

    fn request(&self) -> OpenRequest {
        let request = request(self.workspace.path(), None);
        OpenRequest { system_prompt: String::new(), ..request }
    }

    async fn try_open(&self, request: OpenRequest) -> Result<Box<dyn Conversation>, BackendError> {
        in_time("opening", self.backend.open(request)).await
    }

    async fn open(&self) -> Box<dyn Conversation> {
        self.try_open(self.request()).await.unwrap()
    }

    /// Why a conversation cannot be opened.
    async fn fault(&self, request: OpenRequest) -> (&'static str, String) {
        match self.try_open(request).await {
            Ok(_) => panic!("a conversation"),
            Err(error) => (error.code(), error.to_string()),
        }
    }
}

fn text(stop: &Stop) -> &str {
    if let Stop::Done { text } = stop { text } else { panic!("not done: {stop:?}") }
}

fn failure(stop: &Stop) -> (&str, &str) {
    if let Stop::Failed(error) = stop { (&error.code, &error.message) } else { panic!("{stop:?}") }
}

fn remarks(heard: &Heard) -> Vec<&str> {
    let reports = heard.others.iter();
    reports
        .filter_map(
            |it| if let Report::Remarked { text } = it { Some(text.as_str()) } else { None },
        )
        .collect()
}

#[tokio::test]
async fn what_is_wrong_from_the_start_is_told_with_what_to_do() {
    for (manner, code, words) in [
        ("version", "misconfigured", "speaks version 7 of ACP, and version 1 is spoken here"),
        ("login", "login_needed", "log in"),
        ("banner", "garbled", "Welcome to the agent!"),
        ("ends", "exited", "there is no licence"),
    ] {
        let stand = Stand::new(manner);
        let (found, message) = stand.fault(stand.request()).await;
        assert!(found == code && message.contains(words), "{manner}: {found}: {message}");
        assert!(message.contains("acp:fake --acp"), "{message}");
    }
    // Some let anybody in, and have no models for them.
    let stand = Stand::new("stranger");
    let conversation = stand.open().await;
    let (_, stop) = exchange(conversation.as_ref(), "DO fail service failure").await;
    assert_eq!(failure(&stop).0, "login_needed", "{stop:?}");
    let stand = Stand::of(PathBuf::from("/nowhere/agent"), "");
    assert_eq!(stand.fault(stand.request()).await.0, "not_installed");
}

#[tokio::test]
async fn a_conversation_is_continued_or_it_is_said_why_not() {
    let stand = Stand::new("");
    let resume = |id: &str| OpenRequest { resume: Some(id.into()), ..stand.request() };
    let conversation = stand.try_open(resume("fake-1")).await.unwrap();
    let (heard, stop) = exchange(conversation.as_ref(), "DO echo").await;
    assert_eq!(text(&stop), "DO echo", "{heard:?}");
    assert_eq!(heard.said, ["DO echo"], "what was said before is not said again");
    assert_eq!(stand.fault(resume("fake-2")).await.0, "conversation_gone");
    // It is open already.
    assert_eq!(stand.fault(resume("fake-1")).await.0, "misused");
    in_time("closing", conversation.close()).await;
    let again = stand.try_open(resume("fake-1")).await.unwrap();
    drop(again);

    let stand = Stand::new("forgets");
    let resume = OpenRequest { resume: Some("fake-1".into()), ..stand.request() };
    assert_eq!(stand.fault(resume).await.0, "conversation_gone");
    // Whoever begins a new one instead hears why.
    let (heard, _) = exchange(stand.open().await.as_ref(), "DO echo").await;
    let said = remarks(&heard);
    assert!(said.iter().any(|it| it.contains("cannot continue a conversation")), "{said:?}");
}

/// Some agents count their sessions from one in every program.
#[tokio::test]
async fn a_new_conversation_is_new_even_if_it_is_called_as_another() {
    let stand = Stand::new("");
    let kind = || OpenRequest { system_prompt: "Be kind.".to_owned(), ..stand.request() };
    let first = stand.try_open(kind()).await.unwrap();
    let second = stand.try_open(kind()).await.unwrap();
    for conversation in [&first, &second] {
        let (_, stop) = exchange(conversation.as_ref(), "one").await;
        assert!(text(&stop).contains("Be kind."), "{stop:?}");
    }
    in_time("closing", first.close()).await;
    in_time("closing", second.close()).await;
    let third = stand.try_open(kind()).await.unwrap();
    let (_, stop) = exchange(third.as_ref(), "one").await;
    assert!(text(&stop).contains("Be kind."), "{stop:?}");
}

/// A form, what is asked and answered, and what the agent hears.
type Dialogue<'a> = (&'a str, &'a [(&'a str, &'a [&'a str])], &'a str);

#[tokio::test]
async fn forms_are_questions() {
    let stand = Stand::new("");
    let conversation = stand.open().await;
    let table: [Dialogue<'_>; 6] = [
        ("one", &[("Which colour?", &["Blue"])], r#"{"action":"accept","content":{"colour":"b"}}"#),
        (
            "other",
            &[("Which colour?", &["violet"])],
            r#"{"action":"accept","content":{"colour_other":"violet"}}"#,
        ),
        (
            "several",
            &[
                ("Which colour?\nColour", &["Red"]),
                ("Which sizes?", &["s", "l"]),
                ("count", &["3"]),
                ("fast", &["Yes"]),
            ],
            r#"{"action":"accept","content":{"colour":"r","count":3,"fast":true,"sizes":["s","l"]}}"#,
        ),
        ("text", &[("Which colour?", &["any"])], r#"{"action":"accept","content":{"name":"any"}}"#),
        ("nothing", &[("Which colour?", &["Yes"])], r#"{"action":"accept","content":{}}"#),
        ("nothing", &[("Which colour?", &["No"])], r#"{"action":"decline"}"#),
    ];
    for (form, dialogue, expected) in table {
        let mut listener = send(conversation.as_ref(), &format!("DO elicit {form}")).await;
        for (question, chosen) in dialogue {
            let (id, asked) = listener.until_asked().await;
            assert_eq!(&asked.question, question);
            assert_eq!(asked.multi_select, asked.question == "Which sizes?");
            assert_eq!(
                asked.free_text,
                ["other", "text"].contains(&form) || asked.question == "count"
            );
            let answer = Answer { chosen: chosen.iter().map(|text| (*text).to_owned()).collect() };
            in_time("answering", conversation.answer(id, answer)).await.unwrap();
        }
        let (_, stop) = listener.until_end().await;
        assert!(text(&stop).contains(&format!(r#""result":{expected}"#)), "{form}: {stop:?}");
    }
}

#[tokio::test]
async fn nobody_is_asked_where_nobody_is_or_the_turn_is_over() {
    let stand = Stand::new("");
    let request = OpenRequest { questions: false, ..stand.request() };
    let conversation = stand.try_open(request).await.unwrap();
    let (_, stop) = exchange(conversation.as_ref(), "DO elicit one").await;
    assert!(text(&stop).contains(r#""action":"decline""#), "{stop:?}");
    drop(conversation);

    let stand = Stand::new("");
    let conversation = stand.open().await;
    let mut listener = send(conversation.as_ref(), "DO elicit one").await;
    let (id, _) = listener.until_asked().await;
    let second = in_time("sending", conversation.send("more".to_owned())).await;
    assert_eq!(second.map(drop).map_err(|error| error.code()), Err("misused"));
    in_time("interrupting", conversation.interrupt()).await;
    let answered = conversation.answer(id, Answer { chosen: vec!["Red".to_owned()] }).await;
    assert_eq!(answered.map_err(|error| error.code()), Err("misused"));
    let (heard, stop) = listener.until_end().await;
    assert_eq!(stop, Stop::Interrupted);
    let is_known = heard.said.iter().any(|said| said.starts_with("it was over before"));
    assert!(is_known, "an agent knows why its form is not answered: {heard:?}");
}

#[tokio::test]
async fn what_is_unknown_is_passed_over_and_every_end_is_told() {
    let stand = Stand::new("");
    let conversation = stand.open().await;
    let (_, stop) = exchange(conversation.as_ref(), "DO wonder").await;
    assert_eq!(text(&stop), "-32601");
    let (heard, stop) = exchange(conversation.as_ref(), "DO plan").await;
    assert_eq!(text(&stop), "planned");
    let is_list = |report: &&Report| matches!(report, Report::Todos { items } if items.len() == 2);
    assert!(heard.others.iter().any(|report| is_list(&report)), "{heard:?}");
    for (wish, code, words) in [
        ("stop overheated", "rejected", "overheated"),
        ("stop refusal", "refused", "so far"),
        ("stop max_tokens", "rejected", "longer"),
        ("fail Incorrect API key provided", "login_needed", "log in"),
        ("fail Overloaded", "overloaded", "overloaded"),
        ("", "rejected", "without a word"),
        ("garble", "garbled", "this is no JSON"),
        ("exit", "exited", "it was too much"),
        // And another program goes on.
        ("stop overheated", "rejected", "overheated"),
    ] {
        let (_, stop) = exchange(conversation.as_ref(), &format!("DO {wish}")).await;
        let (found, message) = failure(&stop);
        assert!(found == code && message.contains(words), "{wish}: {stop:?}");
    }
    let (_, stop) = exchange(conversation.as_ref(), "DO stop cancelled").await;
    assert_eq!(stop, Stop::Interrupted);
}

#[tokio::test]
async fn an_agent_that_does_not_stop_is_ended_and_goes_on_later() {
    let stand = Stand::new("");
    let conversation = stand.open().await;
    let listener = send(conversation.as_ref(), "DO hang").await;
    in_time("interrupting", conversation.interrupt()).await;
    assert_eq!(listener.until_end().await.1, Stop::Interrupted);
    let (_, stop) = exchange(conversation.as_ref(), "DO echo").await;
    assert_eq!(text(&stop), "DO echo");
}

/// A prompt that was surely not read is sent again; the program had ended, and we did not know.
#[tokio::test]
async fn a_prompt_that_nobody_has_read_is_sent_again() {
    let stand = Stand::new("");
    let conversation = stand.open().await;
    for _ in 0..2 {
        assert_eq!(text(&exchange(conversation.as_ref(), "DO leave").await.1), "bye");
    }
    assert_eq!(text(&exchange(conversation.as_ref(), "DO echo").await.1), "DO echo");
}

#[tokio::test]
async fn a_prompt_that_nobody_has_read_is_sent_again_only_once() {
    let stand = Stand::new("deaf");
    let conversation = stand.open().await;
    let (_, stop) = exchange(conversation.as_ref(), "DO echo").await;
    assert_eq!(failure(&stop).0, "exited", "{stop:?}");
}

/// An agent that does not answer holds up nobody who has stopped waiting for it.
#[tokio::test]
async fn a_model_that_is_never_taken_does_not_hold_up_the_end() {
    let stand = Stand::new("stubborn");
    let conversation = stand.open().await;
    {
        let setting = conversation.set_model("two".to_owned());
        tokio::select! {
            biased;
            set = setting => panic!("it was taken: {set:?}"),
            () = std::future::ready(()) => {}
        }
    }
    let (_, stop) = exchange(conversation.as_ref(), "DO echo").await;
    assert_eq!(text(&stop), "DO echo");
    in_time("closing", conversation.close()).await;
}

#[tokio::test]
async fn an_agent_is_told_once_what_it_is_and_a_slash_is_no_command() {
    let stand = Stand::new("");
    let be = |instructions: &str, resume: Option<&str>| OpenRequest {
        system_prompt: instructions.to_owned(),
        resume: resume.map(Into::into),
        ..stand.request()
    };
    let first = stand.try_open(be("Be kind.", None)).await.unwrap();
    let (_, stop) = exchange(first.as_ref(), "one").await;
    assert!(text(&stop).contains("<instructions>\nBe kind.\n</instructions>"), "{stop:?}");
    assert!(text(&stop).ends_with("|one"), "{stop:?}");
    assert_eq!(text(&exchange(first.as_ref(), "two").await.1), "two");
    let (_, stop) = exchange(first.as_ref(), "/three").await;
    assert_eq!(text(&stop), "The message, word for word:\n|/three");
    in_time("closing", first.close()).await;

    let same = stand.try_open(be("Be kind.", Some("fake-1"))).await.unwrap();
    assert_eq!(text(&exchange(same.as_ref(), "four").await.1), "four");
    in_time("closing", same.close()).await;
    let other = stand.try_open(be("Be quick.", Some("fake-1"))).await.unwrap();
    let (_, stop) = exchange(other.as_ref(), "five").await;
    assert!(text(&stop).contains("Be quick."), "{stop:?}");
}

#[tokio::test]
async fn tools_are_allowed_unless_the_agent_is_restricted_which_is_said_once() {
    let stand = Stand::new("");
    let conversation = stand.open().await;
    let went = |heard: &Heard| heard.tools.iter().map(|used| used.ok).collect::<Vec<_>>();
    let (heard, stop) = exchange(conversation.as_ref(), "DO use execute touch x").await;
    assert_eq!((went(&heard), text(&stop)), (vec![true], ""));
    in_time("closing", conversation.close()).await;

    let mut request = stand.request();
    request.tools.only = Some(vec![ToolRule::read("bash(git:*)"), ToolRule::read("read")]);
    let conversation = stand.try_open(request).await.unwrap();
    for (wish, is_allowed) in [
        ("execute git status", true),
        ("execute rm x", false),
        ("read x", true),
        ("edit x", false),
        ("other x", false),
    ] {
        let (heard, stop) = exchange(conversation.as_ref(), &format!("DO use {wish}")).await;
        assert_eq!(went(&heard), [is_allowed], "{wish}: {heard:?}");
        // One that was refused is told why, and says what it was told.
        assert_eq!(text(&stop).contains("The tool was not used"), !is_allowed, "{wish}: {stop:?}");
        let told =
            remarks(&heard).iter().any(|it| it.contains("restrict only what the agent asks"));
        assert_eq!(told, wish == "execute git status", "{:?}", remarks(&heard));
    }
}

#[tokio::test]
async fn what_is_asked_for_counts_and_not_only_what_was_told_before() {
    let stand = Stand::new("two-faced");
    let mut request = stand.request();
    request.tools.only = Some(vec![ToolRule::read("read")]);
    let conversation = stand.try_open(request).await.unwrap();
    let (heard, _) = exchange(conversation.as_ref(), "DO use execute rm x").await;
    assert_eq!(heard.tools.iter().map(|used| used.ok).collect::<Vec<_>>(), [false], "{heard:?}");
}

#[tokio::test]
async fn models_are_listed_and_chosen_by_their_names() {
    let stand = Stand::new("");
    let place = Place {
        workspace: stand.workspace.path().to_owned(),
        inherit: atomic_backend::Inherit::None,
    };
    let models = in_time("listing", stand.backend.models(place)).await.unwrap();
    let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    let with = |model: &str| OpenRequest { model: Some(model.to_owned()), ..stand.request() };
    assert_eq!(stand.fault(with("three")).await.0, "model_unknown");
    let conversation = stand.try_open(with("two")).await.unwrap();
    let three = in_time("changing", conversation.set_model("three".to_owned())).await;
    assert_eq!(three.map_err(|error| error.code()), Err("model_unknown"));
    in_time("changing", conversation.set_model("one".to_owned())).await.unwrap();
    let compacted = in_time("summarising", conversation.compact()).await;
    assert!(compacted.unwrap_err().message.contains("no command `compact`"));
}

#[tokio::test]
async fn what_was_spent_is_counted_from_the_sums_that_are_told() {
    let stand = Stand::new("");
    let conversation = stand.open().await;
    let mut turn = in_time("sending", conversation.send("DO echo".to_owned())).await.unwrap();
    let mut spent = vec![];
    while let Some(event) = turn.recv().await {
        if let TurnEvent::Reported(Report::Spent(usage)) = event {
            spent.push((usage.input_tokens, usage.output_tokens));
        }
    }
    let (heard, _) = exchange(conversation.as_ref(), "DO echo").await;
    spent.extend(heard.spent.iter().map(|usage| (usage.input_tokens, usage.output_tokens)));
    assert_eq!(spent, [(10, 5), (0, 0)], "the agent's sum has not grown");
}
