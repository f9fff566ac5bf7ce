//! `matrix`: audits a recording with several devices and networks.

use futures_util::{StreamExt, stream};
use plumbline_agent::{AuditEvent, Auditor, VisitEvent};
use plumbline_catalog::Catalog;
use plumbline_model::matrix::{Matrix, MatrixCell, MatrixCondition};
use plumbline_report::matrix::{MatrixFormat, render};
use plumbline_seam::{Order, VisitOptions};

use crate::args::{ChoiceArgs, ConditionArgs, MatrixArgs, MatrixOutput};
use crate::exit::Exit;
use crate::local_auditor::prepare;
use crate::output::write_text;
use crate::progress_line::{Count, ProgressLine};
use crate::recording_files::RecordingFile;
use crate::suggestion::{unknown_device, unknown_network};

/// The number of audits at the same time. Their pages load one after the other; the rest of a visit
/// runs beside that.
const PARALLEL_AUDITS: usize = 3;

/// Runs `plumbline matrix`.
pub async fn run(args: MatrixArgs) -> Result<Exit, Exit> {
    let file = RecordingFile::read(&args.recording)?;
    let url = &file.recording.url;
    let options = VisitOptions {
        quick: true,
        replay: file.replay(Vec::new(), args.repeatable),
        ..VisitOptions::default()
    };
    let conditions = ConditionArgs {
        choice: ChoiceArgs::default(),
        place: args.place,
    };
    let (auditor, [order], _) = prepare(conditions, [url.clone()], options)?;
    file.provide_to(&auditor);
    let mut matrix = Matrix::empty(
        url.clone(),
        devices(&auditor.catalog, &args.devices)?,
        networks(&auditor.catalog, &args.networks)?,
    );
    let count = u32::try_from(matrix.cells.len()).unwrap_or(u32::MAX);
    let progress = (!args.quiet).then(|| ProgressLine::start(&auditor.cpu, Count::Runs(count)));
    // The first audit calibrates the host if that is necessary.
    let orders = matrix.cells.iter().map(|cell| Order {
        device: cell.device.clone(),
        network: cell.network.clone(),
        ..order.clone()
    });
    let orders: Vec<Order> = orders.collect();
    let audits = orders
        .iter()
        .map(|order| audit(&auditor, order, progress.as_ref()));
    let mut audits = stream::iter(audits).buffer_unordered(PARALLEL_AUDITS);
    let mut completed = 0;
    while let Some(cell) = audits.next().await {
        matrix.set(cell?);
        completed += 1;
        if let Some(progress) = &progress {
            progress.set_run((completed + 1).min(count));
        }
    }
    drop(audits);
    drop(progress);
    let format = match args.output {
        None => MatrixFormat::Text,
        Some(MatrixOutput::Json) => MatrixFormat::Json,
        Some(MatrixOutput::Markdown) => MatrixFormat::Markdown,
        Some(MatrixOutput::Csv) => MatrixFormat::Csv,
    };
    write_text(args.output_path.as_deref(), render(&matrix, format))?;
    if matrix.cells.iter().any(|cell| cell.error.is_some()) {
        return Ok(Exit::Failed(None));
    }
    Ok(Exit::Done)
}

async fn audit(
    auditor: &Auditor,
    order: &Order,
    progress: Option<&ProgressLine>,
) -> Result<MatrixCell, Exit> {
    let observe = |AuditEvent { visit, event }: AuditEvent<'_>| {
        if let (VisitEvent::PhaseStarted(phase), Some(progress)) = (event, progress) {
            progress.show(phase, visit);
        }
    };
    let output = auditor.audit(order, &observe).await;
    Ok(MatrixCell::of(&output.map_err(Exit::failed)?.report))
}

/// Returns the chosen devices, or those of Lighthouse's presets.
fn devices(catalog: &Catalog, chosen: &[String]) -> Result<Vec<MatrixCondition>, Exit> {
    let default = plumbline_catalog::PRESETS.map(|preset| preset.device.to_owned());
    let ids = if chosen.is_empty() {
        &default[..]
    } else {
        chosen
    };
    let devices = ids.iter().map(|id| {
        let device = catalog
            .device(id)
            .ok_or_else(|| Exit::usage(unknown_device(catalog, id)))?;
        Ok(MatrixCondition {
            id: device.id.clone(),
            name: device.name.clone(),
        })
    });
    devices.collect()
}

/// Returns the chosen networks, or all.
fn networks(catalog: &Catalog, chosen: &[String]) -> Result<Vec<MatrixCondition>, Exit> {
    let all: Vec<String> = catalog.networks().iter().map(|it| it.id.clone()).collect();
    let ids = if chosen.is_empty() { &all[..] } else { chosen };
    let networks = ids.iter().map(|id| {
        let network = catalog
            .network(id)
            .ok_or_else(|| Exit::usage(unknown_network(catalog, id)))?;
        Ok(MatrixCondition {
            id: network.id.clone(),
            name: network.name.clone(),
        })
    });
    networks.collect()
}
