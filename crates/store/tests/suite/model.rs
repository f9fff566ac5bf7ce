//! A simple model of the queue, which is compared with a store for random sequences of operations.

use std::time::Duration;

use plumbline_store::{
    Account, Lease, LeaseScope, LeaseState, QueueDepth, ReleaseReason, ReturnReason, Store,
    Submission, Timestamp,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::cancelling::cancel;
use super::{Backend, LEASE, NOW, account, audit, balance, failed, measured, single};

#[derive(Debug, Clone)]
enum Step {
    Accept,
    Lease,
    /// Extends one of all leases so far, not only the newest.
    Heartbeat(prop::sample::Index),
    Finish(prop::sample::Index, bool),
    Release(prop::sample::Index, ReleaseReason),
    /// Cancels one of all audits so far.
    Cancel(prop::sample::Index),
    Recover,
    AddCredits(i64),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let which = any::<prop::sample::Index>;
    prop_oneof![
        4 => Just(Step::Accept),
        6 => Just(Step::Lease),
        2 => which().prop_map(Step::Heartbeat),
        3 => (which(), any::<bool>()).prop_map(|(lease, fails)| Step::Finish(lease, fails)),
        3 => (which(), reason()).prop_map(|(lease, reason)| Step::Release(lease, reason)),
        1 => which().prop_map(Step::Cancel),
        1 => Just(Step::Recover),
        1 => (-3..6_i64).prop_map(Step::AddCredits),
        2 => (1..90_u64).prop_map(Step::Wait),
    ]
}

fn reason() -> impl Strategy<Value = ReleaseReason> {
    prop::sample::select(vec![
        ReleaseReason::Returned(ReturnReason::Drained),
        ReleaseReason::Returned(ReturnReason::Fault),
        ReleaseReason::Unconfirmed,
    ])
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Waiting,
    Running { expires_at: Timestamp },
    Completed,
}

#[derive(Debug, Clone)]
struct ModelAudit {
    state: State,
    attempt: u32,
    faults: u32,
}

struct Model {
    now: Timestamp,
    credits: i64,
    /// The audits in order of acceptance; the index is the name.
    audits: Vec<ModelAudit>,
    leases: Vec<Lease>,
}

impl Model {
    fn lease(&mut self) -> Option<(String, u32, u32)> {
        let now = self.now;
        let expired = self.audits.iter().enumerate().filter_map(|(index, audit)| {
            let State::Running { expires_at } = audit.state else {
                return None;
            };
            (expires_at <= now).then_some((expires_at, index))
        });
        let audits = self.audits.iter().enumerate();
        let waiting = audits.filter(|(_, audit)| audit.state == State::Waiting);
        let index = match expired.min() {
            Some((_, index)) => index,
            None => {
                waiting
                    .min_by_key(|(index, audit)| (audit.faults, *index))?
                    .0
            }
        };
        let audit = &mut self.audits[index];
        audit.faults += u32::from(audit.state != State::Waiting);
        audit.attempt += 1;
        audit.state = State::Running {
            expires_at: now.plus(LEASE),
        };
        Some((index.to_string(), audit.attempt, audit.faults))
    }

    /// Returns the audit of a lease that is still held.
    fn held(&mut self, lease: &Lease) -> Option<&mut ModelAudit> {
        let index: usize = lease.tracking_id.parse().unwrap();
        let audit = &mut self.audits[index];
        let running = matches!(audit.state, State::Running { .. });
        (running && audit.attempt == lease.attempt).then_some(audit)
    }

    fn depth(&self) -> QueueDepth {
        let count = |matches: fn(&State) -> bool| {
            let matching = self.audits.iter().filter(|audit| matches(&audit.state));
            matching.count() as u64
        };
        QueueDepth {
            waiting: count(|state| *state == State::Waiting),
            running: count(|state| matches!(state, State::Running { .. })),
        }
    }
}

pub async fn any_sequence_of_operations_agrees_with_the_model(backend: &dyn Backend) {
    let store = backend.open().await;
    let mut runner = TestRunner::default();
    for _ in 0..24 {
        let steps = prop::collection::vec(step(), 1..60);
        let steps = steps.new_tree(&mut runner).unwrap().current();
        follow(backend, &*store, &steps).await;
    }
}

async fn follow(backend: &dyn Backend, store: &dyn Store, steps: &[Step]) {
    let account = account(store, 5).await;
    let mut model = Model {
        now: NOW,
        credits: 5,
        audits: Vec::new(),
        leases: Vec::new(),
    };
    for step in steps {
        take(store, &account, &mut model, step).await;
        assert_eq!(
            store.queue_depth().await.unwrap(),
            model.depth(),
            "{steps:?}"
        );
    }
    assert_eq!(balance(backend, store, &account).await, model.credits);
    // The queue must be empty for the next sequence.
    let much_later = model.now.plus(LEASE * 1000);
    while let Some(lease) = store
        .lease(&LeaseScope::any_location("end"), much_later, LEASE)
        .await
        .unwrap()
    {
        store.finish(&lease, measured()).await.unwrap();
    }
}

/// Returns the name of an audit in the store, which is unique; in the model it is a number.
fn full_name(account: &Account, name: &str) -> String {
    format!("{}:{name}", account.id)
}

async fn take(store: &dyn Store, account: &Account, model: &mut Model, step: &Step) {
    let pick = |which: &prop::sample::Index, model: &Model| {
        (!model.leases.is_empty()).then(|| model.leases[which.index(model.leases.len())].clone())
    };
    let real = |lease: &Lease| Lease {
        tracking_id: full_name(account, &lease.tracking_id),
        ..lease.clone()
    };
    let expected = |held: bool| {
        if held {
            LeaseState::Held
        } else {
            LeaseState::Lost
        }
    };
    match step {
        Step::Accept => {
            let name = full_name(account, &model.audits.len().to_string());
            let acceptance = store
                .submit(Submission::single(audit(account, &name)))
                .await
                .unwrap();
            assert_eq!(
                acceptance == plumbline_store::Acceptance::Accepted,
                model.credits > 0
            );
            if model.credits > 0 {
                model.credits -= 1;
                model.audits.push(ModelAudit {
                    state: State::Waiting,
                    attempt: 0,
                    faults: 0,
                });
            }
        }
        Step::Lease => {
            let leased = store
                .lease(&LeaseScope::any_location("model"), model.now, LEASE)
                .await
                .unwrap();
            let expected = model.lease();
            let actual = leased
                .as_ref()
                .map(|lease| (lease.tracking_id.clone(), lease.attempt, lease.faults));
            let renamed = expected
                .map(|(name, attempt, faults)| (full_name(account, &name), attempt, faults));
            assert_eq!(actual, renamed);
            if let Some(mut lease) = leased {
                let prefix = full_name(account, "");
                lease.tracking_id = lease.tracking_id.replace(&prefix, "");
                model.leases.push(lease);
            }
        }
        Step::Heartbeat(which) => {
            let Some(lease) = pick(which, model) else {
                return;
            };
            let until = model.now.plus(LEASE);
            let held = model.held(&lease);
            let expected_hold = expected(held.is_some());
            if let Some(audit) = held {
                audit.state = State::Running { expires_at: until };
            }
            assert_eq!(
                store.heartbeat(&real(&lease), until).await.unwrap(),
                expected_hold
            );
        }
        Step::Finish(which, fails) => {
            let Some(lease) = pick(which, model) else {
                return;
            };
            let held = model.held(&lease);
            let expected_hold = expected(held.is_some());
            if let Some(audit) = held {
                audit.state = State::Completed;
                model.credits += i64::from(*fails);
            }
            let end = if *fails { failed() } else { measured() };
            assert_eq!(
                store.finish(&real(&lease), end).await.unwrap(),
                expected_hold
            );
        }
        Step::Release(which, reason) => {
            let Some(lease) = pick(which, model) else {
                return;
            };
            let as_leased = State::Running {
                expires_at: lease.expires_at,
            };
            let held = model.held(&lease);
            let held = held
                .filter(|audit| *reason != ReleaseReason::Unconfirmed || audit.state == as_leased);
            let expected_hold = expected(held.is_some());
            if let Some(audit) = held {
                audit.state = State::Waiting;
                audit.faults += u32::from(*reason == ReleaseReason::Returned(ReturnReason::Fault));
            }
            assert_eq!(
                store.release(&real(&lease), *reason).await.unwrap(),
                expected_hold
            );
        }
        Step::Cancel(which) => {
            if model.audits.is_empty() {
                return;
            }
            let index = which.index(model.audits.len());
            let name = full_name(account, &index.to_string());
            let audit = &mut model.audits[index];
            let expected = if audit.state == State::Completed {
                vec![]
            } else {
                model.credits += 1;
                audit.state = State::Completed;
                audit.attempt += u32::from(audit.attempt > 0);
                vec![name.clone()]
            };
            assert_eq!(cancel(store, account, &[&name]).await, expected);
        }
        Step::Recover => {
            let mut count = 0;
            for audit in &mut model.audits {
                if matches!(audit.state, State::Running { .. }) {
                    audit.state = State::Waiting;
                    audit.faults += 1;
                    count += 1;
                }
            }
            assert_eq!(store.recover(&single("model")).await.unwrap(), count);
        }
        Step::AddCredits(amount) => {
            model.credits = (model.credits + amount).max(0);
            let balance = store.add_credits(&account.id, *amount, model.now).await;
            assert_eq!(balance.unwrap(), model.credits);
        }
        Step::Wait(seconds) => model.now = model.now.plus(Duration::from_secs(*seconds)),
    }
}
