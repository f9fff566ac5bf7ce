//! What the text of a host tells before it is resolved.

use std::net::{IpAddr, Ipv4Addr};

use super::refusal::{Reason, Refusal};

/// Names that mean this machine. Resolvers answer most of them without asking anyone.
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

/// Names clouds document for their metadata services. They resolve only inside those clouds, to
/// link-local addresses, and hand out credentials.
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

/// One spelling per host: lower case, no brackets around IPv6, no dot at the end. All dots go, not
/// one: a resolver that forgives `localhost..` must not find a hole here.
pub(super) fn normalise(host: &str) -> String {
    let host = host.trim();
    let host = host
        .strip_prefix('[')
        .and_then(|h| h.strip_suffix(']'))
        .unwrap_or(host);
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// The address a normalised host spells out, in any form a resolver takes for one: `127.0.0.1`,
/// `::1`, `fe80::1%eth0`, and the classic `0x7f.1`, `0177.0.0.1`, `2130706433`.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    let unscoped = host.split('%').next().unwrap_or(host);
    if let Ok(ip) = unscoped.parse::<IpAddr>() {
        return Some(ip);
    }
    classic_ipv4(host).map(IpAddr::V4)
}

pub(super) fn check(host: &str) -> Result<(), Refusal> {
    if LOCAL_NAMES.contains(&host) || host.ends_with(".localhost") {
        let message = format!("{host} is a name of this machine itself");
        return Err(Refusal::new(Reason::LocalName, message));
    }
    let is_metadata = METADATA_NAMES
        .iter()
        .any(|name| host == *name || host.strip_suffix(name).is_some_and(|h| h.ends_with('.')));
    if is_metadata {
        let message = format!("{host} is the metadata service of a cloud");
        return Err(Refusal::new(Reason::Metadata, message));
    }
    if ends_in_a_number(host) {
        let message = format!("{host} is neither a name nor an address");
        return Err(Refusal::new(Reason::MalformedHost, message));
    }
    let printable = host.bytes().all(|b| b.is_ascii_graphic());
    let forbidden = host.contains(['/', '\\', '@', '#', '?', ':', '<', '>', '[', ']', '^', '|']);
    if !printable || forbidden || host.len() > 253 {
        let message = "the host is not a name the internet knows; write it in its ASCII form";
        return Err(Refusal::new(Reason::MalformedHost, message));
    }
    Ok(())
}

/// The URL standard's test (<https://url.spec.whatwg.org/#ends-in-a-number-checker>): such a host
/// is an IPv4 address or nothing; no top-level domain is a number.
pub(super) fn ends_in_a_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    !last.is_empty() && (last.bytes().all(|b| b.is_ascii_digit()) || classic_number(last).is_some())
}

/// IPv4 as `inet_aton` reads it: one to four parts, each decimal, octal (`0…`) or hexadecimal
/// (`0x…`), the last filling all bytes left.
fn classic_ipv4(host: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u64> = host.split('.').map(classic_number).collect::<Option<_>>()?;
    let (last, leading) = parts.split_last()?;
    if leading.len() > 3 || leading.iter().any(|p| *p > 255) {
        return None;
    }
    let bytes_left = 4 - leading.len() as u32;
    if *last >= 1u64 << (8 * bytes_left) {
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
    // `from_str_radix` takes a sign; `inet_aton` does not.
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}
