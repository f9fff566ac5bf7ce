use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::budget::Reservation;

/// The id of a session, which is attached to one page, frame or worker.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionId(Arc<str>);

impl SessionId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SessionId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An event of the browser.
#[derive(Debug)]
pub(crate) struct ProtocolEvent {
    /// The session that the event belongs to; `None` for events of the browser as a whole.
    pub session: Option<SessionId>,
    pub method: String,
    pub params: Box<RawValue>,
    /// Counts the event towards the budget until it is dropped.
    pub _reservation: Reservation,
}

impl ProtocolEvent {
    /// Creates an event, for tests of event handlers.
    #[cfg(test)]
    pub(crate) fn for_test(method: &str, params: &serde_json::Value) -> Self {
        Self {
            session: Some("S".into()),
            method: method.to_owned(),
            params: serde_json::value::to_raw_value(params).expect("a value is JSON"),
            _reservation: Reservation::empty(&super::budget::EventBudget::new(usize::MAX)),
        }
    }

    /// Parses the parameters; `None` if they do not have the expected type.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.params.get()).ok()
    }
}

/// A call of a method.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallMessage<'a, P> {
    pub id: u64,
    pub method: &'a str,
    pub params: P,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a str>,
}

/// Any message of the browser: a response has an id, an event has a method.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope<'a> {
    pub id: Option<u64>,
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    pub error: Option<ErrorObject>,
    #[serde(borrow)]
    pub session_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct ErrorObject {
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub data: Option<String>,
}

impl ErrorObject {
    pub(super) fn reason(self) -> String {
        match self.data {
            Some(data) => format!("{} ({data})", self.message),
            None => self.message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_event_with_unknown_fields_is_parsed() {
        let text =
            r#"{"method":"Moon.rose","params":{"phase":{"of":"moon"}},"sessionId":"S","tide":3}"#;
        let envelope: Envelope<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(envelope.method.as_deref(), Some("Moon.rose"));
        assert_eq!(envelope.session_id.as_deref(), Some("S"));
        assert_eq!(envelope.params.unwrap().get(), r#"{"phase":{"of":"moon"}}"#);
    }

    #[test]
    fn an_error_has_the_message_and_data_of_the_browser() {
        let text = r#"{"id":7,"error":{"code":-32000,"message":"No frame","data":"with that id"}}"#;
        let envelope: Envelope<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(envelope.id, Some(7));
        assert_eq!(envelope.error.unwrap().reason(), "No frame (with that id)");
    }
}
