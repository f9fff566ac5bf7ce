//! Artifacts that a single script of ours returns.

use std::future::Future;
use std::time::Duration;

use plumbline_vendored::axe::AXE_SOURCE;
use serde_json::value::RawValue;

use super::{Gathered, error_text};
use crate::page::Caller;

/// Functions that all scripts use to find and describe elements.
pub(super) const NODES: &str = include_str!("nodes.js");

pub(super) struct Script {
    pub artifact: &'static str,
    text: &'static str,
    world: World,
    deadline: Duration,
}

#[derive(Clone, Copy)]
enum World {
    /// An isolated world, which the page cannot access.
    Ours,
    /// The page's own world.
    Pages,
}

/// Scripts that only read. Each takes milliseconds; the deadlines are for a very busy host.
pub(super) const READ_ONLY: &[Script] = &[
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

/// The script that runs axe-core, which only reads but takes long. Requires [`load_axe`].
pub(super) const AXE: Script = ours("axe", include_str!("axe.js"), 50);

/// The script that sends events to the page, and so runs last.
pub(super) const INPUTS: Script = ours("inputs", include_str!("inputs.js"), 10);

const fn ours(artifact: &'static str, text: &'static str, deadline_s: u64) -> Script {
    Script {
        artifact,
        text,
        world: World::Ours,
        deadline: Duration::from_secs(deadline_s),
    }
}

/// Execution context of our own world in the main document, or the reason why there is none.
pub(super) type OurWorld = Result<i64, String>;

/// Loads axe-core into our world, starting immediately: half a megabyte to send and parse, for
/// which the page's thread has time while the browser takes the screenshot.
pub(super) fn load_axe(
    page: &Caller,
    ours: &OurWorld,
) -> impl Future<Output = Result<(), String>> + use<> {
    let source = format!("{AXE_SOURCE};\n0");
    let evaluate = |context| page.evaluate::<f64>(Some(context), AXE.deadline, &source);
    let loading = ours.clone().map(evaluate);
    async move { loading?.await.map(drop).map_err(|error| error_text(&error)) }
}

/// Runs a script, starting immediately even if the future is awaited later.
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
    async move { running?.await.map_err(|error| error_text(&error)) }
}
