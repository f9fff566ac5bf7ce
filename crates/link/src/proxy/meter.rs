use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::record::{ConnectionLog, ConnectionLogEntry};
use crate::model::Direction;
use tokio::sync::watch;

/// Counts the bytes of one connection, and signals when the link has exceeded its limit.
pub(super) struct Meter {
    pub(super) entry: Arc<ConnectionLogEntry>,
    pub(super) log: Arc<ConnectionLog>,
    pub(super) max_bytes: u64,
    pub(super) over_limit: watch::Sender<bool>,
}

impl Meter {
    pub(super) fn count(&self, direction: Direction, bytes: u64) {
        let connection_bytes = match direction {
            Direction::Up => &self.entry.bytes_up,
            Direction::Down => &self.entry.bytes_down,
        };
        connection_bytes.fetch_add(bytes, Relaxed);
        let link_bytes = self.log.bytes.fetch_add(bytes, Relaxed) + bytes;
        if link_bytes > self.max_bytes {
            self.over_limit
                .send_if_modified(|over| !std::mem::replace(over, true));
        }
    }
}
