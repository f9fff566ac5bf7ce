//! An audit of several runs.

use futures_util::future::BoxFuture;
use plumbline_bundle::Encoding;
use plumbline_model::runs::{add_runs, representative};
use plumbline_seam::{AuditOutput, Order, VisitNumber};

use crate::auditor::Progress;
use crate::held_evidence::JudgedVisit;
use crate::page_evidence::PageEvidence;
use crate::sessions::SessionKeeper;
use crate::visits::RepeatPolicy;
use crate::{AuditEvent, AuditFault, Auditor};

/// The number of failed runs at the start after which no further run is tried.
const MAX_FAILURES_AT_START: usize = 2;

impl Auditor {
    /// Audits `runs` times. The report is that of the representative run, with the spread of all
    /// runs. If the order is a comparison, its runs are pairs of visits. The evidence is packed in
    /// `encoding`.
    pub fn audit_runs<'a>(
        &'a self,
        order: &'a Order,
        runs: u32,
        encoding: Encoding,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<AuditOutput, AuditFault>> {
        Box::pin(async move {
            if let Some(second_url) = &order.options.compare_with {
                let compare = self.compare(order, second_url, runs, encoding, progress);
                return compare.await;
            }
            if runs <= 1 {
                return self.audit_encoded(order, encoding, progress).await;
            }
            let (session, page) = (SessionKeeper::of(order), PageEvidence::default());
            let mut outputs: Vec<JudgedVisit> = Vec::new();
            for number in 1..=runs {
                let policy = RepeatPolicy::IfDisturbed;
                let observe = |event: AuditEvent<'_>| {
                    let visit = VisitNumber {
                        run: number,
                        ..event.visit
                    };
                    progress(AuditEvent { visit, ..event });
                };
                let run = self
                    .audit_with(policy, order, &session, &page, encoding, &observe)
                    .await?;
                // A run is held until all are made and one of them is chosen.
                outputs.push(run.hold(runs as usize, encoding).await?);
                let all_failed = outputs.iter().all(|run| run.report.error.is_some());
                if outputs.len() >= MAX_FAILURES_AT_START && all_failed {
                    break;
                }
            }
            let chosen = choose_run(outputs, runs);
            let chosen = chosen.ok_or_else(|| AuditFault("the page was not visited".to_owned()))?;
            let chosen = self
                .measure_after_visits(order, &session, chosen, encoding, progress)
                .await?;
            Ok(session.add_to(chosen.pack(encoding).await?))
        })
    }
}

fn choose_run(mut outputs: Vec<JudgedVisit>, requested: u32) -> Option<JudgedVisit> {
    let reports: Vec<_> = outputs.iter().map(|run| run.report.clone()).collect();
    let Some(index) = representative(&reports) else {
        // No run was measured: the reason of the last one is as good as any.
        return outputs.pop();
    };
    let mut chosen = outputs.swap_remove(index);
    add_runs(&mut chosen.report, &reports, requested, index);
    let failed = reports.iter().filter(|run| run.error.is_some()).count();
    if failed > 0 {
        chosen.report.warnings.push(format!(
            "{failed} of {} runs could not be measured.",
            reports.len()
        ));
    }
    Some(chosen)
}
