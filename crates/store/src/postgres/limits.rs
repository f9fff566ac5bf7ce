//! Limits that all servers keep together.

use deadpool_postgres::Object;

use super::connect::row;
use crate::{StoreError, Taken, Taking};

/// One statement, so that of two servers one is first. Not logged: after a crash of the database all buckets
/// are full.
pub(super) async fn take(
    db: &Object,
    bucket: &str,
    taking: Taking,
) -> Result<Option<Taken>, StoreError> {
    // Below now it has long been full; above empty a clock was set back.
    let found = row(
        db,
        "INSERT INTO limits AS kept (bucket, full_at_ns, is_refused)
         VALUES ($1, $2::bigint + $4::bigint, false)
         ON CONFLICT (bucket) DO UPDATE SET
             full_at_ns = least(greatest(kept.full_at_ns, $2), $3)
                 + CASE WHEN least(greatest(kept.full_at_ns, $2), $3) + $4 > $3 THEN 0 ELSE $4 END,
             is_refused = least(greatest(kept.full_at_ns, $2), $3) + $4 > $3::bigint
         RETURNING full_at_ns, is_refused",
        &[&bucket, &taking.now_ns, &taking.empty_ns, &taking.taken_ns],
    )
    .await?;
    let Some(found) = found else {
        return Ok(None);
    };
    Ok(Some(Taken {
        full_at_ns: found.try_get(0)?,
        is_refused: found.try_get(1)?,
    }))
}
