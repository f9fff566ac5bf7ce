//! Limits that several servers keep together.

use async_trait::async_trait;

use crate::StoreError;

/// How a kind of token bucket is asked, the same for all that are asked at once. A bucket is kept as one number, the time
/// at which it will be full: nanoseconds since the Unix epoch. What is in it is told as the time in which it flows back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketRate {
    pub now_ns: i64,
    /// What a full bucket holds.
    pub burst_ns: i64,
    /// What each who wants something wants.
    pub cost_ns: i64,
}

/// What one server wants of one bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketRequest {
    pub bucket: String,
    /// What it has let pass without asking. BucketGrant also where it is not there, up to an eighth of a bucket beyond
    /// empty; that flows back first.
    pub debt_ns: i64,
    /// How many wait, each for [`BucketRate::cost_ns`]. With what is owed, no more than a full bucket holds.
    pub requested: u32,
}

/// The bucket afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketGrant {
    pub full_at_ns: i64,
    /// How many of those who waited got what they wanted; the others got nothing.
    pub granted: u32,
}

/// Token buckets that all servers on a store share.
#[async_trait]
pub trait SharedLimits: Send + Sync {
    /// Takes from many buckets at once, each named once; answers in the order in which they are named.
    async fn take(
        &self,
        rate: BucketRate,
        takings: Vec<BucketRequest>,
    ) -> Result<Vec<BucketGrant>, StoreError>;
}
