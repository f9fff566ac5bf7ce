//! `metrics`: prints the metrics of a trace file.

use std::fs;
use std::path::Path;

use plumbline_catalog::Mode;
use plumbline_engine::metrics::{self, Measured, MetricError};
use plumbline_engine::scoring;
use plumbline_trace::{ProtocolLog, Trace};
use serde_json::{Map, Value, json};

use crate::args::{FormFactor, MetricsArgs};
use crate::exit::Exit;
use crate::standard_output as out;

/// Runs `plumbline metrics`.
pub fn run(args: &MetricsArgs) -> Result<Exit, Exit> {
    let failed = |path: &Path, error: String| Exit::failed(format!("{}: {error}", path.display()));
    let bytes = |path: &Path| fs::read(path).map_err(|error| failed(path, error.to_string()));
    let text = bytes(&args.trace)?;
    let trace = Trace::read(&text).map_err(|error| failed(&args.trace, error.to_string()))?;
    let log = match &args.log {
        Some(path) => Some(
            ProtocolLog::read(&bytes(path)?).map_err(|error| failed(path, error.to_string()))?,
        ),
        None => None,
    };
    let measured = metrics::measure(&trace, log.as_ref());
    let mode = match args.form_factor {
        FormFactor::Mobile => Mode::Mobile,
        FormFactor::Desktop => Mode::Desktop,
    };
    out::line(format_args!("{:#}", as_json(mode, &measured)))?;
    Ok(Exit::Done)
}

/// Returns unrounded metrics as JSON. A metric that could not be computed is null, with a reason
/// under `errors`.
fn as_json(mode: Mode, measured: &Measured) -> Value {
    let mut out = Map::new();
    let mut errors = Map::new();
    let metrics: [(&str, Result<f64, MetricError>); 6] = [
        ("fcp", measured.fcp),
        ("lcp", measured.lcp),
        ("si", measured.si),
        ("tbt", measured.tbt),
        ("cls", measured.cls),
        ("tti", measured.tti),
    ];
    for (name, value) in metrics {
        match value {
            Ok(value) => out.insert(name.to_owned(), json!(value)),
            Err(error) => {
                errors.insert(
                    name.to_owned(),
                    json!({ "code": error.code(), "message": error.to_string() }),
                );
                out.insert(name.to_owned(), Value::Null)
            }
        };
    }
    out.insert(
        "performance".to_owned(),
        json!(scoring::performance_score(mode, measured)),
    );
    out.insert("formFactor".to_owned(), json!(mode));
    out.insert("firstPaint".to_owned(), json!(measured.first_paint_ms));
    out.insert(
        "domContentLoaded".to_owned(),
        json!(measured.dom_content_loaded_ms),
    );
    out.insert("load".to_owned(), json!(measured.load_ms));
    out.insert("traceEnd".to_owned(), json!(measured.trace_end_ms));
    if !errors.is_empty() {
        out.insert("errors".to_owned(), Value::Object(errors));
    }
    Value::Object(out)
}
