//! Edits of documents.

use std::ops::Range;

use super::scanner::{Tag, tags};
use super::selector::Selector;
use crate::BodyError;
use crate::body::NewContent;

/// The number of bytes in which browsers look for the character encoding (HTML Standard, 13.2.3.2).
const ENCODING_BYTES: usize = 1024;

/// A part of a document and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub span: Range<usize>,
    pub text: String,
}

/// Applies edits that do not overlap and are in their order. Returns `None` if there are none.
pub(crate) fn apply(
    html: &[u8],
    edits: impl IntoIterator<Item = Edit>,
) -> Result<Option<Vec<u8>>, BodyError> {
    let mut edits = edits.into_iter().peekable();
    if edits.peek().is_none() {
        return Ok(None);
    }
    let mut output = NewContent::default();
    let mut at = 0;
    for edit in edits {
        output.push(&html[at..edit.span.start])?;
        output.push(edit.text.as_bytes())?;
        at = edit.span.end;
    }
    output.push(&html[at..])?;
    Ok(Some(output.finish()))
}

/// Sets an attribute of all elements that a selector matches. Returns `None` if nothing changes.
pub(crate) fn set_attribute(
    html: &[u8],
    selector: &Selector,
    name: &str,
    value: &str,
) -> Result<Option<Vec<u8>>, BodyError> {
    let escaped = value.replace('&', "&amp;").replace('"', "&quot;");
    let text = if value.is_empty() {
        name.to_owned()
    } else {
        format!("{name}=\"{escaped}\"")
    };
    edit_tags(html, selector, |tag| match tag.attribute(name) {
        Some(attribute) if attribute.value == value => None,
        Some(attribute) => Some(Edit {
            span: attribute.span.clone(),
            text: text.clone(),
        }),
        None => Some(Edit {
            span: tag.name_end..tag.name_end,
            text: format!(" {text}"),
        }),
    })
}

/// Removes an attribute of all elements that a selector matches. Returns `None` if nothing changes.
pub(crate) fn remove_attribute(
    html: &[u8],
    selector: &Selector,
    name: &str,
) -> Result<Option<Vec<u8>>, BodyError> {
    edit_tags(html, selector, |tag| {
        let attribute = tag.attribute(name)?;
        Some(Edit {
            span: attribute.span.clone(),
            text: String::new(),
        })
    })
}

fn edit_tags(
    html: &[u8],
    selector: &Selector,
    edit: impl Fn(&Tag) -> Option<Edit>,
) -> Result<Option<Vec<u8>>, BodyError> {
    apply(html, selector.select(html).filter_map(|tag| edit(&tag)))
}

/// Inserts markup at the beginning of the head, so that browsers see it before anything else. It
/// comes after the element with the character encoding if that is the first.
pub(crate) fn insert_head(html: &[u8], markup: &str) -> Result<Option<Vec<u8>>, BodyError> {
    let at = head_start(html);
    let edit = Edit {
        span: at..at,
        text: markup.to_owned(),
    };
    apply(html, [edit])
}

fn head_start(html: &[u8]) -> usize {
    let start_tag = |name: &str| tags(html).find(|tag| !tag.is_end && tag.name == name);
    // The tags of head and html may be left out.
    let parent = start_tag("head").or_else(|| start_tag("html"));
    let start = parent.map_or_else(|| after_doctype(html), |tag| tag.span.end);
    let mut following = tags(html).filter(|tag| tag.span.start >= start);
    let encoding = following
        .find(|tag| tag.name != "head")
        .filter(|tag| tag.name == "meta" && tag.attribute("charset").is_some())
        .filter(|tag| tag.span.end <= ENCODING_BYTES);
    encoding.map_or(start, |tag| tag.span.end)
}

/// Returns the position after the document type, without which browsers use another layout.
fn after_doctype(html: &[u8]) -> usize {
    const DOCTYPE: &[u8] = b"<!doctype";
    let beginning = &html[..html.len().min(ENCODING_BYTES)];
    let mut windows = beginning.windows(DOCTYPE.len());
    let start = windows.position(|window| window.eq_ignore_ascii_case(DOCTYPE));
    let end = start.and_then(|start| {
        let position = html[start..].iter().position(|c| *c == b'>')?;
        Some(start + position + 1)
    });
    // A byte order mark stays the first character.
    end.unwrap_or(if html.starts_with("\u{feff}".as_bytes()) {
        3
    } else {
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Edited = Result<Option<Vec<u8>>, BodyError>;

    fn edited(result: Edited) -> String {
        String::from_utf8(result.unwrap().unwrap()).unwrap()
    }

    #[test]
    fn attributes_are_set_and_replaced() {
        let img = Selector::parse("img").unwrap();
        for (html, expected) in [
            ("<p><img src=a></p>", "<p><img loading=\"lazy\" src=a></p>"),
            ("<img loading=eager>", "<img loading=\"lazy\">"),
            ("<img loading>", "<img loading=\"lazy\">"),
            (
                "<IMG LOADING='x'/><img>",
                "<IMG loading=\"lazy\"/><img loading=\"lazy\">",
            ),
        ] {
            let result = set_attribute(html.as_bytes(), &img, "loading", "lazy");
            assert_eq!(edited(result), expected);
        }
        let same = set_attribute(b"<img loading=lazy>", &img, "loading", "lazy");
        assert_eq!(same, Ok(None));
        assert_eq!(set_attribute(b"<p>", &img, "loading", "lazy"), Ok(None));
    }

    #[test]
    fn values_are_escaped_and_empty_ones_are_left_out() {
        let script = Selector::parse("script").unwrap();
        let result = set_attribute(b"<script src=a></script>", &script, "defer", "");
        assert_eq!(edited(result), "<script defer src=a></script>");
        let result = set_attribute(b"<script></script>", &script, "src", "a?b=\"1\"&c");
        assert_eq!(
            edited(result),
            "<script src=\"a?b=&quot;1&quot;&amp;c\"></script>"
        );
    }

    #[test]
    fn attributes_are_removed() {
        let img = Selector::parse("img").unwrap();
        let result = remove_attribute(b"<img a loading = 'lazy' b>", &img, "loading");
        assert_eq!(edited(result), "<img a  b>");
        assert_eq!(remove_attribute(b"<img a>", &img, "loading"), Ok(None));
    }

    #[test]
    fn markup_is_inserted_where_browsers_see_it_first() {
        for (html, expected) in [
            ("<html><head><link></head>", "<html><head>X<link></head>"),
            ("<html lang=a><body>", "<html lang=a>X<body>"),
            ("<!DOCTYPE html><p>", "<!DOCTYPE html>X<p>"),
            ("<p>", "X<p>"),
            ("\u{feff}<p>", "\u{feff}X<p>"),
            (
                "<head>\n<meta charset=utf-8><link>",
                "<head>\n<meta charset=utf-8>X<link>",
            ),
            (
                "<head><script></script><meta charset=utf-8>",
                "<head>X<script></script><meta charset=utf-8>",
            ),
            ("<!-- <head> --><head>", "<!-- <head> --><head>X"),
        ] {
            assert_eq!(edited(insert_head(html.as_bytes(), "X")), expected);
        }
    }

    #[test]
    fn bytes_before_the_document_type_need_not_be_utf8() {
        let html = [&[0xff; 20][..], b"<!DOCTYPE html><p>"].concat();
        let expected = [&[0xff; 20][..], b"<!DOCTYPE html>X<p>"].concat();
        assert_eq!(insert_head(&html, "X"), Ok(Some(expected)));
    }

    #[test]
    fn a_document_does_not_grow_beyond_what_can_be_decoded() {
        let html = "<i>".repeat(1000);
        let selector = Selector::parse("i").unwrap();
        let result = set_attribute(html.as_bytes(), &selector, "a", &"b".repeat(100_000));
        assert_eq!(result, Err(BodyError::TooLarge));
    }
}
