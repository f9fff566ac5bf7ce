//! Decides which addresses are public.
//!
//! For IPv4, the ranges that are not public are listed
//! (<https://www.iana.org/assignments/iana-ipv4-special-registry>), because nearly all addresses
//! are assigned. For IPv6 it is the opposite: only 2000::/3 is in use for the public internet
//! (<https://www.iana.org/assignments/ipv6-address-space>), so everything outside is refused
//! without being listed, and the list contains the exceptions inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::refusal::RefusalReason;

/// Whether an address is public.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AddressClass {
    Public,
    /// An address that is not public, with a description to follow "… is".
    Refused(RefusalReason, &'static str),
}

use AddressClass::{Public, Refused};

/// Returns the IPv4 address of a v4-mapped IPv6 address, and any other address unchanged. A socket
/// that is connected to a mapped address sends IPv4.
pub(super) fn canonical(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
    }
}

pub(super) fn classify(ip: IpAddr) -> AddressClass {
    match canonical(ip) {
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => classify_v6(v6),
    }
}

fn classify_v4(ip: Ipv4Addr) -> AddressClass {
    match ip.octets() {
        [0, 0, 0, 0] => Refused(RefusalReason::Unspecified, "the unspecified address"),
        [0, ..] => Refused(RefusalReason::Reserved, "on \"this network\" (0.0.0.0/8)"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => {
            Refused(RefusalReason::Private, "a private address")
        }
        [100, 100, 100, 200] => Refused(RefusalReason::Metadata, "a cloud's metadata service"),
        [100, 64..=127, ..] => Refused(
            RefusalReason::SharedAddressSpace,
            "inside a carrier's network (100.64.0.0/10)",
        ),
        [127, ..] => Refused(RefusalReason::Loopback, "a loopback address"),
        [169, 254, 169, 254] | [169, 254, 170, 2] | [169, 254, 0, 23] => {
            Refused(RefusalReason::Metadata, "a cloud's metadata service")
        }
        [169, 254, ..] => Refused(RefusalReason::LinkLocal, "a link-local address"),
        // In a public range, but the host's own agent on every Azure machine.
        [168, 63, 129, 16] => Refused(RefusalReason::Metadata, "a cloud's metadata service"),
        [192, 0, 0, 192] => Refused(RefusalReason::Metadata, "a cloud's metadata service"),
        [192, 0, 0, _] => Refused(
            RefusalReason::Reserved,
            "reserved for protocols (192.0.0.0/24)",
        ),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Refused(RefusalReason::Documentation, "an address for documentation")
        }
        [192, 88, 99, _] => Refused(RefusalReason::Reserved, "a former 6to4 relay"),
        [198, 18..=19, ..] => Refused(RefusalReason::Benchmarking, "an address for benchmarks"),
        [224..=239, ..] => Refused(RefusalReason::Multicast, "a multicast address"),
        [255, 255, 255, 255] => Refused(RefusalReason::Broadcast, "the broadcast address"),
        [240..=255, ..] => Refused(RefusalReason::Reserved, "a reserved address"),
        _ => Public,
    }
}

fn classify_v6(ip: Ipv6Addr) -> AddressClass {
    let class = match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Refused(RefusalReason::Unspecified, "the unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Refused(RefusalReason::Loopback, "a loopback address"),
        [0x64, 0xff9b, 1, ..] => Refused(
            RefusalReason::Private,
            "inside a network's own NAT64 (RFC 8215)",
        ),
        // NAT64, 6to4 and Teredo: decided by the address they embed.
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x2002, ..] | [0x2001, 0, ..] => Public,
        _ => classify_v6_range(ip),
    };
    let embedded_is_public = || embedded_v4(ip).iter().all(|v4| classify_v4(*v4) == Public);
    if class == Public && !embedded_is_public() {
        return Refused(
            RefusalReason::EmbeddedIpv4,
            "an IPv6 form of an IPv4 address that is not public",
        );
    }
    class
}

/// Returns the IPv4 addresses that are embedded in an IPv6 address and that a translator or relay
/// may connect to.
pub(super) fn embedded_v4(ip: Ipv6Addr) -> Vec<Ipv4Addr> {
    let s = ip.segments();
    let mut embedded = match s {
        // NAT64 (RFC 6052 and 8215): a translator converts it to the IPv4 address at its end. The
        // IPv4-compatible and the IPv4-translated (SIIT) form have it at their end as well.
        [0x64, 0xff9b, ..] | [0, 0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => {
            vec![v4_at(s, 6)]
        }
        // 6to4 (RFC 3056): the site's gateway, right after the prefix.
        [0x2002, ..] => vec![v4_at(s, 1)],
        // Teredo (RFC 4380): the server, and at the end the client with all bits flipped.
        [0x2001, 0, ..] => vec![v4_at(s, 2), Ipv4Addr::from(!u32::from(v4_at(s, 6)))],
        _ => Vec::new(),
    };
    // ISATAP (RFC 5214) puts IPv4 into the interface half of any prefix.
    if let [_, _, _, _, 0 | 0x200, 0x5efe, ..] = s {
        embedded.push(v4_at(s, 6));
    }
    embedded
}

fn classify_v6_range(ip: Ipv6Addr) -> AddressClass {
    match ip.segments() {
        // AWS's metadata service; Google's and others' are link-local.
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            Refused(RefusalReason::Metadata, "a cloud's metadata service")
        }
        [0xfc00..=0xfdff, ..] => {
            Refused(RefusalReason::Private, "a private address (unique local)")
        }
        [0xfe80..=0xfebf, ..] => Refused(RefusalReason::LinkLocal, "a link-local address"),
        [0xfec0..=0xfeff, ..] => Refused(RefusalReason::Private, "a private address (site-local)"),
        [0xff00..=0xffff, ..] => Refused(RefusalReason::Multicast, "a multicast address"),
        [0x100, 0, 0, 0 | 1, ..] => Refused(RefusalReason::Reserved, "in the discard-only range"),
        // ::/96 formerly embedded IPv4 ("compatible"); no public host has such an address.
        [0, 0, 0, 0, 0, 0, ..] => {
            Refused(RefusalReason::EmbeddedIpv4, "an IPv4-compatible address")
        }
        [0, 0, 0, 0, 0xffff, 0, ..] => Refused(
            RefusalReason::EmbeddedIpv4,
            "an IPv4-translated address (SIIT)",
        ),
        [0x2001, 0x0002, 0, ..] => {
            Refused(RefusalReason::Benchmarking, "an address for benchmarks")
        }
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => {
            Refused(RefusalReason::Documentation, "an address for documentation")
        }
        // 2001::/23: identifiers and protocol anycast; Teredo, its only part that hosts ever had
        // addresses in, is decided by the address it embeds.
        [0x2001, 0..=0x01ff, ..] => Refused(
            RefusalReason::Reserved,
            "reserved for protocols (2001::/23)",
        ),
        [0x2000..=0x3fff, ..] => Public,
        _ => Refused(RefusalReason::Reserved, "outside the public IPv6 range"),
    }
}

fn v4_at(segments: [u16; 8], index: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(segments[index]) << 16 | u32::from(segments[index + 1]))
}
