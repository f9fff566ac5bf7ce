//! Opens an empty page in an unused browser, under the conditions of a plan.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::confinement::Confinement;
use super::console::Console;
use super::failure::VisitError;
use super::interception::Interception;
use super::later_frames::LaterFrames;
use super::loading::Loading;
use super::log::Log;
use super::scripts::Scripts;
use super::style_sheets::StyleSheets;
use super::trace::TraceRecording;
use super::web_mcp::WebMcpTools;
use super::{Page, auto_attach, seeding};
use crate::emulate::{EmulatedConditions, ONLINE, ProtocolCall};
use crate::launch::Browser;
use crate::plan::{NetworkPath, VisitPlan};
use crate::protocol::{CallError, Client, SessionId};

/// The call after which the browser reports the page's tools for agents.
const WEB_MCP: &str = "WebMCP.enable";

/// The call with which the browser blocks requests before it connects to their servers.
const BLOCKED_URLS: &str = "Network.setBlockedURLs";

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

/// A tab of the browser in which steps were performed. It has the session storage that they left.
pub(crate) struct Tab(String);

/// The purpose of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The page is measured.
    Visit,
    /// The page is loaded like one that is measured, and only trace and requests are recorded.
    Profile,
    /// Steps are performed before the visit, or inputs are made after it: nothing is recorded, and
    /// any document is accepted.
    Steps,
}

impl<'b> Page<'b> {
    /// Opens an empty page for the steps before a visit, under the conditions of the plan.
    pub(crate) async fn open_for_steps(
        browser: &'b mut Browser,
        plan: &VisitPlan,
    ) -> Result<Page<'b>, VisitError> {
        Self::open_for(browser, plan, Purpose::Steps, None).await
    }

    /// Opens an empty page for inputs or steps after the visits, under the conditions of the plan:
    /// in a new tab, or in the one in which the steps before it were performed.
    pub(crate) async fn open_after_visits(
        browser: &'b mut Browser,
        plan: &VisitPlan,
        tab: Option<Tab>,
    ) -> Result<Page<'b>, VisitError> {
        Self::open_for(browser, plan, Purpose::Steps, tab).await
    }

    /// Leaves the tab, which keeps its storage, and ends the emulation in it.
    pub(crate) async fn detach(mut self) -> Result<Tab, VisitError> {
        // All events of the session are handled before the response: none is left for the visit.
        let params = json!({ "sessionId": self.session.as_str() });
        let call = self
            .client
            .call::<Value>(None, "Target.detachFromTarget", params);
        self.drive(call).await?;
        Ok(Tab(self.target))
    }

    /// Opens an empty page under the conditions of the plan, and starts recording what its purpose
    /// needs: in a new tab, or in the one in which the steps were performed.
    pub(crate) async fn open_for(
        browser: &'b mut Browser,
        plan: &VisitPlan,
        purpose: Purpose,
        tab: Option<Tab>,
    ) -> Result<Page<'b>, VisitError> {
        let version = browser.version().clone();
        let network = connect_proxy(browser, &plan.network).await?;
        let client = &browser.client;
        let state = plan.state.as_deref();
        let interception = state.and_then(|state| Interception::of(state, &plan.url));
        let is_new_tab = tab.is_none();
        let (target, session) = match tab {
            Some(Tab(target)) => {
                let session = attach_to(client, &target).await?;
                (target, session)
            }
            None => {
                // Before the page is opened: requests of existing pages would not be paused.
                let pausing = if plan.interactions > 0 {
                    let all = json!({ "patterns": [{ "urlPattern": "*" }] });
                    Some(("Fetch.enable", all))
                } else {
                    interception.as_ref().map(Interception::enable)
                };
                if let Some((method, params)) = pausing {
                    client.call::<Value>(None, method, params).await?;
                }
                open_target(client, &network, purpose).await?
            }
        };
        let conditions = EmulatedConditions {
            device: &plan.device,
            version: &version,
            user_agent: plan.user_agent(&version),
            cpu_rate: plan.throttle.rate_by_chromium(),
        };
        let saved = plan.saved.as_deref();
        let repeatable = plan.repeatable_since_ms.map(seeding::repeatable_script);
        let mut scripts: Vec<ProtocolCall> = repeatable.into_iter().collect();
        scripts.extend(saved.into_iter().flat_map(seeding::saved_scripts));
        scripts.extend(
            state
                .into_iter()
                .flat_map(|state| seeding::scripts(state, &plan.url)),
        );
        let mut frame_conditions = conditions.for_frame();
        if !scripts.is_empty() {
            // Chromium runs no such scripts in a frame of another process before this call.
            frame_conditions.push(("Page.enable", json!({})));
            frame_conditions.extend(scripts.iter().cloned());
        }
        let blocking = (!plan.blocked_urls.is_empty())
            .then(|| (BLOCKED_URLS, json!({ "urls": plan.blocked_urls })));
        frame_conditions.extend(blocking.clone());
        let mut page = Page {
            client,
            interception,
            confinement: (plan.interactions > 0).then(Confinement::default),
            events: &mut browser.events,
            sessions: HashMap::from([(session.clone(), "page".to_owned())]),
            session,
            // A page's target and its main frame have the same id.
            main_frame: target.clone(),
            loading: match purpose {
                Purpose::Visit | Purpose::Profile => {
                    Loading::new(target.clone(), plan, browser.clock.now())
                }
                Purpose::Steps => Loading::of_steps(target.clone(), plan, browser.clock.now()),
            },
            clock: Arc::clone(&browser.clock),
            target,
            frame_conditions,
            worker_conditions: conditions.for_worker(),
            log: Log::new(client.reservation()),
            trace: TraceRecording::new(client.reservation()),
            later_frames: LaterFrames::none(),
            reservation: client.reservation(),
            warnings: Vec::new(),
            console: Console::default(),
            scripts: Scripts::default(),
            mapped_scripts: Vec::new(),
            style_sheets: StyleSheets::default(),
            web_mcp: WebMcpTools::default(),
            frame_sessions: HashMap::new(),
            is_recording: purpose != Purpose::Steps,
            round_trip: None,
            viewport: conditions.viewport(),
            coarse_screen: None,
        };
        let screen_scale = page.set_screen(&conditions).await;
        let mut calls = conditions.for_page();
        calls.extend(scripts);
        calls.extend(blocking);
        page.set_up(purpose, calls).await?;
        if purpose != Purpose::Steps
            && let Some(calls) = conditions.small_drawing(screen_scale)
        {
            page.reduce_drawing(calls).await?;
        }
        if let Some(saved) = saved.filter(|_| is_new_tab) {
            page.restore_cookies(&saved.cookies).await?;
        }
        if let Some(state) = state.filter(|_| is_new_tab) {
            if let Some(script) = &state.script {
                page.check_script(script).await?;
            }
            page.set_cookies(&state.cookies, &plan.url).await?;
        }
        Ok(page)
    }

    /// Sets the browser's screen to that of the device, and returns the scale of the screen. Older
    /// browsers cannot do this, which only frames in other processes can notice.
    async fn set_screen(&mut self, conditions: &EmulatedConditions<'_>) -> f64 {
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
            match self.call::<Value>(method, params).await {
                Ok(_) => {
                    self.coarse_screen = conditions.coarse_screen(&screen.id);
                    return conditions.device.scale;
                }
                Err(error) => tracing::debug!(%error, "failed to set the browser's screen"),
            }
        }
        1.0
    }

    /// Draws the page at a smaller scale. Chromium may lose the first of these calls, which is
    /// deprecated; the page is drawn at its own size then.
    async fn reduce_drawing(&mut self, calls: [ProtocolCall; 2]) -> Result<(), VisitError> {
        for (method, params) in calls {
            match self.call::<Value>(method, params).await {
                Err(CallError::Refused { reason, .. }) => {
                    tracing::debug!(reason, "the page is drawn at its own size");
                    return Ok(());
                }
                result => result?,
            };
        }
        Ok(())
    }

    async fn set_up(
        &mut self,
        purpose: Purpose,
        conditions: Vec<ProtocolCall>,
    ) -> Result<(), VisitError> {
        self.client.send(
            None,
            "Target.setDiscoverTargets",
            json!({"discover": true, "filter": [{"type": "page"}]}),
        );
        let mut calls: Vec<ProtocolCall> = vec![
            ("Page.enable", json!({})),
            ("Page.setLifecycleEventsEnabled", json!({"enabled": true})),
            ("Network.enable", json!({})),
            ("Runtime.enable", json!({})),
        ];
        if purpose == Purpose::Visit {
            calls.extend(recording());
        }
        calls.extend([
            ("Target.setAutoAttach", auto_attach()),
            (
                "Page.setInterceptFileChooserDialog",
                json!({"enabled": true}),
            ),
        ]);
        calls.extend(conditions);
        // All calls are sent before the first response is awaited.
        let pending: Vec<_> = calls
            .into_iter()
            .map(|(method, params)| {
                let session = Some(&self.session);
                (method, self.client.call::<Value>(session, method, params))
            })
            .collect();
        for (method, call) in pending {
            match self.drive(call).await {
                // Not all browsers have these methods.
                Err(CallError::Refused { reason, .. }) if method == ONLINE => {
                    tracing::debug!(reason, "pages may detect that they are offline");
                }
                Err(CallError::Refused { reason, .. }) if method == BLOCKED_URLS => {
                    tracing::debug!(reason, "blocked requests are sent to the replay");
                }
                Err(CallError::Refused { reason, .. }) if method == WEB_MCP => {
                    tracing::debug!(reason, "the browser does not report tools for agents");
                }
                result => {
                    result?;
                    self.web_mcp.is_enabled |= method == WEB_MCP;
                }
            }
        }
        Ok(())
    }
}

/// Returns the calls after which the browser reports what a visit records besides requests.
fn recording() -> [ProtocolCall; 6] {
    [
        ("Log.enable", json!({})),
        ("Log.startViolationsReport", violations()),
        ("Audits.enable", json!({})),
        // Coverage as in Lighthouse: whole functions, no counts.
        ("Profiler.enable", json!({})),
        ("Profiler.startPreciseCoverage", json!({"detailed": false})),
        (WEB_MCP, json!({})),
    ]
}

/// Connects a browser that is restricted to its proxy port to this proxy, and returns the network
/// path for its pages. All connections to an earlier proxy end.
async fn connect_proxy(
    browser: &mut Browser,
    network: &NetworkPath,
) -> Result<NetworkPath, VisitError> {
    let fault = |error: &dyn std::fmt::Display| VisitError::Fault(error.to_string());
    if let Some(forwarder) = browser.forwarder.take() {
        forwarder.close().await;
    }
    match (&browser.proxy_port, network) {
        (Some(port), NetworkPath::Proxy(proxy)) => {
            let forwarder = port.forward_to(*proxy, &browser.clock);
            let forwarder = forwarder.map_err(|error| fault(&error))?;
            browser.forwarder = Some(forwarder);
            Ok(NetworkPath::Direct)
        }
        (Some(_), _) => Err(fault(
            &"the browser was started for visits through a proxy, and the visit has none",
        )),
        (None, network) => Ok(network.clone()),
    }
}

/// Opens a new page in an unused browser, for a visit or a benchmark.
pub(crate) async fn open_target(
    client: &Client,
    network: &NetworkPath,
    purpose: Purpose,
) -> Result<(String, SessionId), CallError> {
    let context = match network {
        NetworkPath::Direct => None,
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
    if purpose != Purpose::Steps {
        // The tab strip of a window that does not fill the screen shows an animation while the page
        // loads. Drawing it takes up to a fifth of the processor time of a visit.
        // In windows that fill the screen, some inputs are not reported to the page's timeline.
        page["newWindow"] = json!(true);
        page["windowState"] = json!("fullscreen");
    }
    if let Some(context) = context {
        no_downloads["browserContextId"] = json!(context);
        page["browserContextId"] = json!(context);
    }
    client.send(None, "Browser.setDownloadBehavior", no_downloads);
    let created: Created = client.call(None, "Target.createTarget", page).await?;
    let session = attach_to(client, &created.target_id).await?;
    Ok((created.target_id, session))
}

async fn attach_to(client: &Client, target: &str) -> Result<SessionId, CallError> {
    let params = json!({"targetId": target, "flatten": true});
    let session: Session = client.call(None, "Target.attachToTarget", params).await?;
    Ok(SessionId::from(session.session_id.as_str()))
}

/// Returns the parameters for reports of discouraged API calls, which are off by default. They show
/// permissions that a page requests while it loads.
fn violations() -> Value {
    json!({"config": [{"name": "discouragedAPIUse", "threshold": -1}]})
}
