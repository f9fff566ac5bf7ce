use std::fmt;
use std::net::IpAddr;

use super::name;

/// The reason why a connection was refused, as a stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    EmptyHost,
    /// A name that means this machine, wherever it is resolved.
    LocalName,
    /// A host that is neither a name nor an address.
    MalformedHost,
    DeniedPort,
    Unspecified,
    Loopback,
    /// A public address of this machine.
    OwnAddress,
    /// A public address in a network that an interface of this machine is in.
    OwnNetwork,
    /// A host, an address or a network that the operator denies.
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
    /// An IPv6 address that embeds a refused IPv4 address.
    EmbeddedIpv4,
}

impl RefusalReason {
    /// Returns a stable identifier for reports and logs.
    pub fn code(self) -> &'static str {
        match self {
            RefusalReason::EmptyHost => "empty_host",
            RefusalReason::LocalName => "local_name",
            RefusalReason::MalformedHost => "malformed_host",
            RefusalReason::DeniedPort => "denied_port",
            RefusalReason::Unspecified => "unspecified",
            RefusalReason::Loopback => "loopback",
            RefusalReason::OwnAddress => "own_address",
            RefusalReason::OwnNetwork => "own_network",
            RefusalReason::DeniedTarget => "denied_target",
            RefusalReason::Private => "private",
            RefusalReason::LinkLocal => "link_local",
            RefusalReason::SharedAddressSpace => "shared_address_space",
            RefusalReason::Metadata => "metadata",
            RefusalReason::Multicast => "multicast",
            RefusalReason::Broadcast => "broadcast",
            RefusalReason::Documentation => "documentation",
            RefusalReason::Benchmarking => "benchmarking",
            RefusalReason::Reserved => "reserved",
            RefusalReason::EmbeddedIpv4 => "embedded_ipv4",
        }
    }
}

/// A refused connection, with the reason.
///
/// Its text is for the operator: it contains the addresses that a name was resolved to. Clients see
/// [`Refusal::client_detail`] at most, and nothing of a refusal that
/// [follows a lookup](Refusal::follows_a_lookup).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: RefusalReason,
    pub message: String,
    follows_a_lookup: bool,
}

impl Refusal {
    /// Creates a refusal that follows from the host or the port alone.
    pub(crate) fn new(reason: RefusalReason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            follows_a_lookup: false,
        }
    }

    /// Creates a refusal of an address of `host`, which may be the address itself. `kind` describes
    /// the address, to follow "… is".
    pub(crate) fn address(reason: RefusalReason, host: &str, ip: IpAddr, kind: &str) -> Self {
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

    /// Marks the refusal as made after a lookup of the host, unless the host is an address.
    pub(super) fn after_lookup_of(self, host: &str) -> Self {
        Self {
            follows_a_lookup: name::literal(host).is_none(),
            ..self
        }
    }

    /// Returns whether a name was looked up before it was refused. Clients must not be able to
    /// distinguish such a name from one that does not exist; otherwise they could find out which
    /// names exist in the operator's network.
    pub fn follows_a_lookup(&self) -> bool {
        self.follows_a_lookup
    }

    /// Returns the message for clients, if they may see it: only what follows from the host alone,
    /// nothing about this machine, its network and its configuration.
    pub fn client_detail(&self) -> Option<&str> {
        let reveals_setup = matches!(
            self.reason,
            RefusalReason::OwnAddress | RefusalReason::OwnNetwork | RefusalReason::DeniedTarget
        );
        (!self.follows_a_lookup && !reveals_setup).then_some(self.message.as_str())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
