//! Documents that are wrong: what is said, and where.

use std::fmt::Write as _;

use serde_json::json;

use super::{read_alone, said};
use crate::Source;
use crate::descriptor::{Document, NoLibrary, read};

/// A workflow with one node that has these keys.
fn node(keys: &str) -> String {
    format!("{{\"nodes\": [\n  {{{keys}}}\n]}}")
}

#[test]
fn a_file_that_is_no_workflow_says_why() {
    let deep = "[".repeat(200);
    let table = [
        ("empty", ""),
        ("blank", " \n\t\n"),
        ("only a mark", "\u{feff}"),
        ("marked and broken", "\u{feff}{\"nodes\": }"),
        ("cut off", "{\n  \"name\": \"x\",\n  \"nodes\": ["),
        ("comma too many", "{\n  \"name\": \"ä\", \"aliases\": [\"b\",],\n}"),
        ("no quotes", "{name: \"x\"}"),
        ("a comment", "{\"name\": \"x\" // why\n}"),
        ("two documents", "{} {}"),
        ("a list", " [1]"),
        ("a text", "\"x\""),
        ("null", "null"),
        ("too deep", deep.as_str()),
        ("a lone surrogate", "{\"name\": \"\\ud800\"}"),
        ("a huge number", "{\"maxSteps\": 1e999}"),
    ];
    let mut shown = String::new();
    for (what, text) in table {
        let draft = read_alone(text);
        assert!(draft.graph().is_none(), "{what}");
        let _ = writeln!(shown, "--- {what}\n{}", said(&draft));
        assert!(draft.into_workflow().is_err(), "{what}");
    }
    insta::assert_snapshot!("no_workflow", shown);
}

#[test]
fn every_problem_of_a_file_is_told_with_its_place() {
    let text = r#"{
  "nam": "x",
  "aliases": ["ok", 3],
  "maxIterations": 0,
  "version": 1,
  "minSDKVersion": 2,
  "stateVersion": "3",
  "sessionsDir": "../elsewhere",
  "stateAnnotations": {"a": {"reducer": "conct"}, "b": {"defualt": 1}, "c": {"reducer": {"by": "x"}}},
  "state": {"outputs": {"plan": 1}},
  "nodes": [
    {"type": "agent", "id": "plan", "promt": "Ä {prompt}", "retry": {"maxAttempts": "3"}},
    {"type": "agnet", "id": "work"},
    {"id": "typeless"},
    "no node",
    {"type": "tool", "id": "plan", "id": "again"}
  ],
  "edges": [
    {"from": "plan", "to": "wrok"},
    {"from": "plan", "label": {}},
    {"from": ["plan", 7], "to": "work", "condition": {"key": "a"}}
  ],
  "catch": "nobody",
  "nodeDescriptions": {"pln": "Planning"}
}"#;
    insta::assert_snapshot!("everything_at_once", said(&read_alone(text)));
}

#[test]
fn every_type_of_node_says_what_is_wrong_with_it() {
    let table = [
        r#""type": "subagent", "task": "x""#,
        r#""type": "agent", "agent": "a", "agentName": "b", "prompt": "x", "task": "y""#,
        r#""type": "agent", "prompt": 3, "questions": "no", "agent": " ""#,
        r#""type": "agent", "backend": "opncode""#,
        r#""type": "agent", "backend": "gemini""#,
        r#""type": "subagent", "agent": "a", "agentType": 3"#,
        r#""type": "agent", "backend": "claude", "agentType": "claude""#,
        r#""type": "skill", "skill": "s", "backend": "acp:""#,
        r#""type": "command", "command": "c", "backend": "acp:<command>""#,
        r#""type": "parallelSubagent", "agents": [{"agent": "a", "task": "x", "backend": "claud"}]"#,
        r#""type": "parallelSubagent", "backend": "claude", "agents": [{"agent": "a", "task": "x"}]"#,
        r#""type": "tool", "command": "true", "backend": "claude""#,
        r#""type": "skill", "args": ["x"]"#,
        r#""type": "command", "command": 1"#,
        r#""type": "tool", "execute": {"$fn": 1}, "command": "ls""#,
        r#""type": "tool", "execute": "ls""#,
        r#""type": "tool", "execute": {"$fn": 1}, "outputMapper": {"$fn": 2}"#,
        r#""type": "tool""#,
        r#""type": "custom""#,
        r#""type": "wait", "prompt": {"$fn": "missing"}"#,
        r#""type": "wait", "prompt": 1, "inputMapper": "x", "autoApprove": "yes""#,
        r#""type": "wait", "prompt": "x", "outputMapper": {"$fn": 1}"#,
        r#""type": "ask_user", "question": [], "inputMapper": {"$fn": 1}, "outputMapper": {"$fn": 2}"#,
        r#""type": "ask_user", "question": "x", "inputMapper": {"$fn": "text"}"#,
        r#""type": "agent", "tools": ["bash"]"#,
        r#""type": "agent", "schema": {"type": "object"}, "outputSchema": true"#,
        r#""type": "agent", "schema": "object""#,
        r#""type": "ask_user", "options": [1, {"lable": "x"}, ""], "multiSelect": 1"#,
        r#""type": "contextMonitor", "threshold": 80, "action": "compress""#,
        r#""type": "decision", "routes": [{"target": "x", "label": 1}, {"condition": "always"}], "fallback": 1"#,
        r#""type": "parallel""#,
        r#""type": "parallel", "branches": ["a", 1], "strategy": "first""#,
        r#""type": "parallel", "branches": [{"id": "b", "nodes": [], "edgs": []}]"#,
        r#""type": "parallelSubagent", "agents": [{"task": "x"}, {"agent": "r", "tsk": "x"}]"#,
        r#""type": "each", "nodes": [], "workers": 0, "ready": "soon""#,
        r#""type": "each", "over": "l", "node": {"type": "wait", "prompt": "x"}, "graph": {}"#,
        r#""type": "loop", "until": "otherwise""#,
        r#""type": "loop", "graph": {"stateAnnotations": {"x": {"default": 1}}, "nodes": []}"#,
        r#""type": "loop", "maxIterations": 0, "nodes": [{"type": "clearContext"}]"#,
        r#""type": "subgraph""#,
        r#""type": "subgraph", "workflow": "nowhere""#,
        r#""type": "subgraph", "graph": {"edges": []}"#,
        r#""type": "subgraph", "graph": {"$fn": 3}"#,
        r#""type": "taskLoop", "tasksPath": "/etc/tasks.json", "taskNodes": []"#,
        r#""type": "taskLoop", "taskNodes": {"type": "agnt"}, "until": 1"#,
        r#""type": "criteriaLoop", "completionSignal": """#,
    ];
    let mut shown = String::new();
    for keys in table {
        let _ = writeln!(shown, "--- {keys}\n{}", said(&read_alone(&node(keys))));
    }
    insta::assert_snapshot!("nodes", shown);
}

#[test]
fn every_rule_of_a_node_says_what_is_wrong_with_it() {
    let table = [
        r#""id": "", "onLost": "later""#,
        r#""id": "a/b", "timeoutMs": 0, "timeout": 1"#,
        r#""timeoutMs": 1.5, "maxVisits": -1"#,
        r#""onError": "giveup""#,
        r#""onError": {"action": "goto"}"#,
        r#""onError": {"action": "goto", "node": "nowhere", "stateUpdate": {}}"#,
        r#""onError": {"action": "skip", "stateUpdate": [1]}"#,
        r#""onError": {"actoin": "skip"}"#,
        r#""onError": 1"#,
        r#""retry": 3"#,
        r#""retry": {"maxAttempts": 0, "backoffMultiplier": -1, "codes": "all", "retryOn": true}"#,
        r#""inputSchema": "object", "outputSchema": {"type": "nothing"}"#,
        r#""targets": ["nowhere"], "model": 3, "description": 4"#,
        r#""onRevive": "nowhere""#,
        r#""$comment": "fine", "comment": "not""#,
    ];
    let mut shown = String::new();
    for keys in table {
        let text = node(&format!("\"type\": \"clearContext\", {keys}"));
        let _ = writeln!(shown, "--- {keys}\n{}", said(&read_alone(&text)));
    }
    insta::assert_snapshot!("rules", shown);
}

#[test]
fn functions_are_missed_where_nobody_has_them() {
    let text = r#"{
  "stateAnnotations": {
    "a": {"reducer": {"$fn": 1, "native": "concat"}},
    "b": {"reducer": {"$fn": 2, "native": "mergeById", "args": ["name"]}},
    "c": {"reducer": {"$fn": 3, "native": "unheard"}},
    "d": {"reducer": {"$fn": 4}}
  },
  "nodes": [
    {"type": "agent", "prompt": {"$fn": "missing"}},
    {"type": "tool", "id": "t", "execute": {"$fn": []}, "retry": {"retryOn": {"$fn": "missing", "x": 1}}}
  ]
}"#;
    let source = Source::new("plain.json", text);
    let draft = read(&Document::plain(source), &NoLibrary);
    insta::assert_snapshot!("functions", said(&draft));
    let reducers = json!(draft.graph().unwrap().reducers);
    assert_eq!(reducers["a"], "concat");
    assert_eq!(reducers["b"], json!({"mergeBy": "name"}));
}

#[test]
fn a_function_of_the_wrong_kind_is_refused() {
    let text = node(r#""type": "tool", "execute": {"$fn": "text"}"#);
    let expected = "x.json:2:31: ATM622 error at nodes[0].execute: function text is a Text, which \
                    cannot be used here\n  help: use a function of the right kind";
    assert_eq!(said(&read_alone(&text)), expected);
}

#[test]
fn a_mark_at_the_beginning_and_windows_lines_do_no_harm() {
    let text = "\u{feff}{\r\n  \"name\": \"x\",\r\n  \"nodes\": [],\r\n  \"nme\": 1\r\n}";
    let draft = read_alone(text);
    let places: Vec<_> = draft.faults.iter().map(|f| (f.code, f.line, f.column)).collect();
    assert_eq!(places, [("ATM611", 4, 3)]);
}

#[test]
fn a_graph_can_be_looked_at_although_a_node_of_it_is_wrong() {
    let text = r#"{"nodes": [
  {"type": "agent", "id": "a", "promt": "x"},
  {"type": "agent", "id": "b"}
], "edges": [{"from": "a", "to": "b"}, {"from": "a", "to": "c"}]}"#;
    let codes: Vec<String> = said(&read_alone(text))
        .lines()
        .filter(|line| line.contains("ATM"))
        .map(Into::into)
        .collect();
    assert_eq!(
        codes,
        [
            "x.json:2:32: ATM611 error at nodes[0].promt: an agent node has no \"promt\" (did you \
             mean \"prompt\"?)",
            "x.json:4:40: ATM105 error at the graph (edges[1]): the edge from \"a\" leads to \
             \"c\", which does not exist",
        ]
    );
}

#[test]
fn many_problems_end_with_how_many_more_there_are() {
    let keys: Vec<String> = (0..1_500).map(|n| format!("\"unknown-{n}\": 1")).collect();
    let draft = read_alone(&node(&format!("\"type\": \"clearContext\", {}", keys.join(","))));
    assert_eq!(draft.faults.len(), 1_000);
    let last = draft.faults.last().unwrap();
    assert_eq!((last.code, last.message.as_str()), ("ATM609", "there are 501 further problems"));
}

#[test]
fn a_large_file_in_one_line_is_no_trouble() {
    // Counting from the beginning of the line for every place would take minutes.
    let prompt = "ä ".repeat(1_600);
    let node = json!({"type": "agent", "prompt": prompt, "targets": ["agent"]}).to_string();
    let nodes = vec![node; 2_500].join(",");
    let text = format!("{{\"nodes\": [{nodes}], \"nod\": 1}}");
    assert!(text.len() > 10_000_000, "{}", text.len());
    let draft = read_alone(&text);
    assert_eq!(draft.graph().map(|graph| graph.nodes.len()), Some(2_500));
    let places: Vec<_> = draft.faults.iter().map(|f| (f.code, f.line, f.column)).collect();
    let column = text.chars().count() - "\"nod\": 1}".len() + 1;
    assert_eq!(places, [("ATM611", 1, u32::try_from(column).unwrap())]);
}
