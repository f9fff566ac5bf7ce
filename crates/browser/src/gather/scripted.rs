//! Artifacts that one script of ours gives.

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

/// Where a script runs, and with what.
#[derive(Clone, Copy)]
enum World {
    /// Beside the page, out of its reach.
    Ours,
    /// The same, with axe-core in it.
    OursWithAxe,
    /// The page's own.
    Pages,
}

/// Each takes milliseconds; the deadlines are for a host so busy that nothing comes first.
/// In the order in which they run: `inputs` sends events to the page, so it comes last.
pub(super) const SCRIPTS: &[Script] = &[
    ours("page", include_str!("page.js"), 10),
    ours("metas", include_str!("metas.js"), 10),
    ours("links", include_str!("links.js"), 10),
    ours("anchors", include_str!("anchors.js"), 10),
    ours("images", include_str!("images.js"), 10),
    Script {
        world: World::Pages,
        ..ours("libraries", include_str!("libraries.js"), 1)
    },
    Script {
        world: World::OursWithAxe,
        ..ours("axe", include_str!("axe.js"), 50)
    },
    ours("inputs", include_str!("inputs.js"), 10),
];

const fn ours(artifact: &'static str, text: &'static str, deadline_s: u64) -> Script {
    Script {
        artifact,
        text,
        world: World::Ours,
        deadline: Duration::from_secs(deadline_s),
    }
}

pub(super) async fn gather(page: &Caller, script: &Script) -> Gathered {
    let text = script.text;
    let answer = match script.world {
        World::Ours => {
            let whole = format!("({text})({NODES})");
            page.evaluate::<Box<RawValue>>(script.deadline, &whole)
                .await
        }
        World::OursWithAxe => {
            let whole = format!("{AXE_SOURCE};\n({text})({NODES})");
            page.evaluate(script.deadline, &whole).await
        }
        World::Pages => {
            let whole = format!("({text})()");
            page.evaluate_in_page(script.deadline, &whole).await
        }
    };
    answer.map_err(|error| missing(&error))
}
