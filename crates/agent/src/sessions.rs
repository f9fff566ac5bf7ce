//! Saved sessions: signs in when a session was not made yet or has ended, and keeps its state for
//! all visits of an audit.

use std::sync::Arc;

use parking_lot::Mutex;
use plumbline_browser::{NetworkPath, VisitError, VisitEvent, VisitPlan};
use plumbline_bundle::{Failure, FailureCode, StepRecords};
use plumbline_link::{LineProfile, Link, LinkConfig};
use plumbline_model::report::Report;
use plumbline_seam::{AuditOutput, MadeSession, Order, SavedState, SessionUse, SignIn};

use crate::auditor::Observer;
use crate::conditions::ResolvedOrder;
use crate::cpu::Calibration;
use crate::held_evidence::JudgedVisit;
use crate::page_evidence::PageEvidence;
use crate::redaction::Secrets;
use crate::{AuditFault, Auditor};

/// The saved session of an audit.
pub(crate) struct SessionKeeper<'o> {
    session: Option<(&'o str, &'o SignIn)>,
    state: Mutex<KeptState>,
}

#[derive(Default)]
struct KeptState {
    state: Option<Arc<SavedState>>,
    /// True if the state was made in this audit. It is not made again, because another attempt
    /// would end in the same way.
    is_made: bool,
}

/// The state of a saved session in a visit.
#[derive(Clone, Copy)]
pub(crate) struct SignedIn<'s> {
    pub(crate) sign_in: &'s SignIn,
    pub(crate) state: &'s Arc<SavedState>,
}

impl<'o> SessionKeeper<'o> {
    pub(crate) fn of(order: &'o Order) -> Self {
        let session = order.options.session.as_ref();
        let session = session.and_then(|SessionUse { name, sign_in }| {
            let sign_in = sign_in.as_deref()?;
            Some((name.as_str(), sign_in))
        });
        let saved = session.and_then(|(_, sign_in)| sign_in.state.clone());
        Self {
            session,
            state: Mutex::new(KeptState {
                state: saved.map(Arc::new),
                is_made: false,
            }),
        }
    }

    /// Returns the state that the last visit began with, if there is one.
    pub(crate) fn state(&self) -> Option<Arc<SavedState>> {
        self.state.lock().state.clone()
    }

    /// Adds the state to the result of the audit if it was made, and if the measured page did not
    /// refuse it.
    pub(crate) fn add_to(&self, output: AuditOutput) -> AuditOutput {
        let kept = self.state.lock();
        let error = output.report.error.as_ref();
        let is_refused = error.is_some_and(may_be_signed_out);
        let made = kept.state.as_ref().filter(|_| kept.is_made && !is_refused);
        let session = self
            .session
            .zip(made)
            .map(|((_, sign_in), state)| MadeSession {
                version: sign_in.version,
                state: SavedState::clone(state),
            });
        AuditOutput { session, ..output }
    }
}

/// Returns whether a visit may have failed because nobody is signed in.
fn may_be_signed_out(failure: &Failure) -> bool {
    matches!(
        failure.code,
        FailureCode::PreconditionFailed | FailureCode::HttpError
    )
}

impl Auditor {
    /// Visits and judges a page, with the state of the audit's saved session if it uses one. A
    /// session that was not made yet is made first; one that seems to have ended is made once more.
    pub(crate) async fn visit_signed_in(
        &self,
        order: &Order,
        session: &SessionKeeper<'_>,
        page: &PageEvidence,
        resolved: &ResolvedOrder<'_>,
        calibration: &Calibration,
        progress: &Observer<'_>,
    ) -> Result<JudgedVisit, AuditFault> {
        let Some((name, sign_in)) = session.session else {
            let visit = self.visit_and_judge(order, None, page, resolved, calibration, progress);
            return visit.await;
        };
        loop {
            let kept = session.state.lock().state.clone();
            let state = match kept {
                Some(state) => state,
                None => match self.sign_in(order, sign_in, resolved).await? {
                    Ok(state) => {
                        let state = Arc::new(state);
                        *session.state.lock() = KeptState {
                            state: Some(Arc::clone(&state)),
                            is_made: true,
                        };
                        state
                    }
                    Err((failure, steps)) => {
                        let message = format!(
                            "Signing in for the session `{name}` failed. {}",
                            failure.message
                        );
                        let failure = Failure::new(failure.code, message);
                        let conditions = resolved.conditions.clone();
                        let report = Report::failed(&order.url, conditions, failure);
                        return Ok(JudgedVisit::failed(report, steps));
                    }
                },
            };
            let signed_in = SignedIn {
                sign_in,
                state: &state,
            };
            let visit = self
                .visit_and_judge(
                    order,
                    Some(signed_in),
                    page,
                    resolved,
                    calibration,
                    progress,
                )
                .await?;
            let mut kept = session.state.lock();
            let failure = visit.report.error.as_ref();
            if kept.is_made || !failure.is_some_and(may_be_signed_out) {
                return Ok(visit);
            }
            kept.state = None;
        }
    }

    /// Performs the steps of a session in a browser of its own, so that the visit after them is as
    /// cold as any other. The inner error is the reason why the session cannot be made, with the
    /// steps so far.
    async fn sign_in(
        &self,
        order: &Order,
        sign_in: &SignIn,
        resolved: &ResolvedOrder<'_>,
    ) -> Result<Result<SavedState, (Failure, StepRecords)>, AuditFault> {
        let secrets = Secrets::of(&order.options, None)?;
        let definition = &sign_in.definition;
        let browser = self.browsers.take().await.map_err(AuditFault::of)?;
        let config = LinkConfig::new(LineProfile::UNLIMITED, Arc::clone(&self.guard));
        let link = Link::open(config).map_err(AuditFault::of)?;
        let network = NetworkPath::Proxy(link.address());
        let url = definition.url.as_ref().unwrap_or(&order.url);
        let plan = VisitPlan {
            network: network.clone(),
            steps_network: network,
            steps: definition.steps.clone(),
            ..VisitPlan::new(url, resolved.device.clone())
        };
        let steps = Mutex::new(StepRecords::default());
        let observe = |event: VisitEvent<'_>| {
            if let VisitEvent::StepEnded(record) = event {
                let record = match &secrets {
                    Some(secrets) => secrets.redact_step(record),
                    None => record.clone(),
                };
                steps.lock().0.push(record);
            }
        };
        let result = plumbline_browser::sign_in(browser, &plan, &observe).await;
        link.close().await;
        let redact = |text: &str| match &secrets {
            Some(secrets) => secrets.redact(text),
            None => text.to_owned(),
        };
        match result {
            Ok(state) => Ok(Ok(state)),
            Err(VisitError::Page(failure)) => {
                let failure = Failure::new(failure.code, redact(&failure.message));
                Ok(Err((failure, steps.into_inner())))
            }
            Err(VisitError::Fault(reason)) => Err(AuditFault(redact(&reason))),
        }
    }
}
