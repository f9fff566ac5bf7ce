//! CSV in the layout of Lighthouse (report/generator/report-generator.js): the page, the
//! categories, and one row per audit of each category. Columns that Lighthouse does not have come
//! last.
//!
//! The format is RFC 4180 with every cell in quotes. Cells that a spreadsheet would interpret as a
//! formula begin with an apostrophe, which spreadsheets do not display.

use serde_json::{Value, json};

use crate::export::ExportSource;
use crate::lighthouse;

/// Renders a report as CSV.
pub(crate) fn render(source: &ExportSource) -> String {
    // Without the bundle, so that audits only meant for programs are not included.
    let result = lighthouse::result(&ExportSource {
        bundle: None,
        ..*source
    });
    let mut lines = Vec::new();
    let page = [
        "requestedUrl",
        "finalDisplayedUrl",
        "fetchTime",
        "gatherMode",
    ];
    lines.push(line(page.map(|name| json!(name))));
    lines.push(line(page.map(|name| result[name].clone())));
    lines.push(String::new());
    lines.push("category,score".to_owned());
    let categories = || {
        lighthouse::CATEGORIES
            .iter()
            .map(|id| (id, &result["categories"][id]))
            .filter(|(_, category)| !category.is_null())
    };
    for (id, category) in categories() {
        lines.push(line([json!(id), category["score"].clone()]));
    }
    lines.push(String::new());
    let columns = "category,audit,score,displayValue,description,title,numericValue";
    lines.push(format!("{columns},intervalLow,intervalHigh"));
    for (id, category) in categories() {
        for reference in category["auditRefs"].as_array().into_iter().flatten() {
            let name = reference["id"].as_str().unwrap_or_default();
            let audit = &result["audits"][name];
            let display = ["displayValue", "explanation", "errorMessage"]
                .iter()
                .map(|member| &audit[member])
                .find(|value| value.is_string());
            let [low, high] = interval(audit);
            lines.push(line([
                json!(id),
                json!(name),
                audit["score"].clone(),
                display.cloned().unwrap_or_else(|| json!("")),
                audit["description"].clone(),
                audit["title"].clone(),
                audit
                    .get("numericValue")
                    .cloned()
                    .unwrap_or_else(|| json!("")),
                low,
                high,
            ]));
        }
    }
    lines.join("\r\n")
}

/// Returns the bounds of the interval of an audit; empty texts if it has none.
fn interval(value: &Value) -> [Value; 2] {
    ["low", "high"].map(|bound| {
        let bound = &value[lighthouse::INTERVAL][bound];
        if bound.is_null() {
            json!("")
        } else {
            bound.clone()
        }
    })
}

fn line(cells: impl IntoIterator<Item = Value>) -> String {
    let cells = cells.into_iter().map(|cell| match cell {
        Value::String(text) => text_cell(&text),
        // Whole numbers without a fraction, as JavaScript writes them.
        Value::Number(number) => quoted(&number.as_f64().unwrap_or_default().to_string()),
        other => quoted(&other.to_string()),
    });
    cells.collect::<Vec<_>>().join(",")
}

/// Returns a cell with a text that a spreadsheet does not interpret as a formula.
pub(crate) fn text_cell(text: &str) -> String {
    quoted(&without_formula(text))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Prefixes texts that a spreadsheet could interpret as a formula (OWASP, "CSV Injection"), and
/// replaces control characters: a carriage return or NUL ends a cell for some readers.
fn without_formula(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| {
            if c.is_control() && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect();
    let looks_like_formula = text.trim_start().starts_with([
        '=', '+', '-', '@', '\u{fffd}', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ]);
    if looks_like_formula {
        format!("'{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::report;

    #[test]
    fn there_is_a_row_for_the_page_each_category_and_each_audit() {
        let mut report = report();
        report.intervals = crate::testing::intervals();
        let text = render(&ExportSource {
            report: &report,
            bundle: None,
            media: None,
            made_at_ms: 0,
            logo: None,
            junit: crate::JunitOptions::default(),
        });
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(
            lines[0],
            r#""requestedUrl","finalDisplayedUrl","fetchTime","gatherMode""#
        );
        assert!(
            lines[1].ends_with(r#""1970-01-01T00:00:00.000Z","navigation""#),
            "{}",
            lines[1]
        );
        assert!(lines.contains(&r#""performance","0.97""#), "{text}");
        assert!(lines.contains(&r#""pwa","0.3""#), "{text}");
        let lcp = lines.iter().find(|line| line.contains("largest-con"));
        assert!(
            lcp.unwrap().ends_with(r#","2000","1900","2100""#),
            "{lcp:?}"
        );
        let fcp = lines
            .iter()
            .find(|line| line.contains("first-contentful-paint"))
            .unwrap();
        assert!(
            fcp.starts_with("\"performance\",\"first-contentful-paint\",\"0.9\",\"1.2\u{a0}s\""),
            "{fcp}"
        );
        assert!(fcp.ends_with(",\"1234.4\",\"\",\"\""), "{fcp}");
    }

    #[test]
    fn no_cell_is_a_formula_or_ends_too_early() {
        for (text, cell) in [
            ("=cmd()", r#""'=cmd()""#),
            ("  +1", r#""'  +1""#),
            ("@x", r#""'@x""#),
            ("a\"b,c", r#""a""b,c""#),
            ("\rx", "\"'\u{fffd}x\""),
            ("two\nlines", "\"two\nlines\""),
        ] {
            assert_eq!(line([json!(text)]), cell, "{text:?}");
        }
    }
}
