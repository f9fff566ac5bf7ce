use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;

use super::{address, name};
use crate::LinkError;

/// One thing the operator allows beyond the public internet: `HOST[:PORT]`, `IP[:PORT]`
/// (`[IPv6]:PORT`) or a CIDR. A host is allowed whatever it resolves to; an address or a network is
/// allowed under whatever name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowTarget {
    who: Who,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Who {
    Host(String),
    Net(IpNet),
}

impl AllowTarget {
    pub(super) fn port(&self) -> Option<u16> {
        self.port
    }

    pub(super) fn is_address(&self) -> bool {
        matches!(self.who, Who::Net(_))
    }

    /// `host` is normalised.
    pub(super) fn names(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|p| p == port) && matches!(&self.who, Who::Host(h) if h == host)
    }

    /// `ip` is canonical.
    pub(super) fn covers(&self, ip: IpAddr, port: u16) -> bool {
        self.port.is_none_or(|p| p == port)
            && matches!(&self.who, Who::Net(net) if net.contains(&ip))
    }

    fn address(ip: IpAddr, port: Option<u16>) -> Self {
        let who = Who::Net(IpNet::from(address::canonical(ip)));
        Self { who, port }
    }

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("it is empty".into());
        }
        if text.contains("://") {
            return Err("give a host, an address or a CIDR, not a URL".into());
        }
        if text.contains('/') {
            let net: IpNet = text
                .parse()
                .map_err(|_| "not a CIDR such as 10.0.0.0/8 or fd00::/8".to_string())?;
            let who = Who::Net(net.trunc());
            return Ok(Self { who, port: None });
        }
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        if let Ok(ip) = bare.unwrap_or(text).parse::<IpAddr>() {
            return Ok(Self::address(ip, None));
        }
        if let Ok(addr) = text.parse::<SocketAddr>() {
            return Ok(Self::address(addr.ip(), Some(read_port(addr.port())?)));
        }
        let (host, port) = match text.rsplit_once(':') {
            None => (text, None),
            Some((host, port)) => {
                let port = port
                    .parse()
                    .map_err(|_| format!("`{port}` is not a port (1 to 65535)"))?;
                (host, Some(read_port(port)?))
            }
        };
        let who = Who::Host(read_host(host)?);
        Ok(Self { who, port })
    }
}

fn read_port(port: u16) -> Result<u16, String> {
    match port {
        0 => Err("port 0 cannot be connected to".into()),
        port => Ok(port),
    }
}

fn read_host(text: &str) -> Result<String, String> {
    let host = name::normalise(text);
    if host.is_empty() {
        return Err("it names no host".into());
    }
    if !host.is_ascii() {
        return Err("write the host in its ASCII form (xn--…)".into());
    }
    let label_is_fit = |label: &str| {
        let fit = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        !label.is_empty() && label.len() <= 63 && label.bytes().all(fit)
    };
    if host.len() > 253 || !host.split('.').all(label_is_fit) {
        return Err("not a host name, an address or a CIDR".into());
    }
    if name::ends_in_a_number(&host) {
        return Err("not a complete address; write it as 192.0.2.1".into());
    }
    Ok(host)
}

impl FromStr for AllowTarget {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, LinkError> {
        let text = text.trim();
        Self::read(text).map_err(|problem| LinkError::AllowTarget {
            text: text.to_owned(),
            problem,
        })
    }
}
