//! Answers that are still good, the missing ones too.

use std::collections::{BTreeMap, HashMap};

use crate::answer::Answer;
use crate::calendar::good_until_ms;
use crate::question::Question;

/// A question is at most 2 kB, an answer some 4 kB: at the very most 12 MB.
const MOST: usize = 2048;

/// Bounded; the longest unused goes first. In memory: a restart costs the quota some questions, and nothing
/// else.
#[derive(Default)]
pub(crate) struct Cache {
    kept: HashMap<Question, Kept>,
    /// Questions by when they were last used.
    by_use: BTreeMap<u64, Question>,
    uses: u64,
}

struct Kept {
    answer: Answer,
    until_ms: i64,
    used: u64,
}

impl Cache {
    pub(crate) fn get(&mut self, question: &Question, now_ms: i64) -> Option<Answer> {
        let kept = self.kept.get_mut(question)?;
        self.by_use.remove(&kept.used);
        // A clock that was set back makes nothing good again: an answer is never good for more than a day.
        if now_ms >= kept.until_ms || good_until_ms(now_ms) < kept.until_ms {
            self.kept.remove(question);
            return None;
        }
        self.uses += 1;
        kept.used = self.uses;
        self.by_use.insert(self.uses, question.clone());
        Some(kept.answer.clone())
    }

    pub(crate) fn keep(&mut self, question: Question, answer: Answer, now_ms: i64) {
        self.uses += 1;
        let kept = Kept {
            answer,
            until_ms: good_until_ms(now_ms),
            used: self.uses,
        };
        self.by_use.insert(self.uses, question.clone());
        if let Some(before) = self.kept.insert(question, kept) {
            self.by_use.remove(&before.used);
        }
        while self.kept.len() > MOST {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                break;
            };
            self.kept.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::FormFactor;
    use plumbline_engine::field::{FieldReason, RecordOf};
    use proptest::prelude::*;

    use super::*;
    use crate::question::About;

    /// 15 Nov 2026, 12:00 UTC.
    const NOON_MS: i64 = 1_794_744_000_000;
    const HOUR_MS: i64 = 3_600_000;

    fn question(number: usize) -> Question {
        Question {
            about: About::Now,
            record: RecordOf::Url,
            subject: format!("https://example.com/{number}"),
            form_factor: FormFactor::Phone,
        }
    }

    const MISSING: Answer = Err(FieldReason::NotInDataset);

    #[test]
    fn what_was_missing_is_remembered_until_the_next_update() {
        let mut cache = Cache::default();
        cache.keep(question(1), MISSING, NOON_MS);
        assert_eq!(cache.get(&question(1), NOON_MS), Some(MISSING));
        let before = NOON_MS + 16 * HOUR_MS - 1;
        assert_eq!(cache.get(&question(1), before), Some(MISSING));
        assert_eq!(cache.get(&question(1), before + 1), None);
        assert_eq!(cache.get(&question(2), NOON_MS), None);
    }

    #[test]
    fn another_form_factor_and_another_kind_of_record_are_other_questions() {
        let mut cache = Cache::default();
        cache.keep(question(1), MISSING, NOON_MS);
        for other in [
            Question {
                form_factor: FormFactor::Desktop,
                ..question(1)
            },
            Question {
                record: RecordOf::Origin,
                ..question(1)
            },
            Question {
                about: About::History,
                ..question(1)
            },
        ] {
            assert_eq!(cache.get(&other, NOON_MS), None);
        }
    }

    #[test]
    fn the_longest_unused_goes_first() {
        let mut cache = Cache::default();
        for number in 0..MOST {
            cache.keep(question(number), MISSING, NOON_MS);
        }
        assert!(cache.get(&question(0), NOON_MS).is_some());
        cache.keep(question(MOST), MISSING, NOON_MS);
        assert!(cache.get(&question(0), NOON_MS).is_some());
        assert!(cache.get(&question(1), NOON_MS).is_none());
    }

    proptest! {
        #[test]
        fn whatever_is_done_both_lists_agree_and_stay_bounded(
            steps in prop::collection::vec((0_usize..3000, any::<bool>(), 0_i64..40), 0..300),
        ) {
            let mut cache = Cache::default();
            for (number, keep, hours) in steps {
                let now_ms = NOON_MS + hours * HOUR_MS;
                if keep {
                    cache.keep(question(number), MISSING, now_ms);
                } else {
                    cache.get(&question(number), now_ms);
                }
                prop_assert!(cache.kept.len() <= MOST);
                prop_assert_eq!(cache.kept.len(), cache.by_use.len());
            }
        }
    }
}
