//! From an unused browser to an empty page under the conditions of a plan.

use std::collections::HashMap;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Page, auto_attach};
use crate::emulate::{Call, Conditions, ONLINE};
use crate::gather::{Console, Scripts, StyleSheets};
use crate::launch::Browser;
use crate::protocol::{CallError, Client, SessionId};
use crate::visit::failure::VisitError;
use crate::visit::loading::Loading;
use crate::visit::log::Log;
use crate::visit::plan::{NetworkPath, VisitPlan};
use crate::visit::trace::Trace;

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
    pub(in crate::visit) async fn open(
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
            cpu_rate: plan.throttle.rate_by_chromium(),
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
            log: Log::new(client.held()),
            trace: Trace::new(client.held()),
            kept: client.held(),
            warnings: Vec::new(),
            console: Console::default(),
            scripts: Scripts::default(),
            style_sheets: StyleSheets::default(),
            listening: true,
            departure: None,
            coarse_screen: None,
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
            match self.call::<Value>(method, params).await {
                Ok(_) => self.coarse_screen = conditions.coarse_screen(&screen.id),
                Err(error) => tracing::debug!(%error, "the browser's own screen stays as it is"),
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
                let session = Some(&self.session);
                let answer = self.client.call::<Value>(session, method, params);
                (method, answer)
            })
            .collect();
        for (method, answer) in asked {
            match self.during(answer).await {
                // An older browser does not know it.
                Err(CallError::Refused { reason, .. }) if method == ONLINE => {
                    tracing::debug!(reason, "pages may believe that they are offline");
                }
                answered => _ = answered?,
            }
        }
        Ok(())
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
