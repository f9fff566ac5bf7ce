//! The link through real sockets on loopback.

mod guarded;
mod streams;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{Guard, LineProfile, Link, LinkConfig, Resolution, Resolver};

/// Fast enough for tests, slow enough that bytes really travel.
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
    Link::open(config(profile, &["127.0.0.0/8"])).await.unwrap()
}

/// Asks the link for a connection; the error is the SOCKS reply.
async fn connect(link: &Link, host: &str, port: u16) -> Result<TcpStream, u8> {
    let mut stream = TcpStream::connect(link.address()).await.unwrap();
    let mut asks = vec![5, 1, 0, 5, 1, 0, 3, host.len() as u8];
    asks.extend(host.as_bytes());
    asks.extend(port.to_be_bytes());
    stream.write_all(&asks).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    match answer[3] {
        0 => Ok(stream),
        reply => Err(reply),
    }
}

async fn listen(ip: &str) -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((ip, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Sends back whatever it gets, on any number of connections.
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

/// Bytes in which every position can be told from its neighbours.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// Gives the answers it was told, one after the other, the last one for ever.
#[derive(Default)]
struct Told {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: AtomicUsize,
}

impl Told {
    fn new(answers: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let told = Self::default();
        for (host, answers) in answers {
            let answers = answers
                .iter()
                .map(|ips| ips.iter().map(|ip| ip.parse().expect(ip)).collect())
                .collect();
            told.answers
                .lock()
                .unwrap()
                .insert((*host).to_owned(), answers);
        }
        Arc::new(told)
    }

    fn asked(&self) -> usize {
        self.asked.load(Relaxed)
    }
}

impl Resolver for Told {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolution<'a> {
        self.asked.fetch_add(1, Relaxed);
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.get_mut(host) {
            None => Err(io::Error::other("no such host")),
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers[0].clone()),
        };
        Box::pin(async { answer })
    }
}
