//! Loops and what is built from them.

use atomic_workflow::build::{
    Agent, CriteriaLoop, Draft, MapReduce, ReviewCycle, TaskLoop, When, agent, clear_context,
    criteria_loop, graph, map_reduce, repeat, review_cycle, says, task_loop, tool, when,
};
use atomic_workflow::{Json, Update};
use serde_json::{Value, json};

use crate::driver::run;

/// A node that counts its visits under `n`.
fn count(id: &str) -> Draft<Json> {
    tool(id, |s| Update::new().put("n", s.value("n").as_u64().unwrap_or(0) + 1))
}

#[test]
fn a_loop_ends_when_it_is_done_or_at_its_limit() {
    let up_to = |done: u64, limit: u32| {
        let until = when(move |s| s.value("n").as_u64() >= Some(done));
        run(graph().start(count("a")).loop_([count("b"), count("c")], until, limit), json!({}))
    };
    assert_eq!(
        up_to(5, 10).trace(),
        "a#1 loop-1#1[1]/b#1 loop-1#1[1]/c#1 loop-1#1[2]/b#1 loop-1#1[2]/c#1"
    );
    assert_eq!(up_to(99, 1).trace(), "a#1 loop-1#1[1]/b#1 loop-1#1[1]/c#1");
    assert_eq!(up_to(9, 0).key("n"), 9);

    let ran = run(graph().start(repeat("thrice", count("a"), When::never(), 3)), json!({}));
    assert_eq!(ran.key("n"), 3);
}

#[test]
fn a_loop_may_wait_for_words() {
    let speak = tool("speak", |s| {
        let n = s.value("n").as_u64().unwrap_or(0) + 1;
        Update::new().put("n", n).output(if n > 2 { "it is ALL GOOD now" } else { "not yet" })
    });
    let ran = run(
        graph().start(repeat("wait", [speak.clone()], says("speak", "ALL GOOD"), 9)),
        json!({}),
    );
    assert_eq!(ran.key("n"), 3);

    let criteria = |max_iterations| CriteriaLoop {
        task_nodes: vec![count("first"), speak.clone()],
        completion_signal: "ALL GOOD".to_owned(),
        max_iterations,
    };
    let ran = run(graph().start(criteria_loop(criteria(0))), json!({}));
    assert_eq!(ran.key("n"), 4);
    assert!(ran.trace().starts_with("criteria-loop#1[1]/first#1 criteria-loop#1[1]/speak#1"));
    let ran = run(graph().start(criteria_loop(criteria(1))), json!({}));
    assert_eq!(ran.key("n"), 2);
}

#[test]
fn a_task_loop_goes_through_the_file() {
    let work = || agent("work", Agent::new("worker", "Do {currentTask.id}"));
    let fresh = || clear_context("fresh");
    let ran =
        run(graph().start(task_loop(TaskLoop::new(work()).pre_iteration_node(fresh()))), json!({}));
    let round = |n: u32| {
        format!(
            "task-loop#1[{n}]/next-task#1 task-loop#1[{n}]/fresh#1 task-loop#1[{n}]/work#1 \
             task-loop#1[{n}]/complete-task#1"
        )
    };
    assert_eq!(ran.trace(), format!("{} {} task-loop#1[3]/next-task#1", round(1), round(2)));

    let limited = TaskLoop::new([work()]).max_iterations(1);
    let ran = run(graph().start(task_loop(limited).id("one")), json!({}));
    assert_eq!(ran.trace(), "one#1[1]/next-task#1 one#1[1]/work#1 one#1[1]/complete-task#1");

    let last = |tasks: &Value| {
        let open = |task: &&Value| task["done"] == false;
        tasks.as_array().unwrap().iter().rev().find(open).cloned().unwrap_or_default()
    };
    let chosen = TaskLoop::new([work()])
        .tasks_path("tasks.json")
        .task_selector(move |tasks, _| last(tasks))
        .until(when(|s| s.value("currentTask")["id"] == "#1"));
    let ran = run(graph().start(task_loop(chosen)), json!({}));
    assert_eq!(
        ran.trace().replace("task-loop#1", ""),
        "[1]/next-task#1 [1]/work#1 [1]/complete-task#1 [2]/next-task#1 [2]/enough-tasks#1"
    );
}

#[test]
fn a_review_cycle_works_until_the_review_is_content() {
    let review = tool("review", |s| Update::new().put("good", s.value("n").as_u64() == Some(2)));
    let cycle = ReviewCycle {
        work: count("work").into(),
        review: review.into(),
        until: when(|s| s.value("good") == json!(true)),
        max_rounds: 5,
    };
    let ran = run(graph().start(review_cycle(cycle)), json!({}));
    assert_eq!(
        ran.trace().replace("review-cycle#1", ""),
        "[1]/work#1 [1]/review#1 [2]/work#1 [2]/review#1"
    );
}

#[test]
fn map_reduce_does_something_with_all_results() {
    let map = tool("length", |s| Ok(Update::new().output(s.local::<String>("item")?.len())));
    let reduce = tool("total", |s| {
        let lengths = s.output("map");
        let lengths = lengths.as_object().unwrap().values().filter_map(Value::as_u64);
        Update::new().put("total", lengths.sum::<u64>())
    });
    let built = graph()
        .start(count("a"))
        .then(map_reduce(MapReduce::new("words", map, reduce)))
        .then(count("z"));
    let ran = run(built, json!({"words": ["one", "three", "eleven"]}));
    assert_eq!(ran.outcome, Ok(()));
    assert_eq!(ran.key("total"), 14);
}
