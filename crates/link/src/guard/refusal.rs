use std::fmt;
use std::net::IpAddr;

use super::name;

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
    /// A public address in a network that an interface of this machine is in.
    OwnNetwork,
    /// A host, an address or a network that the operator denied.
    DeniedTarget,
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
            Reason::OwnNetwork => "own_network",
            Reason::DeniedTarget => "denied_target",
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

/// A connection that must not be made, and why.
///
/// Its text is for the operator: it names the addresses that a name was resolved to. Clients are
/// shown [`Refusal::client_detail`] at most, and nothing of a refusal that
/// [follows a lookup](Refusal::follows_a_lookup).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: Reason,
    pub message: String,
    follows_a_lookup: bool,
}

impl Refusal {
    /// A refusal for what the host or the port says by itself.
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            follows_a_lookup: false,
        }
    }

    /// A refusal of an address of `host`, which may be the address itself. `kind` says what the
    /// address is, to follow "… is".
    pub(crate) fn address(reason: Reason, host: &str, ip: IpAddr, kind: &str) -> Self {
        let is_literal = name::literal(host).is_some();
        let message = if is_literal {
            format!("{ip} is {kind}")
        } else {
            format!("{host} has the address {ip}, which is {kind}")
        };
        Self {
            reason,
            message,
            follows_a_lookup: !is_literal,
        }
    }

    /// The same refusal, made after the host was looked up unless the host is an address.
    pub(super) fn after_lookup_of(self, host: &str) -> Self {
        Self {
            follows_a_lookup: name::literal(host).is_none(),
            ..self
        }
    }

    /// Returns whether a name was looked up before it was refused. To clients such a name must look
    /// like one that does not exist, or they could ask which names the operator's network knows.
    pub fn follows_a_lookup(&self) -> bool {
        self.follows_a_lookup
    }

    /// What a client may be told beyond that the host may not be visited: only what the host says
    /// by itself, nothing about this machine, its network and its configuration.
    pub fn client_detail(&self) -> Option<&str> {
        let tells_of_us = matches!(
            self.reason,
            Reason::OwnAddress | Reason::OwnNetwork | Reason::DeniedTarget
        );
        (!self.follows_a_lookup && !tells_of_us).then_some(self.message.as_str())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
