//! The scope of a request for a lease.

use crate::LeaseOwner;

/// Maximum number of single audits leased in a row while an audit of a batch waits. Otherwise
/// single audits are leased before those of batches.
pub const MAX_INTERACTIVE_IN_A_ROW: i64 = 4;

/// The owner of a lease to be made, and the audits that it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseScope {
    /// The owner recorded in the lease.
    pub owner: LeaseOwner,
    /// The locations whose audits may be leased; `None` allows all.
    pub locations: Option<Vec<String>>,
    /// The limit of leases of the owner's token; `None` is unlimited.
    pub slots: Option<SlotLimit>,
}

/// A limit on the leases that the processes of a token hold at a time. Expired leases do not count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SlotLimit {
    /// The id of the token.
    pub token_id: String,
    pub max_leases: u32,
}

impl LeaseScope {
    /// Returns the scope of an owner that may lease audits of all locations, without a limit.
    pub fn any_location(owner: impl Into<LeaseOwner>) -> Self {
        Self {
            owner: owner.into(),
            locations: None,
            slots: None,
        }
    }

    /// Returns each allowed location, or a single `None` if all are allowed.
    pub(crate) fn location_filters(&self) -> Vec<Option<&str>> {
        match &self.locations {
            None => vec![None],
            Some(ids) => ids.iter().map(|id| Some(id.as_str())).collect(),
        }
    }
}
