//! The site's llms.txt.

use super::{Gathered, site_file, to_artifact};
use crate::page::Caller;

/// Maximum size of the file, as for robots.txt. A heading and links are at its beginning.
const MAX_BYTES: usize = 500 * 1024;

pub(super) async fn gather(page: &Caller, page_url: &str) -> Gathered {
    let url = site_file::resolve(page_url, "/llms.txt")?;
    to_artifact(&site_file::fetch(page, &url, MAX_BYTES).await)
}
