//! All of Chromium goes through the link, and nothing of it anywhere else.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use plumbline_browser::visit;

use crate::rig::{launcher, open_link, plan, visit_through};
use crate::site::{Answer, Site};

/// A page that talks in every way a page can.
const TALKATIVE: &str = r#"<!doctype html><title>Talkative</title><link rel=icon href=/icon.png>
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
async fn whatever_a_page_does_the_browser_talks_to_the_link_alone() {
    let site = Site::serve_with(|address| {
        let page = TALKATIVE.replace("PORT", &address.port().to_string());
        [
            ("/", Answer::html(page)),
            ("/frame", Answer::html("<p>framed")),
            ("/style.css", Answer::of("text/css", "h1 { color: teal }")),
            (
                "/script.js",
                Answer::of("text/javascript", "fetch('/by-script')"),
            ),
            (
                "/worker.js",
                Answer::of("text/javascript", "fetch('/by-worker')"),
            ),
            (
                "/service-worker.js",
                Answer::of("text/javascript", "fetch('/by-service-worker')"),
            ),
        ]
        .into()
    })
    .await;
    let link = open_link(&["127.0.0.0/8"]).await;
    let browser = launcher().launch().await.unwrap();
    let watch = Watch::start(browser.process_id());
    visit(browser, &plan(&site.url("/"), &link), &|_| {})
        .await
        .unwrap();
    let peers = watch.stop();

    let asked: BTreeSet<String> = site.asked().into_iter().collect();
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
        assert!(asked.contains(path), "{path} is not among {asked:?}");
    }
    let hosts: BTreeSet<String> = link.records().into_iter().map(|r| r.host).collect();
    assert!(hosts.contains("framed.example"), "{hosts:?}");
    assert!(hosts.contains("preconnected.example"), "{hosts:?}");
    assert!(!peers.is_empty(), "the watch saw nothing");
    // To loopback only, and not to the site itself: what is left is the way to the link.
    for peer in &peers {
        assert!(peer.starts_with("tcp 127.0.0.1:"), "{peers:?}");
        assert_ne!(*peer, format!("tcp {}", site.address), "{peers:?}");
    }
}

#[tokio::test]
async fn a_page_with_sixty_hosts_waits_for_none_of_them_in_turn() {
    let site = Site::serve_with(|address| {
        let port = address.port();
        let images: String = (0..60)
            .map(|n| format!("<img src=http://h{n}.example:{port}/n{n}.png>"))
            .collect();
        let page = format!("<!doctype html><title>Sixty</title><h1>Hello</h1>{images}");
        [("/", Answer::html(page))].into()
    })
    .await;
    let link = open_link(&["127.0.0.0/8"]).await;
    visit_through(&link, &site.url("/")).await.unwrap();
    let asked: BTreeSet<String> = site.asked().into_iter().collect();
    assert_eq!(
        (0..60)
            .filter(|n| asked.contains(&format!("/n{n}.png")))
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

/// Looks at every socket of a browser's processes until it is stopped.
struct Watch {
    over: Arc<AtomicBool>,
    seen: Arc<Mutex<BTreeSet<String>>>,
    thread: std::thread::JoinHandle<()>,
}

impl Watch {
    fn start(group: u32) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let (is_over, found) = (Arc::clone(&over), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let peers = peers_of(group);
                found.lock().unwrap().extend(peers);
            }
        });
        Self { over, seen, thread }
    }

    fn stop(self) -> BTreeSet<String> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.seen.lock().unwrap().clone()
    }
}

/// Remote ends of a process group's internet sockets, UDP and both versions of IP included.
fn peers_of(group: u32) -> BTreeSet<String> {
    let inodes = sockets_of(group);
    let mut peers = BTreeSet::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        // The browser has a network of its own.
        let text = fs::read_to_string(format!("/proc/{group}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (Some(remote), Some(inode)) = (fields.get(2), fields.get(9)) else {
                continue;
            };
            // A socket that is bound or listens has no other end.
            if inodes.contains(*inode) && !remote.ends_with(":0000") {
                peers.insert(format!("{table} {}", readable(remote)));
            }
        }
    }
    peers
}

/// `0100007F:1F90` is 127.0.0.1:8080; IPv6 stays as it is, none is expected.
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
        // A process may end while it is looked at.
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
