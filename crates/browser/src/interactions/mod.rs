//! Makes real inputs on the controls of a page and measures the time to the next paint.
//!
//! This happens in a browser of its own after the visit, so that nothing that was measured changes.
//! Each input is made on a page that was loaded again, from the cache and with the cookies and the
//! storage of the first load. The processor of the device is emulated; the network is not, because
//! the next paint after an input does not wait for it. Navigations, windows, downloads and requests
//! that may change something on a server are stopped.

mod choice;
mod input;
pub(crate) mod timing;

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use plumbline_bundle::{
    ControlKind, Failure, FailureCode, InputKind, InteractionRecord, InteractionRecords,
    InteractionTiming,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::follow_up;
use crate::gather::NODES;
use crate::launch::Browser;
use crate::page::{self, NavigateResponse, Page, VisitError};
use crate::plan::VisitPlan;
use crate::protocol::CallError;
use crate::steps::waiting;
use crate::visit::{Observer, expectation};
use choice::{Control, choose, find_again};
use timing::Timeline;

/// Maximum duration of all inputs and loads together, in real time.
const DEADLINE: Duration = Duration::from_secs(90);
/// Time in addition to all deadlines after which the browser is ended.
const MARGIN: Duration = Duration::from_secs(45);
/// Maximum duration of one load until the page is idle. A page that is not idle by then is used as
/// it is.
const LOAD_DEADLINE: Duration = Duration::from_secs(20);
/// Maximum duration of a script of ours on an idle page.
const SCRIPT_DEADLINE: Duration = Duration::from_secs(10);
/// Maximum time to collect the timing of an input, after the page has handled it.
const TIMING_DEADLINE: Duration = Duration::from_secs(8);
/// Maximum time for leaving a document.
const LEAVE_DEADLINE: Duration = Duration::from_secs(5);

/// Makes inputs on up to `plan.interactions` controls of a page with an unused browser, and ends
/// the browser. It never fails: the records contain the reason why something is missing.
pub fn interact<'a>(
    mut browser: Browser,
    plan: &'a VisitPlan,
    observer: &'a (dyn Fn(crate::VisitEvent<'_>) + Send + Sync),
) -> BoxFuture<'a, InteractionRecords> {
    Box::pin(async move {
        browser.wait_for_turn(plan.throttle).await;
        let mut records = InteractionRecords::default();
        let timeout = plan.steps_deadline() + DEADLINE + MARGIN;
        let performing = perform(&mut browser, plan, observer, &mut records);
        let result = tokio::time::timeout(timeout, performing).await;
        let error = follow_up::end(browser, result).await;
        records.error = error.or(records.error);
        records
    })
}

async fn perform(
    browser: &mut Browser,
    plan: &VisitPlan,
    observer: &Observer<'_>,
    records: &mut InteractionRecords,
) -> Result<(), VisitError> {
    // The bytes of all loads are counted together, also of those from the cache.
    let loads = u64::from(plan.interactions) + 2;
    let plan = VisitPlan {
        max_bytes: plan.max_bytes.saturating_mul(loads),
        ..plan.clone()
    };
    let (page, emulation) = follow_up::open(browser, &plan, observer).await?;
    let mut prober = Prober {
        page,
        plan: &plan,
        deadline: Instant::now() + DEADLINE,
        saved: None,
    };
    let result = prober.use_controls(records).await;
    emulation.finish();
    result
}

/// The state that the first load left, which each later load begins with.
struct SavedState {
    cookies: Value,
    /// The items of local storage and session storage.
    items: Value,
}

/// Makes inputs on the controls of a page, one after the other.
struct Prober<'b, 'p> {
    page: Page<'b>,
    plan: &'p VisitPlan,
    deadline: Instant,
    saved: Option<SavedState>,
}

impl Prober<'_, '_> {
    async fn use_controls(&mut self, records: &mut InteractionRecords) -> Result<(), VisitError> {
        // The first load fills the cache, and may show what later visits do not.
        self.load().await?;
        if let Some(expect) = &self.plan.expect {
            expectation::check(&mut self.page, expect).await?;
        }
        self.saved = Some(self.save_state().await?);
        self.restore_and_load().await?;
        let controls = self.controls().await?;
        records.controls = u32::try_from(controls.len()).unwrap_or(u32::MAX);
        let chosen = choose(&controls, self.plan.interactions.into());
        let count = chosen.len();
        for (index, control) in chosen.into_iter().enumerate() {
            if Instant::now() >= self.deadline {
                records.error = Some(format!(
                    "The time for inputs ended after {index} of {count} controls."
                ));
                break;
            }
            if index > 0 {
                self.restore_and_load().await?;
            }
            let result = self.measure(&control).await?;
            let (timing, not_measured) = match result {
                Ok(timing) => (Some(timing), None),
                Err(reason) => (None, Some(reason)),
            };
            records.interactions.push(InteractionRecord {
                kind: control.kind,
                name: control.name,
                selector: control.selector,
                snippet: control.snippet,
                timing,
                not_measured,
            });
        }
        Ok(())
    }

    /// Makes the input on a control. Returns the slowest interaction of it, or the reason why it
    /// could not be measured.
    async fn measure(
        &mut self,
        control: &Control,
    ) -> Result<Result<InteractionTiming, String>, VisitError> {
        let unresponsive = || Ok(Err("cannot be used: the page did not respond".to_owned()));
        let controls = match self.controls().await {
            Err(VisitError::Page(_)) => return unresponsive(),
            result => result?,
        };
        let Some(index) = find_again(control, &controls) else {
            return Ok(Err("is not there when the page is loaded again".to_owned()));
        };
        let is_select = control.kind == ControlKind::Select;
        let arguments = format!("{index}, {is_select}");
        let script = include_str!("prepare.js");
        let point = match self.run::<input::Readiness>(script, &arguments).await? {
            Some(input::Readiness::At(point)) => point,
            Some(input::Readiness::NotReady(reason)) => return Ok(Err(reason)),
            None => return unresponsive(),
        };
        let observe = include_str!("observe.js");
        if self.run::<bool>(observe, NODES).await?.is_none() {
            return unresponsive();
        }
        self.confine(true);
        let sent = self.send_input(control.kind, point).await;
        let collected = match sent {
            Ok(()) => {
                let ms = TIMING_DEADLINE.as_millis().to_string();
                let collect = include_str!("collect.js");
                let deadline = 2 * TIMING_DEADLINE;
                self.run_within::<Timeline>(deadline, collect, &ms).await
            }
            Err(error) => Err(error),
        };
        let departure = self.confine(false);
        if let Some(departure) = departure {
            return Ok(Err(departure.reason().to_owned()));
        }
        if let Some(failure) = self.page.loading.failure() {
            return Err(failure.clone().into());
        }
        match collected {
            Ok(Some(timeline)) => {
                let pointer = if self.plan.device.touch {
                    InputKind::Tap
                } else {
                    InputKind::Click
                };
                let slowest = timeline.slowest(pointer);
                Ok(slowest.ok_or_else(|| "the browser reported no interaction".to_owned()))
            }
            Ok(None) | Err(VisitError::Page(_)) => {
                let seconds = input::DEADLINE.as_secs();
                // A handler that never ends would also prevent the next load.
                let caller = self.page.caller();
                caller.send("Runtime.terminateExecution", json!({}));
                Ok(Err(format!("the page did not respond within {seconds} s")))
            }
            Err(error) => Err(error),
        }
    }

    /// Begins or ends to keep the page where it is, and returns an attempt to leave it.
    fn confine(&mut self, is_active: bool) -> Option<page::Departure> {
        let confinement = self.page.confinement.as_mut()?;
        if is_active {
            confinement.begin();
            None
        } else {
            confinement.end()
        }
    }

    /// Returns the visible controls of the page.
    async fn controls(&mut self) -> Result<Vec<Control>, VisitError> {
        let controls = self.run(include_str!("controls.js"), NODES).await?;
        controls.ok_or_else(|| unresponsive("The page did not respond after its load."))
    }

    /// Restores the state and loads the page again.
    async fn restore_and_load(&mut self) -> Result<(), VisitError> {
        if let Some(saved) = &self.saved {
            let (cookies, items) = (saved.cookies.clone(), saved.items.to_string());
            self.run::<Value>(include_str!("storage.js"), &items)
                .await?;
            self.leave().await?;
            let method = "Network.clearBrowserCookies";
            self.page.call::<Value>(method, json!({})).await?;
            let cookies = json!({ "cookies": cookies });
            match self.page.call::<Value>("Network.setCookies", cookies).await {
                Err(CallError::Refused { reason, .. }) => {
                    tracing::debug!(reason, "cookies could not be restored");
                }
                result => drop(result?),
            }
        }
        self.load().await
    }

    async fn save_state(&mut self) -> Result<SavedState, VisitError> {
        let mut cookies: Value = self.page.call("Network.getAllCookies", json!({})).await?;
        let items = self.run(include_str!("storage.js"), "null").await?;
        Ok(SavedState {
            cookies: cookies["cookies"].take(),
            items: items.unwrap_or_else(|| json!([])),
        })
    }

    /// Leaves the document, so that it is loaded again even if only its fragment differs.
    async fn leave(&mut self) -> Result<(), VisitError> {
        let params = json!({ "url": "about:blank" });
        let leaving = self
            .page
            .call_within::<Value>(LEAVE_DEADLINE, "Page.navigate", params);
        match leaving.await {
            Err(CallError::TimedOut { .. }) => {
                Err(unresponsive("The page could not be loaded again."))
            }
            result => Ok(result.map(drop)?),
        }
    }

    /// Loads the page, and waits until it is idle.
    async fn load(&mut self) -> Result<(), VisitError> {
        let deadline = Instant::now() + LOAD_DEADLINE;
        let params = json!({ "url": self.plan.url });
        let navigating = self
            .page
            .call_within(LOAD_DEADLINE, "Page.navigate", params);
        let response: NavigateResponse = match navigating.await {
            Err(CallError::TimedOut { .. }) => {
                return Err(unresponsive("The server did not send the page in time."));
            }
            result => result?,
        };
        let loader = response.loader_id.unwrap_or_default();
        if let Some(failure) = self.page.loading.status_failure(&loader) {
            return Err(self.page.loading.request_failure(failure).into());
        }
        if let Some(error) = response.error_text {
            let failure = page::from_net_error(&error, None);
            return Err(self.page.loading.request_failure(failure).into());
        }
        waiting::until_at_rest(&mut self.page, deadline).await?;
        if let Some(failure) = self.page.loading.failure() {
            return Err(failure.clone().into());
        }
        Ok(())
    }

    /// Calls a function of a script with arguments in our world; `None` if the page does not
    /// respond or the script fails.
    async fn run<T: DeserializeOwned>(
        &mut self,
        script: &str,
        arguments: &str,
    ) -> Result<Option<T>, VisitError> {
        self.run_within(SCRIPT_DEADLINE, script, arguments).await
    }

    async fn run_within<T: DeserializeOwned>(
        &mut self,
        deadline: Duration,
        script: &str,
        arguments: &str,
    ) -> Result<Option<T>, VisitError> {
        let call = format!("({script})({arguments})");
        match self.page.evaluate(deadline, &call).await {
            Ok(value) => Ok(Some(value)),
            Err(
                error @ (CallError::TimedOut { .. }
                | CallError::Refused { .. }
                | CallError::InvalidResponse { .. }),
            ) => {
                tracing::debug!(%error, "a script for an interaction failed");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn unresponsive(message: &str) -> VisitError {
    Failure::new(FailureCode::PageHung, message).into()
}
