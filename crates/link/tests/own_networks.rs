//! Tests the networks of this machine's interfaces with real interfaces that have public addresses,
//! in the test's own network namespace, from which no other machine can be reached.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::Arc;

use plumbline_link::{
    ConnectionOutcome, Guard, LineProfile, Link, LinkConfig, LinkError, RefusalReason,
    SystemResolver, Target, connect_guarded,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Environment variable that is set in the process inside the namespace.
const INSIDE_NAMESPACE: &str = "PLUMBLINE_TEST_WITHIN_NAMESPACE";

/// Script that routes every address of both networks to this machine. Any address may be bound, so
/// that the kernel does not reveal which are its own and only their networks remain.
const SET_UP: &str = "PATH=$PATH:/usr/sbin:/sbin
    ip link set lo up
    ip address add 93.184.215.14/24 dev lo
    ip -6 address add 2a00:db9:5::14/64 dev lo nodad
    ip -6 route add local 2a00:db9:5::/64 dev lo
    echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind
    exec \"$0\" \"$@\"";

#[test]
fn hosts_in_the_networks_of_this_machine_are_refused() {
    if std::env::var_os(INSIDE_NAMESPACE).is_some() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        return runtime.block_on(run_inside_namespace());
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
            "hosts_in_the_networks_of_this_machine_are_refused",
        ])
        .env(INSIDE_NAMESPACE, "1")
        .output()
        .expect("unshare of util-linux");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("1 passed"), "{stdout}\n{stderr}");
}

async fn run_inside_namespace() {
    let v4 = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let v6 = TcpListener::bind("[::]:0").await.unwrap();
    let at = |ip: &str, listener: &TcpListener| {
        let port = listener.local_addr().unwrap().port();
        SocketAddr::new(ip.parse().unwrap(), port)
    };
    let addresses = [at("93.184.215.77", &v4), at("2a00:db9:5::77", &v6)];
    for address in addresses {
        TcpStream::connect(address)
            .await
            .expect("the address is reachable without the guard");
    }
    v4.accept().await.unwrap();
    v6.accept().await.unwrap();

    for (allow, deny, expected) in [
        (&[][..], &[][..], Err(RefusalReason::OwnNetwork)),
        (&["93.184.215.64/27", "2a00:db9:5::77"], &[], Ok(())),
        (
            &["0.0.0.0/0", "::/0"],
            &["93.184.215.77", "2a00:db9:5::/64"],
            Err(RefusalReason::DeniedTarget),
        ),
    ] {
        for address in addresses {
            let guard = guard(allow).denying(targets(deny));
            let result = visit(guard.clone(), address).await;
            assert_eq!(result, expected, "visit of {address}, {allow:?}, {deny:?}");
            let result = webhook(&guard, address).await;
            assert_eq!(
                result, expected,
                "webhook to {address}, {allow:?}, {deny:?}"
            );
        }
    }
    // The allowed visit and the allowed webhook connected, and nothing else.
    for listener in [&v4, &v6] {
        for _ in 0..2 {
            listener.accept().await.unwrap();
        }
        let more = std::future::poll_fn(|context| {
            std::task::Poll::Ready(listener.poll_accept(context).is_ready())
        });
        assert!(!more.await, "an unexpected connection");
    }
}

fn targets(texts: &[&str]) -> Vec<Target> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn guard(allow: &[&str]) -> Guard {
    Guard::new(targets(allow))
}

async fn visit(guard: Guard, address: SocketAddr) -> Result<(), RefusalReason> {
    let config = LinkConfig::new(LineProfile::UNLIMITED, Arc::new(guard));
    let link = Link::open(config).unwrap();
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
    match link.records().pop().map(|record| record.outcome) {
        Some(ConnectionOutcome::Connected) => Ok(()),
        Some(ConnectionOutcome::Blocked(refusal)) => Err(refusal.reason),
        other => panic!("{other:?}"),
    }
}

async fn webhook(guard: &Guard, address: SocketAddr) -> Result<(), RefusalReason> {
    let host = address.ip().to_string();
    match connect_guarded(guard, &SystemResolver, &host, address.port()).await {
        Ok(_) => Ok(()),
        Err(LinkError::Refused(refusal)) => Err(refusal.reason),
        Err(other) => panic!("{other}"),
    }
}
