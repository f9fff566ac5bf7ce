//! Decides which due webhooks are attempted next. Accounts take turns, and the number of active
//! attempts of an account and of a receiver is limited.

use std::collections::HashMap;

use url::Url;

use crate::DeliveryLane;

/// Maximum number of active attempts of one account, and of one receiver.
pub const MAX_CONCURRENT_DELIVERIES: u32 = 2;
/// Maximum number of retries among these, so that there is always room for a first attempt.
pub const MAX_CONCURRENT_RETRIES: u32 = 1;

/// Number of due webhooks that are considered per account. If these all go to a busy receiver, the
/// account's other webhooks wait as well.
pub(crate) const CANDIDATES_PER_ACCOUNT: u32 = 32;

/// An attempt that is in progress.
pub(crate) struct ActiveAttempt {
    pub(crate) account_id: String,
    pub(crate) webhook: String,
    pub(crate) is_retry: bool,
}

/// A due webhook.
pub(crate) struct Candidate {
    pub(crate) position: i64,
    pub(crate) account_id: String,
    pub(crate) webhook: String,
}

/// The webhooks to be attempted next.
pub(crate) struct Selection {
    /// The positions of their audits, in turn by account.
    pub(crate) positions: Vec<i64>,
    /// Whether a candidate was not selected.
    pub(crate) has_more_due: bool,
}

/// Selects up to `limit` candidates. The candidates of an account must be adjacent and in order of
/// delivery.
pub(crate) fn select(
    lane: DeliveryLane,
    after_account: &str,
    limit: usize,
    active: &[ActiveAttempt],
    candidates: Vec<Candidate>,
) -> Selection {
    let mut capacity = Capacity::new(lane, active);
    let mut accounts: Vec<(String, Vec<Candidate>)> = Vec::new();
    for candidate in candidates {
        match accounts.last_mut() {
            Some((account, waiting)) if *account == candidate.account_id => waiting.push(candidate),
            _ => accounts.push((candidate.account_id.clone(), vec![candidate])),
        }
    }
    // Accounts after the one served last come first, then the others, each in order of their ids.
    accounts.sort_by(|(one, _), (other, _)| {
        let order = |account: &str| (account <= after_account, account.to_owned());
        order(one).cmp(&order(other))
    });
    let mut positions = Vec::new();
    loop {
        let before = positions.len();
        for (_, waiting) in &mut accounts {
            if positions.len() == limit {
                break;
            }
            let next = waiting.iter().position(|next| capacity.take(next));
            positions.extend(next.map(|next| waiting.remove(next).position));
        }
        if positions.len() == before {
            break;
        }
    }
    Selection {
        positions,
        has_more_due: accounts.iter().any(|(_, waiting)| !waiting.is_empty()),
    }
}

/// The number of active attempts.
#[derive(Default, Clone, Copy)]
struct AttemptCount {
    all: u32,
    retries: u32,
}

/// Counts the active attempts by account and by receiver.
struct Capacity {
    lane: DeliveryLane,
    active: HashMap<Party, AttemptCount>,
}

/// An account or a receiver, whose active attempts are limited.
#[derive(PartialEq, Eq, Hash)]
enum Party {
    Account(String),
    Receiver(String),
}

impl Capacity {
    fn new(lane: DeliveryLane, active: &[ActiveAttempt]) -> Self {
        let mut capacity = Self {
            lane,
            active: HashMap::new(),
        };
        for attempt in active {
            capacity.add(&attempt.account_id, &attempt.webhook, attempt.is_retry);
        }
        capacity
    }

    /// Adds an attempt for the candidate, if neither its account nor its receiver is at its limit.
    fn take(&mut self, candidate: &Candidate) -> bool {
        let is_retry = self.lane == DeliveryLane::Retry;
        let is_below_limit = |party: &Party| {
            let active = self.active.get(party).copied().unwrap_or_default();
            active.all < MAX_CONCURRENT_DELIVERIES
                && (!is_retry || active.retries < MAX_CONCURRENT_RETRIES)
        };
        let is_possible = parties(&candidate.account_id, &candidate.webhook)
            .iter()
            .all(is_below_limit);
        if is_possible {
            self.add(&candidate.account_id, &candidate.webhook, is_retry);
        }
        is_possible
    }

    fn add(&mut self, account_id: &str, webhook: &str, is_retry: bool) {
        for party in parties(account_id, webhook) {
            let active = self.active.entry(party).or_default();
            active.all += 1;
            active.retries += u32::from(is_retry);
        }
    }
}

fn parties(account_id: &str, webhook: &str) -> [Party; 2] {
    [
        Party::Account(account_id.to_owned()),
        Party::Receiver(receiver(webhook)),
    ]
}

/// Returns host and port of a webhook. Invalid URLs cannot be delivered, and count as one receiver.
fn receiver(webhook: &str) -> String {
    let url = Url::parse(webhook).ok();
    let host_and_port = url.as_ref().and_then(|url| {
        let (host, port) = (url.host_str()?, url.port_or_known_default()?);
        Some(format!("{host}:{port}"))
    });
    host_and_port.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns candidates that are written as `account receiver`, numbered in this order.
    fn candidates(texts: &[&str]) -> Vec<Candidate> {
        let candidate = |(position, text): (usize, &&str)| {
            let (account, receiver) = text.split_once(' ').unwrap();
            Candidate {
                position: i64::try_from(position).unwrap(),
                account_id: account.to_owned(),
                webhook: format!("https://{receiver}/hook/{position}"),
            }
        };
        texts.iter().enumerate().map(candidate).collect()
    }

    fn active(account: &str, receiver: &str, is_retry: bool) -> ActiveAttempt {
        ActiveAttempt {
            account_id: account.to_owned(),
            webhook: format!("https://{receiver}/x"),
            is_retry,
        }
    }

    fn first(
        after: &str,
        limit: usize,
        active: &[ActiveAttempt],
        texts: &[&str],
    ) -> (Vec<i64>, bool) {
        let due = candidates(texts);
        let selection = select(DeliveryLane::First, after, limit, active, due);
        (selection.positions, selection.has_more_due)
    }

    #[test]
    fn accounts_take_turns_beginning_after_the_one_served_last() {
        let due = ["a 1", "a 2", "a 3", "b 4", "c 5", "c 6"];
        assert_eq!(first("", 9, &[], &due), (vec![0, 3, 4, 1, 5], true));
        assert_eq!(first("a", 9, &[], &due), (vec![3, 4, 0, 5, 1], true));
        assert_eq!(first("b", 2, &[], &due), (vec![4, 0], true));
        assert_eq!(first("zz", 1, &[], &due), (vec![0], true));
        assert_eq!(first("", 9, &[], &["a 1", "b 2"]), (vec![0, 1], false));
    }

    #[test]
    fn an_account_has_at_most_two_active_attempts() {
        let due = ["a 1", "a 2", "a 3", "b 4"];
        let one = [active("a", "x", false)];
        assert_eq!(first("", 9, &one, &due), (vec![0, 3], true));
        let two = [active("a", "x", false), active("a", "y", true)];
        assert_eq!(first("", 9, &two, &due), (vec![3], true));
    }

    #[test]
    fn a_receiver_has_at_most_two_active_attempts_and_does_not_block_others() {
        let due = ["a x", "b x", "c x", "c y"];
        assert_eq!(first("", 9, &[], &due), (vec![0, 1, 3], true));
        // Another port is another receiver, unless it is the default port.
        assert_eq!(
            first("", 9, &[], &["a x", "b x:443", "c x:8443", "d x"]).0,
            [0, 1, 2]
        );
    }

    #[test]
    fn retries_leave_capacity_for_first_attempts() {
        let due = || candidates(&["a x", "a y", "b x", "c z"]);
        let retries = select(DeliveryLane::Retry, "", 9, &[], due());
        assert_eq!(
            retries.positions,
            [0, 3],
            "one of an account, one of a receiver"
        );
        let one = [active("a", "x", true)];
        assert_eq!(
            select(DeliveryLane::Retry, "", 9, &one, due()).positions,
            [3]
        );
        assert_eq!(first("", 9, &one, &["a x", "a y", "b x"]).0, [0]);
    }
}
