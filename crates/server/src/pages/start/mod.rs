//! The start page.

use std::{sync::Arc, time::Duration};

use askama::Template;
use axum::{
    extract::State,
    http::{HeaderMap, request::Parts},
    response::{IntoResponse, Response},
};
use plumbline_catalog::Catalog;
use plumbline_seam::{Consent, Order, VisitOptions};

use super::audit_list::{AuditRow, PastAudit, audit_rows};
use super::cookies::Cookies;
use super::form::{Form, query};
use super::frame::Page;
use super::parts as page_parts;
use super::session::{Visitor, see_other, with_status_of};
use super::{page_rate, sign_in};
use crate::{
    api::request_body::AuditRequest, auth::Starter, errors::Failure,
    request_context::RequestContext, start, state::SharedState,
};

/// The cookie with the last device, network and location.
const CHOICE_COOKIE: &str = "plumbline_choice";
const CHOICE_DURATION: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The number of recent audits on the page.
const MAX_RECENT: u32 = 12;

/// The start page of a signed-in user: a form that starts an audit, and recent audits.
#[derive(Template)]
#[template(path = "start/start.html")]
struct StartPage {
    catalog: Arc<Catalog>,
    form: StartForm,
    credits: i64,
    /// Recent audits, newest first.
    past: Vec<AuditRow>,
    /// The error of the last attempt to start an audit.
    problem: Option<&'static str>,
}

/// The values of the form.
struct StartForm {
    url: String,
    device: String,
    network: String,
    location: String,
    consent: Consent,
}

impl Page for StartPage {
    fn title(&self) -> String {
        sign_in::TITLE.to_owned()
    }

    fn description(&self) -> String {
        sign_in::DESCRIPTION.to_owned()
    }
}

/// `GET /`: the start page, or the sign-in form.
pub(crate) async fn page(
    State(service): State<SharedState>,
    headers: HeaderMap,
    parts: Parts,
) -> Result<Response, Failure> {
    let Some(visitor) = page_rate::visitor(&parts, &service).await? else {
        let to = query(&parts, "to")?.unwrap_or_default();
        return Ok(sign_in::form(&to, None)?.into_response());
    };
    let form = StartForm {
        url: query(&parts, "url")?.unwrap_or_default(),
        ..prefilled(&service, &headers, &parts)?
    };
    render(&service, &visitor, form, None).await
}

async fn render(
    service: &SharedState,
    visitor: &Visitor,
    form: StartForm,
    problem: Option<&'static str>,
) -> Result<Response, Failure> {
    let store = &page_parts(service)?.store;
    let recent = store.recent(&visitor.account_id, None, MAX_RECENT).await?;
    let past: Vec<_> = recent.into_iter().map(PastAudit::from).collect();
    let page_frame = visitor.page_frame();
    let page = StartPage {
        catalog: Arc::clone(&service.app.catalog),
        form,
        credits: visitor.credits,
        past: audit_rows(&past),
        problem,
    };
    let page = service.render_pool.page(move || page_frame.render(&page));
    Ok(page.await?.into_response())
}

/// Returns the device, network and location of the query, and the last choice where the query names
/// none that the catalog has.
fn prefilled(
    service: &SharedState,
    headers: &HeaderMap,
    parts: &Parts,
) -> Result<StartForm, Failure> {
    let catalog = &service.app.catalog;
    let mut form = last_choice(service, headers);
    if let Some(id) = query(parts, "device")?.filter(|id| catalog.device(id).is_some()) {
        form.device = id;
    }
    if let Some(id) = query(parts, "network")?.filter(|id| catalog.network(id).is_some()) {
        form.network = id;
    }
    if let Some(id) = query(parts, "location")?.filter(|id| catalog.location(id).is_some()) {
        form.location = id;
    }
    Ok(form)
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
        consent: Consent::None,
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
        consent: Consent::from_name(&fields.take("consent")).unwrap_or_default(),
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
        options: VisitOptions {
            consent: form.consent,
            ..VisitOptions::default()
        },
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
        Failure::InvalidUrl(_) => {
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

#[cfg(test)]
mod tests {
    use plumbline_catalog::BUILT_IN;

    use super::super::testing::{EVIL, assert_text_only, report};
    use super::*;

    #[test]
    fn texts_of_audits_and_of_the_form_are_escaped() {
        let past = PastAudit {
            tracking_id: "trk_1".to_owned(),
            audit_id: Some("aud_1".to_owned()),
            url: EVIL.to_owned(),
            at_ms: 0,
            summary: Some((&report(EVIL)).into()),
            error: None,
        };
        assert_text_only(&StartPage {
            catalog: Arc::new(Catalog::load(BUILT_IN).unwrap()),
            form: StartForm {
                url: EVIL.to_owned(),
                device: EVIL.to_owned(),
                network: EVIL.to_owned(),
                location: EVIL.to_owned(),
                consent: Consent::None,
            },
            credits: 1,
            past: audit_rows(&[past]),
            problem: Some(EVIL),
        });
    }
}
