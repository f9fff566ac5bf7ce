//! Whose turns the next are, decided for several leases at once and as if one had been asked for after the
//! other. Without the database: what waits was read before, and what is picked is leased after.

use std::collections::HashMap;

use crate::MAX_INTERACTIVE_IN_A_ROW;

/// What waits somewhere, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) account_id: String,
    /// A single start's, not a batch's.
    pub(super) interactive: bool,
    /// The account's: the lower, the longer ago it was served.
    pub(super) turn: i64,
    pub(super) since: i64,
    /// How many audits, counted up to as many as are wanted.
    pub(super) audits: u64,
    /// How many more leases the account may have, where that is bounded.
    pub(super) room: Option<u64>,
}

/// What a round of leases is decided from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Turns {
    /// How many turns there have been, and which was the last of a batch.
    pub(super) clock: i64,
    pub(super) batch_clock: i64,
    pub(super) waiting: Vec<Waiting>,
    /// Where the reading of single starts and of batches ended before all was read: what comes after this
    /// turn and time is unknown.
    pub(super) known_up_to: [Option<(i64, i64)>; 2],
}

/// One lease, to be filled with the oldest audit that the account has waiting there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Pick {
    pub(super) account_id: String,
    pub(super) interactive: bool,
}

impl Turns {
    /// Up to `wanted`; fewer when no more waits, or when the next turn is not known without reading again.
    pub(super) fn pick(mut self, wanted: usize) -> Vec<Pick> {
        let mut rooms: HashMap<String, u64> = HashMap::new();
        for waiting in &self.waiting {
            if let Some(room) = waiting.room {
                rooms.insert(waiting.account_id.clone(), room);
            }
        }
        let mut picks = Vec::new();
        while picks.len() < wanted
            && let Some(pick) = self.next(&rooms)
        {
            self.clock += 1;
            if !pick.interactive {
                self.batch_clock = self.clock;
            }
            if let Some(room) = rooms.get_mut(&pick.account_id) {
                *room = room.saturating_sub(1);
            }
            let is_its = |waiting: &&mut Waiting| waiting.account_id == pick.account_id;
            let mut is_taken = false;
            for waiting in self.waiting.iter_mut().filter(is_its) {
                waiting.turn = self.clock;
                // From whichever place: they are counted together.
                if waiting.interactive == pick.interactive && waiting.audits > 0 && !is_taken {
                    waiting.audits -= 1;
                    is_taken = true;
                }
            }
            picks.push(pick);
        }
        picks
    }

    fn next(&self, rooms: &HashMap<String, u64>) -> Option<Pick> {
        let interactive_first = self.clock - self.batch_clock < MAX_INTERACTIVE_IN_A_ROW;
        for interactive in [interactive_first, !interactive_first] {
            let may = |waiting: &&Waiting| {
                let has_room = rooms.get(&waiting.account_id).is_none_or(|room| *room > 0);
                waiting.interactive == interactive && waiting.audits > 0 && has_room
            };
            let order = |waiting: &&Waiting| (waiting.turn, waiting.since);
            let first = self.waiting.iter().filter(may).min_by_key(order);
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

    fn waiting(account: &str, interactive: bool, turn: i64, audits: u64) -> Waiting {
        Waiting {
            account_id: account.to_owned(),
            interactive,
            turn,
            since: 0,
            audits,
            room: None,
        }
    }

    fn order(turns: &Turns, wanted: usize) -> String {
        let picks = turns.clone().pick(wanted);
        let letter = |pick: &Pick| match pick.interactive {
            true => pick.account_id.to_lowercase(),
            false => pick.account_id.to_uppercase(),
        };
        picks.iter().map(letter).collect()
    }

    #[test]
    fn accounts_take_turns_within_one_round_too() {
        let turns = Turns {
            clock: 9,
            batch_clock: 9,
            waiting: vec![
                waiting("a", true, 3, 2),
                waiting("b", true, 1, 5),
                waiting("c", true, 2, 1),
            ],
            ..Turns::default()
        };
        assert_eq!(order(&turns, 64), "bcababbb");
    }

    #[test]
    fn a_batch_gets_its_turn_among_single_starts() {
        let turns = Turns {
            waiting: vec![waiting("a", true, 0, 20), waiting("b", false, 0, 2)],
            ..Turns::default()
        };
        assert_eq!(order(&turns, 12), "aaaaBaaaaBaa");
    }

    #[test]
    fn what_is_not_known_is_read_first() {
        let turns = Turns {
            clock: 9,
            batch_clock: 9,
            waiting: vec![waiting("a", true, 1, 5), waiting("b", true, 2, 5)],
            known_up_to: [Some((2, 0)), None],
        };
        assert_eq!(order(&turns, 64), "ab");
    }

    #[test]
    fn no_account_gets_more_than_it_has_room_for() {
        let mut bounded = waiting("a", true, 1, 9);
        bounded.room = Some(2);
        let turns = Turns {
            clock: 9,
            batch_clock: 9,
            waiting: vec![bounded, waiting("b", true, 2, 3)],
            ..Turns::default()
        };
        assert_eq!(order(&turns, 64), "ababb");
    }

    proptest! {
        /// As the store did it before, and as SQLite does it: one lease, one turn.
        #[test]
        fn many_at_once_are_the_same_as_one_after_the_other(
            counts in proptest::collection::vec((0_u64..5, 0_u64..5, 0_i64..20), 1..6),
            wanted in 1_usize..40,
        ) {
            let mut waiting_now = Vec::new();
            for (nth, (singles, batches, turn)) in counts.iter().enumerate() {
                let name = char::from(b'a' + u8::try_from(nth).unwrap_or_default()).to_string();
                // No two accounts have had the same turn.
                let turn = turn * 10 + i64::try_from(nth).unwrap_or_default();
                waiting_now.push(waiting(&name, true, turn, *singles));
                waiting_now.push(waiting(&name, false, turn, *batches));
            }
            let mut turns = Turns {
                clock: 300,
                batch_clock: 298,
                waiting: waiting_now,
                ..Turns::default()
            };
            let together = order(&turns, wanted);
            let mut alone = String::new();
            for _ in 0..wanted {
                let one = turns.clone().pick(1);
                let Some(pick) = one.first() else { break };
                alone += &order(&turns, 1);
                turns.clock += 1;
                if !pick.interactive {
                    turns.batch_clock = turns.clock;
                }
                for waiting in &mut turns.waiting {
                    if waiting.account_id == pick.account_id {
                        waiting.turn = turns.clock;
                        waiting.audits -= u64::from(waiting.interactive == pick.interactive);
                    }
                }
            }
            prop_assert_eq!(together, alone);
        }
    }
}
