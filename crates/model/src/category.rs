//! The results of an evaluation by category: plain data that is stored and sent.

use serde::{Deserialize, Serialize};

use crate::check::{CheckResult, Verdict};

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
    /// The number of passed checks, for a category that is shown in this way instead of its score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<Fraction>,
    pub checks: Vec<CheckResult>,
}

/// The passed checks of a category, and those that could pass: neither informative checks nor
/// those that are not applicable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fraction {
    pub passed: usize,
    pub of: usize,
}

impl Fraction {
    pub fn of(checks: &[CheckResult]) -> Self {
        let number = |is_counted: fn(Verdict) -> bool| {
            let verdicts = checks.iter().map(|check| check.verdict);
            verdicts.filter(|verdict| is_counted(*verdict)).count()
        };
        Self {
            passed: number(|verdict| verdict == Verdict::Pass),
            of: number(|verdict| !matches!(verdict, Verdict::NotApplicable | Verdict::Informative)),
        }
    }
}

impl Fraction {
    /// Returns the share of passed checks from 0 to 100, which has the grades of a score.
    pub fn percentage(self) -> u8 {
        let share = self.passed as f64 / self.of.max(1) as f64;
        (share * 100.0).round() as u8
    }
}

impl std::fmt::Display for Fraction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.passed, self.of)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CategoryId {
    Performance,
    Accessibility,
    BestPractices,
    Seo,
    Pwa,
    AgenticBrowsing,
}

impl CategoryId {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Performance => "performance",
            Self::Accessibility => "accessibility",
            Self::BestPractices => "best-practices",
            Self::Seo => "seo",
            Self::Pwa => "pwa",
            Self::AgenticBrowsing => "agentic-browsing",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Performance => "Performance",
            Self::Accessibility => "Accessibility",
            Self::BestPractices => "Best practices",
            Self::Seo => "SEO",
            Self::Pwa => "Progressive web app",
            Self::AgenticBrowsing => "Agentic browsing",
        }
    }

    /// Returns whether the category is shown as the number of its passed checks, as in Lighthouse.
    pub fn is_shown_as_fraction(self) -> bool {
        self == Self::AgenticBrowsing
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
    #[serde(rename = "agent-accessibility")]
    AgentAccessibility,
    #[serde(rename = "webmcp")]
    WebMcp,
    #[serde(rename = "agent-discoverability")]
    AgentDiscoverability,
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
            Self::AgentAccessibility => "Accessibility for agents",
            Self::WebMcp => "WebMCP",
            Self::AgentDiscoverability => "Discoverability for agents",
            Self::Experimental => "Experimental",
        }
    }
}
