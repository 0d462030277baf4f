//! Decisions about trust that meet each other: withdrawal, worktrees, folders, a damaged file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::env::{TestEnv, ran};
use crate::terminal::typing;
use crate::trust::{HOOKS, git, hooked, is_trusted, is_trusted_in, turn, write};

const SERVER: &str = r#"{"mcpServers": {"a": {"command": "b"}}}"#;

fn trust(env: &TestEnv, folder: &Path, more: &[&str]) {
    let mut trust = env.atomic(["trust", "."]);
    trust.current_dir(folder).args(more);
    let ended = ran(trust);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Whether a turn in a folder is refused because of a change.
fn is_refused(env: &TestEnv, folder: &Path) -> bool {
    let mut command = turn(env, &[]);
    command.current_dir(folder);
    ran(command).code == Some(2)
}

/// Runs a turn on a terminal. Returns whether the user was asked.
fn is_asked(env: &TestEnv, folder: &Path, answer: &'static str) -> bool {
    let mut command = turn(env, &[]);
    command.current_dir(folder);
    let typed: &[(&str, &str, &dyn Fn())] = &[("1, 2 or 3: ", answer, &|| ())];
    let ended = typing(&command, if answer.is_empty() { &[] } else { typed });
    let _ = fs::remove_dir_all(folder.join(".atomic/sessions"));
    ended.stdout.contains("1, 2 or 3: ")
}

#[test]
fn only_trust_ends_a_withdrawal() {
    for settings in [r#"{"trusted_folders": ["~/../work"]}"#, r#"{"trust": true}"#] {
        let env = hooked();
        write(&env, "home/.atomic/settings.json", settings);
        assert!(is_trusted(&env));
        trust(&env, &env.work(), &["--withdraw"]);
        assert!(!is_trusted(&env));
        assert!(is_asked(&env, &env.work(), "3\n"));
        assert!(!is_trusted(&env), "{settings}: the user goes on without");
        assert_eq!(ran(turn(&env, &["--trust"])).code, Some(0));
        fs::remove_dir_all(env.work().join(".atomic/sessions")).unwrap();
        assert!(!is_trusted(&env), "{settings}: one run was trusted");
        assert_eq!(env.run(["config", "set", "check", "true"]).code, Some(0));
        assert!(!is_trusted(&env), "{settings}: a setting was typed");
        trust(&env, &env.work(), &[]);
        assert!(is_trusted(&env), "{settings}");
    }
}

#[test]
fn definitions_that_were_declined_are_not_used_in_trusted_folders() {
    let env = hooked();
    assert!(is_asked(&env, &env.work(), "3\n"));
    write(&env, "home/.atomic/settings.json", r#"{"trusted_folders": ["~/../work"]}"#);
    assert!(!is_trusted(&env));
    write(&env, "work/.mcp.json", SERVER);
    assert!(!is_trusted(&env), "another definition does not bring the hook back");
    trust(&env, &env.work(), &[]);
    assert!(is_trusted(&env));
}

/// Without git, agent programs read the files of the folders above, too.
#[test]
fn changes_are_noticed_without_git() {
    for place in ["home/projects/group/app", "elsewhere/group/app"] {
        let env = TestEnv::new();
        let folder = env.outside(place);
        let settings = format!("{place}/.claude/settings.json");
        write(&env, &settings, HOOKS);
        trust(&env, &folder, &[]);
        assert!(is_trusted_in(&env, &folder));
        fs::remove_file(env.outside(&settings)).unwrap();
        assert!(is_refused(&env, &folder), "{place}: a hook was removed");
        write(&env, &settings, HOOKS);
        assert!(is_trusted_in(&env, &folder), "{place}: the same hook again");
        for server in [folder.join(".mcp.json"), folder.join("../.mcp.json")] {
            fs::write(&server, SERVER).unwrap();
            assert!(is_refused(&env, &folder), "{}", server.display());
            fs::remove_file(server).unwrap();
        }
    }
}

#[test]
fn a_bad_byte_loses_no_other_decision() {
    let env = hooked();
    write(&env, "home/.atomic/settings.json", r#"{"trusted_folders": ["~/../work"]}"#);
    trust(&env, &env.work(), &[]);
    trust(&env, &env.work(), &["--withdraw"]);
    let path = env.outside("home/.atomic/trust.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend(b"{\"at\": \"\xff");
    fs::write(&path, &bytes).unwrap();
    assert!(!is_trusted(&env), "the withdrawal is lost");
    trust(&env, &env.work(), &[]);
    assert!(fs::read(&path).unwrap().starts_with(&[&bytes[..], b"\n{"].concat()));
    fs::remove_file(env.outside("home/.atomic/settings.json")).unwrap();
    assert!(is_trusted(&env), "the decision after the torn line is lost");
    // A file that cannot be read may hold a withdrawal.
    write(&env, "home/.atomic/settings.json", r#"{"trusted_folders": ["~/../work"]}"#);
    fs::remove_file(&path).unwrap();
    assert!(is_trusted(&env));
    fs::create_dir(&path).unwrap();
    assert!(!is_trusted(&env), "a file that cannot be read");
}

/// A repository with a hook in its main worktree and none in another one.
fn two_worktrees() -> (TestEnv, PathBuf) {
    let env = TestEnv::new();
    git(&env.work(), &["init", "-q"]);
    write(&env, "work/.mcp.json", SERVER);
    git(&env.work(), &["add", "."]);
    git(&env.work(), &["commit", "-q", "-m", "one"]);
    git(&env.work(), &["worktree", "add", "-q", "../old"]);
    write(&env, "work/.claude/settings.json", HOOKS);
    let old = env.outside("old");
    (env, old)
}

#[test]
fn worktrees_that_differ_are_asked_about_once_each() {
    let (env, old) = two_worktrees();
    trust(&env, &env.work(), &[]);
    assert!(is_trusted(&env) && is_refused(&env, &old), "the hook is missing there");
    trust(&env, &old, &[]);
    assert!(is_trusted(&env) && is_trusted_in(&env, &old));
    // Another version of the same hook in one of them.
    let changed = HOOKS.replace("./x", "./y");
    write(&env, "old/.claude/settings.json", &changed);
    assert!(is_refused(&env, &old));
    trust(&env, &old, &[]);
    assert!(is_trusted(&env) && is_trusted_in(&env, &old));
    // A version that was trusted in this repository comes back unchanged.
    write(&env, "work/.claude/settings.json", &changed);
    assert!(is_trusted(&env));
    // The absence was seen in the other worktree only.
    fs::remove_file(env.work().join(".claude/settings.json")).unwrap();
    assert!(is_refused(&env, &env.work()));
    trust(&env, &old, &["--withdraw"]);
    assert!(!is_trusted(&env) && !is_trusted_in(&env, &old));
}

#[test]
fn worktrees_of_a_bare_repository_share_one_decision() {
    // The repository, and whether a `.git` file beside it names it.
    for (bare, is_beside) in [("code.git", false), ("project/.bare", true)] {
        let env = hooked();
        git(&env.work(), &["add", "."]);
        git(&env.work(), &["commit", "-q", "-m", "one"]);
        let bare = env.outside(bare);
        git(&env.work(), &["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
        let around = bare.parent().unwrap();
        if is_beside {
            fs::write(around.join(".git"), "gitdir: ./.bare\n").unwrap();
        }
        for name in ["one", "two"] {
            let tree = around.join(name);
            git(&bare, &["worktree", "add", "-q", tree.to_str().unwrap(), "-b", name]);
        }
        assert!(!is_trusted_in(&env, &around.join("two")));
        trust(&env, &around.join("one"), &[]);
        assert!(is_trusted_in(&env, &around.join("two")));
        // A folder that the repository does not know.
        let foreign = env.outside("foreign");
        fs::create_dir(&foreign).unwrap();
        fs::copy(around.join("one/.git"), foreign.join(".git")).unwrap();
        write(&env, "foreign/.claude/settings.json", HOOKS);
        assert!(!is_trusted_in(&env, &foreign));
        trust(&env, &around.join("two"), &["--withdraw"]);
        assert!(!is_trusted_in(&env, &around.join("one")));
    }
}

#[test]
fn a_worktree_elsewhere_lies_in_the_trusted_folder_of_its_repository() {
    let (env, old) = two_worktrees();
    assert!(!is_trusted_in(&env, &old));
    write(&env, "home/.atomic/settings.json", r#"{"trusted_folders": ["~/../work"]}"#);
    assert!(is_trusted_in(&env, &old));
    trust(&env, &old, &["--withdraw"]);
    assert!(!is_trusted_in(&env, &old) && !is_trusted(&env));
}

#[test]
fn a_declined_repository_is_not_asked_about_in_its_folders() {
    let env = hooked();
    write(&env, "work/Makefile", "test:\n\ttrue\n");
    let inner = env.work().join("inner");
    fs::create_dir_all(inner.join("bin")).unwrap();
    assert!(is_asked(&env, &env.work(), "3\n"));
    assert!(!is_asked(&env, &inner, ""), "the hook alone was declined with the check");
    let mut with_programs = turn(&env, &[]);
    let path = format!("{}:{}", inner.join("bin").display(), std::env::var("PATH").unwrap());
    with_programs.current_dir(&inner).env("PATH", path);
    let ended = typing(&with_programs, &[]);
    assert!(!ended.stdout.contains("1, 2 or 3: "), "{ended:?}");
    write(&env, "work/inner/.mcp.json", SERVER);
    assert!(is_asked(&env, &inner, "3\n"), "the folder brings another definition");
}

#[test]
fn withdrawal_finds_the_same_repository_as_trust() {
    let env = TestEnv::new();
    let folder = env.outside("home/x/.atomic/y");
    write(&env, "home/x/.atomic/y/.claude/settings.json", HOOKS);
    trust(&env, &folder, &[]);
    assert!(is_trusted_in(&env, &folder));
    trust(&env, &folder, &["--withdraw"]);
    assert!(!is_trusted_in(&env, &folder));
}
