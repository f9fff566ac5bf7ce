//! The history of a URL, and the comparison of two audits.

use std::sync::Arc;

use axum::{
    extract::State,
    http::request::Parts,
    response::{IntoResponse, Response},
};
use plumbline_catalog::FormFactor;
use plumbline_report::html::{self, ComparedAudit, DeviceFieldHistory, PastAudit};
use plumbline_store::StoredReport;

use super::form::query;
use super::parts as page_parts;
use super::session::Visitor;
use super::start::past;
use crate::{errors::Failure, state::SharedState};

/// The number of audits in a history: enough for a trend, few enough to load at once.
const MAX_AUDITS: u32 = 60;

/// `GET /history?audit=` (the URL of that audit) or `?url=`: the history of a URL.
pub(crate) async fn history(
    State(service): State<SharedState>,
    visitor: Visitor,
    parts: Parts,
) -> Result<Response, Failure> {
    let url = match (query(&parts, "url")?, query(&parts, "audit")?) {
        (Some(url), _) => url,
        (None, Some(id)) => {
            let stored = service.app.store.report(&visitor.account_id, &id).await?;
            stored.ok_or(Failure::NotFound)?.order.url
        }
        (None, None) => return Err(Failure::NotFound),
    };
    let store = &page_parts(&service)?.store;
    let audits = store
        .recent(&visitor.account_id, Some(&url), MAX_AUDITS)
        .await?;
    if audits.is_empty() {
        return Err(Failure::NotFound);
    }
    let past: Vec<_> = audits.into_iter().map(past).collect();
    let field = field_past(&service, &url, &past).await?;
    let page_frame = visitor.page_frame();
    let render = move || html::history_page(&page_frame, &url, &past, &field);
    Ok(service.render_pool.page(render).await?.into_response())
}

/// Returns the field data for every kind of device on which the URL was audited, queried
/// concurrently.
async fn field_past(
    service: &SharedState,
    url: &str,
    past: &[PastAudit],
) -> Result<Vec<DeviceFieldHistory>, Failure> {
    let Some(source) = &service.app.field else {
        return Ok(Vec::new());
    };
    let mut form_factors: Vec<FormFactor> = Vec::new();
    for device in html::device_ids(past) {
        let device = service.app.catalog.device(&device);
        if let Some(form_factor) = device.map(|device| device.form_factor())
            && !form_factors.contains(&form_factor)
        {
            form_factors.push(form_factor);
        }
    }
    // The dataset lists visits under the final URL.
    let url = html::newest_final_url(past).unwrap_or_else(|| url.to_owned());
    let queries = form_factors.into_iter().map(|form_factor| {
        let (source, url) = (Arc::clone(source), url.clone());
        tokio::spawn(async move {
            let history = source.history(&url, form_factor).await;
            DeviceFieldHistory {
                form_factor,
                history,
            }
        })
    });
    let mut field = Vec::new();
    for query in queries.collect::<Vec<_>>() {
        field.push(query.await.map_err(Failure::internal)?);
    }
    Ok(field)
}

/// `GET /compare?before=&after=`: the comparison of two audits, by audit ids.
pub(crate) async fn compare(
    State(service): State<SharedState>,
    visitor: Visitor,
    parts: Parts,
) -> Result<Response, Failure> {
    let pages = page_parts(&service)?;
    let side = async |name: &str| {
        let id = query(&parts, name)?.ok_or(Failure::NotFound)?;
        let stored = service.app.store.report(&visitor.account_id, &id).await?;
        let stored = stored.ok_or(Failure::NotFound)?;
        let media = pages.media_of(&stored).await?;
        Ok::<_, Failure>((stored, media))
    };
    let (before, after) = (side("before").await?, side("after").await?);
    let page_frame = visitor.page_frame();
    let render = move || html::compare_page(&page_frame, &compared(&before), &compared(&after));
    Ok(service.render_pool.page(render).await?.into_response())
}

fn compared((stored, media): &(StoredReport, Option<Vec<u8>>)) -> ComparedAudit<'_> {
    ComparedAudit {
        audit_id: &stored.audit_id,
        created_at_ms: stored.created_at.0,
        report: &stored.report,
        media: media.as_deref(),
    }
}
