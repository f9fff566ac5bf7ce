//! What is asked, in the API's words.

use plumbline_catalog::FormFactor;
use plumbline_engine::field::RecordOf;
use serde_json::{Value, json};
use url::Url;

/// One request to the API.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) about: About,
    pub(crate) record: RecordOf,
    /// A page or an origin.
    pub(crate) subject: String,
    pub(crate) form_factor: FormFactor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum About {
    /// The last 28 days.
    Now,
    /// The same, week by week.
    History,
}

impl Question {
    /// About the page, and about its origin for when the page is not in the dataset. None for what is no
    /// web address.
    ///
    /// The page is named without user info, fragment and query: the dataset counts pages that differ
    /// in nothing else as one, so these would only tell a stranger more than it needs.
    pub(crate) fn both(about: About, url: &Url, form_factor: FormFactor) -> Option<[Self; 2]> {
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return None;
        }
        let mut page = url.clone();
        page.set_fragment(None);
        page.set_query(None);
        page.set_username("").ok()?;
        page.set_password(None).ok()?;
        let question = |record, subject| Self {
            about,
            record,
            subject,
            form_factor,
        };
        let origin = url.origin().ascii_serialization();
        Some([
            question(RecordOf::Url, page.into()),
            question(RecordOf::Origin, origin),
        ])
    }

    pub(crate) fn path(&self) -> &'static str {
        match self.about {
            About::Now => "v1/records:queryRecord",
            About::History => "v1/records:queryHistoryRecord",
        }
    }

    /// Without `metrics`, so that the dataset answers with those it has: a name that it has dropped, as it
    /// dropped First Input Delay, would be refused as an invalid argument.
    pub(crate) fn body(&self) -> Value {
        let subject = match self.record {
            RecordOf::Url => "url",
            RecordOf::Origin => "origin",
        };
        json!({ subject: self.subject, "formFactor": self.form_factor.as_str().to_uppercase() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn both(url: &str) -> Option<[Question; 2]> {
        Question::both(About::Now, &Url::parse(url).unwrap(), FormFactor::Phone)
    }

    #[test]
    fn a_page_is_named_without_what_is_not_needed() {
        for (url, page, origin) in [
            (
                "https://me:secret@example.com/a/b?token=1#top",
                "https://example.com/a/b",
                "https://example.com",
            ),
            (
                "http://Example.COM:80",
                "http://example.com/",
                "http://example.com",
            ),
            (
                "https://example.com:8443/?",
                "https://example.com:8443/",
                "https://example.com:8443",
            ),
        ] {
            let [first, second] = both(url).unwrap();
            let expected = json!({ "url": page, "formFactor": "PHONE" });
            assert_eq!(first.body(), expected);
            assert_eq!(
                second.body(),
                json!({ "origin": origin, "formFactor": "PHONE" })
            );
        }
    }

    #[test]
    fn what_is_no_web_address_is_not_asked_about() {
        for url in ["about:blank", "file:///etc/passwd", "data:text/html,x"] {
            assert_eq!(both(url), None, "{url}");
        }
    }

    proptest! {
        #[test]
        fn no_question_carries_user_info_query_or_fragment(
            user in "[a-z]{0,8}", secret in "[a-z]{1,8}", path in "[a-z/]{0,20}",
        ) {
            let url = format!("https://{user}:{secret}0@example.com/{path}?{secret}1#{secret}2");
            for question in both(&url).unwrap() {
                prop_assert!(!question.subject.contains(['?', '#', '@', '0', '1', '2']));
            }
        }
    }
}
