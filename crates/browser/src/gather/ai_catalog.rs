//! The site's ai-catalog.json, which lists its tools and agents (Agentic Resource Discovery).

use std::future::Future;
use std::time::Duration;

use serde::Serialize;
use url::Url;

use super::scripted::{self, IsolatedWorld};
use super::site_file::{self, SiteFile};
use super::{Gathered, to_artifact};
use crate::page::Caller;

/// Maximum size of a catalog.
const MAX_BYTES: usize = 4 << 20;

const SCRIPT_DEADLINE: Duration = Duration::from_secs(10);

/// The way in which the URL of a catalog was found.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum FoundBy {
    RobotsTxt,
    LinkElement,
    LinkHeader,
    WellKnown,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AiCatalog {
    found_by: FoundBy,
    #[serde(flatten)]
    file: SiteFile,
}

/// Starts to read the URL of the catalog from a link element.
pub(super) fn linked(
    page: &Caller,
    world: &IsolatedWorld,
) -> impl Future<Output = Result<String, String>> + use<> {
    scripted::evaluate(page, world, include_str!("ai-catalog.js"), SCRIPT_DEADLINE)
}

/// References to the catalog, in the order in which they are used.
pub(super) struct References<'a> {
    pub(super) robots_txt: Option<&'a str>,
    pub(super) link_element: Option<&'a str>,
    pub(super) link_header: Option<&'a str>,
}

/// Fetches the catalog from the first reference, or else from the default location.
pub(super) async fn gather(page: &Caller, page_url: &str, references: References<'_>) -> Gathered {
    let base = Url::parse(page_url).map_err(|error| error.to_string())?;
    let references = [
        (
            FoundBy::RobotsTxt,
            references.robots_txt.and_then(agent_map),
        ),
        (FoundBy::LinkElement, references.link_element),
        (FoundBy::LinkHeader, references.link_header),
        (FoundBy::WellKnown, Some("/.well-known/ai-catalog.json")),
    ];
    let found = references.into_iter().find_map(|(found_by, reference)| {
        let reference = reference.filter(|reference| !reference.is_empty())?;
        Some((found_by, base.join(reference).ok()?))
    });
    let (found_by, url) = found.ok_or("the site cannot have a catalog")?;
    let file = if matches!(url.scheme(), "http" | "https") {
        site_file::fetch(page, &url, MAX_BYTES).await
    } else {
        SiteFile {
            error: Some(format!("the scheme `{}:` is not supported", url.scheme())),
            url: url.into(),
            status: None,
            content: None,
        }
    };
    to_artifact(&AiCatalog { found_by, file })
}

/// Returns the URL of the first `Agentmap` line of a robots.txt. As in Lighthouse, it may be on one
/// of the next lines.
fn agent_map(robots_txt: &str) -> Option<&str> {
    const DIRECTIVE: &str = "agentmap:";
    let is_line_break = |c| c == '\n' || c == '\r';
    let starts = robots_txt
        .match_indices(is_line_break)
        .map(|(at, _)| at + 1);
    std::iter::once(0).chain(starts).find_map(|start| {
        let rest = robots_txt[start..].trim_start();
        let is_directive = rest
            .get(..DIRECTIVE.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(DIRECTIVE));
        let value = is_directive.then(|| &rest[DIRECTIVE.len()..])?;
        value.split_whitespace().next()
    })
}

#[cfg(test)]
mod tests {
    use super::agent_map;

    #[test]
    fn the_first_agentmap_line_is_used() {
        for (robots_txt, url) in [
            (
                "User-agent: *\nAgentmap: /a.json\nAgentmap: /b.json",
                Some("/a.json"),
            ),
            (
                "  AGENTMAP:https://a.test/c.json # comment",
                Some("https://a.test/c.json"),
            ),
            ("# Agentmap: /a.json\nxAgentmap: /b.json", None),
            ("Agentmap:\n\n/d.json", Some("/d.json")),
            ("Agentmap:", None),
            ("", None),
        ] {
            assert_eq!(agent_map(robots_txt), url, "{robots_txt}");
        }
    }
}
