//! Makes inputs on the controls of an audited page, once per audit.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use plumbline_browser::{NetworkPath, VisitEvent, VisitPlan, interact};
use plumbline_bundle::{Encoding, InteractionRecords, Phase};
use plumbline_link::Servers;
use plumbline_seam::{AuditOutput, Order, SavedState, View, VisitNumber, VisitReason};

use crate::auditor::Progress;
use crate::held_evidence::JudgedVisit;
use crate::redaction::{Redacted, Secrets};
use crate::sessions::SessionKeeper;
use crate::{AuditEvent, AuditFault, Auditor, conditions};

impl Auditor {
    /// Makes the inputs that an order asks for, and adds them to the output of the run that was
    /// chosen from several. Other methods do it themselves.
    pub fn add_interactions<'a>(
        &'a self,
        order: &'a Order,
        output: AuditOutput,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<AuditOutput, AuditFault>> {
        Box::pin(async move {
            let encoding = Encoding::Container;
            let session = SessionKeeper::of(order);
            let visit = self.interact_after(order, &session, output.into(), encoding, progress);
            visit.await?.pack(encoding).await
        })
    }

    /// Makes the inputs that an order asks for, and adds them to the visit that is reported. If
    /// they fail, the report says why: the visit is complete without them.
    pub(crate) async fn interact_after(
        &self,
        order: &Order,
        session: &SessionKeeper<'_>,
        visit: JudgedVisit,
        encoding: Encoding,
        progress: &Progress<'_>,
    ) -> Result<JudgedVisit, AuditFault> {
        if order.options.interactions.is_none() || visit.report.error.is_some() {
            return Ok(visit);
        }
        let visits = visit.report.conditions.cpu.visits;
        progress(AuditEvent {
            visit: VisitNumber {
                run: 1,
                number: visits,
                max: visits,
                reason: VisitReason::First,
            },
            event: VisitEvent::PhaseStarted(Phase::Gathering),
        });
        let records = match self.interact(order, session.state()).await {
            Ok(records) => records,
            Err(fault) => {
                let reason = Redacted(&fault);
                tracing::warn!(%reason, "failed to measure interactions");
                InteractionRecords::failed("No browser could be prepared for the inputs.")
            }
        };
        visit.with_interactions(records, encoding).await
    }

    async fn interact(
        &self,
        order: &Order,
        saved: Option<Arc<SavedState>>,
    ) -> Result<InteractionRecords, AuditFault> {
        let resolved = conditions::resolve(&self.catalog, &self.agent_location, order)?;
        let calibration = self.cpu.calibration().await.map_err(AuditFault::of)?;
        let choice = calibration.choose(resolved.conditions.cpu.device_index);
        let secrets = Secrets::of(&order.options, saved.as_deref())?;
        let mut browser = self.browsers.take().await.map_err(AuditFault::of)?;
        browser.wait_for_turn(choice.throttle).await;
        let clock = Arc::clone(browser.clock());
        let steps_link = self.open_steps_link(&order.options).await?;
        let link = self
            .open_link(
                &resolved.conditions,
                resolved.network.loss_pct,
                clock,
                Servers::Real,
            )
            .await?;
        // The next paint does not wait for the network, and each input needs a load.
        link.remove_limits();
        let plan = VisitPlan {
            network: NetworkPath::Proxy(link.address()),
            interactions: order.options.interactions.number(),
            saved,
            // The cache does not matter, because each input needs another load.
            view: View::First,
            ..self.plan(order, &resolved, choice.throttle, steps_link.as_ref())
        };
        let records = interact(browser, &plan, &|_| {}).await;
        link.close().await;
        if let Some(link) = steps_link {
            link.close().await;
        }
        Ok(match secrets {
            Some(secrets) => secrets.redact_interactions(records),
            None => records,
        })
    }
}
