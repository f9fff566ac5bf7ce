//! Renders a report as text for a terminal.

mod fixes;
mod profile;

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use plumbline_bundle::{Failure, FailureCode};
use plumbline_model::field::{FieldKind, RecordScope};
use plumbline_model::interval::PERFORMANCE;
use plumbline_model::report::{LocationMode, Metrics, Report};
use plumbline_model::scoring::MetricKind;

use crate::html::environment::runs_text;
use crate::html::figures::Grade;
use crate::html::recording::recording_text;
use crate::html::responsiveness::{control_text, grade_of_rating};
use crate::html::summary::{
    METRICS, interval_text, intervals_summary, metric, range_text, score_interval_text, value_text,
};
use crate::html::{cache_summary, largest_content_node};

/// Whether the text contains escape sequences for colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colors {
    Ansi,
    None,
}

impl Colors {
    fn heading(self) -> Style {
        self.style(Style::new().bold())
    }

    /// Returns the colour of a score from 0 to 100, with the thresholds of the report page.
    fn score(self, score: u8) -> Style {
        let color = match score {
            90.. => AnsiColor::Green,
            50.. => AnsiColor::Yellow,
            _ => AnsiColor::Red,
        };
        self.style(color.on_default())
    }

    fn style(self, style: Style) -> Style {
        match self {
            Self::Ansi => style,
            Self::None => Style::new(),
        }
    }
}

/// Renders a report as lines of text.
pub fn render(report: &Report, colors: Colors) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut out, report, colors);
    out
}

fn write_report(out: &mut String, report: &Report, colors: Colors) -> std::fmt::Result {
    let conditions = &report.conditions;
    let url = plain(report.final_url.as_deref().unwrap_or(&report.requested_url));
    let heading = colors.heading();
    writeln!(out, "{heading}{url}{heading:#}")?;
    writeln!(out, "  {}", conditions.device.name)?;
    writeln!(out, "  {}", conditions.network.name)?;
    writeln!(out, "  {}", location(report))?;
    if let Some(replay) = &conditions.replay {
        writeln!(out, "  Recording {}", plain(&recording_text(replay)))?;
    }
    writeln!(out)?;
    if let Some(url) = report.redirected_to() {
        let (requested, url) = (plain(&report.requested_url), plain(url));
        writeln!(
            out,
            "Redirected: {requested} redirects to {url}, which was measured.\n"
        )?;
    }
    if let Some(error) = &report.error {
        writeln!(out, "{}", not_measured(error))?;
    }
    if let Some(metrics) = &report.metrics {
        write_scores(out, report, colors)?;
        if let Some(runs) = &report.runs {
            writeln!(out, "  {:<26}   {}", "Runs", runs_text(runs))?;
        }
        if let Some(summary) = intervals_summary(&report.intervals) {
            let summary = summary.replace('\u{a0}', " ");
            writeln!(out, "  {:<26}   {summary}", "Intervals (in brackets)")?;
        }
        writeln!(out)?;
        for (kind, name, _) in METRICS {
            write_metric(out, report, metrics, (kind, name), colors)?;
        }
        if let Some(node) = largest_content_node(report) {
            writeln!(out, "  {:<26}{}", "Largest content", plain(&node.snippet))?;
        }
        if let Some(cache) = &report.cache {
            let summary = cache_summary(cache).replace('\u{a0}', " ");
            writeln!(out, "  {:<26}{summary}", "Warm cache")?;
        }
    }
    write_responsiveness(out, report, colors)?;
    write_flow(out, report, colors)?;
    profile::write(out, report)?;
    write_field(out, report)?;
    fixes::write(out, report, colors)?;
    let notes: Vec<String> = notes(report).collect();
    if !notes.is_empty() {
        writeln!(out)?;
    }
    for note in notes {
        writeln!(out, "  Note: {}", plain(&note))?;
    }
    Ok(())
}

/// Returns the reason why a page was not measured, and the flag with which it would be.
pub fn not_measured(error: &Failure) -> String {
    let reason = format!("Not measured: {} ({})", plain(&error.message), error.code);
    match error.code {
        FailureCode::HttpError => {
            format!("{reason}\nTo measure the page that was sent, add: --allow-error-status")
        }
        _ => reason,
    }
}

/// Writes the scores in Lighthouse's order, with that of PWA last.
fn write_scores(out: &mut String, report: &Report, colors: Colors) -> std::fmt::Result {
    let scores = &report.scores;
    for (name, score) in [
        ("Performance", scores.performance),
        ("Accessibility", scores.accessibility),
        ("Best practices", scores.best_practices),
        ("SEO", scores.seo),
    ] {
        write_score(out, report, (name, score), colors)?;
    }
    for category in &report.categories {
        if let Some(fraction) = category.fraction {
            let style = colors.score(fraction.percentage());
            let (name, text) = (category.id.title(), fraction.to_string());
            writeln!(out, "  {name:<26}{style}{text:>7}{style:#}")?;
        }
    }
    write_score(out, report, ("PWA", scores.pwa), colors)
}

/// Writes the score of a category if it has one. That of performance has an interval.
fn write_score(
    out: &mut String,
    report: &Report,
    (name, score): (&str, Option<u8>),
    colors: Colors,
) -> std::fmt::Result {
    let Some(score) = score else {
        return Ok(());
    };
    let style = colors.score(score);
    write!(out, "  {name:<26}{style}{score:>7}{style:#}")?;
    let interval = report.intervals.get(PERFORMANCE);
    if let Some(interval) = interval.filter(|_| name == "Performance") {
        let text = score_interval_text(score, interval).replace('\u{a0}', " ");
        write!(out, "  ({text})")?;
    }
    writeln!(out)
}

/// Writes the value of a metric, its grade, its interval, and its range over several runs.
fn write_metric(
    out: &mut String,
    report: &Report,
    metrics: &Metrics,
    (kind, name): (MetricKind, &str),
    colors: Colors,
) -> std::fmt::Result {
    let Some(metric) = metric(metrics, kind) else {
        let reason = metrics.missing.get(kind.as_str());
        let reason = reason.map_or(String::new(), |reason| format!("  {reason}"));
        return writeln!(out, "  {name:<26}{:>7}{}", "–", plain(&reason));
    };
    let value = value_text(kind, metric.value).replace('\u{a0}', " ");
    let style = colors.score((metric.score * 100.0).round() as u8);
    let grade = Grade::of_metric(Some(metric)).label();
    write!(out, "  {name:<26}{value:>7}  {style}{grade}{style:#}")?;
    let interval = interval_text(&report.intervals, kind);
    if let Some(interval) = interval {
        write!(out, "  ({})", interval.replace('\u{a0}', " "))?;
    }
    let runs = report.runs.as_ref();
    if let Some(range) = runs.and_then(|runs| range_text(runs, kind)) {
        write!(out, "  {}", range.replace('\u{a0}', " "))?;
    }
    writeln!(out)
}

/// Writes the longest interaction of the inputs after the load, if there were any.
fn write_responsiveness(out: &mut String, report: &Report, colors: Colors) -> std::fmt::Result {
    let Some(responsiveness) = &report.responsiveness else {
        return Ok(());
    };
    let name = "Interaction to Next Paint";
    if let (Some(ms), Some(rating)) = (responsiveness.inp_ms, responsiveness.rating) {
        let value = format!("{ms:.0} ms");
        let grade = grade_of_rating(rating);
        let style = colors.score(match grade {
            Grade::Good => 100,
            Grade::Middling => 50,
            Grade::Poor | Grade::Unknown => 0,
        });
        let grade = grade.label();
        write!(
            out,
            "\n  {name:<26}{value:>7}  {style}{grade}{style:#} in the lab"
        )?;
        match responsiveness.worst() {
            Some(worst) => writeln!(out, ", {}", plain(&control_text(worst)))?,
            None => writeln!(out)?,
        }
    }
    if let Some(error) = &responsiveness.records.error {
        let error = plain(error);
        writeln!(
            out,
            "  Interactions could not be measured completely: {error}"
        )?;
    }
    Ok(())
}

/// Writes the figures of each measured step, if there are any.
fn write_flow(out: &mut String, report: &Report, colors: Colors) -> std::fmt::Result {
    let Some(flow) = &report.flow else {
        return Ok(());
    };
    let heading = colors.heading();
    writeln!(out, "\n  {heading}User flow{heading:#}")?;
    for (index, step) in flow.steps.iter().enumerate() {
        let (number, title) = (index + 1, plain(&step.title));
        writeln!(out, "  {number}. {title} ({})", step.kind.as_str())?;
        if let Some(error) = &step.error {
            writeln!(out, "     failed: {}", plain(error))?;
            continue;
        }
        let inp = step.interaction.as_ref().map(|timing| timing.duration_ms);
        let times = [
            ("INP", inp),
            ("FCP", step.fcp_ms),
            ("LCP", step.lcp_ms),
            ("TBT", Some(step.tbt_ms)),
        ];
        let mut figures: Vec<String> = times
            .into_iter()
            .filter_map(|(name, ms)| Some(format!("{name} {:.0} ms", ms?)))
            .collect();
        figures.push(format!("CLS {:.3}", step.cls));
        writeln!(out, "     {}", figures.join(", "))?;
    }
    if let Some(error) = &flow.error {
        writeln!(out, "  The flow is not complete: {}", plain(error))?;
    }
    Ok(())
}

/// Writes the field data, if there is any. Other formats also contain the reason why there is none.
fn write_field(out: &mut String, report: &Report) -> std::fmt::Result {
    let Some(field) = &report.field_data else {
        return Ok(());
    };
    let record = match field.record {
        RecordScope::Url => "the page",
        RecordScope::Origin => "its origin",
    };
    let device = field.form_factor.as_str();
    writeln!(
        out,
        "\n  Field data, 75th percentile of {record}, {device}:"
    )?;
    for (name, kind) in [
        ("First Contentful Paint", FieldKind::Fcp),
        ("Largest Contentful Paint", FieldKind::Lcp),
        ("Interaction to Next Paint", FieldKind::Inp),
        ("Time to First Byte", FieldKind::Ttfb),
        ("First Input Delay", FieldKind::Fid),
    ] {
        if let Some(metric) = field.metrics.get(kind) {
            writeln!(out, "  {name:<26}{:>7.0} ms", metric.p75)?;
        }
    }
    if let Some(cls) = field.metrics.cls {
        writeln!(out, "  {:<26}{:>7.2}", "Cumulative Layout Shift", cls.p75)?;
    }
    Ok(())
}

fn notes(report: &Report) -> impl Iterator<Item = String> {
    let cpu = &report.conditions.cpu;
    let limited = cpu.limited_by_host && report.error.is_none();
    let limited = limited.then(|| {
        let indexes = cpu.device_index.zip(cpu.host_index.or(cpu.nominal_index));
        let indexes = indexes.map_or(String::new(), |(device, host)| {
            format!(" (CPU index {device} against {host:.0})")
        });
        format!("The device is faster than this machine{indexes}, so the CPU was not slowed down.")
    });
    limited.into_iter().chain(report.warnings.iter().cloned())
}

fn location(report: &Report) -> String {
    let location = &report.conditions.location;
    match location.mode {
        LocationMode::Agent | LocationMode::Requested => location.label(),
        LocationMode::Simulated => format!(
            "{} (simulated, {:+.0} ms round trip)",
            location.name, location.added_rtt_ms
        ),
    }
}

/// Replaces control characters, so that a page cannot control the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests;
