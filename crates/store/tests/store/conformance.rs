//! Requirements of every backend. The functions of `suite` use only the [`Store`] traits. A backend
//! is added by implementing [`suite::Backend`] and with one line at the bottom.
//!
//! [`Store`]: plumbline_store::Store

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use plumbline_store::{
    AgentStore, LedgerEntry, PageStore, PostgresOptions, PostgresStore, SecretStore, SqliteStore,
    Store,
};
use tempfile::TempDir;

use crate::{cluster, suite};

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

    async fn open_secrets(&self) -> (Arc<dyn Store>, Arc<dyn SecretStore>) {
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

    async fn open_secrets(&self) -> (Arc<dyn Store>, Arc<dyn SecretStore>) {
        let store = Arc::new(self.open(None).await);
        (store.clone(), store)
    }

    async fn ledger(&self, account_id: &str) -> Vec<LedgerEntry> {
        let store = self.open(None).await;
        store.ledger(account_id).await.unwrap()
    }
}

/// Defines one test per requirement and backend.
macro_rules! conforms {
    ($backend:ident: $fresh:expr; $($part:ident { $($test:ident)* })*) => {
        mod $backend {
            use super::*;
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $test() {
                    suite::$part::$test(&$fresh).await;
                }
            )*)*
        }
    };
}

macro_rules! whole_suite {
    ($backend:ident: $fresh:expr) => {
        conforms! { $backend: $fresh;
            credits {
                two_hundred_starts_on_fifty_credits_accept_exactly_fifty
                an_audit_costs_one_credit_and_a_refused_one_costs_nothing
                an_id_that_is_in_use_is_refused_and_costs_nothing
                subtracting_more_than_the_balance_leaves_zero
                extreme_amounts_do_not_overflow_the_balance
                an_unknown_account_is_not_found
                an_audit_without_measurements_is_refunded_once
            }
            keys {
                a_key_is_found_with_its_account_and_balance
                a_key_can_be_revoked_once_and_expires
                an_unknown_key_is_none_and_cannot_be_revoked
                a_key_id_is_unique
            }
            queue {
                a_thousand_audits_and_sixteen_leasers_lease_each_once
                the_oldest_waiting_audit_is_leased_first
                only_audits_of_the_scopes_locations_are_leased
                an_expired_lease_is_taken_over_and_counts_a_fault
                a_late_result_is_refused
                only_unconfirmed_leases_can_be_released_as_unconfirmed
                an_expired_lease_stays_valid_until_another_takes_over
                a_heartbeat_prevents_a_takeover
                a_finished_or_released_lease_is_lost
                a_released_audit_keeps_its_position
                only_faults_exhaust_an_audit
                an_audit_leased_too_often_is_exhausted
                three_crashes_of_its_process_exhaust_an_audit
                crashes_are_spread_over_the_waiting_audits
                recovery_returns_the_audits_of_a_dead_process_to_the_queue
                a_client_never_sees_an_audit_go_backwards
                a_report_is_readable_once_the_audit_is_completed
                an_unknown_lease_is_lost
                the_queue_depth_counts_waiting_and_running_audits
            }
            fairness {
                accounts_take_turns
                a_large_batch_does_not_delay_single_audits_of_others
                accounts_with_one_waiting_audit_at_a_time_take_turns_as_well
                single_audits_go_before_batches_but_do_not_starve_them
                the_number_of_running_audits_per_account_is_limited
                turns_are_decided_among_the_audits_of_the_scopes_locations
                concurrent_requests_are_served_in_turn
                the_place_in_the_queue_is_the_order_in_which_audits_are_leased
            }
            waking {
                a_waiter_wakes_when_an_audit_is_accepted
                a_waiter_wakes_when_an_audit_is_released_or_recovered
                an_audit_that_arrived_before_waiting_is_not_missed
                a_waiter_sleeps_while_no_audit_of_its_scope_waits
                waiting_ends_after_its_maximum_time
                no_wakeup_is_lost_among_many_leasers
                a_submission_whose_caller_is_gone_still_wakes_waiters
            }
            keeping {
                audits_and_reports_of_other_accounts_are_not_found
                all_data_survives_reopening
                two_open_stores_see_each_others_writes
                unusual_text_is_stored_unchanged_or_refused
                a_large_report_is_returned_unchanged
                ping_succeeds
            }
            lists {
                audits_of_the_account_are_listed_newest_first
                a_page_ends_where_the_next_begins
                completed_audits_are_listed_with_their_figures
                a_missing_summary_is_found_and_added_once
                the_options_of_a_visit_are_stored
                the_values_of_a_state_are_erased_when_the_audit_has_ended
                pages_are_stable_while_audits_are_added_and_deleted
                any_filter_lists_exactly_the_matching_audits
                a_search_with_few_matches_comes_to_its_end
                a_cursor_gives_no_access_to_other_accounts
                an_audit_is_found_by_its_account_only
                labels_are_stored_and_found
                a_deleted_audit_is_not_refunded
                waiting_for_completion_ends_with_the_audit
                    }
            cancelling {
                a_cancelled_audit_loses_the_values_of_its_state
                a_cancelled_audit_is_completed_and_refunded_once
                a_cancelled_audit_is_not_leased
                the_lease_of_a_cancelled_audit_is_lost
                only_unfinished_audits_of_the_account_are_cancelled
                waiters_wake_when_an_audit_is_cancelled
                audits_cancelled_before_their_first_lease_do_not_count_as_failures
            }
            secrets {
                a_secret_is_stored_replaced_listed_and_deleted
                a_secret_belongs_to_one_account
                the_number_of_secrets_per_account_is_limited
                the_account_of_an_audit_is_known
                a_saved_session_is_defined_made_and_deleted
                a_state_of_an_earlier_definition_is_not_stored
            }
            submissions {
                an_audit_costs_as_many_credits_as_it_has_runs
                a_repeated_idempotency_key_returns_the_first_reply_and_costs_nothing
                the_decision_on_an_idempotency_key_is_known_without_a_submission
                a_refused_submission_does_not_store_its_idempotency_key
                an_idempotency_key_belongs_to_one_account_and_expires
                of_concurrent_submissions_with_the_same_key_one_is_accepted
                the_number_of_unfinished_audits_per_account_is_limited
                a_batch_is_accepted_as_a_whole_or_not_at_all
                concurrent_submissions_are_decided_independently
                the_number_of_failures_within_an_hour_is_limited
            }
            webhooks {
                a_webhook_is_due_when_its_audit_is_finished
                a_webhook_is_tried_until_it_is_delivered_or_given_up
                an_attempt_that_was_never_settled_is_repeated
                waiters_wake_when_a_webhook_is_due
                accounts_take_turns_and_have_at_most_two_active_attempts
                turns_begin_after_the_account_that_was_served_last
                a_receiver_has_at_most_two_active_attempts_of_all_accounts
                retries_leave_capacity_for_first_attempts
                the_webhook_of_a_deleted_audit_is_not_sent
                the_webhook_of_a_batch_follows_that_of_its_last_audit
                the_webhook_of_a_batch_is_sent_although_its_last_audit_is_deleted
                a_batch_whose_audits_end_at_the_same_time_has_one_webhook
                the_webhook_secret_of_an_account_stays_until_it_is_rotated
            }
            operating {
                audits_beyond_their_retention_are_deleted
                the_number_of_audits_kept_per_account_is_limited
                a_batch_without_audits_is_deleted
                purging_an_idempotency_record_frees_its_key
                operators_see_accounts_and_the_queue
            }
            limits {
                a_bucket_is_shared_by_all_open_stores
                each_request_is_granted_completely_or_not_at_all
                debt_is_subtracted_and_refilled_first
                concurrent_requests_to_many_buckets_do_not_deadlock
                purging_keeps_buckets_that_are_not_full
            }
            replays {
                replays_of_a_recording_are_found_newest_first
            }
            pages {
                a_session_lasts_until_it_is_closed_or_expires
                a_session_needs_a_key_that_exists
                a_report_can_be_read_by_its_token_while_it_is_shared
                a_page_is_shared_by_one_token_at_a_time_until_it_expires
                an_expired_link_is_invalid_and_deleted
                the_number_of_sessions_per_key_is_limited_and_the_oldest_end_first
                recent_audits_of_the_account_are_listed_newest_first
                summaries_of_completed_audits_are_found_by_their_ids
            }
            agents {
                an_agent_is_found_by_its_token_also_after_it_is_revoked
                the_name_of_an_agent_is_unique_until_it_is_revoked
                an_agent_is_drained_until_it_is_resumed
                the_newest_presence_is_kept_for_a_day
                a_location_is_active_while_an_agent_may_work_there
                an_attempt_is_held_until_it_is_finished_released_or_taken_over
                running_leases_are_found_by_their_owner
                the_bounds_of_a_token_are_stored
                the_number_of_leases_is_limited_by_the_slots_of_a_token
                concurrent_leases_do_not_exceed_the_slots_of_a_token
            }
            model {
                any_sequence_of_operations_agrees_with_the_model
            }
        }
    };
}

whole_suite!(sqlite: Sqlite::fresh());
whole_suite!(postgres: Postgres::fresh());
