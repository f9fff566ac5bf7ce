//! Bodies of replayed responses, which come as they were recorded.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Frame;
use plumbline_link::Arrival;
use plumbline_recording::RecordedResponse;

use crate::body::FrameSender;
use crate::replayer::{CUT_OFF, duration};
use crate::serve::ConnectionError;

/// The time after the headers within which a part of a body came together with them: reading it
/// took as long.
const MIN_GAP_MS: f64 = 1.0;

/// A body that is sent to the browser part by part.
pub(crate) struct ReplayedBody {
    /// The parts, and the time of each since the headers.
    parts: VecDeque<(Duration, Bytes)>,
    /// The time from the request to the headers.
    wait: Duration,
    end: BodyEnd,
    sender: FrameSender,
}

/// The end of a body, after its last part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyEnd {
    Complete,
    /// The connection ends, as it did when it was recorded.
    CutOff,
    /// Nothing follows until the visit ends, since nothing was recorded.
    Open,
}

impl ReplayedBody {
    pub(crate) fn of(recorded: &RecordedResponse, is_open: bool, sender: FrameSender) -> Self {
        let mut body = recorded.body.clone();
        let parts = recorded.chunks.iter().map(|chunk| {
            let bytes = usize::try_from(chunk.bytes).unwrap_or(usize::MAX);
            let gap_ms = Some(chunk.after_ms).filter(|ms| *ms >= MIN_GAP_MS);
            let part = body.split_to(bytes.min(body.len()));
            (gap_ms.map_or(Duration::ZERO, duration), part)
        });
        Self {
            parts: parts.collect(),
            wait: duration(recorded.wait_ms),
            end: if is_open {
                BodyEnd::Open
            } else if recorded.is_cut_off {
                BodyEnd::CutOff
            } else {
                BodyEnd::Complete
            },
            sender,
        }
    }

    /// Begins to send the body, together with the headers of its response. What came with them is
    /// sent before this returns, so that it is written with them.
    pub(crate) fn start(mut self, arrival: Arrival) {
        while let Some((after, _)) = self.parts.front()
            && after.is_zero()
        {
            let part = self.parts.pop_front();
            if part.is_some_and(|(_, bytes)| !self.sender.send(Ok(Frame::data(bytes)))) {
                return;
            }
        }
        if !self.parts.is_empty() || self.end != BodyEnd::Complete {
            tokio::spawn(self.send_rest(arrival));
        }
    }

    async fn send_rest(self, arrival: Arrival) {
        for (after, bytes) in self.parts {
            tokio::select! {
                () = arrival.elapsed(self.wait + after) => {}
                () = self.sender.closed() => return,
            }
            if !self.sender.send(Ok(Frame::data(bytes))) {
                return;
            }
        }
        match self.end {
            BodyEnd::Complete => {}
            BodyEnd::CutOff => {
                let cut_off = ConnectionError::NotRecorded(CUT_OFF);
                self.sender.send(Err(cut_off));
            }
            BodyEnd::Open => self.sender.closed().await,
        }
    }
}
