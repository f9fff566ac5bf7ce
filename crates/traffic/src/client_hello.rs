//! The first message of TLS.

use std::io;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::rustls::server::{Accepted, Acceptor};

/// The first byte of a connection that begins with TLS: the type of a handshake record.
pub(crate) const HANDSHAKE_RECORD: u8 = 22;

/// The largest first message that is read; those of Chromium have about 2 KB.
const MAX_HELLO_BYTES: usize = 64 * 1024;

/// The first message of a browser that begins TLS.
pub(crate) struct ClientHello {
    /// The bytes as they were received.
    pub(crate) bytes: Vec<u8>,
    pub(crate) accepted: Accepted,
}

impl ClientHello {
    /// Reads the message; `None` if the browser closes the connection before its end.
    pub(crate) async fn read(browser: &mut TcpStream) -> io::Result<Option<Self>> {
        let mut acceptor = Acceptor::default();
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        while bytes.len() < MAX_HELLO_BYTES {
            let count = browser.read(&mut buffer).await?;
            if count == 0 {
                return Ok(None);
            }
            bytes.extend_from_slice(&buffer[..count]);
            let mut unread = &buffer[..count];
            while !unread.is_empty() {
                acceptor.read_tls(&mut unread)?;
            }
            match acceptor.accept() {
                Ok(Some(accepted)) => return Ok(Some(Self { bytes, accepted })),
                Ok(None) => {}
                Err((error, _)) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            }
        }
        let reason = "the first message of TLS is too long";
        Err(io::Error::new(io::ErrorKind::InvalidData, reason))
    }

    /// Returns the name that the browser expects in the certificate.
    pub(crate) fn server_name(&self) -> Option<String> {
        let hello = self.accepted.client_hello();
        hello.server_name().map(str::to_owned)
    }

    /// Returns whether the browser accepts HTTP/2.
    pub(crate) fn accepts_http2(&self) -> bool {
        let hello = self.accepted.client_hello();
        hello
            .alpn()
            .is_some_and(|mut protocols| protocols.any(|it| it == b"h2"))
    }
}
