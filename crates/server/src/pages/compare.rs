//! An address over time, and two audits side by side.

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
    let url = match (query(&parts, "url")?, query(&parts, "audit")?) {
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
    let field = field_past(&service, &url, &past).await?;
    let page_frame = visitor.page_frame();
    let make = move || html::history_page(&page_frame, &url, &past, &field);
    Ok(service.renders.page(make).await?.into_response())
}

/// What visitors met, for every kind of device that the address was audited on; asked for at once.
async fn field_past(
    service: &Shared,
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
    // The dataset files visits under the address they led to.
    let url = html::newest_final_url(past).unwrap_or_else(|| url.to_owned());
    let asked = form_factors.into_iter().map(|form_factor| {
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
    for asked in asked.collect::<Vec<_>>() {
        field.push(asked.await.map_err(Failure::internal)?);
    }
    Ok(field)
}

/// `GET /compare?before=&after=`, by audit ids.
pub(crate) async fn compare(
    State(service): State<Shared>,
    visitor: Visitor,
    parts: Parts,
) -> Result<Response, Failure> {
    let pages = of(&service)?;
    let side = async |name: &str| {
        let id = query(&parts, name)?.ok_or(Failure::NotFound)?;
        let found = service.app.store.report(&visitor.account_id, &id).await?;
        let stored = found.ok_or(Failure::NotFound)?;
        let media = pages.media_of(&stored).await?;
        Ok::<_, Failure>((stored, media))
    };
    let (before, after) = (side("before").await?, side("after").await?);
    let page_frame = visitor.page_frame();
    let make = move || html::compare_page(&page_frame, &compared(&before), &compared(&after));
    Ok(service.renders.page(make).await?.into_response())
}

fn compared((stored, media): &(StoredReport, Option<Vec<u8>>)) -> ComparedAudit<'_> {
    ComparedAudit {
        audit_id: &stored.audit_id,
        created_at_ms: stored.created_at.0,
        report: &stored.report,
        media: media.as_deref(),
    }
}
