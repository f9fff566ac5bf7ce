//! Evidence that is taken when the page is quiet: one file per artifact, with its script beside it.
//! `README.md` lists them with their shapes.

mod anchors;
mod console;
mod coverage;
mod main_document;
mod manifest;
mod network_resource;
mod robots_txt;
mod screenshot;
mod scripted;
mod scripts;
mod style_sheets;

use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, Instant};

use plumbline_bundle::Artifact;
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

pub(crate) use console::{Console, Line};
pub(crate) use screenshot::screenshot;
pub(crate) use scripts::Scripts;
pub(crate) use style_sheets::StyleSheets;

use crate::protocol::CallError;
use crate::visit::Page;

/// For all artifacts together. The accessibility rules alone may take half a minute on a page of
/// ten thousand links.
const ALL: Duration = Duration::from_secs(55);

/// What a gatherer gives: the artifact, or a sentence on why there is none.
pub(crate) type Gathered = Result<Box<RawValue>, String>;

/// Everything but the screenshot. What comes last may disturb the page, so the order counts.
pub(crate) async fn artifacts(page: &mut Page<'_>) -> BTreeMap<String, Artifact> {
    let mut found = Found {
        artifacts: BTreeMap::new(),
        given_up: Instant::now() + ALL,
    };
    let (console, issues) = page.stop_listening();
    found.keep("console", gathered(&console));
    found.keep("issues", gathered(&issues));
    page.lift_throttling().await;
    let coverage = coverage::take(page).await;
    found
        .add("main-document", main_document::gather(page))
        .await;
    found.add("manifest", manifest::gather(page)).await;
    found
        .add("installability", manifest::installability(page))
        .await;
    found.add("robots-txt", robots_txt::gather(page)).await;
    found.add("scripts", scripts::gather(page, &coverage)).await;
    found.add("style-sheets", style_sheets::gather(page)).await;
    for script in scripted::SCRIPTS {
        found
            .add(script.artifact, scripted::gather(page, script))
            .await;
        if script.artifact == anchors::ARTIFACT {
            found.look_at_listeners(page).await;
        }
    }
    found.artifacts
}

struct Found {
    artifacts: BTreeMap<String, Artifact>,
    given_up: Instant,
}

impl Found {
    async fn add(&mut self, name: &str, gathering: impl Future<Output = Gathered>) {
        let left = self.given_up.saturating_duration_since(Instant::now());
        let gathered = tokio::time::timeout(left, gathering)
            .await
            .unwrap_or_else(|_| Err("gathering took too long".to_owned()));
        self.keep(name, gathered);
    }

    fn keep(&mut self, name: &str, gathered: Gathered) {
        let artifact = match gathered {
            Ok(raw) => Artifact::Gathered(raw),
            Err(reason) => Artifact::Missing(reason),
        };
        self.artifacts.insert(name.to_owned(), artifact);
    }

    /// What a script cannot see of links without a target is asked of the protocol.
    async fn look_at_listeners(&mut self, page: &mut Page<'_>) {
        if let Some(Artifact::Gathered(raw)) = self.artifacts.get(anchors::ARTIFACT) {
            match anchors::with_listeners(page, raw).await {
                Ok(None) => {}
                Ok(Some(raw)) => self.keep(anchors::ARTIFACT, Ok(raw)),
                Err(error) => self.keep(anchors::ARTIFACT, Err(error.to_string())),
            }
        }
    }
}

fn gathered(value: &impl Serialize) -> Gathered {
    to_raw_value(value).map_err(|error| error.to_string())
}

fn missing(error: &CallError) -> String {
    error.to_string()
}

/// A null artifact: looked for, and not there.
fn nothing() -> Gathered {
    gathered(&json!(null))
}
