//! What would silently mean something else is an error: of `atomic check` where it can be seen there,
//! else of the node at which it happens.

use std::fs;

use serde_json::{Value, json};

use crate::engine::{Project, tool};
use crate::env::{Ran, TestEnv};
use crate::scene::{Scene, agent, say};

/// `atomic check` of a file, trusted.
fn checked(project: &Project, file: &str) -> Ran {
    project.env.run(["check", "--trust", file])
}

/// Checks a JSON workflow that must not be sound.
fn refused_by_check(workflow: &Value, says: &[&str]) {
    let project = Project::new();
    project.write("flow.json", &workflow.to_string());
    let checked = checked(&project, "flow.json");
    assert_eq!(checked.code, Some(1), "{workflow}: {checked:?}");
    for text in says {
        assert!(checked.stdout.contains(text), "{text}: {}", checked.stdout);
    }
    let ran = project.run_file("flow.json", &["--trust"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(project.sessions().is_empty(), "nothing was started");
}

/// A TypeScript workflow in `flow.ts` whose nodes are these.
fn typescript(project: &Project, before: &str, nodes: &str) {
    let text = format!(
        "import {{ agentNode, annotation, askUserNode, createNode, graph, Reducers, sequential, skillNode, \
         subgraphNode, toolNode }} \
         from \"@atomic/workflows\";\n{before}\nexport default () => sequential([{nodes}]).compile({{}});\n"
    );
    project.write("flow.ts", &text);
}

fn run_typescript(project: &Project) -> Ran {
    project.run_file("flow.ts", &["--trust"])
}

/// Runs a TypeScript workflow that must fail with these words.
fn fails(before: &str, nodes: &str, says: &[&str]) {
    let project = Project::new();
    typescript(&project, before, nodes);
    let ran = run_typescript(&project);
    assert_eq!(ran.code, Some(1), "{nodes}: {ran:?}");
    for text in says {
        assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
    }
}

/// What the last step of a TypeScript workflow that must complete has returned.
fn returns(before: &str, nodes: &str) -> Value {
    let project = Project::new();
    typescript(&project, before, nodes);
    let ran = run_typescript(&project);
    assert_eq!(ran.code, Some(0), "{nodes}: {ran:?}");
    let finished = project.of_type("step_finished");
    finished.last().unwrap()["result"]["output"].clone()
}

#[test]
fn outputs_that_a_node_returns_are_its_own_or_an_error() {
    let seen = "toolNode({ id: 'z', execute: (s) => ({ seen: s.outputs.a }) })";
    let table = [
        ("toolNode({ id: 'a', execute: () => ({ outputs: { a: 5 } }) })", json!(5)),
        (
            "toolNode({ id: 'a', execute: (s) => ({ ...s, x: 1, outputs: { ...s.outputs, a: 5 } }) })",
            json!(5),
        ),
        (
            "createNode({ id: 'a', execute: (ctx) => ({ stateUpdate: { outputs: { ...ctx.state.outputs, a: 5 } } }) })",
            json!(5),
        ),
        ("toolNode({ id: 'a', execute: (s) => ({ ...s, x: 1 }) })", json!({"x": 1})),
    ];
    for (node, expected) in table {
        let first = "toolNode({ id: 'first', execute: () => ({ y: 1 }) })";
        let output = returns("", &format!("{first}, {node}, {seen}"));
        assert_eq!(output, json!({"seen": expected}), "{node}");
    }
    let says = ["`outputs.b` cannot be changed here"];
    for node in [
        "toolNode({ id: 'a', execute: () => ({ outputs: { a: 5, b: 7 } }) })",
        "createNode({ id: 'a', execute: () => ({ stateUpdate: { outputs: { b: 7 } } }) })",
        "toolNode({ id: 'a', execute: (s) => { s.outputs.b = 7; return { ...s }; } })",
    ] {
        fails("", node, &says);
    }
    let state = "export const createState = () => ({ outputs: { a: 1 } });";
    fails(
        state,
        "toolNode({ id: 'a', command: 'true' })",
        &["createState must leave `outputs` empty"],
    );
}

#[test]
fn a_template_whose_key_nothing_sets_is_an_error_of_check() {
    let nodes = [
        tool("a", "echo {promt}"),
        json!({"type": "subagent", "id": "a", "agent": "worker", "task": "Do {promt}"}),
        json!({"type": "askUser", "id": "a", "question": "Go on with {promt}?"}),
        json!({"type": "skill", "id": "a", "skill": "commit", "args": "{promt}"}),
    ];
    for node in nodes {
        let says = ["ATM219 error", "{promt}, which nothing ever sets", "did you mean {prompt}?"];
        refused_by_check(&json!({"nodes": [node]}), &says);
    }
    let reviw = json!({"nodes": [tool("review", "true"), tool("b", "echo {outputs.reviw}")]});
    refused_by_check(&reviw, &["ATM218 error", "did you mean \"review\"?"]);
    let each = json!({"state": {"files": []}, "nodes": [{"type": "each", "id": "all", "over": "files",
        "nodes": [tool("b", "echo {itme.id}")]}]});
    refused_by_check(&each, &["ATM219", "did you mean {item.id}?"]);

    // TypeScript, with and without a function that makes the state: that may set the key for another
    // prompt.
    let state = "export const createState = (p: any) => ({ prompt: p.prompt, mode: 'x' });";
    for (state, code, severity) in [("", 1, "error"), (state, 0, "warning")] {
        let project = Project::new();
        let said = "prompt: (s: any) => `Do ${s.prompt}`";
        let nodes = format!(
            "agentNode({{ id: 'b', {said} }}), toolNode({{ id: 'a', command: 'echo {{promt}}' }})"
        );
        typescript(&project, state, &nodes);
        let checked = checked(&project, "flow.ts");
        assert_eq!(checked.code, Some(code), "{checked:?}");
        assert!(checked.stdout.contains(&format!("ATM219 {severity}")), "{}", checked.stdout);
        assert!(checked.stdout.contains("did you mean {prompt}?"), "{}", checked.stdout);
    }
}

#[test]
fn a_state_whose_keys_depend_on_the_prompt_is_run() {
    let state = "export const createState = (p: any) =>
        p.prompt === 'check' ? { other: 1 } : { text: p.prompt, files: [{ id: 'a' }] };";
    let project = Project::new();
    let text = format!(
        "import {{ eachNode, graph, toolNode }} from \"@atomic/workflows\";\n{state}\n\
         const say = toolNode({{ id: 'say', command: 'echo say {{text}}' }});\n\
         export default () => graph<any>().start(eachNode({{ id: 'all', over: 'files', nodes: [say] }})).compile();\n"
    );
    project.write("flow.ts", &text);
    let ran = run_typescript(&project);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_function_without_a_return_is_an_error() {
    let reducer = "export const stateAnnotations = { l: annotation<any>(['x'], (o: any, n: any) => { o.concat(n); }) };";
    let inner =
        "const inner = graph<any>().start(toolNode({ id: 'in', command: 'true' })).compile();";
    let table = [
        (
            reducer,
            "toolNode({ id: 'a', execute: () => ({ l: ['y'] }) })",
            "the reducer of \"l\" returned nothing; return the new value",
        ),
        (
            "",
            "toolNode({ id: 'a', command: (s: any) => s.cmd })",
            "the command of node \"a\" is empty: its function returned nothing",
        ),
        (
            "",
            "askUserNode({ id: 'a', question: (s: any) => s.q })",
            "the question of node \"a\" is empty: its function returned nothing",
        ),
        (
            "",
            "skillNode({ id: 'a', skill: 'commit', args: (s: any) => s.args })",
            "the argument of node \"a\" is empty: its function returned nothing",
        ),
        (
            inner,
            "subgraphNode({ id: 'a', subgraph: inner, inputMapper: (s: any) => { s.x = 1; } })",
            "the inputMapper of node \"a\" returned nothing",
        ),
    ];
    for (before, node, says) in table {
        fails(before, node, &[says]);
    }
}

#[test]
fn a_template_without_a_value_fails_its_node() {
    let set = "toolNode({ id: 'set', execute: () => ({ task: { title: 'x' } }) })";
    let table = [
        (
            "toolNode({ id: 'a', command: 'echo {promt}' })",
            "has no key `promt`; did you mean {prompt}?",
        ),
        ("agentNode({ id: 'a', prompt: 'Do {tsak.title}' })", "did you mean {task}?"),
        (
            "askUserNode({ id: 'a', question: 'Do {task.titel}?' })",
            "the value of `task` has no such field",
        ),
        (
            "toolNode({ id: 'b', execute: () => ({ task: undefined }) }), toolNode({ id: 'a', command: 'echo {task}' })",
            "its value is null",
        ),
    ];
    for (node, says) in table {
        fails("", &format!("{set}, {node}"), &["cannot be filled", says]);
    }
    // A node that has not run yet.
    let flow = json!({"nodes": [tool("a", "echo [{outputs.b}]"), tool("b", "true")]});
    refused_by_check(&flow, &["ATM218 error", "\"b\", which has not run when \"a\" begins"]);
    let project = Project::new();
    let ran = project.ends(
        &json!({"nodes": [tool("b", "true"), tool("a", "echo [{outputs.b}{prompt?}{x?}]")]}),
        0,
    );
    assert!(ran.stdout.contains("[Do it]"), "{ran:?}");
}

#[test]
fn braces_that_are_not_a_template_stay() {
    let script = Scene::default()
        .turn(agent("worker").and(r#"{ "a": 1 } {} ${x} {{y}} {a, b} {z} \n"#).does([say("Yes.")]))
        .toml();
    let project = Project::scripted(&script);
    let prompt = r#"{ "a": 1 } {} ${x} {{y}} {a, b} \{z} \n"#;
    let commands = [
        tool("awk", "echo one | awk '{print}'"),
        tool("find", "find . -maxdepth 0 -exec echo {} \\;"),
        tool(
            "curl",
            "echo '%{http_code}' \"@{u}\" '{\"a\": 1}' '{''x}' \\{y} \"${HOME:+set}\" a{1,2}",
        ),
    ];
    let task = json!({"type": "subagent", "id": "ask", "agent": "worker", "task": prompt});
    let nodes: Vec<Value> = commands.into_iter().chain([task]).collect();
    let ran = project.ends(&json!({"nodes": nodes}), 0);
    assert!(ran.stdout.contains("Yes."), "{ran:?}");
    let finished = project.of_type("step_finished");
    let outputs: Vec<&str> =
        finished.iter().map(|fact| fact["result"]["output"].as_str().unwrap()).collect();
    assert_eq!(outputs[..2], ["one", "."]);
    assert!(outputs[2].starts_with("%{http_code} @{u} {\"a\": 1} {x} {y} set a"), "{outputs:?}");
}

#[test]
fn a_reducer_that_does_not_exist_is_an_error() {
    let table = [
        ("annotation([], (Reducers as any).append)", "did you mean Reducers.concat?"),
        ("{ default: [], reducer: (Reducers as any).conact }", "did you mean Reducers.concat?"),
        (
            "{ default: [], reducer: ({} as any).concat }",
            "\"reducer\" of \"stateAnnotations.list\" is undefined",
        ),
    ];
    for (annotation, says) in table {
        let project = Project::new();
        let state = format!(
            "export const stateAnnotations = {{ list: {annotation} }};\n\
             export const graphConfig = {{ nodes: [toolNode({{ id: 'a', command: 'true' }})] }};"
        );
        let text = format!(
            "import {{ annotation, Reducers, toolNode }} from \"@atomic/workflows\";\n{state}\n"
        );
        project.write("flow.ts", &text);
        let checked = checked(&project, "flow.ts");
        assert_eq!(checked.code, Some(1), "{checked:?}");
        assert!(checked.stdout.contains(says), "{says}: {}", checked.stdout);
    }
}

#[test]
fn values_that_json_cannot_hold_fail_the_node() {
    let table = [
        (
            "{ x: { y: [1, NaN] } }",
            "NaN cannot be kept; use a number or null (at the returned value.x.y[1])",
        ),
        ("{ i: -Infinity }", "Infinity cannot be kept"),
        ("{ u: [1, undefined] }", "`undefined` in a list cannot be kept"),
        ("{ d: new Date(0) }", "a Date cannot be kept; use toISOString() or getTime()"),
        ("{ s: Symbol('s') }", "a Symbol cannot be kept"),
        ("{ b: new Uint8Array(2) }", "a Uint8Array cannot be kept"),
    ];
    for (value, says) in table {
        let node = format!("toolNode({{ id: 'a', execute: () => ({value}) as any }})");
        fails("", &node, &["node `a`", says]);
    }
}

fn two_ways(more: &Value) -> Value {
    let mut nodes = vec![
        json!({"type": "decision", "id": "ask", "fallback": "c",
               "routes": [{"condition": {"key": "prompt", "equals": "x"}, "target": "b"}]}),
        tool("b", "true"),
        tool("c", "true"),
        tool("join", "true"),
    ];
    nodes.extend(more["nodes"].as_array().cloned().unwrap_or_default());
    json!({"nodes": nodes, "edges": more["edges"]})
}

#[test]
fn a_join_of_branches_that_exclude_each_other_is_an_error() {
    let flow = two_ways(&json!({"edges": [{"from": ["b", "c"], "to": "join"}]}));
    let says =
        ["ATM220 error", "\"ask\" chooses only one of the two", "one edge to \"join\" from each"];
    refused_by_check(&flow, &says);

    // What only a run can know.
    let project = Project::new();
    let flow = json!({
        "nodes": [tool("a", "true"), tool("b", "true"), tool("c", "true"), tool("join", "true")],
        "edges": [
            {"from": "a", "to": "b", "condition": {"key": "prompt", "equals": "x"}},
            {"from": "a", "to": "c"},
            {"from": ["b", "c"], "to": "join"},
        ],
    });
    project.write("flow.json", &flow.to_string());
    assert_eq!(checked(&project, "flow.json").code, Some(0));
    let ran = project.run_file("flow.json", &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let says = "node `join` was never reached: its edge waits for `c` and `b`, and `b` never ran";
    assert!(ran.stderr.contains(says), "{}", ran.stderr);
    let again = project.resume(&[]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stderr.contains(says), "{}", again.stderr);
}

#[test]
fn nodes_that_go_round_for_ever_are_an_error() {
    let ring = json!({
        "nodes": [tool("a", "true"), tool("b", "true")],
        "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}],
    });
    refused_by_check(&ring, &["ATM302 error", "a → b → a goes round for ever"]);
    let project = Project::new();
    project.write(
        "flow.ts",
        "export const createState = (p: any) => ({ prompt: p.prompt });\nexport const graphConfig = {\n  \
         nodes: [{ id: 'a', type: 'tool', command: 'true' }, { id: 'b', type: 'tool', command: 'true' }],\n  \
         edges: [{ from: 'a', to: 'b' }, { from: 'b', to: 'a' }],\n};\n",
    );
    let checked = checked(&project, "flow.ts");
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert!(checked.stdout.contains("ATM302"), "{}", checked.stdout);
}

#[test]
fn commands_are_read_whatever_they_are_called() {
    let env = TestEnv::new();
    let folder = env.work().join(".claude/commands");
    fs::create_dir_all(&folder).unwrap();
    for name in ["changelog", "LICENSE", "agents", "readme", "README"] {
        fs::write(folder.join(name).with_extension("md"), format!("Write the {name}.\n")).unwrap();
    }
    let listed = env.run(["list", "commands"]).stdout;
    for name in ["changelog", "license", "agents", "readme"] {
        assert!(listed.contains(&format!("/{name}")), "{name}: {listed}");
    }
    let told = env.run(["doctor"]).stdout;
    assert!(told.contains("README.md"), "what is left out is told: {told}");
}

#[test]
fn removed_flags_are_told_wherever_they_stand() {
    let env = TestEnv::new();
    for (args, says) in [
        (&["run", "ralph", "Build it", "--yolo"][..], "--yolo is gone\n  hint: "),
        (&["run", "ralph", "--yolo", "Build it"], "--yolo is gone\n  hint: "),
        (
            &["run", "ralph", "Build it", "--completion-promise", "DONE"],
            "--completion-promise is gone",
        ),
        (&["run", "ralph", "--feature-list=x.json"], "atomic migrate <feature-list.json> --ralph"),
    ] {
        let ran = env.run(args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
    }
}

#[test]
fn a_prompt_that_looks_like_a_path_can_be_given_as_the_hint_says() {
    let script = Scene::default()
        .turn(agent("worker").and("Do this: and/or").does([say("Done as told.")]))
        .toml();
    let project = Project::scripted(&script);
    let nodes = json!([{"type": "subagent", "id": "a", "agent": "worker", "task": "{prompt}"}]);
    project
        .write(".atomic/workflows/flow.json", &json!({"name": "flow", "nodes": nodes}).to_string());
    let script = project.env.outside("script.toml");
    let given = ["--trust", "--backend", "script", "--script", script.to_str().unwrap()];
    let refused = project.env.run(["run", "flow", "and/or"].iter().chain(&given));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let (_, command) = refused.stderr.rsplit_once("atomic run flow '").expect(&refused.stderr);
    let (prompt, rest) = command.split_once('\'').unwrap();
    assert_eq!(rest.trim(), "");
    let ran = project.env.run(["run", "flow", prompt].iter().chain(&given));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("Done as told."), "{ran:?}");
}

/// A message names the node and the option, as they stand in the file.
#[test]
fn a_function_that_returns_something_else_is_named_as_its_author_wrote_it() {
    let table = [
        (
            "toolNode({ id: 'a', command: 'true', outputMapper: () => 5 })",
            "node `a`: `outputMapper` returned 5, not an object of changes",
        ),
        (
            "toolNode({ id: 'a', command: 'false', onError: () => null })",
            "node `a`: `onError` returned null",
        ),
    ];
    for (node, message) in table {
        fails("", node, &[message]);
    }
}
