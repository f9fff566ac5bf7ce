//! URLs from an audited page as links.

/// A URL as a link, or as a text if a browser should not open it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Link {
    /// The target; `None` unless it is an HTTP URL.
    pub(super) href: Option<String>,
    /// The URL without what all URLs of the page have in common.
    pub(super) text: String,
}

impl Link {
    /// Creates the link of a URL on a page. URLs of the page's own origin are shown without it, and
    /// others without their scheme.
    pub(super) fn new(url: &str, page_url: &str) -> Self {
        let is_http = ["http://", "https://"].iter().any(|s| url.starts_with(s));
        if !is_http {
            return Self::text_only(url.to_owned());
        }
        let own = url.strip_prefix(origin(page_url));
        let own = own.filter(|path| path.starts_with(['/', '?', '#']));
        let without_scheme = || url.split_once("://").map_or(url, |(_, rest)| rest);
        Self {
            href: Some(url.to_owned()),
            text: own.unwrap_or_else(without_scheme).to_owned(),
        }
    }

    /// Creates a text that links to nothing.
    pub(super) fn text_only(text: String) -> Self {
        Self { href: None, text }
    }

    /// Creates the link of a position in a file: its text ends with the position.
    pub(super) fn to_position(url: &str, position: &str, page_url: &str) -> Self {
        let link = Self::new(url, page_url);
        Self {
            text: format!("{}:{position}", link.text),
            ..link
        }
    }
}

/// Returns scheme and authority of a URL.
fn origin(url: &str) -> &str {
    let Some(at) = url.find("://") else {
        return url;
    };
    let authority = &url[at + 3..];
    let end = authority.find(['/', '?', '#']).unwrap_or(authority.len());
    &url[..at + 3 + end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_does_not_repeat_the_origin_of_the_page() {
        let page = "https://a.test/blog/?x";
        for (url, text) in [
            ("https://a.test/css/app.css?v=1", "/css/app.css?v=1"),
            ("https://a.test/", "/"),
            ("https://a.test.evil.test/x", "a.test.evil.test/x"),
            ("https://cdn.test/x.js", "cdn.test/x.js"),
            ("http://a.test/x", "a.test/x"),
        ] {
            let link = Link::new(url, page);
            assert_eq!(link.href.as_deref(), Some(url));
            assert_eq!(link.text, text);
        }
        let position = Link::to_position("https://a.test/a.js", "12:3", page);
        assert_eq!(position.text, "/a.js:12:3");
        assert_eq!(position.href.as_deref(), Some("https://a.test/a.js"));
    }

    #[test]
    fn only_http_urls_are_links() {
        for url in [
            "javascript:alert(1)",
            "data:text/html,x",
            "Unattributable",
            "",
        ] {
            let link = Link::new(url, "https://a.test/");
            assert_eq!((link.href, link.text.as_str()), (None, url));
        }
    }
}
