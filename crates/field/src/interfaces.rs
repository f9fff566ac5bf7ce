//! Interfaces that the user of a [`CruxClient`](crate::CruxClient) implements.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use url::Url;

/// Maximum size of a response; a history with all its metrics has about 60 kB.
pub const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// Sends POST requests with a JSON body. An implementation follows no redirects and reads no more
/// than [`MAX_RESPONSE_BYTES`]. The URL contains a secret, so that no error and no log line may
/// include it. Dropping the future cancels the request.
#[async_trait]
pub trait HttpTransport: Send + Sync + 'static {
    async fn post(&self, url: &Url, body: String) -> Result<HttpResponse, TransportError>;
}

#[derive(Debug, Clone, Default)]
pub struct HttpResponse {
    pub status: u16,
    /// The unparsed `Retry-After` header.
    pub retry_after: Option<String>,
    pub body: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    #[error("{0}")]
    Unreachable(String),
    #[error("response too large")]
    TooLarge,
}

/// Decides which URLs may be disclosed to the API.
#[async_trait]
pub trait PrivacyPolicy: Send + Sync + 'static {
    async fn may_disclose(&self, url: &Url) -> bool;
}

/// Part of the API's quota that is shared with others who use the same key. Consulted after this
/// process' own rate limiter.
#[async_trait]
pub trait Quota: Send + Sync + 'static {
    /// Takes one request of the quota, or returns how long to wait before trying again.
    async fn take(&self) -> Result<(), Duration>;
}

/// Quota of a key that no other process uses.
pub struct UnsharedQuota;

#[async_trait]
impl Quota for UnsharedQuota {
    async fn take(&self) -> Result<(), Duration> {
        Ok(())
    }
}

/// Returns milliseconds since 1970, UTC.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;
