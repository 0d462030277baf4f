//! Reading files of settings: bounded, and without waiting for a pipe.

use std::io::ErrorKind;
use std::path::Path;

use atomic_files::PROJECT_LIMIT;
use serde_json::{Map, Value};

/// The text of a file, without a byte order mark; `None` where there is no file. Links are
/// followed. The error names the file and says what is wrong with it.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, String> {
    match atomic_files::read_text(path, PROJECT_LIMIT) {
        Ok(text) => Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(match atomic_files::refusal(&error) {
            Some(refused) => format!("{}: {refused}", path.display()),
            None => format!("{}: the file cannot be read: {error}", path.display()),
        }),
    }
}

/// The JSON object in a file; `None` where there is no file, or an empty one.
pub(crate) fn json_object(path: &Path) -> Result<Option<Map<String, Value>>, String> {
    let Some(text) = read_text(path)?.filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(fields)) => Ok(Some(fields)),
        Ok(_) => Err(format!("{}: not a JSON object", path.display())),
        Err(error) => Err(format!("{}: not valid JSON: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::{json_object, read_text};

    #[test]
    fn whatever_is_in_place_of_a_file_is_read_within_bounds_or_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("good"), "\u{feff}{\"a\": 1}").unwrap();
        symlink(path("good"), path("link")).unwrap();
        symlink(path("nowhere"), path("dangling")).unwrap();
        fs::write(path("empty"), " \n").unwrap();
        fs::write(path("list"), "[]").unwrap();
        fs::write(path("broken"), "{\"a\": ").unwrap();
        fs::write(path("latin"), b"{\"a\": \"\xe4\"}").unwrap();
        fs::write(path("huge"), vec![b' '; 2 * 1024 * 1024]).unwrap();
        assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        for name in ["good", "link"] {
            assert_eq!(json_object(&path(name)).unwrap().unwrap()["a"], 1, "{name}");
        }
        for name in ["nowhere", "dangling", "empty", "good/below"] {
            assert_eq!(json_object(&path(name)), Ok(None), "{name}");
        }
        for (name, problem) in [
            ("list", "not a JSON object"),
            ("broken", "not valid JSON"),
            ("latin", "not UTF-8"),
            ("huge", "larger than 1 MB"),
            ("pipe", "not a regular file"),
            (".", "not a regular file"),
        ] {
            let error = json_object(&path(name)).unwrap_err();
            assert!(error.contains(problem) && error.contains(name), "{name}: {error}");
        }
        assert!(read_text(std::path::Path::new("/dev/zero")).is_err());
    }
}
