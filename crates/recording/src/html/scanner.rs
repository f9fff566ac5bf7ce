//! Finds tags as the tokenizer of the HTML Standard does (13.2.5), but without a tree.

use std::collections::BTreeSet;
use std::ops::Range;

use memchr::memmem;

/// Elements whose content is text. Browsers that run scripts read `noscript` in this way, too.
const TEXT_ELEMENTS: [&str; 9] = [
    "script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript",
];

/// A start tag or an end tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The name in lower case.
    pub name: String,
    /// The position from `<` to `>`.
    pub span: Range<usize>,
    /// The position directly after the name.
    pub name_end: usize,
    pub attributes: Vec<Attribute>,
    pub is_end: bool,
}

impl Tag {
    /// Returns an attribute by its name in lower case.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|it| it.name == name)
    }

    /// Returns the value of an attribute.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.attribute(name).map(|it| it.value.as_str())
    }
}

/// An attribute of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attribute {
    /// The name in lower case.
    pub name: String,
    /// The value with its most frequent character references resolved.
    pub value: String,
    /// The position from the name to the end of the value with its quotes.
    pub span: Range<usize>,
}

/// Returns all tags of a document, one after the other: a document may have millions. Tags in
/// comments and scripts are none.
pub(crate) fn tags(html: &[u8]) -> impl Iterator<Item = Tag> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (tag, end) = next_tag(html, at)?;
        at = end;
        Some(tag)
    })
}

/// Returns the first tag at or after a position, and the position after it. After the tag of an
/// element whose content is text, that is the position of its end tag.
fn next_tag(html: &[u8], from: usize) -> Option<(Tag, usize)> {
    let mut at = from;
    loop {
        let start = position(html, at, |c| c == b'<')?;
        at = match html.get(start + 1..) {
            Some([b'!', b'-', b'-', ..]) => comment_end(html, start),
            Some([b'/', c, ..]) if c.is_ascii_alphabetic() => {
                let tag = parse_tag(html, start)?;
                let end = tag.span.end;
                return Some((tag, end));
            }
            Some([b'!' | b'?' | b'/', ..]) => {
                position(html, start, |c| c == b'>').map_or(html.len(), |end| end + 1)
            }
            Some([c, ..]) if c.is_ascii_alphabetic() => {
                let tag = parse_tag(html, start)?;
                let end = text_end(html, &tag);
                return Some((tag, end));
            }
            _ => start + 1,
        };
    }
}

/// Returns the position of a text at or after a position.
fn find(html: &[u8], from: usize, text: &[u8]) -> Option<usize> {
    let position = memmem::find(html.get(from..)?, text)?;
    Some(from + position)
}

/// Returns the end of a comment, which `<!-->` and `<!--->` end as well.
fn comment_end(html: &[u8], start: usize) -> usize {
    let content = start + "<!--".len();
    for short in [&b">"[..], b"->"] {
        if html[content..].starts_with(short) {
            return content + short.len();
        }
    }
    let mut at = content;
    while let Some(hyphens) = find(html, at, b"--") {
        match html[hyphens + 2..] {
            [b'>', ..] => return hyphens + 3,
            [b'!', b'>', ..] => return hyphens + 4,
            _ => at = hyphens + 1,
        }
    }
    html.len()
}

/// Returns the position after a start tag, or the position of the end tag if its content is text.
fn text_end(html: &[u8], tag: &Tag) -> usize {
    if tag.name == "plaintext" {
        return html.len();
    }
    if !TEXT_ELEMENTS.contains(&tag.name.as_str()) {
        return tag.span.end;
    }
    let mut at = tag.span.end;
    while let Some(start) = find(html, at, b"</") {
        let name = start + 2..start + 2 + tag.name.len();
        let has_name = html
            .get(name.clone())
            .is_some_and(|it| it.eq_ignore_ascii_case(tag.name.as_bytes()));
        let is_over = html.get(name.end).is_none_or(|c| ends_name(*c));
        if has_name && is_over {
            return start;
        }
        at = start + 2;
    }
    html.len()
}

fn is_blank(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

fn ends_name(c: u8) -> bool {
    is_blank(c) || matches!(c, b'/' | b'>')
}

/// Parses a tag. Returns `None` if the document ends within it.
fn parse_tag(html: &[u8], start: usize) -> Option<Tag> {
    let is_end = html[start + 1] == b'/';
    let name_start = start + 1 + usize::from(is_end);
    let name_end = position(html, name_start, ends_name)?;
    let mut attributes: Vec<Attribute> = Vec::new();
    let mut names = BTreeSet::new();
    let mut at = name_end;
    loop {
        at = position(html, at, |c| !is_blank(c) && c != b'/')?;
        if html[at] == b'>' {
            return Some(Tag {
                name: lower_case(&html[name_start..name_end]),
                span: start..at + 1,
                name_end,
                attributes,
                is_end,
            });
        }
        let attribute = parse_attribute(html, at)?;
        at = attribute.span.end;
        // The first of several attributes of the same name counts.
        if names.insert(attribute.name.clone()) {
            attributes.push(attribute);
        }
    }
}

fn parse_attribute(html: &[u8], start: usize) -> Option<Attribute> {
    // An equals sign at the beginning is part of the name.
    let name_end = position(html, start + 1, |c| ends_name(c) || c == b'=')?;
    let name = lower_case(&html[start..name_end]);
    let equals = position(html, name_end, |c| !is_blank(c))?;
    if html[equals] != b'=' {
        return Some(Attribute {
            name,
            value: String::new(),
            span: start..name_end,
        });
    }
    let value_start = position(html, equals + 1, |c| !is_blank(c))?;
    let (value, end) = match html[value_start] {
        quote @ (b'"' | b'\'') => {
            let end = position(html, value_start + 1, |c| c == quote)?;
            (value_start + 1..end, end + 1)
        }
        b'>' => (value_start..value_start, value_start),
        _ => {
            let end = position(html, value_start, |c| is_blank(c) || c == b'>')?;
            (value_start..end, end)
        }
    };
    Some(Attribute {
        name,
        value: resolved(&String::from_utf8_lossy(&html[value])),
        span: start..end,
    })
}

/// Returns the position of the first byte of a kind.
fn position(html: &[u8], from: usize, is_kind: impl Fn(u8) -> bool) -> Option<usize> {
    let position = html.get(from..)?.iter().position(|c| is_kind(*c))?;
    Some(from + position)
}

fn lower_case(name: &[u8]) -> String {
    String::from_utf8_lossy(&name.to_ascii_lowercase()).into_owned()
}

/// Resolves the character references that attributes with URLs contain in practice.
fn resolved(value: &str) -> String {
    let references = [
        ("&quot;", '"'),
        ("&#34;", '"'),
        ("&#39;", '\''),
        ("&#x27;", '\''),
        ("&#x2F;", '/'),
        ("&lt;", '<'),
        ("&gt;", '>'),
        ("&#38;", '&'),
        ("&amp;", '&'),
    ];
    let mut output = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(start) = rest.find('&') {
        output.push_str(&rest[..start]);
        rest = &rest[start..];
        let reference = references.iter().find(|(name, _)| rest.starts_with(name));
        let (length, c) = reference.map_or((1, '&'), |(name, c)| (name.len(), *c));
        output.push(c);
        rest = &rest[length..];
    }
    output + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns tags as text: `name attribute=value`, with a slash before end tags.
    fn listed(html: &str) -> Vec<String> {
        let to_text = |tag: &Tag| {
            let slash = if tag.is_end { "/" } else { "" };
            let attributes = tag.attributes.iter();
            let attributes = attributes.map(|it| format!(" {}={}", it.name, it.value));
            format!("{slash}{}{}", tag.name, attributes.collect::<String>())
        };
        tags(html.as_bytes()).map(|tag| to_text(&tag)).collect()
    }

    #[test]
    fn tags_and_attributes_are_read_in_all_their_forms() {
        for (html, expected) in [
            ("<p>", "p"),
            (
                "<P ID=a Class='b c'\ndata-x = \"d>e\" hidden>",
                "p id=a class=b c data-x=d>e hidden=",
            ),
            ("<a href=/b/c>", "a href=/b/c"),
            ("<br/>", "br"),
            ("<img src=a.png/>", "img src=a.png/"),
            ("<a x= >", "a x="),
            ("<a =b=c>", "a =b=c"),
            ("<a b=1 b=2>", "a b=1"),
            ("</p >", "/p"),
            ("<a href='?b=1&amp;c=2'>", "a href=?b=1&c=2"),
            ("<a href='&#38;lt;&x'>", "a href=&lt;&x"),
            ("<x-y a/b>", "x-y a= b="),
        ] {
            assert_eq!(listed(html), [expected], "{html}");
        }
    }

    #[test]
    fn text_that_is_no_tag_is_left_out() {
        for html in [
            "a < b > c",
            "<!-- <p> -->",
            "<!doctype html>",
            "<?xml <p>",
            "</ p>",
            "<p",
            "<p a='",
            "<>",
            "<",
            "",
        ] {
            assert!(listed(html).is_empty(), "{html}");
        }
        assert_eq!(listed("<!--><p><!---><b><!-- --!><i>"), ["p", "b", "i"]);
        let script = "<script>if (a<b) '<p>'</scripty>;</SCRIPT><i>";
        assert_eq!(listed(script), ["script", "/script", "i"]);
        assert_eq!(listed("<title><p></title><b>"), ["title", "/title", "b"]);
        assert_eq!(listed("<style><p>"), ["style"]);
    }

    /// This would take minutes if the time were quadratic.
    #[test]
    fn many_comments_and_attributes_are_read_in_one_pass() {
        let html = "<!---->".repeat(500_000) + "<p>";
        assert_eq!(listed(&html), ["p"]);
        let names: String = (0..200_000).map(|number| format!(" a{number}")).collect();
        let html = format!("<p{names}>");
        let tag = tags(html.as_bytes()).next().unwrap();
        assert_eq!(tag.attributes.len(), 200_000);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_scanner_panic(html in "[<>/!a-c='\" -]{0,40}") {
            for tag in tags(html.as_bytes()) {
                let text = &html[tag.span.clone()];
                prop_assert!(text.starts_with('<') && text.ends_with('>'));
                prop_assert!(tag.name_end < tag.span.end);
                for attribute in &tag.attributes {
                    prop_assert!(tag.span.start < attribute.span.start);
                    prop_assert!(attribute.span.end < tag.span.end);
                }
            }
        }
    }
}
