//! Projects that were just cloned and try to get in: one way each, through every command.
//!
//! An attack is planted in a project that the user does not trust. After every command of the
//! program none of the signs may be there: a command that ran, a file outside that was read or
//! written, an agent that was replaced, a limit that was raised. A control shows that the attack
//! can work at all: in the same project once it is trusted, or, where trust must not help either,
//! from the user's own file.

mod commands;
mod files;
mod git;
mod names;
mod sessions;
mod settings;
mod table;
mod workflows;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

pub(crate) use commands::{Row, all as all_commands, of_agents as commands_of_agents};

use crate::acp::Raw;
use crate::env::{Ran, TestEnv, ran};
use crate::scene::plan;

/// The text of a file outside the project, which must not turn up anywhere.
pub(crate) const SECRET: &str = "secret-4711-of-the-user";

/// An agent whose system prompt has this was replaced by the project's.
const PERSONA: &str = "persona-4711-of-the-project";

/// A user of the program, and a project of somebody else.
pub(crate) struct Ground {
    pub(crate) env: TestEnv,
    /// The folder the user works in: the project's, or one below it.
    pub(crate) folder: PathBuf,
    /// The value of `PATH`, if it is not the usual one.
    path: Option<String>,
    /// Further variables of the user.
    pub(crate) variables: Vec<(String, String)>,
}

impl Ground {
    /// A user whose settings name a script that does what agents do: it runs git, and it leaves a
    /// sign if the project gets a say in what an agent is told.
    pub(crate) fn new() -> Self {
        let env = TestEnv::new();
        let folder = env.work();
        let ground = Self { env, folder, path: None, variables: vec![] };
        ground.users(".atomic/settings.json", &ground.users_settings(json!({})));
        // The skill, the command and the agents that the user has, and the user calls.
        ground.users(
            ".atomic/workflows/calls.json",
            r#"{"nodes": [{"type": "skill", "id": "a", "skill": "commit"},
                          {"type": "command", "id": "b", "command": "tidy"},
                          {"type": "agent", "id": "c", "agent": "helper", "prompt": "Go."}]}"#,
        );
        ground.users(".atomic/commands/tidy.md", "Tidy up.");
        ground.users(".atomic/agents/helper.md", "You help.");
        ground.outside("precious/secret.txt", SECRET);
        ground.outside("features.json", r#"[{"description": "Do it", "passes": false}]"#);
        ground
    }

    /// The user's settings with more in them.
    pub(crate) fn users_settings(&self, more: Value) -> String {
        let script = self.env.script(&self.script());
        let mut settings = json!({ "script": script, "max_attempts": 1 });
        if let (Value::Object(all), Value::Object(more)) = (&mut settings, more) {
            all.extend(more);
        }
        settings.to_string()
    }

    /// The file that must not come into being.
    pub(crate) fn sign(&self) -> PathBuf {
        self.env.outside("sign")
    }

    /// A command that leaves a sign.
    pub(crate) fn leaves_sign(&self) -> String {
        format!("echo fired >> {}", self.sign().display())
    }

    fn script(&self) -> String {
        let sign = json!(self.leaves_sign());
        let plan = json!(plan(&[("#1", &[])]));
        let done = json!(json!({"status": "completed", "summary": "done"}).to_string());
        let fine = json!(json!({"findings": [], "verdict": "correct"}).to_string());
        let git = json!(
            "git status; git diff; git add -A; git commit -q -m one; git st; \
             if [ -d bare ]; then cd bare && git status; fi"
        );
        let ask = r#"{ question = "Which?", options = [{ label = "A" }, { label = "B" }] }"#;
        let mut turns = String::new();
        for said in [PERSONA, SECRET] {
            for place in ["system", "prompt"] {
                turns += &format!(
                    "[[turn]]\n{place} = [{said:?}]\ndo = [{{ run = {sign} }}, {{ say = \"Ha.\" }}]\n"
                );
            }
        }
        turns += &format!(
            "[[turn]]\nagent = \"planner\"\ndo = [{{ run = {git} }}, {{ say = {plan} }}]\n"
        );
        turns += &format!(
            "[[turn]]\nagent = \"worker\"\nprompt = [\"The user's answer\"]\n\
             do = [{{ run = {git} }}, {{ say = {done} }}]\n"
        );
        turns +=
            &format!("[[turn]]\nagent = \"worker\"\ndo = [{{ run = {git} }}, {{ ask = {ask} }}]\n");
        turns += &format!("[[turn]]\nagent = \"reviewer\"\ndo = [{{ say = {fine} }}]\n");
        turns += &format!("[[turn]]\ndo = [{{ run = {git} }}, {{ say = \"Hello.\" }}]\n");
        turns
    }

    /// Writes a file of the project.
    pub(crate) fn project(&self, path: &str, text: &str) {
        self.outside(&format!("work/{path}"), text);
    }

    /// Writes a program of the project that leaves a sign.
    pub(crate) fn program(&self, path: &str) {
        self.project(path, &format!("#!/bin/sh\n{}\n", self.leaves_sign()));
        let path = self.env.work().join(path);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Writes a file in the user's home.
    pub(crate) fn users(&self, path: &str, text: &str) {
        self.outside(&format!("home/{path}"), text);
    }

    /// Writes a file outside the project.
    pub(crate) fn outside(&self, path: &str, text: &str) {
        let path = self.env.outside(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes a link in the project.
    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        let path = self.env.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    /// Runs git in the project, where nothing of the attack may be yet.
    pub(crate) fn git(&self, args: &[&str]) {
        git(&self.env.work(), args);
    }

    fn atomic(&self, args: &[&str]) -> Command {
        let mut command = self.env.atomic(args);
        command.current_dir(&self.folder);
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran(self.atomic(args))
    }

    /// Prompts from an editor, in which nobody answers the question about trust.
    fn in_an_editor(&self, prompts: &[&str]) -> String {
        let mut raw = Raw::start_as_it_is(self.atomic(&["acp"]));
        raw.initialize();
        let opened = json!({"cwd": self.folder, "mcpServers": []});
        let opened = raw.ask(2, "session/new", &opened);
        let session = opened["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{opened}"));
        let said = RefCell::new(String::new());
        for (id, prompt) in (3..).zip(prompts) {
            raw.prompt(id, session, prompt);
            loop {
                let heard = raw.hear(|heard| {
                    said.borrow_mut().push_str(&heard.to_string());
                    heard.get("id").is_some()
                });
                if heard["id"] == id && heard.get("method").is_none() {
                    break;
                }
                let answer = json!({"jsonrpc": "2.0", "id": heard["id"],
                                    "result": {"outcome": {"outcome": "cancelled"}}});
                raw.write(&answer.to_string());
            }
        }
        raw.close_input();
        raw.process.end();
        said.into_inner()
    }

    /// Everything outside the project that no command may change.
    fn precious(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut found, mut open) = (BTreeMap::new(), vec![self.env.outside("precious")]);
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            // A folder that appears counts as well.
            let content = fs::read(&path).unwrap_or_else(|_| b"(folder)".to_vec());
            found.insert(path, content);
        }
        found
    }
}

fn git(folder: &Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
    assert!(git.current_dir(folder).args(args).status().unwrap().success(), "{args:?}");
}

/// A way into the user's machine.
pub(crate) struct Attack {
    /// Makes the user's side, before there is an attack.
    ground: Box<dyn Fn() -> Ground>,
    plant: Box<dyn Fn(&mut Ground)>,
    /// Whether the attack has worked, beside the usual signs.
    worked: Box<dyn Fn(&Ground) -> bool>,
}

impl Attack {
    fn new(plant: impl Fn(&mut Ground) + 'static) -> Self {
        Self::on(Ground::new, plant)
    }

    /// An attack on a user with another agent.
    pub(crate) fn on(
        ground: impl Fn() -> Ground + 'static,
        plant: impl Fn(&mut Ground) + 'static,
    ) -> Self {
        Self { ground: Box::new(ground), plant: Box::new(plant), worked: Box::new(|_| false) }
    }

    /// With a sign of its own.
    pub(crate) fn seen_by(mut self, worked: impl Fn(&Ground) -> bool + 'static) -> Self {
        self.worked = Box::new(worked);
        self
    }

    /// Carries the attack out with every command, and then in the trusted project with this one,
    /// where it has to work.
    fn works_only_when_trusted(&self, control: &[&str]) {
        self.fails_everywhere();
        self.works(|ground| assert_eq!(ground.run(&["trust", "."]).code, Some(0)), control);
    }

    /// Carries the attack out with every command, also in the trusted project, and then with this
    /// one after the user has done the same, where it has to work.
    fn works_only_for_the_user(&self, users: impl Fn(&mut Ground), control: &[&str]) {
        self.fails_everywhere();
        let ground = self.planted();
        assert_eq!(ground.run(&["trust", "."]).code, Some(0));
        self.fails_with(&ground, commands::of_agents());
        self.works(users, control);
    }

    pub(crate) fn planted(&self) -> Ground {
        let mut ground = (self.ground)();
        (self.plant)(&mut ground);
        ground
    }

    fn fails_everywhere(&self) {
        self.fails_with(&self.planted(), commands::all());
    }

    pub(crate) fn fails_with(&self, ground: &Ground, commands: Vec<Row>) {
        let before = ground.precious();
        for row in commands {
            let printed = row.run(ground);
            assert!(!ground.sign().exists(), "{row:?} ran something:\n{printed}");
            assert!(!printed.contains(SECRET), "{row:?} printed a file outside:\n{printed}");
            assert_eq!(ground.precious(), before, "{row:?} wrote outside:\n{printed}");
            assert!(!(self.worked)(ground), "{row:?} let it happen:\n{printed}");
        }
    }

    pub(crate) fn works(&self, grant: impl Fn(&mut Ground), control: &[&str]) {
        let mut ground = self.planted();
        grant(&mut ground);
        let before = ground.precious();
        let ended = ground.run(control);
        let worked = ground.sign().exists()
            || ended.stdout.contains(SECRET)
            || ground.precious() != before
            || (self.worked)(&ground);
        assert!(worked, "the control of this attack does nothing: {ended:?}");
    }
}
