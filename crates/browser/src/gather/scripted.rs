//! Artifacts that one script of ours gives.

use std::future::Future;
use std::time::Duration;

use plumbline_vendored::axe::AXE_SOURCE;
use serde_json::value::RawValue;

use super::{Gathered, missing};
use crate::visit::Caller;

/// What every script may use to find and describe elements.
pub(super) const NODES: &str = include_str!("nodes.js");

pub(super) struct Script {
    pub artifact: &'static str,
    text: &'static str,
    world: World,
    deadline: Duration,
}

#[derive(Clone, Copy)]
enum World {
    /// Beside the page, out of its reach.
    Ours,
    /// The page's own.
    Pages,
}

/// These only look. Each takes milliseconds; the deadlines are for a host so busy that nothing comes first.
pub(super) const LOOKING: &[Script] = &[
    ours("page", include_str!("page.js"), 10),
    ours("metas", include_str!("metas.js"), 10),
    ours("links", include_str!("links.js"), 10),
    ours("anchors", include_str!("anchors.js"), 10),
    ours("images", include_str!("images.js"), 10),
    ours("image-sizing", include_str!("image-sizing.js"), 10),
    Script {
        world: World::Pages,
        ..ours("libraries", include_str!("libraries.js"), 5)
    },
];

/// Looks, too, and for long. Needs [`load_axe`].
pub(super) const AXE: Script = ours("axe", include_str!("axe.js"), 50);

/// Sends events to the page, so it comes last.
pub(super) const INPUTS: Script = ours("inputs", include_str!("inputs.js"), 10);

const fn ours(artifact: &'static str, text: &'static str, deadline_s: u64) -> Script {
    Script {
        artifact,
        text,
        world: World::Ours,
        deadline: Duration::from_secs(deadline_s),
    }
}

/// The context of our own world in the document that is looked at, or why there is none.
pub(super) type OurWorld = Result<i64, String>;

/// Brings axe-core into our world, from now on: half a megabyte to send and read, for which the page's thread has time
/// while the browser is busy with the picture.
pub(super) fn load_axe(
    page: &Caller,
    ours: &OurWorld,
) -> impl Future<Output = Result<(), String>> + use<> {
    let source = format!("{AXE_SOURCE};\n0");
    let evaluate = |context| page.evaluate::<f64>(Some(context), AXE.deadline, &source);
    let loading = ours.clone().map(evaluate);
    async move { loading?.await.map(drop).map_err(|error| missing(&error)) }
}

/// Runs from now on, also if it is waited for later.
pub(super) fn start(
    page: &Caller,
    ours: &OurWorld,
    script: &Script,
) -> impl Future<Output = Gathered> + use<> {
    let (text, deadline) = (script.text, script.deadline);
    let running = match (script.world, ours) {
        (World::Ours, Ok(context)) => {
            let whole = format!("({text})({NODES})");
            Ok(page.evaluate::<Box<RawValue>>(Some(*context), deadline, &whole))
        }
        (World::Pages, _) => Ok(page.evaluate(None, deadline, &format!("({text})()"))),
        (World::Ours, Err(reason)) => Err(reason.clone()),
    };
    async move { running?.await.map_err(|error| missing(&error)) }
}
