//! An audit of several runs.

use plumbline_browser::VisitEvent;
use plumbline_engine::runs::{representative, spread};

use crate::{AuditFault, Audited, Auditor, Order};

/// A page that could not be measured so often in a row will not be by trying on.
const HOPELESS: usize = 2;

impl Auditor {
    /// Audits `runs` times. The report is the representative run's and carries the spread of all.
    pub async fn audit_several(
        &self,
        order: &Order,
        runs: u32,
        progress: &(dyn Fn(VisitEvent<'_>) + Send + Sync),
    ) -> Result<Audited, AuditFault> {
        if runs <= 1 {
            return self.audit(order, progress).await;
        }
        let mut all = Vec::new();
        for _ in 0..runs {
            all.push(self.audit_once(order, progress).await?);
            if all.len() >= HOPELESS && all.iter().all(|run| run.report.error.is_some()) {
                break;
            }
        }
        chosen(all, runs).ok_or_else(|| AuditFault("the page was not visited".to_owned()))
    }
}

fn chosen(mut all: Vec<Audited>, asked_for: u32) -> Option<Audited> {
    let reports: Vec<_> = all.iter().map(|run| run.report.clone()).collect();
    let Some(which) = representative(&reports) else {
        // No run was measured: the last one's reason is as good as any.
        return all.pop();
    };
    let mut chosen = all.swap_remove(which);
    chosen.report.runs = Some(spread(&reports, asked_for, which));
    let failed = reports.iter().filter(|run| run.error.is_some()).count();
    if failed > 0 {
        chosen.report.warnings.push(format!(
            "{failed} of {} runs could not be measured.",
            reports.len()
        ));
    }
    Some(chosen)
}
