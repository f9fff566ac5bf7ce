//! Groups submissions: those of one account that arrive while another is being committed share the
//! next transaction. They would otherwise wait for each other at the lock of the account's row.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::audits;
use super::connect::Connections;
use super::notifier::{Notifier, Wakeup};
use super::run_to_end;
use crate::{Acceptance, StoreError, Submission};

/// Maximum number of submissions in a group, which limits how long the first waits for the last.
const MAX_GROUP: usize = 64;
/// Maximum number of audits in a group, including those of batches.
const MAX_GROUP_AUDITS: usize = 1_000;

type SubmitResult = Result<Acceptance, StoreError>;

struct Pending {
    submission: Submission,
    reply: oneshot::Sender<SubmitResult>,
}

pub(super) struct Submitter {
    connections: Arc<Connections>,
    notifier: Arc<Notifier>,
    /// Waiting submissions by account. An account has an entry while a task writes its submissions.
    pending: Mutex<HashMap<String, Vec<Pending>>>,
}

impl Submitter {
    pub(super) fn new(connections: Arc<Connections>, notifier: Arc<Notifier>) -> Self {
        Self {
            connections,
            notifier,
            pending: Mutex::default(),
        }
    }

    /// Submits audits. It runs to its end even if the caller no longer waits.
    pub(super) async fn submit(self: &Arc<Self>, submission: Submission) -> SubmitResult {
        let (reply, result) = oneshot::channel();
        let account_id = submission.account_id.clone();
        let pending = Pending { submission, reply };
        let is_first = {
            let mut waiting = self.pending.lock();
            let is_first = !waiting.contains_key(&account_id);
            waiting.entry(account_id.clone()).or_default().push(pending);
            is_first
        };
        if is_first {
            tokio::spawn(Arc::clone(self).write_account(account_id));
        }
        let failed = |_| StoreError::Backend("write task failed".to_owned());
        result.await.map_err(failed)?
    }

    /// Writes the submissions of an account until none is waiting.
    async fn write_account(self: Arc<Self>, account_id: String) {
        while let Some(group) = self.next_group(&account_id) {
            let (submissions, replies): (Vec<_>, Vec<_>) = group
                .into_iter()
                .map(|pending| (pending.submission, pending.reply))
                .unzip();
            let results = self.write_group(submissions).await;
            for (reply, result) in replies.into_iter().zip(results) {
                // The caller may be gone.
                let _ = reply.send(result);
            }
        }
    }

    /// Takes the next group of an account. `None` if no submission is waiting; the entry is
    /// removed, so that the next submission spawns a task again.
    fn next_group(&self, account_id: &str) -> Option<Vec<Pending>> {
        let mut waiting = self.pending.lock();
        let of_account = waiting.get_mut(account_id)?;
        if of_account.is_empty() {
            waiting.remove(account_id);
            return None;
        }
        let rest = of_account.split_off(group_size(of_account));
        Some(mem::replace(of_account, rest))
    }

    /// Writes a group. If the database rejects the values of one submission, each is written alone,
    /// so that it does not affect the others.
    async fn write_group(&self, submissions: Vec<Submission>) -> Vec<SubmitResult> {
        let submissions = Arc::new(submissions);
        let count = submissions.len();
        match self.write(Arc::clone(&submissions), 0..count).await {
            Ok(acceptances) => acceptances.into_iter().map(Ok).collect(),
            Err(StoreError::Refused(_)) if count > 1 => {
                let mut results = Vec::with_capacity(count);
                for one in 0..count {
                    let result = self.write(Arc::clone(&submissions), one..one + 1).await;
                    results.push(match result {
                        Ok(acceptances) => first(acceptances),
                        Err(error) => Err(copy_error(&error)),
                    });
                }
                results
            }
            Err(error) => (0..count).map(|_| Err(copy_error(&error))).collect(),
        }
    }

    async fn write(
        &self,
        submissions: Arc<Vec<Submission>>,
        range: std::ops::Range<usize>,
    ) -> Result<Vec<Acceptance>, StoreError> {
        let (connections, notifier) = (Arc::clone(&self.connections), Arc::clone(&self.notifier));
        // A separate task, so that the next group is written even if this one panics.
        run_to_end(async move {
            let acceptances = connections
                .write(move |db| {
                    Box::pin(async move { audits::submit(db, &submissions[range]).await })
                })
                .await?;
            if acceptances.contains(&Acceptance::Accepted) {
                notifier.notify(&Wakeup::Leasers);
            }
            Ok(acceptances)
        })
        .await
    }
}

/// Returns how many waiting submissions form the next group. Two submissions with the same
/// idempotency key are in different groups, because the second gets the reply of the first.
fn group_size(waiting: &[Pending]) -> usize {
    let (mut keys, mut audits) = (HashSet::new(), 0);
    let fits = |pending: &&Pending| {
        audits += pending.submission.audits.len();
        let record = pending.submission.idempotency.as_ref();
        record.is_none_or(|record| keys.insert(record.key.clone())) && audits <= MAX_GROUP_AUDITS
    };
    let size = waiting.iter().take(MAX_GROUP).take_while(fits).count();
    size.max(1)
}

fn first(acceptances: Vec<Acceptance>) -> SubmitResult {
    let missing = || StoreError::Backend("no result for a submission".to_owned());
    acceptances.into_iter().next().ok_or_else(missing)
}

/// Returns a copy of an error for each submission of a group.
fn copy_error(error: &StoreError) -> StoreError {
    match error {
        StoreError::NotFound(kind) => StoreError::NotFound(kind),
        StoreError::Backend(reason) | StoreError::Refused(reason) => {
            StoreError::Backend(reason.clone())
        }
        other => StoreError::Backend(other.to_string()),
    }
}
