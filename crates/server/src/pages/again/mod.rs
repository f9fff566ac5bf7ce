//! Starts the audit of a report again, and asks for what was not kept of it.

use std::borrow::Cow;

use askama::Template;
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use plumbline_seam::{Order, VisitOptions};
use plumbline_store::AuditOptions;
use serde_json::json;

use super::form::Form;
use super::frame::Page;
use super::session::{Visitor, see_other, with_status_of};
use super::start::problem_text;
use crate::{
    api::{
        PathId,
        request_body::again,
        visit_options::{PREPARING_FIELD, RequestedOptions, validated},
    },
    errors::{Failure, InvalidValue},
    replays, start,
    state::SharedState,
};

/// The page that asks for the values that were not kept, or says why no audit was started.
#[derive(Template)]
#[template(path = "again/again.html")]
struct AgainPage {
    order: Order,
    /// The state, the steps, the expectation and the flow in JSON, if values are missing in them.
    preparing: Option<String>,
    /// The path of the form.
    action: String,
    /// The path of the report.
    report: String,
    problem: Option<Cow<'static, str>>,
}

impl Page for AgainPage {
    fn title(&self) -> String {
        "Audit again · Plumbline".to_owned()
    }
}

/// `POST /reports/{id}/again`: starts an audit with the order of an earlier one, with `record` to
/// record its traffic, and with `preparing` in place of what was done before the visit. Without it,
/// the response asks for values that were not kept.
pub(crate) async fn start(
    State(service): State<SharedState>,
    visitor: Visitor,
    PathId(id): PathId,
    mut form: Form,
) -> Result<Response, Failure> {
    let stored = replays::completed(&service, &visitor.account_id, &id).await?;
    let store = &service.app.store;
    let status = store.status(&visitor.account_id, &stored.tracking_id);
    let status = status.await?.ok_or(Failure::NotFound)?;
    let mut order = stored.order;
    order.options.record |= form.take("record") == "true";
    let given = form.take_all(PREPARING_FIELD).pop();
    let lacks_values = order.options.lacks_values();
    let mut page = AgainPage {
        preparing: lacks_values.then(|| preparing_text(&order.options)),
        order: order.clone(),
        action: format!("/reports/{id}/again"),
        report: format!("/reports/{id}"),
        problem: None,
    };
    if lacks_values && given.is_none() {
        return render(&service, &visitor, page).await;
    }
    let options = AuditOptions {
        runs: status.runs,
        webhook: None,
        labels: status.labels,
    };
    match accept(&service, &visitor, order, options, given.as_deref()).await {
        Ok(tracking_id) => Ok(see_other(&format!("/audits/{tracking_id}"))),
        Err(failure @ (Failure::Internal(_) | Failure::Unavailable(_))) => Err(failure),
        Err(failure) => {
            page.problem = Some(problem_text(&failure));
            page.preparing = given.or(page.preparing);
            let page = render(&service, &visitor, page).await?;
            Ok(with_status_of(failure, page))
        }
    }
}

/// Starts the audit with the same checks as the API: values, rate, credits.
async fn accept(
    service: &SharedState,
    visitor: &Visitor,
    mut order: Order,
    options: AuditOptions,
    preparing: Option<&str>,
) -> Result<String, Failure> {
    let stored = order.options.clone();
    if let Some(preparing) = preparing {
        let preparing = validated(RequestedOptions::preparing(preparing)?)?;
        order.options = VisitOptions {
            state: preparing.state,
            expect: preparing.expect,
            steps: preparing.steps,
            flow: preparing.flow,
            ..order.options
        };
        if order.options.lacks_values() && order.options == stored {
            let reason = "no value was filled in";
            let value = InvalidValue::new(PREPARING_FIELD, reason);
            return Err(Failure::InvalidState(value));
        }
    }
    let recordings: Vec<String> = order
        .options
        .replays()
        .map(|it| it.recording.clone())
        .collect();
    let cost = i64::from(options.runs);
    let request = again(order, options, &service.app)?;
    let starter = visitor.starter();
    start::count(service, &starter, 1, cost, None).await?;
    for recording in recordings {
        replays::require_recording(service, &visitor.account_id, &recording).await?;
    }
    start::start_counted(service, &starter, request, None).await
}

async fn render(
    service: &SharedState,
    visitor: &Visitor,
    page: AgainPage,
) -> Result<Response, Failure> {
    let page_frame = visitor.page_frame();
    let page = service.render_pool.page(move || page_frame.render(&page));
    Ok(page.await?.into_response())
}

/// Returns what is done before the visit, and the flow after it, as the form takes it.
fn preparing_text(options: &VisitOptions) -> String {
    let mut members = json!({});
    if let Some(state) = &options.state {
        members["state"] = json!(state);
    }
    if let Some(expect) = &options.expect {
        members["expect"] = json!(expect);
    }
    for (name, steps) in [("steps", &options.steps), ("flow", &options.flow)] {
        if !steps.is_empty() {
            members[name] = json!(steps);
        }
    }
    format!("{members:#}")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{EVIL, assert_text_only, listed_audit};
    use super::*;

    #[test]
    fn texts_of_the_order_and_of_the_form_are_escaped() {
        let options = VisitOptions {
            compare_with: Some(EVIL.to_owned()),
            ..VisitOptions::default()
        };
        assert_text_only(&AgainPage {
            order: listed_audit(EVIL, options).order,
            preparing: Some(EVIL.to_owned()),
            action: EVIL.to_owned(),
            report: EVIL.to_owned(),
            problem: Some(EVIL.into()),
        });
    }
}
