//! URLs as people type them.

use url::Url;

/// Completes a URL that has no scheme: returns `https://example.com/` for
/// `example.com`.
pub fn with_scheme(text: &str) -> Option<Url> {
    if text.contains("://") {
        return None;
    }
    let url = Url::parse(&format!("https://{text}")).ok()?;
    let is_local = match url.host()? {
        url::Host::Domain(name) => name == "localhost",
        url::Host::Ipv4(_) | url::Host::Ipv6(_) => true,
    };
    if is_local {
        return Url::parse(&format!("http://{text}")).ok();
    }
    url.host_str()?.contains('.').then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_is_added_to_hosts_only() {
        for (text, url) in [
            ("example.com", Some("https://example.com/")),
            (
                "example.com:8443/shop?a=1",
                Some("https://example.com:8443/shop?a=1"),
            ),
            ("localhost:3000", Some("http://localhost:3000/")),
            ("127.0.0.1", Some("http://127.0.0.1/")),
            ("ftp://example.com/", None),
            ("shop", None),
            ("", None),
        ] {
            let suggested = with_scheme(text).map(String::from);
            assert_eq!(suggested.as_deref(), url, "{text}");
        }
    }
}
