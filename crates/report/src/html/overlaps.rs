//! Fixes whose savings come from the same files, so that they do not add up.

use std::collections::BTreeSet;

use plumbline_model::check::{Cell, CheckResult, Details, Row, Savings};

use super::links::Link;

/// The check whose savings concern later visits, and not the requests of this one.
const CACHE_CHECK: &str = "cache-insight";
/// The check whose savings are those of all work of the main thread.
const WORK_CHECK: &str = "mainthread-work-breakdown";
/// The most files named in a sentence.
const MAX_FILES: usize = 2;

/// Returns a sentence for each check that names the other checks with savings from the same files;
/// `None` for a check without such others.
pub(super) fn overlaps(checks: &[&CheckResult], page_url: &str) -> Vec<Option<String>> {
    let files: Vec<BTreeSet<&str>> = checks.iter().map(|check| files(check)).collect();
    let sentence = |index: usize| {
        let mut titles = Vec::new();
        let mut shared: BTreeSet<&str> = BTreeSet::new();
        for (other, check) in checks.iter().enumerate() {
            let common: Vec<&str> = files[index].intersection(&files[other]).copied().collect();
            let are_related =
                !common.is_empty() || [checks[index], check].iter().any(|it| it.id == WORK_CHECK);
            if other != index && are_related && save_the_same(checks[index], check) {
                titles.push(format!("“{}”", check.title));
                shared.extend(common);
            }
        }
        (!titles.is_empty()).then(|| {
            let place = match shared.is_empty() {
                true => String::new(),
                false => format!(" in {}", listed(&shared, page_url)),
            };
            let titles = titles.join(", ");
            format!("Overlaps with {titles}{place}: their savings do not add up.")
        })
    };
    (0..checks.len()).map(sentence).collect()
}

fn listed(files: &BTreeSet<&str>, page_url: &str) -> String {
    let shown = files.iter().take(MAX_FILES);
    let shown: Vec<String> = shown.map(|url| Link::new(url, page_url).text).collect();
    match files.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Whether two checks save bytes, or time of the same metric.
fn save_the_same(a: &CheckResult, b: &CheckResult) -> bool {
    let figures = |savings: &Savings| {
        [
            savings.wasted_bytes,
            savings.fcp_ms,
            savings.lcp_ms,
            savings.tbt_ms,
            savings.cls,
        ]
        .map(|saved| saved.is_some_and(|saved| saved > 0.0))
    };
    let (Some(a), Some(b)) = (&a.savings, &b.savings) else {
        return false;
    };
    figures(a).into_iter().zip(figures(b)).any(|(a, b)| a && b)
}

/// Returns the URLs of the files that a check names.
fn files(check: &CheckResult) -> BTreeSet<&str> {
    let mut urls = BTreeSet::new();
    if check.id != CACHE_CHECK
        && let Some(details) = &check.details
    {
        collect(details, &mut urls);
    }
    urls
}

fn collect<'d>(details: &'d Details, urls: &mut BTreeSet<&'d str>) {
    match details {
        Details::Urls { items } => urls.extend(items.iter().map(|item| item.url.as_str())),
        Details::Findings(findings) => collect_rows(&findings.rows, urls),
        Details::Parts { items } => items.iter().for_each(|part| collect(part, urls)),
        _ => {}
    }
}

fn collect_rows<'d>(rows: &'d [Row], urls: &mut BTreeSet<&'d str>) {
    for row in rows {
        urls.extend(row.cells.iter().filter_map(|cell| match cell {
            Cell::Url(url) => Some(url.as_str()),
            Cell::Source(place) => Some(place.url.as_str()),
            _ => None,
        }));
        collect_rows(&row.sub_rows, urls);
    }
    urls.remove("");
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::{Findings, Unit};
    use serde_json::json;

    use super::*;

    fn check(id: &str, savings: Savings, files: &[&str]) -> CheckResult {
        let rows = files
            .iter()
            .map(|file| Row::new([Cell::url(format!("https://a.test{file}"))]));
        let details = Findings::new([("url", "URL", Unit::Url)]).rows(rows);
        serde_json::from_value(json!({
            "id": id, "title": id, "verdict": "fail", "weight": 0.0, "score": 0.0,
            "group": "insights", "why": "", "fix": "", "savings": savings,
            "details": Details::from(details),
        }))
        .unwrap()
    }

    #[test]
    fn checks_that_save_the_same_of_one_file_overlap() {
        let unused = check("unused", Savings::bytes(9000.0), &["/app.js", "/b.js"]);
        let legacy = check("legacy", Savings::bytes(4000.0), &["/app.js"]);
        let blocking = check("blocking", Savings::paints(100.0, 0.0), &["/app.js"]);
        let images = check("images", Savings::bytes(100.0), &["/a.png"]);
        let cache = check("cache-insight", Savings::bytes(9000.0), &["/app.js"]);
        let checks = [&unused, &legacy, &blocking, &images, &cache];
        let sentences = overlaps(&checks, "https://a.test/");
        let sentence = |other: &str| {
            format!("Overlaps with “{other}” in /app.js: their savings do not add up.")
        };
        assert_eq!(
            sentences,
            [
                Some(sentence("legacy")),
                Some(sentence("unused")),
                None,
                None,
                None
            ]
        );
    }

    #[test]
    fn all_work_of_the_main_thread_contains_that_of_scripts() {
        let blocking = |tbt_ms| Savings {
            tbt_ms: Some(tbt_ms),
            ..Savings::default()
        };
        let work = check(WORK_CHECK, blocking(500.0), &[]);
        let scripts = check("bootup-time", blocking(200.0), &["/app.js"]);
        let images = check("images", Savings::bytes(100.0), &["/a.png"]);
        let sentences = overlaps(&[&work, &scripts, &images], "https://a.test/");
        let expected = [
            Some("Overlaps with “bootup-time”: their savings do not add up."),
            Some("Overlaps with “mainthread-work-breakdown”: their savings do not add up."),
            None,
        ];
        assert_eq!(
            sentences.iter().map(Option::as_deref).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn a_few_files_are_named() {
        let files = ["/a.js", "/b.js", "/c.js", "/d.js"];
        let a = check("a", Savings::paints(100.0, 50.0), &files);
        let b = check("b", Savings::paints(0.0, 50.0), &files);
        let sentences = overlaps(&[&a, &b], "https://a.test/");
        let expected = "Overlaps with “b” in /a.js, /b.js and 2 more: their savings do not add up.";
        assert_eq!(sentences[0].as_deref(), Some(expected));
    }
}
