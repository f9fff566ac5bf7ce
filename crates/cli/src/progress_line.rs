//! The progress of an audit on standard error, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use plumbline_agent::Cpu;
use plumbline_bundle::Phase;
use plumbline_seam::{VisitNumber, VisitReason};

/// The interval at which the time is updated. Drawing more often would disturb the measurement.
const INTERVAL: Duration = Duration::from_secs(1);

/// A line with the number of the run, the time since its start and the phase. It is removed when it
/// is dropped.
pub struct ProgressLine {
    bar: ProgressBar,
    /// The number of runs.
    count: u32,
}

impl ProgressLine {
    /// Starts the line for one of several runs. It says so if the host has to be calibrated first.
    pub fn start(cpu: &Cpu, number: u32, count: u32) -> Self {
        // The template is constant and valid; the default style shows the phase, too.
        let style = ProgressStyle::with_template("{prefix}{elapsed:>4}  {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner()
            .with_style(style)
            .with_finish(ProgressFinish::AndClear);
        bar.enable_steady_tick(INTERVAL);
        if cpu.stored_calibration().is_none() {
            bar.set_message("measuring the speed of this machine, once");
        }
        let line = Self { bar, count };
        line.set_run(number);
        line
    }

    /// Shows another run.
    pub fn set_run(&self, number: u32) {
        if self.count > 1 {
            let prefix = format!("run {number} of {}  ", self.count);
            self.bar.set_prefix(prefix);
        }
    }

    /// Shows a phase, and the number of the visit if the page is visited again.
    pub fn show(&self, phase: Phase, visit: VisitNumber) {
        let message = match visit.reason {
            VisitReason::First => phase.as_str().to_owned(),
            VisitReason::Disturbed | VisitReason::Uncertain => {
                let VisitNumber { number, max, .. } = visit;
                format!("visit {number} of at most {max}: {}", phase.as_str())
            }
        };
        self.bar.set_message(message);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
