//! Audits of recordings: experiments, price lists of third parties and matrices, for the API and
//! for the pages.

use std::sync::Arc;

use plumbline_model::{
    experiment::{Experiment, Subject},
    matrix::{Matrix, MatrixCell, MatrixCondition},
    report::Report,
    summary::ReportSummary,
};
use plumbline_recording::{AdviceError, Advised, Change, Recording};
use plumbline_seam::{Order, Replay, VisitOptions};
use plumbline_store::{AttemptBlob, AuditState, ReplayAudit, StoredReport};
use tokio::{sync::OwnedSemaphorePermit, task::spawn_blocking};

use crate::{
    api::request_body::{ExperimentRequest, MatrixRequest, Tried},
    app::App,
    auth::Starter,
    errors::{Failure, InvalidValue},
    evidence_part::read_recording,
    start,
    state::SharedState,
};

/// The most audits of one recording that its report shows: the newest.
const MAX_SHOWN: u32 = 400;

/// Returns a completed audit of an account.
pub(crate) async fn completed(
    service: &SharedState,
    account_id: &str,
    audit_id: &str,
) -> Result<StoredReport, Failure> {
    let stored = service.app.store.report(account_id, audit_id).await?;
    stored.ok_or(Failure::NotFound)
}

/// Fails if an audit of an account, or its recording, is no longer kept.
pub(crate) async fn require_recording(
    service: &SharedState,
    account_id: &str,
    audit_id: &str,
) -> Result<(), Failure> {
    let stored = service.app.store.report(account_id, audit_id).await?;
    let stored = stored.ok_or(Failure::NoEvidence)?;
    let _permit = permit(service).await?;
    packed(service, &stored).await?;
    Ok(())
}

/// Waits until a recording may be read and unpacked: a few at a time, because they can be large.
/// The permit is kept to the end of the work, even if the request was dropped.
pub(crate) async fn permit(service: &SharedState) -> Result<OwnedSemaphorePermit, Failure> {
    let permit = Arc::clone(&service.exports).acquire_owned().await;
    permit.map_err(Failure::unavailable)
}

/// Returns the packed recording of an audit.
pub(crate) async fn packed(
    service: &SharedState,
    stored: &StoredReport,
) -> Result<Vec<u8>, Failure> {
    let bundles = service.app.bundles.as_ref().ok_or(Failure::NoEvidence)?;
    let recording = read_recording(AttemptBlob::from(stored), &**bundles).await;
    recording
        .map_err(Failure::unavailable)?
        .ok_or(Failure::NoEvidence)
}

/// Computes something from the recording and the report in JSON of an audit, outside of the threads
/// that serve requests.
async fn with_recording<T: Send + 'static>(
    service: &SharedState,
    stored: &StoredReport,
    compute: impl FnOnce(&Recording, &str) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let permit = permit(service).await?;
    let packed = packed(service, stored).await?;
    let report = stored.report.clone();
    let computing = spawn_blocking(move || {
        let _permit = permit;
        let recording = Recording::unpack(&packed).map_err(Failure::internal)?;
        compute(&recording, &report)
    });
    computing.await.map_err(Failure::internal)?
}

/// Starts an experiment with the recording of an audit, and returns its tracking id. All that needs
/// no recording is checked before it is read. The start counts against the limit of the key even if
/// the changes turn out to have no effect, because applying them takes long.
pub(crate) async fn start_experiment(
    service: &SharedState,
    starter: &Starter,
    audit_id: &str,
    request: ExperimentRequest,
    idempotency_key: Option<String>,
) -> Result<String, Failure> {
    let stored = completed(service, &starter.account_id, audit_id).await?;
    let pixel_ratio = pixel_ratio(&service.app, &stored);
    let replay = replay(&stored, request.is_repeatable());
    let tried = request.tried()?;
    let conditions = request.conditions(stored.order.clone(), &service.app)?;
    let (cost, key) = (conditions.cost(), idempotency_key.as_deref());
    start::count(service, starter, 1, cost, key).await?;
    let (url, options) = match tried {
        Tried::Changes(changes) => {
            let (url, advised) = with_recording(service, &stored, move |recording, _| {
                Ok((recording.url.clone(), changed(recording, changes)?))
            })
            .await?;
            (url, experiment(replay, advised, None))
        }
        Tried::Advice(subject) => {
            let (url, advised, subject) =
                with_recording(service, &stored, move |recording, report| {
                    let advised = advised(recording, &parse(report)?, &subject, pixel_ratio)?;
                    Ok((recording.url.clone(), advised, subject))
                })
                .await?;
            (url, experiment(replay, advised, Some(subject)))
        }
        Tried::Recording(id) => {
            let other = completed(service, &starter.account_id, &id).await?;
            for audit in [&stored, &other] {
                let _permit = permit(service).await?;
                packed(service, audit).await?;
            }
            (stored.order.url.clone(), compared(replay, &other))
        }
    };
    let request = conditions.comparison(url, options, &service.app)?;
    start::start_counted(service, starter, request, idempotency_key).await
}

/// Starts an experiment for each third party of the recorded page, which leaves it out. Returns
/// the id of the batch and the number of experiments.
pub(crate) async fn start_price_list(
    service: &SharedState,
    starter: &Starter,
    audit_id: &str,
    request: ExperimentRequest,
    idempotency_key: Option<String>,
) -> Result<(String, u32), Failure> {
    let stored = completed(service, &starter.account_id, audit_id).await?;
    let pixel_ratio = pixel_ratio(&service.app, &stored);
    let replay = replay(&stored, request.is_repeatable());
    let conditions = request.conditions(stored.order.clone(), &service.app)?;
    // The report says later how many there are.
    let (cost, key) = (conditions.cost(), idempotency_key.as_deref());
    start::count(service, starter, 1, cost, key).await?;
    let max_orders = service.app.limits.batch_audits;
    let (url, all_options) = with_recording(service, &stored, move |recording, report| {
        let report = parse(report)?;
        let parties = report.third_parties().into_iter().take(max_orders);
        // A third party of which nothing was recorded costs nothing.
        let options = parties.filter_map(|(name, _)| {
            let subject = Subject::ThirdParty(name.to_owned());
            let advised = recording.advised(&subject, &report, pixel_ratio).ok()?;
            Some(experiment(replay.clone(), advised, Some(subject)))
        });
        Ok((recording.url.clone(), options.collect::<Vec<_>>()))
    })
    .await?;
    if all_options.is_empty() {
        let reason = "The recording has no requests of third parties.";
        let value = InvalidValue::new("thirdParties", reason);
        return Err(Failure::InvalidChanges(value));
    }
    let request = conditions.comparisons(url, all_options, &service.app)?;
    let count = request.orders.count();
    if count > 1 {
        starter.take(service, count - 1).await?;
    }
    let batch_id = start::start_counted(service, starter, request, idempotency_key).await?;
    Ok((batch_id, count))
}

/// Starts an audit of a recording for every device and network. Returns the id of the batch and
/// the number of audits.
pub(crate) async fn start_matrix(
    service: &SharedState,
    starter: &Starter,
    audit_id: &str,
    request: MatrixRequest,
    idempotency_key: Option<String>,
) -> Result<(String, u32), Failure> {
    let stored = completed(service, &starter.account_id, audit_id).await?;
    let order = Order {
        options: VisitOptions {
            quick: true,
            replay: Some(Box::new(replay(&stored, request.is_repeatable()))),
            ..VisitOptions::default()
        },
        ..stored.order.clone()
    };
    let request = request.validate(order, &service.app)?;
    let (count, key) = (request.orders.count(), idempotency_key.as_deref());
    start::count(service, starter, count, i64::from(count), key).await?;
    let permit = permit(service).await?;
    packed(service, &stored).await?;
    drop(permit);
    let batch_id = start::start_counted(service, starter, request, idempotency_key).await?;
    Ok((batch_id, count))
}

fn parse(report: &str) -> Result<Report, Failure> {
    Report::from_json(report).map_err(Failure::internal)
}

/// Returns the options of a comparison of a recording with a changed one.
fn experiment(replay: Replay, advised: Advised, subject: Option<Subject>) -> VisitOptions {
    VisitOptions {
        compare_with: Some(advised.url),
        replay: Some(Box::new(replay.clone())),
        replay_second: Some(Box::new(Replay {
            changes: advised.changes,
            left_out: advised.left_out,
            subject,
            ..replay
        })),
        ..VisitOptions::default()
    }
}

/// Returns the options of a comparison of a recording with that of another audit.
fn compared(replay: Replay, other: &StoredReport) -> VisitOptions {
    let second = self::replay(other, replay.repeatable);
    VisitOptions {
        compare_with: Some(other.order.url.clone()),
        replay: Some(Box::new(replay)),
        replay_second: Some(Box::new(second)),
        ..VisitOptions::default()
    }
}

/// Returns a visit with changes that were chosen by hand, if each affects something.
fn changed(recording: &Recording, changes: Vec<Change>) -> Result<Advised, Failure> {
    recording.with_changes(&changes).map_err(|error| {
        let value = InvalidValue::new("changes", format!("{error}."));
        Failure::InvalidChanges(value)
    })?;
    Ok(Advised {
        url: recording.url.clone(),
        changes,
        left_out: Vec::new(),
    })
}

/// Returns a visit that follows the advice of a report.
fn advised(
    recording: &Recording,
    report: &Report,
    subject: &Subject,
    pixel_ratio: f64,
) -> Result<Advised, Failure> {
    let advised = recording.advised(subject, report, pixel_ratio);
    advised.map_err(|error| not_advised(subject, &error))
}

fn not_advised(subject: &Subject, error: &AdviceError) -> Failure {
    let field = match subject {
        Subject::Check(_) => "check",
        Subject::ThirdParty(_) => "thirdParty",
    };
    let mut reason = format!("{error}.");
    reason[..1].make_ascii_uppercase();
    Failure::InvalidChanges(InvalidValue::new(field, reason))
}

/// Returns the number of device pixels for each pixel of the page on the device of an audit.
fn pixel_ratio(app: &App, stored: &StoredReport) -> f64 {
    let device = app.catalog.device(&stored.order.device);
    device.map_or(1.0, |device| device.scale)
}

fn replay(stored: &StoredReport, repeatable: bool) -> Replay {
    Replay {
        recording: stored.audit_id.clone(),
        attempt: stored.attempt,
        changes: Vec::new(),
        left_out: Vec::new(),
        subject: None,
        repeatable,
    }
}

/// The results of the audits of one recording.
#[derive(Debug, Default)]
pub(crate) struct ReplayResults {
    /// The experiments, the newest first.
    pub(crate) experiments: Vec<Experiment>,
    /// The newest result for every device and network; `None` if there is none.
    pub(crate) matrix: Option<Matrix>,
}

/// Returns the results of the audits of a recording.
pub(crate) async fn results(
    service: &SharedState,
    account_id: &str,
    audit_id: &str,
) -> Result<ReplayResults, Failure> {
    let app = &service.app;
    let replays = app.store.replays(account_id, audit_id, MAX_SHOWN).await?;
    let (experiments, others): (Vec<_>, Vec<_>) = replays
        .into_iter()
        .partition(|replay| replay.audit.order.options.need_comparison());
    Ok(ReplayResults {
        experiments: experiments.into_iter().map(to_experiment).collect(),
        matrix: matrix(app, &others),
    })
}

/// Returns the summary of an audit. One that cannot be read counts as none.
fn summary(replay: &ReplayAudit) -> Option<ReportSummary> {
    serde_json::from_str(replay.summary.as_deref()?).ok()
}

fn to_experiment(replay: ReplayAudit) -> Experiment {
    let comparison = summary(&replay).and_then(|summary| summary.comparison);
    let audit = replay.audit;
    let second = audit.order.options.replay_second;
    let (changes, left_out, subject) = second.map_or_else(Default::default, |replay| {
        let changes = replay.changes.iter().map(ToString::to_string);
        (changes.collect(), replay.left_out, replay.subject)
    });
    Experiment {
        tracking_id: audit.tracking_id,
        audit_id: (audit.state == AuditState::Completed).then_some(audit.audit_id),
        subject,
        changes,
        left_out,
        comparison,
        error: audit.error.map(|error| error.message),
    }
}

/// Returns the newest result for every device and network, in the order of the catalog.
fn matrix(app: &App, replays: &[ReplayAudit]) -> Option<Matrix> {
    let url = replays.first()?.audit.order.url.clone();
    let is_used = |id: &str, of: fn(&Order) -> &str| {
        let mut orders = replays.iter().map(|replay| &replay.audit.order);
        orders.any(|order| of(order) == id)
    };
    let devices = app
        .catalog
        .devices()
        .iter()
        .filter(|device| is_used(&device.id, |order| &order.device));
    let networks = app
        .catalog
        .networks()
        .iter()
        .filter(|network| is_used(&network.id, |order| &order.network));
    let condition = |id: &str, name: &str| MatrixCondition {
        id: id.to_owned(),
        name: name.to_owned(),
    };
    let mut matrix = Matrix::empty(
        url,
        devices.map(|it| condition(&it.id, &it.name)).collect(),
        networks.map(|it| condition(&it.id, &it.name)).collect(),
    );
    // The newest audit is the last to be set.
    for replay in replays.iter().rev() {
        let audit = &replay.audit;
        let cell = summary(replay).map_or_else(MatrixCell::default, |it| MatrixCell::from(&it));
        let is_completed = audit.state == AuditState::Completed;
        matrix.set(MatrixCell {
            device: audit.order.device.clone(),
            network: audit.order.network.clone(),
            audit_id: is_completed.then(|| audit.audit_id.clone()),
            error: audit.error.as_ref().map(|error| error.message.clone()),
            ..cell
        });
    }
    Some(matrix)
}
