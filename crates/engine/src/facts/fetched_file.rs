//! Files of the page's site that are requested in addition to the page.

use serde::Deserialize;

use super::ArtifactFact;

/// The response to a request for a file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FetchedFile {
    pub url: String,
    /// The HTTP status; `None` without a response.
    pub status: Option<u16>,
    /// The body; `None` unless the status is 2xx.
    pub content: Option<String>,
    /// The reason why there was no response.
    pub error: Option<String>,
}

/// The response for `/robots.txt` of the page's origin.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct RobotsTxt(pub FetchedFile);

impl ArtifactFact for RobotsTxt {
    const NAME: &'static str = "robots-txt";
}

/// The response for `/llms.txt` of the page's origin.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct LlmsTxt(pub FetchedFile);

impl ArtifactFact for LlmsTxt {
    const NAME: &'static str = "llms-txt";
}

/// The response for the site's `ai-catalog.json`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AiCatalog {
    pub found_by: AiCatalogReference,
    #[serde(flatten)]
    pub file: FetchedFile,
}

/// The way in which the URL of a catalog was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AiCatalogReference {
    /// An `Agentmap` line of robots.txt.
    RobotsTxt,
    /// A link element with the relation `ai-catalog`.
    LinkElement,
    /// A `Link` header with the relation `ai-catalog`.
    LinkHeader,
    /// Nothing on the site refers to a catalog, so the default location was requested.
    #[default]
    WellKnown,
}

impl ArtifactFact for AiCatalog {
    const NAME: &'static str = "ai-catalog";
}
