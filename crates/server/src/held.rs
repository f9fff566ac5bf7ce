//! A response body that keeps something until it has been handed over or given up.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

/// The same body; `kept` is dropped with it.
pub(crate) fn holding(body: Body, kept: impl Send + Unpin + 'static) -> Body {
    Body::new(Holding { body, _kept: kept })
}

struct Holding<K> {
    body: Body,
    _kept: K,
}

impl<K: Unpin> HttpBody for Holding<K> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
