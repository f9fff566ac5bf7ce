//! Who waits for something is woken: here at once, in other servers through NOTIFY.
//!
//! A server that dies between its commit and its NOTIFY, and a connection that is lost, wake nobody; so
//! whoever waits also looks from time to time.

use std::collections::HashMap;
use std::future::poll_fn;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_postgres::AsyncMessage;

use super::connect::{Connections, change};
use crate::{AuditProgress, StoreError};

/// How often to look while other servers are heard, and while they are not.
const LOOK_EVERY: Duration = Duration::from_secs(15);
const LOOK_OFTEN_EVERY: Duration = Duration::from_secs(1);

const RECONNECT_AFTER: Duration = Duration::from_secs(1);
/// A connection on which nothing is said may be dead without anybody knowing.
const ASK_EVERY: Duration = Duration::from_secs(20);
/// A NOTIFY carries less than 8,000 bytes.
const IDS_PER_NOTIFY: usize = 100;

/// Whom a write may have given something to do.
#[derive(Debug, Clone)]
pub(super) enum Rings {
    Nobody,
    /// There may be something to lease.
    Leasers,
    /// This audit was finished.
    Finished {
        tracking_id: String,
        /// Its account may be allowed another one now.
        and_leasers: bool,
        /// Its webhook is due.
        and_deliverers: bool,
    },
}

pub(super) struct Bells {
    pub(super) arrivals: Notify,
    /// Counts what `arrivals` was rung for.
    pub(super) arrived: AtomicU64,
    pub(super) deliveries: Notify,
    /// By tracking id.
    finishes: Mutex<HashMap<String, Arc<Notify>>>,
    /// What is told of it goes to other servers.
    pub(super) progress: AuditProgress,
    /// Whether other servers are heard.
    pub(super) is_listening: AtomicBool,
    to_tell: Mutex<ToTell>,
    something_to_tell: Notify,
    /// Whose own messages are not for itself.
    server_id: String,
}

#[derive(Default)]
struct ToTell {
    arrivals: bool,
    finished: Vec<String>,
}

impl Bells {
    pub(super) fn new(server_id: String) -> Self {
        Self {
            arrivals: Notify::new(),
            arrived: AtomicU64::new(0),
            deliveries: Notify::new(),
            finishes: Mutex::default(),
            progress: AuditProgress::shared(),
            is_listening: AtomicBool::new(false),
            to_tell: Mutex::default(),
            something_to_tell: Notify::new(),
            server_id,
        }
    }

    pub(super) fn look_every(&self) -> Duration {
        match self.is_listening.load(Ordering::Relaxed) {
            true => LOOK_EVERY,
            false => LOOK_OFTEN_EVERY,
        }
    }

    /// To be called after the commit.
    pub(super) fn ring(&self, rings: &Rings) {
        let mut to_tell = locked(&self.to_tell);
        match rings {
            Rings::Nobody => return,
            Rings::Leasers => {
                self.ring_arrivals();
                to_tell.arrivals = true;
            }
            Rings::Finished {
                tracking_id,
                and_leasers,
                and_deliverers,
            } => {
                self.ring_finished(tracking_id);
                to_tell.finished.push(tracking_id.clone());
                if *and_deliverers {
                    self.deliveries.notify_waiters();
                    to_tell.finished.push(DELIVERIES.to_owned());
                }
                if *and_leasers {
                    self.ring_arrivals();
                    to_tell.arrivals = true;
                }
            }
        }
        drop(to_tell);
        self.something_to_tell.notify_one();
    }

    fn ring_arrivals(&self) {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        self.arrivals.notify_waiters();
    }

    fn ring_finished(&self, tracking_id: &str) {
        if let Some(waiting) = locked(&self.finishes).get(tracking_id) {
            waiting.notify_waiters();
        }
    }

    /// Something may have been missed.
    fn ring_all(&self) {
        for waiting in locked(&self.finishes).values() {
            waiting.notify_waiters();
        }
        self.deliveries.notify_waiters();
        self.ring_arrivals();
    }

    fn heard(&self, message: &str) {
        let mut lines = message.lines();
        if lines.next() == Some(&self.server_id) {
            return;
        }
        if lines.next() == Some(ARRIVALS) {
            self.ring_arrivals();
        }
        lines.for_each(|line| match line {
            DELIVERIES => self.deliveries.notify_waiters(),
            TELL_AGAIN => self.progress.resend(),
            line => match line.split_once(' ') {
                Some((tracking_id, ENDED)) => self.progress.receive(tracking_id, None),
                Some((tracking_id, phase)) => self.progress.receive(tracking_id, Some(phase)),
                None => {
                    self.ring_finished(line);
                    self.progress.receive(line, None);
                }
            },
        });
    }

    /// Something may have been missed of what others say about how far audits are.
    fn ask_for_progress(&self) {
        self.progress.discard_remote();
        locked(&self.to_tell).finished.push(TELL_AGAIN.to_owned());
        self.something_to_tell.notify_one();
    }

    pub(super) fn watch(&self, tracking_id: &str) -> Watch<'_> {
        let finish = Arc::clone(
            locked(&self.finishes)
                .entry(tracking_id.to_owned())
                .or_default(),
        );
        Watch {
            bells: self,
            tracking_id: tracking_id.to_owned(),
            finish,
        }
    }
}

const CHANNEL: &str = "plumbline";
const ARRIVALS: &str = "arrivals";
/// Among the ids of finished audits, where servers of the version before take it for one. So do they with these, and
/// with an id and the phase that its audit has reached.
const DELIVERIES: &str = "deliveries";
const TELL_AGAIN: &str = "progress?";
/// In place of a phase.
const ENDED: &str = "-";
/// What happens within this goes into one message: others hear of it a little later, and are woken for many
/// things at once. Whoever waits here is not kept waiting.
const TELL_AFTER: Duration = Duration::from_millis(10);

/// Waits for one audit's end; the last to go takes the bell down.
pub(super) struct Watch<'a> {
    bells: &'a Bells,
    tracking_id: String,
    pub(super) finish: Arc<Notify>,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut finishes = locked(&self.bells.finishes);
        // The map's and this one.
        if Arc::strong_count(&self.finish) == 2 {
            finishes.remove(&self.tracking_id);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is kept is whole after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells other servers, for ever.
pub(super) async fn tell(bells: Arc<Bells>, connections: Arc<Connections>) {
    loop {
        tokio::select! {
            () = bells.something_to_tell.notified() => {}
            () = bells.progress.wait_for_unsent() => {}
        }
        sleep(TELL_AFTER).await;
        let ToTell {
            arrivals,
            mut finished,
        } = mem::take(&mut *locked(&bells.to_tell));
        let progress = bells.progress.take_unsent().into_iter();
        finished.extend(progress.map(|(tracking_id, phase)| {
            format!("{tracking_id} {}", phase.as_deref().unwrap_or(ENDED))
        }));
        let mut parts: Vec<&[String]> = finished.chunks(IDS_PER_NOTIFY).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        for ids in parts {
            let kind = if arrivals { ARRIVALS } else { "" };
            let message = format!("{}\n{kind}\n{}", bells.server_id, ids.join("\n"));
            let told = connections.read(|db| {
                Box::pin(async move {
                    change(db, "SELECT pg_notify($1, $2)", &[&CHANNEL, &message]).await
                })
            });
            if let Err(error) = told.await {
                tracing::warn!(%error, "other servers could not be told; they will look by themselves");
            }
        }
    }
}

/// Hears other servers, for ever.
pub(super) async fn listen(bells: Arc<Bells>, connections: Arc<Connections>) {
    loop {
        let ended = listen_once(&bells, &connections).await;
        if bells.is_listening.swap(false, Ordering::Relaxed) {
            let reason = ended.err().map(|error| error.to_string());
            tracing::warn!(reason, "other servers are not heard for now");
        }
        bells.ring_all();
        sleep(RECONNECT_AFTER).await;
    }
}

async fn listen_once(bells: &Bells, connections: &Connections) -> Result<(), StoreError> {
    let connecting = connections.config.connect(connections.tls.clone());
    let (client, mut connection) = connecting.await?;
    let hear = async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(told) = message? {
                bells.heard(told.payload());
            }
        }
        Ok(())
    };
    let keep_asking = async {
        client.batch_execute("LISTEN plumbline").await?;
        bells.is_listening.store(true, Ordering::Relaxed);
        bells.ring_all();
        bells.ask_for_progress();
        loop {
            sleep(ASK_EVERY).await;
            match timeout(ASK_EVERY, client.batch_execute("SELECT 1")).await {
                Ok(answer) => answer?,
                Err(_) => return Err(StoreError::Backend("no answer".to_owned())),
            }
        }
    };
    tokio::select! {
        ended = hear => ended,
        ended = keep_asking => ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard_by_others_and_not_by_oneself() {
        let bells = Bells::new("me".to_owned());
        let watch = bells.watch("trk_1");
        let mut finish = Box::pin(watch.finish.notified());
        finish.as_mut().enable();
        bells.heard("me\narrivals\ntrk_1");
        assert_eq!(bells.arrived.load(Ordering::SeqCst), 0);
        assert!(!finish.as_mut().enable());
        bells.heard("other\narrivals\ntrk_0\ntrk_1");
        assert_eq!(bells.arrived.load(Ordering::SeqCst), 1);
        assert!(finish.as_mut().enable());
    }

    #[test]
    fn how_far_an_audit_is_is_heard_until_it_is_finished() {
        let bells = Bells::new("me".to_owned());
        bells.heard("other\n\ntrk_1 loading\ntrk_2 judging\ntrk_2 -");
        assert_eq!(bells.progress.phase("trk_1").as_deref(), Some("loading"));
        assert_eq!(bells.progress.phase("trk_2"), None);
        bells.heard("other\n\ntrk_1");
        assert_eq!(bells.progress.phase("trk_1"), None);
        bells.progress.record_phase("trk_3", "loading");
        assert_eq!(bells.progress.take_unsent().len(), 1);
        bells.heard("other\n\nprogress?");
        assert_eq!(bells.progress.take_unsent().len(), 1);
    }

    #[test]
    fn nobody_who_has_gone_is_kept() {
        let bells = Bells::new("me".to_owned());
        let (one, two) = (bells.watch("trk_1"), bells.watch("trk_1"));
        drop(one);
        assert_eq!(locked(&bells.finishes).len(), 1);
        drop(two);
        assert!(locked(&bells.finishes).is_empty());
    }
}
