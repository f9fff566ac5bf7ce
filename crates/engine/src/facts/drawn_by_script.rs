use super::main_resource::ServedContent;
use super::{DocumentStart, Fact, Facts, LargestContent, Missing, TraceElements};

/// Whether the content of a paint is made by scripts, which then cannot be loaded after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DrawnByScript {
    pub first_paint: bool,
    pub largest_paint: bool,
}

impl Fact for DrawnByScript {
    /// Compares the painted content with the document as the server sent it.
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let document = facts.get::<DocumentStart>().ok();
        let Some(served) = document.as_ref().and_then(|it| it.content.as_ref()) else {
            // Bundles of earlier versions do not contain it.
            return Ok(Self::default());
        };
        let largest = facts.get::<LargestContent>().ok();
        let is_served = largest.is_none_or(|largest| is_served(facts, &largest, served));
        Ok(Self {
            first_paint: served.is_empty(),
            largest_paint: served.is_empty() || !is_served,
        })
    }
}

/// The beginnings of elements whose labels are no text of the document.
const PICTURES: [&str; 4] = ["<img", "<svg", "<image", "<video"];

/// Returns whether the largest content can be in the document. An image is if no script requested
/// it; an element without text may be.
fn is_served(facts: &Facts, largest: &LargestContent, served: &ServedContent) -> bool {
    if let Some(image) = &largest.image {
        return image.initiator_kind != "script";
    }
    let node = largest.paint.as_ref().map(|paint| paint.node_id);
    let node = node.and_then(|id| TraceElements::of(facts, id));
    node.is_none_or(|node| {
        let is_picture = PICTURES.iter().any(|tag| node.snippet.starts_with(tag));
        if is_picture {
            served.elements > 0
        } else {
            node.label == node.selector || served.may_contain(&node.label)
        }
    })
}
