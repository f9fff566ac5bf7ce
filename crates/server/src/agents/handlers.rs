//! The requests that an agent on another machine makes for an audit.

use std::time::Duration;

use axum::{
    body::HttpBody,
    extract::{FromRequest, Request, State},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use plumbline_model::report::{FORMAT, Report};
use plumbline_seam::{
    Attempt, Finish, Heartbeat, Job, LeaseRequest, LeaseResponse, LeaseState, LeaseStatus,
    MAX_LEASE_WAIT_MS, ProgressUpdate, RecordingRequest, Return, ReturnReason,
};
use plumbline_store::{Lease, ReleaseReason};
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::{caller::AgentCaller, parts};
use crate::{
    api::{audit::shutdown_requested, json_body},
    dispatch::{AgentSlot, REPORT_BYTES, whole_ms},
    envelope,
    errors::{Failure, InvalidValue},
    state::SharedState,
};

/// The longest time for which a request for work waits.
pub(super) const MAX_WAIT: Duration = Duration::from_millis(MAX_LEASE_WAIT_MS);
/// How often a waiting request checks, give or take a second, whether its token was drained or
/// revoked.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// How long a report may take to arrive.
pub(super) const REPORT_TIMEOUT: Duration = Duration::from_secs(60);

/// `POST /agent/v1/lease`: waits until there is work, at most for as long as requested.
pub(crate) async fn lease(
    State(service): State<SharedState>,
    caller: AgentCaller,
    Message(request): Message<LeaseRequest>,
) -> Result<Response, Failure> {
    let dispatcher = &parts(&service)?.dispatcher;
    let location = service.app.catalog.location(&request.agent.location);
    if location.is_none() {
        return Err(Failure::InvalidLocation(InvalidValue::new(
            "location",
            "The server does not know this location.",
        )));
    }
    let slot = AgentSlot {
        agent: caller.presence(request.agent)?,
        index: request.slot,
        scope: Some(caller.scope()),
    };
    let wait = Duration::from_millis(request.wait_ms).min(MAX_WAIT);
    let until = Instant::now() + wait;
    let poll = dispatcher.begin_poll(&slot);
    dispatcher.release_slot(&slot).await?;
    let mut is_drained = caller.was_drained();
    loop {
        if request.leaving || is_drained {
            dispatcher.record_presence(&slot.agent).await?;
            return Ok(lease_response(None, true));
        }
        let left = until.saturating_duration_since(Instant::now());
        let (wait, cancelled) = (
            left.min(DRAIN_CHECK_INTERVAL),
            shutdown_requested(service.app.stopping.clone()),
        );
        if let Some(lease) = dispatcher.lease_next(&slot, &poll, wait, cancelled).await? {
            caller.context.set_audit(&lease.tracking_id);
            let Some(mut job) = dispatcher.job(&lease).await? else {
                continue;
            };
            let options = &lease.order.options;
            let is_too_old = !request.seeds_state && options.need_seeding()
                || !request.runs_steps && options.need_steps()
                || !request.warms_cache && options.need_warm_cache()
                || !request.measures_flows && options.need_flow()
                || !request.profiles && options.profile
                || !request.compares && options.need_comparison()
                || !request.replays && options.need_interception()
                || !request.masks_secrets && !options.secret_names().is_empty()
                || !(request.masks_secrets && request.keeps_sessions) && options.session.is_some();
            if is_too_old {
                if !job.exhausted {
                    tracing::warn!(
                        audit = lease.tracking_id,
                        "the agent is too old for an audit with options that it does not know; upgrade it"
                    );
                    let fault = ReleaseReason::Returned(ReturnReason::Fault);
                    dispatcher.release(&lease, fault).await?;
                    continue;
                }
                // It reports the failure without a visit, and needs no secrets for that.
                job.order.options = job.order.options.without_values();
            }
            if request.confirms {
                job.confirm_within_ms = Some(whole_ms(dispatcher.confirmation_timeout()));
                dispatcher.expect_confirmation(lease);
            }
            return Ok(lease_response(Some(job), false));
        }
        let is_over = left <= DRAIN_CHECK_INTERVAL || *service.app.stopping.borrow();
        if is_over || !poll.is_newest() {
            return Ok(lease_response(None, false));
        }
        is_drained = caller.is_drained(&service).await?;
    }
}

fn lease_response(job: Option<Job>, drain: bool) -> Response {
    envelope::data(LeaseResponse { job, drain })
}

/// `POST /agent/v1/heartbeat`
pub(crate) async fn heartbeat(
    State(service): State<SharedState>,
    caller: AgentCaller,
    Message(message): Message<Heartbeat>,
) -> Result<Response, Failure> {
    let dispatcher = &parts(&service)?.dispatcher;
    let presence = caller.presence(message.agent)?;
    dispatcher.record_presence(&presence).await?;
    if caller.confirm(&service, &message.attempt)? {
        return Ok(lease_status(LeaseState::Held));
    }
    let state = match lease_of(&service, &caller, &message.attempt).await? {
        Some(lease) => dispatcher.heartbeat(&lease).await?,
        None => LeaseState::Lost,
    };
    Ok(lease_status(state))
}

/// `POST /agent/v1/progress`
pub(crate) async fn progress(
    State(service): State<SharedState>,
    caller: AgentCaller,
    Message(message): Message<ProgressUpdate>,
) -> Result<Response, Failure> {
    let state = match lease_of(&service, &caller, &message.attempt).await? {
        Some(lease) => {
            let dispatcher = &parts(&service)?.dispatcher;
            let id = &lease.tracking_id;
            dispatcher.record_phase(id, message.phase, message.visit);
            if let Some(url) = &message.arrived_at {
                dispatcher.record_document(id, &lease.order.device, url);
            }
            LeaseState::Held
        }
        None => LeaseState::Lost,
    };
    Ok(lease_status(state))
}

/// `POST /agent/v1/recording`: the recording that an audit replays.
pub(crate) async fn recording(
    State(service): State<SharedState>,
    caller: AgentCaller,
    Message(message): Message<RecordingRequest>,
) -> Result<Response, Failure> {
    let lease = lease_of(&service, &caller, &message.attempt).await?;
    let lease = lease.ok_or(Failure::NotFound)?;
    let mut replays = lease.order.options.replays();
    let replay = replays.find(|replay| replay.recording == message.recording);
    let replay = replay.ok_or(Failure::NotFound)?;
    let dispatcher = &parts(&service)?.dispatcher;
    let recording = dispatcher.recording(replay).await;
    let recording = recording.map_err(Failure::unavailable)?;
    let recording = recording.ok_or(Failure::NotFound)?;
    let content_type = HeaderValue::from_static("application/octet-stream");
    Ok(([(header::CONTENT_TYPE, content_type)], recording).into_response())
}

/// `POST /agent/v1/finish`: idempotent for the attempt that has finished, because its first
/// response may have been lost.
pub(crate) async fn finish(
    State(service): State<SharedState>,
    caller: AgentCaller,
    ReportMessage { message, _memory }: ReportMessage<Finish<Report>>,
) -> Result<Response, Failure> {
    let Finish {
        attempt,
        report,
        session,
    } = message;
    if report.format > FORMAT {
        let reason = "The report is in the format of a later version.";
        return Err(Failure::InvalidBody(reason.into()));
    }
    let state = caller
        .attempt_state(&service, &attempt.tracking_id, attempt.number)
        .await?;
    let dispatcher = &parts(&service)?.dispatcher;
    let state = dispatcher
        .finish_attempt(state, report, session.as_ref())
        .await?;
    Ok(lease_status(state))
}

/// `POST /agent/v1/return`
pub(crate) async fn release(
    State(service): State<SharedState>,
    caller: AgentCaller,
    Message(message): Message<Return>,
) -> Result<Response, Failure> {
    let reason = ReleaseReason::Returned(message.reason);
    let state = match lease_of(&service, &caller, &message.attempt).await? {
        Some(lease) => {
            let dispatcher = &parts(&service)?.dispatcher;
            dispatcher.release(&lease, reason).await?
        }
        None => LeaseState::Lost,
    };
    Ok(lease_status(state))
}

async fn lease_of(
    service: &SharedState,
    caller: &AgentCaller,
    attempt: &Attempt,
) -> Result<Option<Lease>, Failure> {
    caller
        .lease(service, &attempt.tracking_id, attempt.number)
        .await
}

fn lease_status(state: LeaseState) -> Response {
    envelope::data(LeaseStatus { state })
}

/// A small message of the agent protocol.
pub(crate) struct Message<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<SharedState> for Message<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, service: &SharedState) -> Result<Self, Failure> {
        let limits = &service.app.limits;
        let body = request.into_body();
        let text = json_body::read(body, limits.body_bytes, limits.body_read).await?;
        parse(&text).map(Self)
    }
}

/// A message that contains a report.
pub(crate) struct ReportMessage<T> {
    message: T,
    /// Held until the report is stored.
    _memory: OwnedSemaphorePermit,
}

impl<T: DeserializeOwned> FromRequest<SharedState> for ReportMessage<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, service: &SharedState) -> Result<Self, Failure> {
        let length = request.body().size_hint().exact();
        let length = length.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        let dispatcher = &parts(service)?.dispatcher;
        let memory = dispatcher.report_memory.reserve(length).await?;
        let text = json_body::read(request.into_body(), REPORT_BYTES, REPORT_TIMEOUT).await?;
        Ok(Self {
            message: parse(&text)?,
            _memory: memory,
        })
    }
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(text).map_err(|error| Failure::InvalidBody(error.to_string().into()))
}
