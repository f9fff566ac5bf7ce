//! The URL of a page as a user types it.

use plumbline_seam::with_scheme;
use url::Url;

/// Parses the URL of a page, whose scheme may be missing. The error says what to write.
pub fn parse(text: &str) -> Result<Url, String> {
    let url = with_scheme(text).map_or_else(|| Url::parse(text), Ok);
    // Without a scheme, a user name is taken for one.
    let completed = Url::parse(&format!("https://{text}"));
    let has_credentials = |url: &Url| !url.username().is_empty() || url.password().is_some();
    if [&url, &completed]
        .into_iter()
        .flatten()
        .any(has_credentials)
    {
        return Err(
            "a user name and a password do not belong into the URL; audits take them with \
             --basic-auth USER:PASSWORD"
                .to_owned(),
        );
    }
    match (url, completed) {
        (Ok(url), _) if matches!(url.scheme(), "http" | "https") => Ok(url),
        (Ok(_), _) => Err(format!(
            "`{text}` is not an http or https URL, such as `https://example.com/`"
        )),
        (Err(_), Ok(completed)) if !text.contains('/') => {
            let rest = completed.as_str().trim_start_matches("https://");
            Err(format!(
                "`{text}` is not a URL; write `http://{rest}` or `https://{rest}`"
            ))
        }
        (Err(_), _) => Err(format!(
            "`{text}` is not a URL; write one such as `https://example.com/`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_may_lack_its_scheme() {
        for (text, url) in [
            ("https://example.com/a", "https://example.com/a"),
            ("example.com", "https://example.com/"),
            ("localhost:8080", "http://localhost:8080/"),
        ] {
            assert_eq!(parse(text).map(String::from), Ok(url.to_owned()));
        }
    }

    #[test]
    fn an_error_says_what_to_write() {
        for (text, expected) in [
            (
                "foo",
                "`foo` is not a URL; write `http://foo/` or `https://foo/`",
            ),
            (
                "foo bar",
                "`foo bar` is not a URL; write one such as `https://example.com/`",
            ),
            ("", "`` is not a URL; write one such as"),
            (
                "ftp://a.test/",
                "`ftp://a.test/` is not an http or https URL",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn credentials_are_refused_and_not_repeated() {
        for text in [
            "user:canary@x",
            "user:canary@x.test",
            "https://canary@x.test/a",
        ] {
            let error = parse(text).unwrap_err();
            assert!(
                error.starts_with("a user name and a password do not"),
                "{error}"
            );
            assert!(!error.contains("canary"), "{error}");
        }
    }
}
