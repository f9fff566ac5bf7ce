//! The `Link` headers of a response (RFC 8288).

use std::fmt;

use plumbline_source::split_outside_quotes;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

/// The values of `Link` headers; other headers are not kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkHeaders(Vec<String>);

impl<'de> Deserialize<'de> for LinkHeaders {
    /// Reads the headers of a response, an object. Several values are separated by line breaks.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Headers;
        impl<'de> Visitor<'de> for Headers {
            type Value = LinkHeaders;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with headers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LinkHeaders, A::Error> {
                let mut links = LinkHeaders::default();
                while let Some(name) = map.next_key::<String>()? {
                    if name.eq_ignore_ascii_case("link") {
                        let values = map.next_value::<String>()?;
                        links.0.extend(values.split('\n').map(str::to_owned));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(links)
            }
        }
        deserializer.deserialize_map(Headers)
    }
}

impl LinkHeaders {
    /// Returns the target of the first link with a relation, which is in lower case.
    pub(crate) fn target(&self, relation: &str) -> Option<&str> {
        self.0.iter().find_map(|value| target(value, relation))
    }
}

fn target<'a>(value: &'a str, relation: &str) -> Option<&'a str> {
    let mut rest = value;
    while let Some((_, after)) = rest.split_once('<') {
        let (target, parameters) = after.split_once('>')?;
        let link = split_outside_quotes(parameters, ',').next()?;
        let relations = split_outside_quotes(link, ';').find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let is_relation = name.trim().eq_ignore_ascii_case("rel");
            is_relation.then(|| value.trim().trim_matches('"'))
        });
        let mut words = relations.unwrap_or_default().split(' ');
        if words.any(|word| word.eq_ignore_ascii_case(relation)) {
            return Some(target);
        }
        rest = &parameters[link.len()..];
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog(headers: serde_json::Value) -> Option<String> {
        let links: LinkHeaders = serde_json::from_value(headers).unwrap();
        links.target("ai-catalog").map(str::to_owned)
    }

    #[test]
    fn a_link_is_found_by_its_relation() {
        for (value, target) in [
            ("</a.json>; rel=ai-catalog", Some("/a.json")),
            (
                r#"<x>; rel="preload"; title="a, b", </b>; REL="foo AI-Catalog""#,
                Some("/b"),
            ),
            ("<x>; rel=preload\n</c>; rel=ai-catalog", Some("/c")),
            ("<x>; rel=ai-catalogs, <y>; title=ai-catalog", None),
            ("nonsense", None),
            ("<unclosed", None),
        ] {
            let headers = json!({"Content-Type": "text/html", "LINK": value});
            assert_eq!(catalog(headers).as_deref(), target, "{value}");
        }
    }

    #[test]
    fn a_response_without_link_headers_has_no_links() {
        assert_eq!(catalog(json!({"x": "<a>; rel=ai-catalog"})), None);
    }
}
