//! Functions that take time: what they may ask of the world, and that nothing of them is left.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use atomic_event::{Intent, StepError, StepResult};
use atomic_graph::{Graph, Node};
use atomic_runner::Outcome;
use atomic_workflow::{
    Action, Function, Functions, Host, Initial, LogLevel, StateShape, WorkCall, Workflow,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::runner_stand::{Stand, on_one_thread};

fn working(function: Function, shape: impl FnOnce(Node) -> Node) -> Stand {
    let node = Action::Function { call: "work".into() }.node("work");
    let mut stand = Stand::playing(json!({"turn": []}));
    stand.workflow = Workflow {
        name: "work".into(),
        aliases: vec![],
        description: String::new(),
        sessions_dir: ".ralph/sessions".to_owned(),
        graph: Graph::starting_at("work").node(shape(node)),
        functions: Functions::default().with("work", function),
        initial_state: Initial::made(|_| [("n".into(), json!(4))].into()),
        source: None,
        state_shape: StateShape::default(),
    };
    stand
}

/// Makes these requests one after the other; its output is what came of each.
fn asking(requests: Vec<(&'static str, Value)>) -> Function {
    Function::work(move |_: WorkCall, host: Arc<dyn Host>| {
        let requests = requests.clone();
        async move {
            let mut all = vec![];
            for (name, args) in requests {
                all.push(match host.request(name, args).await {
                    Ok(value) => value,
                    Err(problem) => json!({ "problem": problem }),
                });
            }
            Ok(StepResult::output(json!(all)))
        }
    })
}

fn of_type(stand: &Stand, kind: &str) -> Vec<Value> {
    stand.facts().into_iter().filter(|fact| fact["type"] == kind).collect()
}

fn output(stand: &Stand) -> Value {
    let outcome = on_one_thread(stand.live()).unwrap();
    assert_eq!(outcome, Outcome::Completed);
    of_type(stand, "step_finished")[0]["result"]["output"].clone()
}

/// The tools that were used, as they are recorded.
fn tools(stand: &Stand) -> Vec<String> {
    let reports = of_type(stand, "step_reported");
    let told = |fact: &Value| {
        let report = &fact["report"];
        let ok = if report["ok"] == true { "" } else { " (failed)" };
        let text = |key: &str| report[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}{ok}", text("tool"), text("summary"))
    };
    reports.iter().map(told).collect()
}

#[test]
fn commands_and_files_of_the_project_can_be_used() {
    let stand = working(
        asking(vec![
            (
                "shell",
                json!({"command": "cat; echo $X; echo err >&2; exit 3", "stdin": "in\n", "env": {"X": "x"}}),
            ),
            ("writeFile", json!({"path": "new/deep/file.txt", "text": "secret text"})),
            ("readFile", json!({"path": "new/deep/../deep/file.txt"})),
            ("exists", json!({"path": "new/deep/file.txt"})),
            ("exists", json!({"path": "nothing"})),
            ("shell", json!({"command": "pwd | sed 's|.*/||'", "cwd": "new"})),
            ("glob", json!({"pattern": "**/*.txt"})),
        ]),
        |node| node,
    );
    fs::create_dir_all(stand.work().join(".git")).unwrap();
    fs::write(stand.work().join(".git/x.txt"), "").unwrap();
    fs::write(stand.work().join("top.txt"), "").unwrap();
    let expected = json!([
        {"code": 3, "stdout": "in\nx\n", "stderr": "err\n"}, null, "secret text", true, false,
        {"code": 0, "stdout": "new\n", "stderr": ""}, ["new/deep/file.txt", "top.txt"],
    ]);
    assert_eq!(output(&stand), expected);
    let recorded = [
        "shell cat; echo $X; echo err >&2; exit 3 (failed)",
        "writeFile new/deep/file.txt (11 bytes)",
        "readFile new/deep/../deep/file.txt",
        "exists new/deep/file.txt",
        "exists nothing",
        "shell pwd | sed 's|.*/||'",
        "glob **/*.txt",
    ];
    assert_eq!(tools(&stand), recorded);
    let journal = String::from_utf8(stand.journal()).unwrap();
    assert_eq!(journal.matches("secret text").count(), 1, "only in what the step returned");
}

#[test]
fn what_is_outside_the_project_cannot_be_reached() {
    let stand = working(
        asking(vec![
            ("readFile", json!({"path": "../outside.txt"})),
            ("readFile", json!({"path": "/etc/hostname"})),
            ("readFile", json!({"path": "link.txt"})),
            ("readFile", json!({"path": "folder/outside.txt"})),
            ("writeFile", json!({"path": "folder/new.txt", "text": ""})),
            ("writeFile", json!({"path": "dangling", "text": ""})),
            ("writeFile", json!({"path": "../new.txt", "text": ""})),
            ("exists", json!({"path": "../outside.txt"})),
            ("glob", json!({"pattern": "../*"})),
            ("glob", json!({"pattern": "folder/**"})),
            ("shell", json!({"command": "true", "cwd": ".."})),
            ("env", json!({"name": "SOME_SECRET"})),
            ("readFile", json!({"file": "a"})),
            ("dance", json!({})),
        ]),
        |node| node,
    );
    let around = stand.work().parent().unwrap().to_owned();
    fs::write(around.join("outside.txt"), "outside").unwrap();
    symlink(around.join("outside.txt"), stand.work().join("link.txt")).unwrap();
    symlink(&around, stand.work().join("folder")).unwrap();
    symlink(around.join("not-there"), stand.work().join("dangling")).unwrap();
    let problem = |text: &str| json!({ "problem": text });
    let outside = |path: &str| problem(&format!("`{path}` is outside the project"));
    let expected = json!([
        outside("../outside.txt"),
        outside("/etc/hostname"),
        outside("link.txt"),
        outside("folder/outside.txt"),
        outside("folder/new.txt"),
        problem("`dangling` leads nowhere"),
        outside("../new.txt"),
        outside("../outside.txt"),
        problem("the pattern `../*` leads outside the project"),
        [],
        outside(".."),
        problem("the variable `SOME_SECRET` may not be read; add it to the setting `env_allow`"),
        problem("`readFile`: missing field `path`"),
        problem("nothing here is called `dance`"),
    ]);
    assert_eq!(output(&stand), expected);
    assert!(!around.join("new.txt").exists() && !around.join("not-there").exists());
}

#[test]
fn variables_that_are_allowed_can_be_read() {
    let mut stand = working(
        asking(vec![
            ("env", json!({"name": "CARGO_MANIFEST_DIR"})),
            ("env", json!({"name": "PATH"})),
            ("env", json!({"name": "NOT_SET_AT_ALL"})),
        ]),
        |node| node,
    );
    stand.settings.env_allow = vec!["CARGO_MANIFEST_DIR".to_owned(), "NOT_SET_AT_ALL".to_owned()];
    let expected = json!([env!("CARGO_MANIFEST_DIR"), std::env::var("PATH").unwrap(), null]);
    assert_eq!(output(&stand), expected);
}

/// A server that answers one request and gives what it was asked.
fn server(answer: &'static str) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = vec![0; 4096];
        let mut text = String::new();
        while !text.contains("\r\n\r\nbody") {
            let read = stream.read(&mut heard).unwrap();
            text.push_str(&String::from_utf8_lossy(&heard[..read]));
        }
        stream.write_all(answer.as_bytes()).unwrap();
        text
    });
    (address, asked)
}

#[test]
fn the_network_can_be_asked_and_no_secret_is_recorded() {
    let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\nx-it: is\r\n\r\nhello";
    let (address, asked) = server(answer);
    let with_secret = format!("{address}/path?token=hidden");
    let nobody = "http://127.0.0.1:1/x?token=hidden";
    let fetch = json!({"url": with_secret, "method": "post", "headers": {"authorization": "hidden"},
                       "body": "body"});
    let stand =
        working(asking(vec![("fetch", fetch), ("fetch", json!({"url": nobody}))]), |node| node);
    let output = output(&stand);
    assert_eq!((&output[0]["status"], &output[0]["text"]), (&json!(404), &json!("hello")));
    assert_eq!(output[0]["headers"]["x-it"], "is");
    let problem = output[1]["problem"].as_str().unwrap();
    assert!(problem.starts_with("http://127.0.0.1:1/x did not answer: "), "{problem}");
    let asked = asked.join().unwrap();
    assert!(asked.starts_with("POST /path?token=hidden HTTP/1.1"), "{asked}");
    assert!(asked.contains("authorization: hidden"), "{asked}");
    let journal = String::from_utf8(stand.journal()).unwrap();
    assert!(!journal.contains("hidden"), "{journal}");
    assert_eq!(tools(&stand)[0], format!("fetch POST {address}/path"));
}

#[test]
fn what_is_odd_is_recorded_and_what_is_only_said_is_not() {
    let says = Function::work(|call: WorkCall, host: Arc<dyn Host>| async move {
        host.log(LogLevel::Info, "only said");
        host.log(LogLevel::Warn, "odd");
        let n = call.state.get("n").unwrap().as_u64().unwrap();
        Ok(StepResult::output(n).set("n", n + u64::from(call.attempt)))
    });
    let stand = working(says, |node| node);
    assert_eq!(output(&stand), 4);
    assert_eq!(of_type(&stand, "step_finished")[0]["result"]["patch"], json!({"n": 5}));
    let notes: Vec<Value> = of_type(&stand, "noted").iter().map(|f| f["text"].clone()).collect();
    assert_eq!(notes, ["work#1: odd"]);
}

/// Starts two commands that do not end by themselves. Each writes its process id to a file, which
/// gets its name when it is complete: the first command is ended as soon as its file exists.
fn endless() -> Function {
    Function::work(|_: WorkCall, host: Arc<dyn Host>| async move {
        let forgotten = host
            .request("shell", json!({"command": "echo $$ > new; mv new forgotten; sleep 1000"}));
        let command = "echo $$ > own; mv own pid; (setsid sleep 1000 &) ; sleep 1000";
        let wanted = host.request("shell", json!({ "command": command }));
        while host.request("exists", json!({"path": "forgotten"})).await != Ok(json!(true)) {}
        drop(forgotten);
        wanted.await.map(StepResult::output).map_err(|problem| StepError::new("x", problem))
    })
}

fn is_gone(stand: &Stand, file: &str) -> bool {
    let pid = fs::read_to_string(stand.work().join(file)).unwrap();
    !Path::new("/proc").join(pid.trim()).exists()
}

#[test]
fn when_its_time_is_up_nothing_of_it_is_left() {
    let stand = working(endless(), |node| node.timeout_ms(1_500));
    let Outcome::Failed { error, .. } = on_one_thread(stand.live()).unwrap() else { panic!() };
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("timeout", "it took longer than 1.5 s and was stopped")
    );
    assert!(is_gone(&stand, "pid") && is_gone(&stand, "forgotten"));
}

#[test]
fn a_pause_stops_it_and_a_resume_runs_it_again() {
    let stand = working(endless(), |node| node);
    let outcome = on_one_thread(async {
        let (run, _show) = stand.start().unwrap();
        let (wishes, intents) = mpsc::channel(1);
        let files = ["pid", "forgotten"].map(|name| stand.work().join(name));
        let is_empty = |file: &PathBuf| fs::read_to_string(file).unwrap_or_default().is_empty();
        let pause = async {
            while files.iter().any(is_empty) {
                tokio::task::yield_now().await;
            }
            wishes.send(Intent::Pause { reason: "a test".to_owned() }).await.unwrap();
        };
        let (ended, ()) = tokio::join!(run.drive(intents), pause);
        ended.unwrap().outcome
    });
    assert_eq!(outcome, Outcome::Paused);
    assert!(is_gone(&stand, "pid") && is_gone(&stand, "forgotten"));

    let mut again = stand;
    again.workflow.functions = Functions::default().with("work", asking(vec![]));
    assert_eq!(on_one_thread(again.live()).unwrap(), Outcome::Completed);
    let starts: Vec<Value> =
        of_type(&again, "step_started").iter().map(|f| f["how"].clone()).collect();
    assert_eq!(starts, ["first", "run_again"]);
}

#[test]
fn a_long_output_is_cut_and_that_is_said() {
    let prints = Function::work(|_: WorkCall, host: Arc<dyn Host>| async move {
        let command = "head -c 3000000 /dev/zero | tr '\\0' x; head -c 10 /dev/zero >&2";
        let ran = host.request("shell", json!({ "command": command })).await.unwrap();
        let text = ran["stdout"].as_str().unwrap();
        let first: String = text.lines().next().unwrap().to_owned();
        Ok(StepResult::output(json!([first, ran["stderr"].as_str().unwrap().len()])))
    });
    let stand = working(prints, |node| node);
    assert_eq!(output(&stand), json!(["[the first 1951424 bytes were left out]", 10]));
}

#[test]
fn a_run_whose_state_cannot_be_made_does_not_start() {
    let mut stand = working(asking(vec![]), |node| node);
    stand.workflow.initial_state = Initial::Made(Arc::new(|launch| {
        let dir = launch.session_dir.display();
        Err(StepError::new("state", format!("no state for {} in {dir}", launch.prompt)))
    }));
    let error = stand.start().err().unwrap().to_string();
    let begin = "the state of the run could not be made: no state for Write the files in ";
    assert!(error.starts_with(begin) && error.contains(".ralph/sessions/"), "{error}");
    assert!(stand.session().is_none());
}
