//! The results of judging, as they are kept and sent: plain data.

use serde::{Deserialize, Serialize};

use crate::checks::{Details, Figure, Savings, Verdict};

/// One of the scores, and everything that was checked for it. What performance is scored by are its
/// metrics; its checks say what costs time and weigh nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CategoryResult {
    pub id: CategoryId,
    pub title: String,
    /// 0 to 100. None when a check that counts could not be measured: a score without it would
    /// mean something else.
    pub score: Option<u8>,
    pub checks: Vec<CheckResult>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    pub id: String,
    /// What is so, by the verdict.
    pub title: String,
    pub verdict: Verdict,
    /// 0 to 1; none where the verdict is no judgement.
    pub score: Option<f64>,
    /// How much it counts in its category: 0 where there was nothing to judge.
    pub weight: f64,
    pub group: Group,
    /// What was found, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    pub why: String,
    pub fix: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
    /// What following the advice would give, where that can be estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub savings: Option<Savings>,
    /// The one number that the verdict goes by, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<Figure>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
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

/// Where a check is shown within its category. Ids are Lighthouse's.
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
    /// Not sure enough, or not telling enough, to be shown beside the others.
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
            Self::GoodHabits => "Good habits",
            Self::Crawling => "Crawling and listing",
            Self::Content => "Content",
            Self::TrustAndSafety => "Trust and safety",
            Self::UserExperience => "User experience",
            Self::Compatibility => "Browser compatibility",
            Self::General => "General",
            Self::Installable => "Installable",
            Self::Optimized => "Optimised as an app",
            Self::Experimental => "Experimental",
        }
    }
}
