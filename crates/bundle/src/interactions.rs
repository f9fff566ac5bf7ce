use serde::{Deserialize, Serialize};

use crate::Record;

/// The inputs on controls of a page after it was measured, an artifact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InteractionRecords {
    /// Number of visible controls that inputs could be made on.
    pub controls: u32,
    /// The controls that were used, in the order of the inputs.
    #[serde(default)]
    pub interactions: Vec<InteractionRecord>,
    /// The reason why there are no interactions, or fewer than there could be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The input on one control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InteractionRecord {
    pub kind: ControlKind,
    /// The accessible name of the control, or its text.
    pub name: String,
    pub selector: String,
    /// The opening tag of the control.
    pub snippet: String,
    /// The slowest interaction of the input; `None` if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<InteractionTiming>,
    /// The reason why the input was not measured, such as `leaves the page`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
}

/// The kind of a control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlKind {
    /// A button of a consent dialog.
    Consent,
    /// A button that opens a menu or the navigation.
    Menu,
    /// A field for a search, in which letters are typed.
    Search,
    Tab,
    /// A heading or a button that shows and hides a part of the page.
    Accordion,
    /// A button that opens a dialog.
    Dialog,
    /// A button without a more specific kind.
    Button,
    /// A list of options, in which the next one is chosen by key.
    Select,
    /// A checkbox, a switch or a radio button.
    Toggle,
    /// A text field, in which letters are typed.
    Field,
    /// A link to a place in the same page.
    Anchor,
}

impl ControlKind {
    /// Returns the name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Consent => "consent",
            Self::Menu => "menu",
            Self::Search => "search",
            Self::Tab => "tab",
            Self::Accordion => "accordion",
            Self::Dialog => "dialog",
            Self::Button => "button",
            Self::Select => "select",
            Self::Toggle => "toggle",
            Self::Field => "field",
            Self::Anchor => "anchor",
        }
    }
}

/// A kind of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputKind {
    /// A mouse click.
    Click,
    /// A tap on a touch screen.
    Tap,
    /// A press of a key.
    Key,
}

impl InputKind {
    /// Returns the name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Click => "click",
            Self::Tap => "tap",
            Self::Key => "key",
        }
    }
}

/// The time from an input to the next paint, in milliseconds on the clock of the page. The three
/// parts add up to the duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InteractionTiming {
    pub input: InputKind,
    /// The event with the longest duration, such as `click`.
    pub event: String,
    /// Selector of the event's target, which may be inside the control; `None` if it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Time from the input to the next paint, which Chromium rounds to 8 ms.
    pub duration_ms: f64,
    /// Time from the input to its first event handler.
    pub input_delay_ms: f64,
    /// Time from the first event handler to the end of the last one.
    pub processing_ms: f64,
    /// Time from the end of the last event handler to the next paint.
    pub presentation_delay_ms: f64,
    /// The scripts that ran from the input to the next paint, longest first. Chromium reports them
    /// for frames of 50 ms or more.
    #[serde(default)]
    pub scripts: Vec<InteractionScript>,
}

/// A script that ran during an interaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InteractionScript {
    /// URL of the script; empty if the browser does not report it.
    pub url: String,
    /// Name of the function; empty if it has none or if the browser does not report it.
    pub function: String,
    /// Position of the function in characters from the beginning of the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The caller of the function, such as `BUTTON#menu.onclick`.
    pub invoker: String,
    /// Time that it ran during the interaction.
    pub duration_ms: f64,
    /// Time of layouts that it forced, of all that it ran.
    pub forced_layout_ms: f64,
}

impl Record for InteractionRecords {
    const ARTIFACT: &'static str = "interactions";
}

impl InteractionRecords {
    /// Creates the records of a page on which no input could be made.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self {
            error: Some(reason.into()),
            ..Self::default()
        }
    }
}
