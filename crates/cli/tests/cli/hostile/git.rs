//! An unpacked `.git`, and programs in the project that are found by `PATH`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use super::{Attack, Ground, git};

const TURN: &[&str] = &["-p", "Hello"];

/// A repository with one commit and these lines in its own settings.
fn configured(lines: impl Fn(&Ground) -> String + 'static) -> Attack {
    Attack::new(move |ground| {
        repository(ground);
        let path = ground.env.work().join(".git/config");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text += &lines(ground);
        std::fs::write(path, text).unwrap();
    })
}

fn repository(ground: &Ground) {
    ground.git(&["init", "-q"]);
    ground.project("a.txt", "one\n");
    ground.project(".gitignore", ".ralph\n.atomic\n");
    ground.git(&["add", "."]);
    ground.git(&["commit", "-q", "-m", "zero"]);
    ground.git(&["config", "user.name", "t"]);
    ground.git(&["config", "user.email", "t@example.org"]);
    ground.project("a.txt", "two\n");
}

/// A program of the project as the value of a key.
fn key(section: &'static str, key: &'static str) -> Attack {
    configured(move |ground| {
        ground.program("evil.sh");
        let program = ground.env.work().join("evil.sh");
        format!("[{section}]\n\t{key} = {}\n", program.display())
    })
}

#[test]
fn a_file_system_monitor() {
    key("core", "fsmonitor").works_only_when_trusted(TURN);
}

#[test]
fn an_external_diff() {
    key("diff", "external").works_only_when_trusted(TURN);
}

#[test]
fn a_filter() {
    let attack = configured(|ground| {
        ground.program("evil.sh");
        ground.project(".gitattributes", "*.txt filter=evil\n");
        let program = ground.env.work().join("evil.sh");
        format!("[filter \"evil\"]\n\tclean = {}\n", program.display())
    });
    attack.works_only_when_trusted(TURN);
}

#[test]
fn an_alias() {
    let attack = configured(|ground| format!("[alias]\n\tst = !{}\n", ground.leaves_sign()));
    attack.works_only_when_trusted(TURN);
}

#[test]
fn a_folder_of_hooks() {
    let attack = configured(|ground| {
        ground.program("ci/hooks/pre-commit");
        "[core]\n\thooksPath = ci/hooks\n".to_owned()
    });
    attack.works_only_when_trusted(TURN);
}

#[test]
fn settings_from_another_file() {
    let attack = configured(|ground| {
        ground.program("evil.sh");
        let program = ground.env.work().join("evil.sh");
        ground.project("ci/gitconfig", &format!("[core]\n\tfsmonitor = {}\n", program.display()));
        "[include]\n\tpath = ../ci/gitconfig\n".to_owned()
    });
    attack.works_only_when_trusted(TURN);
}

#[test]
fn settings_from_another_file_under_a_condition() {
    let attack = configured(|ground| {
        ground.program("evil.sh");
        let program = ground.env.work().join("evil.sh");
        ground.project("ci/gitconfig", &format!("[core]\n\tfsmonitor = {}\n", program.display()));
        "[includeIf \"gitdir:/**\"]\n\tpath = ../ci/gitconfig\n".to_owned()
    });
    attack.works_only_when_trusted(TURN);
}

#[test]
fn a_signing_program() {
    let attack = configured(|ground| {
        ground.program("evil.sh");
        let program = ground.env.work().join("evil.sh");
        format!("[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = {}\n", program.display())
    });
    attack.works_only_when_trusted(TURN);
}

#[test]
fn settings_of_a_worktree() {
    let attack = Attack::new(|ground| {
        repository(ground);
        ground.program("evil.sh");
        ground.git(&["config", "extensions.worktreeConfig", "true"]);
        let program = ground.env.work().join("evil.sh");
        let text = format!("[core]\n\tfsmonitor = {}\n", program.display());
        ground.project(".git/config.worktree", &text);
    });
    attack.works_only_when_trusted(TURN);
}

#[test]
fn a_hook() {
    let attack = Attack::new(|ground| {
        repository(ground);
        ground.program(".git/hooks/pre-commit");
    });
    attack.works_only_when_trusted(TURN);
}

#[test]
fn a_key_in_other_letters_on_one_line() {
    let attack = configured(|ground| {
        ground.program("evil.sh");
        format!("[CORE] FsMonitor = {}\n", ground.env.work().join("evil.sh").display())
    });
    attack.works_only_when_trusted(TURN);
}

#[test]
fn a_git_folder_elsewhere_in_the_project() {
    let attack = Attack::new(|ground| {
        repository(ground);
        ground.program("evil.sh");
        let program = ground.env.work().join("evil.sh");
        ground.git(&["config", "core.fsmonitor", program.to_str().unwrap()]);
        std::fs::rename(ground.env.work().join(".git"), ground.env.work().join("data")).unwrap();
        ground.project(".git", "gitdir: data\n");
    });
    attack.works_only_when_trusted(TURN);
}

/// Lines that git reads differently than a reader of lines does.
#[test]
fn a_key_behind_a_comment_with_a_backslash() {
    hidden(|program| format!("[core]\n# x \\\nfsmonitor = {program}\n"));
}

#[test]
fn a_key_behind_a_quote_in_a_name() {
    hidden(|program| format!("[branch \"x\\\"\"] [core] fsmonitor = {program}\n"));
}

#[test]
fn a_key_behind_a_value_that_ends_with_a_backslash() {
    hidden(|program| {
        format!("[branch \"m\"]\n\tdescription = x\\\\\n[core]\n\tfsmonitor = {program}\n")
    });
}

fn hidden(lines: fn(&str) -> String) {
    let attack = configured(move |ground| {
        ground.program("evil.sh");
        lines(ground.env.work().join("evil.sh").to_str().unwrap())
    });
    attack.works_only_when_trusted(TURN);
}

/// A folder whose name has spaces around it, beside a harmless one without them.
#[test]
fn a_git_folder_with_a_space_in_its_name() {
    let attack = Attack::new(|ground| {
        repository(ground);
        let work = ground.env.work();
        std::fs::rename(work.join(".git"), work.join("data")).unwrap();
        copied(&work.join("data"), &work.join(" data"));
        ground.program("evil.sh");
        monitored(ground, " data/config");
        ground.project(".git", "gitdir:  data\n");
    });
    attack.works_only_when_trusted(TURN);
}

#[test]
fn a_shared_git_folder_with_a_space_in_its_name() {
    let attack = Attack::new(|ground| {
        repository(ground);
        let work = ground.env.work();
        copied(&work.join(".git"), &work.join("data"));
        copied(&work.join(".git"), &work.join("data "));
        ground.program("evil.sh");
        monitored(ground, "data /config");
        ground.project(".git/commondir", "../data \n");
    });
    attack.works_only_when_trusted(TURN);
}

fn copied(from: &Path, to: &Path) {
    let mut copy = Command::new("cp");
    assert!(copy.arg("-R").arg(from).arg(to).status().unwrap().success());
}

/// Names a program of the project in git settings.
fn monitored(ground: &Ground, config: &str) {
    let path = ground.env.work().join(config);
    let program = ground.env.work().join("evil.sh");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = format!("{text}[core]\n\tfsmonitor = {}\n", program.display());
    std::fs::write(path, text).unwrap();
}

/// git skips a `.git` that is not a repository and looks further up.
#[test]
fn a_repository_behind_an_empty_git_folder() {
    let attack = Attack::new(|ground| {
        repository(ground);
        ground.program("evil.sh");
        monitored(ground, ".git/config");
        ground.folder = ground.env.work().join("inner");
        std::fs::create_dir_all(ground.folder.join(".git")).unwrap();
    });
    attack.works_only_when_trusted(TURN);
}

/// The same with a folder of worktree data that the project brings along.
#[test]
fn a_claim_to_be_a_worktree_with_data_of_its_own() {
    let attack = Attack::new(|ground| {
        let own = ground.env.outside("own");
        std::fs::create_dir_all(&own).unwrap();
        git(&own, &["init", "-q"]);
        git(&own, &["commit", "-q", "--allow-empty", "-m", "one"]);
        // The same file as the project's, so that its definition is one that is trusted.
        ground.outside("own/Makefile", &format!("test:\n\t{}\n", ground.leaves_sign()));
        let mut trust = ground.env.atomic(["trust", "."]);
        trust.current_dir(&own);
        assert_eq!(crate::env::ran(trust).code, Some(0));
        ground.project(".git", "gitdir: wt\n");
        ground.project("wt/HEAD", "ref: refs/heads/master\n");
        ground.project("wt/gitdir", "../.git\n");
        ground.project("wt/commondir", &format!("{}\n", own.join(".git").display()));
        ground.project("Makefile", &format!("test:\n\t{}\n", ground.leaves_sign()));
    });
    attack.works_only_when_trusted(&["run", "ralph", "Build it"]);
}

#[test]
fn a_nested_repository() {
    let attack = Attack::new(|ground| {
        repository(ground);
        ground.program("evil.sh");
        let inner = ground.env.work().join("inner");
        std::fs::create_dir(&inner).unwrap();
        git(&inner, &["init", "-q"]);
        ground.project("inner/a.txt", "one\n");
        git(&inner, &["add", "."]);
        git(&inner, &["commit", "-q", "-m", "one"]);
        ground.git(&["add", "-A"]);
        ground.git(&["commit", "-q", "-m", "inner"]);
        monitored(ground, "inner/.git/config");
        ground.project(".gitmodules", "[submodule \"inner\"]\n\tpath = inner\n\tignore = none\n");
    });
    attack.works_only_when_trusted(TURN);
}

/// The project says that it is a worktree of a repository that the user trusts.
#[test]
fn a_claim_to_be_the_worktree_of_a_trusted_repository() {
    let attack = Attack::new(|ground| {
        let own = ground.env.outside("own");
        std::fs::create_dir_all(&own).unwrap();
        git(&own, &["init", "-q"]);
        git(&own, &["commit", "-q", "--allow-empty", "-m", "one"]);
        git(&own, &["worktree", "add", "-q", "../tree"]);
        ground.outside("own/Makefile", "test:\n\ttrue\n");
        let mut trust = ground.env.atomic(["trust", "."]);
        trust.current_dir(&own);
        assert_eq!(crate::env::ran(trust).code, Some(0));
        let link = std::fs::read_to_string(ground.env.outside("tree/.git")).unwrap();
        ground.project(".git", &link);
        ground.project("Makefile", &format!("test:\n\t{}\n", ground.leaves_sign()));
    });
    attack.works_only_when_trusted(&["run", "ralph", "Build it"]);
}

#[test]
fn a_repository_inside_of_a_trusted_one() {
    let attack = Attack::new(|ground| {
        ground.git(&["init", "-q"]);
        ground.project("Makefile", "test:\n\ttrue\n");
        assert_eq!(ground.run(&["trust", "."]).code, Some(0));
        ground.folder = ground.env.work().join("vendor/lib");
        std::fs::create_dir_all(&ground.folder).unwrap();
        git(&ground.folder, &["init", "-q"]);
        ground.project("vendor/lib/Makefile", &format!("test:\n\t{}\n", ground.leaves_sign()));
    });
    attack.works_only_when_trusted(&["run", "ralph", "Build it"]);
}

/// A clone can bring a folder that git takes for a repository with settings of its own. The control
/// is git itself, as the agent calls it.
#[test]
fn a_bare_repository() {
    let attack = Attack::new(|ground| {
        repository(ground);
        ground.program("evil.sh");
        let program = ground.env.work().join("evil.sh");
        ground.git(&["init", "-q", "--bare", "bare"]);
        let text = format!(
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = {}\n",
            program.display()
        );
        ground.project("bare/config", &text);
    });
    let by_hand = |ground: &mut Ground| git(&ground.env.work().join("bare"), &["status", "-s"]);
    attack.works_only_for_the_user(by_hand, &["list"]);
}

/// git fetches objects of a partial clone when something reads them. The archive has none of the
/// objects of its commit, and names the address.
#[test]
fn an_address_for_missing_objects() {
    for lines in [
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n",
        "[remote \"origin\"]\n\tpromisor = true\n",
        "[remote \"origin\"]\n\tpartialclonefilter = blob:none\n",
    ] {
        let attack = Attack::new(move |ground| {
            repository(ground);
            let config = ground.env.work().join(".git/config");
            let text = std::fs::read_to_string(&config).unwrap();
            let address = "[remote \"origin\"]\n\turl = ssh://attacker.invalid/x\n";
            std::fs::write(config, format!("{text}{address}{lines}")).unwrap();
            for folder in std::fs::read_dir(ground.env.work().join(".git/objects")).unwrap() {
                let folder = folder.unwrap();
                if folder.file_name().len() == 2 && !is_head(ground, folder.file_name().to_str()) {
                    std::fs::remove_dir_all(folder.path()).unwrap();
                }
            }
            let ssh = ground.env.outside("bin/ssh");
            ground.outside("bin/ssh", &format!("#!/bin/sh\n{}\nexit 1\n", ground.leaves_sign()));
            std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
            let folder = ssh.parent().unwrap().display().to_string();
            ground.path = Some(format!("{folder}:{}", std::env::var("PATH").unwrap()));
        });
        attack.fails_with(&attack.planted(), super::commands_of_agents());
        attack.works(|ground| assert_eq!(ground.run(&["trust", "."]).code, Some(0)), TURN);
        let told = attack.planted().run(&["doctor"]).stdout;
        assert!(told.contains("(.git/config), not used"), "{told}");
    }
}

/// Whether the commit that is checked out lies in this folder of objects.
fn is_head(ground: &Ground, folder: Option<&str>) -> bool {
    let mut git = Command::new("git");
    let head = git.current_dir(ground.env.work()).args(["rev-parse", "HEAD"]).output().unwrap();
    folder.is_some_and(|folder| head.stdout.starts_with(folder.as_bytes()))
}

/// A partial clone of the user can be used without trust: git finds it, and fetches nothing.
#[test]
fn a_partial_clone_is_used_without_trust() {
    let ground = Ground::new();
    repository(&ground);
    ground.git(&["config", "remote.origin.promisor", "true"]);
    ground.git(&["config", "remote.origin.url", "ssh://attacker.invalid/x"]);
    assert_eq!(ground.run(TURN).code, Some(0));
    let mut git = Command::new("git");
    git.current_dir(ground.env.work()).args(["log", "--format=%s"]);
    let log = String::from_utf8(git.output().unwrap().stdout).unwrap();
    assert_eq!(log, "one\nzero\n", "the agent's commit is missing");
}

/// Programs with the names of those that are started.
fn programs(ground: &Ground, folder: &str) {
    for name in ["git", "sh", "claude", "opencode", "copilot", "make", "npm", "env"] {
        ground.program(&format!("{folder}/{name}"));
    }
}

#[test]
fn programs_in_a_relative_path() {
    let attack = Attack::new(|ground| {
        programs(ground, "bin");
        ground.path = Some(format!("bin:{}", std::env::var("PATH").unwrap()));
    });
    attack.works_only_when_trusted(TURN);
}

#[test]
fn programs_in_the_working_folder() {
    let attack = Attack::new(|ground| {
        programs(ground, ".");
        // An empty entry means the working folder.
        ground.path = Some(format!(":{}", std::env::var("PATH").unwrap()));
    });
    attack.works_only_when_trusted(TURN);
}

#[test]
fn programs_in_an_absolute_path() {
    let attack = Attack::new(|ground| {
        programs(ground, "node_modules/.bin");
        let folder = ground.env.work().join("node_modules/.bin");
        ground.path = Some(format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
    });
    attack.works_only_when_trusted(TURN);
}
