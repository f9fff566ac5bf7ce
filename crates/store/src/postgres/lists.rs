//! Lists of audits and batches.

use deadpool_postgres::Object;
use tokio_postgres::Row;

use super::connect::{Value, row, rows};
use super::{audits, count, read_u32};
use crate::{
    AuditEntry, AuditFilter, AuditPage, AuditState, Batch, ListCursor, ReplayAudit, StoreError,
    Timestamp,
};

/// Maximum number of audits that are examined for one page. An index serves any single filter;
/// several together may match none of a million audits, and the next page then continues where this
/// one stopped.
const MAX_EXAMINED: u32 = 2_000;

const COLUMNS: &str = "tracking_id, audit_id, url, device, network, location, options,
                       state = 'completed', attempt > 0, error_code, error_message, batch_id, runs,
                       accepted_at, finished_at, number, lab_data, final_url, labels";

pub(super) async fn page(
    db: &Object,
    account_id: &str,
    filter: &AuditFilter,
    after: Option<ListCursor>,
    limit: u32,
) -> Result<AuditPage, StoreError> {
    let (source, condition, value) = leading(filter);
    let sql = format!(
        "SELECT {COLUMNS} FROM {source}
         WHERE account_id = $1 AND (accepted_at, number) < ($2, $3) AND accepted_at >= $4
           {condition}
         ORDER BY accepted_at DESC, number DESC LIMIT $5"
    );
    let below = upper_bound(filter, after);
    // One more than the page shows whether there is a next one.
    let max_rows = i64::from(if is_exact(filter) {
        limit.saturating_add(1)
    } else {
        MAX_EXAMINED
    });
    let from = filter.from.map_or(i64::MIN, |from| from.0);
    let mut values: Vec<Value<'_>> = vec![
        &account_id,
        &below.accepted_at.0,
        &below.number,
        &from,
        &max_rows,
    ];
    if let Some(value) = &value {
        values.push(value);
    }
    let rows = rows(db, &sql, &values).await?;
    let is_full = i64::try_from(rows.len()).is_ok_and(|count| count == max_rows);

    let page_size = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut page = AuditPage {
        audits: Vec::new(),
        next: None,
    };
    let mut cursor = below;
    for row in &rows {
        let audit = entry(row)?;
        // The page is full and there are more audits: the next page begins after the previous one.
        if page.audits.len() == page_size {
            page.next = Some(cursor);
            return Ok(page);
        }
        cursor = ListCursor {
            accepted_at: audit.accepted_at,
            number: audit.number,
        };
        if filter.matches(&audit) {
            page.audits.push(audit);
        }
    }
    page.next = is_full.then_some(cursor);
    Ok(page)
}

/// Whether the SQL condition returns exactly the audits that match the filter.
fn is_exact(filter: &AuditFilter) -> bool {
    let set = [
        filter.url.is_some(),
        filter.device.is_some(),
        filter.network.is_some(),
        filter.location.is_some(),
        filter.label.is_some(),
    ];
    filter.state.is_none()
        && filter.url_part.is_none()
        && set.into_iter().filter(|set| *set).count() <= 1
}

/// The audits with a label, in the order of the list, as a source of a query.
const LABELLED: &str = "(SELECT position AS labelled FROM audit_labels
                         WHERE account_id = $1 AND label = $6
                           AND (accepted_at, number) < ($2, $3) AND accepted_at >= $4
                         ORDER BY accepted_at DESC, number DESC LIMIT $5) AS chosen
                        JOIN audits ON audits.position = labelled";

/// Returns the source, the condition that an index serves, and its value.
fn leading(filter: &AuditFilter) -> (&'static str, &'static str, Option<&str>) {
    if matches!(
        filter.state,
        Some(AuditState::NotStarted | AuditState::InProgress)
    ) {
        return ("audits", "AND state <> 'completed'", None);
    }
    let by = [
        (
            &filter.url,
            "audits",
            "AND md5(url) = md5($6::text) AND url = $6",
        ),
        (&filter.label, LABELLED, ""),
        (&filter.device, "audits", "AND device = $6"),
        (&filter.network, "audits", "AND network = $6"),
        (&filter.location, "audits", "AND location = $6"),
    ];
    by.into_iter()
        .find_map(|(value, source, condition)| Some((source, condition, Some(value.as_deref()?))))
        .unwrap_or(("audits", "", None))
}

/// Returns the cursor before which all audits of the page are.
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
        state: audits::state(row, 7)?,
        error: audits::error(row, 9)?,
        batch_id: row.try_get(11)?,
        runs: read_u32(row, 12)?,
        accepted_at: Timestamp(row.try_get(13)?),
        finished_at: row.try_get::<_, Option<i64>>(14)?.map(Timestamp),
        number: row.try_get(15)?,
        lab_data: row.try_get(16)?,
        final_url: row.try_get(17)?,
        labels: audits::labels(row, 18)?,
    })
}

pub(super) async fn audit(
    db: &Object,
    account_id: &str,
    tracking_id: &str,
) -> Result<Option<AuditEntry>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM audits WHERE tracking_id = $1 AND account_id = $2");
    let row = row(db, &sql, &[&tracking_id, &account_id]).await?;
    row.as_ref().map(entry).transpose()
}

pub(super) async fn replays(
    db: &Object,
    account_id: &str,
    audit_id: &str,
    limit: u32,
) -> Result<Vec<ReplayAudit>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, summary FROM audits
         WHERE options::jsonb #>> '{{replay,recording}}' = $1 AND account_id = $2
         ORDER BY number DESC LIMIT $3"
    );
    let found = rows(db, &sql, &[&audit_id, &account_id, &i64::from(limit)]).await?;
    let replay = |row: &Row| {
        Ok(ReplayAudit {
            audit: entry(row)?,
            summary: row.try_get(19)?,
        })
    };
    found.iter().map(replay).collect()
}

pub(super) async fn batch(
    db: &Object,
    account_id: &str,
    batch_id: &str,
) -> Result<Option<Batch>, StoreError> {
    let row = row(
        db,
        "SELECT audits, accepted_at FROM batches WHERE id = $1 AND account_id = $2",
        &[&batch_id, &account_id],
    )
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let sql = format!("SELECT {COLUMNS} FROM audits WHERE batch_id = $1 ORDER BY number");
    let audits = rows(db, &sql, &[&batch_id]).await?;
    Ok(Some(Batch {
        id: batch_id.to_owned(),
        accepted: count(&row, 0)?,
        accepted_at: Timestamp(row.try_get(1)?),
        audits: audits.iter().map(entry).collect::<Result<_, _>>()?,
    }))
}
