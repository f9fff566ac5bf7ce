//! Tests of the link with real sockets on loopback.

mod guarded;
mod streams;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{ConnectionOutcome, Guard, LineProfile, Link, LinkConfig, Resolution, Resolver};

/// A line that is fast enough for tests, and slow enough that packets take time.
const QUICK_LINE: LineProfile = LineProfile {
    down_kbps: Some(200_000.0),
    up_kbps: Some(100_000.0),
    rtt_ms: 2.0,
    loss_pct: 0.0,
};

const BOTH_LINES: [LineProfile; 2] = [LineProfile::UNLIMITED, QUICK_LINE];

fn config(profile: LineProfile, allow: &[&str]) -> LinkConfig {
    let allow = allow.iter().map(|a| a.parse().expect(a)).collect();
    LinkConfig::new(profile, Arc::new(Guard::new(allow)))
}

async fn open(profile: LineProfile) -> Link {
    Link::open(config(profile, &["127.0.0.0/8"])).unwrap()
}

/// Requests a connection through the link; the error is the SOCKS reply.
async fn connect(link: &Link, host: &str, port: u16) -> Result<TcpStream, u8> {
    let mut stream = TcpStream::connect(link.address()).await.unwrap();
    let mut request = vec![5, 1, 0, 5, 1, 0, 3, host.len() as u8];
    request.extend(host.as_bytes());
    request.extend(port.to_be_bytes());
    stream.write_all(&request).await.unwrap();
    let mut response = [0; 12];
    stream.read_exact(&mut response).await.unwrap();
    match response[3] {
        0 => Ok(stream),
        reply => Err(reply),
    }
}

/// Returns the outcome of the last attempt to connect to this host and port.
fn outcome_for(link: &Link, host: &str, port: u16) -> Option<ConnectionOutcome> {
    let mut records = link.records().into_iter().rev();
    let record = records.find(|record| record.host == host && record.port == port);
    record.map(|record| record.outcome)
}

async fn listen(ip: &str) -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((ip, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Starts a server that returns all bytes it receives, on any number of connections.
async fn echo_server() -> SocketAddr {
    let (listener, address) = listen("127.0.0.1").await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    address
}

/// Returns bytes that differ from position to position.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// A resolver that returns the given responses of a host in order, and then repeats the last one.
#[derive(Default)]
struct ScriptedResolver {
    responses: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    lookups: AtomicUsize,
}

impl ScriptedResolver {
    fn new(responses: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let resolver = Self::default();
        for (host, responses) in responses {
            let responses = responses
                .iter()
                .map(|ips| ips.iter().map(|ip| ip.parse().expect(ip)).collect())
                .collect();
            let mut all = resolver.responses.lock().unwrap();
            all.insert((*host).to_owned(), responses);
        }
        Arc::new(resolver)
    }

    fn lookups(&self) -> usize {
        self.lookups.load(Relaxed)
    }
}

impl Resolver for ScriptedResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolution<'a> {
        self.lookups.fetch_add(1, Relaxed);
        let mut all = self.responses.lock().unwrap();
        let response = match all.get_mut(host) {
            None => Err(io::Error::other("no such host")),
            Some(responses) if responses.len() > 1 => Ok(responses.remove(0)),
            Some(responses) => Ok(responses[0].clone()),
        };
        Box::pin(async { response })
    }
}
