//! Connects to a host: looks it up, checks it with the guard, and dials.

use std::future::{Future, ready};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use plumbline_clock::{OutsideWait, PageTime};
use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Shared;
use super::backup::{BackupState, backup_time};
use super::handshake::shake_hands;
use super::record::{ConnectionLogEntry, ConnectionOutcome};
use super::servers::Arrivals;
use super::socks::{ConnectRequest, Reply};
use crate::guard::{Refusal, RefusalReason, literal};
use crate::model::{Direction, HANDSHAKE_WIRE_BYTES, PAYLOAD_BYTES};

/// Time without a response from an address after which the next one is tried in parallel (RFC
/// 8305).
const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);
const MAX_ADDRESSES: usize = 8;

/// Minimum duration of a failed lookup, which is longer than most lookups take. A name that does
/// not exist and one whose address is refused fail after the same time; otherwise a page could
/// measure which names exist in our network.
const MIN_FAILED_LOOKUP: Duration = Duration::from_millis(100);

/// Size of a DNS response without the name: IP and UDP headers, DNS header, question, EDNS option
/// and two address records. A query is about as long as the first packet of a handshake and counts
/// as one.
const DNS_RESPONSE_WIRE_BYTES: u32 = 28 + 12 + 6 + 11 + 2 * 16;

/// A connection to the requested host, with the duration of its handshake on the emulated line.
pub(super) struct Dialed {
    pub(super) stream: TcpStream,
    /// The arrivals that a replayed server is told about; `None` for other servers.
    pub(super) arrivals: Option<Arrivals>,
    pub(super) address: SocketAddr,
    pub(super) rtt: Duration,
}

impl Dialed {
    /// Returns whether the connection is still open and has no unread bytes. Servers close
    /// connections that are idle for long.
    fn is_unused(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        let peeked = SockRef::from(&self.stream).peek(&mut byte);
        peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// A connection that the browser has opened to the proxy. Its first packet, which is a DNS query or
/// begins the handshake, is sent before its destination is known: the SOCKS exchange until then can
/// take a busy browser 20 ms that no real line has, and the packet would queue behind what was sent
/// after it.
pub(super) struct PendingConnection {
    opened_at: PageTime,
    first_packet: Transit,
}

/// A packet that is in transit on the line; the future returns how long it took.
pub(super) type Transit = Pin<Box<dyn Future<Output = Duration> + Send>>;

impl PendingConnection {
    pub(super) fn start(shared: &Shared) -> Self {
        Self {
            opened_at: shared.clock.now(),
            first_packet: send_packet(shared, Direction::Up, HANDSHAKE_WIRE_BYTES),
        }
    }

    pub(super) async fn dial(
        self,
        shared: &Arc<Shared>,
        request: &ConnectRequest,
        entry: &ConnectionLogEntry,
    ) -> Result<Dialed, ConnectionOutcome> {
        let (ConnectRequest { host, port }, opened_at) = (request, self.opened_at);
        if !shared.is_replayed() {
            shared
                .guard
                .check_host(host, *port)
                .map_err(ConnectionOutcome::Blocked)?;
        }
        let fixed = literal(host)
            .map(|ip| vec![ip])
            .or_else(|| shared.guard.loopback_of(host, *port))
            // A replay asks no guard which of them are allowed.
            .filter(|addresses| !addresses.is_empty() || !shared.is_replayed());
        let (addresses, first_packet) = match fixed {
            Some(addresses) => {
                let addresses = with_port(addresses, *port);
                check_all(shared, host, &addresses, entry)?;
                (addresses, self.first_packet)
            }
            None => {
                let lookup = self.look_up_and_check(shared, request, entry).await;
                if let Err(ConnectionOutcome::NameNotFound | ConnectionOutcome::Blocked(_)) = lookup
                {
                    let failed_at = opened_at + MIN_FAILED_LOOKUP;
                    shared.clock.sleep_until(failed_at).await;
                }
                lookup?
            }
        };
        let addresses = interleave_families(addresses);

        let backup_at = backup_time(opened_at, shared.clock.now());
        let mut handshake = pin!(shake_hands(
            Arc::clone(shared),
            request.clone(),
            addresses.clone(),
            first_packet
        ));
        let dialed = match shared.backups.take(request) {
            BackupState::Unavailable => handshake.await,
            BackupState::Available(backup) => match backup.await {
                Ok(Ok(dialed)) if dialed.is_unused() => Ok(dialed),
                _ => handshake.await,
            },
            BackupState::FirstRequest => tokio::select! {
                biased;
                dialed = &mut handshake => dialed,
                () = shared.clock.sleep_until(backup_at) => {
                    let syn = send_packet(shared, Direction::Up, HANDSHAKE_WIRE_BYTES);
                    let backup = shake_hands(Arc::clone(shared), request.clone(), addresses, syn);
                    shared.backups.insert(request, tokio::spawn(backup));
                    handshake.await
                }
            },
        }?;
        entry.set_address(dialed.address);
        Ok(dialed)
    }

    /// Returns the addresses of a name, all of which the guard permits, and the first packet of the
    /// handshake.
    async fn look_up_and_check(
        self,
        shared: &Shared,
        request: &ConnectRequest,
        entry: &ConnectionLogEntry,
    ) -> Result<(Vec<SocketAddr>, Transit), ConnectionOutcome> {
        let ConnectRequest { host, port } = request;
        let mut first_packet = Some(self.first_packet);
        let look_up = async {
            let page_started_at = shared.clock.now();
            let wait = OutsideWait::begin(&shared.clock);
            wait.begin_page_time(page_started_at);
            let result = timeout(shared.lookup_timeout, shared.resolver.resolve(host)).await;
            let addresses = match result {
                Err(_) => return Err(ConnectionOutcome::LookupTimedOut),
                Ok(Ok(addresses)) if !addresses.is_empty() => addresses,
                // Fails without a round trip, as where there is no resolver behind the line.
                Ok(_) => return Err(ConnectionOutcome::NameNotFound),
            };
            if check_all(shared, host, &with_port(addresses.clone(), *port), entry).is_err() {
                // No round trip for this response either: it must look like a missing name.
                return Ok(addresses);
            }
            let elapsed = wait.elapsed();
            drop(wait);
            if let Some(query) = first_packet.take() {
                // On a real line the lookup would begin when the query has arrived. The real time
                // of the lookup counts as it is.
                let completed_at = page_started_at + query.await + elapsed;
                shared.clock.sleep_until(completed_at).await;
            }
            let response_bytes = DNS_RESPONSE_WIRE_BYTES + host.len() as u32;
            send_packet(shared, Direction::Down, response_bytes).await;
            Ok(addresses)
        };
        let lookup = shared
            .lookups
            .addresses(&shared.clock, host, look_up)
            .await?;
        let addresses = with_port(lookup.addresses, *port);
        check_all(shared, host, &addresses, entry)?;
        let syn = first_packet
            .filter(|_| lookup.completed_at <= self.opened_at)
            .unwrap_or_else(|| send_packet(shared, Direction::Up, HANDSHAKE_WIRE_BYTES));
        Ok((addresses, syn))
    }
}

fn with_port(addresses: Vec<IpAddr>, port: u16) -> Vec<SocketAddr> {
    let with_port = |ip| SocketAddr::new(ip, port);
    addresses.into_iter().map(with_port).collect()
}

/// Checks all addresses of a host, including those that would not be tried.
fn check_all(
    shared: &Shared,
    host: &str,
    addresses: &[SocketAddr],
    entry: &ConnectionLogEntry,
) -> Result<(), ConnectionOutcome> {
    for address in addresses {
        entry.set_address(*address);
        if shared.is_replayed() {
            continue;
        }
        let result = shared.guard.check_address(host, *address);
        result.map_err(ConnectionOutcome::Blocked)?;
        if *address == shared.address {
            let kind = "the address of the link itself";
            let refusal = Refusal::address(RefusalReason::OwnAddress, host, address.ip(), kind);
            return Err(ConnectionOutcome::Blocked(refusal));
        }
    }
    Ok(())
}

pub(super) fn send_packet(shared: &Shared, direction: Direction, wire_bytes: u32) -> Transit {
    match shared.emulator() {
        Some(emulator) => Box::pin(emulator.send_message(direction, wire_bytes)),
        None => Box::pin(ready(Duration::ZERO)),
    }
}

/// Returns the addresses with the two families alternating, each in the resolver's order (RFC 8305,
/// section 4), and limits their number.
pub(super) fn interleave_families(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(first) = addresses.first().copied() else {
        return addresses;
    };
    let (same, other): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|a| a.is_ipv4() == first.is_ipv4());
    let (mut same, mut other) = (same.into_iter(), other.into_iter());
    let mut interleaved = Vec::new();
    while interleaved.len() < MAX_ADDRESSES {
        let pair = [same.next(), other.next()];
        if pair == [None, None] {
            break;
        }
        interleaved.extend(pair.into_iter().flatten());
    }
    interleaved
}

/// Tries the addresses in order, each in parallel to those that have not responded yet.
pub(super) async fn connect_any(
    buffer_bytes: Option<u32>,
    addresses: &[SocketAddr],
) -> io::Result<(TcpStream, SocketAddr)> {
    let mut untried = addresses.iter().copied();
    let mut attempts = JoinSet::new();
    let mut last_error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        if let Some(address) = untried.next() {
            attempts.spawn(connect(address, buffer_bytes));
        }
        let delay = sleep(CONNECTION_ATTEMPT_DELAY);
        tokio::pin!(delay);
        // This loop ends when the next address is to be tried.
        loop {
            tokio::select! {
                () = &mut delay, if untried.len() > 0 => break,
                result = attempts.join_next() => match result {
                    Some(Ok(Ok(connection))) => return Ok(connection),
                    Some(Ok(Err(e))) => last_error = e,
                    Some(Err(e)) => last_error = io::Error::other(e),
                    None => return Err(last_error),
                },
            }
            if untried.len() > 0 {
                break;
            }
        }
    }
}

pub(super) async fn connect(
    address: SocketAddr,
    buffer_bytes: Option<u32>,
) -> io::Result<(TcpStream, SocketAddr)> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(bytes) = buffer_bytes {
        // Loopback's packets of 64 KB would hide the line's speed from a server on this machine: it
        // has twenty packets in its send buffer, whatever their size.
        socket.set_recv_buffer_size(bytes)?;
        SockRef::from(&socket).set_tcp_mss(PAYLOAD_BYTES)?;
    }
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok((stream, address))
}

pub(super) fn outcome_of_error(error: &io::Error) -> ConnectionOutcome {
    use io::ErrorKind::*;
    match error.kind() {
        ConnectionRefused | ConnectionReset => ConnectionOutcome::ConnectionRefused,
        TimedOut => ConnectionOutcome::ConnectTimedOut,
        NetworkUnreachable | HostUnreachable | AddrNotAvailable => ConnectionOutcome::Unreachable,
        _ => ConnectionOutcome::Failed(error.to_string()),
    }
}

impl ConnectionOutcome {
    /// Returns the SOCKS reply for the outcome.
    pub(super) fn reply(&self) -> Reply {
        match self {
            ConnectionOutcome::Connected => Reply::Succeeded,
            // Must not be distinguishable from a name that does not exist.
            ConnectionOutcome::Blocked(refusal) if refusal.follows_a_lookup() => {
                Reply::HostUnreachable
            }
            ConnectionOutcome::Blocked(_)
            | ConnectionOutcome::BrowserService
            | ConnectionOutcome::OverLimit => Reply::NotAllowed,
            ConnectionOutcome::NameNotFound | ConnectionOutcome::LookupTimedOut => {
                Reply::HostUnreachable
            }
            ConnectionOutcome::ConnectionRefused => Reply::ConnectionRefused,
            ConnectionOutcome::ConnectTimedOut => Reply::TimedOut,
            ConnectionOutcome::Unreachable => Reply::NetworkUnreachable,
            ConnectionOutcome::Pending | ConnectionOutcome::Failed(_) => Reply::GeneralFailure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_alternate_and_the_first_address_stays_first() {
        let ip = |s: &str| SocketAddr::new(s.parse().unwrap(), 80);
        let addresses = ["2a00::1", "2a00::2", "2a00::3", "8.8.8.8", "8.8.4.4"];
        let interleaved = interleave_families(addresses.map(ip).to_vec());
        let expected = ["2a00::1", "8.8.8.8", "2a00::2", "8.8.4.4", "2a00::3"];
        assert_eq!(interleaved, expected.map(ip));
    }

    #[test]
    fn only_a_few_addresses_of_a_name_are_tried() {
        let many = (0..100)
            .map(|i| SocketAddr::from(([8, 8, 8, i], 80)))
            .collect();
        assert_eq!(interleave_families(many).len(), MAX_ADDRESSES);
    }
}
