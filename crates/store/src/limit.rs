//! Rate limits that several servers share.

use async_trait::async_trait;

use crate::StoreError;

/// The parameters of token buckets of one kind.
///
/// A bucket is stored as one number: the time at which it will be full, in nanoseconds since the
/// Unix epoch. Amounts of tokens are expressed as the time in which they are refilled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketRate {
    pub now_ns: i64,
    /// The capacity of a bucket.
    pub burst_ns: i64,
    /// The cost of one request.
    pub cost_ns: i64,
}

/// A request of one server to one bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketRequest {
    pub bucket: String,
    /// The cost of requests that the server has already let pass. It is subtracted even from an
    /// empty bucket, down to minus an eighth of its capacity, and refilled first.
    pub debt_ns: i64,
    /// The number of waiting requests, each of [`BucketRate::cost_ns`]. Together with the debt they
    /// must not exceed the capacity of a bucket.
    pub requested: u32,
}

/// The response to a [`BucketRequest`], with the new state of the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketGrant {
    pub full_at_ns: i64,
    /// The number of waiting requests that are granted.
    pub granted: u32,
}

/// Token buckets that all servers on a store share.
#[async_trait]
pub trait SharedLimits: Send + Sync {
    /// Takes tokens from several different buckets, and responds in the order of the requests.
    async fn take(
        &self,
        rate: BucketRate,
        requests: Vec<BucketRequest>,
    ) -> Result<Vec<BucketGrant>, StoreError>;
}
