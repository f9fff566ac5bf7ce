//! Measures the throughput of a store: reads, submissions, leases and finishes per second, with
//! several numbers of concurrent callers and 100,000 stored audits.
//!
//! `cargo run --release -p plumbline-store --example store_load -- [postgres://…]` uses a temporary
//! SQLite file, or an empty database.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plumbline_store::{
    AuditOptions, FinishedAudit, Key, LeaseScope, NewAudit, Order, PostgresOptions, PostgresStore,
    SqliteStore, Store, Submission, Timestamp, random_text,
};

type Failure = Box<dyn Error + Send + Sync>;

const AUDITS: usize = 100_000;
/// Number of accounts that share the audits. Submissions of one account are serialised.
const ACCOUNTS: usize = 50;
/// Size of a report with its checks, without screenshots.
const REPORT_BYTES: usize = 20_000;
const NOW: Timestamp = Timestamp(1_700_000_000_000);
const LEASE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let store: Arc<dyn Store> = match std::env::args().nth(1) {
        Some(url) => Arc::new(PostgresStore::open(&url, PostgresOptions::default()).await?),
        None => Arc::new(SqliteStore::open(&directory.path().join("load.db"))?),
    };
    let mut accounts = Vec::new();
    for _ in 0..ACCOUNTS {
        accounts.push(store.create_account("load", u32::MAX, NOW).await?.id);
    }
    let key = Key::generate()?;
    store
        .add_key(&accounts[0], key.id(), key.digest(), None, NOW)
        .await?;
    let ids = (0..AUDITS)
        .map(|_| random_text(24))
        .collect::<Result<Vec<_>, _>>()?;
    let load = Load {
        store,
        accounts: accounts.into(),
        key_id: key.id().to_owned(),
        ids: ids.into(),
    };

    print("accept, filling", load.accept_all(256).await?);
    for callers in [1, 2, 16, 64, 256] {
        print("key + status", load.read(callers, 100_000).await?);
    }
    for (callers, times) in [(1, 500), (16, 8_000), (128, 20_000)] {
        print("accept", load.accept(callers, times).await?);
    }
    for (callers, times) in [(1, 500), (4, 2_000), (32, 8_000)] {
        print("lease + finish", load.work(callers, times).await?);
    }
    print(
        "key + status while others accept",
        load.read_amid_writes().await?,
    );
    Ok(())
}

#[derive(Clone)]
struct Load {
    store: Arc<dyn Store>,
    accounts: Arc<[String]>,
    key_id: String,
    ids: Arc<[String]>,
}

impl Load {
    fn audit(&self, n: usize, tracking_id: String) -> NewAudit {
        NewAudit {
            account_id: self.accounts[n % ACCOUNTS].clone(),
            audit_id: format!("r{tracking_id}"),
            tracking_id,
            order: Order {
                url: "https://shop.example/catalogue/shoes?colour=green&size=43".to_owned(),
                device: "desktop-1920x1080".to_owned(),
                network: "cable".to_owned(),
                location: "frankfurt".to_owned(),
                options: plumbline_store::VisitOptions::default(),
            },
            options: AuditOptions::default(),
            accepted_at: NOW,
        }
    }

    async fn accept_all(&self, callers: usize) -> Result<Figures, Failure> {
        let load = self.clone();
        repeat(callers, AUDITS, move |n| {
            let load = load.clone();
            async move {
                load.store
                    .submit(Submission::single(load.audit(n, load.ids[n].clone())))
                    .await?;
                Ok(())
            }
        })
        .await
    }

    async fn accept(&self, callers: usize, times: usize) -> Result<Figures, Failure> {
        let load = self.clone();
        repeat(callers, times, move |n| {
            let load = load.clone();
            async move {
                load.store
                    .submit(Submission::single(load.audit(n, random_text(24)?)))
                    .await?;
                Ok(())
            }
        })
        .await
    }

    async fn read(&self, callers: usize, times: usize) -> Result<Figures, Failure> {
        let load = self.clone();
        repeat(callers, times, move |n| {
            let load = load.clone();
            async move {
                // Spread over all audits: adjacent ones would share pages of the database.
                let n = n.wrapping_mul(7_919) % load.ids.len();
                load.store.key(&load.key_id).await?.ok_or("no key")?;
                load.store
                    .status(&load.accounts[n % ACCOUNTS], &load.ids[n])
                    .await?
                    .ok_or("no audit")?;
                Ok(())
            }
        })
        .await
    }

    async fn work(&self, callers: usize, times: usize) -> Result<Figures, Failure> {
        let load = self.clone();
        let report: Arc<str> = format!("\"{}\"", "x".repeat(REPORT_BYTES)).into();
        repeat(callers, times, move |_| {
            let (load, report) = (load.clone(), Arc::clone(&report));
            async move {
                let lease = load
                    .store
                    .lease(&LeaseScope::any_location("load"), NOW, LEASE)
                    .await?
                    .ok_or("no work")?;
                let finished = FinishedAudit {
                    report: report.to_string(),
                    error: None,
                    finished_at: NOW,
                    summary: None,
                };
                load.store.finish(&lease, finished).await?;
                Ok(())
            }
        })
        .await
    }

    async fn read_amid_writes(&self) -> Result<Figures, Failure> {
        let load = self.clone();
        let writing = tokio::spawn(async move { load.accept(8, 20_000).await });
        let figures = self.read(16, 100_000).await;
        writing.abort();
        figures
    }
}

struct Figures {
    callers: usize,
    times: usize,
    took: Duration,
    /// The sorted durations of single repetitions.
    each: Vec<Duration>,
}

/// Repeats `once` in a number of concurrent callers, each of which starts the next repetition when
/// one ends.
async fn repeat<F, R>(callers: usize, times: usize, once: F) -> Result<Figures, Failure>
where
    F: Fn(usize) -> R + Clone + Send + 'static,
    R: Future<Output = Result<(), Failure>> + Send,
{
    let next = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (next, once) = (Arc::clone(&next), once.clone());
            tokio::spawn(async move {
                let mut each = Vec::new();
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= times {
                        return Ok::<_, Failure>(each);
                    }
                    let begun = Instant::now();
                    once(n).await?;
                    each.push(begun.elapsed());
                }
            })
        })
        .collect();
    let mut each = Vec::with_capacity(times);
    for task in tasks {
        each.extend(task.await??);
    }
    let took = start.elapsed();
    each.sort_unstable();
    Ok(Figures {
        callers,
        times,
        took,
        each,
    })
}

fn print(operation: &str, figures: Figures) {
    let at = |share: usize| figures.each[(figures.each.len() - 1) * share / 1000];
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or("unknown");
    println!(
        "{operation:33} {:4} callers {:8.0}/s  p50 {:>9.3?}  p99 {:>9.3?}  max {:>9.3?}  resident {}",
        figures.callers,
        figures.times as f64 / figures.took.as_secs_f64(),
        at(500),
        at(990),
        at(1000),
        resident.trim(),
    );
}
