//! The content of a document as the server sent it, without what its scripts add.

use std::borrow::Cow;

/// Number of characters of the text that are kept.
const MAX_CHARS: usize = 20_000;

/// Elements whose content is no text of the page.
const WITHOUT_TEXT: [&str; 5] = ["script", "style", "title", "noscript", "template"];

/// Elements that are visible without text.
const VISIBLE: [&str; 11] = [
    "img", "svg", "video", "canvas", "iframe", "input", "button", "select", "textarea", "object",
    "embed",
];

/// The content of a document that is visible without scripts, as far as its source tells: style
/// sheets may hide a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServedContent {
    /// The beginning of the text, with single spaces, also where there is only a tag.
    pub text: String,
    /// Whether the text is longer.
    pub is_cut: bool,
    /// The number of images, form controls and the like.
    pub elements: u32,
}

impl ServedContent {
    /// Reads the source of an HTML document.
    pub fn of(html: &str) -> Self {
        let mut content = Collector::default();
        let mut rest = html;
        while let Some(start) = rest.find('<') {
            content.add_text(&rest[..start]);
            rest = content.skip_markup(&rest[start..]);
        }
        content.add_text(rest);
        Self {
            text: content.text,
            is_cut: content.is_cut,
            elements: content.elements,
        }
    }
}

#[derive(Default)]
struct Collector {
    text: String,
    chars: usize,
    is_cut: bool,
    elements: u32,
}

impl Collector {
    fn add_text(&mut self, text: &str) {
        for word in decoded(text).split_whitespace() {
            let length = word.chars().count() + 1;
            if self.chars + length > MAX_CHARS {
                self.is_cut = true;
                return;
            }
            if !self.text.is_empty() {
                self.text.push(' ');
            }
            self.text.push_str(word);
            self.chars += length;
        }
    }

    /// Skips a tag, a comment or an element without text, and returns the rest.
    fn skip_markup<'h>(&mut self, html: &'h str) -> &'h str {
        if let Some(comment) = html.strip_prefix("<!--") {
            return after(comment, "-->");
        }
        let name_start = html.trim_start_matches(['<', '/']);
        let is_end_tag = html.starts_with("</");
        let name_length = name_start
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .unwrap_or(name_start.len());
        let name = name_start[..name_length].to_ascii_lowercase();
        if name.is_empty() {
            return match html.as_bytes().get(1) {
                // A declaration or a processing instruction.
                Some(b'!' | b'?' | b'/') => after(&html[1..], ">"),
                Some(_) => {
                    self.add_text("<");
                    &html[1..]
                }
                None => "",
            };
        }
        let rest = after_tag(&html[1..]);
        if is_end_tag {
            return rest;
        }
        if VISIBLE.contains(&name.as_str()) {
            self.elements += 1;
        }
        if WITHOUT_TEXT.contains(&name.as_str()) {
            return after_tag(from_end_tag(rest, &name));
        }
        rest
    }
}

/// Returns the text after a mark, or nothing if it does not occur.
fn after<'h>(html: &'h str, mark: &str) -> &'h str {
    html.find(mark).map_or("", |at| &html[at + mark.len()..])
}

/// Returns the text after a tag, which ends at the first `>` that is not in quotes.
fn after_tag(html: &str) -> &str {
    let mut quote = None;
    for (at, byte) in html.bytes().enumerate() {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            (None, b'>') => return &html[at + 1..],
            _ => {}
        }
    }
    ""
}

/// Returns the text from the end tag of an element on.
fn from_end_tag<'h>(html: &'h str, name: &str) -> &'h str {
    let mut from = 0;
    while let Some(at) = html[from..].find("</") {
        let start = from + at + 2;
        let candidate = html.as_bytes().get(start..start + name.len());
        if candidate.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes())) {
            return &html[start..];
        }
        from = start;
    }
    ""
}

/// Replaces numeric character references and the most frequent named ones. Others remain.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '#';
        let (name, after) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
        match (referenced(name), after.strip_prefix(';')) {
            (Some(character), Some(after)) => {
                decoded.push(character);
                rest = after;
            }
            _ => decoded.push('&'),
        }
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// Returns the character that a reference stands for, if it is numeric or frequent.
fn referenced(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        return code.ok().map(character);
    }
    match name {
        "nbsp" => Some(' '),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "amp" => Some('&'),
        _ => None,
    }
}

/// Returns the character with a number. HTML reads the numbers of controls as Windows-1252 (HTML
/// Standard, 13.2.5.80 Numeric character reference end state).
fn character(code: u32) -> char {
    /// The characters from 128 to 159.
    const WINDOWS_1252: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";
    let index = code.checked_sub(0x80).and_then(|it| it.try_into().ok());
    let listed = index.and_then(|index| WINDOWS_1252.chars().nth(index));
    let of_code = || char::from_u32(code).filter(|c| *c != '\0');
    listed
        .or_else(of_code)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(html: &str, text: &str, elements: u32) {
        let content = ServedContent::of(html);
        assert_eq!((content.text.as_str(), content.elements), (text, elements));
    }

    #[test]
    fn an_empty_application_has_no_content() {
        is(
            "<!doctype html><html><head><title>App</title><style>a{}</style></head>\
             <body><div id='root'></div><noscript>Enable <b>JavaScript</b>.</noscript>\
             <script>document.write('<p>Hello</p>')</script></body></html>",
            "",
            0,
        );
    }

    #[test]
    fn text_images_and_controls_are_content() {
        is(
            "<h1>Hello,\n  <b>world</b></h1><IMG src=a.png><p title='a > b'>5 &lt; 6 &amp; 7</p>\
             <input><!-- <p>no</p> --><svg></svg>",
            "Hello, world 5 < 6 & 7",
            3,
        );
    }

    #[test]
    fn character_references_are_decoded_once() {
        for (html, text) in [
            ("Don&#8217;t panic", "Don’t panic"),
            ("Caf&#xE9; &#X41;&#65;&nbsp;&apos;", "Café AA '"),
            // Numbers of Windows-1252, and numbers of no character.
            ("c&#156;ur&#146;s", "cœur’s"),
            (
                "&#0; &#xD800; &#x110000; &#128;",
                "\u{fffd} \u{fffd} \u{fffd} €",
            ),
            // The reader sees a reference here.
            ("&amp;#8217; &amp;amp;", "&#8217; &amp;"),
            // Other names remain, and so does what is no reference.
            ("caf&eacute; &", "caf&eacute; &"),
            (
                "&; &#; &#x; &#65 &é; &lt &#99999999999; &",
                "&; &#; &#x; &#65 &é; &lt &#99999999999; &",
            ),
        ] {
            is(html, text, 0);
        }
    }

    #[test]
    fn broken_markup_is_read_to_its_end() {
        is("a < b", "a < b", 0);
        is("text<", "text", 0);
        is("<p>text<script>never closed <p>no", "text", 0);
        is("<p>text<!-- never closed <p>no", "text", 0);
        is("<p title=\"never closed>no", "", 0);
        is("</>a</ p>b<?php ?>c", "a b c", 0);
        is("<script>'</scrip'</SCRIPT >yes", "yes", 0);
    }

    #[test]
    fn a_long_text_is_cut() {
        let content = ServedContent::of(&"word ".repeat(MAX_CHARS));
        assert!(content.is_cut);
        assert!(content.text.chars().count() <= MAX_CHARS);
        assert!(!ServedContent::of("word").is_cut);
    }

    #[test]
    fn many_unclosed_elements_take_no_quadratic_time() {
        let html = "<script ".repeat(200_000) + &"<style>".repeat(200_000);
        assert_eq!(ServedContent::of(&html).text, "");
    }
}
