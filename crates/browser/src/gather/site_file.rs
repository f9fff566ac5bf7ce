//! Files of the site that are requested in addition to the page.

use std::time::Duration;

use serde::Serialize;
use url::Url;

use super::network_resource;
use crate::page::Caller;

/// Timeout of the response, and of its content. Lighthouse waits for 2 s. A browser that shares its
/// cores with others may take longer to send the request, which is no fault of the site.
const DEADLINE: Duration = Duration::from_secs(10);

/// The response to a request for a file.
#[derive(Serialize)]
pub(super) struct SiteFile {
    pub(super) url: String,
    pub(super) status: Option<u16>,
    pub(super) content: Option<String>,
    pub(super) error: Option<String>,
}

/// Resolves the path of a file against the URL of the page.
pub(super) fn resolve(page_url: &str, path: &str) -> Result<Url, String> {
    Url::parse(page_url)
        .and_then(|url| url.join(path))
        .map_err(|error| error.to_string())
}

/// Fetches a file. A content that cannot be read is reported like a missing response.
pub(super) async fn fetch(page: &Caller, url: &Url, max_bytes: usize) -> SiteFile {
    let mut file = network_resource::load(page, url.as_str(), DEADLINE).await;
    let (content, read_error) = match file.read(page, DEADLINE, max_bytes).await {
        Some(Ok(body)) => (Some(body.text), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    SiteFile {
        url: url.as_str().to_owned(),
        status: file.status.filter(|_| read_error.is_none()),
        content,
        error: file.error.or(read_error),
    }
}
