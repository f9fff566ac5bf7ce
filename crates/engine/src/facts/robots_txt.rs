use serde::Deserialize;

use super::Artifact;

/// The answer to `/robots.txt` of the page's origin.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RobotsTxt {
    pub url: String,
    /// None where there was no answer.
    pub status: Option<u16>,
    /// None unless the status is 2xx.
    pub content: Option<String>,
    /// Why there was no answer.
    pub error: Option<String>,
}

impl Artifact for RobotsTxt {
    const NAME: &'static str = "robots-txt";
}
