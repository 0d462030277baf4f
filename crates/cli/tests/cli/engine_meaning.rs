//! What a run comes to: the same state however many work at once, the same view for every choice,
//! and what a plain async workflow has returned.

use std::fs;

use serde_json::{Value, json};

use crate::engine::Project;
use crate::env::Ran;
use crate::typescript::{atomic, run};

/// The state at the end of a run with `--stream values`.
fn last_state(ran: &Ran) -> Value {
    let line = ran.stdout.lines().rfind(|line| line.contains("\"values\"")).unwrap();
    serde_json::from_str::<Value>(line).unwrap()["values"].clone()
}

/// Items vote for the same, hand the whole state back, and add up; `after` is the item whose end
/// an item waits for.
fn voting(workers: u32, at_once: u32, after: [&str; 4]) -> String {
    let [a, b, c, d] = after;
    format!(
        r#"import {{ Reducers, annotation, eachNode, graph, toolNode }} from "@atomic/workflows";
export const stateAnnotations = {{
  files: annotation([{{ id: "a", after: "{a}" }}, {{ id: "b", after: "{b}" }}, {{ id: "c", after: "{c}" }}, {{ id: "d", after: "{d}" }}]),
  votes: annotation<string[]>([], Reducers.concat),
  called: annotation<string[]>([], (old: string[], more: string[]) => [...old, ...more]),
  names: annotation<string[]>([], Reducers.concat),
  count: annotation(0, Reducers.sum),
  last: annotation(""),
}};
export default () => graph<any>()
  .start(eachNode({{ id: "ask", over: "files", workers: {workers}, nodes: [
    toolNode({{ id: "wait", command: "after={{item.after}}; until test -z \"$after\" || test -e \"$after.done\"; do sleep 0.02; done" }}),
    toolNode({{ id: "vote", execute: () => ({{ votes: ["yes"], called: ["yes"], count: 1 }}) }}),
    toolNode({{ id: "name", execute: (s: any) => ({{ names: [s.item.id] }}) }}),
    toolNode({{ id: "whole", execute: (s: any) => ({{ ...s, last: s.item.id }}) }}),
    toolNode({{ id: "done", command: "id={{item.id}}; touch \"$id.done\"" }}),
  ] }}))
  .compile({{ stateAnnotations, maxConcurrency: {at_once} }});
"#
    )
}

#[test]
fn lists_keep_every_value_however_many_work_and_whoever_is_first() {
    let free = ["", "", "", ""];
    let cases = [
        (1, 4, free),
        (2, 4, free),
        (4, 1, free),
        (4, 4, ["b", "c", "d", ""]),
        (4, 4, ["c", "a", "", "b"]),
        (3, 3, ["", "c", "a", ""]),
    ];
    for (workers, at_once, after) in cases {
        let project = Project::new();
        project.write(".atomic/workflows/voting.ts", &voting(workers, at_once, after));
        let ended = run(&project, "voting", &["--trust", "--stream", "values"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let state = last_state(&ended);
        let keys = ["votes", "called", "names", "count", "last"].map(|key| state[key].clone());
        let yes = json!(["yes", "yes", "yes", "yes"]);
        let expected = [yes.clone(), yes, json!(["a", "b", "c", "d"]), json!(4), json!("d")];
        assert_eq!(keys, expected, "{workers} workers, {at_once} at once, after {after:?}");
    }
}

/// Items and tasks hand the whole state back with a vote in it; `seen` says how many votes of others
/// each of them saw.
fn whole_states(workers: u32) -> String {
    format!(
        r#"import {{ Reducers, annotation, eachNode, graph, toolNode }} from "@atomic/workflows";
export const stateAnnotations = {{
  files: annotation([{{ id: "a" }}, {{ id: "b" }}, {{ id: "c" }}]),
  tasks: annotation<any[]>([{{ id: "t1" }}, {{ id: "t2", blockedBy: ["t1"] }}, {{ id: "t3" }}], Reducers.mergeById("id")),
  votes: annotation<string[]>([], Reducers.concat),
  done: annotation<string[]>([], Reducers.concat),
  seen: annotation<any>({{}}, Reducers.merge),
}};
export default () => graph<any>()
  .start(eachNode({{ id: "ask", over: "files", workers: {workers}, nodes: [
    toolNode({{ id: "vote", execute: (s: any) => ({{ ...s, votes: ["yes"], seen: {{ [s.item.id]: s.votes.length }} }}) }}),
  ] }}))
  .then(eachNode({{ id: "do", over: "tasks", ready: "tasks", workers: {workers}, nodes: [
    toolNode({{ id: "work", execute: (s: any) => ({{ ...s, done: [s.item.id], seen: {{ [s.item.id]: s.done.length }},
      tasks: [{{ id: s.item.id, status: "completed" }}] }}) }}),
  ] }}))
  .compile({{ stateAnnotations }});
"#
    )
}

#[test]
fn an_item_that_hands_the_whole_state_back_votes_however_many_work() {
    for workers in [1, 3] {
        let project = Project::new();
        project.write(".atomic/workflows/whole.ts", &whole_states(workers));
        let ended = run(&project, "whole", &["--trust", "--stream", "values"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let state = last_state(&ended);
        let got = ["votes", "done", "seen"].map(|key| state[key].clone());
        let seen = json!({"a": 0, "b": 0, "c": 0, "t1": 0, "t2": 1, "t3": 0});
        let expected = [json!(["yes", "yes", "yes"]), json!(["t1", "t2", "t3"]), seen];
        assert_eq!(got, expected, "{workers} workers");
    }
}

/// Every function that makes changes may return the whole state with something new in it.
#[test]
fn a_state_that_is_handed_back_is_not_changed_by_any_function() {
    let flow = r#"import { Reducers, annotation, graph, parallelNode, subgraphNode, toolNode } from "@atomic/workflows";
export const stateAnnotations = {
  list: annotation<any>(["x"], Reducers.concat), count: annotation(1, Reducers.sum),
  total: annotation(0.5, Reducers.sum), mode: annotation("fast"),
};
const inner = graph<any>()
  .start(toolNode({ id: "in", execute: (s: any) => ({ got: [s.mode, s.extra, s.list.length, s.outputs] }) }))
  .compile();
export default () => graph<any>()
  .start(toolNode({ id: "fail", execute: () => { throw new Error("red"); },
    onError: (_: any, { state }: any) => ({ action: "skip", stateUpdate: { ...state, a: 1 } }) }))
  .then(parallelNode({ id: "par", branches: [toolNode({ id: "half", execute: () => ({ total: 0.5 }) })],
    merge: (_: any, { outputs, ...s }: any) => ({ ...s, b: 1 }) }))
  .then(subgraphNode<any>({ id: "sub", subgraph: inner, inputMapper: (s: any) => ({ ...s, extra: 1 }),
    outputMapper: (r: any, { outputs, ...s }: any) => ({ ...s, got: r.got }) }))
  .then(toolNode({ id: "clear", execute: () => ({ list: undefined }) }))
  .compile({ stateAnnotations });
"#;
    let project = Project::new();
    project.write(".atomic/workflows/back.ts", flow);
    let ended = run(&project, "back", &["--trust", "--stream", "values"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let state = last_state(&ended);
    let keys = ["list", "count", "total", "a", "b", "got"].map(|key| state[key].clone());
    let got = json!(["fast", 1, 1, {}]);
    assert_eq!(keys, [json!(["x"]), json!(1), json!(1.0), json!(1), json!(1), got]);
}

/// JSON has no functions: what is skipped changes the state.
#[test]
fn lists_of_a_json_workflow_keep_every_value_however_many_work() {
    for workers in [1, 3] {
        let skip = json!({"action": "skip", "stateUpdate": {"votes": ["yes"]}});
        let vote = json!({"type": "tool", "id": "vote", "command": "false", "onError": skip});
        let ask = json!({"type": "each", "id": "ask", "over": "files", "workers": workers,
            "nodes": [vote]});
        let flow = json!({"state": {"files": [1, 2, 3]}, "nodes": [ask],
            "stateAnnotations": {"votes": {"default": [], "reducer": "concat"}}});
        let project = Project::new();
        let ended = project.run(&flow, &["--stream", "values"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(last_state(&ended)["votes"], json!(["yes", "yes", "yes"]), "{workers}");
    }
}

#[test]
fn a_decision_sees_what_the_step_beside_it_has_done_as_a_conditional_edge_does() {
    let ready = json!({"says": {"node": "slow", "text": "ready"}});
    let note = |id: &str| json!({"type": "tool", "id": id, "command": format!("touch {id}.seen")});
    let flow = json!({
        "nodes": [
            {"type": "tool", "id": "begin", "command": "true"},
            {"type": "decision", "id": "look", "fallback": "early",
                "routes": [{"condition": ready, "target": "late"}]},
            {"type": "tool", "id": "slow", "command": "sleep 0.3; echo ready"},
            note("early"), note("late"), note("edge"),
        ],
        "edges": [{"from": "begin", "to": "look"}, {"from": "begin", "to": "slow"},
            {"from": "slow", "to": "edge", "condition": ready}],
    });
    let project = Project::new();
    let ended = project.run(&flow, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let seen = |name: &str| project.env.work().join(format!("{name}.seen")).exists();
    assert_eq!(["early", "late", "edge"].map(seen), [false, true, true]);
}

const TALKATIVE: &str = "[[turn]]\nagent = \"worker\"\ndo = [{ say = \"what the agent said\" }]\n";

/// A plain async workflow that ends like this, after an agent has said something.
fn returning(project: &Project, end: &str) {
    let flow = format!(
        "import {{ defineWorkflow }} from \"@atomic/workflows\";\n\
         export default defineWorkflow({{ name: \"plain\" }}).run(async (ctx: any) => {{\n\
           const said = await ctx.agent(\"worker\", \"Say something\");\n\
           {end}\n\
         }});\n"
    );
    project.write(".atomic/workflows/plain.ts", &flow);
}

/// Runs such a workflow; gives what is printed after the line that names the session, and the
/// result in `session.json`.
fn returned(end: &str) -> (String, Option<Value>) {
    let project = Project::scripted(TALKATIVE);
    returning(&project, end);
    let ended = run(&project, "plain", &["--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (before, after) = ended.stdout.split_once("\nCompleted Plain session: ").unwrap();
    assert!(!before.contains("what the agent said"), "{before}");
    let after = after.split_once('\n').unwrap().1.to_owned();
    (after, project.env.summary().get("result").cloned())
}

#[test]
fn the_result_of_a_plain_async_workflow_is_what_its_function_returned() {
    let table = [
        ("return \"mine\";", "mine\n", Some(json!("mine"))),
        ("return { ok: true, said: said.length };", "{\"ok\":true,\"said\":19}\n", None),
        ("return [1, \"two\"];", "[1,\"two\"]\n", Some(json!([1, "two"]))),
        ("return 0;", "0\n", Some(json!(0))),
        ("return false;", "false\n", Some(json!(false))),
        ("return said;", "what the agent said\n", Some(json!("what the agent said"))),
    ];
    for (end, printed, kept) in table {
        let kept = kept.unwrap_or_else(|| serde_json::from_str(printed).unwrap());
        assert_eq!(returned(end), (printed.to_owned(), Some(kept)), "{end}");
    }
    for end in ["", "return;", "return undefined;", "return null;"] {
        assert_eq!(returned(end), (String::new(), None), "{end}");
    }
}

#[test]
fn a_large_result_is_printed_whole_and_lies_beside_the_summary() {
    let (printed, kept) = returned("return { text: \"x\".repeat(100_000), n: 1 };");
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["text"].as_str().unwrap().len(), 100_000);
    let kept = kept.unwrap();
    assert_eq!((&kept["n"], &kept["text"]["bytes"]), (&json!(1), &json!(100_002)));
    assert_eq!(kept["text"]["$blob"].as_str().unwrap().len(), 64);
}

#[test]
fn programs_get_the_result_with_the_end_of_the_run() {
    let project = Project::scripted(TALKATIVE);
    returning(&project, "return { text: \"x\".repeat(100_000) };");
    let ended = run(&project, "plain", &["--trust", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let last: Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["type"], &last["ending"]["kind"]),
        (&json!("run_finished"), &json!("completed"))
    );
    assert_eq!(last["result"]["text"].as_str().unwrap().len(), 100_000);
}

#[test]
fn a_run_that_fails_has_no_result_until_it_is_resumed_to_its_end() {
    let project = Project::scripted(TALKATIVE);
    returning(&project, "await ctx.shell(\"test -e mended\", { check: true });\nreturn \"mine\";");
    let ended = run(&project, "plain", &["--trust"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(!ended.stdout.contains("mine"), "{ended:?}");
    assert_eq!(project.env.summary().get("result"), None);
    project.write("mended", "");
    let ended = atomic(&project, &["resume", "last"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.ends_with("\nmine\n"), "{ended:?}");
    assert_eq!(project.env.summary()["result"], "mine");
    // A fork goes on from the last step, and returns the same.
    let forked = atomic(&project, &["fork", "last"]);
    assert_eq!(forked.code, Some(0), "{forked:?}");
    let ended = atomic(&project, &["resume", "last"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.ends_with("\nmine\n"), "{ended:?}");
    let folder = project.env.work().join(".atomic/sessions");
    let sessions = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let summaries = sessions.filter_map(|dir| fs::read_to_string(dir.join("session.json")).ok());
    let results: Vec<Value> = summaries
        .map(|text| serde_json::from_str::<Value>(&text).unwrap()["result"].clone())
        .collect();
    assert_eq!(results, ["mine", "mine"]);
}

/// Inside another workflow what it returned is the other one's to use.
#[test]
fn a_graph_around_a_plain_async_workflow_has_no_result() {
    let project = Project::scripted(TALKATIVE);
    returning(&project, "return \"mine\";");
    let outer = "import { graph, subgraphNode, toolNode } from \"@atomic/workflows\";\n\
        export default () => graph<any>()\n\
          .start(subgraphNode<any>({ id: \"in\", subgraph: \"plain\", outputMapper: (r: any) => ({ got: r.result }) }))\n\
          .then(toolNode({ id: \"say\", command: \"echo got {got}\" }))\n\
          .compile();\n";
    project.write(".atomic/workflows/outer.ts", outer);
    let ended = run(&project, "outer", &["--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("got mine"), "{ended:?}");
    assert_eq!(project.env.summary().get("result"), None);
}
