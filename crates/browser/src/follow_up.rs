//! Prepares and ends a browser in which something is measured after the visits.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cpu_emulation::CpuEmulation;
use crate::launch::Browser;
use crate::page::{self, Page, VisitError};
use crate::plan::VisitPlan;
use crate::steps;
use crate::visit::Observer;

/// Size of the browser's own toolbars at most, in CSS pixels.
const WINDOW_FRAME_PX: u32 = 200;

/// Performs the steps of a plan, and opens an empty page with the processor of the device.
pub(crate) async fn open<'b>(
    browser: &'b mut Browser,
    plan: &VisitPlan,
    observer: &Observer<'_>,
) -> Result<(Page<'b>, CpuEmulation), VisitError> {
    let tab = if plan.has_steps() {
        Some(steps::perform(browser, plan, observer).await?)
    } else {
        None
    };
    browser.clock.set_wall_clock();
    let (browser_group, turn) = (browser.process_id(), browser.turn.take());
    let emulation = CpuEmulation::start(&browser.clock, browser_group, plan.throttle, turn)
        .map_err(|error| VisitError::Fault(error.to_string()))?;
    let mut page = Page::open_after_visits(browser, plan, tab).await?;
    enlarge_window(&mut page, plan).await?;
    Ok((page, emulation))
}

/// Makes the window at least as large as the viewport of the device. Touches outside it do not
/// reach the page, and changes outside it are not presented: no time to a next paint is reported.
async fn enlarge_window(page: &mut Page<'_>, plan: &VisitPlan) -> Result<(), VisitError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Window {
        window_id: i64,
    }
    let viewport = plan.device.viewport;
    let window: Window = page.call("Browser.getWindowForTarget", json!({})).await?;
    let bounds = json!({
        "windowId": window.window_id,
        "bounds": {
            "width": viewport.width + WINDOW_FRAME_PX,
            "height": viewport.height + WINDOW_FRAME_PX,
        },
    });
    page.call::<Value>("Browser.setWindowBounds", bounds)
        .await?;
    Ok(())
}

/// Ends the browser, and returns a sentence on why the measurement is not complete.
pub(crate) async fn end(
    browser: Browser,
    result: Result<Result<(), VisitError>, tokio::time::error::Elapsed>,
) -> Option<String> {
    let exceeded_memory = browser.close().await;
    match (exceeded_memory, result) {
        (Some(bytes), _) => Some(page::too_much_memory(bytes).message),
        (None, Ok(Ok(()))) => None,
        (None, Ok(Err(VisitError::Page(failure)))) => Some(failure.message),
        (None, Ok(Err(VisitError::Fault(reason)))) => {
            tracing::warn!(reason, "a measurement after the visits failed");
            Some("The browser failed.".to_owned())
        }
        (None, Err(_)) => Some("The page did not respond in time.".to_owned()),
    }
}
