//! Performs one visit: from an unused browser to a bundle.

pub(crate) mod expectation;
mod profile;
mod wait;

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use plumbline_bundle::{
    BrowserIdentity, Bundle, FORMAT, Failure, FailureCode, Phase, PhaseTiming, StepRecord,
};
use plumbline_seam::SavedState;
use serde_json::json;
use tokio::time::error::Elapsed;
use url::Url;

use crate::cpu_emulation::{CpuEmulation, Throttle};
use crate::gather::{self, screenshot};
use crate::launch::Browser;
use crate::page::{self, NavigateResponse, Page, Purpose, TraceKind, VisitError};
use crate::plan::{Gathering, VisitPlan};
use crate::protocol::CallError;
use crate::{scheduling, steps};
pub use profile::{Analysis, ProfiledLoad, profile};
use wait::LoadDeadline;
pub(crate) use wait::time_since_long_task;

/// Maximum duration of preparing and gathering together. A trace of 60 MB takes Chromium about ten
/// seconds.
const OVERHEAD_DEADLINE: Duration = Duration::from_secs(120);

/// A function that is called with the events of a visit.
pub(crate) type Observer<'o> = dyn Fn(VisitEvent<'_>) + Send + Sync + 'o;

/// Visits the page of the plan with an unused browser, and ends the browser.
pub fn visit<'a>(
    mut browser: Browser,
    plan: &'a VisitPlan,
    observer: &'a (dyn Fn(VisitEvent<'_>) + Send + Sync),
) -> BoxFuture<'a, Result<Bundle, VisitError>> {
    Box::pin(async move {
        browser.wait_for_turn(plan.throttle).await;
        let timeout = plan.steps_deadline() + plan.deadline + OVERHEAD_DEADLINE;
        let result = tokio::time::timeout(timeout, perform(&mut browser, plan, observer)).await;
        end(browser, result).await
    })
}

/// Performs the steps of the plan with an unused browser, ends the browser, and returns the cookies
/// and the storage that they left. Nothing is measured.
pub fn sign_in<'a>(
    mut browser: Browser,
    plan: &'a VisitPlan,
    observer: &'a (dyn Fn(VisitEvent<'_>) + Send + Sync),
) -> BoxFuture<'a, Result<SavedState, VisitError>> {
    Box::pin(async move {
        let timeout = steps::DEADLINE + OVERHEAD_DEADLINE;
        let signing_in = steps::sign_in(&mut browser, plan, observer);
        let result = tokio::time::timeout(timeout, signing_in).await;
        end(browser, result).await
    })
}

/// Ends the browser, and returns the result of what was done with it.
async fn end<T>(
    browser: Browser,
    result: Result<Result<T, VisitError>, Elapsed>,
) -> Result<T, VisitError> {
    let result = result.unwrap_or_else(|_| {
        let reason = "the visit did not end in time".to_owned();
        Err(VisitError::Fault(reason))
    });
    let stderr = browser.stderr.clone();
    let has_ended = browser.client.has_ended();
    let exceeded_memory = browser.close().await;
    if let (Err(_), Some(bytes)) = (&result, exceeded_memory) {
        return Err(page::too_much_memory(bytes).into());
    }
    result.map_err(|error| match error {
        VisitError::Fault(reason) if has_ended => {
            VisitError::Fault(format!("{reason}; its standard error:\n{}", stderr.text()))
        }
        error => error,
    })
}

/// Performs the visit, up to the end of the browser.
async fn perform(
    browser: &mut Browser,
    plan: &VisitPlan,
    observer: &Observer<'_>,
) -> Result<Bundle, VisitError> {
    let url = parse_url(&plan.url)?;
    let product = browser.version().product.clone();
    let user_agent = plan.user_agent(browser.version());
    let restock = browser.restock.take();
    let mut timer = PhaseTimer::new(observer);

    timer.enter(Phase::Preparing);
    let (mut page, emulation) = open(browser, plan, observer, Purpose::Visit).await?;
    page.start_trace(TraceKind::Visit).await?;

    timer.enter(Phase::Loading);
    load(&mut page, plan, &url, observer).await?;

    let scheduling = emulation.finish_for_good();

    page.end_trace().await?;
    // The observer may change the conditions in this phase, because nothing is recorded any more.
    timer.enter(Phase::Gathering);
    drop(restock);
    for expect in plan.session_expect.iter().chain(&plan.expect) {
        let result = expectation::check(&mut page, expect).await;
        if let Err(VisitError::Page(failure)) = &result {
            report_unexpected_page(&mut page, plan, failure, observer).await;
        }
        result?;
    }
    // The browser process writes the trace meanwhile.
    let (screenshot, mut artifacts) = match plan.gathering {
        Gathering::Everything => {
            let (screenshot, mut artifacts) = gather::artifacts(&mut page, &plan.device).await;
            page.check_size()?;
            artifacts.extend(gather::full_page(&mut page, &plan.device).await);
            (screenshot, artifacts)
        }
        Gathering::Load => (None, gather::of_load(&mut page)),
    };
    page.check_size()?;
    let started_at = Instant::now();
    page.receive_trace().await?;
    tracing::debug!(duration = ?started_at.elapsed(), "trace received");
    let after_trace = gather::after_trace(&mut page, plan.gathering, &artifacts).await;
    artifacts.extend(after_trace);
    page.check_size()?;
    artifacts.insert(scheduling::ARTIFACT.to_owned(), scheduling.into_artifact());
    timer.stop();

    let document = page.loading.main_document();
    warn_about_document(&mut page, document.status);
    Ok(Bundle {
        recording: None,
        profile_trace: None,
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
        timings: timer.timings,
        warnings: page.warnings,
        trace: page.trace.take(),
        log: page.log.take(),
    })
}

/// Performs the steps of a plan, and opens an empty page with the processor of the device.
async fn open<'b>(
    browser: &'b mut Browser,
    plan: &VisitPlan,
    observer: &Observer<'_>,
    purpose: Purpose,
) -> Result<(Page<'b>, CpuEmulation), VisitError> {
    let browser_group = browser.process_id();
    if matches!(plan.throttle, Throttle::ByClock { .. }) && !browser.sees_clock() {
        let reason = "the browser does not see its clock".to_owned();
        return Err(VisitError::Fault(reason));
    }
    let tab = if plan.has_steps() {
        Some(steps::perform(browser, plan, observer).await?)
    } else {
        None
    };
    // The clock of a browser that waited for its visit may differ from the system's.
    browser.clock.set_wall_clock();
    // Before the page is opened, so that its threads are known when it is loading.
    let turn = browser.turn.take();
    let emulation = CpuEmulation::start(&browser.clock, browser_group, plan.throttle, turn)
        .map_err(|error| VisitError::Fault(error.to_string()))?;
    let page = Page::open_for(browser, plan, purpose, tab).await?;
    Ok((page, emulation))
}

/// Loads the page of a plan until network and CPU are idle.
async fn load(
    page: &mut Page<'_>,
    plan: &VisitPlan,
    url: &Url,
    observer: &Observer<'_>,
) -> Result<(), VisitError> {
    let deadline = LoadDeadline {
        page: page.clock.now() + plan.deadline,
        real: Instant::now() + plan.deadline.div_f64(page.clock.speed().min(1.0)),
    };
    navigate(page, url, deadline.real).await?;
    wait::until_idle(page, plan, deadline, &|url| {
        observer(VisitEvent::DocumentLoaded(url));
    })
    .await
}

/// Reports a page that is not the expected one, with a screenshot.
async fn report_unexpected_page(
    page: &mut Page<'_>,
    plan: &VisitPlan,
    failure: &Failure,
    observer: &Observer<'_>,
) {
    let started_at = Instant::now();
    let screenshot = steps::take_screenshot(page, screenshot::device_pixels(&plan.device)).await;
    observer(VisitEvent::StepEnded(&StepRecord {
        title: "check the measured page".to_owned(),
        url: page.final_url().to_owned(),
        ms: started_at.elapsed().as_secs_f64() * 1000.0,
        error: Some(failure.message.clone()),
        screenshot,
    }));
}

fn parse_url(url: &str) -> Result<Url, VisitError> {
    let refuse =
        |reason: String| VisitError::Page(Failure::new(FailureCode::BlockedTarget, reason));
    let parsed = Url::parse(url).map_err(|error| refuse(format!("Not a URL: {error}.")))?;
    match parsed.scheme() {
        "http" | "https" => Ok(parsed),
        other => Err(refuse(format!(
            "URLs with the scheme `{other}:` cannot be visited."
        ))),
    }
}

async fn navigate(page: &mut Page<'_>, url: &Url, deadline: Instant) -> Result<(), VisitError> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    let result = page
        .call_within(remaining, "Page.navigate", json!({"url": url.as_str()}))
        .await;
    let response: NavigateResponse = match result {
        Err(CallError::TimedOut { .. }) => {
            return Err(VisitError::Page(Failure::new(
                FailureCode::Timeout,
                "The server did not send a page in time.",
            )));
        }
        result => result?,
    };
    let loader = response.loader_id.unwrap_or_default();
    let Some(error) = response.error_text else {
        return Ok(());
    };
    let failure = match page.loading.status_failure(&loader) {
        Some(failure) => failure,
        None if response.is_download => page::not_html("a download"),
        None if error == "net::ERR_ABORTED" => page::not_html(""),
        None => page::from_net_error(&error, page.loading.status_of(&loader)),
    };
    Err(page.loading.request_failure(failure).into())
}

fn warn_about_document(page: &mut Page<'_>, status: u16) {
    if status >= 400 {
        page.warn(format!(
            "The server responded with status {status}; that page was measured."
        ));
    }
    if page.loading.redirects_by_page() > 0 {
        page.warn(format!(
            "The page navigated to {}, which was measured.",
            page.loading.final_url()
        ));
    }
}

/// An event of a visit, for its observer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum VisitEvent<'a> {
    /// A phase began.
    PhaseStarted(Phase),
    /// A document began to load, with its URL after redirects. This is repeated for every document
    /// that the page itself navigates to.
    DocumentLoaded(&'a str),
    /// A step before the visit was performed or failed, or the measured page was not the expected
    /// one.
    StepEnded(&'a StepRecord),
    /// The consent dialog of the page was answered, if there was one of a known manager.
    ConsentEnded { manager: Option<&'a str> },
}

/// Reports each phase to the observer and measures its duration.
struct PhaseTimer<'a> {
    observer: &'a Observer<'a>,
    current: Option<(Phase, Instant)>,
    timings: Vec<PhaseTiming>,
}

impl<'a> PhaseTimer<'a> {
    fn new(observer: &'a Observer<'a>) -> Self {
        Self {
            observer,
            current: None,
            timings: Vec::new(),
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.stop();
        (self.observer)(VisitEvent::PhaseStarted(phase));
        self.current = Some((phase, Instant::now()));
    }

    fn stop(&mut self) {
        if let Some((phase, started_at)) = self.current.take() {
            let ms = started_at.elapsed().as_secs_f64() * 1000.0;
            self.timings.push(PhaseTiming { phase, ms });
        }
    }
}
