//! Runs the network model in page time: advances it when an event is due, and wakes the tasks that
//! wait for it.
//!
//! The model computes with exact times: a late wakeup delays one delivery, never the ones after it.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use plumbline_clock::{PageClock, PageTime, PageTimer, RealTimer};
use tokio::sync::oneshot;

use crate::model::{ConnectionId, Direction, NetworkModel, Output, Setup};

/// Minimum time between two wakeups. Packets that are due within it are handled together; at
/// 100 Mbit/s these are two.
const MIN_WAKEUP_INTERVAL_NS: u64 = 200_000;

/// The emulated network of one link.
pub(super) struct NetworkEmulator {
    clock: Arc<PageClock>,
    opened_at: PageTime,
    state: Mutex<State>,
    timer: RealTimer,
}

struct State {
    net: NetworkModel,
    connections: HashMap<ConnectionId, ConnectionState>,
    messages: HashMap<u64, oneshot::Sender<PageTime>>,
    next_message: u64,
    /// Time of the next event, over which the clock does not jump.
    next_event: PageTimer,
    /// Time for which the timer is set.
    timer_set_for: Option<PageTime>,
}

#[derive(Default)]
struct ConnectionState {
    flows: [Flow; 2],
    reset: bool,
    reset_waker: Option<Waker>,
}

#[derive(Default)]
struct Flow {
    /// Number of bytes that have arrived and have not been reported yet.
    arrived: u64,
    ended: bool,
    receiver_waker: Option<Waker>,
    sender_waker: Option<Waker>,
}

/// An event at the receiving end of a flow.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FlowEvent {
    Bytes(u64),
    Ended,
    Reset,
}

impl NetworkEmulator {
    pub(super) fn new(setup: Setup, clock: Arc<PageClock>) -> io::Result<Self> {
        Ok(Self {
            opened_at: clock.now(),
            state: Mutex::new(State {
                net: NetworkModel::new(setup),
                connections: HashMap::new(),
                messages: HashMap::new(),
                next_message: 0,
                next_event: PageTimer::new(Arc::clone(&clock)),
                timer_set_for: None,
            }),
            timer: RealTimer::new()?,
            clock,
        })
    }

    /// Advances the model whenever an event is due. Returns only if the timer fails.
    pub(super) async fn run(&self) -> io::Result<()> {
        let mut jumps = self.clock.jumps();
        loop {
            tokio::select! {
                result = self.timer.wait() => result?,
                _ = jumps.changed() => {}
            }
            self.state.lock().timer_set_for = None;
            self.update(|_| ());
        }
    }

    fn now_ns(&self) -> u64 {
        (self.clock.now() - self.opened_at).as_nanos() as u64
    }

    /// Advances the network to the current time, applies `change` to it, and wakes the tasks whose
    /// events have occurred.
    fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let now_ns = self.now_ns();
        let mut state = self.state.lock();
        state.net.advance(now_ns);
        let result = change(&mut state);
        let wakers = state.process_outputs(self.opened_at + Duration::from_nanos(now_ns));
        self.set_timer(&mut state, now_ns);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    fn set_timer(&self, state: &mut State, now_ns: u64) {
        let next_ns = state.net.next_event_ns();
        let next = next_ns.map(|next_ns| {
            let next_ns = next_ns.max(now_ns + MIN_WAKEUP_INTERVAL_NS);
            self.opened_at + Duration::from_nanos(next_ns)
        });
        state.next_event.set(next);
        if let Some(next) = next
            && state.timer_set_for.is_none_or(|at| next < at)
        {
            state.timer_set_for = Some(next);
            // The timer may expire too early if the clock slows down; it is then set again.
            let delay = self.clock.real_wait(next).unwrap_or_default();
            if let Err(error) = self.timer.set(delay) {
                tracing::error!(%error, "failed to set the link's timer");
            }
        }
    }

    /// Removes all limits and delays from now on.
    pub(super) fn remove_limits(&self) {
        self.update(|state| state.net.remove_limits());
    }

    /// Sends a packet that belongs to no connection. The packet is sent by the call itself; the
    /// future completes when it has arrived and returns how long that took.
    pub(super) fn send_message(
        &self,
        direction: Direction,
        wire_bytes: u32,
    ) -> impl Future<Output = Duration> + use<> {
        let sent_at = self.clock.now();
        let (sender, receiver) = oneshot::channel();
        self.update(|state| {
            let tag = state.next_message;
            state.next_message += 1;
            state.messages.insert(tag, sender);
            state.net.message(direction, wire_bytes, tag);
        });
        async move {
            // This fails only when the emulator is dropped, and then the result is not used.
            let arrived_at = receiver.await.unwrap_or(sent_at);
            arrived_at - sent_at
        }
    }

    /// Opens a connection whose handshake took `rtt`.
    pub(super) fn establish(self: &Arc<Self>, rtt: Duration) -> EmulatedConnection {
        let id = self.update(|state| {
            let id = state.net.establish(rtt.as_nanos() as u64);
            state.connections.insert(id, ConnectionState::default());
            id
        });
        EmulatedConnection {
            emulator: Arc::clone(self),
            id,
        }
    }
}

/// One connection on the emulated network, which ends when this is dropped.
pub(super) struct EmulatedConnection {
    emulator: Arc<NetworkEmulator>,
    id: ConnectionId,
}

impl Drop for EmulatedConnection {
    fn drop(&mut self) {
        self.emulator.update(|state| {
            state.net.forget(self.id);
            state.connections.remove(&self.id);
        });
    }
}

impl EmulatedConnection {
    pub(super) fn clock(&self) -> &Arc<PageClock> {
        &self.emulator.clock
    }

    /// Waits until the flow accepts bytes and returns how many; `None` if the connection was reset.
    pub(super) async fn wait_for_capacity(&self, direction: Direction) -> Option<u64> {
        poll_fn(|context| {
            self.emulator.update(|state| {
                let capacity = state.net.capacity(self.id, direction);
                let Some(connection) = state.connections.get_mut(&self.id) else {
                    return Poll::Ready(None);
                };
                if connection.reset {
                    return Poll::Ready(None);
                }
                if capacity > 0 {
                    return Poll::Ready(Some(capacity));
                }
                connection.flows[direction as usize].sender_waker = Some(context.waker().clone());
                Poll::Pending
            })
        })
        .await
    }

    pub(super) fn send(&self, direction: Direction, bytes: u64) {
        self.emulator
            .update(|state| state.net.write(self.id, direction, bytes));
    }

    pub(super) fn close(&self, direction: Direction) {
        self.emulator
            .update(|state| state.net.close(self.id, direction));
    }

    pub(super) fn reset(&self, direction: Direction) {
        self.emulator
            .update(|state| state.net.reset(self.id, direction));
    }

    /// Waits for the next event at the receiving end of the flow.
    pub(super) async fn next_event(&self, direction: Direction) -> FlowEvent {
        poll_fn(|context| {
            let mut state = self.emulator.state.lock();
            let Some(connection) = state.connections.get_mut(&self.id) else {
                return Poll::Ready(FlowEvent::Reset);
            };
            let reset = connection.reset;
            let flow = &mut connection.flows[direction as usize];
            if flow.arrived > 0 {
                return Poll::Ready(FlowEvent::Bytes(std::mem::take(&mut flow.arrived)));
            }
            if reset {
                return Poll::Ready(FlowEvent::Reset);
            }
            if flow.ended {
                return Poll::Ready(FlowEvent::Ended);
            }
            flow.receiver_waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    pub(super) fn consumed(&self, direction: Direction, bytes: u64) {
        self.emulator
            .update(|state| state.net.consumed(self.id, direction, bytes));
    }

    /// Waits until the connection is reset.
    pub(super) async fn wait_for_reset(&self) {
        poll_fn(|context| {
            let mut state = self.emulator.state.lock();
            match state.connections.get_mut(&self.id) {
                Some(connection) if !connection.reset => {
                    connection.reset_waker = Some(context.waker().clone());
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            }
        })
        .await;
    }
}

impl State {
    /// Records the outputs of the network and returns the wakers of the tasks that wait for them.
    fn process_outputs(&mut self, now: PageTime) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(output) = self.net.next_output() {
            if let Output::Message(tag) = output {
                if let Some(sender) = self.messages.remove(&tag) {
                    let _ = sender.send(now);
                }
                continue;
            }
            self.process_output(output, &mut wakers);
        }
        wakers
    }

    fn process_output(&mut self, output: Output, wakers: &mut Vec<Waker>) {
        let (Output::Delivered(id, direction, _)
        | Output::Ended(id, direction)
        | Output::Reset(id, direction)
        | Output::Capacity(id, direction)) = output
        else {
            return;
        };
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let flow = &mut connection.flows[direction as usize];
        match output {
            Output::Delivered(_, _, bytes) => {
                flow.arrived += bytes;
                wakers.extend(flow.receiver_waker.take());
            }
            Output::Ended(..) => {
                flow.ended = true;
                wakers.extend(flow.receiver_waker.take());
            }
            Output::Capacity(..) => wakers.extend(flow.sender_waker.take()),
            Output::Reset(..) => {
                connection.reset = true;
                wakers.extend(connection.reset_waker.take());
                for flow in &mut connection.flows {
                    wakers.extend(flow.receiver_waker.take());
                    wakers.extend(flow.sender_waker.take());
                }
            }
            Output::Message(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_transit_time_of_a_packet_does_not_depend_on_when_it_is_awaited() {
        let setup = Setup {
            down_kbps: None,
            up_kbps: None,
            rtt_ns: 4_000_000,
            loss_share: 0.0,
            seed: 1,
        };
        let clock = Arc::new(PageClock::private().unwrap());
        let emulator = NetworkEmulator::new(setup, clock).unwrap();
        let measure = async {
            let first = emulator.send_message(Direction::Up, 60);
            let mut later = Duration::ZERO;
            for _ in 0..3 {
                later += emulator.send_message(Direction::Up, 60).await;
            }
            (first.await, later)
        };
        tokio::select! {
            (first, later) = measure => assert!(first < later, "{first:?} {later:?}"),
            result = emulator.run() => panic!("{result:?}"),
        }
    }
}
