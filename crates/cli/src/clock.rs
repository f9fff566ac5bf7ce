//! The wall clock for stored times.

use std::time::{SystemTime, UNIX_EPOCH};

use plumbline_store::Timestamp;

/// Returns the current time.
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(since_epoch.as_millis().try_into().unwrap_or(i64::MAX))
}
