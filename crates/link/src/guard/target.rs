use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

use super::{address, name};
use crate::LinkError;

/// A host, an address or a network that the operator allows or denies: `HOST[:PORT]`, `IP[:PORT]`
/// (`[IPv6]:PORT`) or a CIDR. A host matches with any address, and an address or a network matches
/// under any name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pattern: TargetPattern,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TargetPattern {
    Host(String),
    Net(IpNet),
}

impl Target {
    pub(super) fn port(&self) -> Option<u16> {
        self.port
    }

    pub(super) fn is_address(&self) -> bool {
        matches!(self.pattern, TargetPattern::Net(_))
    }

    /// Returns whether the target is exactly this host, which must be normalised.
    pub(super) fn matches_host(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|p| p == port)
            && matches!(&self.pattern, TargetPattern::Host(h) if h == host)
    }

    /// Returns whether the target is this host, which must be normalised, or a parent domain of it.
    pub(super) fn matches_host_or_parent(&self, host: &str, port: u16) -> bool {
        let is_within = |domain: &str| {
            let prefix = host.strip_suffix(domain);
            prefix.is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
        };
        self.port.is_none_or(|p| p == port)
            && matches!(&self.pattern, TargetPattern::Host(h) if is_within(h))
    }

    /// Returns whether the target is this address, which must be canonical, or a network that
    /// contains it.
    pub(super) fn matches_address(&self, ip: IpAddr, port: u16) -> bool {
        self.port.is_none_or(|p| p == port)
            && matches!(&self.pattern, TargetPattern::Net(net) if net.contains(&ip))
    }

    fn address(ip: IpAddr, port: Option<u16>) -> Self {
        let pattern = TargetPattern::Net(IpNet::from(address::canonical(ip)));
        Self { pattern, port }
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("empty".into());
        }
        if text.contains("://") {
            return Err("expected a host, an address or a CIDR, not a URL".into());
        }
        if text.contains('/') {
            let net: IpNet = text
                .parse()
                .map_err(|_| "not a CIDR such as 10.0.0.0/8 or fd00::/8".to_string())?;
            let pattern = TargetPattern::Net(canonical_net(net.trunc()));
            return Ok(Self {
                pattern,
                port: None,
            });
        }
        let unbracketed = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        if let Ok(ip) = unbracketed.unwrap_or(text).parse::<IpAddr>() {
            return Ok(Self::address(ip, None));
        }
        if let Ok(addr) = text.parse::<SocketAddr>() {
            return Ok(Self::address(addr.ip(), Some(check_port(addr.port())?)));
        }
        let (host, port) = match text.rsplit_once(':') {
            None => (text, None),
            Some((host, port)) => {
                let port = port
                    .parse()
                    .map_err(|_| format!("`{port}` is not a port (1 to 65535)"))?;
                (host, Some(check_port(port)?))
            }
        };
        let pattern = TargetPattern::Host(parse_host(host)?);
        Ok(Self { pattern, port })
    }
}

/// Converts a network of v4-mapped IPv6 addresses to the IPv4 network it maps, because addresses
/// are compared in their canonical form.
fn canonical_net(net: IpNet) -> IpNet {
    const MAPPED_BITS: u8 = 96;
    let mapped = match net {
        IpNet::V6(v6) if v6.prefix_len() >= MAPPED_BITS => v6.addr().to_ipv4_mapped(),
        _ => None,
    };
    mapped
        .and_then(|v4| Ipv4Net::new(v4, net.prefix_len() - MAPPED_BITS).ok())
        .map_or(net, IpNet::V4)
}

fn check_port(port: u16) -> Result<u16, String> {
    match port {
        0 => Err("port 0 cannot be connected to".into()),
        port => Ok(port),
    }
}

fn parse_host(text: &str) -> Result<String, String> {
    let host = name::normalise(text);
    if host.is_empty() {
        return Err("the host is missing".into());
    }
    if !host.is_ascii() {
        return Err("write the host in its ASCII form (xn--…)".into());
    }
    let is_valid_label = |label: &str| {
        let is_valid = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_valid)
    };
    if host.len() > 253 || !host.split('.').all(is_valid_label) {
        return Err("not a host name, an address or a CIDR".into());
    }
    if name::ends_in_a_number(&host) {
        return Err("not a complete address; write all four parts, as in 192.0.2.1".into());
    }
    Ok(host)
}

impl FromStr for Target {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, LinkError> {
        let text = text.trim();
        Self::parse(text).map_err(|problem| LinkError::Target {
            text: text.to_owned(),
            problem,
        })
    }
}
