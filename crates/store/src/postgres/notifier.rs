//! Wakes waiting tasks: in this process at once, in other servers through NOTIFY.
//!
//! A server that dies between its commit and its NOTIFY, or a lost connection, wakes nobody.
//! Therefore waiting tasks also poll.

use std::collections::HashMap;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_postgres::AsyncMessage;

use super::connect::{Connections, change};
use crate::{AuditProgress, StoreError};

/// Interval of polling while notifications of other servers are received.
const POLL_INTERVAL: Duration = Duration::from_secs(15);
/// Interval of polling while they are not.
const FAST_POLL_INTERVAL: Duration = Duration::from_secs(1);

const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// Interval of probes on the listening connection, which may be dead without notice.
const PROBE_INTERVAL: Duration = Duration::from_secs(20);
/// Maximum number of lines in a NOTIFY, which carries less than 8,000 bytes. A tracking id with a
/// phase has up to 150.
const LINES_PER_NOTIFY: usize = 50;

/// The tasks to wake after a write.
#[derive(Debug, Clone)]
pub(super) enum Wakeup {
    None,
    /// Tasks that wait for an audit to lease.
    Leasers,
    /// Tasks that wait for the end of this audit.
    Finished {
        tracking_id: String,
        /// Whether the account may get another lease now.
        and_leasers: bool,
        /// Whether a webhook is due.
        and_deliverers: bool,
    },
}

/// Notifies waiting tasks of this server, and collects messages for other servers.
pub(super) struct Notifier {
    pub(super) arrivals: Notify,
    /// The number of notifications of `arrivals`.
    pub(super) arrival_count: AtomicU64,
    pub(super) deliveries: Notify,
    /// Notified when an audit is finished, by tracking id.
    finishes: Mutex<HashMap<String, Arc<Notify>>>,
    /// The progress of audits, which is sent to other servers.
    pub(super) progress: AuditProgress,
    /// Whether notifications of other servers are received.
    pub(super) is_listening: AtomicBool,
    unsent: Mutex<UnsentMessage>,
    has_unsent: Notify,
    /// The sender of this server's messages, which it ignores itself.
    server_id: String,
}

#[derive(Default)]
struct UnsentMessage {
    arrivals: bool,
    lines: Vec<String>,
}

impl Notifier {
    pub(super) fn new(server_id: String) -> Self {
        Self {
            arrivals: Notify::new(),
            arrival_count: AtomicU64::new(0),
            deliveries: Notify::new(),
            finishes: Mutex::default(),
            progress: AuditProgress::shared(),
            is_listening: AtomicBool::new(false),
            unsent: Mutex::default(),
            has_unsent: Notify::new(),
            server_id,
        }
    }

    pub(super) fn poll_interval(&self) -> Duration {
        if self.is_listening.load(Ordering::Relaxed) {
            POLL_INTERVAL
        } else {
            FAST_POLL_INTERVAL
        }
    }

    /// Wakes waiting tasks on all servers. Must be called after the commit.
    pub(super) fn notify(&self, wakeup: &Wakeup) {
        let mut unsent = self.unsent.lock();
        match wakeup {
            Wakeup::None => return,
            Wakeup::Leasers => {
                self.notify_arrival();
                unsent.arrivals = true;
            }
            Wakeup::Finished {
                tracking_id,
                and_leasers,
                and_deliverers,
            } => {
                self.notify_finished(tracking_id);
                unsent.lines.push(tracking_id.clone());
                if *and_deliverers {
                    self.deliveries.notify_waiters();
                    unsent.lines.push(DELIVERIES.to_owned());
                }
                if *and_leasers {
                    self.notify_arrival();
                    unsent.arrivals = true;
                }
            }
        }
        drop(unsent);
        self.has_unsent.notify_one();
    }

    fn notify_arrival(&self) {
        self.arrival_count.fetch_add(1, Ordering::SeqCst);
        self.arrivals.notify_waiters();
    }

    fn notify_finished(&self, tracking_id: &str) {
        if let Some(finish) = self.finishes.lock().get(tracking_id) {
            finish.notify_waiters();
        }
    }

    /// Wakes all waiting tasks, because notifications may have been missed.
    fn notify_all(&self) {
        for finish in self.finishes.lock().values() {
            finish.notify_waiters();
        }
        self.deliveries.notify_waiters();
        self.notify_arrival();
    }

    /// Handles a message of another server.
    fn receive(&self, message: &str) {
        let mut lines = message.lines();
        if lines.next() == Some(&self.server_id) {
            return;
        }
        if lines.next() == Some(ARRIVALS) {
            self.notify_arrival();
        }
        lines.for_each(|line| match line {
            DELIVERIES => self.deliveries.notify_waiters(),
            REQUEST_PROGRESS => self.progress.resend(),
            line => match line.split_once(' ') {
                Some((tracking_id, ENDED)) => self.progress.receive(tracking_id, None),
                Some((tracking_id, phase)) => self.progress.receive(tracking_id, Some(phase)),
                None => {
                    self.notify_finished(line);
                    self.progress.receive(line, None);
                }
            },
        });
    }

    /// Requests the progress of audits from other servers, because changes may have been missed.
    fn request_progress(&self) {
        self.progress.discard_remote();
        self.unsent.lock().lines.push(REQUEST_PROGRESS.to_owned());
        self.has_unsent.notify_one();
    }

    pub(super) fn watch(&self, tracking_id: &str) -> Watch<'_> {
        let finish = Arc::clone(
            self.finishes
                .lock()
                .entry(tracking_id.to_owned())
                .or_default(),
        );
        Watch {
            notifier: self,
            tracking_id: tracking_id.to_owned(),
            finish,
        }
    }
}

const CHANNEL: &str = "plumbline";
const ARRIVALS: &str = "arrivals";
/// A line among the tracking ids of finished audits. Servers of the previous version take it for an
/// id, as they do with `REQUEST_PROGRESS` and with a tracking id followed by a phase.
const DELIVERIES: &str = "deliveries";
const REQUEST_PROGRESS: &str = "progress?";
/// Sent in place of a phase when an audit has ended.
const ENDED: &str = "-";
/// Time during which events are collected into one message. Other servers are notified a little
/// later, and fewer times; tasks of this server are not delayed.
const SEND_DELAY: Duration = Duration::from_millis(10);

/// A subscription to the end of one audit. Dropping the last one removes its entry.
pub(super) struct Watch<'a> {
    notifier: &'a Notifier,
    tracking_id: String,
    pub(super) finish: Arc<Notify>,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut finishes = self.notifier.finishes.lock();
        // The references of the map and of this subscription.
        if Arc::strong_count(&self.finish) == 2 {
            finishes.remove(&self.tracking_id);
        }
    }
}

/// Sends messages to other servers, without end.
pub(super) async fn send(notifier: Arc<Notifier>, connections: Arc<Connections>) {
    loop {
        tokio::select! {
            () = notifier.has_unsent.notified() => {}
            () = notifier.progress.wait_for_unsent() => {}
        }
        sleep(SEND_DELAY).await;
        let UnsentMessage {
            arrivals,
            mut lines,
        } = mem::take(&mut *notifier.unsent.lock());
        let progress = notifier.progress.take_unsent().into_iter();
        lines.extend(progress.map(|(tracking_id, phase)| {
            format!("{tracking_id} {}", phase.as_deref().unwrap_or(ENDED))
        }));
        let mut parts: Vec<&[String]> = lines.chunks(LINES_PER_NOTIFY).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        for lines in parts {
            let kind = if arrivals { ARRIVALS } else { "" };
            let message = format!("{}\n{kind}\n{}", notifier.server_id, lines.join("\n"));
            let result = connections
                .read(|db| {
                    Box::pin(async move {
                        change(db, "SELECT pg_notify($1, $2)", &[&CHANNEL, &message]).await
                    })
                })
                .await;
            if let Err(error) = result {
                tracing::warn!(%error, "failed to notify other servers; they will poll");
            }
        }
    }
}

/// Receives messages of other servers, without end.
pub(super) async fn listen(notifier: Arc<Notifier>, connections: Arc<Connections>) {
    loop {
        let result = listen_once(&notifier, &connections).await;
        if notifier.is_listening.swap(false, Ordering::Relaxed) {
            let reason = result.err().map(|error| error.to_string());
            tracing::warn!(
                reason,
                "lost the connection for notifications of other servers"
            );
        }
        notifier.notify_all();
        sleep(RECONNECT_DELAY).await;
    }
}

async fn listen_once(notifier: &Notifier, connections: &Connections) -> Result<(), StoreError> {
    let (client, mut connection) = connections.config.connect(connections.tls.clone()).await?;
    let receive = async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message? {
                notifier.receive(notification.payload());
            }
        }
        Ok(())
    };
    let subscribe_and_probe = async {
        client.batch_execute("LISTEN plumbline").await?;
        notifier.is_listening.store(true, Ordering::Relaxed);
        notifier.notify_all();
        notifier.request_progress();
        loop {
            sleep(PROBE_INTERVAL).await;
            match timeout(PROBE_INTERVAL, client.batch_execute("SELECT 1")).await {
                Ok(result) => result?,
                Err(_) => return Err(StoreError::Backend("probe timed out".to_owned())),
            }
        }
    };
    tokio::select! {
        result = receive => result,
        result = subscribe_and_probe => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_handled_by_other_servers_and_not_by_the_sender() {
        let notifier = Notifier::new("me".to_owned());
        let watch = notifier.watch("trk_1");
        let mut finish = Box::pin(watch.finish.notified());
        finish.as_mut().enable();
        notifier.receive("me\narrivals\ntrk_1");
        assert_eq!(notifier.arrival_count.load(Ordering::SeqCst), 0);
        assert!(!finish.as_mut().enable());
        notifier.receive("other\narrivals\ntrk_0\ntrk_1");
        assert_eq!(notifier.arrival_count.load(Ordering::SeqCst), 1);
        assert!(finish.as_mut().enable());
    }

    #[test]
    fn progress_of_other_servers_is_known_until_the_audit_is_finished() {
        let notifier = Notifier::new("me".to_owned());
        notifier.receive("other\n\ntrk_1 loading\ntrk_2 judging\ntrk_2 -");
        assert_eq!(notifier.progress.phase("trk_1").as_deref(), Some("loading"));
        assert_eq!(notifier.progress.phase("trk_2"), None);
        notifier.receive("other\n\ntrk_1");
        assert_eq!(notifier.progress.phase("trk_1"), None);
        notifier.progress.record_phase("trk_3", "loading");
        assert_eq!(notifier.progress.take_unsent().len(), 1);
        notifier.receive("other\n\nprogress?");
        assert_eq!(notifier.progress.take_unsent().len(), 1);
    }

    #[test]
    fn the_entry_of_an_audit_is_removed_with_its_last_watch() {
        let notifier = Notifier::new("me".to_owned());
        let (one, two) = (notifier.watch("trk_1"), notifier.watch("trk_1"));
        drop(one);
        assert_eq!(notifier.finishes.lock().len(), 1);
        drop(two);
        assert!(notifier.finishes.lock().is_empty());
    }
}
