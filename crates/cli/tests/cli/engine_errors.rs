//! What becomes of a node that fails, and of a run that meets one of its limits.

use serde_json::{Value, json};

use crate::engine::{Project, tool, with};

/// `first` fails the way it is told to; `next` follows it, and `other` does not.
fn failing(first: &str, more: Value) -> Value {
    json!({
        "state": {"mood": "fine"},
        "nodes": [
            with(tool("first", first), more),
            tool("next", "echo next {mood} {outputs.first} > out"),
            tool("other", "echo other {mood} {outputs.first} > out"),
        ],
        "edges": [{"from": "first", "to": "next"}],
    })
}

const GO_TO_OTHER: &str = "other";

#[test]
fn a_failure_is_skipped_mended_led_elsewhere_or_ends_the_run() {
    let error =
        r#"{"error":{"code":"shell","message":"`exit 3` ended with exit status: 3","detail":""}}"#;
    let update = json!({"action": "skip", "stateUpdate": {"mood": "gloomy"}});
    let goto = json!({"action": "goto", "node": GO_TO_OTHER});
    let table = [
        (json!("skip"), Some(format!("next fine {error}\n"))),
        (update, Some(format!("next gloomy {error}\n"))),
        (goto, Some(format!("other fine {error}\n"))),
        (json!("abort"), None),
        (Value::Null, None),
    ];
    for (on_error, out) in table {
        let project = Project::new();
        let mut workflow = failing("exit 3", json!({"onError": on_error}));
        if on_error["action"] != "goto" {
            // Nothing may be out of reach.
            workflow["nodes"].as_array_mut().unwrap().pop();
        }
        project.ends(&workflow, i32::from(out.is_none()));
        let wrote = project.env.work().join("out").exists().then(|| project.read("out"));
        assert_eq!(wrote, out, "{on_error}");
        assert_eq!(project.of_type("step_failed").len(), 1, "{on_error}");
    }
}

/// A script of many lines is told of in one.
#[test]
fn a_failure_is_told_in_one_line() {
    let project = Project::new();
    let script = format!("cd .\n# {}\necho because >&2; exit 3\n", "x".repeat(500));
    let ran = project.ends(&json!({"nodes": [tool("work", &script)]}), 1);
    assert_eq!(ran.stderr, "error: `cd . …` ended with exit status: 3\n");
    let failed = &project.of_type("step_failed")[0];
    assert_eq!(failed["error"]["detail"], "because\n", "what it said is kept");
}

#[test]
fn a_node_is_tried_again_only_for_the_codes_that_are_worth_it() {
    // Succeeds the third time.
    let command = "echo x >> \"$LEDGER\"; [ $(wc -l < \"$LEDGER\") -ge 3 ]";
    let retry = |codes: Value| json!({"maxAttempts": 3, "backoffMs": 1, "codes": codes});
    let table = [
        (json!({"retry": retry(json!(["shell"]))}), 0, 3),
        (json!({"retry": retry(json!(["timeout", "shell"]))}), 0, 3),
        (json!({"retry": retry(json!(["timeout"]))}), 1, 1),
        (json!({"retry": retry(Value::Null)}), 0, 3),
        (json!({"retry": {"maxAttempts": 2, "backoffMs": 1}}), 1, 2),
        (json!({"retry": {"backoffMs": 1}}), 0, 3),
        (json!({"onError": {"action": "retry", "delayMs": 1}}), 0, 3),
        (json!({"retry": {"maxAttempts": 2, "backoffMs": 1}, "onError": "skip"}), 0, 2),
    ];
    for (more, code, attempts) in table {
        let project = Project::new();
        let ran = project.run(&json!({"nodes": [with(tool("work", command), more.clone())]}), &[]);
        assert_eq!(ran.code, Some(code), "{more}: {ran:?}");
        assert_eq!(project.env.ledger().len(), attempts, "{more}");
        let started = project.of_type("step_started");
        let how: Vec<_> = started.iter().map(|fact| fact["how"].as_str().unwrap()).collect();
        assert_eq!(how[0], "first", "{more}");
        assert!(how[1..].iter().all(|how| *how == "retried"), "{more}: {how:?}");
    }
}

/// The node that catches goes on with what follows it; what followed the failure is left out.
#[test]
fn a_failure_is_caught() {
    let project = Project::new();
    let workflow = json!({
        "nodes": [
            tool("first", "true"),
            tool("breaks", "exit 3"),
            tool("never", "touch never"),
            tool("rescue", "echo {outputs.breaks} > out"),
            tool("then", "echo then >> out"),
        ],
        "edges": [
            {"from": "first", "to": "breaks"},
            {"from": "breaks", "to": "never"},
            {"from": "rescue", "to": "then"},
        ],
        "catch": "rescue",
    });
    project.ends(&workflow, 0);
    assert_eq!(
        project.story(),
        [
            "started first#1",
            "finished first#1",
            "started breaks#1",
            "failed breaks#1",
            "started rescue#1",
            "finished rescue#1",
            "started then#1",
            "finished then#1",
        ]
    );
    let out = project.read("out");
    assert!(out.contains("`exit 3` ended with exit status: 3") && out.ends_with("then\n"), "{out}");
}

/// In an inner graph the failure is caught there, and nobody outside hears of it.
#[test]
fn a_failure_inside_is_caught_inside() {
    let project = Project::new();
    let inner = json!({"nodes": [tool("breaks", "exit 3"), tool("rescue", "echo saved")],
        "edges": [], "catch": "rescue"});
    let each = json!({"type": "each", "id": "all", "over": "items", "graph": inner});
    let workflow = json!({"state": {"items": ["a", "b"]},
        "nodes": [each, tool("after", "echo {outputs.all} > out")]});
    project.ends(&workflow, 0);
    assert_eq!(project.read("out"), "{\"0\":\"saved\",\"1\":\"saved\"}\n");
}

#[test]
fn what_does_not_fit_a_schema_is_refused_with_node_and_place() {
    let project = Project::new();
    let schema = json!({"type": "object", "properties": {"size": {"type": "object",
        "properties": {"width": {"type": "number"}}}}});
    let strict = with(tool("measure", "touch begun"), json!({"inputSchema": schema}));
    let workflow = json!({"state": {"size": {"width": "wide"}}, "nodes": [strict]});
    let ran = project.ends(&workflow, 1);
    insta::assert_snapshot!(project.shown(&ran), @r#"
    [TIME] Started Flow session: SESSION
    [TIME] Failed: the state does not fit the input schema of `measure`: at `/size/width`: "wide" is not of type "number"
    Failed Flow session: SESSION
    Resume with: atomic resume SESSION
    --- stderr
    error: the state does not fit the input schema of `measure`: at `/size/width`: "wide" is not of type "number"
    --- exit code 1
    "#);
    assert!(!project.env.work().join("begun").exists(), "it was refused before it was begun");

    let project = Project::new();
    let strict = with(tool("speak", "echo hi"), json!({"outputSchema": {"minLength": 5}}));
    let ran = project.ends(&json!({"nodes": [strict, tool("never", "touch never")]}), 1);
    insta::assert_snapshot!(project.shown(&ran), @r#"
    [TIME] Started Flow session: SESSION
    [TIME]   speak#1 failed: what `speak` returned does not fit its output schema: "hi" is shorter than 5 characters
    [TIME] Failed: what `speak` returned does not fit its output schema: "hi" is shorter than 5 characters
    Failed Flow session: SESSION
    Resume with: atomic resume SESSION
    --- stderr
    error: what `speak` returned does not fit its output schema: "hi" is shorter than 5 characters
    --- exit code 1
    "#);
    assert!(!project.env.work().join("never").exists());
}

/// A node that follows itself.
fn round_and_round(more: Value) -> Value {
    let again = tool("again", "echo x >> \"$LEDGER\"");
    with(json!({"nodes": [again], "edges": [{"from": "again", "to": "again"}]}), more)
}

#[test]
fn limits_of_the_whole_run_end_it_with_exit_code_5() {
    let in_a_row: Vec<Value> =
        ["a", "b", "c"].iter().map(|id| tool(id, "echo x >> \"$LEDGER\"")).collect();
    let slow = tool("slow", "echo x >> \"$LEDGER\"; exec sleep 1000");
    let table = [
        (
            round_and_round(json!({"maxIterations": 3})),
            3,
            "node `again` has used all of its 3 iterations",
        ),
        (json!({"maxSteps": 2, "nodes": in_a_row}), 2, "the run has used all of its 2 steps"),
        (json!({"timeoutMs": 3_000, "nodes": [slow]}), 1, "the run has used all of its 3 s"),
    ];
    for (workflow, begun, message) in table {
        let project = Project::new();
        let ran = project.ends(&workflow, 5);
        assert_eq!(ran.stderr, format!("error: {message}\n"));
        assert_eq!(project.env.ledger().len(), begun, "{message}");
        assert_eq!(project.of_type("run_finished")[0]["ending"]["why"], "ceiling", "{message}");
    }
}

/// `onError` and `catch` are for failures; with them a run could go round for ever.
#[test]
fn a_limit_of_the_whole_run_cannot_be_caught() {
    let more = json!({"onError": "skip"});
    let again = with(tool("again", "echo x >> \"$LEDGER\""), more);
    let workflow = json!({"maxIterations": 3, "nodes": [again, tool("rescue", "true")],
        "edges": [{"from": "again", "to": "again"}], "catch": "rescue"});
    let project = Project::new();
    project.ends(&workflow, 5);
    assert_eq!(project.env.ledger().len(), 3);
}

#[test]
fn a_limit_that_is_raised_lets_the_run_go_on() {
    let project = Project::new();
    let always = json!({"not": {"key": "prompt", "equals": "stop"}});
    let edges = json!([{"from": "again", "to": "again", "condition": always}]);
    let workflow = round_and_round(json!({ "edges": edges }));
    let ran = project.run(&workflow, &["--max-iterations", "2"]);
    assert_eq!((ran.code, project.env.ledger().len()), (Some(5), 2), "{ran:?}");
    let ran = project.resume(&["--max-iterations", "5"]);
    assert_eq!((ran.code, project.env.ledger().len()), (Some(5), 5), "{ran:?}");
}

/// A node's own limit is the node's: what it leads to can be said.
#[test]
fn a_node_that_may_not_be_visited_again_can_be_left() {
    let project = Project::new();
    let goto = json!({"action": "goto", "node": "after"});
    let again =
        with(tool("again", "echo x >> \"$LEDGER\""), json!({"maxVisits": 2, "onError": goto}));
    let workflow = json!({"nodes": [again, tool("after", "touch left")],
        "edges": [{"from": "again", "to": "again"}]});
    project.ends(&workflow, 0);
    assert_eq!(project.env.ledger().len(), 2);
    assert!(project.env.work().join("left").exists());
}

/// The first branch fails once the second is under way; the second ends when it is let go.
fn fail_fast(fail_fast: bool) -> Value {
    let bad = "until [ -e under-way ]; do sleep 0.02; done; exit 3";
    let good = "touch under-way; until grep -q '\"type\":\"step_failed\"' \
                .atomic/sessions/*/journal.jsonl; do sleep 0.02; done; sleep 0.1; echo x >> \"$LEDGER\"";
    let stuck = format!("{good}; exec sleep 1000");
    let good = if fail_fast { stuck.as_str() } else { good };
    json!({"type": "parallel", "id": "fan", "failFast": fail_fast,
        "branches": [tool("bad", bad), tool("good", good)]})
}

#[test]
fn independent_branches_go_on_unless_it_is_to_fail_fast() {
    let project = Project::new();
    let ran = project.ends(&json!({"nodes": [fail_fast(false)]}), 1);
    assert!(ran.stderr.contains("1 of 2 branches failed"), "{}", ran.stderr);
    assert_eq!(project.story().last().unwrap(), "finished fan#1[good]/good#1");
    assert_eq!(project.env.ledger(), ["x"]);

    let project = Project::new();
    project.ends(&json!({"nodes": [fail_fast(true)]}), 1);
    assert_eq!(project.story().last().unwrap(), "cancelled fan#1[good]/good#1");
}
