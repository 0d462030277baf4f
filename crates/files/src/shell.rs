//! Paths in commands that a message suggests.

use std::path::Path;

/// Returns a path as one word of a shell command, for a message that the user may paste.
pub fn shell_quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if !path.is_empty() && path.chars().all(is_plain) {
        return path.into_owned();
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::shell_quoted;

    #[test]
    fn a_shell_reads_the_path_that_was_quoted() {
        for path in
            ["/a/b-c_1.txt", "", "/a b", "/it's", "/$(touch x)`id`", "/a\"b\\", "/;rm -rf ~"]
        {
            let command = format!("printf %s {}", shell_quoted(Path::new(path)));
            let output = Command::new("sh").args(["-c", &command]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), path, "{command}");
        }
    }
}
