use std::fmt;
use std::net::IpAddr;

/// Why a connection was refused, for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    EmptyHost,
    /// A name that means this machine or a cloud's metadata service wherever it is asked.
    LocalName,
    /// A host that is neither a name nor an address.
    MalformedHost,
    DeniedPort,
    Unspecified,
    Loopback,
    /// A public address that this machine itself has.
    OwnAddress,
    Private,
    LinkLocal,
    SharedAddressSpace,
    Metadata,
    Multicast,
    Broadcast,
    Documentation,
    Benchmarking,
    Reserved,
    /// An IPv6 address that carries a refused IPv4 address.
    EmbeddedIpv4,
}

impl Reason {
    /// A stable word for reports and logs.
    pub fn code(self) -> &'static str {
        match self {
            Reason::EmptyHost => "empty_host",
            Reason::LocalName => "local_name",
            Reason::MalformedHost => "malformed_host",
            Reason::DeniedPort => "denied_port",
            Reason::Unspecified => "unspecified",
            Reason::Loopback => "loopback",
            Reason::OwnAddress => "own_address",
            Reason::Private => "private",
            Reason::LinkLocal => "link_local",
            Reason::SharedAddressSpace => "shared_address_space",
            Reason::Metadata => "metadata",
            Reason::Multicast => "multicast",
            Reason::Broadcast => "broadcast",
            Reason::Documentation => "documentation",
            Reason::Benchmarking => "benchmarking",
            Reason::Reserved => "reserved",
            Reason::EmbeddedIpv4 => "embedded_ipv4",
        }
    }
}

/// A connection that must not be made, with a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: Reason,
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { reason, message }
    }

    pub(super) fn address(reason: Reason, host: &str, ip: IpAddr, kind: &str) -> Self {
        let message = match host.parse::<IpAddr>() {
            Ok(_) => format!("{ip} is {kind}"),
            Err(_) => format!("{host} has the address {ip}, which is {kind}"),
        };
        Self { reason, message }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
