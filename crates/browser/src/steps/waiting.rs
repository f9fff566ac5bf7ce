//! Waits for conditions, each until a deadline.

use std::time::{Duration, Instant};

use plumbline_seam::{Condition, Step};
use serde_json::json;

use super::error::StepError;
use super::{LOAD_DEADLINE, Runner};
use crate::page::{Page, VisitError};
use crate::protocol::CallError;
use crate::visit::{expectation, time_since_long_task};

/// Time between two checks of a condition.
const INTERVAL: Duration = Duration::from_millis(100);
/// Time in which an action can start a navigation.
const NAVIGATION_START: Duration = Duration::from_millis(100);
/// Time without requests after which the network counts as idle.
const IDLE: Duration = Duration::from_millis(500);

/// The least time for a call that is made just before the deadline of its step.
const MIN_CALL_TIME: Duration = Duration::from_secs(5);

/// Returns the time for a call of a step.
pub(super) fn time_until(deadline: Instant) -> Duration {
    let remaining = deadline.saturating_duration_since(Instant::now());
    remaining.max(MIN_CALL_TIME)
}

/// Handles events for one interval. Returns `false` if the deadline has passed.
pub(super) async fn next_check(page: &mut Page<'_>, deadline: Instant) -> Result<bool, VisitError> {
    if Instant::now() >= deadline {
        return Ok(false);
    }
    let until = page.clock.now() + INTERVAL;
    while page.next_event_until(until, deadline).await? {}
    Ok(true)
}

/// Waits until the document is loaded, but not long: the next step waits for its own element.
pub(super) async fn until_loaded(page: &mut Page<'_>, deadline: Instant) -> Result<(), StepError> {
    let deadline = deadline.min(Instant::now() + LOAD_DEADLINE);
    while !page.loading.is_loaded() || page.loading.is_navigating() {
        if !page.next_event(deadline).await? {
            break;
        }
    }
    Ok(())
}

/// Waits until a navigation that the last action has started is loaded, if there is one.
pub(super) async fn until_started_navigation_ends(
    page: &mut Page<'_>,
    deadline: Instant,
) -> Result<(), StepError> {
    let start = page.clock.now() + NAVIGATION_START;
    while !page.loading.is_navigating() {
        if !page.next_event_until(start, deadline).await? {
            return Ok(());
        }
    }
    until_loaded(page, deadline).await
}

/// Waits until the page has navigated since `navigations` were counted.
pub(super) async fn until_navigated(
    page: &mut Page<'_>,
    navigations: u32,
    deadline: Instant,
) -> Result<(), StepError> {
    while page.loading.navigations() == navigations {
        if !page.next_event(deadline).await? {
            return Err(StepError::failed("no navigation followed in time"));
        }
    }
    until_started_navigation_ends(page, deadline).await
}

/// Returns whether the page is loaded and its network is idle.
pub(super) fn is_idle(page: &Page<'_>) -> bool {
    let idle_at = page.loading.idle_at(IDLE);
    idle_at.is_some_and(|at| page.clock.now() >= at)
}

/// Waits until the page is loaded and its network is idle. Returns whether it was in time.
pub(crate) async fn until_idle(page: &mut Page<'_>, deadline: Instant) -> Result<bool, VisitError> {
    loop {
        if is_idle(page) {
            return Ok(true);
        }
        if !next_check(page, deadline).await? {
            return Ok(false);
        }
    }
}

/// Returns whether a JavaScript expression is true in the page. One that throws is not.
pub(super) async fn is_true(
    page: &mut Page<'_>,
    expression: &str,
    deadline: Instant,
) -> Result<bool, StepError> {
    let script = format!("(async () => Boolean(await (\n{expression}\n)))()");
    let remaining = time_until(deadline);
    let evaluating = page.caller().evaluate::<bool>(None, remaining, &script);
    match page.drive(evaluating).await {
        Ok(value) => Ok(value),
        // The expression throws or takes too long, or its document is being replaced.
        Err(
            CallError::InvalidResponse { .. }
            | CallError::Refused { .. }
            | CallError::TimedOut { .. },
        ) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Waits until the network is idle, and the main thread had no long task for half a second. A page
/// that is not idle by the deadline is used as it is.
pub(crate) async fn until_at_rest(
    page: &mut Page<'_>,
    deadline: Instant,
) -> Result<(), VisitError> {
    until_idle(page, deadline).await?;
    while Instant::now() < deadline {
        let idle_time = time_since_long_task(page, deadline).await?;
        if idle_time >= IDLE {
            break;
        }
        let at = page.clock.now() + (IDLE - idle_time);
        while page.next_event_until(at, deadline).await? {}
    }
    Ok(())
}

impl Runner<'_> {
    pub(super) async fn wait_for(
        &mut self,
        step: &Step,
        condition: &Condition,
        deadline: Instant,
    ) -> Result<(), StepError> {
        loop {
            let reason = if condition.selectors.is_some() {
                self.missing_element(step, condition, deadline).await?
            } else if let Some(pattern) = &condition.url {
                let is_met = expectation::matches(pattern, self.page.final_url());
                (!is_met).then(|| format!("its URL is not `{pattern}`"))
            } else if let Some(expression) = &condition.expression {
                let is_met = is_true(&mut self.page, expression, deadline).await?;
                (!is_met).then(|| "the expression did not become true in time".to_owned())
            } else {
                let is_idle = until_idle(&mut self.page, deadline).await?;
                (!is_idle).then(|| "the network was not idle in time".to_owned())
            };
            let Some(reason) = reason else {
                return Ok(());
            };
            if !next_check(&mut self.page, deadline).await? {
                return Err(StepError::Failed(reason));
            }
        }
    }

    /// Returns why a condition on elements is not met; `None` if it is.
    async fn missing_element(
        &mut self,
        step: &Step,
        condition: &Condition,
        deadline: Instant,
    ) -> Result<Option<String>, StepError> {
        let Some(selectors) = &condition.selectors else {
            return Ok(None);
        };
        let elements = self.find_all(step, selectors, deadline).await?;
        let number = elements.as_ref().map_or(0, |elements| elements.number);
        let (operator, count) = (
            condition.operator.unwrap_or_default(),
            condition.count.unwrap_or(1),
        );
        if !operator.holds(number, count) {
            return Ok(Some(if number == 0 {
                format!("no element matches `{selectors}`")
            } else {
                format!("{number} elements match `{selectors}`")
            }));
        }
        let Some(elements) = elements else {
            return Ok(None);
        };
        let expected = json!({
            "visible": condition.visible,
            "attributes": condition.attributes,
            "properties": condition.properties,
        });
        let is_met = self.is_as_expected(&elements, &expected, deadline).await?;
        Ok((!is_met).then(|| format!("the element `{selectors}` is not as expected")))
    }
}
