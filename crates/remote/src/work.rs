use std::time::Duration;

use async_trait::async_trait;
use plumbline_bundle::Phase;
use plumbline_http::{Bytes, Method};
use plumbline_seam::{
    self as seam, Announcement, AuditOutput, Evidence, Finish, Heartbeat, Job, LeaseRequest,
    LeaseResponse, LeaseState, LeaseStatus, NextJob, PROTOCOL, ProgressUpdate, RecordingRequest,
    Replay, Return, ReturnReason, UploadStatus, VisitNumber, Work, WorkError,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::RemoteError;
use crate::backoff::Backoff;
use crate::http::{RequestBody, Server, ServerResponse};

/// Deadline of a response, besides the time that the server may wait on purpose.
const RESPONSE_DEADLINE: Duration = Duration::from_secs(10);
/// Deadline of one request with evidence or a report. The next request continues an upload.
const UPLOAD_DEADLINE: Duration = Duration::from_secs(5 * 60);
/// Total time for repeating a request. The work loop stops earlier when the lease is lost.
const MAX_RETRY_TIME: Duration = Duration::from_secs(10 * 60);
/// Total time for uploading evidence. If the storage is unavailable for longer, the report is
/// delivered without it; an agent has ten minutes for both.
const MAX_EVIDENCE_TIME: Duration = Duration::from_secs(4 * 60);
/// Maximum number of uploads that are repeated because they arrived damaged.
const MAX_CORRUPT_UPLOADS: u32 = 3;
/// Maximum size of a packed recording.
const MAX_RECORDING_BYTES: usize = 256 << 20;
/// Maximum number of phases waiting to be sent. They are optional, and dropped beyond this.
const MAX_QUEUED_PHASES: usize = 16;

/// Gets jobs from a server on another machine.
pub struct RemoteWork {
    server: Arc<Server>,
    agent: Announcement,
    phases: mpsc::Sender<ProgressUpdate>,
}

impl RemoteWork {
    /// Creates the client and spawns a task that sends phases, which requires a runtime.
    pub fn new(server: Server, agent: Announcement) -> Self {
        let server = Arc::new(server);
        let (phases, queue) = mpsc::channel(MAX_QUEUED_PHASES);
        tokio::spawn(send_phases(Arc::clone(&server), queue));
        Self {
            server,
            agent,
            phases,
        }
    }

    /// Returns a random name that identifies this process.
    pub fn process_name() -> Result<String, RemoteError> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes)
            .map_err(|error| RemoteError::NoResponse(format!("no random bytes: {error}")))?;
        Ok(hex::encode(bytes))
    }

    /// Repeats a request until it succeeds or fails permanently.
    async fn send_reliably(
        &self,
        path: &str,
        message: Bytes,
        deadline: Duration,
        mut backoff: Backoff,
    ) -> Result<LeaseState, RemoteError> {
        loop {
            let result: Result<LeaseStatus, _> =
                send(&self.server, path, message.clone(), deadline).await;
            match result {
                Ok(response) => return Ok(response.state),
                Err(error) if error.is_temporary() => backoff.wait(error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Confirms that a job has arrived, before it is started. Without confirmation in time the
    /// server gives the job to another agent.
    async fn confirm(&self, job: &Job, deadline: Duration) -> Result<LeaseState, WorkError> {
        let message = encode(&self.heartbeat_message(job))?;
        let backoff = Backoff::new(deadline);
        Ok(self
            .send_reliably(seam::HEARTBEAT, message, deadline, backoff)
            .await?)
    }

    fn heartbeat_message(&self, job: &Job) -> Heartbeat {
        Heartbeat {
            attempt: job.attempt.clone(),
            agent: self.agent.clone(),
        }
    }

    /// Uploads evidence in one request. If that is interrupted, the next request continues at the
    /// offset that the server reports.
    async fn upload(
        &self,
        job: &Job,
        kind: Evidence,
        bytes: Bytes,
        backoff: &mut Backoff,
    ) -> Result<LeaseState, RemoteError> {
        let path = format!(
            "{}/{}/{}/{}",
            seam::EVIDENCE,
            job.attempt.tracking_id,
            job.attempt.number,
            kind.as_str()
        );
        let content = bytes.clone();
        let sha256 = spawn_blocking(move || hex::encode(Sha256::digest(&content))).await;
        let sha256 =
            sha256.map_err(|error| RemoteError::NoResponse(format!("failed to hash: {error}")))?;
        let mut next_offset = Some(0);
        let mut corrupt_uploads = 0;
        loop {
            let result = match next_offset.take() {
                Some(offset) => self.send_from(&path, &sha256, &bytes, offset).await,
                None => self.upload_status(&path).await,
            };
            match result {
                Ok(status) if status.lease == LeaseState::Lost => return Ok(LeaseState::Lost),
                Ok(status) if status.complete => return Ok(LeaseState::Held),
                Ok(status) => next_offset = Some(status.received),
                // Another upload is active, possibly on an own connection that is not closed yet.
                Err(error) if error.has_status(409) => backoff.wait(error).await?,
                Err(error) if error.has_status(422) && corrupt_uploads < MAX_CORRUPT_UPLOADS => {
                    corrupt_uploads += 1;
                    next_offset = Some(0);
                }
                Err(error) if error.is_temporary() => backoff.wait(error).await?,
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
        let body = RequestBody {
            content_type: "application/octet-stream",
            bytes: rest,
        };
        let response = self
            .server
            .send(Method::PUT, &path, Some(body), UPLOAD_DEADLINE)
            .await?;
        decode(response)
    }

    async fn upload_status(&self, path: &str) -> Result<UploadStatus, RemoteError> {
        let response = self
            .server
            .send(Method::GET, path, None, RESPONSE_DEADLINE)
            .await?;
        decode(response)
    }
}

#[async_trait]
impl Work for RemoteWork {
    async fn next_job(&self, slot: u32, max_wait: Duration) -> Result<NextJob, WorkError> {
        let request = LeaseRequest {
            agent: self.agent.clone(),
            slot,
            wait_ms: max_wait.as_millis().try_into().unwrap_or(u64::MAX),
            leaving: false,
            confirms: true,
            seeds_state: true,
            runs_steps: true,
            warms_cache: true,
            masks_secrets: true,
            keeps_sessions: true,
            measures_flows: true,
            profiles: true,
            compares: true,
            replays: true,
        };
        let deadline = max_wait + RESPONSE_DEADLINE;
        let response: LeaseResponse = post(&self.server, seam::LEASE, &request, deadline).await?;
        let Some(job) = response.job else {
            return Ok(if response.drain {
                NextJob::Drain
            } else {
                NextJob::None
            });
        };
        if let Some(deadline) = job.confirm_within_ms.map(Duration::from_millis)
            && self.confirm(&job, deadline).await? == LeaseState::Lost
        {
            return Ok(NextJob::None);
        }
        Ok(NextJob::Job(Box::new(job)))
    }

    async fn release_slot(&self, slot: u32) -> Result<(), WorkError> {
        let request = LeaseRequest {
            agent: self.agent.clone(),
            slot,
            wait_ms: 0,
            leaving: true,
            confirms: false,
            seeds_state: true,
            runs_steps: true,
            warms_cache: true,
            masks_secrets: true,
            keeps_sessions: true,
            measures_flows: true,
            profiles: true,
            compares: true,
            replays: true,
        };
        let _: LeaseResponse = post(&self.server, seam::LEASE, &request, RESPONSE_DEADLINE).await?;
        Ok(())
    }

    /// Sends one heartbeat without retries, because the next one follows soon.
    async fn heartbeat(&self, job: &Job) -> Result<LeaseState, WorkError> {
        let message = self.heartbeat_message(job);
        let deadline = job.heartbeat_interval();
        let response: LeaseStatus = post(&self.server, seam::HEARTBEAT, &message, deadline).await?;
        Ok(response.state)
    }

    async fn recording(&self, job: &Job, replay: &Replay) -> Result<Option<Vec<u8>>, WorkError> {
        let request = RecordingRequest {
            attempt: job.attempt.clone(),
            recording: replay.recording.clone(),
        };
        let body = RequestBody {
            content_type: "application/json",
            bytes: encode(&request)?,
        };
        let response = self.server.send_limited(
            Method::POST,
            seam::RECORDING,
            Some(body),
            UPLOAD_DEADLINE,
            MAX_RECORDING_BYTES,
        );
        match successful(response.await?) {
            Ok(body) => Ok(Some(body.into())),
            Err(error) if error.has_status(404) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn report_progress(
        &self,
        job: &Job,
        phase: Phase,
        visit: VisitNumber,
        document_url: Option<&str>,
    ) {
        let progress = ProgressUpdate {
            attempt: job.attempt.clone(),
            phase,
            visit: Some(visit),
            arrived_at: document_url.map(str::to_owned),
        };
        if self.phases.try_send(progress).is_err() {
            tracing::debug!(audit = %job.attempt.tracking_id, "phase dropped: the queue is full");
        }
    }

    async fn finish(&self, job: &Job, output: AuditOutput) -> Result<LeaseState, WorkError> {
        let mut backoff = Backoff::new(MAX_EVIDENCE_TIME);
        for (kind, bytes) in [
            (Evidence::Bundle, output.bundle),
            (Evidence::ReportMedia, output.media),
        ] {
            let Some(bytes) = bytes else { continue };
            match self.upload(job, kind, bytes.into(), &mut backoff).await {
                Ok(LeaseState::Held) => {}
                Ok(LeaseState::Lost) => return Ok(LeaseState::Lost),
                Err(refusal @ RemoteError::Refused(_)) => return Err(refusal.into()),
                // It is too large, or there is no space or no storage: the report is delivered
                // without the evidence.
                Err(error) => {
                    tracing::error!(audit = %job.attempt.tracking_id, %error, "failed to upload evidence");
                }
            }
        }
        let message = encode(&Finish {
            attempt: job.attempt.clone(),
            report: &output.report,
            session: output.session,
        })?;
        let backoff = Backoff::new(MAX_RETRY_TIME);
        Ok(self
            .send_reliably(seam::FINISH, message, UPLOAD_DEADLINE, backoff)
            .await?)
    }

    async fn return_job(&self, job: &Job, reason: ReturnReason) -> Result<LeaseState, WorkError> {
        let message = encode(&Return {
            attempt: job.attempt.clone(),
            reason,
        })?;
        let backoff = Backoff::new(MAX_RETRY_TIME);
        Ok(self
            .send_reliably(seam::RETURN, message, RESPONSE_DEADLINE, backoff)
            .await?)
    }
}

/// Sends phases in order, each once: a phase that failed to be sent is soon followed by the next.
async fn send_phases(server: Arc<Server>, mut queue: mpsc::Receiver<ProgressUpdate>) {
    while let Some(progress) = queue.recv().await {
        let result: Result<LeaseStatus, _> =
            post(&server, seam::PROGRESS, &progress, RESPONSE_DEADLINE).await;
        if let Err(error) = result {
            tracing::debug!(%error, "failed to send a phase");
        }
    }
}

async fn post<T: DeserializeOwned>(
    server: &Server,
    path: &str,
    message: &impl Serialize,
    deadline: Duration,
) -> Result<T, RemoteError> {
    send(server, path, encode(message)?, deadline).await
}

async fn send<T: DeserializeOwned>(
    server: &Server,
    path: &str,
    message: Bytes,
    deadline: Duration,
) -> Result<T, RemoteError> {
    let body = RequestBody {
        content_type: "application/json",
        bytes: message,
    };
    let response = server
        .send(Method::POST, path, Some(body), deadline)
        .await?;
    decode(response)
}

fn encode(message: &impl Serialize) -> Result<Bytes, RemoteError> {
    let text = serde_json::to_vec(message);
    text.map(Bytes::from)
        .map_err(|error| RemoteError::Address(format!("failed to encode a message: {error}")))
}

#[derive(Deserialize)]
struct Success<T> {
    data: T,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
}

fn decode<T: DeserializeOwned>(response: ServerResponse) -> Result<T, RemoteError> {
    let body = successful(response)?;
    serde_json::from_slice::<Success<T>>(&body)
        .map(|success| success.data)
        .map_err(|error| RemoteError::NoResponse(error.to_string()))
}

/// Returns the body of a response with status 200 from a server of this protocol.
fn successful(response: ServerResponse) -> Result<Bytes, RemoteError> {
    let failure = serde_json::from_slice(&response.body);
    let message = failure.map_or_else(
        |_| "no reason given".to_owned(),
        |failure: Failure| failure.message,
    );
    match response.protocol {
        Some(version) if version != PROTOCOL.to_string() => {
            return Err(RemoteError::Refused(format!(
                "it uses agent protocol {version}, this program uses {PROTOCOL}"
            )));
        }
        // A response without the header comes from something else, for instance from a proxy while
        // the server is unavailable.
        None if response.status < 400 => {
            return Err(RemoteError::NoResponse(
                "the response is not from a Plumbline server".to_owned(),
            ));
        }
        _ => {}
    }
    match response.status {
        200 => Ok(response.body),
        401 => Err(RemoteError::Refused(
            "its token is unknown or revoked".to_owned(),
        )),
        // The token does not allow what the agent announces, which is permanent.
        403 => Err(RemoteError::Refused(message)),
        status => Err(RemoteError::Status { status, message }),
    }
}
