//! The steps of an audit, as an agent elsewhere takes them.

use std::time::Duration;

use axum::{
    body::HttpBody,
    extract::{FromRequest, Request, State},
    response::Response,
};
use plumbline_engine::report::{FORMAT, Report};
use plumbline_seam::{
    Attempt, Finish, Heartbeat, LeaseRequest, LeaseResponse, LeaseState, LeaseStatus,
    MAX_LEASE_WAIT_MS, Offer, ProgressUpdate, Return, ReturnReason,
};
use plumbline_store::{AttemptState as Stands, Hold as Kept, Lease, ReleaseReason};
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::{Asker, Desk, caller::AgentCaller, report_room::REPORT_BYTES};
use crate::{
    answer,
    api::{audit::asked_to_stop, order},
    errors::Failure,
    router::Shared,
};

/// The longest that anybody's request for work is held.
pub(crate) const WAIT_AT_MOST: Duration = Duration::from_millis(MAX_LEASE_WAIT_MS);
/// Give or take a second; also how soon a revoked token gets nothing more.
const DRAIN_NOTICED_WITHIN: Duration = Duration::from_secs(5);
/// For a report to arrive.
pub(crate) const REPORT_WITHIN: Duration = Duration::from_secs(60);

/// `POST /agent/v1/lease`: held until there is work, at the latest for as long as was asked.
pub(crate) async fn lease(
    State(service): State<Shared>,
    caller: AgentCaller,
    Message(asked): Message<LeaseRequest>,
) -> Result<Response, Failure> {
    let agents = super::of(&service)?;
    if service
        .app
        .catalog
        .location(&asked.agent.location)
        .is_none()
    {
        return Err(Failure::InvalidLocation);
    }
    let asker = Asker {
        agent: caller.sighting(asked.agent)?,
        slot: asked.slot,
        scope: Some(caller.scope()),
    };
    let wait = Duration::from_millis(asked.wait_ms).min(WAIT_AT_MOST);
    let until = Instant::now() + wait;
    let poll = agents.desk.poll(&asker);
    agents.desk.leave(&asker).await?;
    let mut is_drained = caller.was_drained();
    loop {
        if asked.leaving || is_drained {
            agents.desk.see(&asker.agent).await?;
            return Ok(granted(None, true));
        }
        let left = until.saturating_duration_since(Instant::now());
        let (slice, over) = (
            left.min(DRAIN_NOTICED_WITHIN),
            asked_to_stop(service.app.stopping.clone()),
        );
        if let Some(lease) = agents.desk.next(&asker, &poll, slice, over).await? {
            caller.notes.audit(&lease.tracking_id);
            let mut job = offer(&agents.desk, &lease);
            if asked.confirms {
                job.confirm_within_ms = Some(ms(agents.desk.confirm_within()));
                agents.desk.expect_confirmation(lease);
            }
            return Ok(granted(Some(job), false));
        }
        let is_over = left <= DRAIN_NOTICED_WITHIN || *service.app.stopping.borrow();
        if is_over || !poll.is_newest() {
            return Ok(granted(None, false));
        }
        is_drained = caller.is_drained(&service).await?;
    }
}

fn granted(job: Option<Offer>, drain: bool) -> Response {
    answer::data(LeaseResponse { job, drain })
}

fn offer(desk: &Desk, lease: &Lease) -> Offer {
    let order = lease.order.clone();
    Offer {
        exhausted: lease.is_exhausted(),
        attempt: Attempt {
            tracking_id: lease.tracking_id.clone(),
            attempt: lease.attempt,
        },
        url: order.url,
        device: order.device,
        network: order.network,
        location: order.location,
        runs: lease.runs,
        heartbeat_ms: ms(desk.heartbeat_every()),
        lease_ms: ms(desk.lease_for()),
        confirm_within_ms: None,
    }
}

/// `POST /agent/v1/heartbeat`
pub(crate) async fn heartbeat(
    State(service): State<Shared>,
    caller: AgentCaller,
    Message(said): Message<Heartbeat>,
) -> Result<Response, Failure> {
    let desk = &super::of(&service)?.desk;
    let sighting = caller.sighting(said.agent)?;
    desk.see(&sighting).await?;
    if caller.confirm(&service, &said.attempt)? {
        return Ok(standing(Kept::Held));
    }
    let hold = match held(&service, &caller, &said.attempt).await? {
        Some(lease) => desk.heartbeat(&lease).await?,
        None => Kept::Lost,
    };
    Ok(standing(hold))
}

/// `POST /agent/v1/progress`
pub(crate) async fn progress(
    State(service): State<Shared>,
    caller: AgentCaller,
    Message(said): Message<ProgressUpdate>,
) -> Result<Response, Failure> {
    let hold = match held(&service, &caller, &said.attempt).await? {
        Some(lease) => {
            let desk = &super::of(&service)?.desk;
            desk.reached(&lease.tracking_id, said.phase);
            if let Some(url) = &said.arrived_at {
                desk.arrived(&lease.tracking_id, &lease.order.device, url);
            }
            Kept::Held
        }
        None => Kept::Lost,
    };
    Ok(standing(hold))
}

/// `POST /agent/v1/finish`: once more by the attempt that has finished is as good as the first time,
/// whose answer may have been lost.
pub(crate) async fn finish(
    State(service): State<Shared>,
    caller: AgentCaller,
    whole: Whole<Finish<Report>>,
) -> Result<Response, Failure> {
    let said = whole.message;
    let Attempt {
        tracking_id,
        attempt,
    } = &said.attempt;
    if said.report.format > FORMAT {
        return Err(Failure::InvalidBody);
    }
    let stands = caller.standing(&service, tracking_id, *attempt).await?;
    let desk = &super::of(&service)?.desk;
    let hold = match stands {
        Stands::Held(lease) => desk.finish(&lease, said.report).await?,
        Stands::Finished => Kept::Held,
        Stands::Lost => Kept::Lost,
    };
    Ok(standing(hold))
}

/// `POST /agent/v1/return`
pub(crate) async fn give_back(
    State(service): State<Shared>,
    caller: AgentCaller,
    Message(said): Message<Return>,
) -> Result<Response, Failure> {
    let why = match said.reason {
        ReturnReason::Fault => ReleaseReason::Fault,
        ReturnReason::Drained => ReleaseReason::Drained,
    };
    let hold = match held(&service, &caller, &said.attempt).await? {
        Some(lease) => super::of(&service)?.desk.hand_back(&lease, why).await?,
        None => Kept::Lost,
    };
    Ok(standing(hold))
}

async fn held(
    service: &Shared,
    caller: &AgentCaller,
    attempt: &Attempt,
) -> Result<Option<Lease>, Failure> {
    caller
        .held(service, &attempt.tracking_id, attempt.attempt)
        .await
}

fn standing(hold: Kept) -> Response {
    let hold = match hold {
        Kept::Held => LeaseState::Held,
        Kept::Lost => LeaseState::Lost,
    };
    answer::data(LeaseStatus { state: hold })
}

/// A message of ours: small, and soon here.
pub(crate) struct Message<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Shared> for Message<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, service: &Shared) -> Result<Self, Failure> {
        let limits = &service.app.limits;
        let text = order::read(request.into_body(), limits.body_bytes, limits.body_read).await?;
        read(&text).map(Self)
    }
}

/// A message with a report in it.
pub(crate) struct Whole<T> {
    message: T,
    /// Held until the report is kept.
    _room: OwnedSemaphorePermit,
}

impl<T: DeserializeOwned> FromRequest<Shared> for Whole<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, service: &Shared) -> Result<Self, Failure> {
        let length = request.body().size_hint().exact();
        let length = length.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        let room = super::of(service)?.desk.reports.enter(length).await?;
        let text = order::read(request.into_body(), REPORT_BYTES, REPORT_WITHIN).await?;
        Ok(Self {
            message: read(&text)?,
            _room: room,
        })
    }
}

fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(text).map_err(|_| Failure::InvalidBody)
}

fn ms(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
