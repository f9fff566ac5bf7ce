use crate::checks::{Cell, Findings, Outcome, Row, Savings, Unit, check, count};
use crate::facts::{Facts, MainResource, Missing, Request, Requests};

check! {
    /// # What
    /// The document's address leads to it at once.
    ///
    /// # Why
    /// Every redirect costs a round trip, often to another host, before anything can begin.
    ///
    /// # Scored
    /// Weighs nothing. Fails when the request for the document was redirected.
    ///
    /// # Fix
    /// Link to the final address, and let the server redirect once at most.
    ///
    /// # Source
    /// Lighthouse 13.5, `redirects`; times as observed.
    id: "redirects",
    pass: "The document is not redirected",
    fail: "The document is redirected",
    needs: [Requests::NAME],
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let requests = facts.get::<Requests>()?;
    let document = facts.get::<MainResource>()?;
    let chain: Vec<&Request> = requests
        .all
        .iter()
        .filter(|request| request.id == document.0.id)
        .collect();
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
    use super::CHECK;
    use crate::checks::Verdict;
    use crate::checks::testing::{Visit, verdict_without_evidence};
    use crate::facts::Facts;

    #[test]
    fn a_redirect_costs_the_time_until_the_next_request() {
        let mut bundle = Visit::to("https://b.test/").bundle();
        bundle.log = br#"[
            {"method": "Network.requestWillBeSent", "params": {"requestId": "1", "type": "Document",
              "timestamp": 1.0, "request": {"url": "https://a.test/"}}},
            {"method": "Network.requestWillBeSent", "params": {"requestId": "1", "type": "Document",
              "timestamp": 1.25, "request": {"url": "https://b.test/"},
              "redirectResponse": {"url": "https://a.test/", "status": 301}}}
        ]"#
        .to_vec();
        let facts = Facts::new(&bundle, plumbline_catalog::Mode::Mobile);
        let outcome = (CHECK.run)(&facts).unwrap();
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(outcome.savings.unwrap().fcp_ms, Some(250.0));
        assert_eq!(Visit::new().verdict(CHECK), Verdict::Pass);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
