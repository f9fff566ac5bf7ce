use url::Url;

/// Returns whether a host is the local machine by Lighthouse's rule (core/lib/url-utils.js), which
/// leaves out other loopback addresses.
pub fn is_localhost(host: &str) -> bool {
    host == "localhost" || host == "127.0.0.1" || host.ends_with(".localhost")
}

/// Returns whether two URLs are equal except for the fragment.
pub fn equal_without_fragment(one: &str, other: &str) -> bool {
    let without_fragment = |url: &str| {
        let mut url = Url::parse(url).ok()?;
        url.set_fragment(None);
        Some(url)
    };
    let one = without_fragment(one);
    one.is_some() && one == without_fragment(other)
}

/// Guesses the type of an image from the extension of its URL or, for `data:`, from the media type.
pub fn guess_image_type(url: &str) -> Option<&'static str> {
    const TYPES: [(&str, &str); 7] = [
        ("png", "image/png"),
        ("jpeg", "image/jpeg"),
        ("jpg", "image/jpeg"),
        ("svg", "image/svg+xml"),
        ("webp", "image/webp"),
        ("gif", "image/gif"),
        ("avif", "image/avif"),
    ];
    let url = Url::parse(url).ok()?;
    if url.scheme() == "data" {
        let (media_type, _) = url.path().split_once([';', ','])?;
        return TYPES
            .iter()
            .map(|(_, kind)| *kind)
            .find(|kind| *kind == media_type);
    }
    let path = url.path().to_ascii_lowercase();
    let (_, extension) = path.rsplit_once('.')?;
    let (_, image_type) = TYPES.iter().find(|(name, _)| *name == extension)?;
    Some(image_type)
}

/// Shortens a `data:` URL, which contains the whole content, to its beginning.
pub fn shorten_data_url(url: &str) -> String {
    const MAX_CHARS: usize = 100;
    if url.starts_with("data:") && url.chars().count() > MAX_CHARS {
        let start: String = url.chars().take(MAX_CHARS - 1).collect();
        return format!("{start}…");
    }
    url.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_does_not_make_another_document() {
        assert!(equal_without_fragment(
            "https://a.test/x#top",
            "https://a.test/x"
        ));
        assert!(!equal_without_fragment(
            "https://a.test/x",
            "https://a.test/y"
        ));
        assert!(!equal_without_fragment("nonsense", "nonsense"));
    }

    #[test]
    fn the_image_type_is_guessed_from_the_url() {
        assert_eq!(
            guess_image_type("https://a.test/x.JPG?v=1"),
            Some("image/jpeg")
        );
        assert_eq!(
            guess_image_type("data:image/svg+xml;utf8,<svg/>"),
            Some("image/svg+xml")
        );
        assert_eq!(guess_image_type("https://a.test/x.php"), None);
        assert_eq!(guess_image_type("x.png"), None);
    }

    #[test]
    fn only_data_urls_are_shortened() {
        let data = format!("data:text/plain,{}", "é".repeat(200));
        assert_eq!(shorten_data_url(&data).chars().count(), 100);
        let long = format!("https://a.test/{}", "x".repeat(200));
        assert_eq!(shorten_data_url(&long), long);
    }
}
