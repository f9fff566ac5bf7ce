//! The page of a visit with everything that belongs to it: its frames, its workers, what they
//! report, and what is done about it at once.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::events::{
    Attached, DataReceived, Detached, Dialog, FrameNavigated, Lifecycle, TargetCreated,
};
use super::failure::{VisitError, crashed};
use super::loading::Loading;
use super::log::Log;
use super::plan::{NetworkPath, VisitPlan};
use super::trace::Trace;
use crate::emulate::{Call, Conditions};
use crate::gather::{Console, Line, Scripts, StyleSheets};
use crate::launch::Browser;
use crate::protocol::{CALL_DEADLINE, CallError, Client, Event, Events, SessionId};

/// Where our own scripts run, out of the page's reach.
const WORLD: &str = "plumbline";

pub(crate) struct Page<'b> {
    client: &'b Client,
    events: &'b mut Events,
    session: SessionId,
    target: String,
    pub(super) main_frame: String,
    /// What kind of thing each session is attached to.
    sessions: HashMap<SessionId, String>,
    for_frames: Vec<Call>,
    for_workers: Vec<Call>,
    pub(super) loading: Loading,
    pub(super) log: Log,
    pub(super) trace: Trace,
    pub(super) warnings: Vec<String>,
    console: Console,
    scripts: Scripts,
    style_sheets: StyleSheets,
    /// Until the page has been measured: what our own gathering causes is not the page's.
    listening: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    browser_context_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    target_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    session_id: String,
}

impl<'b> Page<'b> {
    /// An empty page under the conditions of the plan, with everything recorded from here on.
    pub(super) async fn open(
        browser: &'b mut Browser,
        plan: &VisitPlan,
    ) -> Result<Page<'b>, VisitError> {
        let version = browser.version().clone();
        let network = way_out(browser, &plan.network)?;
        let client = &browser.client;
        let (target, session) = open_target(client, &network).await?;
        let conditions = Conditions {
            device: &plan.device,
            version: &version,
            network: &plan.network,
            cpu_rate: plan.cpu_rate,
        };
        let mut page = Page {
            client,
            events: &mut browser.events,
            sessions: HashMap::from([(session.clone(), "page".to_owned())]),
            session,
            // A page's target and its main frame have the same id.
            main_frame: target.clone(),
            loading: Loading::new(target.clone(), plan.max_bytes, Instant::now()),
            target,
            for_frames: conditions.for_frame(),
            for_workers: conditions.for_worker(),
            log: Log::new(),
            trace: Trace::new(),
            warnings: Vec::new(),
            console: Console::default(),
            scripts: Scripts::default(),
            style_sheets: StyleSheets::default(),
            listening: true,
        };
        page.fit_screen(&conditions).await;
        page.set_up(conditions.for_page()).await?;
        Ok(page)
    }

    /// An older browser knows no such thing; then only frames in other processes see the difference.
    async fn fit_screen(&mut self, conditions: &Conditions<'_>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Screens {
            screen_infos: Vec<Screen>,
        }
        #[derive(Deserialize)]
        struct Screen {
            id: String,
        }
        let screens = self.call("Emulation.getScreenInfos", json!({})).await;
        let screens: Vec<Screen> = screens.map_or_else(|_| Vec::new(), |s: Screens| s.screen_infos);
        if let Some(screen) = screens.first() {
            let (method, params) = conditions.screen_of_browser(&screen.id);
            if let Err(error) = self.call::<Value>(method, params).await {
                tracing::debug!(%error, "the browser's own screen stays as it is");
            }
        }
    }

    async fn set_up(&mut self, conditions: Vec<Call>) -> Result<(), VisitError> {
        self.client.send(
            None,
            "Target.setDiscoverTargets",
            json!({"discover": true, "filter": [{"type": "page"}]}),
        );
        let mut calls: Vec<Call> = vec![
            ("Page.enable", json!({})),
            ("Page.setLifecycleEventsEnabled", json!({"enabled": true})),
            ("Network.enable", json!({})),
            ("Runtime.enable", json!({})),
            ("Log.enable", json!({})),
            ("Log.startViolationsReport", violations()),
            ("Audits.enable", json!({})),
            // Which functions run, as Lighthouse asks for it: whole functions, no counts.
            ("Profiler.enable", json!({})),
            ("Profiler.startPreciseCoverage", json!({"detailed": false})),
            ("Target.setAutoAttach", auto_attach()),
            (
                "Page.setInterceptFileChooserDialog",
                json!({"enabled": true}),
            ),
        ];
        calls.extend(conditions);
        // All are on their way before the first answer is waited for.
        let asked: Vec<_> = calls
            .into_iter()
            .map(|(method, params)| {
                self.client
                    .call::<Value>(Some(&self.session), method, params)
            })
            .collect();
        for answer in asked {
            self.during(answer).await?;
        }
        Ok(())
    }

    /// Waits for something while events are taken care of.
    pub(crate) async fn during<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            tokio::select! {
                // Whatever was reported before an answer is known before the answer is used.
                biased;
                Some(event) = self.events.recv() => self.take(&event),
                outcome = &mut future => return outcome,
            }
        }
    }

    /// Waits for the next event, at most until then. `false` when the time is over.
    pub(super) async fn next_event(&mut self, until: Instant) -> Result<bool, VisitError> {
        match tokio::time::timeout_at(until.into(), self.events.recv()).await {
            Ok(Some(event)) => {
                self.take(&event);
                Ok(true)
            }
            Ok(None) => Err(CallError::Ended.into()),
            Err(_) => Ok(false),
        }
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
        let answer = self
            .client
            .call_within(deadline, Some(&self.session), method, params);
        self.during(answer).await
    }

    /// Calls a method at once; the answer is waited for with [`Self::during`].
    pub(crate) fn ask<T: DeserializeOwned>(
        &self,
        deadline: Duration,
        method: &'static str,
        params: Value,
    ) -> impl Future<Output = Result<T, CallError>> + Send + use<T> {
        self.client
            .call_within(deadline, Some(&self.session), method, params)
    }

    /// Calls a method whose answer does not matter.
    pub(crate) fn send(&self, method: &'static str, params: Value) {
        self.client.send(Some(&self.session), method, params);
    }

    pub(crate) fn main_frame(&self) -> &str {
        &self.main_frame
    }

    pub(crate) fn final_url(&self) -> &str {
        self.loading.final_url()
    }

    /// The request that brought the document: it has the id of the document's loader.
    pub(crate) fn document_request(&self) -> &str {
        self.loading.loader()
    }

    /// The page has been measured: what it wrote and was warned of so far.
    pub(crate) fn stop_listening(&mut self) -> (Vec<Line>, Vec<Box<RawValue>>) {
        self.listening = false;
        self.console.stop()
    }

    pub(crate) fn take_scripts(&mut self) -> Scripts {
        std::mem::take(&mut self.scripts)
    }

    pub(crate) fn take_style_sheets(&mut self) -> StyleSheets {
        std::mem::take(&mut self.style_sheets)
    }

    /// Nothing is measured any more: our own work need not be slow.
    pub(crate) async fn lift_throttling(&mut self) {
        let method = "Emulation.setCPUThrottlingRate";
        if let Err(error) = self.call::<Value>(method, json!({"rate": 1})).await {
            tracing::debug!(%error, "gathering goes on throttled");
        }
    }

    /// The context of our own world in the present document.
    pub(crate) async fn world(&mut self, deadline: Duration) -> Result<i64, CallError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct World {
            execution_context_id: i64,
        }
        let params = json!({"frameId": self.main_frame, "worldName": WORLD});
        let world: World = self
            .call_within(deadline, "Page.createIsolatedWorld", params)
            .await?;
        Ok(world.execution_context_id)
    }

    /// Runs a script in the page's own world: what it gives may be the page's invention.
    pub(crate) async fn evaluate_in_page<T: DeserializeOwned>(
        &mut self,
        deadline: Duration,
        script: &str,
    ) -> Result<T, CallError> {
        let method = "Runtime.evaluate";
        let params = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
        let evaluated: Evaluated<T> = self.call_within(deadline, method, params).await?;
        evaluated.value(method)
    }

    /// Runs a script of ours in the present document, beside the page's own.
    pub(crate) async fn evaluate<T: DeserializeOwned>(
        &mut self,
        deadline: Duration,
        script: &str,
    ) -> Result<T, CallError> {
        let given_up = Instant::now() + deadline;
        let context = self.world(deadline).await?;
        let evaluated: Evaluated<T> = self
            .call_within(
                given_up.saturating_duration_since(Instant::now()),
                "Runtime.evaluate",
                json!({
                    "expression": script,
                    "contextId": context,
                    "awaitPromise": true,
                    "returnByValue": true,
                }),
            )
            .await?;
        evaluated.value("Runtime.evaluate")
    }

    fn take(&mut self, event: &Event) {
        match event.method.split_once('.') {
            Some(("Network", what)) => self.take_network(event, what),
            Some(("Tracing", "dataCollected")) => self.trace.collect(event),
            Some(("Tracing", "tracingComplete")) => self.trace.complete(event),
            Some(("Target", what)) => self.take_target(event, what),
            Some(("Inspector", "targetCrashed")) => self.take_crash(event),
            Some(("Page", what)) if self.is_main(event) => self.take_page(event, what),
            Some(("Log" | "Runtime" | "Audits", _)) if self.is_main(event) => {
                self.console.take(event);
            }
            Some(("Debugger", "scriptParsed")) if self.is_main(event) => self.scripts.take(event),
            Some(("CSS", "styleSheetAdded")) if self.is_main(event) => {
                self.style_sheets.take(event)
            }
            _ => {}
        }
    }

    fn is_main(&self, event: &Event) -> bool {
        event.session.as_ref() == Some(&self.session)
    }

    fn take_network(&mut self, event: &Event, what: &str) {
        let Some(session) = &event.session else {
            return;
        };
        let kind = self.sessions.get(session).map_or("other", String::as_str);
        if self.listening {
            self.log.keep(event, kind);
        }
        let (loading, now) = (&mut self.loading, Instant::now());
        match what {
            "requestWillBeSent" => {
                if let Some(sent) = event.read() {
                    loading.request_sent(session.as_str(), sent, now);
                }
            }
            "responseReceived" => {
                if let Some(received) = event.read() {
                    loading.response_received(received);
                }
            }
            "dataReceived" => {
                if let Some(DataReceived { data_length }) = event.read() {
                    loading.data_received(data_length.max(0.0) as u64);
                }
            }
            "loadingFinished" | "loadingFailed" => {
                if let Some(ended) = event.read() {
                    loading.request_ended(session.as_str(), ended, now);
                }
            }
            _ => {}
        }
    }

    fn take_page(&mut self, event: &Event, what: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Within {
            frame_id: String,
            url: String,
        }
        match what {
            "frameNavigated" => {
                if let Some(FrameNavigated { frame }) = event.read() {
                    self.loading.navigated(frame, Instant::now());
                }
            }
            "navigatedWithinDocument" => {
                if let Some(Within { frame_id, url }) = event.read() {
                    self.loading.moved_within(&frame_id, url);
                }
            }
            "lifecycleEvent" => {
                if let Some(lifecycle) = event.read::<Lifecycle>() {
                    self.loading.came_to(&lifecycle, Instant::now());
                }
            }
            "javascriptDialogOpening" => self.close_dialog(event),
            _ => {}
        }
    }

    /// Leaving a page is agreed to; everything else is answered as a visitor who looks away would.
    fn close_dialog(&mut self, event: &Event) {
        let kind = event.read::<Dialog>().map(|dialog| dialog.kind);
        let accept = kind.as_deref() == Some("beforeunload");
        self.client.send(
            event.session.as_ref(),
            "Page.handleJavaScriptDialog",
            json!({"accept": accept}),
        );
        self.warn("The page opened a dialog, which was closed unanswered.");
    }

    fn take_target(&mut self, event: &Event, what: &str) {
        match what {
            "attachedToTarget" => {
                if let Some(attached) = event.read() {
                    self.attached(attached);
                }
            }
            "detachedFromTarget" => {
                if let Some(Detached { session_id }) = event.read() {
                    self.sessions.remove(&SessionId::from(session_id.as_str()));
                    self.loading.session_ended(&session_id, Instant::now());
                }
            }
            "targetCreated" => {
                if let Some(TargetCreated { target_info }) = event.read()
                    && target_info.target_id != self.target
                    && target_info.kind == "page"
                {
                    let target = json!({"targetId": target_info.target_id});
                    self.client.send(None, "Target.closeTarget", target);
                    self.warn("The page opened another window, which was closed.");
                }
            }
            _ => {}
        }
    }

    /// A new frame or worker waits until it is told to go on. All at once, as a service worker hangs
    /// when its answers are waited for.
    fn attached(&mut self, attached: Attached) {
        let session = SessionId::from(attached.session_id.as_str());
        let kind = attached.target_info.kind;
        let conditions = match kind.as_str() {
            "iframe" | "page" => &self.for_frames,
            _ => &self.for_workers,
        };
        let before = [
            ("Network.enable", json!({})),
            ("Target.setAutoAttach", auto_attach()),
        ];
        let go_on = [("Runtime.runIfWaitingForDebugger", json!({}))];
        let calls = before.iter().chain(conditions).chain(&go_on);
        for (method, params) in calls {
            self.client.send(Some(&session), method, params);
        }
        self.sessions.insert(session, kind);
    }

    fn take_crash(&mut self, event: &Event) {
        if self.is_main(event) {
            self.loading.fail(crashed());
        } else {
            self.warn("A frame or worker of the page crashed.");
        }
    }

    pub(crate) fn warn(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.warnings.contains(&sentence) {
            self.warnings.push(sentence);
        }
    }
}

/// Leads a browser that has one way out to the proxy; to the browser it is then all there is.
fn way_out(browser: &mut Browser, network: &NetworkPath) -> Result<NetworkPath, VisitError> {
    let fault = |what: &dyn std::fmt::Display| VisitError::Fault(what.to_string());
    match (browser.way_out.take(), network) {
        (Some(way_out), NetworkPath::Proxy(proxy)) => {
            let relay = way_out.lead_to(*proxy).map_err(|error| fault(&error))?;
            browser.relay = Some(relay);
            Ok(NetworkPath::Direct)
        }
        (Some(_), _) => Err(fault(
            &"a browser that was started for visits through a proxy was given none",
        )),
        (None, network) => Ok(network.clone()),
    }
}

/// A fresh page in a browser that nobody has used. Also what a benchmark runs in.
pub(crate) async fn open_target(
    client: &Client,
    network: &NetworkPath,
) -> Result<(String, SessionId), CallError> {
    let context = match network {
        NetworkPath::Direct | NetworkPath::Throttled { .. } => None,
        NetworkPath::Proxy(address) => {
            let params = json!({
                "proxyServer": format!("socks5://{address}"),
                "proxyBypassList": "<-loopback>",
            });
            let context: Context = client
                .call(None, "Target.createBrowserContext", params)
                .await?;
            Some(context.browser_context_id)
        }
    };
    let mut no_downloads = json!({"behavior": "deny"});
    let mut page = json!({"url": "about:blank"});
    if let Some(context) = context {
        no_downloads["browserContextId"] = json!(context);
        page["browserContextId"] = json!(context);
    }
    client.send(None, "Browser.setDownloadBehavior", no_downloads);
    let created: Created = client.call(None, "Target.createTarget", page).await?;
    let session: Session = client
        .call(
            None,
            "Target.attachToTarget",
            json!({"targetId": created.target_id, "flatten": true}),
        )
        .await?;
    Ok((
        created.target_id,
        SessionId::from(session.session_id.as_str()),
    ))
}

/// Chromium says which APIs a page should not use only to who asks for it: that is how asking for
/// permissions at load is seen.
fn violations() -> Value {
    json!({"config": [{"name": "discouragedAPIUse", "threshold": -1}]})
}

fn auto_attach() -> Value {
    json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
}

/// What a script gave, or why it gave nothing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Evaluated<T> {
    result: Evaluation<T>,
    #[serde(default)]
    exception_details: Option<Value>,
}

#[derive(Deserialize)]
struct Evaluation<T> {
    // Not required: a script that throws gives none.
    #[serde(default = "none")]
    value: Option<T>,
}

fn none<T>() -> Option<T> {
    None
}

impl<T> Evaluated<T> {
    pub(crate) fn value(self, method: &'static str) -> Result<T, CallError> {
        let reason = self.exception_details.map_or_else(
            || "the script gave nothing".to_owned(),
            |details| format!("the script failed: {details}"),
        );
        self.result
            .value
            .ok_or(CallError::Misunderstood { method, reason })
    }
}
