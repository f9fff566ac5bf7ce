//! The requests of two audits on one timeline, in pairs of the same URL.

use std::collections::HashMap;

use plumbline_model::media::{ReportMedia, RequestEntry};
use plumbline_report::html::charts::{self, Axis};
use plumbline_report::html::figures::{bytes, ms};
use plumbline_report::html::load::{last_part, ticks};

/// The paired requests of two audits.
pub(super) struct PairsView {
    pub(super) rows: Vec<PairView>,
    pub(super) left_out: usize,
    pub(super) ticks: Vec<(String, String)>,
}

pub(super) struct PairView {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) host: Option<String>,
    /// `new`, `removed` or empty.
    pub(super) tag: &'static str,
    pub(super) sizes: String,
    pub(super) times: String,
    /// The bars of the request before and after; `None` if there was no such request.
    pub(super) bars: [Option<String>; 2],
}

/// The most rows listed.
const MAX_ROWS: usize = 200;

/// Returns the pairs in the order of their start in either audit.
pub(super) fn pairs(before: &ReportMedia, after: &ReportMedia, axis: Axis) -> PairsView {
    // A page of which requests are left out may have sent those that seem new or removed.
    let is_cut = [before, after].map(|media| media.requests_left_out > 0);
    let mut pairs = matched(&before.requests, &after.requests);
    let start_ms = |pair: &Pair<'_>| {
        let starts = pair.iter().flatten().map(|request| request.start_ms);
        starts.fold(f64::INFINITY, f64::min)
    };
    pairs.sort_by(|a, b| start_ms(a).total_cmp(&start_ms(b)));
    PairsView {
        left_out: pairs.len().saturating_sub(MAX_ROWS),
        rows: pairs
            .iter()
            .take(MAX_ROWS)
            .filter_map(|pair| view(pair, is_cut, axis))
            .collect(),
        ticks: ticks(axis),
    }
}

type Pair<'a> = [Option<&'a RequestEntry>; 2];

/// Pairs requests by URL. Several requests of one URL are paired in their order.
fn matched<'a>(before: &'a [RequestEntry], after: &'a [RequestEntry]) -> Vec<Pair<'a>> {
    let mut open: HashMap<&str, Vec<&RequestEntry>> = HashMap::new();
    for request in after.iter().rev() {
        open.entry(&request.url).or_default().push(request);
    }
    let mut pairs: Vec<Pair<'_>> = before
        .iter()
        .map(|request| {
            let counterpart = open.get_mut(request.url.as_str()).and_then(Vec::pop);
            [Some(request), counterpart]
        })
        .collect();
    let unpaired = open.into_values().flatten();
    pairs.extend(unpaired.map(|request| [None, Some(request)]));
    pairs
}

fn view(pair: &Pair<'_>, is_cut: [bool; 2], axis: Axis) -> Option<PairView> {
    let request = pair[1].or(pair[0])?;
    let duration = |request: &RequestEntry| {
        let end_ms = request.end_ms?;
        Some(ms(end_ms - request.start_ms))
    };
    let both = |text: &dyn Fn(&RequestEntry) -> String| {
        let texts: Vec<String> = pair.iter().flatten().map(|request| text(request)).collect();
        match &texts[..] {
            [before, after] if before != after => format!("{before} → {after}"),
            [same, ..] => same.clone(),
            [] => String::new(),
        }
    };
    Some(PairView {
        name: last_part(&request.url),
        url: request.url.clone(),
        host: request.third_party.then(|| request.host.clone()),
        tag: match pair {
            [None, Some(_)] if !is_cut[0] => "new",
            [Some(_), None] if !is_cut[1] => "removed",
            _ => "",
        },
        sizes: both(&|request| {
            if request.cached {
                "cache".to_owned()
            } else {
                bytes(request.transfer_bytes)
            }
        }),
        times: both(&|request| duration(request).unwrap_or_else(|| "–".to_owned())),
        bars: pair.map(|side| side.map(|request| charts::bar(request, axis))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str, start_ms: f64) -> RequestEntry {
        RequestEntry {
            url: url.to_owned(),
            start_ms,
            end_ms: Some(start_ms + 10.0),
            ..RequestEntry::default()
        }
    }

    #[test]
    fn requests_are_paired_by_url_and_ordered_by_their_start() {
        let media = |requests: Vec<RequestEntry>| ReportMedia {
            requests,
            ..ReportMedia::default()
        };
        let before = media(vec![
            request("https://a.test/", 0.0),
            request("https://a.test/x", 10.0),
            request("https://a.test/old.css", 20.0),
        ]);
        let after = media(vec![
            request("https://a.test/", 0.0),
            request("https://a.test/x", 5.0),
            request("https://a.test/x", 8.0),
        ]);
        let view = pairs(&before, &after, Axis { end_ms: 100.0 });
        let rows: Vec<_> = view.rows.iter().map(|r| (r.name.as_str(), r.tag)).collect();
        let expected = [
            ("a.test", ""),
            ("x", ""),
            ("x", "new"),
            ("old.css", "removed"),
        ];
        assert_eq!(rows, expected);
        assert_eq!(view.rows[0].times, "10\u{a0}ms");
        assert!(view.rows[3].bars[1].is_none());
        let cut = ReportMedia {
            requests_left_out: 1,
            ..after
        };
        let tags =
            |view: PairsView| -> Vec<&'static str> { view.rows.iter().map(|r| r.tag).collect() };
        let axis = Axis { end_ms: 100.0 };
        assert_eq!(tags(pairs(&before, &cut, axis)), ["", "", "new", ""]);
        assert_eq!(tags(pairs(&cut, &before, axis)), ["", "", "removed", ""]);
    }
}
