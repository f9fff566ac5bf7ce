//! Fake agents at real servers: audits are started at a steady rate, and each agent leases, waits as
//! if it visited, and finishes. `bench/agents` starts the servers and reads the result.
//!
//! `agent_load KEY TOKEN AGENTS STARTS_PER_SECOND SECONDS VISIT_MS URL…`

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumbline_agent::{Audited, Hold, Next, Work};
use plumbline_remote::{RemoteWork, Server, Trust};
use plumbline_seam::Announcement;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

type Failure = Box<dyn Error + Send + Sync>;

/// Connections that start audits.
const STARTERS: u32 = 16;
/// After the last start, for what is unfinished.
const FINISH_WITHIN: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Seen {
    accepted: HashMap<String, Instant>,
    leased: HashMap<String, Instant>,
    finished: HashMap<String, u32>,
    finish_ms: Vec<f64>,
    lost: u32,
    failures: u32,
}

type Shared = Arc<Mutex<Seen>>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [key, token, agents, rate, seconds, visit_ms, urls @ ..] = &args[..] else {
        return Err("agent_load KEY TOKEN AGENTS RATE SECONDS VISIT_MS URL…".into());
    };
    let (agents, rate): (usize, u32) = (agents.parse()?, rate.parse()?);
    let seconds = Duration::from_secs(seconds.parse()?);
    let visit = Duration::from_millis(visit_ms.parse()?);
    let seen = Shared::default();
    for number in 0..agents {
        let url = &urls[number % urls.len()];
        let server = Server::new(url, token, &Trust::default())?;
        tokio::spawn(agent(server, visit, Arc::clone(&seen)));
    }
    let until = Instant::now() + seconds;
    let mut starters = Vec::new();
    for number in 0..STARTERS {
        let url = &urls[number as usize % urls.len()];
        let address: SocketAddr = url.trim_start_matches("http://").parse()?;
        let every = Duration::from_secs(1) * STARTERS / rate;
        let (key, seen) = (key.clone(), Arc::clone(&seen));
        starters.push(tokio::spawn(async move {
            starter(address, &key, every, until, &seen).await
        }));
    }
    let began = Instant::now();
    for starter in starters {
        starter.await??;
    }
    let end = Instant::now() + FINISH_WITHIN;
    let is_over = || {
        let seen = lock(&seen);
        seen.finished.len() >= seen.accepted.len()
    };
    while Instant::now() < end && !is_over() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("{}", summary(&lock(&seen), began.elapsed()));
    Ok(())
}

async fn agent(server: Server, visit: Duration, seen: Shared) -> Result<(), Failure> {
    let work = RemoteWork::new(
        server,
        Announcement {
            process: RemoteWork::process_name()?,
            location: "us-tx".to_owned(),
            chromium: "Chrome/0.0.0.0".to_owned(),
            host_index: Some(1000.0),
            slots: 1,
            version: "load".to_owned(),
        },
    );
    loop {
        let job = match work.next(0, Duration::from_secs(25)).await {
            Ok(Next::Job(job)) => job,
            Ok(_) => continue,
            Err(_) => {
                lock(&seen).failures += 1;
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let id = job.tracking_id.clone();
        lock(&seen).leased.insert(id.clone(), Instant::now());
        tokio::time::sleep(visit).await;
        let began = Instant::now();
        let handed_in = work.finish(&job, audited()?).await;
        let mut seen = lock(&seen);
        seen.finish_ms.push(ms(began.elapsed()));
        match handed_in {
            Ok(Hold::Held) => *seen.finished.entry(id).or_default() += 1,
            Ok(Hold::Lost) => seen.lost += 1,
            Err(_) => seen.failures += 1,
        }
    }
}

async fn starter(
    address: SocketAddr,
    key: &str,
    every: Duration,
    until: Instant,
    seen: &Shared,
) -> Result<(), Failure> {
    let order = json!({
        "url": "https://example.com/", "device": "mobile", "network": "normal4g",
        "location": "us-tx",
    })
    .to_string();
    let request = format!(
        "POST /v1/audit/start HTTP/1.1\r\nHost: load\r\nX-SVC-KEY: {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{order}",
        order.len()
    );
    let mut stream = TcpStream::connect(address).await?;
    let mut turns = tokio::time::interval(every);
    while Instant::now() < until {
        turns.tick().await;
        stream.write_all(request.as_bytes()).await?;
        let answer = answer(&mut stream).await?;
        let id = answer["trackingId"].as_str().ok_or("not accepted")?;
        lock(seen).accepted.insert(id.to_owned(), Instant::now());
    }
    Ok(())
}

/// One answer of a connection that stays open.
async fn answer(stream: &mut TcpStream) -> Result<Value, Failure> {
    let mut text = Vec::new();
    loop {
        if stream.read_buf(&mut text).await? == 0 {
            return Err("the server closed".into());
        }
        // The body is an object without strings that end so.
        if text.ends_with(b"}") {
            let whole = String::from_utf8(text)?;
            let body = whole.split_once("\r\n\r\n").ok_or("no body")?.1;
            return Ok(serde_json::from_str(body)?);
        }
    }
}

/// As large as a report with its checks.
fn audited() -> Result<Audited, Failure> {
    let report = serde_json::from_value(json!({
        "format": 1,
        "requestedUrl": "https://example.com/",
        "finalUrl": "https://example.com/",
        "conditions": {
            "device": { "id": "mobile", "name": "Mobile", "mode": "mobile" },
            "network": { "id": "normal4g", "name": "4G", "downKbps": 1.0, "upKbps": 1.0, "rttMs": 1.0 },
            "location": { "id": "us-tx", "name": "Dallas", "mode": "agent", "addedRttMs": 0.0 },
            "cpu": { "rate": 1.0, "deviceIndex": null, "hostIndex": null, "hostIndexAfter": null },
        },
        "scores": { "performance": 97 },
        "warnings": ["x".repeat(20_000)],
        "metrics": null, "error": null, "document": null, "browser": null,
    }))?;
    Ok(Audited {
        report,
        bundle: None,
        media: None,
    })
}

fn summary(seen: &Seen, took: Duration) -> Value {
    let waits = seen.accepted.iter().filter_map(|(id, accepted)| {
        let leased = seen.leased.get(id)?;
        Some(ms(leased.saturating_duration_since(*accepted)))
    });
    let mut waits: Vec<_> = waits.collect();
    let mut finishes = seen.finish_ms.clone();
    json!({
        "accepted": seen.accepted.len(),
        "finished": seen.finished.len(),
        "finishedTwice": seen.finished.values().filter(|times| **times > 1).count(),
        "lost": seen.lost,
        "failures": seen.failures,
        "auditsPerSecond": seen.finished.len() as f64 / took.as_secs_f64(),
        "acceptedToLeasedMs": { "p50": share(&mut waits, 0.5), "p99": share(&mut waits, 0.99) },
        "finishMs": { "p50": share(&mut finishes, 0.5), "p99": share(&mut finishes, 0.99) },
    })
}

fn share(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * share) as usize;
    values.get(at.min(values.len().checked_sub(1)?)).copied()
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn lock(seen: &Shared) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
