//! Which suites there are, and in which order.

use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

use super::counts::Runner;
use super::sample::Sample;
use crate::metadata::Metadata;

/// How much of the tests is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Without what takes minutes.
    Quick,
    /// Everything, but of the long tests only a tenth.
    Sampled(Sample),
    /// Everything.
    Full,
}

/// What the plan depends on.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// Packages, without the `atomic-` in front.
    pub(super) packages: Vec<(String, String)>,
    /// Integration tests by name.
    pub(super) test_binaries: Vec<String>,
    /// Features the tests need.
    pub(super) features: Vec<String>,
    /// Whether cargo-nextest is there.
    pub(super) nextest: bool,
    /// How many tests are run at once.
    pub(super) at_once: usize,
}

/// One line of the table.
pub(super) struct Suite {
    pub(super) name: String,
    pub(super) job: Job,
    /// When this fails there is nothing to run the tests with.
    pub(super) is_build: bool,
    /// Not run when the build failed.
    pub(super) needs_build: bool,
    /// Not run without the real agent programs.
    pub(super) needs_agents: bool,
    /// Not run without the client of the Agent Client Protocol.
    pub(super) needs_client: bool,
    /// Finding no test is a failure: somebody has renamed them.
    pub(super) needs_tests: bool,
}

impl Suite {
    /// Why it cannot be run, after the suites before it.
    pub(super) fn lacks<'a>(&self, build_failed: bool, found: &'a Found) -> Option<&'a str> {
        if self.needs_build && build_failed {
            return Some("the build failed");
        }
        let agents = found.agents.as_ref().err().filter(|_| self.needs_agents);
        let client = found.client.as_ref().err().filter(|_| self.needs_client);
        agents.or(client).map(String::as_str)
    }
}

/// Where things are that suites need, or why they are not there.
pub(super) struct Found {
    /// The folder of the real agent programs.
    pub(super) agents: Result<PathBuf, String>,
    /// The folder of the client of the Agent Client Protocol.
    pub(super) client: Result<PathBuf, String>,
}

impl Default for Found {
    fn default() -> Self {
        let nobody = || Err("not asked for".to_owned());
        Self { agents: nobody(), client: nobody() }
    }
}

/// What a suite does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Calls of cargo, all of which must succeed.
    Cargo { calls: Vec<Vec<String>>, runner: Option<Runner> },
    /// `xtask check`.
    Check,
    /// `xtask schema --check`.
    Schema,
    /// `xtask docs --check`.
    Docs,
    /// Whether `docs/backends.md` says what has passed on the real agents.
    Backends,
    /// cargo-deny, which may have to be installed first.
    Deny,
    /// The real agent programs, which may have to be installed.
    Agents,
    /// The client of the Agent Client Protocol, which may have to be installed.
    Client,
    /// The types of the SDK, with a compiler that may have to be installed first.
    Types,
    /// The benchmarks, only to see that they run.
    Bench,
}

/// Compiled in for tests only. A test that requires it would be left out without a word, so it is
/// switched on in every crate that has it.
const FAILPOINTS: &str = "failpoints";

/// Marks what belongs to the crash suite, in the name of a test or of its binary. (So no other
/// test has it in its name.)
const CRASH: &str = "crash";

/// Marks what starts a real agent program, in the name of a test or of a module around it. Such a
/// test is in no other suite, the crash suite included.
pub(super) const REAL: &str = "real_agent";

/// Marks what the client of the Agent Client Protocol drives, in the name of a test or of a module
/// around it. Such a test is in no other suite.
pub(super) const CLIENT: &str = "acp_client";

/// Selects the long tests of the real agents, by the name of a module around them: those of the oldest
/// supported version of a program, and those that wait for a minute or more.
const LONG: &str = "(test(::older::) | test(::long::))";

/// Each of them starts a process of hundreds of megabytes.
const REAL_AT_ONCE: &str = "--test-threads 3";

impl Tree {
    /// Reads what the plan needs from cargo's metadata.
    pub(super) fn of(metadata: &Metadata, nextest: bool) -> Self {
        let names = |p: &crate::metadata::Package| (p.name.clone(), p.short_name().to_owned());
        let mut packages: Vec<_> = metadata.packages.iter().map(names).collect();
        packages.sort();
        let targets = metadata.packages.iter().flat_map(|p| &p.targets);
        let mut test_binaries: Vec<_> = targets
            .filter(|target| target.kind.iter().any(|kind| kind == "test"))
            .map(|target| target.name.clone())
            .collect();
        test_binaries.sort();
        test_binaries.dedup();
        let features = metadata
            .packages
            .iter()
            .filter(|package| package.features.contains_key(FAILPOINTS))
            .map(|package| format!("{}/{FAILPOINTS}", package.name))
            .collect();
        // Tests often wait: for disks, for times that must pass, for each other's processes.
        let at_once = thread::available_parallelism().map_or(2, NonZero::get) + 1;
        Self { packages, test_binaries, features, nextest, at_once }
    }
}

/// All suites in order.
pub(super) fn plan(tree: &Tree, scope: Scope) -> Vec<Suite> {
    let quick = scope == Scope::Quick;
    let mut suites = vec![
        alone("fmt", one_call(words("fmt --all --check"))),
        alone("check", Job::Check),
        alone("schema", Job::Schema),
        alone("docs", Job::Docs),
    ];
    if !quick {
        suites.push(alone("deny", Job::Deny));
        suites.push(alone("agents", Job::Agents));
        suites.push(alone("client", Job::Client));
        suites.push(alone("types", Job::Types));
        let clippy = words("clippy --workspace --all-targets");
        suites.push(alone(
            "clippy",
            one_call([clippy, features(tree), words("-- -D warnings")].concat()),
        ));
    }
    suites.push(build(tree));
    suites.extend(if tree.nextest { nextest(tree, scope) } else { cargo_test(tree, scope) });
    suites.push(documentation(tree));
    suites.push(after_build("bench smoke", Job::Bench));
    suites
}

/// Building apart from running tells a broken build from a failing test.
fn build(tree: &Tree) -> Suite {
    let call = if tree.nextest {
        [words("nextest run --workspace --no-run"), features(tree)].concat()
    } else {
        [words("test --workspace --no-run"), features(tree)].concat()
    };
    Suite { is_build: true, ..alone("build", one_call(call)) }
}

/// One row per crate. The whole workspace is named each time and the crate chosen by a filter:
/// naming one package would build it again with fewer features.
fn nextest(tree: &Tree, scope: Scope) -> Vec<Suite> {
    // Naming a binary that does not exist is an error.
    let has_binary = tree.test_binaries.iter().any(|name| name.contains(CRASH));
    let crash = if has_binary {
        format!("binary(~{CRASH}) | test({CRASH})")
    } else {
        format!("test({CRASH})")
    };
    let call = |options: &str, filter: String| nextest_call(tree, options, &filter);
    let at_once = format!("--test-threads {}", tree.at_once);
    let one = |filter: String| tests(Runner::Nextest, vec![call(&at_once, filter)]);
    let mut suites = Vec::new();
    for (package, short) in &tree.packages {
        let filter = format!("package(={package}) - ({crash} | test({REAL}) | test({CLIENT}))");
        suites.push(after_build(&format!("tests {short}"), one(filter)));
    }
    if scope != Scope::Quick {
        let crash = one(format!("({crash}) - test({REAL})"));
        suites.push(Suite { needs_tests: true, ..after_build(CRASH, crash) });
        suites.push(acp_client(one(format!("test({CLIENT})"))));
        let calls = match scope {
            Scope::Sampled(sample) => vec![
                call(REAL_AT_ONCE, format!("test({REAL}) - {LONG}")),
                call(
                    &format!("{REAL_AT_ONCE} {}", sample.partition()),
                    format!("test({REAL}) & {LONG}"),
                ),
            ],
            Scope::Quick | Scope::Full => vec![call(REAL_AT_ONCE, format!("test({REAL})"))],
        };
        suites.push(real_agents(tests(Runner::Nextest, calls)));
        suites.push(backends());
    }
    suites
}

/// Arguments for cargo that run the tests a filter selects.
pub(super) fn nextest_call(tree: &Tree, options: &str, filter: &str) -> Vec<String> {
    let fixed = words("nextest run --workspace --no-fail-fast --no-tests=pass");
    let filter = vec!["-E".to_owned(), filter.to_owned()];
    [fixed, features(tree), words(options), filter].concat()
}

/// Without nextest there is one row for all crates. cargo itself cannot select a tenth, so every
/// test of the real agents is run.
fn cargo_test(tree: &Tree, scope: Scope) -> Vec<Suite> {
    let (crash, other): (Vec<_>, Vec<_>) =
        tree.test_binaries.iter().partition(|name| name.contains(CRASH));
    let call = |targets: Vec<String>, filter: &str| {
        let fixed = words("test --workspace --no-fail-fast");
        [fixed, features(tree), targets, words(filter)].concat()
    };
    let choose = |names: &[&String]| -> Vec<String> {
        names.iter().flat_map(|name| ["--test".to_owned(), (*name).clone()]).collect()
    };
    let others = format!("-- --skip {CRASH} --skip {REAL} --skip {CLIENT}");
    let ordinary = [words("--lib --bins"), choose(&other)].concat();
    let job = tests(Runner::CargoTest, vec![call(ordinary.clone(), &others)]);
    let mut suites = vec![after_build("tests", job)];
    if scope != Scope::Quick {
        let mut calls = vec![call(ordinary.clone(), &format!("-- {CRASH} --skip {REAL}"))];
        if !crash.is_empty() {
            calls.push(call(choose(&crash), &format!("-- --skip {REAL}")));
        }
        let job = tests(Runner::CargoTest, calls);
        suites.push(Suite { needs_tests: true, ..after_build(CRASH, job) });
        let driven = call(ordinary.clone(), &format!("-- {CLIENT}"));
        suites.push(acp_client(tests(Runner::CargoTest, vec![driven])));
        let all = [ordinary, choose(&crash)].concat();
        let call = call(all, &format!("-- {REAL} {REAL_AT_ONCE}"));
        suites.push(real_agents(tests(Runner::CargoTest, vec![call])));
        suites.push(backends());
    }
    suites
}

fn acp_client(job: Job) -> Suite {
    Suite { needs_client: true, needs_tests: true, ..after_build("acp client", job) }
}

fn real_agents(job: Job) -> Suite {
    Suite { needs_agents: true, needs_tests: true, ..after_build("real agents", job) }
}

/// What the suite before it has proved.
fn backends() -> Suite {
    Suite { needs_agents: true, ..after_build("backends", Job::Backends) }
}

/// The examples in the documentation, of which some must not compile; nextest does not run them.
fn documentation(tree: &Tree) -> Suite {
    let call = [words("test --workspace --doc --no-fail-fast"), features(tree)].concat();
    let job = tests(Runner::CargoTest, vec![call]);
    Suite { needs_tests: true, ..after_build("documentation", job) }
}

fn alone(name: &str, job: Job) -> Suite {
    let name = name.to_owned();
    let [is_build, needs_build, needs_agents, needs_client, needs_tests] = [false; 5];
    Suite { name, job, is_build, needs_build, needs_agents, needs_client, needs_tests }
}

fn after_build(name: &str, job: Job) -> Suite {
    Suite { needs_build: true, ..alone(name, job) }
}

fn one_call(call: Vec<String>) -> Job {
    Job::Cargo { calls: vec![call], runner: None }
}

fn tests(runner: Runner, calls: Vec<Vec<String>>) -> Job {
    Job::Cargo { calls, runner: Some(runner) }
}

pub(super) fn features(tree: &Tree) -> Vec<String> {
    tree.features.iter().flat_map(|feature| ["--features".to_owned(), feature.clone()]).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::{Found, Job, Scope, Suite, Tree, plan};

    fn tree(nextest: bool) -> Tree {
        Tree {
            packages: vec![
                ("atomic-graph".into(), "graph".into()),
                ("xtask".into(), "xtask".into()),
            ],
            test_binaries: vec!["crash".into(), "demo".into()],
            features: vec!["atomic-cli/failpoints".into()],
            nextest,
            at_once: 9,
        }
    }

    const SAMPLED: Scope = Scope::Sampled(Sample { seed: 12 });

    fn names(suites: &[Suite]) -> Vec<&str> {
        suites.iter().map(|suite| suite.name.as_str()).collect()
    }

    fn calls(suites: &[Suite], name: &str) -> Vec<String> {
        let suite = suites.iter().find(|suite| suite.name == name).unwrap();
        let Job::Cargo { calls, .. } = &suite.job else { panic!("{name} does not call cargo") };
        calls.iter().map(|call| call.join(" ")).collect()
    }

    #[test]
    fn the_slow_suites_come_last_and_quick_leaves_them_out() {
        assert_eq!(
            names(&plan(&tree(true), SAMPLED)),
            [
                "fmt",
                "check",
                "schema",
                "docs",
                "deny",
                "agents",
                "client",
                "types",
                "clippy",
                "build",
                "tests graph",
                "tests xtask",
                "crash",
                "acp client",
                "real agents",
                "backends",
                "documentation",
                "bench smoke"
            ]
        );
        assert_eq!(
            names(&plan(&tree(true), Scope::Quick)),
            [
                "fmt",
                "check",
                "schema",
                "docs",
                "build",
                "tests graph",
                "tests xtask",
                "documentation",
                "bench smoke"
            ]
        );
    }

    #[test]
    fn every_test_is_in_exactly_one_suite() {
        let with = plan(&tree(true), SAMPLED);
        let suites = ["tests graph", "crash", "acp client", "real agents"];
        assert_eq!(
            suites.map(|name| calls(&with, name)).concat(),
            [
                "nextest run --workspace --no-fail-fast --no-tests=pass \
                 --features atomic-cli/failpoints --test-threads 9 \
                 -E package(=atomic-graph) - (binary(~crash) | test(crash) | test(real_agent) \
                 | test(acp_client))",
                "nextest run --workspace --no-fail-fast --no-tests=pass \
                 --features atomic-cli/failpoints --test-threads 9 \
                 -E (binary(~crash) | test(crash)) - test(real_agent)",
                "nextest run --workspace --no-fail-fast --no-tests=pass \
                 --features atomic-cli/failpoints --test-threads 9 -E test(acp_client)",
                "nextest run --workspace --no-fail-fast --no-tests=pass \
                 --features atomic-cli/failpoints --test-threads 3 \
                 -E test(real_agent) - (test(::older::) | test(::long::))",
                "nextest run --workspace --no-fail-fast --no-tests=pass \
                 --features atomic-cli/failpoints --test-threads 3 --partition hash:3/10 \
                 -E test(real_agent) & (test(::older::) | test(::long::))",
            ]
        );
        assert_eq!(
            calls(&plan(&tree(true), Scope::Full), "real agents"),
            ["nextest run --workspace --no-fail-fast --no-tests=pass \
              --features atomic-cli/failpoints --test-threads 3 -E test(real_agent)"]
        );
        let no_binary = Tree { test_binaries: vec!["demo".into()], ..tree(true) };
        assert_eq!(
            calls(&plan(&no_binary, SAMPLED), "crash"),
            ["nextest run --workspace --no-fail-fast --no-tests=pass \
              --features atomic-cli/failpoints --test-threads 9 \
              -E (test(crash)) - test(real_agent)"]
        );
        assert_eq!(
            calls(&with, "documentation"),
            ["test --workspace --doc --no-fail-fast --features atomic-cli/failpoints"]
        );
        let without = plan(&tree(false), SAMPLED);
        let fixed = "test --workspace --no-fail-fast --features atomic-cli/failpoints";
        let suites = ["tests", "crash", "acp client", "real agents"];
        assert_eq!(
            suites.map(|name| calls(&without, name)).concat(),
            [
                format!(
                    "{fixed} --lib --bins --test demo \
                     -- --skip crash --skip real_agent --skip acp_client"
                ),
                format!("{fixed} --lib --bins --test demo -- crash --skip real_agent"),
                format!("{fixed} --test crash -- --skip real_agent"),
                format!("{fixed} --lib --bins --test demo -- acp_client"),
                format!(
                    "{fixed} --lib --bins --test demo --test crash \
                     -- real_agent --test-threads 3"
                ),
            ]
        );
    }

    #[test]
    fn only_what_needs_a_tool_or_follows_from_it_lacks_it_and_says_why() {
        let nothing = || Err("npm is not installed".to_owned());
        let none = Found { agents: nothing(), client: nothing() };
        let all = Found { agents: Ok("/agents".into()), client: Ok("/client".into()) };
        for suite in plan(&tree(true), SAMPLED).iter().chain(&plan(&tree(false), SAMPLED)) {
            let is_theirs =
                ["acp client", "real agents", "backends"].contains(&suite.name.as_str());
            let expected = is_theirs.then_some("npm is not installed");
            assert_eq!(suite.lacks(false, &none), expected, "{}", suite.name);
            assert_eq!(suite.lacks(false, &all), None, "{}", suite.name);
            let expected = suite.needs_build.then_some("the build failed").or(expected);
            assert_eq!(suite.lacks(true, &none), expected, "{}", suite.name);
        }
    }
}
