//! Ways around being asked: links, and sessions of others.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::engine::Project;
use crate::typescript::{atomic, run};

/// A workflow in JSON that leaves a sign when it is run.
const EVIL: &str = r#"{"nodes": [{"type": "tool", "id": "a", "command": "echo evil > ran.txt"}]}"#;

/// The same in TypeScript, which does not say its name.
const NAMELESS: &str = r#"
import { graph, toolNode, waitNode } from "atomic/workflows";
import { word } from "./lib/word";
export default () => graph<any>()
  .start(toolNode({ id: "say", execute: async (_s: any, ctx: any) => { await ctx.writeFile("ran.txt", word); } }))
  .then(waitNode("look", { prompt: "Go on?" }))
  .end().compile();
"#;

fn has_run(project: &Project) -> bool {
    project.env.work().join("ran.txt").exists()
}

fn refuses(project: &Project, workflow: &str) {
    let refused = run(project, workflow, &[]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("ATM720"), "{refused:?}");
    assert!(!has_run(project));
}

/// It was asked about where it was found, so there it can be trusted, too.
fn runs_once_trusted(project: &Project, workflow: &str) {
    let trusted = atomic(project, &["trust", "."]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    let ended = run(project, workflow, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(has_run(project));
}

#[test]
fn a_document_behind_a_link_is_asked_about() {
    for target in ["work/stuff/evil.json", "elsewhere.json", "work/stuff/evil.ts"] {
        let project = Project::new();
        project.write("stuff/.keep", "");
        fs::write(project.env.work().join("..").join(target), EVIL).unwrap();
        project.write(".atomic/workflows/.keep", "");
        let link = project.env.work().join(".atomic/workflows/deploy.json");
        symlink(format!("../../../{target}"), &link).unwrap();
        assert!(link.is_file(), "{target}");
        refuses(&project, "deploy");
        runs_once_trusted(&project, "deploy");
    }
}

#[test]
fn a_folder_behind_a_link_is_asked_about() {
    let project = Project::new();
    project.write("cfg/workflows/deploy.json", EVIL);
    symlink("cfg", project.env.work().join(".atomic")).unwrap();
    refuses(&project, "deploy");
    // Also where it is inside of another one.
    let around = r#"{"nodes": [{"type": "subgraph", "id": "s", "workflow": "deploy"}]}"#;
    project.write("around.json", around);
    refuses(&project, "around.json");
    runs_once_trusted(&project, "deploy");
}

#[test]
fn what_the_user_links_to_is_theirs() {
    let project = Project::new();
    let (own, kept) =
        (project.env.outside("home/.atomic"), project.env.outside("dotfiles/workflows"));
    fs::create_dir_all(project.env.outside("home")).unwrap();
    fs::create_dir_all(&kept).unwrap();
    fs::write(project.env.outside("evil.json"), EVIL).unwrap();
    symlink(project.env.outside("evil.json"), kept.join("deploy.json")).unwrap();
    symlink(project.env.outside("dotfiles"), &own).unwrap();
    let ended = run(&project, "deploy", &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_session_of_somebody_else_is_not_forked() {
    let project = Project::new();
    let asking = r#"{"nodes": [
        {"type": "tool", "id": "begin", "command": "true"},
        {"type": "askUser", "id": "ask", "question": "Go on?"},
        {"type": "tool", "id": "a", "command": "echo evil > ran.txt"}]}"#;
    project.write("asking.json", asking);
    assert_eq!(run(&project, "asking.json", &[]).code, Some(3));
    let id = project.session().file_name().unwrap().to_str().unwrap().to_owned();
    fs::remove_dir_all(project.env.outside("home/.atomic")).unwrap();
    for args in [&["fork", id.as_str(), "--run"][..], &["fork", &id]] {
        let refused = atomic(&project, args);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("not in your list of sessions"), "{refused:?}");
        assert!(refused.stderr.contains("atomic fork --trust"), "{refused:?}");
    }
    assert_eq!(project.sessions().len(), 1);
    let forked = atomic(&project, &["fork", &id, "--run", "--trust"]);
    assert_eq!(forked.code, Some(3), "{forked:?}");
    assert_eq!(project.sessions().len(), 2);
}

#[test]
fn a_link_has_one_name_everywhere() {
    let project = Project::new();
    project.write("outside2.ts", NAMELESS);
    project.write("lib/word.ts", "export const word = \"one\";\n");
    project.write(".git/config", "");
    project.write(".atomic/workflows/.keep", "");
    symlink("../../outside2.ts", project.env.work().join(".atomic/workflows/link.ts")).unwrap();
    let listed = atomic(&project, &["list", "workflows"]);
    assert!(listed.stdout.contains("link"), "{listed:?}");
    refuses(&project, "link");
    assert_eq!(atomic(&project, &["trust", "."]).code, Some(0));
    let waiting = run(&project, "link", &[]);
    assert_eq!(waiting.code, Some(3), "{waiting:?}");
    assert!(!waiting.stdout.contains("utside2 session"), "{waiting:?}");
    assert!(waiting.stdout.contains("Link session"), "{waiting:?}");
    let created = project.of_type("session_created");
    assert_eq!(created[0]["workflow"], Value::from("link"));
    // Also when it is taken up again, as it was and as it is now.
    for more in [&[][..], &["--upgrade"]] {
        let mut args = vec!["resume", "last"];
        args.extend(more);
        let waiting = atomic(&project, &args);
        assert_eq!(waiting.code, Some(3), "{waiting:?}");
        assert!(waiting.stdout.contains("Link session"), "{waiting:?}");
    }
    let ended = atomic(&project, &["answer", "last", "yes", "--resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
