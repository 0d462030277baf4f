//! Names of variables of the shell.

/// Whether a text can be the name of a variable.
pub(in crate::shell) fn is_variable(name: &[u8]) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.first().is_some_and(|first| is_letter(*first))
        && name.iter().all(|byte| is_letter(*byte) || byte.is_ascii_digit())
}
