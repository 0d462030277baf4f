//! Names as serde writes them.

/// Makes the name serde writes out of a field's.
pub(crate) type Rename = fn(&str) -> String;

/// How serde renames the fields of a struct.
pub(crate) const RULES: &[(&str, Rename)] = &[
    ("lowercase", str::to_owned),
    ("snake_case", str::to_owned),
    ("UPPERCASE", str::to_uppercase),
    ("SCREAMING_SNAKE_CASE", str::to_uppercase),
    ("PascalCase", pascal),
    ("camelCase", camel),
    ("kebab-case", |name| name.replace('_', "-")),
    ("SCREAMING-KEBAB-CASE", |name| name.to_uppercase().replace('_', "-")),
];

fn pascal(name: &str) -> String {
    let mut pascal = String::new();
    for word in name.split('_') {
        let mut letters = word.chars();
        pascal.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        pascal.push_str(letters.as_str());
    }
    pascal
}

fn camel(name: &str) -> String {
    let pascal = pascal(name);
    let mut letters = pascal.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::RULES;

    #[test]
    fn names_are_those_serde_writes() {
        let names: Vec<String> = RULES
            .iter()
            .map(|(rule, rename)| format!("{rule}: {}", rename("max_step_count")))
            .collect();
        assert_eq!(
            names,
            [
                "lowercase: max_step_count",
                "snake_case: max_step_count",
                "UPPERCASE: MAX_STEP_COUNT",
                "SCREAMING_SNAKE_CASE: MAX_STEP_COUNT",
                "PascalCase: MaxStepCount",
                "camelCase: maxStepCount",
                "kebab-case: max-step-count",
                "SCREAMING-KEBAB-CASE: MAX-STEP-COUNT",
            ]
        );
    }
}
