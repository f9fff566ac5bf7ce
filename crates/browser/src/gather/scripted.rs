//! Artifacts that are returned by a single script.

use std::future::Future;
use std::time::Duration;

use plumbline_vendored::axe::AXE_SOURCE;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Gathered, error_text};
use crate::page::Caller;

/// Functions that all scripts use to find and describe elements.
pub(crate) const NODES: &str = include_str!("nodes.js");

pub(super) struct Script {
    pub artifact: &'static str,
    text: &'static str,
    world: World,
    deadline: Duration,
}

#[derive(Clone, Copy)]
enum World {
    /// An isolated world, which the page cannot access.
    Isolated,
    /// The page's own world.
    Page,
}

/// Scripts that only read. Each takes milliseconds; the deadlines are for a very busy host.
pub(super) const READ_ONLY: &[Script] = &[
    isolated("page", include_str!("page.js"), 10),
    isolated("metas", include_str!("metas.js"), 10),
    isolated("links", include_str!("links.js"), 10),
    isolated("anchors", include_str!("anchors.js"), 10),
    isolated("images", include_str!("images.js"), 10),
    isolated("image-sizing", include_str!("image-sizing.js"), 10),
    Script {
        world: World::Page,
        ..isolated("libraries", include_str!("libraries.js"), 5)
    },
];

/// The script that runs axe-core, which only reads but takes long. Requires [`load_axe`].
pub(super) const AXE: Script = isolated("axe", include_str!("axe.js"), 50);

/// The script that sends events to the page, and so runs last.
pub(super) const INPUTS: Script = isolated("inputs", include_str!("inputs.js"), 10);

const fn isolated(artifact: &'static str, text: &'static str, deadline_s: u64) -> Script {
    Script {
        artifact,
        text,
        world: World::Isolated,
        deadline: Duration::from_secs(deadline_s),
    }
}

/// Execution context of our own world in the main document, or the reason why there is none.
pub(super) type IsolatedWorld = Result<i64, String>;

/// Loads axe-core into our world, starting immediately: half a megabyte to send and parse, for
/// which the page's thread has time while the browser takes the screenshot.
pub(super) fn load_axe(
    page: &Caller,
    world: &IsolatedWorld,
) -> impl Future<Output = Result<(), String>> + use<> {
    let source = format!("{AXE_SOURCE};\n0");
    let evaluate = |context| page.evaluate::<f64>(Some(context), AXE.deadline, &source);
    let loading = world.clone().map(evaluate);
    async move { loading?.await.map(drop).map_err(|error| error_text(&error)) }
}

/// Runs a script, starting immediately even if the future is awaited later.
pub(super) fn start(
    page: &Caller,
    world: &IsolatedWorld,
    script: &Script,
) -> impl Future<Output = Gathered> + use<> {
    let (text, deadline) = (script.text, script.deadline);
    let running = match (script.world, world) {
        (World::Isolated, Ok(context)) => {
            let whole = format!("({text})({NODES})");
            Ok(page.evaluate::<Box<RawValue>>(Some(*context), deadline, &whole))
        }
        (World::Page, _) => Ok(page.evaluate(None, deadline, &format!("({text})()"))),
        (World::Isolated, Err(reason)) => Err(reason.clone()),
    };
    async move { running?.await.map_err(|error| error_text(&error)) }
}

/// Runs a script in our world and reads its result, starting immediately.
pub(super) fn evaluate<T: DeserializeOwned>(
    page: &Caller,
    world: &IsolatedWorld,
    text: &str,
    deadline: Duration,
) -> impl Future<Output = Result<T, String>> + Send + use<T> {
    let whole = format!("({text})({NODES})");
    let evaluate = |context| page.evaluate::<T>(Some(context), deadline, &whole);
    let running = world.clone().map(evaluate);
    async move { running?.await.map_err(|error| error_text(&error)) }
}
