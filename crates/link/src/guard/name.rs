//! Checks of the text of a host, before it is resolved.

use std::net::{IpAddr, Ipv4Addr};

use super::refusal::{Refusal, RefusalReason};

/// Names that mean this machine. Resolvers resolve most of them without a query.
const LOCAL_NAMES: &[&str] = &[
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost6",
    "localhost6.localdomain6",
    "ip6-localhost",
    "ip6-loopback",
    "loopback",
    "broadcasthost",
    "host.docker.internal",
    "gateway.docker.internal",
    "kubernetes.docker.internal",
    "host.containers.internal",
];

/// Documented names of the metadata services of clouds. These names resolve only inside those
/// clouds, to link-local addresses, and the services return credentials.
const METADATA_NAMES: &[&str] = &[
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "metadata.platformequinix.com",
    "instance-data",
    "instance-data.ec2.internal",
];

/// Returns the normalised form of a host: lower case, no brackets around IPv6, no dots at the end.
/// All trailing dots are removed, because a lenient resolver may accept `localhost..`.
pub(super) fn normalise(host: &str) -> String {
    let host = host.trim();
    let host = host
        .strip_prefix('[')
        .and_then(|h| h.strip_suffix(']'))
        .unwrap_or(host);
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Returns the address that a normalised host is a literal of, in any form that resolvers accept:
/// `127.0.0.1`, `::1`, `fe80::1%eth0`, and the classic `0x7f.1`, `0177.0.0.1`, `2130706433`.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    let unscoped = host.split('%').next().unwrap_or(host);
    if let Ok(ip) = unscoped.parse::<IpAddr>() {
        return Some(ip);
    }
    classic_ipv4(host).map(IpAddr::V4)
}

pub(super) fn check(host: &str) -> Result<(), Refusal> {
    if LOCAL_NAMES.contains(&host) || host.ends_with(".localhost") {
        let message = format!("{host} is a name of this machine");
        return Err(Refusal::new(RefusalReason::LocalName, message));
    }
    let is_metadata = METADATA_NAMES
        .iter()
        .any(|name| host == *name || host.strip_suffix(name).is_some_and(|h| h.ends_with('.')));
    if is_metadata {
        let message = format!("{host} is the metadata service of a cloud");
        return Err(Refusal::new(RefusalReason::Metadata, message));
    }
    if ends_in_a_number(host) {
        let message = format!("{host} is neither a name nor an address");
        return Err(Refusal::new(RefusalReason::MalformedHost, message));
    }
    let is_printable = host.bytes().all(|b| b.is_ascii_graphic());
    let has_forbidden =
        host.contains(['/', '\\', '@', '#', '?', ':', '<', '>', '[', ']', '^', '|']);
    if !is_printable || has_forbidden || host.len() > 253 {
        let message = "the host is not a valid name; write it in its ASCII form (xn--…)";
        return Err(Refusal::new(RefusalReason::MalformedHost, message));
    }
    Ok(())
}

/// Returns whether the last label of a host is a number, by the URL standard's algorithm
/// (<https://url.spec.whatwg.org/#ends-in-a-number-checker>). Such a host is an IPv4 address or
/// invalid, because no top-level domain is a number.
pub(super) fn ends_in_a_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    !last.is_empty() && (last.bytes().all(|b| b.is_ascii_digit()) || classic_number(last).is_some())
}

/// Parses IPv4 as `inet_aton` does: one to four parts, each decimal, octal (`0…`) or hexadecimal
/// (`0x…`), of which the last fills all remaining bytes.
fn classic_ipv4(host: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u64> = host.split('.').map(classic_number).collect::<Option<_>>()?;
    let (last, leading) = parts.split_last()?;
    if leading.len() > 3 || leading.iter().any(|p| *p > 255) {
        return None;
    }
    let remaining_bytes = 4 - leading.len() as u32;
    if *last >= 1u64 << (8 * remaining_bytes) {
        return None;
    }
    let high = leading
        .iter()
        .enumerate()
        .fold(0u64, |sum, (i, part)| sum | part << (24 - 8 * i));
    u32::try_from(high | last).ok().map(Ipv4Addr::from)
}

fn classic_number(part: &str) -> Option<u64> {
    let (digits, radix) = match part {
        "0x" => return Some(0),
        _ if part.starts_with("0x") => (&part[2..], 16),
        _ if part.len() > 1 && part.starts_with('0') => (&part[1..], 8),
        _ => (part, 10),
    };
    // `from_str_radix` accepts a sign; `inet_aton` does not.
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}
