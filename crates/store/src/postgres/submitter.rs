//! Submissions: those of one account that come while one of it is being committed go into the next
//! transaction together. They would wait for each other anyway, at the account's row.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::audits;
use super::bells::{Bells, Rings};
use super::connect::Connections;
use super::to_its_end;
use crate::{Acceptance, StoreError, Submission};

/// Bounds how long the first of them waits for the last.
const TOGETHER: usize = 64;
/// Of all of them, batches included.
const AUDITS_TOGETHER: usize = 1_000;

type Answer = Result<Acceptance, StoreError>;

struct Pending {
    submission: Submission,
    reply: oneshot::Sender<Answer>,
}

pub(super) struct Submitter {
    connections: Arc<Connections>,
    bells: Arc<Bells>,
    /// By account, while one of its submissions is being written: those that came since.
    pending: Mutex<HashMap<String, Vec<Pending>>>,
}

impl Submitter {
    pub(super) fn new(connections: Arc<Connections>, bells: Arc<Bells>) -> Self {
        Self {
            connections,
            bells,
            pending: Mutex::default(),
        }
    }

    /// Ends in one way or the other, whether or not the caller still waits.
    pub(super) async fn submit(self: &Arc<Self>, submission: Submission) -> Answer {
        let (reply, answer) = oneshot::channel();
        let account_id = submission.account_id.clone();
        let pending = Pending { submission, reply };
        let is_first = {
            let mut waiting = self.locked();
            let is_first = !waiting.contains_key(&account_id);
            waiting.entry(account_id.clone()).or_default().push(pending);
            is_first
        };
        if is_first {
            tokio::spawn(Arc::clone(self).write_all_of(account_id));
        }
        let cut_short = |_| StoreError::Backend("a write was cut short".to_owned());
        answer.await.map_err(cut_short)?
    }

    async fn write_all_of(self: Arc<Self>, account_id: String) {
        while let Some(group) = self.next_group(&account_id) {
            let (submissions, replies): (Vec<_>, Vec<_>) = group
                .into_iter()
                .map(|pending| (pending.submission, pending.reply))
                .unzip();
            let answers = self.write_group(submissions).await;
            for (reply, answer) in replies.into_iter().zip(answers) {
                // Who has gone away finds out by asking.
                let _ = reply.send(answer);
            }
        }
    }

    /// `None` when nobody waits: then the next to come is the first again.
    fn next_group(&self, account_id: &str) -> Option<Vec<Pending>> {
        let mut waiting = self.locked();
        let of_account = waiting.get_mut(account_id)?;
        if of_account.is_empty() {
            waiting.remove(account_id);
            return None;
        }
        let rest = of_account.split_off(group_size(of_account));
        Some(mem::replace(of_account, rest))
    }

    /// What the database refuses as it stands must not take others with it: then each is tried alone.
    async fn write_group(&self, submissions: Vec<Submission>) -> Vec<Answer> {
        let submissions = Arc::new(submissions);
        let count = submissions.len();
        let written = self.write(Arc::clone(&submissions), 0..count).await;
        match written {
            Ok(acceptances) => acceptances.into_iter().map(Ok).collect(),
            Err(StoreError::Refused(_)) if count > 1 => {
                let mut answers = Vec::with_capacity(count);
                for one in 0..count {
                    let written = self.write(Arc::clone(&submissions), one..one + 1).await;
                    answers.push(match written {
                        Ok(acceptances) => first(acceptances),
                        Err(error) => Err(told(&error)),
                    });
                }
                answers
            }
            Err(error) => (0..count).map(|_| Err(told(&error))).collect(),
        }
    }

    async fn write(
        &self,
        submissions: Arc<Vec<Submission>>,
        which: std::ops::Range<usize>,
    ) -> Result<Vec<Acceptance>, StoreError> {
        let (connections, bells) = (Arc::clone(&self.connections), Arc::clone(&self.bells));
        // A task of its own, so that whatever happens in there, the next group is written.
        to_its_end(async move {
            let acceptances = connections.write(move |db| {
                Box::pin(async move { audits::submit(db, &submissions[which]).await })
            });
            let acceptances = acceptances.await?;
            if acceptances.contains(&Acceptance::Accepted) {
                bells.ring(&Rings::Leasers);
            }
            Ok(acceptances)
        })
        .await
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Vec<Pending>>> {
        // What is kept is whole after every statement.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many of those who wait go together: no two under one idempotency key, of which the second is to be
/// answered as the first was.
fn group_size(waiting: &[Pending]) -> usize {
    let (mut keys, mut audits) = (HashSet::new(), 0);
    let fits = |pending: &&Pending| {
        audits += pending.submission.audits.len();
        let replay = pending.submission.idempotency.as_ref();
        replay.is_none_or(|replay| keys.insert(replay.key.clone())) && audits <= AUDITS_TOGETHER
    };
    let fitting = waiting.iter().take(TOGETHER).take_while(fits).count();
    fitting.max(1)
}

fn first(acceptances: Vec<Acceptance>) -> Answer {
    let missing = || StoreError::Backend("a submission was not answered".to_owned());
    acceptances.into_iter().next().ok_or_else(missing)
}

/// An error, for each of those whom it befell.
fn told(error: &StoreError) -> StoreError {
    match error {
        StoreError::NotFound(what) => StoreError::NotFound(what),
        StoreError::Backend(reason) | StoreError::Refused(reason) => {
            StoreError::Backend(reason.clone())
        }
        other => StoreError::Backend(other.to_string()),
    }
}
