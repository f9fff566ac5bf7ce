//! Renders a comparison of two pages for terminals, CI servers and documents.

use std::fmt::Write;

use plumbline_model::comparison::{
    Answer, ComparedFigure, ComparedPages, DifferentRequest, EvidenceRow, EvidenceUnit,
};
use plumbline_model::report::Report;
use plumbline_model::scoring::MetricKind;
use serde::Serialize;

use crate::contract::iso8601_ms;
use crate::html::figures::bytes;
use crate::html::recording::recording_text;
use crate::html::summary::{METRICS, value_text};
use crate::junit::{Case, CaseResult, write_suites};
use crate::terminal::plain;

/// A comparison with the conditions of its visits.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonReport<'a> {
    /// The device, network and location of all visits.
    pub conditions: String,
    pub made_at: String,
    #[serde(flatten)]
    pub compared: &'a ComparedPages,
}

/// The formats of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonFormat {
    Text,
    Json,
    Markdown,
    Junit,
}

impl ComparisonFormat {
    pub const ALL: [Self; 4] = [Self::Text, Self::Json, Self::Markdown, Self::Junit];

    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Markdown => "markdown",
            Self::Junit => "junit",
        }
    }

    /// Returns the format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns the type of a file in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Json => "application/json",
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Junit => "application/xml",
        }
    }
}

impl<'a> ComparisonReport<'a> {
    /// Returns the comparison of a report, which was made at `made_at_ms` (since 1970); `None` if
    /// the report has none.
    pub fn of(report: &'a Report, made_at_ms: i64) -> Option<Self> {
        let conditions = &report.conditions;
        Some(Self {
            conditions: format!(
                "{}, {}, {}",
                conditions.device.name,
                conditions.network.name,
                conditions.location.label()
            ),
            made_at: iso8601_ms(made_at_ms),
            compared: report.comparison.as_deref()?,
        })
    }

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

    fn rows(&self) -> Vec<[String; 6]> {
        let figures = self.compared.comparison.figures.iter();
        figures.map(figure_cells).collect()
    }

    fn request_rows(&self) -> Vec<[String; 3]> {
        self.compared.requests.iter().map(request_cells).collect()
    }

    /// Returns for each page its letter, its URL, and notes: that it redirects to another page, and
    /// the recording that was visited.
    fn pages(&self) -> [(&'static str, &str, Vec<String>); 2] {
        let page = |index: usize| {
            let target = self.compared.redirected_to[index].as_ref();
            let redirect = target.map(|url| format!("redirects to {url}, which was measured"));
            let replay = self.compared.replays[index].as_ref();
            let recording = replay.map(|replay| format!("recording {}", recording_text(replay)));
            let notes = redirect.into_iter().chain(recording).collect();
            (["A", "B"][index], &*self.compared.urls[index], notes)
        };
        [page(0), page(1)]
    }

    fn write_text(&self, out: &mut String) -> std::fmt::Result {
        for (name, url, notes) in self.pages() {
            writeln!(out, "{name}  {url}")?;
            for note in notes {
                writeln!(out, "   {}", plain(&note))?;
            }
        }
        for change in &self.compared.changes {
            writeln!(out, "   with {change}")?;
        }
        for sentence in &self.compared.left_out {
            writeln!(out, "   {sentence}")?;
        }
        writeln!(
            out,
            "   {}, {} pairs of visits\n",
            self.conditions, self.compared.comparison.pairs
        )?;
        let level = interval_name(self.compared);
        let header = ["", "A", "B", "B against A", &level, ""].map(str::to_owned);
        let rows: Vec<[String; 6]> = std::iter::once(header).chain(self.rows()).collect();
        write_columns(out, &rows)?;
        writeln!(out)?;
        let rows: Vec<_> = self.compared.evidence.iter().map(evidence_cells).collect();
        write_columns(out, &rows)?;
        let requests = self.request_rows();
        if !requests.is_empty() {
            writeln!(out)?;
            write_columns(out, &requests)?;
        }
        writeln!(out, "\n{}", headline(self.compared))
    }

    fn write_markdown(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "**{}**\n", headline(self.compared))?;
        for (name, url, notes) in self.pages() {
            writeln!(out, "- {name}: {}", url.replace('|', "%7C"))?;
            for note in notes {
                writeln!(out, "  - {}", plain(&note).replace('|', "%7C"))?;
            }
        }
        for change in &self.compared.changes {
            writeln!(out, "  - with {}", change.replace('`', ""))?;
        }
        for sentence in &self.compared.left_out {
            writeln!(out, "  - {}", sentence.replace('`', ""))?;
        }
        writeln!(
            out,
            "- {}, {} pairs of visits\n",
            self.conditions, self.compared.comparison.pairs
        )?;
        let level = interval_name(self.compared);
        writeln!(out, "| | A | B | B against A | {level} | |")?;
        writeln!(out, "|---|---:|---:|---:|---:|---|")?;
        for cells in self.rows() {
            writeln!(out, "| {} |", cells.join(" | "))?;
        }
        writeln!(out, "\n| | A | B |\n|---|---:|---:|")?;
        for row in &self.compared.evidence {
            writeln!(out, "| {} |", evidence_cells(row).join(" | "))?;
        }
        let requests = self.request_rows();
        if !requests.is_empty() {
            writeln!(out, "\n| Request | A | B |\n|---|---:|---:|")?;
        }
        for cells in requests {
            let cells = cells.map(|cell| cell.replace('|', "%7C"));
            writeln!(out, "| {} |", cells.join(" | "))?;
        }
        Ok(())
    }

    fn write_junit(&self, out: &mut String) -> std::fmt::Result {
        let case = |figure: &ComparedFigure| {
            let [name, first, second, shift, interval, answer] = figure_cells(figure);
            let text = format!("A {first}, B {second}, {shift} ({interval}): {answer}");
            Case {
                name,
                result: match figure.answer {
                    Answer::Slower => CaseResult::Failed {
                        message: text,
                        text: headline(self.compared),
                    },
                    Answer::Faster | Answer::NoDifferenceShown => {
                        CaseResult::PassedWithOutput(text)
                    }
                },
            }
        };
        let cases = self.compared.comparison.figures.iter().map(case).collect();
        let name = self.compared.urls.join(" / ");
        write_suites(
            out,
            &[("comparison".to_owned(), cases)],
            &name,
            &self.made_at,
        )
    }
}

/// Returns the answer of a comparison in one sentence.
pub(crate) fn headline(compared: &ComparedPages) -> String {
    let named = |answer: Answer| {
        let figures = compared.comparison.figures.iter();
        let shown = figures.filter(|figure| figure.answer == answer);
        let names: Vec<&str> = shown.map(|figure| short_name(&figure.name)).collect();
        names.join(", ")
    };
    let (faster, slower) = (named(Answer::Faster), named(Answer::Slower));
    let second = if compared.changes.is_empty() {
        "The second page"
    } else {
        "The changed page"
    };
    match (faster.is_empty(), slower.is_empty()) {
        (true, true) => "No difference shown.".to_owned(),
        (false, true) => format!("{second} is faster: {faster}."),
        (true, false) => format!("{second} is slower: {slower}."),
        (false, false) => format!("{second} is faster in {faster}, and slower in {slower}."),
    }
}

/// Returns the name and the values of a number that describes both pages.
pub(crate) fn evidence_cells(row: &EvidenceRow) -> [String; 3] {
    let text = |value: f64| match row.unit {
        EvidenceUnit::Count => format!("{value:.0}"),
        EvidenceUnit::Bytes => bytes(value as u64),
        EvidenceUnit::Milliseconds => value_text(MetricKind::Tbt, value),
    };
    let [first, second] = row.values.map(text);
    [row.name.clone(), first, second]
}

/// Returns the URL and the sizes of a request by which two pages differ.
pub(crate) fn request_cells(request: &DifferentRequest) -> [String; 3] {
    let text = |size: Option<u64>| size.map_or_else(|| "not requested".to_owned(), bytes);
    let [first, second] = request.bytes.map(text);
    [request.url.clone(), first, second]
}

/// Returns the name of the intervals of a comparison: `98 % interval`.
pub fn interval_name(compared: &ComparedPages) -> String {
    match compared.comparison.figures.first() {
        Some(figure) => format!("{:.0} % interval", figure.interval.level * 100.0),
        None => "Interval".to_owned(),
    }
}

/// Returns the cells of a figure: its name, the medians, the shift, its interval, and the answer.
pub(crate) fn figure_cells(figure: &ComparedFigure) -> [String; 6] {
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
            format!("{sign}{:.1}\u{a0}%", change.abs() * 100.0)
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
        // At most two lines in a narrow column.
        format!("{} to\u{a0}{}", change(interval.low), change(interval.high)),
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
mod tests;
