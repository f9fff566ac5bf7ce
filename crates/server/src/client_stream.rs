//! The stream of a client's connection, which adds two things to the HTTP library.
//!
//! - The library responds to requests that it cannot parse with a status and no body. These
//!   responses are replaced by failure envelopes, like those of all other failures.
//! - The library waits for ever for a client that has stopped reading. This stream has a timeout.

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
    errors::MALFORMED_REQUEST,
    middleware::{DEFAULT_SECURITY_HEADERS, REQUEST_ID, new_request_id},
};

/// A client's connection; see the module's documentation.
pub(crate) struct ClientStream<T> {
    stream: T,
    /// The rest of the response that replaces one of the library's.
    replacement: Bytes,
    write_timeout: Duration,
    /// Runs while a write is pending.
    write_timer: Option<Pin<Box<Sleep>>>,
    connection: Connection,
}

impl<T: AsyncWrite + Unpin> ClientStream<T> {
    pub(crate) fn new(stream: T, write_timeout: Duration, connection: Connection) -> Self {
        Self {
            stream,
            replacement: Bytes::new(),
            write_timeout,
            write_timer: None,
            connection,
        }
    }

    fn poll_replacement(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.replacement.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.replacement))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let _ = self.replacement.split_to(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Replaces a write of the library, which begins with `first`, if that is necessary.
    fn poll_replaced(
        &mut self,
        cx: &mut Context<'_>,
        first: &[u8],
    ) -> Option<Poll<io::Result<usize>>> {
        if self.replacement.is_empty() {
            self.replacement = envelope_for(library_refusal(first)?);
        }
        // Until all of it is written, the library passes the same bytes again.
        Some(self.poll_replacement(cx).map_ok(|()| first.len()))
    }

    /// Returns the result of a write, or an error if it has been pending for too long.
    fn with_timeout<R>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if polled.is_ready() {
            self.write_timer = None;
            self.connection.record_write();
            return polled;
        }
        let end = Instant::now() + self.write_timeout;
        let timer = self
            .write_timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Returns the status of an error response that the library wrote by itself, which is a head
/// without a body and without the request id that all other responses carry.
fn library_refusal(written: &[u8]) -> Option<StatusCode> {
    let rest = written.strip_prefix(b"HTTP/1.1 ")?;
    let status = StatusCode::from_bytes(rest.get(..3)?).ok()?;
    let is_head_alone = written.ends_with(b"\r\n\r\n");
    (status.is_client_error() && is_head_alone && !has_header(written, &REQUEST_ID))
        .then_some(status)
}

fn has_header(head: &[u8], name: &HeaderName) -> bool {
    head.split(|b| *b == b'\n')
        .any(|line| line.starts_with(name.as_str().as_bytes()))
}

fn envelope_for(status: StatusCode) -> Bytes {
    let reason = status.canonical_reason().unwrap_or("Bad Request");
    let body =
        format!(r#"{{"status":"FAILURE","message":"{reason}","code":"{MALFORMED_REQUEST}"}}"#);
    let id = new_request_id();
    let default_headers: String = DEFAULT_SECURITY_HEADERS
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!(
        "HTTP/1.1 {} {reason}\r\n\
         content-type: application/json\r\n\
         content-length: {}\r\n\
         {REQUEST_ID}: {}\r\n\
         {default_headers}\
         connection: close\r\n\r\n\
         {body}",
        status.as_u16(),
        body.len(),
        id.to_str().unwrap_or_default(),
    )
    .into()
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ClientStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = match self.poll_replaced(cx, bytes) {
            Some(polled) => polled,
            None => Pin::new(&mut self.stream).poll_write(cx, bytes),
        };
        self.with_timeout(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = parts.iter().find(|part| !part.is_empty());
        let polled = match first.and_then(|first| self.poll_replaced(cx, first)) {
            Some(polled) => polled,
            None => Pin::new(&mut self.stream).poll_write_vectored(cx, parts),
        };
        self.with_timeout(cx, polled)
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

impl<T: AsyncRead + Unpin> AsyncRead for ClientStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.connection.record_read();
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use std::sync::Arc;

    use super::*;
    use crate::connections::{ConnectionTimeouts, Connections};

    fn connection() -> Connection {
        let timeouts = ConnectionTimeouts {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(30),
        };
        Arc::new(Connections::new(1, timeouts)).open([192, 0, 2, 1].into())
    }

    #[test]
    fn only_an_error_head_without_body_and_request_id_is_a_refusal_of_the_library() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(
            library_refusal(bare),
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
            assert_eq!(library_refusal(other), None, "{}", other.escape_ascii());
        }
    }

    #[tokio::test]
    async fn a_refusal_of_the_library_is_sent_as_an_envelope_even_in_small_writes() {
        let (server, mut client) = duplex(7);
        let mut stream = ClientStream::new(server, Duration::from_secs(60), connection());
        let writing = async move {
            stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
                .await
                .unwrap();
        };
        let mut response = String::new();
        let (_, read) = tokio::join!(writing, client.read_to_string(&mut response));
        read.unwrap();
        assert!(
            response.starts_with("HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n")
        );
        assert!(
            response.ends_with(
                "\r\n\r\n{\"status\":\"FAILURE\",\"message\":\"Bad Request\",\
                 \"code\":\"MALFORMED_REQUEST\"}"
            ),
            "{response}"
        );
        assert!(response.contains("\r\nx-request-id: "));
        assert!(
            response.contains("\r\ncontent-length: 71\r\n"),
            "{response}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_times_out_when_the_client_stops_reading() {
        let (server, _client) = duplex(7);
        let mut stream = ClientStream::new(server, Duration::from_secs(60), connection());
        let error = stream
            .write_all(b"more than seven bytes")
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
