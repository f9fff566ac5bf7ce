//! Links that give access to one report, for the API and the report page.

use std::time::Duration;

use plumbline_store::{Share, StoreError, Timestamp, random_text};

use crate::{
    app::Pages,
    errors::{Failure, InvalidValue},
};

/// The length of a token, in letters and digits: 190 bits, which cannot be guessed.
const TOKEN_CHARS: usize = 32;
/// The longest validity of a link with an expiry.
pub(crate) const MAX_SHARED_DAYS: u32 = 366;

/// Creates a link that expires after so many days, or not at all.
pub(crate) fn new_share(days: Option<u32>, now: Timestamp) -> Result<Share, Failure> {
    let token = random_text(TOKEN_CHARS)
        .map_err(|error| Failure::internal(format!("no random source: {error}")))?;
    let validity = days.map(|days| Duration::from_secs(24 * 60 * 60) * days);
    Ok(Share {
        token,
        expires_at: validity.map(|validity| now.plus(validity)),
    })
}

/// Returns the number of days if a link may be valid for so long.
pub(crate) fn valid_days(days: i64) -> Option<u32> {
    let days = u32::try_from(days).ok()?;
    (1..=MAX_SHARED_DAYS).contains(&days).then_some(days)
}

/// Returns the failure of a number of days that is not valid.
pub(crate) fn invalid_days() -> Failure {
    let reason = format!("The number of days is between 1 and {MAX_SHARED_DAYS}.");
    Failure::InvalidDays(InvalidValue::new("days", reason))
}

/// Shares a report by a link, in place of an earlier one, or stops sharing it.
pub(crate) async fn store_share(
    pages: &Pages,
    account_id: &str,
    audit_id: &str,
    share: Option<Share>,
    now: Timestamp,
) -> Result<(), Failure> {
    match pages.store.share(account_id, audit_id, share, now).await {
        Err(StoreError::NotFound(_)) => Err(Failure::NotFound),
        result => Ok(result?),
    }
}
