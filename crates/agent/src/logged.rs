//! What of an address may be logged: scheme and host. Paths and queries may carry names and secrets,
//! and logs go to more readers than reports do.

use std::fmt;

/// Displays the scheme and host of a URL, and nothing else of it.
pub(crate) struct Site<'u>(pub(crate) &'u str);

impl fmt::Display for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once("://") {
            Some((scheme, rest)) => write!(f, "{scheme}://{}", host(rest)),
            None => f.write_str("an address without a host"),
        }
    }
}

/// The host at the beginning of what follows `://`, without user info and port.
fn host(rest: &str) -> &str {
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let place = authority
        .rsplit_once('@')
        .map_or(authority, |(_, place)| place);
    match place.find(']') {
        Some(end) => &place[..=end],
        None => place.split(':').next().unwrap_or_default(),
    }
}

/// Displays a text with every URL in it reduced to its [`Site`].
pub(crate) struct Redacted<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        for part in text.split_inclusive(is_between) {
            let word = part.trim_end_matches(is_between);
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

/// What separates a URL from the text around it.
fn is_between(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '(' | ')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_scheme_and_host_are_shown() {
        for (url, shown) in [
            ("https://example.com/a/b?token=1#x", "https://example.com"),
            ("http://example.com:8080/a", "http://example.com"),
            ("https://example.com?secret", "https://example.com"),
            ("https://example.com#secret", "https://example.com"),
            ("https://user:pass@example.com/", "https://example.com"),
            ("http://[2001:db8::1]:8080/a", "http://[2001:db8::1]"),
            ("https://example.com", "https://example.com"),
            ("data:text/html,secret", "an address without a host"),
        ] {
            assert_eq!(Site(url).to_string(), shown);
        }
    }

    #[test]
    fn every_address_in_a_text_is_reduced() {
        let text = "Chromium failed: invalid type: string \"https://a.example/secret?x=1\", \
                    at (http://b.example:1/path) and data:text/html,secret; see above";
        let shown = "Chromium failed: invalid type: string \"https://a.example\", \
                     at (http://b.example) and data:… see above";
        assert_eq!(Redacted(text).to_string(), shown);
        assert_eq!(Redacted("nothing of that").to_string(), "nothing of that");
    }
}
