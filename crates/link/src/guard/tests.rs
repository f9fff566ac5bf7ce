use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;

use super::{Guard, RefusalReason, Target};
use crate::local_networks::LocalNetworks;

fn targets(texts: &[&str]) -> Vec<Target> {
    texts.iter().map(|text| text.parse().expect(text)).collect()
}

fn guard(allow: &[&str]) -> Guard {
    Guard::new(targets(allow))
}

/// Creates a guard on a machine whose interfaces are in these networks.
fn guard_within(networks: &[&str], allow: &[&str], deny: &[&str]) -> Guard {
    let networks = networks.iter().map(|net| net.parse().expect(net)).collect();
    Guard {
        networks: std::sync::Arc::new(LocalNetworks::fixed(networks)),
        ..guard(allow).denying(targets(deny))
    }
}

fn reason_of(guard: &Guard, host: &str, addr: &str) -> Option<RefusalReason> {
    let result = guard.check_address(host, addr.parse().expect(addr));
    result.err().map(|refusal| refusal.reason)
}

/// Checks an address against the reason it is expected to be refused for; `None` means that it is
/// permitted.
fn check_ip(ip: &str, expected: Option<RefusalReason>) {
    let ip: IpAddr = ip.parse().expect(ip);
    let resolved = Guard::public_only().check_address("example.com", SocketAddr::new(ip, 443));
    assert_eq!(resolved.as_ref().err().map(|r| r.reason), expected, "{ip}");
    let literal = Guard::public_only().check_host(&ip.to_string(), 443);
    assert_eq!(literal.err().map(|r| r.reason), expected, "{ip} as host");
}

#[test]
fn ipv4_is_refused_unless_public() {
    use RefusalReason::*;
    let cases = [
        ("0.0.0.0", Some(Unspecified)),
        ("0.0.0.1", Some(Reserved)),
        ("0.255.255.255", Some(Reserved)),
        ("1.0.0.0", None),
        ("1.1.1.1", None),
        ("8.8.8.8", None),
        ("9.255.255.255", None),
        ("10.0.0.0", Some(Private)),
        ("10.255.255.255", Some(Private)),
        ("11.0.0.0", None),
        ("100.63.255.255", None),
        ("100.64.0.0", Some(SharedAddressSpace)),
        ("100.100.100.200", Some(Metadata)),
        ("100.127.255.255", Some(SharedAddressSpace)),
        ("100.128.0.0", None),
        ("126.255.255.255", None),
        ("127.0.0.1", Some(Loopback)),
        ("127.1.2.3", Some(Loopback)),
        ("127.255.255.255", Some(Loopback)),
        ("128.0.0.0", None),
        ("168.63.129.15", None),
        ("168.63.129.16", Some(Metadata)),
        ("169.253.255.255", None),
        ("169.254.0.1", Some(LinkLocal)),
        ("169.254.0.23", Some(Metadata)),
        ("169.254.169.254", Some(Metadata)),
        ("169.254.170.2", Some(Metadata)),
        ("169.255.0.0", None),
        ("172.15.255.255", None),
        ("172.16.0.0", Some(Private)),
        ("172.31.255.255", Some(Private)),
        ("172.32.0.0", None),
        ("192.0.0.1", Some(Reserved)),
        ("192.0.0.192", Some(Metadata)),
        ("192.0.1.0", None),
        ("192.0.2.1", Some(Documentation)),
        ("192.88.99.1", Some(Reserved)),
        ("192.167.255.255", None),
        ("192.168.0.1", Some(Private)),
        ("192.168.255.255", Some(Private)),
        ("192.169.0.0", None),
        ("198.17.255.255", None),
        ("198.18.0.0", Some(Benchmarking)),
        ("198.19.255.255", Some(Benchmarking)),
        ("198.20.0.0", None),
        ("198.51.100.7", Some(Documentation)),
        ("203.0.113.7", Some(Documentation)),
        ("223.255.255.255", None),
        ("224.0.0.1", Some(Multicast)),
        ("239.255.255.250", Some(Multicast)),
        ("240.0.0.1", Some(Reserved)),
        ("255.255.255.254", Some(Reserved)),
        ("255.255.255.255", Some(Broadcast)),
    ];
    cases.iter().for_each(|(ip, reason)| check_ip(ip, *reason));
}

#[test]
fn ipv6_is_refused_unless_public() {
    use RefusalReason::*;
    let cases = [
        ("::", Some(Unspecified)),
        ("::1", Some(Loopback)),
        ("::2", Some(EmbeddedIpv4)),
        ("::127.0.0.1", Some(EmbeddedIpv4)),
        ("::8.8.8.8", Some(EmbeddedIpv4)),
        ("::ffff:127.0.0.1", Some(Loopback)),
        ("::ffff:7f00:1", Some(Loopback)),
        ("::ffff:10.1.2.3", Some(Private)),
        ("::ffff:169.254.169.254", Some(Metadata)),
        ("::ffff:8.8.8.8", None),
        ("::ffff:0:127.0.0.1", Some(EmbeddedIpv4)),
        ("64:ff9b::7f00:1", Some(EmbeddedIpv4)),
        ("64:ff9b::a9fe:a9fe", Some(EmbeddedIpv4)),
        ("64:ff9b::8.8.8.8", None),
        ("64:ff9b:1::8.8.8.8", Some(Private)),
        ("64:ff9b:1:ffff::1", Some(Private)),
        ("64:ff9b:2::1", Some(Reserved)),
        ("100::1", Some(Reserved)),
        ("100:0:0:1::1", Some(Reserved)),
        ("200::1", Some(Reserved)),
        ("2001::1", Some(EmbeddedIpv4)),
        // Teredo, server 8.8.8.8, client 10.0.0.1 and 8.8.4.4 with flipped bits.
        ("2001:0:808:808:0:0:f5ff:fffe", Some(EmbeddedIpv4)),
        ("2001:0:808:808:0:0:f7f7:fbfb", None),
        ("2001:0:7f00:1:0:0:f7f7:fbfb", Some(EmbeddedIpv4)),
        ("2001:1::1", Some(Reserved)),
        ("2001:2::1", Some(Benchmarking)),
        ("2001:10::1", Some(Reserved)),
        ("2001:20::1", Some(Reserved)),
        ("2001:1ff::1", Some(Reserved)),
        ("2001:200::1", None),
        ("2001:4860:4860::8888", None),
        ("2001:db8::1", Some(Documentation)),
        ("2002:7f00:1::", Some(EmbeddedIpv4)),
        ("2002:c0a8:101::1", Some(EmbeddedIpv4)),
        ("2002:a9fe:a9fe::1", Some(EmbeddedIpv4)),
        ("2002:808:808::1", None),
        ("2606:4700:4700::1111", None),
        ("2a00:1450:4001:82a:0:5efe:7f00:1", Some(EmbeddedIpv4)),
        ("2a00:1450:4001:82a:200:5efe:a00:1", Some(EmbeddedIpv4)),
        ("2a00:1450:4001:82a:200:5efe:808:808", None),
        ("2a00:1450:4001:82a::200e", None),
        ("3fff::1", Some(Documentation)),
        ("3fff:fff::1", Some(Documentation)),
        ("3fff:1000::1", None),
        ("4000::1", Some(Reserved)),
        ("5f00::1", Some(Reserved)),
        ("fc00::1", Some(Private)),
        ("fd00::1", Some(Private)),
        ("fd00:ec2::254", Some(Metadata)),
        ("fd20:ce::254", Some(Metadata)),
        ("fe80::1", Some(LinkLocal)),
        ("fe80::5efe:808:808", Some(LinkLocal)),
        ("febf::1", Some(LinkLocal)),
        ("fec0::1", Some(Private)),
        ("feff::1", Some(Private)),
        ("ff02::1", Some(Multicast)),
        ("ff0e::1", Some(Multicast)),
    ];
    cases.iter().for_each(|(ip, reason)| check_ip(ip, *reason));
}

#[test]
fn hosts_are_checked_by_their_text() {
    use RefusalReason::*;
    let cases = [
        ("", 80, Some(EmptyHost)),
        (".", 80, Some(EmptyHost)),
        ("[]", 80, Some(EmptyHost)),
        ("example.com", 443, None),
        ("EXAMPLE.com.", 443, None),
        ("www.gstatic.com", 443, None),
        ("xn--bcher-kva.example", 443, None),
        ("under_score.example.com", 443, None),
        ("printer.local", 80, None),
        ("wiki.corp.internal", 80, None),
        ("localhost", 80, Some(LocalName)),
        ("LOCALHOST", 80, Some(LocalName)),
        ("localhost.", 80, Some(LocalName)),
        ("localhost..", 80, Some(LocalName)),
        ("a.b.localhost", 80, Some(LocalName)),
        ("a.localhost.", 80, Some(LocalName)),
        ("localhost.localdomain", 80, Some(LocalName)),
        ("ip6-localhost", 80, Some(LocalName)),
        ("host.docker.internal", 80, Some(LocalName)),
        ("notlocalhost", 80, None),
        ("localhost.example.com", 80, None),
        ("metadata.google.internal", 80, Some(Metadata)),
        ("Metadata.Google.Internal.", 80, Some(Metadata)),
        ("v1.metadata.google.internal", 80, Some(Metadata)),
        ("mymetadata.goog", 80, None),
        ("instance-data.ec2.internal", 80, Some(Metadata)),
        ("metadata", 80, Some(Metadata)),
        ("metadata.example.com", 80, None),
        ("127.0.0.1", 80, Some(Loopback)),
        ("127.0.0.1.", 80, Some(Loopback)),
        ("[::1]", 80, Some(Loopback)),
        ("::1", 80, Some(Loopback)),
        ("[::ffff:7f00:1]", 80, Some(Loopback)),
        ("[fe80::1%25eth0]", 80, Some(LinkLocal)),
        ("fe80::1%eth0", 80, Some(LinkLocal)),
        ("0x7f.1", 80, Some(Loopback)),
        ("0X7F.0X1", 80, Some(Loopback)),
        ("127.1", 80, Some(Loopback)),
        ("127.0.1", 80, Some(Loopback)),
        ("2130706433", 80, Some(Loopback)),
        ("0x7f000001", 80, Some(Loopback)),
        ("0177.0.0.1", 80, Some(Loopback)),
        ("017700000001", 80, Some(Loopback)),
        ("0", 80, Some(Unspecified)),
        ("0x", 80, Some(Unspecified)),
        ("0xa9fea9fe", 80, Some(Metadata)),
        ("10.1", 80, Some(Private)),
        ("8.8.2056", 80, None),
        ("1.2.3.4.5", 80, Some(MalformedHost)),
        ("256.1.1.1", 80, Some(MalformedHost)),
        ("example.42", 80, Some(MalformedHost)),
        ("08.0.0.1", 80, Some(MalformedHost)),
        ("a b.example", 80, Some(MalformedHost)),
        ("user@example.com", 80, Some(MalformedHost)),
        ("example.com\0.evil.test", 80, Some(MalformedHost)),
        ("lo\u{43a}alhost", 80, Some(MalformedHost)),
        ("127\u{3002}0\u{3002}0\u{3002}1", 80, Some(MalformedHost)),
        ("example.com", 22, Some(DeniedPort)),
        ("example.com", 25, Some(DeniedPort)),
        ("example.com", 6379, Some(DeniedPort)),
        ("example.com", 0, Some(DeniedPort)),
        ("8.8.8.8", 3306, Some(DeniedPort)),
        ("example.com", 8080, None),
    ];
    for (host, port, expected) in cases {
        let result = Guard::public_only().check_host(host, port);
        assert_eq!(result.err().map(|r| r.reason), expected, "{host:?}:{port}");
    }
}

#[test]
fn an_allowed_host_is_allowed_with_any_address() {
    let g = guard(&["App.Test.", "other.test:8080"]);
    assert!(g.check_host("app.test", 80).is_ok());
    assert!(
        g.check_address("APP.test.", "127.0.0.1:80".parse().unwrap())
            .is_ok()
    );
    assert!(
        g.check_address("sub.app.test", "127.0.0.1:80".parse().unwrap())
            .is_err()
    );
    let other = |port| SocketAddr::from(([10, 0, 0, 1], port));
    assert!(g.check_address("other.test", other(8080)).is_ok());
    assert!(g.check_address("other.test", other(8081)).is_err());
    assert!(g.check_address("third.test", other(8080)).is_err());
}

#[test]
fn a_name_of_this_machine_can_be_allowed() {
    let g = guard(&["localhost:3000"]);
    assert!(g.check_host("localhost", 3000).is_ok());
    assert!(g.check_host("localhost", 3001).is_err());
    assert!(
        g.check_address("localhost", "[::1]:3000".parse().unwrap())
            .is_ok()
    );
    assert!(
        g.check_address("127.0.0.1", "127.0.0.1:3000".parse().unwrap())
            .is_err()
    );
}

#[test]
fn localhost_resolves_to_the_allowed_loopback_addresses_and_to_no_others() {
    let g = guard(&["127.0.0.1:3000"]);
    for host in ["localhost", "LOCALHOST.", "page.localhost"] {
        assert!(g.check_host(host, 3000).is_ok(), "{host}");
        assert!(g.check_host(host, 3001).is_err(), "{host}");
        let v4 = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(g.loopback_of(host, 3000), Some(vec![v4]), "{host}");
    }
    assert_eq!(g.loopback_of("localhost.example.com", 3000), None);
    let both = guard(&["localhost"]).loopback_of("localhost", 80);
    assert_eq!(both.map(|ips| ips.len()), Some(2));
}

#[test]
fn an_allowed_address_is_allowed_under_any_name() {
    let g = guard(&["127.0.0.0/8", "[fd00::5]:8443", "10.9.8.7:90"]);
    for (host, addr, ok) in [
        ("127.0.0.1", "127.0.0.1:8080", true),
        ("whatever.test", "127.99.0.1:8080", true),
        ("whatever.test", "[::ffff:127.0.0.1]:8080", true),
        ("whatever.test", "[::1]:8080", false),
        ("whatever.test", "[64:ff9b::7f00:1]:8080", false),
        ("whatever.test", "[2002:7f00:1::]:8080", false),
        ("whatever.test", "[fd00::5]:8443", true),
        ("whatever.test", "[fd00::5]:443", false),
        ("whatever.test", "[fd00::6]:8443", false),
        ("whatever.test", "10.9.8.7:90", true),
        ("whatever.test", "10.9.8.7:80", false),
        ("whatever.test", "169.254.169.254:80", false),
    ] {
        let result = g.check_address(host, addr.parse().expect(addr));
        assert_eq!(result.is_ok(), ok, "{host} {addr}");
    }
    // `localhost` is not looked up, so an address is enough to allow it.
    assert!(g.check_host("localhost", 8080).is_ok());
    assert!(g.check_host("127.0.0.1", 8080).is_ok());
}

#[test]
fn a_denied_port_needs_an_entry_with_that_port() {
    let loose = guard(&["127.0.0.0/8", "db.test"]);
    assert!(
        loose
            .check_address("x", "127.0.0.1:6379".parse().unwrap())
            .is_err()
    );
    assert!(loose.check_host("db.test", 5432).is_err());
    let exact = guard(&["127.0.0.1:6379", "db.test:5432"]);
    assert!(exact.check_host("127.0.0.1", 6379).is_ok());
    assert!(exact.check_host("db.test", 5432).is_ok());
    assert!(
        exact
            .check_address("x.test", "127.0.0.1:6379".parse().unwrap())
            .is_ok()
    );
    assert!(
        exact
            .check_address("x.test", "8.8.8.8:6379".parse().unwrap())
            .is_err()
    );
    assert!(
        exact
            .check_address("x.test", "8.8.8.8:5432".parse().unwrap())
            .is_err()
    );
}

#[test]
fn one_refused_address_refuses_the_name() {
    let addrs: Vec<SocketAddr> = ["8.8.8.8:80", "127.0.0.1:80", "1.1.1.1:80"]
        .iter()
        .map(|a| a.parse().unwrap())
        .collect();
    let refusal = Guard::public_only()
        .check_addresses("mixed.test", &addrs)
        .unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::Loopback);
    assert_eq!(
        refusal.to_string(),
        "mixed.test has the address 127.0.0.1, which is a loopback address"
    );
    assert!(
        guard(&["mixed.test"])
            .check_addresses("mixed.test", &addrs)
            .is_ok()
    );
}

#[test]
fn a_denied_target_is_refused_even_if_it_is_allowed() {
    let allow = [
        "intra.example.com",
        "127.0.0.0/8",
        "93.184.215.14:8080",
        "::1",
    ];
    let deny = [
        "intra.example.com",
        "127.0.0.7",
        "93.184.215.0/24",
        "2a00:db9::/32",
        "ported.example.com:8080",
    ];
    let g = guard_within(&[], &allow, &deny);
    for (host, addr, denied) in [
        ("intra.example.com", "8.8.8.8:80", true),
        ("INTRA.example.com.", "127.0.0.1:80", true),
        ("below.intra.example.com", "8.8.8.8:80", true),
        ("notintra.example.com", "8.8.8.8:80", false),
        ("example.com", "8.8.8.8:80", false),
        ("x.example.com", "127.0.0.7:80", true),
        ("x.example.com", "[::ffff:127.0.0.7]:80", true),
        ("x.example.com", "127.0.0.1:80", false),
        ("x.example.com", "[::1]:80", false),
        ("x.example.com", "93.184.215.14:8080", true),
        ("x.example.com", "[64:ff9b::93.184.215.14]:80", true),
        ("x.example.com", "[2002:5db8:d70e::1]:80", true),
        ("x.example.com", "[2a00:db9:1::1]:443", true),
        ("x.example.com", "[2a00:dba::1]:443", false),
        ("ported.example.com", "8.8.8.8:8080", true),
        ("ported.example.com", "8.8.8.8:80", false),
    ] {
        let expected = denied.then_some(RefusalReason::DeniedTarget);
        assert_eq!(reason_of(&g, host, addr), expected, "{host} {addr}");
        let addr: SocketAddr = addr.parse().unwrap();
        assert!(!(denied && g.allows(host, addr)), "{host} {addr}");
        let literal = g.check_host(&addr.ip().to_string(), addr.port());
        if literal.is_ok() {
            assert_eq!(g.check_host(host, addr.port()).is_err(), denied, "{host}");
        }
    }
    assert!(g.check_host("127.0.0.7", 80).is_err());
    assert!(g.check_host("0x7f.7", 80).is_err());
}

#[test]
fn localhost_does_not_resolve_to_a_denied_loopback_address() {
    let g = guard(&["127.0.0.0/8", "::1"]).denying(targets(&["127.0.0.1"]));
    let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
    assert_eq!(g.loopback_of("localhost", 80), Some(vec![v6]));
    let g = guard(&["127.0.0.0/8"]).denying(targets(&["localhost"]));
    for host in ["localhost", "LOCALHOST.", "a.localhost"] {
        assert!(g.check_host(host, 80).is_err(), "{host}");
    }
    assert!(g.check_host("127.0.0.1", 80).is_ok());
}

#[test]
fn this_machines_networks_are_refused_unless_they_are_allowed() {
    let networks = ["93.184.215.0/24", "2a00:db9:5::/64", "127.0.0.0/8"];
    let closed = guard_within(&networks, &[], &[]);
    let allow = ["93.184.215.14", "2a00:db9:5::8/125", "named.example.com"];
    let open = guard_within(&networks, &allow, &["2a00:db9:5::9"]);
    let own = Some(RefusalReason::OwnNetwork);
    for (host, addr, by_default, with_allow) in [
        ("x.example.com", "93.184.215.14:80", own, None),
        ("x.example.com", "93.184.215.15:80", own, own),
        ("x.example.com", "93.184.216.14:80", None, None),
        ("x.example.com", "[::ffff:93.184.215.15]:80", own, own),
        ("x.example.com", "[64:ff9b::93.184.215.15]:80", own, own),
        ("x.example.com", "[2002:5db8:d70f::1]:80", own, own),
        ("x.example.com", "[2a00:db9:5::8]:80", own, None),
        (
            "x.example.com",
            "[2a00:db9:5::9]:80",
            own,
            Some(RefusalReason::DeniedTarget),
        ),
        ("x.example.com", "[2a00:db9:5::10]:80", own, own),
        ("x.example.com", "[2a00:db9:6::8]:80", None, None),
        ("named.example.com", "93.184.215.15:80", own, None),
        // Where both reasons apply, the more specific one is given.
        (
            "x.example.com",
            "127.0.0.1:80",
            Some(RefusalReason::Loopback),
            Some(RefusalReason::Loopback),
        ),
    ] {
        assert_eq!(reason_of(&closed, host, addr), by_default, "{host} {addr}");
        assert_eq!(reason_of(&open, host, addr), with_allow, "{host} {addr}");
    }
    assert!(closed.check_host("93.184.215.14", 80).is_err());
    assert!(closed.check_host("[2a00:db9:5::8]", 80).is_err());
    assert!(open.check_host("[2a00:db9:5::8]", 80).is_ok());
}

#[test]
fn clients_see_only_what_follows_from_the_host_itself() {
    let g = guard_within(
        &["93.184.215.0/24"],
        &[],
        &["93.184.216.0/24", "denied.example.com"],
    );
    let refuse_host = |host: &str| g.check_host(host, 80).unwrap_err();
    for (host, detail) in [
        ("10.0.0.1", Some("10.0.0.1 is a private address")),
        ("0x7f.1", Some("127.0.0.1 is a loopback address")),
        ("localhost", Some("localhost is a name of this machine")),
        // These would reveal how the service is connected and configured.
        ("93.184.215.1", None),
        ("93.184.216.1", None),
        ("denied.example.com", None),
    ] {
        let refusal = refuse_host(host);
        assert!(!refusal.follows_a_lookup(), "{host}");
        assert_eq!(refusal.client_detail(), detail, "{host}");
    }
    for addr in [
        "10.0.0.1:80",
        "93.184.215.1:80",
        "93.184.216.1:80",
        "8.8.8.8:6379",
    ] {
        let addr: SocketAddr = addr.parse().unwrap();
        let refusal = g.check_address("name.example.com", addr).unwrap_err();
        assert!(refusal.follows_a_lookup(), "{addr}");
        assert_eq!(refusal.client_detail(), None, "{addr}");
    }
}

#[test]
fn targets_are_parsed_or_explained() {
    for good in [
        "localhost",
        "example.com:8080",
        "xn--bcher-kva.example",
        "a_b.test",
        "127.0.0.1",
        "127.0.0.1:80",
        "::1",
        "[::1]",
        "[::1]:80",
        "10.0.0.0/8",
        "10.1.2.3/8",
        "fd00::/8",
        " spaced.test ",
    ] {
        assert!(good.parse::<Target>().is_ok(), "{good}");
    }
    for (bad, problem) in [
        ("", "empty"),
        ("http://example.com", "not a URL"),
        ("10.0.0.0/33", "not a CIDR"),
        ("10.0.0.0/8:80", "not a CIDR"),
        ("example.com/path", "not a CIDR"),
        ("example.com:", "not a port"),
        ("example.com:http", "not a port"),
        ("example.com:65536", "not a port"),
        ("example.com:0", "port 0"),
        ("127.0.0.1:0", "port 0"),
        (":80", "the host is missing"),
        ("*.example.com", "not a host name"),
        ("exa mple.com", "not a host name"),
        ("a..b", "not a host name"),
        ("bücher.example", "ASCII form"),
        ("127.1", "not a complete address"),
        ("0x7f.1", "not a complete address"),
        ("300.1.1.1", "not a complete address"),
    ] {
        let error = bad.parse::<Target>().expect_err(bad).to_string();
        assert!(error.contains(problem), "{bad}: {error}");
    }
}

#[test]
fn a_mapped_network_is_the_ipv4_network_it_maps() {
    let mapped: Target = "::ffff:10.1.0.0/112".parse().unwrap();
    assert_eq!(mapped, "10.1.0.0/16".parse().unwrap());
}

fn not_public_v4() -> impl Strategy<Value = Ipv4Addr> {
    prop_oneof![
        any::<[u8; 3]>().prop_map(|[b, c, d]| Ipv4Addr::new(10, b, c, d)),
        any::<[u8; 3]>().prop_map(|[b, c, d]| Ipv4Addr::new(127, b, c, d)),
        any::<[u8; 3]>().prop_map(|[b, c, d]| Ipv4Addr::new(0, b, c, d)),
        any::<[u8; 2]>().prop_map(|[c, d]| Ipv4Addr::new(169, 254, c, d)),
        any::<[u8; 2]>().prop_map(|[c, d]| Ipv4Addr::new(192, 168, c, d)),
        any::<[u8; 3]>().prop_map(|[b, c, d]| Ipv4Addr::new(172, 16 | (b & 15), c, d)),
        any::<[u8; 3]>().prop_map(|[b, c, d]| Ipv4Addr::new(100, 64 | (b & 63), c, d)),
        any::<[u8; 4]>().prop_map(|[a, b, c, d]| Ipv4Addr::new(224 | (a & 31), b, c, d)),
    ]
}

fn embedding_forms(v4: Ipv4Addr, other: Ipv4Addr, prefix: [u16; 4]) -> Vec<Ipv6Addr> {
    let [hi, lo] = halves(v4);
    let [not_hi, not_lo] = [!hi, !lo];
    let [other_hi, other_lo] = halves(other);
    let [a, b, c, d] = prefix;
    vec![
        v4.to_ipv6_mapped(),
        Ipv6Addr::new(0, 0, 0, 0, 0, 0, hi, lo),
        Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, hi, lo),
        Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, hi, lo),
        Ipv6Addr::new(0x64, 0xff9b, 1, a, b, c, hi, lo),
        Ipv6Addr::new(0x2002, hi, lo, a, b, c, d, 1),
        Ipv6Addr::new(0x2001, 0, hi, lo, a, b, !other_hi, !other_lo),
        Ipv6Addr::new(0x2001, 0, other_hi, other_lo, a, b, not_hi, not_lo),
        Ipv6Addr::new(a, b, c, d, 0, 0x5efe, hi, lo),
        Ipv6Addr::new(a, b, c, d, 0x200, 0x5efe, hi, lo),
    ]
}

fn halves(v4: Ipv4Addr) -> [u16; 2] {
    let [a, b, c, d] = v4.octets();
    [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
}

fn public(ip: IpAddr) -> bool {
    Guard::public_only()
        .check_address("x.test", SocketAddr::new(ip, 443))
        .is_ok()
}

proptest! {
    #[test]
    fn no_embedding_of_a_refused_ipv4_is_ever_accepted(
        v4 in not_public_v4(),
        other in any::<u32>().prop_map(Ipv4Addr::from),
        prefix in any::<[u16; 4]>(),
    ) {
        prop_assert!(!public(IpAddr::V4(v4)));
        for v6 in embedding_forms(v4, other, prefix) {
            prop_assert!(!public(IpAddr::V6(v6)), "{v6} embeds {v4}");
        }
    }

    #[test]
    fn every_spelling_of_an_address_is_treated_like_the_address(ip in any::<u32>()) {
        let v4 = Ipv4Addr::from(ip);
        let [a, b, c, d] = v4.octets();
        let g = Guard::public_only();
        let expected = g.check_host(&v4.to_string(), 443).is_ok();
        for host in [
            format!("{ip}"),
            format!("{ip:#x}"),
            format!("0{ip:o}"),
            format!("{a}.{}", ip & 0xff_ffff),
            format!("{a:#x}.{b}.{}", ip & 0xffff),
            format!("0{a:o}.{b:#x}.{c}.{d}"),
            format!("{v4}."),
            format!("[::ffff:{v4}]"),
        ] {
            prop_assert_eq!(g.check_host(&host, 443).is_ok(), expected, "{}", host);
        }
    }

    #[test]
    fn only_global_unicast_mapped_and_nat64_ipv6_is_ever_accepted(bits in any::<u128>()) {
        let v6 = Ipv6Addr::from(bits);
        let first = v6.segments()[0];
        if public(IpAddr::V6(v6)) {
            prop_assert!(
                (0x2000..=0x3fff).contains(&first) || v6.to_ipv4_mapped().is_some() || first == 0x64
            );
        }
    }

    #[test]
    fn no_form_of_a_denied_or_local_ipv4_is_ever_accepted(
        v4 in any::<u32>().prop_map(Ipv4Addr::from),
        prefix in 8u8..=32,
        other in any::<u32>().prop_map(Ipv4Addr::from),
        seed in any::<[u16; 4]>(),
    ) {
        let net = ipnet::Ipv4Net::new(v4, prefix).unwrap().trunc().to_string();
        let everything = ["0.0.0.0/0", "::/0"];
        let denying = guard_within(&[], &everything, &[&net]);
        let local = guard_within(&[&net], &[], &[]);
        let forms = embedding_forms(v4, other, seed).into_iter().map(IpAddr::V6);
        for ip in forms.chain([IpAddr::V4(v4)]) {
            let addr = SocketAddr::new(ip, 443);
            let refusal = denying.check_address("x.test", addr).unwrap_err();
            prop_assert_eq!(refusal.reason, RefusalReason::DeniedTarget, "{} is in {}", ip, net);
            prop_assert!(local.check_address("x.test", addr).is_err(), "{} is in {}", ip, net);
        }
    }

    #[test]
    fn a_denied_ipv6_network_is_refused_and_its_neighbour_is_not(
        bits in any::<u128>(),
        prefix in 1u8..=128,
    ) {
        let net = ipnet::Ipv6Net::new(Ipv6Addr::from(bits), prefix).unwrap().trunc();
        let g = guard_within(&[], &["0.0.0.0/0", "::/0"], &[&net.to_string()]);
        let check = |ip: Ipv6Addr| g.check_address("x.test", SocketAddr::new(ip.into(), 443));
        // A mapped address is IPv4, which IPv6 networks larger than ::ffff:0:0/96 do not match.
        prop_assume!(net.addr().to_ipv4_mapped().is_none() && prefix > 10);
        prop_assert!(check(net.addr()).is_err() && check(net.broadcast()).is_err());
        let neighbour = Ipv6Addr::from(u128::from(net.addr()) ^ (1 << (128 - prefix)));
        prop_assume!(neighbour.to_ipv4_mapped().is_none());
        prop_assert!(check(neighbour).is_ok());
    }

    #[test]
    fn no_text_makes_the_guard_panic(host in ".{0,80}", port in any::<u16>()) {
        let _ = Guard::public_only().check_host(&host, port);
        let _ = host.parse::<Target>();
    }
}
