//! `atomic check` and `atomic graph`, and which workflow is meant.

use std::fs;

use serde_json::{Value, json};

use crate::engine::{Project, most_at_once, tool, with};
use crate::env::ran;

/// Two files with most of what can be wrong.
fn bad() -> Project {
    let project = Project::new();
    project.write(
        "bad.json",
        r#"{
  "name": "bad",
  "nodes": [
    {"type": "agent", "id": "a", "agent": "wroker", "promt": "x"},
    {"type": "tool", "id": "b"},
    {"type": "tol", "id": "c"},
    {"type": "loop", "id": "d", "maxIterations": 0, "node": {"type": "tool", "id": "t", "command": "x"}},
    {"type": "subgraph", "id": "e", "workflow": "rolf"},
    {"type": "tool", "id": "f", "command": "x", "timeoutMs": "soon"},
    {"type": "tool", "id": "b", "execute": {"$fn": 1}},
    {"type": "tool", "id": "g", "command": "x", "onError": {"action": "goto", "node": "nowhere"}}
  ],
  "edges": [{"from": "a", "to": "nowhere"}],
  "edges": []
}
"#,
    );
    project.write("syntax.json", "{\n  \"nodes\": [\n    {\"type\": \"tool\",}\n  ]\n}\n");
    project.write(
        "odd.json",
        r#"{
  "state": {"found": []},
  "nodes": [
    {"type": "tool", "id": "a", "command": "x"},
    {"type": "tool", "id": "b", "command": "x"},
    {"type": "tool", "id": "c", "command": "x"}
  ],
  "edges": [{"from": "a", "to": "b"}],
  "nodeDescriptions": {"z": "Not there"}
}
"#,
    );
    project
}

#[test]
fn everything_that_is_wrong_is_told_at_once_with_its_place() {
    let project = bad();
    let checked = project.env.run(["check", "bad.json", "syntax.json", "odd.json"]);
    insta::assert_snapshot!(project.shown(&checked), @r#"
    bad.json:4:53: ATM611 error at nodes[0].promt: an agent node has no "promt" (did you mean "prompt"?)
      help: write "prompt", or remove it
    bad.json:5:5: ATM612 error at nodes[1]: a tool node needs "command"
      help: add "command": what to run in a shell
    bad.json:6:14: ATM614 error at nodes[2].type: "tol" is not known here (did you mean "tool"?)
      help: write one of "agent", "subagent", "parallelSubagent", "skill", "command", "tool", "custom", "decision", "parallel", "each", "loop", "subgraph", "wait", "askUser", "taskLoop", "criteriaLoop", "clearContext", "contextMonitor"
    bad.json:8:49: ATM404 error at nodes[4].workflow: Workflow not found: rolf
      help: add a workflow "rolf"
    bad.json:9:62: ATM613 error at nodes[5].timeoutMs: it must be a whole number, but it is a text
      help: write a number, without quotes
    bad.json:10:44: ATM621 error at nodes[6].execute: nobody can evaluate function 1
      help: a file of JSON has no functions: use a template, a shell command or a condition such as {"key": "done", "equals": true}, or write the workflow in TypeScript
    bad.json:14:3: ATM603 error at edges: "edges" is already said above
      help: remove one of the two
    bad.json:10:5: ATM103 error at the graph (nodes[6]): the id "b" already belongs to nodes[1]
      help: rename one of the two, and the edges that mean it
    bad.json:13:13: ATM105 error at the graph (edges[0]): the edge from "a" leads to "nowhere", which does not exist
      help: use one of "a", "b", "c", "d", "e", "f", "g", or add a node "nowhere"
    bad.json:11:60: ATM202 error at g (onError): after a failure it goes to "nowhere", which does not exist
      help: use one of "a", "b", "c", "d", "e", "f", "g", or add a node "nowhere"
    bad.json:10:5: ATM108 error at b: no way leads here from the start
      help: add an edge to it, name it where a node may go to, or remove it
    bad.json:6:5: ATM108 error at c: no way leads here from the start
      help: add an edge to it, name it where a node may go to, or remove it
    bad.json:7:5: ATM108 error at d: no way leads here from the start
      help: add an edge to it, name it where a node may go to, or remove it
    bad.json:8:5: ATM108 error at e: no way leads here from the start
      help: add an edge to it, name it where a node may go to, or remove it
    bad.json:9:5: ATM108 error at f: no way leads here from the start
      help: add an edge to it, name it where a node may go to, or remove it
    bad.json:11:5: ATM108 error at g: no way leads here from the start
      help: add an edge to it, name it where a node may go to, or remove it
    bad.json:7:50: ATM301 error at d (maxIterations): it goes round for ever: it has no limit and no `until`
      help: set `until`, or `maxIterations` to 1 or more
    bad.json:4:43: ATM401 error at a (action): Agent not found: "wroker" (did you mean "worker"?)
      help: use "worker", or add "wroker" to what is there
    bad.json: 18 errors
    syntax.json:3:21: ATM601 error at the file: this is not JSON: trailing comma
      help: mend it; a comma too many or too few and missing quotes are common
    syntax.json: 1 error
    odd.json:6:5: ATM108 error at c: no way leads here from the start
      help: add an edge to it, name it where a node may go to, or remove it
    odd.json:9:24: ATM617 warning at nodeDescriptions.z: there is no node "z" to describe
      help: write the id of a node, or remove it
    odd.json: 1 error, 1 warning
    --- exit code 1
    "#);
}

#[test]
fn a_bad_file_is_not_run() {
    let project = bad();
    for file in ["bad.json", "syntax.json", "odd.json"] {
        let checked = project.env.run(["check", file]);
        let (problems, verdict) = checked.stdout.trim_end().rsplit_once('\n').unwrap();
        assert!(verdict.starts_with(&format!("{file}: ")), "{verdict}");
        for more in [&[][..], &["--plan"]] {
            let refused = project.run_file(file, more);
            assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
            let told = refused.stderr.strip_prefix("error: ").unwrap().trim_end();
            assert!(problems.starts_with(told), "the same messages:\n{told}\n---\n{problems}");
        }
    }
    assert!(!project.env.work().join(".atomic").exists(), "nothing was created");
    assert!(!project.env.outside("home/.atomic").exists(), "nothing was noted");
}

#[test]
fn a_good_file_is_checked_and_run_however_it_is_saved() {
    let text = json!({"nodes": [tool("hi", "echo hi")]}).to_string().replace(',', ",\n ");
    let dos = text.replace('\n', "\r\n");
    for text in [format!("\u{feff}{text}"), format!("\u{feff}{dos}"), dos, text] {
        let project = Project::new();
        project.write("good.json", &text);
        let checked = project.env.run(["check", "good.json"]);
        assert_eq!(checked.stdout, "good.json: ok\n", "{text:?}: {checked:?}");
        assert_eq!((checked.code, checked.stderr.as_str()), (Some(0), ""), "{text:?}");
        let done = project.run_file("good.json", &[]);
        assert_eq!(done.code, Some(0), "{text:?}: {done:?}");
    }
    // The place of a problem is the same, too.
    let project = Project::new();
    project.write("bad.json", "\u{feff}{\"nodes\": [\r\n  {\"type\": \"tol\"}\r\n]}\r\n");
    let checked = project.env.run(["check", "bad.json"]);
    assert!(checked.stdout.starts_with("bad.json:2:12: ATM614 "), "{}", checked.stdout);
}

#[test]
fn what_is_no_workflow_is_said_to_be_none() {
    let project = Project::new();
    fs::create_dir(project.env.work().join("folder.json")).unwrap();
    fs::write(project.env.work().join("bytes.json"), b"\xff\xfe{}").unwrap();
    let table = [
        ("missing.json", 1, "missing.json: the workflow cannot be read: No such file or directory"),
        ("no/such/file", 1, "no/such/file: the workflow cannot be read: No such file or directory"),
        (
            "folder.json",
            1,
            "folder.json: the workflow cannot be read: is a folder, not a regular file",
        ),
        ("bytes.json", 1, "bytes.json: the workflow cannot be read: is not UTF-8"),
        (".", 2, "Workflow not found: .\n"),
        ("rlaph", 2, "Workflow not found: rlaph (did you mean \"ralph\"?)\n"),
    ];
    for (what, code, message) in table {
        let refused = project.run_file(what, &[]);
        assert_eq!(refused.code, Some(code), "{what}: {refused:?}");
        let told = refused.stderr;
        assert!(told.starts_with(&format!("error: {message}")), "{what}: {told}");
        let checked = project.env.run(["check", what]);
        // Anything can be checked by its name, not only workflows.
        let told_there = match what {
            "rlaph" => "error: Command not found: \"rlaph\" (did you mean \"ralph\"?)\n",
            _ => told.as_str(),
        };
        assert_eq!((checked.code, checked.stderr.as_str()), (Some(1), told_there), "{what}");
        let drawn = project.env.run(["graph", what]);
        assert_eq!((drawn.code, &drawn.stderr), (Some(code), &told), "{what}");
    }
    assert!(!project.env.work().join(".atomic").exists(), "nothing was created");
}

/// A workflow that says who it is.
fn says(text: &str) -> Value {
    json!({"nodes": [tool("say", &format!("echo {text}"))]})
}

/// What a workflow says that is run by this name.
fn said(project: &Project, name: &str) -> String {
    let done = project.run_file(name, &["--trust"]);
    assert_eq!(done.code, Some(0), "{name}: {done:?}");
    done.stdout.lines().rev().nth(1).unwrap().to_owned()
}

#[test]
fn a_name_means_the_projects_workflow_then_the_users_then_the_built_in_one() {
    let project = Project::new();
    let home = project.env.outside("home/.atomic/workflows");
    fs::create_dir_all(&home).unwrap();
    for name in ["ralph", "mine", "ours"] {
        fs::write(home.join(format!("{name}.json")), says("user").to_string()).unwrap();
    }
    assert_eq!(["ralph", "mine", "ours"].map(|name| said(&project, name)), ["user"; 3]);
    project.write(".atomic/workflows/ralph.json", &says("project").to_string());
    let named = with(says("named"), json!({"name": "mine", "aliases": ["m"]}));
    project.write(".atomic/workflows/anything.json", &named.to_string());
    let names = ["ralph", "mine", "m", "ours"];
    assert_eq!(names.map(|name| said(&project, name)), ["project", "named", "named", "user"]);
    assert_eq!(
        ["RALPH", "M", "Ours"].map(|name| said(&project, name)),
        ["project", "named", "user"]
    );
    assert!(!project.env.work().join(".ralph").exists(), "it really is another workflow");

    // Whatever the built-in one was called besides means the one that replaces it.
    assert_eq!(said(&project, "loop"), "project");
    // As it is typed in the chat, and as `doctor` says it can be.
    assert_eq!(["/mine", "workflow:m"].map(|name| said(&project, name)), ["named", "named"]);

    // A file that happens to have the name is not meant, unless it is said to be a path.
    project.write("ours", &says("file").to_string());
    assert_eq!(said(&project, "ours"), "user");
    assert_eq!(said(&project, "./ours"), "file");
    let checked = project.env.run(["check"]);
    let all = "mine: ok\nours: ok\nralph: ok\nsecond-opinion: ok\n\
         commands, skills and agents: ok\n";
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(0), all), "{checked:?}");
}

fn uses(workflow: &str, after: &str) -> String {
    let sub = json!({"type": "subgraph", "id": "sub", "workflow": workflow});
    json!({"nodes": [tool("before", "true"), sub, tool("after", after)]}).to_string()
}

#[test]
fn a_workflow_uses_another_by_name_and_goes_on_wherever_it_is_resumed() {
    let project = Project::new();
    project.write("flow.json", &uses("Child", "touch after"));
    let child = json!({"state": {"greeting": "hello"},
        "nodes": [tool("in", "echo {greeting} {prompt} > greeted; test -e ready")]});
    project.write(".atomic/workflows/child.json", &child.to_string());
    let failed = project.run_file("flow.json", &["--trust"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert_eq!(project.read("greeted"), "hello Do it\n");

    // What the files say by then does not matter, nor whether they are still there.
    project.write("flow.json", "{}");
    fs::remove_file(project.env.work().join(".atomic/workflows/child.json")).unwrap();
    project.write("ready", "");
    let mut elsewhere = project.env.atomic(["resume", "last", "--all"]);
    elsewhere.current_dir(project.env.outside("home"));
    let resumed = ran(elsewhere);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(project.env.work().join("after").exists());
    assert_eq!(
        project.story(),
        [
            "started before#1",
            "finished before#1",
            "started sub#1/in#1",
            "failed sub#1/in#1",
            "started sub#1/in#1",
            "finished sub#1/in#1",
            "started after#1",
            "finished after#1",
        ]
    );
}

#[test]
fn workflows_that_use_each_other_are_refused_with_the_chain() {
    let project = Project::new();
    project.write(".atomic/workflows/a.json", &uses("b", "true"));
    project.write(".atomic/workflows/b.json", &uses("a", "true"));
    project.write("self.json", &uses("self", "true"));
    fs::copy(
        project.env.work().join("self.json"),
        project.env.work().join(".atomic/workflows/self.json"),
    )
    .unwrap();
    for (name, chain) in [("a", "a -> b -> a"), ("b", "b -> a -> b"), ("self", "self -> self")] {
        let told = format!("Circular workflow dependency detected: {chain}\n");
        let refused = project.run_file(name, &[]);
        assert_eq!(refused.code, Some(1), "{name}: {refused:?}");
        assert!(refused.stderr.contains(&told), "{name}: {}", refused.stderr);
        let checked = project.env.run(["check", name]);
        assert_eq!(checked.code, Some(1), "{name}: {checked:?}");
        assert!(checked.stdout.contains(&told), "{name}: {}", checked.stdout);
    }
    assert_eq!(project.sessions(), Vec::<std::path::PathBuf>::new());
}

/// A decision, a fan of which one branch is stopped, and a node that fails.
fn drawn() -> Value {
    let stuck = tool("stuck", "exec sleep 1000");
    json!({"nodes": [
        with(tool("look", "echo good"), json!({"description": "Looking"})),
        {"type": "decision", "id": "which", "routes": [
            {"condition": {"says": {"node": "look", "text": "good"}}, "target": "race"},
        ], "fallback": "breaks"},
        {"type": "parallel", "id": "race", "strategy": "race", "branches": [tool("quick", "true"), stuck]},
        tool("breaks", "test -e ready"),
    ]})
}

fn graph(project: &Project, args: &[&str]) -> String {
    let drawn = project.env.run(["graph"].iter().chain(args));
    assert_eq!((drawn.code, drawn.stderr.as_str()), (Some(0), ""), "{args:?}: {drawn:?}");
    drawn.stdout
}

#[test]
fn a_file_is_drawn_in_four_ways() {
    let project = Project::new();
    project.write("flow.json", &drawn().to_string());
    insta::assert_snapshot!(graph(&project, &["flow.json"]), @r"
    each node at most `maxIterations`×
    ├─▸ look    work  Looking  → which
    ├─  which   decision  → race (look says “good”)  → breaks (otherwise)
    ├─  race    parallel · race: the first to end  → breaks
    │   ├─ [quick]  each node at most `maxIterations`×
    │   │  └─▸ quick  work  → end
    │   └─ [stuck]  each node at most `maxIterations`×
    │      └─▸ stuck  work  → end
    └─  breaks  work  → end
    ");
    insta::assert_snapshot!(graph(&project, &["flow.json", "--format", "mermaid"]), @r#"
    flowchart TD
        n1(("start")):::marker
        n2["look<br/>Looking"]
        n3{"which"}
        subgraph n4["race · parallel · race#58; the first to end"]
            direction TB
            subgraph n5["quick · each node at most #96;maxIterations#96;×"]
                direction TB
                n6(("start")):::marker
                n7["quick"]
                n8((("end"))):::marker
                n6 --> n7
                n7 --> n8
            end
            subgraph n9["stuck · each node at most #96;maxIterations#96;×"]
                direction TB
                n10(("start")):::marker
                n11["stuck"]
                n12((("end"))):::marker
                n10 --> n11
                n11 --> n12
            end
        end
        n13["breaks"]
        n14((("end"))):::marker
        n1 --> n2
        n3 -->|"look says “good”"| n4
        n3 -->|"otherwise"| n13
        n2 --> n3
        n4 --> n13
        n13 --> n14
        classDef marker fill:#57606a,stroke:#57606a,color:#ffffff
    "#);
    let dot = graph(&project, &["flow.json", "--format", "dot"]);
    assert!(dot.starts_with("digraph workflow {\n") && dot.trim_end().ends_with('}'), "{dot}");
    let ways = ["\"look\" -> \"which\";", "\"which\" -> \"breaks\" [label=\"otherwise\"];"];
    assert!(ways.iter().all(|way| dot.contains(way)), "{dot}");
    let svg = graph(&project, &["flow.json", "--format", "svg"]);
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
    for name in ["look", "Looking", "which", "race", "quick", "stuck", "breaks"] {
        assert!(svg.contains(&format!(">{name}<")), "{name}: {svg}");
    }
    // To a file instead.
    for format in ["tree", "mermaid", "dot", "svg"] {
        let printed = graph(&project, &["flow.json", "--format", format]);
        let nothing = graph(&project, &["flow.json", "--format", format, "--output", "picture"]);
        assert_eq!((nothing.as_str(), project.read("picture")), ("", printed), "{format}");
    }
    assert!(!project.env.work().join(".atomic").exists(), "nothing was started");
}

#[test]
fn a_built_in_workflow_is_drawn_in_four_ways() {
    let project = Project::new();
    let beginnings = [
        ("tree", "├─▸ planner "),
        ("mermaid", "flowchart TD\n"),
        ("dot", "digraph "),
        ("svg", "<svg "),
    ];
    for (format, beginning) in beginnings {
        let drawn = graph(&project, &["ralph", "--format", format]);
        assert!(drawn.starts_with(beginning), "{format}: {drawn}");
        for node in [
            "planner",
            "parse-tasks",
            "select-ready-tasks",
            "worker",
            "settle",
            "reviewer",
            "fixer",
        ] {
            assert!(drawn.contains(node), "{node} in {format}: {drawn}");
        }
    }
}

/// A broken workflow is drawn as far as it can be read: that helps to see what is wrong.
#[test]
fn a_broken_file_is_drawn_as_far_as_it_goes() {
    let project = bad();
    let drawn = project.env.run(["graph", "odd.json"]);
    assert_eq!(drawn.code, Some(1), "{drawn:?}");
    assert!(drawn.stdout.contains("a  ") && drawn.stdout.contains("→ b"), "{drawn:?}");
    assert!(drawn.stderr.contains("odd.json:"), "{drawn:?}");
    let refused = project.env.run(["graph", "syntax.json"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("syntax.json:3:"), "{}", refused.stderr);
}

/// The times of steps are left out.
fn without_times(text: &str) -> String {
    let word =
        |word: &str| if word.parse::<f64>().is_ok() { "N".to_owned() } else { word.to_owned() };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_session_is_drawn_with_how_far_it_has_come() {
    let project = Project::new();
    project.ends(&drawn(), 1);
    insta::assert_snapshot!(without_times(&graph(&project, &["last"])), @r"
    each node at most `maxIterations`×
    ├─▸ ✓ look    work  Looking  → which  ✓ · N s
    ├─  ✓ which   decision  → race (look says “good”)  → breaks (otherwise)  ✓ completed
    ├─  ✓ race    parallel · race: the first to end  → breaks  ✓ · N s
    │   ├─ [quick]  each node at most `maxIterations`×
    │   │  └─▸ ✓ quick  work  → end  ✓ · N s
    │   └─ [stuck]  each node at most `maxIterations`×
    │      └─▸ ⊘ stuck  work  → end  ⊘ · N s
    └─  ✗ breaks  work  → end  ✗ · N s
    ");
    let id = project.session().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(graph(&project, &[&id[..8]]), graph(&project, &["last"]));
    for (format, marks) in [
        ("mermaid", [":::completed", ":::cancelled", ":::failed"]),
        ("dot", ["✓", "⊘", "✗"]),
        ("svg", ["✓", "⊘", "✗"]),
    ] {
        let drawn = graph(&project, &["last", "--format", format]);
        assert!(marks.iter().all(|mark| drawn.contains(mark)), "{format}: {drawn}");
    }
    // The file may be changed or gone by then: it is the run that is drawn.
    fs::remove_file(project.env.work().join("flow.json")).unwrap();
    project.write("ready", "");
    assert_eq!(project.resume(&[]).code, Some(0));
    let drawn = graph(&project, &["last"]);
    assert!(drawn.contains("✓ breaks"), "{drawn}");
}

/// An `each` of eight items that are done when there is a file `ready`.
fn eight(more: Value) -> Value {
    let each = json!({"type": "each", "id": "all", "over": "items", "nodes": [tool("x", "test -e ready")]});
    with(json!({"state": {"items": [1, 2, 3, 4, 5, 6, 7, 8]}, "nodes": [each]}), more)
}

#[test]
fn a_fan_that_does_not_say_how_many_at_once_takes_as_many_as_the_run_does() {
    let project = Project::new();
    project.write("ready", "");
    project.write(".atomic/workflows/child.json", &eight(json!({})).to_string());
    let careful = with(eight(json!({})), json!({"name": "careful"}));
    let careful = with(careful, json!({"state": {"items": [1, 2, 3], "workers": 1}}));
    project.write(".atomic/workflows/careful.json", &careful.to_string());
    let own = json!({"type": "subgraph", "id": "own", "graph": {
        "stateAnnotations": {"items": {"default": [1, 2, 3, 4, 5]}}, "nodes": eight(json!({}))["nodes"]}});
    let table = [
        ("the usual number", eight(json!({})), &[][..], 4),
        ("the run's", eight(json!({})), &["--workers", "2"], 2),
        (
            "the document's",
            eight(json!({"state": {"items": [1, 2, 3, 4], "workers": 3}})),
            &["--workers", "2"],
            3,
        ),
        ("in a graph with a state of its own", json!({"nodes": [own]}), &["--workers", "2"], 2),
        (
            "in another workflow",
            serde_json::from_str(&uses("child", "true")).unwrap(),
            &["--workers", "2"],
            2,
        ),
        (
            "as the other workflow says",
            serde_json::from_str(&uses("careful", "true")).unwrap(),
            &["--workers", "2"],
            1,
        ),
    ];
    for (title, workflow, more, expected) in table {
        let done = project.run(&workflow, &[more, &["--trust"]].concat());
        assert_eq!(done.code, Some(0), "{title}: {done:?}");
        assert_eq!(most_at_once(&project.story()), expected, "{title}");
        fs::remove_dir_all(project.env.work().join(".atomic/sessions")).unwrap();
    }
    let agents = json!({"type": "each", "id": "all", "over": "items",
        "node": {"type": "subagent", "id": "x", "agent": "worker", "task": "{item}"}});
    let planned = project.run(&eight(json!({"nodes": [agents]})), &["--workers", "2", "--plan"]);
    assert!(planned.stdout.contains("agents at once: at most 2\n"), "{planned:?}");
}

#[test]
fn the_number_of_workers_can_be_changed_on_resume() {
    let project = Project::new();
    let failed = project.run(&eight(json!({})), &["--workers", "2"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let before = project.story().len();
    project.write("ready", "");
    let resumed = project.resume(&["--workers", "3"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let story = project.story();
    assert_eq!((most_at_once(&story[..before]), most_at_once(&story[before..])), (2, 3));
}

#[test]
fn an_agent_is_found_however_its_name_is_written() {
    let project = Project::scripted("[[turn]]\ndo = [{ say = \"done\" }]\n");
    let agent = json!({"type": "subagent", "id": "a", "agent": "Worker", "task": "x"});
    project.write("flow.json", &json!({"nodes": [agent]}).to_string());
    let checked = project.env.run(["check", "flow.json"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(0), "flow.json: ok\n"));
    let done = project.run_file("flow.json", &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn one_attempt_is_one_attempt_whatever_is_done_on_an_error() {
    for (more, expected) in [
        (json!({"retry": {"maxAttempts": 1}, "onError": "retry"}), 1),
        (json!({"retry": {"maxAttempts": 1}, "onError": {"action": "retry", "delayMs": 1}}), 1),
        (json!({"retry": {"maxAttempts": 2, "backoffMs": 1}, "onError": "retry"}), 2),
        (json!({"onError": {"action": "retry", "delayMs": 1}}), 3),
    ] {
        let project = Project::new();
        let node = with(tool("a", "echo x >> \"$LEDGER\"; exit 1"), more.clone());
        project.ends(&json!({"nodes": [node]}), 1);
        assert_eq!(project.env.ledger().len(), expected, "{more}");
    }
}

#[test]
fn what_lets_a_graph_begin_with_its_own_values_is_not_seen() {
    let project = Project::new();
    let sub = json!({"type": "subgraph", "id": "s", "graph": {
        "stateAnnotations": {"mine": {"default": "own"}, "tone": {"default": "unused"}},
        "nodes": [tool("in", "echo {mine} {tone}")]}});
    let workflow = json!({"state": {"tone": "short"},
        "nodes": [sub, tool("look", "echo {outputs.s} > out; echo {mine?}. > outside")]});
    let done = project.ends(&workflow, 0);
    assert_eq!(
        serde_json::from_str::<Value>(&project.read("out")).unwrap(),
        json!({"mine": "own", "outputs": {"in": "own short"}})
    );
    assert_eq!(project.read("outside"), ".\n", "it stays inside");
    let steps = ["started s#1/in#1", "finished s#1/in#1", "started look#1", "finished look#1"];
    assert_eq!(project.story(), steps);
    assert!(!done.stdout.contains("begin"), "{}", done.stdout);
    assert!(!graph(&project, &["flow.json"]).contains("begin"));
}
