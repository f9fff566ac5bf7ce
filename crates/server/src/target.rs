//! Decides which URLs can be audited.
//!
//! The browser's parser repairs mistyped URLs: it drops tabs and newlines, trims spaces, converts
//! backslashes and finds a host in `http:example.com` or `http:///example.com`. Such URLs are
//! refused instead: the text that is stored, shown and visited should be the same, and a repaired
//! host could get around a check of the original one. Characters that should be escaped but are not
//! (`|`, `{`, `é`) are common in working links and are accepted.

use url::{Host, Url};

/// Checks that `text` is an absolute http or https URL with a host and without user name and
/// password, and that `may_visit` accepts its host. The error is a sentence for people.
pub(crate) fn check_auditable(
    text: &str,
    max_chars: usize,
    may_visit: &dyn Fn(&str, u16) -> bool,
) -> Result<(), String> {
    let chars = text.chars().count();
    if chars > max_chars {
        return Err(format!(
            "The URL has {chars} characters; at most {max_chars} are allowed."
        ));
    }
    let (host, port) = host_of(text)?;
    if may_visit(&host, port) {
        Ok(())
    } else {
        Err(format!(
            "This server may not visit `{host}`: its operator allows no such addresses."
        ))
    }
}

/// Returns the host and the port of a URL that can be audited.
fn host_of(text: &str) -> Result<(String, u16), &'static str> {
    if text.chars().any(is_forbidden) {
        return Err("The URL contains spaces, control characters or backslashes.");
    }
    let authority = authority(text)
        .ok_or("The URL must be absolute and begin with `http://` or `https://`.")?;
    // An `@` here is user info, even if the user name is empty.
    if authority.contains('@') {
        return Err("A URL must not contain a user name and password.");
    }
    let url = Url::parse(text);
    let url = url.map_err(|_| "The URL has no valid host or port.")?;
    let host = url.host().filter(|_| !authority.is_empty());
    let host = host.filter(can_be_resolved);
    let host = host.ok_or("The URL has no valid host.")?;
    let port = url.port_or_known_default().filter(|port| *port != 0);
    let port = port.ok_or("The URL has no valid port.")?;
    Ok((host.to_string(), port))
}

fn is_forbidden(c: char) -> bool {
    c.is_whitespace() || c.is_control() || c == '\\'
}

/// Returns the text between `//` and the path.
fn authority(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    is_web.then(|| rest.split(['/', '?', '#']).next().unwrap_or_default())
}

/// Returns whether a name server can have this name, because the parser accepts more (RFC 1035,
/// 2.3.4: 63 octets per label, 253 in total as text; letters, digits and hyphens, and the
/// underscore that some real hosts have).
fn can_be_resolved(host: &Host<&str>) -> bool {
    let Host::Domain(name) = host else {
        return true;
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: bool) {
        assert_eq!(is_auditable(text, &|_, _| true), expected, "{text:?}");
    }

    fn is_auditable(text: &str, may_visit: &dyn Fn(&str, u16) -> bool) -> bool {
        check_auditable(text, 2048, may_visit).is_ok()
    }

    #[test]
    fn each_defect_has_its_own_reason() {
        for (text, reason) in [
            (
                "ftp://example.com/",
                "must be absolute and begin with `http://`",
            ),
            ("example.com", "must be absolute"),
            ("https://user:secret@example.com/", "user name and password"),
            ("https://example.com/a b", "contains spaces"),
            ("https://a..b/", "no valid host."),
            ("https:///x", "no valid host."),
            ("https://example.com:0/", "no valid port."),
            ("https://example.com:99999/", "no valid host or port."),
            ("http://10.0.0.1/", "may not visit `10.0.0.1`"),
        ] {
            let error = check_auditable(text, 50, &|host, _| host != "10.0.0.1").unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let long = format!("https://example.com/{}", "x".repeat(40));
        let error = check_auditable(&long, 50, &|_, _| true).unwrap_err();
        assert_eq!(error, "The URL has 60 characters; at most 50 are allowed.");
    }

    #[test]
    fn ordinary_links_are_accepted() {
        for text in [
            "http://example.com",
            "https://example.com/",
            "HTTPS://Example.COM/a/../b?q=1&r=a%20b#top",
            "https://example.com:8443/x",
            "https://example.com:/",
            "https://example.com.",
            "https://example.com?x",
            "https://example.com#x",
            "https://example.com/a@b",
            "https://example.com/?next=https://user@other.example",
            "https://my_host.example.com/",
            "https://xn--bcher-kva.example/",
            "https://bücher.example/straße?q=ü",
            "https://例え.テスト/",
            "http://93.184.215.14/",
            "http://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/",
            "https://example.com/a|b{c}",
            "https://example.com/%zz",
            "http://localhost",
        ] {
            check(text, true);
        }
    }

    #[test]
    fn a_text_that_is_not_a_web_address_is_refused() {
        for text in [
            "",
            " ",
            "x",
            "example.com",
            "www.example.com/path",
            "//example.com",
            "/path",
            "http",
            "http:",
            "http:/",
            "http://",
            "https://",
            "http:///",
            "http://?x",
            "http://#x",
            "ftp://example.com",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/html,x",
            "about:blank",
            "chrome://version",
            "view-source:http://example.com",
            "ws://example.com",
            "blob:https://example.com/x",
            "mailto:a@example.com",
            "htp://example.com",
            "http//example.com",
            "https//example.com",
            "http ://example.com",
        ] {
            check(text, false);
        }
    }

    #[test]
    fn a_url_that_a_browser_would_repair_is_refused() {
        for text in [
            " https://example.com",
            "https://example.com ",
            "\thttps://example.com",
            "https://example.com\n",
            "https://exa\nmple.com",
            "ht\ttp://example.com",
            "https://example.com/a b",
            "https://example.com/\u{a0}x",
            "https://example.com/\0",
            "https://example.com/\u{7f}",
            "https://example.com/\u{85}",
            "https:\\\\example.com",
            "https://example.com\\@evil.example",
            "https://example.com/a\\b",
            "http:example.com",
            "http:/example.com",
            "http:///example.com",
            "https:////example.com",
            "\u{feff} https://example.com",
        ] {
            check(text, false);
        }
    }

    #[test]
    fn user_info_is_refused() {
        for text in [
            "https://user:secret@example.com",
            "https://user@example.com",
            "https://@example.com",
            "https://:@example.com",
            "https://a@b@example.com",
            "https://user%40x@example.com/",
        ] {
            check(text, false);
        }
    }

    #[test]
    fn impossible_hosts_and_ports_are_refused() {
        let label = "a".repeat(64);
        let name = ["a".repeat(63).as_str(); 4].join(".");
        for text in [
            "https://example.com:99999",
            "https://example.com:0",
            "https://example.com:x",
            "https://example.com:-1",
            "https://:443",
            "https://.",
            "https://..",
            "https://a..b",
            "https://.example.com",
            "https://[::1",
            "https://[fe80::1%25eth0]",
            "https://1.2.3.4.5",
            "https://256.1.1.1",
            "https://exa$mple.com",
            "https://exa%20mple.com",
            "https://ex^.com",
            "https://a,b.com",
            "https://*.example.com",
            "https://%00.com",
            "https://xn--a.example",
            &format!("https://{label}.com"),
            &format!("https://{name}"),
        ] {
            check(text, false);
        }
    }

    #[test]
    fn length_is_counted_in_characters_as_given() {
        let longest = format!("https://example.com/{}", "ü".repeat(2028));
        assert_eq!(longest.chars().count(), 2048);
        check(&longest, true);
        check(&format!("{longest}x"), false);
    }

    #[test]
    fn the_guard_checks_the_host_that_would_be_visited() {
        let checked = RefCell::new(Vec::new());
        let refuse = |host: &str, port: u16| {
            checked.borrow_mut().push((host.to_owned(), port));
            false
        };
        for text in [
            "http://EXAMPLE.com/",
            "https://bücher.example:81",
            "http://2130706433",
            "http://0x7f.1/",
            "http://127。0。0。1:8080",
            "https://[::ffff:127.0.0.1]",
        ] {
            assert!(!is_auditable(text, &refuse), "{text}");
        }
        let checked = checked.into_inner();
        let checked: Vec<_> = checked
            .iter()
            .map(|(host, port)| (host.as_str(), *port))
            .collect();
        assert_eq!(
            checked,
            [
                ("example.com", 80),
                ("xn--bcher-kva.example", 81),
                ("127.0.0.1", 80),
                ("127.0.0.1", 80),
                ("127.0.0.1", 8080),
                ("[::ffff:7f00:1]", 443),
            ]
        );
    }

    proptest! {
        #[test]
        fn an_accepted_url_parses_to_a_web_address_without_user_info(text in "(https?:)?[/\\\\@:]{0,3}\\PC{0,40}") {
            if is_auditable(&text, &|_, _| true) {
                let url = Url::parse(&text).unwrap();
                prop_assert!(matches!(url.scheme(), "http" | "https"));
                prop_assert!(url.username().is_empty() && url.password().is_none());
                prop_assert!(url.has_host());
            }
        }
    }
}
