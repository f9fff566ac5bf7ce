//! From a host to a connected socket: look it up, ask the guard, connect.

use std::future::{Future, ready};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout, timeout_at};

use super::Shared;
use super::record::{Entry, Outcome};
use super::socks::{Reply, Request};
use super::spare::{self, Turn};
use crate::guard::{Reason, Refusal, literal};
use crate::model::{HANDSHAKE_WIRE_BYTES, HEADER_BYTES, PAYLOAD_BYTES, Way};

/// RFC 8305: how long an address may stay silent before the next is tried beside it.
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);
const MAX_ADDRESSES: usize = 8;

/// A name that does not exist and one whose address is refused fail at the same time, or a page
/// could tell by its clock which names our network knows: no sooner than this, which is longer than
/// most lookups take.
const MIN_FAILED_LOOKUP: Duration = Duration::from_millis(100);

/// IP and UDP headers, DNS header, question, EDNS option and two address records, without the name. The question is as long as
/// the first packet of a handshake, give or take some bytes, and counts as one.
const ANSWER_WIRE_BYTES: u32 = 28 + 12 + 6 + 11 + 2 * 16;

/// A connection to the host that was asked for, and what its handshake took on the emulated line.
pub(super) struct Dialed {
    pub(super) stream: TcpStream,
    pub(super) address: SocketAddr,
    pub(super) rtt: Duration,
}

impl Dialed {
    /// Whether nothing was said on it and nobody hung up: servers close what is silent for long.
    fn is_fresh(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        let peeked = SockRef::from(&self.stream).peek(&mut byte);
        peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// A connection that the browser wants. Its first packet, which asks for the name or shakes hands, is on its way before we
/// know where to: what SOCKS asks and answers until then can take a busy browser 20 ms that no real line has, and the packet
/// would come behind what was sent after it.
pub(super) struct Wish {
    since: Instant,
    first_packet: Trip,
}

/// The way of a packet along the line; gives how long it took.
type Trip = Pin<Box<dyn Future<Output = Duration> + Send>>;

impl Wish {
    pub(super) fn now(shared: &Shared) -> Self {
        Self {
            since: Instant::now(),
            first_packet: trip(shared, Way::Up, HANDSHAKE_WIRE_BYTES),
        }
    }

    pub(super) async fn dial(
        self,
        shared: &Arc<Shared>,
        request: &Request,
        entry: &Entry,
    ) -> Result<Dialed, Outcome> {
        let (Request { host, port }, wanted) = (request, self.since);
        shared
            .guard
            .check_host(host, *port)
            .map_err(Outcome::Blocked)?;
        let known = literal(host)
            .map(|ip| vec![ip])
            .or_else(|| shared.guard.loopback_of(host, *port));
        let (addresses, there) = match known {
            Some(addresses) => {
                let addresses = with_port(addresses, *port);
                check_all(shared, host, &addresses, entry)?;
                (addresses, self.first_packet)
            }
            None => {
                let looked_up = self.look_up_checked(shared, request, entry).await;
                if let Err(Outcome::NameNotFound | Outcome::Blocked(_)) = looked_up {
                    sleep_until((wanted + MIN_FAILED_LOOKUP).into()).await;
                }
                looked_up?
            }
        };
        let addresses = by_turns(addresses);

        let second_try = spare::second_try(wanted, Instant::now());
        let mut shaking = pin!(shake_hands(Arc::clone(shared), addresses.clone(), there));
        let dialed = match shared.spares.turn(request) {
            Turn::Later => shaking.await,
            Turn::WithSpare(spare) => match spare.await {
                Ok(Ok(dialed)) if dialed.is_fresh() => Ok(dialed),
                _ => shaking.await,
            },
            Turn::First => match timeout_at(second_try.into(), &mut shaking).await {
                Ok(dialed) => dialed,
                Err(_) => {
                    let there = trip(shared, Way::Up, HANDSHAKE_WIRE_BYTES);
                    let spare = shake_hands(Arc::clone(shared), addresses, there);
                    shared.spares.keep(request, tokio::spawn(spare));
                    shaking.await
                }
            },
        }?;
        entry.trying(dialed.address);
        Ok(dialed)
    }

    /// The addresses of a name, all of which may be connected to, and the first packet of the
    /// handshake.
    async fn look_up_checked(
        self,
        shared: &Shared,
        request: &Request,
        entry: &Entry,
    ) -> Result<(Vec<SocketAddr>, Trip), Outcome> {
        let Request { host, port } = request;
        let mut first_packet = Some(self.first_packet);
        let ask = async {
            let asked = Instant::now();
            let answer = timeout(shared.lookup_timeout, shared.resolver.resolve(host)).await;
            let addresses = match answer {
                Err(_) => return Err(Outcome::LookupTimedOut),
                Ok(Ok(addresses)) if !addresses.is_empty() => addresses,
                // Known at once, as where no resolver stands behind the line.
                Ok(_) => return Err(Outcome::NameNotFound),
            };
            if check_all(shared, host, &with_port(addresses.clone(), *port), entry).is_err() {
                // Its answer takes no time on the line either: it must look like one that is missing.
                return Ok(addresses);
            }
            let took = asked.elapsed();
            if let Some(question) = first_packet.take() {
                // The answer is looked for when the question is there.
                sleep(question.await.min(took)).await;
            }
            trip(shared, Way::Down, ANSWER_WIRE_BYTES + host.len() as u32).await;
            Ok(addresses)
        };
        let known = shared.names.addresses(host, ask).await?;
        let addresses = with_port(known.addresses, *port);
        check_all(shared, host, &addresses, entry)?;
        let there = first_packet
            .filter(|_| known.since <= self.since)
            .unwrap_or_else(|| trip(shared, Way::Up, HANDSHAKE_WIRE_BYTES));
        Ok((addresses, there))
    }
}

fn with_port(addresses: Vec<IpAddr>, port: u16) -> Vec<SocketAddr> {
    let with_port = |ip| SocketAddr::new(ip, port);
    addresses.into_iter().map(with_port).collect()
}

/// From the first packet of a handshake, which is on its way, to the last.
async fn shake_hands(
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    there: Trip,
) -> Result<Dialed, Outcome> {
    let there = there.await;
    let connected = timeout(
        shared.connect_timeout,
        connect_any(shared.upstream_buffer_bytes(), &addresses),
    )
    .await;
    let wire_bytes = match connected {
        Ok(Ok(_)) => HANDSHAKE_WIRE_BYTES,
        _ => HEADER_BYTES,
    };
    let back = trip(&shared, Way::Down, wire_bytes).await;
    match connected {
        Err(_) => Err(Outcome::ConnectTimedOut),
        Ok(Err(e)) => Err(failure(&e)),
        Ok(Ok((stream, address))) => Ok(Dialed {
            stream,
            address,
            rtt: there + back,
        }),
    }
}

/// Checks all addresses of a host, also those that would not be tried.
fn check_all(
    shared: &Shared,
    host: &str,
    addresses: &[SocketAddr],
    entry: &Entry,
) -> Result<(), Outcome> {
    for address in addresses {
        entry.trying(*address);
        let checked = shared.guard.check_address(host, *address);
        checked.map_err(Outcome::Blocked)?;
        if *address == shared.address {
            let kind = "where the link itself listens";
            let refusal = Refusal::address(Reason::OwnAddress, host, address.ip(), kind);
            return Err(Outcome::Blocked(refusal));
        }
    }
    Ok(())
}

fn trip(shared: &Shared, way: Way, wire_bytes: u32) -> Trip {
    match shared.wire() {
        Some(wire) => Box::pin(wire.message(way, wire_bytes)),
        None => Box::pin(ready(Duration::ZERO)),
    }
}

/// The two families by turns, each in the resolver's order (RFC 8305, section 4).
pub(super) fn by_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(first) = addresses.first().copied() else {
        return addresses;
    };
    let (same, other): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|a| a.is_ipv4() == first.is_ipv4());
    let (mut same, mut other) = (same.into_iter(), other.into_iter());
    let mut turns = Vec::new();
    while turns.len() < MAX_ADDRESSES {
        let pair = [same.next(), other.next()];
        if pair == [None, None] {
            break;
        }
        turns.extend(pair.into_iter().flatten());
    }
    turns
}

/// Tries the addresses one after the other, each beside those that stay silent.
pub(super) async fn connect_any(
    buffer_bytes: Option<u32>,
    addresses: &[SocketAddr],
) -> io::Result<(TcpStream, SocketAddr)> {
    let mut waiting = addresses.iter().copied();
    let mut running = JoinSet::new();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        if let Some(address) = waiting.next() {
            running.spawn(connect(address, buffer_bytes));
        }
        let silence = sleep(NEXT_ADDRESS_AFTER);
        tokio::pin!(silence);
        // Ends when the next address is to be tried.
        loop {
            tokio::select! {
                () = &mut silence, if waiting.len() > 0 => break,
                done = running.join_next() => match done {
                    Some(Ok(Ok(connected))) => return Ok(connected),
                    Some(Ok(Err(e))) => last = e,
                    Some(Err(e)) => last = io::Error::other(e),
                    None => return Err(last),
                },
            }
            if waiting.len() > 0 {
                break;
            }
        }
    }
}

async fn connect(
    address: SocketAddr,
    buffer_bytes: Option<u32>,
) -> io::Result<(TcpStream, SocketAddr)> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(bytes) = buffer_bytes {
        // Loopback's packets of 64 KB would hide the line's pace from a server on this machine:
        // it keeps twenty packets in its send buffer, whatever their size.
        socket.set_recv_buffer_size(bytes)?;
        SockRef::from(&socket).set_tcp_mss(PAYLOAD_BYTES)?;
    }
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok((stream, address))
}

fn failure(error: &io::Error) -> Outcome {
    use io::ErrorKind::*;
    match error.kind() {
        ConnectionRefused | ConnectionReset => Outcome::ConnectionRefused,
        TimedOut => Outcome::ConnectTimedOut,
        NetworkUnreachable | HostUnreachable | AddrNotAvailable => Outcome::Unreachable,
        _ => Outcome::Failed(error.to_string()),
    }
}

impl Outcome {
    pub(super) fn reply(&self) -> Reply {
        match self {
            Outcome::Connected => Reply::Succeeded,
            // Told apart from a name that does not exist by nothing.
            Outcome::Blocked(refusal) if refusal.follows_a_lookup() => Reply::HostUnreachable,
            Outcome::Blocked(_) | Outcome::BrowserService | Outcome::OverLimit => Reply::NotAllowed,
            Outcome::NameNotFound | Outcome::LookupTimedOut => Reply::HostUnreachable,
            Outcome::ConnectionRefused => Reply::ConnectionRefused,
            Outcome::ConnectTimedOut => Reply::TimedOut,
            Outcome::Unreachable => Reply::NetworkUnreachable,
            Outcome::Pending | Outcome::Failed(_) => Reply::GeneralFailure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_and_the_first_stays_first() {
        let ip = |s: &str| SocketAddr::new(s.parse().unwrap(), 80);
        let given = ["2a00::1", "2a00::2", "2a00::3", "8.8.8.8", "8.8.4.4"];
        let order = by_turns(given.map(ip).to_vec());
        let want = ["2a00::1", "8.8.8.8", "2a00::2", "8.8.4.4", "2a00::3"];
        assert_eq!(order, want.map(ip));
    }

    #[test]
    fn no_name_makes_us_try_more_than_a_few_addresses() {
        let many = (0..100)
            .map(|i| SocketAddr::from(([8, 8, 8, i], 80)))
            .collect();
        assert_eq!(by_turns(many).len(), MAX_ADDRESSES);
    }
}
