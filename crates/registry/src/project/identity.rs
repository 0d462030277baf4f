//! The identity under which a decision remembers a definition.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::DefinitionKind;

/// The identity of a definition. No two definitions of a project have the same one.
///
/// Every part is a field of its own: parts that are joined to one text can be shifted from one part
/// to the next, so that another definition takes over the trust in this one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DefinitionId {
    /// The kind of the definition.
    pub kind: DefinitionKind,
    /// The folder it counts in, from the repository's root.
    #[serde(default, with = "path_text", skip_serializing_if = "is_empty")]
    pub folder: PathBuf,
    /// Whether it counts in the folders below as well.
    #[serde(default)]
    pub reach: Reach,
    /// The file it stands in, from the repository's root.
    #[serde(default, with = "path_text", skip_serializing_if = "is_empty")]
    pub path: PathBuf,
    /// Its name there.
    pub name: String,
    /// Its number among definitions that are alike in everything above, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nth: usize,
}

/// The folders in which a definition counts.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Its folder and all below: agent programs look for their files in the folders above.
    #[default]
    Below,
    /// Its folder alone: Atomic looks for its files, and for checks, only there.
    Folder,
}

impl Reach {
    /// Whether a definition of `folder` counts for work in `place`.
    pub fn covers(self, folder: &Path, place: &Path) -> bool {
        match self {
            Self::Below => place.starts_with(folder),
            Self::Folder => place == folder,
        }
    }
}

impl fmt::Display for DefinitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.kind.word(), self.path.display(), self.name)?;
        if self.nth > 0 {
            write!(f, " ({})", self.nth + 1)?;
        }
        Ok(())
    }
}

fn is_empty(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Paths as texts for JSON. A path need not be UTF-8, and two different paths are different texts.
pub mod path_text {
    use super::*;

    /// Writes a path; bytes that are not UTF-8 become `\xNN`, and a backslash becomes two.
    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&escape(path))
    }

    /// Reads what [`serialize`] has written.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        let text = String::deserialize(from)?;
        unescape(&text).ok_or_else(|| D::Error::custom("is not a valid path"))
    }

    pub(super) fn escape(path: &Path) -> String {
        let mut text = String::new();
        for chunk in path.as_os_str().as_bytes().utf8_chunks() {
            text += &chunk.valid().replace('\\', "\\\\");
            for byte in chunk.invalid() {
                text += &format!("\\x{byte:02x}");
            }
        }
        text
    }

    pub(super) fn unescape(text: &str) -> Option<PathBuf> {
        let mut bytes = vec![];
        let mut rest = text;
        while let Some((plain, behind)) = rest.split_once('\\') {
            bytes.extend_from_slice(plain.as_bytes());
            if let Some(behind) = behind.strip_prefix('\\') {
                bytes.push(b'\\');
                rest = behind;
            } else {
                let behind = behind.strip_prefix('x')?;
                bytes.push(u8::from_str_radix(behind.get(..2)?, 16).ok()?);
                rest = behind.get(2..)?;
            }
        }
        bytes.extend_from_slice(rest.as_bytes());
        Some(PathBuf::from(OsString::from_vec(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::{DefinitionId, Reach};
    use crate::project::DefinitionKind;

    fn id() -> impl Strategy<Value = DefinitionId> {
        let kind = prop::sample::select(&[DefinitionKind::Hook, DefinitionKind::Plugin][..]);
        // Few characters, so that parts often are alike or differ by where they are split.
        let bytes = prop::sample::select(&b"a \\x\xff\xfe/"[..]);
        let path = prop::collection::vec(bytes, 0..4)
            .prop_map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
        let reach = prop::sample::select(&[Reach::Below, Reach::Folder][..]);
        (kind, path.clone(), reach, path, "[a \\\\x\"(2)]{0,3}", 0..2_usize).prop_map(
            |(kind, folder, reach, path, name, nth)| DefinitionId {
                kind,
                folder,
                reach,
                path,
                name,
                nth,
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

        #[test]
        fn different_ids_are_written_differently(one in id(), other in id()) {
            let written = |id: &DefinitionId| serde_json::to_string(id).unwrap();
            // A path is compared by its bytes: `a//b` and `a/b` are equal for `Path`.
            let bytes = |id: &DefinitionId| (id.folder.clone().into_os_string(), id.path.clone().into_os_string());
            let is_same = one == other && bytes(&one) == bytes(&other);
            prop_assert_eq!(written(&one) == written(&other), is_same);
            let again: DefinitionId = serde_json::from_str(&written(&one)).unwrap();
            prop_assert_eq!(bytes(&again), bytes(&one));
            prop_assert_eq!(again, one);
        }
    }
}
