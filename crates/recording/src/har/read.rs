//! Reads recordings from HAR.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::foreign::{self, ForeignLog};
use super::{EntryExtra, HarError, RecordingExtra};
use crate::validity::{self, MAX_EXCHANGES};
use crate::{Header, InvalidRecording, RecordedExchange, RecordedResponse, Recording};

impl Recording {
    /// Reads a recording from HAR of any tool.
    pub fn from_har(har: &Value) -> Result<Self, HarError> {
        let entries = har.pointer("/log/entries").and_then(Value::as_array);
        let entries = entries.ok_or(HarError::NoEntries)?;
        let count = entries.len();
        if count > MAX_EXCHANGES {
            return Err(InvalidRecording::TooManyExchanges { count }.into());
        }
        let recording = match har.pointer("/log/_recording") {
            Some(extra) => own_recording(extra, entries)?,
            None => ForeignLog::new(har, entries).read()?,
        };
        recording.check()?;
        Ok(recording)
    }
}

/// Reads a file that was written by [`Recording::to_har`]. Entries that were added to it are read
/// as those of other tools.
fn own_recording(extra: &Value, entries: &[Value]) -> Result<Recording, HarError> {
    let extra = RecordingExtra::deserialize(extra);
    let extra = extra.map_err(|error| HarError::Log(format!("_recording: {error}")))?;
    let mut exchanges = Vec::with_capacity(entries.len());
    for (number, entry) in (1..).zip(entries) {
        let error = |reason| HarError::Entry { number, reason };
        let exchange = match entry.get("_recorded") {
            Some(recorded) => Some(own_exchange(recorded, entry).map_err(error)?),
            None => foreign::exchange(entry, 0.0).map_err(error)?,
        };
        exchanges.extend(exchange);
    }
    Ok(Recording {
        url: extra.url,
        recorded_at: extra.recorded_at,
        endpoints: extra.endpoints,
        exchanges,
    })
}

fn own_exchange(recorded: &Value, entry: &Value) -> Result<RecordedExchange, String> {
    let extra = EntryExtra::deserialize(recorded);
    let extra = extra.map_err(|error| format!("_recorded: {error}"))?;
    let response = match extra.response {
        Some(response) => {
            let body = match response.transferred_body {
                Some(text) => STANDARD.decode(text).map_err(|error| error.to_string())?,
                None => content(entry)?.unwrap_or_default(),
            };
            Some(RecordedResponse {
                status: status(entry)?,
                headers: headers(entry, "/response/headers"),
                wait_ms: response.wait_ms,
                chunks: response.chunks,
                is_cut_off: response.is_cut_off,
                body: Bytes::from(body),
            })
        }
        None => None,
    };
    Ok(RecordedExchange {
        endpoint: extra.endpoint,
        method: text(entry, "/request/method").unwrap_or("GET").to_owned(),
        path: extra.path,
        request_headers: headers(entry, "/request/headers"),
        request_bytes: extra.request_bytes,
        started_ms: extra.started_ms,
        response,
        handling: extra.handling,
        is_open: extra.is_open,
    })
}

/// Returns a text of an entry.
pub(super) fn text<'a>(entry: &'a Value, pointer: &str) -> Option<&'a str> {
    entry.pointer(pointer).and_then(Value::as_str)
}

/// Returns a number of an entry. Negative ones mean that the value is unknown.
pub(super) fn number(entry: &Value, pointer: &str) -> Option<f64> {
    let number = entry.pointer(pointer).and_then(Value::as_f64);
    number.filter(|it| *it >= 0.0)
}

/// Returns the status of the response; zero if it failed, for which Playwright writes −1.
pub(super) fn status(entry: &Value) -> Result<u16, String> {
    let status = entry.pointer("/response/status").and_then(Value::as_i64);
    let status = status.and_then(|it| u16::try_from(it.max(0)).ok());
    status.ok_or_else(|| "response.status is not a number".to_owned())
}

/// Returns headers with names in lower case, without those of HTTP/2's framing such as `:path` and
/// without invalid ones. Older browsers write several values of a header as lines of one.
pub(super) fn headers(entry: &Value, pointer: &str) -> Vec<Header> {
    let list = entry.pointer(pointer).and_then(Value::as_array);
    let mut headers = Vec::new();
    for header in list.into_iter().flatten() {
        let (Some(name), Some(value)) = (text(header, "/name"), text(header, "/value")) else {
            continue;
        };
        let name = name.to_ascii_lowercase();
        if !validity::is_header_name(&name) {
            continue;
        }
        let values = value.split('\n').map(|line| line.trim_end_matches('\r'));
        let values = values.filter(|line| validity::is_header_value(line));
        headers.extend(values.map(|line| (name.clone(), line.to_owned())));
    }
    headers
}

/// Returns the content of the response, if the file has it.
pub(super) fn content(entry: &Value) -> Result<Option<Vec<u8>>, String> {
    let Some(content) = text(entry, "/response/content/text") else {
        return Ok(None);
    };
    if text(entry, "/response/content/encoding") != Some("base64") {
        return Ok(Some(content.as_bytes().to_vec()));
    }
    let content = STANDARD.decode(content.trim());
    let content = content.map_err(|error| format!("its content is not Base64: {error}"))?;
    Ok(Some(content))
}
