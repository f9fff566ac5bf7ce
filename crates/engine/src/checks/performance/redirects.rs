use plumbline_trace::Trace;

use crate::checks::{Cell, Findings, Outcome, Row, Savings, Unit, check, count};
use crate::facts::{Facts, Missing, Request, Requests, TRACE};

check! {
    /// # What
    /// The document's address leads to it at once.
    ///
    /// # Why
    /// Every redirect costs a round trip, often to another host, before anything can begin. One by a script costs a
    /// whole document and the time until the script runs.
    ///
    /// # Scored
    /// Weighs nothing. Fails when a server redirected the request for the document, or when a document led to the
    /// next by itself.
    ///
    /// # Fix
    /// Link to the final address, and let the server redirect once at most.
    ///
    /// # Source
    /// Lighthouse 13.5, `redirects`; times as observed.
    id: "redirects",
    pass: "The document is not redirected",
    fail: "The document is redirected",
    needs: [TRACE, Requests::NAME],
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let requests = facts.get::<Requests>()?;
    let trace = facts.get::<Trace>()?;
    let navigation = &trace.navigation;
    let documents = navigation
        .earlier_documents
        .iter()
        .chain(&navigation.document_request);
    let chain: Vec<&Request> = documents
        .flat_map(|id| requests.all.iter().filter(move |request| request.id == *id))
        .collect();
    if chain.is_empty() {
        return Err(Missing(
            "the log holds no request for the document".to_owned(),
        ));
    }
    let table = Findings::new([
        ("url", "URL", Unit::Url),
        ("wastedMs", "Time spent", Unit::Ms),
    ]);
    if chain.len() < 2 {
        let none = Savings::paints(0.0, 0.0);
        return Ok(Outcome::pass()
            .with(table.into())
            .measuring(0.0, Unit::Ms)
            .saving(none));
    }
    let times = chain
        .windows(2)
        .map(|pair| (pair[1].sent_s - pair[0].sent_s) * 1000.0);
    let spent_ms: Vec<f64> = times.chain([0.0]).collect();
    let total_ms: f64 = spent_ms.iter().sum();
    let rows = chain
        .iter()
        .zip(&spent_ms)
        .map(|(request, ms)| Row::new([Cell::url(request.url.as_str()), Cell::Ms(*ms)]));
    let summary = count(chain.len() - 1, "redirect", "redirects");
    Ok(Outcome::fail(format!("{summary}, {total_ms:.0} ms."))
        .with(table.rows(rows).into())
        .measuring(total_ms, Unit::Ms)
        .saving(Savings::paints(total_ms, total_ms)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::CHECK;
    use crate::checks::performance::traced::{Traced, rows};
    use crate::checks::testing::verdict_without_evidence;
    use crate::checks::{Outcome, Verdict};
    use crate::facts::Facts;

    /// The traced visit, and who was asked for the document: of which navigation, when, where.
    fn judge(traced: Traced, asked: &[(&str, f64, &str)]) -> Outcome {
        let mut bundle = traced.visit().bundle();
        let log: Vec<_> = asked
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
        let asked = [
            ("N", 1.0, "https://a.test/"),
            ("N", 1.25, "https://b.test/"),
        ];
        let outcome = judge(Traced::new(), &asked);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(rows(&outcome), ["https://a.test/", "https://b.test/"]);
        assert_eq!(outcome.savings.unwrap().fcp_ms, Some(250.0));
        assert_eq!(judge(Traced::new(), &asked[..1]).verdict, Verdict::Pass);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }

    #[test]
    fn a_document_that_leads_to_the_next_by_itself_is_a_redirect() {
        let by_script = json!({"frame": "F", "data": {"documentLoaderURL": "https://c.test/", "navigationId": "M"}});
        let asked = [
            ("N", 1.0, "https://a.test/"),
            ("N", 1.25, "https://b.test/"),
            ("M", 3.0, "https://c.test/"),
        ];
        let outcome = judge(Traced::new().event("navigationStart", by_script), &asked);
        assert_eq!(
            rows(&outcome),
            ["https://a.test/", "https://b.test/", "https://c.test/"]
        );
        assert_eq!(outcome.savings.unwrap().lcp_ms, Some(2000.0));
    }
}
