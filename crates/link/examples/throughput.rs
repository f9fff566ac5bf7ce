//! Measures the throughput of an unlimited link, and compares emulated transfers with the closed
//! formula:
//!
//!   cargo run --release --example throughput
//!
//! Both use real sockets on loopback, so a busy machine affects the results.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumbline_link::{Guard, LineProfile, Link, LinkConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const REQUEST_BYTES: usize = 346;
const LINES: [(&str, f64, f64, f64); 4] = [
    ("mobileSlow4g", 1638.4, 750.0, 150.0),
    ("normal4g", 9000.0, 9000.0, 170.0),
    ("cable", 5000.0, 1000.0, 28.0),
    ("normal3gSlow", 400.0, 400.0, 400.0),
];

#[tokio::main]
async fn main() -> Result<()> {
    let server = serve().await?;
    unlimited(server).await?;
    println!("\nline            bytes   closed form     measured      diff");
    for (name, down_kbps, up_kbps, rtt_ms) in LINES {
        let profile = LineProfile {
            down_kbps: Some(down_kbps),
            up_kbps: Some(up_kbps),
            rtt_ms,
            loss_pct: 0.0,
        };
        let link = open(profile).await?;
        for bytes in [1_000, 10_000, 30_000, 100_000, 250_000] {
            let started_at = Instant::now();
            let mut stream = connect(link.address(), server).await?;
            fetch(&mut stream, bytes).await?;
            let measured = started_at.elapsed().as_secs_f64();
            let expected = closed_form_s(profile, bytes);
            let difference_pct = (measured / expected - 1.0) * 100.0;
            println!(
                "{name:<14} {bytes:>7} {expected:>11.3} s {measured:>10.3} s {difference_pct:>+8.1} %"
            );
        }
        link.close().await;
    }
    Ok(())
}

async fn unlimited(server: SocketAddr) -> Result<()> {
    const BYTES: u64 = 1 << 30;
    let link = open(LineProfile::UNLIMITED).await?;
    let mut direct = TcpStream::connect(server).await?;
    let mut linked = connect(link.address(), server).await?;
    for (name, stream) in [("direct", &mut direct), ("through the link", &mut linked)] {
        let started_at = Instant::now();
        fetch(stream, BYTES).await?;
        let gbit_s = BYTES as f64 * 8.0 / 1e9 / started_at.elapsed().as_secs_f64();
        println!("{name:<16} {gbit_s:6.2} Gbit/s");
    }
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..200 {
        let started_at = Instant::now();
        let mut stream = connect(link.address(), server).await?;
        fetch(&mut stream, 1000).await?;
        times.push(started_at.elapsed());
    }
    times.sort();
    println!(
        "connect and fetch 1 kB: median {:?}",
        times[times.len() / 2]
    );
    link.close().await;
    Ok(())
}

async fn open(profile: LineProfile) -> Result<Link> {
    let guard = Guard::new(vec!["127.0.0.0/8".parse()?]);
    let config = LinkConfig {
        max_bytes: u64::MAX,
        ..LinkConfig::new(profile, Arc::new(guard))
    };
    Ok(Link::open(config)?)
}

/// Starts a server that answers a request, which begins with a number, with that many bytes.
async fn serve() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let block = vec![0; 256 * 1024];
                let mut request = [0; REQUEST_BYTES];
                while stream.read_exact(&mut request).await.is_ok() {
                    let [a, b, c, d, e, f, g, h, ..] = request;
                    let mut left = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
                    while left > 0 {
                        let part = left.min(block.len() as u64);
                        if stream.write_all(&block[..part as usize]).await.is_err() {
                            return;
                        }
                        left -= part;
                    }
                }
            });
        }
    });
    Ok(address)
}

async fn connect(link: SocketAddr, server: SocketAddr) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(link).await?;
    stream.set_nodelay(true)?;
    let [high, low] = server.port().to_be_bytes();
    let request = [5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, high, low];
    stream.write_all(&request).await?;
    let mut response = [0; 12];
    stream.read_exact(&mut response).await?;
    match response[3] {
        0 => Ok(stream),
        reply => Err(format!("the link replied {reply}").into()),
    }
}

async fn fetch(stream: &mut TcpStream, bytes: u64) -> Result<()> {
    let mut request = [0; REQUEST_BYTES];
    request[..8].copy_from_slice(&bytes.to_be_bytes());
    stream.write_all(&request).await?;
    let mut buffer = vec![0; 256 * 1024];
    let mut left = bytes;
    while left > 0 {
        match stream.read(&mut buffer).await? as u64 {
            0 => return Err("the connection ended early".into()),
            read => left -= read,
        }
    }
    Ok(())
}

/// Returns the minimum duration of a transfer on an idle line: connection, request, slow start from
/// ten packets without pacing, then the line's rate.
fn closed_form_s(profile: LineProfile, bytes: u64) -> f64 {
    let byte_s = |kbps: Option<f64>| kbps.map_or(0.0, |kbps| 0.008 / kbps);
    let (up_s, down_s) = (byte_s(profile.up_kbps), byte_s(profile.down_kbps));
    let rtt_s = profile.rtt_ms / 1000.0;
    let packet_s = 1500.0 * down_s;
    let round_s = rtt_s + packet_s + 52.0 * up_s;
    let mut packets = (bytes as f64 / 1448.0).ceil();
    let last_bytes = bytes as f64 - (packets - 1.0) * 1448.0 + 52.0;
    let (mut window, mut slow_start_s) = (10.0, 0.0);
    while packets > window && window * packet_s < round_s {
        packets -= window;
        window *= 2.0;
        slow_start_s += round_s;
    }
    let connect_s = rtt_s + 60.0 * (up_s + down_s);
    let request_s = (REQUEST_BYTES as f64 + 104.0) * up_s + rtt_s;
    connect_s + request_s + slow_start_s + (packets - 1.0) * packet_s + last_bytes * down_s
}
