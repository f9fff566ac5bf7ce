//! Prints the metrics of a trace file for manual inspection: `metrics TRACE [LOG]`.

use std::error::Error;

use plumbline_catalog::Mode;
use plumbline_engine::metrics::{MetricError, measure};
use plumbline_engine::scoring::performance_score;
use plumbline_trace::{ProtocolLog, Trace};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = std::env::args().skip(1);
    let trace_file = files.next().ok_or("usage: metrics TRACE [LOG]")?;
    let trace = Trace::read(&std::fs::read(trace_file)?)?;
    let log = match files.next() {
        Some(log_file) => Some(ProtocolLog::read(&std::fs::read(log_file)?)?),
        None => None,
    };
    let measured = measure(&trace, log.as_ref());
    let shown = |metric: Result<f64, MetricError>| match metric {
        Ok(value) => json!(value),
        Err(error) => Value::from(error.code()),
    };
    let exchanges = log
        .as_ref()
        .map_or(&trace.exchanges, |log| &log.exchanges)
        .iter();
    let json = json!({
        "url": trace.navigation.url,
        "fcp": shown(measured.fcp),
        "lcp": shown(measured.lcp),
        "cls": shown(measured.cls),
        "tbt": shown(measured.tbt),
        "tti": shown(measured.tti),
        "si": shown(measured.si),
        "mobile": performance_score(Mode::Mobile, &measured),
        "desktop": performance_score(Mode::Desktop, &measured),
        "domContentLoaded": measured.dom_content_loaded_ms,
        "load": measured.load_ms,
        "requests": exchanges.filter(|exchange| !exchange.is_web_socket).count(),
        "screenshots": trace.screenshots.len(),
        "tasks": trace.tasks.all.len(),
        "shifts": trace.shifts.all.len(),
    });
    println!("{json:#}");
    Ok(())
}
