//! Visits whose traffic is recorded or replayed.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use parking_lot::Mutex;
use plumbline_browser::{Launcher, Pool};
use plumbline_bundle::{Bundle, Failure, FailureCode};
use plumbline_link::{Link, Servers};
use plumbline_model::report::{Conditions, ReplayConditions};
use plumbline_recording::{Change, ChangeError, Recording};
use plumbline_seam::{Order, Replay};
use plumbline_traffic::{Identity, IdentityError, RecordError, Recorder, Replayer, RootCertStore};
use tokio::task::spawn_blocking;

use crate::redaction::Secrets;
use crate::{AuditFault, Auditor};

/// The most bytes of bodies in a recording, which is also the limit of a visit.
const MAX_RECORDED_BYTES: u64 = 100_000_000;

/// The time of recordings that do not tell theirs, which some HAR files do not: 1 January 2026.
const UNKNOWN_TIME_MS: i64 = 1_767_225_600_000;

/// The most names of missing requests in a report.
const MAX_MISSING_NAMES: usize = 20;

/// Ends the connections of visits that are recorded or replayed.
pub struct Interception {
    identity: Arc<Identity>,
    /// Browsers that trust the identity.
    browsers: Pool,
    roots: Arc<RootCertStore>,
    /// The recordings that are being replayed, by their ids.
    recordings: Mutex<HashMap<String, Weak<Recording>>>,
    /// The recordings with changes that somebody keeps.
    changed: Mutex<Vec<Weak<ReplayedRecording>>>,
}

/// A recording as visits see it.
pub(crate) struct ReplayedRecording {
    /// The recording without changes.
    original: Arc<Recording>,
    changes: Vec<Change>,
    recording: Arc<Recording>,
    /// Patterns of requests that the browser blocks.
    blocked_urls: Vec<String>,
}

impl Interception {
    /// Prepares recorded and replayed visits with browsers of a launcher. Recorded servers need a
    /// certificate of `roots`. Must be called inside a tokio runtime.
    pub fn new(launcher: &Launcher, roots: Arc<RootCertStore>) -> Result<Self, IdentityError> {
        let identity = Identity::generate()?;
        let launcher = launcher.trusting(identity.fingerprint());
        Ok(Self {
            identity: Arc::new(identity),
            browsers: Pool::start(launcher, 0),
            roots,
            recordings: Mutex::default(),
            changed: Mutex::default(),
        })
    }

    /// Makes a recording available to orders with its id, for as long as the caller keeps it.
    pub fn provide(&self, id: &str, recording: &Arc<Recording>) {
        let mut recordings = self.recordings.lock();
        recordings.retain(|_, recording| recording.strong_count() > 0);
        recordings.insert(id.to_owned(), Arc::downgrade(recording));
    }

    /// Returns a recording that somebody keeps.
    pub(crate) fn recording(&self, id: &str) -> Option<Arc<Recording>> {
        self.recordings.lock().get(id)?.upgrade()
    }

    /// Returns the recording that a replay visits. Changes are only applied if nobody keeps the
    /// result, because that can take many seconds. Fails with the error of the report.
    pub(crate) async fn replayed(
        &self,
        replay: &Replay,
    ) -> Result<Result<Arc<ReplayedRecording>, Failure>, AuditFault> {
        let precondition = |reason: String| Failure::new(FailureCode::PreconditionFailed, reason);
        let Some(original) = self.recording(&replay.recording) else {
            let reason = "The recording does not exist, or was deleted.".to_owned();
            return Ok(Err(precondition(reason)));
        };
        if let Some(kept) = self.kept(&original, &replay.changes) {
            return Ok(Ok(kept));
        }
        let changes = replay.changes.clone();
        let change = spawn_blocking(move || {
            let (recording, blocked_urls) = if changes.is_empty() {
                (Arc::clone(&original), Vec::new())
            } else {
                let changed = original.with_changes(&changes)?.recording;
                let blocked_urls = changed.blocked_urls(&changes);
                (Arc::new(changed), blocked_urls)
            };
            Ok::<_, ChangeError>(Arc::new(ReplayedRecording {
                original,
                changes,
                recording,
                blocked_urls,
            }))
        });
        match change.await.map_err(AuditFault::of)? {
            Ok(replayed) => {
                if !replayed.changes.is_empty() {
                    self.changed.lock().push(Arc::downgrade(&replayed));
                }
                Ok(Ok(replayed))
            }
            Err(error) => Ok(Err(precondition(error.to_string()))),
        }
    }

    /// Returns a recording with changes if somebody keeps it.
    fn kept(
        &self,
        original: &Arc<Recording>,
        changes: &[Change],
    ) -> Option<Arc<ReplayedRecording>> {
        let mut changed = self.changed.lock();
        changed.retain(|it| it.strong_count() > 0);
        let mut kept = changed.iter().filter_map(Weak::upgrade);
        kept.find(|it| Arc::ptr_eq(&it.original, original) && it.changes == changes)
    }
}

/// The traffic of one visit.
pub(crate) enum Traffic {
    /// Servers are connected to, and nothing is kept.
    Live,
    Recorded(Arc<Recorder>),
    Replayed {
        replayer: Arc<Replayer>,
        replayed: Arc<ReplayedRecording>,
        is_repeatable: bool,
    },
}

impl Auditor {
    /// Prepares the traffic of a visit. Fails with the error of the report if it cannot be
    /// replayed.
    pub(crate) async fn prepare_traffic(
        &self,
        order: &Order,
    ) -> Result<Result<Traffic, Failure>, AuditFault> {
        let interception = &self.interception;
        let identity = Arc::clone(&interception.identity);
        if let Some(replay) = order.options.replay.as_deref() {
            let replayed = match interception.replayed(replay).await? {
                Ok(replayed) => replayed,
                Err(failure) => return Ok(Err(failure)),
            };
            let recording = Arc::clone(&replayed.recording);
            return Ok(Ok(Traffic::Replayed {
                replayer: Arc::new(Replayer::new(identity, recording)),
                replayed,
                is_repeatable: replay.repeatable,
            }));
        }
        if order.options.record {
            let roots = Arc::clone(&interception.roots);
            let recorder =
                Recorder::new(identity, roots, MAX_RECORDED_BYTES).map_err(AuditFault::of)?;
            return Ok(Ok(Traffic::Recorded(Arc::new(recorder))));
        }
        Ok(Ok(Traffic::Live))
    }
}

impl Traffic {
    /// Returns the servers of the visit's link.
    pub(crate) fn servers(&self) -> Servers {
        match self {
            Self::Live => Servers::Real,
            Self::Recorded(recorder) => Servers::Recorded(Arc::clone(recorder) as _),
            Self::Replayed { replayer, .. } => Servers::Replayed(Arc::clone(replayer) as _),
        }
    }

    /// Returns the browsers that such visits are made with.
    pub(crate) fn browsers<'a>(&self, auditor: &'a Auditor) -> &'a Pool {
        match self {
            Self::Live => &auditor.browsers,
            Self::Recorded(_) | Self::Replayed { .. } => &auditor.interception.browsers,
        }
    }

    /// Returns the time at which the dates of pages begin, in milliseconds since 1970, if they are
    /// to begin at the same time in every visit: that of the recording.
    pub(crate) fn repeatable_since_ms(&self) -> Option<i64> {
        let Self::Replayed {
            replayed,
            is_repeatable: true,
            ..
        } = self
        else {
            return None;
        };
        let recorded_at = replayed.recording.recorded_at.parse();
        Some(recorded_at.map_or(UNKNOWN_TIME_MS, Timestamp::as_millisecond))
    }

    /// Returns patterns of the requests that the browser blocks.
    pub(crate) fn blocked_urls(&self) -> Vec<String> {
        match self {
            Self::Replayed { replayed, .. } => replayed.blocked_urls.clone(),
            Self::Live | Self::Recorded(_) => Vec::new(),
        }
    }

    /// Adds to the conditions what was replayed, and what was missing.
    pub(crate) fn add_to(&self, conditions: &mut Conditions) {
        let Self::Replayed {
            replayer, replayed, ..
        } = self
        else {
            return;
        };
        let missing = replayer.missing();
        let names = missing.iter().map(|it| it.name.clone());
        conditions.replay = Some(Box::new(ReplayConditions {
            recorded_at: replayed.recording.recorded_at.clone(),
            missing_requests: missing.iter().map(|it| it.count).sum(),
            missing: names.take(MAX_MISSING_NAMES).collect(),
        }));
    }

    /// Returns what was recorded of a visit until now; `None` if it is not recorded.
    pub(crate) fn recording(
        &self,
        url: &str,
        link: &Link,
        began_at: Timestamp,
    ) -> Option<Result<Recording, RecordError>> {
        let Self::Recorded(recorder) = self else {
            return None;
        };
        Some(recorder.recording(url, began_at.to_string(), &link.records()))
    }
}

/// Returns the warning about a visit whose recording cannot be kept.
fn not_recorded(reason: &dyn std::fmt::Display) -> String {
    format!("The visit was not recorded: {reason}.")
}

/// Adds a recording to the evidence of its visit, without secrets.
pub(crate) async fn store_recording(
    recording: Result<Recording, RecordError>,
    bundle: &mut Bundle,
    secrets: Option<&Secrets>,
) -> Result<(), AuditFault> {
    let mut recording = match recording {
        Ok(recording) => recording,
        Err(error) => {
            bundle.warnings.push(not_recorded(&error));
            return Ok(());
        }
    };
    let secrets: Option<Vec<String>> = secrets.map(Secrets::texts);
    let pack = spawn_blocking(move || {
        if let Some(secrets) = secrets {
            recording.redact();
            recording.redact_values(&secrets);
        }
        recording.pack()
    });
    match pack.await.map_err(AuditFault::of)? {
        Ok(packed) => bundle.recording = Some(packed),
        // The page chooses how long its URLs and headers are.
        Err(error) => bundle.warnings.push(not_recorded(&error)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plumbline_bundle::{BrowserIdentity, MainDocument};

    use super::*;

    #[tokio::test]
    async fn a_page_whose_recording_is_too_large_is_measured_without_it() {
        let recording = Recording {
            url: "x".repeat(65 << 20),
            ..Recording::default()
        };
        let mut bundle = Bundle {
            format: 1,
            requested_url: String::new(),
            final_url: String::new(),
            document: MainDocument::default(),
            browser: BrowserIdentity::default(),
            trace: Vec::new(),
            log: Vec::new(),
            screenshot: None,
            artifacts: BTreeMap::new(),
            warnings: Vec::new(),
            timings: Vec::new(),
            recording: None,
            profile_trace: None,
        };
        let stored = store_recording(Ok(recording), &mut bundle, None).await;
        assert!(stored.is_ok() && bundle.recording.is_none());
        let warning = &bundle.warnings[0];
        assert!(
            warning.starts_with("The visit was not recorded: "),
            "{warning}"
        );
    }
}
