//! How long judging takes: each bundle several times, and the one with the longest trace once more
//! with that trace grown to 50 MB. What costs time is timed apart: what it adds when all else has been judged, and which
//! of its checks takes longest.
//!
//!   cargo run --release -p plumbline-engine --example judge_time -- target/agreement/*.bundle

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use plumbline_bundle::Bundle;
use plumbline_engine::category::CategoryId;
use plumbline_engine::facts::Facts;
use plumbline_engine::metrics::Measured;
use plumbline_engine::{evaluate, evaluate_with_exhibits, registry, remembered_conditions};
use serde::Deserialize;
use serde_json::value::RawValue;

const RUNS: usize = 5;
const GROWN_BYTES: usize = 50_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut medians = Vec::new();
    let mut longest: Option<(String, Bundle)> = None;
    println!(
        "Medians in ms: the whole report; of that, all checks, and what costs time; the report with what pages show."
    );
    println!(
        "{:<32}{:>10}{:>10}{:>10}{:>10}{:>10}  LONGEST",
        "BUNDLE", "TRACE MB", "REPORT", "CHECKS", "COSTS", "SHOWN"
    );
    for path in std::env::args().skip(1) {
        let bundle = Bundle::unpack(&std::fs::read(&path)?)?;
        let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
        let Some(times) = Times::of(&bundle) else {
            println!("{name:<32} does not say what it was gathered under");
            continue;
        };
        times.show(&name, &bundle);
        medians.push(times.report_ms);
        let so_far = longest.as_ref().map_or(0, |(_, b)| b.trace.len());
        if bundle.trace.len() > so_far {
            longest = Some((name, bundle));
        }
    }
    let Some((name, mut bundle)) = longest else {
        return Err("usage: judge_time BUNDLE…".into());
    };
    println!(
        "{} bundles: median {:.0} ms",
        medians.len(),
        median(medians)
    );
    bundle.trace = grown(&bundle.trace)?;
    if let Some(times) = Times::of(&bundle) {
        times.show(&format!("{name}, grown"), &bundle);
    }
    Ok(())
}

struct Times {
    report_ms: f64,
    /// Everything that is judged, once the trace and the log are read.
    checks_ms: f64,
    /// What costs time, once everything else is judged.
    costs_ms: f64,
    longest: (&'static str, f64),
    shown_ms: f64,
}

impl Times {
    fn of(bundle: &Bundle) -> Option<Self> {
        let conditions = remembered_conditions(bundle)?;
        let facts = || {
            let facts = Facts::new(bundle, conditions.device.mode);
            facts.tell(conditions.clone());
            // Reads the trace and the log.
            facts.get::<Measured>().ok();
            facts
        };
        Some(Self {
            report_ms: median_ms(|| (), |()| evaluate(bundle, conditions.clone())),
            checks_ms: median_ms(facts, |facts| registry::judge(&facts)),
            costs_ms: median_ms(
                || {
                    let facts = facts();
                    run(&facts, |category| category != CategoryId::Performance);
                    facts
                },
                |facts| run(&facts, |category| category == CategoryId::Performance),
            ),
            longest: {
                let facts = facts();
                run(&facts, |category| category != CategoryId::Performance);
                let took = run(&facts, |category| category == CategoryId::Performance);
                let longest = took.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
                longest.unwrap_or_default()
            },
            shown_ms: median_ms(
                || (),
                |()| evaluate_with_exhibits(bundle, conditions.clone(), &AtomicBool::new(false)),
            ),
        })
    }

    fn show(&self, name: &str, bundle: &Bundle) {
        let trace_mb = bundle.trace.len() as f64 / 1e6;
        let Self {
            report_ms,
            checks_ms,
            costs_ms,
            longest: (longest, longest_ms),
            shown_ms,
        } = self;
        println!(
            "{name:<32}{trace_mb:>10.1}{report_ms:>10.1}{checks_ms:>10.1}{costs_ms:>10.1}{shown_ms:>10.1}  \
             {longest} {longest_ms:.1}"
        );
    }
}

/// Runs the checks of some categories; each with the milliseconds that it took.
fn run(facts: &Facts, is_wanted: impl Fn(CategoryId) -> bool) -> Vec<(&'static str, f64)> {
    let wanted = registry::categories()
        .into_iter()
        .filter(|category| is_wanted(category.id));
    wanted
        .flat_map(|category| category.entries)
        .map(|entry| {
            let started = Instant::now();
            drop((entry.check.run)(facts));
            (entry.check.id, started.elapsed().as_secs_f64() * 1000.0)
        })
        .collect()
}

fn median_ms<P, T>(prepare: impl Fn() -> P, run: impl Fn(P) -> T) -> f64 {
    let times = (0..RUNS).map(|_| {
        let prepared = prepare();
        let started = Instant::now();
        let result = run(prepared);
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        drop(result);
        ms
    });
    median(times.collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The same trace with its ordinary work repeated behind its end, as a page that stays busy has it.
fn grown(trace: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    #[derive(Deserialize)]
    struct Trace<'a> {
        #[serde(borrow, rename = "traceEvents")]
        events: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Work {
        ph: String,
        ts: u64,
    }
    let events = serde_json::from_slice::<Trace>(trace)?.events;
    let work: Vec<(u64, &str)> = events
        .iter()
        .filter_map(|event| {
            let read: Work = serde_json::from_str(event.get()).ok()?;
            (read.ph == "X").then_some((read.ts, event.get()))
        })
        .collect();
    let first = work
        .iter()
        .map(|(ts, _)| *ts)
        .min()
        .ok_or("the trace has no work")?;
    let last = work
        .iter()
        .map(|(ts, _)| *ts)
        .max()
        .ok_or("the trace has no work")?;
    let mut bytes = trace
        .strip_suffix(b"]}")
        .ok_or("the trace has another form")?
        .to_vec();
    let mut shift_us = 0;
    while bytes.len() < GROWN_BYTES {
        shift_us += last - first + 1_000_000;
        for (ts, event) in &work {
            let (now, then) = (format!("\"ts\":{ts}"), format!("\"ts\":{}", ts + shift_us));
            bytes.push(b',');
            bytes.extend(event.replacen(&now, &then, 1).bytes());
        }
    }
    bytes.extend(b"]}");
    Ok(bytes)
}
