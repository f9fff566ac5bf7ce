//! An audit on its way: a page, and news about it as they come.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::State,
    http::{HeaderValue, header, request::Parts},
    response::{Html, IntoResponse, Response},
};
use hyper::body::Frame;
use plumbline_report::html::{self, Phase, ProgressPage};
use plumbline_store::AuditState;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::of;
use super::session::{Visitor, see_other};
use crate::{api::PathId, errors::Failure, held::holding, peer::address_of, router::Shared};

/// `GET /audits/{id}`, by tracking id; leads to the report once there is one.
pub(crate) async fn page(
    State(service): State<Shared>,
    visitor: Visitor,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let pages = of(&service)?;
    let status = service.app.store.status(&visitor.account_id, &id).await?;
    let status = status.ok_or(Failure::NotFound)?;
    if status.state == AuditState::Completed {
        return Ok(see_other(&format!("/reports/{}", status.audit_id)));
    }
    let order = pages.store.order(&visitor.account_id, &id).await?;
    let order = order.ok_or(Failure::NotFound)?;
    let catalog = &service.app.catalog;
    let page = ProgressPage {
        page_frame: visitor.page_frame(),
        url: &status.url,
        conditions: [
            catalog
                .device(&order.device)
                .map_or(&*order.device, |d| &d.name),
            catalog
                .network(&order.network)
                .map_or(&*order.network, |n| &n.name),
            catalog
                .location(&order.location)
                .map_or(&*order.location, |l| &l.name),
        ],
        phase: pages.phases.of(&id),
        events: &format!("/audits/{id}/events"),
    };
    Ok(Html(html::progress_page(&page).map_err(Failure::internal)?).into_response())
}

/// How often the store is asked, however quiet the agent is.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// A browser asks again when a stream ends.
const STREAM_FOR: Duration = Duration::from_secs(10 * 60);

/// `GET /audits/{id}/events`: `phase` with its name whenever it changes, `done` with the report's path.
pub(crate) async fn events(
    State(service): State<Shared>,
    visitor: Visitor,
    PathId(id): PathId,
    parts: Parts,
) -> Result<Response, Failure> {
    let status = service.app.store.status(&visitor.account_id, &id).await?;
    status.ok_or(Failure::NotFound)?;
    let from = address_of(&parts, &service.app.limits);
    let place = service.places.wait(from, &visitor.key_id)?;
    let (sender, receiver) = mpsc::channel(8);
    tokio::spawn(follow(service, visitor.account_id, id, sender));
    let mut response = holding(Body::new(Events(receiver)), place).into_response();
    let media_type = HeaderValue::from_static("text/event-stream");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, media_type);
    // For proxies that would collect the stream first.
    let headers = response.headers_mut();
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Ends when the audit does, when the reader is gone, or when it has been long enough.
async fn follow(service: Shared, account_id: String, id: String, to: mpsc::Sender<Bytes>) {
    let Ok(pages) = of(&service) else { return };
    let until = Instant::now() + STREAM_FOR;
    let mut said: Option<&'static str> = None;
    while Instant::now() < until {
        // What can end the stream is asked for before what it tells: the last phase is never the last word.
        let Ok(Some(status)) = service.app.store.status(&account_id, &id).await else {
            return;
        };
        if status.state == AuditState::Completed {
            let event = format!("event: done\ndata: /reports/{}\n\n", status.audit_id);
            // Nobody listens any more: nothing to do.
            let _ = to.send(Bytes::from(event)).await;
            return;
        }
        let now = pages.phases.of(&id).map_or("waiting", Phase::as_str);
        // A comment keeps the connection alive, and finds out whether there still is one.
        let event = if said == Some(now) {
            ":\n\n".to_owned()
        } else {
            format!("event: phase\ndata: {now}\n\n")
        };
        said = Some(now);
        if to.send(Bytes::from(event)).await.is_err() {
            return;
        }
        pages.phases.change(ASK_EVERY).await;
    }
}

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
