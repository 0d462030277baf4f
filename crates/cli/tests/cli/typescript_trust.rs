//! Code of a project that was cloned does not run by being looked at.

use std::fs;

use crate::engine::Project;
use crate::env::ran;
use crate::terminal::typing;
use crate::typescript::{atomic, run};

/// A workflow that leaves a sign when any of it is run.
const TELLTALE: &str = r#"
import { toolNode } from "atomic/workflows";
import { word } from "./lib/word";
export const name = "telltale";
export const description = "Says so when it is run";
export const aliases = ["tt"];
console.error("IT RAN");
export const graphConfig = {
  startNode: "say", edges: [],
  nodes: [toolNode({ id: "say", execute: async (_: any, ctx: any) => {
    await ctx.writeFile("ran.txt", word);
    return {};
  } })],
};
"#;

fn cloned() -> Project {
    let project = Project::new();
    project.write(".atomic/workflows/telltale.ts", TELLTALE);
    project.write(".atomic/workflows/lib/word.ts", "export const word = \"one\";\n");
    project.write(
        ".git/config",
        "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://me:secret@example.org/a.git\n",
    );
    project
}

fn has_run(project: &Project) -> bool {
    project.env.work().join("ran.txt").exists()
}

#[test]
fn looking_runs_nothing() {
    let project = cloned();
    for args in [
        &["list"][..],
        &["list", "workflows", "--json"],
        &["show", "telltale"],
        &["doctor"],
        &["check"],
        &["check", "telltale"],
        &["graph", "telltale"],
    ] {
        let looked = atomic(&project, args);
        let all = format!("{}{}", looked.stdout, looked.stderr);
        assert!(!all.contains("IT RAN"), "{args:?}: {looked:?}");
    }
    let listed = atomic(&project, &["list", "workflows"]);
    assert!(listed.stdout.contains("Says so when it is run"), "{listed:?}");
}

#[test]
fn nobody_there_means_no() {
    let project = cloned();
    let refused = run(&project, "telltale", &[]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    insta::assert_snapshot!(project.filtered(&refused.stderr), @r"
    warning: not used, because this repository is not trusted: workflows (.atomic/workflows/telltale.ts) (to use them: atomic trust .)
    error: .atomic/workflows/telltale.ts:1:1: ATM720 error at the file: the workflow is not trusted yet
      help: read it, then run: atomic trust WORK; or pass --trust this once
    ");
    assert!(!has_run(&project));
    let ended = run(&project, "tt", &["--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(has_run(&project));
    // Only for that once.
    assert_eq!(run(&project, "telltale", &[]).code, Some(1));
}

#[test]
fn what_was_trusted_is_asked_about_again_when_it_has_changed() {
    let project = cloned();
    let trusted = atomic(&project, &["trust", "."]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    assert_eq!(run(&project, "telltale", &[]).code, Some(0));
    // An import is code, too.
    project.write(".atomic/workflows/lib/word.ts", "export const word = \"two\";\n");
    let refused = run(&project, "telltale", &[]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("definitions have changed since you trusted"), "{refused:?}");
    assert!(refused.stderr.contains("changed  telltale.ts"), "{refused:?}");
    assert_eq!(run(&project, "telltale", &["--no-trust"]).code, Some(1));
    // The code is as it was when it was trusted.
    project.write(".atomic/workflows/lib/word.ts", "export const word = \"one\";\n");
    assert_eq!(run(&project, "telltale", &[]).code, Some(0));
    assert_eq!(atomic(&project, &["trust", ".", "--withdraw"]).code, Some(0));
    assert_eq!(run(&project, "telltale", &[]).code, Some(1));
    assert_eq!(atomic(&project, &["trust", "."]).code, Some(0));
    let listed = atomic(&project, &["trust", "--list"]);
    assert!(listed.stdout.contains("workflow .atomic/workflows/telltale.ts"), "{listed:?}");
}

#[test]
fn a_person_is_asked_once() {
    let project = cloned();
    let command = project.command("telltale", &[]);
    let once = typing(&command, &[("1, 2 or 3: ", "2\n", &|| ())]);
    assert_eq!(once.code, Some(0), "{once:?}");
    fs::remove_file(project.env.work().join("ran.txt")).unwrap();
    let ended = typing(&command, &[("1, 2 or 3: ", "x\n1\n", &|| ())]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(has_run(&project));
    let asked = &ended.stdout;
    for sign in ["telltale.ts", "https://example.org/a.git"] {
        assert!(asked.contains(sign), "{sign}: {asked}");
    }
    assert!(!asked.contains("secret"), "{asked}");
    // And not again.
    let again = typing(&command, &[]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(!again.stdout.contains("1, 2 or 3"), "{again:?}");
}

#[test]
fn who_goes_on_without_is_asked_again_when_a_definition_changes() {
    let project = cloned();
    let command = project.command("telltale", &[]);
    let refused = typing(&command, &[("1, 2 or 3: ", "3\n", &|| ())]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    // Not again, neither about the repository nor about the workflow.
    let refused = typing(&command, &[]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(!refused.stdout.contains("1, 2 or 3"), "{refused:?}");
    assert!(!has_run(&project));
    project.write(".atomic/workflows/lib/word.ts", "export const word = \"two\";\n");
    let ended = typing(&command, &[("1, 2 or 3: ", "1\n", &|| ())]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(has_run(&project));
}

#[test]
fn the_users_own_workflows_need_no_trust() {
    let project = Project::new();
    let own = project.env.outside("home/.atomic/workflows");
    fs::create_dir_all(own.join("lib")).unwrap();
    fs::write(own.join("telltale.ts"), TELLTALE).unwrap();
    fs::write(own.join("lib/word.ts"), "export const word = \"own\";\n").unwrap();
    let ended = run(&project, "telltale", &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(project.read("ran.txt"), "own");
}

#[test]
fn a_session_keeps_the_source_it_began_with() {
    let project = Project::new();
    let flow = |word: &str| {
        format!(
            r#"
            import {{ graph, toolNode, waitNode }} from "atomic/workflows";
            export default () => graph<any>()
              .start(waitNode("look", {{ prompt: "Go on?" }}))
              .then(toolNode({{ id: "say", execute: async (_s: any, ctx: any) => {{
                await ctx.writeFile("word.txt", "{word}");
              }} }}))
              .end().compile();
            "#
        )
    };
    project.write(".atomic/workflows/words.ts", &flow("before"));
    let waiting = run(&project, "words", &["--trust"]);
    assert_eq!(waiting.code, Some(3), "{waiting:?}");
    project.write(".atomic/workflows/words.ts", &flow("after"));
    let answered = atomic(&project, &["answer", "last", "yes", "--resume"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert_eq!(project.read("word.txt"), "before");
    // The next one is the new one.
    let waiting = run(&project, "words", &["--trust"]);
    assert_eq!(waiting.code, Some(3), "{waiting:?}");
    let answered = atomic(&project, &["answer", "last", "yes", "--resume"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert_eq!(project.read("word.txt"), "after");
}

#[test]
fn new_workflows_of_every_form_run() {
    for form in ["graph", "builder", "script"] {
        let project = Project::scripted("[[turn]]\ndo = [{ say = \"CONTENT\" }]\n");
        let made = atomic(&project, &["new", "workflow", "mine", "--form", form]);
        assert_eq!(made.code, Some(0), "{made:?}");
        for path in [".atomic/tsconfig.json", ".atomic/types/atomic.d.ts"] {
            assert!(project.env.work().join(path).is_file(), "{path}");
        }
        let checked = atomic(&project, &["check", "mine", "--trust"]);
        assert_eq!(checked.stdout, "mine: ok\n", "{form}: {checked:?}");
        ran({
            let mut git = std::process::Command::new("git");
            git.args(["init", "-q"]).current_dir(project.env.work());
            git
        });
        let ended = run(&project, "mine", &["--trust"]);
        assert_eq!(ended.code, Some(0), "{form}: {ended:?}");
        let again = atomic(&project, &["new", "workflow", "mine"]);
        assert_eq!(again.code, Some(1), "{again:?}");
    }
}

#[test]
fn a_name_that_cannot_be_typed_makes_nothing() {
    let project = Project::new();
    let refused = atomic(&project, &["new", "workflow", "a/b"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(!project.env.work().join(".atomic").exists());
}

#[test]
fn a_session_that_came_with_a_project_runs_no_code() {
    let project = cloned();
    // Somebody else makes a session that has something left to do.
    let asking = r#"
import { graph, toolNode, waitNode } from "atomic/workflows";
console.error("IT RAN");
export default () => graph<any>().start(waitNode("look", { prompt: "Go on?" }))
  .then(toolNode({ id: "say", execute: async (_s: any, ctx: any) => { await ctx.writeFile("ran.txt", "x"); } }))
  .end().compile();
"#;
    project.write(".atomic/workflows/asking.ts", asking);
    assert_eq!(run(&project, "asking", &["--trust"]).code, Some(3));
    // On another machine nothing is known of it.
    fs::remove_dir_all(project.env.outside("home/.atomic")).unwrap();
    let refused = atomic(&project, &["answer", "last", "yes", "--resume"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("not in your list of sessions"), "{refused:?}");
    let refused = atomic(&project, &["resume", "last"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(!format!("{refused:?}").contains("IT RAN"), "{refused:?}");
    assert!(!has_run(&project));
    let ended = atomic(&project, &["answer", "last", "yes", "--resume", "--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(has_run(&project));
}

/// A workflow whose state is of this version, and how it is brought up to it.
fn versioned(version: u64, more: &str) -> String {
    format!(
        r#"
import {{ graph, toolNode, waitNode }} from "atomic/workflows";
export const stateVersion = {version};
{more}
export default () => graph<any>()
  .start(toolNode({{ id: "begin", execute: () => ({{ words: "a b c" }}) }}))
  .then(waitNode("look", {{ prompt: "Go on?" }}))
  .then(toolNode({{ id: "end", execute: async (s: any, ctx: any) => {{
    await ctx.writeFile("words.json", JSON.stringify(s.words));
  }} }}))
  .end().compile();
"#
    )
}

#[test]
fn a_session_is_upgraded_with_its_state() {
    let project = Project::new();
    project.write(".atomic/workflows/words.ts", &versioned(1, ""));
    assert_eq!(run(&project, "words", &["--trust"]).code, Some(3));
    // Another version without a way to it is refused, and nothing is lost.
    project.write(".atomic/workflows/words.ts", &versioned(2, ""));
    let refused = atomic(&project, &["resume", "last", "--upgrade", "--trust"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("migrateState"), "{refused:?}");
    // So is one in which the place where it stands is missing.
    let moved = versioned(1, "").replace("\"look\"", "\"elsewhere\"");
    project.write(".atomic/workflows/words.ts", &moved);
    let refused = atomic(&project, &["resume", "last", "--upgrade", "--trust"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("look"), "{refused:?}");
    let migrate = "export function migrateState(old: any, from: number) { return { ...old, words: old.words.split(\" \").concat(from) }; }";
    project.write(".atomic/workflows/words.ts", &versioned(2, migrate));
    // Code that has changed is asked about.
    let refused = atomic(&project, &["resume", "last", "--upgrade"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("ATM720"), "{refused:?}");
    let waiting = atomic(&project, &["resume", "last", "--upgrade", "--trust"]);
    assert_eq!(waiting.code, Some(3), "{waiting:?}");
    let ended = atomic(&project, &["answer", "last", "yes", "--resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(project.read("words.json"), r#"["a","b","c",1]"#);
}

#[test]
fn commands_in_documents_are_asked_about_too() {
    let project = Project::new();
    let text = |word: &str| {
        format!(
            r#"{{"name": "mine", "nodes": [{{"type": "tool", "id": "a", "command": "echo {word} > ran.txt"}}]}}"#
        )
    };
    project.write(".atomic/workflows/mine.json", &text("one"));
    let refused = run(&project, "mine", &[]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("ATM720"), "{refused:?}");
    assert!(!has_run(&project));
    // To look at it is harmless.
    assert_eq!(atomic(&project, &["check", "mine"]).code, Some(0));
    assert_eq!(atomic(&project, &["graph", "mine"]).code, Some(0));
    assert_eq!(atomic(&project, &["trust", "."]).code, Some(0));
    assert_eq!(run(&project, "mine", &[]).code, Some(0));
    project.write(".atomic/workflows/mine.json", &text("two"));
    assert_eq!(run(&project, "mine", &[]).code, Some(2));
    assert_eq!(project.read("ran.txt"), "one\n");
    // A file that is named by its path was meant.
    assert_eq!(atomic(&project, &["trust", "."]).code, Some(0));
    project.write("own.json", &text("own"));
    assert_eq!(run(&project, "own.json", &[]).code, Some(0));
}

#[test]
fn the_script_of_a_test_is_asked_about_too() {
    let project = Project::new();
    project.write(".atomic/workflows/a.ts", "export const description = \"x\";\n");
    let script = |word: &str| {
        format!(
            "[[turn]]\ndo = [{{ say = \"hi\" }}]\n[test]\nsetup = \"echo {word} >> {}\"\n",
            project.env.outside("set-up").display()
        )
    };
    project.write(".atomic/workflows/a.script.toml", &script("one"));
    let file = ".atomic/workflows/a.ts";
    assert_eq!(atomic(&project, &["test", file]).code, Some(1));
    assert_eq!(atomic(&project, &["trust", "."]).code, Some(0));
    assert_eq!(atomic(&project, &["test", file]).code, Some(0));
    project.write(".atomic/workflows/a.script.toml", &script("two"));
    let refused = atomic(&project, &["test", file]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(fs::read_to_string(project.env.outside("set-up")).unwrap(), "one\n");
    assert_eq!(atomic(&project, &["test", "--trust", file]).code, Some(0));
}

#[test]
fn init_writes_through_no_link() {
    let project = Project::new();
    let precious = project.env.outside("precious");
    fs::write(&precious, "mine").unwrap();
    project.write(".atomic/types/.keep", "");
    std::os::unix::fs::symlink(&precious, project.env.work().join(".atomic/types/atomic.d.ts"))
        .unwrap();
    let refused = atomic(&project, &["init"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
}
