//! Performs the steps before a visit, in the tab and the profile of the visit.
//!
//! Cookies and storage carry over, session storage too. Everything that makes a second load faster
//! is removed: the HTTP cache, service workers and their caches, the history of the tab and,
//! because the visit has a proxy of its own, all connections. If the visit shall find a warm cache,
//! a page is loaded last, and the caches stay.

mod consent;
mod element;
mod error;
mod flow;
mod input;
mod saved_state;
pub(crate) mod waiting;

use std::time::{Duration, Instant};

use plumbline_bundle::{Failure, FailureCode, Screenshot, StepRecord};
use plumbline_seam::{Action, Assertion, SavedState, Step, Viewport};
use serde_json::{Value, json};
use url::Url;

use crate::VisitEvent;
use crate::cpu_emulation::Throttle;
use crate::gather::screenshot;
use crate::launch::Browser;
use crate::page::{self, NavigateResponse, Page, Tab, VisitError};
use crate::plan::VisitPlan;
use crate::protocol::{CallError, Reservation};
use crate::visit::{Observer, expectation};
use error::StepError;
pub use flow::measure_flow;
use input::Keyboard;
use saved_state::StorageReader;

/// Maximum duration of all steps together, with the answer to a consent dialog and the removal of
/// caches.
pub(crate) const DEADLINE: Duration = Duration::from_secs(240);
/// Maximum duration of the steps.
const STEPS_DEADLINE: Duration = Duration::from_secs(120);
/// Maximum time to wait for the load event of a document. The next step waits for its element.
const LOAD_DEADLINE: Duration = Duration::from_secs(10);
/// Maximum time to wait for an idle network after the last step, which may have sent a request.
const SETTLE_DEADLINE: Duration = Duration::from_secs(5);
/// Maximum time to wait for an idle network of the page that fills the cache.
const FILL_CACHE_DEADLINE: Duration = Duration::from_secs(20);

/// Maximum time to leave the last document of the steps.
const LEAVE_DEADLINE: Duration = Duration::from_secs(10);
/// A page of the browser itself, which has a process of its own.
const OTHER_PAGE: &str = "chrome://terms";

const SCREENSHOT_DEADLINE: Duration = Duration::from_secs(5);
/// JPEG quality of the screenshots, lower than that of the visit because there are many.
const SCREENSHOT_QUALITY: u32 = 45;
/// Maximum size of one screenshot, in Base64.
const MAX_SCREENSHOT_CHARS: usize = 1_000_000;
/// Maximum size of all screenshots together, in Base64. That of a step that failed is always kept.
const MAX_SCREENSHOTS_CHARS: usize = 6_000_000;

/// Performs the steps of a plan in a new tab. The tab is as cold afterwards as a new one, unless
/// the visit shall find a warm cache.
pub(crate) async fn perform(
    browser: &mut Browser,
    plan: &VisitPlan,
    observer: &Observer<'_>,
) -> Result<Tab, VisitError> {
    let mut runner = run_all(browser, plan, None, observer).await?;
    if let Some(url) = plan.view.earlier_url(&plan.url) {
        let step = Step::goto(url);
        let place = "Loading a page to fill the cache".to_owned();
        runner.run(&step, place, plan, observer).await?;
        let deadline = Instant::now() + FILL_CACHE_DEADLINE;
        waiting::until_idle(&mut runner.page, deadline).await?;
        leave(&mut runner.page).await?;
    } else {
        make_cold(&mut runner.page).await?;
    }
    runner.page.detach().await
}

/// Performs the steps of a plan in a new tab, and returns the cookies and the storage that they
/// left.
pub(crate) async fn sign_in(
    browser: &mut Browser,
    plan: &VisitPlan,
    observer: &Observer<'_>,
) -> Result<SavedState, VisitError> {
    let reader = Some(StorageReader::default());
    let mut runner = run_all(browser, plan, reader, observer).await?;
    let mut reader = runner.storage.take().unwrap_or_default();
    reader.read(&mut runner.page).await?;
    reader.finish(&mut runner.page).await
}

/// Performs the steps of a plan in a new tab, and waits until its network is idle.
async fn run_all<'b>(
    browser: &'b mut Browser,
    plan: &VisitPlan,
    storage: Option<StorageReader>,
    observer: &Observer<'_>,
) -> Result<Runner<'b>, VisitError> {
    let network = match browser.proxy_port {
        Some(_) => &plan.steps_network,
        None => &plan.network,
    };
    let unthrottled = VisitPlan {
        network: network.clone(),
        throttle: Throttle::NONE,
        ..plan.clone()
    };
    let page = Page::open_for_steps(browser, &unthrottled).await?;
    let mut runner = Runner {
        reservation: page.caller().reservation(),
        page,
        keyboard: Keyboard::default(),
        size_px: screenshot::device_pixels(&plan.device),
        deadline: Instant::now() + STEPS_DEADLINE,
        screenshot_chars: 0,
        storage,
        is_measured: false,
    };
    let steps = &plan.steps.0;
    if !steps.is_empty() && starts_on_page(steps) {
        let step = Step::goto(&plan.url);
        let place = "Opening the page for the first step".to_owned();
        runner.run(&step, place, plan, observer).await?;
    }
    for (index, step) in steps.iter().enumerate() {
        let place = format!("Step {} of {} ({})", index + 1, steps.len(), step.title());
        runner.run(step, place, plan, observer).await?;
    }
    if !plan.consent.is_none() {
        runner.answer_consent(plan, observer).await?;
    }
    waiting::until_idle(&mut runner.page, Instant::now() + SETTLE_DEADLINE).await?;
    Ok(runner)
}

/// Returns whether the steps begin on the audited page, because they open none themselves.
fn starts_on_page(steps: &[Step]) -> bool {
    let mut steps = steps.iter();
    let first = steps.find(|step| {
        !matches!(
            step.action,
            Action::SetViewport(_) | Action::EmulateNetworkConditions(_)
        )
    });
    !first.is_some_and(|step| matches!(step.action, Action::Goto { .. }))
}

/// Removes what would make the visit faster than a first one. Cookies and storage stay.
async fn make_cold(page: &mut Page<'_>) -> Result<(), VisitError> {
    let origins: Vec<String> = page.loading.document_origins().iter().cloned().collect();
    leave(page).await?;
    for origin in origins {
        let types = "service_workers,cache_storage,shader_cache";
        let params = json!({ "origin": origin, "storageTypes": types });
        page.call::<Value>("Storage.clearDataForOrigin", params)
            .await?;
    }
    page.call::<Value>("Network.clearBrowserCache", json!({}))
        .await?;
    Ok(())
}

/// Leaves the last document, so that its process with its memory cache ends.
async fn leave(page: &mut Page<'_>) -> Result<(), VisitError> {
    // An empty page would share the process.
    leave_to(page, OTHER_PAGE).await?;
    leave_to(page, "about:blank").await?;
    reset_history(page).await
}

/// Navigates to one of the browser's own pages, and waits until the last document has ended.
async fn leave_to(page: &mut Page<'_>, url: &str) -> Result<(), VisitError> {
    let navigations = page.loading.navigations();
    let params = json!({ "url": url });
    page.call::<Value>("Page.navigate", params).await?;
    let deadline = Instant::now() + LEAVE_DEADLINE;
    while page.loading.navigations() == navigations {
        if !page.next_event(deadline).await? {
            let reason = "the page of the steps could not be left".to_owned();
            return Err(VisitError::Fault(reason));
        }
    }
    Ok(())
}

/// Removes the history of the tab, and with it the documents in the back/forward cache.
async fn reset_history(page: &mut Page<'_>) -> Result<(), VisitError> {
    let deadline = Instant::now() + LEAVE_DEADLINE;
    loop {
        let method = "Page.resetNavigationHistory";
        match page.call::<Value>(method, json!({})).await {
            // The browser refuses this for a moment after a navigation.
            Err(CallError::Refused { .. }) if waiting::next_check(page, deadline).await? => {}
            result => return Ok(result.map(drop)?),
        }
    }
}

/// Performs steps one after the other.
struct Runner<'b> {
    page: Page<'b>,
    keyboard: Keyboard,
    /// Width and height of the viewport in device pixels.
    size_px: (u32, u32),
    /// The end of all steps.
    deadline: Instant,
    /// Size of the screenshots so far.
    screenshot_chars: usize,
    /// Memory of the screenshots.
    reservation: Reservation,
    /// Reads the storage after each step, if a saved session is made.
    storage: Option<StorageReader>,
    /// Whether the steps are measured. Texts are then typed key by key.
    is_measured: bool,
}

impl Runner<'_> {
    /// Performs a step and reports it. If it fails, the failure names its place.
    async fn run(
        &mut self,
        step: &Step,
        place: String,
        plan: &VisitPlan,
        observer: &Observer<'_>,
    ) -> Result<(), VisitError> {
        let started_at = Instant::now();
        let timeout = Duration::from_millis(step.timeout_ms().into());
        let deadline = self.deadline.min(started_at + timeout);
        let reason = match self.act(step, plan, deadline).await {
            Ok(()) => None,
            Err(StepError::Failed(reason)) => Some(reason),
            Err(StepError::Unresponsive) => Some("the page did not respond in time".to_owned()),
            Err(StepError::Visit(error)) => return Err(error),
        };
        let ms = started_at.elapsed().as_secs_f64() * 1000.0;
        let record = StepRecord {
            title: step.title(),
            url: self.page.final_url().to_owned(),
            ms,
            screenshot: self.take_screenshot(reason.is_some()).await,
            error: reason.clone(),
        };
        self.page.check_size()?;
        observer(VisitEvent::StepEnded(&record));
        if let Some(storage) = &mut self.storage {
            storage.read(&mut self.page).await?;
        }
        match reason {
            None => Ok(()),
            Some(reason) => {
                let at = match record.url.as_str() {
                    "" => String::new(),
                    url => format!(" The page is at {url}."),
                };
                let message = format!("{place} failed: {reason}.{at}");
                Err(Failure::new(FailureCode::PreconditionFailed, message).into())
            }
        }
    }

    async fn act(
        &mut self,
        step: &Step,
        plan: &VisitPlan,
        deadline: Instant,
    ) -> Result<(), StepError> {
        let navigations = self.page.loading.navigations();
        match &step.action {
            Action::SetViewport(viewport) => self.set_viewport(viewport).await?,
            Action::Goto { url } => self.go_to(url, plan, deadline).await?,
            Action::Click(click) => self.click(step, click, 1, deadline).await?,
            Action::DoubleClick(click) => self.click(step, click, 2, deadline).await?,
            Action::Fill(entry) | Action::Select(entry) => self.fill(step, entry, deadline).await?,
            Action::Press { key } => self.press(key, deadline).await?,
            Action::KeyDown { key } => self.key_down(key, deadline).await?,
            Action::KeyUp { key } => self.key_up(key, deadline).await?,
            Action::Hover { selectors } => self.hover(step, selectors, deadline).await?,
            Action::Scroll(scroll) => self.scroll(step, scroll, deadline).await?,
            Action::WaitFor(condition) => self.wait_for(step, condition, deadline).await?,
            Action::Assert(assertion) => self.assert(assertion, deadline).await?,
            Action::EmulateNetworkConditions(throttle) => {
                let conditions = json!({
                    "offline": false,
                    "latency": throttle.latency.value().max(0.0),
                    "downloadThroughput": throttle.download.value(),
                    "uploadThroughput": throttle.upload.value(),
                });
                let method = "Network.emulateNetworkConditions";
                self.page.call::<Value>(method, conditions).await?;
            }
            Action::Close => {}
        }
        if step.asserted_events.is_empty() {
            waiting::until_started_navigation_ends(&mut self.page, deadline).await
        } else {
            waiting::until_navigated(&mut self.page, navigations, deadline).await
        }
    }

    async fn set_viewport(&mut self, viewport: &Viewport) -> Result<(), StepError> {
        let Viewport { width, height, .. } = *viewport;
        let scale = viewport.device_scale_factor.value();
        let metrics = json!({
            "width": width,
            "height": height,
            "deviceScaleFactor": scale,
            "mobile": viewport.is_mobile,
        });
        let method = "Emulation.setDeviceMetricsOverride";
        self.page.call::<Value>(method, metrics).await?;
        let touch = json!({ "enabled": viewport.has_touch });
        let method = "Emulation.setTouchEmulationEnabled";
        self.page.call::<Value>(method, touch).await?;
        let in_device_pixels = |px: u32| (f64::from(px) * scale).round() as u32;
        self.size_px = (in_device_pixels(width), in_device_pixels(height));
        Ok(())
    }

    async fn go_to(
        &mut self,
        url: &str,
        plan: &VisitPlan,
        deadline: Instant,
    ) -> Result<(), StepError> {
        let base = Url::parse(&plan.url).map_err(|error| StepError::failed(error.to_string()))?;
        let url = base
            .join(url)
            .map_err(|error| StepError::failed(error.to_string()))?;
        let remaining = deadline.saturating_duration_since(Instant::now());
        let params = json!({ "url": url.as_str() });
        let response: NavigateResponse = self
            .page
            .call_within(remaining, "Page.navigate", params)
            .await?;
        let loader = response.loader_id.unwrap_or_default();
        let status = self.page.loading.status_of(&loader);
        if let Some(status) = status.filter(|status| *status >= 400 && !plan.allow_error_status) {
            let reason = format!("the server responded with status {status}");
            return Err(StepError::Failed(reason));
        }
        match response.error_text.as_deref() {
            // A response without a document, such as one with status 204, may set cookies as well.
            None | Some("net::ERR_ABORTED") => {}
            Some(error) => {
                let failure = page::from_net_error(error, status);
                return Err(StepError::failed(failure.message));
            }
        }
        waiting::until_loaded(&mut self.page, deadline).await
    }

    async fn assert(&mut self, assertion: &Assertion, deadline: Instant) -> Result<(), StepError> {
        match expectation::check(&mut self.page, &assertion.expect).await {
            Err(VisitError::Page(failure)) if failure.code == FailureCode::PreconditionFailed => {
                return Err(StepError::failed(failure.message));
            }
            result => result?,
        }
        if let Some(expression) = &assertion.expression
            && !waiting::is_true(&mut self.page, expression, deadline).await?
        {
            return Err(StepError::failed("the expression is not true"));
        }
        Ok(())
    }

    /// Takes a screenshot after a step, within the limits of all screenshots.
    async fn take_screenshot(&mut self, is_last: bool) -> Option<Screenshot> {
        if self.screenshot_chars > MAX_SCREENSHOTS_CHARS && !is_last {
            return None;
        }
        let screenshot = take_screenshot(&mut self.page, self.size_px).await?;
        let chars = screenshot.data.len();
        self.reservation.grow(chars).ok()?;
        self.screenshot_chars += chars;
        Some(screenshot)
    }
}

/// Takes a screenshot of a viewport with this width and height in device pixels; `None` if that is
/// not possible, or if it is too large.
pub(crate) async fn take_screenshot(
    page: &mut Page<'_>,
    size_px: (u32, u32),
) -> Option<Screenshot> {
    let taking = screenshot::take(&page.caller(), size_px, SCREENSHOT_QUALITY);
    let taking = tokio::time::timeout(SCREENSHOT_DEADLINE, taking);
    let screenshot = page.drive(taking).await.ok()?.ok()?;
    (screenshot.data.len() <= MAX_SCREENSHOT_CHARS).then_some(screenshot)
}
