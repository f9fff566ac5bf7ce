//! Minifies style sheets.

use super::is_kept;

/// Removes comments and blanks. Returns `None` if a string or a comment has no end.
pub(crate) fn minified_sheet(css: &str) -> Option<String> {
    let mut output = String::with_capacity(css.len());
    let mut rest = css;
    // True if there is a blank between the output and the rest.
    let mut has_blank = false;
    while let Some(c) = rest.chars().next() {
        if c.is_ascii_whitespace() {
            has_blank = true;
            rest = &rest[1..];
            continue;
        }
        if rest.starts_with("/*") && !is_kept(&rest[..comment_end(rest)?]) {
            rest = &rest[comment_end(rest)?..];
            let is_separator = !has_blank && joins(output.chars().last(), rest.chars().next());
            output.push_str(if is_separator { "/**/" } else { "" });
            continue;
        }
        let end = token_end(rest, c)?;
        if has_blank && needs_blank(&output, c) {
            output.push(' ');
        }
        has_blank = false;
        output.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    Some(output)
}

/// Returns the length of a comment.
fn comment_end(text: &str) -> Option<usize> {
    text.find("*/")
        .filter(|end| *end >= 2)
        .map(|end| end + 2)
        .or_else(|| {
            let end = text.get(3..)?.find("*/")?;
            Some(3 + end + 2)
        })
}

/// Returns the length of what is copied as it is and begins with a character.
fn token_end(text: &str, c: char) -> Option<usize> {
    let is_url = text
        .get(..4)
        .is_some_and(|it| it.eq_ignore_ascii_case("url("));
    match c {
        '"' | '\'' => string_end(text, c),
        '\\' => Some(escape_end(text)),
        '/' if text.starts_with("/*") => comment_end(text),
        _ if is_url && !text[4..].trim_start().starts_with(['"', '\'']) => {
            text.find(')').map(|end| end + 1)
        }
        _ => Some(c.len_utf8()),
    }
}

/// Returns the length of a string, which ends on its line.
fn string_end(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    while let Some((position, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '\n' => return None,
            _ if c == quote => return Some(position + 1),
            _ => {}
        }
    }
    None
}

/// Returns the length of an escape: a character, or up to six digits with the blank that ends them.
fn escape_end(text: &str) -> usize {
    let digits = text[1..].bytes().take(6).take_while(u8::is_ascii_hexdigit);
    let digits = digits.count();
    if digits == 0 {
        return 1 + text[1..].chars().next().map_or(0, char::len_utf8);
    }
    let ends_with_blank = text[1 + digits..].starts_with(|c: char| c.is_ascii_whitespace());
    1 + digits + usize::from(ends_with_blank)
}

/// Returns whether two characters would be one token without a comment between them.
fn joins(before: Option<char>, after: Option<char>) -> bool {
    let is_separate = |c: char| c.is_ascii_whitespace() || "{};,()".contains(c);
    !before.is_none_or(is_separate) && !after.is_none_or(is_separate)
}

/// Returns whether a blank between the output and a character has a meaning. Blanks around colons
/// and parentheses may have one.
fn needs_blank(output: &str, next: char) -> bool {
    let Some(last) = output.chars().last() else {
        return false;
    };
    // `--a: ;` is a value and `--a:;` was none in earlier versions of CSS.
    let is_empty_value = last == ':' && ";}".contains(next);
    is_empty_value || !("{};,".contains(last) || "{};,".contains(next))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blanks_and_comments_without_meaning_are_left_out() {
        for (css, expected) in [
            ("a {\n  color: red;\n  b : c\n}\n", "a{color: red;b : c}"),
            ("/* a */b{} /* c */", "b{}"),
            ("/*! a */ b{}", "/*! a */ b{}"),
            ("a  b > c , d{}", "a b > c,d{}"),
            ("a :hover{}", "a :hover{}"),
            ("a/**/b{}", "a/**/b{}"),
            ("a /* */ b{}", "a b{}"),
            ("a{content:'  /* x */ '}", "a{content:'  /* x */ '}"),
            ("a{b:url( c  d )}", "a{b:url( c  d )}"),
            ("a{b:url( \"c  d\" )}", "a{b:url( \"c  d\" )}"),
            (".\\31  a { }", ".\\31  a{}"),
            ("a{--b: ;c:d}", "a{--b: ;c:d}"),
            (
                "@media screen  and (a: b) { }",
                "@media screen and (a: b){}",
            ),
            ("a{width:calc(1px  +  2px)}", "a{width:calc(1px + 2px)}"),
            ("/**/a{}", "a{}"),
            ("/*/ x */a{}", "a{}"),
            ("é { }", "é{}"),
        ] {
            assert_eq!(minified_sheet(css).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_has_no_end_is_not_minified() {
        for css in ["a{b:'c\n'}", "/* a", "a{b:url(c", "a{b:'c"] {
            assert_eq!(minified_sheet(css), None, "{css}");
        }
    }

    proptest! {
        #[test]
        fn a_minified_sheet_stays_the_same(css in "[a-c{}:;, '\"/*\\\\\n(é1-]{0,30}") {
            if let Some(once) = minified_sheet(&css) {
                prop_assert!(once.len() <= css.len());
                prop_assert_eq!(minified_sheet(&once), Some(once));
            }
        }
    }
}
