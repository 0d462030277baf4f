//! What the functions of nodes are given, and what may come back.

use std::any::Any;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atomic_typescript::{Answer, Arg, Host, Trouble, Underway};
use serde_json::{Value, json};

use super::worker;

/// A host that gives everybody the same answer and writes down what it was asked.
struct Desk {
    answer: Value,
    asked: Mutex<Sender<(String, Value)>>,
}

impl Host for Desk {
    fn request(&self, name: &str, args: Value, answer: Answer) -> Underway {
        let _ = self.asked.lock().unwrap().send((name.to_owned(), args));
        answer.give(Ok(self.answer.clone()));
        let nothing: Box<dyn Any + Send> = Box::new(());
        nothing
    }

    fn log(&self, level: &str, text: &str) {
        let said = json!({ level: text });
        let _ = self.asked.lock().unwrap().send(("log".to_owned(), said));
    }
}

/// What the function of the only node of a graph comes to, and what it has asked for.
fn performed(
    node: &str,
    state: Value,
    answer: Value,
) -> (Result<Value, Trouble>, Vec<(String, Value)>) {
    let text = format!(
        "import * as sdk from \"@atomic/workflows\";\nimport * as host from \"atomic/host\";\nexport const keep = host;\nexport default () => sdk.graph().start({node}).compile();"
    );
    let worker = worker(&text);
    let document =
        worker.load(&Value::Null).unwrap_or_else(|trouble| panic!("{trouble}")).descriptor;
    let function = document["nodes"][0]["execute"]["$fn"].as_u64().unwrap();
    let (asked, heard) = mpsc::channel();
    let desk = Arc::new(Desk { answer, asked: Mutex::new(asked) });
    let (done, end) = mpsc::channel();
    let context = Arg::Context(Arc::new(json!({"nodeId": "n", "attempt": 2})));
    let args = vec![Arg::Value(Arc::new(state)), context];
    let running = worker.perform(u32::try_from(function).unwrap(), args, desk, move |result| {
        let _ = done.send(result);
    });
    let result = end.recv_timeout(Duration::from_secs(60)).unwrap();
    drop(running);
    (result, heard.try_iter().collect())
}

#[test]
fn a_tool_gets_the_state_and_a_context() {
    let node = "sdk.toolNode('n', { execute: async (s, ctx) => {
      const { stdout } = await ctx.shell('ls', { timeout: 5 });
      ctx.log('seen', { stdout });
      ctx.emit('noticed');
      return { stdout, id: ctx.nodeId, seen: ctx.getNodeOutput('z'), attempt: ctx.attempt, ended: ctx.signal.aborted };
    } })";
    let state = json!({"outputs": {"z": 4}});
    let (result, asked) = performed(node, state, json!({"code": 0, "stdout": "a", "stderr": ""}));
    assert_eq!(
        result.unwrap(),
        json!({"stdout": "a", "id": "n", "seen": 4, "attempt": 2, "ended": false})
    );
    let info = |text: &str| ("log".to_owned(), json!({"info": text}));
    let shell = ("shell".to_owned(), json!({"command": "ls", "timeoutMs": 5}));
    assert_eq!(asked, [shell, info("seen { stdout: \"a\" }"), info("noticed")]);
}

#[test]
fn requests_are_the_same_from_the_module() {
    let node = "sdk.toolNode('n', { execute: async () => {
      const page = await host.fetch('https://x', { method: 'PUT' });
      await host.writeFile('a', 'b');
      return { ok: page.ok, data: page.json() };
    } })";
    let answer = json!({"status": 201, "headers": {}, "text": "[1]"});
    let (result, asked) = performed(node, json!({}), answer);
    assert_eq!(result.unwrap(), json!({"ok": true, "data": [1]}));
    assert_eq!(asked[0], ("fetch".to_owned(), json!({"url": "https://x", "method": "PUT"})));
    assert_eq!(asked[1], ("writeFile".to_owned(), json!({"path": "a", "text": "b"})));
}

#[test]
fn a_custom_node_gets_one_context_and_says_where_to_go() {
    let node = "sdk.customNode('n', (ctx) => {
      ctx.emit('found', { n: ctx.state.x });
      return { stateUpdate: { y: ctx.state.x + 1 }, goto: 'z' };
    })";
    let (result, _) = performed(node, json!({"x": 1}), Value::Null);
    assert_eq!(
        result.unwrap(),
        json!({"stateUpdate": {"y": 2}, "goto": "z", "signals": [{"type": "found", "data": {"n": 1}}]})
    );
}

#[test]
fn a_plain_node_is_its_function_whatever_it_calls_itself() {
    let node =
        "{ id: 'n', type: 'agent', execute: async (ctx) => ({ stateUpdate: { y: ctx.nodeId } }) }";
    let (result, _) = performed(node, json!({}), Value::Null);
    assert_eq!(result.unwrap(), json!({"stateUpdate": {"y": "n"}}));
}

#[test]
fn what_cannot_be_used_is_said() {
    let failed = json!({"code": 2, "stdout": "", "stderr": "no such file\n"});
    let table = [
        (
            "sdk.toolNode('n', { execute: () => 3 })",
            "the tool \"n\" returned a number; return an object of changes to the state, such as { summary: … }",
        ),
        (
            "sdk.customNode('n', () => ({ x: 1 }))",
            "the node \"n\" returned \"x\"; changes to the state belong into \"stateUpdate\": return { stateUpdate: { x: … } }",
        ),
        (
            "sdk.toolNode('n', { execute: (_, ctx) => ctx.shell('ls', { check: 1 }) })",
            "shell(…): \"check\" must be true or false, but it is 1",
        ),
        (
            "sdk.toolNode('n', { execute: (_, ctx) => ctx.shell('ls {a}', { values: ['b'] }) })",
            "shell(…): \"values\" must be an object, but it is [\"b\"]",
        ),
        (
            "sdk.toolNode('n', { execute: (_, ctx) => ctx.shell('ls', { timeoutms: 1 }) })",
            "shell(…): there is no option \"timeoutms\"; there are cwd, env, values, timeout, timeoutMs, stdin, check, signal",
        ),
        (
            "sdk.toolNode('n', { execute: (_, ctx) => ctx.readFile(7) })",
            "readFile(…): the path must be a text, but it is number",
        ),
        (
            "sdk.toolNode('n', { execute: (_, ctx) => ctx.runAgent({}) })",
            "ctx.runAgent: a node's function cannot start an agent; put an agentNode into the graph, or write the workflow with defineWorkflow(…).run(…)",
        ),
    ];
    for (node, expected) in table {
        let (result, _) = performed(node, json!({}), failed.clone());
        assert_eq!(result.unwrap_err().message, expected, "{node}");
    }
}

#[test]
fn results_of_branches_are_a_map_in_the_order_of_the_branches() {
    let text = "import { agentNode, graph, parallelNode, skillNode } from \"@atomic/workflows\";
export default () => graph().start(parallelNode({
  id: 'p',
  branches: [agentNode('z'), skillNode({ skill: 's' }), skillNode({ skill: 's' })],
  merge: (results, state) => ({ names: [...results.keys()], sum: results.get('z') + state.more }),
})).compile();";
    let worker = worker(text);
    let node = &worker.load(&Value::Null).unwrap().descriptor["nodes"][0];
    let function = u32::try_from(node["merge"]["$fn"].as_u64().unwrap()).unwrap();
    let arg = |value: Value| Arg::Value(Arc::new(value));
    let outputs = json!({"skill-s-2": 1, "skill-s": 2, "z": 3});
    let merged = worker.call(function, vec![arg(outputs), arg(json!({"more": 4}))]).unwrap();
    assert_eq!(merged, json!({"names": ["z", "skill-s", "skill-s-2"], "sum": 7}));
}

#[test]
fn errors_and_tasks_come_as_authors_know_them() {
    let text = "import { agentNode, graph, taskLoopNode } from \"@atomic/workflows\";
export default () => graph().start(taskLoopNode({
  taskNodes: agentNode('t'),
  until: (state, tasks) => tasks.length > state.limit,
  taskSelector: (tasks) => tasks.find((task) => task.id === 'b'),
  retry: { retryOn: (error) => error instanceof Error && error.code === 'busy' },
  onError: (error, ctx) => ({ action: 'skip', stateUpdate: { why: `${ctx.nodeId}: ${error.message}` } }),
})).compile();";
    let worker = worker(text);
    let node = worker.load(&Value::Null).unwrap().descriptor["nodes"][0].clone();
    let call = |function: &Value, args: &[Value]| {
        let function = u32::try_from(function["$fn"].as_u64().unwrap()).unwrap();
        let args = args.iter().map(|arg| Arg::Value(Arc::new(arg.clone()))).collect();
        worker.call(function, args).unwrap()
    };
    let state = json!({"limit": 1, "tasks": [{"id": "a"}, {"id": "b"}]});
    let error = json!({"code": "busy", "message": "later"});
    assert_eq!(call(&node["until"], std::slice::from_ref(&state)), json!(true));
    assert_eq!(
        call(&node["taskSelector"], &[state["tasks"].clone(), state.clone()]),
        json!({"id": "b"})
    );
    assert_eq!(call(&node["retry"]["retryOn"], &[error.clone(), state.clone()]), json!(true));
    assert_eq!(
        call(&node["onError"], &[error, state]),
        json!({"action": "skip", "stateUpdate": {"why": "task-loop: later"}})
    );
}
