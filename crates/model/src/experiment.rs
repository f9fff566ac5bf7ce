//! Experiments with the recording of an audit: what was changed, and the difference that it made.

use serde::{Deserialize, Serialize};

use crate::check::{Cell, CheckResult, Details};
use crate::comparison::Comparison;
use crate::report::Report;

/// The check whose details list the third parties of a page.
pub const THIRD_PARTIES: &str = "third-parties-insight";

/// The advice of a report that an experiment follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    /// The advice of the check with this id.
    Check(String),
    /// Leaving out the third party with this name.
    ThirdParty(String),
}

/// An experiment with the recording of an audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Experiment {
    pub tracking_id: String,
    /// The id of the audit that made it; `None` until it is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_id: Option<String>,
    /// The advice that was followed; `None` if the changes were chosen by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// The changes, each in a few words.
    pub changes: Vec<String>,
    /// Sentences about what the advice names and no change can follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The difference that the changes made; `None` until the experiment is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The reason why nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Returns the newest experiment of a subject that was measured, else the newest. The experiments
/// are ordered from the newest to the oldest.
pub fn experiment_of<'a>(
    experiments: &'a [Experiment],
    subject: &Subject,
) -> Option<&'a Experiment> {
    let of_subject = || {
        experiments
            .iter()
            .filter(|it| it.subject.as_ref() == Some(subject))
    };
    of_subject()
        .find(|experiment| experiment.comparison.is_some())
        .or_else(|| of_subject().next())
}

impl Report {
    /// Returns the result of a check.
    pub fn check(&self, id: &str) -> Option<&CheckResult> {
        let checks = self.categories.iter().flat_map(|it| &it.checks);
        checks.into_iter().find(|check| check.id == id)
    }

    /// Returns the third parties of the page with the URLs of their requests, those with the most
    /// work or the most bytes first.
    pub fn third_parties(&self) -> Vec<(&str, Vec<&str>)> {
        let details = self.check(THIRD_PARTIES).and_then(|it| it.details.as_ref());
        let Some(Details::Findings(findings)) = details else {
            return Vec::new();
        };
        let rows = findings.rows.iter().filter_map(|row| {
            let Some(Cell::Text(name)) = row.cells.first() else {
                return None;
            };
            let urls = row
                .sub_rows
                .iter()
                .filter_map(|row| match row.cells.first() {
                    Some(Cell::Url(url)) => Some(url.as_str()),
                    _ => None,
                });
            Some((name.as_str(), urls.collect()))
        });
        rows.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(tracking_id: &str, subject: Subject, is_measured: bool) -> Experiment {
        Experiment {
            tracking_id: tracking_id.to_owned(),
            audit_id: None,
            subject: Some(subject),
            changes: Vec::new(),
            left_out: Vec::new(),
            comparison: is_measured.then_some(Comparison {
                pairs: 4,
                figures: Vec::new(),
            }),
            error: None,
        }
    }

    #[test]
    fn the_newest_measured_experiment_counts() {
        let check = |id: &str| Subject::Check(id.to_owned());
        let experiments = [
            experiment("3", check("a"), false),
            experiment("2", check("a"), true),
            experiment("1", check("a"), true),
            experiment("0", check("b"), false),
        ];
        let found = |subject| {
            let experiment = experiment_of(&experiments, &subject);
            experiment.map(|experiment| experiment.tracking_id.as_str())
        };
        assert_eq!(found(check("a")), Some("2"));
        assert_eq!(found(check("b")), Some("0"));
        assert_eq!(found(Subject::ThirdParty("a".to_owned())), None);
    }

    #[test]
    fn a_subject_is_an_object_with_one_member() {
        let subject = Subject::ThirdParty("Ads".to_owned());
        let json = serde_json::to_string(&subject).unwrap();
        assert_eq!(json, r#"{"thirdParty":"Ads"}"#);
    }
}
