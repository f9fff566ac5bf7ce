//! What is done at once about what the page and everything that belongs to it reports.

use std::time::Instant;

use serde::Deserialize;
use serde_json::json;

use super::{Page, auto_attach};
use crate::protocol::{Event, SessionId};
use crate::visit::events::{
    Attached, DataReceived, Detached, Dialog, FrameNavigated, Lifecycle, TargetCreated,
};
use crate::visit::failure::crashed;

impl Page<'_> {
    pub(super) fn take(&mut self, event: &Event) {
        match event.method.split_once('.') {
            Some(("Network", what)) => self.take_network(event, what),
            Some(("Tracing", "dataCollected")) => {
                let collected = self.trace.collect(event);
                self.unless_too_large(collected);
            }
            Some(("Tracing", "bufferUsage")) => {
                let filled = self.trace.filled(event);
                self.unless_too_large(filled);
            }
            Some(("Tracing", "tracingComplete")) => {
                let completed = self.trace.complete(event);
                self.unless_too_large(completed);
            }
            Some(("Target", what)) => self.take_target(event, what),
            Some(("Inspector", "targetCrashed")) => self.take_crash(event),
            Some(("Page", what)) if self.is_main(event) => self.take_page(event, what),
            Some(("Log" | "Runtime" | "Audits", _)) if self.is_main(event) => {
                let bytes = self.console.take(event);
                self.count(bytes);
            }
            Some(("Debugger", "scriptParsed")) if self.is_main(event) => {
                let bytes = self.scripts.take(event);
                self.count(bytes);
            }
            Some(("CSS", "styleSheetAdded")) if self.is_main(event) => {
                let bytes = self.style_sheets.take(event);
                self.count(bytes);
            }
            _ => {}
        }
    }

    /// So many bytes of an event are kept.
    fn count(&mut self, bytes: usize) {
        let kept = self.kept.grow(bytes);
        self.unless_too_large(kept);
    }

    fn is_main(&self, event: &Event) -> bool {
        event.session.as_ref() == Some(&self.session)
    }

    fn take_network(&mut self, event: &Event, what: &str) {
        if self.departure.is_some() {
            return;
        }
        let Some(session) = &event.session else {
            return;
        };
        let kind = self.sessions.get(session).map_or("other", String::as_str);
        if self.listening {
            let kept = self.log.keep(event, kind);
            self.unless_too_large(kept);
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
        if let Some(departure) = &mut self.departure {
            departure.take(event, what);
            if what == "javascriptDialogOpening" {
                let accept = json!({"accept": true});
                self.caller().send("Page.handleJavaScriptDialog", accept);
            }
            return;
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
}
