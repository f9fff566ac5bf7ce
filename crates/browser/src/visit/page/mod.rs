//! The page of a visit with everything that belongs to it: its frames, its workers, what they
//! report, and what is done about it at once.

mod hear;
mod open;

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) use open::open_target;

use super::caller::Caller;
use super::failure::VisitError;
use super::loading::Loading;
use super::log::Log;
use super::trace::Trace;
use crate::emulate::Call;
use crate::gather::{Console, Departure, Line, Scripts, StyleSheets};
use crate::protocol::{CALL_DEADLINE, CallError, Client, Events, Excess, Held, SessionId};

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
    /// The page was left: what is heard from now on is of other documents.
    departure: Option<Departure>,
    /// What lays the page out in CSS pixels; none where it is.
    coarse_screen: Option<Call>,
    /// Counts what is kept of the page besides log and trace.
    kept: Held,
}

impl Page<'_> {
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
    pub(crate) async fn next_event(&mut self, until: Instant) -> Result<bool, VisitError> {
        match tokio::time::timeout_at(until.into(), self.events.recv()).await {
            Ok(Some(event)) => {
                self.take(&event);
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

    /// An error once the page has made something too large.
    pub(crate) fn check_size(&self) -> Result<(), VisitError> {
        match self.client.excess() {
            Some(excess) => Err(CallError::TooLarge(excess).into()),
            None => Ok(()),
        }
    }

    /// Ends the visit where something has become too large.
    fn unless_too_large(&self, kept: Result<(), Excess>) {
        if let Err(excess) = kept {
            self.client.give_up(excess);
        }
    }

    /// Counts what is kept of the page for as long as the page is there.
    pub(crate) fn keep(&mut self, held: Held) {
        self.kept.absorb(held);
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

    /// Runs a script of ours in the present document, beside the page's own.
    pub(crate) async fn evaluate<T: DeserializeOwned>(
        &mut self,
        deadline: Duration,
        script: &str,
    ) -> Result<T, CallError> {
        let caller = self.caller();
        self.during(caller.evaluate_beside(deadline, script)).await
    }

    /// For asking several things at a time.
    pub(crate) fn caller(&self) -> Caller {
        Caller::new(self.client, &self.session, &self.main_frame)
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

    /// From here on the page is being left, or returned to.
    pub(crate) fn depart(&mut self) {
        self.departure = Some(Departure::default());
    }

    pub(crate) fn departure(&self) -> Option<&Departure> {
        self.departure.as_ref()
    }

    /// The elements that the trace names, by number.
    pub(crate) fn named_nodes(&self) -> Vec<i64> {
        self.trace.named_nodes()
    }

    pub(crate) fn take_scripts(&mut self) -> Scripts {
        std::mem::take(&mut self.scripts)
    }

    pub(crate) fn take_style_sheets(&mut self) -> StyleSheets {
        std::mem::take(&mut self.style_sheets)
    }

    /// Nothing is measured any more: our own work, which is asked for after this, need not be slow.
    pub(crate) fn lift_throttling(&self) {
        let method = "Emulation.setCPUThrottlingRate";
        self.caller().send(method, json!({"rate": 1}));
    }

    /// Lays the page out as Lighthouse looks at it, where only the viewport has the device's pixels: text that is half a
    /// pixel lower on each line comes to lie over other links. While the page loads the whole screen has them, as only
    /// then frames in other processes know of them. Nothing is measured any more.
    pub(crate) async fn lay_out_in_css_pixels(&mut self) {
        if let Some((method, params)) = self.coarse_screen.take()
            && let Err(error) = self.call::<Value>(method, params).await
        {
            tracing::debug!(%error, "the page stays laid out in device pixels");
        }
    }

    pub(crate) fn warn(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.warnings.contains(&sentence) {
            self.warnings.push(sentence);
        }
    }
}

/// Frames and workers of the page are attached to before they begin.
fn auto_attach() -> Value {
    json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
}
