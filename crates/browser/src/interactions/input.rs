//! Taps, clicks and keys, as trusted events of the browser.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plumbline_bundle::ControlKind;
use plumbline_seam::KeyDefinition;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Prober, unresponsive};
use crate::page::VisitError;
use crate::protocol::CallError;

/// Maximum time in which a page handles an input.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);
/// Time that a finger, a button or a key stays down, as of a person.
const HOLD: Duration = Duration::from_millis(60);
/// Time between two keys.
const BETWEEN_KEYS: Duration = Duration::from_millis(120);
/// The letters that are typed into a field. Most search fields make suggestions after two.
const LETTERS: [&str; 3] = ["s", "h", "o"];
/// The key that chooses the next option of a list.
const NEXT_OPTION: &str = "ArrowDown";

/// The middle of a control in the viewport, or the reason why it cannot be used.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Readiness {
    At([f64; 2]),
    NotReady(String),
}

/// A protocol call without its parameters' meaning: method and parameters.
type Call = (&'static str, Value);

impl Prober<'_, '_> {
    /// Makes the input for a kind of control, and waits until the page has handled it.
    pub(super) async fn send_input(
        &mut self,
        kind: ControlKind,
        point: [f64; 2],
    ) -> Result<(), VisitError> {
        if kind == ControlKind::Select {
            return self.press_key(NEXT_OPTION).await;
        }
        self.press_pointer(point).await?;
        if matches!(kind, ControlKind::Search | ControlKind::Field) {
            for letter in LETTERS {
                self.wait(BETWEEN_KEYS).await?;
                // The press may have opened something else, to which no keys are sent.
                if !self.has_focused_field().await? {
                    break;
                }
                self.press_key(letter).await?;
            }
        }
        Ok(())
    }

    async fn press_pointer(&mut self, [x, y]: [f64; 2]) -> Result<(), VisitError> {
        let (down, up) = if self.plan.device.touch {
            let touch = |kind: &str, points: Value| {
                let params = json!({ "type": kind, "touchPoints": points });
                ("Input.dispatchTouchEvent", params)
            };
            (
                touch("touchStart", json!([{ "x": x, "y": y }])),
                touch("touchEnd", json!([])),
            )
        } else {
            let mouse = |kind: &str, button: &str, count: u32| {
                let params = json!({
                    "type": kind, "x": x, "y": y, "button": button, "clickCount": count,
                });
                ("Input.dispatchMouseEvent", params)
            };
            let (method, params) = mouse("mouseMoved", "none", 0);
            let moving = self.page.call_within::<Value>(DEADLINE, method, params);
            acknowledged(moving.await.map(drop))?;
            self.wait(BETWEEN_KEYS).await?;
            (
                mouse("mousePressed", "left", 1),
                mouse("mouseReleased", "left", 1),
            )
        };
        self.hold(down, up).await
    }

    async fn press_key(&mut self, name: &str) -> Result<(), VisitError> {
        let Some(key) = KeyDefinition::of(name) else {
            return Err(VisitError::Fault(format!("unknown key `{name}`")));
        };
        let params = |kind: &str| {
            json!({
                "type": kind, "key": key.key, "code": key.code, "windowsVirtualKeyCode": key.key_code,
            })
        };
        let mut down = params("rawKeyDown");
        if let Some(text) = &key.text {
            down["type"] = json!("keyDown");
            down["text"] = json!(text);
        }
        let method = "Input.dispatchKeyEvent";
        self.hold((method, down), (method, params("keyUp"))).await
    }

    /// Sends the beginning and the end of an input. The end does not wait until the page has
    /// handled the beginning, as it would not with a person.
    async fn hold(&mut self, down: Call, up: Call) -> Result<(), VisitError> {
        let (caller, clock) = (self.page.caller(), Arc::clone(&self.page.clock));
        let holding = async move {
            let pressing = caller.call_within::<Value>(DEADLINE, down.0, down.1);
            clock.sleep_until(clock.now() + HOLD).await;
            let releasing = caller.call_within::<Value>(DEADLINE, up.0, up.1);
            let (pressed, released) = tokio::join!(pressing, releasing);
            (pressed.map(drop), released.map(drop))
        };
        let (pressed, released) = self.page.drive(holding).await;
        acknowledged(pressed)?;
        acknowledged(released)
    }

    async fn has_focused_field(&mut self) -> Result<bool, VisitError> {
        let script = "(() => {
            let element = document.activeElement;
            while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
            return Boolean(element?.matches('input, textarea') || element?.isContentEditable);
        })";
        let is_focused = self.run::<bool>(script, "").await?;
        Ok(is_focused.unwrap_or(false))
    }

    /// Handles events for a time of the page.
    async fn wait(&mut self, duration: Duration) -> Result<(), VisitError> {
        let at = self.page.clock.now() + duration;
        let deadline = Instant::now() + DEADLINE;
        while self.page.next_event_until(at, deadline).await? {}
        Ok(())
    }
}

/// Returns an error of the page if it did not handle an input in time. An input that ends its own
/// document is refused, which is no error.
fn acknowledged(result: Result<(), CallError>) -> Result<(), VisitError> {
    match result {
        Err(CallError::Refused { reason, .. }) => {
            tracing::debug!(reason, "an input was not acknowledged");
            Ok(())
        }
        Err(CallError::TimedOut { .. }) => Err(unresponsive("The page did not handle an input.")),
        result => Ok(result?),
    }
}
