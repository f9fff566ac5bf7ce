//! Reads cookies from a file in the format of Netscape, as curl and browser extensions write it.

use plumbline_seam::{Cookie, Secret};

/// The mark of cookies that scripts cannot read, at the beginning of a line.
const HTTP_ONLY: &str = "#HttpOnly_";

/// Returns the cookies of a jar that have not expired. An error names the line, and no value.
pub fn parse(text: &str, now_s: i64) -> Result<Vec<Cookie>, String> {
    let mut cookies = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (line, http_only) = match line.strip_prefix(HTTP_ONLY) {
            Some(rest) => (rest, true),
            None => (line, false),
        };
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let invalid = |reason: &str| format!("line {}: {reason}", index + 1);
        let fields: Vec<&str> = line.split('\t').collect();
        let [domain, subdomains, path, secure, expires, name, value] = fields[..] else {
            return Err(invalid("a cookie has seven fields, separated by tabs"));
        };
        let expires: i64 = expires
            .parse()
            .map_err(|_| invalid("the fifth field is the time of expiry in seconds"))?;
        // Zero is a cookie of the session.
        if expires != 0 && expires <= now_s {
            continue;
        }
        let host = domain.trim_start_matches('.');
        cookies.push(Cookie {
            name: name.to_owned(),
            value: Secret::from(value),
            domain: Some(if is_true(subdomains) {
                format!(".{host}")
            } else {
                host.to_owned()
            }),
            path: Some(path.to_owned()),
            secure: is_true(secure),
            http_only,
            same_site: None,
        });
    }
    Ok(cookies)
}

fn is_true(field: &str) -> bool {
    field.eq_ignore_ascii_case("true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_read_with_their_attributes_and_without_expired_ones() {
        let jar = "# Netscape HTTP Cookie File\n\n\
            .example.com\tTRUE\t/\tFALSE\t2000000000\tconsent\tyes\n\
            #HttpOnly_example.com\tFALSE\t/a\tTRUE\t0\tsession\tabc=1\n\
            example.com\tFALSE\t/\tFALSE\t1000\told\tx\n";
        let cookies = parse(jar, 1_700_000_000).unwrap();
        let summary: Vec<_> = cookies
            .iter()
            .map(|cookie| {
                let (domain, path) = (cookie.domain.as_deref(), cookie.path.as_deref());
                (
                    cookie.name.as_str(),
                    cookie.value.expose(),
                    domain,
                    path,
                    cookie.secure,
                    cookie.http_only,
                )
            })
            .collect();
        assert_eq!(
            summary,
            [
                (
                    "consent",
                    "yes",
                    Some(".example.com"),
                    Some("/"),
                    false,
                    false
                ),
                (
                    "session",
                    "abc=1",
                    Some("example.com"),
                    Some("/a"),
                    true,
                    true
                ),
            ]
        );
    }

    #[test]
    fn an_invalid_line_is_named_by_its_number() {
        for (line, reason) in [
            (
                "example.com FALSE / FALSE 0 a canary",
                "line 2: a cookie has seven fields",
            ),
            (
                "a\tFALSE\t/\tFALSE\tcanary\ta\tcanary",
                "line 2: the fifth field",
            ),
        ] {
            let error = parse(&format!("# jar\n{line}"), 0).unwrap_err();
            assert!(
                error.starts_with(reason) && !error.contains("canary"),
                "{error}"
            );
        }
    }
}
