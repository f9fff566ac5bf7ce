//! The facts about a visit. Each artifact is parsed once, and whatever is derived from artifacts is
//! computed once; checks get facts by type.
//!
//! An artifact's JSON schema is the struct of the same name here. Every field is optional when
//! read: an older or incomplete artifact gives a fact with defaults, never an error.

mod anchors;
mod axe;
mod back_forward;
mod console;
mod content_size;
mod device_work;
mod drawn_by_script;
mod evidence;
mod fetched_file;
mod image_sizing;
mod images;
mod inputs;
mod issues;
mod largest_content;
mod libraries;
mod links;
mod loaded;
mod main_resource;
mod main_thread;
mod manifest;
mod metas;
mod null;
mod original_places;
mod page;
mod requests;
mod scripts;
mod shift_clusters;
mod style_sheets;
mod trace_elements;
mod urls;
mod web_mcp;

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumbline_bundle::{Artifact, Bundle};
use plumbline_catalog::Mode;
use serde::de::DeserializeOwned;

pub use anchors::{Anchor, Anchors};
pub use axe::{Axe, AxeNode, AxeRule};
pub use back_forward::{BackForward, NotRestored};
pub use console::{Console, ConsoleEntry};
pub use content_size::{TextKind, script_request, transferred_share};
pub use device_work::{DeviceWork, long_tasks};
pub use drawn_by_script::DrawnByScript;
pub use fetched_file::{AiCatalog, AiCatalogReference, FetchedFile, LlmsTxt, RobotsTxt};
pub use image_sizing::{ImageSizing, SizedImage, SizingRules};
pub use images::{Image, Images, Size};
pub use inputs::{Input, Inputs};
pub use issues::{CookieIssue, DeprecationIssue, GenericIssue, Issues, MixedContentIssue};
pub use largest_content::LargestContent;
pub use libraries::{Libraries, Library};
pub use links::{LinkSource, Links, PageLink};
pub use loaded::{
    compression, document, is_compressed, is_render_blocking, loaded, time_saved,
    time_saved_in_steps,
};
pub use main_resource::{DocumentStart, MainResource};
pub use main_thread::{Attribution, ScriptUrls};
pub use manifest::{
    Icon, Installability, InstallabilityError, Manifest, ManifestArtifact, ManifestState,
};
pub use metas::{Meta, Metas};
pub use original_places::OriginalPlaces;
pub use page::{Doctype, PageProperties};
pub use requests::{Request, Requests};
pub use scripts::{Coverage, Legacy, LegacySignal, Module, Script, Scripts, SourceMap};
pub use shift_clusters::{Culprit, Shift, ShiftCluster, ShiftClusters, impact_by_node};
pub use style_sheets::{StyleSheet, StyleSheets};
pub use trace_elements::{TraceElement, TraceElements};
pub use urls::{equal_without_fragment, guess_image_type, is_localhost, shorten_data_url};
pub use web_mcp::{WebMcp, WebMcpForm, WebMcpLocation, WebMcpTool};

/// The reason why a fact is not available, as a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);

/// A fact about a visit, computed at most once.
pub trait Fact: Sized + 'static {
    fn compute(facts: &Facts) -> Result<Self, Missing>;
}

/// A fact that is a gathered artifact.
pub trait ArtifactFact: DeserializeOwned + 'static {
    /// The artifact's name in the bundle.
    const NAME: &'static str;
}

impl<T: ArtifactFact> Fact for T {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        facts.read(T::NAME)
    }
}

/// The facts about one visit, computed on demand and cached.
pub struct Facts<'a> {
    pub bundle: &'a Bundle,
    pub mode: Mode,
    cache: RefCell<HashMap<TypeId, Rc<dyn Any>>>,
    /// Set by a caller that no longer needs the result.
    stop: Option<&'a AtomicBool>,
}

impl<'a> Facts<'a> {
    pub fn new(bundle: &'a Bundle, mode: Mode) -> Self {
        Self {
            bundle,
            mode,
            cache: RefCell::default(),
            stop: None,
        }
    }

    /// Stops computing facts once `stop` is set.
    pub fn with_stop_flag(self, stop: &'a AtomicBool) -> Self {
        Self {
            stop: Some(stop),
            ..self
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    pub fn get<T: Fact>(&self) -> Result<Rc<T>, Missing> {
        type Cached<T> = Result<Rc<T>, Missing>;
        let cached = self.cache.borrow().get(&TypeId::of::<T>()).cloned();
        if let Some(cached) = cached.and_then(|cached| cached.downcast::<Cached<T>>().ok()) {
            return cached.as_ref().clone();
        }
        if self.is_stopped() {
            return Err(Missing("the evaluation was stopped".to_owned()));
        }
        let fact: Cached<T> = T::compute(self).map(Rc::new);
        let entry: Rc<dyn Any> = Rc::new(fact.clone());
        self.cache.borrow_mut().insert(TypeId::of::<T>(), entry);
        fact
    }

    /// Caches a fact that is known already, so that it is not computed again.
    pub fn insert<T: Fact>(&self, fact: T) {
        let fact: Result<Rc<T>, Missing> = Ok(Rc::new(fact));
        let entry: Rc<dyn Any> = Rc::new(fact);
        self.cache.borrow_mut().insert(TypeId::of::<T>(), entry);
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<T, Missing> {
        match self.bundle.artifacts.get(name) {
            Some(Artifact::Gathered(json)) => serde_json::from_str(json.get())
                .map_err(|e| Missing(format!("the artifact `{name}` is unreadable: {e}"))),
            Some(Artifact::Missing(reason)) => {
                Err(Missing(format!("`{name}` was not gathered: {reason}")))
            }
            None => Err(Missing(format!("`{name}` was not gathered"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::Visit;

    #[test]
    fn an_artifact_is_parsed_once() {
        let bundle = Visit::new()
            .with("metas", r#"[{"name": "robots", "content": "none"}]"#)
            .bundle();
        let facts = Facts::new(&bundle, Mode::Mobile);
        let first = facts.get::<Metas>().unwrap();
        let second = facts.get::<Metas>().unwrap();
        assert!(Rc::ptr_eq(&first, &second));
        assert_eq!(first.0[0].content, "none");
    }

    #[test]
    fn a_missing_artifact_has_a_reason() {
        let bundle = Visit::new().without("metas", "the page hung").bundle();
        let facts = Facts::new(&bundle, Mode::Mobile);
        let reason = facts.get::<Metas>().unwrap_err().to_string();
        assert_eq!(reason, "`metas` was not gathered: the page hung");
        assert!(facts.get::<Links>().is_err());
    }

    #[test]
    fn unknown_and_missing_fields_are_accepted() {
        let bundle = Visit::new()
            .with("metas", r#"[{"colour": 3}, {"name": null}]"#)
            .bundle();
        let facts = Facts::new(&bundle, Mode::Mobile);
        assert_eq!(facts.get::<Metas>().unwrap().0.len(), 2);
    }
}
