//! The log of a recorder: everything that it has recorded until now.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use plumbline_recording::{
    BodyChunk, ConnectResult, Endpoint, Handling, Header, MAX_EXCHANGES, RecordedEndpoint,
    RecordedExchange, RecordedResponse,
};

use super::RecordError;

/// The endpoints and exchanges of a visit.
pub(super) struct RecordingLog {
    began_at: Instant,
    max_bytes: u64,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    endpoints: Vec<RecordedEndpoint>,
    exchanges: Vec<ExchangeState>,
    /// True if there were more requests.
    has_more_exchanges: bool,
    bytes: u64,
}

struct ExchangeState {
    exchange: RecordedExchange,
    body: BytesMut,
    requested_at: Instant,
    responded_at: Option<Instant>,
}

/// An exchange that is being recorded. It does nothing if there are too many.
#[derive(Clone)]
pub(super) struct ExchangeEntry {
    state: Arc<Mutex<State>>,
    index: usize,
    max_bytes: u64,
}

impl RecordingLog {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            began_at: Instant::now(),
            max_bytes,
            state: Arc::default(),
        }
    }

    /// Adds the result of a connection, unless there is one of the same endpoint.
    pub(super) fn add_endpoint(&self, endpoint: &Endpoint, result: ConnectResult) {
        let mut state = self.state.lock();
        if state.endpoints.iter().all(|it| it.endpoint != *endpoint) {
            state.endpoints.push(RecordedEndpoint {
                endpoint: endpoint.clone(),
                result,
            });
        }
    }

    /// Adds a request whose headers were received just now.
    pub(super) fn add_request(
        &self,
        endpoint: Endpoint,
        method: String,
        path: String,
        request_headers: Vec<Header>,
    ) -> ExchangeEntry {
        let requested_at = Instant::now();
        let mut state = self.state.lock();
        let index = state.exchanges.len();
        if index < MAX_EXCHANGES {
            state.exchanges.push(ExchangeState {
                exchange: RecordedExchange {
                    endpoint,
                    method,
                    path,
                    request_headers,
                    request_bytes: 0,
                    started_ms: milliseconds(requested_at - self.began_at),
                    response: None,
                    handling: Handling::default(),
                    is_open: true,
                },
                body: BytesMut::new(),
                requested_at,
                responded_at: None,
            });
        } else {
            state.has_more_exchanges = true;
        }
        ExchangeEntry {
            state: Arc::clone(&self.state),
            index,
            max_bytes: self.max_bytes,
        }
    }

    /// Returns the endpoints and exchanges that were recorded until now.
    pub(super) fn contents(
        &self,
    ) -> Result<(Vec<RecordedEndpoint>, Vec<RecordedExchange>), RecordError> {
        let state = self.state.lock();
        if state.bytes > self.max_bytes {
            return Err(RecordError::TooManyBytes {
                max_bytes: self.max_bytes,
            });
        }
        if state.has_more_exchanges {
            return Err(RecordError::TooManyRequests);
        }
        let exchanges = state.exchanges.iter().map(ExchangeState::recorded);
        Ok((state.endpoints.clone(), exchanges.collect()))
    }
}

impl ExchangeState {
    fn recorded(&self) -> RecordedExchange {
        let mut exchange = self.exchange.clone();
        if let Some(response) = &mut exchange.response {
            response.body = self.body.clone().freeze();
        }
        exchange
    }
}

impl ExchangeEntry {
    fn update(&self, change: impl FnOnce(&mut ExchangeState)) {
        if let Some(exchange) = self.state.lock().exchanges.get_mut(self.index) {
            change(exchange);
        }
    }

    /// Records a part of the request's body.
    pub(super) fn request_body(&self, bytes: usize) {
        self.update(|exchange| {
            exchange.exchange.request_bytes += bytes as u64;
            exchange.requested_at = Instant::now();
        });
    }

    /// Records the headers of the response. It counts as cut off until its end is recorded.
    pub(super) fn response(&self, status: u16, headers: Vec<Header>) {
        self.update(|exchange| {
            let now = Instant::now();
            exchange.responded_at = Some(now);
            exchange.exchange.response = Some(RecordedResponse {
                status,
                headers,
                wait_ms: milliseconds(now - exchange.requested_at),
                chunks: Vec::new(),
                is_cut_off: true,
                body: Bytes::new(),
            });
        });
    }

    /// Records a part of the response's body. It is dropped if the recording is too large.
    pub(super) fn response_body(&self, bytes: &Bytes) {
        let mut state = self.state.lock();
        state.bytes += bytes.len() as u64;
        if state.bytes > self.max_bytes {
            return;
        }
        let Some(exchange) = state.exchanges.get_mut(self.index) else {
            return;
        };
        let Some(responded_at) = exchange.responded_at else {
            return;
        };
        if let Some(response) = &mut exchange.exchange.response {
            exchange.body.extend_from_slice(bytes);
            add_chunk(&mut response.chunks, responded_at.elapsed(), bytes.len());
        }
    }

    /// Records that the connection ended before the response did.
    pub(super) fn fail(&self) {
        self.update(|exchange| exchange.exchange.is_open = false);
    }

    /// Records that the response is complete.
    pub(super) fn end(&self) {
        self.update(|exchange| {
            exchange.exchange.is_open = false;
            if let Some(response) = &mut exchange.exchange.response {
                response.is_cut_off = false;
            }
        });
    }
}

/// Parts that come within this time are one, and a first part came with the headers: reading takes
/// as long.
const MIN_CHUNK_INTERVAL: Duration = Duration::from_millis(2);

fn add_chunk(chunks: &mut Vec<BodyChunk>, elapsed: Duration, bytes: usize) {
    let (after_ms, bytes) = (milliseconds(elapsed), bytes as u64);
    let last_ms = chunks.last().map_or(0.0, |last| last.after_ms);
    let came_together = after_ms - last_ms < milliseconds(MIN_CHUNK_INTERVAL);
    match chunks.last_mut() {
        Some(last) if came_together => last.bytes += bytes,
        Some(_) => chunks.push(BodyChunk { after_ms, bytes }),
        None => chunks.push(BodyChunk {
            after_ms: if came_together { 0.0 } else { after_ms },
            bytes,
        }),
    }
}

/// Returns milliseconds, rounded to microseconds.
fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_come_together_are_one_chunk() {
        let mut chunks = Vec::new();
        for (ms, bytes) in [(1, 10), (1, 20), (5, 30), (6, 40)] {
            add_chunk(&mut chunks, Duration::from_millis(ms), bytes);
        }
        let expected =
            [(0.0, 30), (5.0, 70)].map(|(after_ms, bytes)| BodyChunk { after_ms, bytes });
        assert_eq!(chunks, expected);
    }
}
