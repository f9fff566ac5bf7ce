//! Who may be connected to.
//!
//! A page under audit is someone else's code running inside our network. It may reach the public
//! internet and what the operator allowed, nothing else. The decision that counts is
//! [`Guard::check_address`]: it is taken on the address the socket will really be connected to, so
//! no spelling of a host, no redirect and no second DNS answer gets around it.
//! [`Guard::check_host`] says no earlier, and in better words, where the host alone tells.

mod address;
mod allow;
mod name;
mod port;
mod refusal;

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub use allow::AllowTarget;
pub use refusal::{Reason, Refusal};

use address::Verdict;

/// The address that a host spells out, if it is one.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    name::literal(&name::normalise(host))
}

/// The rules for one agent: the public internet, plus what the operator allowed.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    allow: Vec<AllowTarget>,
}

impl Guard {
    pub fn new(allow: Vec<AllowTarget>) -> Self {
        Self { allow }
    }

    pub fn public_only() -> Self {
        Self::default()
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
        let ip = address::canonical(addr.ip());
        self.check_port(&host, Some(ip), addr.port())?;
        if self.allows(&host, addr) {
            return Ok(());
        }
        match address::judge(ip) {
            Verdict::Public => Ok(()),
            Verdict::Refused(reason, kind) => Err(Refusal::address(reason, &host, ip, kind)),
        }
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
        let ip = address::canonical(addr.ip());
        self.allows_name(&name::normalise(host), addr.port())
            || self.allows_address(ip, addr.port())
    }

    fn check_port(&self, host: &str, ip: Option<IpAddr>, port: u16) -> Result<(), Refusal> {
        let by_name = |a: &AllowTarget| a.names(host, port);
        let by_address = |a: &AllowTarget| ip.is_some_and(|ip| a.covers(ip, port));
        let mut exact = self.allow.iter().filter(|a| a.port() == Some(port));
        // An address allowed with this port may be reached under any name, and `check_host` does
        // not know the addresses yet: it leaves the port to `check_address`.
        let undecided = |a: &AllowTarget| ip.is_none() && a.is_address();
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
}
