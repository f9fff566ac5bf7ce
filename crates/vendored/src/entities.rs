//! Organisations by the domains they serve from: the table of third-party-web.
//!
//! The data is embedded under the MIT licence. The rules by which a URL is assigned to an
//! organisation are those of that package, so that Lighthouse and Plumbline group requests alike.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

pub const VERSION: &str = env!("ENTITIES_VERSION");

/// The licence of the data (MIT), to be distributed with the binary.
pub const LICENSE: &str = include_str!(concat!(env!("OUT_DIR"), "/entities-license.txt"));

const TABLE: &str = include_str!(concat!(env!("OUT_DIR"), "/entities.tsv"));

/// Returns the organisation that serves from the URL's domain, if it is known.
pub fn organisation(url: &str) -> Option<&'static str> {
    let domain = domain(url)?;
    let root = root_of(domain);
    let tables = tables();
    if let Some(name) = tables.exact.get(domain) {
        return Some(name);
    }
    let mut below = domain;
    while below.len() > root.len() {
        if let Some(name) = tables.subdomains.get(below) {
            return Some(name);
        }
        below = below.split_once('.').map_or("", |(_, rest)| rest);
    }
    tables.roots.get(root).copied()
}

/// Returns the organisation, or else the registered domain; `None` if the URL has no host.
pub fn organisation_or_domain(url: &str) -> Option<Cow<'static, str>> {
    if let Some(name) = organisation(url) {
        return Some(Cow::Borrowed(name));
    }
    url.starts_with("http")
        .then(|| root_domain(url).map(Cow::Owned))
        .flatten()
}

/// Returns the registered domain, such as `b.co.uk` for `https://a.b.co.uk/`. It is guessed from
/// the shape of the name, as in third-party-web.
pub fn root_domain(url: &str) -> Option<String> {
    domain(url).map(|domain| root_of(domain).to_owned())
}

struct Tables {
    exact: HashMap<&'static str, &'static str>,
    roots: HashMap<&'static str, &'static str>,
    subdomains: HashMap<&'static str, &'static str>,
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut tables = Tables {
            exact: HashMap::new(),
            roots: HashMap::new(),
            subdomains: HashMap::new(),
        };
        for (domain, name) in TABLE.lines().filter_map(|line| line.split_once('\t')) {
            tables.exact.insert(domain, name);
            if let Some(below) = domain.strip_prefix("*.") {
                let is_root = root_of(below) == below;
                let table = if is_root {
                    &mut tables.roots
                } else {
                    &mut tables.subdomains
                };
                table.insert(below, name);
            }
        }
        tables
    })
}

/// Returns the first part of the URL that looks like a domain, or `localhost`.
fn domain(url: &str) -> Option<&str> {
    const MAX_LENGTH: usize = 10_000;
    if url.len() > MAX_LENGTH || url.starts_with("data:") {
        return None;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    url.split(|c| !is_part(c)).find_map(|run| {
        let last = run.rfind(|c: char| !c.is_ascii_alphanumeric());
        // At least one character, a dot, and a letter or digit after it.
        let has_dot = run.char_indices().rev().find(|&(at, c)| {
            let after = run.as_bytes().get(at + 1);
            c == '.' && at > 0 && after.is_some_and(u8::is_ascii_alphanumeric)
        });
        match has_dot {
            Some((dot, _)) => {
                let rest = &run[dot + 1..];
                let ends = rest.find(|c: char| !c.is_ascii_alphanumeric());
                Some(&run[..ends.map_or(run.len(), |ends| dot + 1 + ends)])
            }
            None if last.is_none() && run.eq_ignore_ascii_case("localhost") => Some(run),
            None => None,
        }
    })
}

fn root_of(domain: &str) -> &str {
    let parts: Vec<&str> = domain.split('.').collect();
    let is_address = parts.len() == 4
        && parts
            .iter()
            .all(|part| (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()));
    if is_address || parts.len() < 2 {
        return domain;
    }
    let [second, top] = [parts[parts.len() - 2], parts[parts.len() - 1]];
    let is_country_domain = top.len() == 2
        && ["gov", "com", "co", "ne"]
            .iter()
            .any(|kind| second.eq_ignore_ascii_case(kind));
    let part_count = if is_country_domain && parts.len() > 2 {
        3
    } else {
        2
    };
    let length: usize = parts[parts.len() - part_count..]
        .iter()
        .map(|part| part.len() + 1)
        .sum();
    &domain[domain.len() + 1 - length..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn organisations_are_found_by_host_subdomain_and_root() {
        assert_eq!(
            organisation("https://www.google-analytics.com/analytics.js"),
            Some("Google Analytics")
        );
        assert_eq!(
            organisation("https://fonts.gstatic.com/s/x.woff2"),
            Some("Google Fonts")
        );
        assert_eq!(organisation("https://example.test/"), None);
        assert_eq!(
            organisation("data:text/html,https://www.google-analytics.com/"),
            None
        );
    }

    #[test]
    fn an_unknown_organisation_is_named_by_its_root_domain() {
        let of = |url: &str| organisation_or_domain(url).map(Cow::into_owned);
        assert_eq!(
            of("https://a.b.unheard.test/x"),
            Some("unheard.test".to_owned())
        );
        assert_eq!(
            of("http://127.0.0.1:9500/x.js"),
            Some("127.0.0.1".to_owned())
        );
        assert_eq!(of("http://localhost:1/"), Some("localhost".to_owned()));
        assert_eq!(
            root_domain("https://a.b.co.uk/").as_deref(),
            Some("b.co.uk")
        );
        assert_eq!(of("about:blank"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn the_data_and_its_licence_are_embedded() {
        assert!(LICENSE.contains("Patrick Hulce"));
        assert!(TABLE.lines().count() > 1000);
    }
}
