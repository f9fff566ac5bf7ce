//! The part of a request's body that a handler did not read.
//!
//! A request is often refused before its body is read. If the connection is closed then, the kernel
//! resets it while the client is still sending, and the client may never see the response; or a
//! connection that the client keeps open fails at its next request. So a rest of limited size is
//! read and discarded before the response is sent.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    http::header,
};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;

const MAX_DISCARDED_BYTES: usize = 1024 * 1024;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

/// A second handle to a body that a handler reads.
pub(crate) struct UnreadBody {
    body: TrackedBody,
    /// Whether the client waits for permission to send the body (`Expect: 100-continue`).
    expects_continue: bool,
}

impl UnreadBody {
    /// Wraps the body of a request. Returns `None` if there is no body.
    pub(crate) fn track(request: Request) -> (Request, Option<Self>) {
        if request.body().is_end_stream() {
            return (request, None);
        }
        let expects_continue = request.headers().contains_key(header::EXPECT);
        let (parts, body) = request.into_parts();
        let body = TrackedBody(Arc::new(Mutex::new(BodyState {
            body,
            was_polled: false,
            has_ended: false,
        })));
        let request = Request::from_parts(parts, Body::new(body.clone()));
        let unread = Self {
            body,
            expects_continue,
        };
        (request, Some(unread))
    }

    /// Discards the rest of the body. Returns whether the whole body has been read, by the handler
    /// or now.
    pub(crate) async fn discard(mut self) -> bool {
        let (was_polled, has_ended) = self.body.progress();
        if has_ended || (self.expects_continue && !was_polled) {
            return has_ended;
        }
        let read_to_end = async {
            let mut discarded = 0;
            while let Some(frame) = self.body.frame().await {
                let Ok(frame) = frame else { return false };
                discarded += frame.data_ref().map_or(0, Bytes::len);
                if discarded > MAX_DISCARDED_BYTES {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(DISCARD_TIMEOUT, read_to_end)
            .await
            .unwrap_or(false)
    }
}

#[derive(Clone)]
struct TrackedBody(Arc<Mutex<BodyState>>);

struct BodyState {
    body: Body,
    was_polled: bool,
    has_ended: bool,
}

impl TrackedBody {
    /// Returns whether the body was polled, and whether it has ended.
    fn progress(&self) -> (bool, bool) {
        let state = self.0.lock();
        (
            state.was_polled,
            state.has_ended || state.body.is_end_stream(),
        )
    }
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut state = self.0.lock();
        state.was_polled = true;
        if state.has_ended {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut state.body).poll_frame(cx);
        state.has_ended = matches!(polled, Poll::Ready(None));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.progress().1
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().body.size_hint()
    }
}
