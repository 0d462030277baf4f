//! What is played in the crash tests. Every turn and every check first puts its step in the ledger,
//! so the ledger says what was really begun, whatever the session says.

use std::path::PathBuf;
use std::process::Command;

use crate::env::TestEnv;

/// Something that is run, killed, and resumed.
pub(crate) struct Scene {
    pub(crate) workflow: &'static str,
    /// Where its sessions are, inside the project.
    pub(crate) sessions: &'static str,
    script: String,
    settings: Vec<&'static str>,
    /// Files of the project that it needs, and what they say.
    files: Vec<(String, String)>,
    /// What it is asked to do.
    prompt: String,
    /// Prepares the project; the programs that are to be found.
    prepare: Option<Box<Prepare>>,
}

/// Prepares a project, and says where programs are looked for.
type Prepare = dyn Fn(&TestEnv) -> PathBuf + Send + Sync;

/// What is asked for, where it does not matter.
const PROMPT: &str = "Build it";

/// The check of the house: red as long as there is a hole in it.
const NO_HOLE: &str = "echo \"gate $ATOMIC_STEP\" >> \"$LEDGER\"; \
                       test ! -f hole.txt || { echo there is a hole; exit 1; }";

/// The check of the night, in a file that workers can rewrite.
const CHECK_FILE: &str = "echo \"gate $ATOMIC_STEP\" >> \"$LEDGER\"\n\
                          test ! -f hole.txt || { echo there is a hole; exit 1; }\n";

/// A worker's text in place of the task list.
const EDIT_TASKS: &str = "printf nonsense > \"$(ls -d .ralph/sessions/*/)tasks.json\"";

/// The check of the crate.
const CARGO_TEST: &str =
    "echo \"gate $ATOMIC_STEP\" >> \"$LEDGER\"; exec cargo test --offline --quiet";

impl Scene {
    /// `atomic run` of this scene.
    pub(crate) fn run(&self, env: &TestEnv) -> Command {
        let script = env.script(&self.script);
        for (name, text) in &self.files {
            let path = env.work().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut command = env.atomic(["run", self.workflow, &self.prompt, "--backend", "script"]);
        command.arg("--script").arg(script).args(&self.settings);
        if let Some(prepare) = &self.prepare {
            command.env("PATH", prepare(env));
        }
        command
    }

    /// Ralph builds a house: a plan that is refused at first, three workers side by side, one of
    /// whom asks, one who forgets his report, a check that is red once, and a review that finds
    /// something once.
    pub(crate) fn house() -> Self {
        Self::ralph(house(""), vec!["--on-question", "recommended", "--check", NO_HOLE])
    }

    /// Fourteen tasks in a lattice, with workers that clean and reset the folder, rewrite the check and
    /// edit the task file.
    pub(crate) fn night() -> Self {
        Self::night_with(EDIT_TASKS)
    }

    /// The same, in which one worker runs this command on the session.
    pub(crate) fn night_with(attack: &str) -> Self {
        let settings = vec!["--on-question", "recommended", "--check", "sh check.sh"];
        Self::ralph(night(attack), settings).begun_with(PROMPT.to_owned(), |env| {
            std::fs::write(env.work().join("check.sh"), CHECK_FILE).unwrap();
            let begin = "git init -q && git add -A && git -c user.name=n -c user.email=n@example.com \
                         commit -qm check";
            let git = Command::new("sh").args(["-c", begin]).current_dir(env.work()).status();
            assert!(git.unwrap().success());
            std::env::var_os("PATH").unwrap().into()
        })
    }

    /// The same with so much talk that the journal is worth snapshots.
    pub(crate) fn talkative_house() -> Self {
        let talk = "All of this has to be kept. ".repeat(350);
        Self::ralph(house(&talk), vec!["--on-question", "recommended", "--check", NO_HOLE])
    }

    /// A part of the house; nobody is there to answer.
    pub(crate) fn unanswered() -> Self {
        Self::ralph(unanswered(), vec!["--check", NO_HOLE])
    }

    /// Two agents and a question of the workflow itself.
    pub(crate) fn second_opinion() -> Self {
        Self::own("second-opinion", second_opinion())
    }

    /// A workflow in a file of its own.
    pub(crate) fn of_file(workflow: &'static str, text: String, script: String) -> Self {
        Self { files: vec![(workflow.to_owned(), text)], ..Self::own(workflow, script) }
    }

    /// A workflow that is code, with the code of others.
    pub(crate) fn of_code(
        workflow: &'static str,
        files: Vec<(String, String)>,
        script: String,
    ) -> Self {
        let settings = vec!["--on-question", "recommended", "--trust"];
        Self { files, settings, ..Self::own(workflow, script) }
    }

    /// The same with another prompt, in a project that is prepared.
    pub(crate) fn begun_with(
        self,
        prompt: String,
        prepare: impl Fn(&TestEnv) -> PathBuf + Send + Sync + 'static,
    ) -> Self {
        Self { prompt, prepare: Some(Box::new(prepare)), ..self }
    }

    fn own(workflow: &'static str, script: String) -> Self {
        Self {
            workflow,
            sessions: ".atomic/sessions",
            script,
            settings: vec!["--on-question", "recommended"],
            files: vec![],
            prompt: PROMPT.to_owned(),
            prepare: None,
        }
    }

    /// A crate whose second task has a bug that `cargo test` finds.
    pub(crate) fn tiny_crate() -> Self {
        Self::ralph(tiny_crate(), vec!["--check", CARGO_TEST])
    }

    /// A worker that hangs until it is cut off, and then looks whether its old self is still there.
    pub(crate) fn hanging() -> Self {
        Self::ralph(hanging(), vec!["--check", NO_HOLE])
    }

    fn ralph(script: String, mut settings: Vec<&'static str>) -> Self {
        settings.extend(["--workers", "4"]);
        Self { sessions: ".ralph/sessions", settings, ..Self::own("ralph", script) }
    }
}

/// A turn that puts its step in the ledger as `kind` and goes on with `actions`.
fn turn(agent: &str, kind: &str, prompt: &[&str], actions: &str) -> String {
    format!(
        "[[turn]]\nagent = {agent:?}\nprompt = {prompt:?}\ndo = [\n  \
         {{ run = 'echo \"{kind} $ATOMIC_STEP\" >> \"$LEDGER\"' }},\n{actions}]\n\n"
    )
}

fn worker(prompt: &[&str], actions: &str, summary: &str) -> String {
    let report = format!(r#"{{"status": "completed", "summary": "{summary}"}}"#);
    turn("worker", "work", prompt, &format!("{actions}{}", say(&report)))
}

fn say(text: &str) -> String {
    format!("  {{ say = '''{text}''' }},\n")
}

fn write(path: &str, text: &str) -> String {
    format!("  {{ write = {{ path = {path:?}, text = {text:?} }} }},\n")
}

fn clean_review(round: &str) -> String {
    turn("reviewer", "review", &[round], &say(r#"{"findings": [], "verdict": "correct"}"#))
}

const ASK_FOR_COLOUR: &str = "  { ask = { question = \"Which colour?\", \
                              options = [{ label = \"Blue\" }, { label = \"Red (Recommended)\" }] } },\n";

/// Asks unless it knows already, and does the same either way.
fn choose_colour(task: &str, begin: &str) -> String {
    let paint = write("colour.txt", "red\n");
    let known = [task, "The user's answer: Red (Recommended)"];
    let ask = format!("{begin}{ASK_FOR_COLOUR}{paint}");
    worker(&known, &format!("{begin}{paint}"), "Red (Recommended)")
        + &worker(&[task], &ask, "{answer}")
}

fn house(talk: &str) -> String {
    let plan = format!(
        r##"{talk}
[{{"id": "#1", "content": "Lay the ground"}},
 {{"id": "#2", "content": "Build the left wall", "blockedBy": ["#1"]}},
 {{"id": "#3", "content": "Build the right wall", "blockedBy": ["#1"]}},
 {{"id": "#4", "content": "Choose the colour", "blockedBy": ["#1"]}},
 {{"id": "#5", "content": "Put the roof on", "blockedBy": ["#2", "#3", "#4"]}}]"##
    );
    let finding = r#"{"findings": [{"title": "There is no door", "body": "Nobody can go in.",
        "path": "door.txt", "line": 1, "priority": 1}], "verdict": "incorrect"}"#;
    let talk = say(talk);
    // Something that is under way while others get on, and outlives its turn unless it is ended.
    let stray = "  { run = { command = 'sleep 1000 & sleep 1000', timeout_ms = 30 } },\n";
    let again = r#"{"status": "completed", "summary": "left"}"#;
    [
        turn("planner", "plan", &["Your plan cannot be used"], &say(&plan)),
        turn("planner", "plan", &[], &say("A house? Why not a boat?")),
        worker(&["Task #1:"], &(talk.clone() + &write("ground.txt", "ground\n")), "ground"),
        turn(
            "worker",
            "work",
            &["Task #2:"],
            &(talk.clone() + &write("left.txt", "left\n") + &say("The left wall stands.")),
        ),
        turn("worker", "again", &["there is no report in your answer"], &say(again)),
        worker(
            &["Task #3:"],
            &(talk.clone()
                + stray
                + &write("right.txt", "right\n")
                + "  { edit = { path = \"ground.txt\", find = \"ground\", replace = \"floor\" } },\n"),
            "right",
        ),
        choose_colour("Task #4:", ""),
        worker(&["Task #5-bug-1:"], "  { delete = \"hole.txt\" },\n", "no hole"),
        worker(
            &["Task #5:", "An earlier attempt at this task failed"],
            &(talk.clone() + &write("roof.txt", "a whole roof\n")),
            "roof",
        ),
        worker(
            &["Task #5:"],
            &(talk.clone() + &write("hole.txt", "hole\n") + &write("roof.txt", "a roof\n")),
            "roof",
        ),
        worker(&["Task #6:"], &(talk + &write("door.txt", "door\n")), "door"),
        turn("reviewer", "review", &["Review round 1"], &say(finding)),
        clean_review("Review round 2"),
    ]
    .concat()
}

/// Tasks, and what blocks each: two of them are alone, so that they can do harm to the whole folder.
const LATTICE: [(u32, &[u32]); 14] = [
    (1, &[]),
    (2, &[1]),
    (3, &[1]),
    (4, &[1]),
    (5, &[2, 3, 4]),
    (6, &[5]),
    (7, &[5]),
    (8, &[5]),
    (9, &[6, 7]),
    (10, &[7, 8]),
    (11, &[9, 10]),
    (12, &[11]),
    (13, &[11]),
    (14, &[12, 13]),
];

fn shell(command: &str) -> String {
    format!("  {{ run = '''{command}''' }},\n")
}

/// Removes what a killed git leaves: the locks of the index, of HEAD and of a branch.
const UNLOCK: &str = "find .git -name '*.lock' -delete";

/// Commits one file. A commit that was cut off leaves git's lock behind.
fn commit(file: &str) -> String {
    shell(&format!(
        "flock .git/night sh -c \"{UNLOCK}; git add -A {file}; \
         git -c user.name=n -c user.email=n@example.com commit -qm {file} -- {file}; \
         git diff --quiet HEAD -- {file}\""
    ))
}

/// Writes and commits a part of the house.
fn part(number: u32) -> String {
    let file = format!("part-{number}.txt");
    say("I begin.") + &write(&file, &format!("part {number}\n")) + &commit(&file)
}

fn night(attack: &str) -> String {
    let row = |(id, blockers): &(u32, &[u32])| {
        let blockers: Vec<_> = blockers.iter().map(|id| format!("#{id}")).collect();
        serde_json::json!({"id": format!("#{id}"), "content": format!("Make part {id}"), "blockedBy": blockers})
    };
    let plan = serde_json::Value::Array(LATTICE.iter().map(row).collect()).to_string();
    let finding = r#"{"findings": [{"title": "There is no door", "body": "Nobody can go in.",
        "path": "door.txt", "line": 1, "priority": 1}], "verdict": "incorrect"}"#;
    let mut turns = vec![turn("planner", "plan", &[], &say(&plan))];
    let task = |id: u32| format!("Task #{id}:");
    let bug_fix = |id: u32| format!("Task #{id}-bug-1:");
    let tried = "An earlier attempt at this task failed";
    // First tries that their workers call failed.
    let gave_up = r#"{"status": "failed", "summary": "", "error": "the wood is too short"}"#;
    for id in [3, 6] {
        turns.push(worker(&[&bug_fix(id)], &say("I begin."), "longer wood"));
        turns.push(worker(&[&task(id), tried], &part(id), "part"));
        turns.push(turn("worker", "work", &[&task(id)], &say(gave_up)));
    }
    // First tries that only the check finds wrong.
    let rewrite = write("check.sh", &format!("# Shorter.\n{CHECK_FILE}")) + &commit("check.sh");
    let harm = say("I begin.") + &rewrite + &shell(attack);
    for (id, harm) in [(11, harm), (14, String::new())] {
        let wrong = write("hole.txt", "hole\n") + &part(id);
        turns.push(worker(&[&bug_fix(id)], "  { delete = \"hole.txt\" },\n", "no hole"));
        turns.push(worker(&[&task(id), tried], &part(id), "part"));
        turns.push(worker(&[&task(id)], &(harm + &wrong), "part"));
    }
    let clean = shell(&format!("{UNLOCK}; git reset --hard -q; git clean -fdxq"));
    turns.push(worker(&[&task(5)], &(say("I begin.") + &clean + &part(5)), "part"));
    turns.push(choose_colour(&task(4), &say("I begin.")));
    for (id, _) in LATTICE.iter().filter(|(id, _)| ![3, 4, 5, 6, 11, 14].contains(id)) {
        turns.push(worker(&[&task(*id)], &part(*id), "part"));
    }
    turns.push(worker(
        &["Task #15:"],
        &(write("door.txt", "door\n") + &commit("door.txt")),
        "door",
    ));
    turns.push(turn("reviewer", "review", &["Review round 1"], &say(finding)));
    turns.push(clean_review("Review round 2"));
    turns.concat()
}

fn unanswered() -> String {
    let plan = r##"[{"id": "#1", "content": "Choose the colour"},
        {"id": "#2", "content": "Lay the ground"},
        {"id": "#3", "content": "Paint it", "blockedBy": ["#1", "#2"]}]"##;
    [
        turn("planner", "plan", &[], &say(plan)),
        choose_colour("Task #1:", ""),
        worker(&["Task #2:"], &write("ground.txt", "ground\n"), "ground"),
        worker(&["Task #3:"], &write("paint.txt", "paint\n"), "paint"),
        clean_review("Review round 1"),
    ]
    .concat()
}

fn second_opinion() -> String {
    let ask = "  { ask = { question = \"In verse?\", \
               options = [{ label = \"No (Recommended)\" }] } },\n";
    let known = ["The user's answer: No (Recommended)"];
    [
        turn("answerer", "answer", &known, &say("It is red.")),
        turn("answerer", "answer", &[], &(ask.to_owned() + &say("It is red."))),
        turn("critic", "object", &[], &say("It is blue.")),
    ]
    .concat()
}

fn hanging() -> String {
    // Read from its environment, which a process that has ended does not have any more.
    let look = "if grep -q LEDGER \"/proc/$(cat \"$LEDGER.hanging\")/environ\"; \
                then touch \"$LEDGER.met\"; fi";
    let hang = "echo $$ > \"$LEDGER.hanging\"; exec sleep 1000";
    let run = |command: &str| format!("  {{ run = '{command}' }},\n");
    [
        turn("planner", "plan", &[], &say(r##"[{"id": "#1", "content": "Wait"}]"##)),
        worker(&["Task #1:", "Your turn was cut off"], &run(look), "waited"),
        worker(&["Task #1:"], &run(hang), "unreachable"),
        clean_review("Review round 1"),
    ]
    .concat()
}

fn tiny_crate() -> String {
    let plan = r##"[{"id": "#1", "content": "Create the crate"},
        {"id": "#2", "content": "Add subtraction", "blockedBy": ["#1"]}]"##;
    let manifest = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                    [workspace]\n[lib]\ndoctest = false\n";
    let library = "pub mod minus;\npub fn plus(a: i32, b: i32) -> i32 {\n    a + b\n}\n\n\
                   #[test]\nfn adds() {\n    assert_eq!(plus(1, 2), 3);\n}\n";
    let minus = |sign: &str| {
        format!(
            "pub fn minus(a: i32, b: i32) -> i32 {{\n    a {sign} b\n}}\n\n\
             #[test]\nfn subtracts() {{\n    assert_eq!(minus(3, 2), 1);\n}}\n"
        )
    };
    let right = write("src/minus.rs", &minus("-"));
    [
        turn("planner", "plan", &[], &say(plan)),
        worker(
            &["Task #1:"],
            &(write("Cargo.toml", manifest)
                + &write("src/lib.rs", library)
                + &write("src/minus.rs", "")),
            "the crate",
        ),
        worker(&["Task #2-bug-1:"], &right, "the sign was wrong"),
        worker(&["Task #2:", "An earlier attempt at this task failed"], &right, "minus"),
        worker(&["Task #2:"], &write("src/minus.rs", &minus("+")), "minus"),
        clean_review("Review round 1"),
    ]
    .concat()
}
