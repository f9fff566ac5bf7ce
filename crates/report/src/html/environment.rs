//! What the page was loaded under, in rows of words.

use plumbline_engine::report::{LocationMode, NetworkIsolation, Report};

use super::figures::{in_short, ms};

pub(super) fn rows(report: &Report) -> Vec<(&'static str, String)> {
    let conditions = &report.conditions;
    let (cpu, network, location) = (&conditions.cpu, &conditions.network, &conditions.location);
    let mut rows = vec![("Address", report.requested_url.clone())];
    if let Some(led_to) = report
        .final_url
        .as_ref()
        .filter(|url| **url != report.requested_url)
    {
        rows.push(("Led to", led_to.clone()));
    }
    rows.extend([
        ("Device", conditions.device.name.clone()),
        ("Network", in_short(&network.name).to_owned()),
        (
            "Line",
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
                LocationMode::Agent => format!("{} (an agent stands there)", location.name),
                LocationMode::Simulated => format!(
                    "{} (simulated: {:+.0} ms round trip)",
                    location.name, location.added_rtt_ms
                ),
            },
        ),
        (
            "Processor",
            match (cpu.limited_by_host, cpu.rate > 1.0) {
                (true, _) => "as fast as this machine: the device is faster".to_owned(),
                (false, true) => format!("slowed down {:.1} times", cpu.rate),
                (false, false) => "not slowed down".to_owned(),
            },
        ),
    ]);
    if network.isolation == Some(NetworkIsolation::Shared) {
        let shared = "shared with the machine: only Chromium's flags kept the page in";
        rows.push(("Network isolation", shared.to_owned()));
    }
    if let Some(contention) = cpu.contention {
        rows.push((
            "Waiting for a core",
            format!(
                "{} ({:.0} % of the work), taken out of the figures",
                ms(contention.waited_ms),
                contention.share * 100.0
            ),
        ));
    }
    if cpu.visits > 1 {
        let stands_for_all = format!("{} (the one that stands for all is shown)", cpu.visits);
        rows.push(("Visits", stands_for_all));
    }
    if let Some(doubt) = cpu.score_uncertainty {
        let known = format!("to about {doubt:.1} points by one visit");
        rows.push(("Performance score known", known));
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
        rows.push(("The visit took", phases.join(", ")));
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
