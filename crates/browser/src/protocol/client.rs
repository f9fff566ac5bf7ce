use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use plumbline_clock::PageClock;
use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

use super::budget::{EventBudget, LimitExceeded, MAX_HELD_BYTES, MAX_MESSAGE_BYTES, Reservation};
use super::envelope::{CallMessage, Envelope, ProtocolEvent, SessionId};
use super::messages::{self, ReadResult};
use super::{CALL_DEADLINE, CallError};

/// All events of the browser, in order. The browser is never blocked. If a message is too large, or
/// too much is held at one time, the events end, every call fails with [`CallError::TooLarge`], and
/// further messages of the browser are discarded.
pub(crate) type ProtocolEvents = mpsc::UnboundedReceiver<ProtocolEvent>;

/// Memory of an event or a response in addition to its text.
const OVERHEAD_BYTES: usize = 200;

/// Size of the pipe from the browser, which is Linux's limit for unprivileged processes. With a
/// larger pipe a trace needs fewer switches between the two processes.
const PIPE_BYTES: usize = 1 << 20;
const READ_BUFFER_BYTES: usize = 256 << 10;

/// Calls methods of the browser. It is cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    shared: Arc<Shared>,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    /// The clock of the browser. A browser that is stopped together with it cannot respond.
    clock: Arc<PageClock>,
}

/// Limits on what is held in memory.
#[derive(Clone, Copy)]
struct Limits {
    message_bytes: usize,
    held_bytes: usize,
}

struct Shared {
    state: Mutex<State>,
    budget: Arc<EventBudget>,
}

#[derive(Default)]
struct State {
    last_id: u64,
    pending: HashMap<u64, PendingCall>,
    /// Sessions that no longer respond, with the reason.
    closed_sessions: HashMap<SessionId, CallError>,
    /// The limit that the page exceeded, after which nothing is sent or read.
    limit_exceeded: Option<LimitExceeded>,
    ended: bool,
}

struct PendingCall {
    session: Option<SessionId>,
    sender: oneshot::Sender<Result<Response, CallFailure>>,
}

/// The response to a call, which counts towards the budget until it is read.
struct Response {
    result: Box<RawValue>,
    _reservation: Reservation,
}

enum CallFailure {
    /// The browser refused the call, with its reason.
    Refused(String),
    /// The session or the whole connection has ended.
    Closed(CallError),
}

/// Connects to a browser through pipes whose other ends are its file descriptors 3 and 4.
pub(crate) fn connect(
    to_browser: OwnedFd,
    from_browser: OwnedFd,
    clock: Arc<PageClock>,
) -> std::io::Result<(Client, ProtocolEvents)> {
    // If this fails, because a quota for pipes is used up, reading is only slower.
    let _ = rustix::pipe::fcntl_setpipe_size(&from_browser, PIPE_BYTES);
    let limits = Limits {
        message_bytes: MAX_MESSAGE_BYTES,
        held_bytes: MAX_HELD_BYTES,
    };
    connect_within(to_browser, from_browser, clock, limits)
}

fn connect_within(
    to_browser: OwnedFd,
    from_browser: OwnedFd,
    clock: Arc<PageClock>,
    limits: Limits,
) -> std::io::Result<(Client, ProtocolEvents)> {
    let sender = pipe::Sender::from_owned_fd(to_browser)?;
    let receiver = pipe::Receiver::from_owned_fd(from_browser)?;
    let (outgoing, messages) = mpsc::unbounded_channel();
    let (events, subscriber) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        state: Mutex::default(),
        budget: EventBudget::new(limits.held_bytes),
    });
    tokio::spawn(write_all(sender, messages));
    let reader = read_all(receiver, Arc::clone(&shared), events, limits.message_bytes);
    tokio::spawn(reader);
    let client = Client {
        shared,
        outgoing,
        clock,
    };
    Ok((client, subscriber))
}

impl Client {
    /// Calls a method. The call is sent immediately; the future returns its response.
    pub(crate) fn call<T: DeserializeOwned>(
        &self,
        session: Option<&SessionId>,
        method: &'static str,
        params: Value,
    ) -> impl Future<Output = Result<T, CallError>> + Send + use<T> {
        self.call_within(CALL_DEADLINE, session, method, params)
    }

    pub(crate) fn call_within<T: DeserializeOwned>(
        &self,
        deadline: Duration,
        session: Option<&SessionId>,
        method: &'static str,
        params: Value,
    ) -> impl Future<Output = Result<T, CallError>> + Send + use<T> {
        let response = self.response_within(deadline, session, method, params);
        async move {
            serde_json::from_str(response.await?.result.get()).map_err(|error| {
                CallError::InvalidResponse {
                    method,
                    reason: error.to_string(),
                }
            })
        }
    }

    /// Calls a method and returns its response.
    fn response_within(
        &self,
        deadline: Duration,
        session: Option<&SessionId>,
        method: &'static str,
        params: Value,
    ) -> BoxFuture<'static, Result<Response, CallError>> {
        let (sender, receiver) = oneshot::channel();
        let call_id = self.send_call(session, method, params, Some(sender));
        let (shared, clock) = (Arc::clone(&self.shared), Arc::clone(&self.clock));
        Box::pin(async move {
            let id = call_id?;
            match clock.timeout(deadline, receiver).await {
                Some(Ok(Ok(response))) => Ok(response),
                Some(Ok(Err(CallFailure::Refused(reason)))) => {
                    Err(CallError::Refused { method, reason })
                }
                Some(Ok(Err(CallFailure::Closed(error)))) => Err(error),
                Some(Err(_)) => Err(CallError::Ended),
                None => {
                    shared.state.lock().pending.remove(&id);
                    Err(CallError::TimedOut { method })
                }
            }
        })
    }

    /// Calls a method without waiting for its response. Calls arrive in the order in which they
    /// were made.
    pub(crate) fn send(
        &self,
        session: Option<&SessionId>,
        method: &'static str,
        params: impl Serialize,
    ) {
        if let Err(error) = self.send_call(session, method, params, None) {
            tracing::debug!(method, %error, "call not sent");
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.shared.state.lock().ended
    }

    /// Returns the limit that the page exceeded, if any.
    pub(crate) fn limit_exceeded(&self) -> Option<LimitExceeded> {
        self.shared.state.lock().limit_exceeded
    }

    /// Ends the connection because the page exceeded a limit.
    pub(crate) fn abort(&self, limit: LimitExceeded) {
        self.shared.abort(limit);
    }

    /// Returns an empty reservation of the browser's budget.
    pub(crate) fn reservation(&self) -> Reservation {
        Reservation::empty(&self.shared.budget)
    }

    fn send_call(
        &self,
        session: Option<&SessionId>,
        method: &'static str,
        params: impl Serialize,
        sender: Option<oneshot::Sender<Result<Response, CallFailure>>>,
    ) -> Result<u64, CallError> {
        let mut state = self.shared.state.lock();
        if state.ended {
            return Err(CallError::Ended);
        }
        if let Some(limit) = state.limit_exceeded {
            return Err(CallError::TooLarge(limit));
        }
        if let Some(error) = session.and_then(|session| state.closed_sessions.get(session)) {
            return Err(error.clone());
        }
        state.last_id += 1;
        let id = state.last_id;
        let call = CallMessage {
            id,
            method,
            params,
            session_id: session.map(SessionId::as_str),
        };
        let mut message = serde_json::to_vec(&call).map_err(|error| CallError::Refused {
            method,
            reason: error.to_string(),
        })?;
        message.push(0);
        if let Some(sender) = sender {
            let session = session.cloned();
            state.pending.insert(id, PendingCall { session, sender });
        }
        // Under the lock, so that messages are sent in the order of their ids.
        self.outgoing.send(message).map_err(|_| CallError::Ended)?;
        Ok(id)
    }
}

impl Shared {
    fn complete_call(&self, id: u64, result: Result<Response, CallFailure>) {
        if let Some(call) = self.state.lock().pending.remove(&id) {
            let _ = call.sender.send(result);
        }
    }

    /// Fails all pending calls of a session that will not respond any more.
    fn close_session(&self, session: SessionId, error: &CallError) {
        let mut state = self.state.lock();
        let ids: Vec<u64> = state
            .pending
            .iter()
            .filter(|(_, call)| call.session.as_ref() == Some(&session))
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            if let Some(call) = state.pending.remove(&id) {
                let _ = call.sender.send(Err(CallFailure::Closed(error.clone())));
            }
        }
        state
            .closed_sessions
            .entry(session)
            .or_insert_with(|| error.clone());
    }

    fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        // Dropping the senders fails all pending calls.
        state.pending.clear();
    }

    /// Fails all pending calls because the page exceeded a limit.
    fn abort(&self, limit: LimitExceeded) {
        let mut state = self.state.lock();
        let limit = *state.limit_exceeded.get_or_insert(limit);
        for (_, call) in state.pending.drain() {
            let failure = CallFailure::Closed(CallError::TooLarge(limit));
            let _ = call.sender.send(Err(failure));
        }
    }

    fn reserve(&self, text: &RawValue) -> Result<Reservation, LimitExceeded> {
        let mut reservation = Reservation::empty(&self.budget);
        reservation.grow(text.get().len() + OVERHEAD_BYTES)?;
        Ok(reservation)
    }

    fn handle_message(
        &self,
        message: &[u8],
        events: &mpsc::UnboundedSender<ProtocolEvent>,
    ) -> Result<(), LimitExceeded> {
        let envelope: Envelope<'_> = match serde_json::from_slice(message) {
            Ok(envelope) => envelope,
            Err(error) => {
                // Without the text that the error quotes, which may be content of a page.
                let (category, column) = (error.classify(), error.column());
                tracing::debug!(?category, column, "invalid message from the browser");
                return Ok(());
            }
        };
        if let Some(id) = envelope.id {
            let result = match (envelope.error, envelope.result) {
                (Some(error), _) => Err(CallFailure::Refused(error.reason())),
                (None, result) => {
                    let result = result.unwrap_or(RawValue::NULL);
                    Ok(Response {
                        _reservation: self.reserve(result)?,
                        result: result.to_owned(),
                    })
                }
            };
            self.complete_call(id, result);
        } else if let Some(method) = envelope.method {
            let session = envelope.session_id.as_deref().map(SessionId::from);
            let params = envelope.params.unwrap_or(RawValue::NULL);
            self.close_sessions(&method, session.as_ref(), params);
            let _ = events.send(ProtocolEvent {
                session,
                method: method.into_owned(),
                _reservation: self.reserve(params)?,
                params: params.to_owned(),
            });
        }
        Ok(())
    }

    /// Closes sessions whose target crashed or was detached.
    fn close_sessions(&self, method: &str, session: Option<&SessionId>, params: &RawValue) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Detached {
            session_id: String,
        }
        match (method, session) {
            ("Inspector.targetCrashed", Some(session)) => {
                self.close_session(session.clone(), &CallError::Crashed);
            }
            ("Target.detachedFromTarget", _) => {
                if let Ok(detached) = serde_json::from_str::<Detached>(params.get()) {
                    let session = SessionId::from(detached.session_id.as_str());
                    self.close_session(session, &CallError::Detached);
                }
            }
            _ => {}
        }
    }
}

async fn write_all(mut to_browser: pipe::Sender, mut messages: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(message) = messages.recv().await {
        if to_browser.write_all(&message).await.is_err() {
            return;
        }
    }
}

async fn read_all(
    from_browser: pipe::Receiver,
    shared: Arc<Shared>,
    events: mpsc::UnboundedSender<ProtocolEvent>,
    max_message_bytes: usize,
) {
    let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, from_browser);
    let mut message = Vec::new();
    while shared.state.lock().limit_exceeded.is_none() {
        let read = messages::read_message(&mut reader, &mut message, max_message_bytes).await;
        let result = match read {
            Ok(ReadResult::Message) => shared.handle_message(&message, &events),
            Ok(ReadResult::TooLarge) => Err(LimitExceeded::Message),
            Ok(ReadResult::End) | Err(_) => return shared.end(),
        };
        if let Err(limit) = result {
            shared.abort(limit);
        }
        // The memory of a very large response must not be kept for the rest of the visit.
        message.shrink_to(READ_BUFFER_BYTES);
    }
    // Closes the channel of events.
    drop((events, message));
    messages::discard_all(&mut reader).await;
    shared.end();
}

#[cfg(test)]
mod tests;
