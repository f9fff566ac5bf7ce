//! Measures the duration of an evaluation: each bundle several times, and the one with the longest
//! trace once more with that trace extended to 50 MB. The performance checks are also timed
//! separately: the time that they add after all other checks, and the slowest of them.
//!
//!   cargo run --release -p plumbline-engine --example judge_time -- target/agreement/*.bundle

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use plumbline_bundle::{Bundle, Record};
use plumbline_engine::facts::Facts;
use plumbline_engine::metrics::Measured;
use plumbline_engine::{evaluate, evaluate_with_media, registry};
use plumbline_model::category::CategoryId;
use plumbline_model::report::Conditions;
use serde::Deserialize;
use serde_json::value::RawValue;

const RUNS: usize = 5;
const EXTENDED_BYTES: usize = 50_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut medians = Vec::new();
    let mut longest: Option<(String, Bundle)> = None;
    println!(
        "Medians in ms: the whole report; of that, all checks and the performance checks; the report with report media."
    );
    println!(
        "{:<32}{:>10}{:>10}{:>10}{:>10}{:>10}  LONGEST",
        "BUNDLE", "TRACE MB", "REPORT", "CHECKS", "PERF", "EXHIBITS"
    );
    for path in std::env::args().skip(1) {
        let bundle = Bundle::unpack(&std::fs::read(&path)?)?;
        let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
        let Some(times) = Times::of(&bundle) else {
            println!("{name:<32} has no stored conditions");
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
    bundle.trace = extend(&bundle.trace)?;
    if let Some(times) = Times::of(&bundle) {
        times.show(&format!("{name}, extended"), &bundle);
    }
    Ok(())
}

struct Times {
    report_ms: f64,
    /// The time of all checks after the trace and the log have been parsed.
    checks_ms: f64,
    /// The time of the performance checks after all others have run.
    performance_ms: f64,
    longest: (&'static str, f64),
    media_ms: f64,
}

impl Times {
    fn of(bundle: &Bundle) -> Option<Self> {
        let conditions = Conditions::stored_in(bundle)?;
        let facts = || {
            let facts = Facts::new(bundle, conditions.device.mode);
            facts.insert(conditions.clone());
            // Parses the trace and the log.
            facts.get::<Measured>().ok();
            facts
        };
        Some(Self {
            report_ms: median_ms(|| (), |()| evaluate(bundle, conditions.clone())),
            checks_ms: median_ms(facts, |facts| registry::judge(&facts)),
            performance_ms: median_ms(
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
            media_ms: median_ms(
                || (),
                |()| evaluate_with_media(bundle, conditions.clone(), &AtomicBool::new(false)),
            ),
        })
    }

    fn show(&self, name: &str, bundle: &Bundle) {
        let trace_mb = bundle.trace.len() as f64 / 1e6;
        let Self {
            report_ms,
            checks_ms,
            performance_ms,
            longest: (longest, longest_ms),
            media_ms,
        } = self;
        println!(
            "{name:<32}{trace_mb:>10.1}{report_ms:>10.1}{checks_ms:>10.1}{performance_ms:>10.1}{media_ms:>10.1}  \
             {longest} {longest_ms:.1}"
        );
    }
}

/// Runs the checks of some categories and returns the milliseconds that each took.
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

/// Returns the trace with its complete events repeated after its end, like a page that stays busy.
fn extend(trace: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
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
    while bytes.len() < EXTENDED_BYTES {
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
