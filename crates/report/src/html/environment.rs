//! The conditions under which a page was loaded, as rows of a table.

use plumbline_model::report::{LocationMode, NetworkIsolation, Report};

use super::figures::{ms, short_name};

/// Returns the name and value of each condition.
pub(super) fn rows(report: &Report) -> Vec<(&'static str, String)> {
    let conditions = &report.conditions;
    let (cpu, network, location) = (&conditions.cpu, &conditions.network, &conditions.location);
    let mut rows = vec![("Requested URL", report.requested_url.clone())];
    if let Some(final_url) = report
        .final_url
        .as_ref()
        .filter(|url| **url != report.requested_url)
    {
        rows.push(("Final URL", final_url.clone()));
    }
    rows.extend([
        ("Device", conditions.device.name.clone()),
        ("Network", short_name(&network.name).to_owned()),
        (
            "Connection",
            format!(
                "{} down, {} up, {:.0} ms round trip",
                rate(network.down_kbps),
                rate(network.up_kbps),
                network.rtt_ms
            ),
        ),
        (
            "Location",
            match location.mode {
                LocationMode::Agent => format!("{} (measured there)", location.name),
                LocationMode::Simulated => format!(
                    "{} (simulated: {:+.0} ms round trip)",
                    location.name, location.added_rtt_ms
                ),
            },
        ),
        (
            "CPU",
            match (cpu.limited_by_host, cpu.rate > 1.0) {
                (true, _) => "not slowed down: the device is faster than this machine".to_owned(),
                (false, true) => format!("slowed down {:.1} times", cpu.rate),
                (false, false) => "not slowed down".to_owned(),
            },
        ),
    ]);
    if network.isolation == Some(NetworkIsolation::Shared) {
        let shared =
            "none: the browser shared the machine's network, restricted only by Chromium's flags";
        rows.push(("Network isolation", shared.to_owned()));
    }
    if let Some(contention) = cpu.contention {
        rows.push((
            "CPU contention",
            format!(
                "{} ({:.0} %), excluded from the metrics",
                ms(contention.waited_ms),
                contention.share * 100.0
            ),
        ));
    }
    if cpu.visits > 1 {
        rows.push(("Visits", format!("{}, median shown", cpu.visits)));
    }
    if let Some(doubt) = cpu.score_uncertainty {
        rows.push((
            "Score uncertainty",
            format!("±{doubt:.1} points (one visit)"),
        ));
    }
    if let Some(document) = &report.document {
        rows.push((
            "Document",
            format!("{}, {}", document.status, document.mime_type),
        ));
    }
    if let Some(browser) = &report.browser {
        rows.push(("Browser", browser.product.clone()));
        rows.push(("User agent", browser.user_agent.clone()));
    }
    if !report.timings.is_empty() {
        let phases: Vec<String> = report
            .timings
            .iter()
            .map(|timing| format!("{} {}", timing.phase.as_str(), ms(timing.ms)))
            .collect();
        rows.push(("Visit duration", phases.join(", ")));
    }
    rows
}

fn rate(kbps: f64) -> String {
    if kbps >= 1000.0 {
        format!("{:.1} Mbit/s", kbps / 1000.0)
    } else {
        format!("{kbps:.0} kbit/s")
    }
}
