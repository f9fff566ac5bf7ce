//! Queries in the form of the API.

use plumbline_catalog::FormFactor;
use plumbline_model::field::RecordScope;
use serde_json::{Value, json};
use url::Url;

/// One request to the API.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Query {
    pub(crate) kind: QueryKind,
    pub(crate) record: RecordScope,
    /// URL of a page or origin.
    pub(crate) subject: String,
    pub(crate) form_factor: FormFactor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum QueryKind {
    /// The last 28 days.
    Current,
    /// 28-day periods, week by week.
    History,
}

impl Query {
    /// Returns the query for the page, and the one for its origin if the page is not in the
    /// dataset. Returns `None` if the URL is not a web address.
    ///
    /// The page's URL is sent without user info, fragment and query: the dataset does not
    /// distinguish pages by them, and they would disclose more than necessary.
    pub(crate) fn both(kind: QueryKind, url: &Url, form_factor: FormFactor) -> Option<[Self; 2]> {
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return None;
        }
        let mut page = url.clone();
        page.set_fragment(None);
        page.set_query(None);
        page.set_username("").ok()?;
        page.set_password(None).ok()?;
        let query = |record, subject| Self {
            kind,
            record,
            subject,
            form_factor,
        };
        let origin = url.origin().ascii_serialization();
        Some([
            query(RecordScope::Url, page.into()),
            query(RecordScope::Origin, origin),
        ])
    }

    pub(crate) fn path(&self) -> &'static str {
        match self.kind {
            QueryKind::Current => "v1/records:queryRecord",
            QueryKind::History => "v1/records:queryHistoryRecord",
        }
    }

    /// Returns the request body. It has no `metrics`, so that the API returns those it has: it
    /// rejects a name that it has removed, as First Input Delay, as an invalid argument.
    pub(crate) fn body(&self) -> Value {
        let subject = match self.record {
            RecordScope::Url => "url",
            RecordScope::Origin => "origin",
        };
        json!({ subject: self.subject, "formFactor": self.form_factor.as_str().to_uppercase() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn both(url: &str) -> Option<[Query; 2]> {
        Query::both(
            QueryKind::Current,
            &Url::parse(url).unwrap(),
            FormFactor::Phone,
        )
    }

    #[test]
    fn a_query_contains_only_the_necessary_parts_of_the_url() {
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
    fn only_web_addresses_are_queried() {
        for url in ["kind:blank", "file:///etc/passwd", "data:text/html,x"] {
            assert_eq!(both(url), None, "{url}");
        }
    }

    proptest! {
        #[test]
        fn no_query_includes_user_info_query_or_fragment(
            user in "[a-z]{0,8}", secret in "[a-z]{1,8}", path in "[a-z/]{0,20}",
        ) {
            let url = format!("https://{user}:{secret}0@example.com/{path}?{secret}1#{secret}2");
            for query in both(&url).unwrap() {
                prop_assert!(!query.subject.contains(['?', '#', '@', '0', '1', '2']));
            }
        }
    }
}
