//! Turns errors of parsers into sentences that name the member and quote nothing of the text that
//! was read, because the values of a state are secrets.

/// Describes an error of JSON. `path` is the member in which it was noticed, such as
/// `state.cookies[0]`, or empty.
pub fn json_error(path: &str, error: &serde_json::Error) -> String {
    if !error.is_data() {
        return not_json(error);
    }
    let text = error.to_string();
    let text = text
        .rsplit_once(" at line ")
        .map_or(&*text, |(text, _)| text);
    described(path, text)
}

/// Describes the error of a text that is not JSON, by its position alone.
fn not_json(error: &serde_json::Error) -> String {
    format!(
        "The text is not valid JSON: see line {}, column {}.",
        error.line(),
        error.column()
    )
}

/// Describes an error of a parser whose position is not known.
pub fn without_value(error: &str) -> String {
    described("", error)
}

/// Describes an error by the text of a parser that uses serde.
fn described(path: &str, error: &str) -> String {
    for (kind, is) in [("missing", "is missing"), ("duplicate", "is given twice")] {
        let name = error.strip_prefix(kind);
        let name = name.and_then(|rest| rest.strip_prefix(" field `")?.strip_suffix('`'));
        if let Some(name) = name {
            let dot = if path.is_empty() { "" } else { "." };
            return format!("`{path}{dot}{name}` {is}.");
        }
    }
    let subject = if path.is_empty() {
        "A value".to_owned()
    } else {
        format!("`{path}`")
    };
    if error.starts_with("data did not match") {
        return format!("{subject} has the wrong form.");
    }
    match error.split_once("expected ") {
        Some((_, expected)) => format!("{subject} must be {}.", plain_type(expected)),
        None => format!("A value cannot be read: {error}."),
    }
}

/// Returns the name for people of a type that serde expected.
fn plain_type(expected: &str) -> &str {
    match expected {
        "a string" | "string" | "a borrowed string" => "a text",
        "a sequence" => "a list",
        "a map" => "an object",
        "a boolean" => "true or false",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        other if other.starts_with("struct ") => "an object",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::VisitState;

    #[track_caller]
    fn check<T: DeserializeOwned>(text: &str, path: &str, expected: &str) {
        let Err(error) = serde_json::from_str::<T>(text) else {
            panic!("{text} is valid");
        };
        assert_eq!(json_error(path, &error), expected);
    }

    #[test]
    fn errors_of_members_are_sentences_without_values_and_positions() {
        check::<VisitState>(
            r#"{"cookies": {}}"#,
            "state.cookies",
            "`state.cookies` must be a list.",
        );
        check::<VisitState>(
            r#"{"cookies": [{"name": "canary"}]}"#,
            "state.cookies[0]",
            "`state.cookies[0].value` is missing.",
        );
        check::<VisitState>(
            r#"{"origins": [], "origins": []}"#,
            "",
            "`origins` is given twice.",
        );
        check::<String>("5", "url", "`url` must be a text.");
        check::<bool>("\"canary\"", "", "A value must be true or false.");
        check::<u32>(
            "-1",
            "count",
            "`count` must be a whole number of at least 0.",
        );
        check::<crate::SameSite>(
            "\"canary\"",
            "sameSite",
            "`sameSite` must be one of `Strict`, `Lax`, `None`.",
        );
    }

    #[test]
    fn a_text_that_is_not_json_is_described_by_its_position() {
        check::<VisitState>(
            "{\"a\": [1",
            "",
            "The text is not valid JSON: see line 1, column 8.",
        );
        check::<VisitState>(
            "{canary",
            "",
            "The text is not valid JSON: see line 1, column 2.",
        );
    }
}
