//! The start page.

mod fields;
mod problem;

use std::{borrow::Cow, sync::Arc, time::Duration};

use askama::Template;
use axum::{
    extract::State,
    http::{HeaderMap, request::Parts},
    response::{IntoResponse, Response},
};
use plumbline_catalog::{Catalog, FormFactor, NetworkKind};
use plumbline_seam::{Consent, Interactions, Order, SessionUse, View, VisitOptions};
use plumbline_store::AuditFilter;

use self::fields::{StartForm, prefilled};
pub(super) use self::problem::problem_text;
use super::audit_list::{AuditRow, listed};
use super::cookies::Cookies;
use super::form::{Form, query};
use super::frame::Page;
use super::session::{Visitor, see_other, with_status_of};
use super::{page_rate, sign_in};
use crate::{
    api::request_body::{AuditRequest, MAX_RUNS},
    api::visit_options::RequestedOptions,
    errors::Failure,
    start,
    state::SharedState,
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
    /// The names of the saved sessions of the account.
    sessions: Vec<String>,
    /// The error of the last attempt to start an audit, or of the values that fill in the form.
    problem: Option<Cow<'static, str>>,
}

/// An example of what to do before a visit.
const EXAMPLE: &str = r##"{ "steps": [{ "type": "goto", "url": "/login" }, …],
  "expect": { "selector": "#account" },
  "state": { "cookies": [{ "name": "consent", "value": "all" }] } }"##;

/// Choices of a list that are shown under one heading.
struct ChoiceGroup<'a> {
    label: &'static str,
    choices: Vec<Choice<'a>>,
}

/// An entry of the catalog in a list.
struct Choice<'a> {
    id: &'a str,
    name: &'a str,
}

impl StartPage {
    fn max_runs(&self) -> u32 {
        MAX_RUNS
    }

    fn device_groups(&self) -> Vec<ChoiceGroup<'_>> {
        let groups = FormFactor::ALL.into_iter().map(|form_factor| {
            let devices = self.catalog.devices().iter();
            let devices = devices.filter(|device| device.form_factor() == form_factor);
            let choices = devices.map(|device| (device.id.as_str(), device.name.as_str()));
            ChoiceGroup::new(form_factor.heading(), choices)
        });
        groups.filter(|group| !group.choices.is_empty()).collect()
    }

    fn network_groups(&self) -> Vec<ChoiceGroup<'_>> {
        let groups = NetworkKind::ALL.into_iter().map(|kind| {
            let networks = self.catalog.networks().iter();
            let networks = networks.filter(|network| network.kind == kind);
            let choices = networks.map(|network| (network.id.as_str(), network.name.as_str()));
            ChoiceGroup::new(kind.heading(), choices)
        });
        groups.filter(|group| !group.choices.is_empty()).collect()
    }
}

impl<'a> ChoiceGroup<'a> {
    fn new(label: &'static str, choices: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let choices = choices.map(|(id, name)| Choice { id, name });
        Self {
            label,
            choices: choices.collect(),
        }
    }
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
        // A link that fills in the form leads to the filled form after the sign-in.
        let own = || parts.uri.query().map(|query| format!("/?{query}"));
        let to = query(&parts, "to")?.or_else(own).unwrap_or_default();
        return Ok(sign_in::form(&to, None)?.into_response());
    };
    let (form, unknown) = prefilled(&service, &headers, &parts)?;
    let problem = (!unknown.is_empty()).then(|| {
        let unknown = unknown.join(", ");
        format!("These values of the address are not known and were left out: {unknown}.").into()
    });
    render(&service, &visitor, form, problem).await
}

async fn render(
    service: &SharedState,
    visitor: &Visitor,
    form: StartForm,
    problem: Option<Cow<'static, str>>,
) -> Result<Response, Failure> {
    let sessions = session_names(service, &visitor.account_id).await?;
    let filter = AuditFilter::default();
    let (past, _) = listed(service, &visitor.account_id, filter, None, MAX_RECENT).await?;
    let page_frame = visitor.page_frame();
    let page = StartPage {
        catalog: Arc::clone(&service.app.catalog),
        form,
        credits: visitor.credits,
        past,
        sessions,
        problem,
    };
    let page = service.render_pool.page(move || page_frame.render(&page));
    Ok(page.await?.into_response())
}

/// Returns the names of the saved sessions of an account.
async fn session_names(service: &SharedState, account_id: &str) -> Result<Vec<String>, Failure> {
    let Some(vault) = &service.app.vault else {
        return Ok(Vec::new());
    };
    let sessions = vault.sessions(account_id).await?;
    Ok(sessions.into_iter().map(|session| session.name).collect())
}

/// `POST /audits`: starts an audit.
pub(crate) async fn start(
    State(service): State<SharedState>,
    headers: HeaderMap,
    visitor: Visitor,
    mut fields: Form,
) -> Result<Response, Failure> {
    let form = StartForm::sent(&mut fields, &service.app.catalog);
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
    let catalog = &service.app.catalog;
    let network = match catalog.device(&form.device) {
        Some(device) if form.network.is_empty() => {
            let network = catalog.network_of(device);
            network.map_or_else(String::new, |network| network.id.clone())
        }
        _ => form.network.clone(),
    };
    let request = AuditRequest::from(Order {
        url: form.url.clone(),
        device: form.device.clone(),
        network,
        location: form.location.clone(),
        options: VisitOptions {
            quick: form.quick,
            record: form.record,
            consent: form.consent,
            view: if form.is_repeat_view {
                View::Repeat
            } else {
                View::First
            },
            interactions: if form.interactions {
                Interactions::ALL
            } else {
                Interactions::default()
            },
            profile: form.profile,
            allow_error_status: form.allow_error_status,
            session: (!form.session.is_empty()).then(|| SessionUse {
                name: form.session.clone(),
                sign_in: None,
            }),
            ..VisitOptions::default()
        },
    });
    let request = request.prepared_by(RequestedOptions::preparing(&form.preparing)?);
    // A form without the field is one of an earlier version; another text is an invalid number.
    let runs = match form.runs.trim() {
        "" => 1,
        text => text.parse().unwrap_or(0),
    };
    let request = if form.compare_with.is_empty() {
        request.with_runs(runs).validate(&service.app)?
    } else {
        let second_url = form.compare_with.clone();
        request.compared_with(second_url).validate(&service.app)?
    };
    start::start(service, &visitor.starter(), request, None).await
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::BUILT_IN;

    use super::super::audit_list::{PastAudit, audit_rows};
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
            labels: vec![EVIL.to_owned()],
        };
        assert_text_only(&StartPage {
            catalog: Arc::new(Catalog::load(BUILT_IN).unwrap()),
            form: StartForm {
                url: EVIL.to_owned(),
                compare_with: EVIL.to_owned(),
                device: EVIL.to_owned(),
                network: EVIL.to_owned(),
                location: EVIL.to_owned(),
                runs: EVIL.to_owned(),
                quick: true,
                record: false,
                consent: Consent::None,
                is_repeat_view: false,
                interactions: true,
                profile: true,
                allow_error_status: true,
                session: EVIL.to_owned(),
                preparing: EVIL.to_owned(),
            },
            credits: 1,
            past: audit_rows(&[past]),
            sessions: vec![EVIL.to_owned()],
            problem: Some(EVIL.into()),
        });
    }
}
