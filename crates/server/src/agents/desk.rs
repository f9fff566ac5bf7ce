//! Where audits are handed out and reports handed in, whoever does the work: the agent inside this
//! process and agents elsewhere go through the same steps.
//!
//! Nothing here outlives a request but what may be lost: who holds what is in the store, so any
//! server can take the next step.

use std::collections::HashMap;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plumbline_engine::report::Report;
use plumbline_report::html::Phase;
use plumbline_seam::Evidence;
use plumbline_store::{
    AgentBounds, AgentPresence, AgentRecord, AgentStore, AttemptBlob, AttemptState, AuditError,
    Blobs, FinishedAudit, Hold, Lease, LeaseScope, ReleaseReason, SlotLimit, Store, StoreError,
    Timestamp,
};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::confirmation::Unconfirmed;
use super::places::may_take;
use super::polls::{Poll, Polls};
use super::report_room::ReportRoom;
use super::roll::Roll;
use crate::{AuditFigures, Clock, Metrics, Phases};

/// How an agent inside a server signs its leases. One server runs on a data directory at a time,
/// so a lease signed like this by anybody else belongs to a process that is dead.
pub const EMBEDDED: &str = "embedded-";

/// Outlives three missed heartbeats.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// Of those who wait for the same audits, so many are woken by one: each takes a write.
const WOKEN_AT_ONCE: usize = 8;
/// What this side does about an audit while an agent visits its page, whichever agent that is.
pub trait Beside: Send + Sync + 'static {
    /// The audit was handed out. Must not block.
    fn leased(&self, lease: &Lease);

    /// Its page's document is there, at this address, redirects behind it. Must not block.
    fn arrived(&self, _tracking_id: &str, _device: &str, _url: &str) {}

    /// Its report is about to be kept: adds what was found meanwhile. Another server may have handed
    /// the audit out. Asked again, with the report as it was, when the store could not keep it.
    fn finishing(&self, lease: &Lease, report: &mut Report);

    /// The attempt is over, its report kept or refused.
    fn finished(&self, lease: &Lease);
}

/// What a desk hands out from and keeps things in.
pub struct DeskParts {
    pub store: Arc<dyn Store>,
    pub agents: Arc<dyn AgentStore>,
    /// Evidence, by attempt.
    pub bundles: Arc<dyn Blobs>,
    /// What pages show beside a report, by attempt.
    pub media: Arc<dyn Blobs>,
    pub phases: Phases,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
    /// How long an agent may be silent before its audit is given to another.
    pub lease: Duration,
    /// Every location that can be asked for.
    pub locations: Vec<String>,
    /// Whether agents elsewhere may simulate a location at which nobody stands.
    pub simulate: bool,
    pub beside: Vec<Arc<dyn Beside>>,
}

pub struct Desk {
    parts: DeskParts,
    roll: Roll,
    turns: Mutex<HashMap<Option<Vec<String>>, Arc<Semaphore>>>,
    polls: Arc<Polls>,
    pub(super) unconfirmed: Unconfirmed,
    pub(super) reports: ReportRoom,
}

/// A slot that asks for work.
#[derive(Debug, Clone)]
pub struct Asker {
    pub agent: AgentPresence,
    pub slot: u32,
    /// What it may take; everything where it has no token, inside a server.
    pub scope: Option<TokenScope>,
}

/// A token's bounds, and to which processes together they apply.
#[derive(Debug, Clone)]
pub struct TokenScope {
    /// What the names of the token's processes begin with.
    pub processes: String,
    pub bounds: AgentBounds,
}

impl Asker {
    fn owner(&self) -> String {
        format!("{}/{}", self.agent.process, self.slot)
    }
}

impl Desk {
    pub fn new(parts: DeskParts) -> Self {
        let (agents, clock) = (Arc::clone(&parts.agents), Arc::clone(&parts.clock));
        Self {
            roll: Roll::new(agents, clock, parts.lease),
            parts,
            turns: Mutex::default(),
            polls: Arc::default(),
            unconfirmed: Unconfirmed::default(),
            reports: ReportRoom::default(),
        }
    }

    pub fn lease_for(&self) -> Duration {
        self.parts.lease
    }

    /// Often enough that three may be missed.
    pub fn heartbeat_every(&self) -> Duration {
        self.parts.lease / 4
    }

    /// The next audit for this slot, waiting up to `at_most` for one.
    ///
    /// A slot does one audit at a time. One that it still holds is one that it never heard of, or
    /// has given up: it goes back to its place in the queue first.
    pub async fn lease(
        &self,
        asker: &Asker,
        at_most: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let poll = self.poll(asker);
        self.leave(asker).await?;
        self.next(asker, &poll, at_most, std::future::pending())
            .await
    }

    /// A request for work: from now on the slot's earlier ones get nothing.
    pub(crate) fn poll(&self, asker: &Asker) -> Poll {
        self.polls.begin(asker.owner())
    }

    /// As [`Desk::lease`], for a slot that is known to hold nothing. Waits no longer once it is `over`; but whoever drops this
    /// instead may drop a lease that is just being made, and that nobody then knows of.
    pub(crate) async fn next(
        &self,
        asker: &Asker,
        poll: &Poll,
        at_most: Duration,
        over: impl Future<Output = ()>,
    ) -> Result<Option<Lease>, StoreError> {
        let mut over = pin!(over);
        let deadline = Instant::now() + at_most;
        let owner = asker.owner();
        loop {
            self.see(&asker.agent).await?;
            let locations = self.may_take(&asker.agent.location).await?;
            let seat = seat(owner.clone(), locations, asker.scope.as_ref());
            let turns = self.turn(&seat);
            let turn = tokio::select! {
                turn = timeout_at(deadline, turns.acquire()) => turn,
                () = &mut over => return Ok(None),
            };
            let Ok(Ok(_turn)) = turn else {
                return Ok(None);
            };
            if !poll.is_newest() {
                return Ok(None);
            }
            let lease = self.parts.store.lease(&seat, self.now(), self.parts.lease);
            if let Some(lease) = lease.await? {
                if !poll.is_newest() {
                    self.hand_back(&lease, ReleaseReason::Drained).await?;
                    return Ok(None);
                }
                for beside in &self.parts.beside {
                    beside.leased(&lease);
                }
                return Ok(Some(lease));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let look = left.min(self.look_again());
            tokio::select! {
                () = self.parts.store.wait_for_work(&seat, look) => {}
                () = &mut over => return Ok(None),
            }
        }
    }

    /// Puts back what a slot holds that no longer works on anything.
    pub async fn leave(&self, asker: &Asker) -> Result<(), StoreError> {
        let owner = asker.owner();
        for left in self.parts.agents.running(Some(&owner)).await? {
            tracing::warn!(
                audit = left.tracking_id,
                owner,
                "put back: its slot does not work on it"
            );
            self.hand_back(&left, ReleaseReason::Drained).await?;
        }
        Ok(())
    }

    pub async fn heartbeat(&self, lease: &Lease) -> Result<Hold, StoreError> {
        // Later than it was, whatever the clock says: an expiry that has moved is a lease that somebody has confirmed.
        let moved = lease.expires_at.plus(Duration::from_millis(1));
        let until = self.now().plus(self.parts.lease).max(moved);
        self.parts.store.heartbeat(lease, until).await
    }

    /// As if it had never been given: nobody has said that they have it.
    pub(super) async fn take_back_unheard(&self, lease: &Lease) -> Result<Hold, StoreError> {
        // First, so that no other request of who seems to be gone takes it again.
        if let Some((process, _slot)) = lease.owner.rsplit_once('/') {
            self.polls.give_up(process);
        }
        self.hand_back(lease, ReleaseReason::Unconfirmed).await
    }

    /// For who watches; the caller knows that the audit is held.
    pub fn reached(&self, tracking_id: &str, phase: Phase) {
        self.parts.phases.reached(tracking_id, phase);
    }

    /// Of an audit on this device; the caller knows that it is held.
    pub fn arrived(&self, tracking_id: &str, device: &str, url: &str) {
        for beside in &self.parts.beside {
            beside.arrived(tracking_id, device, url);
        }
    }

    /// What became of an attempt that was leased to a process of this name, or one that begins so.
    pub async fn standing(
        &self,
        process: &str,
        tracking_id: &str,
        attempt: u32,
    ) -> Result<AttemptState, StoreError> {
        let standing = self
            .parts
            .agents
            .attempt_state(tracking_id, attempt)
            .await?;
        Ok(match standing {
            AttemptState::Held(lease) if !lease.owner.starts_with(process) => AttemptState::Lost,
            standing => standing,
        })
    }

    /// Before the report, so that a report's evidence is there when the report is.
    ///
    /// The lease may be lost while it is written, and who has finished the audit since then may have cleared up already: so it
    /// is looked at again afterwards. What stays all the same (a crash in between) goes with the audit.
    pub async fn keep(
        &self,
        lease: &Lease,
        kind: Evidence,
        bytes: Vec<u8>,
    ) -> std::io::Result<Hold> {
        let blobs = self.blobs(kind);
        AttemptBlob::from(lease).put(blobs, bytes).await?;
        self.hold_after_keeping(lease, blobs).await
    }

    /// As [`Desk::keep`], from a file, which may be gone afterwards.
    pub(super) async fn keep_file(
        &self,
        lease: &Lease,
        kind: Evidence,
        file: &Path,
    ) -> std::io::Result<Hold> {
        let blobs = self.blobs(kind);
        AttemptBlob::from(lease).put_file(blobs, file).await?;
        self.hold_after_keeping(lease, blobs).await
    }

    fn blobs(&self, kind: Evidence) -> &dyn Blobs {
        match kind {
            Evidence::Bundle => &*self.parts.bundles,
            Evidence::ReportMedia => &*self.parts.media,
        }
    }

    async fn hold_after_keeping(&self, lease: &Lease, blobs: &dyn Blobs) -> std::io::Result<Hold> {
        if !self.is_lost(lease).await {
            return Ok(Hold::Held);
        }
        AttemptBlob::from(lease).remove(blobs).await?;
        Ok(Hold::Lost)
    }

    /// Whether another attempt has taken over, or none will. Not where nobody knows.
    async fn is_lost(&self, lease: &Lease) -> bool {
        let standing = self
            .parts
            .agents
            .attempt_state(&lease.tracking_id, lease.attempt);
        matches!(standing.await, Ok(AttemptState::Lost))
    }

    /// Removes what no report refers to: of the attempts before the one that finished, or of one that was too late. Nobody
    /// waits for it.
    async fn clear_up(&self, lease: &Lease, hold: Hold) {
        let is_there_any = match hold {
            Hold::Held => lease.attempt > 1,
            // Held by nobody is not yet lost: the same attempt may have finished a moment ago.
            Hold::Lost => self.is_lost(lease).await,
        };
        if !is_there_any {
            return;
        }
        let lease = lease.clone();
        for blobs in [&self.parts.bundles, &self.parts.media] {
            let (blobs, lease) = (Arc::clone(blobs), lease.clone());
            tokio::spawn(async move {
                let blob = AttemptBlob::from(&lease);
                let removed = match hold {
                    Hold::Held => blob.remove_earlier(&*blobs).await,
                    Hold::Lost => blob.remove(&*blobs).await,
                };
                if let Err(error) = removed {
                    let audit = &lease.tracking_id;
                    tracing::warn!(audit, %error, "a blob of another attempt could not be removed");
                }
            });
        }
    }

    /// Completes the audit with a report whose evidence has been kept.
    pub async fn finish(&self, lease: &Lease, mut report: Report) -> Result<Hold, StoreError> {
        for beside in &self.parts.beside {
            beside.finishing(lease, &mut report);
        }
        let figures = figures(&report);
        let finished = FinishedAudit {
            report: serde_json::to_string(&report)
                .map_err(|error| StoreError::Backend(format!("no report: {error}")))?,
            error: report.error.map(|failure| AuditError {
                code: failure.code.to_string(),
                // It may quote a page, and PostgreSQL keeps no text with a NUL.
                message: failure.message.replace('\0', "\u{fffd}"),
            }),
            finished_at: self.now(),
        };
        let hold = self.parts.store.finish(lease, finished).await;
        self.parts.phases.ended(&lease.tracking_id);
        let hold = hold?;
        for beside in &self.parts.beside {
            beside.finished(lease);
        }
        if hold == Hold::Held {
            self.parts.metrics.audit_finished(&figures);
        }
        self.clear_up(lease, hold).await;
        Ok(hold)
    }

    pub async fn hand_back(&self, lease: &Lease, why: ReleaseReason) -> Result<Hold, StoreError> {
        match why {
            ReleaseReason::Fault => self.parts.metrics.audit_faulted(),
            ReleaseReason::Drained | ReleaseReason::Unconfirmed => {
                self.parts.metrics.audit_handed_back()
            }
        }
        self.parts.phases.ended(&lease.tracking_id);
        self.unconfirmed.forget(lease);
        self.parts.store.release(lease, why).await
    }

    /// Notes that this agent lives, not more often than it takes to be believed.
    pub async fn see(&self, agent: &AgentPresence) -> Result<(), StoreError> {
        self.roll.see(agent).await
    }

    /// What is stored about a token, as it was a moment ago.
    pub(crate) async fn record(&self, token_id: &str) -> Result<Option<AgentRecord>, StoreError> {
        self.roll.record(token_id).await
    }

    async fn may_take(&self, stands_at: &str) -> Result<Option<Vec<String>>, StoreError> {
        let parts = &self.parts;
        let stood_at = match parts.simulate {
            true => self.roll.stood_at().await?,
            false => Vec::new(),
        };
        Ok(may_take(
            stands_at,
            &parts.locations,
            &stood_at,
            parts.simulate,
        ))
    }

    fn turn(&self, seat: &LeaseScope) -> Arc<Semaphore> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // Places come and go; what nobody waits at is made anew when somebody does.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        let turn = turns.entry(seat.locations.clone());
        Arc::clone(turn.or_insert_with(|| Arc::new(Semaphore::new(WOKEN_AT_ONCE))))
    }

    /// How often who waits looks for what nobody tells: expired leases, other processes' audits.
    fn look_again(&self) -> Duration {
        let (least, most) = (Duration::from_millis(250), Duration::from_secs(5));
        (self.parts.lease / 6).clamp(least, most)
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.parts.clock)()
    }
}

/// From where a slot leases: what it may take by its location, within what its token allows.
fn seat(owner: String, locations: Option<Vec<String>>, scope: Option<&TokenScope>) -> LeaseScope {
    let Some(TokenScope { processes, bounds }) = scope else {
        return LeaseScope {
            owner,
            locations,
            slots: None,
        };
    };
    let allowed = |free: Vec<String>| {
        free.into_iter()
            .filter(|place| bounds.allows_location(place))
    };
    LeaseScope {
        owner,
        locations: match locations {
            Some(free) => Some(allowed(free).collect()),
            None => bounds.locations.clone(),
        },
        slots: bounds.slots.map(|at_most| SlotLimit {
            owner_prefix: processes.clone(),
            max_leases: at_most,
        }),
    }
}

fn figures(report: &Report) -> AuditFigures {
    let cpu = &report.conditions.cpu;
    let outcome = report.error.as_ref().map(|error| error.code.to_string());
    AuditFigures {
        outcome: outcome.unwrap_or_else(|| "measured".to_owned()),
        phases: report
            .timings
            .iter()
            .map(|timing| {
                // What came over the wire may be any number.
                let seconds = Duration::try_from_secs_f64(timing.ms.max(0.0) / 1000.0);
                (
                    timing.phase.as_str().to_owned(),
                    seconds.unwrap_or_default(),
                )
            })
            .collect(),
        contention: cpu.contention.map(|contention| contention.share),
        visits: cpu.visits,
    }
}
