use std::io::Write;

use crate::protocol::{LimitExceeded, MAX_HELD_BYTES, ProtocolEvent, Reservation};

/// Network events as a JSON array, in the format of Lighthouse's `devtoolsLog`.
pub(crate) struct Log {
    bytes: Vec<u8>,
    reservation: Reservation,
}

impl Log {
    pub(super) fn new(reservation: Reservation) -> Self {
        // This reserves address space, and no memory until it is written to. Growing would need the
        // old and the new memory at the same time.
        let mut bytes = Vec::with_capacity(MAX_HELD_BYTES);
        bytes.push(b'[');
        Self { bytes, reservation }
    }

    pub(super) fn add(
        &mut self,
        event: &ProtocolEvent,
        target_type: &str,
    ) -> Result<(), LimitExceeded> {
        const OVERHEAD_BYTES: usize = 128;
        self.reservation
            .grow(event.params.get().len() + OVERHEAD_BYTES)?;
        if self.bytes.len() > 1 {
            self.bytes.extend_from_slice(b",\n");
        }
        let session = event
            .session
            .as_ref()
            .map_or("", |session| session.as_str());
        // Method, session and type are identifiers of the protocol and need no escaping.
        let (method, params) = (&event.method, event.params.get());
        // Writing to memory cannot fail.
        let _ = write!(
            self.bytes,
            r#"{{"method":"{method}","params":{params},"targetType":"{target_type}","sessionId":"{session}"}}"#,
        );
        Ok(())
    }

    /// Returns the log and leaves nothing of it.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.push(b']');
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn events_are_written_as_one_array_in_order() {
        let mut log = Log::new(Reservation::within(1000));
        for n in 1..=2 {
            let event = ProtocolEvent::for_test("Network.dataReceived", &json!({ "n": n }));
            log.add(&event, "page").unwrap();
        }
        let text: Value = serde_json::from_slice(&log.take()).unwrap();
        assert_eq!(text.as_array().unwrap().len(), 2);
        assert_eq!(
            text[1],
            json!({"method": "Network.dataReceived", "params": {"n": 2}, "targetType": "page", "sessionId": "S"})
        );
    }

    #[test]
    fn a_log_without_events_is_an_empty_array() {
        assert_eq!(Log::new(Reservation::within(0)).take(), b"[]");
    }

    #[test]
    fn events_beyond_the_budget_are_not_added() {
        let mut log = Log::new(Reservation::within(1000));
        let event = ProtocolEvent::for_test("Network.dataReceived", &json!({"n": "x".repeat(600)}));
        assert_eq!(log.add(&event, "page"), Ok(()));
        assert_eq!(log.add(&event, "page"), Err(LimitExceeded::Held));
        let text: Value = serde_json::from_slice(&log.take()).unwrap();
        assert_eq!(text.as_array().unwrap().len(), 1);
    }
}
