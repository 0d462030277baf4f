//! Typed state, from the struct to the end of a run.

use atomic_graph::{Key, Reducer};
use atomic_workflow::build::{
    Agent, Branches, Config, Fan, Inner, equals, graph, subagent, text, tool, when,
};
use atomic_workflow::{Field, Reduce, StateKeys, TypedKey, Update, View};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::driver::run_compiled;

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct Task {
    id: String,
    done: bool,
}

/// Every kind of key.
#[derive(StateKeys)]
#[serde(rename_all = "camelCase")]
struct Plan {
    prompt: String,
    #[state(reducer = "mergeById")]
    tasks: Vec<Task>,
    #[state(reducer = "concat")]
    findings: Vec<String>,
    #[state(reducer = "sum", default = 10)]
    round_count: u32,
    #[serde(rename = "done?")]
    done: bool,
    #[state(merge_by = "name")]
    people: Vec<serde_json::Value>,
    #[state(reduce_with = longest)]
    best: String,
    verdict: Option<String>,
    r#type: String,
}

fn longest(old: Option<String>, change: String) -> String {
    old.filter(|old| old.len() > change.len()).unwrap_or(change)
}

#[derive(StateKeys)]
struct Child {
    topic: String,
    words: u64,
}

#[test]
fn a_struct_gives_keys_reducers_and_defaults() {
    let fields: Vec<String> = Plan::fields()
        .into_iter()
        .map(|Field { key, reduce, default }| {
            let reduce = match reduce {
                Reduce::By(reducer) => format!("{reducer:?}"),
                Reduce::With(_) => "a function".to_owned(),
            };
            format!("{key}: {reduce} from {}", default.unwrap())
        })
        .collect();
    assert_eq!(
        fields,
        [
            "prompt: Replace from \"\"",
            "tasks: MergeById from []",
            "findings: Concat from []",
            "roundCount: Sum from 10",
            "done?: Replace from false",
            "people: MergeBy(\"name\") from []",
            "best: a function from \"\"",
            "verdict: Replace from null",
            "type: Replace from \"\"",
        ]
    );
    let typed: TypedKey<Plan, u32> = Plan::ROUND_COUNT;
    assert_eq!(
        (typed.name(), Plan::DONE.name(), Plan::TYPE.name()),
        ("roundCount", "done?", "type")
    );
}

fn open(s: &View<'_, Plan>) -> Result<Vec<Task>, atomic_event::StepError> {
    Ok(s.get(Plan::TASKS)?.into_iter().filter(|task| !task.done).collect())
}

#[test]
fn a_typed_workflow_runs_to_its_end() {
    let task = |id: &str| Task { id: id.to_owned(), done: false };
    let count = graph::<Child>()
        .start(tool("count", |s| {
            let words = s.get(Child::TOPIC)?.split_whitespace().count();
            Ok(Update::new().set(Child::WORDS, words as u64))
        }))
        .compile(Config::new("count"))
        .unwrap();
    let compiled = graph::<Plan>()
        .start(subagent("plan", Agent::new("planner", text(|s| s.get(Plan::PROMPT)))).map(
            move |said, _| {
                assert_eq!(said, "Build it");
                Update::new().set(Plan::TASKS, vec![task("#1"), task("#2")])
            },
        ))
        .loop_(
            subagent(
                "work",
                Agent::new(
                    "worker",
                    text(|s| {
                        Ok(format!("Do {}", open(s)?.first().map_or("nothing", |task| &task.id)))
                    }),
                ),
            )
            .map(|_, s| {
                let done = open(s)?.into_iter().take(1).map(|task| Task { done: true, ..task });
                Ok(Update::new().set(Plan::TASKS, done.collect()).set(Plan::ROUND_COUNT, 1))
            }),
            when(|s| Ok(open(s)?.is_empty())),
            10,
        )
        .parallel(
            Branches::new()
                .branch("short", tool("a", |_| Update::new().set(Plan::BEST, "short".to_owned())))
                .branch("long", tool("b", |_| Update::new().set(Plan::BEST, "longer".to_owned())))
                .merge(|outputs, _| {
                    let branches = outputs.as_object().map_or(0, serde_json::Map::len);
                    Update::new().set(Plan::FINDINGS, vec![format!("{branches} reviews")])
                }),
        )
        .each(
            "each",
            Fan::over(
                Plan::TASKS,
                tool("note", |s| {
                    let task: Task = s.local("item")?;
                    Ok(Update::new().set(Plan::FINDINGS, vec![task.id]))
                }),
            ),
        )
        .subgraph(
            "count",
            Inner::mapped(count, |s: &View<'_, Plan>| {
                Ok(Update::new().set(Child::TOPIC, s.get(Plan::PROMPT)?))
            })
            .output(|child, plan| {
                let words = child.get(Child::WORDS)?;
                let rounds = plan.get(Plan::ROUND_COUNT)?;
                Ok(Update::new()
                    .set(Plan::VERDICT, Some(format!("{words} words, {rounds} rounds"))))
            }),
        )
        .if_(equals(Plan::DONE, false))
        .then(tool("done", |_| Update::new().set(Plan::DONE, true)))
        .endif()
        .compile(Config::new("typed"))
        .unwrap();
    assert_eq!(compiled.graph.reducers.get(&Key::from("roundCount")), Some(&Reducer::Sum));
    let ran = run_compiled(compiled, json!({}));
    assert_eq!(ran.outcome, Ok(()));
    assert_eq!(ran.output("loop-1"), "Do #2");
    assert_eq!(ran.key("roundCount"), 12);
    assert_eq!(ran.key("best"), "longer");
    assert_eq!(ran.key("findings"), &json!(["2 reviews", "#1", "#2"]));
    assert_eq!(ran.key("verdict"), "2 words, 12 rounds");
    assert_eq!(ran.key("done?"), true);
}

#[test]
fn a_value_of_another_shape_names_node_and_key() {
    let built = || {
        graph::<Plan>().start(tool("count", |s| {
            Ok(Update::new().set(Plan::ROUND_COUNT, s.get(Plan::ROUND_COUNT)?))
        }))
    };
    let run = |values| {
        let compiled = built().compile(Config::new("typed")).unwrap();
        run_compiled(compiled, values).outcome.unwrap_err()
    };
    let error = run(json!({"roundCount": "many"}));
    assert_eq!(error.code, "function");
    assert_eq!(
        error.message,
        "node `count`: key `roundCount` has another shape than expected: invalid type: string \
         \"many\", expected u32"
    );
    let error = run(json!({"roundCount": null}));
    assert_eq!(
        error.message,
        "node `count`: key `roundCount` has no value (invalid type: null, expected u32)"
    );
}
