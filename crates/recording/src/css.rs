//! Finds and replaces URLs in style sheets.

use std::ops::Range;

use memchr::memmem;

use crate::BodyError;
use crate::body::NewContent;

/// Replaces the URLs of `url()` and `@import` for which `replace` returns another one. Bytes that
/// are not UTF-8 stay as they are.
pub(crate) fn replace_urls(
    css: &[u8],
    replace: impl Fn(&str) -> Option<String>,
) -> Result<Vec<u8>, BodyError> {
    let mut output = NewContent::default();
    let mut end = 0;
    for span in urls(css) {
        let Ok(url) = std::str::from_utf8(&css[span.clone()]) else {
            continue;
        };
        if let Some(url) = replace(url) {
            output.push(&css[end..span.start])?;
            output.push(escaped(&url).as_bytes())?;
            end = span.end;
        }
    }
    output.push(&css[end..])?;
    Ok(output.finish())
}

/// Percent-encodes what would end a URL, with or without quotes.
fn escaped(url: &str) -> String {
    let escape = |c: char| match c {
        '"' => "%22".to_owned(),
        '\'' => "%27".to_owned(),
        '(' => "%28".to_owned(),
        ')' => "%29".to_owned(),
        ' ' => "%20".to_owned(),
        '\\' => "%5C".to_owned(),
        _ => c.to_string(),
    };
    url.chars().map(escape).collect()
}

/// Returns the positions of the URLs, without quotes.
fn urls(css: &[u8]) -> Vec<Range<usize>> {
    let mut urls = Vec::new();
    let mut at = 0;
    // True after `@import`, whose URL may be a string.
    let mut is_import = false;
    while at < css.len() {
        let rest = &css[at..];
        if rest.starts_with(b"/*") {
            at = after(css, at + 2, b"*/");
        } else if let [quote @ (b'"' | b'\''), ..] = *rest {
            let end = string_end(css, at + 1, quote);
            if is_import {
                urls.push(at + 1..end);
                is_import = false;
            }
            at = end + 1;
        } else if has_prefix(rest, b"@import") {
            is_import = true;
            at += b"@import".len();
        } else if has_prefix(rest, b"url(") && !is_part_of_name(css, at) {
            let (span, end) = url(css, at + b"url(".len());
            urls.push(span);
            is_import = false;
            at = end;
        } else {
            if rest[0] == b';' {
                is_import = false;
            }
            at += if rest[0] == b'\\' { 2 } else { 1 };
        }
    }
    urls
}

/// Returns the position of the URL that begins at a position, and the end of its `url()`.
fn url(css: &[u8], start: usize) -> (Range<usize>, usize) {
    let is_blank = |c: &u8| c.is_ascii_whitespace();
    let blanks = css[start..].iter().take_while(|c| is_blank(c)).count();
    let start = start + blanks;
    if let Some(quote @ (b'"' | b'\'')) = css.get(start).copied() {
        let end = string_end(css, start + 1, quote);
        return (start + 1..end, after(css, end, b")"));
    }
    let end = position(css, start, b")").unwrap_or(css.len());
    let blanks = css[start..end]
        .iter()
        .rev()
        .take_while(|c| is_blank(c))
        .count();
    (start..end - blanks, end)
}

/// Returns the position of the quote that ends a string.
fn string_end(css: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start;
    while at < css.len() && css[at] != quote && css[at] != b'\n' {
        at += if css[at] == b'\\' { 2 } else { 1 };
    }
    at.min(css.len())
}

fn has_prefix(text: &[u8], prefix: &[u8]) -> bool {
    let start = text.get(..prefix.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Returns whether a function at a position has a longer name, such as `curl(`.
fn is_part_of_name(css: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| css[before]);
    before.is_some_and(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_')
}

fn position(css: &[u8], from: usize, text: &[u8]) -> Option<usize> {
    Some(from + memmem::find(css.get(from..)?, text)?)
}

fn after(css: &[u8], from: usize, text: &[u8]) -> usize {
    position(css, from, text).map_or(css.len(), |it| it + text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn upper_case(css: &str) -> String {
        let replaced = replace_urls(css.as_bytes(), |url| Some(url.to_uppercase()));
        String::from_utf8(replaced.unwrap()).unwrap()
    }

    #[test]
    fn urls_are_found_in_all_their_forms() {
        for (css, expected) in [
            ("a{b:url(c)}", "a{b:url(C)}"),
            ("a{b:URL( \"c d\" )}", "a{b:URL( \"C%20D\" )}"),
            ("a{b:url('c') url(d)}", "a{b:url('C') url(D)}"),
            (
                "@import 'a.css' screen;b{content:'c'}",
                "@import 'A.CSS' screen;b{content:'c'}",
            ),
            (
                "@import url(a.css);b{content:'c'}",
                "@import url(A.CSS);b{content:'c'}",
            ),
            ("/* url(a) */b{c:url( d )}", "/* url(a) */b{c:url( D )}"),
            ("a{content:'url(b)'}", "a{content:'url(b)'}"),
            ("a{b:curl(c)}", "a{b:curl(c)}"),
            ("@import;a{content:'b'}", "@import;a{content:'b'}"),
        ] {
            assert_eq!(upper_case(css), expected);
        }
    }

    proptest! {
        #[test]
        fn a_style_sheet_is_the_same_if_no_url_is_replaced(css in "[a-z(){}'\"/*\\\\@; \n]{0,40}") {
            let unchanged = replace_urls(css.as_bytes(), |_| None).unwrap();
            prop_assert_eq!(unchanged, css.as_bytes());
        }

        #[test]
        fn no_text_makes_the_scanner_panic(
            css in "(url\\(|@import|[a-z(){}'\"/*\\\\; \n]){0,20}",
        ) {
            replace_urls(css.as_bytes(), |_| Some(String::new())).unwrap();
        }
    }
}
