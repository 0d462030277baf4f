//! The project's own chores: `cargo xtask check | test | agents | client | types | record |
//! backends | bench | schema | docs`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for people prints")]

mod backends;
mod bench;
mod check;
mod docs;
mod metadata;
mod record;
mod schema;
mod test;

use std::path::Path;
use std::process::ExitCode;

use metadata::Metadata;
use test::Extent;

const USAGE: &str = "\
usage: cargo xtask <command>

  check [--manifest <Cargo.toml>]  boundaries between crates, sizes, names, lints
  test [--quick | --full]          everything, with a table at the end. Of the crash scenes and of
                                   the tests of older agent programs only a tenth is played, chosen
                                   by the commit or by ATOMIC_TEST_SAMPLE=<number>; --full plays
                                   all of them, --quick leaves out clippy, deny, the crash tests
                                   and those of real agents
  test --against <binary> [name]…  the process tests whose names contain one of these words, on
                                   another build of atomic; lists which fail and which pass there
  agents                           install the pinned agent programs where they are missing,
                                   and print their folder, for ATOMIC_AGENTS
  client                           install the pinned client of the Agent Client Protocol where it
                                   is missing, and print its folder, for ATOMIC_ACP_CLIENT
  types                            check the types of the SDK with the pinned compiler, which is
                                   installed where it is missing
  record <program>                 record what the pinned versions of an agent program say
  backends                         write docs/backends.md from what has passed in the last run
                                   of `test` on the real agents
  bench [--smoke] [flags]          the benchmarks; --smoke only shows that they run
  schema [--check]                 write docs/schema/journal.schema.json, or compare it
  docs [--check]                   write docs/settings.md, or compare it";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["test"] => return exit(test::run(Extent::Usual)),
        ["test", "--quick"] => return exit(test::run(Extent::Quick)),
        ["test", "--full"] => return exit(test::run(Extent::Full)),
        ["test", "--against", binary, names @ ..] if !binary.starts_with('-') => {
            Metadata::read(None).and_then(|tree| test::run_against(&tree, Path::new(binary), names))
        }
        ["agents"] => test::print_agents(),
        ["client"] => test::print_client(),
        ["types"] => Metadata::read(None).and_then(|tree| test::check_types(&tree)),
        ["record", program] => Metadata::read(None).and_then(|tree| record::run(&tree, program)),
        ["check"] => run_check(None),
        ["check", "--manifest", manifest] => run_check(Some(Path::new(manifest))),
        ["backends"] => Metadata::read(None).and_then(|tree| backends::write(&tree)),
        ["bench", flags @ ..] => Metadata::read(None).and_then(|tree| bench::run(&tree, flags)),
        ["schema"] => Metadata::read(None).and_then(|tree| schema::write(&tree.workspace_root)),
        ["schema", "--check"] => {
            Metadata::read(None).and_then(|tree| schema::compare(&tree.workspace_root))
        }
        ["docs"] => Metadata::read(None).and_then(|tree| docs::write(&tree.workspace_root)),
        ["docs", "--check"] => {
            Metadata::read(None).and_then(|tree| docs::compare(&tree.workspace_root))
        }
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    exit(outcome.map(|()| ExitCode::SUCCESS))
}

fn exit(outcome: Result<ExitCode, String>) -> ExitCode {
    outcome.unwrap_or_else(|problem| {
        eprintln!("{problem}");
        ExitCode::FAILURE
    })
}

fn run_check(manifest: Option<&Path>) -> Result<(), String> {
    let said = check::run(&Metadata::read(manifest)?)?;
    println!("{said}");
    Ok(())
}
