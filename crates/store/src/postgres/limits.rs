//! Limits that all servers keep together.

use std::collections::HashMap;

use async_trait::async_trait;
use deadpool_postgres::Object;

use super::PostgresStore;
use super::connect::rows;
use crate::{BucketGrant, BucketRate, BucketRequest, SharedLimits, StoreError};

/// How deep below empty a bucket can be, as a share of a full one. Deeper it is only where a clock was set back.
const DEEPEST: i64 = 8;

#[async_trait]
impl SharedLimits for PostgresStore {
    async fn take(
        &self,
        rate: BucketRate,
        takings: Vec<BucketRequest>,
    ) -> Result<Vec<BucketGrant>, StoreError> {
        self.read(move |db| Box::pin(async move { take(db, rate, &takings).await }))
            .await
    }
}

/// One statement for all of them, so that of two servers one is first at each bucket; in the order of their names, so
/// that no two statements wait for each other. Not logged: after a crash of the database all buckets are full.
async fn take(
    db: &Object,
    rate: BucketRate,
    takings: &[BucketRequest],
) -> Result<Vec<BucketGrant>, StoreError> {
    let mut in_order: Vec<&BucketRequest> = takings.iter().collect();
    in_order.sort_unstable_by(|one, other| one.bucket.cmp(&other.bucket));
    let buckets: Vec<&str> = in_order.iter().map(|t| t.bucket.as_str()).collect();
    let owed: Vec<i64> = in_order.iter().map(|t| t.debt_ns).collect();
    let wanted: Vec<i64> = in_order.iter().map(|t| t.requested.into()).collect();
    let empty_ns = rate.now_ns + rate.burst_ns;
    // What is inserted is what a bucket that nobody has used yet comes to: all of it granted. Where there is one, the
    // same row says what was asked for.
    let found = rows(
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
            &(empty_ns + rate.burst_ns / DEEPEST),
            &buckets,
            &owed,
            &wanted,
        ],
    )
    .await?;
    let mut taken = HashMap::with_capacity(found.len());
    for row in &found {
        let after = BucketGrant {
            full_at_ns: row.try_get(1)?,
            granted: super::small(row, 2)?,
        };
        taken.insert(row.try_get::<_, String>(0)?, after);
    }
    let unanswered = || StoreError::Backend("a limit was not answered".to_owned());
    takings
        .iter()
        .map(|taking| taken.remove(&taking.bucket).ok_or_else(unanswered))
        .collect()
}
