//! The handshake of a connection: with a real server, or with a replayed one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plumbline_clock::OutsideWait;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Shared;
use super::dial::{Dialed, Transit, connect_any, outcome_of_error, send_packet};
use super::record::ConnectionOutcome;
use super::server_time::wait_until_due;
use super::servers::{
    Arrivals, RecordedConnection, ReplayedConnection, ReplayedHandshake, Servers, connected_pair,
};
use super::socks::ConnectRequest;
use crate::model::{Direction, HANDSHAKE_WIRE_BYTES, HEADER_BYTES};

/// Performs a handshake whose first packet is already in transit.
pub(super) async fn shake_hands(
    shared: Arc<Shared>,
    request: ConnectRequest,
    addresses: Vec<SocketAddr>,
    syn: Transit,
) -> Result<Dialed, ConnectionOutcome> {
    let (up, result) = match &shared.servers {
        Servers::Replayed(replayer) => {
            let handshake = replayer.handshake(&request.host, request.port);
            replay_handshake(&shared, handshake, &addresses, syn).await
        }
        Servers::Real | Servers::Recorded(_) => dial_server(&shared, &addresses, syn).await,
    };
    let wire_bytes = match result {
        Ok(_) => HANDSHAKE_WIRE_BYTES,
        Err(_) => HEADER_BYTES,
    };
    let down = send_packet(&shared, Direction::Down, wire_bytes).await;
    let server = result?;
    let address = server.address;
    let opened = server.open(&shared, &request).await;
    let (stream, arrivals) = opened.map_err(|e| outcome_of_error(&e))?;
    Ok(Dialed {
        stream,
        arrivals,
        address,
        rtt: up + down,
    })
}

/// A server that has accepted a connection.
struct AcceptedBy {
    address: SocketAddr,
    /// The connection, if the server is a real one.
    stream: Option<TcpStream>,
    connect_time: Duration,
}

impl AcceptedBy {
    /// Returns the connection that the browser's bytes are relayed to, and what a replayed server
    /// is told about them.
    async fn open(
        self,
        shared: &Shared,
        request: &ConnectRequest,
    ) -> io::Result<(TcpStream, Option<Arrivals>)> {
        let ConnectRequest { host, port } = request;
        match (&shared.servers, self.stream) {
            (Servers::Recorded(recorder), Some(server)) => {
                let (near, browser) = connected_pair(shared.upstream_buffer_bytes()).await?;
                recorder.record(RecordedConnection {
                    host: host.clone(),
                    port: *port,
                    browser,
                    server: server.into_std()?,
                    address: self.address,
                    connect_time: self.connect_time,
                });
                Ok((near, None))
            }
            (Servers::Replayed(replayer), _) => {
                let (near, browser) = connected_pair(shared.upstream_buffer_bytes()).await?;
                let arrivals = Arrivals::new(&shared.clock);
                replayer.serve(ReplayedConnection {
                    host: host.clone(),
                    port: *port,
                    browser,
                    arrivals: arrivals.clone(),
                });
                Ok((near, Some(arrivals)))
            }
            (_, Some(server)) => Ok((server, None)),
            (_, None) => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

/// Connects to a real server. Also returns how long the first packet was in transit.
async fn dial_server(
    shared: &Shared,
    addresses: &[SocketAddr],
    syn: Transit,
) -> (Duration, Result<AcceptedBy, ConnectionOutcome>) {
    let connect = async {
        // A recorder reads as fast as a server sends.
        let buffer_bytes = match &shared.servers {
            Servers::Recorded(_) => None,
            Servers::Real | Servers::Replayed(_) => shared.upstream_buffer_bytes(),
        };
        let attempts = connect_any(buffer_bytes, addresses);
        timeout(shared.connect_timeout, attempts).await
    };
    let wait;
    let (up, arrived_at, (result, elapsed)) = if shared.clock.speed() > 1.0 {
        // The real handshake takes place while the packet is under way on the emulated network,
        // and its time counts from the arrival of the packet.
        wait = OutsideWait::begin(&shared.clock);
        let arrival = async {
            let up = syn.await;
            let arrived_at = shared.clock.now();
            wait.begin_page_time(arrived_at);
            (up, arrived_at)
        };
        let connect = async { (connect.await, wait.elapsed()) };
        let ((up, arrived_at), result) = tokio::join!(arrival, connect);
        (up, arrived_at, result)
    } else {
        let up = syn.await;
        let arrived_at = shared.clock.now();
        wait = OutsideWait::begin(&shared.clock);
        wait.begin_page_time(arrived_at);
        (up, arrived_at, (connect.await, wait.elapsed()))
    };
    drop(wait);
    wait_until_due(&shared.clock, arrived_at + elapsed).await;
    let result = match result {
        Err(_) => Err(ConnectionOutcome::ConnectTimedOut),
        Ok(Err(e)) => Err(outcome_of_error(&e)),
        Ok(Ok((stream, address))) => Ok(AcceptedBy {
            address,
            stream: Some(stream),
            connect_time: elapsed,
        }),
    };
    (up, result)
}

/// Waits in page time for what a replayed server answers. Also returns how long the first packet
/// was in transit.
async fn replay_handshake(
    shared: &Shared,
    handshake: ReplayedHandshake,
    addresses: &[SocketAddr],
    syn: Transit,
) -> (Duration, Result<AcceptedBy, ConnectionOutcome>) {
    let up = syn.await;
    let arrived_at = shared.clock.now();
    let (delay, result) = match (handshake, addresses.first()) {
        (ReplayedHandshake::Accepted(delay), Some(&address)) => {
            let server = AcceptedBy {
                address,
                stream: None,
                connect_time: delay,
            };
            (delay, Ok(server))
        }
        (ReplayedHandshake::Refused, _) => {
            (Duration::ZERO, Err(ConnectionOutcome::ConnectionRefused))
        }
        (ReplayedHandshake::Unreachable | ReplayedHandshake::Accepted(_), _) => {
            (Duration::ZERO, Err(ConnectionOutcome::Unreachable))
        }
        (ReplayedHandshake::Silent, _) => (
            shared.connect_timeout,
            Err(ConnectionOutcome::ConnectTimedOut),
        ),
    };
    wait_until_due(&shared.clock, arrived_at + delay).await;
    (up, result)
}
