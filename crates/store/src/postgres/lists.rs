//! Audits in pages and batches.

use deadpool_postgres::Object;
use tokio_postgres::Row;

use super::connect::{Value, row, rows};
use super::{audits, count, small};
use crate::{
    AuditEntry, AuditFilter, AuditPage, AuditState, Batch, ListCursor, StoreError, Timestamp,
};

/// How many audits are looked at for one page. An index serves any one filter; several together
/// may fit nothing of a million audits, and the next page then goes on where this one stopped.
const LOOKED_AT: u32 = 2_000;

const COLUMNS: &str = "tracking_id, audit_id, url, device, network, location, state = 'completed',
                       attempt > 0, error_code, error_message, batch_id, runs, accepted_at,
                       finished_at, number, lab_data";

pub(super) async fn page(
    db: &Object,
    account_id: &str,
    filter: &AuditFilter,
    after: Option<ListCursor>,
    limit: u32,
) -> Result<AuditPage, StoreError> {
    let (condition, value) = leading(filter);
    let sql = format!(
        "SELECT {COLUMNS} FROM audits
         WHERE account_id = $1 AND (accepted_at, number) < ($2, $3) AND accepted_at >= $4
           {condition}
         ORDER BY accepted_at DESC, number DESC LIMIT $5"
    );
    let below = upper_bound(filter, after);
    // One more than the page holds says that there is a next one.
    let looked_at = match is_exact(filter) {
        true => limit.saturating_add(1),
        false => LOOKED_AT,
    };
    let (from, looked_at) = (
        filter.from.map_or(i64::MIN, |from| from.0),
        i64::from(looked_at),
    );
    let mut values: Vec<Value<'_>> = vec![
        &account_id,
        &below.accepted_at.0,
        &below.number,
        &from,
        &looked_at,
    ];
    if let Some(value) = &value {
        values.push(value);
    }
    let found = rows(db, &sql, &values).await?;
    let is_full = i64::try_from(found.len()).is_ok_and(|found| found == looked_at);

    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut page = AuditPage {
        audits: Vec::new(),
        next: None,
    };
    let mut last_seen = below;
    for row in &found {
        let audit = entry(row)?;
        // There is more than this page holds: it ends at the audit before.
        if page.audits.len() == wanted {
            page.next = Some(last_seen);
            return Ok(page);
        }
        last_seen = ListCursor {
            accepted_at: audit.accepted_at,
            number: audit.number,
        };
        if filter.matches(&audit) {
            page.audits.push(audit);
        }
    }
    page.next = is_full.then_some(last_seen);
    Ok(page)
}

/// Whether everything that the condition finds is on the page.
fn is_exact(filter: &AuditFilter) -> bool {
    let set = [
        filter.url.is_some(),
        filter.device.is_some(),
        filter.network.is_some(),
        filter.location.is_some(),
    ];
    filter.state.is_none() && set.into_iter().filter(|set| *set).count() <= 1
}

/// What an index can follow, and its value.
fn leading(filter: &AuditFilter) -> (&'static str, Option<&str>) {
    if matches!(
        filter.state,
        Some(AuditState::NotStarted | AuditState::InProgress)
    ) {
        return ("AND state <> 'completed'", None);
    }
    let by = [
        (&filter.url, "AND md5(url) = md5($6::text) AND url = $6"),
        (&filter.device, "AND device = $6"),
        (&filter.network, "AND network = $6"),
        (&filter.location, "AND location = $6"),
    ];
    by.into_iter()
        .find_map(|(value, condition)| Some((condition, Some(value.as_deref()?))))
        .unwrap_or(("", None))
}

/// Everything on the page stands before this.
fn upper_bound(filter: &AuditFilter, after: Option<ListCursor>) -> ListCursor {
    const END: ListCursor = ListCursor {
        accepted_at: Timestamp(i64::MAX),
        number: i64::MAX,
    };
    let to = filter.to.map_or(END, |accepted_at| ListCursor {
        accepted_at,
        number: 0,
    });
    after.map_or(to, |after| after.min(to))
}

fn entry(row: &Row) -> Result<AuditEntry, StoreError> {
    Ok(AuditEntry {
        tracking_id: row.try_get(0)?,
        audit_id: row.try_get(1)?,
        order: audits::order(row, 2)?,
        state: audits::state(row, 6)?,
        error: audits::error(row, 8)?,
        batch_id: row.try_get(10)?,
        runs: small(row, 11)?,
        accepted_at: Timestamp(row.try_get(12)?),
        finished_at: row.try_get::<_, Option<i64>>(13)?.map(Timestamp),
        number: row.try_get(14)?,
        lab_data: row.try_get(15)?,
    })
}

pub(super) async fn batch(
    db: &Object,
    account_id: &str,
    batch_id: &str,
) -> Result<Option<Batch>, StoreError> {
    let found = row(
        db,
        "SELECT audits, accepted_at FROM batches WHERE id = $1 AND account_id = $2",
        &[&batch_id, &account_id],
    )
    .await?;
    let Some(found) = found else {
        return Ok(None);
    };
    let sql = format!("SELECT {COLUMNS} FROM audits WHERE batch_id = $1 ORDER BY number");
    let audits = rows(db, &sql, &[&batch_id]).await?;
    Ok(Some(Batch {
        id: batch_id.to_owned(),
        accepted: count(&found, 0)?,
        accepted_at: Timestamp(found.try_get(1)?),
        audits: audits.iter().map(entry).collect::<Result<_, _>>()?,
    }))
}
