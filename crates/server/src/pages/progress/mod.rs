//! The progress of a running audit: a page, and a stream of events.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::time::Duration;

use askama::Template;
use axum::{
    extract::State,
    http::{HeaderValue, header, request::Parts},
    response::{
        Html, IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::{StreamExt, stream};
use plumbline_catalog::Catalog;
use plumbline_store::AuditEntry;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::audit_list::requested_conditions;
use super::form::Form;
use super::frame::Page;
use super::parts as page_parts;
use super::session::{Visitor, see_other};
use crate::{
    api::PathId, cancel::cancel_audit, errors::Failure, guarded_body::with_guard,
    peer::client_address, progress::Progress, state::SharedState,
};

/// The progress page.
#[derive(Template)]
#[template(path = "progress/progress.html")]
struct ProgressPage<'a> {
    url: &'a str,
    /// The URL of the second page of a comparison.
    compare_with: Option<&'a str>,
    conditions: [String; 3],
    /// The path of this page.
    path: &'a str,
    steps: Vec<Step>,
    /// The label of the current phase.
    now: &'static str,
    /// The current visit or the place in the queue, with times.
    details: String,
    /// The cost of the audit, which is refunded when it is cancelled.
    credits: u32,
    /// Whether a page may be visited again because its score is uncertain.
    may_repeat: bool,
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
    fn new(audit: &'a AuditEntry, catalog: &Catalog, progress: &Progress, path: &'a str) -> Self {
        let (url, options) = (&audit.order.url, &audit.order.options);
        let phase = progress.phase;
        let now = STEPS
            .iter()
            .position(|(step, _)| *step == phase)
            .unwrap_or(0);
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
            compare_with: options.compare_with.as_deref(),
            conditions: requested_conditions(&audit.order, catalog),
            path,
            steps: steps.collect(),
            now: STEPS[now].1,
            details: details(progress),
            credits: audit.runs,
            may_repeat: !options.quick && !options.need_comparison(),
        }
    }
}

/// Returns the line below the phases.
fn details(progress: &Progress) -> String {
    format!("{} · {}", progress.text, progress.times())
}

impl Page for ProgressPage<'_> {
    fn title(&self) -> String {
        match self.compare_with {
            Some(other) => format!("Comparing {} with {other} · Plumbline", self.url),
            None => format!("Auditing {} · Plumbline", self.url),
        }
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
    let status = service.app.store.status(&visitor.account_id, &id).await?;
    let status = status.ok_or(Failure::NotFound)?;
    let progress = Progress::of(&service, &visitor.account_id, &status).await?;
    let Some(progress) = progress else {
        return Ok(see_other(&format!("/reports/{}", status.audit_id)));
    };
    let audit = service.app.store.audit(&visitor.account_id, &id).await?;
    let audit = audit.ok_or(Failure::NotFound)?;
    let path = format!("/audits/{id}");
    let page = ProgressPage::new(&audit, &service.app.catalog, &progress, &path);
    let page = visitor.page_frame().render(&page);
    Ok(Html(page.map_err(Failure::internal)?).into_response())
}

/// `POST /audits/{id}/cancel`: ends an audit, and redirects to its report, which says so.
pub(crate) async fn cancel(
    State(service): State<SharedState>,
    visitor: Visitor,
    PathId(id): PathId,
    _form: Form,
) -> Result<Response, Failure> {
    let status = cancel_audit(&service, &visitor.account_id, &id).await?;
    Ok(see_other(&format!("/reports/{}", status.audit_id)))
}

/// How often the store is queried while no phase changes.
const QUERY_INTERVAL: Duration = Duration::from_secs(2);
/// How long a stream lasts; browsers reconnect when it ends.
const STREAM_DURATION: Duration = Duration::from_secs(10 * 60);

/// `GET /audits/{id}/events`: an event `phase` with its name whenever the phase changes, an event
/// `details` with the line below the phases whenever that changes, and an event `done` with the
/// report's path.
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
    let (sender, mut receiver) = mpsc::channel(8);
    tokio::spawn(follow(service, visitor.account_id, id, sender));
    let events = stream::poll_fn(move |context| receiver.poll_recv(context));
    // Comments keep the connection open, and detect whether it still is.
    let keep_alive = KeepAlive::new().interval(QUERY_INTERVAL);
    let events = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(keep_alive);
    let mut response = events.into_response().map(|body| with_guard(body, permit));
    let headers = response.headers_mut();
    // `Sse` would let caches store the stream.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Tells proxies not to buffer the stream.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Sends events until the audit ends, the client disconnects, or the stream has lasted long enough.
async fn follow(service: SharedState, account_id: String, id: String, events: mpsc::Sender<Event>) {
    let Ok(pages) = page_parts(&service) else {
        return;
    };
    let until = Instant::now() + STREAM_DURATION;
    let mut last_phase: Option<&'static str> = None;
    let mut last_details = String::new();
    while Instant::now() < until {
        // The status is queried before the phase, so that a stale phase is never the last event.
        let Ok(Some(status)) = service.app.store.status(&account_id, &id).await else {
            return;
        };
        let Ok(progress) = Progress::of(&service, &account_id, &status).await else {
            return;
        };
        let Some(progress) = progress else {
            let event = Event::default().event("done");
            let event = event.data(format!("/reports/{}", status.audit_id));
            // Fails if the client has disconnected, which needs no handling.
            let _ = events.send(event).await;
            return;
        };
        let phase = progress.phase;
        if last_phase.replace(phase) != Some(phase) {
            let event = Event::default().event("phase").data(phase);
            let _ = events.send(event).await;
        }
        let details = details(&progress);
        if details != last_details {
            let event = Event::default().event("details").data(&details);
            let _ = events.send(event).await;
            last_details = details;
        }
        if events.is_closed() {
            return;
        }
        pages.phases.changed(QUERY_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::BUILT_IN;
    use plumbline_seam::VisitOptions;
    use plumbline_store::AuditState;

    use super::super::testing::{EVIL, assert_text_only, listed_audit};
    use super::*;

    fn audit(options: VisitOptions, runs: u32) -> AuditEntry {
        AuditEntry {
            runs,
            state: AuditState::InProgress,
            ..listed_audit(EVIL, options)
        }
    }

    fn progress() -> Progress {
        Progress {
            phase: "waiting",
            text: EVIL.to_owned(),
            visit: None,
            queue_position: Some(1),
            elapsed_seconds: 0,
            remaining_seconds: None,
            running_seconds: None,
        }
    }

    #[test]
    fn texts_of_an_order_are_escaped() {
        let catalog = Catalog::load(BUILT_IN).unwrap();
        let options = VisitOptions {
            compare_with: Some(EVIL.to_owned()),
            ..VisitOptions::default()
        };
        let audit = audit(options, 10);
        let page = ProgressPage::new(&audit, &catalog, &progress(), "/audits/trk_1");
        assert_text_only(&page);
    }

    #[test]
    fn only_an_audit_whose_visits_depend_on_its_score_says_so() {
        let catalog = Catalog::load(BUILT_IN).unwrap();
        let quick = VisitOptions {
            quick: true,
            ..VisitOptions::default()
        };
        let comparison = VisitOptions {
            compare_with: Some("https://other.test/".to_owned()),
            ..VisitOptions::default()
        };
        for (options, runs, repeats, refund) in [
            (VisitOptions::default(), 1, true, "Its credit is refunded."),
            (quick, 3, false, "Its 3 credits are refunded."),
            (comparison, 10, false, "Its 10 credits are refunded."),
        ] {
            let audit = audit(options, runs);
            let page = ProgressPage::new(&audit, &catalog, &progress(), "/audits/trk_1");
            let page = page.render().unwrap();
            assert_eq!(page.contains("several times"), repeats, "{page}");
            assert!(page.contains(refund), "{page}");
            assert_eq!(page.contains("https://other.test/"), runs == 10, "{page}");
        }
    }
}
