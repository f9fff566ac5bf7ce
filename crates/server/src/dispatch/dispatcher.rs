//! Leases audits to agents and accepts their reports. The agent inside this process and agents on
//! other machines take the same steps.
//!
//! Only state that may be lost is kept in memory between requests: leases are in the store, so any
//! server can take the next step of an audit.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plumbline_bundle::Phase;
use plumbline_model::report::Report;
use plumbline_model::summary::ReportSummary;
use plumbline_seam::{LeaseState, MadeSession, ReturnReason, VisitNumber};
use plumbline_store::{
    AgentBounds, AgentPresence, AgentRecord, AgentStore, AttemptState, AuditError, Blobs,
    FinishedAudit, Lease, LeaseOwner, LeaseScope, ProcessSet, ReleaseReason, SlotLimit, Store,
    StoreError, Timestamp,
};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::confirmation::Unconfirmed;
use super::locations::leasable_locations;
use super::polls::{Poll, Polls};
use super::registry::AgentRegistry;
use super::report_memory::ReportMemory;
use crate::{
    metrics::{AuditFigures, Metrics},
    phases::AuditPhases,
    summaries,
    time::Clock,
    vault::Vault,
};

/// The default duration of a lease, which is longer than three missed heartbeats.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// How many of the polls that wait for the same audits try to lease at the same time: each attempt
/// is a write.
const CONCURRENT_LEASES: usize = 8;

/// Observes audits that are performed by any agent.
pub trait AuditObserver: Send + Sync + 'static {
    /// Called when the audit was leased. Must not block.
    fn on_lease(&self, lease: &Lease);

    /// Called when the page's document has been received from this URL, after redirects. Must not
    /// block.
    fn on_document(&self, _tracking_id: &str, _device: &str, _url: &str) {}

    /// Called before the report is stored, to add data to it. Another server may have leased the
    /// audit. Called again with the original report if the store fails.
    fn before_finish(&self, lease: &Lease, report: &mut Report);

    /// Called when the attempt is over, whether its report was stored or refused.
    fn on_finish(&self, lease: &Lease);
}

/// The dependencies and settings of a [`Dispatcher`].
pub struct DispatcherParts {
    /// The queue of audits.
    pub store: Arc<dyn Store>,
    /// The presence of agents.
    pub agents: Arc<dyn AgentStore>,
    /// Evidence, by attempt.
    pub bundles: Arc<dyn Blobs>,
    /// The media of report pages, by attempt.
    pub media: Arc<dyn Blobs>,
    /// The phases of running audits.
    pub phases: AuditPhases,
    /// The counters that `/metrics` shows.
    pub metrics: Arc<Metrics>,
    /// The current time.
    pub clock: Clock,
    /// How long an agent may be silent before its audit is given to another.
    pub lease: Duration,
    /// The ids of all locations in the catalog.
    pub locations: Vec<String>,
    /// Whether agents may simulate a location at which no agent is active.
    pub simulate: bool,
    /// The secrets of clients; `None` if the server has no key for them.
    pub vault: Option<Arc<Vault>>,
    /// The observers of all audits.
    pub observers: Vec<Arc<dyn AuditObserver>>,
}

/// Leases audits to agents and accepts their reports.
pub struct Dispatcher {
    pub(super) parts: DispatcherParts,
    registry: AgentRegistry,
    /// Limits concurrent attempts to lease, by the locations that may be leased.
    lease_permits: Mutex<HashMap<Option<Vec<String>>, Arc<Semaphore>>>,
    polls: Arc<Polls>,
    pub(super) unconfirmed: Unconfirmed,
    /// The memory for reports that are being received.
    pub(crate) report_memory: ReportMemory,
}

/// A slot of an agent that requests work.
#[derive(Debug, Clone)]
pub struct AgentSlot {
    /// The agent to which the slot belongs.
    pub agent: AgentPresence,
    /// The number of the slot within the agent, from 0.
    pub index: u32,
    /// The scope of the token; `None` inside a server, where an agent has no token and no bounds.
    pub scope: Option<TokenScope>,
}

/// The bounds of a token, and the processes to which they apply together.
#[derive(Debug, Clone)]
pub struct TokenScope {
    /// The id of the token.
    pub token_id: String,
    /// The locations and slots that the token allows.
    pub bounds: AgentBounds,
}

impl AgentSlot {
    /// Returns the slot as the owner of leases.
    fn owner(&self) -> LeaseOwner {
        LeaseOwner {
            process: self.agent.process.clone(),
            slot: self.index,
        }
    }
}

impl Dispatcher {
    /// Creates a dispatcher.
    pub fn new(parts: DispatcherParts) -> Self {
        let (agents, clock) = (Arc::clone(&parts.agents), Arc::clone(&parts.clock));
        Self {
            registry: AgentRegistry::new(agents, clock, parts.lease),
            parts,
            lease_permits: Mutex::default(),
            polls: Arc::default(),
            unconfirmed: Unconfirmed::default(),
            report_memory: ReportMemory::default(),
        }
    }

    /// The duration of a lease.
    pub fn lease_duration(&self) -> Duration {
        self.parts.lease
    }

    /// The interval of heartbeats: short enough that three may be missed.
    pub fn heartbeat_interval(&self) -> Duration {
        self.parts.lease / 4
    }

    /// Leases the next audit to this slot, and waits up to `at_most` for one.
    ///
    /// A slot performs one audit at a time. If it still holds one, it never received it or has
    /// given it up, so that audit first goes back to its position in the queue.
    pub async fn lease(
        &self,
        slot: &AgentSlot,
        at_most: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let poll = self.begin_poll(slot);
        self.release_slot(slot).await?;
        self.lease_next(slot, &poll, at_most, std::future::pending())
            .await
    }

    /// Registers a request for work. Earlier requests of the slot get no work from now on.
    pub(crate) fn begin_poll(&self, slot: &AgentSlot) -> Poll {
        self.polls.begin(slot.owner())
    }

    /// Leases the next audit to a slot that holds none, and waits up to `at_most` for one.
    ///
    /// Stop waiting by completing `cancelled`. Dropping the returned future instead may drop a
    /// lease that is just being made, which then blocks its audit until it expires.
    pub(crate) async fn lease_next(
        &self,
        slot: &AgentSlot,
        poll: &Poll,
        at_most: Duration,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Option<Lease>, StoreError> {
        let mut cancelled = pin!(cancelled);
        let deadline = Instant::now() + at_most;
        let owner = slot.owner();
        loop {
            self.record_presence(&slot.agent).await?;
            let locations = self.leasable_locations(&slot.agent.location).await?;
            let scope = lease_scope(owner.clone(), locations, slot.scope.as_ref());
            let permits = self.lease_permits(&scope);
            let permit = tokio::select! {
                permit = timeout_at(deadline, permits.acquire()) => permit,
                () = &mut cancelled => return Ok(None),
            };
            let Ok(Ok(_permit)) = permit else {
                return Ok(None);
            };
            if !poll.is_newest() {
                return Ok(None);
            }
            let leasing = self.parts.store.lease(&scope, self.now(), self.parts.lease);
            if let Some(lease) = leasing.await? {
                if !poll.is_newest() {
                    self.release(&lease, ReleaseReason::Returned(ReturnReason::Drained))
                        .await?;
                    return Ok(None);
                }
                for observer in &self.parts.observers {
                    observer.on_lease(&lease);
                }
                return Ok(Some(lease));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let wait = left.min(self.poll_interval());
            tokio::select! {
                () = self.parts.store.wait_for_work(&scope, wait) => {}
                () = &mut cancelled => return Ok(None),
            }
        }
    }

    /// Hands back every audit that a slot holds but does not work on.
    pub async fn release_slot(&self, slot: &AgentSlot) -> Result<(), StoreError> {
        let owner = slot.owner();
        for lease in self.parts.agents.running(Some(&owner)).await? {
            tracing::warn!(
                audit = lease.tracking_id,
                %owner,
                "audit returned to the queue: its slot is not working on it"
            );
            self.release(&lease, ReleaseReason::Returned(ReturnReason::Drained))
                .await?;
        }
        Ok(())
    }

    /// Extends a lease.
    pub async fn heartbeat(&self, lease: &Lease) -> Result<LeaseState, StoreError> {
        // The expiry always moves forward, whatever the clock says: a moved expiry marks a lease as
        // confirmed.
        let moved = lease.expires_at.plus(Duration::from_millis(1));
        let until = self.now().plus(self.parts.lease).max(moved);
        self.parts.store.heartbeat(lease, until).await
    }

    /// Hands back an audit that was not confirmed, as if it had never been leased.
    pub(super) async fn release_unconfirmed(
        &self,
        lease: &Lease,
    ) -> Result<LeaseState, StoreError> {
        // The polls come first, so that no other poll of the vanished process leases it again.
        self.polls.invalidate(&lease.owner.process);
        self.release(lease, ReleaseReason::Unconfirmed).await
    }

    /// Records the phase of an audit and its visit, if that is known. The caller has checked that
    /// the lease is held.
    pub(crate) fn record_phase(&self, tracking_id: &str, phase: Phase, visit: Option<VisitNumber>) {
        let phases = &self.parts.phases;
        phases.record(tracking_id, phase, visit, self.now());
    }

    /// Records the URL of the document that an audit on this device measures.
    pub(crate) fn record_document(&self, tracking_id: &str, device: &str, url: &str) {
        for observer in &self.parts.observers {
            observer.on_document(tracking_id, device, url);
        }
    }

    /// Returns the state of an attempt; one that none of these processes holds counts as lost.
    pub async fn attempt_state(
        &self,
        processes: &ProcessSet,
        tracking_id: &str,
        attempt: u32,
    ) -> Result<AttemptState, StoreError> {
        let state = self
            .parts
            .agents
            .attempt_state(tracking_id, attempt)
            .await?;
        Ok(match state {
            AttemptState::Held(lease) if !processes.contains(&lease.owner.process) => {
                AttemptState::Lost
            }
            state => state,
        })
    }

    /// Finishes an attempt that is in this state. Doing so again for a finished attempt succeeds,
    /// because the first response may have been lost.
    pub(crate) async fn finish_attempt(
        &self,
        state: AttemptState,
        report: Report,
        session: Option<&MadeSession>,
    ) -> Result<LeaseState, StoreError> {
        match state {
            AttemptState::Held(lease) => {
                let state = self.finish(&lease, report).await?;
                if let (LeaseState::Held, Some(session)) = (state, session) {
                    self.keep_session(&lease, session).await;
                }
                Ok(state)
            }
            AttemptState::Finished => Ok(LeaseState::Held),
            AttemptState::Lost => Ok(LeaseState::Lost),
        }
    }

    /// Completes the audit with a report whose evidence has been stored.
    pub async fn finish(
        &self,
        lease: &Lease,
        mut report: Report,
    ) -> Result<LeaseState, StoreError> {
        for observer in &self.parts.observers {
            observer.before_finish(lease, &mut report);
        }
        let mut figures = figures(&report);
        if report.error.is_none() {
            figures.run_duration = self.run_duration(lease);
        }
        let summary = summaries::stored(&ReportSummary::from(&report))
            .map_err(|error| StoreError::Backend(format!("cannot serialize summary: {error}")))?;
        let finished = FinishedAudit {
            report: report.to_json().map_err(|error| {
                StoreError::Backend(format!("cannot serialize report: {error}"))
            })?,
            error: report.error.map(|failure| AuditError {
                code: failure.code.to_string(),
                // The message may quote a page, and PostgreSQL stores no text with a NUL.
                message: failure.message.replace('\0', "\u{fffd}"),
            }),
            finished_at: self.now(),
            summary: Some(summary),
        };
        let finishing = self.parts.store.finish(lease, finished).await;
        self.parts.phases.remove(&lease.tracking_id);
        let state = finishing?;
        for observer in &self.parts.observers {
            observer.on_finish(lease);
        }
        if state == LeaseState::Held {
            self.parts.metrics.audit_finished(&figures);
        }
        self.remove_unused_evidence(lease, state).await;
        Ok(state)
    }

    /// Returns the duration of a run of the current attempt until now, if it is known.
    fn run_duration(&self, lease: &Lease) -> Option<Duration> {
        let current = self.parts.phases.current(&lease.tracking_id)?;
        let elapsed_ms = self.now().0.checked_sub(current.started_at?.0)?;
        let elapsed = Duration::from_millis(elapsed_ms.try_into().ok()?);
        elapsed.checked_div(lease.runs)
    }

    /// Returns an audit to the queue.
    pub async fn release(
        &self,
        lease: &Lease,
        reason: ReleaseReason,
    ) -> Result<LeaseState, StoreError> {
        match reason {
            ReleaseReason::Returned(ReturnReason::Fault) => self.parts.metrics.audit_faulted(),
            ReleaseReason::Returned(ReturnReason::Drained) | ReleaseReason::Unconfirmed => {
                self.parts.metrics.audit_handed_back()
            }
        }
        self.parts.phases.remove(&lease.tracking_id);
        self.unconfirmed.remove(lease);
        self.parts.store.release(lease, reason).await
    }

    /// Records that this agent is active, but no more often than needed to keep it listed.
    pub async fn record_presence(&self, agent: &AgentPresence) -> Result<(), StoreError> {
        self.registry.record_presence(agent).await
    }

    /// Returns the record of a token, which may be a moment old.
    pub(crate) async fn record(&self, token_id: &str) -> Result<Option<AgentRecord>, StoreError> {
        self.registry.record(token_id).await
    }

    async fn leasable_locations(
        &self,
        agent_location: &str,
    ) -> Result<Option<Vec<String>>, StoreError> {
        let parts = &self.parts;
        let active_locations = if parts.simulate {
            self.registry.active_locations().await?
        } else {
            Vec::new()
        };
        Ok(leasable_locations(
            agent_location,
            &parts.locations,
            &active_locations,
            parts.simulate,
        ))
    }

    fn lease_permits(&self, scope: &LeaseScope) -> Arc<Semaphore> {
        let mut permits = self.lease_permits.lock();
        // Semaphores that no poll uses are removed; they are created again when needed.
        permits.retain(|_, permits| Arc::strong_count(permits) > 1);
        let entry = permits.entry(scope.locations.clone());
        Arc::clone(entry.or_insert_with(|| Arc::new(Semaphore::new(CONCURRENT_LEASES))))
    }

    /// How often a waiting poll looks for work that is not announced: expired leases, and audits of
    /// other processes.
    fn poll_interval(&self) -> Duration {
        let (min, max) = (Duration::from_millis(250), Duration::from_secs(5));
        (self.parts.lease / 6).clamp(min, max)
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.parts.clock)()
    }
}

/// Returns what a slot may lease: the audits of these locations, within the bounds of its token.
fn lease_scope(
    owner: LeaseOwner,
    locations: Option<Vec<String>>,
    token_scope: Option<&TokenScope>,
) -> LeaseScope {
    let Some(TokenScope { token_id, bounds }) = token_scope else {
        return LeaseScope {
            owner,
            locations,
            slots: None,
        };
    };
    LeaseScope {
        owner,
        locations: match locations {
            Some(mut locations) => {
                locations.retain(|location| bounds.allows_location(location));
                Some(locations)
            }
            None => bounds.locations.clone(),
        },
        slots: bounds.slots.map(|max_leases| SlotLimit {
            token_id: token_id.clone(),
            max_leases,
        }),
    }
}

/// Returns a duration as a message states it.
pub(crate) fn whole_ms(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
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
                // The agent's message may contain any number.
                let seconds = Duration::try_from_secs_f64(timing.ms.max(0.0) / 1000.0);
                (
                    timing.phase.as_str().to_owned(),
                    seconds.unwrap_or_default(),
                )
            })
            .collect(),
        contention: cpu.contention.map(|contention| contention.share),
        cpu_emulation: cpu.emulation.filter(|_| report.error.is_none()),
        visits: cpu.visits,
        run_duration: None,
    }
}
