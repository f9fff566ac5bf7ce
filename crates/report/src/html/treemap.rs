//! The treemap of a page's scripts and of the sources that they were built from.

use plumbline_model::check::{Findings, Row};

use super::charts::{Rectangle, tiles};
use super::figures::{bytes, coordinate};
use crate::script_sizes::ScriptSizes;

/// The size of the chart, in units of its own.
const WHOLE: Rectangle = Rectangle {
    x: 0.0,
    y: 0.0,
    width: 1000.0,
    height: 380.0,
};
/// The height of a line of text, and the mean width of a character.
const LINE: f64 = 18.0;
const CHARACTER: f64 = 7.2;
/// The distance of texts and sources from the border of a script.
const PADDING: f64 = 3.0;
/// The area from which a source is drawn.
const MIN_AREA: f64 = 12.0;

/// A script or a source, drawn as a rectangle.
pub(super) struct Tile {
    /// Whether the tile contains others.
    pub(super) has_parts: bool,
    pub(super) outline: Outline,
    /// The part of the rectangle for what was not used.
    pub(super) unused: Option<Outline>,
    /// The name as far as it fits, with the position of its text.
    pub(super) label: Option<(String, String, String)>,
    /// The whole name with the sizes.
    pub(super) title: String,
}

/// A rectangle as attributes.
pub(super) struct Outline {
    pub(super) x: String,
    pub(super) y: String,
    pub(super) width: String,
    pub(super) height: String,
}

impl From<Rectangle> for Outline {
    fn from(rectangle: Rectangle) -> Self {
        let Rectangle {
            x,
            y,
            width,
            height,
        } = rectangle;
        let [x, y, width, height] = [x, y, width, height].map(coordinate);
        Self {
            x,
            y,
            width,
            height,
        }
    }
}

/// Returns the tiles of a table of scripts, or none if it has no sizes.
pub(super) fn treemap(table: &Findings) -> Vec<Tile> {
    let mut drawn = Vec::new();
    draw(&table.rows, WHOLE, &mut drawn);
    drawn
}

fn draw(rows: &[Row], within: Rectangle, drawn: &mut Vec<Tile>) {
    let mut rows: Vec<&Row> = rows.iter().filter(|row| size(row) > 0.0).collect();
    rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let sizes: Vec<f64> = rows.iter().map(|row| size(row)).collect();
    for (row, tile) in rows.into_iter().zip(tiles(&sizes, within)) {
        if tile.width * tile.height < MIN_AREA {
            continue;
        }
        let inner = Rectangle {
            x: tile.x + PADDING,
            y: tile.y + LINE,
            width: tile.width - 2.0 * PADDING,
            height: tile.height - LINE - PADDING,
        };
        let has_parts = !row.sub_rows.is_empty() && inner.width > LINE && inner.height > LINE;
        drawn.push(Tile {
            has_parts,
            outline: tile.into(),
            unused: (!has_parts).then(|| unused_part(row, tile)).flatten(),
            label: label(row, tile),
            title: title(row),
        });
        if has_parts {
            draw(&row.sub_rows, inner, drawn);
        }
    }
}

/// Returns the lower part of a tile, as large as what was not used.
fn unused_part(row: &Row, tile: Rectangle) -> Option<Outline> {
    let share = (unused(row)? / size(row)).clamp(0.0, 1.0);
    let height = tile.height * share;
    let part = Rectangle {
        y: tile.y + tile.height - height,
        height,
        ..tile
    };
    (height > 0.0).then(|| part.into())
}

fn label(row: &Row, tile: Rectangle) -> Option<(String, String, String)> {
    let fits = ((tile.width - 2.0 * PADDING) / CHARACTER) as usize;
    if tile.height < LINE || fits < 3 {
        return None;
    }
    let name = ScriptSizes::of(row).name;
    // The end of a path says more than its beginning.
    let path = name.split(['?', '#']).next().unwrap_or(name);
    let last = path.trim_end_matches('/').rsplit('/').next();
    let last = last.filter(|last| !last.is_empty()).unwrap_or(path);
    let mut text: String = last.chars().take(fits).collect();
    if text.len() < last.len() {
        text.pop();
        text.push('…');
    }
    let (x, y) = (tile.x + PADDING, tile.y + LINE - 5.0);
    Some((text, coordinate(x), coordinate(y)))
}

fn title(row: &Row) -> String {
    let sizes = match unused(row) {
        Some(unused) => format!(
            "{}, {} not used",
            bytes(whole(size(row))),
            bytes(whole(unused))
        ),
        None => bytes(whole(size(row))),
    };
    format!("{}: {sizes}", ScriptSizes::of(row).name)
}

fn whole(number: f64) -> u64 {
    number.round().max(0.0) as u64
}

fn size(row: &Row) -> f64 {
    ScriptSizes::of(row).resource_bytes
}

fn unused(row: &Row) -> Option<f64> {
    ScriptSizes::of(row).unused_bytes
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Cell;

    use super::*;

    fn row(name: &str, size: f64, unused: Option<f64>) -> Row {
        let unused = unused.map_or(Cell::Nothing, Cell::Bytes);
        Row::new([
            Cell::url(name),
            Cell::Bytes(size),
            Cell::Bytes(size / 3.0),
            unused,
        ])
    }

    fn drawn(rows: Vec<Row>) -> Vec<Tile> {
        treemap(&Findings {
            columns: Vec::new(),
            rows,
        })
    }

    #[test]
    fn a_script_without_sources_shows_how_much_was_not_used() {
        let tiles = drawn(vec![row(
            "https://a.test/js/main.js?v=1",
            4096.0,
            Some(1024.0),
        )]);
        assert_eq!(tiles.len(), 1);
        assert_eq!(tiles[0].label.as_ref().unwrap().0, "main.js");
        assert_eq!(tiles[0].unused.as_ref().unwrap().height, "95");
        assert!(
            tiles[0]
                .title
                .starts_with("https://a.test/js/main.js?v=1: 4")
        );
        assert!(tiles[0].title.ends_with("not used"));
    }

    #[test]
    fn sources_are_drawn_inside_their_script() {
        let script = row("https://a.test/a.js", 3000.0, None);
        let parts = [row("b.js", 2000.0, None), row("c.js", 1000.0, None)];
        let tiles = drawn(vec![script.with(parts)]);
        assert_eq!(tiles.len(), 3);
        assert!(tiles[0].has_parts && tiles[0].unused.is_none());
        assert!(!tiles[1].has_parts);
    }

    #[test]
    fn empty_and_unreadable_rows_are_left_out() {
        assert!(drawn(Vec::new()).is_empty());
        let without_size = Row::new([Cell::url("https://a.test/")]);
        assert!(
            drawn(vec![
                without_size,
                row("a", 0.0, None),
                row("b", f64::NAN, None)
            ])
            .is_empty()
        );
    }

    #[test]
    fn a_long_name_is_cut_where_the_tile_ends() {
        let name = "x".repeat(500);
        let tiles = drawn(vec![row(&name, 10.0, None)]);
        let label = &tiles[0].label.as_ref().unwrap().0;
        assert!(
            label.chars().count() < 150 && label.ends_with('…'),
            "{label}"
        );
    }
}
