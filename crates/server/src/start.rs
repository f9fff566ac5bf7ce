//! Starts audits, for the API, for batches and for the form of the start page.

use plumbline_seam::{Order, VisitOptions};
use plumbline_store::{Acceptance, AuditOptions, NewAudit, Submission, random_text};

use crate::{
    api::{idempotency, secrets},
    auth::Starter,
    errors::Failure,
    state::SharedState,
    vault,
};

/// The number of random characters of an id, of 62 kinds: 190 bits, so that no id can be guessed or
/// generated twice.
const ID_RANDOM_CHARS: usize = 32;

/// Audits to be started, whose values are valid.
pub(crate) struct ValidStart {
    pub(crate) orders: Orders,
    pub(crate) options: AuditOptions,
}

/// The orders of a request.
pub(crate) enum Orders {
    Single(Box<Order>),
    Batch(Vec<Order>),
}

/// Starts audits: counts them against the limit of the key, takes their credits and queues them.
/// Returns the id of the audit or the batch; for a repeated idempotency key, that of its first
/// request.
pub(crate) async fn start(
    service: &SharedState,
    starter: &Starter,
    request: ValidStart,
    idempotency_key: Option<String>,
) -> Result<String, Failure> {
    starter.take(service, request.orders.count()).await?;
    start_counted(service, starter, request, idempotency_key).await
}

/// Counts audits that need work before they can be started, and fails if the key may not start them
/// or has fewer credits than the least that they cost. A repeated request may be paid already.
pub(crate) async fn count(
    service: &SharedState,
    starter: &Starter,
    starts: u32,
    least_cost: i64,
    idempotency_key: Option<&str>,
) -> Result<(), Failure> {
    starter.take(service, starts).await?;
    let left = credits(service, starter).await?;
    if left < least_cost && idempotency_key.is_none() {
        let needed = least_cost;
        return Err(Failure::InsufficientCredits { needed, left });
    }
    Ok(())
}

/// Starts audits like [`start`] that were counted by [`count`].
pub(crate) async fn start_counted(
    service: &SharedState,
    starter: &Starter,
    request: ValidStart,
    idempotency_key: Option<String>,
) -> Result<String, Failure> {
    let ValidStart { orders, options } = request;
    let now = (service.app.clock)();
    let canonical_request = orders.canonical(&options)?;
    let record = |reply: String| {
        let key = idempotency_key.clone()?;
        Some(idempotency::record(key, &canonical_request, reply, now))
    };
    if let Err(failure) = check_vault(service, starter, &orders).await {
        // A repeated request has its first reply also when what it used was deleted meanwhile.
        let earlier = match record(String::new()) {
            Some(record) => {
                let store = &service.app.store;
                let earlier = store.earlier_acceptance(&starter.account_id, &record, now);
                earlier.await?
            }
            None => None,
        };
        return match earlier {
            Some(Acceptance::Replayed(id)) => {
                starter.context.set_audit(&id);
                Ok(id)
            }
            Some(Acceptance::KeyReused) => Err(Failure::IdempotencyKeyReused),
            _ => Err(failure),
        };
    }
    let batch_id = match &orders {
        Orders::Single(_) => None,
        Orders::Batch(_) => Some(new_id("bat")?),
    };
    let audits = orders.into_vec().into_iter().map(|order| {
        Ok(NewAudit {
            account_id: starter.account_id.clone(),
            tracking_id: new_id("trk")?,
            audit_id: new_id("aud")?,
            order,
            options: options.clone(),
            accepted_at: now,
        })
    });
    let audits: Vec<_> = audits.collect::<Result<_, Failure>>()?;
    let id = match (&batch_id, &audits[..]) {
        (Some(id), _) => id.clone(),
        (None, [audit, ..]) => audit.tracking_id.clone(),
        (None, []) => return Err(Failure::internal("a start without an audit")),
    };
    let submission = Submission {
        account_id: starter.account_id.clone(),
        audits,
        batch_id,
        max_unfinished: service.app.limits.unfinished_audits(),
        failures: service.app.limits.failed_audits(),
        idempotency: record(id.clone()),
        accepted_at: now,
    };
    let id = submit(service, starter, submission).await?.unwrap_or(id);
    starter.context.set_audit(&id);
    Ok(id)
}

impl Orders {
    /// Returns the number of orders.
    pub(crate) fn count(&self) -> u32 {
        match self {
            Self::Single(_) => 1,
            Self::Batch(orders) => u32::try_from(orders.len()).unwrap_or(u32::MAX),
        }
    }

    /// Returns the request in a normalized format, whose digest is stored with an idempotency key.
    fn canonical(&self, options: &AuditOptions) -> Result<String, Failure> {
        let AuditOptions {
            runs,
            webhook,
            labels,
        } = options;
        let text = match self {
            Self::Single(order) => serde_json::to_string(&("start", order, runs, webhook)),
            Self::Batch(orders) => serde_json::to_string(&("batch", orders, runs, webhook)),
        };
        let mut text = text.map_err(Failure::internal)?;
        // A request without labels has the text of versions that knew none.
        if !labels.is_empty() {
            text += &serde_json::to_string(labels).map_err(Failure::internal)?;
        }
        Ok(text)
    }

    /// Returns the options of the visits, which all orders have in common.
    fn visit_options(&self) -> Option<&VisitOptions> {
        let first = match self {
            Self::Single(order) => Some(&**order),
            Self::Batch(orders) => orders.first(),
        };
        first.map(|order| &order.options)
    }

    fn into_vec(self) -> Vec<Order> {
        match self {
            Self::Single(order) => vec![*order],
            Self::Batch(orders) => orders,
        }
    }
}

/// Checks that the account has all secrets and the session that the orders use, and that the
/// secrets are valid where they are used. The values are not kept: they are read again when a job
/// is handed to an agent.
async fn check_vault(
    service: &SharedState,
    starter: &Starter,
    orders: &Orders,
) -> Result<(), Failure> {
    match orders.visit_options() {
        Some(options) if vault::is_needed_by(options) => {
            let vault = secrets::vault(service)?;
            vault.prepare(&starter.account_id, options).await?;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Submits audits to the store. Returns the earlier reply if the submission repeats one.
async fn submit(
    service: &SharedState,
    starter: &Starter,
    submission: Submission,
) -> Result<Option<String>, Failure> {
    let (now, needed) = (submission.accepted_at, submission.cost());
    match service.app.store.submit(submission).await? {
        Acceptance::Accepted => Ok(None),
        Acceptance::Replayed(reply) => Ok(Some(reply)),
        Acceptance::InsufficientCredits => {
            let left = credits(service, starter).await?;
            Err(Failure::InsufficientCredits { needed, left })
        }
        Acceptance::TooManyUnfinished => Err(Failure::TooManyUnfinished),
        Acceptance::TooManyFailed(until) => {
            let wait_ms = until.0.saturating_sub(now.0).max(1);
            // Rounded up, so that a request after this wait succeeds.
            Err(Failure::TooManyFailedAudits((wait_ms - 1) / 1000 + 1))
        }
        Acceptance::KeyReused => Err(Failure::IdempotencyKeyReused),
    }
}

async fn credits(service: &SharedState, starter: &Starter) -> Result<i64, Failure> {
    let key = service.app.store.key(&starter.key_id).await?;
    Ok(key.map_or(0, |key| key.credits))
}

/// Generates an id such as `trk_…`.
fn new_id(kind: &str) -> Result<String, Failure> {
    let random = random_text(ID_RANDOM_CHARS)
        .map_err(|error| Failure::internal(format!("no random source: {error}")))?;
    Ok(format!("{kind}_{random}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            url: "https://example.com/".to_owned(),
            device: "mobile".to_owned(),
            network: "cable".to_owned(),
            location: "eu".to_owned(),
            options: plumbline_store::VisitOptions::default(),
        }
    }

    #[test]
    fn the_canonical_request_is_that_of_earlier_versions() {
        let options = AuditOptions {
            runs: 3,
            webhook: Some("https://example.com/hook".to_owned()),
            labels: Vec::new(),
        };
        let order_text = concat!(
            r#"{"url":"https://example.com/","device":"mobile","#,
            r#""network":"cable","location":"eu"}"#
        );
        let single = Orders::Single(Box::new(order()))
            .canonical(&options)
            .unwrap();
        let expected = format!(r#"["start",{order_text},3,"https://example.com/hook"]"#);
        assert_eq!(single, expected);
        let labelled = AuditOptions {
            labels: vec!["one".to_owned()],
            ..options
        };
        let labelled = Orders::Single(Box::new(order()))
            .canonical(&labelled)
            .unwrap();
        assert_eq!(labelled, format!(r#"{expected}["one"]"#));
        let batch = Orders::Batch(vec![order()]).canonical(&AuditOptions::default());
        assert_eq!(
            batch.unwrap(),
            format!(r#"["batch",[{order_text}],1,null]"#)
        );
    }
}
