//! Renders a comparison of two pages for terminals, CI servers and documents.

use std::fmt::Write;

use plumbline_model::comparison::{Answer, ComparedFigure, Comparison};
use plumbline_model::media::ReportMedia;
use plumbline_model::report::Report;
use plumbline_model::scoring::MetricKind;
use serde::Serialize;

use crate::html::figures::bytes;
use crate::html::summary::{METRICS, value_text};
use crate::junit::{Case, CaseResult, write_suites};

/// The type of requests for scripts.
const SCRIPT: &str = "Script";

/// A comparison with the data that the pages differ by.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparedPages {
    /// The URLs of the two pages.
    pub urls: [String; 2],
    /// The device, network and location of all visits.
    pub conditions: String,
    pub made_at: String,
    #[serde(flatten)]
    pub comparison: Comparison,
    /// The requests and the work of each page, in the last pair of visits.
    pub evidence: Vec<EvidenceRow>,
}

/// A number that describes the load of both pages.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceRow {
    pub name: &'static str,
    pub values: [f64; 2],
    #[serde(skip)]
    texts: [String; 2],
}

/// The formats of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonFormat {
    Text,
    Json,
    Markdown,
    Junit,
}

/// Returns the requests and the work of two pages.
pub fn evidence(media: [&ReportMedia; 2]) -> Vec<EvidenceRow> {
    let row = |name, of: &dyn Fn(&ReportMedia) -> f64, text: fn(f64) -> String| {
        let values = media.map(of);
        EvidenceRow {
            name,
            values,
            texts: values.map(text),
        }
    };
    let whole = |value: f64| format!("{value:.0}");
    let size = |value: f64| bytes(value as u64);
    let time = |value: f64| value_text(MetricKind::Tbt, value);
    let sum = |media: &ReportMedia, is_counted: &dyn Fn(&str) -> bool| {
        let counted = media.requests.iter().filter(|it| is_counted(&it.kind));
        counted.map(|request| request.transfer_bytes).sum::<u64>() as f64
    };
    let requests = |media: &ReportMedia| (media.requests.len() + media.requests_left_out) as f64;
    let scripts = |media: &ReportMedia| {
        let scripts = media.requests.iter().filter(|it| it.kind == SCRIPT);
        scripts.count() as f64
    };
    let long_tasks = |media: &ReportMedia| {
        let thread = &media.main_thread;
        thread.long_task_count.max(thread.long_tasks.len()) as f64
    };
    let work = |media: &ReportMedia| media.main_thread.total_ms.iter().sum::<f64>();
    vec![
        row("Requests", &requests, whole),
        row("Transferred", &|media| sum(media, &|_| true), size),
        row("Scripts", &scripts, whole),
        row(
            "Transferred scripts",
            &|media| sum(media, &|kind| kind == SCRIPT),
            size,
        ),
        row("Main-thread work", &work, time),
        row("Long tasks", &long_tasks, whole),
    ]
}

/// Describes the conditions of a report in one line.
pub fn conditions_text(report: &Report) -> String {
    let conditions = &report.conditions;
    format!(
        "{}, {}, {}",
        conditions.device.name, conditions.network.name, conditions.location.name
    )
}

impl ComparedPages {
    /// Renders the comparison.
    pub fn render(&self, format: ComparisonFormat) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = match format {
            ComparisonFormat::Text => self.write_text(&mut text),
            ComparisonFormat::Markdown => self.write_markdown(&mut text),
            ComparisonFormat::Junit => self.write_junit(&mut text),
            ComparisonFormat::Json => {
                let json = serde_json::to_string_pretty(self).unwrap_or_default();
                writeln!(text, "{json}")
            }
        };
        text
    }

    /// Returns the answer in one sentence.
    pub fn headline(&self) -> String {
        let named = |answer: Answer| {
            let figures = self.comparison.figures.iter();
            let shown = figures.filter(|figure| figure.answer == answer);
            let names: Vec<&str> = shown.map(|figure| short_name(&figure.name)).collect();
            names.join(", ")
        };
        let (faster, slower) = (named(Answer::Faster), named(Answer::Slower));
        match (faster.is_empty(), slower.is_empty()) {
            (true, true) => "No difference shown.".to_owned(),
            (false, true) => format!("The second page is faster: {faster}."),
            (true, false) => format!("The second page is slower: {slower}."),
            (false, false) => {
                format!("The second page is faster in {faster}, and slower in {slower}.")
            }
        }
    }

    /// Returns the cells of each figure: its name, the medians, the shift, its interval, and the
    /// answer.
    fn rows(&self) -> Vec<[String; 6]> {
        let figures = self.comparison.figures.iter();
        figures.map(row).collect()
    }

    fn write_text(&self, out: &mut String) -> std::fmt::Result {
        let [first, second] = &self.urls;
        writeln!(out, "A  {first}\nB  {second}")?;
        writeln!(
            out,
            "   {}, {} pairs of visits\n",
            self.conditions, self.comparison.pairs
        )?;
        let header = ["", "A", "B", "B against A", "90 % interval", ""].map(str::to_owned);
        let rows: Vec<[String; 6]> = std::iter::once(header).chain(self.rows()).collect();
        write_columns(out, &rows)?;
        writeln!(out)?;
        let rows = self.evidence.iter().map(|row| {
            let [first, second] = row.texts.clone();
            [row.name.to_owned(), first, second]
        });
        write_columns(out, &rows.collect::<Vec<_>>())?;
        writeln!(out, "\n{}", self.headline())
    }

    fn write_markdown(&self, out: &mut String) -> std::fmt::Result {
        let [first, second] = self.urls.clone().map(|url| url.replace('|', "%7C"));
        writeln!(out, "**{}**\n", self.headline())?;
        writeln!(out, "- A: {first}\n- B: {second}")?;
        writeln!(
            out,
            "- {}, {} pairs of visits\n",
            self.conditions, self.comparison.pairs
        )?;
        writeln!(out, "| | A | B | B against A | 90 % interval | |")?;
        writeln!(out, "|---|---:|---:|---:|---:|---|")?;
        for cells in self.rows() {
            writeln!(out, "| {} |", cells.join(" | "))?;
        }
        writeln!(out, "\n| | A | B |\n|---|---:|---:|")?;
        for row in &self.evidence {
            writeln!(out, "| {} | {} |", row.name, row.texts.join(" | "))?;
        }
        Ok(())
    }

    fn write_junit(&self, out: &mut String) -> std::fmt::Result {
        let case = |figure: &ComparedFigure| {
            let [name, first, second, shift, interval, answer] = row(figure);
            let text = format!("A {first}, B {second}, {shift} ({interval}): {answer}");
            Case {
                name,
                result: match figure.answer {
                    Answer::Slower => CaseResult::Failed {
                        message: text,
                        text: self.headline(),
                    },
                    Answer::Faster | Answer::NoDifferenceShown => {
                        CaseResult::PassedWithOutput(text)
                    }
                },
            }
        };
        let cases = self.comparison.figures.iter().map(case).collect();
        let name = self.urls.join(" / ");
        write_suites(
            out,
            &[("comparison".to_owned(), cases)],
            &name,
            &self.made_at,
        )
    }
}

fn row(figure: &ComparedFigure) -> [String; 6] {
    let kind = METRICS
        .iter()
        .find(|(kind, ..)| kind.as_str() == figure.name);
    let value = |value: f64| match kind {
        Some((kind, ..)) => value_text(*kind, value),
        None => format!("{value:.1}"),
    };
    let change = |change: f64| {
        let sign = if change < 0.0 { "−" } else { "+" };
        if figure.is_relative {
            format!("{sign}{:.1} %", change.abs() * 100.0)
        } else {
            format!("{sign}{}", value(change.abs()))
        }
    };
    let interval = &figure.interval;
    [
        kind.map_or("Performance score", |(_, name, _)| *name)
            .to_owned(),
        value(figure.medians[0]),
        value(figure.medians[1]),
        change(figure.shift),
        format!("{} to {}", change(interval.low), change(interval.high)),
        match figure.answer {
            Answer::Faster => "faster",
            Answer::Slower => "slower",
            Answer::NoDifferenceShown => "no difference shown",
        }
        .to_owned(),
    ]
}

fn short_name(name: &str) -> &str {
    let metric = METRICS.iter().find(|(kind, ..)| kind.as_str() == name);
    metric.map_or("score", |(_, _, short)| short)
}

/// Writes rows of cells in aligned columns.
fn write_columns<const N: usize>(out: &mut String, rows: &[[String; N]]) -> std::fmt::Result {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    for row in rows {
        let mut line = String::from("  ");
        for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
            // Names and answers are texts, the columns between them are numbers.
            if index == 0 || index == 5 {
                write!(line, "{cell:<width$}  ")?;
            } else {
                write!(line, "{cell:>width$}  ")?;
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use plumbline_model::comparison::Interval;

    use super::*;

    fn figure(name: &str, medians: [f64; 2], shift: f64, answer: Answer) -> ComparedFigure {
        ComparedFigure {
            name: name.to_owned(),
            medians,
            shift,
            is_relative: name != "tbt" && name != "performance",
            interval: Interval {
                low: shift - 0.01,
                high: shift + 0.01,
                level: 0.9,
                basis: "pairs of visits".to_owned(),
            },
            answer,
        }
    }

    fn compared() -> ComparedPages {
        ComparedPages {
            urls: [
                "https://a.test/".to_owned(),
                "https://b.test/?x=<&|>".to_owned(),
            ],
            conditions: "Mobile, Slow 4G, Texas".to_owned(),
            made_at: "2026-11-17T10:00:00.000Z".to_owned(),
            comparison: Comparison {
                pairs: 6,
                figures: vec![
                    figure("lcp", [2000.0, 2200.0], 0.1, Answer::Slower),
                    figure("tbt", [0.0, 0.0], 0.0, Answer::NoDifferenceShown),
                    figure("performance", [80.0, 90.0], 10.0, Answer::Faster),
                ],
            },
            evidence: evidence([&ReportMedia::default(), &ReportMedia::default()]),
        }
    }

    #[test]
    fn the_text_has_a_line_for_each_figure_and_an_answer() {
        let text = compared().render(ComparisonFormat::Text);
        let lcp = text.lines().find(|line| line.contains("Largest")).unwrap();
        let words: Vec<&str> = lcp.split_whitespace().collect();
        let expected = "Largest Contentful Paint 2.00 s 2.20 s +10.0 % +9.0 % to +11.0 % slower";
        assert_eq!(words.join(" "), expected);
        assert!(text.contains("6 pairs of visits"), "{text}");
        let headline = "The second page is faster in score, and slower in LCP.";
        assert!(text.trim_end().ends_with(headline), "{text}");
        assert!(text.lines().all(|line| line == line.trim_end()));
    }

    #[test]
    fn a_comparison_without_differences_says_so() {
        let mut compared = compared();
        compared.comparison.figures.truncate(2);
        compared.comparison.figures.remove(0);
        assert_eq!(compared.headline(), "No difference shown.");
    }

    #[test]
    fn markdown_has_tables_that_a_url_cannot_break() {
        let text = compared().render(ComparisonFormat::Markdown);
        // Numbers and units do not break.
        let text = text.replace('\u{a0}', " ");
        let row = "| Largest Contentful Paint | 2.00 s | 2.20 s |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("x=<&%7C>"), "{text}");
    }

    #[test]
    fn only_a_slower_figure_fails_in_junit() {
        let text = compared().render(ComparisonFormat::Junit);
        assert!(text.contains(r#"tests="3" failures="1""#), "{text}");
        assert!(text.contains("https://b.test/?x=&lt;&amp;|&gt;"), "{text}");
    }

    #[test]
    fn json_has_the_figures_with_their_intervals() {
        let json: serde_json::Value =
            serde_json::from_str(&compared().render(ComparisonFormat::Json)).unwrap();
        assert_eq!(json["pairs"], 6);
        assert_eq!(json["figures"][0]["answer"], "slower");
        assert_eq!(json["figures"][0]["interval"]["level"], 0.9);
        assert_eq!(json["evidence"][0]["name"], "Requests");
    }
}
