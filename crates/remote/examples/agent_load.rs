//! Simulates agents at real servers. Audits are started at a constant rate; each agent leases,
//! waits as long as a visit would take, and finishes. `bench/agents` starts the servers and reads
//! the result.
//!
//! `agent_load KEY TOKEN AGENTS STARTS_PER_SECOND SECONDS VISIT_MS URL…`

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use plumbline_remote::{RemoteWork, Server, Trust};
use plumbline_seam::{Announcement, AuditOutput, LeaseState, NextJob, Work};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

type Failure = Box<dyn Error + Send + Sync>;

/// Connections that start audits.
const STARTERS: u32 = 16;
/// Time after the last start in which unfinished audits may finish.
const FINISH_DEADLINE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Record {
    accepted: HashMap<String, Instant>,
    leased: HashMap<String, Instant>,
    finished: HashMap<String, u32>,
    finish_ms: Vec<f64>,
    lost: u32,
    failures: u32,
}

type Shared = Arc<Mutex<Record>>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [key, token, agents, rate, seconds, visit_ms, urls @ ..] = &args[..] else {
        return Err("agent_load KEY TOKEN AGENTS RATE SECONDS VISIT_MS URL…".into());
    };
    let (agents, rate): (usize, u32) = (agents.parse()?, rate.parse()?);
    let seconds = Duration::from_secs(seconds.parse()?);
    let visit = Duration::from_millis(visit_ms.parse()?);
    let record = Shared::default();
    for number in 0..agents {
        let url = &urls[number % urls.len()];
        let server = Server::new(url, token, &Trust::default())?;
        tokio::spawn(agent(server, visit, Arc::clone(&record)));
    }
    let until = Instant::now() + seconds;
    let mut starters = Vec::new();
    for number in 0..STARTERS {
        let url = &urls[number as usize % urls.len()];
        let address: SocketAddr = url.trim_start_matches("http://").parse()?;
        let every = Duration::from_secs(1) * STARTERS / rate;
        let (key, record) = (key.clone(), Arc::clone(&record));
        starters.push(tokio::spawn(async move {
            starter(address, &key, every, until, &record).await
        }));
    }
    let began = Instant::now();
    for starter in starters {
        starter.await??;
    }
    let deadline = Instant::now() + FINISH_DEADLINE;
    let all_finished = || {
        let record = record.lock();
        record.finished.len() >= record.accepted.len()
    };
    while Instant::now() < deadline && !all_finished() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("{}", summary(&record.lock(), began.elapsed()));
    Ok(())
}

async fn agent(server: Server, visit: Duration, record: Shared) -> Result<(), Failure> {
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
        let job = match work.next_job(0, Duration::from_secs(25)).await {
            Ok(NextJob::Job(job)) => *job,
            Ok(_) => continue,
            Err(_) => {
                record.lock().failures += 1;
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let id = job.attempt.tracking_id.clone();
        record.lock().leased.insert(id.clone(), Instant::now());
        tokio::time::sleep(visit).await;
        let began = Instant::now();
        let result = work.finish(&job, output()?).await;
        let mut record = record.lock();
        record.finish_ms.push(ms(began.elapsed()));
        match result {
            Ok(LeaseState::Held) => *record.finished.entry(id).or_default() += 1,
            Ok(LeaseState::Lost) => record.lost += 1,
            Err(_) => record.failures += 1,
        }
    }
}

async fn starter(
    address: SocketAddr,
    key: &str,
    every: Duration,
    until: Instant,
    record: &Shared,
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
    let mut ticks = tokio::time::interval(every);
    while Instant::now() < until {
        ticks.tick().await;
        stream.write_all(request.as_bytes()).await?;
        let response = read_response(&mut stream).await?;
        let id = response["trackingId"].as_str().ok_or("not accepted")?;
        record.lock().accepted.insert(id.to_owned(), Instant::now());
    }
    Ok(())
}

/// Reads one response from a connection that stays open.
async fn read_response(stream: &mut TcpStream) -> Result<Value, Failure> {
    let mut text = Vec::new();
    loop {
        if stream.read_buf(&mut text).await? == 0 {
            return Err("the server closed the connection".into());
        }
        // The body is an object, and no string in it contains a brace.
        if text.ends_with(b"}") {
            let response = String::from_utf8(text)?;
            let body = response.split_once("\r\n\r\n").ok_or("no body")?.1;
            return Ok(serde_json::from_str(body)?);
        }
    }
}

/// Returns a report as large as one with its checks.
fn output() -> Result<AuditOutput, Failure> {
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
    Ok(AuditOutput {
        report,
        bundle: None,
        media: None,
        session: None,
    })
}

fn summary(record: &Record, took: Duration) -> Value {
    let waits = record.accepted.iter().filter_map(|(id, accepted)| {
        let leased = record.leased.get(id)?;
        Some(ms(leased.saturating_duration_since(*accepted)))
    });
    let mut waits: Vec<_> = waits.collect();
    let mut finishes = record.finish_ms.clone();
    json!({
        "accepted": record.accepted.len(),
        "finished": record.finished.len(),
        "finishedTwice": record.finished.values().filter(|times| **times > 1).count(),
        "lost": record.lost,
        "failures": record.failures,
        "auditsPerSecond": record.finished.len() as f64 / took.as_secs_f64(),
        "acceptedToLeasedMs": {
            "p50": percentile(&mut waits, 0.5), "p99": percentile(&mut waits, 0.99),
        },
        "finishMs": {
            "p50": percentile(&mut finishes, 0.5), "p99": percentile(&mut finishes, 0.99),
        },
    })
}

fn percentile(values: &mut [f64], fraction: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let index = (values.len() as f64 * fraction) as usize;
    values.get(index.min(values.len().checked_sub(1)?)).copied()
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
