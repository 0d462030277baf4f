//! The version of this program that a workflow asks for.

/// Why a workflow cannot be run by this version, and what to do.
pub(crate) struct Unmet {
    pub(crate) message: String,
    pub(crate) help: String,
}

/// What is wrong with the version that a workflow asks for.
pub(crate) fn unmet(wanted: &str) -> Option<Unmet> {
    let ours = env!("CARGO_PKG_VERSION");
    let (message, help) = match numbers(wanted) {
        None => (
            format!("\"{wanted}\" is not a version"),
            "write `minSDKVersion` as in \"0.1.0\"".to_owned(),
        ),
        Some(needed) if Some(needed) > numbers(ours) => (
            format!("this workflow needs atomic {wanted}, and this is {ours}"),
            "install a newer atomic, or lower minSDKVersion if it works with this one".to_owned(),
        ),
        Some(_) => return None,
    };
    Some(Unmet { message, help })
}

fn numbers(version: &str) -> Option<[u64; 3]> {
    let version = version.trim().trim_start_matches('v');
    let version = version.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = [0; 3];
    let mut parts = version.split('.');
    for (place, part) in numbers.iter_mut().zip(&mut parts) {
        *place = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn versions_have_up_to_three_numbers() {
        let table = [
            ("1", Some([1, 0, 0])),
            ("v0.2", Some([0, 2, 0])),
            (" 1.2.3-rc.1", Some([1, 2, 3])),
            ("1.2.3.4", None),
            ("1.x", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(numbers(text), expected, "{text:?}");
        }
    }
}
