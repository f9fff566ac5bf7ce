//! Chromium's second try. Where the first connection to a host is not there after 250 ms, Chromium dials once more beside it
//! and keeps both (net/socket/transport_client_socket_pool.cc, backup jobs); but not through a proxy, to which it is
//! connected at once. On a line that far away a page would have a connection less to begin with, so the link dials in its
//! place: the next connection that the browser wants to that host and port is the one dialed then.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::dial::Dialed;
use super::record::Outcome;
use super::socks::Request;

/// A connection that is being made, or waits to be wanted.
pub(super) type Spare = JoinHandle<Result<Dialed, Outcome>>;

/// How often Chromium looks whether the first is there.
const LOOKS_EVERY: Duration = Duration::from_millis(250);

/// By host and port: met once, and with a spare or without.
#[derive(Default)]
pub(super) struct Spares {
    met: Mutex<HashMap<Request, Option<Spare>>>,
}

pub(super) enum Turn {
    First,
    WithSpare(Spare),
    Later,
}

impl Spares {
    pub(super) fn turn(&self, request: &Request) -> Turn {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        match met.entry(request.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(None);
                Turn::First
            }
            Entry::Occupied(mut met) => met.get_mut().take().map_or(Turn::Later, Turn::WithSpare),
        }
    }

    pub(super) fn keep(&self, request: &Request, spare: Spare) {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        met.insert(request.clone(), Some(spare));
    }
}

/// When Chromium would dial a second time, now that the host's address is known.
pub(super) fn second_try(wanted: Instant, known: Instant) -> Instant {
    let looked = known.duration_since(wanted).as_nanos() / LOOKS_EVERY.as_nanos();
    wanted + LOOKS_EVERY * (looked as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_a_name_is_looked_up_nobody_dials_twice() {
        let wanted = Instant::now();
        let after = |ms| second_try(wanted, wanted + Duration::from_millis(ms)) - wanted;
        assert_eq!(after(0), Duration::from_millis(250));
        assert_eq!(after(249), Duration::from_millis(250));
        assert_eq!(after(400), Duration::from_millis(500));
    }
}
