use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment of a page clock. Its zero is that of the system's monotonic clock, from which a page
/// clock starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageTime {
    ns: i64,
}

impl PageTime {
    pub const fn from_nanos(ns: i64) -> Self {
        Self { ns }
    }

    pub const fn as_nanos(self) -> i64 {
        self.ns
    }

    /// Returns the time since an earlier moment, or zero if it is a later one.
    pub fn saturating_duration_since(self, earlier: Self) -> Duration {
        let ns = self.ns.saturating_sub(earlier.ns);
        Duration::from_nanos(u64::try_from(ns).unwrap_or_default())
    }
}

impl Add<Duration> for PageTime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let ns = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Self {
            ns: self.ns.saturating_add(ns),
        }
    }
}

impl Sub for PageTime {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}
