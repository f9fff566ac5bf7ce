//! Keeps a page where it is while inputs are made on it: its navigations, windows, downloads and
//! requests that may change something on a server are stopped.

use std::collections::HashSet;

use super::interception::RequestPaused;
use crate::emulate::ProtocolCall;

/// Methods of requests that change nothing on a server (RFC 9110, 9.2.1).
const SAFE_METHODS: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// An attempt of a page to leave, which was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// A navigation, or a form that was sent.
    Navigation,
    /// A new window or tab.
    Window,
    Download,
}

impl Departure {
    /// Returns the reason why an input is not measured.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Navigation => "leaves the page",
            Self::Window => "opens another window",
            Self::Download => "starts a download",
        }
    }
}

/// Decides on the requests of a page that inputs are made on. All of them are paused.
#[derive(Debug, Default)]
pub(crate) struct Confinement {
    is_active: bool,
    departure: Option<Departure>,
    /// Windows that the page opened.
    windows: HashSet<String>,
}

impl Confinement {
    /// Begins to stop what an input causes.
    pub(crate) fn begin(&mut self) {
        self.is_active = true;
        self.departure = None;
    }

    /// Lets the page load again. Returns the first attempt to leave it.
    pub(crate) fn end(&mut self) -> Option<Departure> {
        self.is_active = false;
        self.departure.take()
    }

    pub(super) fn window_opened(&mut self, target: &str) {
        self.windows.insert(target.to_owned());
        self.depart(Departure::Window);
    }

    /// Handles a download, whose request may have looked like a navigation before.
    pub(super) fn download_started(&mut self) {
        if self.is_active {
            self.departure = Some(Departure::Download);
        }
    }

    fn depart(&mut self, departure: Departure) {
        if self.is_active {
            self.departure.get_or_insert(departure);
        }
    }

    /// Returns the call that stops a request; `None` if it may continue.
    pub(super) fn stop(
        &mut self,
        paused: &RequestPaused,
        main_frame: &str,
    ) -> Option<ProtocolCall> {
        if self.windows.contains(&paused.frame_id) {
            return Some(paused.fail("Aborted"));
        }
        if !self.is_active {
            return None;
        }
        let is_document = paused.resource_type == "Document";
        let is_safe = SAFE_METHODS.contains(&paused.method());
        if is_document && (paused.frame_id == main_frame || !is_safe) {
            self.depart(Departure::Navigation);
            return Some(paused.fail("Aborted"));
        }
        (!is_safe).then(|| paused.fail("Failed"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stopped(confinement: &mut Confinement, frame: &str, kind: &str, method: &str) -> bool {
        let paused = json!({
            "requestId": "1", "frameId": frame, "resourceType": kind,
            "request": { "url": "https://shop.example/", "method": method },
        });
        let paused = serde_json::from_value(paused).unwrap();
        confinement.stop(&paused, "main").is_some()
    }

    #[test]
    fn a_page_loads_anything_until_an_input_is_made() {
        let mut confinement = Confinement::default();
        assert!(!stopped(&mut confinement, "main", "Document", "GET"));
        assert!(!stopped(&mut confinement, "main", "XHR", "POST"));
        confinement.begin();
        assert_eq!(confinement.end(), None);
        assert!(!stopped(&mut confinement, "main", "Document", "GET"));
    }

    #[test]
    fn an_input_loads_resources_but_neither_leaves_nor_changes_anything() {
        let mut confinement = Confinement::default();
        confinement.begin();
        assert!(!stopped(&mut confinement, "main", "XHR", "GET"));
        assert!(!stopped(&mut confinement, "frame", "Document", "GET"));
        assert!(stopped(&mut confinement, "main", "Fetch", "DELETE"));
        assert!(stopped(&mut confinement, "main", "Ping", "POST"));
        assert_eq!(confinement.end(), None);
        for (frame, method) in [("main", "GET"), ("main", "POST"), ("frame", "POST")] {
            confinement.begin();
            assert!(stopped(&mut confinement, frame, "Document", method));
            assert_eq!(confinement.end(), Some(Departure::Navigation));
        }
    }

    #[test]
    fn a_window_loads_nothing_even_after_the_input() {
        let mut confinement = Confinement::default();
        confinement.begin();
        confinement.window_opened("window");
        assert_eq!(confinement.end(), Some(Departure::Window));
        assert!(stopped(&mut confinement, "window", "Document", "GET"));
        confinement.begin();
        assert!(stopped(&mut confinement, "main", "Document", "GET"));
        confinement.download_started();
        assert_eq!(confinement.end(), Some(Departure::Download));
    }
}
