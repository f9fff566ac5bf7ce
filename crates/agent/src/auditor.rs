//! One audit, from order to report.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use plumbline_browser::{NetworkPath, Pool, Step, VisitError, VisitPlan, visit};
use plumbline_bundle::{Bundle, Failure, FailureCode, Phase};
use plumbline_catalog::Catalog;
use plumbline_engine::not_measured;
use plumbline_engine::report::{Conditions, NetworkIsolation, Report};
use plumbline_link::{Guard, LineProfile, Link, LinkConfig};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::conditions::{self, Resolved};
use crate::cpu::{Calibration, Cpu};
use crate::judging::judge;
use crate::logged::Redacted;
use crate::reason;
use crate::visits::{Care, Seen, are_enough, chosen};

/// What is to be audited; ids are those of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub url: String,
    pub device: String,
    pub network: String,
    pub location: String,
}

/// What an audit leaves: the report, and the evidence it was made from where there is any.
#[derive(Debug)]
pub struct Audited {
    pub report: Report,
    /// A packed [`Bundle`].
    pub bundle: Option<Vec<u8>>,
    /// Packed report media: what pages show beside the report.
    pub media: Option<Vec<u8>>,
}

impl From<Report> for Audited {
    fn from(report: Report) -> Self {
        Self {
            report,
            bundle: None,
            media: None,
        }
    }
}

/// A fault of ours: the audit may be tried again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AuditFault(pub String);

impl AuditFault {
    pub(crate) fn of(error: impl std::error::Error) -> Self {
        Self(error.to_string())
    }
}

/// Makes audits, each in a fresh browser.
pub struct Auditor {
    pub browsers: Pool,
    pub catalog: Arc<Catalog>,
    pub guard: Arc<Guard>,
    pub cpu: Cpu,
    /// The location id of the place where this process really runs.
    pub stands_at: String,
    /// How often a page may be visited for one audit.
    pub most_visits: usize,
}

/// Beyond the visit's own deadline: set-up, the end of the trace, gathering.
const AROUND_THE_VISIT: Duration = Duration::from_secs(150);

impl Auditor {
    /// Visits and judges until the score is sure enough. A page that cannot be measured is a report with an error.
    pub async fn audit(
        &self,
        order: &Order,
        progress: &(dyn Fn(Step<'_>) + Send + Sync),
    ) -> Result<Audited, AuditFault> {
        self.audit_with(Care::Sure, order, progress).await
    }

    /// One of several audits that will be held side by side: no visit but those that the host spoiled is repeated.
    pub async fn audit_once(
        &self,
        order: &Order,
        progress: &(dyn Fn(Step<'_>) + Send + Sync),
    ) -> Result<Audited, AuditFault> {
        self.audit_with(Care::Once, order, progress).await
    }

    async fn audit_with(
        &self,
        care: Care,
        order: &Order,
        progress: &(dyn Fn(Step<'_>) + Send + Sync),
    ) -> Result<Audited, AuditFault> {
        let resolved = conditions::resolve(&self.catalog, &self.stands_at, order)?;
        // The first audit of a host waits for it, and has as much time for its visits as any other.
        let calibration = self.cpu.calibration().await.map_err(AuditFault::of)?;
        let began = Instant::now();
        let (mut all, mut seen) = (Vec::new(), Vec::new());
        while !are_enough(&seen, care, self.most_visits, began.elapsed()) {
            let visited = self.visit_and_judge(order, &resolved, &calibration, progress);
            let audited = match visited.await {
                Ok(audited) => audited,
                // What was measured is not lost for want of a confirmation.
                Err(fault) if seen.iter().any(Seen::can_be_shown) => {
                    let reason = Redacted(&fault);
                    tracing::warn!(%reason, "a visit to confirm a score could not be made");
                    break;
                }
                Err(fault) => return Err(fault),
            };
            seen.push(Seen::of(&audited.report));
            all.push(audited);
        }
        let which =
            chosen(&seen).ok_or_else(|| AuditFault("the page was not visited".to_owned()))?;
        let mut audited = all.swap_remove(which);
        let report = &mut audited.report;
        report.conditions.cpu.visits = u32::try_from(seen.len()).unwrap_or(u32::MAX);
        if !seen[which].is_calm() {
            report.warnings.push(format!(
                "This machine was busy during each of {} visits; the calmest is shown.",
                seen.len()
            ));
        }
        Ok(audited)
    }

    async fn visit_and_judge(
        &self,
        order: &Order,
        resolved: &Resolved<'_>,
        calibration: &Calibration,
        progress: &(dyn Fn(Step<'_>) + Send + Sync),
    ) -> Result<Audited, AuditFault> {
        let mut conditions = resolved.conditions.clone();
        let cpu = &mut conditions.cpu;
        let choice = calibration.choose(cpu.device_index);
        cpu.rate = choice.rate;
        cpu.limited_by_host = choice.limited_by_host;
        cpu.nominal_index = Some(calibration.host_index);
        conditions.network.isolation = Some(match self.browsers.launcher().network_isolation() {
            plumbline_browser::NetworkIsolation::Namespace => NetworkIsolation::Namespace,
            plumbline_browser::NetworkIsolation::Shared { .. } => NetworkIsolation::Shared,
        });

        let link = self
            .open_link(&conditions, resolved.network.loss_pct)
            .await?;
        let plan = VisitPlan {
            network: NetworkPath::Proxy(link.address()),
            throttle: choice.throttle,
            deadline: Duration::from_secs(resolved.network.deadline_s.into()),
            ..VisitPlan::new(&order.url, resolved.device.clone())
        };
        let allowed = plan.deadline + AROUND_THE_VISIT;
        // Known when gathering begins: what is fetched from then on is not the page's.
        let page_over_limit = OnceLock::new();
        let observe = |step: Step<'_>| {
            // What is fetched besides the page (robots.txt, source maps) is no part of what is
            // measured, and must not be cut because the line is slow.
            if step == Step::Entered(Phase::Gathering) {
                page_over_limit.get_or_init(|| link.over_limit());
                link.remove_limits();
            }
            progress(step);
        };
        let visited = timeout(allowed, self.visit(&plan, &observe)).await;
        let explained = {
            let page_over_limit = *page_over_limit.get_or_init(|| link.over_limit());
            reason::explain(visited, &link, page_over_limit)
        };
        link.close().await;
        match explained {
            Ok(bundle) => {
                progress(Step::Entered(Phase::Judging));
                judge(bundle, conditions).await
            }
            Err(VisitError::Page(failure)) => {
                Ok(not_measured(&order.url, conditions, failure).into())
            }
            Err(VisitError::Fault(reason)) => Err(AuditFault(reason)),
        }
    }

    /// The report of an audit that was tried too often.
    pub fn exhausted(&self, order: &Order) -> Result<Audited, AuditFault> {
        let resolved = conditions::resolve(&self.catalog, &self.stands_at, order)?;
        let failure = Failure::new(
            FailureCode::Internal,
            "The audit was tried several times and could not be carried out.",
        );
        Ok(not_measured(&order.url, resolved.conditions, failure).into())
    }

    async fn open_link(&self, conditions: &Conditions, loss_pct: f64) -> Result<Link, AuditFault> {
        let profile = LineProfile {
            down_kbps: Some(conditions.network.down_kbps),
            up_kbps: Some(conditions.network.up_kbps),
            rtt_ms: conditions.network.rtt_ms,
            loss_pct,
        };
        Link::open(LinkConfig::new(profile, Arc::clone(&self.guard)))
            .await
            .map_err(AuditFault::of)
    }

    async fn visit(
        &self,
        plan: &VisitPlan,
        progress: &(dyn Fn(Step<'_>) + Send + Sync),
    ) -> Result<Bundle, VisitError> {
        let browser = self.browsers.take().await;
        let browser = browser.map_err(|error| VisitError::Fault(error.to_string()))?;
        visit(browser, plan, progress).await
    }
}
