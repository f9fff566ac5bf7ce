use std::io::Write;

use crate::protocol::{Event, Excess, Held, MAX_HELD_BYTES};

/// Network events as a JSON array, in the form that Lighthouse keeps as its `devtoolsLog`.
pub(super) struct Log {
    bytes: Vec<u8>,
    held: Held,
}

impl Log {
    pub(super) fn new(held: Held) -> Self {
        // Address space and not memory, until it is written to: growing would need the old and the new at a time.
        let mut bytes = Vec::with_capacity(MAX_HELD_BYTES);
        bytes.push(b'[');
        Self { bytes, held }
    }

    pub(super) fn keep(&mut self, event: &Event, target_type: &str) -> Result<(), Excess> {
        const AROUND_BYTES: usize = 128;
        self.held.grow(event.params.get().len() + AROUND_BYTES)?;
        if self.bytes.len() > 1 {
            self.bytes.extend_from_slice(b",\n");
        }
        let session = event
            .session
            .as_ref()
            .map_or("", |session| session.as_str());
        // Method, session and type are plain words of the protocol: nothing in them needs escaping.
        let (method, params) = (&event.method, event.params.get());
        // Writing to memory does not fail.
        let _ = write!(
            self.bytes,
            r#"{{"method":"{method}","params":{params},"targetType":"{target_type}","sessionId":"{session}"}}"#,
        );
        Ok(())
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(b']');
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn events_become_one_array_in_order() {
        let mut log = Log::new(Held::within(1000));
        for n in 1..=2 {
            let event = Event::made("Network.dataReceived", &json!({ "n": n }));
            log.keep(&event, "page").unwrap();
        }
        let text: Value = serde_json::from_slice(&log.finish()).unwrap();
        assert_eq!(text.as_array().unwrap().len(), 2);
        assert_eq!(
            text[1],
            json!({"method": "Network.dataReceived", "params": {"n": 2}, "targetType": "page", "sessionId": "S"})
        );
    }

    #[test]
    fn nothing_is_an_empty_array() {
        assert_eq!(Log::new(Held::within(0)).finish(), b"[]");
    }

    #[test]
    fn a_log_beyond_the_budget_is_not_kept() {
        let mut log = Log::new(Held::within(1000));
        let event = Event::made("Network.dataReceived", &json!({"n": "x".repeat(600)}));
        assert_eq!(log.keep(&event, "page"), Ok(()));
        assert_eq!(log.keep(&event, "page"), Err(Excess::Held));
        let text: Value = serde_json::from_slice(&log.finish()).unwrap();
        assert_eq!(text.as_array().unwrap().len(), 1);
    }
}
