//! The networks of this machine's interfaces, on real interfaces with public addresses: in a
//! network namespace of the test's own, where no other machine can be reached.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::Arc;

use plumbline_link::{
    Guard, LineProfile, Link, LinkConfig, LinkError, Outcome, Reason, SystemResolver, Target,
    connect_guarded,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Set in the process that runs within the namespace.
const WITHIN: &str = "PLUMBLINE_TEST_WITHIN_NAMESPACE";

/// Every address of both networks leads back to this machine. That any address may be bound keeps
/// the kernel from saying which are its own, so that only their networks tell.
const SET_UP: &str = "PATH=$PATH:/usr/sbin:/sbin
    ip link set lo up
    ip address add 93.184.215.14/24 dev lo
    ip -6 address add 2a00:db9:5::14/64 dev lo nodad
    ip -6 route add local 2a00:db9:5::/64 dev lo
    echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind
    exec \"$0\" \"$@\"";

#[test]
fn what_shares_a_network_with_this_machine_is_not_reached() {
    if std::env::var_os(WITHIN).is_some() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        return runtime.block_on(within_namespace());
    }
    let output = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--net",
            "sh",
            "-e",
            "-c",
            SET_UP,
        ])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "what_shares_a_network_with_this_machine_is_not_reached",
        ])
        .env(WITHIN, "1")
        .output()
        .expect("unshare of util-linux");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("1 passed"), "{said}\n{complained}");
}

async fn within_namespace() {
    let v4 = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let v6 = TcpListener::bind("[::]:0").await.unwrap();
    let at = |ip: &str, listener: &TcpListener| {
        let port = listener.local_addr().unwrap().port();
        SocketAddr::new(ip.parse().unwrap(), port)
    };
    let near = [at("93.184.215.77", &v4), at("2a00:db9:5::77", &v6)];
    for address in near {
        TcpStream::connect(address)
            .await
            .expect("it can be reached without the guard");
    }
    v4.accept().await.unwrap();
    v6.accept().await.unwrap();

    for (allow, deny, expected) in [
        (&[][..], &[][..], Err(Reason::OwnNetwork)),
        (&["93.184.215.64/27", "2a00:db9:5::77"], &[], Ok(())),
        (
            &["0.0.0.0/0", "::/0"],
            &["93.184.215.77", "2a00:db9:5::/64"],
            Err(Reason::DeniedTarget),
        ),
    ] {
        for address in near {
            let guard = guard(allow).denying(targets(deny));
            let found = visit(guard.clone(), address).await;
            assert_eq!(found, expected, "visit of {address}, {allow:?}, {deny:?}");
            let found = webhook(&guard, address).await;
            assert_eq!(found, expected, "webhook to {address}, {allow:?}, {deny:?}");
        }
    }
    // The visit and the webhook that were allowed, and nobody else.
    for listener in [&v4, &v6] {
        for _ in 0..2 {
            listener.accept().await.unwrap();
        }
        let more = std::future::poll_fn(|context| {
            std::task::Poll::Ready(listener.poll_accept(context).is_ready())
        });
        assert!(!more.await, "somebody else came");
    }
}

fn targets(texts: &[&str]) -> Vec<Target> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn guard(allow: &[&str]) -> Guard {
    Guard::new(targets(allow))
}

async fn visit(guard: Guard, address: SocketAddr) -> Result<(), Reason> {
    let config = LinkConfig::new(LineProfile::UNLIMITED, Arc::new(guard));
    let link = Link::open(config).await.unwrap();
    let mut stream = TcpStream::connect(link.address()).await.unwrap();
    let mut request = vec![5, 1, 0, 5, 1, 0];
    match address.ip() {
        IpAddr::V4(v4) => {
            request.push(1);
            request.extend(v4.octets());
        }
        IpAddr::V6(v6) => {
            request.push(4);
            request.extend(v6.octets());
        }
    }
    request.extend(address.port().to_be_bytes());
    stream.write_all(&request).await.unwrap();
    let mut reply = [0; 12];
    stream.read_exact(&mut reply).await.unwrap();
    match link.outcome_for(&address.ip().to_string(), address.port()) {
        Some(Outcome::Connected) => Ok(()),
        Some(Outcome::Blocked(refusal)) => Err(refusal.reason),
        other => panic!("{other:?}"),
    }
}

async fn webhook(guard: &Guard, address: SocketAddr) -> Result<(), Reason> {
    let host = address.ip().to_string();
    match connect_guarded(guard, &SystemResolver, &host, address.port()).await {
        Ok(_) => Ok(()),
        Err(LinkError::Refused(refusal)) => Err(refusal.reason),
        Err(other) => panic!("{other}"),
    }
}
