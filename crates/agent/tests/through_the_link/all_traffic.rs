//! All of Chromium's traffic goes through the link.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use plumbline_browser::visit;

use crate::rig::{launcher, open_link, plan, visit_through};
use crate::site::{Response, Site};

/// A page that uses every kind of connection that a page can open.
const ALL_KINDS: &str = r#"<!doctype html><title>All kinds</title><link rel=icon href=/icon.png>
    <link rel=preconnect href="http://preconnected.example:PORT"><link rel=dns-prefetch href="//prefetched.example">
    <link rel=stylesheet href=/style.css><h1>Hello</h1><img src=/picture.png><iframe src="http://framed.example:PORT/frame"></iframe>
    <script src=/script.js></script>
    <script>
      fetch('/fetched');
      new WebSocket('ws://' + location.host + '/socket');
      new Worker('/worker.js');
      new RTCPeerConnection({iceServers: [{urls: 'stun:stun.example:3478'}]}).createDataChannel('x');
      navigator.serviceWorker?.register('/service-worker.js');
    </script>"#;

#[tokio::test]
async fn the_browser_connects_to_the_link_only() {
    let site = Site::serve_with(|address| {
        let page = ALL_KINDS.replace("PORT", &address.port().to_string());
        [
            ("/", Response::html(page)),
            ("/frame", Response::html("<p>framed")),
            (
                "/style.css",
                Response::new("text/css", "h1 { color: teal }"),
            ),
            (
                "/script.js",
                Response::new("text/javascript", "fetch('/by-script')"),
            ),
            (
                "/worker.js",
                Response::new("text/javascript", "fetch('/by-worker')"),
            ),
            (
                "/service-worker.js",
                Response::new("text/javascript", "fetch('/by-service-worker')"),
            ),
        ]
        .into()
    })
    .await;
    let link = open_link(&["127.0.0.0/8"]).await;
    let browser = launcher().launch().await.unwrap();
    let monitor = SocketMonitor::start(browser.process_id());
    visit(browser, &plan(&site.url("/"), &link), &|_| {})
        .await
        .unwrap();
    let peers = monitor.stop();

    let requested: BTreeSet<String> = site.requested_paths().into_iter().collect();
    for path in [
        "/style.css",
        "/script.js",
        "/picture.png",
        "/icon.png",
        "/fetched",
        "/socket",
        "/frame",
        "/by-script",
        "/by-worker",
        "/by-service-worker",
    ] {
        assert!(
            requested.contains(path),
            "{path} is not among {requested:?}"
        );
    }
    let hosts: BTreeSet<String> = link.records().into_iter().map(|r| r.host).collect();
    assert!(hosts.contains("framed.example"), "{hosts:?}");
    assert!(hosts.contains("preconnected.example"), "{hosts:?}");
    assert!(!peers.is_empty(), "the monitor saw no socket");
    // All peers are on loopback and none is the site itself, so they are the link.
    for peer in &peers {
        assert!(peer.starts_with("tcp 127.0.0.1:"), "{peers:?}");
        assert_ne!(*peer, format!("tcp {}", site.address), "{peers:?}");
    }
}

#[tokio::test]
async fn connections_to_sixty_hosts_are_opened_at_the_same_time() {
    let site = Site::serve_with(|address| {
        let port = address.port();
        let images: String = (0..60)
            .map(|n| format!("<img src=http://h{n}.example:{port}/n{n}.png>"))
            .collect();
        let page = format!("<!doctype html><title>Sixty</title><h1>Hello</h1>{images}");
        [("/", Response::html(page))].into()
    })
    .await;
    let link = open_link(&["127.0.0.0/8"]).await;
    visit_through(&link, &site.url("/")).await.unwrap();
    let requested: BTreeSet<String> = site.requested_paths().into_iter().collect();
    assert_eq!(
        (0..60)
            .filter(|n| requested.contains(&format!("/n{n}.png")))
            .count(),
        60
    );
    let records = link.records();
    let most_at_once = records
        .iter()
        .map(|one| {
            let over = |other: &&plumbline_link::ConnectionRecord| {
                let at = one.requested_at;
                other.requested_at <= at && other.ended_at.is_none_or(|ended_at| ended_at > at)
            };
            records.iter().filter(over).count()
        })
        .max();
    // Older browsers opened 32 connections to one proxy and queued the rest.
    assert!(most_at_once > Some(50), "{most_at_once:?}");
}

/// Records the peers of all sockets of a browser's processes until it is stopped.
struct SocketMonitor {
    stop: Arc<AtomicBool>,
    peers: Arc<Mutex<BTreeSet<String>>>,
    thread: std::thread::JoinHandle<()>,
}

impl SocketMonitor {
    fn start(group: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let peers: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let (is_stopped, all_peers) = (Arc::clone(&stop), Arc::clone(&peers));
        let thread = std::thread::spawn(move || {
            while !is_stopped.load(Ordering::Relaxed) {
                let peers = peers_of(group);
                all_peers.lock().unwrap().extend(peers);
            }
        });
        Self {
            stop,
            peers,
            thread,
        }
    }

    fn stop(self) -> BTreeSet<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.peers.lock().unwrap().clone()
    }
}

/// Returns the peers of a process group's internet sockets, TCP and UDP, IPv4 and IPv6.
fn peers_of(group: u32) -> BTreeSet<String> {
    let inodes = sockets_of(group);
    let mut peers = BTreeSet::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        // The browser has its own network namespace.
        let text = fs::read_to_string(format!("/proc/{group}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (Some(remote), Some(inode)) = (fields.get(2), fields.get(9)) else {
                continue;
            };
            // A socket that is only bound, or listens, has no peer.
            if inodes.contains(*inode) && !remote.ends_with(":0000") {
                peers.insert(format!("{table} {}", readable(remote)));
            }
        }
    }
    peers
}

/// Converts an address of `/proc/net`: `0100007F:1F90` is 127.0.0.1:8080. IPv6 is left in
/// hexadecimal, because none is expected.
fn readable(hex: &str) -> String {
    let (address, port) = hex.split_once(':').unwrap();
    let port = u16::from_str_radix(port, 16).unwrap();
    match u32::from_str_radix(address, 16) {
        Ok(v4) => format!("{}:{port}", std::net::Ipv4Addr::from(v4.swap_bytes())),
        Err(_) => format!("[{address}]:{port}"),
    }
}

fn sockets_of(group: u32) -> BTreeSet<String> {
    let mut inodes = BTreeSet::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let in_group = fields.split_whitespace().nth(2) == Some(group.to_string().as_str());
        if !in_group {
            continue;
        }
        // A process may end while its files are read.
        for fd in fs::read_dir(entry.path().join("fd"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let target = fs::read_link(fd.path()).unwrap_or_default();
            if let Some(inode) = target
                .to_str()
                .and_then(|t| t.strip_prefix("socket:[")?.strip_suffix(']'))
            {
                inodes.insert(inode.to_owned());
            }
        }
    }
    inodes
}
