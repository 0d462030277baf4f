//! Changes that readings of small projects notice.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::Reading;

fn write(folder: &Path, name: &str, text: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The definitions that differ between two readings of the folder `work`, between which a change is
/// made. Names of files are from the folder above.
fn noticed(command: &str, files: &[(&str, &str)], change: &dyn Fn(&Path)) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    let above = home.path().join("repo");
    let work = above.join("work");
    fs::create_dir_all(above.join(".git")).unwrap();
    write(&above, ".git/HEAD", b"ref: refs/heads/main\n");
    fs::create_dir_all(&work).unwrap();
    for (name, text) in files {
        write(&above, name, text.as_bytes());
    }
    let command = command.replace("{work}", &work.display().to_string());
    let read = || Reading::of(&work, std::slice::from_ref(&command), &[]).unwrap();
    let before = read();
    change(&above);
    let read = read().since(Some(&before));
    read.map(|read| read.definitions.into_keys().collect()).unwrap_or_default()
}

/// A command, the files of a repository, the file that is changed, and whether that is noticed.
type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str, bool);

const MAKE: &str = "A := sh ci/a.sh\ntest: unit\n\tgcc -o app main.c \\\n\t  && ./app -c ci/set.ini\nunit:\n\t$(A)\ndeploy:\n\tsh deploy.sh\n";

/// Sources are prerequisites, values of variables, and arguments of compilers.
const HONEST: &str = "SRCS = calc.c t.c\n-include *.d\ntest: check t\ncheck: app.py test_app.py\n\t@python3 -m unittest -q\nt: calc.c\n\t$(CC) $(SRCS) -o t\n\t$(CC) -c calc.c\n\tcc -c $<\n\tcp --force app.py copy.py\n\trm -f r.md\n\tnode -c s.js\n";

/// Scripts behind variables.
const FORMS: &str = "S = ci/a\nD := ci\nTWO = true && sh ci/c\ntest: ci/d\n\tsh $(S)\n\tsh $(D)/b\n\t@$(TWO)\n\tsh $<\n";

const CASES: &[Case] = &[
    ("sh runtests", &[("work/runtests", "a")], "work/runtests", true),
    ("sh ../ci/x", &[("ci/x", "a")], "ci/x", true),
    ("cd ci && sh x", &[("work/ci/x", "a")], "work/ci/x", true),
    ("cd $(pwd)/ci; sh x", &[("work/ci/x", "a")], "work/ci/x", true),
    ("sh \"$PWD\"/ci/x", &[("work/ci/x", "a")], "work/ci/x", true),
    ("${ROOT}/ci/x", &[("work/ci/x", "a")], "work/ci/x", true),
    ("sh {work}/x", &[("work/x", "a")], "work/x", true),
    ("sh 'a b'", &[("work/a b", "a")], "work/a b", true),
    ("for f in ci/*.sh; do sh $f; done", &[("work/ci/x.sh", "a")], "work/ci/x.sh", true),
    ("pytest --rootdir=x -cci/p.ini", &[("work/ci/p.ini", "a")], "work/ci/p.ini", true),
    ("pytest t/a.py::test_b", &[("work/t/a.py", "a")], "work/t/a.py", true),
    ("sh a.sh", &[("work/a.sh", "sh ci/b\n"), ("work/ci/b", "a")], "work/ci/b", true),
    ("sh a.sh", &[("work/a.sh", "cc main.c\n"), ("work/main.c", "a")], "work/main.c", false),
    ("./app", &[("work/app", "\u{0}a")], "work/app", false),
    ("make test", &[("work/Makefile", MAKE), ("work/ci/a.sh", "a")], "work/ci/a.sh", true),
    ("make test", &[("work/Makefile", MAKE), ("work/ci/set.ini", "a")], "work/ci/set.ini", true),
    ("make test", &[("work/Makefile", MAKE), ("work/main.c", "a")], "work/main.c", false),
    ("make test", &[("work/Makefile", MAKE), ("work/deploy.sh", "a")], "work/deploy.sh", false),
    ("make deploy", &[("work/Makefile", MAKE), ("work/deploy.sh", "a")], "work/deploy.sh", true),
    ("make -C .. test", &[("Makefile", "test:\n\ttrue\n")], "Makefile", true),
    ("make -C .. test", &[("Makefile", "test:\n\t./x\n"), ("x", "a")], "x", true),
    (
        "make test",
        &[("work/Makefile", "include ci/r\n"), ("work/ci/r", "test:\n\t./x\n"), ("work/x", "a")],
        "work/x",
        true,
    ),
    (
        "make test",
        &[
            ("work/Makefile", "test:\n\t$(MAKE) -C sub unit\n"),
            ("work/sub/Makefile", "unit:\n\tsh x\n"),
            ("work/sub/x", "a"),
        ],
        "work/sub/x",
        true,
    ),
    ("make test", &[("work/Makefile", HONEST), ("work/app.py", "a")], "work/app.py", false),
    ("make test", &[("work/Makefile", HONEST), ("work/calc.c", "a")], "work/calc.c", false),
    ("make test", &[("work/Makefile", HONEST), ("work/copy.py", "a")], "work/copy.py", false),
    ("make test", &[("work/Makefile", HONEST), ("work/r.md", "a")], "work/r.md", false),
    ("make test", &[("work/Makefile", HONEST), ("work/s.js", "a")], "work/s.js", false),
    ("make test", &[("work/Makefile", HONEST), ("work/t.d", "a")], "work/t.d", false),
    ("make test", &[("work/Makefile", FORMS), ("work/ci/a", "a")], "work/ci/a", true),
    ("make test", &[("work/Makefile", FORMS), ("work/ci/b", "a")], "work/ci/b", true),
    ("make test", &[("work/Makefile", FORMS), ("work/ci/c", "a")], "work/ci/c", true),
    ("make test", &[("work/Makefile", FORMS), ("work/ci/d", "a")], "work/ci/d", true),
    ("node --test test/*.test.js", &[("work/test/a.test.js", "a")], "work/test/a.test.js", false),
    ("deno test a.test.ts", &[("work/a.test.ts", "a")], "work/a.test.ts", false),
    ("node test/run.js", &[("work/test/run.js", "a")], "work/test/run.js", true),
    (
        "npm test",
        &[
            (
                "work/package.json",
                r#"{"scripts":{"test":"node --import ./s.mjs --test a.test.js"}}"#,
            ),
            ("work/a.test.js", "a"),
        ],
        "work/a.test.js",
        false,
    ),
    (
        "npm test",
        &[
            (
                "work/package.json",
                r#"{"scripts":{"test":"node --import ./s.mjs --test a.test.js"}}"#,
            ),
            ("work/s.mjs", "a"),
        ],
        "work/s.mjs",
        true,
    ),
    ("pytest", &[("work/web/tasks.py", "a")], "work/web/tasks.py", false),
    ("pytest", &[("work/tasks.py", "a")], "work/tasks.py", false),
    ("inv test", &[("work/tasks.py", "a")], "work/tasks.py", true),
    ("python tasks.py", &[("work/tasks.py", "a")], "work/tasks.py", true),
    ("make", &[("work/Makefile", "all:\n\tsh x\n"), ("work/x", "a")], "work/x", true),
    ("just ci", &[("work/justfile", "ci: a\na:\n  sh x\n"), ("work/x", "a")], "work/x", true),
    (
        "npm test",
        &[
            ("work/package.json", r#"{"scripts":{"test":"npm run u","u":"node a.js"}}"#),
            ("work/a.js", "a"),
        ],
        "work/a.js",
        true,
    ),
    ("npm test", &[("package.json", r#"{"scripts":{"test":"a"}}"#)], "package.json", true),
    ("true", &[(".github/workflows/ci.yml", "a")], ".github/workflows/ci.yml", true),
    ("true", &[("side/Makefile", "a")], "side/Makefile", false),
    ("true", &[("work/pyvenv.cfg", ""), ("work/Makefile", "a")], "work/Makefile", true),
    ("true", &[("work/v/pyvenv.cfg", ""), ("work/v/Makefile", "a")], "work/v/Makefile", false),
    ("true", &[("work/src/build/Makefile", "a")], "work/src/build/Makefile", true),
    ("true", &[("work/build/Makefile", "a")], "work/build/Makefile", false),
    (
        "true",
        &[("work/web/package.json", "{}"), ("work/web/dist/Makefile", "a")],
        "work/web/dist/Makefile",
        false,
    ),
];

#[test]
fn files_that_commands_lead_to_are_found() {
    for (command, files, changed, expected) in CASES {
        let change = |above: &Path| {
            let text = fs::read_to_string(above.join(changed)).unwrap();
            let other =
                if text.contains("test") { text.replace("test", "tests") } else { "b".to_owned() };
            let is_binary = text.starts_with('\u{0}');
            fs::write(above.join(changed), if is_binary { format!("{text}b") } else { other })
                .unwrap();
        };
        let found = noticed(command, files, &change);
        let short = changed.strip_prefix("work/").map_or(format!("../{changed}"), str::to_owned);
        assert_eq!(found.contains(&short), *expected, "{command}: {changed}: {found:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_not_called_removed() {
    let large = |above: &Path| write(above, "work/tests/a.rs", &vec![b'x'; 2 << 20]);
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "work/tests/a.rs", b"#[test]\nfn a() {}\n");
    let read = || Reading::of(&home.path().join("work"), &[], &[]).unwrap();
    let before = read();
    large(home.path());
    assert_eq!(read().since(Some(&before)), None);
    // A definition that became too large is another one.
    let grows = |above: &Path| write(above, "work/Makefile", &vec![b'#'; 2 << 20]);
    let found = noticed("true", &[("work/Makefile", "a")], &grows);
    assert_eq!(found, ["Makefile"]);
}

#[test]
fn what_checks_write_is_told_from_what_they_read() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path();
    for (name, text) in [("old.log", "a"), ("same.log", "a"), ("check.sh", "a")] {
        write(folder, name, text.as_bytes());
    }
    let commands = ["sh check.sh --log=old.log > same.log 2> new.log".to_owned()];
    let read = || Reading::of(folder, &commands, &[]).unwrap();
    let ran = |is_baseline: bool| {
        let before = read();
        for name in ["old.log", "same.log", "new.log"] {
            // A new file, whose time of change cannot be the one of the file before.
            let _ = fs::remove_file(folder.join(name));
            write(folder, "staged", if name == "old.log" { b"b" } else { b"a" });
            fs::rename(folder.join("staged"), folder.join(name)).unwrap();
        }
        let mut after = read();
        after.find_written(&before.states(), is_baseline);
        (before, after)
    };
    let (before, after) = ran(false);
    assert_eq!(after.written, BTreeSet::from(["new.log".to_owned()]));
    let read_again = after.since(Some(&before)).unwrap();
    assert_eq!(read_again.definitions.into_keys().collect::<Vec<_>>(), ["old.log"]);
    let (mut before, after) = ran(true);
    let fact = after.since(Some(&before)).unwrap();
    assert!(fact.written.contains("same.log") && !fact.written.contains("check.sh"), "{fact:?}");
    assert!(fact.definitions.is_empty(), "{fact:?}");
    before.apply(&fact);
    write(folder, "old.log", b"by a worker");
    assert_eq!(read().since(Some(&before)), None);
}

#[test]
fn results_of_checks_are_removed_and_built_anew() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path();
    for name in ["dist/t.js", "ci/t.js", "report.md"] {
        write(folder, name, b"a");
    }
    let commands = ["node dist/t.js && node ci/t.js && cat report.md".to_owned()];
    let read = || Reading::of(folder, &commands, &[]).unwrap();
    let before = read();
    write(folder, "dist/t.js", b"other");
    write(folder, "ci/t.js", b"other");
    let mut after = read();
    after.find_written(&before.states(), false);
    assert_eq!(after.written, BTreeSet::from(["dist/t.js".to_owned()]));
    fs::remove_file(folder.join("report.md")).unwrap();
    let mut after = read();
    after.find_written(&before.states(), true);
    assert!(after.written.contains("report.md"), "{:?}", after.written);
}
