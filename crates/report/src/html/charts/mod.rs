//! Charts as SVG. Charts contain numbers and trusted texts only, nothing that an audited page
//! controls; colours are classes of the stylesheet.

mod axis;
mod curve;
mod field;
mod main_thread;
mod ring;
mod strip;
mod treemap;
mod waterfall;

pub use axis::{Axis, WIDTH};
pub(super) use curve::curve;
pub(super) use field::distribution;
pub(super) use main_thread::main_thread;
pub(super) use ring::{fraction_ring, ring};
pub(super) use strip::strip;
pub(super) use treemap::{Rectangle, tiles};
pub use waterfall::{bar, has_unknown_phases};
