//! The results of an evaluation by category: plain data that is stored and sent.

use serde::{Deserialize, Serialize};

use crate::check::CheckResult;

/// The score and the checks of one category. The performance score comes from the metrics; the
/// checks of that category have weight 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CategoryResult {
    pub id: CategoryId,
    pub title: String,
    /// The score from 0 to 100; `None` if a weighted check could not be measured, because a score
    /// without it would not be comparable.
    pub score: Option<u8>,
    pub checks: Vec<CheckResult>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CategoryId {
    Performance,
    Accessibility,
    BestPractices,
    Seo,
    Pwa,
}

impl CategoryId {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Performance => "performance",
            Self::Accessibility => "accessibility",
            Self::BestPractices => "best-practices",
            Self::Seo => "seo",
            Self::Pwa => "pwa",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Performance => "Performance",
            Self::Accessibility => "Accessibility",
            Self::BestPractices => "Best practices",
            Self::Seo => "SEO",
            Self::Pwa => "Progressive web app",
        }
    }
}

/// The section of a category in which a check is shown. Ids are Lighthouse's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Group {
    #[serde(rename = "insights")]
    Insights,
    #[serde(rename = "diagnostics")]
    Diagnostics,
    #[serde(rename = "a11y-navigation")]
    Navigation,
    #[serde(rename = "a11y-aria")]
    Aria,
    #[serde(rename = "a11y-names-labels")]
    Names,
    #[serde(rename = "a11y-color-contrast")]
    Contrast,
    #[serde(rename = "a11y-tables-lists")]
    TablesAndLists,
    #[serde(rename = "a11y-language")]
    Language,
    #[serde(rename = "a11y-audio-video")]
    AudioAndVideo,
    #[serde(rename = "a11y-best-practices")]
    GoodHabits,
    #[serde(rename = "seo-crawl")]
    Crawling,
    #[serde(rename = "seo-content")]
    Content,
    #[serde(rename = "best-practices-trust-safety")]
    TrustAndSafety,
    #[serde(rename = "best-practices-ux")]
    UserExperience,
    #[serde(rename = "best-practices-browser-compat")]
    Compatibility,
    #[serde(rename = "best-practices-general")]
    General,
    #[serde(rename = "pwa-installable")]
    Installable,
    #[serde(rename = "pwa-optimized")]
    Optimized,
    /// Checks that are not reliable or useful enough to be shown with the others.
    #[serde(rename = "hidden")]
    Experimental,
}

impl Group {
    pub fn title(self) -> &'static str {
        match self {
            Self::Insights => "Insights",
            Self::Diagnostics => "Diagnostics",
            Self::Navigation => "Navigation",
            Self::Aria => "ARIA",
            Self::Names => "Names and labels",
            Self::Contrast => "Contrast",
            Self::TablesAndLists => "Tables and lists",
            Self::Language => "Language",
            Self::AudioAndVideo => "Audio and video",
            Self::GoodHabits => "Best practices",
            Self::Crawling => "Crawling and indexing",
            Self::Content => "Content",
            Self::TrustAndSafety => "Trust and safety",
            Self::UserExperience => "User experience",
            Self::Compatibility => "Browser compatibility",
            Self::General => "General",
            Self::Installable => "Installable",
            Self::Optimized => "PWA optimised",
            Self::Experimental => "Experimental",
        }
    }
}
