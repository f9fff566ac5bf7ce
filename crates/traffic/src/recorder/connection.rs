//! One recorded connection, from its first byte.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use plumbline_link::RecordedConnection;
use plumbline_recording::{ConnectFailure, ConnectResult, Endpoint, Protocol};
use tokio::io::{AsyncWriteExt, ReadBuf, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::server::StartHandshake;

use super::Shared;
use super::relay::relay_requests;
use crate::client_hello::{ClientHello, HANDSHAKE_RECORD};
use crate::serve::ConnectionError;

/// Maximum time to connect to a server again, and for its handshake.
const SERVER_TIMEOUT: Duration = Duration::from_secs(20);

/// The side that sends the first byte of a connection.
enum FirstByte {
    Browser(u8),
    Server,
    /// One side closed the connection before it was used.
    Closed,
}

/// Relays a connection until it ends.
pub(super) async fn relay(
    shared: Arc<Shared>,
    connection: RecordedConnection,
) -> Result<(), ConnectionError> {
    let mut browser = TcpStream::from_std(connection.browser)?;
    let mut server = TcpStream::from_std(connection.server)?;
    let mut endpoint = Endpoint {
        is_secure: false,
        host: connection.host.to_ascii_lowercase(),
        port: connection.port,
    };
    match first_byte(&browser, &server).await? {
        FirstByte::Closed => Ok(()),
        FirstByte::Server => {
            // Not HTTP.
            copy_bidirectional(&mut browser, &mut server).await?;
            Ok(())
        }
        FirstByte::Browser(HANDSHAKE_RECORD) => {
            endpoint.is_secure = true;
            let (address, time) = (connection.address, connection.connect_time);
            relay_tls(shared, endpoint, browser, server, address, time).await
        }
        FirstByte::Browser(_) => {
            let result = connected(Protocol::Http1, connection.connect_time, Duration::ZERO);
            shared.log.add_endpoint(&endpoint, result);
            relay_requests(shared, endpoint, Protocol::Http1, browser, server).await
        }
    }
}

async fn first_byte(browser: &TcpStream, server: &TcpStream) -> io::Result<FirstByte> {
    poll_fn(|context| {
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        if let Poll::Ready(count) = browser.poll_peek(context, &mut buffer)? {
            return Poll::Ready(Ok(match count {
                0 => FirstByte::Closed,
                _ => FirstByte::Browser(byte[0]),
            }));
        }
        match server.poll_peek(context, &mut buffer)? {
            Poll::Ready(0) => Poll::Ready(Ok(FirstByte::Closed)),
            Poll::Ready(_) => Poll::Ready(Ok(FirstByte::Server)),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Relays a connection with TLS. If that of the server fails, for example because its certificate
/// is not valid, the browser gets the bytes of the server itself, and fails in its own way.
async fn relay_tls(
    shared: Arc<Shared>,
    endpoint: Endpoint,
    mut browser: TcpStream,
    server: TcpStream,
    address: SocketAddr,
    connect_time: Duration,
) -> Result<(), ConnectionError> {
    let Some(hello) = ClientHello::read(&mut browser).await? else {
        return Ok(());
    };
    let name = hello.server_name().unwrap_or_else(|| endpoint.host.clone());
    let mut config = shared.client_config.clone();
    config.alpn_protocols = if hello.accepts_http2() {
        vec![b"h2".to_vec(), b"http/1.1".to_vec()]
    } else {
        vec![b"http/1.1".to_vec()]
    };
    let began_at = Instant::now();
    let connector = TlsConnector::from(Arc::new(config));
    let handshake = connector.connect(ServerName::try_from(name.clone())?, server);
    let server = match timeout(SERVER_TIMEOUT, handshake).await? {
        Ok(server) => server,
        Err(error) => {
            tracing::debug!(%error, host = endpoint.host, "TLS of a recorded server failed");
            let failure = ConnectResult::Failed(ConnectFailure::Certificate);
            shared.log.add_endpoint(&endpoint, failure);
            return pass_through(&hello.bytes, browser, address).await;
        }
    };
    let tls_time = began_at.elapsed();
    let protocol = match server.get_ref().1.alpn_protocol() {
        Some(b"h2") => Protocol::Http2,
        _ => Protocol::Http1,
    };
    let result = connected(protocol, connect_time, tls_time);
    shared.log.add_endpoint(&endpoint, result);
    let config = shared.identity.server_config(&name, protocol, true)?;
    let browser = StartHandshake::from_parts(hello.accepted, browser)
        .into_stream(config)
        .await?;
    relay_requests(shared, endpoint, protocol, browser, server).await
}

fn connected(protocol: Protocol, connect_time: Duration, tls_time: Duration) -> ConnectResult {
    let milliseconds = |time: Duration| time.as_micros() as f64 / 1000.0;
    ConnectResult::Connected {
        protocol,
        connect_ms: milliseconds(connect_time),
        tls_ms: milliseconds(tls_time),
    }
}

/// Connects the browser with the server itself, at the address that was permitted before.
async fn pass_through(
    hello: &[u8],
    mut browser: TcpStream,
    address: SocketAddr,
) -> Result<(), ConnectionError> {
    let mut server = timeout(SERVER_TIMEOUT, TcpStream::connect(address)).await??;
    server.write_all(hello).await?;
    copy_bidirectional(&mut browser, &mut server).await?;
    Ok(())
}
