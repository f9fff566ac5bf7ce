//! The progress of a running audit: a page, and a stream of events.

use std::cmp::Ordering;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use askama::Template;
use axum::{
    body::{Body, Bytes, HttpBody},
    extract::State,
    http::{HeaderValue, header, request::Parts},
    response::{Html, IntoResponse, Response},
};
use hyper::body::Frame;
use plumbline_bundle::Phase;
use plumbline_store::AuditState;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::frame::Page;
use super::parts as page_parts;
use super::session::{Visitor, see_other};
use crate::{
    api::PathId, errors::Failure, guarded_body::with_guard, peer::client_address,
    state::SharedState,
};

/// The progress page.
#[derive(Template)]
#[template(path = "progress/progress.html")]
struct ProgressPage<'a> {
    url: &'a str,
    conditions: [&'a str; 3],
    /// The path of the event stream with the phases.
    events: &'a str,
    steps: Vec<Step>,
    /// The label of the current phase.
    now: &'static str,
}

struct Step {
    id: &'static str,
    label: &'static str,
    class: &'static str,
}

/// The phases of an audit with their labels, in order.
const STEPS: [(&str, &str); 5] = [
    ("waiting", "Waiting in the queue"),
    ("preparing", "Starting a fresh browser"),
    ("loading", "Loading until network and CPU are idle"),
    ("gathering", "Collecting data"),
    ("judging", "Scoring"),
];

impl<'a> ProgressPage<'a> {
    /// Creates the page of an audit in a phase; `None` while it is queued.
    fn new(url: &'a str, conditions: [&'a str; 3], phase: Option<Phase>, events: &'a str) -> Self {
        let id = phase.map_or("waiting", Phase::as_str);
        let now = STEPS.iter().position(|(step, _)| *step == id).unwrap_or(0);
        let steps = STEPS.iter().enumerate().map(|(index, (id, label))| Step {
            id,
            label,
            class: match index.cmp(&now) {
                Ordering::Less => "done",
                Ordering::Equal => "now",
                Ordering::Greater => "",
            },
        });
        Self {
            url,
            conditions,
            events,
            steps: steps.collect(),
            now: STEPS[now].1,
        }
    }
}

impl Page for ProgressPage<'_> {
    fn title(&self) -> String {
        format!("Auditing {} · Plumbline", self.url)
    }

    fn description(&self) -> String {
        "The progress of an audit, phase by phase.".to_owned()
    }

    fn head(&self) -> &'static str {
        r#"<noscript><meta http-equiv="refresh" content="3"></noscript>"#
    }
}

/// `GET /audits/{id}`: the progress of an audit, by tracking id. Redirects to the report if there
/// is one.
pub(crate) async fn page(
    State(service): State<SharedState>,
    visitor: Visitor,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let pages = page_parts(&service)?;
    let status = service.app.store.status(&visitor.account_id, &id).await?;
    let status = status.ok_or(Failure::NotFound)?;
    if status.state == AuditState::Completed {
        return Ok(see_other(&format!("/reports/{}", status.audit_id)));
    }
    let order = pages.store.order(&visitor.account_id, &id).await?;
    let order = order.ok_or(Failure::NotFound)?;
    let catalog = &service.app.catalog;
    let conditions = [
        catalog
            .device(&order.device)
            .map_or(&*order.device, |d| &d.name),
        catalog
            .network(&order.network)
            .map_or(&*order.network, |n| &n.name),
        catalog
            .location(&order.location)
            .map_or(&*order.location, |l| &l.name),
    ];
    let events = format!("/audits/{id}/events");
    let page = ProgressPage::new(&status.url, conditions, pages.phases.current(&id), &events);
    let page = visitor.page_frame().render(&page);
    Ok(Html(page.map_err(Failure::internal)?).into_response())
}

/// How often the store is queried while no phase changes.
const QUERY_INTERVAL: Duration = Duration::from_secs(2);
/// How long a stream lasts; browsers reconnect when it ends.
const STREAM_DURATION: Duration = Duration::from_secs(10 * 60);

/// `GET /audits/{id}/events`: an event `phase` with its name whenever the phase changes, and an
/// event `done` with the report's path.
pub(crate) async fn events(
    State(service): State<SharedState>,
    visitor: Visitor,
    PathId(id): PathId,
    parts: Parts,
) -> Result<Response, Failure> {
    let status = service.app.store.status(&visitor.account_id, &id).await?;
    status.ok_or(Failure::NotFound)?;
    let address = client_address(&parts, &service.app.limits);
    let permit = service.capacity.acquire_wait(address, &visitor.key_id)?;
    let (sender, receiver) = mpsc::channel(8);
    tokio::spawn(follow(service, visitor.account_id, id, sender));
    let mut response = with_guard(Body::new(Events(receiver)), permit).into_response();
    let media_type = HeaderValue::from_static("text/event-stream");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, media_type);
    // Tells proxies not to buffer the stream.
    let headers = response.headers_mut();
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Sends events until the audit ends, the client disconnects, or the stream has lasted long enough.
async fn follow(service: SharedState, account_id: String, id: String, events: mpsc::Sender<Bytes>) {
    let Ok(pages) = page_parts(&service) else {
        return;
    };
    let until = Instant::now() + STREAM_DURATION;
    let mut last_phase: Option<&'static str> = None;
    while Instant::now() < until {
        // The status is queried before the phase, so that a stale phase is never the last event.
        let Ok(Some(status)) = service.app.store.status(&account_id, &id).await else {
            return;
        };
        if status.state == AuditState::Completed {
            let event = format!("event: done\ndata: /reports/{}\n\n", status.audit_id);
            // Fails if the client has disconnected, which needs no handling.
            let _ = events.send(Bytes::from(event)).await;
            return;
        }
        let phase = pages.phases.current(&id).map_or("waiting", Phase::as_str);
        // A comment keeps the connection open, and detects whether it still is.
        let event = if last_phase == Some(phase) {
            ":\n\n".to_owned()
        } else {
            format!("event: phase\ndata: {phase}\n\n")
        };
        last_phase = Some(phase);
        if events.send(Bytes::from(event)).await.is_err() {
            return;
        }
        pages.phases.changed(QUERY_INTERVAL).await;
    }
}

/// The body of an event stream.
struct Events(mpsc::Receiver<Bytes>);

impl HttpBody for Events {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0
            .poll_recv(cx)
            .map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{EVIL, assert_text_only};
    use super::*;

    #[test]
    fn texts_of_an_order_are_escaped() {
        let events = "/audits/trk_1/events";
        assert_text_only(&ProgressPage::new(EVIL, [EVIL; 3], None, events));
    }
}
