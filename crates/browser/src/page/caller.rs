//! Calls of the page's session, several of which can be pending at a time.

use std::future::Future;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::protocol::{CALL_DEADLINE, CallError, Client, LimitExceeded, Reservation, SessionId};

/// Name of the isolated world in which our own scripts run, inaccessible to the page.
const WORLD_NAME: &str = "plumbline";

/// Calls methods of the page's session. While a response is awaited, events must be handled: see
/// [`super::Page::drive`].
#[derive(Clone)]
pub(crate) struct Caller {
    client: Client,
    session: SessionId,
    main_frame: String,
}

impl Caller {
    pub(super) fn new(client: &Client, session: &SessionId, main_frame: &str) -> Self {
        Self {
            client: client.clone(),
            session: session.clone(),
            main_frame: main_frame.to_owned(),
        }
    }

    /// Returns an empty reservation, to count what is kept of responses.
    pub(crate) fn reservation(&self) -> Reservation {
        self.client.reservation()
    }

    /// Ends the visit because the page exceeded a size limit.
    pub(crate) fn abort(&self, limit: LimitExceeded) {
        self.client.abort(limit);
    }

    pub(crate) fn main_frame(&self) -> &str {
        &self.main_frame
    }

    pub(crate) fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Value,
    ) -> impl Future<Output = Result<T, CallError>> + Send + use<T> {
        self.call_within(CALL_DEADLINE, method, params)
    }

    /// Calls a method. The call is sent immediately, even if its response is awaited later.
    pub(crate) fn call_within<T: DeserializeOwned>(
        &self,
        deadline: Duration,
        method: &'static str,
        params: Value,
    ) -> impl Future<Output = Result<T, CallError>> + Send + use<T> {
        self.client
            .call_within(deadline, Some(&self.session), method, params)
    }

    /// Calls a method without waiting for its response.
    pub(crate) fn send(&self, method: &'static str, params: Value) {
        self.client.send(Some(&self.session), method, params);
    }

    /// Creates an isolated world in the current document and returns its execution context. The
    /// call is sent immediately.
    pub(crate) fn create_world(
        &self,
        deadline: Duration,
    ) -> impl Future<Output = Result<i64, CallError>> + Send + use<> {
        self.create_world_in(&self.main_frame, deadline)
    }

    /// Creates an isolated world in a frame of the page's process.
    pub(crate) fn create_world_in(
        &self,
        frame: &str,
        deadline: Duration,
    ) -> impl Future<Output = Result<i64, CallError>> + Send + use<> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct World {
            execution_context_id: i64,
        }
        let params = json!({"frameId": frame, "worldName": WORLD_NAME});
        let world = self.call_within::<World>(deadline, "Page.createIsolatedWorld", params);
        async move { Ok(world.await?.execution_context_id) }
    }

    /// Evaluates a script in an isolated world, or in the page's own world, where the page can
    /// manipulate its result. The call is sent immediately.
    pub(crate) fn evaluate<T: DeserializeOwned>(
        &self,
        isolated_context: Option<i64>,
        deadline: Duration,
        script: &str,
    ) -> impl Future<Output = Result<T, CallError>> + Send + use<T> {
        let mut params = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
        if let Some(context) = isolated_context {
            params["contextId"] = json!(context);
        }
        let method = "Runtime.evaluate";
        let call = self.call_within::<EvaluateResponse>(deadline, method, params);
        async move { call.await?.value(method) }
    }

    /// Evaluates a script in an isolated world of the current document.
    pub(crate) async fn evaluate_isolated<T: DeserializeOwned>(
        &self,
        deadline: Duration,
        script: &str,
    ) -> Result<T, CallError> {
        let end = Instant::now() + deadline;
        let context = self.create_world(deadline).await?;
        let remaining = end.saturating_duration_since(Instant::now());
        self.evaluate(Some(context), remaining, script).await
    }
}

/// The response to the evaluation of a script: its value or an exception.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EvaluateResponse {
    result: RemoteObject,
    #[serde(default)]
    exception_details: Option<Value>,
}

#[derive(Deserialize)]
struct RemoteObject {
    // A script that throws has no value.
    value: Option<Box<RawValue>>,
}

impl EvaluateResponse {
    pub(crate) fn value<T: DeserializeOwned>(self, method: &'static str) -> Result<T, CallError> {
        let invalid = |reason| CallError::InvalidResponse { method, reason };
        let Some(value) = self.result.value else {
            return Err(invalid(self.exception_details.map_or_else(
                || "the script returned nothing".to_owned(),
                |details| format!("the script failed: {details}"),
            )));
        };
        serde_json::from_str(value.get()).map_err(|error| invalid(error.to_string()))
    }
}
