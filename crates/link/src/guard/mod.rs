//! Decides which hosts and addresses may be connected to (SSRF guard).
//!
//! A page under audit is someone else's code running inside our network. It may reach the public
//! internet and what the operator allowed, nothing else; never what the operator denied, and by
//! default no network that this machine is in. The decision that counts is
//! [`Guard::check_address`]: it is taken on the address the socket will really be connected to, so
//! no spelling of a host, no redirect and no second DNS answer gets around it.
//! [`Guard::check_host`] says no earlier, and in better words, where the host alone tells.

mod address;
mod name;
mod port;
mod refusal;
mod target;

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

pub use refusal::{Reason, Refusal};
pub use target::Target;

use crate::LinkError;
use crate::local_networks::{LocalNetworks, Locality};
use address::Verdict;

/// The address that a host spells out, if it is one.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    name::literal(&name::normalise(host))
}

/// The rules for one process: the public internet without this machine's own networks, plus what
/// the operator allowed, without what the operator denied.
#[derive(Debug, Clone)]
pub struct Guard {
    allow: Vec<Target>,
    deny: Vec<Target>,
    networks: Arc<LocalNetworks>,
}

impl Guard {
    /// A guard that lets the public internet and `allow` be reached.
    pub fn new(allow: Vec<Target>) -> Self {
        Self {
            allow,
            deny: Vec::new(),
            networks: Arc::new(LocalNetworks::of_this_machine()),
        }
    }

    /// A guard that lets the public internet be reached and nothing else.
    pub fn public_only() -> Self {
        Self::new(Vec::new())
    }

    /// Refuses `deny` whatever else would let it be reached. A host that is denied is denied with
    /// all names below it.
    pub fn denying(self, deny: Vec<Target>) -> Self {
        Self { deny, ..self }
    }

    /// Reads the networks of this machine's interfaces now. While they cannot be read, every
    /// address that is not allowed is refused.
    pub fn check_local_networks(&self) -> Result<(), LinkError> {
        self.networks.refresh().map_err(LinkError::LocalNetworks)
    }

    /// Judges a host as written in a URL (or asked for by a SOCKS client), before any name is
    /// resolved. Passing says nothing about the addresses a name has.
    pub fn check_host(&self, host: &str, port: u16) -> Result<(), Refusal> {
        let host = name::normalise(host);
        if host.is_empty() {
            return Err(Refusal::new(Reason::EmptyHost, "the address names no host"));
        }
        if let Some(ip) = name::literal(&host) {
            return self.check_address(&host, SocketAddr::new(ip, port));
        }
        if self.denies_name(&host, port) {
            return Err(Refusal::new(
                Reason::DeniedTarget,
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

    /// For `localhost` and names below it, which are loopback by definition and asked of nobody (RFC
    /// 6761, 6.3): the loopback addresses that the operator allowed. `None` for any other name.
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

    /// Judges the address a connection for `host` is about to be made to.
    pub fn check_address(&self, host: &str, addr: SocketAddr) -> Result<(), Refusal> {
        let host = name::normalise(host);
        let (ip, port) = (address::canonical(addr.ip()), addr.port());
        let refused = |reason, kind: &str| Err(Refusal::address(reason, &host, ip, kind));
        if self.denies(&host, ip, port) {
            return refused(Reason::DeniedTarget, "denied by --deny-target");
        }
        self.check_port(&host, Some(ip), port)
            .map_err(|refusal| refusal.after_lookup_of(&host))?;
        if self.allows_name(&host, port) || self.allows_address(ip, port) {
            return Ok(());
        }
        if let Verdict::Refused(reason, kind) = address::judge(ip) {
            return refused(reason, kind);
        }
        for ip in with_embedded(ip) {
            match self.networks.locality(ip) {
                Locality::Elsewhere => {}
                Locality::Own => return refused(Reason::OwnAddress, "an address of this machine"),
                Locality::Near(net) => {
                    let kind = format!("in {net}, a network of this machine");
                    return refused(Reason::OwnNetwork, &kind);
                }
                Locality::Unknown => {
                    let kind = "perhaps in a network of this machine: they cannot be read";
                    return refused(Reason::OwnNetwork, kind);
                }
            }
        }
        Ok(())
    }

    /// Judges all addresses of a name: one that is refused refuses the name, or an attacker would
    /// only have to add a public address beside the private one and wait for the fallback.
    pub fn check_addresses(&self, host: &str, addrs: &[SocketAddr]) -> Result<(), Refusal> {
        addrs
            .iter()
            .try_for_each(|addr| self.check_address(host, *addr))
    }

    /// Whether the operator, not the address, is why a connection may be made.
    pub fn allows(&self, host: &str, addr: SocketAddr) -> bool {
        let (host, port) = (name::normalise(host), addr.port());
        let ip = address::canonical(addr.ip());
        let allows = self.allows_name(&host, port) || self.allows_address(ip, port);
        allows && !self.denies(&host, ip, port)
    }

    fn check_port(&self, host: &str, ip: Option<IpAddr>, port: u16) -> Result<(), Refusal> {
        let by_name = |a: &Target| a.names(host, port);
        let by_address = |a: &Target| ip.is_some_and(|ip| a.covers(ip, port));
        let mut exact = self.allow.iter().filter(|a| a.port() == Some(port));
        // An address allowed with this port may be reached under any name, and `check_host` does
        // not know the addresses yet: it leaves the port to `check_address`.
        let undecided = |a: &Target| ip.is_none() && a.is_address();
        if !port::denied(port) || exact.any(|a| by_name(a) || by_address(a) || undecided(a)) {
            return Ok(());
        }
        Err(Refusal::new(
            Reason::DeniedPort,
            format!("port {port} is not one a web page is served from"),
        ))
    }

    fn allows_name(&self, host: &str, port: u16) -> bool {
        self.allow.iter().any(|a| a.names(host, port))
    }

    fn allows_address(&self, ip: IpAddr, port: u16) -> bool {
        self.allow.iter().any(|a| a.covers(ip, port))
    }

    fn denies_name(&self, host: &str, port: u16) -> bool {
        self.deny.iter().any(|d| d.names_or_contains(host, port))
    }

    /// An address is denied in every IPv6 form that carries it, too.
    fn denies(&self, host: &str, ip: IpAddr, port: u16) -> bool {
        let denies_address = |ip| self.deny.iter().any(|d| d.covers(ip, port));
        self.denies_name(host, port) || with_embedded(ip).any(denies_address)
    }
}

/// The address itself, and the IPv4 addresses that it carries.
fn with_embedded(ip: IpAddr) -> impl Iterator<Item = IpAddr> {
    let embedded = match ip {
        IpAddr::V4(_) => Vec::new(),
        IpAddr::V6(v6) => address::embedded_v4(v6),
    };
    std::iter::once(ip).chain(embedded.into_iter().map(IpAddr::V4))
}
