//! Tables with typed cells, whose rows can consist of other rows.

use plumbline_model::check::{Cell, Column, Findings, Row, Unit};

use super::checks::{CellView, MAX_ITEMS, RowView, ShownPage, TableView};
use super::figures::{bytes, ms};
use super::links::Link;
use super::places;

/// The most rows of a table with nested rows.
const MAX_ROWS: usize = 200;

/// The depth from which nested rows are not indented further.
pub(super) const MAX_SHOWN_DEPTH: usize = 6;

/// Returns a table, and the number of its rows that are not listed. Where parts of a row are not
/// listed, a row says how many.
pub(super) fn typed_table(findings: &Findings, page: &ShownPage) -> (TableView, usize) {
    let is_number = |unit: Unit| matches!(unit, Unit::Bytes | Unit::Ms | Unit::Number);
    let mut rows = Vec::new();
    let listed = add_rows(&findings.rows, MAX_ITEMS, 0, page, &mut rows);
    let column = |column: &Column| (column.label.clone(), is_number(column.unit));
    let table = TableView {
        columns: findings.columns.iter().map(column).collect(),
        rows,
    };
    (table, findings.rows.len() - listed)
}

/// Adds the first rows of a list with their parts. Returns how many of the list were added.
fn add_rows(
    list: &[Row],
    max_listed: usize,
    depth: usize,
    page: &ShownPage,
    rows: &mut Vec<RowView>,
) -> usize {
    let mut listed = 0;
    for row in list.iter().take(max_listed) {
        if rows.len() >= MAX_ROWS {
            break;
        }
        listed += 1;
        rows.push(typed_row(row, depth, page));
        let parts = &row.sub_rows;
        let listed_parts = add_rows(parts, page.max_parts, depth + 1, page, rows);
        let more: usize = parts[listed_parts..].iter().map(row_count).sum();
        if more > 0 {
            rows.push(note(more, row.cells.len(), depth + 1));
        }
    }
    listed
}

/// Returns the number of rows that a row is shown with: itself, and all of its parts.
fn row_count(row: &Row) -> usize {
    1 + row.sub_rows.iter().map(row_count).sum::<usize>()
}

/// Returns a row that says how many rows are not listed.
fn note(more: usize, columns: usize, depth: usize) -> RowView {
    let text = CellView::text(format!("and {more} more"));
    let others = std::iter::repeat_with(CellView::default).take(columns.saturating_sub(1));
    RowView {
        depth: depth.min(MAX_SHOWN_DEPTH),
        is_of_longest_chain: false,
        cells: std::iter::once(text).chain(others).collect(),
    }
}

fn typed_row(row: &Row, depth: usize, page: &ShownPage) -> RowView {
    let cell = |cell: &Cell| match cell {
        Cell::Text(text) => CellView::text(text),
        Cell::Url(url) => CellView::link(Link::new(url, page.url)),
        Cell::Element(node) => CellView {
            crop: page.screenshots.crop(node),
            ..CellView::text(&node.snippet)
        },
        Cell::Source(place) => CellView::link(places::source_link(place, page.url)),
        Cell::Bytes(size) => CellView::number(bytes(size.max(0.0) as u64)),
        Cell::Ms(time) => CellView::number(ms(*time)),
        Cell::Number(number) => CellView::number(format!("{}", (number * 1000.0).round() / 1000.0)),
        Cell::Nothing => CellView::default(),
    };
    RowView {
        depth: depth.min(MAX_SHOWN_DEPTH),
        is_of_longest_chain: row.is_marked,
        cells: row.cells.iter().map(cell).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::crops::Screenshots;
    use super::*;

    fn rows(count: usize) -> impl Iterator<Item = Row> {
        (0..count).map(|index| Row::new([Cell::text(format!("row {index}")), Cell::Ms(1.0)]))
    }

    /// Returns the depth and the text of each listed row, and the number of the others.
    fn listed(rows: Vec<Row>, max_parts: usize) -> (Vec<(usize, String)>, usize) {
        let columns = [("a", "A", Unit::Text), ("b", "B", Unit::Ms)];
        let page = ShownPage {
            url: "",
            screenshots: &Screenshots::default(),
            max_parts,
        };
        let (table, more) = typed_table(&Findings::new(columns).rows(rows), &page);
        let rows = table.rows.iter();
        assert!(rows.clone().all(|row| row.cells.len() == 2));
        let texts = rows.map(|row| (row.depth, row.cells[0].text.0.clone()));
        (texts.collect(), more)
    }

    #[test]
    fn parts_that_are_not_listed_are_counted() {
        let document = || vec![Row::new([Cell::text("document"), Cell::Nothing]).with(rows(35))];
        let (texts, more) = listed(document(), MAX_ITEMS);
        assert_eq!((texts.len(), more), (22, 0));
        assert_eq!(
            texts[20..],
            [(1, "row 19".to_owned()), (1, "and 15 more".to_owned())]
        );
        let (texts, _) = listed(document(), usize::MAX);
        assert_eq!(texts.len(), 36);
        assert_eq!(texts[35], (1, "row 34".to_owned()));
    }

    #[test]
    fn the_rows_beyond_the_limit_of_a_table_are_counted_at_each_depth() {
        let below = Row::new([Cell::text("below"), Cell::Nothing]).with(rows(250));
        let top =
            Row::new([Cell::text("top"), Cell::Nothing]).with([below].into_iter().chain(rows(3)));
        let (texts, more) = listed(vec![top.clone(), top], usize::MAX);
        assert_eq!(more, 1);
        let last: Vec<(usize, &str)> = texts[199..]
            .iter()
            .map(|(depth, text)| (*depth, text.as_str()))
            .collect();
        let expected = [(2, "row 197"), (2, "and 52 more"), (1, "and 3 more")];
        assert_eq!(last, expected);
        let (texts, more) = listed(rows(25).collect(), MAX_ITEMS);
        assert_eq!((texts.len(), more), (20, 5));
    }
}
