//! URLs of a recording: their servers and paths, and the exchange of the main document.

use url::{Host, Url};

use crate::{Endpoint, RecordedExchange, RecordedResponse, Recording};

/// The number of redirects that browsers follow.
const MAX_REDIRECTS: usize = 20;

impl Endpoint {
    /// Splits a URL into its server and its path with the query. Returns `None` unless it is an
    /// HTTP or HTTPS URL.
    pub fn split_url(url: &str) -> Option<(Self, String)> {
        Self::split(&Url::parse(url).ok()?)
    }

    pub(crate) fn split(url: &Url) -> Option<(Self, String)> {
        let is_secure = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let host = match url.host()? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let endpoint = Self {
            is_secure,
            host,
            port: url.port_or_known_default()?,
        };
        let query = url.query().map(|query| format!("?{query}"));
        let path = format!("{}{}", url.path(), query.unwrap_or_default());
        Some((endpoint, path))
    }

    /// Returns the host as URLs and the header `host` contain it: with brackets around IPv6
    /// addresses, and without a default port.
    pub(crate) fn authority(&self) -> String {
        let origin = self.to_string();
        let start = self.scheme().len() + "://".len();
        origin[start..].to_owned()
    }
}

impl Recording {
    /// Returns the position of the exchange with the main document: that of the visited URL, or of
    /// the URL to which it redirects.
    pub fn main_document(&self) -> Option<usize> {
        let mut url = Url::parse(&self.url).ok()?;
        for _ in 0..=MAX_REDIRECTS {
            let index = self.position_of(&url)?;
            let Some(target) = redirect_target(&url, &self.exchanges[index]) else {
                return Some(index);
            };
            url = target;
        }
        None
    }

    /// Returns the position of the first `GET` request for a URL that has a response.
    pub(crate) fn position_of(&self, url: &Url) -> Option<usize> {
        let (endpoint, path) = Endpoint::split(url)?;
        self.exchanges.iter().position(|exchange| {
            exchange.method == "GET"
                && exchange.endpoint == endpoint
                && exchange.path == path
                && exchange.response.is_some()
        })
    }
}

impl RecordedExchange {
    /// Returns whether the response is a document.
    pub(crate) fn is_document(&self) -> bool {
        let media_type = self.response.as_ref().map(RecordedResponse::media_type);
        matches!(
            media_type.as_deref(),
            Some("text/html" | "application/xhtml+xml")
        )
    }
}

/// Returns the URL to which a response redirects.
fn redirect_target(url: &Url, exchange: &RecordedExchange) -> Option<Url> {
    let response = exchange.response.as_ref()?;
    if !matches!(response.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    url.join(response.header("location")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exchange, recording_of};

    #[test]
    fn urls_are_split_into_server_and_path() {
        for (url, origin, path) in [
            ("https://A.test", "https://a.test", "/"),
            ("http://a.test:8080/b?c=d#e", "http://a.test:8080", "/b?c=d"),
            ("https://[::1]:443/", "https://[::1]", "/"),
            ("https://a.test/?", "https://a.test", "/?"),
        ] {
            let (endpoint, rest) = Endpoint::split_url(url).unwrap();
            assert_eq!(
                (endpoint.to_string().as_str(), rest.as_str()),
                (origin, path)
            );
            assert_eq!(
                Endpoint::split_url(&format!("{endpoint}{rest}")).unwrap().0,
                endpoint
            );
        }
        for url in ["data:,a", "a.test", "wss://a.test/", "about:blank"] {
            assert_eq!(Endpoint::split_url(url), None);
        }
    }

    #[test]
    fn the_main_document_is_found_through_redirects() {
        let mut redirect = exchange("http://a.test/", "text/html", "");
        let response = redirect.response.as_mut().unwrap();
        response.status = 301;
        response.set_header("location", "/b");
        let mut second = exchange("http://a.test/b", "text/html", "");
        let response = second.response.as_mut().unwrap();
        response.status = 302;
        response.set_header("location", "https://a.test/c#d");
        let image = exchange("https://a.test/i.png", "image/png", "");
        let document = exchange("https://a.test/c", "text/html", "");
        let mut recording = recording_of(vec![redirect.clone(), second, image, document]);
        recording.url = "http://a.test/#top".to_owned();
        assert_eq!(recording.main_document(), Some(3));

        redirect
            .response
            .as_mut()
            .unwrap()
            .set_header("location", "/");
        assert_eq!(recording_of(vec![redirect]).main_document(), None);
        assert_eq!(Recording::default().main_document(), None);
    }
}
