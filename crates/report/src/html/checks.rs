//! The checks of each category with their details, grouped by verdict, failed ones first.

use plumbline_model::category::CategoryResult;
use plumbline_model::check::{
    Cell, CheckResult, ChecklistItem, Column, Details, ElementDetail, Findings, Row, Unit, Verdict,
};

use super::charts;
use super::code_text::CodeText;
use super::crops::Screenshots;
use super::figures::{bytes, ms};

/// A category with its score and checks.
pub(super) struct CategoryView {
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) ring: String,
    pub(super) sections: Vec<Section>,
}

/// The checks with one verdict.
pub(super) struct Section {
    pub(super) title: String,
    /// Whether the section is closed at first.
    pub(super) folded: bool,
    pub(super) groups: Vec<GroupView>,
}

pub(super) struct GroupView {
    pub(super) title: &'static str,
    pub(super) checks: Vec<CheckView>,
}

pub(super) struct CheckView {
    pub(super) anchor: String,
    pub(super) title: String,
    pub(super) class: &'static str,
    /// The verdict as text, for screen readers.
    pub(super) word: &'static str,
    pub(super) summary: Option<CodeText>,
    pub(super) why: CodeText,
    pub(super) fix: Option<CodeText>,
    pub(super) weight: Option<String>,
    pub(super) warnings: Vec<String>,
    pub(super) details: Vec<DetailsView>,
}

/// The details of a check, with the number of items that are not listed.
pub(super) enum DetailsView {
    Elements(Vec<ElementView>, usize),
    Table(TableView, usize),
}

/// A table of details.
pub(super) struct TableView {
    /// The label of each column, and whether it is right-aligned.
    pub(super) columns: Vec<(String, bool)>,
    pub(super) rows: Vec<RowView>,
}

pub(super) struct RowView {
    /// Whether the row is part of the row above it.
    pub(super) is_sub: bool,
    pub(super) cells: Vec<CellView>,
}

#[derive(Default)]
pub(super) struct CellView {
    pub(super) text: CodeText,
    pub(super) is_number: bool,
    /// Trusted markup: the part of a screenshot that shows the element.
    pub(super) crop: Option<String>,
}

impl CellView {
    fn text(text: impl Into<String>) -> Self {
        Self {
            text: CodeText(text.into()),
            ..Self::default()
        }
    }

    fn number(text: String) -> Self {
        Self {
            is_number: true,
            ..Self::text(text)
        }
    }
}

pub(super) struct ElementView {
    pub(super) label: String,
    pub(super) selector: String,
    pub(super) snippet: String,
    pub(super) note: Option<String>,
    /// Trusted markup: the part of a screenshot that shows the element.
    pub(super) crop: Option<String>,
}

/// The most items listed per check; the JSON export has all of them.
pub(super) const MAX_ITEMS: usize = 20;

pub(super) fn category_view(category: &CategoryResult, screenshots: &Screenshots) -> CategoryView {
    let section = |title: &str, verdict: Verdict, folded: bool| {
        let checks: Vec<&CheckResult> = category
            .checks
            .iter()
            .filter(|check| check.verdict == verdict)
            .collect();
        (!checks.is_empty()).then(|| Section {
            title: format!("{title} ({})", checks.len()),
            folded,
            groups: groups(category, &checks, screenshots),
        })
    };
    CategoryView {
        id: category.id.as_str(),
        title: category.title.clone(),
        ring: match category.fraction {
            Some(fraction) => charts::fraction_ring(category.id.title(), fraction),
            None => charts::ring(category.id.title(), category.score),
        },
        sections: [
            section("Failed", Verdict::Fail, false),
            section("Could not be measured", Verdict::CouldNotMeasure, false),
            section("Informative", Verdict::Informative, false),
            section("Passed", Verdict::Pass, true),
            section("Not applicable", Verdict::NotApplicable, true),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

fn groups(
    category: &CategoryResult,
    checks: &[&CheckResult],
    screenshots: &Screenshots,
) -> Vec<GroupView> {
    let mut groups: Vec<GroupView> = Vec::new();
    // Sorted by weight, so that groups are ordered by their heaviest check.
    let mut checks = checks.to_vec();
    checks.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    for check in checks {
        let view = check_view(category, check, screenshots);
        let title = check.group.title();
        match groups.iter_mut().find(|group| group.title == title) {
            Some(group) => group.checks.push(view),
            None => groups.push(GroupView {
                title,
                checks: vec![view],
            }),
        }
    }
    groups
}

fn check_view(
    category: &CategoryResult,
    check: &CheckResult,
    screenshots: &Screenshots,
) -> CheckView {
    let (class, word) = match check.verdict {
        Verdict::Fail => ("poor", "Failed"),
        Verdict::Pass => ("good", "Passed"),
        Verdict::CouldNotMeasure => ("middling", "Could not be measured"),
        Verdict::Informative => ("unknown", "Informative"),
        Verdict::NotApplicable => ("unknown", "Not applicable"),
    };
    CheckView {
        anchor: format!("{}-{}", category.id.as_str(), check.id),
        title: check.title.clone(),
        class,
        word,
        summary: check.summary.clone().map(CodeText),
        why: CodeText(check.why.clone()),
        fix: (check.verdict != Verdict::Pass).then(|| CodeText(check.fix.clone())),
        weight: (check.weight > 0.0 && category.fraction.is_none())
            .then(|| format!("weight {}", check.weight)),
        warnings: check.warnings.clone(),
        details: check
            .details
            .as_ref()
            .map_or_else(Vec::new, |details| details_views(details, screenshots)),
    }
}

fn details_views(details: &Details, screenshots: &Screenshots) -> Vec<DetailsView> {
    if details.is_empty() {
        return Vec::new();
    }
    let more = details.len().saturating_sub(MAX_ITEMS);
    let table = |columns: &[&str], rows: Vec<Vec<String>>| {
        vec![DetailsView::Table(plain_table(columns, rows), more)]
    };
    match details {
        Details::Elements { items } => {
            vec![DetailsView::Elements(
                element_views(items, screenshots),
                more,
            )]
        }
        Details::Urls { items } => {
            let has_notes = items.iter().any(|item| item.note.is_some());
            let rows = items.iter().take(MAX_ITEMS).map(|item| {
                let mut row = vec![item.url.clone()];
                row.extend(has_notes.then(|| item.note.clone().unwrap_or_default()));
                row
            });
            let columns: &[&str] = if has_notes {
                &["URL", "Note"]
            } else {
                &["URL"]
            };
            table(columns, rows.collect())
        }
        Details::Console { items } => {
            let rows = items.iter().take(MAX_ITEMS).map(|item| {
                let place = match item.line {
                    Some(line) => format!("{}:{}", item.url, line + 1),
                    None => item.url.clone(),
                };
                vec![item.source.clone(), item.text.clone(), place]
            });
            table(&["Source", "Message", "Location"], rows.collect())
        }
        Details::Values { items } => {
            let rows = items.iter().take(MAX_ITEMS);
            let rows = rows.map(|item| vec![item.name.clone(), item.value.clone()]);
            table(&["Name", "Value"], rows.collect())
        }
        Details::Table(text_table) => {
            let columns: Vec<&str> = text_table.columns.iter().map(String::as_str).collect();
            let rows = text_table.rows.iter().take(MAX_ITEMS).cloned().collect();
            table(&columns, rows)
        }
        Details::Findings(findings) => {
            vec![DetailsView::Table(typed_table(findings, screenshots), more)]
        }
        Details::Checklist { items } => {
            let row = |item: &ChecklistItem| {
                let is_met = if item.is_met { "yes" } else { "no" };
                vec![item.label.clone(), is_met.to_owned()]
            };
            table(&["Condition", "Met"], items.iter().map(row).collect())
        }
        Details::Parts { items } => items
            .iter()
            .flat_map(|part| details_views(part, screenshots))
            .collect(),
    }
}

fn plain_table(columns: &[&str], rows: Vec<Vec<String>>) -> TableView {
    let row = |cells: Vec<String>| RowView {
        is_sub: false,
        cells: cells.into_iter().map(CellView::text).collect(),
    };
    TableView {
        columns: columns
            .iter()
            .map(|name| ((*name).to_owned(), false))
            .collect(),
        rows: rows.into_iter().map(row).collect(),
    }
}

fn typed_table(findings: &Findings, screenshots: &Screenshots) -> TableView {
    let is_number = |unit: Unit| matches!(unit, Unit::Bytes | Unit::Ms | Unit::Number);
    let mut rows = Vec::new();
    for row in findings.rows.iter().take(MAX_ITEMS) {
        rows.push(typed_row(row, false, screenshots));
        let subs = row.sub_rows.iter().take(MAX_ITEMS);
        rows.extend(subs.map(|sub| typed_row(sub, true, screenshots)));
    }
    let column = |column: &Column| (column.label.clone(), is_number(column.unit));
    TableView {
        columns: findings.columns.iter().map(column).collect(),
        rows,
    }
}

fn typed_row(row: &Row, is_sub: bool, screenshots: &Screenshots) -> RowView {
    let cell = |cell: &Cell| match cell {
        Cell::Text(text) => CellView::text(text),
        Cell::Url(url) => CellView::text(url),
        Cell::Element(node) => CellView {
            crop: screenshots.crop(node),
            ..CellView::text(&node.snippet)
        },
        Cell::Source(place) => CellView::text(format!(
            "{}:{}:{}",
            place.url,
            place.line + 1,
            place.column + 1
        )),
        Cell::Bytes(size) => CellView::number(bytes(size.max(0.0) as u64)),
        Cell::Ms(time) => CellView::number(ms(*time)),
        Cell::Number(number) => CellView::number(format!("{}", (number * 1000.0).round() / 1000.0)),
        Cell::Nothing => CellView::default(),
    };
    RowView {
        is_sub,
        cells: row.cells.iter().map(cell).collect(),
    }
}

fn element_views(items: &[ElementDetail], screenshots: &Screenshots) -> Vec<ElementView> {
    items
        .iter()
        .take(MAX_ITEMS)
        .map(|item| ElementView {
            label: item.node.label.clone(),
            selector: item.node.selector.clone(),
            snippet: item.node.snippet.clone(),
            note: item.note.clone(),
            crop: screenshots.crop(&item.node),
        })
        .collect()
}
