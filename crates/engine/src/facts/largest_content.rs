use plumbline_trace::{Fetch, LargestPaint, Trace};

use super::{Fact, Facts, Missing};

/// The largest contentful paint as the page's own frame told of it, with what brought it.
#[derive(Debug, Clone)]
pub struct LargestContent {
    /// None where the page told of none.
    pub paint: Option<LargestPaint>,
    /// The document's request.
    pub document: Option<Fetch>,
    /// The image's request; none where the largest content is text, or an image that needed no request.
    pub image: Option<Fetch>,
}

impl Fact for LargestContent {
    /// Lighthouse's rules (trace_engine, handlers/PageLoadMetricsHandler.js and LargestImagePaintHandler.js).
    fn find(facts: &Facts) -> Result<Self, Missing> {
        let trace = facts.get::<Trace>()?;
        let navigation = &trace.navigation;
        let mut paint: Option<&LargestPaint> = None;
        for candidate in &trace.paints.largest {
            let is_ours = candidate.frame == trace.frames.main_id
                && candidate.index > 0
                && candidate.navigation_id == navigation.id;
            if is_ours && paint.is_none_or(|last| last.index < candidate.index) {
                paint = Some(candidate);
            }
        }
        let document = trace.fetches.iter().find(|fetch| fetch.id == navigation.id);
        Ok(Self {
            image: paint
                .and_then(|paint| image_request(&trace, paint))
                .cloned(),
            paint: paint.cloned(),
            document: document.cloned(),
        })
    }
}

fn image_request<'t>(trace: &'t Trace, paint: &LargestPaint) -> Option<&'t Fetch> {
    let node_id = paint.node_id.filter(|id| *id != 0)?;
    let image = trace
        .paints
        .largest_images
        .iter()
        .rfind(|image| image.process_id == paint.process_id && image.node_id == node_id)?;
    trace
        .fetches
        .iter()
        .filter(|fetch| fetch.start_us >= trace.navigation.time_origin_us)
        .take_while(|fetch| fetch.start_us < image.ts_us)
        .find(|fetch| fetch.url == image.url || fetch.redirected_from.contains(&image.url))
        .filter(|_| !image.url.is_empty())
}
