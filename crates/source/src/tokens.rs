//! Estimates minified lengths: text without whitespace and comments. Lengths are in UTF-16 units,
//! as in JavaScript; the rules are those of Lighthouse 13.5 (core/lib/minification-estimator.js).

#[derive(Clone, Copy, PartialEq)]
enum Within {
    Code,
    LineComment,
    /// A block comment; true if it is a licence comment, which minifiers keep.
    Comment(bool),
    /// A string that ends at this character.
    Text(u16),
    /// A regular expression; true inside a character class.
    Pattern(bool),
}

#[derive(Clone, Copy, PartialEq)]
enum Brace {
    Template,
    Plain,
}

/// Returns the minified length of a script in UTF-16 units.
pub fn script_token_units(text: &str) -> usize {
    token_units(&units(text), true)
}

/// Returns the minified length of a style sheet in UTF-16 units.
pub fn sheet_token_units(text: &str) -> usize {
    token_units(&units(text), false)
}

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

const fn unit(c: char) -> u16 {
    c as u16
}

const TICK: u16 = unit('`');

fn token_units(text: &[u16], is_script: bool) -> usize {
    let mut total = 0;
    let mut within = Within::Code;
    let mut braces: Vec<Brace> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let now = text[at];
        let next = text.get(at + 1).copied().unwrap_or(0);
        let is_pair = |a: char, b: char| now == unit(a) && next == unit(b);
        match within {
            Within::LineComment => {
                if now == unit('\n') {
                    within = Within::Code;
                }
            }
            Within::Comment(is_kept) => {
                total += usize::from(is_kept);
                if is_pair('*', '/') {
                    total += usize::from(is_kept);
                    within = Within::Code;
                    at += 1;
                }
            }
            Within::Text(end) => {
                total += 1;
                if end == TICK && is_pair('$', '{') {
                    braces.push(Brace::Template);
                    within = Within::Code;
                    total += 1;
                    at += 1;
                } else if now == unit('\\') {
                    total += 1;
                    at += 1;
                } else if now == end {
                    within = Within::Code;
                }
            }
            Within::Pattern(in_class) => {
                total += 1;
                if now == unit('\\') {
                    total += 1;
                    at += 1;
                } else if now == unit('[') {
                    within = Within::Pattern(true);
                } else if now == unit(']') && in_class {
                    within = Within::Pattern(false);
                } else if now == unit('/') && !in_class {
                    within = Within::Code;
                }
            }
            Within::Code if is_pair('/', '*') => {
                let is_kept = text.get(at + 2) == Some(&unit('!'));
                within = Within::Comment(is_kept);
                total += if is_kept { 2 } else { 0 };
                at += 1;
            }
            Within::Code if is_script && is_pair('/', '/') => {
                within = Within::LineComment;
                at += 1;
            }
            Within::Code if is_script && now == unit('/') && begins_pattern(text, at) => {
                within = Within::Pattern(false);
                total += 1;
            }
            Within::Code if now == unit('{') && !braces.is_empty() => {
                braces.push(Brace::Plain);
                total += 1;
            }
            Within::Code if now == unit('}') && !braces.is_empty() => {
                if braces.pop() == Some(Brace::Template) {
                    within = Within::Text(TICK);
                }
                total += 1;
            }
            Within::Code => {
                if ['\'', '"', '`'].iter().any(|quote| now == unit(*quote)) {
                    within = Within::Text(now);
                }
                total += usize::from(!is_blank(now));
            }
        }
        at += 1;
    }
    // An unterminated string or comment means that the text was misparsed; then no saving is
    // reported.
    match within {
        Within::Comment(_) | Within::Text(_) => text.len(),
        _ => total,
    }
}

fn is_blank(c: u16) -> bool {
    [' ', '\n', '\t'].iter().any(|blank| c == unit(*blank))
}

/// Returns true if a slash starts a regular expression: at the beginning or after an operator.
/// After a value it is a division.
fn begins_pattern(text: &[u16], slash: usize) -> bool {
    let before = text[..slash].iter().rposition(|c| !is_blank(*c));
    let Some(last) = before else {
        return true;
    };
    let ends_with = |word: &str| {
        let word: Vec<u16> = word.encode_utf16().collect();
        text[..=last].ends_with(&word)
    };
    "{([;,<>=+-*%&|^!~?:/}"
        .chars()
        .any(|operator| text[last] == unit(operator))
        || ["return", "case", "else", "..."]
            .iter()
            .any(|word| ends_with(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_comments_and_blanks_are_omitted() {
        for (script, units) in [
            ("let a = 1;", "leta=1;".len()),
            ("a // why\nb", 2),
            ("a /* why */ b", 2),
            ("/*! keep */a", "/*! keep */a".len()),
            ("'  //  ' + b", "'  //  '+b".len()),
            ("x = /[/ ]\\/ a/ ;", "x=/[/ ]\\/ a/;".len()),
            ("a / b / c", "a/b/c".len()),
            ("return /  /.x", "return/  /.x".len()),
            ("`a ${ b + {c:1} } d`", "`a ${b+{c:1}} d`".len()),
            ("é = '𝕏'", "é='".encode_utf16().count() + 2 + 1),
        ] {
            assert_eq!(script_token_units(script), units, "{script}");
        }
        assert_eq!(sheet_token_units("a { b : c } /* d */"), "a{b:c}".len());
        assert_eq!(
            sheet_token_units("a{b:url(//x/y)}"),
            "a{b:url(//x/y)}".len()
        );
    }

    #[test]
    fn unterminated_tokens_count_to_the_end() {
        assert_eq!(script_token_units("a  /* b"), 7);
        assert_eq!(script_token_units("a  ' b"), 6);
    }

    proptest! {
        #[test]
        fn a_text_never_grows(text in "[a-z /*'\"`{}$\\\\\n=]{0,60}") {
            let length = text.encode_utf16().count();
            // An escape at the end of the text counts one unit too many.
            prop_assert!(script_token_units(&text) <= length + 1);
            prop_assert!(sheet_token_units(&text) <= length + 1);
        }
    }
}
