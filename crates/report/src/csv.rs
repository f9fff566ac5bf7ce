//! Rows for a spreadsheet, laid out as Lighthouse's CSV is (report/generator/report-generator.js): the page,
//! then the categories, then one row per audit of each category; our own columns come last.
//!
//! RFC 4180, every cell in quotes. A cell that a spreadsheet would take for a formula is set apart by
//! an apostrophe, which spreadsheets show as text and do not print.

use serde_json::{Value, json};

use crate::export::Subject;
use crate::lighthouse;

pub(crate) fn render(subject: &Subject) -> String {
    // Without the evidence: what is only for programs is no row.
    let result = lighthouse::result(&Subject {
        bundle: None,
        ..*subject
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
    };
    for (id, category) in categories() {
        lines.push(line([json!(id), category["score"].clone()]));
    }
    lines.push(String::new());
    lines.push("category,audit,score,displayValue,description,title,numericValue".to_owned());
    for (id, category) in categories() {
        for reference in category["auditRefs"].as_array().into_iter().flatten() {
            let name = reference["id"].as_str().unwrap_or_default();
            let audit = &result["audits"][name];
            let shown = ["displayValue", "explanation", "errorMessage"]
                .iter()
                .map(|member| &audit[member])
                .find(|value| value.is_string());
            lines.push(line([
                json!(id),
                json!(name),
                audit["score"].clone(),
                shown.cloned().unwrap_or_else(|| json!("")),
                audit["description"].clone(),
                audit["title"].clone(),
                audit
                    .get("numericValue")
                    .cloned()
                    .unwrap_or_else(|| json!("")),
            ]));
        }
    }
    lines.join("\r\n")
}

fn line(cells: impl IntoIterator<Item = Value>) -> String {
    let cells = cells.into_iter().map(|cell| match cell {
        Value::String(text) => quoted(&defused(&text)),
        // Whole numbers without a fraction, as JavaScript writes them.
        Value::Number(number) => quoted(&number.as_f64().unwrap_or_default().to_string()),
        other => quoted(&other.to_string()),
    });
    cells.collect::<Vec<_>>().join(",")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// What begins a formula in one spreadsheet or another (OWASP, "CSV Injection"). Control characters go: a
/// bare carriage return or NUL ends a cell for some readers.
fn defused(text: &str) -> String {
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
        let report = report();
        let text = render(&Subject {
            report: &report,
            bundle: None,
            made_at_ms: 0,
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
        let fcp = lines
            .iter()
            .find(|line| line.contains("first-contentful-paint"))
            .unwrap();
        assert!(
            fcp.starts_with("\"performance\",\"first-contentful-paint\",\"0.9\",\"1.2\u{a0}s\""),
            "{fcp}"
        );
        assert!(fcp.ends_with(",\"1234.4\""), "{fcp}");
    }

    #[test]
    fn no_cell_is_a_formula_or_ends_early() {
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
