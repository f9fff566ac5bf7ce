//! The links of the page, from `<link>` elements and from equivalent `Link` headers.

use plumbline_model::check::Node;
use plumbline_source::split_outside_quotes;
use serde::Deserialize;
use url::Url;

use super::null::or_default;
use super::{ArtifactFact, Fact, Facts, MainResource, Missing};

#[derive(Debug, Default)]
pub struct Links(pub Vec<PageLink>);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageLink {
    /// The relation in lower case.
    #[serde(deserialize_with = "or_default")]
    pub rel: String,
    /// The resolved URL; empty if it cannot be resolved.
    #[serde(deserialize_with = "or_default")]
    pub href: String,
    /// The `href` as written.
    #[serde(deserialize_with = "or_default")]
    pub raw_href: String,
    #[serde(deserialize_with = "or_default")]
    pub hreflang: String,
    pub source: LinkSource,
    /// The element; `None` for a header.
    pub node: Option<Node>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkSource {
    #[default]
    Head,
    Body,
    #[serde(skip)]
    Header,
}

/// The artifact: `<link>` elements of the main document.
#[derive(Debug, Default, Deserialize)]
struct Gathered(Vec<PageLink>);

impl ArtifactFact for Gathered {
    const NAME: &'static str = "links";
}

impl Fact for Links {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let mut links = facts.get::<Gathered>()?.0.clone();
        for link in &mut links {
            link.rel.make_ascii_lowercase();
        }
        let base = Url::parse(&facts.bundle.final_url).ok();
        if let Ok(main) = facts.get::<MainResource>() {
            links.extend(
                main.header("link")
                    .flat_map(|value| parse(value, base.as_ref())),
            );
        }
        Ok(Self(links))
    }
}

/// Parses the links of a `Link` header (RFC 8288). Invalid parts are skipped.
fn parse(header: &str, base: Option<&Url>) -> Vec<PageLink> {
    let mut links = Vec::new();
    let mut rest = header;
    while let Some((_, after)) = rest.split_once('<') {
        let Some((target, parameters)) = after.split_once('>') else {
            break;
        };
        let end = end_of_link(parameters);
        let mut link = PageLink {
            raw_href: target.to_owned(),
            href: base
                .and_then(|base| base.join(target).ok())
                .map(String::from)
                .unwrap_or_default(),
            source: LinkSource::Header,
            ..PageLink::default()
        };
        for parameter in split_outside_quotes(&parameters[..end], ';') {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "rel" if link.rel.is_empty() => link.rel = value.to_ascii_lowercase(),
                "hreflang" if link.hreflang.is_empty() => link.hreflang = value.to_owned(),
                _ => {}
            }
        }
        links.push(link);
        rest = &parameters[end..];
    }
    links
}

/// Returns the position of the comma before the next link, ignoring quoted commas.
fn end_of_link(parameters: &str) -> usize {
    split_outside_quotes(parameters, ',')
        .next()
        .map_or(0, str::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_may_contain_several_links() {
        let base = Url::parse("https://a.test/dir/").unwrap();
        let links = parse(
            r#"<x.css>; rel=preload; title="a, b; c", <https://b.test/>; REL="Alternate"; hreflang=de"#,
            Some(&base),
        );
        assert_eq!(links.len(), 2);
        assert_eq!(links[0].href, "https://a.test/dir/x.css");
        assert_eq!((&*links[0].rel, &*links[0].hreflang), ("preload", ""));
        assert_eq!((&*links[1].rel, &*links[1].hreflang), ("alternate", "de"));
    }

    #[test]
    fn valid_parts_of_a_broken_header_are_parsed() {
        for header in ["", "nonsense", "<unclosed", ">;rel=x", "<a>;;=;rel"] {
            assert!(parse(header, None).len() <= 1, "{header}");
        }
    }
}
