//! Who takes audits, and which.

/// Single starts are leased before batches' audits, but after so many leases in a row a batch's audit
/// goes first if one waits.
pub const MAX_INTERACTIVE_IN_A_ROW: i64 = 4;

/// From where an audit is leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseScope {
    /// Signs the leases.
    pub owner: String,
    /// Which locations' audits it may take; `None`: any.
    pub locations: Option<Vec<String>>,
    /// How many audits may be held under owners of a common name; `None`: any number.
    pub slots: Option<SlotLimit>,
}

/// A bound on the audits that owners of a common name hold at a time. Expired leases do not count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SlotLimit {
    /// What the names of these owners begin with.
    pub owner_prefix: String,
    pub max_leases: u32,
}

impl LeaseScope {
    pub fn any_location(owner: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            locations: None,
            slots: None,
        }
    }

    /// Each location, or once `None`, which stands for all.
    pub(crate) fn places(&self) -> Vec<Option<&str>> {
        match &self.locations {
            None => vec![None],
            Some(named) => named.iter().map(|name| Some(name.as_str())).collect(),
        }
    }
}
