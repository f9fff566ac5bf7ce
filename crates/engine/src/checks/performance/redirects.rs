use plumbline_model::check::{Cell, Findings, Row, Savings, Unit};
use plumbline_trace::{ResourceTiming, Trace};

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing, Request, Requests};

check! {
    /// # What
    /// The requested URL leads to the document without redirects.
    ///
    /// # Why
    /// Every redirect costs a round trip, often to another host, before the page can start to load.
    /// A redirect by a script also costs loading a whole document and running the script.
    ///
    /// # Scored
    /// Does not affect the score. Fails when a server redirected the document request, or when a
    /// document navigated to the next one itself.
    ///
    /// # Fix
    /// Link to the final URL, and combine several redirects into one.
    ///
    /// # Source
    /// Lighthouse 13.5, `redirects`; times as observed. A connection that the document uses as well
    /// is not counted as a saving.
    id: "redirects",
    pass: "No page redirects",
    fail: "Page redirects",
    learn: "https://developer.chrome.com/docs/lighthouse/performance/redirects/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let requests = facts.get::<Requests>()?;
    let trace = facts.get::<Trace>()?;
    let chain = requests.of_documents(&trace.navigation);
    if chain.is_empty() {
        return Err(Missing(
            "the log has no request for the document".to_owned(),
        ));
    }
    let table = Findings::new([
        ("url", "URL", Unit::Url),
        ("wastedMs", "Time spent", Unit::Ms),
    ]);
    if chain.len() < 2 {
        let no_savings = Savings::paints(0.0, 0.0);
        return Ok(Outcome::pass()
            .with(table.into())
            .with_figure(0.0, Unit::Ms)
            .with_savings(no_savings));
    }
    // Converted to seconds first, so that figures are the same as in earlier reports.
    let times = chain
        .windows(2)
        .map(|pair| (pair[1].sent_us() / 1e6 - pair[0].sent_us() / 1e6) * 1000.0);
    let spent_ms: Vec<f64> = times.chain([0.0]).collect();
    let total_ms: f64 = spent_ms.iter().sum();
    let rows = chain
        .iter()
        .zip(&spent_ms)
        .map(|(request, ms)| Row::new([Cell::url(request.url.as_str()), Cell::Ms(*ms)]));
    let saved_ms = total_ms - shared_connection_ms(&chain).min(total_ms);
    let summary = count(chain.len() - 1, "redirect", "redirects");
    Ok(Outcome::fail(format!("{summary}, {total_ms:.0} ms."))
        .with(table.rows(rows).into())
        .with_figure(total_ms, Unit::Ms)
        .with_savings(Savings::paints(saved_ms, saved_ms)))
}

/// Returns the time in which a redirect opened the connection that the document, the last of the
/// requests, uses as well: without redirects, the document opens it itself.
pub(super) fn shared_connection_ms(requests: &[&Request]) -> f64 {
    let connection_ms = |request: &&Request| {
        let timing = request.exchange.timing();
        timing.map_or(0.0, ResourceTiming::connection_ms)
    };
    let Some((document, redirects)) = requests.split_last() else {
        return 0.0;
    };
    if connection_ms(document) > 0.0 {
        return 0.0;
    }
    let same_origin = redirects
        .iter()
        .filter(|request| request.url.origin() == document.url.origin());
    same_origin.map(connection_ms).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;
    use serde_json::json;

    use super::CHECK;
    use crate::checks::Outcome;
    use crate::checks::performance::traced::{Traced, rows};
    use crate::checks::testing::verdict_without_evidence;
    use crate::facts::Facts;

    /// Runs the check on a trace with document requests given as id, time and URL.
    fn judge(traced: Traced, document_requests: &[(&str, f64, &str)]) -> Outcome {
        let mut bundle = traced.visit().bundle();
        let log: Vec<_> = document_requests
            .iter()
            .map(|(id, timestamp, url)| {
                json!({"method": "Network.requestWillBeSent", "params": {"requestId": id, "type": "Document",
                       "timestamp": timestamp, "request": {"url": url}, "redirectResponse": {"status": 301}}})
            })
            .collect();
        bundle.log = serde_json::to_vec(&log).unwrap();
        (CHECK.run)(&Facts::new(&bundle, plumbline_catalog::Mode::Mobile)).unwrap()
    }

    #[test]
    fn a_redirect_costs_the_time_until_the_next_request() {
        let document_requests = [
            ("N", 1.0, "https://a.test/"),
            ("N", 1.25, "https://b.test/"),
        ];
        let outcome = judge(Traced::new(), &document_requests);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(rows(&outcome), ["https://a.test/", "https://b.test/"]);
        assert_eq!(outcome.savings.unwrap().fcp_ms, Some(250.0));
        assert_eq!(
            judge(Traced::new(), &document_requests[..1]).verdict,
            Verdict::Pass
        );
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }

    #[test]
    fn a_connection_that_the_document_uses_as_well_is_no_saving() {
        let opened = json!({"requestTime": 1.0, "dnsStart": 0.0, "dnsEnd": 20.0,
            "connectStart": 20.0, "connectEnd": 150.0, "sendEnd": 151.0, "receiveHeadersEnd": 240.0});
        for (url, saved_ms) in [("https://a.test/2", 100.0), ("https://b.test/", 250.0)] {
            let redirected = json!({"status": 301, "url": "https://a.test/", "timing": opened});
            let sent = |timestamp: f64, url: &str| {
                json!({"method": "Network.requestWillBeSent", "params": {"requestId": "N", "type": "Document",
                       "timestamp": timestamp, "request": {"url": url}, "redirectResponse": redirected}})
            };
            let mut bundle = Traced::new().visit().bundle();
            let log = [sent(1.0, "https://a.test/"), sent(1.25, url)];
            bundle.log = serde_json::to_vec(&log).unwrap();
            let facts = Facts::new(&bundle, plumbline_catalog::Mode::Mobile);
            let savings = (CHECK.run)(&facts).unwrap().savings.unwrap();
            assert_eq!(savings.fcp_ms, Some(saved_ms), "{url}");
        }
    }

    #[test]
    fn a_client_side_navigation_is_a_redirect() {
        let by_script = json!({"frame": "F", "data": {"documentLoaderURL": "https://c.test/", "navigationId": "M"}});
        let document_requests = [
            ("N", 1.0, "https://a.test/"),
            ("N", 1.25, "https://b.test/"),
            ("M", 3.0, "https://c.test/"),
        ];
        let outcome = judge(
            Traced::new().event("navigationStart", by_script),
            &document_requests,
        );
        assert_eq!(
            rows(&outcome),
            ["https://a.test/", "https://b.test/", "https://c.test/"]
        );
        assert_eq!(outcome.savings.unwrap().lcp_ms, Some(2000.0));
    }
}
