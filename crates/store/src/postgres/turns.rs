//! Decides which accounts get the next leases: for several leases at once, with the same result as
//! for one after the other. It does not use the database: the lanes were read before, and the
//! picked audits are leased afterwards.

use std::collections::HashMap;

use crate::MAX_INTERACTIVE_IN_A_ROW;

/// The waiting audits of one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitingLane {
    pub(super) account_id: String,
    /// Whether the lane is of single audits rather than of batches.
    pub(super) interactive: bool,
    /// The turn of the account: the lower, the longer ago it was served.
    pub(super) turn: i64,
    pub(super) since: i64,
    /// The number of waiting audits, counted up to the number of requested leases.
    pub(super) audits: u64,
    /// The number of further leases that the account may get, if that is limited.
    pub(super) allowance: Option<u64>,
}

/// The state from which a round of leases is decided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Turns {
    /// The number of turns so far.
    pub(super) clock: i64,
    /// The number of the last turn of a batch.
    pub(super) batch_clock: i64,
    pub(super) lanes: Vec<WaitingLane>,
    /// The last lane that was read, for single audits and for batches, if not all were read: lanes
    /// after this turn and position are unknown.
    pub(super) known_up_to: [Option<(i64, i64)>; 2],
}

/// One lease of an account, of a single audit or of one of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Pick {
    pub(super) account_id: String,
    pub(super) interactive: bool,
}

impl Turns {
    /// Picks up to `limit` leases; fewer if no more audits wait, or if the next lane is unknown
    /// without reading again.
    pub(super) fn pick(mut self, limit: usize) -> Vec<Pick> {
        let mut allowances: HashMap<String, u64> = HashMap::new();
        for lane in &self.lanes {
            if let Some(allowance) = lane.allowance {
                allowances.insert(lane.account_id.clone(), allowance);
            }
        }
        let mut picks = Vec::new();
        while picks.len() < limit
            && let Some(pick) = self.next(&allowances)
        {
            self.clock += 1;
            if !pick.interactive {
                self.batch_clock = self.clock;
            }
            if let Some(allowance) = allowances.get_mut(&pick.account_id) {
                *allowance = allowance.saturating_sub(1);
            }
            let is_of_account = |lane: &&mut WaitingLane| lane.account_id == pick.account_id;
            let mut is_taken = false;
            for lane in self.lanes.iter_mut().filter(is_of_account) {
                lane.turn = self.clock;
                // The location does not matter: the lanes of an account are counted together.
                if lane.interactive == pick.interactive && lane.audits > 0 && !is_taken {
                    lane.audits -= 1;
                    is_taken = true;
                }
            }
            picks.push(pick);
        }
        picks
    }

    fn next(&self, allowances: &HashMap<String, u64>) -> Option<Pick> {
        let interactive_first = self.clock - self.batch_clock < MAX_INTERACTIVE_IN_A_ROW;
        for interactive in [interactive_first, !interactive_first] {
            let is_eligible = |lane: &&WaitingLane| {
                let allowance = allowances.get(&lane.account_id);
                let is_allowed = allowance.is_none_or(|allowance| *allowance > 0);
                lane.interactive == interactive && lane.audits > 0 && is_allowed
            };
            let order = |lane: &&WaitingLane| (lane.turn, lane.since);
            let first = self.lanes.iter().filter(is_eligible).min_by_key(order);
            let known_up_to = self.known_up_to[usize::from(!interactive)];
            match (first, known_up_to) {
                (Some(first), Some(up_to)) if (first.turn, first.since) > up_to => return None,
                (None, Some(_)) => return None,
                (Some(first), _) => {
                    return Some(Pick {
                        account_id: first.account_id.clone(),
                        interactive,
                    });
                }
                (None, None) => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lane(account: &str, interactive: bool, turn: i64, audits: u64) -> WaitingLane {
        WaitingLane {
            account_id: account.to_owned(),
            interactive,
            turn,
            since: 0,
            audits,
            allowance: None,
        }
    }

    /// Returns the picked accounts, in upper case for batches.
    fn order(turns: &Turns, limit: usize) -> String {
        let picks = turns.clone().pick(limit);
        let letter = |pick: &Pick| {
            if pick.interactive {
                pick.account_id.to_lowercase()
            } else {
                pick.account_id.to_uppercase()
            }
        };
        picks.iter().map(letter).collect()
    }

    #[test]
    fn accounts_take_turns_within_one_round_too() {
        let turns = Turns {
            clock: 9,
            batch_clock: 9,
            lanes: vec![
                lane("a", true, 3, 2),
                lane("b", true, 1, 5),
                lane("c", true, 2, 1),
            ],
            ..Turns::default()
        };
        assert_eq!(order(&turns, 64), "bcababbb");
    }

    #[test]
    fn a_batch_gets_its_turn_among_single_starts() {
        let turns = Turns {
            lanes: vec![lane("a", true, 0, 20), lane("b", false, 0, 2)],
            ..Turns::default()
        };
        assert_eq!(order(&turns, 12), "aaaaBaaaaBaa");
    }

    #[test]
    fn picking_stops_at_unknown_lanes() {
        let turns = Turns {
            clock: 9,
            batch_clock: 9,
            lanes: vec![lane("a", true, 1, 5), lane("b", true, 2, 5)],
            known_up_to: [Some((2, 0)), None],
        };
        assert_eq!(order(&turns, 64), "ab");
    }

    #[test]
    fn no_account_gets_more_leases_than_allowed() {
        let mut limited = lane("a", true, 1, 9);
        limited.allowance = Some(2);
        let turns = Turns {
            clock: 9,
            batch_clock: 9,
            lanes: vec![limited, lane("b", true, 2, 3)],
            ..Turns::default()
        };
        assert_eq!(order(&turns, 64), "ababb");
    }

    proptest! {
        /// SQLite decides one lease after the other.
        #[test]
        fn many_leases_at_once_are_the_same_as_one_after_the_other(
            counts in proptest::collection::vec((0_u64..5, 0_u64..5, 0_i64..20), 1..6),
            limit in 1_usize..40,
        ) {
            let mut lanes = Vec::new();
            for (nth, (singles, batches, turn)) in counts.iter().enumerate() {
                let name = char::from(b'a' + u8::try_from(nth).unwrap_or_default()).to_string();
                // No two accounts have the same turn.
                let turn = turn * 10 + i64::try_from(nth).unwrap_or_default();
                lanes.push(lane(&name, true, turn, *singles));
                lanes.push(lane(&name, false, turn, *batches));
            }
            let mut turns = Turns {
                clock: 300,
                batch_clock: 298,
                lanes,
                ..Turns::default()
            };
            let together = order(&turns, limit);
            let mut alone = String::new();
            for _ in 0..limit {
                let one = turns.clone().pick(1);
                let Some(pick) = one.first() else { break };
                alone += &order(&turns, 1);
                turns.clock += 1;
                if !pick.interactive {
                    turns.batch_clock = turns.clock;
                }
                for lane in &mut turns.lanes {
                    if lane.account_id == pick.account_id {
                        lane.turn = turns.clock;
                        lane.audits -= u64::from(lane.interactive == pick.interactive);
                    }
                }
            }
            prop_assert_eq!(together, alone);
        }
    }
}
