use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::budget::{Budget, Excess, Held, MAX_HELD_BYTES, MAX_MESSAGE_BYTES};
use super::envelope::{Envelope, Event, Request, SessionId};
use super::messages::{self, Next};
use super::{CALL_DEADLINE, CallError};

/// Everything the browser reports, in order. Nothing holds the browser up. When a message is too large, or too much is held at
/// a time, events end here, every call fails with [`CallError::TooLarge`], and what the browser still says is not kept.
pub(crate) type Events = mpsc::UnboundedReceiver<Event>;

/// What an event or an answer takes besides its text.
const OVERHEAD_BYTES: usize = 200;

/// What Linux grants anybody without asking; a trace then needs fewer turns between two processes.
const PIPE_BYTES: usize = 1 << 20;
const READ_BUFFER_BYTES: usize = 256 << 10;

/// Asks the browser for things. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    shared: Arc<Shared>,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
}

struct Shared {
    state: Mutex<State>,
    budget: Arc<Budget>,
}

#[derive(Default)]
struct State {
    last_id: u64,
    waiting: HashMap<u64, Waiting>,
    /// Sessions that answer no more, and why.
    gone: HashMap<SessionId, CallError>,
    /// The page made something too large: nothing is asked or read any more.
    excess: Option<Excess>,
    ended: bool,
}

struct Waiting {
    session: Option<SessionId>,
    answer: oneshot::Sender<Result<Answer, Failed>>,
}

/// What the browser answered, counted until somebody has read it.
struct Answer {
    result: Box<RawValue>,
    _held: Held,
}

enum Failed {
    Refused(String),
    Gone(CallError),
}

/// Starts talking through the two pipe ends that the browser has as its file descriptors 3 and 4.
pub(crate) fn connect(
    to_browser: OwnedFd,
    from_browser: OwnedFd,
) -> std::io::Result<(Client, Events)> {
    // A refusal (a quota for pipes is used up) only makes it slower.
    let _ = rustix::pipe::fcntl_setpipe_size(&from_browser, PIPE_BYTES);
    connect_within(to_browser, from_browser, MAX_MESSAGE_BYTES, MAX_HELD_BYTES)
}

fn connect_within(
    to_browser: OwnedFd,
    from_browser: OwnedFd,
    max_message_bytes: usize,
    max_held_bytes: usize,
) -> std::io::Result<(Client, Events)> {
    let sender = pipe::Sender::from_owned_fd(to_browser)?;
    let receiver = pipe::Receiver::from_owned_fd(from_browser)?;
    let (outgoing, messages) = mpsc::unbounded_channel();
    let (events, subscriber) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        state: Mutex::default(),
        budget: Budget::new(max_held_bytes),
    });
    tokio::spawn(write_all(sender, messages));
    let reading = Arc::clone(&shared);
    tokio::spawn(read_all(receiver, reading, events, max_message_bytes));
    Ok((Client { shared, outgoing }, subscriber))
}

impl Client {
    /// Calls a method, at once; the future reads its answer.
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
        let (answer, answered) = oneshot::channel();
        let posted = self.post(session, method, params, Some(answer));
        let shared = Arc::clone(&self.shared);
        async move {
            let id = posted?;
            let answer = match timeout(deadline, answered).await {
                Ok(Ok(Ok(answer))) => answer,
                Ok(Ok(Err(Failed::Refused(reason)))) => {
                    return Err(CallError::Refused { method, reason });
                }
                Ok(Ok(Err(Failed::Gone(error)))) => return Err(error),
                Ok(Err(_)) => return Err(CallError::Ended),
                Err(_) => {
                    shared.lock().waiting.remove(&id);
                    return Err(CallError::Late { method });
                }
            };
            serde_json::from_str(answer.result.get()).map_err(|error| CallError::Misunderstood {
                method,
                reason: error.to_string(),
            })
        }
    }

    /// Calls a method without waiting for its answer. Calls arrive in the order they were made.
    pub(crate) fn send(
        &self,
        session: Option<&SessionId>,
        method: &'static str,
        params: impl Serialize,
    ) {
        if let Err(error) = self.post(session, method, params, None) {
            tracing::debug!(method, %error, "not sent");
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.shared.lock().ended
    }

    /// What the page made too large, if anything.
    pub(crate) fn excess(&self) -> Option<Excess> {
        self.shared.lock().excess
    }

    /// Ends the conversation because the page made something too large.
    pub(crate) fn give_up(&self, excess: Excess) {
        self.shared.give_up(excess);
    }

    /// For counting what is kept of what the browser says.
    pub(crate) fn held(&self) -> Held {
        Held::nothing_of(&self.shared.budget)
    }

    fn post(
        &self,
        session: Option<&SessionId>,
        method: &'static str,
        params: impl Serialize,
        answer: Option<oneshot::Sender<Result<Answer, Failed>>>,
    ) -> Result<u64, CallError> {
        let mut state = self.shared.lock();
        if state.ended {
            return Err(CallError::Ended);
        }
        if let Some(excess) = state.excess {
            return Err(CallError::TooLarge(excess));
        }
        if let Some(error) = session.and_then(|session| state.gone.get(session)) {
            return Err(error.clone());
        }
        state.last_id += 1;
        let id = state.last_id;
        let request = Request {
            id,
            method,
            params,
            session_id: session.map(SessionId::as_str),
        };
        let mut message = serde_json::to_vec(&request).map_err(|error| CallError::Refused {
            method,
            reason: error.to_string(),
        })?;
        message.push(0);
        if let Some(answer) = answer {
            let session = session.cloned();
            state.waiting.insert(id, Waiting { session, answer });
        }
        // Under the lock, so that messages go out in the order of their ids.
        self.outgoing.send(message).map_err(|_| CallError::Ended)?;
        Ok(id)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self, id: u64, outcome: Result<Answer, Failed>) {
        if let Some(waiting) = self.lock().waiting.remove(&id) {
            let _ = waiting.answer.send(outcome);
        }
    }

    /// After a crash a session never answers again: everyone who waits for it is told at once.
    fn session_gone(&self, session: SessionId, error: &CallError) {
        let mut state = self.lock();
        let lost: Vec<u64> = state
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.session.as_ref() == Some(&session))
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            if let Some(waiting) = state.waiting.remove(&id) {
                let _ = waiting.answer.send(Err(Failed::Gone(error.clone())));
            }
        }
        state.gone.entry(session).or_insert_with(|| error.clone());
    }

    fn ended(&self) {
        let mut state = self.lock();
        state.ended = true;
        // Dropping the senders tells every caller.
        state.waiting.clear();
    }

    /// Everyone who waits is told at once.
    fn give_up(&self, excess: Excess) {
        let mut state = self.lock();
        let excess = *state.excess.get_or_insert(excess);
        for (_, waiting) in state.waiting.drain() {
            let gone = Failed::Gone(CallError::TooLarge(excess));
            let _ = waiting.answer.send(Err(gone));
        }
    }

    fn hold(&self, text: &RawValue) -> Result<Held, Excess> {
        let mut held = Held::nothing_of(&self.budget);
        held.grow(text.get().len() + OVERHEAD_BYTES)?;
        Ok(held)
    }

    fn take(&self, message: &[u8], events: &mpsc::UnboundedSender<Event>) -> Result<(), Excess> {
        let envelope: Envelope<'_> = match serde_json::from_slice(message) {
            Ok(envelope) => envelope,
            Err(error) => {
                // Without what the error quotes, which may be a page's.
                let (category, column) = (error.classify(), error.column());
                tracing::debug!(
                    ?category,
                    column,
                    "a message of the browser was not understood"
                );
                return Ok(());
            }
        };
        if let Some(id) = envelope.id {
            let outcome = match (envelope.error, envelope.result) {
                (Some(refusal), _) => Err(Failed::Refused(refusal.reason())),
                (None, result) => {
                    let result = result.unwrap_or(RawValue::NULL);
                    Ok(Answer {
                        _held: self.hold(result)?,
                        result: result.to_owned(),
                    })
                }
            };
            self.answered(id, outcome);
        } else if let Some(method) = envelope.method {
            let session = envelope.session_id.as_deref().map(SessionId::from);
            let params = envelope.params.unwrap_or(RawValue::NULL);
            self.notice_losses(&method, session.as_ref(), params);
            let _ = events.send(Event {
                session,
                method: method.into_owned(),
                _held: self.hold(params)?,
                params: params.to_owned(),
            });
        }
        Ok(())
    }

    fn notice_losses(&self, method: &str, session: Option<&SessionId>, params: &RawValue) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Detached {
            session_id: String,
        }
        match (method, session) {
            ("Inspector.targetCrashed", Some(session)) => {
                self.session_gone(session.clone(), &CallError::Crashed);
            }
            ("Target.detachedFromTarget", _) => {
                if let Ok(detached) = serde_json::from_str::<Detached>(params.get()) {
                    let session = SessionId::from(detached.session_id.as_str());
                    self.session_gone(session, &CallError::Detached);
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
    events: mpsc::UnboundedSender<Event>,
    max_message_bytes: usize,
) {
    let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, from_browser);
    let mut message = Vec::new();
    while shared.lock().excess.is_none() {
        let taken = match messages::next(&mut reader, &mut message, max_message_bytes).await {
            Ok(Next::Message) => shared.take(&message, &events),
            Ok(Next::TooLarge) => Err(Excess::Message),
            Ok(Next::End) | Err(_) => return shared.ended(),
        };
        if let Err(excess) = taken {
            shared.give_up(excess);
        }
        // One very large answer must not keep its memory for the rest of the visit.
        message.shrink_to(READ_BUFFER_BYTES);
    }
    // Tells who waits for events that there will be none.
    drop((events, message));
    messages::drain_all(&mut reader).await;
    shared.ended();
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokio::io::AsyncReadExt;

    /// The browser's side of the pipes.
    struct Peer {
        from_us: pipe::Receiver,
        to_us: pipe::Sender,
    }

    fn pair() -> (Client, Events, Peer) {
        pair_within(MAX_MESSAGE_BYTES, MAX_HELD_BYTES)
    }

    fn pair_within(max_message_bytes: usize, max_held_bytes: usize) -> (Client, Events, Peer) {
        let (their_read, our_write) = std::io::pipe().unwrap();
        let (our_read, their_write) = std::io::pipe().unwrap();
        let (client, events) = connect_within(
            our_write.into(),
            our_read.into(),
            max_message_bytes,
            max_held_bytes,
        )
        .unwrap();
        let from_us = pipe::Receiver::from_owned_fd(their_read.into()).unwrap();
        let to_us = pipe::Sender::from_owned_fd(their_write.into()).unwrap();
        (client, events, Peer { from_us, to_us })
    }

    impl Peer {
        async fn heard(&mut self) -> Value {
            let mut message = Vec::new();
            loop {
                match self.from_us.read_u8().await.unwrap() {
                    0 => return serde_json::from_slice(&message).unwrap(),
                    byte => message.push(byte),
                }
            }
        }

        async fn say(&mut self, message: Value) {
            let mut bytes = serde_json::to_vec(&message).unwrap();
            bytes.push(0);
            self.to_us.write_all(&bytes).await.unwrap();
        }
    }

    #[tokio::test]
    async fn an_answer_reaches_its_caller_and_an_event_the_subscriber() {
        let (client, mut events, mut peer) = pair();
        let session = SessionId::from("S");
        let asked = tokio::spawn(async move {
            client
                .call::<Value>(Some(&session), "Moon.phase", json!({"day": 3}))
                .await
        });
        let heard = peer.heard().await;
        assert_eq!(heard["method"], "Moon.phase");
        assert_eq!(heard["sessionId"], "S");
        assert_eq!(heard["params"]["day"], 3);
        peer.say(json!({"method": "Moon.rose", "params": {"at": 7}}))
            .await;
        peer.say(json!({"id": heard["id"], "result": {"full": true}}))
            .await;
        assert_eq!(asked.await.unwrap().unwrap(), json!({"full": true}));
        let event = events.recv().await.unwrap();
        assert_eq!(event.method, "Moon.rose");
        assert_eq!(event.read::<Value>().unwrap()["at"], 7);
    }

    #[tokio::test]
    async fn a_crash_fails_every_call_of_that_session_and_no_other() {
        let (client, _events, mut peer) = pair();
        let (one, two) = (SessionId::from("one"), SessionId::from("two"));
        let (caller, crashed) = (client.clone(), one.clone());
        let lost =
            tokio::spawn(
                async move { caller.call::<Value>(Some(&crashed), "A.b", json!({})).await },
            );
        let caller = client.clone();
        let kept =
            tokio::spawn(async move { caller.call::<Value>(Some(&two), "A.b", json!({})).await });
        let mut kept_id = Value::Null;
        for _ in 0..2 {
            let heard = peer.heard().await;
            if heard["sessionId"] == "two" {
                kept_id = heard["id"].clone();
            }
        }
        peer.say(json!({"method": "Inspector.targetCrashed", "params": {}, "sessionId": "one"}))
            .await;
        assert_eq!(lost.await.unwrap(), Err(CallError::Crashed));
        let later = client.call::<Value>(Some(&one), "A.c", json!({})).await;
        assert_eq!(later, Err(CallError::Crashed));
        peer.say(json!({"id": kept_id, "result": 1})).await;
        assert_eq!(kept.await.unwrap(), Ok(json!(1)));
    }

    #[tokio::test]
    async fn when_the_pipe_closes_all_calls_fail_at_once() {
        let (client, mut events, mut peer) = pair();
        let caller = client.clone();
        let asked = tokio::spawn(async move { caller.call::<Value>(None, "A.b", json!({})).await });
        peer.heard().await;
        drop(peer);
        assert_eq!(asked.await.unwrap(), Err(CallError::Ended));
        assert!(events.recv().await.is_none());
        assert_eq!(
            client.call::<Value>(None, "A.b", json!({})).await,
            Err(CallError::Ended)
        );
        assert!(client.has_ended());
    }

    #[tokio::test]
    async fn a_refused_or_strange_answer_is_an_error_with_the_reason() {
        let (client, _events, mut peer) = pair();
        let caller = client.clone();
        let refused =
            tokio::spawn(async move { caller.call::<Value>(None, "A.b", json!({})).await });
        let id = peer.heard().await["id"].clone();
        peer.say(json!({"id": id, "error": {"code": 1, "message": "no"}}))
            .await;
        let error = refused.await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the browser refused A.b: no");
        let strange = tokio::spawn(async move { client.call::<u32>(None, "A.b", json!({})).await });
        let id = peer.heard().await["id"].clone();
        peer.say(json!({"id": id, "result": "words"})).await;
        assert!(matches!(
            strange.await.unwrap(),
            Err(CallError::Misunderstood { .. })
        ));
    }

    #[tokio::test]
    async fn a_call_without_an_answer_ends_at_its_deadline() {
        let (client, _events, _peer) = pair();
        let error = client
            .call_within::<Value>(Duration::from_millis(20), None, "A.b", json!({}))
            .await
            .unwrap_err();
        assert_eq!(error, CallError::Late { method: "A.b" });
    }

    #[tokio::test]
    async fn a_message_too_large_ends_events_and_calls_and_the_pipe_is_still_read() {
        let (client, mut events, mut peer) = pair_within(1000, 1_000_000);
        let caller = client.clone();
        let asked = tokio::spawn(async move { caller.call::<Value>(None, "A.b", json!({})).await });
        let id = peer.heard().await["id"].clone();
        peer.say(json!({"method": "Moon.rose", "params": {}})).await;
        // Far more than a pipe holds, so that a reader that stopped would hold this up.
        let text = "x".repeat(5_000_000);
        peer.say(json!({"method": "Moon.spoke", "params": {"text": text}}))
            .await;
        peer.say(json!({"method": "Moon.set", "params": {}})).await;
        peer.say(json!({"id": id, "result": 1})).await;
        peer.say(json!({"method": "Moon.spoke", "params": {"text": text}}))
            .await;
        let too_large = CallError::TooLarge(Excess::Message);
        assert_eq!(asked.await.unwrap(), Err(too_large.clone()));
        assert_eq!(client.excess(), Some(Excess::Message));
        assert_eq!(events.recv().await.unwrap().method, "Moon.rose");
        assert!(events.recv().await.is_none());
        let later = client.call::<Value>(None, "A.c", json!({})).await;
        assert_eq!(later, Err(too_large));
    }

    #[tokio::test]
    async fn events_that_nobody_takes_are_bounded_by_their_bytes() {
        let (client, mut events, mut peer) = pair_within(1_000_000, 100_000);
        let text = "x".repeat(30_000);
        for _ in 0..200 {
            peer.say(json!({"method": "Moon.spoke", "params": {"text": text}}))
                .await;
        }
        let mut taken = 0;
        while events.recv().await.is_some() {
            taken += 1;
        }
        assert_eq!(taken, 3);
        assert_eq!(client.excess(), Some(Excess::Held));
    }

    #[tokio::test]
    async fn events_that_are_taken_count_no_more() {
        let (client, mut events, mut peer) = pair_within(1_000_000, 100_000);
        let text = "x".repeat(30_000);
        for _ in 0..20 {
            peer.say(json!({"method": "Moon.spoke", "params": {"text": text}}))
                .await;
            assert!(events.recv().await.is_some());
        }
        assert_eq!(client.excess(), None);
        let mut kept = client.held();
        kept.grow(80_000).unwrap();
        peer.say(json!({"method": "Moon.spoke", "params": {"text": text}}))
            .await;
        assert!(events.recv().await.is_none());
        assert_eq!(client.excess(), Some(Excess::Held));
    }

    #[tokio::test]
    async fn answers_that_nobody_reads_are_bounded_by_their_bytes() {
        let (client, mut events, mut peer) = pair_within(1_000_000, 100_000);
        let mut asked = Vec::new();
        for _ in 0..4 {
            asked.push(client.call::<String>(None, "A.b", json!({})));
            let id = peer.heard().await["id"].clone();
            peer.say(json!({"id": id, "result": "x".repeat(30_000)}))
                .await;
        }
        assert!(events.recv().await.is_none());
        assert_eq!(client.excess(), Some(Excess::Held));
        let last = asked.pop().unwrap().await;
        assert_eq!(last, Err(CallError::TooLarge(Excess::Held)));
    }
}
