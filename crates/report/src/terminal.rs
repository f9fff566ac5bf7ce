//! A report for a person at a terminal: plain text, no colour codes, numbers aligned.

use std::fmt::Write;

use plumbline_engine::report::{LocationMode, Metric, Report};

/// The whole report as lines of text.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut out, report);
    out
}

fn write_report(out: &mut String, report: &Report) -> std::fmt::Result {
    let conditions = &report.conditions;
    writeln!(
        out,
        "{}",
        plain(report.final_url.as_deref().unwrap_or(&report.requested_url))
    )?;
    writeln!(out, "  {}", conditions.device.name)?;
    writeln!(out, "  {}", conditions.network.name)?;
    writeln!(out, "  {}", place(report))?;
    writeln!(out)?;
    if let Some(error) = &report.error {
        writeln!(
            out,
            "Not measured: {} ({})",
            plain(&error.message),
            error.code
        )?;
    }
    if let Some(metrics) = &report.metrics {
        let scores = &report.scores;
        for (name, score) in [
            ("Performance", scores.performance),
            ("Accessibility", scores.accessibility),
            ("SEO", scores.seo),
            ("Best practices", scores.best_practices),
            ("PWA", scores.pwa),
        ] {
            if let Some(score) = score {
                writeln!(out, "  {name:<26}{score:>7}")?;
            }
        }
        writeln!(out)?;
        for (name, metric) in [
            ("First Contentful Paint", metrics.fcp),
            ("Largest Contentful Paint", metrics.lcp),
            ("Speed Index", metrics.si),
            ("Total Blocking Time", metrics.tbt),
            ("Time to Interactive", metrics.tti),
        ] {
            writeln!(out, "  {name:<26}{:>7} ms", whole(metric))?;
        }
        let shift = metrics
            .cls
            .map_or("–".to_owned(), |m| format!("{:.3}", m.value));
        writeln!(out, "  {:<26}{shift:>7}", "Cumulative Layout Shift")?;
    }
    if !report.warnings.is_empty() {
        writeln!(out)?;
    }
    for warning in &report.warnings {
        writeln!(out, "  Note: {}", plain(warning))?;
    }
    Ok(())
}

fn whole(metric: Option<Metric>) -> String {
    metric.map_or("–".to_owned(), |metric| format!("{:.0}", metric.value))
}

fn place(report: &Report) -> String {
    let location = &report.conditions.location;
    match location.mode {
        LocationMode::Agent => location.name.clone(),
        LocationMode::Simulated => format!(
            "{} (simulated, {:+.0} ms round trip)",
            location.name, location.added_rtt_ms
        ),
    }
}

/// A page's own words must not steer the terminal.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}
