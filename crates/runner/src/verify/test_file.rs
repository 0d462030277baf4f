//! Which files hold tests, and how many.

use std::path::Path;

use atomic_event::TestFile;

/// Endings of files in which tests are written.
const SOURCES: [&str; 25] = [
    "rs", "py", "js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "go", "java", "kt", "rb",
    "php", "cs", "c", "cc", "cpp", "swift", "ex", "exs", "scala", "sh", "bats",
];

/// Folders in which every source file is a test.
const FOLDERS: [&str; 5] = ["tests", "test", "__tests__", "spec", "e2e"];

/// How the first line of a test begins.
const TESTS: [&str; 22] = [
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
    "it.skip(",
    "test.skip(",
    "it.todo(",
    "test.todo(",
    "xit(",
    "xtest(",
    "func Test",
    "@Test",
    "@test ",
    "[Fact]",
    "public function test",
];

/// How the first line of something that is skipped begins.
const SKIPS: [&str; 26] = [
    "#[ignore",
    "#[cfg_attr(all(), ignore",
    "@pytest.mark.skip",
    "@pytest.mark.xfail",
    "pytestmark = pytest.mark.skip",
    "@unittest.skip",
    "@unittest.expectedFailure",
    "@skip",
    "pytest.skip(",
    "self.skipTest(",
    "raise unittest.SkipTest",
    "it.skip(",
    "test.skip(",
    "describe.skip(",
    "it.todo(",
    "test.todo(",
    "xit(",
    "xtest(",
    "xdescribe(",
    "t.Skip(",
    "t.SkipNow(",
    "@Disabled",
    "@Ignore",
    "markTestSkipped",
    "skip \"",
    "skip '",
];

/// Whether a file can hold tests, by its name.
pub(super) fn may_hold_tests(place: &Path) -> bool {
    is_test_file(place) || has_ending(place, &["rs"])
}

/// Whether a file is there for its tests only.
fn is_test_file(place: &Path) -> bool {
    let Some(name) = place.file_stem().and_then(|stem| stem.to_str()) else { return false };
    let is_named = name.starts_with("test_")
        || ["_test", "_tests", "_spec", ".test", ".spec", "-test", "-spec", "Test", "Tests"]
            .iter()
            .any(|end| name.ends_with(end))
        || matches!(name, "test" | "tests");
    let folders = place.parent().into_iter().flat_map(Path::components);
    let is_inside = folders
        .filter_map(|part| part.as_os_str().to_str())
        .any(|folder| FOLDERS.contains(&folder));
    (is_named || is_inside) && has_ending(place, &SOURCES)
}

fn has_ending(place: &Path, endings: &[&str]) -> bool {
    place.extension().and_then(|end| end.to_str()).is_some_and(|end| endings.contains(&end))
}

/// The tests of a file; nothing for one without tests. The hash is left empty.
pub(super) fn measured(place: &Path, text: &str) -> Option<TestFile> {
    if !may_hold_tests(place) {
        return None;
    }
    let is_hash_a_comment = has_ending(place, &["py", "rb", "sh", "bats", "ex", "exs"]);
    let is_comment =
        |line: &&str| line.starts_with("//") || (is_hash_a_comment && line.starts_with('#'));
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let code = lines.iter().filter(|line| !is_comment(line));
    let (mut count, mut tests, mut skipped) = (0, 0, 0);
    for line in code {
        count += 1;
        tests += u64::from(TESTS.iter().any(|start| line.starts_with(start)));
        skipped += u64::from(SKIPS.iter().any(|start| line.starts_with(start)));
    }
    // The code beside the tests of a source file may become shorter.
    let lines = if is_test_file(place) { count } else { 0 };
    let file = TestFile { hash: String::new(), lines, tests, skipped };
    (is_test_file(place) || tests > 0).then_some(file)
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

    use super::{lost, measured};

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
        for (name, before, now, expected) in table {
            let measure = |text: &str| measured(Path::new(name), text);
            let before = measure(before).unwrap();
            assert_eq!(lost(&before, measure(now).as_ref()), expected, "{name}: {now}");
        }
        assert_eq!(measured(Path::new("src/main.rs"), "fn main() {}"), None);
        assert_eq!(measured(Path::new("README.md"), "it('a')"), None);
    }
}
