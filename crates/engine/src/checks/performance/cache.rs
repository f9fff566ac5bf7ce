use plumbline_model::check::{Cell, Findings, Row, Savings, Unit};
use plumbline_trace::{Resource, Trace};

use crate::checks::seo::date::parse_s;
use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing, loaded};

check! {
    /// # What
    /// Static files have a long cache lifetime.
    ///
    /// # Why
    /// Returning visitors download again every file that the browser was not allowed to cache for
    /// long enough.
    ///
    /// # Scored
    /// Does not affect the score. Lists fonts, images, media, scripts and style sheets with a cache
    /// lifetime of less than 30 days, except those that are explicitly not cacheable. Wasted bytes
    /// are the file's size times the probability that a visitor returns after the cache has
    /// expired.
    ///
    /// # Fix
    /// Put a content hash into file names, and serve these files with
    /// `Cache-Control: max-age=31536000, immutable`.
    ///
    /// # Source
    /// Lighthouse 13.5, `cache-insight`; trace engine, insights/Cache. The distribution of ages at
    /// which files are requested again is Chrome's of 2017, as used there. `Expires` is read
    /// regardless of the case of its name, and relative to the response's own `Date`. Bytes are
    /// estimated, no time: the advice does not change the first visit, which the metrics are about.
    id: "cache-insight",
    pass: "Efficient cache lifetimes",
    fail: "Inefficient cache lifetimes",
    learn: "https://developer.chrome.com/docs/performance/insights/cache",
    run: run,
}

const LONG_ENOUGH_S: f64 = 30.0 * 86_400.0;
/// A file is not listed when more than this fraction of returning visitors still have it in the
/// cache.
const LIKELY_ENOUGH: f64 = 0.925;
/// The deciles of the age, in hours, at which a cached file is requested again.
const AGE_H_BY_DECILE: [f64; 11] = [
    0.0, 0.2, 1.0, 3.0, 8.0, 12.0, 24.0, 48.0, 72.0, 168.0, 8760.0,
];

struct ShortLived<'a> {
    resource: &'a Resource,
    lifetime_s: f64,
    wasted_bytes: f64,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let mut short_lived: Vec<ShortLived> = loaded(&trace).filter_map(judge).collect();
    let wasted_bytes: f64 = short_lived.iter().map(|file| file.wasted_bytes).sum();
    short_lived.sort_by(|a, b| b.wasted_bytes.total_cmp(&a.wasted_bytes));
    let outcome = match short_lived.len() {
        0 => Outcome::pass(),
        number => Outcome::fail(format!(
            "{} for less than 30 days.",
            count(number, "file is cached", "files are cached")
        )),
    };
    let table = Findings::new([
        ("url", "Request", Unit::Url),
        ("cacheLifetimeMs", "Cache lifetime", Unit::Ms),
        ("totalBytes", "Transferred", Unit::Bytes),
        ("wastedBytes", "Wasted", Unit::Bytes),
    ])
    .rows(short_lived.iter().map(|file| {
        Row::new([
            Cell::url(&file.resource.url),
            Cell::Ms(file.lifetime_s * 1000.0),
            Cell::Bytes(file.resource.transfer_bytes() as f64),
            Cell::Bytes(file.wasted_bytes),
        ])
    }));
    Ok(outcome
        .with(table.into())
        .with_savings(Savings::bytes(wasted_bytes + 0.0)))
}

fn judge(resource: &Resource) -> Option<ShortLived<'_>> {
    resource.response.as_ref()?;
    let is_static = matches!(
        resource.traced_type(),
        "Font" | "Image" | "Media" | "Script" | "Stylesheet"
    );
    let over_network = !matches!(
        resource.protocol(),
        "blob" | "data" | "intent" | "file" | "filesystem" | "chrome-extension"
    );
    if !is_static || !over_network || !matches!(resource.status(), Some(200 | 203 | 206)) {
        return None;
    }
    let cache_control: Vec<&str> = resource.header("cache-control").collect();
    let directives = Directives::of(&cache_control.join(", "));
    let pragma_forbids = || resource.header("pragma").any(|v| v.contains("no-cache"));
    if directives.forbid_caching || (cache_control.is_empty() && pragma_forbids()) {
        return None;
    }
    let lifetime_s = match directives.max_age_s.or_else(|| expires_in_s(resource)) {
        Some(seconds) if seconds <= 0.0 => return None,
        lifetime => lifetime.unwrap_or(0.0),
    };
    let hit = hit_probability(lifetime_s);
    (lifetime_s < LONG_ENOUGH_S && hit <= LIKELY_ENOUGH).then_some(ShortLived {
        resource,
        lifetime_s,
        wasted_bytes: (1.0 - hit) * resource.transfer_bytes() as f64,
    })
}

#[derive(Default)]
struct Directives {
    max_age_s: Option<f64>,
    forbid_caching: bool,
}

impl Directives {
    fn of(header: &str) -> Self {
        let mut directives = Self::default();
        for directive in header.split(',') {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            match name.trim() {
                "max-age" => {
                    let digits: String = value
                        .trim()
                        .chars()
                        .take_while(char::is_ascii_digit)
                        .collect();
                    directives.max_age_s = digits.parse().ok().or(directives.max_age_s);
                }
                "must-revalidate" | "no-cache" | "no-store" | "private" => {
                    directives.forbid_caching = true;
                }
                _ => {}
            }
        }
        directives
    }
}

/// Returns the lifetime that the `Expires` header gives; a value that is not a date means 0,
/// already stale.
fn expires_in_s(resource: &Resource) -> Option<f64> {
    let expires = resource.header("expires").next()?;
    let response_s = resource.header("date").next().and_then(parse_s);
    match (parse_s(expires), response_s) {
        (Some(expires_s), Some(response_s)) => Some((expires_s - response_s).ceil()),
        _ => Some(0.0),
    }
}

/// Returns the fraction of returning visitors that come back within the lifetime.
fn hit_probability(lifetime_s: f64) -> f64 {
    let lifetime_h = lifetime_s / 3600.0;
    let above = AGE_H_BY_DECILE
        .iter()
        .position(|age_h| *age_h >= lifetime_h);
    match above {
        Some(0) => 0.0,
        None => 1.0,
        Some(above) => {
            let (low_h, high_h) = (AGE_H_BY_DECILE[above - 1], AGE_H_BY_DECILE[above]);
            (above as f64 - 1.0 + (lifetime_h - low_h) / (high_h - low_h)) / 10.0
        }
    }
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;
    use serde_json::json;

    use super::super::traced::Traced;
    use super::{CHECK, hit_probability};

    fn wasted(headers: serde_json::Value) -> f64 {
        let response = json!({"headers": headers});
        let sent = json!({"resourceType": "Script"});
        let traced = Traced::new().resource("2.1", "https://example.test/a.js", sent, response);
        let outcome = traced.judge(CHECK);
        let wasted_bytes = outcome.savings.unwrap().wasted_bytes.unwrap();
        assert_eq!(outcome.verdict == Verdict::Fail, wasted_bytes > 0.0);
        wasted_bytes
    }

    #[test]
    fn short_lifetimes_waste_and_long_or_forbidden_ones_do_not() {
        let control = |value: &str| wasted(json!([{"name": "Cache-Control", "value": value}]));
        assert_eq!(wasted(json!([])), 20_000.0);
        assert!((control("max-age=3600") - 16_000.0).abs() < 1e-6);
        assert_eq!(control("max-age=2592000"), 0.0);
        assert_eq!(control("public, max-age=31536000"), 0.0);
        for forbidden in ["no-store", "no-cache, max-age=60", "private", "max-age=0"] {
            assert_eq!(control(forbidden), 0.0, "{forbidden}");
        }
        assert_eq!(
            wasted(json!([{"name": "Pragma", "value": "no-cache"}])),
            0.0
        );
    }

    #[test]
    fn a_longer_lifetime_does_not_change_the_first_visit() {
        let sent = json!({"resourceType": "Script", "renderBlocking": "blocking"});
        let script = Traced::new().resource("2.1", "https://example.test/a.js", sent, json!({}));
        let savings = script.judge_on_slow_network(CHECK).savings.unwrap();
        assert_eq!(savings.wasted_bytes, Some(20_000.0));
        assert_eq!((savings.fcp_ms, savings.lcp_ms), (None, None));
    }

    #[test]
    fn expires_is_relative_to_the_date_header() {
        let expires = |value: &str| {
            wasted(json!([{"name": "Expires", "value": value},
                          {"name": "Date", "value": "Sun, 15 Nov 2026 04:00:00 GMT"}]))
        };
        assert!((expires("Sun, 15 Nov 2026 05:00:00 GMT") - 16_000.0).abs() < 1e-6);
        assert_eq!(expires("Mon, 15 Nov 2027 05:00:00 GMT"), 0.0);
        assert_eq!(expires("0"), 0.0);
    }

    #[test]
    fn a_longer_lifetime_is_never_less_likely_to_be_enough() {
        let shares: Vec<f64> = (0..2000)
            .map(|h| hit_probability(f64::from(h) * 3600.0))
            .collect();
        assert!(shares.is_sorted());
        assert_eq!((shares[0], hit_probability(1e12)), (0.0, 1.0));
    }
}
