//! Who takes audits, and which.

/// Single starts are leased before batches' audits, but after so many leases in a row a batch's audit
/// goes first if one waits.
pub const INTERACTIVE_IN_A_ROW: i64 = 4;

/// From where an audit is leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// Signs the leases.
    pub owner: String,
    /// Which locations' audits it may take; `None`: any.
    pub locations: Option<Vec<String>>,
}

impl Seat {
    pub fn anywhere(owner: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            locations: None,
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
