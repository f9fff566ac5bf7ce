//! The conformance suite: each function is a requirement of every [`Store`].

pub mod agents;
pub mod cancelling;
pub mod credits;
pub mod fairness;
pub mod keeping;
pub mod keys;
pub mod limits;
pub mod lists;
pub mod model;
pub mod operating;
pub mod pages;
pub mod queue;
pub mod replays;
pub mod secrets;
pub mod submissions;
pub mod waking;
pub mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plumbline_store::{
    Acceptance, Account, AgentStore, AuditError, AuditOptions, AuditSummary, FinishedAudit, Lease,
    LeaseScope, LedgerEntry, LedgerReason, NewAudit, Order, PageStore, ProcessSet, SecretStore,
    Store, Submission, Timestamp,
};

/// A backend with its own data, initially empty.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Opens the data once more, as another process would.
    async fn open(&self) -> Arc<dyn Store>;

    /// Whether several servers can use it at the same time.
    fn is_shared(&self) -> bool;

    /// Opens the data with a limit of running audits per account.
    async fn open_bounded(&self, running_per_account: u32) -> Arc<dyn Store>;

    /// Opens the data with the trait of the web pages.
    async fn open_pages(&self) -> (Arc<dyn Store>, Arc<dyn PageStore>);

    /// Opens the data with the trait of agents.
    async fn open_agents(&self) -> (Arc<dyn Store>, Arc<dyn AgentStore>);

    /// Opens the data with the trait of stored secrets.
    async fn open_secrets(&self) -> (Arc<dyn Store>, Arc<dyn SecretStore>);

    /// Returns every change of the balance of an account, oldest first.
    async fn ledger(&self, account_id: &str) -> Vec<LedgerEntry>;
}

pub const NOW: Timestamp = Timestamp(1_700_000_000_000);
pub const LEASE: Duration = Duration::from_secs(60);
/// A time far longer than any test takes, reached only when something hangs.
pub const NEVER: Duration = Duration::from_secs(60);

pub fn later(by: Duration) -> Timestamp {
    NOW.plus(by)
}

pub fn audit(account: &Account, name: &str) -> NewAudit {
    NewAudit {
        account_id: account.id.clone(),
        tracking_id: name.to_owned(),
        audit_id: format!("report-of-{name}"),
        order: Order {
            url: format!("https://{name}.example/"),
            device: "some-phone".to_owned(),
            network: "some-network".to_owned(),
            location: "some-place".to_owned(),
            options: plumbline_store::VisitOptions::default(),
        },
        options: AuditOptions::default(),
        accepted_at: NOW,
    }
}

pub fn measured() -> FinishedAudit {
    FinishedAudit {
        report: r#"{"score":1}"#.to_owned(),
        error: None,
        finished_at: NOW,
        summary: Some(AuditSummary {
            lab_data: Some(r#"{"performance":1}"#.to_owned()),
            summary: r#"{"scores":{"performance":1}}"#.to_owned(),
            final_url: Some("https://elsewhere.example/".to_owned()),
        }),
    }
}

pub fn failed() -> FinishedAudit {
    FinishedAudit {
        report: "{}".to_owned(),
        error: Some(AuditError {
            code: "INTERNAL".to_owned(),
            message: "it broke".to_owned(),
        }),
        finished_at: NOW,
        summary: None,
    }
}

pub async fn account(store: &dyn Store, credits: u32) -> Account {
    store.create_account("someone", credits, NOW).await.unwrap()
}

/// Creates an account with as many credits as names, and submits an audit for each.
pub async fn accepted(store: &dyn Store, names: &[&str]) -> Account {
    let account = account(store, names.len().try_into().unwrap()).await;
    for name in names {
        let acceptance = store
            .submit(Submission::single(audit(&account, name)))
            .await
            .unwrap();
        assert_eq!(acceptance, Acceptance::Accepted);
    }
    account
}

pub async fn lease(store: &dyn Store, now: Timestamp) -> Option<Lease> {
    store
        .lease(&LeaseScope::any_location("agent/1"), now, LEASE)
        .await
        .unwrap()
}

/// Returns the set of one process.
pub fn single(process: &str) -> ProcessSet {
    ProcessSet::Single(process.into())
}

pub fn scope_at(locations: &[&str]) -> LeaseScope {
    LeaseScope {
        owner: "agent/there".into(),
        locations: Some(locations.iter().map(|&name| name.to_owned()).collect()),
        slots: None,
    }
}

/// Returns the balance, after checking that it is the sum of the ledger and that no audit was
/// charged or refunded twice.
pub async fn balance(backend: &dyn Backend, store: &dyn Store, account: &Account) -> i64 {
    let balance = store.add_credits(&account.id, 0, NOW).await.unwrap();
    let ledger = backend.ledger(&account.id).await;
    assert_eq!(
        ledger.iter().map(|entry| entry.amount).sum::<i64>(),
        balance
    );
    assert!(ledger.iter().all(|entry| entry.amount != 0));
    for (reason, amount) in [(LedgerReason::Audit, -1), (LedgerReason::Refund, 1)] {
        let of_audits: Vec<_> = ledger
            .iter()
            .filter(|entry| entry.reason == reason)
            .collect();
        assert!(of_audits.iter().all(|entry| entry.amount == amount));
        let mut ids: Vec<_> = of_audits
            .iter()
            // The tracking id of a deleted audit is not known.
            .filter_map(|entry| entry.tracking_id.as_deref())
            .collect();
        ids.sort_unstable();
        let entries = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), entries, "{reason:?} more than once for an audit");
    }
    balance
}
