//! The start page.

use std::{borrow::Cow, sync::Arc, time::Duration};

use askama::Template;
use axum::{
    extract::State,
    http::{HeaderMap, request::Parts},
    response::{IntoResponse, Response},
};
use plumbline_catalog::{Catalog, FormFactor, NetworkKind};
use plumbline_seam::{Consent, Interactions, Order, SessionUse, View, VisitOptions, with_scheme};
use plumbline_store::AuditFilter;

use super::audit_list::{AuditRow, listed};
use super::cookies::Cookies;
use super::form::{Form, query};
use super::frame::Page;
use super::session::{Visitor, see_other, with_status_of};
use super::{page_rate, sign_in};
use crate::{
    api::request_body::{AuditRequest, MAX_RUNS},
    api::visit_options::RequestedOptions,
    auth::Starter,
    errors::Failure,
    request_context::RequestContext,
    start,
    state::SharedState,
};

/// The cookie with the last device, network and location.
const CHOICE_COOKIE: &str = "plumbline_choice";
const CHOICE_DURATION: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The field for error pages.
const ERROR_STATUS: &str = "allowErrorStatus";
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
    /// The error of the last attempt to start an audit.
    problem: Option<Cow<'static, str>>,
}

/// The values of the form.
struct StartForm {
    url: String,
    /// The URL of a second page to compare with; empty for none.
    compare_with: String,
    device: String,
    /// The id of the network; empty for the network that follows the device.
    network: String,
    location: String,
    /// The number of runs, as it was typed.
    runs: String,
    quick: bool,
    record: bool,
    consent: Consent,
    /// Whether the cache is warm.
    is_repeat_view: bool,
    /// Whether inputs are made on the page after its visits.
    interactions: bool,
    /// Whether the page is loaded once more with a profiler.
    profile: bool,
    /// Whether an error page is measured as well.
    allow_error_status: bool,
    /// The name of the session to sign in with; empty for none.
    session: String,
    /// The state, the steps, the expectation and the flow of the visit in JSON, as they were typed.
    preparing: String,
}

impl StartForm {
    /// Returns whether something is done before the visit.
    fn is_prepared(&self) -> bool {
        !self.session.is_empty() || !self.preparing.is_empty()
    }
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
        let to = query(&parts, "to")?.unwrap_or_default();
        return Ok(sign_in::form(&to, None)?.into_response());
    };
    let form = StartForm {
        url: query(&parts, "url")?.unwrap_or_default(),
        compare_with: query(&parts, "compareWith")?.unwrap_or_default(),
        ..prefilled(&service, &headers, &parts)?
    };
    render(&service, &visitor, form, None).await
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

/// Returns the form as the query fills it in, with the device, network and location of the last
/// choice where the query names none that the catalog has.
fn prefilled(
    service: &SharedState,
    headers: &HeaderMap,
    parts: &Parts,
) -> Result<StartForm, Failure> {
    let catalog = &service.app.catalog;
    let mut form = last_choice(service, headers);
    if let Some(id) = query(parts, "preset")?
        && let Some(preset) = catalog.preset(&id)
    {
        form.device = preset.device.to_owned();
        form.network = preset.network.to_owned();
    }
    if let Some(id) = query(parts, "device")?.filter(|id| catalog.device(id).is_some()) {
        form.device = id;
    }
    if let Some(id) = query(parts, "network")?.filter(|id| catalog.network(id).is_some()) {
        form.network = id;
    }
    if let Some(id) = query(parts, "location")?.filter(|id| catalog.location(id).is_some()) {
        form.location = id;
    }
    if let Some(runs) = query(parts, "runs")? {
        form.runs = runs;
    }
    form.quick = query(parts, "quick")?.is_some_and(|value| value == "true");
    form.record = query(parts, "record")?.is_some_and(|value| value == "true");
    form.profile = query(parts, "profile")?.is_some_and(|value| value == "true");
    form.allow_error_status = query(parts, ERROR_STATUS)?.is_some_and(|value| value == "true");
    if let Some(consent) = query(parts, "consent")? {
        form.consent = Consent::from_name(&consent).unwrap_or_default();
    }
    form.is_repeat_view = query(parts, "view")?.is_some_and(|value| value == "repeat");
    form.interactions = query(parts, "interactions")?.is_some_and(|value| value == "true");
    form.session = query(parts, "session")?.unwrap_or_default();
    form.preparing = prefilled_preparing(parts)?;
    Ok(form)
}

/// Returns what the query tells to do before the visit, and the flow after it: `preparing`, or the
/// members of its JSON one by one. Whether they are valid is checked when the audit is started.
fn prefilled_preparing(parts: &Parts) -> Result<String, Failure> {
    if let Some(preparing) = query(parts, "preparing")? {
        return Ok(preparing);
    }
    let mut members = Vec::new();
    for name in ["state", "steps", "expect", "flow"] {
        if let Some(json) = query(parts, name)?.filter(|json| !json.is_empty()) {
            members.push(format!("  \"{name}\": {json}"));
        }
    }
    Ok(if members.is_empty() {
        String::new()
    } else {
        format!("{{\n{}\n}}", members.join(",\n"))
    })
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
        compare_with: String::new(),
        device: pick(&|id| catalog.device(id).is_some(), "mobile"),
        network: pick(&|id| catalog.network(id).is_some(), ""),
        location: pick(&|id| catalog.location(id).is_some(), "us-tx"),
        runs: "1".to_owned(),
        quick: false,
        record: false,
        consent: Consent::None,
        is_repeat_view: false,
        interactions: false,
        profile: false,
        allow_error_status: false,
        session: String::new(),
        preparing: String::new(),
    }
}

/// `POST /audits`: starts an audit.
pub(crate) async fn start(
    State(service): State<SharedState>,
    headers: HeaderMap,
    visitor: Visitor,
    mut fields: Form,
) -> Result<Response, Failure> {
    let mut form = StartForm {
        url: completed_url(fields.take("url").trim()),
        compare_with: completed_url(fields.take("compareWith").trim()),
        device: fields.take("device"),
        network: fields.take("network"),
        location: fields.take("location"),
        runs: fields.take("runs"),
        quick: fields.take("quick") == "true",
        record: fields.take("record") == "true",
        consent: Consent::from_name(&fields.take("consent")).unwrap_or_default(),
        is_repeat_view: fields.take("view") == "repeat",
        interactions: fields.take("interactions") == "true",
        profile: fields.take("profile") == "true",
        allow_error_status: fields.take(ERROR_STATUS) == "true",
        session: fields.take("session"),
        preparing: fields.take("preparing"),
    };
    if let Some(preset) = service.app.catalog.preset(&fields.take("preset")) {
        form.device = preset.device.to_owned();
        form.network = preset.network.to_owned();
    }
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
    let starter = Starter {
        key_id: visitor.key_id.clone(),
        account_id: visitor.account_id.clone(),
        // The headers of a page do not describe the limit of starts.
        context: RequestContext::default(),
    };
    let request = if form.compare_with.is_empty() {
        request.with_runs(runs).validate(&service.app)?
    } else {
        let second_url = form.compare_with.clone();
        request.compared_with(second_url).validate(&service.app)?
    };
    start::start(service, &starter, request, None).await
}

/// Adds a scheme to a URL that has none, such as `example.com` or `localhost:3000`. Nothing else is
/// changed, so that the text that is stored, shown and visited is the same.
fn completed_url(text: &str) -> String {
    match with_scheme(text) {
        Some(url) => format!("{}://{text}", url.scheme()),
        None => text.to_owned(),
    }
}

fn problem_text(failure: &Failure) -> Cow<'static, str> {
    let text = match failure {
        Failure::InvalidState(value)
        | Failure::InvalidExpectation(value)
        | Failure::InvalidSteps(value) => {
            let field = value.field;
            return format!(
                "The text about what to do before the visit, `{field}`: {}",
                value.reason
            )
            .into();
        }
        Failure::UnknownSession(_) => "There is no session with this name.",
        Failure::UnknownSecret(_) => "A secret that is used has not been stored.",
        Failure::InvalidUrl(_) => {
            "This URL cannot be audited. Enter the public http or https URL of a page."
        }
        Failure::InvalidRuns(_) => "Choose between 1 and 9 runs.",
        Failure::InvalidInteractions(_) => "No controls are pressed in a comparison.",
        Failure::InvalidProfile(_) => "No functions are profiled in a comparison.",
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
    };
    text.into()
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::BUILT_IN;

    use super::super::audit_list::{PastAudit, audit_rows};
    use super::super::testing::{EVIL, assert_text_only, report};
    use super::*;

    #[test]
    fn a_scheme_is_added_and_nothing_else_is_changed() {
        for (text, url) in [
            ("example.com/a b", "https://example.com/a b"),
            ("localhost:3000", "http://localhost:3000"),
            ("http://example.com", "http://example.com"),
            ("shop", "shop"),
            ("", ""),
        ] {
            assert_eq!(completed_url(text), url);
        }
    }

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
