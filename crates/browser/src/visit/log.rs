use crate::protocol::Event;

/// A page that logs more than this is not understood better by more of it.
const MAX_BYTES: usize = 64 << 20;

/// Network events as a JSON array, in the form that Lighthouse keeps as its `devtoolsLog`.
pub(super) struct Log {
    bytes: Vec<u8>,
    full: bool,
}

impl Log {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![b'['],
            full: false,
        }
    }

    pub(super) fn keep(&mut self, event: &Event, target_type: &str) {
        if self.bytes.len() + event.params.get().len() > MAX_BYTES {
            self.full = true;
        }
        if self.full {
            return;
        }
        if self.bytes.len() > 1 {
            self.bytes.extend_from_slice(b",\n");
        }
        let session = event
            .session
            .as_ref()
            .map_or("", |session| session.as_str());
        // Method, session and type are plain words of the protocol: nothing in them needs escaping.
        let line = format!(
            r#"{{"method":"{}","params":{},"targetType":"{target_type}","sessionId":"{session}"}}"#,
            event.method,
            event.params.get(),
        );
        self.bytes.extend_from_slice(line.as_bytes());
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(b']');
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    #[test]
    fn events_become_one_array_in_order() {
        let mut log = Log::new();
        for n in 1..=2 {
            let event = Event {
                session: Some("S".into()),
                method: "Network.dataReceived".to_owned(),
                params: RawValue::from_string(format!(r#"{{"n":{n}}}"#)).unwrap(),
            };
            log.keep(&event, "page");
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
        assert_eq!(Log::new().finish(), b"[]");
    }
}
