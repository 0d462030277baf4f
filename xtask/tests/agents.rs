//! `xtask agents` from the outside, with a double of npm; and what `xtask test` makes of it.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up is a failed test")]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agents").join(name)
}

/// A cache of tools.
struct Cache(TempDir);

impl Cache {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// Where the installations are.
    fn agents(&self) -> PathBuf {
        self.0.path().join("tools/agents")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.agents()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The calls of npm.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.path().join("npm")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn command(&self, argument: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        let path = format!("{}:/usr/bin:/bin", fixture("bin").display());
        command
            .arg(argument)
            .env("ATOMIC_TOOLS", self.0.path().join("tools"))
            .env("NPM_CALLS", self.0.path().join("npm"))
            .env("PATH", path);
        command
    }

    fn install(&self) -> PathBuf {
        let (folder, said) = run(&mut self.command("agents"));
        assert!(folder.is_some(), "{said}");
        PathBuf::from(folder.unwrap())
    }

    /// The last line of an installation that fails.
    fn fail(&self, variable: &str, value: &str) -> String {
        let (folder, said) = run(self.command("agents").env(variable, value));
        assert_eq!(folder, None, "{said}");
        said.lines().last().unwrap().to_owned()
    }
}

/// What was printed, if it succeeded, and what was said on the side.
fn run(command: &mut Command) -> (Option<String>, String) {
    let output = command.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let printed = output.status.success().then(|| printed.trim_end().to_owned());
    (printed, String::from_utf8(output.stderr).unwrap())
}

fn version(folder: &Path, program: &str) -> String {
    let output = Command::new(folder.join(program)).arg("--version").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_programs_are_installed_once() {
    let cache = Cache::new();
    let folder = cache.install();
    assert_eq!(folder.parent(), Some(cache.agents().as_path()));
    assert_eq!(version(&folder, "claude-2.1.197/claude"), "2.1.197 (Claude Code)\n");
    assert_eq!(version(&folder, "claude-2.1.325/claude"), "2.1.325 (Claude Code)\n");
    let key = folder.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(cache.names(), [key, "lock".to_owned()]);

    assert_eq!(cache.install(), folder);
    let call = "ci --ignore-scripts --no-audit --no-fund --include=optional";
    assert_eq!(cache.calls(), [call]);
}

#[test]
fn a_program_that_is_not_what_was_installed_is_installed_again() {
    let cache = Cache::new();
    let folder = cache.install();
    fs::remove_file(folder.join("claude-2.1.325/claude")).unwrap();
    assert_eq!(cache.install(), folder);
    assert_eq!(version(&folder, "claude-2.1.325/claude"), "2.1.325 (Claude Code)\n");
    assert_eq!(cache.calls().len(), 2);
}

#[test]
fn an_installation_that_fails_says_why_and_leaves_nothing() {
    let cache = Cache::new();
    let staging = cache.agents().join("staging");
    let table = [
        ("NPM_FAILS", "yes", "npm could not install the agent programs".to_owned()),
        ("PATH", "/nowhere", "npm is not installed".to_owned()),
        (
            "NPM_SAYS",
            "2.1.197",
            format!(
                "{}/claude-2.1.325/claude should be 2.1.325 and says `2.1.197 (Claude Code)`",
                staging.display()
            ),
        ),
        (
            "NPM_LACKS",
            "2.1.325",
            format!(
                "npm has installed no claude-2.1.325 on {}-{}; it could not fetch the package, or \
                 there is none: there are those for linux-x64, linux-arm64, linux-x64-musl, \
                 linux-arm64-musl",
                std::env::consts::OS,
                std::env::consts::ARCH
            ),
        ),
    ];
    for (variable, value, reason) in table {
        assert_eq!(cache.fail(variable, value), reason);
        assert_eq!(cache.names(), ["lock"], "{variable}");
    }
    cache.install();
}

#[test]
fn what_a_killed_run_has_left_is_not_taken_over() {
    let cache = Cache::new();
    fs::create_dir_all(cache.agents().join("staging/claude-2.1.325")).unwrap();
    let folder = cache.install();
    assert_eq!(version(&folder, "claude-2.1.325/claude"), "2.1.325 (Claude Code)\n");
}

#[test]
fn two_at_once_install_once() {
    let cache = Cache::new();
    fs::create_dir_all(cache.agents()).unwrap();
    let lock = File::create(cache.agents().join("lock")).unwrap();
    lock.lock().unwrap();
    let start = || {
        let mut command = cache.command("agents");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let expected = format!("waiting for another run that uses {}\n", cache.agents().display());
        assert_eq!(line, expected);
        (child, stderr)
    };
    let both = [start(), start()];
    drop(lock);
    let folders = both.map(|(child, mut stderr): (Child, _)| {
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).unwrap()
    });
    assert_eq!(folders[0], folders[1]);
    assert_eq!(cache.calls().len(), 1);
}

#[test]
fn the_installation_used_last_stays_beside_a_new_one() {
    let cache = Cache::new();
    let folder = cache.install();
    let key = folder.file_name().unwrap().to_str().unwrap();
    let hours_ago = |name: &str, hours: u64| {
        let folder = cache.agents().join(name);
        fs::create_dir_all(&folder).unwrap();
        let time = SystemTime::now() - Duration::from_secs(3600 * hours);
        File::open(folder).unwrap().set_modified(time).unwrap();
    };
    hours_ago("older", 3);
    hours_ago("oldest", 4);
    hours_ago(key, 5);
    // Found again, nothing is removed, and from now on it is the newest.
    cache.install();
    assert_eq!(cache.names(), [key, "lock", "older", "oldest"]);
    assert!(folder.metadata().unwrap().modified().unwrap().elapsed().unwrap().as_secs() < 3600);

    fs::remove_dir_all(&folder).unwrap();
    cache.install();
    assert_eq!(cache.names(), [key, "lock", "older"]);
}

/// What a run in a workspace of nothing prints, and the runs of tests.
fn test_run(cache: &Cache, change: impl FnOnce(&mut Command)) -> (String, String) {
    let root = cache.0.path().join("workspace");
    fs::create_dir_all(&root).unwrap();
    let metadata = serde_json::json!({
        "packages": [], "workspace_root": root, "target_directory": root.join("target"),
    });
    let mut command = cache.command("test");
    command
        .current_dir(&root)
        .env("CARGO", fixture("cargo"))
        .env("CARGO_METADATA", metadata.to_string())
        .env("CARGO_CALLS", cache.0.path().join("cargo"))
        .env_remove("ATOMIC_AGENTS")
        .env_remove("ATOMIC_ACP_CLIENT")
        .env_remove("ATOMIC_TEST_SAMPLE")
        .env_remove("CI");
    change(&mut command);
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    let calls = fs::read_to_string(cache.0.path().join("cargo")).unwrap_or_default();
    (said.concat(), calls)
}

/// The rows of a run about the agent programs and the client, and the runs of tests.
fn rows(cache: &Cache, change: impl FnOnce(&mut Command)) -> (Vec<String>, String) {
    let (said, calls) = test_run(cache, change);
    assert!(said.contains("\nsuite "), "{said}");
    let (_, table) = said.split_once("\nsuite ").unwrap();
    let suites = ["agents ", "client ", "acp client ", "real agents "];
    let wanted = |line: &&str| suites.iter().any(|suite| line.starts_with(suite));
    // Without the time and the CPU time it took.
    let word = |line: &str| {
        let (start, rest) = line.split_once(" s").unwrap();
        let (_, end) = rest.split_once(" s").unwrap();
        let counts: Vec<&str> = start.split_whitespace().collect();
        format!("{}{end}", counts[..counts.len() - 1].join(" "))
    };
    (table.lines().filter(wanted).map(word).collect(), calls)
}

#[test]
fn the_suite_that_starts_the_programs_is_run_with_them() {
    let cache = Cache::new();
    let (rows, calls) = rows(&cache, |_| {});
    // The tests of the older program are a run of their own.
    assert_eq!(rows, ["agents ok 1 0", "client ok 1 0", "acp client ok 1 0", "real agents ok 2 0"]);
    let folder = cache.install();
    let calls: Vec<&str> = calls.lines().collect();
    assert_eq!(calls.len(), 5, "{calls:?}");
    for call in calls {
        assert!(call.starts_with(folder.to_str().unwrap()), "{call}");
    }
}

#[test]
fn without_the_programs_their_suite_is_not_run_and_in_ci_that_is_a_failure() {
    let cache = Cache::new();
    let (here, calls) = rows(&cache, |command| {
        command.env("NPM_FAILS", "yes");
    });
    let reason = "npm could not install the agent programs";
    let client = "npm could not install the client of the Agent Client Protocol";
    let not_run =
        [format!("acp client not run 0 0  {client}"), format!("real agents not run 0 0  {reason}")];
    let first = [format!("agents not run 0 0  {reason}"), format!("client not run 0 0  {client}")];
    assert_eq!(here, [first, not_run.clone()].concat());
    assert!(calls.lines().all(|call| call.starts_with("none ")), "{calls}");
    assert!(!calls.contains("-E test(real_agent)"), "{calls}");
    assert!(!calls.contains("-E test(acp_client)"), "{calls}");
    let (in_ci, _) = rows(&cache, |command| {
        command.env("NPM_FAILS", "yes").env("CI", "true");
    });
    let first = [format!("agents FAILED 0 1  {reason}"), format!("client FAILED 0 1  {client}")];
    assert_eq!(in_ci, [first, not_run].concat());
}

#[test]
fn a_tenth_of_the_long_tests_is_played_and_can_be_played_again() {
    let cache = Cache::new();
    let (said, calls) = test_run(&cache, |command| {
        command.env("ATOMIC_TEST_SAMPLE", "27");
    });
    let line = "playing a tenth of the long tests: ATOMIC_TEST_SAMPLE=27; --full plays all of them";
    assert!(said.starts_with(line), "{said}");
    assert!(calls.lines().all(|call| call.contains(" sample=27 ")), "{calls}");
    let older = "--partition hash:8/10 -E test(real_agent) & (test(::older::) | test(::long::))";
    assert_eq!(calls.lines().filter(|call| call.contains(older)).count(), 1, "{calls}");

    // Without a commit the seed is 0.
    let (said, _) = test_run(&cache, |_| {});
    assert!(said.starts_with("playing a tenth of the long tests: ATOMIC_TEST_SAMPLE=0;"), "{said}");
    let (said, _) = test_run(&cache, |command| {
        command.env("ATOMIC_TEST_SAMPLE", "a tenth");
    });
    assert_eq!(said, "ATOMIC_TEST_SAMPLE: not a number: `a tenth`\n");
}

#[test]
fn a_full_run_plays_all_of_the_long_tests() {
    let cache = Cache::new();
    let (said, calls) = test_run(&cache, |command| {
        command.arg("--full").env("ATOMIC_TEST_SAMPLE", "27");
    });
    assert!(!said.contains("a tenth"), "{said}");
    assert!(calls.lines().all(|call| call.contains(" sample=none ")), "{calls}");
    assert!(calls.contains("--test-threads 3 -E test(real_agent) sample"), "{calls}");
    assert!(!calls.contains("--partition"), "{calls}");
}

#[test]
fn the_slowest_tests_are_listed() {
    let cache = Cache::new();
    let (said, _) = test_run(&cache, |command| {
        command.env("CARGO_RESULTS", "        PASS [  12.345s] (1/1) atomic-cli::cli usage::help");
    });
    assert!(said.contains("\nslowest tests\n  12.3 s  atomic-cli::cli usage::help\n"), "{said}");
}

#[test]
fn tests_on_another_binary_are_listed_by_how_they_end() {
    let cache = Cache::new();
    let binary = fixture("endless");
    let against = |names: &[&str], list: &str| {
        test_run(&cache, |command| {
            command.arg("--against").arg(&binary).args(names).env("CARGO_LIST", list).env(
                "CARGO_RESULTS",
                "        PASS [   0.100s] (1/3) atomic-cli::cli usage::help\n        \
                 FAIL [   0.200s] (2/3) atomic-cli::cli trust::asked\n     \
                 SIGKILL [   0.300s] (3/3) atomic-cli::cli trust::dies",
            );
        })
    };
    let list = |names: &[&str]| {
        let test = |name: &&str| {
            (name.to_string(), serde_json::json!({ "filter-match": { "status": "matches" } }))
        };
        let tests: serde_json::Map<_, _> = names.iter().map(test).collect();
        serde_json::json!({ "rust-suites": { "atomic-cli::cli": { "testcases": tests } } })
            .to_string()
    };
    let (said, calls) = against(&["trust", "help"], &list(&["usage::help", "trust::asked"]));
    let path = binary.display();
    let expected = format!(
        "on {path}:\n\nred there: 2\n  atomic-cli::cli trust::asked\n  \
         atomic-cli::cli trust::dies\n\ngreen there: 1\n  atomic-cli::cli usage::help\n"
    );
    assert!(said.starts_with(&expected), "{said}");
    let filter = "-E package(=atomic-cli) & kind(test) & (test(trust) | test(help))";
    assert!(calls.contains(filter), "{calls}");
    assert!(calls.lines().all(|call| call.ends_with(&format!("binary={path}"))), "{calls}");
    // The agent programs are installed only for tests that start them.
    assert!(calls.starts_with("none "), "{calls}");
    let (_, calls) = against(&["real"], &list(&["real_agents::turn"]));
    let last = calls.lines().last().unwrap();
    assert!(last.starts_with(cache.agents().to_str().unwrap()), "{last}");

    let (said, _) = against(&["nowhere"], &list(&[]));
    let expected = "no process test has one of these words in its name: [\"nowhere\"]\n";
    assert_eq!(said, expected);
}
