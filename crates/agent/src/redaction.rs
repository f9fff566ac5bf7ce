//! Reduces URLs to scheme and host before they are logged. Paths and queries may contain names and
//! secrets, and more people read logs than reports. [`Secrets`] removes the secrets of a client
//! from evidence and messages.

mod encodings;
mod finder;
mod records;
mod secrets;

use std::fmt;

pub(crate) use secrets::Secrets;

/// Displays only the scheme and the host of a URL.
pub(crate) struct Site<'u>(pub(crate) &'u str);

impl fmt::Display for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once("://") {
            Some((scheme, rest)) => write!(f, "{scheme}://{}", host(rest)),
            None => f.write_str("URL without host"),
        }
    }
}

/// Returns the host from the part of a URL after `://`, without user info and port.
fn host(rest: &str) -> &str {
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let host_and_port = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host_and_port)| host_and_port);
    match host_and_port.find(']') {
        Some(end) => &host_and_port[..=end],
        None => host_and_port.split(':').next().unwrap_or_default(),
    }
}

/// Displays a text with every URL in it reduced to its [`Site`].
pub(crate) struct Redacted<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        for part in text.split_inclusive(is_delimiter) {
            let word = part.trim_end_matches(is_delimiter);
            let end = &part[word.len()..];
            if word.contains("://") {
                write!(f, "{}{end}", Site(word))?;
            } else if word.starts_with("data:") {
                write!(f, "data:…{end}")?;
            } else {
                f.write_str(part)?;
            }
        }
        Ok(())
    }
}

/// Whether a character separates a URL from the text around it.
fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '(' | ')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scheme_and_host_of_a_url_are_shown() {
        for (url, expected) in [
            ("https://example.com/a/b?token=1#x", "https://example.com"),
            ("http://example.com:8080/a", "http://example.com"),
            ("https://example.com?secret", "https://example.com"),
            ("https://example.com#secret", "https://example.com"),
            ("https://user:pass@example.com/", "https://example.com"),
            ("http://[2001:db8::1]:8080/a", "http://[2001:db8::1]"),
            ("https://example.com", "https://example.com"),
            ("data:text/html,secret", "URL without host"),
        ] {
            assert_eq!(Site(url).to_string(), expected);
        }
    }

    #[test]
    fn every_url_in_a_text_is_reduced() {
        let text = "Chromium failed: invalid type: string \"https://a.example/secret?x=1\", \
                    at (http://b.example:1/path) and data:text/html,secret; see above";
        let expected = "Chromium failed: invalid type: string \"https://a.example\", \
                        at (http://b.example) and data:… see above";
        assert_eq!(Redacted(text).to_string(), expected);
        assert_eq!(Redacted("no URL in it").to_string(), "no URL in it");
    }
}
