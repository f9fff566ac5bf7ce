//! Handles the events of the page, its frames and its workers.

use serde::Deserialize;
use serde_json::json;

use super::events::{
    Attached, DataReceived, Detached, Dialog, FrameNavigated, Lifecycle, RequestWillBeSent,
    TargetCreated,
};
use super::failure::crashed;
use super::interception::RequestPaused;
use super::{Page, auto_attach};
use crate::protocol::{ProtocolEvent, SessionId};

impl Page<'_> {
    pub(super) fn handle_event(&mut self, event: &ProtocolEvent) {
        match event.method.split_once('.') {
            Some(("Network", name)) => self.handle_network(event, name),
            Some(("Tracing", "bufferUsage")) => {
                let result = self.trace.update_buffer_usage(event);
                self.check_limit(result);
            }
            Some(("Tracing", "tracingComplete")) => {
                let result = self.trace.complete(event);
                self.check_limit(result);
            }
            Some(("Fetch", "requestPaused")) => self.answer_paused_request(event),
            Some(("Target", name)) => self.handle_target(event, name),
            Some(("Inspector", "targetCrashed")) => self.handle_crash(event),
            Some(("Page", name)) if self.is_main(event) => self.handle_page(event, name),
            Some(("Log" | "Runtime" | "Audits", _)) if self.is_main(event) => {
                let bytes = self.console.record(event);
                self.reserve(bytes);
            }
            Some(("Debugger", "scriptParsed")) if self.is_main(event) => {
                let bytes = self.scripts.record(event);
                self.reserve(bytes);
            }
            Some(("CSS", "styleSheetAdded")) if self.is_main(event) => {
                let bytes = self.style_sheets.record(event);
                self.reserve(bytes);
            }
            Some(("WebMCP", _)) if self.is_main(event) => {
                let bytes = self.web_mcp.record(event);
                self.reserve(bytes);
            }
            _ => {}
        }
    }

    /// Lets a paused request continue, or blocks it.
    fn answer_paused_request(&mut self, event: &ProtocolEvent) {
        let Some(paused) = event.read::<RequestPaused>() else {
            return;
        };
        let confinement = self.confinement.as_mut();
        let stop = confinement.and_then(|it| it.stop(&paused, &self.main_frame));
        let (method, params) = match (stop, &self.interception) {
            (Some(stop), _) => stop,
            (None, Some(interception)) => interception.answer(paused),
            (None, None) => paused.proceed(),
        };
        self.client.send(event.session.as_ref(), method, params);
    }

    /// Reserves memory for recorded bytes of an event.
    fn reserve(&mut self, bytes: usize) {
        let result = self.reservation.grow(bytes);
        self.check_limit(result);
    }

    fn is_main(&self, event: &ProtocolEvent) -> bool {
        event.session.as_ref() == Some(&self.session)
    }

    fn handle_network(&mut self, event: &ProtocolEvent, name: &str) {
        if self.round_trip.is_some() {
            return;
        }
        let Some(session) = &event.session else {
            return;
        };
        let kind = self.sessions.get(session).map_or("other", String::as_str);
        if self.is_recording {
            let result = self.log.add(event, kind);
            self.check_limit(result);
        }
        let (loading, now) = (&mut self.loading, self.clock.now());
        match name {
            "requestWillBeSent" => {
                if let Some(sent) = event.read::<RequestWillBeSent>() {
                    if let (Some(wall_s), Some(monotonic_s)) = (sent.wall_time, sent.timestamp) {
                        self.later_frames.set_clocks(wall_s, monotonic_s);
                    }
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
        let requests = self.loading.requests_in_flight();
        self.clock.outside().set_requests(requests);
    }

    fn handle_page(&mut self, event: &ProtocolEvent, name: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct NavigatedWithinDocument {
            frame_id: String,
            url: String,
        }
        if let Some(round_trip) = &mut self.round_trip {
            round_trip.record(event, name);
            if name == "javascriptDialogOpening" {
                let accept = json!({"accept": true});
                self.caller().send("Page.handleJavaScriptDialog", accept);
            }
            return;
        }
        match name {
            "frameNavigated" => {
                if let Some(FrameNavigated { frame }) = event.read() {
                    self.loading.navigated(frame, self.clock.now());
                }
            }
            "navigatedWithinDocument" => {
                if let Some(NavigatedWithinDocument { frame_id, url }) = event.read() {
                    self.loading.navigated_within_document(&frame_id, url);
                }
            }
            "lifecycleEvent" => {
                if let Some(lifecycle) = event.read::<Lifecycle>() {
                    self.loading.lifecycle_event(&lifecycle, self.clock.now());
                }
            }
            "screencastFrame" => {
                if let Some(id) = self.later_frames.add(event) {
                    let received = json!({"sessionId": id});
                    self.caller().send("Page.screencastFrameAck", received);
                }
            }
            "javascriptDialogOpening" => self.close_dialog(event),
            "downloadWillBegin" => {
                if let Some(confinement) = &mut self.confinement {
                    confinement.download_started();
                }
            }
            _ => {}
        }
    }

    /// Closes a dialog: leaving the page is accepted, everything else is dismissed.
    fn close_dialog(&mut self, event: &ProtocolEvent) {
        let kind = event.read::<Dialog>().map(|dialog| dialog.kind);
        let accept = kind.as_deref() == Some("beforeunload");
        self.client.send(
            event.session.as_ref(),
            "Page.handleJavaScriptDialog",
            json!({"accept": accept}),
        );
        self.warn("The page opened a dialog, which was dismissed.");
    }

    fn handle_target(&mut self, event: &ProtocolEvent, name: &str) {
        match name {
            "attachedToTarget" => {
                if let Some(attached) = event.read() {
                    self.attach(attached);
                }
            }
            "detachedFromTarget" => {
                if let Some(Detached { session_id }) = event.read() {
                    let session = SessionId::from(session_id.as_str());
                    self.sessions.remove(&session);
                    self.frame_sessions.retain(|_, other| *other != session);
                    self.loading.session_ended(&session_id, self.clock.now());
                }
            }
            "targetCreated" => {
                if let Some(TargetCreated { target_info }) = event.read()
                    && target_info.target_id != self.target
                    && target_info.kind == "page"
                {
                    if let Some(confinement) = &mut self.confinement {
                        confinement.window_opened(&target_info.target_id);
                    }
                    let target = json!({"targetId": target_info.target_id});
                    self.client.send(None, "Target.closeTarget", target);
                    self.warn("The page opened another window, which was closed.");
                }
            }
            _ => {}
        }
    }

    /// Sets up a new frame or worker, which is paused until then. All calls are sent without
    /// waiting for responses, because that would make a service worker hang.
    fn attach(&mut self, attached: Attached) {
        let session = SessionId::from(attached.session_id.as_str());
        let kind = attached.target_info.kind;
        let conditions = match kind.as_str() {
            "iframe" | "page" => &self.frame_conditions,
            _ => &self.worker_conditions,
        };
        let enable = [
            ("Network.enable", json!({})),
            ("Target.setAutoAttach", auto_attach()),
        ];
        let resume = [("Runtime.runIfWaitingForDebugger", json!({}))];
        let calls = enable.iter().chain(conditions).chain(&resume);
        for (method, params) in calls {
            self.client.send(Some(&session), method, params);
        }
        if kind == "iframe" {
            let frame = attached.target_info.target_id;
            self.frame_sessions.insert(frame, session.clone());
        }
        self.sessions.insert(session, kind);
    }

    fn handle_crash(&mut self, event: &ProtocolEvent) {
        if self.is_main(event) {
            self.loading.fail(crashed());
        } else {
            self.warn("A frame or worker of the page crashed.");
        }
    }
}
