use plumbline_model::check::{Details, Savings};
use plumbline_model::report::Conditions;
use plumbline_trace::{Resource, Trace};

use super::redirects::shared_connection_ms;
use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing, Requests, document, is_compressed};

check! {
    /// # What
    /// The document is requested without redirects, answered quickly, and compressed.
    ///
    /// # Why
    /// Nothing else can load before the document has arrived.
    ///
    /// # Scored
    /// Does not affect the score. Fails when the request was redirected, when the server took more
    /// than 600 ms to respond (not counting the emulated round trip), or when compression would
    /// save 1,400 bytes or more.
    ///
    /// # Fix
    /// Link to the final URL, serve from a cache near the visitor, and compress text with Brotli or
    /// gzip.
    ///
    /// # Source
    /// Lighthouse 13.5, `document-latency-insight`; trace engine, insights/DocumentLatency. A
    /// connection that a redirect opened and the document uses is not counted as a saving.
    id: "document-latency-insight",
    pass: "Document request latency is low",
    fail: "Document request latency is high",
    learn: "https://developer.chrome.com/docs/performance/insights/document-latency",
    run: run,
}

pub(super) const TOO_SLOW_MS: f64 = 600.0;
pub(super) const TARGET_MS: f64 = 100.0;
const MIN_SAVED_BYTES: f64 = 1400.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let document = document(&trace)?;
    let response_ms = server_response_ms(facts, document)?;
    let redirected_ms = (document.redirection_us / 1000.0).round();
    let is_slow = response_ms > TOO_SLOW_MS;
    let saved_bytes = compression_saves_bytes(document);
    let connection_ms = facts.get::<Requests>().map_or(0.0, |requests| {
        let chain = requests.all.iter();
        let chain = chain.filter(|request| request.exchange.id == document.id);
        shared_connection_ms(&chain.collect::<Vec<_>>())
    });
    let saved_ms = redirected_ms - connection_ms.min(redirected_ms)
        + if is_slow {
            response_ms - TARGET_MS
        } else {
            0.0
        };
    let redirects = if redirected_ms > 0.0 {
        format!(
            "Redirected {} times, {redirected_ms} ms",
            document.redirects.len()
        )
    } else {
        "No redirects".to_owned()
    };
    let details = Details::checklist([
        ("noRedirects", redirects, redirected_ms == 0.0),
        (
            "serverResponseIsFast",
            format!("The server responded in {response_ms} ms"),
            !is_slow,
        ),
        (
            "usesCompression",
            if saved_bytes > 0.0 {
                "The document is not compressed".to_owned()
            } else {
                "The document is compressed or too small to benefit".to_owned()
            },
            saved_bytes == 0.0,
        ),
    ]);
    let is_fine = redirected_ms == 0.0 && !is_slow && saved_bytes == 0.0;
    let outcome = if is_fine {
        Outcome::pass()
    } else {
        Outcome::fail("The document could arrive faster or in fewer bytes.")
    };
    Ok(outcome
        .with(details)
        .with_savings(Savings::paints(saved_ms, saved_ms).with_bytes(saved_bytes)))
}

/// Returns the time from the end of the request to the first byte of the response, in whole
/// milliseconds. The emulated round trip is subtracted: it is not the server's.
pub(super) fn server_response_ms(facts: &Facts, document: &Resource) -> Result<f64, Missing> {
    let added_ms = facts
        .get::<Conditions>()
        .map_or(0.0, |conditions| conditions.network.rtt_ms);
    document
        .timing()
        .map(|timing| (timing.server_response_ms() - added_ms).max(0.0).round())
        .ok_or_else(|| Missing("the trace has no timing of the document request".to_owned()))
}

/// Estimates the bytes that compression would save, from the ratio that is usual for the media
/// type. Types that are compressed by themselves save nothing.
fn compression_saves_bytes(document: &Resource) -> f64 {
    if is_compressed(document) {
        return 0.0;
    }
    let share = match document.mime_type() {
        "text/css" => 0.8,
        "text/html" | "text/javascript" => 0.67,
        "text/plain"
        | "text/xml"
        | "text/x-component"
        | "application/javascript"
        | "application/json"
        | "application/manifest+json"
        | "application/vnd.api+json"
        | "application/xml"
        | "application/xhtml+xml"
        | "application/rss+xml"
        | "application/atom+xml"
        | "application/vnd.ms-fontobject"
        | "application/x-font-ttf"
        | "application/x-font-opentype"
        | "application/x-font-truetype"
        | "image/svg+xml"
        | "image/x-icon"
        | "image/vnd.microsoft.icon"
        | "font/ttf"
        | "font/eot"
        | "font/otf"
        | "font/opentype" => 0.5,
        _ => 0.0,
    };
    let saved_bytes = (document.resource_bytes as f64 * share).round();
    if saved_bytes < MIN_SAVED_BYTES {
        return 0.0;
    }
    saved_bytes
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;
    use serde_json::json;

    use super::super::traced::Traced;
    use super::CHECK;
    use crate::checks::testing::verdict_without_evidence;

    #[test]
    fn an_uncompressed_document_wastes_two_thirds() {
        let outcome = Traced::new().judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(outcome.savings.unwrap().wasted_bytes, Some(13_266.0));
        let gzip = json!({"headers": [{"name": "content-encoding", "value": "gzip"}]});
        let traced = Traced::with_document(gzip, json!({}));
        assert_eq!(traced.judge(CHECK).verdict, Verdict::Pass);
        let small = Traced::with_document(json!({}), json!({"decodedBodyLength": 2000}));
        assert_eq!(small.judge(CHECK).verdict, Verdict::Pass);
    }

    #[test]
    fn a_slow_server_costs_the_time_beyond_100_ms() {
        let slow = json!({"headers": [{"name": "content-encoding", "value": "br"}],
            "timing": {"requestTime": 0.001, "sendEnd": 1.0, "receiveHeadersStart": 701.0, "receiveHeadersEnd": 702.0}});
        let outcome = Traced::with_document(slow, json!({})).judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(outcome.savings.unwrap().lcp_ms, Some(600.0));
    }

    #[test]
    fn the_emulated_round_trip_is_not_server_time() {
        let answered_after = |ms: f64| {
            let slow = json!({"headers": [{"name": "content-encoding", "value": "br"}],
                "timing": {"requestTime": 0.001, "sendEnd": 1.0, "receiveHeadersEnd": 1.0 + ms}});
            Traced::with_document(slow, json!({})).judge_on_slow_network(CHECK)
        };
        assert_eq!(answered_after(750.0).verdict, Verdict::Pass);
        let slow = answered_after(850.0);
        assert_eq!(slow.verdict, Verdict::Fail);
        assert_eq!(slow.savings.unwrap().lcp_ms, Some(600.0));
    }

    #[test]
    fn without_a_trace_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
