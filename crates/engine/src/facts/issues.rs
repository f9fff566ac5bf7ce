use serde::Deserialize;
use serde_json::Value;

use super::null::or_default;
use super::{ArtifactFact, Fact, Facts, Missing, Requests};

/// The issues of Chromium's Issues panel by kind, with the details of `Audits.issueAdded`.
#[derive(Debug, Default)]
pub struct Issues {
    pub mixed_content: Vec<MixedContentIssue>,
    pub cookies: Vec<CookieIssue>,
    pub deprecations: Vec<DeprecationIssue>,
    pub quirks_mode: Vec<QuirksModeIssue>,
    pub generic: Vec<GenericIssue>,
    /// The URLs blocked by a cross-origin policy; empty strings for issues without a URL.
    pub blocked_by_response: Vec<String>,
    /// The URLs blocked by the Content Security Policy; empty strings for issues without a URL.
    pub content_security_policy: Vec<String>,
    pub heavy_ads: usize,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MixedContentIssue {
    #[serde(rename = "insecureURL", deserialize_with = "or_default")]
    pub insecure_url: String,
    #[serde(rename = "mainResourceURL", deserialize_with = "or_default")]
    pub main_resource_url: String,
    /// The resolution: `MixedContentBlocked`, `MixedContentAutomaticallyUpgraded` or
    /// `MixedContentWarning`.
    #[serde(deserialize_with = "or_default")]
    pub resolution_status: String,
    pub request: Option<AffectedRequest>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CookieIssue {
    pub cookie: Option<AffectedCookie>,
    pub raw_cookie_line: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub cookie_warning_reasons: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub cookie_exclusion_reasons: Vec<String>,
    pub cookie_url: Option<String>,
    pub request: Option<AffectedRequest>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeprecationIssue {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub kind: String,
    pub source_code_location: SourceCodeLocation,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QuirksModeIssue {
    #[serde(deserialize_with = "or_default")]
    pub is_limited_quirks_mode: bool,
    #[serde(deserialize_with = "or_default")]
    pub frame_id: String,
}

/// An issue that only has a type and an element.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GenericIssue {
    #[serde(deserialize_with = "or_default")]
    pub error_type: String,
    pub violating_node_id: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceCodeLocation {
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    pub line_number: Option<u32>,
    pub column_number: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AffectedCookie {
    pub name: String,
    pub path: String,
    pub domain: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AffectedRequest {
    pub request_id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub url: String,
}

/// The artifact: the `issue` of every event, in order.
#[derive(Debug, Default, Deserialize)]
struct Gathered(Vec<Issue>);

impl ArtifactFact for Gathered {
    const NAME: &'static str = "issues";
}

/// One issue in the form `{code, details: {<kind>Details: {…}}}`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Issue {
    details: serde_json::Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BlockedRequest {
    #[serde(rename = "blockedURL")]
    blocked_url: Option<String>,
    request: Option<AffectedRequest>,
}

impl Issues {
    fn add(&mut self, kind: &str, details: Value) {
        match kind {
            "mixedContentIssueDetails" => self.mixed_content.extend(read(details)),
            "cookieIssueDetails" => self.cookies.extend(read(details)),
            "deprecationIssueDetails" => self.deprecations.extend(read(details)),
            "genericIssueDetails" => self.generic.extend(read(details)),
            "quirksModeIssueDetails" => self.quirks_mode.extend(read(details)),
            "blockedByResponseIssueDetails" => {
                let blocked: Option<BlockedRequest> = read(details);
                let url = blocked.and_then(|blocked| Some(blocked.request?.url));
                self.blocked_by_response.push(url.unwrap_or_default());
            }
            "contentSecurityPolicyIssueDetails" => {
                let blocked: Option<BlockedRequest> = read(details);
                let url = blocked.and_then(|blocked| blocked.blocked_url);
                self.content_security_policy.push(url.unwrap_or_default());
            }
            "heavyAdIssueDetails" => self.heavy_ads += 1,
            _ => {}
        }
    }
}

impl Fact for Issues {
    fn compute(facts: &Facts) -> Result<Self, Missing> {
        let gathered = facts.get::<Gathered>()?;
        let requests = facts.get::<Requests>();
        let mut issues = Self::default();
        for issue in &gathered.0 {
            let Some((kind, details)) = issue.details.iter().next() else {
                continue;
            };
            // Chromium repeats an issue for requests that it never sent; those are not in the log.
            let request_id = details["request"]["requestId"].as_str();
            let is_logged = |id: &str| requests.as_ref().is_ok_and(|all| all.contains(id));
            if request_id.is_none_or(|id| id.is_empty() || is_logged(id)) {
                issues.add(kind, details.clone());
            }
        }
        Ok(issues)
    }
}

fn read<T: serde::de::DeserializeOwned>(details: Value) -> Option<T> {
    serde_json::from_value(details).ok()
}
