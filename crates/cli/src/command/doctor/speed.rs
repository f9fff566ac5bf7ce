//! Checks of the stored calibration, and of the devices that this machine can emulate.

use std::time::{Duration, SystemTime};

use plumbline_agent::{Calibration, Cpu};
use plumbline_browser::Launcher;
use plumbline_catalog::Catalog;

use super::{Finding, warning};
use crate::settings::calibration_file;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The age from which a calibration may no longer describe a machine: those of clouds move to other
/// hosts, and their neighbours change.
const MAX_AGE: Duration = DAY.saturating_mul(30);

/// Describes how devices are emulated by browsers that see their clock, or do not.
pub(super) fn emulation(launcher: &Launcher, sees_clock: bool) -> Finding {
    if sees_clock {
        return Finding::Ok("Processor: devices are emulated by page clocks".to_owned());
    }
    let (reason, advice) = if launcher.uses_page_clocks() {
        (
            "this Chromium cannot be preloaded with a clock",
            "use a Chromium that is linked dynamically, such as that of your distribution; snaps \
             are not",
        )
    } else {
        (
            "page clocks are off (--no-page-clock)",
            "allow page clocks: audits take less time and are more accurate",
        )
    };
    let text = format!("Processor: devices are emulated by Chromium's own throttling: {reason}");
    warning(text, advice)
}

pub(super) fn calibration(launcher: &Launcher, catalog: &Catalog) -> Vec<Finding> {
    let cpu = Cpu::new(launcher.clone(), calibration_file(launcher));
    match cpu.stored_calibration() {
        Some(calibration) => vec![
            age(&calibration, file_age(launcher)),
            devices(&calibration, catalog),
        ],
        None => vec![warning(
            "Calibration: none for this machine and browser",
            "calibrate with `plumbline doctor --calibrate`; otherwise the first audit does",
        )],
    }
}

fn file_age(launcher: &Launcher) -> Option<Duration> {
    let changed = std::fs::metadata(calibration_file(launcher)?)
        .ok()?
        .modified()
        .ok()?;
    SystemTime::now().duration_since(changed).ok()
}

fn age(calibration: &Calibration, age: Option<Duration>) -> Finding {
    let index = calibration.host_index;
    let days = age.map(|age| age.as_secs() / DAY.as_secs());
    let days = match days {
        None => "of unknown age".to_owned(),
        Some(0) => "of today".to_owned(),
        Some(1) => "one day old".to_owned(),
        Some(days) => format!("{days} days old"),
    };
    let text = format!("Calibration: {days}, CPU index {index:.0}");
    if age.is_some_and(|age| age > MAX_AGE) {
        return warning(text, "calibrate again with `plumbline doctor --calibrate`");
    }
    Finding::Ok(text)
}

fn devices(calibration: &Calibration, catalog: &Catalog) -> Finding {
    let all = catalog.devices();
    let faster: Vec<&str> = all
        .iter()
        .filter(|device| calibration.choose(device.cpu_index).limited_by_host)
        .map(|device| device.id.as_str())
        .collect();
    if faster.is_empty() {
        return Finding::Ok(format!("Devices: all {} can be emulated", all.len()));
    }
    warning(
        format!(
            "Devices: {} of {} can be emulated; faster than this machine: {}",
            all.len() - faster.len(),
            all.len(),
            faster.join(", ")
        ),
        "use a faster machine, or page clocks, which need a Chromium that is linked dynamically; \
         reports say where a device was too fast",
    )
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::BUILT_IN;
    use serde_json::json;

    use super::*;

    fn calibration(host_index: f64) -> Calibration {
        let stored = json!({
            "browser": "Chrome/1", "processor": "p", "optimized": true, "hostIndex": host_index,
            "nominal": { "turnNs": 1.0, "crowding": 1.0 }, "way": "by-chromium", "steps": [],
        });
        serde_json::from_value(stored).unwrap()
    }

    #[test]
    fn an_old_calibration_and_fast_devices_are_reported() {
        let text = |finding: Finding| match finding {
            Finding::Ok(text) => format!("ok {text}"),
            Finding::Warning { text, .. } => format!("warn {text}"),
            Finding::Failure { text, .. } => format!("FAIL {text}"),
        };
        let slow = calibration(500.0);
        assert_eq!(
            text(age(&slow, Some(Duration::from_secs(60)))),
            "ok Calibration: of today, CPU index 500"
        );
        let old = text(age(&slow, Some(DAY * 40)));
        assert_eq!(old, "warn Calibration: 40 days old, CPU index 500");
        let catalog = Catalog::load(BUILT_IN).unwrap();
        let devices_text = text(devices(&slow, &catalog));
        assert!(devices_text.starts_with("warn Devices: "), "{devices_text}");
        assert!(devices_text.contains("macbookAir2020"), "{devices_text}");
        assert!(!devices_text.contains(" mobile"), "{devices_text}");
        assert_eq!(
            text(devices(&calibration(9000.0), &catalog)),
            "ok Devices: all 41 can be emulated"
        );
    }
}
