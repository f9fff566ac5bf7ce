//! Relates the real time of a server to page time.
//!
//! A server that takes 300 ms to answer takes 300 ms of page time, whatever the rate of the page's
//! clock: its answer enters the emulated network that long after the request has left it. For a
//! fast clock this is possible if the server has the request early, so it is forwarded to the
//! server at once, while it is still under way on the emulated network. This is done only where
//! what the server sends next can only be its answer. While an answer is overdue, the controller of
//! the clock lets page time pass no faster than real time ([`OutsideWait`]).
//!
//! A replayed server waits in page time itself, from the [`Arrivals`] of its requests. So it gets
//! them when they arrive, and its answers enter the emulated network at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use plumbline_clock::{OutsideWait, PageClock, PageTime};
use tokio::sync::Notify;

use super::servers::Arrivals;
use crate::model::PAYLOAD_BYTES;

/// Number of bytes up to which a packet is not taken for a request. The acknowledgements and window
/// updates of HTTP/2 are shorter, and have no answer.
const MAX_CONTROL_BYTES: usize = 40;

/// Number of bytes up to which a request is forwarded before it has arrived: two packets, as the
/// first message of TLS needs them. A server may answer the beginning of a longer one.
const MAX_FORWARDED_BYTES: usize = 2 * PAYLOAD_BYTES as usize;

/// Waits that are shorter would take longer than they should.
const TIMER_PRECISION: Duration = Duration::from_micros(100);

/// Waits until the page time at which an answer is due.
pub(super) async fn wait_until_due(clock: &Arc<PageClock>, due_at: PageTime) {
    if due_at - clock.now() > TIMER_PRECISION {
        clock.sleep_until(due_at).await;
    }
}

/// The exchange of one connection with its server.
pub(super) struct ServerTime {
    clock: Arc<PageClock>,
    state: Mutex<State>,
    arrival: Notify,
    /// The arrivals that a replayed server is told about; `None` for other servers.
    arrivals: Option<Arrivals>,
}

struct State {
    /// Bytes that were forwarded to the server and have not arrived on the emulated network.
    forwarded: u64,
    /// Bytes that will be written to the server when they have arrived.
    queued: u64,
    /// When the last request was given to the server.
    sent_at: Instant,
    /// When it arrived on the emulated network.
    arrived_at: PageTime,
    /// The answer that the server owes, if it has sent nothing since the last request.
    unanswered: Option<OutsideWait>,
    /// The moment from which on the server's time counts: that of its last bytes, unless those were
    /// there without a wait.
    waits_since: Option<Moment>,
}

/// A moment in real time and in page time.
#[derive(Debug, Clone, Copy)]
struct Moment {
    real: Instant,
    page: PageTime,
}

impl ServerTime {
    pub(super) fn new(clock: &Arc<PageClock>, arrivals: Option<Arrivals>) -> Self {
        Self {
            state: Mutex::new(State {
                forwarded: 0,
                queued: 0,
                sent_at: Instant::now(),
                arrived_at: clock.now(),
                unanswered: None,
                waits_since: None,
            }),
            clock: Arc::clone(clock),
            arrival: Notify::new(),
            arrivals,
        }
    }

    /// Returns whether bytes that the browser sends now may be given to the server before they have
    /// arrived.
    pub(super) fn may_forward(&self, bytes: usize) -> bool {
        if self.arrivals.is_some() || self.clock.speed() <= 1.0 {
            return false;
        }
        let state = self.state.lock();
        let is_short = state.forwarded as usize + bytes <= MAX_FORWARDED_BYTES;
        is_short && state.queued == 0 && (state.forwarded > 0 || state.unanswered.is_none())
    }

    /// Records bytes that were given to the server before they have arrived.
    pub(super) fn forwarded(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.forwarded += bytes as u64;
        state.sent_at = Instant::now();
        if bytes > MAX_CONTROL_BYTES {
            state.unanswered = Some(OutsideWait::begin(&self.clock));
        }
    }

    /// Records bytes that are given to the server when they have arrived.
    pub(super) fn queued(&self, bytes: usize) {
        self.state.lock().queued += bytes as u64;
    }

    /// Records bytes that have arrived on the emulated network, and returns how many of them the
    /// server has already.
    pub(super) fn arrived(&self, bytes: u64) -> u64 {
        let mut state = self.state.lock();
        let known = bytes.min(state.forwarded);
        state.forwarded -= known;
        state.arrived_at = self.clock.now();
        if let Some(arrivals) = &self.arrivals {
            arrivals.set_last(state.arrived_at);
        }
        if state.forwarded == 0 {
            if let Some(wait) = &state.unanswered {
                wait.begin_page_time(state.arrived_at);
            }
            self.arrival.notify_waiters();
        }
        known
    }

    /// Records bytes that have arrived and were written to the server.
    pub(super) fn written(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let mut state = self.state.lock();
        state.queued = state.queued.saturating_sub(bytes);
        state.sent_at = Instant::now();
        if bytes > MAX_CONTROL_BYTES as u64 && self.arrivals.is_none() {
            let wait = OutsideWait::begin(&self.clock);
            wait.begin_page_time(state.arrived_at);
            state.unanswered = Some(wait);
        }
    }

    /// Records that bytes of the server were there without a wait: the emulated network takes
    /// longer than the server.
    pub(super) fn read_at_once(&self) {
        let mut state = self.state.lock();
        state.unanswered = None;
        state.waits_since = None;
    }

    /// Begins to wait for the server, if it was not waited for already.
    pub(super) fn wait(&self) {
        let now = || Moment {
            real: Instant::now(),
            page: self.clock.now(),
        };
        self.state.lock().waits_since.get_or_insert_with(now);
    }

    /// Waits until the page time at which bytes that came at `came_at` have been sent.
    pub(super) async fn hold(&self, came_at: Instant) {
        if self.arrivals.is_some() {
            return;
        }
        // The answer is here. From now on only the emulated network delays it.
        let (sent_at, waits_since) = {
            let mut state = self.state.lock();
            state.unanswered = None;
            (state.sent_at, state.waits_since)
        };
        let arrived_at = self.request_arrived().await;
        let (real, page) = waits_since.map_or((sent_at, arrived_at), |since| {
            (since.real.max(sent_at), since.page.max(arrived_at))
        });
        let due_at = page + came_at.saturating_duration_since(real);
        // What comes next may come before this has been sent: its time counts from here.
        self.state.lock().waits_since = Some(Moment {
            real: came_at,
            page: due_at,
        });
        wait_until_due(&self.clock, due_at).await;
    }
}

impl ServerTime {
    /// Waits until what was forwarded has arrived, and returns when.
    async fn request_arrived(&self) -> PageTime {
        loop {
            let arrival = self.arrival.notified();
            {
                let state = self.state.lock();
                if state.forwarded == 0 {
                    return state.arrived_at;
                }
            }
            arrival.await;
        }
    }
}
