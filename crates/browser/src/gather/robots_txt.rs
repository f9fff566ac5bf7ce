//! The site's robots.txt.

use std::time::Duration;

use serde_json::json;
use url::Url;

use super::{Gathered, network_resource, to_artifact};
use crate::page::Caller;

const DEADLINE: Duration = Duration::from_secs(2);
/// Maximum size that crawlers read (RFC 9309, section 2.5).
const MAX_BYTES: usize = 500 * 1024;

pub(super) async fn gather(page: &Caller, page_url: &str) -> Gathered {
    let url = Url::parse(page_url)
        .and_then(|url| url.join("/robots.txt"))
        .map_err(|error| error.to_string())?;
    let mut file = network_resource::load(page, url.as_str(), DEADLINE).await;
    let (content, read_error) = match file.read(page, DEADLINE, MAX_BYTES).await {
        Some(Ok(body)) => (Some(body.text), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    to_artifact(&json!({
        "url": url.as_str(),
        "status": file.status.filter(|_| read_error.is_none()),
        "content": content,
        "error": file.error.or(read_error),
    }))
}
