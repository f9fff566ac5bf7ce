use plumbline_trace::{LargestPaint, Resource, Trace};

use super::{Fact, Facts, Missing};

/// The Largest Contentful Paint of the main frame with the requests behind it.
#[derive(Debug, Clone)]
pub struct LargestContent {
    /// The paint; `None` if the trace has none.
    pub paint: Option<LargestPaint>,
    /// The request of the document.
    pub document: Option<Resource>,
    /// The request of the image; `None` if the largest content is text, or an image without a
    /// request.
    pub image: Option<Resource>,
}

impl Fact for LargestContent {
    /// Finds the paint by Lighthouse's rules (trace_engine, handlers/PageLoadMetricsHandler.js and
    /// LargestImagePaintHandler.js).
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let trace = facts.get::<Trace>()?;
        let navigation = &trace.navigation;
        let mut paint: Option<&LargestPaint> = None;
        for candidate in &trace.paints.largest {
            let is_of_page = candidate.frame == trace.frames.main_id
                && candidate.index > 0
                && navigation.document_request.as_ref() == Some(&candidate.navigation_id);
            if is_of_page && paint.is_none_or(|last| last.index < candidate.index) {
                paint = Some(candidate);
            }
        }
        let document = trace
            .resources
            .all
            .iter()
            .find(|resource| navigation.document_request.as_ref() == Some(&resource.id));
        Ok(Self {
            image: paint
                .and_then(|paint| image_request(&trace, paint))
                .cloned(),
            paint: paint.cloned(),
            document: document.cloned(),
        })
    }
}

fn image_request<'t>(trace: &'t Trace, paint: &LargestPaint) -> Option<&'t Resource> {
    let node_id = paint.node_id.filter(|id| *id != 0)?;
    let image = trace
        .paints
        .largest_images
        .iter()
        .rfind(|image| image.process_id == paint.process_id && image.node_id == node_id)?;
    let is_of_image = |resource: &&Resource| {
        let mut redirects = resource.redirects.iter();
        resource.url == image.url || redirects.any(|redirect| redirect.url == image.url)
    };
    trace
        .resources
        .all
        .iter()
        .filter(|resource| resource.start_us >= trace.navigation.time_origin_us)
        .take_while(|resource| resource.start_us < image.ts_us)
        .find(is_of_image)
        .filter(|_| !image.url.is_empty())
}
