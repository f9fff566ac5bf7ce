use serde::{Deserialize, Serialize};

/// An emulated device.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    pub id: String,
    /// Display name, which includes the screen size.
    pub name: String,
    pub mode: Mode,
    /// Viewport of the page in CSS pixels.
    pub viewport: Size,
    /// Screen size reported to the page, in CSS pixels.
    pub screen: Size,
    /// Device pixels per CSS pixel.
    pub scale: f64,
    pub touch: bool,
    /// CPU speed on Lighthouse's BenchmarkIndex scale; the CPU is not throttled without one.
    pub cpu_index: Option<u32>,
    /// Operating system and version, for display.
    pub platform: String,
    pub chip: String,
    user_agent: String,
    pub navigator_platform: String,
    /// Source of the screen size and scale.
    pub source: String,
    /// User-agent client hints; `None` if the real browser sends none.
    pub client_hints: Option<ClientHints>,
}

impl Device {
    /// Returns the user agent with the major version of the running browser.
    pub fn user_agent(&self, chrome_major: &str) -> String {
        self.user_agent.replace("{CHROME_MAJOR}", chrome_major)
    }

    /// Returns the tier of the device's processor on the scale of `navigator.cpuPerformance`, from
    /// 1 (low) to 4 (ultra); `None` for a device that is not throttled.
    ///
    /// The limits between the tiers are ours, because the specification leaves them to browsers:
    /// Chrome DevTools' low-tier phone (264) is in the first, its mid-tier phone (1000) in the
    /// second, recent phones and slower laptops are in the third, the fastest of both in the
    /// fourth.
    pub fn cpu_tier(&self) -> Option<u8> {
        self.cpu_index.map(|index| match index {
            ..600 => 1,
            600..1500 => 2,
            1500..3000 => 3,
            _ => 4,
        })
    }

    /// Returns the form factor of the device.
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

/// Minimum shorter side of a tablet in CSS pixels. Source: Android's "smallest width" qualifier for
/// tablets, sw600dp.
const TABLET_SIDE_PX: u32 = 600;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FormFactor {
    Phone,
    Tablet,
    Desktop,
}

impl FormFactor {
    /// The form factors in the order of lists.
    pub const ALL: [Self; 3] = [Self::Phone, Self::Tablet, Self::Desktop];

    /// Returns the heading of the devices of this form factor.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Phone => "Phones",
            Self::Tablet => "Tablets",
            Self::Desktop => "Desktops and laptops",
        }
    }

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

/// User-agent client hints. All fields are required, because Chromium would fill a missing one with
/// the host's real value.
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
