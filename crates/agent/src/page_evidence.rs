//! The evidence of a page that is gathered once for all visits of an audit.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use plumbline_browser::Gathering;
use plumbline_bundle::{Artifact, Bundle, Screenshot};

/// The evidence of a page that does not depend on how fast it loads, such as its accessibility. The
/// first visit gathers it, and those that only confirm a score use it as well.
#[derive(Debug, Default)]
pub(crate) struct PageEvidence(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Unknown,
    Known(Shared),
    /// The page does not have the same URL in each visit, so every visit gathers everything.
    Unshared,
}

#[derive(Debug)]
struct Shared {
    final_url: String,
    screenshot: Option<Screenshot>,
    artifacts: BTreeMap<String, Artifact>,
}

impl PageEvidence {
    /// Returns what the next visit has to gather.
    pub(crate) fn gathering(&self) -> Gathering {
        match *self.0.lock() {
            State::Known(_) => Gathering::Load,
            State::Unknown | State::Unshared => Gathering::Everything,
        }
    }

    /// Adds the evidence of the first visit to a bundle, or keeps that of this bundle if it is of
    /// the first visit. Returns false if the bundle lacks evidence, but is that of another page
    /// than the first visit; the next visit gathers everything then.
    pub(crate) fn complete(&self, bundle: &mut Bundle, gathering: Gathering) -> bool {
        let mut state = self.0.lock();
        match (&*state, gathering) {
            (State::Known(shared), Gathering::Load) => {
                if shared.final_url != bundle.final_url {
                    *state = State::Unshared;
                    return false;
                }
                shared.add_to(bundle);
            }
            (State::Unknown, Gathering::Everything) => *state = State::Known(Shared::of(bundle)),
            _ => {}
        }
        true
    }
}

impl Shared {
    fn of(bundle: &Bundle) -> Self {
        Self {
            final_url: bundle.final_url.clone(),
            screenshot: bundle.screenshot.clone(),
            artifacts: bundle.artifacts.clone(),
        }
    }

    /// Adds what the bundle lacks.
    fn add_to(&self, bundle: &mut Bundle) {
        bundle.screenshot.clone_from(&self.screenshot);
        for (name, artifact) in &self.artifacts {
            let entry = bundle.artifacts.entry(name.clone());
            entry.or_insert_with(|| artifact.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use plumbline_bundle::{BrowserIdentity, FORMAT, MainDocument};

    use super::*;

    fn bundle(final_url: &str, artifacts: &[(&str, &str)]) -> Bundle {
        let artifact = |text: &&str| Artifact::Missing((*text).to_owned());
        Bundle {
            format: FORMAT,
            requested_url: "https://example.com/".to_owned(),
            final_url: final_url.to_owned(),
            document: MainDocument::default(),
            browser: BrowserIdentity::default(),
            trace: Vec::new(),
            log: Vec::new(),
            screenshot: None,
            artifacts: artifacts
                .iter()
                .map(|(name, text)| ((*name).to_owned(), artifact(text)))
                .collect(),
            warnings: Vec::new(),
            timings: Vec::new(),
            recording: None,
            profile_trace: None,
        }
    }

    fn artifact<'b>(bundle: &'b Bundle, name: &str) -> &'b str {
        match &bundle.artifacts[name] {
            Artifact::Missing(text) => text,
            Artifact::Gathered(raw) => raw.get(),
        }
    }

    #[test]
    fn later_visits_have_the_evidence_of_the_first_and_their_own() {
        let page = PageEvidence::default();
        assert_eq!(page.gathering(), Gathering::Everything);
        let mut first = bundle("/", &[("axe", "first"), ("console", "first")]);
        first.screenshot = Some(Screenshot {
            mime_type: "image/jpeg".to_owned(),
            width_px: 1,
            height_px: 1,
            data: String::new(),
        });
        assert!(page.complete(&mut first, Gathering::Everything));
        assert_eq!(page.gathering(), Gathering::Load);
        let mut second = bundle("/", &[("console", "second")]);
        assert!(page.complete(&mut second, Gathering::Load));
        assert_eq!(artifact(&second, "axe"), "first");
        assert_eq!(artifact(&second, "console"), "second");
        assert_eq!(second.screenshot, first.screenshot);
    }

    #[test]
    fn a_page_whose_url_changes_is_gathered_in_every_visit() {
        let page = PageEvidence::default();
        assert!(page.complete(&mut bundle("/a", &[("axe", "a")]), Gathering::Everything));
        let mut second = bundle("/b", &[]);
        assert!(!page.complete(&mut second, Gathering::Load));
        assert!(second.artifacts.is_empty());
        assert_eq!(page.gathering(), Gathering::Everything);
        let mut third = bundle("/b", &[("axe", "b")]);
        assert!(page.complete(&mut third, Gathering::Everything));
        assert_eq!(artifact(&third, "axe"), "b");
        assert_eq!(page.gathering(), Gathering::Everything);
    }
}
