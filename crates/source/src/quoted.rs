//! Texts with quoted parts, such as the values of headers.

/// Splits a text at a separator, except between double quotes.
pub fn split_outside_quotes(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |c| {
        is_quoted ^= c == '"';
        c == separator && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_separator_does_not_split() {
        for (text, parts) in [
            (r#"a; b="c; d"; e"#, &["a", r#" b="c; d""#, " e"][..]),
            (r#"a;"b;c"#, &["a", r#""b;c"#]),
            ("", &[""]),
        ] {
            assert_eq!(split_outside_quotes(text, ';').collect::<Vec<_>>(), parts);
        }
    }
}
