//! Where audits begin.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::{HeaderMap, request::Parts},
    response::{Html, IntoResponse, Response},
};
use plumbline_catalog::Catalog;
use plumbline_report::html::{self, PageFrame, PastAudit, SelectOption, StartForm, StartPage};
use plumbline_store::{NewAudit, RecentAudit, Submission};
use serde_json::json;

use super::cookies::Cookies;
use super::form::{Form, query};
use super::of;
use super::session::{Visitor, see_other, with_status_of};
use super::turn;
use crate::{
    api::{audit::submit, new_id, order::Wish},
    errors::Failure,
    router::Shared,
};

/// The last device, network and location, so that they need not be form again.
const REMEMBERED: &str = "plumbline_choice";
const REMEMBERED_FOR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const RECENT: u32 = 12;

/// `GET /`
pub(crate) async fn page(
    State(service): State<Shared>,
    headers: HeaderMap,
    parts: Parts,
) -> Result<Response, Failure> {
    let Some(visitor) = turn::visitor(&parts, &service).await? else {
        let to = query(&parts, "to")?.unwrap_or_default();
        return Ok(signed_out(&to, None)?.into_response());
    };
    let mut form = remembered(&service, &headers);
    form.url = query(&parts, "url")?.unwrap_or_default();
    render(&service, &visitor, form, None).await
}

/// The start page of nobody in particular.
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
    service: &Shared,
    visitor: &Visitor,
    form: StartForm,
    problem: Option<&'static str>,
) -> Result<Response, Failure> {
    let catalog = Arc::clone(&service.app.catalog);
    let recent = of(service)?.store.recent(&visitor.account_id, None, RECENT);
    let past = recent.await?.into_iter().map(past).collect();
    let (page_frame, credits) = (visitor.page_frame(), visitor.credits);
    let page = service.renders.page(move || {
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

pub(super) fn past(audit: RecentAudit) -> PastAudit {
    PastAudit {
        tracking_id: audit.tracking_id,
        audit_id: audit.audit_id,
        url: audit.url,
        at_ms: audit.at.0,
        report: audit.report,
    }
}

/// What was form last, where it still exists, or else the catalog's usual.
fn remembered(service: &Shared, headers: &HeaderMap) -> StartForm {
    let catalog = &service.app.catalog;
    let choice = Cookies::of(service, headers).get(REMEMBERED);
    let mut ids = choice.unwrap_or_default().split('.');
    let mut pick = |known: &dyn Fn(&str) -> bool, usual: &str| {
        let id = ids.next().filter(|id| known(id)).unwrap_or(usual);
        id.to_owned()
    };
    StartForm {
        url: String::new(),
        device: pick(&|id| catalog.device(id).is_some(), "mobile"),
        network: pick(&|id| catalog.network(id).is_some(), "mobileSlow4g"),
        location: pick(&|id| catalog.location(id).is_some(), "us-tx"),
    }
}

/// `POST /audits`
pub(crate) async fn start(
    State(service): State<Shared>,
    headers: HeaderMap,
    visitor: Visitor,
    mut form: Form,
) -> Result<Response, Failure> {
    let form = StartForm {
        url: with_scheme(form.take("url").trim()),
        device: form.take("device"),
        network: form.take("network"),
        location: form.take("location"),
    };
    match accept(&service, &visitor, &form).await {
        Ok(tracking_id) => {
            let mut response = see_other(&format!("/audits/{tracking_id}"));
            let choice = format!("{}.{}.{}", form.device, form.network, form.location);
            let cookies = Cookies::of(&service, &headers);
            cookies.set(&mut response, REMEMBERED, &choice, REMEMBERED_FOR);
            Ok(response)
        }
        Err(fault @ (Failure::Internal(_) | Failure::Unavailable(_))) => Err(fault),
        Err(refused) => {
            let problem = words(&refused);
            let page = render(&service, &visitor, form, Some(problem)).await?;
            Ok(with_status_of(refused, page))
        }
    }
}

/// The same way in as the API's start: values, rate, credit.
async fn accept(service: &Shared, visitor: &Visitor, form: &StartForm) -> Result<String, Failure> {
    let wish: Wish = serde_json::from_value(json!({
        "url": form.url,
        "device": form.device,
        "network": form.network,
        "location": form.location,
    }))
    .map_err(|_| Failure::InvalidBody)?;
    let (order, options) = wish.into_order(&service.app)?;
    let now = (service.app.clock)();
    let turn = service.starts.take(&visitor.key_id, now, 1);
    if let Some(turn) = turn.await?
        && turn.is_refused()
    {
        return Err(Failure::RateLimited);
    }
    let tracking_id = new_id("trk")?;
    let audit = NewAudit {
        account_id: visitor.account_id.clone(),
        tracking_id: tracking_id.clone(),
        audit_id: new_id("aud")?,
        order,
        options,
        accepted_at: now,
    };
    let submission = Submission {
        max_unfinished: service.app.limits.unfinished_audits(),
        failures: service.app.limits.failed_audits(),
        ..Submission::single(audit)
    };
    submit(service, submission).await?;
    Ok(tracking_id)
}

/// People type `example.com`.
fn with_scheme(url: &str) -> String {
    if url.is_empty() || url.contains("://") {
        url.to_owned()
    } else {
        format!("https://{url}")
    }
}

fn words(failure: &Failure) -> &'static str {
    match failure {
        Failure::InvalidUrl => {
            "This address cannot be audited: it must be a public http or https address of a page."
        }
        Failure::TooManyUnfinished => {
            "Too many audits of yours are waiting. Let some of them end first."
        }
        Failure::TooManyFailedAudits(_) => {
            "Too many of your audits failed within the last hour. Try again later."
        }
        Failure::RateLimited => "That was too many audits within a minute. Wait a little.",
        Failure::InsufficientCredits => {
            "There are no credits left. Ask whoever runs this service to add some."
        }
        _ => "Choose an address, a device, a network and a location.",
    }
}
