//! The URLs between which the request for the document was redirected.

use plumbline_model::document_urls::DocumentUrls;
use plumbline_trace::Trace;

use crate::facts::{Facts, Request, Requests};

/// Returns the URLs of the first request for a document and of the last one; `None` if the log does
/// not have them.
pub(crate) fn document_urls(facts: &Facts) -> Option<DocumentUrls> {
    let requests = facts.get::<Requests>().ok()?;
    let trace = facts.get::<Trace>().ok()?;
    let documents = requests.of_documents(&trace.navigation);
    let is_measured =
        |last: &&&Request| Some(&last.exchange.id) == trace.navigation.document_request.as_ref();
    let (first, received) = (documents.first()?, documents.last().filter(is_measured)?);
    Some(DocumentUrls {
        first: first.url.to_string(),
        received: received.url.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::Mode;
    use serde_json::json;

    use super::*;
    use crate::checks::performance::traced::Traced;

    /// Returns the URLs of a visit with these requests for documents, each given by its id and URL,
    /// after which a script displays another URL.
    fn urls(traced: Traced, requests: &[(&str, &str)]) -> Option<DocumentUrls> {
        let mut bundle = traced.visit().bundle();
        let sent = requests.iter().zip(1..).map(|((id, url), second)| {
            json!({"method": "Network.requestWillBeSent", "params": {"requestId": id,
                "type": "Document", "timestamp": second, "request": {"url": url},
                "redirectResponse": {"status": 302}}})
        });
        bundle.log = serde_json::to_vec(&sent.collect::<Vec<_>>()).unwrap();
        bundle.final_url = "https://a.test/displayed".to_owned();
        document_urls(&Facts::new(&bundle, Mode::Mobile))
    }

    #[test]
    fn the_urls_are_those_of_the_first_and_the_last_document() {
        let between = |first: &str, received: &str| DocumentUrls {
            first: first.to_owned(),
            received: received.to_owned(),
        };
        let page = ("N", "https://a.test/");
        assert_eq!(
            urls(Traced::new(), &[page]),
            Some(between("https://a.test/", "https://a.test/"))
        );
        let login = ("N", "https://b.test/login");
        assert_eq!(
            urls(Traced::new(), &[page, login]),
            Some(between("https://a.test/", "https://b.test/login"))
        );
        let by_script = json!({"frame": "F",
            "data": {"documentLoaderURL": "https://c.test/", "navigationId": "M"}});
        let traced = Traced::new().event("navigationStart", by_script);
        assert_eq!(
            urls(traced, &[page, login, ("M", "https://c.test/")]),
            Some(between("https://a.test/", "https://c.test/"))
        );
        assert_eq!(urls(Traced::new(), &[]), None);
    }
}
