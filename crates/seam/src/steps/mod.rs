//! Steps before a visit, as data: such as filling in a login form.
//!
//! One vocabulary serves our own lists and recordings of the Recorder in Chrome DevTools, whose
//! schema is that of `@puppeteer/replay`: a recording is an object with a member `steps`, and its
//! types of steps have our names as well (`navigate` is `goto`, `change` is `fill`).

mod keys;
mod parse;
mod selectors;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{Expectation, InvalidOption, Secret};

pub use keys::{KeyDefinition, KeyPress};
pub use selectors::{Selector, Selectors};

/// The time limit of a step that names none, in milliseconds.
const DEFAULT_TIMEOUT_MS: u32 = 10_000;
/// The time limit of a navigation, which waits for a server.
const NAVIGATION_TIMEOUT_MS: u32 = 30_000;

/// The steps before a visit or those that are measured after it, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Steps(pub Vec<Step>);

impl<'de> Deserialize<'de> for Steps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::parse(value).map_err(as_serde_error)
    }
}

fn as_serde_error<E: serde::de::Error>(error: InvalidOption) -> E {
    let position = error
        .index
        .map_or(String::new(), |index| format!("[{index}]"));
    let reason = error.reason.trim_end_matches('.');
    E::custom(format!("{}{position}: {reason}", error.field))
}

impl Steps {
    pub(crate) fn deserialize_flow<'de, D>(deserializer: D) -> Result<Self, D::Error>
    where
        D: Deserializer<'de>,
    {
        let value = Value::deserialize(deserializer)?;
        Self::parse_flow(value).map_err(as_serde_error)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the title of every step, as reports show it.
    pub fn titles(&self) -> Vec<String> {
        self.0.iter().map(Step::title).collect()
    }

    /// Returns the values that the steps fill in, which are secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.0.iter().filter_map(Step::value)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Secret> {
        self.0.iter_mut().filter_map(|step| match &mut step.action {
            Action::Fill(entry) | Action::Select(entry) => Some(&mut entry.value),
            _ => None,
        })
    }

    /// Replaces all values that are filled in by empty texts.
    pub(crate) fn erase_values(&mut self) {
        self.values_mut()
            .for_each(|value| *value = Secret::default());
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    #[serde(flatten)]
    pub action: Action,
    /// The frame with the element: its position among the frames of each document on the way down
    /// from the page; empty for the page itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frame: Vec<u32>,
    /// The window of the step. Only that of the page is supported.
    #[serde(default, skip_serializing)]
    target: Option<String>,
    /// The time limit in milliseconds; `None` for the default.
    #[serde(default, rename = "timeout", skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u32>,
    /// Events that must follow the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asserted_events: Vec<AssertedEvent>,
}

/// An event that must follow a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum AssertedEvent {
    /// A navigation of the page, also one within its document.
    Navigation,
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Action {
    SetViewport(Viewport),
    #[serde(alias = "navigate")]
    Goto {
        /// An absolute URL, or a path of the audited URL's site.
        url: String,
    },
    Click(Click),
    DoubleClick(Click),
    #[serde(alias = "change")]
    Fill(Entry),
    Select(Entry),
    Press {
        /// The name of a key, with modifiers before it: `Enter`, `Control+a`.
        key: String,
    },
    KeyDown {
        key: String,
    },
    KeyUp {
        key: String,
    },
    Hover {
        #[serde(rename(deserialize = "selector"), alias = "selectors")]
        selectors: Selectors,
    },
    Scroll(Scroll),
    #[serde(alias = "waitForElement", alias = "waitForExpression")]
    WaitFor(Box<Condition>),
    Assert(Box<Assertion>),
    EmulateNetworkConditions(NetworkThrottle),
    /// Closes the page; only valid as the last step, because the visit follows.
    Close,
}

/// The size of the window while the steps are performed. The visit has that of its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Viewport {
    pub width: u32,
    pub height: u32,
    /// Device pixels for each CSS pixel.
    #[serde(default = "Decimal::one")]
    pub device_scale_factor: Decimal,
    #[serde(default)]
    pub is_mobile: bool,
    #[serde(default)]
    pub has_touch: bool,
}

/// A click on an element.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Click {
    #[serde(rename(deserialize = "selector"), alias = "selectors")]
    pub selectors: Selectors,
    #[serde(default)]
    pub button: MouseButton,
    /// The distance from the left edge of the element; `None` for its middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_x: Option<Decimal>,
    /// The distance from the top edge of the element; `None` for its middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_y: Option<Decimal>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MouseButton {
    #[default]
    Primary,
    Auxiliary,
    Secondary,
    Back,
    Forward,
}

impl MouseButton {
    /// Returns the name in the DevTools protocol.
    pub fn protocol_name(self) -> &'static str {
        match self {
            Self::Primary => "left",
            Self::Auxiliary => "middle",
            Self::Secondary => "right",
            Self::Back => "back",
            Self::Forward => "forward",
        }
    }
}

/// A value for a field of a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    #[serde(rename(deserialize = "selector"), alias = "selectors")]
    pub selectors: Selectors,
    pub value: Secret,
}

/// Scrolls an element, or the page if there is none, to a position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scroll {
    #[serde(
        default,
        rename(deserialize = "selector"),
        alias = "selectors",
        skip_serializing_if = "Option::is_none"
    )]
    pub selectors: Option<Selectors>,
    #[serde(default)]
    pub x: Decimal,
    #[serde(default)]
    pub y: Decimal,
}

/// A condition that is waited for: exactly one of elements, URL, idle network and expression.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    #[serde(
        rename(deserialize = "selector"),
        alias = "selectors",
        skip_serializing_if = "Option::is_none"
    )]
    pub selectors: Option<Selectors>,
    /// The comparison of the number of elements with `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Operator>,
    /// The number of elements; `None` for 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Whether the first element must be visible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visible: Option<bool>,
    /// Attributes that the first element must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Properties that the first element must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<Value>,
    /// The URL of the page, in which `*` stands for any characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// True to wait until the page is loaded and its network is idle.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub idle: bool,
    /// A JavaScript expression that becomes true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    #[default]
    #[serde(rename = ">=")]
    AtLeast,
    #[serde(rename = "==")]
    Exactly,
    #[serde(rename = "<=")]
    AtMost,
}

impl Operator {
    pub fn holds(self, number: u32, count: u32) -> bool {
        match self {
            Self::AtLeast => number >= count,
            Self::Exactly => number == count,
            Self::AtMost => number <= count,
        }
    }
}

/// Conditions that must hold at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assertion {
    #[serde(flatten)]
    pub expect: Expectation,
    /// A JavaScript expression that must be true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
}

/// The speed of the network while the steps are performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkThrottle {
    /// Bytes per second.
    pub download: Decimal,
    /// Bytes per second.
    pub upload: Decimal,
    /// Milliseconds.
    pub latency: Decimal,
}

/// A number with up to three decimals, which can be compared exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Decimal {
    thousandths: i64,
}

impl Decimal {
    fn one() -> Self {
        Self { thousandths: 1000 }
    }

    pub fn value(self) -> f64 {
        self.thousandths as f64 / 1000.0
    }
}

impl Serialize for Decimal {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let thousandths = (f64::deserialize(deserializer)? * 1000.0).round();
        // Larger numbers are no positions, sizes or speeds.
        let thousandths = thousandths.clamp(-1e15, 1e15) as i64;
        Ok(Self { thousandths })
    }
}

impl Step {
    /// Creates a step that opens a URL.
    pub fn goto(url: &str) -> Self {
        let url = url.to_owned();
        Self::new(Action::Goto { url })
    }

    /// Creates a step that clicks an element in a frame of the page.
    pub fn click(selectors: Selectors, frame: Vec<u32>) -> Self {
        let click = Click {
            selectors,
            button: MouseButton::default(),
            offset_x: None,
            offset_y: None,
        };
        Self {
            frame,
            ..Self::new(Action::Click(click))
        }
    }

    fn new(action: Action) -> Self {
        Self {
            action,
            frame: Vec::new(),
            target: None,
            timeout_ms: None,
            asserted_events: Vec::new(),
        }
    }

    /// Returns whether the step does something on the page. Others only wait, check something, or
    /// change the window or the network.
    pub fn is_action(&self) -> bool {
        match self.action {
            Action::Goto { .. }
            | Action::Click(_)
            | Action::DoubleClick(_)
            | Action::Fill(_)
            | Action::Select(_)
            | Action::Press { .. }
            | Action::KeyDown { .. }
            | Action::KeyUp { .. }
            | Action::Hover { .. }
            | Action::Scroll(_) => true,
            Action::SetViewport(_)
            | Action::WaitFor(_)
            | Action::Assert(_)
            | Action::EmulateNetworkConditions(_)
            | Action::Close => false,
        }
    }

    /// Returns the value that the step fills in, which is a secret.
    pub(crate) fn value(&self) -> Option<&Secret> {
        match &self.action {
            Action::Fill(entry) | Action::Select(entry) => Some(&entry.value),
            _ => None,
        }
    }

    /// Returns the time limit in milliseconds.
    pub fn timeout_ms(&self) -> u32 {
        let default = match self.action {
            Action::Goto { .. } => NAVIGATION_TIMEOUT_MS,
            _ if !self.asserted_events.is_empty() => NAVIGATION_TIMEOUT_MS,
            _ => DEFAULT_TIMEOUT_MS,
        };
        self.timeout_ms.unwrap_or(default)
    }

    /// Returns a short description without the value that is filled in.
    pub fn title(&self) -> String {
        match &self.action {
            Action::SetViewport(size) => {
                format!("set the viewport to {}x{}", size.width, size.height)
            }
            Action::Goto { url } => format!("go to {url}"),
            Action::Click(click) => format!("click `{}`", click.selectors),
            Action::DoubleClick(click) => format!("double-click `{}`", click.selectors),
            Action::Fill(entry) => format!("fill in `{}`", entry.selectors),
            Action::Select(entry) => format!("select in `{}`", entry.selectors),
            Action::Press { key } => format!("press {key}"),
            Action::KeyDown { key } => format!("hold {key} down"),
            Action::KeyUp { key } => format!("release {key}"),
            Action::Hover { selectors } => format!("hover over `{selectors}`"),
            Action::Scroll(Scroll {
                selectors: Some(selectors),
                ..
            }) => {
                format!("scroll `{selectors}`")
            }
            Action::Scroll(_) => "scroll the page".to_owned(),
            Action::WaitFor(condition) => condition.title(),
            Action::Assert(_) => "check the page".to_owned(),
            Action::EmulateNetworkConditions(_) => "slow the network down".to_owned(),
            Action::Close => "close the page".to_owned(),
        }
    }
}

impl Condition {
    fn title(&self) -> String {
        if let Some(selectors) = &self.selectors {
            format!("wait for `{selectors}`")
        } else if let Some(url) = &self.url {
            format!("wait for the URL `{url}`")
        } else if self.idle {
            "wait until the network is idle".to_owned()
        } else {
            "wait for an expression".to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
