//! Decides which hosts and addresses may be connected to (SSRF guard).
//!
//! A page under audit is foreign code that runs inside our network. It may reach the public
//! internet and what the operator allows, nothing else; never what the operator denies, and by
//! default no network that this machine is in. The decisive check is [`Guard::check_address`]: it
//! is made on the address that the socket will be connected to, so that no spelling of a host, no
//! redirect and no second DNS response gets around it. [`Guard::check_host`] refuses earlier, and
//! with a better message, where the host alone is sufficient.

mod address;
mod name;
mod port;
mod refusal;
mod target;

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

pub use refusal::{Refusal, RefusalReason};
pub use target::Target;

use crate::LinkError;
use crate::local_networks::{LocalNetworks, Locality};
use address::AddressClass;

/// Returns the address that a host is a literal of, if it is one.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    name::literal(&name::normalise(host))
}

/// The rules of one process: the public internet without this machine's own networks, plus what
/// the operator allows, minus what the operator denies.
#[derive(Debug, Clone)]
pub struct Guard {
    allow: Vec<Target>,
    deny: Vec<Target>,
    networks: Arc<LocalNetworks>,
}

impl Guard {
    /// Creates a guard that permits the public internet and `allow`.
    pub fn new(allow: Vec<Target>) -> Self {
        Self {
            allow,
            deny: Vec::new(),
            networks: Arc::new(LocalNetworks::of_this_machine()),
        }
    }

    /// Creates a guard that permits the public internet and nothing else.
    pub fn public_only() -> Self {
        Self::new(Vec::new())
    }

    /// Refuses `deny`, whatever else permits it. A denied host is denied with all its subdomains.
    pub fn denying(self, deny: Vec<Target>) -> Self {
        Self { deny, ..self }
    }

    /// Reads the networks of this machine's interfaces now. While they cannot be read, every
    /// address that the operator does not allow is refused.
    pub fn check_local_networks(&self) -> Result<(), LinkError> {
        self.networks.refresh().map_err(LinkError::LocalNetworks)
    }

    /// Checks a host as written in a URL (or in a SOCKS request), before any name is resolved. A
    /// host that passes may still have addresses that are refused.
    pub fn check_host(&self, host: &str, port: u16) -> Result<(), Refusal> {
        let host = name::normalise(host);
        if host.is_empty() {
            return Err(Refusal::new(
                RefusalReason::EmptyHost,
                "the URL has no host",
            ));
        }
        if let Some(ip) = name::literal(&host) {
            return self.check_address(&host, SocketAddr::new(ip, port));
        }
        if self.denies_name(&host, port) {
            return Err(Refusal::new(
                RefusalReason::DeniedTarget,
                format!("{host} is denied by --deny-target"),
            ));
        }
        let is_allowed = self.allows_name(&host, port)
            || self
                .loopback_of(&host, port)
                .is_some_and(|ips| !ips.is_empty());
        if !is_allowed {
            name::check(&host)?;
        }
        self.check_port(&host, None, port)
    }

    /// Returns the loopback addresses that the operator allows for `localhost` and its subdomains,
    /// which are loopback by definition and never looked up (RFC 6761, 6.3); `None` for any other
    /// name.
    pub(crate) fn loopback_of(&self, host: &str, port: u16) -> Option<Vec<IpAddr>> {
        let host = name::normalise(host);
        if host != "localhost" && !host.ends_with(".localhost") {
            return None;
        }
        let both = [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ];
        let is_allowed = |ip: &IpAddr| self.allows(&host, SocketAddr::new(*ip, port));
        Some(both.into_iter().filter(is_allowed).collect())
    }

    /// Checks the address that is about to be connected to for `host`.
    pub fn check_address(&self, host: &str, addr: SocketAddr) -> Result<(), Refusal> {
        let host = name::normalise(host);
        let (ip, port) = (address::canonical(addr.ip()), addr.port());
        let refused = |reason, kind: &str| Err(Refusal::address(reason, &host, ip, kind));
        if self.denies(&host, ip, port) {
            return refused(RefusalReason::DeniedTarget, "denied by --deny-target");
        }
        self.check_port(&host, Some(ip), port)
            .map_err(|refusal| refusal.after_lookup_of(&host))?;
        if self.allows_name(&host, port) || self.allows_address(ip, port) {
            return Ok(());
        }
        if let AddressClass::Refused(reason, kind) = address::classify(ip) {
            return refused(reason, kind);
        }
        for ip in with_embedded(ip) {
            match self.networks.locality(ip) {
                Locality::Remote => {}
                Locality::OwnAddress => {
                    return refused(RefusalReason::OwnAddress, "an address of this machine");
                }
                Locality::OwnNetwork(net) => {
                    let kind = format!("in {net}, a network of this machine");
                    return refused(RefusalReason::OwnNetwork, &kind);
                }
                Locality::Unknown => {
                    let kind = "possibly in a network of this machine, because they cannot be read";
                    return refused(RefusalReason::OwnNetwork, kind);
                }
            }
        }
        Ok(())
    }

    /// Checks all addresses of a name. One refused address refuses the name; otherwise an attacker
    /// would only have to add a public address to the private one and wait for the fallback.
    pub fn check_addresses(&self, host: &str, addrs: &[SocketAddr]) -> Result<(), Refusal> {
        addrs
            .iter()
            .try_for_each(|addr| self.check_address(host, *addr))
    }

    /// Returns whether the operator explicitly allows a connection.
    pub fn allows(&self, host: &str, addr: SocketAddr) -> bool {
        let (host, port) = (name::normalise(host), addr.port());
        let ip = address::canonical(addr.ip());
        let allows = self.allows_name(&host, port) || self.allows_address(ip, port);
        allows && !self.denies(&host, ip, port)
    }

    fn check_port(&self, host: &str, ip: Option<IpAddr>, port: u16) -> Result<(), Refusal> {
        let by_name = |a: &Target| a.matches_host(host, port);
        let by_address = |a: &Target| ip.is_some_and(|ip| a.matches_address(ip, port));
        let mut exact = self.allow.iter().filter(|a| a.port() == Some(port));
        // An address allowed with this port may be reached under any name, and `check_host` does
        // not know the addresses yet: it leaves the port to `check_address`.
        let undecided = |a: &Target| ip.is_none() && a.is_address();
        if !port::denied(port) || exact.any(|a| by_name(a) || by_address(a) || undecided(a)) {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalReason::DeniedPort,
            format!("port {port} is not used for web pages"),
        ))
    }

    fn allows_name(&self, host: &str, port: u16) -> bool {
        self.allow.iter().any(|a| a.matches_host(host, port))
    }

    fn allows_address(&self, ip: IpAddr, port: u16) -> bool {
        self.allow.iter().any(|a| a.matches_address(ip, port))
    }

    fn denies_name(&self, host: &str, port: u16) -> bool {
        self.deny
            .iter()
            .any(|d| d.matches_host_or_parent(host, port))
    }

    /// Returns whether the operator denies the host or the address. An IPv4 address is also denied
    /// in every IPv6 form that embeds it.
    fn denies(&self, host: &str, ip: IpAddr, port: u16) -> bool {
        let denies_address = |ip| self.deny.iter().any(|d| d.matches_address(ip, port));
        self.denies_name(host, port) || with_embedded(ip).any(denies_address)
    }
}

/// Returns the address itself and the IPv4 addresses embedded in it.
fn with_embedded(ip: IpAddr) -> impl Iterator<Item = IpAddr> {
    let embedded = match ip {
        IpAddr::V4(_) => Vec::new(),
        IpAddr::V6(v6) => address::embedded_v4(v6),
    };
    std::iter::once(ip).chain(embedded.into_iter().map(IpAddr::V4))
}
