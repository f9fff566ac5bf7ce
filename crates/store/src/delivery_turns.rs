//! Decides which due webhooks are attempted next: accounts take turns, and neither an account nor a
//! receiver has more than a few attempts under way.

use std::collections::HashMap;

use url::Url;

use crate::DeliveryLane;

/// Attempts that one account, and one receiver, may have under way.
pub const MAX_CONCURRENT_DELIVERIES: u32 = 2;
/// How many of these may be retries, so that a place is always left for a first attempt.
pub const MAX_CONCURRENT_RETRIES: u32 = 1;

/// Due webhooks that are looked at per account. An account whose oldest ones all go to a busy receiver
/// waits for that receiver with its others.
pub(crate) const CANDIDATES_PER_ACCOUNT: u32 = 32;

/// An attempt that is under way.
pub(crate) struct UnderWay {
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

/// The positions of the webhooks to be attempted, in turn by account.
pub(crate) struct Chosen {
    pub(crate) positions: Vec<i64>,
    /// Whether a candidate was left.
    pub(crate) has_more_due: bool,
}

/// `candidates` are those of an account in the order in which they are to be delivered.
pub(crate) fn choose(
    lane: DeliveryLane,
    after_account: &str,
    at_most: usize,
    under_way: &[UnderWay],
    candidates: Vec<Candidate>,
) -> Chosen {
    let mut places = Places::new(lane, under_way);
    let mut accounts: Vec<(String, Vec<Candidate>)> = Vec::new();
    for candidate in candidates {
        match accounts.last_mut() {
            Some((account, waiting)) if *account == candidate.account_id => waiting.push(candidate),
            _ => accounts.push((candidate.account_id.clone(), vec![candidate])),
        }
    }
    // Those after the last served account first, then the others, each in the order of their ids.
    accounts.sort_by(|(one, _), (other, _)| {
        let turn = |account: &str| (account <= after_account, account.to_owned());
        turn(one).cmp(&turn(other))
    });
    let mut positions = Vec::new();
    loop {
        let before = positions.len();
        for (_, waiting) in &mut accounts {
            if positions.len() == at_most {
                break;
            }
            let next = waiting.iter().position(|next| places.take(next));
            positions.extend(next.map(|next| waiting.remove(next).position));
        }
        if positions.len() == before {
            break;
        }
    }
    Chosen {
        positions,
        has_more_due: accounts.iter().any(|(_, waiting)| !waiting.is_empty()),
    }
}

#[derive(Default, Clone, Copy)]
struct Taken {
    all: u32,
    retries: u32,
}

/// The attempts under way, by account and by receiver.
struct Places {
    lane: DeliveryLane,
    taken: HashMap<Holder, Taken>,
}

#[derive(PartialEq, Eq, Hash)]
enum Holder {
    Account(String),
    Receiver(String),
}

impl Places {
    fn new(lane: DeliveryLane, under_way: &[UnderWay]) -> Self {
        let taken = HashMap::new();
        let mut places = Self { lane, taken };
        for attempt in under_way {
            places.add(&attempt.account_id, &attempt.webhook, attempt.is_retry);
        }
        places
    }

    /// Takes a place for the candidate at its account and at its receiver, if both have one.
    fn take(&mut self, candidate: &Candidate) -> bool {
        let is_retry = self.lane == DeliveryLane::Retry;
        let has_place = |holder: &Holder| {
            let taken = self.taken.get(holder).copied().unwrap_or_default();
            taken.all < MAX_CONCURRENT_DELIVERIES
                && (!is_retry || taken.retries < MAX_CONCURRENT_RETRIES)
        };
        let is_free = holders(&candidate.account_id, &candidate.webhook)
            .iter()
            .all(has_place);
        if is_free {
            self.add(&candidate.account_id, &candidate.webhook, is_retry);
        }
        is_free
    }

    fn add(&mut self, account_id: &str, webhook: &str, is_retry: bool) {
        for holder in holders(account_id, webhook) {
            let taken = self.taken.entry(holder).or_default();
            taken.all += 1;
            taken.retries += u32::from(is_retry);
        }
    }
}

fn holders(account_id: &str, webhook: &str) -> [Holder; 2] {
    [
        Holder::Account(account_id.to_owned()),
        Holder::Receiver(receiver(webhook)),
    ]
}

/// Host and port, as they are connected to. What is no URL cannot be delivered, and shares one receiver.
fn receiver(webhook: &str) -> String {
    let url = Url::parse(webhook).ok();
    let place = url.as_ref().and_then(|url| {
        let (host, port) = (url.host_str()?, url.port_or_known_default()?);
        Some(format!("{host}:{port}"))
    });
    place.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written as `account receiver`, numbered in this order.
    fn candidates(written: &[&str]) -> Vec<Candidate> {
        let candidate = |(position, text): (usize, &&str)| {
            let (account, receiver) = text.split_once(' ').unwrap();
            Candidate {
                position: i64::try_from(position).unwrap(),
                account_id: account.to_owned(),
                webhook: format!("https://{receiver}/hook/{position}"),
            }
        };
        written.iter().enumerate().map(candidate).collect()
    }

    fn under_way(account: &str, receiver: &str, is_retry: bool) -> UnderWay {
        UnderWay {
            account_id: account.to_owned(),
            webhook: format!("https://{receiver}/x"),
            is_retry,
        }
    }

    fn first(after: &str, at_most: usize, busy: &[UnderWay], written: &[&str]) -> (Vec<i64>, bool) {
        let due = candidates(written);
        let chosen = choose(DeliveryLane::First, after, at_most, busy, due);
        (chosen.positions, chosen.has_more_due)
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
    fn an_account_has_two_attempts_under_way_at_most() {
        let due = ["a 1", "a 2", "a 3", "b 4"];
        let one = [under_way("a", "x", false)];
        assert_eq!(first("", 9, &one, &due), (vec![0, 3], true));
        let two = [under_way("a", "x", false), under_way("a", "y", true)];
        assert_eq!(first("", 9, &two, &due), (vec![3], true));
    }

    #[test]
    fn a_receiver_has_two_attempts_under_way_at_most_and_others_of_the_account_go_on() {
        let due = ["a x", "b x", "c x", "c y"];
        assert_eq!(first("", 9, &[], &due), (vec![0, 1, 3], true));
        // Another port is another receiver; the default port is none of its own.
        assert_eq!(
            first("", 9, &[], &["a x", "b x:443", "c x:8443", "d x"]).0,
            [0, 1, 2]
        );
    }

    #[test]
    fn retries_leave_a_place_for_first_attempts() {
        let due = || candidates(&["a x", "a y", "b x", "c z"]);
        let retries = choose(DeliveryLane::Retry, "", 9, &[], due());
        assert_eq!(
            retries.positions,
            [0, 3],
            "one of an account, one of a receiver"
        );
        let busy = [under_way("a", "x", true)];
        assert_eq!(
            choose(DeliveryLane::Retry, "", 9, &busy, due()).positions,
            [3]
        );
        assert_eq!(first("", 9, &busy, &["a x", "a y", "b x"]).0, [0]);
    }
}
