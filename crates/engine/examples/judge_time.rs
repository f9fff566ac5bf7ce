//! How long judging takes: each bundle several times, and the one with the longest trace once more
//! with that trace grown to 50 MB.
//!
//!   cargo run --release -p plumbline-engine --example judge_time -- target/agreement/*.bundle

use std::error::Error;
use std::time::Instant;

use plumbline_bundle::Bundle;
use plumbline_engine::{evaluate, remembered_conditions};
use serde::Deserialize;
use serde_json::value::RawValue;

const RUNS: usize = 5;
const GROWN_BYTES: usize = 50_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut medians = Vec::new();
    let mut longest: Option<(String, Bundle)> = None;
    println!("{:<32}{:>10}{:>12}", "BUNDLE", "TRACE MB", "MEDIAN MS");
    for path in std::env::args().skip(1) {
        let bundle = Bundle::unpack(&std::fs::read(&path)?)?;
        let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
        let Some(ms) = judged_ms(&bundle) else {
            println!("{name:<32} does not say what it was gathered under");
            continue;
        };
        show(&name, &bundle, ms);
        medians.push(ms);
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
    if let Some(ms) = judged_ms(&bundle) {
        show(&format!("{name}, grown"), &bundle, ms);
    }
    Ok(())
}

fn show(name: &str, bundle: &Bundle, ms: f64) {
    let trace_mb = bundle.trace.len() as f64 / 1e6;
    println!("{name:<32}{trace_mb:>10.1}{ms:>12.1}");
}

fn judged_ms(bundle: &Bundle) -> Option<f64> {
    let conditions = remembered_conditions(bundle)?;
    let times = (0..RUNS).map(|_| {
        let conditions = conditions.clone();
        let started = Instant::now();
        let report = evaluate(bundle, conditions);
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        drop(report);
        ms
    });
    Some(median(times.collect()))
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
