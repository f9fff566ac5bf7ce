//! Minifies scripts.
//!
//! The difficulty is whether a slash divides or begins a regular expression, in which quotes and
//! slashes mean nothing. Where that is not certain, the script is left as it is.

mod slash;

use super::is_kept;
use slash::{Slash, Slashes};

/// Characters beside which a blank has no meaning.
const SEPARATORS: &str = "{}()[];,:=";

/// Characters after which a line end does not end a statement.
const OPENING: &str = "{([;,";

/// Characters before which a line end does not end a statement, or ends it anyway.
const CLOSING: &str = "})];,";

/// The kind of blank between two tokens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Blank {
    None,
    Space,
    Line,
}

/// Braces that are open.
#[derive(Clone, Copy, PartialEq)]
enum Brace {
    /// A brace after which the text of a template goes on.
    Template,
    Plain,
}

/// Removes comments and blanks. Returns `None` if the script is not understood for certain.
pub(crate) fn minified_script(script: &str) -> Option<String> {
    // Rare: scripts with a line for a command, and comments as in HTML.
    if script.starts_with("#!") || script.contains("<!--") || script.contains("-->") {
        return None;
    }
    let mut output = String::with_capacity(script.len());
    let mut slashes = Slashes::default();
    let mut braces: Vec<Brace> = Vec::new();
    let mut blank = Blank::None;
    let mut rest = script;
    while let Some(c) = rest.chars().next() {
        if let Some((length, kind)) = blank_at(rest, c)? {
            blank = blank.max(kind);
            rest = &rest[length..];
            continue;
        }
        let length = match c {
            '"' | '\'' => string_end(rest, c)?,
            '`' => template_end(rest, 1, &mut braces)?,
            '}' if braces.pop() == Some(Brace::Template) => template_end(rest, 1, &mut braces)?,
            '{' => {
                braces.push(Brace::Plain);
                1
            }
            '/' if rest.starts_with("/*") => comment_end(rest)?,
            '/' => match slashes.meaning(rest)? {
                Slash::Division => 1,
                Slash::Pattern => pattern_end(rest)?,
            },
            _ if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ => c.len_utf8(),
        };
        push_blank(&mut output, blank, c);
        blank = Blank::None;
        let token = &rest[..length];
        if !token.starts_with("/*") {
            slashes.push(token);
        }
        output.push_str(token);
        rest = &rest[length..];
    }
    braces
        .iter()
        .all(|it| *it == Brace::Plain)
        .then_some(output)
}

/// Returns the length and the kind of a blank or a comment that is left out.
fn blank_at(text: &str, c: char) -> Option<Option<(usize, Blank)>> {
    if text.starts_with("//") {
        let end = text.find(is_line_end).unwrap_or(text.len());
        return Some(Some((end, Blank::Space)));
    }
    if text.starts_with("/*") {
        let end = comment_end(text)?;
        let comment = &text[..end];
        let kind = if comment.contains(is_line_end) {
            Blank::Line
        } else {
            Blank::Space
        };
        return Some((!is_kept(comment)).then_some((end, kind)));
    }
    Some(match c {
        ' ' | '\t' => Some((1, Blank::Space)),
        _ if is_line_end(c) => Some((c.len_utf8(), Blank::Line)),
        _ => None,
    })
}

/// Adds a blank to the output unless it has no meaning there.
fn push_blank(output: &mut String, blank: Blank, next: char) {
    let Some(last) = output.chars().last() else {
        return;
    };
    let is_needed = match blank {
        Blank::None => return,
        Blank::Space => !SEPARATORS.contains(last) && !SEPARATORS.contains(next),
        Blank::Line => !OPENING.contains(last) && !CLOSING.contains(next),
    };
    if is_needed {
        output.push(if blank == Blank::Line { '\n' } else { ' ' });
    }
}

/// Returns whether a character ends a line of a script.
fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// Returns whether a character is part of a name, a keyword or a number.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '\\') || (!c.is_ascii() && !is_line_end(c))
}

fn comment_end(text: &str) -> Option<usize> {
    Some(2 + text.get(2..)?.find("*/")? + 2)
}

/// Returns the length of a string, which ends on its line.
fn string_end(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((position, c)) = chars.next() {
        match c {
            '\\' => {
                let is_return = chars.next().is_some_and(|(_, c)| c == '\r');
                chars.next_if(|(_, c)| is_return && *c == '\n');
            }
            '\n' | '\r' => return None,
            _ if c == quote => return Some(position + 1),
            _ => {}
        }
    }
    None
}

/// Returns the length of a template up to its end or to an expression in it.
fn template_end(text: &str, start: usize, braces: &mut Vec<Brace>) -> Option<usize> {
    let mut chars = text[start..].char_indices();
    while let Some((position, c)) = chars.next() {
        let end = start + position + 1;
        match c {
            '\\' => drop(chars.next()),
            '`' => return Some(end),
            '$' if text[end..].starts_with('{') => {
                braces.push(Brace::Template);
                return Some(end + 1);
            }
            _ => {}
        }
    }
    None
}

/// Returns the length of a regular expression without its flags, which ends on its line.
fn pattern_end(text: &str) -> Option<usize> {
    let mut in_class = false;
    let mut chars = text.char_indices().skip(1);
    while let Some((position, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next().filter(|(_, c)| !is_line_end(*c))?;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return Some(position + 1),
            _ if is_line_end(c) => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
