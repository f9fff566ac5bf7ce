use serde::Deserialize;

use super::ArtifactFact;

/// The response to a request for `/robots.txt` of the page's origin.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RobotsTxt {
    pub url: String,
    /// The HTTP status; `None` without a response.
    pub status: Option<u16>,
    /// The body; `None` unless the status is 2xx.
    pub content: Option<String>,
    /// The reason why there was no response.
    pub error: Option<String>,
}

impl ArtifactFact for RobotsTxt {
    const NAME: &'static str = "robots-txt";
}
