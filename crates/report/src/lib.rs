//! A report in the forms that people and programs read. Pure: data in, text out.

pub mod contract;
pub mod html;
pub mod terminal;
