//! The steps before a visit, with their pictures.

use plumbline_model::media::{PictureId, ReportMedia, StepEntry};

use super::figures::ms;
use super::film::FilmImage;
use super::pictures::PictureSource;

/// A step as a page shows it.
pub(super) struct StepView<'a> {
    pub(super) title: &'a str,
    pub(super) url: &'a str,
    pub(super) duration: String,
    pub(super) error: Option<&'a str>,
    pub(super) image: Option<FilmImage>,
}

/// Returns all steps in order.
pub(super) fn steps<'a>(media: &'a ReportMedia, source: &PictureSource) -> Vec<StepView<'a>> {
    let steps = media.steps.iter().enumerate();
    let view = |(index, step): (usize, &'a StepEntry)| StepView {
        title: &step.title,
        url: &step.url,
        duration: ms(step.ms),
        error: step.error.as_deref(),
        image: step.picture.as_ref().map(|picture| FilmImage {
            src: source.of(PictureId::Step(index), picture),
            width: picture.width_px,
            height: picture.height_px,
        }),
    };
    steps.map(view).collect()
}
