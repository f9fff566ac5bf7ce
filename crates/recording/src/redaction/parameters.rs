//! Secrets in URLs.

use std::collections::BTreeSet;

use super::{mask_of, names, percent};

/// Characters that end a URL in a header.
const URL_ENDS: &str = "\"'<> ";

/// Masks the values of parameters with telling names, and credentials before a host. The text is a
/// URL, or contains some.
pub fn masked(text: &str, values: &mut BTreeSet<String>) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['?', '&', '#', ';']) {
        let (before, after) = rest.split_at(start + 1);
        output.push_str(before);
        rest = after;
        let end = rest.find(|c| "?&#;".contains(c) || URL_ENDS.contains(c));
        // A comma is a part of a value, unless it separates the URL from what follows.
        let parameter = rest[..end.unwrap_or(rest.len())].trim_end_matches(',');
        if let Some((name, value)) = parameter.split_once('=')
            && names::is_secret_parameter(&percent::decode(name))
        {
            remember(value, values);
            output.push_str(name);
            output.push('=');
            output.push_str(&mask_of(value));
            rest = &rest[parameter.len()..];
        }
    }
    output.push_str(rest);
    masked_credentials(&output, values)
}

/// Adds a value as it is written and as it is meant.
pub fn remember(value: &str, values: &mut BTreeSet<String>) {
    if value.is_empty() {
        return;
    }
    values.insert(value.to_owned());
    let decoded = percent::decode(value);
    // A replacement character means that the value was not percent-encoded text.
    if !decoded.contains('\u{fffd}') {
        values.insert(decoded);
    }
}

/// Masks `user:password` in `https://user:password@host/`.
fn masked_credentials(text: &str, values: &mut BTreeSet<String>) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://") {
        let (before, after) = rest.split_at(start + "://".len());
        output.push_str(before);
        rest = after;
        let end = rest.find(|c| "/?#".contains(c) || URL_ENDS.contains(c));
        let authority = rest[..end.unwrap_or(rest.len())].trim_end_matches(',');
        if let Some((credentials, _)) = authority.rsplit_once('@') {
            for part in credentials.split(':') {
                remember(part, values);
                output.push_str(&mask_of(part));
                output.push(':');
            }
            output.pop();
            rest = &rest[credentials.len()..];
        }
    }
    output.push_str(rest);
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_masked_by_the_names_of_parameters() {
        for (text, expected) in [
            ("/a?token=abc&b=c", "/a?token=xxx&b=c"),
            ("/a?b=c&Access_Token=abc#d", "/a?b=c&Access_Token=xxx#d"),
            ("/a#id_token=abc&state=1", "/a#id_token=xxx&state=1"),
            ("/a?access%5Ftoken=abc", "/a?access%5Ftoken=xxx"),
            ("/a?token=a=b", "/a?token=xxx"),
            ("/a?token=&token", "/a?token=&token"),
            ("/a?keyword=b", "/a?keyword=b"),
            ("</a?sig=abc>; rel=preload", "</a?sig=xxx>; rel=preload"),
            ("https://u:pw@a.test/b@c?d", "https://x:xx@a.test/b@c?d"),
            (
                "https://a.test/?u=https://u@b.test/",
                "https://a.test/?u=https://x@b.test/",
            ),
            ("/é?code=é", "/é?code=xx"),
            ("/a?token=abc,def&b=c", "/a?token=xxxxxxx&b=c"),
            ("/a?token=abc,", "/a?token=xxx,"),
        ] {
            assert_eq!(masked(text, &mut BTreeSet::new()), expected);
        }
    }

    #[test]
    fn values_are_remembered_as_written_and_as_meant() {
        let mut values = BTreeSet::new();
        masked("https://u:p%40w@a.test/?key=a%2Bb", &mut values);
        let expected = ["a%2Bb", "a+b", "p%40w", "p@w", "u"].map(str::to_owned);
        assert_eq!(values, BTreeSet::from(expected));
    }
}
