//! The addresses and networks of this machine's own interfaces.
//!
//! Internal networks with global addresses, which is what most IPv6 networks are, cannot be
//! distinguished from the public internet by their addresses. Networks that this machine is
//! directly connected to are treated as internal: the networks of its interfaces' addresses and,
//! because an address assigned by DHCPv6 comes without its network, the networks that IPv6 routes
//! reach without a router.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use parking_lot::Mutex;

/// Maximum age of the list of networks, and thus the longest time until a new network is known. A
/// new address of the machine itself is known immediately.
const MAX_AGE: Duration = Duration::from_secs(5);

// Shorter prefixes are not networks that a machine is in but routes to everything, such as
// `0.0.0.0/1` or `2000::/3` towards a tunnel.
const MIN_V4_PREFIX: u8 = 8;
const MIN_V6_PREFIX: u8 = 16;

/// Relation of an address to this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locality {
    /// The address is one of this machine's own.
    OwnAddress,
    /// The address is in this network, which an interface of this machine is in.
    OwnNetwork(IpNet),
    /// The address is neither this machine's nor in one of its networks.
    Remote,
    /// The networks of this machine have never been read.
    Unknown,
}

type Source = Arc<dyn Fn() -> io::Result<Vec<IpNet>> + Send + Sync>;

/// The networks of this machine's interfaces, read again when they are older than [`MAX_AGE`].
pub(crate) struct LocalNetworks {
    source: Source,
    cache: Mutex<CachedNetworks>,
}

#[derive(Default)]
struct CachedNetworks {
    /// The list as of the last successful read; `None` before the first one.
    networks: Option<Vec<IpNet>>,
    /// Time of the last attempt to read the list, successful or not.
    read_at: Option<Instant>,
}

impl LocalNetworks {
    pub(crate) fn of_this_machine() -> Self {
        Self::from_source(Arc::new(read_networks))
    }

    fn from_source(source: Source) -> Self {
        let cache = Mutex::default();
        Self { source, cache }
    }

    #[cfg(test)]
    pub(crate) fn fixed(networks: Vec<IpNet>) -> Self {
        Self::from_source(Arc::new(move || Ok(networks.clone())))
    }

    /// Reads the networks now.
    pub(crate) fn refresh(&self) -> io::Result<()> {
        let mut cache = self.cache.lock();
        self.read_into(&mut cache)
    }

    pub(crate) fn locality(&self, ip: IpAddr) -> Locality {
        if is_own_address(ip) {
            return Locality::OwnAddress;
        }
        let mut cache = self.cache.lock();
        if cache.read_at.is_none_or(|at| at.elapsed() >= MAX_AGE)
            && let Err(error) = self.read_into(&mut cache)
        {
            tracing::error!(%error, "failed to read the networks of this machine's interfaces");
        }
        let Some(networks) = &cache.networks else {
            return Locality::Unknown;
        };
        let own_network = networks.iter().find(|net| net.contains(&ip));
        own_network.map_or(Locality::Remote, |net| Locality::OwnNetwork(*net))
    }

    /// Reads the networks into the cache. After a failure the previous list stays.
    fn read_into(&self, cache: &mut CachedNetworks) -> io::Result<()> {
        cache.read_at = Some(Instant::now());
        cache.networks = Some((self.source)()?);
        Ok(())
    }
}

impl std::fmt::Debug for LocalNetworks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cache = self.cache.lock();
        f.debug_tuple("LocalNetworks")
            .field(&cache.networks)
            .finish()
    }
}

fn read_networks() -> io::Result<Vec<IpNet>> {
    let mut networks: Vec<IpNet> = getifaddrs()?
        .filter_map(|interface| network_of(interface.address?, interface.netmask?))
        .collect();
    // This file does not exist where IPv6 is disabled.
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

/// Returns the destination of a line of `/proc/net/ipv6_route` if it is a network that is reached
/// without a router. The fields are (net/ipv6/route.c, `rt6_seq_show`): destination, length of its
/// prefix, source, length of its prefix, next hop, metric, reference count, use, flags, device.
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

/// Returns whether an address belongs to this machine. Many servers have their public address on
/// an interface of their own; a firewall protects such a machine from the internet but not from
/// connections that it makes to itself, so a visited page must not be able to make them.
///
/// The kernel is queried by binding a socket, because only own addresses can be bound. If it
/// permits binding any address (`ip_nonlocal_bind`), which is detected with an address reserved for
/// documentation, the result is always `false`.
fn is_own_address(ip: IpAddr) -> bool {
    const FOREIGN: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let can_bind = |ip: IpAddr| UdpSocket::bind((ip, 0)).is_ok();
    can_bind(ip) && !can_bind(FOREIGN)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn loopback_is_an_own_address_and_the_internet_is_not() {
        assert!(is_own_address(IpAddr::from([127, 0, 0, 1])));
        assert!(!is_own_address(IpAddr::from([8, 8, 8, 8])));
        assert!(!is_own_address(IpAddr::from([0x2a00, 0, 0, 0, 0, 0, 0, 1])));
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
    fn a_network_reached_without_a_router_is_listed() {
        let route = |destination: &str, prefix: &str, flags: &str, device: &str| {
            let zeros = "0".repeat(32);
            let line = format!(
                "{destination:0<32} {prefix} {zeros} 00 {zeros} 00000100 00000001 00000000 {flags} {device:>8}"
            );
            connected_network(&line)
                .filter(is_network)
                .map(|net| net.to_string())
        };
        let network = Some("2a00:db9::/64".to_owned());
        assert_eq!(route("2a000db9", "40", "00000001", "eth0"), network);
        assert_eq!(route("2a000db9", "40", "00450001", "eth0"), network);
        // Routes through a router, that reject, on loopback, and to everything.
        assert_eq!(route("2a000db9", "40", "00000003", "eth0"), None);
        assert_eq!(route("2a000db9", "40", "00200200", "eth0"), None);
        assert_eq!(route("2a000db9", "40", "00000001", "lo"), None);
        assert_eq!(route("", "00", "00000001", "wg0"), None);
        assert_eq!(route("2", "03", "00000001", "wg0"), None);
        assert_eq!(connected_network("nonsense"), None);
    }

    #[test]
    fn a_list_is_cached_and_kept_after_a_failure() {
        let (reads, net) = (Arc::new(AtomicUsize::new(0)), "93.184.215.0/24");
        let counter = Arc::clone(&reads);
        let networks =
            LocalNetworks::from_source(Arc::new(move || match counter.fetch_add(1, Relaxed) {
                0 => Ok(vec![net.parse().unwrap()]),
                _ => Err(io::Error::other("no interfaces")),
            }));
        let own_network = Locality::OwnNetwork(net.parse().unwrap());
        for _ in 0..3 {
            assert_eq!(networks.locality([93, 184, 215, 9].into()), own_network);
            assert_eq!(
                networks.locality([93, 184, 216, 9].into()),
                Locality::Remote
            );
        }
        assert_eq!(reads.load(Relaxed), 1);
        assert!(networks.refresh().is_err());
        assert_eq!(networks.locality([93, 184, 215, 9].into()), own_network);
    }

    #[test]
    fn without_a_list_every_locality_is_unknown() {
        let broken = LocalNetworks::from_source(Arc::new(|| Err(io::Error::other("none"))));
        assert_eq!(broken.locality([8, 8, 8, 8].into()), Locality::Unknown);
    }
}
