//! Reads a log of DevTools protocol messages as Lighthouse saves it (`devtoolslog.json`): an array
//! of `{method, params, …}`. Only messages of the network domain are read.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::TraceError;
use crate::event::FieldValue;
use crate::exchanges::{Exchange, Exchanges};
use crate::input;

#[derive(Debug, Clone)]
pub struct ProtocolLog {
    /// Exchanges in order of their start.
    pub exchanges: Vec<Arc<Exchange>>,
}

impl ProtocolLog {
    /// Reads a log, gzipped or not. Unknown messages and messages with missing fields are ignored.
    pub fn read(bytes: &[u8]) -> Result<Self, TraceError> {
        let text = input::text(bytes)?;
        let messages: Messages = serde_json::from_str(&text).map_err(TraceError::Json)?;
        let exchanges = messages.0.finish().into_iter();
        Ok(Self {
            exchanges: exchanges.map(Arc::new).collect(),
        })
    }
}

struct Messages(Exchanges);

impl<'de> Deserialize<'de> for Messages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Messages;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an array of protocol messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Messages, A::Error> {
                let mut exchanges = Exchanges::default();
                while let Some(message) = seq.next_element::<Message>()? {
                    message.apply_to(&mut exchanges);
                }
                Ok(Messages(exchanges))
            }
        }
        deserializer.deserialize_seq(Each)
    }
}

struct Message<'a> {
    method: FieldValue<'a>,
    params: Option<&'a RawValue>,
    target_type: FieldValue<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Message<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Envelope;
        impl<'de> Visitor<'de> for Envelope {
            type Value = Message<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a protocol message")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Message<'de>, A::Error> {
                let mut message = Message {
                    method: FieldValue::Other,
                    params: None,
                    target_type: FieldValue::Other,
                };
                while let Some(key) = map.next_key::<FieldValue>()? {
                    match key.text().as_ref() {
                        "method" => message.method = map.next_value()?,
                        "params" => message.params = Some(map.next_value()?),
                        "targetType" => message.target_type = map.next_value()?,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(message)
            }
        }
        deserializer.deserialize_map(Envelope)
    }
}

impl Message<'_> {
    fn apply_to(self, exchanges: &mut Exchanges) {
        if let Some(params) = self.params {
            let (method, target_type) = (self.method.text(), self.target_type.text());
            exchanges.apply(&method, params, &target_type);
        }
    }
}
