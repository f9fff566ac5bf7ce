//! Gathers artifacts when the page is idle: one file per artifact, with its script next to it.
//! `README.md` lists them with their shapes.

mod ai_catalog;
mod anchors;
mod back_forward;
mod coverage;
mod full_page;
mod llms_txt;
mod main_document;
mod manifest;
mod network_resource;
pub(crate) mod original_places;
mod robots_txt;
pub(crate) mod screenshot;
mod scripted;
mod scripts;
mod site_file;
mod source_maps;
mod style_sheets;
mod trace_elements;
mod web_mcp;

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use plumbline_bundle::{Artifact, FullPagePicture, Screenshot};
use plumbline_catalog::Device;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::page::{Caller, Page, Recorded};
use crate::plan::Gathering;
use crate::protocol::{CallError, Reservation};
use coverage::ScriptCoverage;
use scripted::IsolatedWorld;
pub(crate) use scripted::NODES;
use scripts::ListedScripts;

/// Timeout of all artifacts together. The accessibility rules alone may take half a minute on a
/// page of ten thousand links.
const GATHER_TIMEOUT: Duration = Duration::from_secs(55);

/// Timeout of the artifacts that need the whole trace.
const AFTER_TRACE_TIMEOUT: Duration = Duration::from_secs(10);

/// Result of a gatherer: the artifact, or a sentence on why it is missing.
pub(crate) type Gathered = Result<Box<RawValue>, String>;

/// Timeout of creating our own world in the page, which comes first.
const WORLD_TIMEOUT: Duration = Duration::from_secs(10);

/// Gathers a screenshot and the artifacts while handling the browser's events. The page's main
/// thread does nearly all of it sequentially, so that everything is sent before anything is awaited
/// that it does not depend on: the thread would be idle between a response and the next request.
/// The rules of axe-core take longest and are sent last; everything sent before them is answered by
/// then, however long they take.
pub(crate) async fn artifacts(
    page: &mut Page<'_>,
    device: &Device,
) -> (Option<Screenshot>, BTreeMap<String, Artifact>) {
    let deadline = Instant::now() + GATHER_TIMEOUT;
    let recorded = page.stop_recording();
    let (caller, url) = (page.caller(), page.final_url().to_owned());
    let mut gatherer = Gatherer::within(&caller, deadline);
    gatherer.insert("console", to_artifact(&recorded.console));
    gatherer.insert("issues", to_artifact(&recorded.issues));
    let requests = send_requests(page, &caller, device, recorded).await;
    let fetching = fetch(
        caller.clone(),
        url,
        deadline,
        requests.scripts,
        requests.coverage,
        requests.catalog_links,
    );
    let fetching = tokio::spawn(fetching);
    let rules = gatherer.add(scripted::AXE.artifact, requests.axe);
    let ((), enabled) = page
        .drive(async { tokio::join!(rules, requests.sheets) })
        .await;
    // Only now: the rules inspect hidden elements too, and what they inspect counts as used.
    let reported = page.take_style_sheets();
    let sheets = enabled
        .map_err(|error| error_text(&error))
        .map(|_| style_sheets::gather(&caller, &requests.world, reported));
    let remaining_work = async {
        for (artifact, pending) in requests.pending {
            gatherer.add(artifact, pending).await;
        }
        gatherer.add_listeners(&caller, &requests.world).await;
        let screenshot = requests.screenshot.await;
        let inputs = scripted::start(&caller, &requests.world, &scripted::INPUTS);
        gatherer.add(scripted::INPUTS.artifact, inputs).await;
        gatherer.add("style-sheets", async { sheets?.await }).await;
        (screenshot, fetching.await)
    };
    let (screenshot, fetched) = page.drive(remaining_work).await;
    match fetched {
        Ok(fetched) => gatherer.add_all(fetched),
        Err(error) => ["robots-txt", "llms-txt", "ai-catalog", "scripts"]
            .into_iter()
            .for_each(|artifact| gatherer.insert(artifact, Err(error.to_string()))),
    }
    let screenshot = screenshot
        .inspect_err(|error| {
            page.warn(format!("Could not take a screenshot of the page: {error}."))
        })
        .ok();
    (screenshot, gatherer.into_artifacts(page))
}

/// Gathers the artifacts that depend on how the page loaded and do not need the trace. The page is
/// not laid out in CSS pixels, which only the accessibility of text needs.
pub(crate) fn of_load(page: &mut Page<'_>) -> BTreeMap<String, Artifact> {
    let recorded = page.stop_recording();
    page.disable_cpu_throttling();
    let mut gatherer = Gatherer::within(&page.caller(), Instant::now() + GATHER_TIMEOUT);
    gatherer.insert("console", to_artifact(&recorded.console));
    gatherer.insert("issues", to_artifact(&recorded.issues));
    gatherer.into_artifacts(page)
}

/// Gathers the artifacts that do not need the page's main thread, or no longer do.
async fn fetch(
    page: Caller,
    url: String,
    deadline: Instant,
    scripts: Result<ListedScripts, String>,
    coverage: PendingResult<HashMap<String, ScriptCoverage>>,
    catalog_links: CatalogLinks,
) -> Gatherer {
    let mut gatherer = Gatherer::within(&page, deadline);
    let mut catalog_gatherer = Gatherer::within(&page, deadline);
    let mut script_gatherer = Gatherer::within(&page, deadline);
    let with_maps = async {
        let coverage = coverage.await;
        scripts::gather(&page, &url, scripts, coverage).await
    };
    // The catalog may be named by robots.txt.
    let robots_and_catalog = async {
        let robots_txt = robots_txt::fetch(&page, &url).await;
        catalog_gatherer.insert(
            "robots-txt",
            robots_txt
                .as_ref()
                .map_err(Clone::clone)
                .and_then(to_artifact),
        );
        let link_element = catalog_links.element.await.ok();
        let references = ai_catalog::References {
            robots_txt: robots_txt
                .as_ref()
                .ok()
                .and_then(|file| file.content.as_deref()),
            link_element: link_element.as_deref(),
            link_header: catalog_links.header.as_deref(),
        };
        let catalog = ai_catalog::gather(&page, &url, references);
        catalog_gatherer.add("ai-catalog", catalog).await;
    };
    tokio::join!(
        gatherer.add("llms-txt", llms_txt::gather(&page, &url)),
        robots_and_catalog,
        script_gatherer.add("scripts", with_maps)
    );
    gatherer.add_all(catalog_gatherer);
    gatherer.add_all(script_gatherer);
    gatherer
}

/// References of the page to the site's catalog for agents.
struct CatalogLinks {
    element: PendingResult<Result<String, String>>,
    header: Option<String>,
}

type PendingResult<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Requests that were sent to the page's main thread.
struct SentRequests {
    world: IsolatedWorld,
    screenshot: PendingResult<Result<Screenshot, CallError>>,
    coverage: PendingResult<HashMap<String, ScriptCoverage>>,
    scripts: Result<ListedScripts, String>,
    pending: Vec<(&'static str, PendingResult<Gathered>)>,
    sheets: PendingResult<Result<Value, CallError>>,
    axe: PendingResult<Gathered>,
    catalog_links: CatalogLinks,
}

async fn send_requests(
    page: &mut Page<'_>,
    caller: &Caller,
    device: &Device,
    recorded: Recorded,
) -> SentRequests {
    let started = Instant::now();
    page.disable_cpu_throttling();
    let coverage = coverage::take(caller);
    let creating_world = caller.create_world(WORLD_TIMEOUT);
    let debugger = scripts::enable(caller);
    page.lay_out_in_css_pixels().await;
    tracing::debug!(duration = ?started.elapsed(), "laid out");
    let screenshot = screenshot::of_device(caller, device);
    let sheets = style_sheets::enable(caller);
    let document = main_document::gather(caller, page.document_request());
    let manifest = manifest::gather(caller);
    let installability = manifest::installability(caller);
    let mut pending: Vec<(_, PendingResult<Gathered>)> = vec![
        ("main-document", Box::pin(document)),
        ("manifest", Box::pin(manifest)),
        ("installability", Box::pin(installability)),
    ];
    let world = page
        .drive(creating_world)
        .await
        .map_err(|error| error_text(&error));
    for script in scripted::READ_ONLY {
        let running = scripted::start(caller, &world, script);
        pending.push((script.artifact, Box::pin(running)));
    }
    let web_mcp = web_mcp::gather(caller, &world, recorded.web_mcp_tools, &recorded.issues);
    pending.push(("web-mcp", Box::pin(web_mcp)));
    let catalog_links = CatalogLinks {
        element: Box::pin(ai_catalog::linked(caller, &world)),
        header: page.linked_by_header("ai-catalog").map(str::to_owned),
    };
    let loading_axe = scripted::load_axe(caller, &world);
    let scripts = scripts::parsed(page, debugger).await;
    tracing::debug!(duration = ?started.elapsed(), "scripts listed");
    let rules = scripted::start(caller, &world, &scripted::AXE);
    SentRequests {
        world,
        screenshot: Box::pin(screenshot),
        coverage: Box::pin(coverage),
        scripts,
        pending,
        sheets: Box::pin(sheets),
        axe: Box::pin(async {
            loading_axe.await?;
            rules.await
        }),
        catalog_links,
    }
}

/// Takes a screenshot of the whole page while the trace arrives: from here on the page may be laid
/// out again.
pub(crate) async fn full_page(page: &mut Page<'_>, device: &Device) -> BTreeMap<String, Artifact> {
    let caller = page.caller();
    let mut gatherer = Gatherer::within(&caller, Instant::now() + AFTER_TRACE_TIMEOUT);
    let screenshot = full_page::gather(&caller, device);
    page.drive(gatherer.add(FullPagePicture::ARTIFACT, screenshot))
        .await;
    gatherer.into_artifacts(page)
}

/// Gathers the artifacts that need a complete trace and, last, the one that navigates away, which
/// does not depend on how the page loaded.
pub(crate) async fn after_trace(
    page: &mut Page<'_>,
    gathering: Gathering,
    gathered: &BTreeMap<String, Artifact>,
) -> BTreeMap<String, Artifact> {
    let (caller, nodes) = (page.caller(), page.traced_nodes());
    let mut gatherer = Gatherer::within(&caller, Instant::now() + AFTER_TRACE_TIMEOUT);
    let elements = trace_elements::gather(&caller, nodes);
    page.drive(gatherer.add("trace-elements", elements)).await;
    if gathering == Gathering::Everything {
        let originals = original_places::gather(page, gathered);
        gatherer.add("original-places", originals).await;
        gatherer
            .add("back-forward-cache", back_forward::gather(page))
            .await;
    }
    gatherer.into_artifacts(page)
}

/// Artifacts, which count towards the memory that a page may use here.
struct Gatherer {
    artifacts: BTreeMap<String, Artifact>,
    reservation: Reservation,
    page: Caller,
    deadline: Instant,
}

impl Gatherer {
    fn within(page: &Caller, deadline: Instant) -> Self {
        Self {
            artifacts: BTreeMap::new(),
            reservation: page.reservation(),
            page: page.clone(),
            deadline,
        }
    }

    fn add_all(&mut self, other: Self) {
        self.artifacts.extend(other.artifacts);
        self.reservation.absorb(other.reservation);
    }

    fn into_artifacts(self, page: &mut Page<'_>) -> BTreeMap<String, Artifact> {
        page.hold(self.reservation);
        self.artifacts
    }

    async fn add(&mut self, name: &str, gathering: impl Future<Output = Gathered>) {
        let started = Instant::now();
        let remaining = self.deadline.saturating_duration_since(started);
        let result = tokio::time::timeout(remaining, gathering)
            .await
            .unwrap_or_else(|_| Err("gathering took too long".to_owned()));
        tracing::debug!(artifact = name, duration = ?started.elapsed(), "gathered");
        self.insert(name, result);
    }

    fn insert(&mut self, name: &str, result: Gathered) {
        let artifact = match result {
            Ok(raw) => match self.reservation.grow(raw.get().len()) {
                Ok(()) => Artifact::Gathered(raw),
                Err(limit) => {
                    self.page.abort(limit);
                    Artifact::Missing(limit.to_string())
                }
            },
            Err(reason) => Artifact::Missing(reason),
        };
        self.artifacts.insert(name.to_owned(), artifact);
    }

    /// Adds the listeners of links without a target, which a script cannot see, by protocol.
    async fn add_listeners(&mut self, page: &Caller, world: &IsolatedWorld) {
        if let (Ok(context), Some(Artifact::Gathered(raw))) =
            (world, self.artifacts.get(anchors::ARTIFACT))
        {
            match anchors::with_listeners(page, *context, raw).await {
                Ok(None) => {}
                Ok(Some(raw)) => self.insert(anchors::ARTIFACT, Ok(raw)),
                Err(error) => self.insert(anchors::ARTIFACT, Err(error.to_string())),
            }
        }
    }
}

fn to_artifact<T: Serialize + ?Sized>(value: &T) -> Gathered {
    to_raw_value(value).map_err(|error| error.to_string())
}

fn error_text(error: &CallError) -> String {
    error.to_string()
}

/// Returns a null artifact: searched for, and not present.
fn null_artifact() -> Gathered {
    to_artifact(&json!(null))
}
