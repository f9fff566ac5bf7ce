//! Listening sockets that a page must not be able to reach.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

/// A TCP and a UDP socket on each kind of address that this machine has.
pub(super) struct Probes {
    tcp: Vec<TcpListener>,
    udp: Vec<UdpSocket>,
}

impl Probes {
    pub(super) fn open() -> io::Result<Self> {
        let mut probes = Self {
            tcp: Vec::new(),
            udp: Vec::new(),
        };
        probes.listen_on(Ipv4Addr::LOCALHOST.into())?;
        // A machine may have no IPv6, and none of these addresses then.
        let _ = probes.listen_on(Ipv6Addr::LOCALHOST.into());
        for address in outward_addresses() {
            let _ = probes.listen_on(address);
        }
        Ok(probes)
    }

    fn listen_on(&mut self, address: IpAddr) -> io::Result<()> {
        let tcp = TcpListener::bind((address, 0))?;
        tcp.set_nonblocking(true)?;
        let udp = UdpSocket::bind((address, 0))?;
        udp.set_nonblocking(true)?;
        self.tcp.push(tcp);
        self.udp.push(udp);
        Ok(())
    }

    /// Returns the addresses as JSON for the page.
    pub(super) fn as_json(&self) -> String {
        let texts = |addresses: Vec<SocketAddr>| {
            let texts: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
            texts
        };
        let tcp = self.tcp.iter().filter_map(|tcp| tcp.local_addr().ok());
        let udp = self.udp.iter().filter_map(|udp| udp.local_addr().ok());
        serde_json::json!({"tcp": texts(tcp.collect()), "udp": texts(udp.collect())}).to_string()
    }

    /// Describes each socket that received something. Everything sent on this machine before this
    /// call is already in the sockets' queues.
    pub(super) fn arrivals(&self) -> Vec<String> {
        let connections = self
            .tcp
            .iter()
            .filter(|tcp| tcp.accept().is_ok())
            .filter_map(|tcp| tcp.local_addr().ok())
            .map(|address| format!("a TCP connection arrived at {address}"));
        let datagrams = self
            .udp
            .iter()
            .filter(|udp| udp.recv(&mut [0; 1]).is_ok())
            .filter_map(|udp| udp.local_addr().ok())
            .map(|address| format!("a UDP datagram arrived at {address}"));
        connections.chain(datagrams).collect()
    }
}

/// Returns the source addresses of this machine for the internet. Connecting a UDP socket sends
/// nothing; the destinations are reserved for documentation.
fn outward_addresses() -> Vec<IpAddr> {
    let destinations: [(IpAddr, IpAddr); 2] = [
        (
            Ipv4Addr::UNSPECIFIED.into(),
            Ipv4Addr::new(192, 0, 2, 1).into(),
        ),
        (
            Ipv6Addr::UNSPECIFIED.into(),
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        ),
    ];
    let source = |(any, destination): (IpAddr, IpAddr)| {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((destination, 9)).ok()?;
        let address = socket.local_addr().ok()?.ip();
        (!address.is_loopback() && !address.is_unspecified()).then_some(address)
    };
    destinations.into_iter().filter_map(source).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn what_arrives_is_named_by_protocol_and_address() {
        let probes = Probes::open().unwrap();
        assert_eq!(probes.arrivals(), Vec::<String>::new());
        let tcp = probes.tcp[0].local_addr().unwrap();
        let udp = probes.udp[0].local_addr().unwrap();
        let _connection = TcpStream::connect(tcp).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(b"x", udp).unwrap();
        assert_eq!(
            probes.arrivals(),
            [
                format!("a TCP connection arrived at {tcp}"),
                format!("a UDP datagram arrived at {udp}")
            ]
        );
    }
}
