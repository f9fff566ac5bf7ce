//! The conditions under which a page was loaded, as rows of a table.

use plumbline_model::report::{
    ConsentConditions, CpuConditions, CpuEmulationMethod, LocationConditions, LocationMode,
    NetworkConditions, NetworkIsolation, Report, StateNames, View,
};
use plumbline_model::runs::Runs;

use super::figures::{date, ms, short_name};
use super::recording::recording_text;
use super::summary::intervals_summary;

/// Returns the name and value of each condition that affects figures and that two audits must share
/// to be comparable. The slowdown of the CPU is left out: it differs between hosts so that the
/// device is equally fast on them.
pub fn compared_conditions(report: &Report) -> Vec<(&'static str, String)> {
    let conditions = &report.conditions;
    let network = &conditions.network;
    let mut rows = vec![
        ("Device", conditions.device.name.clone()),
        ("Network", short_name(&network.name).to_owned()),
        ("Connection", connection(network)),
        ("Location", location_text(&conditions.location)),
        (
            "CPU",
            if conditions.cpu.limited_by_host {
                "slower than the device"
            } else {
                "as fast as the device"
            }
            .to_owned(),
        ),
        (
            "Network isolation",
            match network.isolation {
                Some(NetworkIsolation::Shared) => "none",
                _ => "network namespace",
            }
            .to_owned(),
        ),
        ("View", view_text(&conditions.view)),
        (
            "Session",
            conditions
                .session
                .clone()
                .unwrap_or_else(|| "none".to_owned()),
        ),
        (
            "State",
            or_none(
                &conditions
                    .state
                    .as_deref()
                    .map_or_else(Vec::new, state_names),
            ),
        ),
        ("Steps before the visit", or_none(&conditions.steps)),
        (
            "Consent",
            conditions
                .consent
                .as_ref()
                .map_or_else(|| "none".to_owned(), consent_text),
        ),
        (
            "Recording",
            if conditions.replay.is_some() {
                "visited in place of the servers"
            } else {
                "none"
            }
            .to_owned(),
        ),
    ];
    if let Some(browser) = &report.browser {
        rows.push(("Browser", browser.product.clone()));
    }
    rows
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join("; ")
    }
}

/// Returns the name and value of each condition.
pub(super) fn rows(report: &Report, made_at_ms: Option<i64>) -> Vec<(&'static str, String)> {
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
    let mut chosen = vec![
        ("Device", conditions.device.name.clone()),
        ("Network", short_name(&network.name).to_owned()),
        ("Connection", connection(network)),
        ("Location", location_text(location)),
    ];
    if location.mode == LocationMode::Requested {
        for (_, value) in &mut chosen {
            value.insert_str(0, "requested: ");
        }
    } else {
        chosen.push(("CPU", cpu_text(cpu)));
    }
    rows.append(&mut chosen);
    if network.isolation == Some(NetworkIsolation::Shared) {
        let shared =
            "none: the browser shared the machine's network, restricted only by Chromium's flags";
        rows.push(("Network isolation", shared.to_owned()));
    }
    if let Some(state) = &conditions.state {
        let names = state_names(state);
        if !names.is_empty() {
            rows.push(("State", names.join("; ")));
        }
    }
    if !conditions.steps.is_empty() {
        rows.push(("Steps before the visit", conditions.steps.join("; ")));
    }
    if let Some(session) = &conditions.session {
        rows.push(("Session", session.clone()));
    }
    if !conditions.view.is_first() {
        rows.push(("View", view_text(&conditions.view)));
    }
    if let Some(consent) = &conditions.consent {
        rows.push(("Consent", consent_text(consent)));
    }
    if let Some(replay) = &conditions.replay {
        rows.push(("Recording", recording_text(replay)));
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
        rows.push(("Visits", format!("{}, the most reliable shown", cpu.visits)));
    }
    if let Some(runs) = &report.runs {
        rows.push(("Runs", runs_text(runs)));
    }
    if let Some(summary) = intervals_summary(&report.intervals) {
        rows.push(("Intervals", summary));
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
    if let Some(made_at_ms) = made_at_ms {
        rows.push(("Date", date(made_at_ms)));
    }
    rows.push(("Report by", format!("Plumbline {}", crate::VERSION)));
    rows
}

/// Describes which of several runs is shown, and how far their performance scores differ, if they
/// do.
pub(crate) fn runs_text(runs: &Runs) -> String {
    let (count, chosen) = (runs.count, runs.chosen);
    let performance = runs.scores.get("performance");
    let range = performance.and_then(|scores| Some((scores.min?, scores.max?)));
    let range = range.filter(|(min, max)| min < max);
    let scores = range.map_or(String::new(), |(min, max)| {
        format!("; performance scores from {min:.0} to {max:.0}")
    });
    format!("{count}, run {chosen} shown (median){scores}")
}

/// Describes how far the CPU was slowed down.
fn cpu_text(cpu: &CpuConditions) -> String {
    match (cpu.limited_by_host, cpu.emulation, cpu.rate > 1.0) {
        (true, _, _) => "not slowed down: the device is faster than this machine".to_owned(),
        (false, Some(CpuEmulationMethod::Clock), _) => {
            format!("the page's clock ran at {:.2} times real time", cpu.rate)
        }
        (false, Some(CpuEmulationMethod::Chromium), true) => {
            format!("slowed down {:.1} times by Chromium", cpu.rate)
        }
        (false, _, true) => format!("slowed down {:.1} times", cpu.rate),
        (false, _, false) => "not slowed down".to_owned(),
    }
}

fn connection(network: &NetworkConditions) -> String {
    format!(
        "{} down, {} up, {:.0} ms round trip",
        rate(network.down_kbps),
        rate(network.up_kbps),
        network.rtt_ms
    )
}

/// Describes the location, and whether the operator stated it.
fn location_text(location: &LocationConditions) -> String {
    let name = &location.name;
    match (location.mode, location.is_stated) {
        (LocationMode::Agent, Some(true)) => format!("{name} (measured there)"),
        (LocationMode::Agent, Some(false)) => {
            format!("{} (requested: {name})", location.label())
        }
        (LocationMode::Agent, None) => name.clone(),
        (LocationMode::Requested, _) => name.clone(),
        (LocationMode::Simulated, is_stated) => {
            let from = match is_stated {
                Some(false) => "; the place of this machine is not stated",
                _ => "",
            };
            format!(
                "{name} (simulated: {:+.0} ms round trip{from})",
                location.added_rtt_ms
            )
        }
    }
}

/// Describes the cache before the visit.
pub fn view_text(view: &View) -> String {
    match view {
        View::First => "first visit, empty cache".to_owned(),
        View::Repeat => "repeat visit, warm cache".to_owned(),
        View::After(url) => format!("warm cache after {url}"),
    }
}

/// Describes the answer to the page's consent dialog.
fn consent_text(consent: &ConsentConditions) -> String {
    let choice = consent.choice.as_str();
    match &consent.manager {
        Some(manager) => format!("{choice}, in the dialog of {manager}"),
        None => format!("{choice}, but there was no dialog of a known consent manager"),
    }
}

/// Returns the names of everything that the visit began with.
fn state_names(state: &StateNames) -> Vec<String> {
    let lists = [
        ("cookies", &state.cookies),
        ("local storage", &state.local_storage),
        ("session storage", &state.session_storage),
        ("headers", &state.headers),
        ("blocked hosts", &state.blocked_hosts),
    ];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
    let lists = lists.map(|(kind, names)| format!("{kind}: {}", names.join(", ")));
    let basic_auth = state.basic_auth.then(|| "basic authentication".to_owned());
    let script = state.script.then(|| "script at document start".to_owned());
    lists.chain(basic_auth).chain(script).collect()
}

/// Formats a data rate in the units and with the precision of the catalog's names.
fn rate(kbps: f64) -> String {
    if kbps >= 1000.0 {
        format!("{} Mbps", (kbps / 10.0).round() / 100.0)
    } else {
        format!("{kbps:.0} Kbps")
    }
}

#[cfg(test)]
mod tests {
    use plumbline_model::report::ReplayConditions;

    use super::*;

    #[test]
    fn data_rates_have_the_units_of_the_catalog() {
        for (kbps, text) in [
            (384.0, "384 Kbps"),
            (1500.0, "1.5 Mbps"),
            (5000.0, "5 Mbps"),
            (10240.0, "10.24 Mbps"),
        ] {
            assert_eq!(rate(kbps), text);
        }
    }

    #[test]
    fn a_recording_is_a_condition_that_is_compared() {
        let mut report = crate::testing::report();
        let compared = |report: &Report| {
            let mut rows = compared_conditions(report).into_iter();
            rows.find(|(name, _)| *name == "Recording").unwrap().1
        };
        let is_described = |report: &Report| {
            let mut rows = rows(report, None).into_iter();
            rows.any(|(name, text)| name == "Recording" && text == "of 15 Jan 2027, 08:00 UTC")
        };
        assert_eq!(compared(&report), "none");
        assert!(!is_described(&report));
        report.conditions.replay = Some(Box::new(ReplayConditions {
            recorded_at: "2027-01-15T08:00:00Z".to_owned(),
            ..ReplayConditions::default()
        }));
        assert_eq!(compared(&report), "visited in place of the servers");
        assert!(is_described(&report));
    }

    #[test]
    fn the_visit_shown_is_not_called_the_median() {
        let mut report = crate::testing::report();
        report.conditions.cpu.visits = 2;
        let rows = rows(&report, None);
        let visits = rows.iter().find(|(name, _)| *name == "Visits").unwrap();
        assert_eq!(visits.1, "2, the most reliable shown");
    }

    #[test]
    fn equal_scores_of_all_runs_have_no_range() {
        let report = crate::testing::report();
        let runs = plumbline_model::runs::spread(&[report.clone(), report], 2, 0);
        assert_eq!(runs_text(&runs), "2, run 1 shown (median)");
    }
}
