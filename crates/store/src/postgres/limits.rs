//! Rate limits that all servers share.

use std::collections::HashMap;

use async_trait::async_trait;
use deadpool_postgres::Object;

use super::PostgresStore;
use super::connect::rows;
use crate::{BucketGrant, BucketRate, BucketRequest, SharedLimits, StoreError};

/// Divisor of the capacity that gives the maximum debt of a bucket. A larger debt exists only if a
/// clock was set back.
const DEBT_DIVISOR: i64 = 8;

#[async_trait]
impl SharedLimits for PostgresStore {
    async fn take(
        &self,
        rate: BucketRate,
        requests: Vec<BucketRequest>,
    ) -> Result<Vec<BucketGrant>, StoreError> {
        self.read(move |db| Box::pin(async move { take(db, rate, &requests).await }))
            .await
    }
}

/// Takes tokens from all buckets in one statement, so that concurrent servers are serialised at
/// each bucket; in the order of their names, so that statements do not deadlock. The table is not
/// logged: after a crash of the database all buckets are full.
async fn take(
    db: &Object,
    rate: BucketRate,
    requests: &[BucketRequest],
) -> Result<Vec<BucketGrant>, StoreError> {
    let mut sorted: Vec<&BucketRequest> = requests.iter().collect();
    sorted.sort_unstable_by(|one, other| one.bucket.cmp(&other.bucket));
    let buckets: Vec<&str> = sorted.iter().map(|t| t.bucket.as_str()).collect();
    let debts: Vec<i64> = sorted.iter().map(|t| t.debt_ns).collect();
    let requested: Vec<i64> = sorted.iter().map(|t| t.requested.into()).collect();
    let empty_ns = rate.now_ns + rate.burst_ns;
    // The inserted row is the result for a bucket that was not used before: everything is granted.
    // If the bucket exists, the same row contains the request.
    let rows = rows(
        db,
        "INSERT INTO limits AS kept (bucket, full_at_ns, is_refused, granted)
         SELECT bucket, $1::bigint + owed + wanted * $2::bigint, false, wanted
         FROM unnest($5::text[], $6::bigint[], $7::bigint[]) AS asked (bucket, owed, wanted)
         ON CONFLICT (bucket) DO UPDATE SET (full_at_ns, granted) = (
             SELECT before + fits * $2, fits
             FROM (SELECT before,
                          least(excluded.granted, greatest($3::bigint - before, 0) / greatest($2, 1)) AS fits
                   FROM (SELECT least(greatest(kept.full_at_ns, $1), $4::bigint)
                                + excluded.full_at_ns - $1 - excluded.granted * $2 AS before) AS owing
                  ) AS fitting)
         RETURNING bucket, full_at_ns, granted",
        &[
            &rate.now_ns,
            &rate.cost_ns,
            &empty_ns,
            &(empty_ns + rate.burst_ns / DEBT_DIVISOR),
            &buckets,
            &debts,
            &requested,
        ],
    )
    .await?;
    let mut grants = HashMap::with_capacity(rows.len());
    for row in &rows {
        let grant = BucketGrant {
            full_at_ns: row.try_get(1)?,
            granted: super::read_u32(row, 2)?,
        };
        grants.insert(row.try_get::<_, String>(0)?, grant);
    }
    let missing = || StoreError::Backend("no result for a rate limit".to_owned());
    requests
        .iter()
        .map(|request| grants.remove(&request.bucket).ok_or_else(missing))
        .collect()
}
