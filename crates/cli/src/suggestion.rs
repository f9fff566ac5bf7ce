//! Error messages for unknown ids and incomplete URLs, with suggestions.

use url::Url;

/// The similarity from which an id is suggested. clap uses the same for unknown arguments.
const MIN_SIMILARITY: f64 = 0.7;

/// Returns the error message for an id that is not among `ids`. `kind` is the singular
/// noun, such as `device`.
pub fn unknown_id<'a>(kind: &str, id: &str, ids: impl Iterator<Item = &'a str>) -> String {
    let ids: Vec<&str> = ids.collect();
    let list = ids.join(", ");
    match closest(id, &ids) {
        Some(suggestion) => {
            format!("unknown {kind} `{id}`, did you mean `{suggestion}`? Known {kind}s: {list}")
        }
        None => format!("unknown {kind} `{id}`; known {kind}s: {list}"),
    }
}

fn closest<'a>(id: &str, ids: &[&'a str]) -> Option<&'a str> {
    let id = id.to_lowercase();
    let similarity = |other: &str| strsim::jaro_winkler(&id, &other.to_lowercase());
    ids.iter()
        .map(|other| (similarity(other), *other))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, other)| other)
}

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
    fn a_similar_id_is_suggested_and_all_ids_are_listed() {
        let message = |id: &str| unknown_id("device", id, ["mobile", "iphone7"].into_iter());
        assert_eq!(
            message("phone"),
            "unknown device `phone`, did you mean `iphone7`? Known devices: mobile, iphone7"
        );
        assert_eq!(
            message("toaster"),
            "unknown device `toaster`; known devices: mobile, iphone7"
        );
    }

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
