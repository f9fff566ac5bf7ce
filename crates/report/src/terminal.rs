//! Renders a report as text for a terminal.

mod profile;

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use plumbline_model::field::{FieldKind, RecordScope};
use plumbline_model::interval::PERFORMANCE;
use plumbline_model::report::{LocationMode, Metrics, Report};
use plumbline_model::scoring::MetricKind;

use crate::html::figures::Grade;
use crate::html::responsiveness::{control_text, grade_of_rating};
use crate::html::summary::{
    METRICS, interval_text, intervals_summary, metric, score_interval_text, value_text,
};
use crate::html::{cache_summary, largest_content_node, plain_fixes};

/// The most fixes listed.
const MAX_FIXES: usize = 5;

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
    writeln!(out)?;
    if let Some(url) = report.redirected_to() {
        let (requested, url) = (plain(&report.requested_url), plain(url));
        writeln!(
            out,
            "Redirected: {requested} redirects to {url}, which was measured.\n"
        )?;
    }
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
                let style = colors.score(score);
                write!(out, "  {name:<26}{style}{score:>7}{style:#}")?;
                let interval = report.intervals.get(PERFORMANCE);
                match interval.filter(|_| name == "Performance") {
                    Some(interval) => writeln!(out, "  ({})", score_interval_text(interval))?,
                    None => writeln!(out)?,
                }
            }
        }
        for category in &report.categories {
            if let Some(fraction) = category.fraction {
                let style = colors.score(fraction.percentage());
                let (name, text) = (category.id.title(), fraction.to_string());
                writeln!(out, "  {name:<26}{style}{text:>7}{style:#}")?;
            }
        }
        if let Some(runs) = &report.runs {
            let (chosen, count) = (runs.chosen, runs.count);
            writeln!(
                out,
                "  {:<26}{count:>7}, run {chosen} shown (median)",
                "Runs"
            )?;
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
    write_fixes(out, report, colors)?;
    let notes: Vec<String> = notes(report).collect();
    if !notes.is_empty() {
        writeln!(out)?;
    }
    for note in notes {
        writeln!(out, "  Note: {}", plain(&note))?;
    }
    Ok(())
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
    let text = |value: f64| value_text(kind, value).replace('\u{a0}', " ");
    let style = colors.score((metric.score * 100.0).round() as u8);
    let (value, grade) = (text(metric.value), Grade::of_metric(Some(metric)).label());
    write!(out, "  {name:<26}{value:>7}  {style}{grade}{style:#}")?;
    let interval = interval_text(&report.intervals, kind);
    if let Some(interval) = interval {
        write!(out, "  ({})", interval.replace('\u{a0}', " "))?;
    }
    if let Some((min, max)) = report.runs.as_ref().and_then(|runs| runs.range(kind)) {
        write!(out, "  {} to {} in all runs", text(min), text(max))?;
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

/// Writes the failed checks to fix first, with their gains.
fn write_fixes(out: &mut String, report: &Report, colors: Colors) -> std::fmt::Result {
    let fixes = plain_fixes(report);
    if fixes.is_empty() {
        return Ok(());
    }
    let heading = colors.heading();
    writeln!(out, "\n  {heading}What to fix first{heading:#}")?;
    for (number, fix) in (1..=MAX_FIXES).zip(fixes) {
        let gains = fix.gains.join(", ");
        writeln!(out, "  {number}. {} ({gains})", plain(fix.title))?;
        if let Some(place) = fix.place {
            writeln!(out, "     {}", plain(&place))?;
        }
        if let Some(overlaps) = fix.overlaps {
            writeln!(out, "     {}", plain(&overlaps))?;
        }
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
        format!(
            "The device is faster than this machine (CPU index {} against {:.0}), so the CPU was not \
             slowed down.",
            cpu.device_index.unwrap_or_default(),
            cpu.host_index.unwrap_or_default()
        )
    });
    limited.into_iter().chain(report.warnings.iter().cloned())
}

fn location(report: &Report) -> String {
    let location = &report.conditions.location;
    match location.mode {
        LocationMode::Agent => location.label(),
        LocationMode::Simulated => format!(
            "{} (simulated, {:+.0} ms round trip)",
            location.name, location.added_rtt_ms
        ),
    }
}

/// Replaces control characters, so that a page cannot control the terminal.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use plumbline_bundle::{Failure, FailureCode, InteractionRecords};
    use plumbline_catalog::Mode;
    use plumbline_model::report::{
        Conditions, CpuConditions, DeviceConditions, LocationConditions, Metric, Metrics,
        NetworkConditions, Report, TracedMetrics, View,
    };

    use super::*;
    use crate::testing::agentic_browsing;

    fn report() -> Report {
        let conditions = Conditions {
            device: DeviceConditions {
                id: "mobile".to_owned(),
                name: "Phone (412x823)".to_owned(),
                mode: Mode::Mobile,
            },
            network: NetworkConditions {
                id: "cable".to_owned(),
                name: "Cable".to_owned(),
                down_kbps: 5000.0,
                up_kbps: 1000.0,
                rtt_ms: 151.0,
                isolation: None,
            },
            location: LocationConditions {
                id: "eu".to_owned(),
                name: "Frankfurt, Germany".to_owned(),
                mode: LocationMode::Simulated,
                added_rtt_ms: 123.0,
                is_stated: Some(true),
            },
            cpu: CpuConditions {
                rate: 1.0,
                ..CpuConditions::default()
            },
            state: None,
            steps: Vec::new(),
            consent: None,
            view: View::First,
            session: None,
            replay: None,
        };
        let failure = Failure::new(FailureCode::NoPaint, "Nothing was painted.");
        Report::failed("https://example.com/", conditions, failure)
    }

    #[test]
    fn a_page_that_could_not_be_measured_has_a_reason() {
        let text = render(&report(), Colors::None);
        assert!(text.contains("Not measured: Nothing was painted. (NO_PAINT)"));
        assert!(text.contains("Frankfurt, Germany (simulated, +123 ms round trip)"));
    }

    #[test]
    fn the_longest_interaction_is_one_line_with_its_control() {
        let records = serde_json::json!({
            "controls": 1, "error": "Too slow.",
            "interactions": [{
                "kind": "menu", "name": "Shop\u{1b}", "selector": "#m", "snippet": "<button>",
                "timing": {
                    "input": "tap", "event": "click", "durationMs": 304.0, "inputDelayMs": 4.0,
                    "processingMs": 280.0, "presentationDelayMs": 20.0,
                },
            }],
        });
        let records: InteractionRecords = serde_json::from_value(records).unwrap();
        let report = Report {
            responsiveness: Some(Box::new(records.into())),
            ..report()
        };
        let text = render(&report, Colors::None);
        let line = "  Interaction to Next Paint  304 ms  needs improvement in the lab, Menu “Shop\u{fffd}”\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("Interactions could not be measured completely: Too slow."));
    }

    #[test]
    fn each_measured_step_has_a_line_with_its_figures() {
        let step = |title: &str, error: Option<&str>| {
            serde_json::json!({
                "title": title, "kind": "navigation", "url": "", "settledMs": 900.0, "requests": 1,
                "transferBytes": 1, "longTasks": 0, "tbtMs": 40.4, "cls": 0.01, "fcpMs": 800.0,
                "error": error,
            })
        };
        let steps = [
            step("go to /a\u{1b}", None),
            step("press Enter", Some("no field")),
        ];
        let records = serde_json::json!({ "steps": steps });
        let report = Report {
            flow: Some(serde_json::from_value(records).unwrap()),
            ..report()
        };
        let text = render(&report, Colors::None);
        let lines = "  1. go to /a\u{fffd} (navigation)\n     FCP 800 ms, TBT 40 ms, CLS 0.010\n  \
                     2. press Enter (navigation)\n     failed: no field\n";
        assert!(text.contains(lines), "{text}");
    }

    #[test]
    fn a_missing_metric_is_a_dash_and_control_characters_are_replaced() {
        let none = None;
        let measured = Report {
            error: None,
            metrics: Some(Metrics {
                fcp: Some(Metric {
                    value: 1234.4,
                    score: 0.9,
                }),
                lcp: none,
                tbt: none,
                cls: none,
                si: none,
                tti: none,
                missing: Default::default(),
                as_traced: TracedMetrics::default(),
            }),
            final_url: Some("https://example.com/\u{1b}[31m".to_owned()),
            ..report()
        };
        let text = render(&measured, Colors::None);
        assert!(
            text.contains("First Contentful Paint     1.23 s  good\n"),
            "{text}"
        );
        assert!(
            text.contains("Largest Contentful Paint        –\n"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(!text.contains("– ms"), "{text}");
    }

    #[test]
    fn agentic_browsing_is_shown_by_its_passed_checks() {
        let mut report = crate::testing::report();
        assert!(!render(&report, Colors::None).contains("Agentic browsing"));
        report.categories.push(agentic_browsing());
        let text = render(&report, Colors::None);
        assert!(
            text.contains("  Agentic browsing              2/3\n"),
            "{text}"
        );
        assert!(
            !text.contains("agent-accessibility-tree"),
            "it has no points to gain"
        );
    }

    #[test]
    fn intervals_and_what_to_fix_first_are_shown() {
        let mut measured = Report {
            error: None,
            metrics: Some(Metrics {
                fcp: None,
                lcp: None,
                tbt: None,
                cls: None,
                si: None,
                tti: None,
                missing: Default::default(),
                as_traced: TracedMetrics::default(),
            }),
            categories: serde_json::from_value(serde_json::json!([{
                "id": "seo", "title": "SEO", "score": 50, "checks": [
                    check("document-title", "Document has no title", "fail"),
                    check("meta-description", "Document has a description", "pass"),
                ],
            }]))
            .unwrap(),
            ..report()
        };
        measured.scores.performance = Some(95);
        measured.intervals = crate::testing::intervals();
        let text = render(&measured, Colors::None);
        assert!(!text.contains("Runs"), "{text}");
        for expected in [
            "  Performance                    95  (94 to 100)\n",
            "  Intervals (in brackets)      90 %, from the visits of this audit\n",
            "\n  What to fix first\n  1. Document has no title (+50 points)\n",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(!text.contains("has a description"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        let text = render(&measured, Colors::Ansi);
        assert!(text.contains("\u{1b}[32m     95\u{1b}[0m"), "{text:?}");
    }

    #[test]
    fn the_range_of_several_runs_and_the_line_of_a_fix_are_shown() {
        let mut report = crate::testing::report();
        report.final_url = Some("https://example.com/".to_owned());
        report.metrics.as_mut().unwrap().lcp = Some(Metric {
            value: 1300.0,
            score: 0.99,
        });
        let mut faster = report.clone();
        faster.metrics.as_mut().unwrap().lcp.as_mut().unwrap().value = 1250.0;
        let mut failed = check("errors-in-console", "Errors in the console", "fail");
        failed["details"] = serde_json::json!({ "kind": "console", "items": [{
            "text": "x is not defined", "source": "exception", "url": "https://example.com/a.js",
            "line": 11, "column": 4,
        }] });
        report.categories = serde_json::from_value(serde_json::json!([{
            "id": "seo", "title": "SEO", "score": 50, "checks": [failed],
        }]))
        .unwrap();
        report.intervals = crate::testing::intervals();
        report.runs = Some(plumbline_model::runs::spread(
            &[report.clone(), faster],
            2,
            0,
        ));
        let text = render(&report, Colors::None);
        for expected in [
            "  Runs                            2, run 1 shown (median)\n",
            "  Largest Contentful Paint   1.30 s  good  (1.90 s to 2.10 s)  1.25 s to 1.30 s in all runs\n",
            "  Cumulative Layout Shift     0.012  good  0.012 to 0.012 in all runs\n",
            "  1. Errors in the console (+100 points)\n     /a.js:12:5\n",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    fn check(id: &str, title: &str, verdict: &str) -> serde_json::Value {
        serde_json::json!({
            "id": id, "title": title, "verdict": verdict, "weight": 1.0,
            "score": f64::from(u8::from(verdict == "pass")), "group": "seo-content",
            "why": "", "fix": "",
        })
    }
}
