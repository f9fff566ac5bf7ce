//! The functions that a load with a profiler spent its time in.

use std::fmt::{Result, Write};

use plumbline_bundle::CodePlace;
use plumbline_model::report::Report;

use super::plain;
use crate::html::functions;

/// Writes the function with the most time of its own and the most expensive forced layout, if there
/// was a load with a profiler.
pub(super) fn write(out: &mut String, report: &Report) -> Result {
    let Some(profile) = &report.profile else {
        return Ok(());
    };
    let url = report.final_url.as_deref().unwrap_or(&report.requested_url);
    let text = |place: &CodePlace| {
        let (name, at) = (functions::name(place), functions::file_and_line(place, url));
        plain(&format!("{name}, {at}"))
    };
    let top = profile.functions.first();
    let reflow = profile.reflows.first();
    let lines = [
        ("Most script time", top.map(|it| (it.self_ms, &it.function))),
        ("Forced layout", reflow.map(|it| (it.total_ms, &it.place))),
    ];
    writeln!(out)?;
    for (name, line) in lines {
        if let Some((ms, place)) = line {
            let value = format!("{ms:.0} ms");
            writeln!(out, "  {name:<26}{value:>7}  {} (profiled)", text(place))?;
        }
    }
    if let Some(error) = &profile.error {
        writeln!(out, "  The profile is not complete: {}", plain(error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::terminal::{Colors, render};

    #[test]
    fn the_most_expensive_function_and_layout_are_named_with_file_and_line() {
        let place = |line: u32| {
            json!({
                "function": "t", "url": "https://example.com/app.js", "line": 0, "column": 58,
                "original": { "function": "compute", "source": "src/app.js", "line": line, "column": 1 },
            })
        };
        let mut report = crate::testing::report();
        let profile = json!({
            "functions": [{ "function": place(2), "selfMs": 201.4, "totalMs": 210.0 }],
            "reflows": [{ "place": place(9), "count": 3, "totalMs": 80.2 }],
        });
        report.profile = Some(Box::new(serde_json::from_value(profile).unwrap()));
        let text = render(&report, Colors::None);
        for line in [
            "  Most script time           201 ms  compute, src/app.js:3 (profiled)\n",
            "  Forced layout               80 ms  compute, src/app.js:10 (profiled)\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let failed = json!({ "error": "The page did not respond in time." });
        report.profile = Some(Box::new(serde_json::from_value(failed).unwrap()));
        let text = render(&report, Colors::None);
        assert!(text.contains("The profile is not complete: The page did not respond in time.\n"));
        assert!(!text.contains("Most script time"));
    }
}
