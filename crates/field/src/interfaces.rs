//! What a dataset leaves to its caller.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use url::Url;

/// A history with all its metrics has some 60 kB.
pub const ANSWER_BYTES: usize = 1024 * 1024;

/// Sends a POST with a JSON body: follows no redirect, reads no more than [`ANSWER_BYTES`]. The URL carries a
/// secret: no error and no log line may name it. Dropping the future ends the request.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    async fn post(&self, url: &Url, body: String) -> Result<HttpAnswer, TransportError>;
}

#[derive(Debug, Clone, Default)]
pub struct HttpAnswer {
    pub status: u16,
    /// The header, as it stands there.
    pub retry_after: Option<String>,
    pub body: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    #[error("{0}")]
    Unreachable(String),
    #[error("the answer is too large")]
    TooLarge,
}

/// Which pages may be named to a stranger.
#[async_trait]
pub trait Discretion: Send + Sync + 'static {
    async fn may_name(&self, url: &Url) -> bool;
}

/// The part of the API's quota that others use as well, who ask with the same key. Asked when this process' own pace lets a
/// request leave.
#[async_trait]
pub trait Quota: Send + Sync + 'static {
    /// Takes one request of it; or how long to wait before asking again.
    async fn take(&self) -> Result<(), Duration>;
}

/// Nobody else asks with this key.
pub struct Alone;

#[async_trait]
impl Quota for Alone {
    async fn take(&self) -> Result<(), Duration> {
        Ok(())
    }
}

/// Milliseconds since 1970, UTC.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;
