//! The site's robots.txt.

use super::site_file::{self, SiteFile};
use crate::page::Caller;

/// Maximum size that crawlers read (RFC 9309, section 2.5).
const MAX_BYTES: usize = 500 * 1024;

pub(super) async fn fetch(page: &Caller, page_url: &str) -> Result<SiteFile, String> {
    let url = site_file::resolve(page_url, "/robots.txt")?;
    Ok(site_file::fetch(page, &url, MAX_BYTES).await)
}
