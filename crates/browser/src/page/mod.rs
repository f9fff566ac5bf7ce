//! The page of a visit with its frames and workers: calls of the protocol, handling of events, and
//! recording of what they report.

mod caller;
mod confinement;
mod console;
mod events;
mod failure;
mod handle;
mod interception;
mod json_trace;
mod later_frames;
mod link_header;
mod loading;
mod log;
mod open;
mod round_trip;
mod scripts;
mod seeding;
mod style_sheets;
mod trace;
mod traced_nodes;
mod traced_places;
mod web_mcp;

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use plumbline_clock::{PageClock, PageTime};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) use caller::{Caller, EvaluateResponse};
pub(crate) use confinement::Departure;
pub(crate) use console::ConsoleEntry;
pub(crate) use events::NavigateResponse;
pub use failure::VisitError;
pub(crate) use failure::{from_net_error, not_html, too_much_memory};
pub(crate) use open::{Purpose, Tab, open_target};
pub(crate) use round_trip::{CacheNotUsed, NotRestoredExplanation, NotRestoredFrame, RoundTrip};
pub(crate) use scripts::{ParsedScript, Scripts};
pub(crate) use style_sheets::{StyleSheetHeader, StyleSheets};
pub(crate) use trace::TraceKind;
pub(crate) use traced_places::ScriptPlace;
pub(crate) use web_mcp::WebMcpTool;

use crate::emulate::ProtocolCall;
use crate::protocol::{
    CALL_DEADLINE, CallError, Client, LimitExceeded, ProtocolEvents, Reservation, SessionId,
};
use confinement::Confinement;
use console::Console;
use interception::Interception;
use later_frames::LaterFrames;
use loading::Loading;
use log::Log;
use trace::TraceRecording;
use web_mcp::WebMcpTools;

/// Maximum time for the trace to arrive after the page was loaded.
const TRACE_DEADLINE: Duration = Duration::from_secs(45);

/// The page of a visit, to which all its frames and workers belong.
pub(crate) struct Page<'b> {
    client: &'b Client,
    events: &'b mut ProtocolEvents,
    /// Clock of the browser.
    pub(crate) clock: Arc<PageClock>,
    /// Decides on requests that are paused, if there are any.
    interception: Option<Interception>,
    /// Keeps the page where it is while inputs are made on it; `None` if there are none.
    pub(crate) confinement: Option<Confinement>,
    session: SessionId,
    target: String,
    main_frame: String,
    /// Type of the target that each session is attached to.
    sessions: HashMap<SessionId, String>,
    /// Sessions of frames in other processes, by the id of the frame.
    frame_sessions: HashMap<String, SessionId>,
    frame_conditions: Vec<ProtocolCall>,
    worker_conditions: Vec<ProtocolCall>,
    pub(crate) loading: Loading,
    pub(crate) log: Log,
    pub(crate) trace: TraceRecording,
    pub(crate) later_frames: LaterFrames,
    pub(crate) warnings: Vec<String>,
    console: Console,
    scripts: Scripts,
    /// The scripts with a source map that were live at the end of the visit.
    mapped_scripts: Vec<ParsedScript>,
    style_sheets: StyleSheets,
    web_mcp: WebMcpTools,
    /// Whether the page is still being measured. Requests that are caused by gathering are not
    /// recorded.
    is_recording: bool,
    /// The navigation away or back, if it has begun. Events then belong to other documents.
    round_trip: Option<RoundTrip>,
    /// The call that sets the viewport, and draws the page at its own size.
    viewport: ProtocolCall,
    /// The call that makes the browser lay the page out in CSS pixels, if it does not yet.
    coarse_screen: Option<ProtocolCall>,
    /// Memory of what is recorded besides log and trace.
    reservation: Reservation,
}

/// The most bytes of all source maps in scripts that are kept, and of the URLs of others.
const MAX_KEPT_MAPS_BYTES: usize = 8_000_000;

impl Page<'_> {
    /// Runs a future while events are handled.
    pub(crate) async fn drive<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        poll_fn(|context| {
            // Events that were reported before a response are handled before it is used.
            self.handle_reported_events(context);
            future.as_mut().poll(context)
        })
        .await
    }

    /// Handles the events that were reported, and wakes the task when there are others.
    fn handle_reported_events(&mut self, context: &mut Context<'_>) {
        while let Poll::Ready(Some(event)) = self.events.poll_recv(context) {
            self.handle_event(&event);
        }
    }

    /// Waits for the next event and handles it. Returns `false` if there was none before the
    /// deadline.
    pub(crate) async fn next_event(&mut self, deadline: Instant) -> Result<bool, VisitError> {
        match tokio::time::timeout_at(deadline.into(), self.events.recv()).await {
            Ok(Some(event)) => {
                self.handle_event(&event);
                self.check_size()?;
                Ok(true)
            }
            Ok(None) => {
                self.check_size()?;
                Err(CallError::Ended.into())
            }
            Err(_) => Ok(false),
        }
    }

    /// Waits for the next event and handles it. Returns `false` if there was none before the page
    /// time or the deadline.
    pub(crate) async fn next_event_until(
        &mut self,
        time: PageTime,
        deadline: Instant,
    ) -> Result<bool, VisitError> {
        let clock = Arc::clone(&self.clock);
        tokio::select! {
            result = self.next_event(deadline) => result,
            () = clock.sleep_until(time) => Ok(false),
        }
    }

    /// Returns an error if the page has exceeded a size limit.
    pub(crate) fn check_size(&self) -> Result<(), VisitError> {
        match self.client.limit_exceeded() {
            Some(limit) => Err(CallError::TooLarge(limit).into()),
            None => Ok(()),
        }
    }

    /// Ends the visit if a size limit was exceeded.
    fn check_limit(&self, result: Result<(), LimitExceeded>) {
        if let Err(limit) = result {
            self.client.abort(limit);
        }
    }

    /// Keeps a reservation for as long as the page exists.
    pub(crate) fn hold(&mut self, reservation: Reservation) {
        self.reservation.absorb(reservation);
    }

    pub(crate) async fn call<T: DeserializeOwned>(
        &mut self,
        method: &'static str,
        params: Value,
    ) -> Result<T, CallError> {
        self.call_within(CALL_DEADLINE, method, params).await
    }

    pub(crate) async fn call_within<T: DeserializeOwned>(
        &mut self,
        deadline: Duration,
        method: &'static str,
        params: Value,
    ) -> Result<T, CallError> {
        let call = self
            .client
            .call_within(deadline, Some(&self.session), method, params);
        self.drive(call).await
    }

    /// Evaluates a script in the current document, in a world isolated from the page's scripts.
    pub(crate) async fn evaluate<T: DeserializeOwned>(
        &mut self,
        deadline: Duration,
        script: &str,
    ) -> Result<T, CallError> {
        let caller = self.caller();
        self.drive(caller.evaluate_isolated(deadline, script)).await
    }

    /// Returns a caller, for several calls at a time.
    pub(crate) fn caller(&self) -> Caller {
        Caller::new(self.client, &self.session, &self.main_frame)
    }

    /// Returns a caller for a frame of the page, which may be in another process.
    pub(crate) fn caller_of_frame(&self, frame: &str) -> Caller {
        let session = self.frame_sessions.get(frame).unwrap_or(&self.session);
        Caller::new(self.client, session, frame)
    }

    pub(crate) fn final_url(&self) -> &str {
        self.loading.final_url()
    }

    /// Returns the target of the document's first `Link` header with a relation.
    pub(crate) fn linked_by_header(&self, relation: &str) -> Option<&str> {
        self.loading.link_headers()?.target(relation)
    }

    /// Returns the id of the document's request, which is that of its loader.
    pub(crate) fn document_request(&self) -> &str {
        self.loading.loader()
    }

    /// Stops recording when the page has been measured, and returns what was recorded.
    pub(crate) fn stop_recording(&mut self) -> Recorded {
        self.is_recording = false;
        let (console, issues) = self.console.stop();
        Recorded {
            console,
            issues,
            web_mcp_tools: self.web_mcp.stop(),
        }
    }

    /// Starts to record a navigation away from the page, or back to it.
    pub(crate) fn start_round_trip(&mut self) {
        self.round_trip = Some(RoundTrip::default());
    }

    pub(crate) fn round_trip(&self) -> Option<&RoundTrip> {
        self.round_trip.as_ref()
    }

    /// Starts Chromium's trace.
    pub(crate) async fn start_trace(&mut self, kind: TraceKind) -> Result<(), CallError> {
        self.call::<Value>("Tracing.start", trace::start_params(kind))
            .await?;
        if kind == TraceKind::Visit {
            self.later_frames.trace_started(self.clock.now());
        }
        Ok(())
    }

    /// Starts to collect pictures of the frames that the trace may have no more screenshots of.
    pub(crate) fn collect_later_frames(&mut self) {
        self.later_frames.begin();
        self.start_screencast();
    }

    /// Ends the trace, which then arrives.
    pub(crate) async fn end_trace(&mut self) -> Result<(), VisitError> {
        self.call::<Value>("Tracing.end", json!({})).await?;
        let frames = self.take_later_frames().await?;
        let result = self.trace.set_later_frames(frames);
        self.check_limit(result);
        Ok(())
    }

    /// Returns the ids of the elements in the trace.
    pub(crate) fn traced_nodes(&self) -> Vec<i64> {
        self.trace.traced_nodes()
    }

    /// Returns the places in scripts at which styles or layout were forced.
    pub(crate) fn traced_places(&self) -> Vec<ScriptPlace> {
        self.trace.traced_places()
    }

    /// Keeps those of the scripts that have a source map, until maps that are in the scripts
    /// themselves have become too many bytes.
    pub(crate) fn keep_mapped_scripts(&mut self, scripts: &[ParsedScript]) {
        let mut bytes = 0;
        let is_kept = |script: &&ParsedScript| {
            bytes += script.source_map_url.len();
            !script.source_map_url.is_empty() && bytes <= MAX_KEPT_MAPS_BYTES
        };
        self.mapped_scripts = scripts.iter().filter(is_kept).cloned().collect();
    }

    /// Returns the scripts that were kept, and leaves none.
    pub(crate) fn take_mapped_scripts(&mut self) -> Vec<ParsedScript> {
        std::mem::take(&mut self.mapped_scripts)
    }

    pub(crate) fn take_scripts(&mut self) -> Scripts {
        std::mem::take(&mut self.scripts)
    }

    pub(crate) fn take_style_sheets(&mut self) -> StyleSheets {
        std::mem::take(&mut self.style_sheets)
    }

    /// Disables CPU throttling when the page has been measured, so that gathering is not slowed
    /// down.
    pub(crate) fn disable_cpu_throttling(&self) {
        let method = "Emulation.setCPUThrottlingRate";
        self.caller().send(method, json!({"rate": 1}));
    }

    /// Draws the page at its own size, and lays it out as for Lighthouse, where only the viewport
    /// has the device's pixels: otherwise text that is half a pixel lower on each line overlaps
    /// other links. While the page loads the whole screen has them, because only then frames in
    /// other processes get them. Call this when the page has been measured.
    pub(crate) async fn lay_out_in_css_pixels(&mut self) {
        let laying_out = match self.coarse_screen.take() {
            Some(screen) => self.lay_out_for(screen).await,
            None => self.set_viewport().await,
        };
        if let Err(error) = laying_out {
            tracing::debug!(%error, "failed to lay the page out in CSS pixels");
        }
    }

    /// Changes the screen and keeps the width of the page. Chromium multiplies the width of pages
    /// without a viewport element, 980 CSS pixels on phones, by the change of scale (156), unless
    /// there was no viewport before it is set, which other pages would see as a resize.
    async fn lay_out_for(&mut self, (method, screen): ProtocolCall) -> Result<(), CallError> {
        let width = self.layout_width().await?;
        self.call::<Value>(method, screen).await?;
        self.set_viewport().await?;
        if self.layout_width().await? != width {
            let method = "Emulation.clearDeviceMetricsOverride";
            self.call::<Value>(method, json!({})).await?;
            self.set_viewport().await?;
        }
        Ok(())
    }

    async fn set_viewport(&mut self) -> Result<(), CallError> {
        let (method, metrics) = self.viewport.clone();
        self.call::<Value>(method, metrics).await.map(|_| ())
    }

    async fn layout_width(&mut self) -> Result<i64, CallError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metrics {
            css_layout_viewport: Viewport,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Viewport {
            client_width: i64,
        }
        let metrics: Metrics = self.call("Page.getLayoutMetrics", json!({})).await?;
        Ok(metrics.css_layout_viewport.client_width)
    }

    pub(crate) fn warn(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.warnings.contains(&sentence) {
            self.warnings.push(sentence);
        }
    }
}

/// The records of what a page reported about itself while it was measured.
pub(crate) struct Recorded {
    pub(crate) console: Vec<ConsoleEntry>,
    pub(crate) issues: Vec<Box<RawValue>>,
    /// The tools for agents; `None` if the browser does not report any.
    pub(crate) web_mcp_tools: Option<Vec<WebMcpTool>>,
}

/// Returns the parameters for attaching to frames and workers before they start.
fn auto_attach() -> Value {
    json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
}
