//! The `content` of `<meta name="viewport">`, read by the steps that browsers follow
//! (CSS Device Adaptation, "Parsing algorithm").

/// A property's value; invalid where it is neither a number nor a word that means something.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Word,
    Invalid,
}

/// The value of a property; of one that is given twice, the last.
pub(super) fn property(content: &str, name: &str) -> Option<Value> {
    let mut found = None;
    let mut rest = content;
    while let Some((key, value, after)) = next(rest) {
        if key == name {
            found = value.map(reading).or(found);
        }
        rest = after;
    }
    found
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\n' | '\t')
}

fn is_separator(c: char) -> bool {
    matches!(c, ',' | ';')
}

fn ends_word(c: char) -> bool {
    is_blank(c) || is_separator(c) || c == '='
}

/// The next name, its value where it has one, and what follows.
fn next(content: &str) -> Option<(&str, Option<&str>, &str)> {
    let content = content.trim_start_matches(ends_word);
    let (name, rest) = content.split_at(content.find(ends_word)?);
    let rest = match rest.find(|c| is_separator(c) || c == '=') {
        Some(at) if rest[at..].starts_with('=') => &rest[at..],
        Some(at) => return Some((name, None, &rest[at..])),
        None => return None,
    };
    let rest = rest.trim_start_matches(|c| is_blank(c) || c == '=');
    let end = rest.find(ends_word).unwrap_or(rest.len());
    let (value, rest) = rest.split_at(end);
    Some((name, Some(value).filter(|value| !value.is_empty()), rest))
}

fn reading(value: &str) -> Value {
    if let Some(number) = leading_number(value) {
        return Value::Number(number);
    }
    match value.to_lowercase().as_str() {
        "yes" | "no" | "device-width" | "device-height" => Value::Word,
        _ => Value::Invalid,
    }
}

/// As scripts read numbers: whatever follows the digits is ignored.
fn leading_number(text: &str) -> Option<f64> {
    let digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let start = usize::from(text.starts_with(['+', '-']));
    let mut end = start + digits(&text[start..]);
    if text[end..].starts_with('.') {
        end += 1 + digits(&text[end + 1..]);
    }
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn properties_are_found_however_they_are_written() {
        for (content, width) in [
            ("width=device-width, initial-scale=1", Some(Value::Word)),
            ("initial-scale=1;width = 320px", Some(Value::Number(320.0))),
            ("width=320,width=device-width", Some(Value::Word)),
            ("width", None),
            ("width,initial-scale=1", None),
            ("width=", None),
            ("width=auto", Some(Value::Invalid)),
            ("Width=device-width", None),
            ("width=.5", Some(Value::Number(0.5))),
            ("", None),
        ] {
            assert_eq!(property(content, "width"), width, "{content}");
        }
    }

    proptest! {
        #[test]
        fn no_content_is_too_strange(content in "(?s).{0,80}") {
            property(&content, "width");
        }
    }
}
