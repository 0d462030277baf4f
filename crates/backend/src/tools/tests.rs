use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use super::{ToolDecision, ToolRule, ToolRules};

fn rules(only: &[&str], without: &[&str]) -> ToolRules {
    let read = |texts: &[&str]| texts.iter().map(|text| ToolRule::read(text)).collect();
    let only = (!only.is_empty()).then(|| read(only));
    ToolRules { only, without: read(without), ..ToolRules::default() }
}

fn shell(command: &str) -> Value {
    json!({ "command": command })
}

#[test]
fn a_list_of_tools_allows_nothing_else() {
    let git = rules(&["Read", "Bash(git:*)", "Edit(src/**)", "WebFetch(domain:docs.rs)"], &[]);
    let table = [
        ("Read", json!({"file_path": "/a"}), true),
        ("Write", json!({"file_path": "/a"}), false),
        ("mcp__x__y", json!({}), false),
        ("Bash", shell("git log"), true),
        ("Bash", shell("git"), true),
        ("Bash", shell("gitk"), false),
        ("Bash", shell("git log; rm -r ."), false),
        ("Bash", shell("git log && rm x"), false),
        ("Bash", shell("git log $(rm x)"), false),
        ("Bash", shell("git log > x"), false),
        ("Bash", shell("rm x\ngit log"), false),
        ("Bash", shell("git -c alias.x='!touch evil' x"), false),
        ("Bash", shell("git \"-c\" alias.x=!evil x"), false),
        ("Bash", shell("git --config-env=alias.x=EVIL x"), false),
        ("Bash", shell("git --exec-path=/evil x"), false),
        ("Bash", shell("git --namespace n -c alias.x=!evil x"), false),
        ("Bash", shell("git -C 'a b' -c alias.x=!evil x"), false),
        ("Bash", shell("git  -C sub log -c"), true),
        ("Bash", shell("git\u{a0}log"), false),
        ("Bash", json!({}), false),
        ("Edit", json!({"file_path": "/p/src/a/b.rs"}), true),
        ("Edit", json!({"file_path": "src/a/b.rs"}), true),
        ("Edit", json!({"file_path": "/p/./src//b.rs"}), true),
        ("Edit", json!({"file_path": "/elsewhere/src/evil"}), false),
        ("Edit", json!({"file_path": "/p/sub/src/b.rs"}), false),
        ("Edit", json!({"file_path": "/p/src/../x"}), false),
        ("Edit", json!({"file_path": "src/../../x"}), false),
        ("Edit", json!({"file_path": " /p/src/x"}), false),
        ("Edit", json!({"file_path": "~/src/x"}), false),
        ("Edit", json!({"file_path": ""}), false),
        ("Edit", json!({"file_path": "src/a", "notebook_path": "/etc/a"}), false),
        ("Edit", json!({"command": "src/*", "file_path": "/etc/a"}), false),
        ("Edit", json!({"file_path": "/p/lib.rs"}), false),
        ("Edit", json!({"paths": "src/a"}), true),
        ("Edit", json!({"paths": ["src/a", "/p/src/b"]}), true),
        ("Edit", json!({"path": "src/a", "paths": "/etc/a"}), false),
        ("Edit", json!({"paths": ["src/a", "/etc/a"]}), false),
        ("Edit", json!({"paths": ["src/a", 7]}), false),
        ("Edit", json!({"paths": []}), false),
        ("Edit", json!({"paths": {"0": "src/a"}}), false),
        ("WebFetch", json!({"url": "https://docs.rs/x"}), true),
        ("WebFetch", json!({"url": "https://a.docs.rs:443/x"}), true),
        ("WebFetch", json!({"url": "https://evildocs.rs/x"}), false),
        ("WebFetch", json!({"url": "https://docs.rs@evil.org/"}), false),
        ("WebFetch", json!({"url": "HTTPS://DOCS.RS./x"}), true),
        ("WebFetch", json!({"url": "http://127.0.0.1:18777\\@docs.rs/x"}), false),
        ("WebFetch", json!({"url": "http://127.0.0.1:18777\t@docs.rs/x"}), false),
        ("WebFetch", json!({"url": "http://me:secret@docs.rs/x"}), false),
        ("WebFetch", json!({"url": "http://evil.org\\.docs.rs/x"}), false),
        ("WebFetch", json!({"url": "http://evil.org%2f.docs.rs/x"}), false),
        ("WebFetch", json!({"url": "http://[::1]:.docs.rs/x"}), false),
        ("WebFetch", json!({"url": "http://docs.rs:x/"}), false),
        ("WebFetch", json!({"url": "file://docs.rs/etc/passwd"}), false),
        ("WebFetch", json!({"url": "http:///docs.rs/"}), false),
    ];
    for (tool, input, allowed) in table {
        assert_eq!(git.refusal(tool, &input, Path::new("/p")).is_none(), allowed, "{tool} {input}");
    }
    assert_eq!(
        git.refusal("Bash", &shell("ls"), Path::new("/p")).as_deref(),
        Some("this agent may use Bash only as git:*")
    );
    assert_eq!(git.offered(), Some(vec!["Read", "Bash", "Edit", "WebFetch"]));
}

#[test]
fn what_is_taken_away_stays_away_whatever_surrounds_it() {
    let no_push = rules(&[], &["Write", "Bash(git push:*)", "mcp__*"]);
    let table = [
        ("Read", json!({}), true),
        ("Write", json!({}), false),
        ("mcp__x__y", json!({}), false),
        ("Bash", shell("git log"), true),
        ("Bash", shell("git push origin"), false),
        ("Bash", shell("true && git push"), false),
        ("Bash", shell("cargo build && cargo test"), true),
        ("Bash", shell("git  push"), false),
        ("Bash", shell("git\tpush"), false),
        ("Bash", shell("git -C . push"), false),
        ("Bash", shell("git 'push' origin"), false),
        ("Bash", shell("git pu\\sh"), false),
        ("Bash", shell("/usr/bin/git push"), false),
        ("Bash", shell("A=b git push"), false),
        ("Bash", shell("sudo git push"), false),
        ("Bash", shell("bash -c 'git  push'"), false),
        ("Bash", shell("git -c alias.x='!git push' x"), false),
        ("Bash", shell("true;git \"push\""), false),
        ("Bash", shell("X=git; $X push"), false),
        ("Bash", shell("git log\ngit -C . push"), false),
        ("Bash", shell("git push '"), false),
        ("Bash", json!({}), false),
        ("Bash", shell("git commit -m 'let us push it'"), true),
        ("Bash", shell("cargo push"), true),
        ("Bash", shell("git log | head"), true),
    ];
    for (tool, input, allowed) in table {
        assert_eq!(
            no_push.refusal(tool, &input, Path::new("/p")).is_none(),
            allowed,
            "{tool} {input}"
        );
    }
    assert_eq!(no_push.offered(), None);
    assert!(!no_push.allow_everything());
    assert!(ToolRules::default().allow_everything());
    assert_eq!(rules(&["Read", "Write"], &["Write"]).offered(), Some(vec!["Read"]));
}

#[test]
fn nothing_is_a_list_too() {
    let nothing = ToolRules { only: Some(vec![]), ..ToolRules::default() };
    assert!(nothing.refusal("Read", &json!({}), Path::new("/p")).is_some());
    assert_eq!(nothing.offered(), Some(vec![]));
}

#[test]
fn links_lead_where_they_lead() {
    let root = tempfile::tempdir().unwrap();
    let (work, out) = (root.path().join("work"), root.path().join("out"));
    for folder in [work.join("src"), work.join("secret"), out.clone()] {
        fs::create_dir_all(folder).unwrap();
    }
    symlink(&out, work.join("src/out")).unwrap();
    symlink(work.join("src"), work.join("inside")).unwrap();
    symlink(work.join("secret"), work.join("open")).unwrap();
    symlink(out.join("nothing"), work.join("src/dangling")).unwrap();
    symlink(&work, root.path().join("way")).unwrap();
    let write = |path: &str| json!({ "file_path": path });
    let src = rules(&["Write(src/**)"], &[]);
    let table = [
        ("src/new/deep.rs", true),
        ("inside/new.rs", true),
        ("src/out/evil", false),
        ("src/dangling", false),
        ("secret/x", false),
    ];
    for way in [work.clone(), root.path().join("way")] {
        for (path, allowed) in table {
            let refused = src.refusal("Write", &write(path), &way);
            assert_eq!(refused.is_none(), allowed, "{path}");
            let whole = way.join(path);
            let refused = src.refusal("Write", &write(whole.to_str().unwrap()), &work);
            assert_eq!(refused.is_none(), allowed, "{}", whole.display());
        }
    }
    let no_secret = rules(&[], &["Write(secret/**)", "Write(.env)"]);
    let table = [
        ("secret/x", false),
        ("open/x", false),
        ("src/../secret/x", false),
        ("deep/down/.env", false),
        ("src/x", true),
    ];
    for (path, allowed) in table {
        let refused = no_secret.refusal("Write", &write(path), &work);
        assert_eq!(refused.is_none(), allowed, "{path}");
    }
    let whole = out.to_str().unwrap();
    for pattern in [format!("Write({whole}/**)"), format!("Write(/{whole}/**)")] {
        let out = rules(&[&pattern], &[]);
        assert_eq!(out.refusal("Write", &write(&format!("{whole}/a/b")), &work), None);
        assert!(out.refusal("Write", &write("src/a"), &work).is_some());
    }
}

#[test]
fn a_prohibition_of_some_uses_says_which() {
    let no_push = rules(&[], &["Bash(git push:*)"]);
    let refused = no_push.refusal("Bash", &shell("git push"), Path::new("/p"));
    assert_eq!(refused.as_deref(), Some("this agent may not use Bash as git push:*"));
}

/// The programs call the same things by different keys.
#[test]
fn rules_hold_on_the_inputs_of_every_program() {
    let some = rules(&["edit(src/**)", "read(*.md)", "skill(review)", "bash(git:*)", "x(a)"], &[]);
    let none = rules(&[], &["edit(src/**)", "read(*.env)", "skill(review)", "bash(git:*)"]);
    let table = [
        ("edit", json!({"filePath": "/p/src/a.rs"}), true, false),
        ("edit", json!({"filePath": "src/a.rs", "oldString": "/etc/x"}), true, false),
        ("edit", json!({"filePath": "lib/a.rs"}), false, true),
        ("edit", json!({"filePath": "src/a.rs", "path": "/etc/a"}), false, false),
        ("edit", json!({"path": "src/a.rs", "old_str": "a"}), true, false),
        ("edit", json!({"filePath": null, "path": "src/a.rs"}), true, false),
        ("edit", json!({"filePath": ["src/a.rs"], "path": "src/a.rs"}), false, false),
        ("edit", json!({"filePath": 1}), false, false),
        ("edit", json!("src/a.rs"), false, false),
        ("read", json!({"filePath": "docs/x.md"}), true, true),
        ("read", json!({"filePath": "deep/down/.env"}), false, false),
        ("read", json!({"filePath": "prod.env"}), false, false),
        ("skill", json!({"name": "review"}), true, false),
        ("skill", json!({"name": "deploy"}), false, true),
        ("skill", json!({"skill": "review"}), true, false),
        ("Skill", json!({"skill": "review", "name": "deploy"}), false, false),
        ("skill", json!({"name": ["review"]}), false, false),
        ("bash", json!({"command": "git log", "workdir": "/p"}), true, false),
        ("bash", json!({"command": ["git", "log"]}), false, false),
        // Elsewhere a name may be anything.
        ("x", json!({"name": "a"}), false, true),
    ];
    for (tool, input, by_list, by_prohibition) in table {
        let is_allowed = |rules: &ToolRules| rules.refusal(tool, &input, Path::new("/p")).is_none();
        let found = (is_allowed(&some), is_allowed(&none));
        assert_eq!(found, (by_list, by_prohibition), "{tool} {input}");
    }
}

#[test]
fn a_patch_is_about_every_file_it_names() {
    let some = rules(&["apply_patch(src/**)"], &[]);
    let none = rules(&[], &["apply_patch(secret/**)"]);
    let table = [
        ("*** Add File: src/a\n+x", true, true),
        ("*** Update File: src/a\n@@\n-x\n+y", true, true),
        ("*** Delete File: /p/src/a", true, true),
        ("*** Delete File: src/a\n*** Add File: src/b\n+x", true, true),
        ("*** Update File: src/a\n*** Move to: src/b\n@@\n-x\n+y\n*** End of File", true, true),
        ("*** Update File:src/a\r\n@@\r\n-x\r\n", true, true),
        // What is added to a file is no header.
        ("*** Update File: src/a\n@@\n+*** Delete File: secret/x", true, true),
        ("*** Add File: src/a\n+x\n*** Delete File: lib/b", false, true),
        ("*** Add File: src/a\n+x\n*** Delete File: secret/b", false, false),
        ("*** Update File: src/a\n*** Move to: secret/b", false, false),
        ("*** Update File: secret/a\n*** Move to: src/b", false, false),
        ("*** Update File: src/../secret/a", false, false),
        // A program may be less strict about where a header begins.
        ("*** Add File: src/a\n  *** Delete File: secret/b", false, false),
        ("***Delete File: secret/b", false, false),
        ("*** Add File: src/a:secret/b", false, false),
        ("*** Add File: \u{feff}secret/b", false, false),
        ("*** Add File: src/a\r*** Delete File: secret/b", false, false),
        ("*** Add File: ~/x", false, false),
        ("*** Add File:", false, false),
        ("*** Rename File: src/a", false, false),
        ("", false, false),
    ];
    for (body, by_list, by_prohibition) in table {
        let input = json!({ "patchText": format!("*** Begin Patch\n{body}\n*** End Patch") });
        let is_allowed =
            |rules: &ToolRules| rules.refusal("apply_patch", &input, Path::new("/p")).is_none();
        let found = (is_allowed(&some), is_allowed(&none));
        assert_eq!(found, (by_list, by_prohibition), "{body:?}");
    }
    let odd =
        [json!({}), json!({"patchText": 1}), json!({"patchText": "--- a/src/x\n+++ b/src/x"})];
    for input in odd {
        for rules in [&some, &none] {
            assert!(rules.refusal("apply_patch", &input, Path::new("/p")).is_some(), "{input}");
        }
    }
}

fn decided(layer: &[(&str, &str, bool)]) -> ToolRules {
    let decision =
        |(tool, uses, allowed): &(&str, &str, bool)| ToolDecision::new(tool, Some(*uses), *allowed);
    ToolRules { layers: vec![layer.iter().map(decision).collect()], ..ToolRules::default() }
}

#[test]
fn the_last_decision_that_fits_holds() {
    let rules = decided(&[
        ("bash", "*", false),
        ("bash", "git *", true),
        ("bash", "git push*", false),
        ("bash", "git push origin dev", true),
        ("edit", "*", false),
        ("edit", "docs/*", true),
        ("read", "*.env", false),
        ("webfetch", "*", false),
        ("webfetch", "https://docs.rs/*", true),
        ("task", "*", false),
        ("task", "scout", true),
        ("github_*", "*", false),
    ]);
    let file = |path: &str| json!({ "filePath": path });
    let table = [
        ("bash", shell("ls"), false),
        ("bash", shell("git status"), true),
        ("bash", shell("git"), true),
        ("bash", shell("gitk"), false),
        ("bash", shell("git status; rm x"), false),
        ("bash", shell("git push origin main"), false),
        ("bash", shell("git push origin dev"), true),
        ("bash", shell("git push origin dev --force"), false),
        ("bash", json!({}), false),
        ("edit", file("docs/a/b.md"), true),
        ("edit", file("src/a.rs"), false),
        ("edit", file("docs/../src/a.rs"), false),
        ("edit", json!({ "filePath": ["docs/a"] }), false),
        ("read", file("a.rs"), true),
        ("read", file("config/.env"), false),
        ("webfetch", json!({ "url": "https://docs.rs/serde" }), true),
        ("webfetch", json!({ "url": "https://docs.rs.evil/serde" }), false),
        ("task", json!({ "subagent_type": "scout" }), true),
        ("task", json!({ "subagent_type": "worker" }), false),
        ("github_create_issue", json!({}), false),
        ("mcp__github__create_issue", json!({}), false),
        ("github-create_issue", json!({}), false),
        ("gitlab_create_issue", json!({}), true),
        ("grep", json!({ "pattern": "x" }), true),
    ];
    let workspace = tempfile::tempdir().unwrap();
    for (tool, input, allowed) in table {
        let refusal = rules.refusal(tool, &input, workspace.path());
        assert_eq!(refusal.is_none(), allowed, "{tool} {input}: {refusal:?}");
    }
    assert!(rules.may_use("bash") && rules.may_use("edit") && !rules.may_use("github_x"));
    assert_eq!(rules.offered(), None);
    assert_eq!(rules.limits("bash"), ["only git *", "not git push*", "only git push origin dev"]);
    // The last decision holds, whatever was said before.
    let rules = decided(&[("bash", "rm *", false), ("bash", "*", true)]);
    assert_eq!(rules.refusal("bash", &shell("rm x"), workspace.path()), None);
}

#[test]
fn a_layer_that_denies_everything_offers_what_it_names_afterwards() {
    let rules = decided(&[("edit", "*", true), ("*", "*", false), ("read", "*", true)]);
    assert_eq!(rules.offered(), Some(vec!["read"]));
    for tool in ["edit", "bash", "mcp__a__b", "Anything"] {
        assert!(rules.refusal(tool, &json!({}), Path::new("/w")).is_some(), "{tool}");
    }
    assert_eq!(rules.refusal("read", &json!({ "path": "a" }), Path::new("/w")), None);
    // All layers have to agree.
    let mut both = decided(&[("read", "*", false)]);
    both.layers.extend(rules.layers);
    assert_eq!(both.offered(), Some(vec![]));
    assert_eq!(both.withheld(), ["read"]);
}

#[test]
fn paths_outside_of_the_workspace_can_be_denied() {
    let rules =
        decided(&[("external_directory", "*", false), ("external_directory", "/usr/*", true)]);
    let (workspace, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink(elsewhere.path(), workspace.path().join("link")).unwrap();
    let outside = elsewhere.path().join("x").display().to_string();
    for (tool, input, allowed) in [
        ("read", json!({ "filePath": "a.rs" }), true),
        ("read", json!({ "filePath": outside }), false),
        ("read", json!({ "filePath": "link/x" }), false),
        ("read", json!({ "filePath": "/usr/share/x" }), true),
        ("bash", shell("cat a.rs"), true),
        ("bash", shell(&format!("cat {outside}")), false),
        ("bash", shell("cat ~/.ssh/id"), false),
        ("bash", shell("cd .. && ls"), false),
        ("bash", shell("cat src/a.rs"), true),
    ] {
        let refusal = rules.refusal(tool, &input, workspace.path());
        assert_eq!(refusal.is_none(), allowed, "{tool} {input}: {refusal:?}");
    }
}

#[test]
fn a_rule_can_name_a_whole_server_and_several_helpers() {
    let off = rules(&[], &["mcp__github"]);
    assert!(off.refusal("mcp__github__issue", &json!({}), Path::new("/w")).is_some());
    assert_eq!(off.refusal("mcp__gitlab__issue", &json!({}), Path::new("/w")), None);
    let some = rules(&["Task(scout, worker)"], &[]);
    for (name, allowed) in [("scout", true), ("worker", true), ("other", false)] {
        let refusal = some.refusal("Task", &json!({ "subagent_type": name }), Path::new("/w"));
        assert_eq!(refusal.is_none(), allowed, "{name}");
    }
}
