use std::collections::{BTreeMap, HashMap};

use plumbline_model::check::{Cell, Findings, Row, Unit};
use plumbline_trace::{Trace, WorkSpan};
use plumbline_vendored::entities;

use crate::checks::{Outcome, check, count};
use crate::facts::{DeviceWork, Facts, Missing, loaded};

check! {
    /// # What
    /// The third parties that the page loads resources from, with their transfer size and
    /// main-thread time.
    ///
    /// # Why
    /// Third-party code affects loading and responsiveness, and the site's owner does not control
    /// it.
    ///
    /// # Scored
    /// Informative. Lists organisations and their files, those with the most main-thread time
    /// first. The target of an XMLHttpRequest counts even without a response; requests of
    /// cross-site frames in other processes do not count.
    ///
    /// # Fix
    /// Remove third parties that are not worth their cost; load the others later, or host them
    /// yourself.
    ///
    /// # Source
    /// Lighthouse 13.5, `third-parties-insight`; owners of hosts from third-party-web.
    id: "third-parties-insight",
    pass: "Third parties",
    fail: "Third parties",
    learn: "https://developer.chrome.com/docs/performance/insights/third-parties",
    run: run,
}

#[derive(Default)]
struct ThirdParty {
    /// Transferred bytes and main-thread milliseconds by URL.
    urls: BTreeMap<String, (f64, f64)>,
}

impl ThirdParty {
    fn sum(&self) -> (f64, f64) {
        let urls = self.urls.values();
        urls.fold((0.0, 0.0), |sum, url| (sum.0 + url.0, sum.1 + url.1))
    }
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let work = facts.get::<DeviceWork>()?;
    let mut parties: Vec<(String, ThirdParty)> = parties(&trace, &work.spans).into_iter().collect();
    // As in Lighthouse, the most main-thread time comes first.
    let by_cost = |a: (f64, f64), b: (f64, f64)| b.1.total_cmp(&a.1).then(b.0.total_cmp(&a.0));
    parties.sort_by(|(_, a), (_, b)| by_cost(a.sum(), b.sum()));
    let outcome = match parties.len() {
        0 => Outcome::pass().with_summary("No third parties."),
        number => Outcome::informative(format!(
            "{}.",
            count(number, "third party", "third parties")
        )),
    };
    let table = Findings::new([
        ("entity", "Third party", Unit::Text),
        ("transferSize", "Transferred", Unit::Bytes),
        ("mainThreadTime", "Main-thread time", Unit::Ms),
    ])
    .rows(parties.into_iter().map(|(name, party)| {
        let (bytes, ms) = party.sum();
        let mut urls: Vec<_> = party.urls.into_iter().collect();
        urls.sort_by(|(_, a), (_, b)| by_cost(*a, *b));
        Row::new([Cell::text(&name), Cell::Bytes(bytes), Cell::Ms(ms)]).with(urls.into_iter().map(
            |(url, (bytes, ms))| Row::new([Cell::url(&url), Cell::Bytes(bytes), Cell::Ms(ms)]),
        ))
    }));
    Ok(outcome.with(table.into()))
}

/// Returns the organisations that the page and the frames in its process received responses from or
/// sent an XMLHttpRequest to, with the main-thread time of their files.
fn parties(trace: &Trace, work: &[WorkSpan]) -> BTreeMap<String, ThirdParty> {
    let own = entities::organisation_or_domain(&trace.navigation.url);
    let mut parties: BTreeMap<String, ThirdParty> = BTreeMap::new();
    let is_of_page = |process_id: i64| {
        let mut threads = trace.navigation.main_threads.iter();
        threads.any(|thread| thread.process_id == process_id)
    };
    let transfers = loaded(trace)
        .filter(|resource| resource.transfer_bytes() > 0)
        .filter(|resource| resource.process_id.is_some_and(is_of_page))
        .map(|resource| (&resource.url, resource.transfer_bytes() as f64));
    let handled_xhrs = trace.resources.handled_xhrs.iter();
    let handled_xhrs = handled_xhrs
        .filter(|(process_id, _)| is_of_page(*process_id))
        .map(|(_, url)| (url, 0.0));
    for (url, bytes) in transfers.chain(handled_xhrs) {
        let name = entities::organisation_or_domain(url).filter(|name| Some(name) != own.as_ref());
        if let Some(name) = name {
            let party = parties.entry(name.into_owned()).or_default();
            party.urls.entry(url.clone()).or_default().0 += bytes;
        }
    }
    let mut busy_us: HashMap<&str, f64> = HashMap::new();
    for work in work {
        if let Some(url) = work.urls.first() {
            *busy_us.entry(url).or_default() += work.self_us;
        }
    }
    for party in parties.values_mut() {
        for (url, sum) in &mut party.urls {
            sum.1 = busy_us.get(url.as_str()).map_or(0.0, |us| us / 1000.0);
        }
    }
    parties
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;
    use serde_json::json;

    use super::super::traced::Traced;
    use super::CHECK;

    #[test]
    fn organisations_are_listed_once_and_the_site_itself_never() {
        let none = || json!({});
        let traced = Traced::new()
            .resource("2.1", "https://cdn.example.test/a.js", none(), none())
            .resource(
                "2.2",
                "https://www.google-analytics.com/a.js",
                none(),
                none(),
            )
            .resource(
                "2.3",
                "https://www.google-analytics.com/b.js",
                none(),
                none(),
            )
            .resource("2.4", "https://unheard.test/c.js", none(), none());
        assert_eq!(traced.listed(CHECK), ["Google Analytics", "unheard.test"]);
        assert_eq!(Traced::new().judge(CHECK).verdict, Verdict::Pass);
    }

    #[test]
    fn requests_of_frames_in_other_processes_are_ignored() {
        let traced = Traced::new()
            .resource("9.1", "https://unheard.test/c.js", json!({}), json!({}))
            .in_another_process();
        assert!(traced.listed(CHECK).is_empty());
    }

    #[test]
    fn the_target_of_an_xhr_is_listed_without_a_response() {
        let traced = Traced::new().event(
            "XHRReadyStateChange",
            json!({"data": {"url": "https://unheard.test/data", "readyState": 4}}),
        );
        assert_eq!(traced.listed(CHECK), ["unheard.test"]);
    }
}
