//! The addresses and networks of this machine's own interfaces.
//!
//! Internal networks with global addresses, as most are in IPv6, cannot be told from the public
//! internet by their addresses. What this machine is connected to directly is taken for internal:
//! the networks of its interfaces' addresses and, as an address given by DHCPv6 comes without its
//! network, the networks that IPv6 routes lead to without a router.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;

/// How long a list of networks is used: a network that appears counts after this at the latest. An
/// address of the machine itself counts at once.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Shorter prefixes are no networks that a machine is in but routes to everything, such as `0.0.0.0/1`
/// or `2000::/3` towards a tunnel.
const MIN_V4_PREFIX: u8 = 8;
const MIN_V6_PREFIX: u8 = 16;

/// Where an address is, seen from this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locality {
    /// The address is one of this machine's own.
    Own,
    /// The address is in this network, which an interface of this machine is in.
    Near(IpNet),
    Elsewhere,
    /// The networks of this machine have never been read.
    Unknown,
}

type Source = Arc<dyn Fn() -> io::Result<Vec<IpNet>> + Send + Sync>;

/// The networks of this machine's interfaces, read again when they are older than [`MAX_AGE`].
pub(crate) struct LocalNetworks {
    source: Source,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// `None` until they were read for the first time.
    networks: Option<Vec<IpNet>>,
    /// When they were read last, successfully or not.
    read_at: Option<Instant>,
}

impl LocalNetworks {
    pub(crate) fn of_this_machine() -> Self {
        Self::from_source(Arc::new(read_networks))
    }

    fn from_source(source: Source) -> Self {
        let known = Mutex::default();
        Self { source, known }
    }

    #[cfg(test)]
    pub(crate) fn fixed(networks: Vec<IpNet>) -> Self {
        Self::from_source(Arc::new(move || Ok(networks.clone())))
    }

    /// Reads the networks now.
    pub(crate) fn refresh(&self) -> io::Result<()> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.read_into(&mut known)
    }

    pub(crate) fn locality(&self, ip: IpAddr) -> Locality {
        if is_own(ip) {
            return Locality::Own;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.read_at.is_none_or(|at| at.elapsed() >= MAX_AGE)
            && let Err(error) = self.read_into(&mut known)
        {
            tracing::error!(%error, "the networks of this machine's interfaces could not be read");
        }
        let Some(networks) = &known.networks else {
            return Locality::Unknown;
        };
        let near = networks.iter().find(|net| net.contains(&ip));
        near.map_or(Locality::Elsewhere, |net| Locality::Near(*net))
    }

    /// A failure leaves what was known.
    fn read_into(&self, known: &mut Known) -> io::Result<()> {
        known.read_at = Some(Instant::now());
        known.networks = Some((self.source)()?);
        Ok(())
    }
}

impl std::fmt::Debug for LocalNetworks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_tuple("LocalNetworks")
            .field(&known.networks)
            .finish()
    }
}

fn read_networks() -> io::Result<Vec<IpNet>> {
    let mut networks: Vec<IpNet> = getifaddrs()?
        .filter_map(|interface| network_of(interface.address?, interface.netmask?))
        .collect();
    // There is no such file where IPv6 is switched off.
    match fs::read_to_string("/proc/self/net/ipv6_route") {
        Ok(table) => networks.extend(table.lines().filter_map(connected_network)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    networks.retain(is_network);
    Ok(networks)
}

fn network_of(address: SockaddrStorage, netmask: SockaddrStorage) -> Option<IpNet> {
    let (ip, mask) = match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
        (Some(v4), _) => (
            IpAddr::V4(v4.ip()),
            IpAddr::V4(netmask.as_sockaddr_in()?.ip()),
        ),
        (_, Some(v6)) => (
            IpAddr::V6(v6.ip()),
            IpAddr::V6(netmask.as_sockaddr_in6()?.ip()),
        ),
        _ => return None,
    };
    IpNet::with_netmask(ip, mask).ok().map(|net| net.trunc())
}

/// The destination of a line of `/proc/net/ipv6_route` (net/ipv6/route.c, `rt6_seq_show`), if it is
/// a network reached without a router: destination, length of its prefix, source, length of its
/// prefix, next hop, metric, reference count, use, flags, device.
fn connected_network(line: &str) -> Option<IpNet> {
    const RTF_GATEWAY: u32 = 0x0002;
    const RTF_REJECT: u32 = 0x0200;
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [destination, prefix, _, _, _, _, _, _, flags, device] = fields[..] else {
        return None;
    };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    if flags & (RTF_GATEWAY | RTF_REJECT) != 0 || device == "lo" {
        return None;
    }
    let destination = Ipv6Addr::from(u128::from_str_radix(destination, 16).ok()?);
    let prefix = u8::from_str_radix(prefix, 16).ok()?;
    IpNet::new(destination.into(), prefix).ok()
}

fn is_network(net: &IpNet) -> bool {
    match net {
        IpNet::V4(v4) => v4.prefix_len() >= MIN_V4_PREFIX,
        IpNet::V6(v6) => v6.prefix_len() >= MIN_V6_PREFIX,
    }
}

/// Returns whether an address belongs to this machine. Many servers carry their public address
/// themselves; what a firewall hides from the world behind it is open to connections from inside,
/// and a visited page must not come from inside.
///
/// Asks the kernel by binding: only own addresses can be bound. Where the kernel is told to let
/// any be bound (`ip_nonlocal_bind`), which one for documentation shows, there is no telling.
fn is_own(ip: IpAddr) -> bool {
    const NOBODYS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let can_bind = |ip: IpAddr| UdpSocket::bind((ip, 0)).is_ok();
    can_bind(ip) && !can_bind(NOBODYS)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn loopback_is_ours_and_the_internet_is_not() {
        assert!(is_own(IpAddr::from([127, 0, 0, 1])));
        assert!(!is_own(IpAddr::from([8, 8, 8, 8])));
        assert!(!is_own(IpAddr::from([0x2a00, 0, 0, 0, 0, 0, 0, 1])));
    }

    #[test]
    fn the_networks_of_this_machine_can_be_read() {
        let networks = read_networks().unwrap();
        assert!(
            networks.contains(&"127.0.0.0/8".parse().unwrap()),
            "{networks:?}"
        );
    }

    #[test]
    fn a_network_reached_without_a_router_counts() {
        let route = |destination: &str, prefix: &str, flags: &str, device: &str| {
            let zeros = "0".repeat(32);
            let line = format!(
                "{destination:0<32} {prefix} {zeros} 00 {zeros} 00000100 00000001 00000000 {flags} {device:>8}"
            );
            connected_network(&line)
                .filter(is_network)
                .map(|net| net.to_string())
        };
        let near = Some("2a00:db9::/64".to_owned());
        assert_eq!(route("2a000db9", "40", "00000001", "eth0"), near);
        assert_eq!(route("2a000db9", "40", "00450001", "eth0"), near);
        // Through a router, refused, on loopback, and everything.
        assert_eq!(route("2a000db9", "40", "00000003", "eth0"), None);
        assert_eq!(route("2a000db9", "40", "00200200", "eth0"), None);
        assert_eq!(route("2a000db9", "40", "00000001", "lo"), None);
        assert_eq!(route("", "00", "00000001", "wg0"), None);
        assert_eq!(route("2", "03", "00000001", "wg0"), None);
        assert_eq!(connected_network("nonsense"), None);
    }

    #[test]
    fn a_list_is_used_for_a_while_and_survives_a_failure() {
        let (reads, net) = (Arc::new(AtomicUsize::new(0)), "93.184.215.0/24");
        let counted = Arc::clone(&reads);
        let networks =
            LocalNetworks::from_source(Arc::new(move || match counted.fetch_add(1, Relaxed) {
                0 => Ok(vec![net.parse().unwrap()]),
                _ => Err(io::Error::other("no interfaces")),
            }));
        let near = Locality::Near(net.parse().unwrap());
        for _ in 0..3 {
            assert_eq!(networks.locality([93, 184, 215, 9].into()), near);
            assert_eq!(
                networks.locality([93, 184, 216, 9].into()),
                Locality::Elsewhere
            );
        }
        assert_eq!(reads.load(Relaxed), 1);
        assert!(networks.refresh().is_err());
        assert_eq!(networks.locality([93, 184, 215, 9].into()), near);
    }

    #[test]
    fn without_a_list_nothing_is_known_to_be_elsewhere() {
        let broken = LocalNetworks::from_source(Arc::new(|| Err(io::Error::other("none"))));
        assert_eq!(broken.locality([8, 8, 8, 8].into()), Locality::Unknown);
    }
}
