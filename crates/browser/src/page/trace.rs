//! Chromium's trace of the visit: what it records, and how it arrives.

use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plumbline_perfetto::ConversionError;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::timeout_at;

use super::json_trace::{JsonTrace, MAX_BYTES};
use super::later_frames::LaterFrame;
use super::traced_places::ScriptPlace;
use super::{Caller, Page, TRACE_DEADLINE, VisitError};
use crate::protocol::{CallError, LimitExceeded, ProtocolEvent, Reservation};

/// The categories that Lighthouse 13 records for a navigation, without script sources, which make a
/// trace much larger and are not used here.
const CATEGORIES: [&str; 13] = [
    "-*",
    "disabled-by-default-lighthouse",
    "loading",
    "v8",
    "v8.execute",
    "blink.user_timing",
    "blink.console",
    "blink.webdx_feature_usage",
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
    "disabled-by-default-devtools.timeline.frame",
    "disabled-by-default-devtools.timeline.stack",
    "latencyInfo",
];

/// The category of screenshots, which a load with a profiler does without.
const SCREENSHOTS: &str = "disabled-by-default-devtools.screenshot";
/// The category of V8's sampling profiler.
const PROFILER: &str = "disabled-by-default-v8.cpu_profiler";

/// The content of a trace besides [`CATEGORIES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceKind {
    /// A page is measured.
    Visit,
    /// The functions of a page are sampled, which slows it down.
    Profile,
}

/// Maximum usage of Chromium's trace buffer (200 MB). A trace of [`MAX_BYTES`] uses less, because
/// its text is always longer than its form in the buffer.
const MAX_BUFFER_USAGE: f64 = 0.2;

/// Usage of the buffer (25 MB as text) below which a trace should arrive in time.
const LARGE_BUFFER_USAGE: f64 = 0.05;

/// The number of bytes of the trace that one message brings.
const BYTES_PER_READ: usize = 4_000_000;

/// Returns the parameters of `Tracing.start`. Chromium's own conversion into JSON takes up to a
/// second of processor time.
pub(super) fn start_params(kind: TraceKind) -> Value {
    let other = match kind {
        TraceKind::Visit => SCREENSHOTS,
        TraceKind::Profile => PROFILER,
    };
    json!({
        "categories": format!("{},{other}", CATEGORIES.join(",")),
        "transferMode": "ReturnAsStream",
        "streamFormat": "proto",
        "bufferUsageReportingInterval": 1000,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TracingComplete {
    #[serde(default)]
    data_loss_occurred: bool,
    /// The stream with the trace.
    stream: Option<String>,
}

#[derive(Deserialize)]
struct BufferUsage {
    /// Used fraction of the buffer, from 0 to 1.
    #[serde(default)]
    value: f64,
}

/// A part of a stream.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StreamPart {
    data: String,
    #[serde(default)]
    base64_encoded: bool,
    eof: bool,
}

/// The trace of a page.
pub(crate) struct TraceRecording {
    /// The stream with the trace, if it has ended.
    stream: Option<String>,
    /// Used fraction of Chromium's buffer when it was last reported.
    buffer_usage: f64,
    /// Pictures to add if the trace has no screenshots of these frames.
    later_frames: Vec<LaterFrame>,
    json: JsonTrace,
}

impl TraceRecording {
    pub(super) fn new(reservation: Reservation) -> Self {
        Self {
            stream: None,
            buffer_usage: 0.0,
            later_frames: Vec::new(),
            json: JsonTrace::new(reservation),
        }
    }

    /// Handles a report of Chromium's buffer usage, which shows that a trace will be too large
    /// before it is requested.
    pub(super) fn update_buffer_usage(
        &mut self,
        event: &ProtocolEvent,
    ) -> Result<(), LimitExceeded> {
        if let Some(BufferUsage { value }) = event.read() {
            self.buffer_usage = value;
        }
        if self.buffer_usage > MAX_BUFFER_USAGE {
            return Err(JsonTrace::TOO_LARGE);
        }
        Ok(())
    }

    /// Sets the pictures of frames that are added to a trace in which Chromium recorded as many
    /// screenshots as it can.
    pub(super) fn set_later_frames(
        &mut self,
        frames: Vec<LaterFrame>,
    ) -> Result<(), LimitExceeded> {
        let bytes = frames.iter().map(|frame| frame.encoded.len()).sum();
        self.later_frames = frames;
        self.json.reserve(bytes)
    }

    /// Records that the trace can be read. An incomplete trace is an error, because the missing
    /// events may be those that metrics depend on.
    pub(super) fn complete(&mut self, event: &ProtocolEvent) -> Result<(), LimitExceeded> {
        match event.read() {
            Some(TracingComplete {
                data_loss_occurred: false,
                stream: Some(stream),
            }) => {
                self.stream = Some(stream);
                Ok(())
            }
            _ => Err(LimitExceeded::LostTrace),
        }
    }

    /// Returns the ids of the elements that the trace refers to.
    pub(super) fn traced_nodes(&self) -> Vec<i64> {
        self.json.traced_nodes()
    }

    /// Returns the places in scripts at which styles or layout were forced.
    pub(super) fn traced_places(&self) -> Vec<ScriptPlace> {
        self.json.traced_places()
    }

    /// Returns the trace and leaves nothing of it.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.json.take()
    }

    /// Returns the error of a trace that did not arrive in time.
    fn error_if_late(&self) -> VisitError {
        if self.stream.is_some() || self.buffer_usage >= LARGE_BUFFER_USAGE {
            CallError::TooLarge(LimitExceeded::SlowTrace).into()
        } else {
            VisitError::Fault("the trace did not arrive".to_owned())
        }
    }
}

impl Page<'_> {
    /// Waits for the trace, and reads it.
    pub(crate) async fn receive_trace(&mut self) -> Result<(), VisitError> {
        let deadline = Instant::now() + TRACE_DEADLINE;
        let stream = loop {
            if let Some(stream) = &self.trace.stream {
                break stream.clone();
            }
            if !self.next_event(deadline).await? {
                return Err(self.trace.error_if_late());
            }
        };
        let caller = self.caller();
        let reading = timeout_at(deadline.into(), read_stream(&caller, &stream));
        let Ok(packets) = self.drive(reading).await else {
            return Err(self.trace.error_if_late());
        };
        let (packets, reservation) = packets?;
        let empty = JsonTrace::new(caller.reservation());
        let mut json = std::mem::replace(&mut self.trace.json, empty);
        let later_frames = std::mem::take(&mut self.trace.later_frames);
        let converting = spawn_blocking(move || {
            json.add_packets(&packets)?;
            drop((packets, reservation));
            json.add_later_frames(later_frames)?;
            Ok::<_, LimitExceeded>(json)
        });
        match self.drive(converting).await {
            Ok(Ok(json)) => self.trace.json = json,
            Ok(Err(limit)) => return Err(CallError::TooLarge(limit).into()),
            Err(error) => return Err(VisitError::Fault(error.to_string())),
        }
        Ok(())
    }
}

/// Reads a stream of the browser, which it then forgets.
async fn read_stream(caller: &Caller, stream: &str) -> Result<(Vec<u8>, Reservation), CallError> {
    let (mut bytes, mut reservation) = (Vec::new(), caller.reservation());
    loop {
        let params = json!({"handle": stream, "size": BYTES_PER_READ});
        let part: StreamPart = caller.call("IO.read", params).await?;
        let data = if part.base64_encoded {
            let decoded = STANDARD.decode(part.data);
            decoded.map_err(|_| CallError::TooLarge(LimitExceeded::LostTrace))?
        } else {
            part.data.into_bytes()
        };
        reservation.grow(data.len()).map_err(CallError::TooLarge)?;
        bytes.extend(data);
        if bytes.len() > MAX_BYTES {
            return Err(CallError::TooLarge(JsonTrace::TOO_LARGE));
        }
        if part.eof {
            break;
        }
    }
    caller.send("IO.close", json!({"handle": stream}));
    Ok((bytes, reservation))
}

impl From<ConversionError> for LimitExceeded {
    fn from(error: ConversionError) -> Self {
        match error {
            ConversionError::TooLarge => JsonTrace::TOO_LARGE,
            ConversionError::Malformed | ConversionError::Lost => Self::LostTrace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording() -> TraceRecording {
        TraceRecording::new(Reservation::within(1000))
    }

    fn event(params: Value) -> ProtocolEvent {
        ProtocolEvent::for_test("Tracing.tracingComplete", &params)
    }

    #[test]
    fn data_that_chromium_lost_is_an_error() {
        let complete = event(json!({"dataLossOccurred": true, "stream": "1"}));
        assert_eq!(
            recording().complete(&complete),
            Err(LimitExceeded::LostTrace)
        );
    }

    #[test]
    fn a_buffer_that_is_too_full_is_an_error_before_the_trace_arrives() {
        let mut trace = recording();
        let usage = |value: f64| event(json!({"percentFull": value, "value": value}));
        assert_eq!(trace.update_buffer_usage(&usage(0.01)), Ok(()));
        assert!(matches!(trace.error_if_late(), VisitError::Fault(_)));
        assert_eq!(trace.update_buffer_usage(&usage(0.1)), Ok(()));
        assert!(matches!(trace.error_if_late(), VisitError::Page(_)));
        let too_large = Err(JsonTrace::TOO_LARGE);
        assert_eq!(trace.update_buffer_usage(&usage(0.3)), too_large);
    }

    #[test]
    fn a_trace_that_has_ended_and_does_not_arrive_is_too_large() {
        let mut trace = recording();
        let complete = event(json!({"dataLossOccurred": false, "stream": "1"}));
        assert_eq!(trace.complete(&complete), Ok(()));
        assert!(matches!(trace.error_if_late(), VisitError::Page(_)));
    }
}
