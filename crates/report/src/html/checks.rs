//! Every check of every category, failed first, grouped, with what it found.

use plumbline_engine::category::{CategoryResult, CheckResult};
use plumbline_engine::checks::{
    Answer, Cell, Column, Details, ElementFound, Findings, Row, Unit, Verdict,
};
use plumbline_engine::facts::Rect;

use super::charts;
use super::figures::{bytes, coordinate, ms};
use super::load::Shot;
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
    pub(super) cells: Vec<(String, bool)>,
}

pub(super) struct ElementView {
    pub(super) label: String,
    pub(super) selector: String,
    pub(super) snippet: String,
    pub(super) note: Option<String>,
    /// Markup of ours: the piece of the final picture that shows it.
    pub(super) crop: Option<String>,
}

/// Per check; the JSON has them all.
const MOST_ITEMS: usize = 20;

pub(super) fn category_view(category: &CategoryResult, shot: Option<&Shot>) -> CategoryView {
    let section = |title: &str, verdict: Verdict, folded: bool| {
        let checks: Vec<&CheckResult> = category
            .checks
            .iter()
            .filter(|check| check.verdict == verdict)
            .collect();
        (!checks.is_empty()).then(|| Section {
            title: format!("{title} ({})", checks.len()),
            folded,
            groups: groups(category, &checks, shot),
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

fn groups(
    category: &CategoryResult,
    checks: &[&CheckResult],
    shot: Option<&Shot>,
) -> Vec<GroupView> {
    let mut groups: Vec<GroupView> = Vec::new();
    // The heaviest first, so that a group stands where its heaviest check stands.
    let mut checks = checks.to_vec();
    checks.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    for check in checks {
        let view = check_view(category, check, shot);
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

fn check_view(category: &CategoryResult, check: &CheckResult, shot: Option<&Shot>) -> CheckView {
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
            .map_or_else(Vec::new, |details| found(details, shot)),
    }
}

fn found(details: &Details, shot: Option<&Shot>) -> Vec<Found> {
    if details.is_empty() {
        return Vec::new();
    }
    let more = details.len().saturating_sub(MOST_ITEMS);
    let table = |columns: &[&str], rows: Vec<Vec<String>>| {
        vec![Found::Table(plain_table(columns, rows), more)]
    };
    match details {
        Details::Elements { items } => {
            vec![Found::Elements(
                element_views(items, MOST_ITEMS, shot),
                more,
            )]
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
        Details::Findings(findings) => vec![Found::Table(typed_table(findings), more)],
        Details::Checklist { items } => {
            let answer = |item: &Answer| {
                let is_met = if item.is_met { "yes" } else { "no" };
                vec![item.label.clone(), is_met.to_owned()]
            };
            table(&["Question", "Answer"], items.iter().map(answer).collect())
        }
        Details::Parts { items } => items.iter().flat_map(|part| found(part, shot)).collect(),
    }
}

fn plain_table(columns: &[&str], rows: Vec<Vec<String>>) -> TableView {
    let row = |cells: Vec<String>| RowView {
        is_sub: false,
        cells: cells.into_iter().map(|cell| (cell, false)).collect(),
    };
    TableView {
        columns: columns
            .iter()
            .map(|name| ((*name).to_owned(), false))
            .collect(),
        rows: rows.into_iter().map(row).collect(),
    }
}

fn typed_table(findings: &Findings) -> TableView {
    let is_number = |unit: Unit| matches!(unit, Unit::Bytes | Unit::Ms | Unit::Number);
    let mut rows = Vec::new();
    for row in findings.rows.iter().take(MOST_ITEMS) {
        rows.push(typed_row(row, false));
        let subs = row.sub_rows.iter().take(MOST_ITEMS);
        rows.extend(subs.map(|sub| typed_row(sub, true)));
    }
    let column = |column: &Column| (column.label.clone(), is_number(column.unit));
    TableView {
        columns: findings.columns.iter().map(column).collect(),
        rows,
    }
}

fn typed_row(row: &Row, is_sub: bool) -> RowView {
    let cell = |cell: &Cell| match cell {
        Cell::Text(text) => (text.clone(), false),
        Cell::Url(url) => (url.clone(), false),
        Cell::Element(node) => (node.snippet.clone(), false),
        Cell::Source(place) => (
            format!("{}:{}:{}", place.url, place.line + 1, place.column + 1),
            false,
        ),
        Cell::Bytes(size) => (bytes(size.max(0.0) as u64), true),
        Cell::Ms(time) => (ms(*time), true),
        Cell::Number(number) => (format!("{}", (number * 1000.0).round() / 1000.0), true),
        Cell::Nothing => (String::new(), false),
    };
    RowView {
        is_sub,
        cells: row.cells.iter().map(cell).collect(),
    }
}

pub(super) fn element_views(
    items: &[ElementFound],
    most: usize,
    shot: Option<&Shot>,
) -> Vec<ElementView> {
    items
        .iter()
        .take(most)
        .map(|item| ElementView {
            label: item.node.label.clone(),
            selector: item.node.selector.clone(),
            snippet: item.node.snippet.clone(),
            note: item.note.clone(),
            crop: shot.and_then(|shot| crop(shot, item.node.in_picture()?)),
        })
        .collect()
}

/// The element with some of what is around it, cut out of the final picture. None where it is not in it.
fn crop(shot: &Shot, rect: Rect) -> Option<String> {
    const AROUND: f64 = 16.0;
    const LEAST: (f64, f64) = (180.0, 72.0);
    const MOST_HEIGHT: f64 = 360.0;
    let in_picture = rect.width > 0.0
        && rect.height > 0.0
        && rect.left < shot.css_width
        && rect.top < shot.css_height
        && rect.right() > 0.0
        && rect.bottom() > 0.0;
    if !in_picture {
        return None;
    }
    let width = (rect.width + 2.0 * AROUND).max(LEAST.0).min(shot.css_width);
    let height = (rect.height + 2.0 * AROUND)
        .clamp(LEAST.1, MOST_HEIGHT)
        .min(shot.css_height);
    // Around the element's middle, or from its top where it is taller than the piece.
    let left = rect.left + rect.width / 2.0 - width / 2.0;
    let top = if rect.height < height {
        rect.top + rect.height / 2.0 - height / 2.0
    } else {
        rect.top - AROUND
    };
    let left = left.clamp(0.0, (shot.css_width - width).max(0.0));
    let top = top.clamp(0.0, (shot.css_height - height).max(0.0));
    Some(format!(
        r##"<svg class="crop" viewBox="{} {} {} {}" aria-hidden="true"><use href="#shot"/><rect class="hit" x="{}" y="{}" width="{}" height="{}"/></svg>"##,
        coordinate(left),
        coordinate(top),
        coordinate(width),
        coordinate(height),
        coordinate(rect.left),
        coordinate(rect.top),
        coordinate(rect.width),
        coordinate(rect.height),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shot() -> Shot {
        Shot {
            src: String::new(),
            css_width: 400.0,
            css_height: 800.0,
        }
    }

    fn rect(left: f64, top: f64, width: f64, height: f64) -> Rect {
        Rect {
            left,
            top,
            width,
            height,
        }
    }

    #[test]
    fn an_element_is_shown_with_what_is_around_it() {
        let crop = crop(&shot(), rect(100.0, 300.0, 50.0, 20.0)).unwrap();
        assert!(crop.contains(r#"viewBox="35 274 180 72""#), "{crop}");
    }

    #[test]
    fn a_crop_stays_within_the_picture() {
        let corner = crop(&shot(), rect(380.0, 790.0, 50.0, 40.0)).unwrap();
        assert!(corner.contains(r#"viewBox="220 728 180 72""#), "{corner}");
        let huge = crop(&shot(), rect(0.0, 100.0, 400.0, 5000.0)).unwrap();
        assert!(huge.contains(r#"viewBox="0 84 400 360""#), "{huge}");
    }

    #[test]
    fn what_is_not_in_the_picture_has_no_crop() {
        for gone in [
            rect(0.0, 900.0, 10.0, 10.0),
            rect(-50.0, 0.0, 40.0, 10.0),
            rect(0.0, 0.0, 0.0, 10.0),
        ] {
            assert_eq!(crop(&shot(), gone), None);
        }
    }
}
