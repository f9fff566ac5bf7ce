//! The progress of an audit on standard error, if that is a terminal.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressState, ProgressStyle};
use plumbline_agent::Cpu;
use plumbline_bundle::Phase;
use plumbline_seam::{ASSUMED_RUN, VisitNumber, times_text};

/// The interval at which the time is updated. Drawing more often would disturb the measurement.
const INTERVAL: Duration = Duration::from_secs(1);

/// The unit that is counted while the page is visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Runs of one audit, or audits of one page.
    Runs(u32),
    /// Pairs of visits of a comparison, which ends earlier if it is certain.
    Pairs(u32),
}

impl Count {
    fn number(self) -> u32 {
        match self {
            Self::Runs(number) | Self::Pairs(number) => number,
        }
    }

    /// Describes the position of a visit and its phase.
    fn text(self, visit: VisitNumber, phase: Phase) -> String {
        let is_comparison = matches!(self, Self::Pairs(_));
        let visit = visit.text(self.number(), is_comparison);
        format!("{visit} · {}", phase.as_str())
    }
}

/// A line with the number of the run and of the visit, the phase, the time since the start and an
/// estimate of the remaining time. It is removed when it is dropped.
pub struct ProgressLine {
    bar: ProgressBar,
    count: Count,
    /// The number of the current run or pair, from 1.
    run: AtomicU32,
    estimate: Arc<Estimate>,
}

impl ProgressLine {
    /// Starts the line. It says so if the host has to be calibrated first.
    pub fn start(cpu: &Cpu, count: Count) -> Self {
        let estimate = Arc::new(Estimate::new(count.number()));
        let shown = Arc::clone(&estimate);
        let times = move |state: &ProgressState, out: &mut dyn Write| {
            // Writing to the line of the terminal cannot fail.
            let _ = out.write_str(&shown.times(state.elapsed()));
        };
        // The template is constant and valid; the default style shows the phase, too.
        let style = ProgressStyle::with_template("{msg} · {times}")
            .map(|style| style.with_key("times", times))
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner()
            .with_style(style)
            .with_finish(ProgressFinish::AndClear)
            .with_message(match cpu.stored_calibration() {
                Some(_) => "Starting",
                None => "Measuring the speed of this machine, once",
            });
        bar.enable_steady_tick(INTERVAL);
        Self {
            bar,
            count,
            run: AtomicU32::new(1),
            estimate,
        }
    }

    /// Shows another run or pair from now on.
    pub fn set_run(&self, number: u32) {
        if self.run.swap(number, Relaxed) != number {
            let completed = number.saturating_sub(1);
            self.estimate.set(completed, self.bar.elapsed());
        }
    }

    /// Shows a visit of the current run and its phase.
    pub fn show(&self, phase: Phase, visit: VisitNumber) {
        let run = self.run.load(Relaxed);
        let visit = VisitNumber { run, ..visit };
        self.bar.set_message(self.count.text(visit, phase));
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The estimated duration of all runs.
struct Estimate {
    runs: u32,
    whole_seconds: AtomicU64,
}

impl Estimate {
    fn new(runs: u32) -> Self {
        let whole = ASSUMED_RUN.saturating_mul(runs);
        Self {
            runs,
            whole_seconds: AtomicU64::new(whole.as_secs()),
        }
    }

    /// Estimates the duration from the runs so far.
    fn set(&self, completed: u32, elapsed: Duration) {
        if let Some(run) = elapsed.checked_div(completed) {
            let whole = run.saturating_mul(self.runs);
            self.whole_seconds.store(whole.as_secs(), Relaxed);
        }
    }

    fn times(&self, elapsed: Duration) -> String {
        let elapsed = elapsed.as_secs();
        let remaining = self.whole_seconds.load(Relaxed).checked_sub(elapsed);
        times_text(elapsed, remaining.filter(|seconds| *seconds > 0))
    }
}

#[cfg(test)]
mod tests {
    use plumbline_seam::VisitReason;

    use super::*;

    #[test]
    fn the_line_has_the_words_of_the_api() {
        let visit = VisitNumber {
            run: 2,
            number: 2,
            max: 3,
            reason: VisitReason::Uncertain,
        };
        for (count, text) in [
            (
                Count::Runs(1),
                "Visit 2 of at most 3: confirming the score · loading",
            ),
            (
                Count::Runs(2),
                "Run 2 of 2, visit 2 of at most 3: confirming the score · loading",
            ),
        ] {
            assert_eq!(count.text(visit, Phase::Loading), text);
        }
        let pair = Count::Pairs(10).text(visit, Phase::Judging);
        assert!(pair.starts_with("Pair 2 of at most 10"), "{pair}");
    }

    #[test]
    fn the_time_left_follows_the_runs_so_far() {
        let estimate = Estimate::new(2);
        let seconds = Duration::from_secs;
        assert_eq!(estimate.times(seconds(20)), "20 s so far, about 40 s left");
        estimate.set(1, seconds(25));
        assert_eq!(estimate.times(seconds(30)), "30 s so far, about 20 s left");
        assert_eq!(estimate.times(seconds(50)), "50 s so far");
    }
}
