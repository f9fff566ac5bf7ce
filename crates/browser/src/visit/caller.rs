//! Asking the page for things, several at a time.

use std::future::Future;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::protocol::{CALL_DEADLINE, CallError, Client, Excess, Held, SessionId};

/// Where our own scripts run, out of the page's reach.
const WORLD: &str = "plumbline";

/// Speaks to the page's own session. Whoever waits for an answer must let events be taken
/// meanwhile: see [`super::Page::during`].
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

    /// For counting what is kept of the answers.
    pub(crate) fn held(&self) -> Held {
        self.client.held()
    }

    /// Ends the visit because the page made something too large.
    pub(crate) fn give_up(&self, excess: Excess) {
        self.client.give_up(excess);
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

    /// The call is on its way at once, also if the answer is waited for later.
    pub(crate) fn call_within<T: DeserializeOwned>(
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

    /// The context of our own world in the present document, asked for at once.
    pub(crate) fn world(
        &self,
        deadline: Duration,
    ) -> impl Future<Output = Result<i64, CallError>> + Send + use<> {
        self.world_in(&self.main_frame, deadline)
    }

    /// The same in a frame of the page's process.
    pub(crate) fn world_in(
        &self,
        frame: &str,
        deadline: Duration,
    ) -> impl Future<Output = Result<i64, CallError>> + Send + use<> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct World {
            execution_context_id: i64,
        }
        let params = json!({"frameId": frame, "worldName": WORLD});
        let world = self.call_within::<World>(deadline, "Page.createIsolatedWorld", params);
        async move { Ok(world.await?.execution_context_id) }
    }

    /// Runs a script in a world of ours, or in the page's own, where what it gives may be the page's invention. It is on
    /// its way at once.
    pub(crate) fn evaluate<T: DeserializeOwned>(
        &self,
        ours: Option<i64>,
        deadline: Duration,
        script: &str,
    ) -> impl Future<Output = Result<T, CallError>> + Send + use<T> {
        let mut params = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
        if let Some(context) = ours {
            params["contextId"] = json!(context);
        }
        let method = "Runtime.evaluate";
        let answer = self.call_within::<Evaluated<T>>(deadline, method, params);
        async move { answer.await?.value(method) }
    }

    /// Runs a script of ours in the present document, beside the page's own.
    pub(crate) async fn evaluate_beside<T: DeserializeOwned>(
        &self,
        deadline: Duration,
        script: &str,
    ) -> Result<T, CallError> {
        let given_up = Instant::now() + deadline;
        let context = self.world(deadline).await?;
        let left = given_up.saturating_duration_since(Instant::now());
        self.evaluate(Some(context), left, script).await
    }
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
