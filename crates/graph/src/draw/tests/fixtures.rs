//! Graphs to draw.

use serde_json::{Value, json};

use crate::draw::{Mark, Overlay, Status};
use crate::{
    Branch, Condition, Count, Each, Graph, Key, Kind, Node, OnError, Parallel, Ready, Retry,
    StepId, Strategy,
};

pub(crate) fn work(id: &str) -> Node {
    Node::work(id, Value::Null)
}

pub(crate) fn agent(id: &str) -> Node {
    Node::launch(id, Value::Null)
}

pub(crate) fn chain(ids: &[&str]) -> Graph {
    let mut graph = Graph::starting_at(ids[0]);
    for id in ids {
        graph = graph.node(work(id));
    }
    for pair in ids.windows(2) {
        graph = graph.edge(pair[0], pair[1]);
    }
    graph
}

pub(crate) fn subgraph(id: &str, graph: Graph) -> Node {
    Node::new(id, Kind::Subgraph { graph, isolated: false, input: None, output: None })
}

pub(crate) fn looped(id: &str, graph: Graph) -> Node {
    let until = Some(equals("verdict", "done"));
    Node::new(id, Kind::Loop { graph, until, max_rounds: 5 })
}

pub(crate) fn each(id: &str, graph: Graph, workers: Count) -> Node {
    Node::new(
        id,
        Kind::Each(Each {
            over: Key::from("tasks"),
            item: Key::from("item"),
            graph,
            workers,
            ready: Ready::Tasks,
            fail_fast: false,
            order: Ready::Tasks.order(),
        }),
    )
}

pub(crate) fn parallel(id: &str, strategy: Strategy, branches: Vec<(&str, Graph)>) -> Node {
    let branches =
        branches.into_iter().map(|(id, graph)| Branch { id: id.into(), graph }).collect();
    Node::new(id, Kind::Parallel(Parallel { branches, strategy, fail_fast: false, merge: None }))
}

pub(crate) fn equals(key: &str, value: &str) -> Condition {
    Condition::Equals { key: key.into(), value: json!(value) }
}

fn patient() -> Retry {
    Retry { attempts: 3, ..Retry::default() }
}

/// The built-in workflow.
pub(crate) fn ralph() -> Graph {
    let to_settle = || OnError::Goto("settle".into());
    let task = Graph::starting_at("worker")
        .node(
            agent("worker")
                .described("Implementing a task")
                .retry(patient())
                .on_error(to_settle())
                .max_visits(Count::Key(Key::from("maxIterations"))),
        )
        .node(work("check").described("Checking the result").on_error(to_settle()))
        .node(work("settle").described("Settling the task"))
        .edge_when("worker", "settle", Condition::Call("ralph/gave-up".into()))
        .edge_when("worker", "check", Condition::Otherwise)
        .edge("check", "settle");
    let fan = each("select-ready-tasks", task, Count::Key(Key::from("workers")));
    Graph::starting_at("planner")
        .node(agent("planner").described("Planning the tasks").retry(patient()))
        .node(
            work("parse-tasks")
                .described("Reading the plan")
                .may_go_to(["planner"])
                .on_revive("planner"),
        )
        .node(work("baseline").described("Running the checks before any work is done"))
        .node(fan.described("Working through the tasks"))
        .node(work("judge-tasks").described("Looking at what is left").on_revive("reopen-tasks"))
        .node(work("reopen-tasks").described("Giving failed tasks another chance"))
        .node(agent("reviewer").described("Reviewing the result").retry(patient()))
        .node(
            work("fixer")
                .described("Turning findings into tasks")
                .may_go_to(["select-ready-tasks"])
                .on_revive("reviewer"),
        )
        .edge("planner", "parse-tasks")
        .edge("parse-tasks", "baseline")
        .edge("baseline", "select-ready-tasks")
        .edge("select-ready-tasks", "judge-tasks")
        .edge("judge-tasks", "reviewer")
        .edge("reopen-tasks", "select-ready-tasks")
        .edge("reviewer", "fixer")
}

/// The same in the middle of its work.
pub(crate) fn ralph_run() -> Overlay {
    let mut run = Overlay::default();
    let mut add = |step: &str, status, took| run.add(&StepId::new(step), status, took);
    add("planner#1", Status::Completed, Some(31_000));
    add("parse-tasks#1", Status::Completed, Some(10));
    add("planner#2", Status::Completed, Some(28_400));
    add("parse-tasks#2", Status::Completed, Some(10));
    add("baseline#1", Status::Completed, Some(64_000));
    for item in 1..=6 {
        add(&format!("select-ready-tasks#1[#{item}]/worker#1"), Status::Completed, Some(95_000));
        add(&format!("select-ready-tasks#1[#{item}]/check#1"), Status::Completed, Some(12_000));
        add(&format!("select-ready-tasks#1[#{item}]/settle#1"), Status::Completed, Some(2));
    }
    add("select-ready-tasks#1[#7]/worker#1", Status::Failed, Some(5_000));
    add("select-ready-tasks#1[#8]/worker#1", Status::Completed, Some(50_000));
    add("select-ready-tasks#1[#8]/check#1", Status::Running, None);
    add("select-ready-tasks#1[#9]/worker#1", Status::Asking, None);
    run
}

/// Regions in regions.
pub(crate) fn nested() -> Graph {
    let review = Graph::starting_at("write")
        .node(agent("write").described("Write the chapter"))
        .node(agent("critic").described("Read it as a stranger would"))
        .node(Node::new("good?", Kind::Decision))
        .node(work("publish"))
        .edge("write", "critic")
        .edge("critic", "good?")
        .edge_when("good?", "publish", equals("verdict", "good"))
        .edge_when("good?", "write", Condition::Otherwise);
    let refine = looped("refine", review).described("Until it is good");
    let items =
        Graph::starting_at("outline").node(work("outline")).node(refine).edge("outline", "refine");
    let left = Graph::starting_at("chapters")
        .node(each("chapters", items, Count::Fixed(3)).described("All chapters"));
    let fast = chain(&["search", "rank"]);
    let slow = Graph::starting_at("ask").node(agent("ask").timeout_ms(90_000));
    let sources = parallel("sources", Strategy::Any, vec![("fast", fast), ("slow", slow)]);
    let right = Graph::starting_at("sources")
        .node(sources)
        .node(work("cite").on_error(OnError::Skip))
        .edge("sources", "cite");
    let both = parallel("book", Strategy::All, vec![("text", left), ("notes", right)]);
    let wrap_up = subgraph("wrap-up", chain(&["index", "print"]));
    let mut graph = Graph::starting_at("plan")
        .node(agent("plan").described("Agree on what the book is about"))
        .node(both.described("Text and notes at the same time"))
        .node(wrap_up)
        .node(work("apologise").described("Say what went wrong"))
        .edge("plan", "book")
        .edge("book", "wrap-up");
    graph.catch = Some("apologise".into());
    graph.max_steps = Some(500);
    graph.max_concurrency = Some(4);
    graph
}

/// Thirty nodes with branches, joins, cycles and long ways.
pub(crate) fn thirty() -> Graph {
    let mut graph = Graph::starting_at("intake");
    let names = [
        ("intake", "Read the request"),
        ("triage", "Decide what it is"),
        ("bug", "Reproduce the bug"),
        ("feature", "Sketch the feature"),
        ("question", "Answer from the docs"),
        ("bisect", "Find the commit"),
        ("fix", "Write the fix"),
        ("design", "Write the design"),
        ("approve", "Wait for approval"),
        ("backend", "Build the server side"),
        ("frontend", "Build the screen"),
        ("docs", "Write the manual page"),
        ("unit", "Unit tests"),
        ("e2e", "Tests through the browser"),
        ("lint", "Style and types"),
        ("bench", "Is it as fast as before?"),
        ("merge-ready", "Everything is in"),
        ("review", "Read the change"),
        ("rework", "Do what the review says"),
        ("security", "Look for holes"),
        ("legal", "Licences"),
        ("changelog", "Tell people"),
        ("version", "Choose the number"),
        ("build", "Build for all systems"),
        ("sign", "Sign the files"),
        ("stage", "Install on the test system"),
        ("smoke", "Does it start?"),
        ("release", "Hand it out"),
        ("rollback", "Take it back"),
        ("report", "Write down how it went"),
    ];
    for (index, (id, description)) in names.into_iter().enumerate() {
        let node = if index % 3 == 0 { agent(id) } else { work(id) };
        graph = graph.node(node.described(description));
    }
    graph.nodes[1].kind = Kind::Decision;
    graph.nodes[6].retry = patient();
    graph.nodes[25].on_error = OnError::Goto("rollback".into());
    graph.nodes[27].on_error = OnError::Goto("rollback".into());
    graph.nodes[26].targets = vec!["stage".into()];
    graph.nodes[15].timeout_ms = Some(600_000);
    graph
        .edge("intake", "triage")
        .edge_when("triage", "bug", equals("kind", "bug"))
        .edge_when("triage", "feature", equals("kind", "feature"))
        .edge_when("triage", "question", Condition::Otherwise)
        .edge("question", "report")
        .edge("bug", "bisect")
        .edge("bisect", "fix")
        .edge("fix", "unit")
        .edge("feature", "design")
        .edge("design", "approve")
        .edge_when("approve", "backend", Condition::Call("approved".into()))
        .edge_when("approve", "design", Condition::Otherwise)
        .edge("approve", "frontend")
        .edge("approve", "docs")
        .edge("backend", "unit")
        .edge("backend", "bench")
        .edge("frontend", "e2e")
        .edge("frontend", "lint")
        .join(["unit", "e2e", "lint", "bench", "docs"], "merge-ready")
        .edge("merge-ready", "review")
        .edge("merge-ready", "security")
        .edge("merge-ready", "legal")
        .edge_when("review", "rework", Condition::Not(Box::new(equals("review", "fine"))))
        .edge_when("review", "changelog", equals("review", "fine"))
        .edge("rework", "review")
        .join(["changelog", "security", "legal"], "version")
        .edge("version", "build")
        .edge("build", "sign")
        .edge("sign", "stage")
        .edge("stage", "smoke")
        .edge("smoke", "release")
        .edge("release", "report")
        .edge("rollback", "report")
}

/// The same, with something in every status.
pub(crate) fn thirty_run() -> Overlay {
    let mut run = Overlay::default();
    let graph = thirty();
    for (index, node) in graph.nodes.iter().enumerate().take(27) {
        let status = match index {
            0..=16 => Status::Completed,
            17 => Status::Running,
            18..=25 => Status::ALL[index - 18],
            _ => Status::Waiting,
        };
        run.add(&StepId::new(format!("{}#1", node.id)), status, Some(1_000 + 977 * index as u64));
    }
    let note = Some("waits for “ok?”".to_owned());
    run.nodes.insert("stage".to_owned(), Mark { note, ..Mark::new(Status::Asking) });
    run
}

/// Texts that mean something to one format or another.
pub(crate) const AWKWARD: [&str; 14] = [
    "say \"hi\" & <b>bye</b>",
    "`code` and **bold** and _under_",
    "two\nlines\r\nand\ta tab",
    "end",
    "subgraph x",
    "1. first",
    "- item",
    "back\\slash \\n \\l \\N",
    "#35; #quot; &amp; &lt;",
    "%%{init: {}}%% --> ; | } ] )",
    "日本語のとても長い説明文 🎉 ñ é",
    "\u{1b}[31mred\u{0}\u{7f}\u{202e}txet\u{FFFE}",
    "https://example.org/?a=b&c=d",
    "]]> <!-- --> <?xml?> '",
];

/// A graph whose every text is awkward.
pub(crate) fn awkward() -> Graph {
    let mut graph = Graph::starting_at(AWKWARD[0]);
    for (index, text) in AWKWARD.iter().enumerate() {
        let node = work(text).described(AWKWARD[(index + 3) % AWKWARD.len()]);
        let next = AWKWARD[(index + 1) % AWKWARD.len()];
        graph = graph.node(node).edge_when(*text, next, equals(text, text));
    }
    let inner = chain(&AWKWARD[..3]);
    let branches = vec![(AWKWARD[3], inner.clone()), (AWKWARD[0], inner)];
    let long = "very long ".repeat(200);
    graph
        .node(parallel("x", Strategy::Race, branches).described(AWKWARD[9]))
        .node(work("long").described(&long))
        .node(work(&long))
        .edge("x", "x")
        .edge("x", "long")
        .edge("long", "nowhere")
}

/// A small graph for each kind of node and way.
pub(crate) fn kinds() -> Vec<(&'static str, Graph)> {
    let one = |node: Node| Graph::starting_at(node.id.clone()).node(node);
    let decision = chain(&["yes", "no"]);
    let mut decision = Graph { start: "ok?".into(), edges: vec![], ..decision }
        .node(Node::new("ok?", Kind::Decision))
        .edge_when("ok?", "yes", equals("answer", "yes"))
        .edge_when("ok?", "no", Condition::Otherwise);
    decision.nodes.rotate_right(1);
    let until = Some(Condition::Says { node: "try".into(), text: "DONE".into() });
    let endless = Kind::Loop { graph: one(agent("try")), until, max_rounds: 0 };
    let any = || vec![("left", chain(&["a"])), ("right", chain(&["b"]))];
    let mut caught = chain(&["risky", "clean-up"]);
    caught.edges.clear();
    caught.catch = Some("clean-up".into());
    caught.timeout_ms = Some(3_600_000);
    caught.max_iterations = Some(Count::Fixed(3));
    let told = work("told")
        .described("Does something")
        .retry(patient())
        .timeout_ms(1_500)
        .max_visits(Count::Fixed(2))
        .on_error(OnError::Call("rescue".into()));
    let maybe = chain(&["a", "b"]);
    let maybe = Graph { edges: vec![], ..maybe }.edge_when("a", "b", Condition::Call("go".into()));
    vec![
        ("work", one(told)),
        ("agent", one(agent("coder").described("Writes code"))),
        ("decision", decision),
        ("subgraph", one(subgraph("inner", chain(&["a", "b"])))),
        ("loop", one(Node::new("again", endless))),
        ("each", one(each("fan", one(agent("worker")), Count::Fixed(3)))),
        ("parallel", one(parallel("both", Strategy::Race, any()))),
        ("empty_parallel", one(parallel("none", Strategy::All, vec![]))),
        (
            "join",
            chain(&["a", "b"]).node(work("c")).edge("a", "c").node(work("d")).join(["b", "c"], "d"),
        ),
        ("goto", one(work("a").may_go_to(["b", "a"])).node(work("b").on_revive("a"))),
        ("error", one(work("a").on_error(OnError::Goto("b".into()))).node(work("b"))),
        ("catch", caught),
        ("maybe", maybe),
        ("itself", one(work("a")).edge_when("a", "a", equals("again", "yes"))),
        ("itself_region", one(subgraph("s", chain(&["a"]))).edge("s", "s")),
    ]
}
