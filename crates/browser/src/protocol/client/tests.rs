use super::*;
use serde_json::json;
use tokio::io::AsyncReadExt;

/// The browser's side of the pipes.
struct Peer {
    from_us: pipe::Receiver,
    to_us: pipe::Sender,
}

fn pair() -> (Client, ProtocolEvents, Peer) {
    pair_within(MAX_MESSAGE_BYTES, MAX_HELD_BYTES)
}

fn pair_within(max_message_bytes: usize, max_held_bytes: usize) -> (Client, ProtocolEvents, Peer) {
    let (their_read, our_write) = std::io::pipe().unwrap();
    let (our_read, their_write) = std::io::pipe().unwrap();
    let clock = Arc::new(PageClock::private().unwrap());
    let limits = Limits {
        message_bytes: max_message_bytes,
        held_bytes: max_held_bytes,
    };
    let (client, events) =
        connect_within(our_write.into(), our_read.into(), clock, limits).unwrap();
    let from_us = pipe::Receiver::from_owned_fd(their_read.into()).unwrap();
    let to_us = pipe::Sender::from_owned_fd(their_write.into()).unwrap();
    (client, events, Peer { from_us, to_us })
}

impl Peer {
    async fn receive(&mut self) -> Value {
        let mut message = Vec::new();
        loop {
            match self.from_us.read_u8().await.unwrap() {
                0 => return serde_json::from_slice(&message).unwrap(),
                byte => message.push(byte),
            }
        }
    }

    async fn send(&mut self, message: Value) {
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to_us.write_all(&bytes).await.unwrap();
    }
}

#[tokio::test]
async fn a_response_reaches_its_caller_and_an_event_the_receiver() {
    let (client, mut events, mut peer) = pair();
    let session = SessionId::from("S");
    let call = tokio::spawn(async move {
        client
            .call::<Value>(Some(&session), "Moon.phase", json!({"day": 3}))
            .await
    });
    let message = peer.receive().await;
    assert_eq!(message["method"], "Moon.phase");
    assert_eq!(message["sessionId"], "S");
    assert_eq!(message["params"]["day"], 3);
    peer.send(json!({"method": "Moon.rose", "params": {"at": 7}}))
        .await;
    peer.send(json!({"id": message["id"], "result": {"full": true}}))
        .await;
    assert_eq!(call.await.unwrap().unwrap(), json!({"full": true}));
    let event = events.recv().await.unwrap();
    assert_eq!(event.method, "Moon.rose");
    assert_eq!(event.read::<Value>().unwrap()["at"], 7);
}

#[tokio::test]
async fn a_crash_fails_every_call_of_that_session_and_no_other() {
    let (client, _events, mut peer) = pair();
    let (one, two) = (SessionId::from("one"), SessionId::from("two"));
    let (caller, crashed) = (client.clone(), one.clone());
    let failed =
        tokio::spawn(async move { caller.call::<Value>(Some(&crashed), "A.b", json!({})).await });
    let caller = client.clone();
    let other =
        tokio::spawn(async move { caller.call::<Value>(Some(&two), "A.b", json!({})).await });
    let mut other_id = Value::Null;
    for _ in 0..2 {
        let message = peer.receive().await;
        if message["sessionId"] == "two" {
            other_id = message["id"].clone();
        }
    }
    peer.send(json!({"method": "Inspector.targetCrashed", "params": {}, "sessionId": "one"}))
        .await;
    assert_eq!(failed.await.unwrap(), Err(CallError::Crashed));
    let later = client.call::<Value>(Some(&one), "A.c", json!({})).await;
    assert_eq!(later, Err(CallError::Crashed));
    peer.send(json!({"id": other_id, "result": 1})).await;
    assert_eq!(other.await.unwrap(), Ok(json!(1)));
}

#[tokio::test]
async fn all_calls_fail_when_the_pipe_is_closed() {
    let (client, mut events, mut peer) = pair();
    let caller = client.clone();
    let call = tokio::spawn(async move { caller.call::<Value>(None, "A.b", json!({})).await });
    peer.receive().await;
    drop(peer);
    assert_eq!(call.await.unwrap(), Err(CallError::Ended));
    assert!(events.recv().await.is_none());
    assert_eq!(
        client.call::<Value>(None, "A.b", json!({})).await,
        Err(CallError::Ended)
    );
    assert!(client.has_ended());
}

#[tokio::test]
async fn a_refusal_and_an_invalid_response_are_errors_with_a_reason() {
    let (client, _events, mut peer) = pair();
    let caller = client.clone();
    let refused = tokio::spawn(async move { caller.call::<Value>(None, "A.b", json!({})).await });
    let id = peer.receive().await["id"].clone();
    peer.send(json!({"id": id, "error": {"code": 1, "message": "no"}}))
        .await;
    let error = refused.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the browser refused A.b: no");
    let invalid = tokio::spawn(async move { client.call::<u32>(None, "A.b", json!({})).await });
    let id = peer.receive().await["id"].clone();
    peer.send(json!({"id": id, "result": "words"})).await;
    assert!(matches!(
        invalid.await.unwrap(),
        Err(CallError::InvalidResponse { .. })
    ));
}

#[tokio::test]
async fn a_call_without_a_response_times_out() {
    let (client, _events, _peer) = pair();
    let error = client
        .call_within::<Value>(Duration::from_millis(20), None, "A.b", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error, CallError::TimedOut { method: "A.b" });
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_events_and_calls_but_not_reading() {
    let (client, mut events, mut peer) = pair_within(1000, 1_000_000);
    let caller = client.clone();
    let call = tokio::spawn(async move { caller.call::<Value>(None, "A.b", json!({})).await });
    let id = peer.receive().await["id"].clone();
    peer.send(json!({"method": "Moon.rose", "params": {}}))
        .await;
    // Far more than fits into the pipe, so this would block if nothing were read any more.
    let text = "x".repeat(5_000_000);
    peer.send(json!({"method": "Moon.spoke", "params": {"text": text}}))
        .await;
    peer.send(json!({"method": "Moon.set", "params": {}})).await;
    peer.send(json!({"id": id, "result": 1})).await;
    peer.send(json!({"method": "Moon.spoke", "params": {"text": text}}))
        .await;
    let too_large = CallError::TooLarge(LimitExceeded::Message);
    assert_eq!(call.await.unwrap(), Err(too_large.clone()));
    assert_eq!(client.limit_exceeded(), Some(LimitExceeded::Message));
    assert_eq!(events.recv().await.unwrap().method, "Moon.rose");
    assert!(events.recv().await.is_none());
    let later = client.call::<Value>(None, "A.c", json!({})).await;
    assert_eq!(later, Err(too_large));
}

#[tokio::test]
async fn unread_events_are_limited_by_their_size() {
    let (client, mut events, mut peer) = pair_within(1_000_000, 100_000);
    let text = "x".repeat(30_000);
    for _ in 0..200 {
        peer.send(json!({"method": "Moon.spoke", "params": {"text": text}}))
            .await;
    }
    let mut received = 0;
    while events.recv().await.is_some() {
        received += 1;
    }
    assert_eq!(received, 3);
    assert_eq!(client.limit_exceeded(), Some(LimitExceeded::Held));
}

#[tokio::test]
async fn events_that_were_dropped_do_not_count() {
    let (client, mut events, mut peer) = pair_within(1_000_000, 100_000);
    let text = "x".repeat(30_000);
    for _ in 0..20 {
        peer.send(json!({"method": "Moon.spoke", "params": {"text": text}}))
            .await;
        assert!(events.recv().await.is_some());
    }
    assert_eq!(client.limit_exceeded(), None);
    let mut reservation = client.reservation();
    reservation.grow(80_000).unwrap();
    peer.send(json!({"method": "Moon.spoke", "params": {"text": text}}))
        .await;
    assert!(events.recv().await.is_none());
    assert_eq!(client.limit_exceeded(), Some(LimitExceeded::Held));
}

#[tokio::test]
async fn unread_responses_are_limited_by_their_size() {
    let (client, mut events, mut peer) = pair_within(1_000_000, 100_000);
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push(client.call::<String>(None, "A.b", json!({})));
        let id = peer.receive().await["id"].clone();
        peer.send(json!({"id": id, "result": "x".repeat(30_000)}))
            .await;
    }
    assert!(events.recv().await.is_none());
    assert_eq!(client.limit_exceeded(), Some(LimitExceeded::Held));
    let last = calls.pop().unwrap().await;
    assert_eq!(last, Err(CallError::TooLarge(LimitExceeded::Held)));
}
