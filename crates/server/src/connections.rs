//! The open connections. Those without a request can be closed to make room for the next.
//!
//! What a connection is for is not known until the head of a request has arrived. So more connections
//! are open than requests are served at a time, and when no more may be opened, one that waits for a
//! head is closed: the oldest of the address that has most of them. Whoever sends a head at once is
//! heard, however many others hold theirs back.

use std::{
    collections::HashMap,
    net::IpAddr,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::peer::network_of;

/// Further away than any deadline.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long a connection without a request is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    /// For a request's head, from the opening of the connection or from the head's first byte.
    pub(crate) head: Duration,
    /// For the first byte of the next head.
    pub(crate) idle: Duration,
}

/// Every open connection.
pub(crate) struct Connections {
    at_most: usize,
    waits: Waits,
    open: Mutex<Open>,
    /// Notified when a connection is closed, or waits for a request again.
    changed: Notify,
}

#[derive(Default)]
struct Open {
    last_id: u64,
    by_id: HashMap<u64, Arc<Entry>>,
}

struct Entry {
    network: String,
    phase: Mutex<Phase>,
    /// Notified when the connection is to be closed.
    closed: Notify,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// For a request.
    Waiting {
        since: Instant,
        until: Instant,
        has_begun: bool,
    },
    Serving,
    /// Chosen to make room.
    Closed,
}

impl Connections {
    pub(crate) fn new(at_most: usize, waits: Waits) -> Self {
        Self {
            at_most,
            waits,
            open: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Returns when one more connection may be opened.
    pub(crate) async fn room(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.has_room_or_makes_it() {
                return;
            }
            changed.await;
        }
    }

    /// Closes a connection where it is needed; there is room when that has happened.
    fn has_room_or_makes_it(&self) -> bool {
        let open = locked(&self.open);
        if open.by_id.len() < self.at_most {
            return true;
        }
        let mut waiting: HashMap<&str, Vec<(Instant, &Entry)>> = HashMap::new();
        for entry in open.by_id.values() {
            match *locked(&entry.phase) {
                Phase::Waiting { since, .. } => {
                    waiting
                        .entry(&entry.network)
                        .or_default()
                        .push((since, entry));
                }
                // There will be room in a moment.
                Phase::Closed => return false,
                Phase::Serving => {}
            }
        }
        let oldest = |of: &[(Instant, &Entry)]| of.iter().map(|(since, _)| *since).min();
        let most = waiting.values().max_by(|one, other| {
            let by_age = oldest(other).cmp(&oldest(one));
            one.len().cmp(&other.len()).then(by_age)
        });
        let entry = most.and_then(|of| of.iter().min_by_key(|(since, _)| *since));
        if let Some((_, entry)) = entry {
            let mut phase = locked(&entry.phase);
            // Its request may have come just now; then another is chosen the next time.
            if matches!(*phase, Phase::Waiting { .. }) {
                *phase = Phase::Closed;
                entry.closed.notify_one();
            } else {
                self.changed.notify_waiters();
            }
        }
        false
    }

    /// A connection that was just accepted.
    pub(crate) fn open(self: &Arc<Self>, from: IpAddr) -> Connection {
        let now = Instant::now();
        let entry = Arc::new(Entry {
            network: network_of(from),
            phase: Mutex::new(Phase::Waiting {
                since: now,
                until: now + self.waits.head,
                has_begun: true,
            }),
            closed: Notify::new(),
        });
        let mut open = locked(&self.open);
        open.last_id += 1;
        let id = open.last_id;
        open.by_id.insert(id, Arc::clone(&entry));
        Connection {
            entry,
            _opened: Arc::new(Opened {
                all: Arc::clone(self),
                id,
            }),
        }
    }
}

/// An open connection; its clones are the same one.
#[derive(Clone)]
pub(crate) struct Connection {
    entry: Arc<Entry>,
    _opened: Arc<Opened>,
}

struct Opened {
    all: Arc<Connections>,
    id: u64,
}

impl Drop for Opened {
    fn drop(&mut self) {
        locked(&self.all.open).by_id.remove(&self.id);
        self.all.changed.notify_waiters();
    }
}

impl Connection {
    /// Returns when the connection is to be closed to make room.
    pub(crate) async fn closed(&self) {
        self.entry.closed.notified().await;
    }

    /// When the connection is to be closed unless something happens before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match *locked(&self.entry.phase) {
            Phase::Waiting { until, .. } => Some(until),
            Phase::Serving | Phase::Closed => None,
        }
    }

    /// The head of a request is there. `None` when the connection was closed just before: then the
    /// request is not to be served, because nobody would hear of it.
    pub(crate) fn serve(&self) -> Option<Serving> {
        let mut phase = locked(&self.entry.phase);
        if matches!(*phase, Phase::Closed) {
            return None;
        }
        *phase = Phase::Serving;
        Some(Serving(self.clone()))
    }

    /// Bytes have arrived: the first of a head begin its time.
    pub(crate) fn has_read(&self) {
        let mut phase = locked(&self.entry.phase);
        if let Phase::Waiting {
            until, has_begun, ..
        } = &mut *phase
            && !*has_begun
        {
            *has_begun = true;
            *until = Instant::now() + self._opened.all.waits.head;
        }
    }

    /// Bytes of an answer have left, possibly long after it was made.
    pub(crate) fn has_written(&self) {
        let mut phase = locked(&self.entry.phase);
        if let Phase::Waiting {
            since,
            until,
            has_begun: false,
        } = &mut *phase
        {
            *since = Instant::now();
            *until = *since + self._opened.all.waits.idle;
        }
    }
}

/// Held while a request is served.
pub(crate) struct Serving(Connection);

impl Drop for Serving {
    fn drop(&mut self) {
        let all = &self.0._opened.all;
        let now = Instant::now();
        *locked(&self.0.entry.phase) = Phase::Waiting {
            since: now,
            until: now + all.waits.idle,
            has_begun: false,
        };
        all.changed.notify_waiters();
    }
}

/// A deadline for what has none.
pub(crate) fn never() -> Instant {
    Instant::now() + NEVER
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn connections(at_most: usize) -> Arc<Connections> {
        let waits = Waits {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(30),
        };
        Arc::new(Connections::new(at_most, waits))
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn is_closed(connection: &Connection) -> bool {
        matches!(*locked(&connection.entry.phase), Phase::Closed)
    }

    /// Whether there is room by now.
    fn has_room(connections: &Connections) -> bool {
        let mut room = pin!(connections.room());
        room.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[tokio::test(start_paused = true)]
    async fn room_is_made_by_closing_the_oldest_of_the_address_that_waits_most() {
        let all = connections(4);
        let patient = all.open(address(1));
        let mut others = Vec::new();
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(1)).await;
            others.push(all.open(address(2)));
        }
        assert!(!has_room(&all));
        assert!(!has_room(&all), "one is enough");
        let closed: Vec<_> = others.iter().map(is_closed).collect();
        assert_eq!(closed, [true, false, false]);
        assert!(!is_closed(&patient));
        others.remove(0).closed().await;
        assert!(has_room(&all));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_served_is_never_closed_and_waits_again_afterwards() {
        let all = connections(2);
        let (one, two) = (all.open(address(1)), all.open(address(1)));
        let (serving, _other) = (one.serve().unwrap(), two.serve().unwrap());
        assert!(!has_room(&all));
        assert!(!is_closed(&one) && !is_closed(&two));
        assert_eq!(one.deadline(), None);
        drop(serving);
        assert!(!has_room(&all));
        assert!(is_closed(&one), "it waits for its next request");
        assert!(one.serve().is_none(), "which is not served any more");
        drop(one);
        assert!(has_room(&all));
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_its_time_from_its_first_byte_and_an_answer_may_take_long_to_leave() {
        let all = connections(2);
        let opened = Instant::now();
        let connection = all.open(address(1));
        let after = |seconds| Some(opened + Duration::from_secs(seconds));
        tokio::time::advance(Duration::from_secs(5)).await;
        connection.has_read();
        assert_eq!(connection.deadline(), after(10), "a slow head wins no time");
        drop(connection.serve().unwrap());
        assert_eq!(connection.deadline(), after(35));
        tokio::time::advance(Duration::from_secs(20)).await;
        connection.has_written();
        assert_eq!(connection.deadline(), after(55));
        connection.has_read();
        assert_eq!(connection.deadline(), after(35));
        connection.has_written();
        assert_eq!(connection.deadline(), after(35));
    }
}
