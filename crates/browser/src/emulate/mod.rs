//! The conditions of a visit as protocol calls: the emulated device, CPU speed and network.

mod brands;

use plumbline_catalog::{ClientHints, Device, Mode, Size};
use plumbline_trace::MAX_SCREENSHOT_PX;
use serde_json::{Value, json};

use crate::BrowserVersion;

/// A protocol method and its parameters.
pub(crate) type ProtocolCall = (&'static str, Value);

/// Number of touch points, as phones report it.
const TOUCH_POINTS: u32 = 5;

/// Method that tells a page that it is online.
pub(crate) const ONLINE: &str = "Network.overrideNetworkState";

pub(crate) struct EmulatedConditions<'a> {
    pub device: &'a Device,
    pub version: &'a BrowserVersion,
    pub user_agent: String,
    /// Slowdown of the CPU by Chromium; 1 is none.
    pub cpu_rate: f64,
}

impl EmulatedConditions<'_> {
    /// Returns the calls for the page itself.
    pub(crate) fn for_page(&self) -> Vec<ProtocolCall> {
        let mut calls = vec![self.viewport()];
        calls.extend(self.for_frame());
        calls
    }

    /// Returns the calls for an out-of-process frame, which is in the page's viewport.
    pub(crate) fn for_frame(&self) -> Vec<ProtocolCall> {
        let mut calls = self.for_worker();
        calls.push(Self::online());
        calls.extend(self.touch());
        calls.extend(self.cpu_tier().into_iter().flatten());
        if self.cpu_rate > 1.0 {
            let rate = json!({"rate": self.cpu_rate});
            calls.push(("Emulation.setCPUThrottlingRate", rate));
        }
        calls
    }

    /// Returns the calls for a worker. Chromium 156 refuses to throttle the CPU of workers.
    pub(crate) fn for_worker(&self) -> Vec<ProtocolCall> {
        vec![self.identity()]
    }

    /// Reports the page as online: a network namespace with only loopback looks like no network to
    /// Chromium. This only changes `navigator.onLine` and `navigator.connection`: requests do not
    /// depend on it, and nothing is throttled. Chromium 156 ignores an override with a latency of
    /// 0. Workers share the state of their page, and the end of one would end the override for all.
    fn online() -> ProtocolCall {
        let state = json!({
            "offline": false,
            "latency": 1,
            "downloadThroughput": -1,
            "uploadThroughput": -1,
        });
        (ONLINE, state)
    }

    /// Sets the screen of the browser itself, in device pixels. The page's screen is set with its
    /// viewport, but frames in other processes see this one. Available since about Chromium 144.
    pub(crate) fn screen_of_browser(&self, screen_id: &str) -> ProtocolCall {
        let Size { width, height } = self.device.screen;
        let in_device_pixels = |css: u32| (f64::from(css) * self.device.scale).round();
        let screen = json!({
            "screenId": screen_id,
            "width": in_device_pixels(width),
            "height": in_device_pixels(height),
            "devicePixelRatio": self.device.scale,
        });
        ("Emulation.updateScreen", screen)
    }

    /// Sets the same screen with a scale of 1, as in a browser that emulates only the page's
    /// viewport: lines of text are then a whole number of CSS pixels high, not of device pixels.
    /// Returns `None` if both screens are the same.
    pub(crate) fn coarse_screen(&self, screen_id: &str) -> Option<ProtocolCall> {
        let Size { width, height } = self.device.screen;
        let screen = json!({
            "screenId": screen_id,
            "width": width,
            "height": height,
            "devicePixelRatio": 1,
        });
        (self.device.scale != 1.0).then_some(("Emulation.updateScreen", screen))
    }

    /// Returns the calls after which the page is drawn as large as a screenshot of the trace, or
    /// `None` if its viewport is not larger. Without a graphics card, drawing all pixels of a
    /// device and reducing them for each screenshot takes up to half of the processor time of a
    /// visit. Layout, media queries and the images that the page chooses remain those of the
    /// device.
    ///
    /// The first call sets the size of the window's content and the second the scale of the page in
    /// it. A screenshot has the pixels of the screen.
    pub(crate) fn small_drawing(&self, screen_scale: f64) -> Option<[ProtocolCall; 2]> {
        let Size { width, height } = self.device.viewport;
        let in_screenshot = f64::from(MAX_SCREENSHOT_PX) / f64::from(width.max(height));
        if in_screenshot >= 1.0 {
            return None;
        }
        let scale = in_screenshot / screen_scale;
        // Rounded down, so that there is no line without the page at the edge.
        let [width, height] = [width, height].map(|px| (f64::from(px) * scale).floor());
        let window = json!({"width": width, "height": height});
        let (method, mut page) = self.viewport();
        page["scale"] = json!(scale);
        page["dontSetVisibleSize"] = json!(true);
        Some([("Emulation.setVisibleSize", window), (method, page)])
    }

    /// Returns the call that sets the viewport of the device.
    pub(crate) fn viewport(&self) -> ProtocolCall {
        let Device {
            viewport, screen, ..
        } = self.device;
        let orientation = match (self.device.mode, screen.height >= screen.width) {
            (Mode::Mobile, false) => json!({"type": "landscapePrimary", "angle": 90}),
            (_, true) => json!({"type": "portraitPrimary", "angle": 0}),
            (Mode::Desktop, false) => json!({"type": "landscapePrimary", "angle": 0}),
        };
        let metrics = json!({
            "width": viewport.width,
            "height": viewport.height,
            "screenWidth": screen.width,
            "screenHeight": screen.height,
            "deviceScaleFactor": self.device.scale,
            "mobile": self.device.mode == Mode::Mobile,
            "screenOrientation": orientation,
        });
        ("Emulation.setDeviceMetricsOverride", metrics)
    }

    /// Enables touch if the device has it. It is never disabled, because that also removes the
    /// mouse (`hover: none`).
    fn touch(&self) -> Option<ProtocolCall> {
        let touch = json!({"enabled": true, "maxTouchPoints": TOUCH_POINTS});
        let call = ("Emulation.setTouchEmulationEnabled", touch);
        self.device.touch.then_some(call)
    }

    /// Reports the tier of the device's processor instead of the host's, because pages may choose
    /// what they load by it. Chromium has no call for it, and runs scripts in a frame only if that
    /// part of the protocol is enabled. Workers do not have this property.
    fn cpu_tier(&self) -> Option<[ProtocolCall; 2]> {
        let tier = self.device.cpu_tier()?;
        let source = format!(
            "if ('cpuPerformance' in Navigator.prototype) {{
               const get = () => {tier};
               Object.defineProperty(Navigator.prototype, 'cpuPerformance',
                 {{get, enumerable: true, configurable: true}});
             }}"
        );
        let script = json!({"source": source});
        Some([
            ("Page.enable", json!({})),
            ("Page.addScriptToEvaluateOnNewDocument", script),
        ])
    }

    fn identity(&self) -> ProtocolCall {
        let mut identity = json!({
            "userAgent": self.user_agent,
            "platform": self.device.navigator_platform,
        });
        if let Some(hints) = &self.device.client_hints {
            identity["userAgentMetadata"] = self.metadata(hints);
        }
        ("Emulation.setUserAgentOverride", identity)
    }

    /// Returns all fields of the metadata, because Chromium fills missing ones with the host's
    /// values.
    fn metadata(&self, hints: &ClientHints) -> Value {
        let (major, full) = (self.version.major(), self.version.number());
        json!({
            "brands": brands::list(major, major),
            "fullVersionList": brands::list(major, full),
            "fullVersion": full,
            "platform": hints.platform,
            "platformVersion": hints.platform_version,
            "architecture": hints.architecture,
            "bitness": hints.bitness,
            "wow64": false,
            "model": hints.model,
            "mobile": hints.mobile,
            "formFactors": [hints.form_factor],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumbline_catalog::{BUILT_IN, Catalog};

    fn calls_for(device: &str) -> Vec<ProtocolCall> {
        let catalog = Catalog::load(BUILT_IN).unwrap();
        let version: BrowserVersion =
            serde_json::from_value(json!({"product": "Chrome/156.0.8078.79"})).unwrap();
        let device = catalog.device(device).unwrap();
        EmulatedConditions {
            device,
            version: &version,
            user_agent: device.user_agent("156"),
            cpu_rate: 4.0,
        }
        .for_page()
    }

    fn params(calls: &[ProtocolCall], method: &str) -> Option<Value> {
        let call = calls.iter().find(|(name, _)| *name == method);
        call.map(|(_, params)| params.clone())
    }

    #[test]
    fn a_phone_has_every_client_hint() {
        let calls = calls_for("mobile");
        let identity = params(&calls, "Emulation.setUserAgentOverride").unwrap();
        assert!(
            identity["userAgent"]
                .as_str()
                .unwrap()
                .contains("Chrome/156.0.0.0 Mobile")
        );
        let metadata = identity["userAgentMetadata"].as_object().unwrap();
        assert_eq!(metadata.len(), 11);
        assert_eq!(metadata["formFactors"], json!(["Mobile"]));
        assert_eq!(metadata["bitness"], "");
    }

    #[test]
    fn an_iphone_has_no_client_hints() {
        let calls = calls_for("iphone12Pro");
        let identity = params(&calls, "Emulation.setUserAgentOverride").unwrap();
        assert!(identity["userAgentMetadata"].is_null());
        let screen = params(&calls, "Emulation.setDeviceMetricsOverride").unwrap();
        assert!(screen["height"].as_u64() < screen["screenHeight"].as_u64());
    }

    #[test]
    fn a_desktop_is_wide_and_has_no_touch() {
        let calls = calls_for("desktop");
        assert!(params(&calls, "Emulation.setTouchEmulationEnabled").is_none());
        let screen = params(&calls, "Emulation.setDeviceMetricsOverride").unwrap();
        assert_eq!(screen["mobile"], false);
        assert_eq!(screen["screenOrientation"]["type"], "landscapePrimary");
    }
}
