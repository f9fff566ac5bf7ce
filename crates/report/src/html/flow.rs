//! The steps that were measured after the visits, with their figures and pictures.

use plumbline_bundle::{FlowStepKind, FlowStepRecord};
use plumbline_model::field::FieldKind;
use plumbline_model::media::{PictureId, ReportMedia};
use plumbline_model::report::Report;

use super::field;
use super::figures::{Grade, bytes, count, ms};
use super::film::FilmImage;
use super::pictures::PictureSource;
use super::responsiveness::{TimingView, timing_view};

/// The flow of a report as a page shows it.
pub(super) struct FlowView<'a> {
    pub(super) summary: String,
    pub(super) error: Option<&'a str>,
    pub(super) steps: Vec<FlowStepView<'a>>,
}

pub(super) struct FlowStepView<'a> {
    pub(super) title: &'a str,
    pub(super) kind: &'static str,
    pub(super) url: &'a str,
    pub(super) error: Option<&'a str>,
    pub(super) figures: Vec<FlowFigure>,
    pub(super) timing: Option<TimingView>,
    pub(super) image: Option<FilmImage>,
}

/// A figure of a step with its grade, if it has one.
pub(super) struct FlowFigure {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) class: &'static str,
    pub(super) grade: Option<&'static str>,
}

/// Returns the flow of a report; `None` if none was requested.
pub(super) fn flow<'a>(
    report: &'a Report,
    media: Option<&ReportMedia>,
    source: &PictureSource,
    page_url: &str,
) -> Option<FlowView<'a>> {
    let flow = report.flow.as_deref()?;
    let slowest = flow
        .steps
        .iter()
        .filter_map(|step| step.interaction.as_ref());
    let scale_ms = slowest
        .map(|timing| timing.duration_ms)
        .fold(200.0, f64::max);
    let steps = flow.steps.iter().enumerate();
    let steps = steps.map(|(index, step)| FlowStepView {
        title: &step.title,
        kind: kind_name(step.kind),
        url: &step.url,
        error: step.error.as_deref(),
        figures: figures(step),
        timing: step
            .interaction
            .as_ref()
            .map(|timing| timing_view(timing, scale_ms, page_url)),
        image: media
            .and_then(|media| media.flow.get(index)?.as_ref())
            .map(|picture| FilmImage {
                src: source.of(PictureId::FlowStep(index), picture),
                width: picture.width_px,
                height: picture.height_px,
            }),
    });
    let measured = flow
        .steps
        .iter()
        .filter(|step| step.error.is_none())
        .count();
    Some(FlowView {
        summary: format!(
            "{} measured after the visit, each until the page was at rest, with the device and the network of \
             the audit.",
            count(measured, "step", "steps"),
        ),
        error: flow.error.as_deref(),
        steps: steps.collect(),
    })
}

/// Returns the figures of a step that did not fail, the graded ones first.
fn figures(step: &FlowStepRecord) -> Vec<FlowFigure> {
    if step.error.is_some() {
        return Vec::new();
    }
    let graded =
        |name, kind, value: f64, text| FlowFigure::new(name, text, field::grade(kind, value));
    let plain = |name, text| FlowFigure::new(name, text, Grade::Unknown);
    let inp = step.interaction.as_ref().map(|timing| timing.duration_ms);
    let times = [
        ("INP", FieldKind::Inp, inp),
        ("FCP", FieldKind::Fcp, step.fcp_ms),
        ("LCP", FieldKind::Lcp, step.lcp_ms),
    ];
    let mut figures: Vec<FlowFigure> = times
        .into_iter()
        .filter_map(|(name, kind, value)| Some(graded(name, kind, value?, ms(value?))))
        .collect();
    figures.push(graded(
        "CLS",
        FieldKind::Cls,
        step.cls,
        format!("{:.3}", step.cls),
    ));
    figures.push(plain("TBT", ms(step.tbt_ms)));
    if step.settled_ms > 0.0 {
        figures.push(plain("At rest after", ms(step.settled_ms)));
    }
    if step.requests > 0 {
        let number = count(step.requests as usize, "request", "requests");
        figures.push(plain(
            "Network",
            format!("{number}, {}", bytes(step.transfer_bytes)),
        ));
    }
    figures
}

impl FlowFigure {
    fn new(name: &'static str, value: String, grade: Grade) -> Self {
        Self {
            name,
            value,
            class: grade.class(),
            grade: (grade != Grade::Unknown).then(|| grade.label()),
        }
    }
}

fn kind_name(kind: FlowStepKind) -> &'static str {
    match kind {
        FlowStepKind::Navigation => "Navigation",
        FlowStepKind::SoftNavigation => "Soft navigation",
        FlowStepKind::Timespan => "Timespan",
    }
}
