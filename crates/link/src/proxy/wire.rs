//! The model in real time: lets it happen when it is due and wakes whoever waits.
//!
//! The model computes with exact times: waking late delays a delivery, never the ones after it.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::timer::Timer;
use crate::model::{ConnectionId, Network, Output, Setup, Way};

/// Several packets that are due close together are handled in one go; at 100 Mbit/s it is two.
const SLICE_NS: u64 = 200_000;

pub(super) struct Wire {
    opened: Instant,
    state: Mutex<State>,
    timer: Timer,
}

struct State {
    net: Network,
    connections: HashMap<ConnectionId, Ends>,
    messages: HashMap<u64, oneshot::Sender<Instant>>,
    next_message: u64,
    /// What the timer is set to.
    rings_ns: u64,
}

#[derive(Default)]
struct Ends {
    flows: [Flow; 2],
    reset: bool,
    reset_waker: Option<Waker>,
}

#[derive(Default)]
struct Flow {
    arrived: u64,
    ended: bool,
    taker: Option<Waker>,
    giver: Option<Waker>,
}

/// What comes out at the end of a flow.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    Bytes(u64),
    Ended,
    Reset,
}

impl Wire {
    pub(super) fn new(setup: Setup) -> io::Result<Self> {
        Ok(Self {
            opened: Instant::now(),
            state: Mutex::new(State {
                net: Network::new(setup),
                connections: HashMap::new(),
                messages: HashMap::new(),
                next_message: 0,
                rings_ns: u64::MAX,
            }),
            timer: Timer::new()?,
        })
    }

    /// Keeps the model going, for ever.
    pub(super) async fn drive(&self) -> io::Result<()> {
        loop {
            self.timer.rings().await?;
            self.lock().rings_ns = u64::MAX;
            self.with(|_| ());
        }
    }

    fn now_ns(&self) -> u64 {
        self.opened.elapsed().as_nanos() as u64
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the network as it is now.
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let now_ns = self.now_ns();
        let mut state = self.lock();
        state.net.advance(now_ns);
        let result = act(&mut state);
        let wakers = state.dispatch();
        self.set_timer(&mut state, now_ns);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    fn set_timer(&self, state: &mut State, now_ns: u64) {
        let Some(next_ns) = state.net.next_event_ns() else {
            return;
        };
        let next_ns = next_ns.max(now_ns + SLICE_NS);
        if next_ns < state.rings_ns {
            state.rings_ns = next_ns;
            let delay = Duration::from_nanos(next_ns - now_ns);
            if let Err(error) = self.timer.set(delay) {
                tracing::error!(%error, "the link's timer could not be set");
            }
        }
    }

    /// From now on everything passes without limit or delay.
    pub(super) fn remove_limits(&self) {
        self.with(|state| state.net.remove_limits());
    }

    /// Sends a packet that belongs to no connection, at once; waiting for it tells how long it took.
    pub(super) fn message(
        &self,
        way: Way,
        wire_bytes: u32,
    ) -> impl Future<Output = Duration> + use<> {
        let sent = Instant::now();
        let (arrived, arrives) = oneshot::channel();
        self.with(|state| {
            let tag = state.next_message;
            state.next_message += 1;
            state.messages.insert(tag, arrived);
            state.net.message(way, wire_bytes, tag);
        });
        async move {
            // It fails only when the wire is gone, and with it whoever waits here.
            let arrived = arrives.await.unwrap_or(sent);
            arrived.duration_since(sent)
        }
    }

    pub(super) fn establish(self: &Arc<Self>, rtt: Duration) -> Carrier {
        let id = self.with(|state| {
            let id = state.net.establish(rtt.as_nanos() as u64);
            state.connections.insert(id, Ends::default());
            id
        });
        Carrier {
            wire: Arc::clone(self),
            id,
        }
    }
}

/// One connection on the wire; forgotten when dropped.
pub(super) struct Carrier {
    wire: Arc<Wire>,
    id: ConnectionId,
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.wire.with(|state| {
            state.net.forget(self.id);
            state.connections.remove(&self.id);
        });
    }
}

impl Carrier {
    /// Waits until the flow wants bytes. `None`: the connection was reset.
    pub(super) async fn room(&self, way: Way) -> Option<u64> {
        poll_fn(|context| {
            self.wire.with(|state| {
                let room = state.net.room(self.id, way);
                let Some(ends) = state.connections.get_mut(&self.id) else {
                    return Poll::Ready(None);
                };
                if ends.reset {
                    return Poll::Ready(None);
                }
                if room > 0 {
                    return Poll::Ready(Some(room));
                }
                ends.flows[way as usize].giver = Some(context.waker().clone());
                Poll::Pending
            })
        })
        .await
    }

    pub(super) fn offer(&self, way: Way, bytes: u64) {
        self.wire.with(|state| state.net.offer(self.id, way, bytes));
    }

    pub(super) fn close(&self, way: Way) {
        self.wire.with(|state| state.net.close(self.id, way));
    }

    pub(super) fn reset(&self, way: Way) {
        self.wire.with(|state| state.net.reset(self.id, way));
    }

    /// Waits for something to come out at the end of the flow.
    pub(super) async fn arrived(&self, way: Way) -> Arrived {
        poll_fn(|context| {
            let mut state = self.wire.lock();
            let Some(ends) = state.connections.get_mut(&self.id) else {
                return Poll::Ready(Arrived::Reset);
            };
            let reset = ends.reset;
            let flow = &mut ends.flows[way as usize];
            if flow.arrived > 0 {
                return Poll::Ready(Arrived::Bytes(std::mem::take(&mut flow.arrived)));
            }
            if reset {
                return Poll::Ready(Arrived::Reset);
            }
            if flow.ended {
                return Poll::Ready(Arrived::Ended);
            }
            flow.taker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    pub(super) fn consumed(&self, way: Way, bytes: u64) {
        self.wire
            .with(|state| state.net.consumed(self.id, way, bytes));
    }

    /// Waits until the connection is reset.
    pub(super) async fn broken(&self) {
        poll_fn(|context| {
            let mut state = self.wire.lock();
            match state.connections.get_mut(&self.id) {
                Some(ends) if !ends.reset => {
                    ends.reset_waker = Some(context.waker().clone());
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            }
        })
        .await;
    }
}

impl State {
    /// Notes what the network put out; returns who waited for it.
    fn dispatch(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(output) = self.net.next_output() {
            if let Output::Message(tag) = output {
                if let Some(waiting) = self.messages.remove(&tag) {
                    let _ = waiting.send(Instant::now());
                }
                continue;
            }
            self.note(output, &mut wakers);
        }
        wakers
    }

    fn note(&mut self, output: Output, wakers: &mut Vec<Waker>) {
        let (Output::Delivered(id, way, _)
        | Output::Ended(id, way)
        | Output::Reset(id, way)
        | Output::Room(id, way)) = output
        else {
            return;
        };
        let Some(ends) = self.connections.get_mut(&id) else {
            return;
        };
        let flow = &mut ends.flows[way as usize];
        match output {
            Output::Delivered(_, _, bytes) => {
                flow.arrived += bytes;
                wakers.extend(flow.taker.take());
            }
            Output::Ended(..) => {
                flow.ended = true;
                wakers.extend(flow.taker.take());
            }
            Output::Room(..) => wakers.extend(flow.giver.take()),
            Output::Reset(..) => {
                ends.reset = true;
                wakers.extend(ends.reset_waker.take());
                for flow in &mut ends.flows {
                    wakers.extend(flow.taker.take());
                    wakers.extend(flow.giver.take());
                }
            }
            Output::Message(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Algorithm;

    #[tokio::test]
    async fn a_packet_tells_what_it_took_however_late_it_is_asked() {
        let wire = Wire::new(Setup {
            down_kbps: None,
            up_kbps: None,
            rtt_ns: 4_000_000,
            loss_share: 0.0,
            algorithm: Algorithm::default(),
            seed: 1,
        })
        .unwrap();
        let asked_late = async {
            let early = wire.message(Way::Up, 60);
            let mut later = Duration::ZERO;
            for _ in 0..3 {
                later += wire.message(Way::Up, 60).await;
            }
            (early.await, later)
        };
        tokio::select! {
            (early, later) = asked_late => assert!(early < later, "{early:?} {later:?}"),
            failed = wire.drive() => panic!("{failed:?}"),
        }
    }
}
