use plumbline_trace::{Resource, Trace};

use crate::checks::seo::date::parse_s;
use crate::checks::{Cell, Findings, Outcome, Row, Savings, Unit, check, count};
use crate::facts::{Facts, Missing, TRACE, loaded, time_saved};

check! {
    /// # What
    /// Files that seldom change may be kept by the browser for long.
    ///
    /// # Why
    /// A visitor who comes back loads again what the browser was not allowed to keep.
    ///
    /// # Scored
    /// Weighs nothing. Lists fonts, images, media, scripts and style sheets that may be kept for less than 30 days,
    /// unless their server forbids keeping them. Bytes are wasted by how likely a visitor is to return later than
    /// that.
    ///
    /// # Fix
    /// Give files a name that changes with their content, and `Cache-Control: max-age=31536000, immutable`.
    ///
    /// # Source
    /// Lighthouse 13.5, `cache-insight`; trace engine, insights/Cache. Ages at which files are asked for again:
    /// Chrome's figures of 2017, as used there. `Expires` is read whatever the case of its name, against the
    /// answer's own `Date`.
    id: "cache-insight",
    pass: "Files are cached for long enough",
    fail: "Files are cached for too short a time",
    needs: [TRACE],
    run: run,
}

const LONG_ENOUGH_S: f64 = 30.0 * 86_400.0;
/// Returning visitors that find the file still cached, at and above which it is not worth a word.
const LIKELY_ENOUGH: f64 = 0.925;
/// How old a file is when it is asked for again, by deciles of all such cases.
const AGE_H_BY_DECILE: [f64; 11] = [
    0.0, 0.2, 1.0, 3.0, 8.0, 12.0, 24.0, 48.0, 72.0, 168.0, 8760.0,
];

struct Found<'a> {
    resource: &'a Resource,
    lifetime_s: f64,
    wasted_bytes: f64,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let mut found: Vec<Found> = loaded(&trace).filter_map(judge).collect();
    let wasted_bytes: f64 = found.iter().map(|found| found.wasted_bytes).sum();
    let by_id: Vec<(&str, f64)> = found
        .iter()
        .map(|found| (found.resource.id.as_str(), found.wasted_bytes))
        .collect();
    let savings = match by_id.is_empty() {
        true => Savings::paints(0.0, 0.0),
        false => time_saved(facts, &by_id),
    };
    found.sort_by(|a, b| b.wasted_bytes.total_cmp(&a.wasted_bytes));
    let outcome = match found.len() {
        0 => Outcome::pass(),
        number => Outcome::fail(format!(
            "{} for less than 30 days.",
            count(number, "file may be kept", "files may be kept")
        )),
    };
    let table = Findings::new([
        ("url", "Request", Unit::Url),
        ("cacheLifetimeMs", "May be kept for", Unit::Ms),
        ("totalBytes", "Transferred", Unit::Bytes),
        ("wastedBytes", "Wasted", Unit::Bytes),
    ])
    .rows(found.iter().map(|found| {
        Row::new([
            Cell::url(&found.resource.url),
            Cell::Ms(found.lifetime_s * 1000.0),
            Cell::Bytes(found.resource.transfer_bytes),
            Cell::Bytes(found.wasted_bytes),
        ])
    }));
    Ok(outcome
        .with(table.into())
        .saving(savings.with_bytes(wasted_bytes)))
}

fn judge(resource: &Resource) -> Option<Found<'_>> {
    resource.headers.as_ref()?;
    let is_static = matches!(
        resource.resource_type.as_str(),
        "Font" | "Image" | "Media" | "Script" | "Stylesheet"
    );
    let over_network = !matches!(
        resource.protocol.as_str(),
        "blob" | "data" | "intent" | "file" | "filesystem" | "chrome-extension"
    );
    if !is_static || !over_network || !matches!(resource.status, 200 | 203 | 206) {
        return None;
    }
    let cache_control: Vec<&str> = resource.header("cache-control").collect();
    let directives = Directives::of(&cache_control.join(", "));
    let no_cache_of_old = || resource.header("pragma").any(|v| v.contains("no-cache"));
    if directives.forbid_keeping || (cache_control.is_empty() && no_cache_of_old()) {
        return None;
    }
    let lifetime_s = match directives.max_age_s.or_else(|| expires_in_s(resource)) {
        Some(seconds) if seconds <= 0.0 => return None,
        known => known.unwrap_or(0.0),
    };
    let hit = hit_probability(lifetime_s);
    (lifetime_s < LONG_ENOUGH_S && hit <= LIKELY_ENOUGH).then_some(Found {
        resource,
        lifetime_s,
        wasted_bytes: (1.0 - hit) * resource.transfer_bytes,
    })
}

#[derive(Default)]
struct Directives {
    max_age_s: Option<f64>,
    forbid_keeping: bool,
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
                    directives.forbid_keeping = true;
                }
                _ => {}
            }
        }
        directives
    }
}

/// An `Expires` that is no date means that the answer is stale already.
fn expires_in_s(resource: &Resource) -> Option<f64> {
    let expires = resource.header("expires").next()?;
    let answered_s = resource.header("date").next().and_then(parse_s);
    match (parse_s(expires), answered_s) {
        (Some(expires_s), Some(answered_s)) => Some((expires_s - answered_s).ceil()),
        _ => Some(0.0),
    }
}

/// The share of returning visitors that come back within the lifetime.
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
