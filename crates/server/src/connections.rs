//! The open connections. Idle ones are closed when new connections need capacity.
//!
//! The purpose of a connection is not known until the head of a request has arrived. So more
//! connections may be open than requests are served concurrently, and when the limit is reached,
//! one that waits for a head is closed: the oldest of the address that has most of them. A client
//! that sends a head at once is served, however many others hold theirs back.

use std::{collections::HashMap, net::IpAddr, pin::pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::peer::network_of;

/// A duration longer than any deadline.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long a connection without a request stays open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionTimeouts {
    /// The time for a request's head, from the opening of the connection or the head's first byte.
    pub(crate) head: Duration,
    /// The time until the first byte of the next head.
    pub(crate) idle: Duration,
}

/// All open connections.
pub(crate) struct Connections {
    at_most: usize,
    timeouts: ConnectionTimeouts,
    table: Mutex<ConnectionTable>,
    /// Notified when a connection is closed or becomes idle.
    changed: Notify,
}

#[derive(Default)]
struct ConnectionTable {
    last_id: u64,
    by_id: HashMap<u64, Arc<Entry>>,
}

struct Entry {
    network: String,
    state: Mutex<ConnectionState>,
    /// Notified when the connection is to be closed.
    closed: Notify,
}

#[derive(Debug, Clone, Copy)]
enum ConnectionState {
    /// The connection waits for the head of a request.
    Waiting {
        since: Instant,
        until: Instant,
        /// Whether the time for the head is running.
        has_begun: bool,
    },
    /// The connection serves a request.
    Serving,
    /// The connection was closed in favour of another one.
    Closed,
}

impl Connections {
    pub(crate) fn new(at_most: usize, timeouts: ConnectionTimeouts) -> Self {
        Self {
            at_most,
            timeouts,
            table: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Waits until one more connection may be opened.
    pub(crate) async fn wait_for_capacity(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.try_make_capacity() {
                return;
            }
            changed.await;
        }
    }

    /// Returns whether one more connection may be opened. If not, an idle connection is told to
    /// close.
    fn try_make_capacity(&self) -> bool {
        let table = self.table.lock();
        if table.by_id.len() < self.at_most {
            return true;
        }
        let mut waiting: HashMap<&str, Vec<(Instant, &Entry)>> = HashMap::new();
        for entry in table.by_id.values() {
            match *entry.state.lock() {
                ConnectionState::Waiting { since, .. } => {
                    waiting
                        .entry(&entry.network)
                        .or_default()
                        .push((since, entry));
                }
                // One is being closed already.
                ConnectionState::Closed => return false,
                ConnectionState::Serving => {}
            }
        }
        let oldest = |entries: &[(Instant, &Entry)]| entries.iter().map(|(since, _)| *since).min();
        let largest = waiting.values().max_by(|one, other| {
            let by_age = oldest(other).cmp(&oldest(one));
            one.len().cmp(&other.len()).then(by_age)
        });
        let entry = largest.and_then(|entries| entries.iter().min_by_key(|(since, _)| *since));
        if let Some((_, entry)) = entry {
            let mut state = entry.state.lock();
            // Its request may just have arrived; then another is chosen the next time.
            if matches!(*state, ConnectionState::Waiting { .. }) {
                *state = ConnectionState::Closed;
                entry.closed.notify_one();
            } else {
                self.changed.notify_waiters();
            }
        }
        false
    }

    /// Registers a connection that was just accepted.
    pub(crate) fn open(self: &Arc<Self>, address: IpAddr) -> Connection {
        let now = Instant::now();
        let entry = Arc::new(Entry {
            network: network_of(address),
            state: Mutex::new(ConnectionState::Waiting {
                since: now,
                until: now + self.timeouts.head,
                has_begun: true,
            }),
            closed: Notify::new(),
        });
        let mut table = self.table.lock();
        table.last_id += 1;
        let id = table.last_id;
        table.by_id.insert(id, Arc::clone(&entry));
        Connection {
            entry,
            registration: Arc::new(Registration {
                all: Arc::clone(self),
                id,
            }),
        }
    }
}

/// An open connection. Clones refer to the same connection.
#[derive(Clone)]
pub(crate) struct Connection {
    entry: Arc<Entry>,
    registration: Arc<Registration>,
}

/// Removes the connection from the table when it is dropped.
struct Registration {
    all: Arc<Connections>,
    id: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.all.table.lock().by_id.remove(&self.id);
        self.all.changed.notify_waiters();
    }
}

impl Connection {
    /// Waits until the connection must be closed in favour of another.
    pub(crate) async fn closed(&self) {
        self.entry.closed.notified().await;
    }

    /// Returns the time at which the connection must be closed, unless its state changes before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match *self.entry.state.lock() {
            ConnectionState::Waiting { until, .. } => Some(until),
            ConnectionState::Serving | ConnectionState::Closed => None,
        }
    }

    /// Marks the connection as serving a request whose head has arrived. Returns `None` if the
    /// connection was closed just before: then the request must not be served, because its response
    /// could not be sent.
    pub(crate) fn serve(&self) -> Option<Serving> {
        let mut state = self.entry.state.lock();
        if matches!(*state, ConnectionState::Closed) {
            return None;
        }
        *state = ConnectionState::Serving;
        Some(Serving(self.clone()))
    }

    /// Records that bytes have arrived. The first byte of a head starts the time for that head.
    pub(crate) fn record_read(&self) {
        let mut state = self.entry.state.lock();
        if let ConnectionState::Waiting {
            until, has_begun, ..
        } = &mut *state
            && !*has_begun
        {
            *has_begun = true;
            *until = Instant::now() + self.registration.all.timeouts.head;
        }
    }

    /// Records that bytes of a response were sent, which may be long after it was made.
    pub(crate) fn record_write(&self) {
        let mut state = self.entry.state.lock();
        if let ConnectionState::Waiting {
            since,
            until,
            has_begun: false,
        } = &mut *state
        {
            *since = Instant::now();
            *until = *since + self.registration.all.timeouts.idle;
        }
    }
}

/// A guard that is held while a request is served; dropping it makes the connection idle again.
pub(crate) struct Serving(Connection);

impl Drop for Serving {
    fn drop(&mut self) {
        let all = &self.0.registration.all;
        let now = Instant::now();
        *self.0.entry.state.lock() = ConnectionState::Waiting {
            since: now,
            until: now + all.timeouts.idle,
            has_begun: false,
        };
        all.changed.notify_waiters();
    }
}

/// Returns a deadline that is never reached.
pub(crate) fn never() -> Instant {
    Instant::now() + NEVER
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn connections(at_most: usize) -> Arc<Connections> {
        let timeouts = ConnectionTimeouts {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(30),
        };
        Arc::new(Connections::new(at_most, timeouts))
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn is_closed(connection: &Connection) -> bool {
        matches!(*connection.entry.state.lock(), ConnectionState::Closed)
    }

    /// Whether one more connection may be opened now.
    fn has_capacity(connections: &Connections) -> bool {
        let mut waiting = pin!(connections.wait_for_capacity());
        waiting
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            == Poll::Ready(())
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_idle_connection_of_the_address_with_most_is_closed_for_a_new_one() {
        let all = connections(4);
        let single = all.open(address(1));
        let mut others = Vec::new();
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(1)).await;
            others.push(all.open(address(2)));
        }
        assert!(!has_capacity(&all));
        assert!(!has_capacity(&all), "one is enough");
        let closed: Vec<_> = others.iter().map(is_closed).collect();
        assert_eq!(closed, [true, false, false]);
        assert!(!is_closed(&single));
        others.remove(0).closed().await;
        assert!(has_capacity(&all));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_not_closed_while_it_serves_a_request() {
        let all = connections(2);
        let (one, two) = (all.open(address(1)), all.open(address(1)));
        let (serving, _other) = (one.serve().unwrap(), two.serve().unwrap());
        assert!(!has_capacity(&all));
        assert!(!is_closed(&one) && !is_closed(&two));
        assert_eq!(one.deadline(), None);
        drop(serving);
        assert!(!has_capacity(&all));
        assert!(is_closed(&one), "it waits for its next request");
        assert!(one.serve().is_none(), "its next request is not served");
        drop(one);
        assert!(has_capacity(&all));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_for_a_head_starts_with_its_first_byte_and_idle_time_with_the_last_byte_sent()
    {
        let all = connections(2);
        let opened = Instant::now();
        let connection = all.open(address(1));
        let after = |seconds| Some(opened + Duration::from_secs(seconds));
        tokio::time::advance(Duration::from_secs(5)).await;
        connection.record_read();
        assert_eq!(
            connection.deadline(),
            after(10),
            "a slow head gets no more time"
        );
        drop(connection.serve().unwrap());
        assert_eq!(connection.deadline(), after(35));
        tokio::time::advance(Duration::from_secs(20)).await;
        connection.record_write();
        assert_eq!(connection.deadline(), after(55));
        connection.record_read();
        assert_eq!(connection.deadline(), after(35));
        connection.record_write();
        assert_eq!(connection.deadline(), after(35));
    }
}
