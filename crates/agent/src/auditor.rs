//! Performs one audit, from order to report.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use plumbline_browser::{
    Gathering, NetworkPath, Pool, Throttle, VisitError, VisitEvent, VisitPlan, visit,
};
use plumbline_bundle::{Encoding, Failure, FailureCode, Phase, Record, StepRecords};
use plumbline_catalog::Catalog;
use plumbline_clock::PageClock;
use plumbline_link::{Guard, LineProfile, Link, LinkConfig, Servers};
use plumbline_model::interval::intervals;
use plumbline_model::report::{Conditions, ConsentConditions, NetworkIsolation, Report};
use plumbline_seam::{AuditOutput, Order, VisitNumber, VisitOptions};
use tokio::time::timeout;

use crate::conditions::{self, AgentLocation, ResolvedOrder};
use crate::cpu::{Calibration, Cpu};
use crate::failure_reason;
use crate::held_evidence::JudgedVisit;
use crate::judging::judge;
use crate::page_evidence::PageEvidence;
use crate::redaction::{Redacted, Secrets};
use crate::sessions::{SessionKeeper, SignedIn};
use crate::traffic::{Interception, store_recording};
use crate::visits::{RepeatPolicy, Visit, are_comparable, are_enough, choose, reason_for_next};

/// An internal error, after which the audit may be tried again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AuditFault(pub String);

impl AuditFault {
    pub(crate) fn of(error: impl std::error::Error) -> Self {
        Self(error.to_string())
    }
}

/// An event of an audit, for its observer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AuditEvent<'a> {
    /// The visit in which the event happened.
    pub visit: VisitNumber,
    pub event: VisitEvent<'a>,
}

/// The observer of an audit's progress.
pub(crate) type Progress<'o> = dyn Fn(AuditEvent<'_>) + Send + Sync + 'o;

/// The observer of a visit.
pub(crate) type Observer<'o> = dyn Fn(VisitEvent<'_>) + Send + Sync + 'o;

/// Performs audits, each visit in a fresh browser.
pub struct Auditor {
    pub browsers: Pool,
    /// Ends the connections of visits that are recorded or replayed.
    pub interception: Interception,
    pub catalog: Arc<Catalog>,
    pub guard: Arc<Guard>,
    pub cpu: Cpu,
    pub agent_location: AgentLocation,
    /// The maximum number of visits of one audit.
    pub max_visits: usize,
}

/// Time allowed besides the deadline of the visit, for set-up, the end of the trace and gathering.
const VISIT_OVERHEAD: Duration = Duration::from_secs(150);

impl Auditor {
    /// Visits and judges a page until its score is certain enough. A page that cannot be measured
    /// gets a report with an error.
    pub fn audit<'a>(
        &'a self,
        order: &'a Order,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<AuditOutput, AuditFault>> {
        Box::pin(async move {
            self.audit_encoded(order, Encoding::Container, progress)
                .await
        })
    }

    /// Performs one of several runs that will be compared: only visits that the host disturbed are
    /// repeated, and nothing is measured after them. [`Auditor::measure_after_runs`] does that for
    /// one run.
    pub fn audit_run<'a>(
        &'a self,
        order: &'a Order,
        progress: &'a Progress<'a>,
    ) -> BoxFuture<'a, Result<AuditOutput, AuditFault>> {
        Box::pin(async move {
            let (policy, encoding) = (RepeatPolicy::IfDisturbed, Encoding::Container);
            let (session, page) = (SessionKeeper::of(order), PageEvidence::default());
            let visit = self
                .audit_with(policy, order, &session, &page, encoding, progress)
                .await?;
            Ok(session.add_to(visit.pack(encoding).await?))
        })
    }

    /// Audits like [`Auditor::audit`], with the evidence in an encoding.
    pub(crate) async fn audit_encoded(
        &self,
        order: &Order,
        encoding: Encoding,
        progress: &Progress<'_>,
    ) -> Result<AuditOutput, AuditFault> {
        let policy = RepeatPolicy::UntilCertain;
        let (session, page) = (SessionKeeper::of(order), PageEvidence::default());
        let visit = self
            .audit_with(policy, order, &session, &page, encoding, progress)
            .await?;
        let visit = self
            .measure_after_visits(order, &session, visit, encoding, progress)
            .await?;
        Ok(session.add_to(visit.pack(encoding).await?))
    }

    /// Visits and judges a page as often as `policy` demands, and returns the visit to report.
    /// `encoding` is that of evidence too large to be held unpacked.
    pub(crate) async fn audit_with(
        &self,
        policy: RepeatPolicy,
        order: &Order,
        session: &SessionKeeper<'_>,
        page: &PageEvidence,
        encoding: Encoding,
        progress: &Progress<'_>,
    ) -> Result<JudgedVisit, AuditFault> {
        let resolved = conditions::resolve(&self.catalog, &self.agent_location, order)?;
        // The first audit of a host waits for the calibration, which is not part of the time for
        // its visits.
        let calibration = self.cpu.calibration().await.map_err(AuditFault::of)?;
        let max_visits = if order.options.quick {
            1
        } else {
            self.max_visits
        };
        let start = Instant::now();
        let (mut outputs, mut visits) = (Vec::<JudgedVisit>::new(), Vec::new());
        while !are_enough(&visits, policy, max_visits, start.elapsed()) {
            if let Some(last) = outputs.pop() {
                outputs.push(last.hold(max_visits, encoding).await?);
            }
            let visit = VisitNumber {
                run: 1,
                number: u32::try_from(visits.len() + 1).unwrap_or(u32::MAX),
                max: u32::try_from(max_visits).unwrap_or(u32::MAX),
                reason: reason_for_next(&visits),
            };
            let observe = |event: VisitEvent<'_>| progress(AuditEvent { visit, event });
            let result = self
                .visit_signed_in(order, session, page, &resolved, &calibration, &observe)
                .await;
            let output = match result {
                Ok(output) => output,
                // An earlier measurement is reported although it could not be confirmed.
                Err(fault) if visits.iter().any(Visit::is_reportable) => {
                    let reason = Redacted(&fault);
                    tracing::warn!(%reason, "failed to visit again to confirm the score");
                    break;
                }
                Err(fault) => return Err(fault),
            };
            visits.push(Visit::new(&output.report));
            outputs.push(output);
        }
        let index =
            choose(&visits).ok_or_else(|| AuditFault("the page was not visited".to_owned()))?;
        let all = outputs.iter().map(|output| &output.report).zip(&visits);
        let all = all.filter(|(_, visit)| are_comparable(visit, &visits[index]));
        let all: Vec<&Report> = all.map(|(report, _)| report).collect();
        let intervals = intervals(&outputs[index].report, &all);
        let mut output = outputs.swap_remove(index);
        let report = &mut output.report;
        report.intervals = intervals;
        report.conditions.cpu.visits = u32::try_from(visits.len()).unwrap_or(u32::MAX);
        if !visits[index].is_undisturbed() {
            report.warnings.push(match visits.len() {
                1 => "This machine was busy during the visit.".to_owned(),
                number => format!(
                    "This machine was busy during each of {number} visits; the least disturbed is \
                     shown."
                ),
            });
        }
        Ok(output)
    }

    /// Visits and judges a page, with the state of a saved session if there is one.
    pub(crate) async fn visit_and_judge(
        &self,
        order: &Order,
        session: Option<SignedIn<'_>>,
        page: &PageEvidence,
        resolved: &ResolvedOrder<'_>,
        calibration: &Calibration,
        progress: &Observer<'_>,
    ) -> Result<JudgedVisit, AuditFault> {
        let mut conditions = resolved.conditions.clone();
        let cpu = &mut conditions.cpu;
        let choice = calibration.choose(cpu.device_index);
        cpu.rate = choice.rate;
        cpu.emulation = Some(calibration.method.into());
        cpu.limited_by_host = choice.limited_by_host;
        cpu.nominal_index = Some(calibration.host_index);
        conditions.network.isolation = Some(match self.browsers.launcher().network_isolation() {
            plumbline_browser::NetworkIsolation::Namespace => NetworkIsolation::Namespace,
            plumbline_browser::NetworkIsolation::Shared { .. } => NetworkIsolation::Shared,
        });

        let options = &order.options;
        // A recording contains what is gathered from the servers, too.
        let gathering = if options.record {
            Gathering::Everything
        } else {
            page.gathering()
        };
        let saved = session.map(|session| session.state);
        let secrets = Secrets::of(options, saved.map(Arc::as_ref))?;
        let traffic = match self.prepare_traffic(order).await? {
            Ok(traffic) => traffic,
            Err(failure) => return Ok(Report::failed(&order.url, conditions, failure).into()),
        };
        let browsers = traffic.browsers(self);
        let mut browser = browsers.take().await.map_err(AuditFault::of)?;
        browser.wait_for_turn(choice.throttle).await;
        let clock = Arc::clone(browser.clock());
        let steps_link = self.open_steps_link(options).await?;
        let link = self
            .open_link(
                &conditions,
                resolved.network.loss_pct,
                clock,
                traffic.servers(),
            )
            .await?;
        let began_at = Timestamp::now();
        let plan = VisitPlan {
            network: NetworkPath::Proxy(link.address()),
            gathering,
            repeatable_since_ms: traffic.repeatable_since_ms(),
            blocked_urls: traffic.blocked_urls(),
            saved: saved.cloned(),
            session_expect: session
                .map(|session| Box::new(session.sign_in.definition.expect.clone())),
            ..self.plan(order, resolved, choice.throttle, steps_link.as_ref())
        };
        let deadline = plan.steps_deadline() + plan.deadline + VISIT_OVERHEAD;
        // Decided when gathering begins: later requests are not those of the page.
        let page_over_limit = OnceLock::new();
        let steps = Mutex::new(StepRecords::default());
        let manager = Mutex::new(None);
        let observe = |event: VisitEvent<'_>| {
            // Requests besides the page (robots.txt, source maps) are not measured, and must not be
            // cut off because the network is slow.
            if event == VisitEvent::PhaseStarted(Phase::Gathering) {
                page_over_limit.get_or_init(|| link.over_limit());
                link.remove_limits();
            }
            match (event, &secrets) {
                (VisitEvent::StepEnded(record), secrets) => {
                    let record = match secrets {
                        Some(secrets) => secrets.redact_step(record),
                        None => record.clone(),
                    };
                    steps.lock().0.push(record);
                }
                (VisitEvent::ConsentEnded { manager: found }, _) => {
                    *manager.lock() = found.map(str::to_owned);
                }
                (VisitEvent::DocumentLoaded(url), Some(secrets)) => {
                    progress(VisitEvent::DocumentLoaded(&secrets.redact(url)));
                }
                (event, _) => progress(event),
            }
        };
        let result = timeout(deadline, visit(browser, &plan, &observe)).await;
        let result = {
            let page_over_limit = *page_over_limit.get_or_init(|| link.over_limit());
            failure_reason::explain(result, &link, page_over_limit)
        };
        let failed = failure_reason::failed_connections(&link.records());
        traffic.add_to(&mut conditions);
        let recording = traffic.recording(&order.url, &link, began_at);
        link.close().await;
        if let Some(link) = steps_link {
            link.close().await;
        }
        let steps = steps.into_inner();
        if let Some(consent) = &mut conditions.consent {
            consent.manager = manager.into_inner();
        }
        let result = match &secrets {
            None => result,
            Some(secrets) => match result {
                Ok(bundle) => Ok(secrets.redact_bundle(bundle).await?),
                Err(VisitError::Page(failure)) => {
                    Err(VisitError::Page(secrets.redact_failure(failure)))
                }
                Err(VisitError::Fault(reason)) => Err(VisitError::Fault(secrets.redact(&reason))),
            },
        };
        match result {
            Ok(mut bundle) => {
                if !page.complete(&mut bundle, gathering) {
                    let again =
                        self.visit_and_judge(order, session, page, resolved, calibration, progress);
                    return Box::pin(again).await;
                }
                failed.store_in(&mut bundle).map_err(AuditFault::of)?;
                if !steps.0.is_empty() {
                    steps.store_in(&mut bundle).map_err(AuditFault::of)?;
                }
                if let Some(recording) = recording {
                    store_recording(recording, &mut bundle, secrets.as_ref()).await?;
                }
                if let Some(ConsentConditions { manager: None, .. }) = conditions.consent {
                    let warning = "The page shows no consent dialog of a known manager, or none that one \
                                   click answers; it was measured without an answer.";
                    bundle.warnings.push(warning.to_owned());
                }
                progress(VisitEvent::PhaseStarted(Phase::Judging));
                judge(bundle, conditions).await
            }
            Err(VisitError::Page(failure)) => {
                let report = Report::failed(&order.url, conditions, failure);
                Ok(JudgedVisit::failed(report, steps))
            }
            Err(VisitError::Fault(reason)) => Err(AuditFault(reason)),
        }
    }

    /// Returns the report of an audit that was tried too often.
    pub fn exhausted(&self, order: &Order) -> AuditOutput {
        let failure = Failure::new(
            FailureCode::Internal,
            "The audit was tried several times and failed each time with an internal error.",
        );
        self.failed(order, failure)
    }

    /// Returns the report of an audit that fails without a visit, perhaps because the catalog lacks
    /// one of its conditions.
    pub(crate) fn failed(&self, order: &Order, failure: Failure) -> AuditOutput {
        let resolved = conditions::resolve(&self.catalog, &self.agent_location, order);
        let conditions = resolved.map_or_else(|_| order.conditions(), |it| it.conditions);
        Report::failed(&order.url, conditions, failure).into()
    }

    /// Returns the plan of a visit without its network.
    pub(crate) fn plan(
        &self,
        order: &Order,
        resolved: &ResolvedOrder<'_>,
        throttle: Throttle,
        steps_link: Option<&Link>,
    ) -> VisitPlan {
        let options = &order.options;
        VisitPlan {
            throttle,
            deadline: Duration::from_secs(resolved.network.deadline_s.into()),
            allow_error_status: options.allow_error_status,
            state: options.state.clone(),
            expect: options.expect.clone(),
            steps: options.steps.clone(),
            consent: options.consent,
            view: options.view.clone(),
            steps_network: match steps_link {
                Some(link) => NetworkPath::Proxy(link.address()),
                None => NetworkPath::Direct,
            },
            ..VisitPlan::new(&order.url, resolved.device.clone())
        }
    }

    /// Opens the link for what is done before a visit, if there is anything.
    pub(crate) async fn open_steps_link(
        &self,
        options: &VisitOptions,
    ) -> Result<Option<Link>, AuditFault> {
        if !options.need_steps() && !options.need_warm_cache() {
            return Ok(None);
        }
        let config = LinkConfig::new(LineProfile::UNLIMITED, Arc::clone(&self.guard));
        let link = Link::open(config).map_err(AuditFault::of)?;
        Ok(Some(link))
    }

    pub(crate) async fn open_link(
        &self,
        conditions: &Conditions,
        loss_pct: f64,
        clock: Arc<PageClock>,
        servers: Servers,
    ) -> Result<Link, AuditFault> {
        let profile = LineProfile {
            down_kbps: Some(conditions.network.down_kbps),
            up_kbps: Some(conditions.network.up_kbps),
            rtt_ms: conditions.network.rtt_ms,
            loss_pct,
        };
        let config = LinkConfig {
            clock: Some(clock),
            servers,
            ..LinkConfig::new(profile, Arc::clone(&self.guard))
        };
        Link::open(config).map_err(AuditFault::of)
    }
}
