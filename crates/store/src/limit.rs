//! Limits that several servers keep together.

/// A token bucket, kept as one number: the time at which it will be full. Nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taking {
    pub now_ns: i64,
    /// When a bucket that is empty now will be full.
    pub empty_ns: i64,
    /// What is to be taken, as the time in which it flows back.
    pub taken_ns: i64,
}

/// The bucket afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    pub full_at_ns: i64,
    /// Nothing was taken: there was not as much.
    pub is_refused: bool,
}
