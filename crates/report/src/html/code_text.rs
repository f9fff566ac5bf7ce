//! Sentences with code between backticks, rendered as HTML.

use std::fmt;

/// A text that is escaped when written into a page; parts between backticks become `<code>`
/// elements.
#[derive(Debug, Clone, Default)]
pub struct CodeText(pub String);

impl fmt::Display for CodeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_str();
        while let Some((before, code, after)) = next_code(rest) {
            escape(f, before)?;
            f.write_str("<code>")?;
            escape(f, code)?;
            f.write_str("</code>")?;
            rest = after;
        }
        escape(f, rest)
    }
}

impl askama::filters::HtmlSafe for CodeText {}

fn next_code(text: &str) -> Option<(&str, &str, &str)> {
    let (before, from) = text.split_once('`')?;
    let (code, after) = from.split_once('`')?;
    Some((before, code, after))
}

/// Escapes a text for markup that is built outside the templates.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    // Writing to a string cannot fail.
    let _ = escape(&mut safe, text);
    safe
}

fn escape(out: &mut impl fmt::Write, text: &str) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        out.write_str(&rest[..at])?;
        out.write_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#39;",
        })?;
        rest = &rest[at + 1..];
    }
    out.write_str(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_between_backticks_is_code_and_everything_is_escaped() {
        for (text, html) in [
            ("Use `<b>`.", "Use <code>&lt;b&gt;</code>."),
            ("`a` & `b`", "<code>a</code> &amp; <code>b</code>"),
            ("one ` alone", "one ` alone"),
            ("`<script>", "`&lt;script&gt;"),
        ] {
            assert_eq!(CodeText(text.to_owned()).to_string(), html);
        }
        assert_eq!(escaped(r#"é"'&"#), "é&quot;&#39;&amp;");
    }
}
