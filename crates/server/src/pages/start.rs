//! The start page.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::{HeaderMap, request::Parts},
    response::{Html, IntoResponse, Response},
};
use plumbline_catalog::Catalog;
use plumbline_model::summary::ReportSummary;
use plumbline_report::html::{self, PageFrame, PastAudit, SelectOption, StartForm, StartPage};
use plumbline_seam::Order;
use plumbline_store::RecentAudit;

use super::cookies::Cookies;
use super::form::{Form, query};
use super::page_rate;
use super::parts as page_parts;
use super::session::{Visitor, see_other, with_status_of};
use crate::{
    api::request_body::AuditRequest, auth::Starter, errors::Failure,
    request_context::RequestContext, start, state::SharedState,
};

/// The cookie with the last device, network and location.
const CHOICE_COOKIE: &str = "plumbline_choice";
const CHOICE_DURATION: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The number of recent audits on the page.
const MAX_RECENT: u32 = 12;

/// `GET /`: the start page, or the sign-in form.
pub(crate) async fn page(
    State(service): State<SharedState>,
    headers: HeaderMap,
    parts: Parts,
) -> Result<Response, Failure> {
    let Some(visitor) = page_rate::visitor(&parts, &service).await? else {
        let to = query(&parts, "to")?.unwrap_or_default();
        return Ok(signed_out(&to, None)?.into_response());
    };
    let mut form = last_choice(&service, &headers);
    form.url = query(&parts, "url")?.unwrap_or_default();
    render(&service, &visitor, form, None).await
}

/// Returns the sign-in form.
pub(super) fn signed_out(to: &str, problem: Option<&str>) -> Result<Html<String>, Failure> {
    let page = StartPage {
        page_frame: PageFrame::signed_out(),
        devices: Vec::new(),
        networks: Vec::new(),
        locations: Vec::new(),
        form: StartForm::default(),
        to,
        credits: None,
        past: Vec::new(),
        problem,
    };
    Ok(Html(html::start_page(&page).map_err(Failure::internal)?))
}

async fn render(
    service: &SharedState,
    visitor: &Visitor,
    form: StartForm,
    problem: Option<&'static str>,
) -> Result<Response, Failure> {
    let catalog = Arc::clone(&service.app.catalog);
    let store = &page_parts(service)?.store;
    let recent = store.recent(&visitor.account_id, None, MAX_RECENT).await?;
    let past = recent.into_iter().map(past).collect();
    let (page_frame, credits) = (visitor.page_frame(), visitor.credits);
    let page = service.render_pool.page(move || {
        html::start_page(&signed_in(
            &catalog, page_frame, credits, form, past, problem,
        ))
    });
    Ok(page.await?.into_response())
}

fn signed_in<'a>(
    catalog: &'a Catalog,
    page_frame: PageFrame,
    credits: i64,
    form: StartForm,
    past: Vec<PastAudit>,
    problem: Option<&'a str>,
) -> StartPage<'a> {
    StartPage {
        page_frame,
        devices: catalog
            .devices()
            .iter()
            .map(|device| SelectOption {
                id: &device.id,
                name: &device.name,
            })
            .collect(),
        networks: catalog
            .networks()
            .iter()
            .map(|network| SelectOption {
                id: &network.id,
                name: &network.name,
            })
            .collect(),
        locations: catalog
            .locations()
            .iter()
            .map(|location| SelectOption {
                id: &location.id,
                name: &location.name,
            })
            .collect(),
        form,
        to: "",
        credits: Some(credits),
        past,
        problem,
    }
}

/// Reads a stored summary. One that cannot be read is logged, and its audit is listed without
/// figures.
fn read_summary(text: String) -> Option<ReportSummary> {
    let summary = serde_json::from_str(&text);
    summary
        .inspect_err(|error| tracing::error!(%error, "unreadable audit summary"))
        .ok()
        .flatten()
}

/// Converts an audit to a row of the page.
pub(super) fn past(audit: RecentAudit) -> PastAudit {
    PastAudit {
        tracking_id: audit.tracking_id,
        audit_id: audit.audit_id,
        url: audit.url,
        at_ms: audit.at.0,
        summary: audit.summary.and_then(read_summary),
    }
}

/// Returns the last choice if the catalog still has it, and defaults otherwise.
fn last_choice(service: &SharedState, headers: &HeaderMap) -> StartForm {
    let catalog = &service.app.catalog;
    let choice = Cookies::of(service, headers).get(CHOICE_COOKIE);
    let mut ids = choice.unwrap_or_default().split('.');
    let mut pick = |exists: &dyn Fn(&str) -> bool, default: &str| {
        let id = ids.next().filter(|id| exists(id)).unwrap_or(default);
        id.to_owned()
    };
    StartForm {
        url: String::new(),
        device: pick(&|id| catalog.device(id).is_some(), "mobile"),
        network: pick(&|id| catalog.network(id).is_some(), "mobileSlow4g"),
        location: pick(&|id| catalog.location(id).is_some(), "us-tx"),
    }
}

/// `POST /audits`: starts an audit.
pub(crate) async fn start(
    State(service): State<SharedState>,
    headers: HeaderMap,
    visitor: Visitor,
    mut fields: Form,
) -> Result<Response, Failure> {
    let form = StartForm {
        url: with_scheme(fields.take("url").trim()),
        device: fields.take("device"),
        network: fields.take("network"),
        location: fields.take("location"),
    };
    match accept(&service, &visitor, &form).await {
        Ok(tracking_id) => {
            let mut response = see_other(&format!("/audits/{tracking_id}"));
            let choice = format!("{}.{}.{}", form.device, form.network, form.location);
            let cookies = Cookies::of(&service, &headers);
            cookies.set(&mut response, CHOICE_COOKIE, &choice, CHOICE_DURATION);
            Ok(response)
        }
        Err(failure @ (Failure::Internal(_) | Failure::Unavailable(_))) => Err(failure),
        Err(failure) => {
            let problem = problem_text(&failure);
            let page = render(&service, &visitor, form, Some(problem)).await?;
            Ok(with_status_of(failure, page))
        }
    }
}

/// Starts an audit with the same checks as the API: values, rate, credits.
async fn accept(
    service: &SharedState,
    visitor: &Visitor,
    form: &StartForm,
) -> Result<String, Failure> {
    let request = AuditRequest::from(Order {
        url: form.url.clone(),
        device: form.device.clone(),
        network: form.network.clone(),
        location: form.location.clone(),
    });
    let starter = Starter {
        key_id: visitor.key_id.clone(),
        account_id: visitor.account_id.clone(),
        // The headers of a page do not describe the limit of starts.
        context: RequestContext::default(),
    };
    let request = request.validate(&service.app)?;
    start::start(service, &starter, request, None).await
}

/// Adds `https://` to a URL without a scheme, such as `example.com`.
fn with_scheme(url: &str) -> String {
    if url.is_empty() || url.contains("://") {
        url.to_owned()
    } else {
        format!("https://{url}")
    }
}

fn problem_text(failure: &Failure) -> &'static str {
    match failure {
        Failure::InvalidUrl => {
            "This URL cannot be audited. Enter the public http or https URL of a page."
        }
        Failure::TooManyUnfinished => {
            "Too many of your audits are waiting. Try again when some of them have finished."
        }
        Failure::TooManyFailedAudits(_) => {
            "Too many of your audits failed within the last hour. Try again later."
        }
        Failure::RateLimited => "Too many audits within a minute. Wait a moment and try again.",
        Failure::InsufficientCredits => {
            "You have no credits left. Ask the operator of this service for more."
        }
        _ => "Enter a URL, and choose a device, a network and a location.",
    }
}
