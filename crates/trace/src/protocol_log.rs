//! A log of DevTools protocol messages as Lighthouse saves it (`devtoolslog.json`): an array of
//! `{method, params, …}`. Only the network's messages are read.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::TraceError;
use crate::event::Value;
use crate::input;
use crate::requests::{Ledger, Request, Response, Timing};

#[derive(Debug, Clone)]
pub struct ProtocolLog {
    pub requests: Vec<Request>,
}

impl ProtocolLog {
    /// Reads a log, gzipped or not. Messages it does not know, or that lack what it needs, are passed over.
    pub fn read(bytes: &[u8]) -> Result<Self, TraceError> {
        let text = input::text(bytes)?;
        let messages: Messages = serde_json::from_str(&text).map_err(TraceError::Json)?;
        Ok(Self {
            requests: messages.0.into_requests(),
        })
    }
}

struct Messages(Ledger);

impl<'de> Deserialize<'de> for Messages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Messages;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an array of protocol messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Messages, A::Error> {
                let mut ledger = Ledger::default();
                while let Some(message) = seq.next_element::<Message>()? {
                    message.tell(&mut ledger);
                }
                Ok(Messages(ledger))
            }
        }
        deserializer.deserialize_seq(Each)
    }
}

struct Message<'a> {
    method: Value<'a>,
    params: Option<&'a RawValue>,
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
                let (mut method, mut params) = (Value::Other, None);
                while let Some(key) = map.next_key::<Value>()? {
                    match key.text().as_ref() {
                        "method" => method = map.next_value()?,
                        "params" => params = Some(map.next_value()?),
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(Message { method, params })
            }
        }
        deserializer.deserialize_map(Envelope)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WillBeSent {
    request_id: String,
    request: Asked,
    timestamp: f64,
    frame_id: Option<String>,
    #[serde(rename = "type")]
    resource_type: Option<String>,
    redirect_response: Option<Answered>,
}

#[derive(Deserialize)]
struct Asked {
    url: String,
    #[serde(default)]
    method: String,
}

#[derive(Deserialize)]
struct Answered {
    status: Option<i64>,
    protocol: Option<String>,
    timing: Option<Timing>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Received {
    request_id: String,
    timestamp: f64,
    response: Answered,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    request_id: String,
    timestamp: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Served {
    request_id: String,
}

impl Answered {
    fn at(self, seconds: f64) -> Response {
        Response {
            at_ms: seconds * 1000.0,
            status: self.status,
            protocol: self.protocol,
            timing: self.timing,
        }
    }
}

impl<'a> Message<'a> {
    fn tell(self, ledger: &mut Ledger) {
        let Some(params) = self.params else {
            return;
        };
        match self.method.text().as_ref() {
            "Network.requestWillBeSent" => {
                if let Some(sent) = read::<WillBeSent>(params) {
                    sent.tell(ledger);
                }
            }
            "Network.requestServedFromCache" => {
                if let Some(served) = read::<Served>(params) {
                    ledger.serve_from_memory(&served.request_id);
                }
            }
            "Network.responseReceived" => {
                if let Some(received) = read::<Received>(params) {
                    let response = received.response.at(received.timestamp);
                    ledger.respond(&received.request_id, response);
                }
            }
            name @ ("Network.loadingFinished" | "Network.loadingFailed") => {
                if let Some(ended) = read::<Ended>(params) {
                    let failed = name == "Network.loadingFailed";
                    ledger.end(&ended.request_id, ended.timestamp * 1000.0, failed);
                }
            }
            _ => {}
        }
    }
}

impl WillBeSent {
    fn tell(self, ledger: &mut Ledger) {
        let request = Request {
            id: self.request_id,
            url: self.request.url,
            method: self.request.method,
            frame: self.frame_id,
            resource_type: self.resource_type,
            start_ms: self.timestamp * 1000.0,
            ..Request::default()
        };
        match self.redirect_response {
            _ if !ledger.knows(&request.id) => ledger.start(request),
            Some(response) => {
                let response = response.at(self.timestamp);
                ledger.redirect(request, Some(response));
            }
            // The same request announced again tells nothing new.
            None => {}
        }
    }
}

fn read<'a, T: Deserialize<'a>>(params: &'a RawValue) -> Option<T> {
    serde_json::from_str(params.get()).ok()
}
