//! What files say about themselves.

use std::fmt::Write as _;
use std::path::Path;

use atomic_typescript::{Form, Metadata, metadata};
use serde_json::json;

fn read(text: &str) -> (Metadata, Vec<(String, u32, u32)>) {
    let (metadata, faults) = metadata(Path::new("/flows/a.ts"), text);
    let faults =
        faults.iter().map(|one| (one.code.to_string(), one.at.line, one.at.column)).collect();
    (metadata, faults)
}

#[test]
fn everything_that_is_literal_is_read() {
    let (found, faults) = read(
        r#"const BASE = "review";
           export const name = BASE as const;
           export const description: string = "Reviews " + "a change" satisfies string;
           export const aliases = ["r", `rev`, BASE];
           const version = "1.2.3";
           export { version };
           export let minSDKVersion = '0.1.0';
           export const stateVersion = 2, argumentHint = "<file>";
           export const sessionsDir = (".sessions");
           export const defaultConfig = { model: "m", limits: [1, -2, null, true], deep: { x: BASE } };
           export const graphConfig = {};
           throw new Error("nothing is run");"#,
    );
    assert_eq!(faults, []);
    assert_eq!(found.name.as_deref(), Some("review"));
    assert_eq!(found.description.as_deref(), Some("Reviews a change"));
    assert_eq!(found.aliases, ["r", "rev", "review"]);
    assert_eq!(found.version.as_deref(), Some("1.2.3"));
    assert_eq!(found.min_sdk_version.as_deref(), Some("0.1.0"));
    assert_eq!(found.state_version, Some(2));
    assert_eq!(found.argument_hint.as_deref(), Some("<file>"));
    assert_eq!(found.sessions_dir.as_deref(), Some(".sessions"));
    let config = json!({"model": "m", "limits": [1, -2, null, true], "deep": {"x": "review"}});
    assert_eq!(found.default_config, Some(config));
    assert_eq!(found.form, Form::Graph);
    assert_eq!((found.places["name"].line, found.places["name"].column), (2, 32));
}

#[test]
fn the_form_is_what_is_exported() {
    let cases = [
        ("export const name = \"x\";", Form::Chat),
        ("export const graphConfig = make();", Form::Graph),
        ("export default function create() {}", Form::Builder),
        ("export default (config: unknown) => graph();", Form::Builder),
        ("const create = () => 1; export { create as default };", Form::Builder),
        ("export default defineWorkflow({ name: \"x\" }).run(async (ctx) => {});", Form::Script),
        ("const w = (defineWorkflow({}) as any).input({}).run(f); export default w;", Form::Script),
        ("export default create({});", Form::Builder),
        ("const a = b; const b = a; export default a;", Form::Builder),
    ];
    for (text, form) in cases {
        let (found, faults) = read(text);
        assert_eq!((found.form, faults), (form, vec![]), "{text}");
    }
}

#[test]
fn a_script_says_it_in_its_definition() {
    let (found, faults) = read(
        r#"import { defineWorkflow } from "@atomic/workflows";
           const meta = { name: "ship", "description": "Ships it", aliases: ["s"], workflows: ["test"] };
           export const version = "2";
           export default defineWorkflow(meta).run(async (ctx) => {
             await ctx.workflow("review", {});
             await ctx.parallel([() => ctx.workflow("test"), () => other.workflow("lint", 1)]);
             await ctx.workflow(dynamic());
           });"#,
    );
    assert_eq!(faults, []);
    assert_eq!(found.name.as_deref(), Some("ship"));
    assert_eq!(found.description.as_deref(), Some("Ships it"));
    assert_eq!(found.aliases, ["s"]);
    assert_eq!(found.version.as_deref(), Some("2"));
    assert_eq!(found.workflows, ["test", "review", "lint"]);
    assert_eq!(found.form, Form::Script);
}

#[test]
fn what_is_wrong_never_hides_the_rest() {
    let text = r#"export const name = "good";
export const description = make("text");
export const version = 3;
export const aliases = ["a", 1];
export const stateVersion = "two";
export const argumentHint = `<${name}>`;
export const sessionsDir = ["x"];
export const defaultConfig = { model: pick() };
export const graphConfig = {};
export default 1;
"#;
    let (found, faults) = metadata(Path::new("/flows/a.ts"), text);
    assert_eq!(found.name.as_deref(), Some("good"));
    assert_eq!(found.default_config, None);
    let mut shown = String::new();
    for fault in faults {
        let _ = writeln!(shown, "{fault}\n");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_file_that_is_no_typescript_says_only_that() {
    let (found, faults) = read("export const name = ;");
    assert_eq!(found, Metadata::default());
    assert_eq!(faults, [("ATM701".to_owned(), 1, 21)]);
}

/// Types are gone when the file runs, so they are not a workflow.
#[test]
fn exported_types_beside_an_import_of_the_sdk_are_not_a_workflow() {
    let import = "import { graph } from \"atomic/workflows\";";
    let mut accepted = vec![];
    for text in [
        format!("{import}\nexport type graphConfig = string;"),
        format!("{import}\nexport interface graphConfig {{}}"),
        format!("{import}\nexport declare const graphConfig: string;"),
        format!("{import}\ntype graphConfig = string; export type {{ graphConfig }};"),
        format!("{import}\ntype graphConfig = string; export {{ type graphConfig }};"),
        "import \"atomic/workflows\";".to_owned(),
        "const a = await import(`atomic/workflows`);".to_owned(),
    ] {
        let (_, faults) = read(&text);
        if !faults.iter().any(|(code, ..)| code == "ATM722") {
            accepted.push(text);
        }
    }
    assert!(accepted.is_empty(), "{}", accepted.join("\n\n"));
}
