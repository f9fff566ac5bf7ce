//! Evidence that is taken when the page is quiet: one file per artifact, with its script beside it.
//! `README.md` lists them with their shapes.

mod anchors;
mod back_forward;
mod console;
mod coverage;
mod full_page;
mod main_document;
mod manifest;
mod network_resource;
mod robots_txt;
mod screenshot;
mod scripted;
mod scripts;
mod source_maps;
mod style_sheets;
mod trace_elements;

use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, Instant};

use plumbline_bundle::{Artifact, Screenshot};
use plumbline_catalog::Device;
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

pub(crate) use back_forward::Departure;
pub(crate) use console::{Console, Line};
use scripted::OurWorld;
pub(crate) use scripts::Scripts;
pub(crate) use style_sheets::StyleSheets;

use crate::protocol::CallError;
use crate::visit::{Caller, Page};

/// For all artifacts together. The accessibility rules alone may take half a minute on a page of
/// ten thousand links.
const ALL: Duration = Duration::from_secs(55);

/// And for those that need the whole trace.
const AFTER_TRACE: Duration = Duration::from_secs(10);

/// What a gatherer gives: the artifact, or a sentence on why there is none.
pub(crate) type Gathered = Result<Box<RawValue>, String>;

/// For our own world in the page, which comes first.
const WORLD: Duration = Duration::from_secs(10);

/// A picture and the artifacts, and meanwhile whatever the browser reports. The page's own thread does nearly all of it,
/// one thing after the other, so as much as possible is on its way before anything is waited for: between question and
/// answer it would stand idle. Then, side by side, what the browser knows, what is fetched, and what scripts find.
pub(crate) async fn artifacts(
    page: &mut Page<'_>,
    device: &Device,
) -> (Option<Screenshot>, BTreeMap<String, Artifact>) {
    let given_up = Instant::now() + ALL;
    let started = Instant::now();
    let (console, issues) = page.stop_listening();
    let (caller, url) = (page.caller(), page.final_url().to_owned());
    let document = page.document_request().to_owned();
    page.lift_throttling();
    let coverage = coverage::take(&caller);
    let world = caller.world(WORLD);
    let picture = screenshot::screenshot(&caller, device);
    let debugger = scripts::ask(&caller);
    let sheets = style_sheets::ask(&caller);
    let ours = page.during(world).await.map_err(|error| missing(&error));
    tracing::debug!(took = ?started.elapsed(), "our world there");
    let looking: Vec<_> = scripted::LOOKING
        .iter()
        .map(|script| (script.artifact, scripted::start(&caller, &ours, script)))
        .collect();
    let loading_axe = scripted::load_axe(&caller, &ours);
    let scripts = scripts::parsed(page, debugger).await;
    tracing::debug!(took = ?started.elapsed(), "scripts listed");
    let used = style_sheets::used(&caller, ours.clone(), sheets);
    let used = page.during(used).await;
    let reported = page.take_style_sheets();
    let sheets = style_sheets::gather(&caller, reported, used);
    tracing::debug!(took = ?started.elapsed(), "style sheets listed");
    // Before anything runs that might move the page.
    let picture = match page.during(picture).await {
        Ok(picture) => Some(picture),
        Err(error) => {
            page.warn(format!("No picture of the page could be taken: {error}."));
            None
        }
    };
    tracing::debug!(took = ?started.elapsed(), "picture taken");
    let (caller, url) = (&caller, url.as_str());
    let known = async {
        let mut found = Found::within(given_up);
        found.keep("console", gathered(&console));
        found.keep("issues", gathered(&issues));
        let start = main_document::gather(caller, &document);
        found.add("main-document", start).await;
        found.add("manifest", manifest::gather(caller)).await;
        let errors = manifest::installability(caller);
        found.add("installability", errors).await;
        found.artifacts
    };
    let fetched = async {
        let (mut found, mut maps) = (Found::within(given_up), Found::within(given_up));
        let robots = robots_txt::gather(caller, url);
        let with_maps = async { scripts::gather(caller, url, scripts, coverage.await).await };
        tokio::join!(
            found.add("robots-txt", robots),
            maps.add("scripts", with_maps)
        );
        found.artifacts.extend(maps.artifacts);
        found.add("style-sheets", sheets).await;
        found.artifacts
    };
    let scripted = async {
        let mut found = Found::within(given_up);
        for (artifact, running) in looking {
            found.add(artifact, running).await;
        }
        found.look_at_listeners(caller, &ours).await;
        let axe = async {
            loading_axe.await?;
            scripted::start(caller, &ours, &scripted::AXE).await
        };
        found.add(scripted::AXE.artifact, axe).await;
        let inputs = scripted::start(caller, &ours, &scripted::INPUTS);
        found.add(scripted::INPUTS.artifact, inputs).await;
        found.artifacts
    };
    let together = async { tokio::join!(scripted, known, fetched) };
    let (scripted, known, fetched) = page.during(together).await;
    let mut all = known;
    all.extend(fetched);
    all.extend(scripted);
    (picture, all)
}

/// A picture of the whole page, while the trace arrives: from here on the page may be laid out anew.
pub(crate) async fn full_page(page: &mut Page<'_>) -> BTreeMap<String, Artifact> {
    let mut found = Found::within(Instant::now() + AFTER_TRACE);
    let caller = page.caller();
    let picture = full_page::gather(&caller);
    page.during(found.add(full_page::ARTIFACT, picture)).await;
    found.artifacts
}

/// What only a complete trace names; and, at the very end, what takes the page away.
pub(crate) async fn after_trace(page: &mut Page<'_>) -> BTreeMap<String, Artifact> {
    let mut found = Found::within(Instant::now() + AFTER_TRACE);
    let (caller, nodes) = (page.caller(), page.named_nodes());
    let elements = trace_elements::gather(&caller, nodes);
    page.during(found.add("trace-elements", elements)).await;
    found
        .add("back-forward-cache", back_forward::gather(page))
        .await;
    found.artifacts
}

struct Found {
    artifacts: BTreeMap<String, Artifact>,
    given_up: Instant,
}

impl Found {
    fn within(given_up: Instant) -> Self {
        Self {
            artifacts: BTreeMap::new(),
            given_up,
        }
    }

    async fn add(&mut self, name: &str, gathering: impl Future<Output = Gathered>) {
        let started = Instant::now();
        let left = self.given_up.saturating_duration_since(started);
        let gathered = tokio::time::timeout(left, gathering)
            .await
            .unwrap_or_else(|_| Err("gathering took too long".to_owned()));
        tracing::debug!(artifact = name, took = ?started.elapsed(), "gathered");
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
    async fn look_at_listeners(&mut self, page: &Caller, ours: &OurWorld) {
        if let (Ok(context), Some(Artifact::Gathered(raw))) =
            (ours, self.artifacts.get(anchors::ARTIFACT))
        {
            match anchors::with_listeners(page, *context, raw).await {
                Ok(None) => {}
                Ok(Some(raw)) => self.keep(anchors::ARTIFACT, Ok(raw)),
                Err(error) => self.keep(anchors::ARTIFACT, Err(error.to_string())),
            }
        }
    }
}

fn gathered<T: Serialize + ?Sized>(value: &T) -> Gathered {
    to_raw_value(value).map_err(|error| error.to_string())
}

fn missing(error: &CallError) -> String {
    error.to_string()
}

/// A null artifact: looked for, and not there.
fn nothing() -> Gathered {
    gathered(&json!(null))
}
