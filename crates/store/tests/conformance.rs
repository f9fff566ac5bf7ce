//! What every backend must do. The functions of `suite` know only the [`Store`] trait; a backend
//! joins by implementing [`suite::Backend`] and one line at the bottom.
//!
//! [`Store`]: plumbline_store::Store

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod cluster;
mod suite;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use plumbline_store::{
    AgentStore, LedgerEntry, PageStore, PostgresOptions, PostgresStore, SqliteStore, Store,
};
use tempfile::TempDir;

struct Sqlite {
    directory: TempDir,
}

impl Sqlite {
    fn fresh() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("data").join("plumbline.db")
    }
}

#[async_trait]
impl suite::Backend for Sqlite {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&self.path()).unwrap())
    }

    fn is_shared(&self) -> bool {
        false
    }

    async fn open_bounded(&self, running_per_account: u32) -> Arc<dyn Store> {
        let store = SqliteStore::open(&self.path()).unwrap();
        Arc::new(store.running_per_account(Some(running_per_account)))
    }

    async fn open_pages(&self) -> (Arc<dyn Store>, Arc<dyn PageStore>) {
        let store = Arc::new(SqliteStore::open(&self.path()).unwrap());
        (store.clone(), store)
    }

    async fn open_agents(&self) -> (Arc<dyn Store>, Arc<dyn AgentStore>) {
        let store = Arc::new(SqliteStore::open(&self.path()).unwrap());
        (store.clone(), store)
    }

    async fn ledger(&self, account_id: &str) -> Vec<LedgerEntry> {
        let store = SqliteStore::open(&self.path()).unwrap();
        store.ledger(account_id).await.unwrap()
    }
}

struct Postgres {
    database: cluster::Database,
}

impl Postgres {
    fn fresh() -> Self {
        Self {
            database: cluster::Database::fresh(),
        }
    }

    async fn open(&self, running_per_account: Option<u32>) -> PostgresStore {
        let options = PostgresOptions {
            running_per_account,
            ..PostgresOptions::default()
        };
        PostgresStore::open(&self.database.url, options)
            .await
            .unwrap()
    }
}

#[async_trait]
impl suite::Backend for Postgres {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.open(None).await)
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn open_bounded(&self, running_per_account: u32) -> Arc<dyn Store> {
        Arc::new(self.open(Some(running_per_account)).await)
    }

    async fn open_pages(&self) -> (Arc<dyn Store>, Arc<dyn PageStore>) {
        let store = Arc::new(self.open(None).await);
        (store.clone(), store)
    }

    async fn open_agents(&self) -> (Arc<dyn Store>, Arc<dyn AgentStore>) {
        let store = Arc::new(self.open(None).await);
        (store.clone(), store)
    }

    async fn ledger(&self, account_id: &str) -> Vec<LedgerEntry> {
        let store = self.open(None).await;
        store.ledger(account_id).await.unwrap()
    }
}

/// One test per sentence and backend.
macro_rules! conforms {
    ($backend:ident: $fresh:expr; $($part:ident { $($sentence:ident)* })*) => {
        mod $backend {
            use super::*;
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $sentence() {
                    suite::$part::$sentence(&$fresh).await;
                }
            )*)*
        }
    };
}

macro_rules! every_sentence_of_the_suite {
    ($backend:ident: $fresh:expr) => {
        conforms! { $backend: $fresh;
            credits {
                two_hundred_starts_on_fifty_credits_accept_exactly_fifty
                an_audit_costs_one_credit_and_a_refused_one_costs_nothing
                an_id_that_is_in_use_is_refused_and_costs_nothing
                taking_more_than_there_is_leaves_zero
                amounts_beyond_any_balance_do_no_harm
                an_unknown_account_is_not_found
                an_audit_without_measurements_gives_the_credit_back_once
            }
            keys {
                a_key_is_found_with_its_account_and_balance
                a_key_can_be_revoked_once_and_expires_by_itself
                an_unknown_key_is_none_and_cannot_be_revoked
                a_key_id_is_given_once
            }
            queue {
                a_thousand_audits_and_sixteen_leasers_lease_each_once
                the_oldest_waiting_audit_is_leased_first
                a_seat_takes_only_audits_of_its_locations
                an_expired_lease_is_taken_over_and_counts_a_fault
                a_late_result_is_refused
                what_nobody_has_heard_of_goes_back_and_what_was_prolonged_stays
                a_held_lease_survives_its_expiry_while_nobody_takes_over
                a_heartbeat_keeps_others_away
                what_is_finished_or_handed_back_is_lost
                an_audit_handed_back_keeps_its_place
                only_faults_exhaust_an_audit
                an_audit_leased_too_often_is_exhausted
                three_deaths_of_its_process_exhaust_an_audit
                deaths_are_shared_among_the_audits_that_wait
                recovery_puts_back_what_the_dead_process_held
                a_client_never_sees_an_audit_go_backwards
                a_report_is_readable_once_the_audit_is_completed
                an_unknown_lease_is_lost
                the_depth_counts_what_waits_and_what_runs
            }
            fairness {
                accounts_take_turns
                a_batch_of_many_does_not_delay_anothers_start
                who_starts_one_after_another_takes_turns_all_the_same
                starts_go_before_batches_but_do_not_starve_them
                an_account_has_only_so_many_running
                whose_turn_it_is_is_decided_among_what_a_seat_may_take
                many_who_ask_at_once_are_served_in_turn
            }
            waking {
                a_waiter_wakes_when_an_audit_is_accepted
                a_waiter_wakes_when_an_audit_is_handed_back_or_recovered
                what_arrived_before_waiting_is_not_missed
                a_waiter_sleeps_while_nothing_waits_that_it_may_take
                a_waiter_gives_up_after_its_time
                no_wake_up_is_lost_between_many_leasers
                an_acceptance_nobody_waits_for_still_wakes
            }
            keeping {
                anothers_audits_and_reports_are_not_found
                reopening_keeps_everything
                two_opened_at_once_see_each_others_writes
                odd_text_does_no_harm
                a_large_report_comes_back_unchanged
                ping_answers
            }
            lists {
                audits_are_listed_newest_first_and_only_ones_own
                a_page_ends_where_the_next_begins
                completed_audits_are_listed_with_their_figures
                a_missing_summary_is_found_and_added_once
                pages_are_stable_while_audits_come_and_go
                any_filter_lists_what_fits_and_nothing_else
                a_search_that_finds_nothing_still_comes_to_its_end
                a_place_is_no_way_into_anothers_list
                a_deleted_audit_is_gone_and_stays_paid_for
                who_waits_for_a_completion_is_woken_by_it
            }
            submissions {
                an_audit_costs_as_many_credits_as_it_has_runs
                a_repeated_key_brings_the_first_reply_and_costs_nothing
                a_refused_start_is_not_remembered
                a_key_is_one_accounts_and_ends
                of_many_with_the_same_key_at_once_one_is_accepted
                an_account_may_have_only_so_many_unfinished_audits
                a_batch_is_accepted_whole_or_not_at_all
                of_many_at_once_each_is_decided_by_itself
                an_account_may_have_only_so_many_failures_within_an_hour
            }
            webhooks {
                a_webhook_is_due_when_its_audit_is_finished
                a_webhook_is_tried_until_it_is_delivered_or_given_up
                an_attempt_that_was_never_heard_of_again_is_repeated
                who_delivers_wakes_when_something_is_due
                accounts_take_turns_and_have_two_attempts_under_way
                a_turn_begins_after_the_account_that_was_served_last
                a_receiver_has_two_attempts_under_way_whoever_it_is_told_by
                retries_leave_first_attempts_a_place
                a_deleted_audit_is_told_to_nobody
                an_accounts_secret_stays_until_it_is_rotated
            }
            operating {
                what_was_kept_long_enough_is_forgotten
                of_each_account_only_so_many_are_kept
                forgetting_a_reply_frees_its_key
                operators_see_accounts_and_what_waits
            }
            limits {
                a_bucket_is_shared_by_all_who_opened_the_store
                each_who_waits_gets_all_it_wants_or_nothing
                what_was_let_pass_is_owed_and_flows_back_first
                many_buckets_are_asked_at_once_by_many
                forgetting_keeps_a_bucket_that_is_not_full
            }
            pages {
                a_session_lasts_until_it_is_closed_or_over
                a_session_needs_a_key_that_exists
                a_shared_report_is_read_by_its_token_until_it_is_switched_off
                a_link_that_is_over_opens_nothing_and_is_forgotten
                a_key_has_only_so_many_sessions_and_the_oldest_end_first
                recent_audits_are_the_accounts_own_newest_first
                an_order_is_told_to_its_account_only
            }
            agents {
                an_agent_is_found_by_its_token_until_and_after_it_is_revoked
                a_name_is_one_agents_until_it_is_revoked
                an_agent_is_drained_until_it_may_work_again
                who_was_seen_last_is_known_and_forgotten_after_a_day
                a_place_is_stood_at_while_somebody_may_work_there
                an_attempt_is_held_until_it_is_finished_handed_back_or_taken_over
                what_runs_is_known_by_its_owner
                a_token_keeps_what_it_is_bound_to
                no_more_is_held_than_a_token_has_slots
                of_many_who_lease_at_once_none_exceeds_the_slots
            }
            model {
                any_sequence_of_operations_agrees_with_the_model
            }
        }
    };
}

every_sentence_of_the_suite!(sqlite: Sqlite::fresh());
every_sentence_of_the_suite!(postgres: Postgres::fresh());
