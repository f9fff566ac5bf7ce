//! Cancels audits, for the API, for batches and for the progress page.

use plumbline_bundle::{Failure as AuditFailure, FailureCode};
use plumbline_catalog::Catalog;
use plumbline_model::report::{Conditions, Report};
use plumbline_model::summary::ReportSummary;
use plumbline_seam::Order;
use plumbline_store::{
    AuditEntry, AuditError, AuditState, AuditStatus, Batch, Cancellation, CancelledAudit,
};

use crate::{errors::Failure, metrics::AuditFigures, state::SharedState, summaries};

/// Cancels an audit, unless it is completed, and returns its status.
pub(crate) async fn cancel_audit(
    service: &SharedState,
    account_id: &str,
    tracking_id: &str,
) -> Result<AuditStatus, Failure> {
    let store = &service.app.store;
    let audit = store.audit(account_id, tracking_id).await?;
    let audit = audit.ok_or(Failure::NotFound)?;
    cancel_unfinished(service, account_id, &[audit]).await?;
    let status = store.status(account_id, tracking_id).await?;
    status.ok_or(Failure::NotFound)
}

/// Cancels the audits of a batch that are not completed, and returns the batch.
pub(crate) async fn cancel_batch(
    service: &SharedState,
    account_id: &str,
    batch_id: &str,
) -> Result<Batch, Failure> {
    let store = &service.app.store;
    let batch = store.batch(account_id, batch_id).await?;
    let batch = batch.ok_or(Failure::NotFound)?;
    cancel_unfinished(service, account_id, &batch.audits).await?;
    let batch = store.batch(account_id, batch_id).await?;
    batch.ok_or(Failure::NotFound)
}

/// Cancels those of the audits that are not completed. An agent that works on one of them learns of
/// it from the response to its next heartbeat.
async fn cancel_unfinished(
    service: &SharedState,
    account_id: &str,
    audits: &[AuditEntry],
) -> Result<(), Failure> {
    let app = &service.app;
    let failure = AuditFailure::new(FailureCode::Cancelled, "The audit was cancelled.");
    let unfinished = audits
        .iter()
        .filter(|audit| audit.state != AuditState::Completed);
    let cancelled = unfinished.map(|audit| cancelled_audit(audit, &app.catalog, &failure));
    let audits: Vec<_> = cancelled
        .collect::<Result<_, _>>()
        .map_err(Failure::internal)?;
    if audits.is_empty() {
        return Ok(());
    }
    let cancellation = Cancellation {
        account_id: account_id.to_owned(),
        audits,
        error: AuditError {
            code: failure.code.to_string(),
            message: failure.message,
        },
        at: (app.clock)(),
    };
    for tracking_id in app.store.cancel(cancellation).await? {
        app.store.progress().remove(&tracking_id);
        app.metrics.audit_finished(&AuditFigures {
            outcome: failure.code.to_string(),
            ..AuditFigures::default()
        });
        tracing::info!(audit = tracking_id, "audit cancelled");
    }
    Ok(())
}

fn cancelled_audit(
    audit: &AuditEntry,
    catalog: &Catalog,
    failure: &AuditFailure,
) -> Result<CancelledAudit, serde_json::Error> {
    let conditions = requested_conditions(&audit.order, catalog);
    let report = Report::failed(&audit.order.url, conditions, failure.clone());
    Ok(CancelledAudit {
        tracking_id: audit.tracking_id.clone(),
        order: audit.order.clone(),
        report: report.to_json()?,
        summary: summaries::stored(&ReportSummary::from(&report))?,
    })
}

/// Returns the conditions that an order asks for. An id that the catalog does not have any more is
/// used as the name.
fn requested_conditions(order: &Order, catalog: &Catalog) -> Conditions {
    let mut conditions = order.conditions();
    if let Some(device) = catalog.device(&order.device) {
        conditions.device.name.clone_from(&device.name);
        conditions.device.mode = device.mode;
        conditions.cpu.device_index = device.cpu_index;
    }
    if let Some(network) = catalog.network(&order.network) {
        let requested = &mut conditions.network;
        requested.name.clone_from(&network.name);
        requested.down_kbps = network.down_kbps;
        requested.up_kbps = network.up_kbps;
        requested.rtt_ms = network.rtt_ms;
    }
    if let Some(location) = catalog.location(&order.location) {
        conditions.location.name.clone_from(&location.name);
    }
    conditions
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::BUILT_IN;
    use plumbline_seam::VisitOptions;

    use super::*;

    #[test]
    fn conditions_have_the_names_of_the_catalog_or_the_ids_of_the_order() {
        let catalog = Catalog::load(BUILT_IN).unwrap();
        let mut order = Order {
            url: "https://example.com/".to_owned(),
            device: "mobile".to_owned(),
            network: "cable".to_owned(),
            location: "eu".to_owned(),
            options: VisitOptions::default(),
        };
        let conditions = requested_conditions(&order, &catalog);
        assert_eq!(
            conditions.device.name,
            catalog.device("mobile").unwrap().name
        );
        assert_eq!(
            conditions.network.name,
            catalog.network("cable").unwrap().name
        );
        assert_eq!(
            conditions.location.name,
            catalog.location("eu").unwrap().name
        );
        for id in [&mut order.device, &mut order.network, &mut order.location] {
            *id = "removed".to_owned();
        }
        let conditions = requested_conditions(&order, &catalog);
        assert_eq!(conditions.device.name, "removed");
        assert_eq!(conditions.network.name, "removed");
        assert_eq!(conditions.location.name, "removed");
    }
}
