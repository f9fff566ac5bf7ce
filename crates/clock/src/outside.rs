//! The answers that a page awaits from the real world: servers, name servers and the network to
//! them. Their time passes one to one on the page's clock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{PageClock, PageTime};

/// Responses of real servers that the page waits for.
#[derive(Debug, Default)]
pub struct PendingResponses {
    /// Requests of the page that have not been answered completely.
    requests: AtomicUsize,
    waits: Mutex<Waits>,
}

#[derive(Debug, Default)]
struct Waits {
    by_id: HashMap<u64, Wait>,
    next_id: u64,
}

#[derive(Debug, Clone, Copy)]
struct Wait {
    began_at: Instant,
    /// The page time at which what is awaited began, if it has begun.
    page_began_at: Option<PageTime>,
}

impl Wait {
    fn reached(&self, now: Instant) -> Option<PageTime> {
        let began_at = self.page_began_at?;
        Some(began_at + now.duration_since(self.began_at))
    }
}

impl PendingResponses {
    /// Sets the number of requests of the page that have not been answered completely.
    pub fn set_requests(&self, requests: usize) {
        self.requests.store(requests, Ordering::Relaxed);
    }

    pub(crate) fn has_requests(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// Returns the page time that the outside world has reached: the earliest one at which an
    /// answer that arrives now would have arrived. `None` if nothing is awaited.
    pub(crate) fn reached(&self) -> Option<PageTime> {
        let now = Instant::now();
        let waits = self.lock();
        waits.by_id.values().filter_map(|it| it.reached(now)).min()
    }

    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that is awaited from the outside world until this is dropped.
#[derive(Debug)]
pub struct OutsideWait {
    clock: Arc<PageClock>,
    id: u64,
    began_at: Instant,
}

impl OutsideWait {
    /// Begins to wait now, in real time. In page time the wait begins at
    /// [`OutsideWait::begin_page_time`], for example when a request has arrived that was forwarded
    /// to the server before.
    pub fn begin(clock: &Arc<PageClock>) -> Self {
        let began_at = Instant::now();
        let mut waits = clock.outside().lock();
        waits.next_id += 1;
        let id = waits.next_id;
        let wait = Wait {
            began_at,
            page_began_at: None,
        };
        waits.by_id.insert(id, wait);
        drop(waits);
        Self {
            clock: Arc::clone(clock),
            id,
            began_at,
        }
    }

    /// Sets the page time at which the wait begins. The clock does not leave the outside world
    /// behind from then on.
    pub fn begin_page_time(&self, at: PageTime) {
        if let Some(wait) = self.clock.outside().lock().by_id.get_mut(&self.id) {
            wait.page_began_at.get_or_insert(at);
        }
    }

    /// Returns the real time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.began_at.elapsed()
    }
}

impl Drop for OutsideWait {
    fn drop(&mut self) {
        self.clock.outside().lock().by_id.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outside_world_has_reached_the_least_time_of_all_waits() {
        let clock = Arc::new(PageClock::private().unwrap());
        assert_eq!(clock.outside().reached(), None);
        let late = OutsideWait::begin(&clock);
        let early = OutsideWait::begin(&clock);
        assert_eq!(clock.outside().reached(), None, "no request has arrived");
        let at = PageTime::from_nanos(1_000_000_000);
        late.begin_page_time(at + Duration::from_secs(1000));
        early.begin_page_time(at);
        // The beginning does not change.
        early.begin_page_time(at + Duration::from_secs(2000));
        let reached = clock.outside().reached().unwrap();
        assert!(reached >= at && reached < at + Duration::from_secs(1000));
        drop(early);
        let reached = clock.outside().reached().unwrap();
        assert!(reached >= at + Duration::from_secs(1000));
        drop(late);
        assert_eq!(clock.outside().reached(), None);
    }
}
