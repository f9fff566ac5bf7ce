//! A client's connection, with two manners that the HTTP library lacks.
//!
//! - It answers requests that it cannot parse with a bare status and no body. On the way out these
//!   become failure envelopes like every other answer.
//! - It waits for ever for a client that has stopped reading. Here that ends.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::Bytes,
    http::{HeaderName, StatusCode},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

use crate::{
    connections::Connection,
    door::{MANNERS, REQUEST_ID, new_id},
};

pub(crate) struct Wire<T> {
    stream: T,
    /// What is written in place of the library's refusal, until all of it is.
    instead: Bytes,
    write_within: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    connection: Connection,
}

impl<T: AsyncWrite + Unpin> Wire<T> {
    pub(crate) fn new(stream: T, write_within: Duration, connection: Connection) -> Self {
        Self {
            stream,
            instead: Bytes::new(),
            write_within,
            stalled: None,
            connection,
        }
    }

    fn poll_instead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.instead.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.instead))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let _ = self.instead.split_to(written);
        }
        Poll::Ready(Ok(()))
    }

    /// `first` is what is to be written next, as the library handed it over.
    fn poll_first(
        &mut self,
        cx: &mut Context<'_>,
        first: &[u8],
    ) -> Option<Poll<io::Result<usize>>> {
        if self.instead.is_empty() {
            self.instead = envelope_for(bare_refusal(first)?);
        }
        // Until it is written, the library comes back with the same bytes.
        Some(self.poll_instead(cx).map_ok(|()| first.len()))
    }

    fn unless_stalled<R>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if polled.is_ready() {
            self.stalled = None;
            self.connection.has_written();
            return polled;
        }
        let end = Instant::now() + self.write_within;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// The status of an answer that the library wrote by itself: an error's head, alone, without the
/// id that every answer of ours carries.
fn bare_refusal(written: &[u8]) -> Option<StatusCode> {
    let rest = written.strip_prefix(b"HTTP/1.1 ")?;
    let status = StatusCode::from_bytes(rest.get(..3)?).ok()?;
    let is_head_alone = written.ends_with(b"\r\n\r\n");
    (status.is_client_error() && is_head_alone && !names_header(written, &REQUEST_ID))
        .then_some(status)
}

fn names_header(head: &[u8], name: &HeaderName) -> bool {
    head.split(|b| *b == b'\n')
        .any(|line| line.starts_with(name.as_str().as_bytes()))
}

fn envelope_for(status: StatusCode) -> Bytes {
    let reason = status.canonical_reason().unwrap_or("Bad Request");
    let body = format!(r#"{{"status":"FAILURE","message":"{reason}"}}"#);
    let id = new_id();
    let manners: String = MANNERS
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!(
        "HTTP/1.1 {} {reason}\r\n\
         content-type: application/json\r\n\
         content-length: {}\r\n\
         {REQUEST_ID}: {}\r\n\
         {manners}\
         connection: close\r\n\r\n\
         {body}",
        status.as_u16(),
        body.len(),
        id.to_str().unwrap_or_default(),
    )
    .into()
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Wire<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = match self.poll_first(cx, bytes) {
            Some(polled) => polled,
            None => Pin::new(&mut self.stream).poll_write(cx, bytes),
        };
        self.unless_stalled(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = parts.iter().find(|part| !part.is_empty());
        let polled = match first.and_then(|first| self.poll_first(cx, first)) {
            Some(polled) => polled,
            None => Pin::new(&mut self.stream).poll_write_vectored(cx, parts),
        };
        self.unless_stalled(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Wire<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.connection.has_read();
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use std::sync::Arc;

    use super::*;
    use crate::connections::{Connections, Waits};

    fn opened() -> Connection {
        let waits = Waits {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(30),
        };
        Arc::new(Connections::new(1, waits)).open([192, 0, 2, 1].into())
    }

    #[test]
    fn only_a_lone_head_of_an_error_without_our_id_is_a_bare_refusal() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(
            bare_refusal(bare),
            Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
        );
        for other in [
            &b"HTTP/1.1 404 Not Found\r\nx-request-id: a\r\ncontent-length: 2\r\n\r\n"[..],
            b"HTTP/1.1 404 Not Found\r\nx-request-id: a\r\ncontent-length: 2\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"HTTP/1.1 4",
            b"{\"status\":\"FAILURE\"}",
            b"",
        ] {
            assert_eq!(bare_refusal(other), None, "{}", other.escape_ascii());
        }
    }

    #[tokio::test]
    async fn a_bare_refusal_leaves_as_an_envelope_even_through_a_narrow_pipe() {
        let (ours, mut theirs) = duplex(7);
        let mut wire = Wire::new(ours, Duration::from_secs(60), opened());
        let writing = async move {
            wire.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
                .await
                .unwrap();
        };
        let mut got = String::new();
        let (_, read) = tokio::join!(writing, theirs.read_to_string(&mut got));
        read.unwrap();
        assert!(got.starts_with("HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"));
        assert!(
            got.ends_with("\r\n\r\n{\"status\":\"FAILURE\",\"message\":\"Bad Request\"}"),
            "{got}"
        );
        assert!(got.contains("\r\nx-request-id: "));
        assert!(got.contains("\r\ncontent-length: 44\r\n"), "{got}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_stops_reading_is_given_up() {
        let (ours, _theirs) = duplex(7);
        let mut wire = Wire::new(ours, Duration::from_secs(60), opened());
        let error = wire.write_all(b"more than seven bytes").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
