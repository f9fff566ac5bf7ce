//! How far running audits are: said by who works on them, told to every server on the store, kept by nobody.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// By tracking id, the phase that an audit is in; its name is the business of those who say and read it. After a restart
/// every running audit begins again, or is told of anew by the server that its agent talks to.
#[derive(Clone, Default)]
pub struct Progress(Arc<Inner>);

#[derive(Default)]
struct Inner {
    all: Mutex<All>,
    changed: Notify,
    /// Rung when there is something to tell other servers.
    news: Notify,
}

#[derive(Default)]
struct All {
    reached: HashMap<String, Reached>,
    /// What other servers have not heard of yet, `None` for what has ended. There where there may be others.
    untold: Option<HashMap<String, Option<String>>>,
}

struct Reached {
    phase: String,
    /// Said to this server, and not to another.
    is_own: bool,
}

impl Progress {
    pub fn reached(&self, tracking_id: &str, phase: &str) {
        let reached = Reached {
            phase: phase.to_owned(),
            is_own: true,
        };
        let mut all = self.locked();
        all.reached.insert(tracking_id.to_owned(), reached);
        self.tell(&mut all, tracking_id, Some(phase));
        drop(all);
        self.0.changed.notify_waiters();
    }

    /// The audit is finished, or went back into the queue.
    pub fn ended(&self, tracking_id: &str) {
        let mut all = self.locked();
        if all.reached.remove(tracking_id).is_none() {
            return;
        }
        self.tell(&mut all, tracking_id, None);
        drop(all);
        self.0.changed.notify_waiters();
    }

    pub fn of(&self, tracking_id: &str) -> Option<String> {
        let all = self.locked();
        all.reached
            .get(tracking_id)
            .map(|reached| reached.phase.clone())
    }

    /// Returns when any audit got further, or after `at_most`.
    pub async fn change(&self, at_most: Duration) {
        let _ = timeout(at_most, self.0.changed.notified()).await;
    }

    fn tell(&self, all: &mut All, tracking_id: &str, phase: Option<&str>) {
        if let Some(untold) = &mut all.untold {
            untold.insert(tracking_id.to_owned(), phase.map(str::to_owned));
            self.0.news.notify_one();
        }
    }

    fn locked(&self) -> MutexGuard<'_, All> {
        // What is kept is whole after every statement.
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For a store that carries it from server to server.
impl Progress {
    pub(crate) fn shared() -> Self {
        let progress = Self::default();
        progress.locked().untold = Some(HashMap::new());
        progress
    }

    /// Returns when there is something to tell.
    pub(crate) async fn news(&self) {
        self.0.news.notified().await;
    }

    /// Only the newest of each audit.
    pub(crate) fn to_tell(&self) -> HashMap<String, Option<String>> {
        let mut all = self.locked();
        all.untold.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Another server said so. What was said to this one since, it has yet to hear.
    pub(crate) fn heard(&self, tracking_id: &str, phase: Option<&str>) {
        let mut all = self.locked();
        if all
            .untold
            .as_ref()
            .is_some_and(|untold| untold.contains_key(tracking_id))
        {
            return;
        }
        match phase {
            Some(phase) => {
                let reached = Reached {
                    phase: phase.to_owned(),
                    is_own: false,
                };
                all.reached.insert(tracking_id.to_owned(), reached);
            }
            None => drop(all.reached.remove(tracking_id)),
        }
        drop(all);
        self.0.changed.notify_waiters();
    }

    /// Something may have been missed: what others said is asked for again.
    pub(crate) fn forget_others(&self) {
        self.locked().reached.retain(|_, reached| reached.is_own);
        self.0.changed.notify_waiters();
    }

    /// Another server asks.
    pub(crate) fn tell_again(&self) {
        let mut all = self.locked();
        let All { reached, untold } = &mut *all;
        if let Some(untold) = untold {
            for (tracking_id, reached) in reached.iter().filter(|(_, reached)| reached.is_own) {
                let known = untold.entry(tracking_id.clone());
                known.or_insert_with(|| Some(reached.phase.clone()));
            }
            self.0.news.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_is_told_and_only_once() {
        let progress = Progress::shared();
        progress.reached("trk_1", "loading");
        progress.reached("trk_1", "judging");
        progress.reached("trk_2", "loading");
        progress.ended("trk_2");
        progress.ended("trk_3");
        let told = progress.to_tell();
        assert_eq!(told.len(), 2);
        assert_eq!(told["trk_1"].as_deref(), Some("judging"));
        assert_eq!(told["trk_2"], None);
        assert!(progress.to_tell().is_empty());
        progress.tell_again();
        assert_eq!(progress.to_tell().len(), 1);
    }

    #[test]
    fn what_others_said_is_known_told_to_nobody_and_forgotten_when_some_may_be_missing() {
        let progress = Progress::shared();
        progress.heard("trk_1", Some("loading"));
        progress.heard("trk_2", Some("loading"));
        progress.heard("trk_2", None);
        assert_eq!(progress.of("trk_1").as_deref(), Some("loading"));
        assert_eq!(progress.of("trk_2"), None);
        progress.tell_again();
        assert!(progress.to_tell().is_empty());
        progress.reached("trk_3", "loading");
        progress.forget_others();
        assert_eq!(progress.of("trk_1"), None);
        assert!(progress.of("trk_3").is_some());
    }

    #[test]
    fn what_was_said_here_last_is_not_undone_by_what_another_said_before() {
        let progress = Progress::shared();
        progress.reached("trk_1", "loading");
        progress.heard("trk_1", None);
        assert!(progress.of("trk_1").is_some());
    }

    #[test]
    fn where_there_are_no_others_nothing_is_gathered_for_them() {
        let progress = Progress::default();
        progress.reached("trk_1", "loading");
        progress.tell_again();
        assert!(progress.to_tell().is_empty());
        assert!(progress.of("trk_1").is_some());
    }
}
