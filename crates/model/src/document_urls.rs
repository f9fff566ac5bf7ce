//! The URLs of the document of a visit, and whether a redirect led to another page.

use serde::{Deserialize, Serialize};

/// The URLs between which the request for the document was redirected, by servers or by documents
/// themselves, as the browser writes them. A URL that a script only displays is none of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentUrls {
    /// The URL of the first request.
    pub first: String,
    /// The URL from which the measured document was received.
    pub received: String,
}

/// Returns the URL of the document if it is another page than the requested one. Reports of earlier
/// versions have no `urls`; theirs are the requested and the final one.
pub(crate) fn redirected_to<'a>(
    urls: Option<&'a DocumentUrls>,
    requested_url: &str,
    final_url: Option<&'a str>,
) -> Option<&'a str> {
    let (first, received) = match urls {
        Some(urls) => (urls.first.as_str(), urls.received.as_str()),
        None => (requested_url, final_url?),
    };
    (host_and_path(first) != host_and_path(received)).then_some(received)
}

/// Returns what identifies a page. A redirect to HTTPS, a slash at the end, a query and a fragment
/// do not make another page.
fn host_and_path(url: &str) -> (String, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let page = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = page.split_once('/').unwrap_or((page, ""));
    (host.to_ascii_lowercase(), path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTED: &str = "http://example.com/shop";

    #[test]
    fn a_redirect_to_another_host_or_path_is_one_to_another_page() {
        for same in [
            "https://example.com/shop",
            "https://EXAMPLE.com/shop/",
            "http://example.com/shop?page=1#top",
        ] {
            assert_eq!(redirected_to(None, REQUESTED, Some(same)), None, "{same}");
        }
        for other in [
            "http://example.com/",
            "http://example.com/login?next=/shop",
            "http://www.example.com/shop",
            "http://example.com:8080/shop",
            "http://example.com/Shop",
        ] {
            assert_eq!(redirected_to(None, REQUESTED, Some(other)), Some(other));
        }
        assert_eq!(redirected_to(None, REQUESTED, None), None);
    }

    #[test]
    fn the_urls_of_requests_decide_and_not_the_spelling_or_the_history() {
        let between = |first: &str, received: &str| DocumentUrls {
            first: first.to_owned(),
            received: received.to_owned(),
        };
        let same = between(REQUESTED, REQUESTED);
        let by_history = Some("http://example.com/login");
        assert_eq!(redirected_to(Some(&same), REQUESTED, by_history), None);
        let spelled = "http://EXAMPLE.com/x/../shop";
        assert_eq!(redirected_to(Some(&same), spelled, Some(REQUESTED)), None);
        let redirected = between(REQUESTED, "http://example.com/login");
        assert_eq!(
            redirected_to(Some(&redirected), REQUESTED, Some(REQUESTED)),
            Some("http://example.com/login")
        );
    }
}
