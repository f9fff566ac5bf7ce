use serde::{Deserialize, Serialize};

/// A device as a page sees it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    pub id: String,
    /// For people; carries the screen size.
    pub name: String,
    pub mode: Mode,
    /// What the page gets, in CSS pixels.
    pub viewport: Size,
    /// What the page is told the screen has, in CSS pixels.
    pub screen: Size,
    /// Device pixels per CSS pixel.
    pub scale: f64,
    pub touch: bool,
    /// Speed on Lighthouse's BenchmarkIndex scale; without one the device is never slowed down.
    pub cpu_index: Option<u32>,
    /// Operating system and version, for people.
    pub platform: String,
    pub chip: String,
    user_agent: String,
    pub navigator_platform: String,
    /// Where screen and scale come from.
    pub source: String,
    /// All of them, or none where the real browser sends none.
    pub client_hints: Option<ClientHints>,
}

impl Device {
    /// The user agent with the major version of the browser that really runs.
    pub fn user_agent(&self, chrome_major: &str) -> String {
        self.user_agent.replace("{CHROME_MAJOR}", chrome_major)
    }

    /// What kind of device it is to people.
    pub fn form_factor(&self) -> FormFactor {
        match self.mode {
            Mode::Desktop => FormFactor::Desktop,
            Mode::Mobile if self.screen.width.min(self.screen.height) >= TABLET_SIDE_PX => {
                FormFactor::Tablet
            }
            Mode::Mobile => FormFactor::Phone,
        }
    }
}

/// The shorter side from which a touch device is a tablet, in CSS pixels. Source: Android's
/// "smallest width" qualifier for tablets, sw600dp.
const TABLET_SIDE_PX: u32 = 600;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FormFactor {
    Phone,
    Tablet,
    Desktop,
}

impl FormFactor {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Phone => "phone",
            Self::Tablet => "tablet",
            Self::Desktop => "desktop",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Mobile,
    Desktop,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mobile => "mobile",
            Self::Desktop => "desktop",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    pub width: u32,
    pub height: u32,
}

/// User-agent client hints. A field left out would be filled with the host's truth, so none is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientHints {
    pub platform: String,
    pub platform_version: String,
    pub model: String,
    pub architecture: String,
    pub bitness: String,
    pub mobile: bool,
    pub form_factor: String,
}
