//! Which files hold tests, and how many.

use std::path::Path;

use atomic_event::TestFile;

/// Endings of files in which tests are written.
const SOURCES: &[&str] = &[
    "rs", "py", "js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte", "go",
    "java", "kt", "kts", "groovy", "rb", "php", "cs", "fs", "vb", "c", "cc", "cxx", "cpp", "h",
    "hpp", "m", "mm", "swift", "dart", "ex", "exs", "erl", "scala", "clj", "cljs", "hs", "ml",
    "lua", "jl", "r", "R", "zig", "nim", "cr", "sol", "pl", "t", "sh", "bash", "bats", "ps1",
    "feature", "robot",
];

/// Endings of JavaScript and TypeScript, and of languages whose tests are named like these.
const SCRIPTS: &[&str] =
    &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte", "dart"];

/// Endings of languages whose comments begin with `#`.
const HASHES: &[&str] =
    &["py", "rb", "sh", "bash", "bats", "ex", "exs", "r", "R", "jl", "nim", "cr", "pl", "t", "ps1"];

/// Folders in which every source file is a test.
const FOLDERS: [&str; 6] = ["tests", "test", "__tests__", "spec", "specs", "e2e"];

/// How the first line of a test begins.
const TESTS: &[&str] = &[
    "#[test]",
    "#[tokio::test",
    "#[rstest",
    "#[test_case",
    "#[wasm_bindgen_test",
    "def test_",
    "async def test_",
    "it(",
    "it.each",
    "test(",
    "test.each",
    "testWidgets(",
    "it.skip(",
    "test.skip(",
    "it.todo(",
    "test.todo(",
    "xit(",
    "xtest(",
    "Deno.test(",
    "func Test",
    "func Fuzz",
    "func test",
    "@Test",
    "@ParameterizedTest",
    "@test ",
    "[Fact]",
    "[Theory]",
    "[Test]",
    "[TestMethod]",
    "public function test",
    "TEST(",
    "TEST_F(",
    "TEST_P(",
    "TEST_CASE(",
    "test \"",
    "it \"",
    "it '",
];

/// Marks of something that is skipped, anywhere in a line.
const SKIPS: &[&str] = &[
    "#[ignore",
    "cfg(any())",
    "cfg(not(all()))",
    "cfg(false)",
    "cfg(FALSE)",
    "@pytest.mark.skip",
    "@pytest.mark.xfail",
    "= pytest.mark.skip",
    "[pytest.mark.skip",
    "@unittest.skip",
    "@unittest.expectedFailure",
    "@skip",
    "pytest.skip(",
    "pytest.importorskip(",
    "self.skipTest(",
    "unittest.SkipTest",
    "t.Skip(",
    "t.Skipf(",
    "t.SkipNow(",
    "b.Skip(",
    "testing.Short()",
    "@Disabled",
    "@Ignore",
    "@tag :skip",
    "@moduletag :skip",
    "(Skip =",
    "Assume.assume",
    "assumeTrue(",
    "markTestSkipped",
    "markTestIncomplete",
    "GTEST_SKIP(",
    "DISABLED_",
    "XCTSkip",
    "xit ",
    "xdescribe ",
    "xcontext ",
];

/// The same in C and C++.
const C_SKIPS: &[&str] = &["[!hide]", "[.]"];

/// Endings of C and C++.
const C: &[&str] = &["c", "cc", "cxx", "cpp", "h", "hpp", "m", "mm"];

/// The same in C# and its relatives.
const DOTNET_SKIPS: &[&str] = &["[Ignore"];

/// The same in JavaScript and TypeScript.
const SCRIPT_SKIPS: &[&str] = &[
    "xit(",
    "xtest(",
    "xdescribe(",
    "fit(",
    "fdescribe(",
    "ftest(",
    "this.skip()",
    "skip: true",
    "skip: \"",
    "skip: '",
    "skip: `",
];

/// Methods of tests in JavaScript and TypeScript: `.only` skips every other test. Queries and
/// iterators have a `skip` as well.
const METHOD_SKIPS: &[&str] =
    &[".skip(", ".skip.each", ".skipIf(", ".runIf(", ".todo(", ".fixme(", ".only(", ".only.each"];

/// Objects that have these methods.
const TESTERS: &[&str] =
    &["it", "test", "describe", "context", "suite", "specify", "bench", "t", "ctx"];

/// How a line begins that skips what stands around it.
const SKIP_LINES: &[&str] =
    &["skip \"", "skip '", "pending \"", "pending '", "//go:build", "// +build", "#![cfg("];

/// Whether a file can hold tests, by its name.
pub(super) fn may_hold_tests(place: &Path) -> bool {
    is_test_file(place) || has_ending(place, &["rs"])
}

/// Whether a file is there for its tests only.
fn is_test_file(place: &Path) -> bool {
    (is_named(place) || is_inside(place)) && has_ending(place, SOURCES)
}

/// Whether the name of a file says that it has tests.
fn is_named(place: &Path) -> bool {
    let Some(name) = place.file_stem().and_then(|stem| stem.to_str()) else { return false };
    name.starts_with("test_")
        || ["_test", "_tests", "_spec", ".test", ".spec", "-test", "-spec", "Test", "Tests"]
            .iter()
            .any(|end| name.ends_with(end))
        || matches!(name, "test" | "tests")
}

fn is_inside(place: &Path) -> bool {
    let folders = place.parent().into_iter().flat_map(Path::components);
    let mut folders = folders.filter_map(|part| part.as_os_str().to_str());
    folders.any(|folder| FOLDERS.contains(&folder))
}

/// Whether test runners find the tests of a file under another name, too: runners that go by the
/// names of files do not collect `tests/test_a.py` as `tests/a.py`.
pub(super) fn is_collected_as(was: &Path, now: &Path) -> bool {
    was.extension() == now.extension()
        && (is_named(now) || !is_named(was))
        && (is_inside(now) || !is_inside(was) || is_named(was))
}

fn has_ending(place: &Path, endings: &[&str]) -> bool {
    place.extension().and_then(|end| end.to_str()).is_some_and(|end| endings.contains(&end))
}

/// The tests of a file; nothing for one without tests. The hash is left empty.
pub(super) fn measured(place: &Path, text: &str) -> Option<TestFile> {
    if !may_hold_tests(place) {
        return None;
    }
    let skips = Skips::of(place);
    let mut conditions = Conditions::default();
    let (mut count, mut tests, mut skipped) = (0, 0, 0);
    let mut comment = Comment::of(place);
    let mut before = "";
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // A build constraint is a comment.
        skipped += u64::from(SKIP_LINES.iter().any(|start| line.starts_with(start)));
        conditions.take(line);
        let Some(code) = comment.code(line) else { continue };
        count += 1;
        let is_test = TESTS.iter().any(|start| code.starts_with(start));
        tests += u64::from(is_test);
        skipped += u64::from(is_test && conditions.hold_test());
        // A module of tests that is taken out of its file takes its tests along.
        let is_module = code.starts_with("mod ") || code.contains(" mod ");
        tests +=
            u64::from(is_module && (before.contains("cfg(test)") || code.contains("cfg(test)")));
        skipped += u64::from(skips.are_in(code));
        before = code;
    }
    // The code beside the tests of a source file may become shorter.
    let lines = if is_test_file(place) { count } else { 0 };
    let file = TestFile { hash: String::new(), lines, tests, skipped };
    (is_test_file(place) || tests > 0).then_some(file)
}

/// The marks of one language.
struct Skips {
    marks: &'static [&'static str],
    is_script: bool,
}

impl Skips {
    fn of(place: &Path) -> Self {
        let is_script = has_ending(place, SCRIPTS);
        let marks = match () {
            () if is_script => SCRIPT_SKIPS,
            () if has_ending(place, C) => C_SKIPS,
            () if has_ending(place, &["cs", "fs", "vb"]) => DOTNET_SKIPS,
            () => &[],
        };
        Self { marks, is_script }
    }

    fn are_in(&self, code: &str) -> bool {
        let is_conditional = code.contains("cfg_attr(") && code.contains("ignore");
        is_conditional
            || SKIPS.iter().any(|mark| has_mark(code, mark))
            || self.marks.iter().any(|mark| has_mark(code, mark))
            || (self.is_script && METHOD_SKIPS.iter().any(|method| has_method(code, method)))
    }
}

/// The conditions of a C preprocessor around a line: whether a test was found in each.
#[derive(Default)]
struct Conditions(Vec<bool>);

impl Conditions {
    fn take(&mut self, line: &str) {
        if line.starts_with("#endif") {
            self.0.pop();
        } else if line.starts_with("#if") {
            // `#if` is often about a platform.
            self.0.push(!line.starts_with("#ifdef") && !line.starts_with("#ifndef"));
        }
    }

    /// Whether the first test stands in one of the conditions.
    fn hold_test(&mut self) -> bool {
        let is_first = self.0.contains(&false);
        self.0.fill(true);
        is_first
    }
}

/// Whether a line calls a method of a test, as in `test.describe.only(`.
fn has_method(line: &str, method: &str) -> bool {
    line.match_indices(method).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        let chain = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').next();
        chain.is_some_and(|chain| chain.split('.').any(|part| TESTERS.contains(&part)))
    })
}

/// Whether a line has a mark that is not the end of a longer word, nor in quotes.
fn has_mark(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let is_word = mark.starts_with(|c: char| c.is_alphanumeric());
        // `model.fit(` is a method.
        let is_call = SCRIPT_SKIPS.contains(&mark) && mark.ends_with('(');
        !before.is_some_and(|c| {
            "\"'`".contains(c)
                || (is_word && (c.is_alphanumeric() || c == '_'))
                || (is_call && c == '.')
        })
    })
}

/// Where the comments of a file are.
struct Comment {
    /// How comments of several lines begin and end.
    blocks: &'static [(&'static str, &'static str)],
    is_hash: bool,
    /// The end of the comment that is open.
    open: Option<&'static str>,
    /// The end of the text that is open. Its lines are code.
    text: Option<&'static str>,
}

/// A text that stands alone is a comment in Python.
const TEXTS: &[(&str, &str)] = &[("\"\"\"", "\"\"\""), ("\'\'\'", "\'\'\'")];

impl Comment {
    fn of(place: &Path) -> Self {
        let blocks = match place.extension().and_then(|end| end.to_str()) {
            Some("py") => TEXTS,
            Some("rb") => &[("=begin", "=end")],
            Some(end) if HASHES.contains(&end) => &[],
            _ => &[("/*", "*/"), ("#if 0", "#endif")],
        };
        Self { blocks, is_hash: has_ending(place, HASHES), open: None, text: None }
    }

    /// The code in a line, if there is some.
    fn code<'l>(&mut self, line: &'l str) -> Option<&'l str> {
        if let Some(end) = self.text {
            self.text = Some(end).filter(|_| !line.contains(end));
            return Some(line);
        }
        let mut rest = line;
        if let Some(end) = self.open {
            rest = rest.split_once(end)?.1.trim_start();
            self.open = None;
        }
        while let Some((start, end)) = self.blocks.iter().find(|(start, _)| rest.starts_with(start))
        {
            let inside = rest.get(start.len()..).unwrap_or_default();
            let Some((_, behind)) = inside.split_once(end) else {
                self.open = Some(end);
                return None;
            };
            rest = behind.trim_start();
        }
        if rest.is_empty() || rest.starts_with("//") || (self.is_hash && rest.starts_with('#')) {
            return None;
        }
        let is_open = |end: &&str| rest.matches(end).count() % 2 == 1;
        if self.blocks == TEXTS {
            self.text = TEXTS.iter().map(|(_, end)| *end).find(|end| is_open(end));
        } else if !self.is_hash && rest.ends_with("/*") {
            self.open = Some("*/");
        }
        Some(rest)
    }
}

/// What a change takes away from the tests of a file.
pub(super) fn lost(before: &TestFile, now: Option<&TestFile>) -> Option<&'static str> {
    match now {
        None => Some("removed"),
        Some(now) if now.skipped > before.skipped => Some("skipped"),
        Some(now) if now.tests < before.tests || now.lines < before.lines => Some("shortened"),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{is_collected_as, lost, measured};

    /// Files before and after a change, and what the change takes away.
    fn told_apart(table: &[(&str, &str, &str, Option<&str>)]) {
        for (name, before, now, expected) in table.iter().copied() {
            let measure = |text: &str| measured(Path::new(name), text);
            let before = measure(before).unwrap();
            assert_eq!(lost(&before, measure(now).as_ref()), expected, "{name}: {now}");
        }
    }

    #[test]
    fn tests_that_are_taken_away_are_told_apart() {
        let rust = "fn f() {}\n\n#[test]\nfn a() {}\n#[test]\nfn b() {}\n";
        let table = [
            ("src/lib.rs", rust, "#[test]\nfn a() {}\n#[test]\nfn b() {}\n", None),
            ("src/lib.rs", rust, "#[test]\nfn a() {}\n", Some("shortened")),
            ("src/lib.rs", rust, &rust.replace("fn a", "#[ignore]\nfn a"), Some("skipped")),
            ("src/lib.rs", rust, "fn f() {}\n", Some("removed")),
            ("tests/a.rs", rust, "#[test]\nfn a() {}\n#[test]\nfn b() {}\n", Some("shortened")),
            ("tests/a.rs", rust, &rust.replace("fn f() {}", "// fn f() {}"), Some("shortened")),
            ("tests/a.rs", rust, &format!("{rust}#[test]\nfn c() {{}}\n"), None),
            ("test_a.py", "def test_a():\n  x\n", "def test_a():\n  # x\n", Some("shortened")),
            (
                "test_a.py",
                "def test_a():\n  x\n",
                "@pytest.mark.skip\ndef test_a():\n  x\n",
                Some("skipped"),
            ),
            ("a.test.ts", "it('a', f)\n", "it.skip('a', f)\n", Some("skipped")),
            (
                "a_test.go",
                "func TestA(t *T) {\n}\n",
                "func TestA(t *T) {\nt.Skip()\n}\n",
                Some("skipped"),
            ),
        ];
        told_apart(&table);
        assert_eq!(measured(Path::new("src/main.rs"), "fn main() {}"), None);
        assert_eq!(measured(Path::new("README.md"), "it('a')"), None);
    }

    #[test]
    fn tests_that_are_not_run_any_more_are_told_apart() {
        let rust = "fn f() {}\n\n#[test]\nfn a() {}\n#[test]\nfn b() {}\n";
        let table: [(&str, &str, &str, Option<&str>); _] = [
            ("tests/a.rs", rust, &format!("/*\n{rust}*/\n"), Some("shortened")),
            ("tests/a.rs", rust, &format!("fn g() {{}} /*\n{rust}*/\n"), Some("shortened")),
            ("tests/a.rs", rust, &format!("/* why */\n{rust}// */\n"), None),
            ("tests/a.rs", rust, &format!("#![cfg(any())]\n{rust}"), Some("skipped")),
            ("src/lib.rs", rust, &rust.replace("#[test]", "#[test] #[ignore]"), Some("skipped")),
            (
                "src/lib.rs",
                "#[cfg(test)]\nmod tests {\n#[test]\nfn a() {}\n}\n",
                "#[cfg(any())]\nmod tests {\n#[test]\nfn a() {}\n}\n",
                Some("skipped"),
            ),
            (
                "src/lib.rs",
                "#[cfg(test)]\nmod tests {\n#[test]\nfn a() {}\n}\n",
                "#[cfg(feature = \"never\")]\nmod tests {\n#[test]\nfn a() {}\n}\n",
                Some("shortened"),
            ),
            ("src/lib.rs", "#[cfg(test)]\nmod tests;\n", "fn a() {}\n", Some("removed")),
            ("tests/a.rs", "fn a() {}\n", "fn a() { b.iter().skip(1) }\n", None),
            (
                "test_a.py",
                "def test_a():\n  x\n",
                "\"\"\"\ndef test_a():\n  x\n\"\"\"\n",
                Some("shortened"),
            ),
            ("test_a.py", "def test_a():\n  x\n", "\"\"\"Why.\"\"\"\ndef test_a():\n  x\n", None),
            (
                "test_a.py",
                "a = \"\"\"\nb\n\"\"\"\ndef test_a():\n  x\n",
                "a = \"\"\"\nb\n\"\"\"\ndef f():\n  x\n",
                Some("shortened"),
            ),
            ("a.test.ts", "it('a', f)\n", "/*\nit('a', f)\n*/\n", Some("shortened")),
            ("a.test.ts", "it('a', f)\n", "it('a', f)\ndescribe.only('b', g)\n", Some("skipped")),
            ("a.test.ts", "it('a', f)\n", "test.skipIf(true)('a', f)\n", Some("skipped")),
            ("a.test.ts", "it('a', f)\n", "it('a', f)\nit('names `.only(`', f)\n", None),
            (
                "a.test.ts",
                "it('a', f)\n",
                "fdescribe('x', () => { it('a', f) })\n",
                Some("skipped"),
            ),
            ("a.test.ts", "it('a', f)\n", "it('a', f)\nfind({ skip: 1, take: 1 })\n", None),
            ("a.test.ts", "it('a', f)\n", "it('a', f)\nmodel.fit(x); Post.find().skip(10)\n", None),
            ("a.test.ts", "it('a', f)\n", "test('a', { skip: true }, f)\n", Some("skipped")),
            ("a.test.ts", "it('a', f)\n", "test.describe.only('a', f)\nit(1)\n", Some("skipped")),
            ("test_a.py", "def test_a():\n", "def test_a():\n  r\"[0-9][.][0-9]\"\n", None),
            ("test_a.c", "TEST(A, b)\n", "TEST(A, b)\n#ifdef DEBUG\nlog();\n#endif\n", None),
            ("test_a.c", "TEST(A, b)\n", "#ifdef NEVER\nTEST(A, b)\n#endif\n", Some("skipped")),
            ("tests/a.cpp", "TEST_CASE(1)\n", "TEST_CASE(1, \" [.]\")\n", Some("skipped")),
            ("a_test.go", "package a\n", "//go:build never\npackage a\n", Some("skipped")),
            (
                "a_test.go",
                "func TestA(t *T) {\n}\n",
                "func TestA(t *T) { t.Skipf(\"\") }\n",
                Some("skipped"),
            ),
            ("x_test.dart", "test(1);\n", "", Some("shortened")),
            ("tests/a.cpp", "TEST(A, b) {}\n", "#if 0\nTEST(A, b) {}\n#endif\n", Some("shortened")),
            ("tests/a.cpp", "TEST(A, b) {}\n", "TEST(A, DISABLED_b) {}\n", Some("skipped")),
        ];
        told_apart(&table);
    }

    #[test]
    fn a_file_is_moved_where_its_tests_are_still_found() {
        let table = [
            ("tests/test_q.py", "tests/q.py", false),
            ("tests/test_q.py", "tests/more/test_q.py", true),
            ("tests/test_q.py", "src/test_q.py", true),
            ("tests/q.rs", "src/q.rs", false),
            ("tests/q.rs", "tests/r.rs", true),
            ("tests/q.rs", "tests/q.txt", false),
            ("src/a.test.ts", "src/a.ts", false),
            ("src/lib.rs", "src/other.rs", true),
        ];
        for (was, now, expected) in table {
            assert_eq!(is_collected_as(Path::new(was), Path::new(now)), expected, "{was} {now}");
        }
    }
}
