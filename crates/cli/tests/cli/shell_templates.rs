//! Values in shell commands: they are never run, in whichever quotes the template stands.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::engine::{Project, tool, with};
use crate::typescript::{atomic, run};
use crate::typescript_mended::{fails, script, succeeds};

/// An agent's answer that tries to run commands, outside of quotes and inside of each kind.
const HOSTILE: &str =
    "Fine. $(touch PWNED) `touch PWNED` '; touch PWNED; ' \"; touch PWNED; \" \\ $HOME *\nnext";

fn hostile_agent() -> Project {
    Project::scripted(&format!(
        "[[turn]]\nprompt = [\"review\"]\ndo = [{{ say = {} }}]\n",
        json!(HOSTILE)
    ))
}

/// Every kind of quotes in one command.
const COMMAND: &str = "printf '%s|' {outputs.review} \"{outputs.review}\" '{outputs.review}' > note.txt; \
                       v={outputs.review}; printf %s \"$v\" >> note.txt; cat {file:outputs.review} >> note.txt";

fn is_harmless(project: &Project) {
    let work = project.env.work();
    assert!(!work.join("PWNED").exists(), "the agent's text was run");
    let expected = format!("{HOSTILE}|{HOSTILE}|{HOSTILE}|{HOSTILE}{HOSTILE}");
    assert_eq!(project.read("note.txt"), expected);
}

#[test]
fn the_text_of_an_agent_is_not_run() {
    let project = hostile_agent();
    let review = json!({"type": "agent", "id": "review", "prompt": "review"});
    project.ends(&json!({"nodes": [review, tool("note", COMMAND)]}), 0);
    is_harmless(&project);
    let files: Vec<_> = fs::read_dir(project.session().join("values")).unwrap().collect();
    assert_eq!(files.len(), 1);
    let file = files[0].as_ref().unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let reports = project.of_type("step_reported");
    let told = reports.iter().find(|fact| fact["report"]["tool"] == "shell").unwrap();
    assert!(told["report"]["summary"].as_str().unwrap().contains("{outputs.review}"), "{told}");

    let project = hostile_agent();
    project.write(
        ".atomic/workflows/flow.ts",
        &format!(
            "import {{ agentNode, graph, toolNode }} from \"atomic/workflows\";\n\
             export default () => graph().start(agentNode({{ id: \"review\", prompt: \"review\" }}))\n\
             .then(toolNode({{ id: \"note\", command: {} }})).end().compile();\n",
            json!(COMMAND)
        ),
    );
    let ended = run(&project, "flow", &["--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    is_harmless(&project);
}

#[test]
fn requests_of_code_take_values_beside_the_command() {
    let text = json!(HOSTILE);
    let project = succeeds(&script(&format!(
        "  const review = {text};\n\
         const said = await ctx.shell(\"printf '%s' '{{review}}' \\\"{{review}}\\\" {{n}}{{none?}} '{{''none}}' ${{HOME:+x}}\", {{ values: {{ review, n: 3 }} }});\n\
         await ctx.writeFile(\"said.txt\", said.stdout);\n\
         await ctx.shell(\"cat {{file:long}} > long.txt\", {{ values: {{ long: \"x\".repeat(200000) }}, check: true }});\n\
         await ctx.shell(\"echo {{plain}} > plain.txt\");"
    )));
    assert_eq!(project.read("said.txt"), format!("{HOSTILE}{HOSTILE}3{{none}}x"));
    assert_eq!(project.read("long.txt").len(), 200_000);
    assert_eq!(project.read("plain.txt"), "{plain}\n", "without values braces are braces");
    assert!(!project.env.work().join("PWNED").exists());
    fails(
        &script("  await ctx.shell(\"echo $(cat {file})\", { values: { file: \"a\" } });"),
        &["{file}", "inside `$(…)`"],
    );
    fails(
        &script("  await ctx.shell(\"echo {long}\", { values: { long: \"x\".repeat(102401) } });"),
        &["{file:long}"],
    );
}

/// A single process checks all files.
#[test]
fn check_and_run_refuse_a_template_whose_value_would_be_run() {
    let project = Project::new();
    let commands = [
        ("echo $(cat {prompt})", "inside `$(…)`"),
        ("echo `cat {prompt}`", "inside backticks"),
        ("cat <<EOF\n{prompt}\nEOF", "in a here-document"),
        ("eval \"{prompt}\"", "itself run as a shell command"),
        ("sh -c '{prompt}'", "program text of a shell"),
        ("true # {prompt}", "in a comment"),
        ("{prompt} --help", "name of a program"),
        ("ssh host '{prompt}'", "`ssh`"),
        ("python3 -c '{prompt}'", "program text of an interpreter"),
        ("echo {prompt} | sh", "whose output is the program text"),
    ];
    let mut args = vec!["check".to_owned()];
    for (number, (command, _)) in commands.iter().enumerate() {
        let file = format!("f{number}.json");
        project.write(&file, &format!("{{\"nodes\": [\n  {}]}}", tool("work", command)));
        args.push(file);
    }
    project.write(
        "good.json",
        &json!({"nodes": [tool("work", "awk '{print}' {prompt}")]}).to_string(),
    );
    args.push("good.json".to_owned());
    project.write(
        "flow.ts",
        "import { graph, toolNode } from \"atomic/workflows\";\n\
         export default () => graph().start(toolNode({\n  id: \"work\",\n  command: \"eval {prompt}\",\n})).end().compile();\n",
    );
    args.extend(["flow.ts".to_owned(), "--trust".to_owned()]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let checked = atomic(&project, &args);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    let said = format!("{}{}", checked.stdout, checked.stderr);
    for (number, (command, place)) in commands.iter().enumerate() {
        let found = said.lines().find(|line| line.starts_with(&format!("f{number}.json:2:")));
        let line = found.unwrap_or_else(|| panic!("{command}: {said}"));
        assert!(
            line.contains("ATM541 error at work (action): the template {prompt} stands"),
            "{line}"
        );
        assert!(line.contains(place), "{line}");
    }
    assert!(said.contains("good.json: ok"), "{said}");
    let line = said.lines().find(|line| line.starts_with("flow.ts:4:")).expect(&said);
    assert!(line.contains("ATM541 error"), "{line}");
    for file in ["f0.json", "flow.ts"] {
        let ended = run(&project, file, &["--trust"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("ATM541") && ended.stderr.contains("help: "), "{ended:?}");
    }
    assert!(project.sessions().is_empty(), "nothing was started");
}

#[test]
fn a_value_that_is_too_long_is_an_error_that_names_the_way_out() {
    let project = Project::new();
    let long = tool("long", "head -c 60000 /dev/zero | tr '\\0' x");
    let more =
        with(tool("use", "echo {outputs.long}{outputs.long} | wc -c; cat {twice}"), json!({}));
    let state = json!({"twice": "x".repeat(102_401)});
    let workflow: Value = json!({"state": state, "nodes": [long, more]});
    let ended = project.ends(&workflow, 1);
    assert!(
        ended.stderr.contains("102401 bytes") && ended.stderr.contains("{file:twice}"),
        "{ended:?}"
    );
    assert_eq!(project.of_type("step_failed")[0]["error"]["code"], "template");
}

/// A step that is run again gets the values of its first attempt.
#[test]
fn a_resumed_command_has_the_same_values() {
    let project = Project::new();
    let command = "printf %s '{outputs.first}' >> seen.txt; cat {file:outputs.first} >> seen.txt; \
                   test -e again || { touch again; exit 3; }";
    let first = tool("first", "echo \"it's $(date +%N)\"");
    project.ends(&json!({"nodes": [first, tool("use", command)]}), 1);
    let ended = project.resume(&[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let output =
        project.of_type("step_finished")[0]["result"]["output"].as_str().unwrap().to_owned();
    assert_eq!(project.read("seen.txt"), output.repeat(4));
}
