use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::record::{Entry, Ledger};
use crate::model::Way;
use tokio::sync::watch;

/// Counts the bytes of one connection, and cuts the link when it has carried too many.
pub(super) struct Meter {
    pub(super) entry: Arc<Entry>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) max_bytes: u64,
    pub(super) over_limit: watch::Sender<bool>,
}

impl Meter {
    pub(super) fn count(&self, way: Way, bytes: u64) {
        let (own, all) = match way {
            Way::Up => (&self.entry.bytes_up, &self.ledger.bytes_up),
            Way::Down => (&self.entry.bytes_down, &self.ledger.bytes_down),
        };
        own.fetch_add(bytes, Relaxed);
        all.fetch_add(bytes, Relaxed);
        if self.ledger.bytes() > self.max_bytes {
            self.over_limit
                .send_if_modified(|over| !std::mem::replace(over, true));
        }
    }
}
