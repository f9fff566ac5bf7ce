//! Bodies that are sent to the browser part by part.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::serve::ConnectionError;

/// A body that somebody else sends, part by part.
pub(crate) struct BodyFrames {
    frames: Option<UnboundedReceiver<SentFrame>>,
    size: Option<u64>,
}

/// The sender of a body.
pub(crate) struct FrameSender {
    frames: UnboundedSender<SentFrame>,
}

/// A part of a body, with the memory that it was given until the browser takes it.
struct SentFrame {
    frame: Result<Frame<Bytes>, ConnectionError>,
    _memory: Option<OwnedSemaphorePermit>,
}

/// The memory for what servers have sent and the browser has not taken yet.
#[derive(Clone)]
pub(crate) struct ReadAhead {
    bytes: Arc<Semaphore>,
    max_bytes: u32,
}

impl ReadAhead {
    pub(crate) fn new(max_bytes: u64) -> Self {
        let max_bytes = u32::try_from(max_bytes).unwrap_or(u32::MAX);
        Self {
            bytes: Arc::new(Semaphore::new(max_bytes as usize)),
            max_bytes,
        }
    }

    /// Waits until there is memory for a part. A part that is larger than all of it gets all of it.
    async fn reserve(&self, frame: &Frame<Bytes>) -> Option<OwnedSemaphorePermit> {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.max_bytes);
        let memory = Arc::clone(&self.bytes).acquire_many_owned(bytes).await;
        // The semaphore is never closed.
        memory.ok()
    }
}

impl FrameSender {
    /// Sends a part or the end of the connection. Returns false if nobody reads any more.
    pub(crate) fn send(&self, frame: Result<Frame<Bytes>, ConnectionError>) -> bool {
        let sent = SentFrame {
            frame,
            _memory: None,
        };
        self.frames.send(sent).is_ok()
    }

    /// Sends a part as soon as there is memory for it. Returns false if nobody reads any more.
    pub(crate) async fn send_ahead(&self, frame: Frame<Bytes>, read_ahead: &ReadAhead) -> bool {
        let memory = tokio::select! {
            memory = read_ahead.reserve(&frame) => memory,
            () = self.closed() => return false,
        };
        let sent = SentFrame {
            frame: Ok(frame),
            _memory: memory,
        };
        self.frames.send(sent).is_ok()
    }

    /// Waits until nobody reads any more.
    pub(crate) async fn closed(&self) {
        self.frames.closed().await;
    }
}

impl BodyFrames {
    /// Creates a body without content.
    pub(crate) fn empty() -> Self {
        Self {
            frames: None,
            size: Some(0),
        }
    }

    /// Creates a body of which the size may be known, and its sender.
    pub(crate) fn sent(size: Option<u64>) -> (FrameSender, Self) {
        let (sender, frames) = unbounded_channel();
        let body = Self {
            frames: Some(frames),
            size,
        };
        (FrameSender { frames: sender }, body)
    }
}

impl Body for BodyFrames {
    type Data = Bytes;
    type Error = ConnectionError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionError>>> {
        let Some(frames) = &mut self.frames else {
            return Poll::Ready(None);
        };
        let sent = frames.poll_recv(context);
        sent.map(|sent| sent.map(|sent| sent.frame))
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.size
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use http_body_util::BodyExt;

    use super::*;

    fn part(bytes: usize) -> Frame<Bytes> {
        Frame::data(vec![0; bytes].into())
    }

    #[tokio::test]
    async fn a_server_is_read_until_the_browser_is_too_far_behind() {
        let read_ahead = ReadAhead::new(100);
        let (sender, mut body) = BodyFrames::sent(None);
        assert!(sender.send_ahead(part(60), &read_ahead).await);
        let mut waiting = pin!(sender.send_ahead(part(60), &read_ahead));
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        body.frame().await.unwrap().unwrap();
        assert!(waiting.await);
        body.frame().await.unwrap().unwrap();
        assert!(sender.send_ahead(part(1000), &read_ahead).await);
        let mut waiting = pin!(sender.send_ahead(part(1), &read_ahead));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        drop(body);
        assert!(!waiting.await);
    }
}
