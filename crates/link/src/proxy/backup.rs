//! Chromium's backup connections. If the first connection to a host is not established after
//! 250 ms, Chromium dials a second one in parallel and keeps both
//! (net/socket/transport_client_socket_pool.cc, backup jobs); but not through a proxy, to which it
//! is connected immediately. On a line with such a long round trip a page would start with one
//! connection less, so the link dials the backup connection instead: the browser's next connection
//! to that host and port uses it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use parking_lot::Mutex;
use plumbline_clock::PageTime;
use tokio::task::JoinHandle;

use super::dial::Dialed;
use super::record::ConnectionOutcome;
use super::socks::ConnectRequest;

/// A backup connection that is being dialed, or waits for the next request.
pub(super) type Backup = JoinHandle<Result<Dialed, ConnectionOutcome>>;

/// Interval at which Chromium checks whether the first connection is established.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The backup connections of a link by host and port. An entry without a connection is a host that
/// was requested before.
#[derive(Default)]
pub(super) struct Backups {
    requested: Mutex<HashMap<ConnectRequest, Option<Backup>>>,
}

/// How a request to connect is served with respect to backup connections.
pub(super) enum BackupState {
    /// The first request for a host and port, which may start a backup connection.
    FirstRequest,
    /// A later request that uses the backup connection.
    Available(Backup),
    /// A later request without a backup connection.
    Unavailable,
}

impl Backups {
    pub(super) fn take(&self, request: &ConnectRequest) -> BackupState {
        let mut requested = self.requested.lock();
        match requested.entry(request.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(None);
                BackupState::FirstRequest
            }
            Entry::Occupied(mut occupied) => match occupied.get_mut().take() {
                Some(backup) => BackupState::Available(backup),
                None => BackupState::Unavailable,
            },
        }
    }

    pub(super) fn insert(&self, request: &ConnectRequest, backup: Backup) {
        let mut requested = self.requested.lock();
        requested.insert(request.clone(), Some(backup));
    }
}

/// Returns the time at which Chromium would dial a backup connection for a connection that was
/// requested at `requested_at` and whose host was resolved at `resolved_at`.
pub(super) fn backup_time(requested_at: PageTime, resolved_at: PageTime) -> PageTime {
    let elapsed = resolved_at - requested_at;
    let checks = elapsed.as_nanos() / CHECK_INTERVAL.as_nanos();
    requested_at + CHECK_INTERVAL * (checks as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_backup_connection_is_dialed_before_the_name_is_resolved() {
        let requested_at = PageTime::from_nanos(0);
        let delay = |resolved_after_ms| {
            let resolved_at = requested_at + Duration::from_millis(resolved_after_ms);
            backup_time(requested_at, resolved_at) - requested_at
        };
        assert_eq!(delay(0), Duration::from_millis(250));
        assert_eq!(delay(249), Duration::from_millis(250));
        assert_eq!(delay(400), Duration::from_millis(500));
    }
}
