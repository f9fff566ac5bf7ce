//! Artifacts that one script of ours gives.

use std::future::Future;
use std::time::Duration;

use plumbline_axe::AXE_SOURCE;
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

/// Scrolls, so it comes after what only looks. Needs [`load_axe`].
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

/// Brings axe-core into our world, from now on: half a megabyte to send and read, for which the page's thread has time
/// while the browser is busy with the picture.
pub(super) fn load_axe(page: &Caller) -> impl Future<Output = Result<(), String>> + use<> {
    let page = page.clone();
    let loading = tokio::spawn(async move {
        let source = format!("{AXE_SOURCE};\n0");
        page.evaluate::<f64>(AXE.deadline, &source).await
    });
    async move {
        let loaded = loading.await.map_err(|error| error.to_string())?;
        loaded.map(drop).map_err(|error| missing(&error))
    }
}

/// Runs from now on, also if it is waited for later.
pub(super) fn start(
    page: &Caller,
    script: &'static Script,
) -> impl Future<Output = Gathered> + use<> {
    let page = page.clone();
    let running = tokio::spawn(async move { gather(&page, script).await });
    async move { running.await.unwrap_or_else(|error| Err(error.to_string())) }
}

pub(super) async fn gather(page: &Caller, script: &Script) -> Gathered {
    let text = script.text;
    let answer = match script.world {
        World::Ours => {
            let whole = format!("({text})({NODES})");
            page.evaluate::<Box<RawValue>>(script.deadline, &whole)
                .await
        }
        World::Pages => {
            let whole = format!("({text})()");
            page.evaluate_in_page(script.deadline, &whole).await
        }
    };
    answer.map_err(|error| missing(&error))
}
