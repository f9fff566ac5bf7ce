//! The figures of an audit that lists show, stored beside the audit when it is finished.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use plumbline_model::summary::ReportSummary;
use plumbline_report::contract::figures;
use plumbline_store::{AuditSummary, Store, StoreError};

/// Time between two searches for audits without a summary. A server of an earlier version that
/// shares the database finishes audits without one.
const INTERVAL: Duration = Duration::from_secs(60);
/// Number of reports that are read at once, each of which may have some hundred kilobytes.
const BATCH_SIZE: u32 = 20;

/// Returns the texts to be stored for a report.
pub(crate) fn stored(summary: &ReportSummary) -> Result<AuditSummary, serde_json::Error> {
    let metrics = summary.metrics.as_ref();
    let document = summary.document.as_ref();
    let lab_data = metrics.map(|metrics| figures(&summary.scores, Some(metrics), document));
    let redirected_to = summary.redirected_to(&summary.requested_url);
    Ok(AuditSummary {
        lab_data: lab_data.map(|figures| figures.to_string()),
        summary: serde_json::to_string(summary)?,
        final_url: redirected_to.map(str::to_owned),
    })
}

/// Adds the missing summaries of audits that earlier versions finished, now and every minute.
pub fn keep_adding_missing(store: Arc<dyn Store>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let mut interval = tokio::time::interval(INTERVAL);
        loop {
            interval.tick().await;
            match add_missing(&*store).await {
                Ok(0) => {}
                Ok(audits) => tracing::info!(audits, "added summaries of audits"),
                Err(error) => tracing::warn!(%error, "failed to add summaries of audits"),
            }
        }
    })
}

/// Adds all missing summaries and returns their number. Resumable: run again to continue.
pub fn add_missing<'a>(store: &'a dyn Store) -> BoxFuture<'a, Result<u64, StoreError>> {
    Box::pin(async move {
        let mut added = 0;
        loop {
            let audits = store.unsummarized(BATCH_SIZE).await?;
            if audits.is_empty() {
                return Ok(added);
            }
            for audit in audits {
                let read = serde_json::from_str(&audit.report);
                let summary = match read.and_then(|summary| stored(&summary)) {
                    Ok(summary) => summary,
                    Err(error) => {
                        tracing::error!(audit = audit.tracking_id, %error, "unreadable report");
                        // Stored as well, so that it is not read again every minute.
                        AuditSummary {
                            lab_data: None,
                            summary: "null".to_owned(),
                            final_url: None,
                        }
                    }
                };
                store.store_summary(&audit.tracking_id, summary).await?;
                added += 1;
            }
        }
    })
}
