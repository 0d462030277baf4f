//! Plain async workflows: which calls they make under which keys, and what they stop.

use std::sync::Arc;

use atomic_typescript::{Arg, Delivery, Outcome, Progress, Script, Turn, Worker};
use serde_json::{Value, json};

use super::worker;

/// A script that has begun.
struct Run {
    script: Script,
    turn: Turn,
    /// Kept alive.
    _worker: Worker,
}

fn begin(body: &str) -> Run {
    let text = format!(
        "import {{ defineWorkflow }} from \"atomic/workflows\";\nexport default defineWorkflow({{ name: \"x\", workflows: [\"ralph\"], maxCalls: 9 }}).run(async (ctx) => {{ {body} }});"
    );
    let worker = worker(&text);
    let document =
        worker.load(&Value::Null).unwrap_or_else(|trouble| panic!("{trouble}")).descriptor;
    assert_eq!((&document["name"], &document["$workflows"]), (&json!("x"), &json!(["ralph"])));
    assert_eq!(document["$maxCalls"], 9);
    let function = u32::try_from(document["$script"]["$fn"].as_u64().unwrap()).unwrap();
    let base = json!({"prompt": "p", "state": {"k": 1}});
    let args = vec![Arg::Value(Arc::new(base))];
    let (script, turn) = worker.start_script(function, args, 1, 1_000).unwrap();
    Run { script, turn, _worker: worker }
}

impl Run {
    fn keys(&self) -> Vec<&str> {
        self.turn.calls.iter().map(|call| call.key.as_str()).collect()
    }

    fn deliver(&mut self, key: &str, outcome: Outcome) -> &mut Self {
        let delivery = Delivery { key: key.to_owned(), outcome };
        self.turn = self.script.deliver(delivery, 2_000).unwrap();
        self
    }

    fn ends(&mut self, key: &str, value: Value) -> &mut Self {
        self.deliver(key, Outcome::Value(Arc::new(value)))
    }

    fn fails(&mut self, key: &str) -> &mut Self {
        let (code, message) = ("shell".to_owned(), format!("{key} failed"));
        self.deliver(key, Outcome::Failed { code, message })
    }

    fn returned(&self) -> &Value {
        let Progress::Returned(value) = &self.turn.progress else {
            panic!("it has not returned: {:?}", self.turn.progress)
        };
        value
    }

    fn threw(&self) -> String {
        let Progress::Threw(trouble) = &self.turn.progress else {
            panic!("it has not thrown: {:?}", self.turn.progress)
        };
        trouble.message.clone()
    }
}

#[test]
fn calls_are_counted_by_kind_or_named() {
    let mut run = begin(
        "const a = await ctx.agent('w', ctx.prompt); const b = await ctx.agent({ prompt: 'q', model: 'm', key: 'mine' });
         const c = await ctx.agent('w', { task: 't', conversation: 'c' }); await ctx.skill('commit', 'now');
         return [a, b, c, ctx.state.k];",
    );
    let args = |run: &Run| run.turn.calls[0].args.clone();
    assert_eq!((run.keys(), args(&run)), (vec!["agent:1"], json!({"agent": "w", "prompt": "p"})));
    run.ends("agent:1", json!("A"));
    assert_eq!((run.keys(), args(&run)), (vec!["mine"], json!({"prompt": "q", "model": "m"})));
    run.ends("mine", json!("B"));
    assert_eq!(args(&run), json!({"prompt": "t", "agent": "w", "conversation": "c"}));
    run.ends("agent:2", json!("C"));
    assert_eq!(
        (run.keys(), args(&run)),
        (vec!["skill:1"], json!({"name": "commit", "args": "now"}))
    );
    run.ends("skill:1", json!(""));
    assert_eq!(run.returned(), &json!(["A", "B", "C", 1]));
}

#[test]
fn time_is_that_of_the_last_delivery_and_sleep_is_until_a_moment() {
    let mut run = begin(
        "await ctx.sleep(500); const at = ctx.now(); await ctx.workflow('ralph', 'do', { key: 'r' }); return at;",
    );
    assert_eq!(run.turn.calls[0].args, json!({"until": 1_500}));
    run.ends("sleep:1", Value::Null);
    assert_eq!(run.turn.calls[0].args, json!({"workflow": "ralph", "input": {"prompt": "do"}}));
    run.ends("r", Value::Null);
    assert_eq!(run.returned(), &json!(2_000));
}

#[test]
fn branches_have_scopes_of_their_own() {
    let mut run = begin(
        "return ctx.parallel({ a: (c) => c.agent('x', '1'), b: async (c) => { await c.agent('y', '2'); return c.shell('ls'); } });",
    );
    assert_eq!(run.keys(), ["p1.a/agent:1", "p1.b/agent:1"]);
    run.ends("p1.b/agent:1", json!("")).ends("p1.a/agent:1", json!("A"));
    run.ends("p1.b/shell:1", json!({"code": 0}));
    assert_eq!(run.returned(), &json!({"a": "A", "b": {"code": 0}}));
}

#[test]
fn the_first_to_end_wins_a_race_and_the_others_are_gone_before_it_is_over() {
    let mut run = begin(
        "return ctx.parallel([(c) => c.parallel([(d) => d.agent('x', '1')]), (c) => c.agent('y', '2')], { strategy: 'race' });",
    );
    run.ends("p1.1/agent:1", json!("won"));
    assert_eq!(run.turn.cancelled, ["p1.0/p1.0/agent:1"]);
    assert_eq!(run.turn.progress, Progress::Waiting);
    run.deliver("p1.0/p1.0/agent:1", Outcome::Cancelled);
    assert_eq!(run.returned(), &json!("won"));
}

#[test]
fn a_branch_that_is_stopped_starts_nothing_more() {
    let mut run = begin(
        "return ctx.parallel([async (c) => { try { await c.agent('x', '1'); } catch { await c.agent('x', '2'); } }, (c) => c.agent('y', '3')], { strategy: 'race' });",
    );
    run.ends("p1.1/agent:1", json!("won")).deliver("p1.0/agent:1", Outcome::Cancelled);
    assert_eq!(run.keys(), Vec::<&str>::new());
    assert_eq!(run.returned(), &json!("won"));
    // Nor through branches of its own.
    for more in
        ["c.parallel([(d) => d.agent('x', '2')])", "c.map([1], (_, d) => d.agent('x', '2'))"]
    {
        let mut run = begin(&format!(
            "const won = await ctx.parallel([async (c) => {{ try {{ await c.agent('x', '1'); }} catch {{ await {more}; }} }}, (c) => c.agent('y', '3')], {{ strategy: 'race' }}); await ctx.agent('z', '4'); return won;"
        ));
        run.ends("p1.1/agent:1", json!("won")).deliver("p1.0/agent:1", Outcome::Cancelled);
        assert_eq!(run.keys(), ["agent:1"], "{more}");
    }
}

#[test]
fn any_waits_for_a_success_and_all_for_no_failure() {
    let body = |strategy: &str| {
        format!(
            "return ctx.parallel([(c) => c.agent('x', '1'), (c) => c.agent('y', '2')], {{ strategy: '{strategy}' }});"
        )
    };
    let mut run = begin(&body("any"));
    run.fails("p1.1/agent:1").ends("p1.0/agent:1", json!("late"));
    assert_eq!(run.returned(), &json!("late"));
    let mut run = begin(&body("any"));
    run.fails("p1.1/agent:1").fails("p1.0/agent:1");
    assert_eq!(run.threw(), "every branch failed: p1.0/agent:1 failed; p1.1/agent:1 failed");
    let mut run = begin(&body("all"));
    run.fails("p1.1/agent:1");
    assert_eq!(run.turn.cancelled, ["p1.0/agent:1"]);
    run.deliver("p1.0/agent:1", Outcome::Cancelled);
    assert_eq!(run.threw(), "p1.1/agent:1 failed");
}

#[test]
fn an_error_says_of_which_calls_it_is() {
    let table = [
        ("await ctx.shell('a');", vec!["shell:1"]),
        ("try { await ctx.shell('a'); } finally { ctx.log('x'); }", vec!["shell:1"]),
        ("try { await ctx.shell('a'); } catch (e) { throw e; }", vec!["shell:1"]),
        (
            "try { await ctx.shell('a'); } catch (e) { throw new Error('x', { cause: new Error('y', { cause: e }) }); }",
            vec!["shell:1"],
        ),
        ("await ctx.parallel([(c) => c.shell('a')], { strategy: 'any' });", vec!["p1.0/shell:1"]),
        ("await ctx.map([1], (_, c) => c.shell('a'));", vec!["m1.0/shell:1"]),
        ("await Promise.any([ctx.shell('a'), Promise.reject(1)]);", vec!["shell:1"]),
        // These are the file's own.
        ("try { await ctx.shell('a'); } catch (e) { throw new Error(e.message); }", vec![]),
        (
            "try { await ctx.shell('a'); } catch { const e = new Error('x'); e.cause = e; throw e; }",
            vec![],
        ),
    ];
    for (body, expected) in table {
        let mut run = begin(body);
        let key = run.keys()[0].to_owned();
        run.fails(&key);
        let Progress::Threw(trouble) = &run.turn.progress else { panic!("{:?}", run.turn) };
        assert_eq!(trouble.about.calls, expected, "{body}");
    }
}

#[test]
fn a_limit_is_kept() {
    let mut run =
        begin("return ctx.map([1, 2, 3], (n, c) => c.agent('x', String(n)), { limit: 2 });");
    assert_eq!(run.keys(), ["m1.0/agent:1", "m1.1/agent:1"]);
    run.ends("m1.1/agent:1", json!("b"));
    assert_eq!(run.keys(), ["m1.2/agent:1"]);
    run.ends("m1.0/agent:1", json!("a")).ends("m1.2/agent:1", json!("c"));
    assert_eq!(run.returned(), &json!(["a", "b", "c"]));
}

#[test]
fn misuse_is_said() {
    let table = [
        (
            "await ctx.agent('w', { key: 'k', prompt: 'x' }); await ctx.agent('w', { key: 'k', prompt: 'x' });",
            "ctx.agent: there is a call with the key \"k\" already; every key is used once",
        ),
        (
            "await ctx.agent('w', { promt: 'x' });",
            "ctx.agent(…): there is no option \"promt\"; there are agent, prompt, task, model, backend, schema, systemPrompt, questions, conversation, key",
        ),
        (
            "await ctx.parallel([1]);",
            "ctx.parallel(…): branch 0 is not a function; write (ctx) => ctx.agent(…), so that it can be started, counted and stopped",
        ),
        (
            "await ctx.agent('w', 'x', { schema: { type: 'array' } });",
            "ctx.agent(…): \"schema\" must be a JSON Schema of the type \"object\": { type: \"object\", properties: { … } }",
        ),
        (
            "await ctx.sleep('1');",
            "ctx.sleep(…): the time must be a number of milliseconds from 0 to 1000000000000, but it is 1",
        ),
    ];
    for (body, expected) in table {
        let mut run = begin(body);
        if run.turn.progress == Progress::Waiting {
            run.ends("k", Value::Null);
        }
        assert_eq!(run.threw(), expected, "{body}");
    }
}
