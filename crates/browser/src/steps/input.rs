//! Mouse and keyboard, as trusted events of the browser.

use std::time::{Duration, Instant};

use plumbline_seam::{
    Click, Decimal, Entry, KeyDefinition, KeyPress, MouseButton, Scroll, Selectors, Step,
};
use serde_json::{Value, json};

use super::Runner;
use super::element::Point;
use super::error::StepError;
use super::waiting::time_until;
use crate::protocol::CallError;

/// The number of letters of a text that are typed in a measured step.
const MAX_TYPED: usize = 40;
/// The page time between two keys.
const BETWEEN_KEYS: Duration = Duration::from_millis(80);

/// The middle of an element.
const MIDDLE: (Option<f64>, Option<f64>) = (None, None);

/// The modifier keys that are held down.
#[derive(Default)]
pub(super) struct Keyboard {
    modifiers: u32,
}

impl Runner<'_> {
    pub(super) async fn click(
        &mut self,
        step: &Step,
        click: &Click,
        count: u32,
        deadline: Instant,
    ) -> Result<(), StepError> {
        let offset = (
            click.offset_x.map(Decimal::value),
            click.offset_y.map(Decimal::value),
        );
        let element = self.usable_element(step, &click.selectors, offset, deadline);
        let (_, point) = element.await?;
        self.mouse("mouseMoved", point, None, 0, deadline).await?;
        for number in 1..=count {
            for kind in ["mousePressed", "mouseReleased"] {
                self.mouse(kind, point, Some(click.button), number, deadline)
                    .await?;
            }
        }
        Ok(())
    }

    pub(super) async fn hover(
        &mut self,
        step: &Step,
        selectors: &Selectors,
        deadline: Instant,
    ) -> Result<(), StepError> {
        let element = self.usable_element(step, selectors, MIDDLE, deadline);
        let (_, point) = element.await?;
        self.mouse("mouseMoved", point, None, 0, deadline).await
    }

    pub(super) async fn fill(
        &mut self,
        step: &Step,
        entry: &Entry,
        deadline: Instant,
    ) -> Result<(), StepError> {
        let (selectors, value) = (&entry.selectors, entry.value.expose());
        let element = self.usable_element(step, selectors, MIDDLE, deadline);
        let (field, _) = element.await?;
        let function = include_str!("fill.js");
        let prepared: String = self
            .value_of(&field, function, json!([value]), deadline)
            .await?;
        match prepared.as_str() {
            "done" => Ok(()),
            "type" if self.is_measured => self.type_text(value, deadline).await,
            "type" => self.insert_text(value, deadline).await,
            reason => Err(StepError::failed(format!(
                "the element `{selectors}` {reason}"
            ))),
        }
    }

    async fn insert_text(&mut self, text: &str, deadline: Instant) -> Result<(), StepError> {
        let text = json!({ "text": text });
        self.dispatch("Input.insertText", text, deadline).await
    }

    /// Types a text key by key, so that the page handles each. The end of a long text is inserted
    /// at once.
    async fn type_text(&mut self, text: &str, deadline: Instant) -> Result<(), StepError> {
        let mut rest = text;
        for typed in text.chars().take(MAX_TYPED) {
            let (typed, others) = rest.split_at(typed.len_utf8());
            rest = others;
            match KeyDefinition::of(typed) {
                Some(key) => {
                    self.send_key_down(&key, deadline).await?;
                    self.send_key_up(&key, deadline).await?;
                }
                None => self.insert_text(typed, deadline).await?,
            }
            let next_at = self.page.clock.now() + BETWEEN_KEYS;
            while self.page.next_event_until(next_at, deadline).await? {}
        }
        if rest.is_empty() {
            Ok(())
        } else {
            self.insert_text(rest, deadline).await
        }
    }

    pub(super) async fn scroll(
        &mut self,
        step: &Step,
        scroll: &Scroll,
        deadline: Instant,
    ) -> Result<(), StepError> {
        let (x, y) = (scroll.x.value(), scroll.y.value());
        match &scroll.selectors {
            Some(selectors) => {
                let element = self.usable_element(step, selectors, MIDDLE, deadline);
                let (element, _) = element.await?;
                let function = "function (x, y) {
                    this.scrollTo({ left: x, top: y, behavior: 'instant' });
                    return null;
                }";
                self.value_of(&element, function, json!([x, y]), deadline)
                    .await
            }
            None => {
                let script =
                    format!("scrollTo({{ left: {x}, top: {y}, behavior: 'instant' }}); 'scrolled'");
                let remaining = time_until(deadline);
                let scrolling = self.page.evaluate::<String>(remaining, &script);
                scrolling.await.map(drop).map_err(StepError::from)
            }
        }
    }

    /// Presses and releases a key while its modifiers are held down.
    pub(super) async fn press(&mut self, key: &str, deadline: Instant) -> Result<(), StepError> {
        let press = KeyPress::of(key).ok_or_else(unknown_key)?;
        for modifier in &press.modifiers {
            self.send_key_down(modifier, deadline).await?;
        }
        self.send_key_down(&press.key, deadline).await?;
        self.send_key_up(&press.key, deadline).await?;
        for modifier in press.modifiers.iter().rev() {
            self.send_key_up(modifier, deadline).await?;
        }
        Ok(())
    }

    pub(super) async fn key_down(&mut self, key: &str, deadline: Instant) -> Result<(), StepError> {
        let key = KeyDefinition::of(key).ok_or_else(unknown_key)?;
        self.send_key_down(&key, deadline).await
    }

    pub(super) async fn key_up(&mut self, key: &str, deadline: Instant) -> Result<(), StepError> {
        let key = KeyDefinition::of(key).ok_or_else(unknown_key)?;
        self.send_key_up(&key, deadline).await
    }

    async fn send_key_down(
        &mut self,
        key: &KeyDefinition,
        deadline: Instant,
    ) -> Result<(), StepError> {
        /// Modifiers with which a key enters no text: Alt, Control and Meta.
        const COMMAND: u32 = 1 | 2 | 4;
        self.keyboard.modifiers |= key.modifier;
        let mut params = self.key_params(key);
        match &key.text {
            Some(text) if self.keyboard.modifiers & COMMAND == 0 => {
                params["type"] = json!("keyDown");
                params["text"] = json!(text);
            }
            _ => params["type"] = json!("rawKeyDown"),
        }
        self.dispatch("Input.dispatchKeyEvent", params, deadline)
            .await
    }

    async fn send_key_up(
        &mut self,
        key: &KeyDefinition,
        deadline: Instant,
    ) -> Result<(), StepError> {
        self.keyboard.modifiers &= !key.modifier;
        let mut params = self.key_params(key);
        params["type"] = json!("keyUp");
        self.dispatch("Input.dispatchKeyEvent", params, deadline)
            .await
    }

    fn key_params(&self, key: &KeyDefinition) -> Value {
        json!({
            "key": key.key,
            "code": key.code,
            "windowsVirtualKeyCode": key.key_code,
            "modifiers": self.keyboard.modifiers,
        })
    }

    async fn mouse(
        &mut self,
        kind: &str,
        point: Point,
        button: Option<MouseButton>,
        click_count: u32,
        deadline: Instant,
    ) -> Result<(), StepError> {
        let params = json!({
            "type": kind,
            "x": point.x,
            "y": point.y,
            "button": button.map_or("none", MouseButton::protocol_name),
            "clickCount": click_count,
            "modifiers": self.keyboard.modifiers,
        });
        self.dispatch("Input.dispatchMouseEvent", params, deadline)
            .await
    }

    /// Sends an input event. An event that ends its own document is not acknowledged.
    async fn dispatch(
        &mut self,
        method: &'static str,
        params: Value,
        deadline: Instant,
    ) -> Result<(), StepError> {
        let remaining = time_until(deadline);
        match self
            .page
            .call_within::<Value>(remaining, method, params)
            .await
        {
            Err(CallError::Refused { reason, .. }) => {
                tracing::debug!(reason, "an input event was not acknowledged");
                Ok(())
            }
            result => result.map(drop).map_err(StepError::from),
        }
    }
}

fn unknown_key() -> StepError {
    StepError::failed("the key is not known")
}
