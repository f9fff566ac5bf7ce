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

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use plumbline_bundle::{Artifact, Screenshot};
use plumbline_catalog::Device;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

pub(crate) use back_forward::Departure;
pub(crate) use console::{Console, Line};
pub(crate) use scripts::Scripts;
pub(crate) use style_sheets::StyleSheets;

use crate::protocol::{CallError, Held};
use crate::visit::{Caller, Page};
use coverage::Ran;
use scripted::OurWorld;
use scripts::Listed;

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
/// one thing after the other: so everything is on its way before anything is waited for that it does not need, as between
/// answer and question the thread would stand idle. The rules of axe-core take it longest and are sent last; what was sent
/// before them is answered by then, however long they take.
pub(crate) async fn artifacts(
    page: &mut Page<'_>,
    device: &Device,
) -> (Option<Screenshot>, BTreeMap<String, Artifact>) {
    let given_up = Instant::now() + ALL;
    let (console, issues) = page.stop_listening();
    let (caller, url) = (page.caller(), page.final_url().to_owned());
    let asked = ask(page, &caller, device).await;
    let fetched = fetched(caller.clone(), url, given_up, asked.scripts, asked.coverage);
    let fetched = tokio::spawn(fetched);
    let mut found = Found::within(&caller, given_up);
    found.keep("console", gathered(&console));
    found.keep("issues", gathered(&issues));
    let rules = found.add(scripted::AXE.artifact, asked.axe);
    let ((), enabled) = page
        .during(async { tokio::join!(rules, asked.sheets) })
        .await;
    // Only now: the rules look at what is hidden, too, and what they look at counts as used.
    let reported = page.take_style_sheets();
    let sheets = enabled
        .map_err(|error| missing(&error))
        .map(|_| style_sheets::gather(&caller, &asked.ours, reported));
    let the_rest = async {
        for (artifact, looking) in asked.looking {
            found.add(artifact, looking).await;
        }
        found.look_at_listeners(&caller, &asked.ours).await;
        let picture = asked.picture.await;
        let inputs = scripted::start(&caller, &asked.ours, &scripted::INPUTS);
        found.add(scripted::INPUTS.artifact, inputs).await;
        found.add("style-sheets", async { sheets?.await }).await;
        (picture, fetched.await)
    };
    let (picture, fetched) = page.during(the_rest).await;
    match fetched {
        Ok(fetched) => found.add_all(fetched),
        Err(error) => ["robots-txt", "scripts"]
            .into_iter()
            .for_each(|artifact| found.keep(artifact, Err(error.to_string()))),
    }
    let picture = picture
        .inspect_err(|error| page.warn(format!("No picture of the page could be taken: {error}.")))
        .ok();
    (picture, found.into_artifacts(page))
}

/// What needs no turn of the page's thread, or had its turn.
async fn fetched(
    page: Caller,
    url: String,
    given_up: Instant,
    scripts: Result<Listed, String>,
    coverage: OnItsWay<HashMap<String, Ran>>,
) -> Found {
    let mut found = Found::within(&page, given_up);
    let mut of_scripts = Found::within(&page, given_up);
    let with_maps = async {
        let ran = coverage.await;
        scripts::gather(&page, &url, scripts, ran).await
    };
    tokio::join!(
        found.add("robots-txt", robots_txt::gather(&page, &url)),
        of_scripts.add("scripts", with_maps)
    );
    found.add_all(of_scripts);
    found
}

type OnItsWay<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What the page's thread was asked for.
struct Asked {
    ours: OurWorld,
    picture: OnItsWay<Result<Screenshot, CallError>>,
    coverage: OnItsWay<HashMap<String, Ran>>,
    scripts: Result<Listed, String>,
    looking: Vec<(&'static str, OnItsWay<Gathered>)>,
    sheets: OnItsWay<Result<Value, CallError>>,
    axe: OnItsWay<Gathered>,
}

async fn ask(page: &mut Page<'_>, caller: &Caller, device: &Device) -> Asked {
    let started = Instant::now();
    page.lift_throttling();
    let coverage = coverage::take(caller);
    let world = caller.world(WORLD);
    let debugger = scripts::ask(caller);
    page.lay_out_in_css_pixels().await;
    tracing::debug!(took = ?started.elapsed(), "laid out");
    let picture = screenshot::screenshot(caller, device);
    let sheets = style_sheets::ask(caller);
    let document = main_document::gather(caller, page.document_request());
    let manifest = manifest::gather(caller);
    let installability = manifest::installability(caller);
    let mut looking: Vec<(_, OnItsWay<Gathered>)> = vec![
        ("main-document", Box::pin(document)),
        ("manifest", Box::pin(manifest)),
        ("installability", Box::pin(installability)),
    ];
    let ours = page.during(world).await.map_err(|error| missing(&error));
    for script in scripted::LOOKING {
        let running = scripted::start(caller, &ours, script);
        looking.push((script.artifact, Box::pin(running)));
    }
    let loading_axe = scripted::load_axe(caller, &ours);
    let scripts = scripts::parsed(page, debugger).await;
    tracing::debug!(took = ?started.elapsed(), "scripts listed");
    let rules = scripted::start(caller, &ours, &scripted::AXE);
    Asked {
        ours,
        picture: Box::pin(picture),
        coverage: Box::pin(coverage),
        scripts,
        looking,
        sheets: Box::pin(sheets),
        axe: Box::pin(async {
            loading_axe.await?;
            rules.await
        }),
    }
}

/// A picture of the whole page, while the trace arrives: from here on the page may be laid out anew.
pub(crate) async fn full_page(page: &mut Page<'_>, device: &Device) -> BTreeMap<String, Artifact> {
    let caller = page.caller();
    let mut found = Found::within(&caller, Instant::now() + AFTER_TRACE);
    let picture = full_page::gather(&caller, device);
    page.during(found.add(full_page::ARTIFACT, picture)).await;
    found.into_artifacts(page)
}

/// What only a complete trace names; and, at the very end, what takes the page away.
pub(crate) async fn after_trace(page: &mut Page<'_>) -> BTreeMap<String, Artifact> {
    let (caller, nodes) = (page.caller(), page.named_nodes());
    let mut found = Found::within(&caller, Instant::now() + AFTER_TRACE);
    let elements = trace_elements::gather(&caller, nodes);
    page.during(found.add("trace-elements", elements)).await;
    found
        .add("back-forward-cache", back_forward::gather(page))
        .await;
    found.into_artifacts(page)
}

/// Artifacts, counted as part of what a page may make us hold.
struct Found {
    artifacts: BTreeMap<String, Artifact>,
    held: Held,
    page: Caller,
    given_up: Instant,
}

impl Found {
    fn within(page: &Caller, given_up: Instant) -> Self {
        Self {
            artifacts: BTreeMap::new(),
            held: page.held(),
            page: page.clone(),
            given_up,
        }
    }

    fn add_all(&mut self, other: Self) {
        self.artifacts.extend(other.artifacts);
        self.held.absorb(other.held);
    }

    fn into_artifacts(self, page: &mut Page<'_>) -> BTreeMap<String, Artifact> {
        page.keep(self.held);
        self.artifacts
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
            Ok(raw) => match self.held.grow(raw.get().len()) {
                Ok(()) => Artifact::Gathered(raw),
                Err(excess) => {
                    self.page.give_up(excess);
                    Artifact::Missing(excess.to_string())
                }
            },
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
