//! The tables of docs/security.md and docs/claims.md: every row has tests, and they exist.

use std::path::Path;
use std::process::Command;

#[test]
fn every_row_of_the_documentation_has_tests() {
    let listed = Command::new(std::env::current_exe().unwrap()).arg("--list").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for (page, least) in [("security.md", 20), ("claims.md", 20)] {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        let rows = rows_with_tests(&std::fs::read_to_string(&page).unwrap(), &listed);
        assert!(rows > least, "{}: {rows}", page.display());
    }
}

/// Returns the number of rows in tables whose last column is "tests".
fn rows_with_tests(page: &str, listed: &str) -> usize {
    let (mut rows, mut is_table) = (0, false);
    for line in page.lines() {
        is_table |= line.ends_with("| tests |");
        is_table &= line.starts_with('|');
        if !is_table || line.ends_with("| tests |") || line.starts_with("|---") {
            continue;
        }
        rows += 1;
        let cell = line.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for name in cell.split(", ").map(|name| name.trim_matches('`')) {
            let exists = !name.is_empty() && listed.lines().any(|test| test.starts_with(name));
            assert!(exists, "`{name}` is not the beginning of a test's name: {line}");
        }
    }
    rows
}
