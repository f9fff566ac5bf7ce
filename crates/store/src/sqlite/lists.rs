//! Lists of audits and batches.

use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter, types::Value};

use super::audits;
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

/// Whether an index returns exactly the audits of a page.
pub(super) fn is_quick(filter: &AuditFilter) -> bool {
    let set = [
        filter.url.is_some(),
        filter.device.is_some(),
        filter.network.is_some(),
        filter.location.is_some(),
        filter.label.is_some(),
    ];
    set.into_iter().filter(|set| *set).count() <= 1
        && filter.state.is_none()
        && filter.url_part.is_none()
}

pub(super) fn page(
    connection: &Connection,
    account_id: &str,
    filter: &AuditFilter,
    after: Option<ListCursor>,
    limit: u32,
) -> Result<AuditPage, rusqlite::Error> {
    let (source, condition, value) = leading(filter);
    let sql = format!(
        "SELECT {COLUMNS} FROM {source}
         WHERE account_id = ?1 AND (accepted_at, number) < (?2, ?3) {condition}
         ORDER BY accepted_at DESC, number DESC LIMIT ?4"
    );
    let below = upper_bound(filter, after);
    // One more than the page shows whether there is a next one.
    let max_rows = if is_quick(filter) {
        limit.saturating_add(1)
    } else {
        MAX_EXAMINED
    };
    let mut values = vec![
        Value::from(account_id.to_owned()),
        Value::from(below.accepted_at.0),
        Value::from(below.number),
        Value::from(max_rows),
    ];
    values.extend(value.map(|value| Value::from(value.to_owned())));
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;

    let page_size = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut page = AuditPage {
        audits: Vec::new(),
        next: None,
    };
    let mut examined = 0;
    let mut cursor = below;
    while let Some(row) = rows.next()? {
        let audit = entry(row)?;
        if filter.from.is_some_and(|from| audit.accepted_at < from) {
            return Ok(page);
        }
        // The page is full and there are more audits: the next page begins after the previous one.
        if page.audits.len() == page_size {
            page.next = Some(cursor);
            return Ok(page);
        }
        cursor = cursor_of(&audit);
        examined += 1;
        if filter.matches(&audit) {
            page.audits.push(audit);
        }
    }
    page.next = (examined == max_rows).then_some(cursor);
    Ok(page)
}

/// The audits with a label, in the order of the list, as a source of a query.
const LABELLED: &str = "(SELECT position AS labelled FROM audit_labels
                         WHERE account_id = ?1 AND label = ?5
                           AND (accepted_at, number) < (?2, ?3)
                         ORDER BY accepted_at DESC, number DESC LIMIT ?4)
                        CROSS JOIN audits ON audits.position = labelled";

/// Returns the source with the index to use, its condition, and the value of the condition.
fn leading(filter: &AuditFilter) -> (&'static str, &'static str, Option<&str>) {
    if matches!(
        filter.state,
        Some(AuditState::NotStarted | AuditState::InProgress)
    ) {
        let source = "audits INDEXED BY audits_unfinished";
        return (source, "AND state <> 'completed'", None);
    }
    let by = [
        (
            &filter.url,
            "audits INDEXED BY audits_by_url",
            "AND url = ?5",
        ),
        (&filter.label, LABELLED, ""),
        (
            &filter.device,
            "audits INDEXED BY audits_by_device",
            "AND device = ?5",
        ),
        (
            &filter.network,
            "audits INDEXED BY audits_by_network",
            "AND network = ?5",
        ),
        (
            &filter.location,
            "audits INDEXED BY audits_by_location",
            "AND location = ?5",
        ),
    ];
    by.into_iter()
        .find_map(|(value, source, condition)| Some((source, condition, Some(value.as_deref()?))))
        .unwrap_or(("audits INDEXED BY audits_by_account", "", None))
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

fn cursor_of(audit: &AuditEntry) -> ListCursor {
    ListCursor {
        accepted_at: audit.accepted_at,
        number: audit.number,
    }
}

fn entry(row: &Row<'_>) -> Result<AuditEntry, rusqlite::Error> {
    Ok(AuditEntry {
        tracking_id: row.get(0)?,
        audit_id: row.get(1)?,
        order: audits::order(row, 2)?,
        state: audits::state(row, 7)?,
        error: audits::error(row, 9, 10)?,
        batch_id: row.get(11)?,
        runs: row.get(12)?,
        accepted_at: Timestamp(row.get(13)?),
        finished_at: row.get::<_, Option<i64>>(14)?.map(Timestamp),
        number: row.get(15)?,
        lab_data: row.get(16)?,
        final_url: row.get(17)?,
        labels: audits::labels(row, 18)?,
    })
}

pub(super) fn audit(
    connection: &Connection,
    account_id: &str,
    tracking_id: &str,
) -> Result<Option<AuditEntry>, rusqlite::Error> {
    let sql = format!("SELECT {COLUMNS} FROM audits WHERE tracking_id = ? AND account_id = ?");
    connection
        .prepare_cached(&sql)?
        .query_row([tracking_id, account_id], entry)
        .optional()
}

pub(super) fn replays(
    connection: &Connection,
    account_id: &str,
    audit_id: &str,
    limit: u32,
) -> Result<Vec<ReplayAudit>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, summary FROM audits INDEXED BY audits_by_recording
         WHERE json_extract(options, '$.replay.recording') = ?1 AND account_id = ?2
         ORDER BY number DESC LIMIT ?3"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let replays = statement.query_map(params![audit_id, account_id, limit], |row| {
        Ok(ReplayAudit {
            audit: entry(row)?,
            summary: row.get(19)?,
        })
    })?;
    Ok(replays.collect::<Result<_, _>>()?)
}

pub(super) fn batch(
    connection: &Connection,
    account_id: &str,
    batch_id: &str,
) -> Result<Option<Batch>, StoreError> {
    let batch: Option<(i64, i64)> = connection
        .prepare_cached("SELECT audits, accepted_at FROM batches WHERE id = ? AND account_id = ?")?
        .query_row(params![batch_id, account_id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((accepted, accepted_at)) = batch else {
        return Ok(None);
    };
    let sql = format!("SELECT {COLUMNS} FROM audits WHERE batch_id = ? ORDER BY number");
    let mut statement = connection.prepare_cached(&sql)?;
    let audits = statement.query_map([batch_id], entry)?;
    Ok(Some(Batch {
        id: batch_id.to_owned(),
        accepted_at: Timestamp(accepted_at),
        accepted: accepted.unsigned_abs(),
        audits: audits.collect::<Result<_, _>>()?,
    }))
}
