//! One visit, from an unused browser to the evidence.

mod caller;
mod events;
mod failure;
mod loading;
mod log;
mod named_nodes;
mod page;
mod plan;
mod trace;
mod wait;

use std::time::{Duration, Instant};

use plumbline_bundle::{BrowserIdentity, Bundle, FORMAT, Failure, FailureCode, Phase, PhaseTiming};
use serde_json::{Value, json};
use url::Url;

pub(crate) use caller::{Caller, Evaluated};
pub use failure::VisitError;
pub(crate) use page::{Page, open_target};
pub use plan::{NetworkPath, VisitPlan};

use crate::gather;
use crate::launch::Browser;
use crate::pacer::{self, Pacer};
use crate::protocol::{CallError, Excess};
use events::Navigated;

/// For preparing and gathering together; a trace of 60 MB takes Chromium some ten seconds.
const BESIDES_LOADING: Duration = Duration::from_secs(120);
const TRACE_DEADLINE: Duration = Duration::from_secs(45);

/// Visits the page of the plan with a browser that nobody has used, and ends the browser.
pub async fn visit(
    mut browser: Browser,
    plan: &VisitPlan,
    observer: &(dyn Fn(Step<'_>) + Send + Sync),
) -> Result<Bundle, VisitError> {
    let allowed = plan.deadline + BESIDES_LOADING;
    let outcome = tokio::time::timeout(allowed, walk(&mut browser, plan, observer))
        .await
        .unwrap_or_else(|_| {
            Err(VisitError::Fault(
                "the visit did not end in time".to_owned(),
            ))
        });
    let last_words = browser.stderr.clone();
    let has_ended = browser.client.has_ended();
    let exceeded_memory = browser.close().await;
    if let (Err(_), Some(bytes)) = (&outcome, exceeded_memory) {
        return Err(failure::too_much_memory(bytes).into());
    }
    outcome.map_err(|error| match error {
        VisitError::Fault(what) if has_ended => {
            VisitError::Fault(format!("{what}; it said:\n{}", last_words.text()))
        }
        error => error,
    })
}

/// The life of a visit.
async fn walk(
    browser: &mut Browser,
    plan: &VisitPlan,
    observer: &(dyn Fn(Step<'_>) + Send + Sync),
) -> Result<Bundle, VisitError> {
    let url = checked(&plan.url)?;
    let product = browser.version().product.clone();
    let user_agent = plan.device.user_agent(browser.version().major());
    let restock = browser.restock.take();
    let mut clock = Clock::start(observer);

    clock.enter(Phase::Preparing);
    let pacer = Pacer::start(browser.process_id(), plan.throttle);
    let mut page = Page::open(browser, plan).await?;
    page.call::<Value>("Tracing.start", trace::start()).await?;

    clock.enter(Phase::Loading);
    let deadline = Instant::now() + plan.deadline;
    navigate(&mut page, &url, deadline).await?;
    wait::until_quiet(&mut page, plan, deadline, &|url| {
        observer(Step::Arrived(url))
    })
    .await?;

    let pacing = pacer.finish();

    page.call::<Value>("Tracing.end", json!({})).await?;
    // Who hears of this phase may change the conditions: nothing is recorded any more.
    clock.enter(Phase::Gathering);
    drop(restock);
    // The trace arrives meanwhile: the browser writes it, the page's own process does the rest.
    let (screenshot, mut artifacts) = gather::artifacts(&mut page, &plan.device).await;
    page.check_size()?;
    artifacts.extend(gather::full_page(&mut page, &plan.device).await);
    page.check_size()?;
    let waiting = Instant::now();
    receive_trace(&mut page).await?;
    tracing::debug!(waited = ?waiting.elapsed(), "trace received");
    artifacts.extend(gather::after_trace(&mut page).await);
    page.check_size()?;
    artifacts.insert(pacer::ARTIFACT.to_owned(), pacing.into_artifact());
    clock.stop();

    let document = page.loading.main_document();
    warn_about_document(&mut page, document.status);
    Ok(Bundle {
        format: FORMAT,
        requested_url: plan.url.clone(),
        final_url: page.loading.final_url().to_owned(),
        document,
        browser: BrowserIdentity {
            product,
            user_agent,
        },
        screenshot,
        artifacts,
        timings: clock.timings,
        warnings: page.warnings,
        trace: page.trace.finish(),
        log: page.log.finish(),
    })
}

fn checked(url: &str) -> Result<Url, VisitError> {
    let refuse =
        |reason: String| VisitError::Page(Failure::new(FailureCode::BlockedTarget, reason));
    let parsed = Url::parse(url).map_err(|error| refuse(format!("Not an address: {error}.")))?;
    match parsed.scheme() {
        "http" | "https" => Ok(parsed),
        other => Err(refuse(format!("Addresses of `{other}:` are not visited."))),
    }
}

async fn navigate(page: &mut Page<'_>, url: &Url, deadline: Instant) -> Result<(), VisitError> {
    let left = deadline.saturating_duration_since(Instant::now());
    let answer = page
        .call_within(left, "Page.navigate", json!({"url": url.as_str()}))
        .await;
    let navigated: Navigated = match answer {
        Err(CallError::Late { .. }) => {
            return Err(VisitError::Page(Failure::new(
                FailureCode::Timeout,
                "The server sent no page in time.",
            )));
        }
        answer => answer?,
    };
    let loader = navigated.loader_id.unwrap_or_default();
    let status = page.loading.status_of(&loader);
    match navigated.error_text.as_deref() {
        None => Ok(()),
        Some(_) if navigated.is_download => Err(failure::not_html("a download").into()),
        Some("net::ERR_ABORTED") => Err(failure::not_html("").into()),
        Some(error) => Err(failure::from_net_error(error, status).into()),
    }
}

async fn receive_trace(page: &mut Page<'_>) -> Result<(), VisitError> {
    let given_up = Instant::now() + TRACE_DEADLINE;
    while !page.trace.is_complete() {
        if !page.next_event(given_up).await? {
            return Err(if page.trace.is_large() {
                CallError::TooLarge(Excess::SlowTrace).into()
            } else {
                VisitError::Fault("the trace did not arrive".to_owned())
            });
        }
    }
    Ok(())
}

fn warn_about_document(page: &mut Page<'_>, status: u16) {
    if status >= 400 {
        page.warn(format!(
            "The server answered with status {status}; that page was measured."
        ));
    }
    if page.loading.redirects_by_page() > 0 {
        page.warn(format!(
            "The page sent the browser on to {}, which was measured.",
            page.loading.final_url()
        ));
    }
}

/// What an observer hears of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    Entered(Phase),
    /// A document is there, redirects behind it: its address. Once more for every document that the page itself
    /// sends the browser on to.
    Arrived(&'a str),
}

/// Tells the observer of each phase, and how long it took.
struct Clock<'a> {
    observer: &'a (dyn Fn(Step<'_>) + Send + Sync),
    present: Option<(Phase, Instant)>,
    timings: Vec<PhaseTiming>,
}

impl<'a> Clock<'a> {
    fn start(observer: &'a (dyn Fn(Step<'_>) + Send + Sync)) -> Self {
        Self {
            observer,
            present: None,
            timings: Vec::new(),
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.stop();
        (self.observer)(Step::Entered(phase));
        self.present = Some((phase, Instant::now()));
    }

    fn stop(&mut self) {
        if let Some((phase, since)) = self.present.take() {
            let ms = since.elapsed().as_secs_f64() * 1000.0;
            self.timings.push(PhaseTiming { phase, ms });
        }
    }
}
