//! Performs steps on a page after its visits, and measures each of them.
//!
//! Unlike the steps before a visit, these have the processor and the network of the device. The
//! figures of a step come from the performance timeline of the page, from its beginning until the
//! page is at rest.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use plumbline_bundle::{FlowRecords, FlowStepKind, FlowStepRecord, InputKind};
use plumbline_seam::{Action, Step, Steps};
use serde::Deserialize;

use super::{Keyboard, Runner, StepError, starts_on_page, waiting};
use crate::follow_up;
use crate::gather::{NODES, screenshot};
use crate::interactions::timing::{Timeline, rounded};
use crate::launch::Browser;
use crate::page::VisitError;
use crate::plan::VisitPlan;
use crate::protocol::CallError;
use crate::visit::{Observer, expectation};

/// Maximum duration of all measured steps together, in real time.
const DEADLINE: Duration = Duration::from_secs(180);
/// Time in addition to all deadlines after which the browser is ended.
const MARGIN: Duration = Duration::from_secs(45);
/// Maximum time after a step until the page is at rest. A page that is not at rest by then is
/// measured until then.
const REST_DEADLINE: Duration = Duration::from_secs(20);
/// Maximum duration of a script of ours.
const SCRIPT_DEADLINE: Duration = Duration::from_secs(10);

/// The longest part of a task that does not count as blocking.
const BLOCKING_MS: f64 = 50.0;
/// The longest time between two layout shifts of one session window.
const SHIFT_GAP_MS: f64 = 1000.0;
/// The longest session window of layout shifts.
const SHIFT_WINDOW_MS: f64 = 5000.0;

const OBSERVE: &str = include_str!("../interactions/observe.js");

/// Performs and measures the flow of a plan with an unused browser, and ends the browser. It never
/// fails: the records contain the reason why something is missing.
pub fn measure_flow<'a>(
    mut browser: Browser,
    plan: &'a VisitPlan,
    observer: &'a (dyn Fn(crate::VisitEvent<'_>) + Send + Sync),
) -> BoxFuture<'a, FlowRecords> {
    Box::pin(async move {
        browser.wait_for_turn(plan.throttle).await;
        let mut records = FlowRecords::default();
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
    records: &mut FlowRecords,
) -> Result<(), VisitError> {
    let (page, emulation) = follow_up::open(browser, plan, observer).await?;
    let mut runner = Runner {
        reservation: page.caller().reservation(),
        page,
        keyboard: Keyboard::default(),
        size_px: screenshot::device_pixels(&plan.device),
        deadline: Instant::now() + DEADLINE,
        screenshot_chars: 0,
        storage: None,
        is_measured: true,
    };
    let result = runner.measure_all(plan, records).await;
    emulation.finish();
    result
}

/// An action, and the steps after it that wait for its effects or check them.
struct Span<'a> {
    action: Option<&'a Step>,
    others: Vec<&'a Step>,
}

/// Divides a flow into its measured parts. Only the first may have no action.
///
/// The window and the network are those of the audit, so steps that would change them are left out.
fn spans(flow: &Steps) -> Vec<Span<'_>> {
    let mut spans = Vec::new();
    for step in &flow.0 {
        let is_setting = matches!(
            step.action,
            Action::SetViewport(_) | Action::EmulateNetworkConditions(_) | Action::Close
        );
        match spans.last_mut() {
            _ if is_setting => {}
            Some(Span { others, .. }) if !step.is_action() => others.push(step),
            _ => spans.push(Span {
                action: step.is_action().then_some(step),
                others: if step.is_action() {
                    Vec::new()
                } else {
                    vec![step]
                },
            }),
        }
    }
    spans
}

impl Runner<'_> {
    async fn measure_all(
        &mut self,
        plan: &VisitPlan,
        records: &mut FlowRecords,
    ) -> Result<(), VisitError> {
        if starts_on_page(&plan.flow.0) {
            let step = Step::goto(&plan.url);
            if let Some(reason) = self.try_step(&step, plan).await? {
                records.error = Some(format!("The page could not be opened: {reason}."));
                return Ok(());
            }
            self.rest().await?;
            if let Some(expect) = &plan.expect {
                expectation::check(&mut self.page, expect).await?;
            }
        }
        for span in spans(&plan.flow) {
            if Instant::now() >= self.deadline {
                let seconds = DEADLINE.as_secs();
                records.error = Some(format!("The steps took longer than {seconds} s."));
                break;
            }
            let record = self.measure(&span, plan).await?;
            let is_failed = record.error.is_some();
            if span.action.is_some() || is_failed {
                records.steps.push(record);
            }
            if is_failed {
                break;
            }
        }
        Ok(())
    }

    /// Performs a step. Returns the reason if it failed.
    async fn try_step(
        &mut self,
        step: &Step,
        plan: &VisitPlan,
    ) -> Result<Option<String>, VisitError> {
        let timeout = Duration::from_millis(step.timeout_ms().into());
        let deadline = self.deadline.min(Instant::now() + timeout);
        match self.act(step, plan, deadline).await {
            Ok(()) => Ok(None),
            Err(StepError::Failed(reason)) => Ok(Some(reason)),
            Err(StepError::Unresponsive) => Ok(Some("the page did not respond in time".to_owned())),
            Err(StepError::Visit(error)) => Err(error),
        }
    }

    /// Waits until the page is at rest.
    async fn rest(&mut self) -> Result<(), VisitError> {
        let deadline = self.deadline.min(Instant::now() + REST_DEADLINE);
        waiting::until_at_rest(&mut self.page, deadline).await
    }

    async fn measure(
        &mut self,
        span: &Span<'_>,
        plan: &VisitPlan,
    ) -> Result<FlowStepRecord, VisitError> {
        let is_document = self.page.loading.has_document();
        if is_document {
            let observe = format!("({OBSERVE})({NODES})");
            self.evaluate::<bool>(&observe).await?;
        }
        let (requests, bytes) = self.page.loading.transferred();
        let documents = self.page.loading.documents();
        let url = self.page.final_url().to_owned();
        let steps = span.action.into_iter().chain(span.others.iter().copied());
        let (mut title, mut error) = (String::new(), None);
        for step in steps {
            if title.is_empty() {
                title = step.title();
            }
            if let Some(reason) = self.try_step(step, plan).await? {
                if span.action.is_some_and(|action| action != step) {
                    error = Some(format!("{}: {reason}", step.title()));
                } else {
                    error = Some(reason);
                }
                break;
            }
        }
        let mut collected = None;
        if error.is_none() {
            self.rest().await?;
            let collect = include_str!("collect_flow.js");
            let collect = format!("({collect})({OBSERVE}, {NODES})");
            collected = self.evaluate::<Collected>(&collect).await?;
            if collected.is_none() {
                error = Some("the page did not respond in time".to_owned());
            }
        }
        self.page.check_size()?;
        let kind = if self.page.loading.documents() != documents {
            FlowStepKind::Navigation
        } else if self.page.final_url() != url {
            FlowStepKind::SoftNavigation
        } else {
            FlowStepKind::Timespan
        };
        let (requests_after, bytes_after) = self.page.loading.transferred();
        let figures = collected.map_or_else(FlowStepRecord::default, |it| it.figures(kind));
        Ok(FlowStepRecord {
            title,
            kind,
            url: self.page.final_url().to_owned(),
            requests: requests_after.saturating_sub(requests),
            transfer_bytes: bytes_after.saturating_sub(bytes),
            screenshot: self.take_screenshot(error.is_some()).await,
            error,
            ..figures
        })
    }

    /// Evaluates a script in our world; `None` if the page does not respond or the script fails.
    async fn evaluate<T: serde::de::DeserializeOwned>(
        &mut self,
        script: &str,
    ) -> Result<Option<T>, VisitError> {
        match self.page.evaluate(SCRIPT_DEADLINE, script).await {
            Ok(value) => Ok(Some(value)),
            Err(
                error @ (CallError::TimedOut { .. }
                | CallError::Refused { .. }
                | CallError::InvalidResponse { .. }),
            ) => {
                tracing::debug!(%error, "a script for a measured step failed");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The entries of the performance timeline of a step, as `collect_flow.js` returns them. Times are
/// in milliseconds since the navigation of the document.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Collected {
    is_new_document: bool,
    started_at: f64,
    #[serde(flatten)]
    timeline: Timeline,
    /// Start and duration of each long task.
    tasks: Vec<(f64, f64)>,
    /// Time and value of each layout shift that does not follow an input.
    shifts: Vec<(f64, f64)>,
    /// Time and size of the paints that follow an interaction.
    paints: Vec<(f64, f64)>,
    first_paint: Option<f64>,
    largest_paint: Option<f64>,
    /// Start of a soft navigation, and its first paint.
    soft_navigation: Option<(f64, f64)>,
    last_response: f64,
}

impl Collected {
    /// Returns the figures of the step.
    fn figures(&self, kind: FlowStepKind) -> FlowStepRecord {
        let is_navigation = kind == FlowStepKind::Navigation && self.is_new_document;
        let (fcp, lcp) = match kind {
            FlowStepKind::Navigation if is_navigation => (self.first_paint, self.largest_paint),
            FlowStepKind::SoftNavigation => self.soft_paints(),
            _ => (None, None),
        };
        // After a navigation, what runs before the first paint blocks no input.
        let blocking_from = match fcp {
            Some(fcp) if is_navigation => fcp,
            _ => self.started_at,
        };
        let blocking = self.tasks.iter().map(|(start, duration)| {
            let clipped = start + duration - start.max(blocking_from);
            (clipped - BLOCKING_MS).max(0.0)
        });
        let interaction = self.timeline.slowest(InputKind::Click);
        let ends = [
            self.last_response,
            self.timeline.last_paint(),
            if is_navigation {
                fcp.unwrap_or(0.0).max(lcp.unwrap_or(0.0))
            } else {
                0.0
            },
        ];
        let ends = ends.into_iter();
        let ends = ends.chain(self.tasks.iter().map(|(start, duration)| start + duration));
        let end = ends.fold(self.started_at, f64::max);
        FlowStepRecord {
            settled_ms: rounded(end - self.started_at),
            long_tasks: u32::try_from(self.tasks.len()).unwrap_or(u32::MAX),
            tbt_ms: rounded(blocking.fold(0.0, |sum, ms| sum + ms)),
            cls: (largest_window(&self.shifts) * 10_000.0).round() / 10_000.0,
            fcp_ms: fcp.map(rounded),
            lcp_ms: lcp.map(rounded),
            interaction,
            ..FlowStepRecord::default()
        }
    }

    /// Returns the times from a soft navigation to its first and its largest paint, if the browser
    /// reports them.
    fn soft_paints(&self) -> (Option<f64>, Option<f64>) {
        let Some((start, first_paint)) = self.soft_navigation else {
            return (None, None);
        };
        let paints = self.paints.iter().filter(|(time, _)| *time >= start);
        let largest = paints.reduce(
            |largest, paint| {
                if paint.1 > largest.1 { paint } else { largest }
            },
        );
        let lcp = largest.map(|(time, _)| time - start);
        (Some(first_paint - start), lcp)
    }
}

/// Returns the largest sum of layout shifts in a session window.
fn largest_window(shifts: &[(f64, f64)]) -> f64 {
    let (mut largest, mut sum) = (0.0_f64, 0.0);
    let (mut first, mut last) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (time, value) in shifts {
        if time - last > SHIFT_GAP_MS || time - first > SHIFT_WINDOW_MS {
            (first, sum) = (*time, 0.0);
        }
        last = *time;
        sum += value;
        largest = largest.max(sum);
    }
    largest
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn figures(kind: FlowStepKind, members: Value) -> FlowStepRecord {
        let mut collected = json!({
            "isNewDocument": false, "startedAt": 1000.0, "events": [], "frames": [], "tasks": [],
            "shifts": [], "paints": [], "firstPaint": null, "largestPaint": null,
            "softNavigation": null, "lastResponse": 0.0,
        });
        for (name, value) in members.as_object().unwrap() {
            collected[name] = value.clone();
        }
        let collected: Collected = serde_json::from_value(collected).unwrap();
        collected.figures(kind)
    }

    #[test]
    fn a_step_that_does_nothing_has_no_figures() {
        let figures = figures(FlowStepKind::Timespan, json!({}));
        assert_eq!(figures, FlowStepRecord::default());
    }

    #[test]
    fn long_tasks_count_beyond_50_ms_and_after_the_first_paint_of_a_navigation() {
        let tasks = json!([[1010.0, 60.0], [1200.0, 150.0]]);
        let timespan = figures(FlowStepKind::Timespan, json!({ "tasks": tasks }));
        assert_eq!((timespan.long_tasks, timespan.tbt_ms), (2, 110.0));
        assert_eq!(timespan.settled_ms, 350.0);
        let members = json!({
            "isNewDocument": true, "startedAt": 0.0, "tasks": tasks, "firstPaint": 1250.0,
            "largestPaint": 2000.0, "lastResponse": 1900.0,
        });
        let navigation = figures(FlowStepKind::Navigation, members);
        assert_eq!((navigation.long_tasks, navigation.tbt_ms), (2, 50.0));
        assert_eq!(navigation.settled_ms, 2000.0);
        let paints = (navigation.fcp_ms, navigation.lcp_ms);
        assert_eq!(paints, (Some(1250.0), Some(2000.0)));
    }

    #[test]
    fn a_soft_navigation_has_the_paints_after_it() {
        let members = json!({
            "softNavigation": [1100.0, 1150.0], "paints": [[1050.0, 900.0], [1200.0, 300.0], [1400.0, 200.0]],
        });
        let soft = figures(FlowStepKind::SoftNavigation, members);
        assert_eq!((soft.fcp_ms, soft.lcp_ms), (Some(50.0), Some(100.0)));
        let unsupported = figures(FlowStepKind::SoftNavigation, json!({}));
        assert_eq!(unsupported.lcp_ms, None);
    }

    #[test]
    fn layout_shifts_add_up_in_session_windows() {
        assert_eq!(largest_window(&[]), 0.0);
        let apart = [(0.0, 0.1), (1500.0, 0.2), (2400.0, 0.05)];
        assert_eq!(largest_window(&apart), 0.25);
        let long: Vec<(f64, f64)> = (0..8)
            .map(|index| (f64::from(index) * 900.0, 0.1))
            .collect();
        assert!((largest_window(&long) - 0.6).abs() < 1e-9);
    }

    #[test]
    fn waits_belong_to_the_action_before_them_and_settings_are_left_out() {
        let flow = json!([
            { "type": "setViewport", "width": 100, "height": 100 },
            { "type": "waitFor", "selector": "main" },
            { "type": "click", "selector": "#a" },
            { "type": "waitFor", "selector": "#b" },
            { "type": "assert", "text": "b" },
            { "type": "press", "key": "Enter" },
            { "type": "close" },
        ]);
        let flow = Steps::parse_flow(flow).unwrap();
        let spans = spans(&flow);
        let shape: Vec<_> = spans
            .iter()
            .map(|span| (span.action.map(Step::title), span.others.len()))
            .collect();
        let action = |title: &str| Some(title.to_owned());
        assert_eq!(
            shape,
            [
                (None, 1),
                (action("click `#a`"), 2),
                (action("press Enter"), 0)
            ]
        );
    }
}
