//! Starts audits of the recording of a report from its page.

use axum::{extract::State, response::Response};
use plumbline_model::{experiment::Subject, matrix::MatrixCondition};
use plumbline_report::html::Replays;

use crate::{
    api::{
        PathId,
        recordings::{self, FileOptions},
        request_body::{ExperimentRequest, MatrixRequest},
    },
    app::App,
    errors::Failure,
    pages::{
        form::Form,
        session::{Visitor, see_other},
    },
    query::Query,
    replays::{self, ReplayResults},
    state::SharedState,
};

/// `POST /reports/{id}/experiments` with `check` or `thirdParty`: measures whether following the
/// advice helps.
pub(crate) async fn experiment(
    State(service): State<SharedState>,
    visitor: Visitor,
    PathId(id): PathId,
    mut form: Form,
) -> Result<Response, Failure> {
    let (check, party) = (form.take("check"), form.take("thirdParty"));
    let subject = if check.is_empty() {
        Subject::ThirdParty(party)
    } else {
        Subject::Check(check)
    };
    let request = ExperimentRequest::of(Some(subject));
    let starter = visitor.starter();
    let tracking_id = replays::start_experiment(&service, &starter, &id, request, None).await?;
    Ok(see_other(&format!("/audits/{tracking_id}")))
}

/// `POST /reports/{id}/third-parties`: measures the price of each third party.
pub(crate) async fn price_list(
    State(service): State<SharedState>,
    visitor: Visitor,
    PathId(id): PathId,
    _: Form,
) -> Result<Response, Failure> {
    let (request, starter) = (ExperimentRequest::of(None), visitor.starter());
    replays::start_price_list(&service, &starter, &id, request, None).await?;
    Ok(see_other(&format!("/reports/{id}#parties")))
}

/// `POST /reports/{id}/matrix` with several `device` and `network`: measures the recording on
/// them.
pub(crate) async fn matrix(
    State(service): State<SharedState>,
    visitor: Visitor,
    PathId(id): PathId,
    mut form: Form,
) -> Result<Response, Failure> {
    let request = MatrixRequest::of(form.take_all("device"), form.take_all("network"));
    let starter = visitor.starter();
    replays::start_matrix(&service, &starter, &id, request, None).await?;
    Ok(see_other(&format!("/reports/{id}#matrix")))
}

/// `GET /reports/{id}/recording`: the recording as a file, with `format` and `redact` as in the
/// API.
pub(crate) async fn recording(
    State(service): State<SharedState>,
    visitor: Visitor,
    PathId(id): PathId,
    query: Query,
) -> Result<Response, Failure> {
    let options = FileOptions::read(&query)?;
    let stored = replays::completed(&service, &visitor.account_id, &id).await?;
    recordings::file(&service, &stored, options).await
}

/// The devices and networks that a reader can choose.
#[derive(Debug, Default)]
pub(super) struct Choices {
    devices: Vec<MatrixCondition>,
    networks: Vec<MatrixCondition>,
}

impl Choices {
    /// Returns all devices and networks of the catalog, the device of the report first.
    pub(super) fn of(app: &App, device_id: &str) -> Self {
        let condition = |id: &str, name: &str| MatrixCondition {
            id: id.to_owned(),
            name: name.to_owned(),
        };
        let devices = app.catalog.devices().iter();
        let mut devices: Vec<_> = devices.map(|it| condition(&it.id, &it.name)).collect();
        devices.sort_by_key(|device| device.id != device_id);
        let networks = app.catalog.networks().iter();
        Self {
            devices,
            networks: networks.map(|it| condition(&it.id, &it.name)).collect(),
        }
    }

    /// Returns what the page shows about the recording. `path` is that of the report page of a
    /// reader who may start audits.
    pub(super) fn with_results<'a>(
        &'a self,
        results: &'a ReplayResults,
        path: Option<&'a str>,
    ) -> Replays<'a> {
        Replays {
            path,
            measurable_checks: &plumbline_recording::MEASURABLE_CHECKS,
            experiments: &results.experiments,
            matrix: results.matrix.as_ref(),
            devices: &self.devices,
            networks: &self.networks,
        }
    }
}
