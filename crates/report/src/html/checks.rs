//! Every check of every category, failed first, grouped, with what it found.

use plumbline_engine::category::{CategoryResult, CheckResult};
use plumbline_engine::checks::{
    Cell, ChecklistItem, Column, Details, ElementDetail, Findings, Row, Unit, Verdict,
};

use super::charts;
use super::crops::Scenes;
use super::figures::{bytes, ms};
use super::words::Words;

pub(super) struct CategoryView {
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) ring: String,
    pub(super) sections: Vec<Section>,
}

/// Checks of one verdict.
pub(super) struct Section {
    pub(super) title: String,
    /// Closed until asked for.
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
    /// The verdict in a word, for those who do not see the sign.
    pub(super) word: &'static str,
    pub(super) summary: Option<Words>,
    pub(super) why: Words,
    pub(super) fix: Option<Words>,
    pub(super) weight: Option<String>,
    pub(super) warnings: Vec<String>,
    pub(super) found: Vec<Found>,
}

pub(super) enum Found {
    Elements(Vec<ElementView>, usize),
    Table(TableView, usize),
}

/// Columns that hold numbers stand right.
pub(super) struct TableView {
    pub(super) columns: Vec<(String, bool)>,
    pub(super) rows: Vec<RowView>,
}

pub(super) struct RowView {
    /// Part of the row above it.
    pub(super) is_sub: bool,
    pub(super) cells: Vec<CellView>,
}

#[derive(Default)]
pub(super) struct CellView {
    pub(super) text: Words,
    pub(super) is_number: bool,
    /// As of an element.
    pub(super) crop: Option<String>,
}

impl CellView {
    fn text(text: impl Into<String>) -> Self {
        Self {
            text: Words(text.into()),
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
    /// Markup of ours: the piece of a picture that shows it.
    pub(super) crop: Option<String>,
}

/// Per check; the JSON has them all.
pub(super) const MOST_ITEMS: usize = 20;

pub(super) fn category_view(category: &CategoryResult, scenes: &Scenes) -> CategoryView {
    let section = |title: &str, verdict: Verdict, folded: bool| {
        let checks: Vec<&CheckResult> = category
            .checks
            .iter()
            .filter(|check| check.verdict == verdict)
            .collect();
        (!checks.is_empty()).then(|| Section {
            title: format!("{title} ({})", checks.len()),
            folded,
            groups: groups(category, &checks, scenes),
        })
    };
    CategoryView {
        id: category.id.as_str(),
        title: category.title.clone(),
        ring: charts::ring(category.id.title(), category.score),
        sections: [
            section("Failed", Verdict::Fail, false),
            section("Could not be measured", Verdict::CouldNotMeasure, false),
            section("Worth knowing", Verdict::Informative, false),
            section("Passed", Verdict::Pass, true),
            section("Not applicable", Verdict::NotApplicable, true),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

fn groups(category: &CategoryResult, checks: &[&CheckResult], scenes: &Scenes) -> Vec<GroupView> {
    let mut groups: Vec<GroupView> = Vec::new();
    // The heaviest first, so that a group stands where its heaviest check stands.
    let mut checks = checks.to_vec();
    checks.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    for check in checks {
        let view = check_view(category, check, scenes);
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

fn check_view(category: &CategoryResult, check: &CheckResult, scenes: &Scenes) -> CheckView {
    let (class, word) = match check.verdict {
        Verdict::Fail => ("poor", "Failed"),
        Verdict::Pass => ("good", "Passed"),
        Verdict::CouldNotMeasure => ("middling", "Could not be measured"),
        Verdict::Informative => ("unknown", "Worth knowing"),
        Verdict::NotApplicable => ("unknown", "Not applicable"),
    };
    CheckView {
        anchor: format!("{}-{}", category.id.as_str(), check.id),
        title: check.title.clone(),
        class,
        word,
        summary: check.summary.clone().map(Words),
        why: Words(check.why.clone()),
        fix: (check.verdict != Verdict::Pass).then(|| Words(check.fix.clone())),
        weight: (check.weight > 0.0).then(|| format!("weight {}", check.weight)),
        warnings: check.warnings.clone(),
        found: check
            .details
            .as_ref()
            .map_or_else(Vec::new, |details| found(details, scenes)),
    }
}

fn found(details: &Details, scenes: &Scenes) -> Vec<Found> {
    if details.is_empty() {
        return Vec::new();
    }
    let more = details.len().saturating_sub(MOST_ITEMS);
    let table = |columns: &[&str], rows: Vec<Vec<String>>| {
        vec![Found::Table(plain_table(columns, rows), more)]
    };
    match details {
        Details::Elements { items } => {
            vec![Found::Elements(element_views(items, scenes), more)]
        }
        Details::Urls { items } => {
            let noted = items.iter().any(|item| item.note.is_some());
            let rows = items.iter().take(MOST_ITEMS).map(|item| {
                let mut row = vec![item.url.clone()];
                row.extend(noted.then(|| item.note.clone().unwrap_or_default()));
                row
            });
            let columns: &[&str] = if noted { &["URL", "Note"] } else { &["URL"] };
            table(columns, rows.collect())
        }
        Details::Console { items } => {
            let rows = items.iter().take(MOST_ITEMS).map(|item| {
                let place = match item.line {
                    Some(line) => format!("{}:{}", item.url, line + 1),
                    None => item.url.clone(),
                };
                vec![item.source.clone(), item.text.clone(), place]
            });
            table(&["From", "Message", "Where"], rows.collect())
        }
        Details::Values { items } => {
            let rows = items.iter().take(MOST_ITEMS);
            let rows = rows.map(|item| vec![item.name.clone(), item.value.clone()]);
            table(&["Name", "Value"], rows.collect())
        }
        Details::Table(found) => {
            let columns: Vec<&str> = found.columns.iter().map(String::as_str).collect();
            let rows = found.rows.iter().take(MOST_ITEMS).cloned().collect();
            table(&columns, rows)
        }
        Details::Findings(findings) => {
            vec![Found::Table(typed_table(findings, scenes), more)]
        }
        Details::Checklist { items } => {
            let answer = |item: &ChecklistItem| {
                let is_met = if item.is_met { "yes" } else { "no" };
                vec![item.label.clone(), is_met.to_owned()]
            };
            table(&["Question", "Answer"], items.iter().map(answer).collect())
        }
        Details::Parts { items } => items.iter().flat_map(|part| found(part, scenes)).collect(),
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

fn typed_table(findings: &Findings, scenes: &Scenes) -> TableView {
    let is_number = |unit: Unit| matches!(unit, Unit::Bytes | Unit::Ms | Unit::Number);
    let mut rows = Vec::new();
    for row in findings.rows.iter().take(MOST_ITEMS) {
        rows.push(typed_row(row, false, scenes));
        let subs = row.sub_rows.iter().take(MOST_ITEMS);
        rows.extend(subs.map(|sub| typed_row(sub, true, scenes)));
    }
    let column = |column: &Column| (column.label.clone(), is_number(column.unit));
    TableView {
        columns: findings.columns.iter().map(column).collect(),
        rows,
    }
}

fn typed_row(row: &Row, is_sub: bool, scenes: &Scenes) -> RowView {
    let cell = |cell: &Cell| match cell {
        Cell::Text(text) => CellView::text(text),
        Cell::Url(url) => CellView::text(url),
        Cell::Element(node) => CellView {
            crop: scenes.crop(node),
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

fn element_views(items: &[ElementDetail], scenes: &Scenes) -> Vec<ElementView> {
    items
        .iter()
        .take(MOST_ITEMS)
        .map(|item| ElementView {
            label: item.node.label.clone(),
            selector: item.node.selector.clone(),
            snippet: item.node.snippet.clone(),
            note: item.note.clone(),
            crop: scenes.crop(&item.node),
        })
        .collect()
}
