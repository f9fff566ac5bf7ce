//! Tests that every recorded page load has the metrics that Lighthouse computes for it. See
//! data/README.md.

use std::fs;
use std::path::{Path, PathBuf};

use plumbline_catalog::Mode;
use plumbline_engine::metrics::{Measured, measure};
use plumbline_engine::scoring::performance_score;
use plumbline_model::scoring::MetricKind;
use plumbline_trace::{ProtocolLog, Trace};
use serde_json::Value;

const METRICS: [(&str, MetricKind); 6] = [
    ("fcp", MetricKind::Fcp),
    ("lcp", MetricKind::Lcp),
    ("tbt", MetricKind::Tbt),
    ("cls", MetricKind::Cls),
    ("si", MetricKind::Si),
    ("tti", MetricKind::Tti),
];

/// Returns the loads sorted by name.
fn loads() -> Vec<(String, PathBuf)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut loads: Vec<_> = fs::read_dir(&data)
        .expect("the data directory")
        .filter_map(|entry| {
            let file = entry.expect("an entry").file_name().into_string().ok()?;
            Some((
                file.strip_suffix(".trace.json.gz")?.to_owned(),
                data.clone(),
            ))
        })
        .collect();
    loads.sort();
    loads
}

fn read(directory: &Path, name: &str, kind: &str) -> Vec<u8> {
    let file = directory.join(format!("{name}.{kind}"));
    fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn error_of(metric: MetricKind, measured: &Measured) -> Option<&'static str> {
    let value = match metric {
        MetricKind::Fcp => measured.fcp,
        MetricKind::Lcp => measured.lcp,
        MetricKind::Tbt => measured.tbt,
        MetricKind::Cls => measured.cls,
        MetricKind::Si => measured.si,
        MetricKind::Tti => measured.tti,
    };
    value.err().map(|error| error.code())
}

fn check(name: &str, measured: &Measured, lighthouse: &Value) {
    for (key, metric) in METRICS {
        let expected = &lighthouse[key];
        let Some(number) = expected.as_f64() else {
            assert_eq!(
                error_of(metric, measured),
                expected.as_str(),
                "{name}: {key}"
            );
            continue;
        };
        let value = measured
            .get(metric)
            .unwrap_or_else(|| panic!("{name}: {key} is missing, Lighthouse has {number}"));
        // Lighthouse rounds a Speed Index, and nothing else, to whole milliseconds.
        let tolerance = if metric == MetricKind::Si { 0.5 } else { 1e-6 };
        assert!(
            (value - number).abs() <= tolerance,
            "{name}: {key} is {value}, Lighthouse has {number}"
        );
    }
    let mode = match lighthouse["formFactor"].as_str() {
        Some("desktop") => Mode::Desktop,
        _ => Mode::Mobile,
    };
    assert_eq!(
        performance_score(mode, measured),
        lighthouse["performance"].as_f64(),
        "{name}: performance"
    );
}

#[test]
fn every_recorded_load_has_the_metrics_of_lighthouse() {
    let loads = loads();
    assert!(loads.len() >= 13, "only {} loads found", loads.len());
    for (name, directory) in loads {
        let lighthouse = serde_json::from_slice(&read(&directory, &name, "lighthouse.json"))
            .expect("Lighthouse's numbers");
        let trace =
            Trace::read(&read(&directory, &name, "trace.json.gz")).expect("a readable trace");
        let log =
            ProtocolLog::read(&read(&directory, &name, "log.json.gz")).expect("a readable log");
        check(&name, &measure(&trace, Some(&log)), &lighthouse);
        check(
            &format!("{name}, trace alone"),
            &measure(&trace, None),
            &lighthouse,
        );
    }
}
