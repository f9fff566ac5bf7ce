//! Decides which URLs can be audited.
//!
//! The browser's parser repairs mistyped URLs: it drops tabs and newlines, trims spaces, converts
//! backslashes and finds a host in `http:example.com` or `http:///example.com`. Such URLs are
//! refused instead: the text that is stored, shown and visited should be the same, and a repaired
//! host could get around a check of the original one. Characters that should be escaped but are not
//! (`|`, `{`, `é`) are common in working links and are accepted.

use url::{Host, Url};

/// Returns whether `text` is an absolute http or https URL with a host and without user name and
/// password, and `may_visit` accepts its host.
pub(crate) fn is_auditable(
    text: &str,
    max_chars: usize,
    may_visit: &dyn Fn(&str, u16) -> bool,
) -> bool {
    if text.chars().count() > max_chars || text.chars().any(is_forbidden) {
        return false;
    }
    let Some(authority) = authority(text) else {
        return false;
    };
    // An `@` here is user info, even if the user name is empty.
    if authority.is_empty() || authority.contains('@') {
        return false;
    }
    let Ok(url) = Url::parse(text) else {
        return false;
    };
    let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return false;
    };
    port != 0 && can_be_resolved(&host) && may_visit(&host.to_string(), port)
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
        assert_eq!(is_auditable(text, 2048, &|_, _| true), expected, "{text:?}");
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
            assert!(!is_auditable(text, 2048, &refuse), "{text}");
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
            if is_auditable(&text, 2048, &|_, _| true) {
                let url = Url::parse(&text).unwrap();
                prop_assert!(matches!(url.scheme(), "http" | "https"));
                prop_assert!(url.username().is_empty() && url.password().is_none());
                prop_assert!(url.has_host());
            }
        }
    }
}
