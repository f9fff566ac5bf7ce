//! Table rows for layout shifts: the element, the score, and below it the likely causes.

use std::collections::HashMap;

use plumbline_model::check::{Cell, Findings, Row, Unit};

use super::element_cell;
use crate::facts::{Culprit, Facts, Shift};

pub(super) fn shift_table() -> Findings {
    Findings::new([
        ("node", "Element", Unit::Element),
        ("score", "Layout shift score", Unit::Number),
    ])
}

pub(super) fn shift_row(facts: &Facts, shift: &Shift, impacts: &HashMap<i64, f64>) -> Row {
    let moved = element_cell(facts, shift.most_moved(impacts));
    let images = shift.culprits.iter().filter_map(|culprit| match culprit {
        Culprit::UnsizedImage(node) => {
            let image = element_cell(facts, Some(*node));
            Some(Row::new([image, Cell::text("Image without dimensions")]))
        }
        _ => None,
    });
    let fonts = shift.culprits.iter().filter_map(|culprit| match culprit {
        Culprit::WebFont(url) => Some(Row::new([Cell::url(url), Cell::text("Web font loaded")])),
        _ => None,
    });
    let frames = shift.culprits.iter().filter_map(|culprit| match culprit {
        Culprit::Frame(url) => {
            let url = url.as_ref().map_or(Cell::Nothing, Cell::url);
            Some(Row::new([url, Cell::text("Frame inserted")]))
        }
        _ => None,
    });
    Row::new([moved, Cell::Number(shift.score)]).with(images.chain(fonts).chain(frames))
}
