use super::PAYLOAD_BYTES;
use super::receiver::Receiver;
use super::sender::Sender;
use super::terms::{ConnectionId, Direction, Setup};

/// One direction of a connection: its sender and its receiver.
pub(super) struct Flow {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) sender_wakes_ns: Option<u64>,
    pub(super) receiver_wakes_ns: Option<u64>,
    pub(super) bytes_written: u64,
    pub(super) bytes_delivered: u64,
    /// Position of the end of the flow, once its sender has closed.
    pub(super) end_at: Option<u64>,
    pub(super) over: bool,
}

pub(super) struct ModelConnection {
    pub(super) flows: [Flow; 2],
}

impl Flow {
    fn new(setup: &Setup, direction: Direction, now_ns: u64, rtt_ns: u64, seed: u64) -> Self {
        let window = window_bytes(setup, direction);
        let ahead = ahead_bytes(setup, direction);
        Self {
            sender: Sender::new(now_ns, rtt_ns, window, ahead, seed),
            receiver: Receiver::new(window),
            sender_wakes_ns: None,
            receiver_wakes_ns: None,
            bytes_written: 0,
            bytes_delivered: 0,
            end_at: None,
            over: false,
        }
    }
}

impl ModelConnection {
    pub(super) fn new(setup: &Setup, id: ConnectionId, now_ns: u64, rtt_ns: u64) -> Self {
        let flow = |direction: Direction| {
            let seed = setup.seed.wrapping_add(id.0 * 2 + direction as u64);
            Flow::new(setup, direction, now_ns, rtt_ns, seed)
        };
        let flows = [flow(Direction::Up), flow(Direction::Down)];
        Self { flows }
    }

    pub(super) fn flow(&mut self, direction: Direction) -> &mut Flow {
        &mut self.flows[direction as usize]
    }
}

/// Returns the receive window: large enough not to limit a transfer that is read promptly, and a
/// bound on unread data.
fn window_bytes(setup: &Setup, direction: Direction) -> u64 {
    let kbps = setup.kbps(direction).unwrap_or(FAST_KBPS);
    let path_bytes = kbps / 8.0 * setup.rtt_ns as f64 / 1e6;
    (path_bytes as u64 * 3 + 512 * 1024).min(16 << 20)
}

/// Returns how much data a sender buffers: enough to bridge the time until more is read, and little
/// enough that the server is limited by the line's rate.
pub(super) fn ahead_bytes(setup: &Setup, direction: Direction) -> u64 {
    let kbps = setup.kbps(direction).unwrap_or(FAST_KBPS);
    let in_ten_ms = (kbps / 8.0 * 10.0) as u64;
    16 * u64::from(PAYLOAD_BYTES) + in_ten_ms
}

/// Rate assumed for a line without a limit.
const FAST_KBPS: f64 = 1_000_000.0;
