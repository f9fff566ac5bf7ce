//! The data by which two compared pages differ.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::media::{ReportMedia, RequestEntry};

/// The most requests that are listed as different.
const MAX_REQUESTS: usize = 20;

/// The difference in size below which two responses count as equal: headers such as `Date` vary.
const EQUAL_BYTES: u64 = 100;

/// The type of requests for scripts.
const SCRIPT: &str = "Script";

/// A number that describes the load of both pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceRow {
    pub name: String,
    pub unit: EvidenceUnit,
    pub values: [f64; 2],
}

/// The unit of an [`EvidenceRow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EvidenceUnit {
    Count,
    Bytes,
    Milliseconds,
}

/// A URL that only one of the pages requested, or whose responses differ in size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DifferentRequest {
    /// The path if both pages requested it from their own hosts, else the URL.
    pub url: String,
    /// The transferred bytes in each page; `None` if the page did not request the URL.
    pub bytes: [Option<u64>; 2],
}

/// The requests of a page for one URL.
#[derive(Debug, Clone, Copy, Default)]
struct Transfers {
    requests: usize,
    bytes: u64,
}

/// Returns the requests and the work of two pages.
pub fn evidence(media: [&ReportMedia; 2]) -> Vec<EvidenceRow> {
    use EvidenceUnit::{Bytes, Count, Milliseconds};

    let row = |name: &str, unit, of: &dyn Fn(&ReportMedia) -> f64| EvidenceRow {
        name: name.to_owned(),
        unit,
        values: media.map(of),
    };
    vec![
        row("Requests", Count, &|media| media.request_count() as f64),
        row("Transferred", Bytes, &|media| media.transfer_bytes() as f64),
        row("Scripts", Count, &|media| {
            media.total_of_type(SCRIPT).requests as f64
        }),
        row("Transferred scripts", Bytes, &|media| {
            media.total_of_type(SCRIPT).bytes as f64
        }),
        row("Main-thread work", Milliseconds, &|media| {
            media.main_thread.total_ms.iter().sum::<f64>()
        }),
        row("Long tasks", Count, &|media| {
            let thread = &media.main_thread;
            thread.long_task_count.max(thread.long_tasks.len()) as f64
        }),
    ]
}

/// Returns the requests by which two pages differ, those with the largest difference in size first.
///
/// A page of which requests are left out may have requested any URL, or more often than is known.
pub fn different_requests(media: [&ReportMedia; 2]) -> Vec<DifferentRequest> {
    let mut by_url: BTreeMap<String, [Transfers; 2]> = BTreeMap::new();
    for (page, media) in media.iter().enumerate() {
        let document_host = media.requests.first().map(|request| request.host.as_str());
        for request in &media.requests {
            let transfers = &mut by_url.entry(key(request, document_host)).or_default()[page];
            transfers.requests += 1;
            transfers.bytes = transfers.bytes.saturating_add(request.transfer_bytes);
        }
    }
    let is_known = |transfers: &[Transfers; 2]| {
        let [first, second] = transfers.map(|transfers| transfers.requests);
        let [first_is_cut, second_is_cut] = media.map(|media| media.requests_left_out > 0);
        (first >= second || !first_is_cut) && (second >= first || !second_is_cut)
    };
    let difference = |bytes: &[Option<u64>; 2]| {
        let [first, second] = bytes.map(Option::unwrap_or_default);
        first.abs_diff(second)
    };
    let mut different: Vec<DifferentRequest> = by_url
        .into_iter()
        .filter(|(_, transfers)| is_known(transfers))
        .map(|(url, transfers)| DifferentRequest {
            url,
            bytes: transfers.map(|it| (it.requests > 0).then_some(it.bytes)),
        })
        .filter(|DifferentRequest { bytes, .. }| {
            bytes.iter().any(Option::is_none) || difference(bytes) > EQUAL_BYTES
        })
        .collect();
    // The sort is stable, so that requests with equal differences remain ordered by URL.
    different.sort_by_key(|request| std::cmp::Reverse(difference(&request.bytes)));
    different.truncate(MAX_REQUESTS);
    different
}

/// Returns the text by which requests of two pages are matched: the pages may have different hosts.
fn key(request: &RequestEntry, document_host: Option<&str>) -> String {
    let url = &request.url;
    if Some(request.host.as_str()) != document_host {
        return url.clone();
    }
    let path = url.split_once("://").and_then(|(_, rest)| {
        let slash = rest.find('/')?;
        Some(rest[slash..].to_owned())
    });
    path.unwrap_or_else(|| url.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str, host: &str, kind: &str, bytes: u64) -> RequestEntry {
        RequestEntry {
            url: url.to_owned(),
            host: host.to_owned(),
            kind: kind.to_owned(),
            transfer_bytes: bytes,
            ..RequestEntry::default()
        }
    }

    fn media(requests: Vec<RequestEntry>) -> ReportMedia {
        ReportMedia {
            requests,
            ..ReportMedia::default()
        }
    }

    #[test]
    fn requests_of_different_hosts_are_matched_by_their_paths() {
        let first = media(vec![
            request("https://old.test/", "old.test", "Document", 1_000),
            request("https://old.test/app.js", "old.test", SCRIPT, 50_000),
            request("https://old.test/same.css", "old.test", "Stylesheet", 700),
            request("https://cdn.test/a.js", "cdn.test", SCRIPT, 900),
        ]);
        let second = media(vec![
            request("https://new.test/", "new.test", "Document", 1_050),
            request("https://new.test/app.js", "new.test", SCRIPT, 20_000),
            request("https://new.test/same.css", "new.test", "Stylesheet", 700),
            request("https://new.test/hero.webp", "new.test", "Image", 4_000),
            request("https://cdn.test/a.js", "cdn.test", SCRIPT, 900),
        ]);
        let expected = [
            ("/app.js", [Some(50_000), Some(20_000)]),
            ("/hero.webp", [None, Some(4_000)]),
        ];
        let expected = expected.map(|(url, bytes)| DifferentRequest {
            url: url.to_owned(),
            bytes,
        });
        assert_eq!(different_requests([&first, &second]), expected);
        let rows = evidence([&first, &second]);
        let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap().values;
        assert_eq!(row("Requests"), [4.0, 5.0]);
        assert_eq!(row("Transferred scripts"), [50_900.0, 20_900.0]);
    }

    #[test]
    fn a_url_that_is_requested_twice_counts_with_both_responses() {
        let page = |times: usize| {
            let pixel = request("https://a.test/pixel", "a.test", "Image", 600);
            media(vec![pixel; times])
        };
        let different = different_requests([&page(1), &page(2)]);
        assert_eq!(different[0].bytes, [Some(600), Some(1_200)]);
    }

    #[test]
    fn a_page_of_which_requests_are_left_out_may_have_requested_the_others() {
        let request = |path: &str| {
            let url = format!("https://a.test{path}");
            request(&url, "a.test", "Image", 1_000)
        };
        let first = media(vec![
            request("/"),
            request("/a"),
            request("/b"),
            request("/c"),
        ]);
        let second = ReportMedia {
            requests_left_out: 7,
            ..media(vec![
                request("/"),
                request("/"),
                request("/c"),
                request("/d"),
            ])
        };
        let urls = |media| -> Vec<String> {
            let different = different_requests(media).into_iter();
            different.map(|request| request.url).collect()
        };
        assert_eq!(urls([&first, &second]), ["/", "/d"]);
        assert_eq!(urls([&second, &first]), ["/", "/d"]);
        let rows = evidence([&first, &second]);
        assert_eq!(rows[0].values, [4.0, 11.0]);
    }

    #[test]
    fn at_most_twenty_requests_are_listed() {
        let requests = (0..30_u64).map(|number| {
            let url = format!("https://a.test/{number}");
            request(&url, "a.test", "Image", 1_000 + number)
        });
        let different = different_requests([&media(requests.collect()), &media(Vec::new())]);
        assert_eq!(different.len(), MAX_REQUESTS);
        assert_eq!(different[0].url, "/29");
    }
}
