use std::fmt::Write;
use std::time::Duration;

use async_trait::async_trait;
use hyper::Method;
use hyper::body::Bytes;
use plumbline_agent::{Audited, Hold, Job, Next, Order, Step, Work, WorkError};
use plumbline_bundle::Phase;
use plumbline_seam::{
    self as seam, Announcement, Attempt, Evidence, Finish, Heartbeat, LeaseRequest, LeaseResponse,
    LeaseStatus, Offer, PROTOCOL, ProgressUpdate, Return, ReturnReason, UploadStatus,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio::sync::mpsc;

use crate::RemoteError;
use crate::http::{Answer, Load, Server};
use crate::pace::Pace;

/// Beyond what the server may wait on purpose.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// For one request with evidence or a report in it; the next goes on where it ended.
const UPLOADED_WITHIN: Duration = Duration::from_secs(5 * 60);
/// For all the tries of one step; the loop around gives up earlier when the lease is lost.
const INSIST_FOR: Duration = Duration::from_secs(10 * 60);
/// For all the tries to hand in evidence: a bucket that is away for longer costs the evidence, and not the report, which
/// an agent has ten minutes for in all.
const EVIDENCE_FOR: Duration = Duration::from_secs(4 * 60);
/// Uploads that arrived wrong are not tried for ever.
const CORRUPT_AT_MOST: u32 = 3;
/// Phases that nobody has told yet: a courtesy, and dropped beyond this.
const PHASES_KEPT: usize = 16;

/// Work from a server elsewhere.
pub struct RemoteWork {
    server: Arc<Server>,
    agent: Announcement,
    phases: mpsc::Sender<ProgressUpdate>,
}

impl RemoteWork {
    /// Must be called within a runtime: phases are told by a task of their own.
    pub fn new(server: Server, agent: Announcement) -> Self {
        let server = Arc::new(server);
        let (phases, reached) = mpsc::channel(PHASES_KEPT);
        tokio::spawn(tell_phases(Arc::clone(&server), reached));
        Self {
            server,
            agent,
            phases,
        }
    }

    /// A name that no other process has.
    pub fn process_name() -> Result<String, RemoteError> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes)
            .map_err(|error| RemoteError::Unanswered(format!("no random bytes: {error}")))?;
        Ok(hex(&bytes))
    }

    /// Says it until there is an answer, or one that will not change.
    async fn insist(
        &self,
        path: &str,
        said: Bytes,
        within: Duration,
        mut pace: Pace,
    ) -> Result<Hold, RemoteError> {
        loop {
            let answer: Result<LeaseStatus, _> =
                say(&self.server, path, said.clone(), within).await;
            match answer {
                Ok(answer) => return Ok(hold(answer.state)),
                Err(error) if error.may_pass() => pace.wait(error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Says that the job has arrived, before it is begun: the server gives it to another when it does not hear so in time.
    async fn confirm(&self, job: &Job, within: Duration) -> Result<Hold, WorkError> {
        let said = message(&self.beat(job))?;
        let confirmed = self.insist(seam::HEARTBEAT, said, within, Pace::lasting(within));
        Ok(confirmed.await?)
    }

    fn beat(&self, job: &Job) -> Heartbeat {
        Heartbeat {
            attempt: attempt(job),
            agent: self.agent.clone(),
        }
    }

    async fn give_back(&self, job: &Job, why: ReturnReason) -> Result<Hold, WorkError> {
        let said = Return {
            attempt: attempt(job),
            reason: why,
        };
        let said = message(&said)?;
        let pace = Pace::lasting(INSIST_FOR);
        let given = self.insist(seam::RETURN, said, ANSWERED_WITHIN, pace);
        Ok(given.await?)
    }

    /// All of it in one request, and from where it broke off in the next.
    async fn upload(
        &self,
        job: &Job,
        kind: Evidence,
        bytes: Bytes,
        pace: &mut Pace,
    ) -> Result<Hold, RemoteError> {
        let path = format!(
            "{}/{}/{}/{}",
            seam::EVIDENCE,
            job.tracking_id,
            job.attempt,
            kind.as_str()
        );
        let sha256 = hex(&Sha256::digest(&bytes));
        let mut sent = Some(0);
        let mut corrupt = 0;
        loop {
            let answer = match sent.take() {
                Some(offset) => self.send_from(&path, &sha256, &bytes, offset).await,
                None => self.received(&path).await,
            };
            match answer {
                Ok(answer) if answer.lease == seam::LeaseState::Lost => return Ok(Hold::Lost),
                Ok(answer) if answer.complete => return Ok(Hold::Held),
                Ok(answer) => sent = Some(answer.received),
                // Somebody else's bytes, or a connection of ours that is not dead yet.
                Err(error) if error.has_status(409) => pace.wait(error).await?,
                Err(error) if error.has_status(422) && corrupt < CORRUPT_AT_MOST => {
                    corrupt += 1;
                    sent = Some(0);
                }
                Err(error) if error.may_pass() => pace.wait(error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    async fn send_from(
        &self,
        path: &str,
        sha256: &str,
        bytes: &Bytes,
        offset: u64,
    ) -> Result<UploadStatus, RemoteError> {
        let rest = usize::try_from(offset).ok().filter(|at| *at <= bytes.len());
        let rest = rest.map_or_else(|| bytes.clone(), |at| bytes.slice(at..));
        let path = format!(
            "{path}?offset={offset}&bytes={}&sha256={sha256}",
            bytes.len()
        );
        let load = Load {
            kind: "application/octet-stream",
            bytes: rest,
        };
        let answer = self
            .server
            .ask(Method::PUT, &path, Some(load), UPLOADED_WITHIN);
        read(answer.await?)
    }

    async fn received(&self, path: &str) -> Result<UploadStatus, RemoteError> {
        let answer = self.server.ask(Method::GET, path, None, ANSWERED_WITHIN);
        read(answer.await?)
    }
}

#[async_trait]
impl Work for RemoteWork {
    async fn next(&self, slot: u32, at_most: Duration) -> Result<Next, WorkError> {
        let asked = LeaseRequest {
            agent: self.agent.clone(),
            slot,
            wait_ms: at_most.as_millis().try_into().unwrap_or(u64::MAX),
            leaving: false,
            confirms: true,
        };
        let within = at_most + ANSWERED_WITHIN;
        let answer: LeaseResponse = post(&self.server, seam::LEASE, &asked, within).await?;
        let Some(offer) = answer.job else {
            return Ok(match answer.drain {
                true => Next::Leave,
                false => Next::Nothing,
            });
        };
        let confirm_within = offer.confirm_within_ms.map(Duration::from_millis);
        let job = job(offer);
        if let Some(within) = confirm_within
            && self.confirm(&job, within).await? == Hold::Lost
        {
            return Ok(Next::Nothing);
        }
        Ok(Next::Job(job))
    }

    async fn leave(&self, slot: u32) -> Result<(), WorkError> {
        let asked = LeaseRequest {
            agent: self.agent.clone(),
            slot,
            wait_ms: 0,
            leaving: true,
            confirms: false,
        };
        let _: LeaseResponse = post(&self.server, seam::LEASE, &asked, ANSWERED_WITHIN).await?;
        Ok(())
    }

    /// Once: the next comes soon enough.
    async fn heartbeat(&self, job: &Job) -> Result<Hold, WorkError> {
        let within = job.heartbeat_every;
        let said = self.beat(job);
        let answer: LeaseStatus = post(&self.server, seam::HEARTBEAT, &said, within).await?;
        Ok(hold(answer.state))
    }

    fn reached(&self, job: &Job, step: Step<'_>) {
        let (phase, arrived_at) = match step {
            Step::Entered(phase) => (phase, None),
            Step::Arrived(url) => (Phase::Loading, Some(url.to_owned())),
        };
        let progress = ProgressUpdate {
            attempt: attempt(job),
            phase,
            arrived_at,
        };
        if self.phases.try_send(progress).is_err() {
            tracing::debug!(audit = %job.tracking_id, "a phase was not told");
        }
    }

    async fn finish(&self, job: &Job, audited: Audited) -> Result<Hold, WorkError> {
        let mut pace = Pace::lasting(EVIDENCE_FOR);
        for (kind, bytes) in [
            (Evidence::Bundle, audited.bundle),
            (Evidence::ReportMedia, audited.media),
        ] {
            let Some(bytes) = bytes else { continue };
            match self.upload(job, kind, bytes.into(), &mut pace).await {
                Ok(Hold::Held) => {}
                Ok(Hold::Lost) => return Ok(Hold::Lost),
                Err(refused @ RemoteError::Refused(_)) => return Err(refused.into()),
                // Too large, no room, or nowhere to put it: that costs the evidence, not the audit.
                Err(error) => {
                    tracing::error!(audit = %job.tracking_id, %error, "evidence is not kept");
                }
            }
        }
        let said = Finish {
            attempt: attempt(job),
            report: &audited.report,
        };
        let said = message(&said)?;
        let pace = Pace::lasting(INSIST_FOR);
        let finished = self.insist(seam::FINISH, said, UPLOADED_WITHIN, pace);
        Ok(finished.await?)
    }

    async fn fault(&self, job: &Job) -> Result<Hold, WorkError> {
        self.give_back(job, ReturnReason::Fault).await
    }

    async fn drained(&self, job: &Job) -> Result<Hold, WorkError> {
        self.give_back(job, ReturnReason::Drained).await
    }
}

/// One after the other, each once: the next one is news, the last one is not.
async fn tell_phases(server: Arc<Server>, mut reached: mpsc::Receiver<ProgressUpdate>) {
    while let Some(progress) = reached.recv().await {
        let told: Result<LeaseStatus, _> =
            post(&server, seam::PROGRESS, &progress, ANSWERED_WITHIN).await;
        if let Err(error) = told {
            tracing::debug!(%error, "a phase was not told");
        }
    }
}

async fn post<T: DeserializeOwned>(
    server: &Server,
    path: &str,
    said: &impl Serialize,
    within: Duration,
) -> Result<T, RemoteError> {
    let said = message(said)?;
    say(server, path, said, within).await
}

async fn say<T: DeserializeOwned>(
    server: &Server,
    path: &str,
    said: Bytes,
    within: Duration,
) -> Result<T, RemoteError> {
    let load = Load {
        kind: "application/json",
        bytes: said,
    };
    let answer = server.ask(Method::POST, path, Some(load), within).await?;
    read(answer)
}

fn message(said: &impl Serialize) -> Result<Bytes, RemoteError> {
    let text = serde_json::to_vec(said);
    text.map(Bytes::from)
        .map_err(|error| RemoteError::Address(format!("cannot be said: {error}")))
}

#[derive(Deserialize)]
struct Success<T> {
    data: T,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
}

fn read<T: DeserializeOwned>(answer: Answer) -> Result<T, RemoteError> {
    let told = serde_json::from_slice(&answer.body);
    let message = told.map_or_else(|_| "no reason".to_owned(), |said: Failure| said.message);
    match answer.protocol {
        Some(version) if version != PROTOCOL.to_string() => {
            return Err(RemoteError::Refused(format!(
                "it speaks agent protocol {version}, this program {PROTOCOL}"
            )));
        }
        // Whoever answers for a server that is away, a proxy say, speaks none.
        None if answer.status < 400 => {
            return Err(RemoteError::Unanswered(
                "whoever answers speaks no agent protocol".to_owned(),
            ));
        }
        _ => {}
    }
    match answer.status {
        200 => serde_json::from_slice::<Success<T>>(&answer.body)
            .map(|answer| answer.data)
            .map_err(|error| RemoteError::Unanswered(error.to_string())),
        401 => Err(RemoteError::Refused(
            "its token is unknown or revoked".to_owned(),
        )),
        // What the token is not for: that does not change.
        403 => Err(RemoteError::Refused(message)),
        status => Err(RemoteError::Answered { status, message }),
    }
}

fn job(offer: Offer) -> Job {
    Job {
        tracking_id: offer.attempt.tracking_id,
        attempt: offer.attempt.attempt,
        order: Order {
            url: offer.url,
            device: offer.device,
            network: offer.network,
            location: offer.location,
        },
        runs: offer.runs,
        exhausted: offer.exhausted,
        heartbeat_every: Duration::from_millis(offer.heartbeat_ms.max(1)),
    }
}

fn attempt(job: &Job) -> Attempt {
    Attempt {
        tracking_id: job.tracking_id.clone(),
        attempt: job.attempt,
    }
}

fn hold(hold: seam::LeaseState) -> Hold {
    match hold {
        seam::LeaseState::Held => Hold::Held,
        seam::LeaseState::Lost => Hold::Lost,
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
