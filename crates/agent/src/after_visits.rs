//! Makes the measurements that an order asks for after its visits, once per audit: inputs on the
//! controls of the page, the steps of a flow, and a load with a profiler. Each has a browser of its
//! own.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use plumbline_browser::{
    Browser, NetworkPath, ProfiledLoad, VisitEvent, VisitPlan, interact, measure_flow, profile,
};
use plumbline_bundle::{Encoding, FlowRecords, InteractionRecords, Phase, ProfileRecords};
use plumbline_link::{Link, Servers};
use plumbline_seam::{AuditOutput, Order, SavedState, View, VisitNumber, VisitReason};

use crate::auditor::Progress;
use crate::held_evidence::JudgedVisit;
use crate::redaction::{Redacted, Secrets};
use crate::sessions::SessionKeeper;
use crate::{AuditEvent, AuditFault, Auditor, conditions, judging};

/// A browser for one measurement after the visits, with its network.
struct PreparedBrowser {
    browser: Browser,
    plan: VisitPlan,
    link: Link,
    steps_link: Option<Link>,
    secrets: Option<Secrets>,
}

/// The network of a measurement after the visits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Network {
    /// The network of the order.
    Emulated,
    /// One without limits of latency and bandwidth.
    Unlimited,
}

impl Auditor {
    /// Makes the measurements after the visits, and adds them to the output of the run that was
    /// chosen from several. Other methods do it themselves.
    pub fn measure_after_runs<'a>(
        &'a self,
        order: &'a Order,
        output: AuditOutput,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<AuditOutput, AuditFault>> {
        Box::pin(async move {
            let encoding = Encoding::Container;
            let session = SessionKeeper::of(order);
            let visit = output.into();
            let visit = self.measure_after_visits(order, &session, visit, encoding, progress);
            visit.await?.pack(encoding).await
        })
    }

    /// Makes the measurements after the visits, and adds them to the visit that is reported. If one
    /// fails, the report says why: the visit is complete without it.
    pub(crate) async fn measure_after_visits(
        &self,
        order: &Order,
        session: &SessionKeeper<'_>,
        mut visit: JudgedVisit,
        encoding: Encoding,
        progress: &Progress<'_>,
    ) -> Result<JudgedVisit, AuditFault> {
        let options = &order.options;
        if visit.report.error.is_some() {
            return Ok(visit);
        }
        let visits = visit.report.conditions.cpu.visits;
        let begin = || {
            progress(AuditEvent {
                visit: VisitNumber {
                    run: 1,
                    number: visits,
                    max: visits,
                    reason: VisitReason::First,
                },
                event: VisitEvent::PhaseStarted(Phase::Gathering),
            });
        };
        if !options.interactions.is_none() {
            begin();
            let records = self.interact(order, session.state()).await;
            let records = records.unwrap_or_else(|fault| {
                let reason = Redacted(&fault);
                tracing::warn!(%reason, "failed to measure interactions");
                InteractionRecords::failed("No browser could be prepared for the inputs.")
            });
            visit = visit.with_interactions(records, encoding).await?;
        }
        if options.need_flow() {
            begin();
            let records = self.perform_flow(order, session.state()).await;
            let records = records.unwrap_or_else(|fault| {
                let reason = Redacted(&fault);
                tracing::warn!(%reason, "failed to measure a flow");
                FlowRecords::failed("No browser could be prepared for the flow.")
            });
            visit = visit.with_flow(records, encoding).await?;
        }
        if options.profile {
            begin();
            let profiled = self.profile(order, session.state()).await;
            let profiled = profiled.unwrap_or_else(|fault| {
                let reason = Redacted(&fault);
                tracing::warn!(%reason, "failed to profile a page");
                let message = "No browser could be prepared for the profiler.";
                ProfiledLoad {
                    records: ProfileRecords::failed(message),
                    ..ProfiledLoad::default()
                }
            });
            visit = visit.with_profile(profiled, encoding).await?;
        }
        Ok(visit)
    }

    async fn interact(
        &self,
        order: &Order,
        saved: Option<Arc<SavedState>>,
    ) -> Result<InteractionRecords, AuditFault> {
        // The next paint does not wait for the network, and each input needs a load.
        let mut prepared = self
            .prepare_browser(order, saved, Network::Unlimited)
            .await?;
        prepared.plan.interactions = order.options.interactions.number();
        let PreparedBrowser { browser, plan, .. } = prepared;
        let records = interact(browser, &plan, &|_| {}).await;
        close(prepared.link, prepared.steps_link).await;
        Ok(match prepared.secrets {
            Some(secrets) => secrets.redact_interactions(records),
            None => records,
        })
    }

    async fn perform_flow(
        &self,
        order: &Order,
        saved: Option<Arc<SavedState>>,
    ) -> Result<FlowRecords, AuditFault> {
        let mut prepared = self
            .prepare_browser(order, saved, Network::Emulated)
            .await?;
        prepared.plan.flow = order.options.flow.clone();
        let PreparedBrowser { browser, plan, .. } = prepared;
        let records = measure_flow(browser, &plan, &|_| {}).await;
        close(prepared.link, prepared.steps_link).await;
        Ok(match prepared.secrets {
            Some(secrets) => secrets.redact_flow(records),
            None => records,
        })
    }

    async fn profile(
        &self,
        order: &Order,
        saved: Option<Arc<SavedState>>,
    ) -> Result<ProfiledLoad, AuditFault> {
        let mut prepared = self
            .prepare_browser(order, saved, Network::Emulated)
            .await?;
        prepared.plan.view = order.options.view.clone();
        let PreparedBrowser {
            browser,
            plan,
            link,
            steps_link,
            secrets,
        } = prepared;
        let observe = |event: VisitEvent<'_>| {
            // Source maps are not part of the load.
            if event == VisitEvent::PhaseStarted(Phase::Gathering) {
                link.remove_limits();
            }
        };
        let profiled = profile(browser, &plan, |trace| Box::pin(analyse(trace)), &observe).await;
        close(link, steps_link).await;
        match secrets {
            Some(secrets) => secrets.redact_profile(profiled).await,
            None => Ok(profiled),
        }
    }

    async fn prepare_browser(
        &self,
        order: &Order,
        saved: Option<Arc<SavedState>>,
        network: Network,
    ) -> Result<PreparedBrowser, AuditFault> {
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
        if network == Network::Unlimited {
            link.remove_limits();
        }
        let plan = VisitPlan {
            network: NetworkPath::Proxy(link.address()),
            saved,
            // The page is loaded several times anyway.
            view: View::First,
            ..self.plan(order, &resolved, choice.throttle, steps_link.as_ref())
        };
        Ok(PreparedBrowser {
            browser,
            plan,
            link,
            steps_link,
            secrets,
        })
    }
}

/// Computes the records of a load with a profiler.
async fn analyse(trace: Vec<u8>) -> Result<(Vec<u8>, ProfileRecords), String> {
    let analysed = judging::profile(trace).await;
    analysed.map_err(|fault| fault.0)
}

async fn close(link: Link, steps_link: Option<Link>) {
    link.close().await;
    if let Some(link) = steps_link {
        link.close().await;
    }
}
