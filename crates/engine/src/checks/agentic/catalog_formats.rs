//! The formats of texts in `ai-catalog.json`, as far as ajv-formats, which Lighthouse uses, checks
//! them.

use url::Host;

/// Returns whether a text is a URN of the form `urn:air:<publisher>:<name>`, with any number of
/// namespaces between the two.
pub(super) fn is_urn(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("urn:air:") else {
        return false;
    };
    let is_word = |word: &str, more: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    match rest.split_once(':') {
        Some((publisher, names)) => {
            is_word(publisher, ".-") && names.split(':').all(|name| is_word(name, "._-"))
        }
        None => false,
    }
}

/// Returns whether a text is a URI with a scheme (RFC 3986).
pub(super) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let is_scheme_char = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(is_scheme_char)
    {
        return false;
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (hierarchy, query) = rest.split_once('?').unwrap_or((rest, ""));
    has_only(fragment, "/?")
        && has_only(query, "/?")
        && !hierarchy.is_empty()
        && (has_only(hierarchy, "/") || has_ipv6_host(hierarchy))
}

/// Returns whether a text consists of characters of path segments, percent-encoded bytes and
/// `more` characters.
fn has_only(text: &str, more: &str) -> bool {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if c == '%' {
            let digits = rest.get(1..3).unwrap_or_default();
            if digits.len() != 2 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return false;
            }
            3
        } else if c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(c) || more.contains(c) {
            1
        } else {
            return false;
        };
        rest = &rest[length..];
    }
    true
}

/// Returns whether this is an authority with an IPv6 address, and a path.
fn has_ipv6_host(hierarchy: &str) -> bool {
    let parts = || {
        let (user, after) = hierarchy.strip_prefix("//")?.split_once('[')?;
        let (address, after) = after.split_once(']')?;
        let path_at = after.find('/').unwrap_or(after.len());
        Some((user, address, after.split_at(path_at)))
    };
    parts().is_some_and(|(user, address, (port, path))| {
        let is_port = port
            .strip_prefix(':')
            .is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
        (user.is_empty() || (user.ends_with('@') && has_only(user, "")))
            && Host::parse(&format!("[{address}]")).is_ok()
            && (port.is_empty() || is_port)
            && has_only(path, "/")
    })
}

/// Returns whether a text is a date and a time with a zone (RFC 3339).
pub(super) fn is_date_time(text: &str) -> bool {
    let mut parts = text.split(|c: char| matches!(c, 't' | 'T') || c.is_whitespace());
    match (parts.next(), parts.next(), parts.next()) {
        (Some(date), Some(time), None) => {
            is_date(date).unwrap_or(false) && is_time(time).unwrap_or(false)
        }
        _ => false,
    }
}

/// Returns a number of two digits at the start of a text, and the rest of the text.
fn two_digits(text: &str) -> Option<(i32, &str)> {
    let digits = text
        .get(..2)
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))?;
    Some((digits.parse().ok()?, &text[2..]))
}

fn is_date(text: &str) -> Option<bool> {
    let (century, rest) = two_digits(text)?;
    let (year, rest) = two_digits(rest)?;
    let (month, rest) = two_digits(rest.strip_prefix('-')?)?;
    let (day, rest) = two_digits(rest.strip_prefix('-')?)?;
    let year = century * 100 + year;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    Some(rest.is_empty() && (1..=days).contains(&day))
}

fn is_time(text: &str) -> Option<bool> {
    let (hour, rest) = two_digits(text)?;
    let (minute, rest) = two_digits(rest.strip_prefix(':')?)?;
    let (second, mut rest) = two_digits(rest.strip_prefix(':')?)?;
    if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction
            .find(|c: char| !c.is_ascii_digit())
            .filter(|end| *end > 0)?;
        rest = &fraction[end..];
    }
    let (zone_hour, zone_minute) = match rest {
        "z" | "Z" => (0, 0),
        zone => {
            let (hour, rest) = two_digits(zone.strip_prefix(['+', '-'])?)?;
            let (minute, rest) = match rest {
                "" => (0, ""),
                rest => two_digits(rest.strip_prefix(':').unwrap_or(rest))?,
            };
            if !rest.is_empty() {
                return None;
            }
            (hour, minute)
        }
    };
    if zone_hour > 23 || zone_minute > 59 {
        return None;
    }
    if hour <= 23 && minute <= 59 && second <= 59 {
        return Some(true);
    }
    // A leap second is the last second of a day in UTC.
    let sign = if rest.starts_with('-') { -1 } else { 1 };
    let utc_minute = minute - zone_minute * sign;
    let utc_hour = hour - zone_hour * sign - i32::from(utc_minute < 0);
    Some(second == 60 && [23, -1].contains(&utc_hour) && [59, -1].contains(&utc_minute))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urns_have_a_publisher_and_a_name() {
        for urn in ["urn:air:a:b", "urn:air:a.test:x:y:z_1", "urn:air:A-1:b.c"] {
            assert!(is_urn(urn), "{urn}");
        }
        for text in [
            "",
            "urn:air:",
            "urn:air:a",
            "urn:air:a:",
            "urn:air:a::b",
            "urn:air:a_b:c",
            "URN:air:a:b",
        ] {
            assert!(!is_urn(text), "{text}");
        }
    }

    #[test]
    fn uris_have_a_scheme_and_valid_characters() {
        for uri in [
            "https://a.test",
            "https://a.test/x%20y?q=1#f",
            "mailto:a@b.test",
            "urn:air:a:b",
            "https://[::1]:8080/x",
            "https://u@[2001:db8::1]",
            "a:/",
        ] {
            assert!(is_uri(uri), "{uri}");
        }
        for text in [
            "",
            "a",
            "/x",
            "https:",
            ":x",
            "1a:b",
            "https://a.test/ x",
            "https://a.test/%2",
            "https://a.test/é",
            "https://[::g]/",
            "https://a.test/#a#b",
            "https://[::1]x/",
        ] {
            assert!(!is_uri(text), "{text}");
        }
    }

    #[test]
    fn date_times_have_a_zone() {
        for text in [
            "2026-09-18T12:00:00Z",
            "2024-02-29t23:59:60z",
            "2026-09-18 12:00:00.125+02:00",
            "2026-09-18T12:00:00-0530",
        ] {
            assert!(is_date_time(text), "{text}");
        }
        for text in [
            "",
            "2026-09-18",
            "2026-09-18T12:00:00",
            "2026-02-29T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-09-18T24:00:00Z",
            "2026-09-18T12:00Z",
            "2026-09-18T12:00:00+24:00",
            "2026-09-18T12:00:00.Z",
            "2026-9-18T12:00:00Z",
            "2026-09-18T12:00:00+02:",
        ] {
            assert!(!is_date_time(text), "{text}");
        }
    }
}
