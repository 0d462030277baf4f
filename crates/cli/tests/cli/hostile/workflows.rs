//! Workflow files, their tests, and checks that are found.

use serde_json::json;

use super::{Attack, Ground};

fn document(ground: &Ground) -> String {
    json!({"nodes": [{"type": "tool", "id": "a", "command": ground.leaves_sign()}]}).to_string()
}

/// A workflow whose code leaves a sign when it is run.
fn code(ground: &Ground) -> String {
    format!(
        "import {{ graph, toolNode }} from \"atomic/workflows\";\n\
         export default () => graph<any>().start(toolNode({{ id: \"a\", execute: async (_s: any, \
         ctx: any) => {{ await ctx.shell({}); return {{}}; }} }})).end().compile();\n",
        json!(ground.leaves_sign())
    )
}

#[test]
fn a_document() {
    let attack =
        Attack::new(|ground| ground.project(".atomic/workflows/deploy.json", &document(ground)));
    attack.works_only_when_trusted(&["run", "deploy", "Go"]);
}

#[test]
fn code_that_runs() {
    let attack = Attack::new(|ground| ground.project(".atomic/workflows/deploy.ts", &code(ground)));
    attack.works_only_when_trusted(&["run", "deploy", "Go"]);
}

/// Code runs when a workflow is loaded: its own words then turn up in an error.
#[test]
fn code_that_is_loaded() {
    let attack = Attack::new(|ground| {
        // The words are put together by running the code, so that no code frame shows them.
        let words = "[\"secret\", \"4711\", \"of\", \"the\", \"user\"].join(\"-\")";
        let text =
            format!("export const graphConfig = (() => {{ throw new Error({words}); }})();\n");
        ground.project(".atomic/workflows/deploy.ts", &text);
    });
    let loaded = |ground: &Ground| ground.run(&["graph", "deploy"]).stderr.contains(super::SECRET);
    attack.seen_by(loaded).works_only_when_trusted(&["list"]);
}

#[test]
fn a_workflow_called_ralph() {
    let attack = Attack::new(|ground| ground.project(".atomic/workflows/ralph.ts", &code(ground)));
    attack.works_only_when_trusted(&["run", "ralph", "Go"]);
}

#[test]
fn a_workflow_called_as_one_of_the_users() {
    let attack =
        Attack::new(|ground| ground.project(".atomic/workflows/calls.json", &document(ground)));
    attack.works_only_when_trusted(&["run", "calls", "Go"]);
}

#[test]
fn a_workflow_with_an_alias() {
    let attack = Attack::new(|ground| {
        let nodes = json!([{"type": "tool", "id": "a", "command": ground.leaves_sign()}]);
        let text = json!({"name": "deploy", "aliases": ["ralph", "loop", "calls"], "nodes": nodes});
        ground.project(".atomic/workflows/other.json", &text.to_string());
    });
    attack.works_only_when_trusted(&["run", "deploy", "Go"]);
}

#[test]
fn a_workflow_behind_a_link() {
    let attack = Attack::new(|ground| {
        ground.project("docs/diagram.json", &document(ground));
        ground.link(".atomic/workflows/deploy.json", "../../docs/diagram.json");
    });
    attack.works_only_when_trusted(&["run", "deploy", "Go"]);
}

#[test]
fn workflows_in_a_linked_folder() {
    let attack = Attack::new(|ground| {
        ground.project("docs/deploy.json", &document(ground));
        ground.link(".atomic/workflows", "../docs");
    });
    attack.works_only_when_trusted(&["run", "deploy", "Go"]);
}

#[test]
fn a_test_script() {
    let attack = Attack::new(|ground| {
        let harmless = r#"{"nodes": [{"type": "tool", "id": "a", "command": "true"}]}"#;
        ground.project(".atomic/workflows/deploy.json", harmless);
        let setup = json!(ground.leaves_sign());
        let text = format!("[test]\nprompt = \"Go\"\nsetup = {setup}\n");
        ground.project(".atomic/workflows/deploy.script.toml", &text);
    });
    attack.works_only_when_trusted(&["test", ".atomic/workflows/deploy.json"]);
}

#[test]
fn a_makefile() {
    let attack = Attack::new(|ground| {
        ground.project("Makefile", &format!("test:\n\t{}\n", ground.leaves_sign()));
    });
    attack.works_only_when_trusted(&["run", "ralph", "Build it"]);
}

#[test]
fn a_test_of_npm() {
    let attack = Attack::new(|ground| {
        let package = json!({"scripts": {"test": ground.leaves_sign()}});
        ground.project("package.json", &package.to_string());
    });
    attack.works_only_when_trusted(&["run", "ralph", "Build it"]);
}

#[test]
fn a_build_script_of_cargo() {
    let attack = Attack::new(|ground| {
        let package = "[package]\nname = \"a\"\nedition = \"2021\"\n[workspace]\n";
        ground.project("Cargo.toml", package);
        ground.project("src/lib.rs", "");
        let build = "fn main() { std::fs::write(SIGN, \"fired\").unwrap(); }";
        ground.project("build.rs", &build.replace("SIGN", &json!(ground.sign()).to_string()));
    });
    attack.works_only_when_trusted(&["run", "ralph", "Build it"]);
}

#[test]
fn a_file_that_python_tests_load() {
    let attack = Attack::new(|ground| {
        ground.project("conftest.py", &format!("open({}, 'w')\n", json!(ground.sign())));
        // Whether pytest is installed is not what this is about.
        ground.outside("bin/pytest", "#!/bin/sh\nexec python3 conftest.py\n");
        let program = ground.env.outside("bin/pytest");
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let path = std::env::var("PATH").unwrap();
        ground.path = Some(format!("{}:{path}", ground.env.outside("bin").display()));
    });
    attack.works_only_when_trusted(&["run", "ralph", "Build it"]);
}
