//! The part that the HTTP cache had in a visit that began with a warm cache.

use serde::{Deserialize, Serialize};

/// The requests of a visit by the part that the cache had in them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheUse {
    /// Answered by the cache, without a request to a server.
    pub cached: RequestGroup,
    /// Answered by the cache after a server had confirmed that nothing changed. Each cost a round
    /// trip.
    pub revalidated: RequestGroup,
    /// Transferred from a server.
    pub transferred: RequestGroup,
    /// Transferred files that the cache could have answered, with the largest first.
    #[serde(default)]
    pub cacheable: Vec<CacheableRequest>,
}

/// A number of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestGroup {
    pub requests: u64,
    /// The size of the responses, as they were or would have been transferred.
    pub bytes: u64,
}

impl RequestGroup {
    pub fn add(&mut self, bytes: u64) {
        self.requests = self.requests.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// A file that was transferred although the cache could have answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheableRequest {
    pub url: String,
    pub bytes: u64,
    /// A sentence that says why the cache did not answer.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_a_page_invents_do_not_overflow() {
        let mut group = RequestGroup::default();
        group.add(u64::MAX);
        group.add(1);
        assert_eq!((group.requests, group.bytes), (2, u64::MAX));
    }
}
