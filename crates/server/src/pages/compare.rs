//! An address over time, and two audits side by side.

use axum::{
    extract::State,
    http::request::Parts,
    response::{Html, IntoResponse, Response},
};
use plumbline_report::html::{self, Compared};
use plumbline_store::StoredReport;

use super::form::query;
use super::of;
use super::session::Visitor;
use super::start::past;
use crate::{errors::Failure, router::Shared};

/// Enough for a trend, few enough to read at once.
const MOST: u32 = 60;

/// `GET /history?audit=` (the address of that audit) or `?url=`
pub(crate) async fn history(
    State(service): State<Shared>,
    visitor: Visitor,
    parts: Parts,
) -> Result<Response, Failure> {
    let url = match (query(&parts, "url"), query(&parts, "audit")) {
        (Some(url), _) => url,
        (None, Some(id)) => {
            let found = service.app.store.report(&visitor.account_id, &id).await?;
            found.ok_or(Failure::NotFound)?.order.url
        }
        (None, None) => return Err(Failure::NotFound),
    };
    let store = &of(&service)?.store;
    let audits = store.recent(&visitor.account_id, Some(&url), MOST).await?;
    if audits.is_empty() {
        return Err(Failure::NotFound);
    }
    let past: Vec<_> = audits.into_iter().map(past).collect();
    let page = html::history_page(&visitor.chrome(), &url, &past);
    Ok(Html(page.map_err(Failure::internal)?).into_response())
}

/// `GET /compare?before=&after=`, by audit ids.
pub(crate) async fn compare(
    State(service): State<Shared>,
    visitor: Visitor,
    parts: Parts,
) -> Result<Response, Failure> {
    let pages = of(&service)?;
    let side = async |name: &str| {
        let id = query(&parts, name).ok_or(Failure::NotFound)?;
        let found = service.app.store.report(&visitor.account_id, &id).await?;
        let stored = found.ok_or(Failure::NotFound)?;
        let exhibits = pages.exhibits_of(&stored.audit_id).await?;
        Ok::<_, Failure>((stored, exhibits))
    };
    let (before, after) = (side("before").await?, side("after").await?);
    let page = html::compare_page(&visitor.chrome(), &compared(&before), &compared(&after));
    Ok(Html(page.map_err(Failure::internal)?).into_response())
}

fn compared((stored, exhibits): &(StoredReport, Option<Vec<u8>>)) -> Compared<'_> {
    Compared {
        audit_id: &stored.audit_id,
        created_at_ms: stored.created_at.0,
        report: &stored.report,
        exhibits: exhibits.as_deref(),
    }
}
