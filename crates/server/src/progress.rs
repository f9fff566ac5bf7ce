//! The progress of an unfinished audit, for the API and the progress page.

use std::time::Duration;

use plumbline_seam::{ASSUMED_RUN, VisitNumber, times_text};
use plumbline_store::{AuditState, AuditStatus, QueuePosition, Timestamp};
use serde::Serialize;

use crate::{
    errors::Failure,
    phases::{AuditPhases, CurrentPhase},
    state::SharedState,
};

/// The progress of an unfinished audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Progress {
    /// `waiting`, or the name of the phase.
    pub(crate) phase: &'static str,
    /// A sentence for people.
    pub(crate) text: String,
    /// The position of the visit within the audit, while it is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) visit: Option<VisitNumber>,
    /// The place in the queue, from 1, while the audit waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue_position: Option<u64>,
    /// The time since the audit was accepted.
    pub(crate) elapsed_seconds: u64,
    /// The estimated time until the audit is completed; `None` if it takes longer than others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remaining_seconds: Option<u64>,
    /// The time since the audit has begun; `None` while it waits.
    #[serde(skip)]
    pub(crate) running_seconds: Option<u64>,
}

impl Progress {
    /// Returns the progress of an audit, or `None` if it is completed.
    pub(crate) async fn of(
        service: &SharedState,
        account_id: &str,
        status: &AuditStatus,
    ) -> Result<Option<Self>, Failure> {
        if status.state == AuditState::Completed {
            return Ok(None);
        }
        let app = &service.app;
        let phase = AuditPhases::of_store(&*app.store).current(&status.tracking_id);
        // A running audit has no position. One whose phase was not reported yet may have none.
        let position = match phase {
            Some(_) => None,
            None => {
                let id = &status.tracking_id;
                app.store.queue_position(account_id, id).await?
            }
        };
        let is_comparison = match phase.and_then(|phase| phase.visit) {
            Some(_) => {
                let audit = app.store.audit(account_id, &status.tracking_id).await?;
                audit.is_some_and(|audit| audit.order.options.need_comparison())
            }
            None => false,
        };
        let typical = app.metrics.mean_run().unwrap_or(ASSUMED_RUN);
        let situation = Situation {
            accepted_at: status.accepted_at,
            runs: status.runs,
            is_comparison,
            phase,
            position,
            typical_run: typical,
        };
        Ok(Some(situation.progress((app.clock)())))
    }

    /// Returns the time since the audit has begun, or has waited so far, and the remaining time, as
    /// a text.
    pub(crate) fn times(&self) -> String {
        let elapsed = self.running_seconds.unwrap_or(self.elapsed_seconds);
        times_text(elapsed, self.remaining_seconds)
    }
}

/// Everything from which the progress is computed.
struct Situation {
    accepted_at: Timestamp,
    /// The number of runs, or of pairs of visits.
    runs: u32,
    is_comparison: bool,
    phase: Option<CurrentPhase>,
    position: Option<QueuePosition>,
    typical_run: Duration,
}

impl Situation {
    fn progress(&self, now: Timestamp) -> Progress {
        let seconds_since = |at: Timestamp| now.0.saturating_sub(at.0).max(0).unsigned_abs() / 1000;
        let whole = self.typical_run.saturating_mul(self.runs).as_secs();
        let started_at = self.phase.and_then(|phase| phase.started_at);
        let running_seconds = started_at.map(seconds_since);
        let remaining_seconds = match (&self.phase, &self.position) {
            (Some(_), _) => running_seconds.and_then(|running| whole.checked_sub(running)),
            (None, Some(position)) => {
                let ahead = position.position.saturating_sub(1);
                let rounds = ahead.div_ceil(position.running.max(1));
                let wait = self.typical_run.as_secs().saturating_mul(rounds);
                Some(wait.saturating_add(whole))
            }
            (None, None) => None,
        };
        Progress {
            phase: self.phase.map_or("waiting", |phase| phase.phase.as_str()),
            text: self.text(),
            visit: self.phase.and_then(|phase| phase.visit),
            queue_position: self.position.map(|position| position.position),
            elapsed_seconds: seconds_since(self.accepted_at),
            remaining_seconds: remaining_seconds.filter(|seconds| *seconds > 0),
            running_seconds,
        }
    }

    fn text(&self) -> String {
        let Some(phase) = &self.phase else {
            return match &self.position {
                Some(position) => format!("Number {} in the queue", position.position),
                None => "Starting".to_owned(),
            };
        };
        match &phase.visit {
            Some(visit) => visit.text(self.runs, self.is_comparison),
            None => "Running".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use plumbline_bundle::Phase;
    use plumbline_seam::VisitReason;

    use super::*;

    fn waiting(position: u64, running: u64) -> Situation {
        Situation {
            accepted_at: Timestamp(1_000),
            runs: 1,
            is_comparison: false,
            phase: None,
            position: Some(QueuePosition { position, running }),
            typical_run: Duration::from_secs(20),
        }
    }

    fn running(runs: u32, number: u32, reason: VisitReason) -> Situation {
        let visit = VisitNumber {
            run: 1,
            number,
            max: 3,
            reason,
        };
        Situation {
            runs,
            phase: Some(CurrentPhase {
                phase: Phase::Loading,
                visit: Some(visit),
                started_at: Some(Timestamp(6_000)),
            }),
            position: None,
            ..waiting(1, 1)
        }
    }

    #[test]
    fn a_waiting_audit_has_a_place_and_waits_for_those_before_it() {
        for (position, slots, remaining) in [(1, 0, 20), (1, 2, 20), (2, 2, 40), (5, 2, 60)] {
            let progress = waiting(position, slots).progress(Timestamp(4_500));
            assert_eq!(progress.phase, "waiting");
            assert_eq!(progress.text, format!("Number {position} in the queue"));
            assert_eq!(progress.queue_position, Some(position));
            assert_eq!(progress.elapsed_seconds, 3);
            assert_eq!(progress.remaining_seconds, Some(remaining));
        }
    }

    #[test]
    fn a_running_audit_has_a_visit_and_an_estimate_until_it_takes_longer_than_others() {
        let first = running(1, 1, VisitReason::First).progress(Timestamp(11_000));
        assert_eq!(first.phase, "loading");
        assert_eq!(first.text, "Visit 1 of at most 3");
        assert_eq!(
            (first.elapsed_seconds, first.remaining_seconds),
            (10, Some(15))
        );
        assert_eq!(
            first.times(),
            "5 s so far, about 15 s left",
            "the time in the queue is left out"
        );
        let second = running(1, 2, VisitReason::Uncertain).progress(Timestamp(30_000));
        assert_eq!(second.text, "Visit 2 of at most 3: confirming the score");
        assert_eq!(second.remaining_seconds, None);
        assert_eq!(second.times(), "24 s so far");
        let disturbed = running(5, 2, VisitReason::Disturbed).progress(Timestamp(30_000));
        assert_eq!(
            disturbed.text,
            "Run 1 of 5, visit 2 of at most 3: the machine was busy before"
        );
        assert_eq!(disturbed.remaining_seconds, Some(76));
    }

    #[test]
    fn a_clock_that_was_set_back_gives_no_negative_time() {
        let progress = running(1, 1, VisitReason::First).progress(Timestamp(0));
        assert_eq!(progress.elapsed_seconds, 0);
        assert_eq!(progress.remaining_seconds, Some(20));
    }
}
