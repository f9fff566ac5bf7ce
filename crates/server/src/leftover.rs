//! What a handler did not read of a body.
//!
//! A refusal is often decided before the body is read. Answering and closing then makes the kernel
//! reset the connection under a client that is still sending, and the client may never see the
//! answer; or a kept connection dies under its next request. So a modest rest is read and thrown
//! away before the answer goes out.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
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

const DISCARD_AT_MOST_BYTES: usize = 1024 * 1024;
const DISCARD_WITHIN: Duration = Duration::from_secs(1);

/// The way back to a body that was lent to a handler.
pub(crate) struct Leftover {
    lent: Lent,
    /// The client holds the body back until asked for it (`Expect: 100-continue`).
    held_back: bool,
}

impl Leftover {
    /// `None` when there is no body to be left over.
    pub(crate) fn lend(request: Request) -> (Request, Option<Self>) {
        if request.body().is_end_stream() {
            return (request, None);
        }
        let held_back = request.headers().contains_key(header::EXPECT);
        let (parts, body) = request.into_parts();
        let lent = Lent(Arc::new(Mutex::new(Lending {
            body,
            touched: false,
            ended: false,
        })));
        let request = Request::from_parts(parts, Body::new(lent.clone()));
        (request, Some(Self { lent, held_back }))
    }

    /// Whether the whole body has been read, by the handler or now.
    pub(crate) async fn discard(mut self) -> bool {
        let (touched, ended) = self.lent.progress();
        if ended || (self.held_back && !touched) {
            return ended;
        }
        let to_the_end = async {
            let mut discarded = 0;
            while let Some(frame) = self.lent.frame().await {
                let Ok(frame) = frame else { return false };
                discarded += frame.data_ref().map_or(0, Bytes::len);
                if discarded > DISCARD_AT_MOST_BYTES {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(DISCARD_WITHIN, to_the_end)
            .await
            .unwrap_or(false)
    }
}

#[derive(Clone)]
struct Lent(Arc<Mutex<Lending>>);

struct Lending {
    body: Body,
    touched: bool,
    ended: bool,
}

impl Lent {
    fn progress(&self) -> (bool, bool) {
        let lending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (
            lending.touched,
            lending.ended || lending.body.is_end_stream(),
        )
    }
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut lending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lending.touched = true;
        if lending.ended {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut lending.body).poll_frame(cx);
        lending.ended = matches!(polled, Poll::Ready(None));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.progress().1
    }

    fn size_hint(&self) -> SizeHint {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .body
            .size_hint()
    }
}
