//! The list "What to fix first" in the terminal.

use std::fmt::{Result, Write};

use plumbline_model::report::Report;

use super::{Colors, plain};
use crate::html::plain_fixes;

/// The most fixes listed.
const MAX_FIXES: usize = 5;

/// Writes the failed checks to fix first, with their gains and the place of the first fault.
pub(super) fn write(out: &mut String, report: &Report, colors: Colors) -> Result {
    let fixes = plain_fixes(report);
    if fixes.is_empty() {
        return Ok(());
    }
    let heading = colors.heading();
    writeln!(out, "\n  {heading}What to fix first{heading:#}")?;
    for (number, fix) in (1..=MAX_FIXES).zip(fixes) {
        let gains = plain(&fix.gains.join(", "));
        writeln!(out, "  {number}. {} ({gains})", plain(fix.title))?;
        for line in [fix.place, fix.overlaps].into_iter().flatten() {
            writeln!(out, "     {}", plain(&line))?;
        }
    }
    Ok(())
}
