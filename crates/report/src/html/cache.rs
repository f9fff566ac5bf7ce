//! The part that the cache had in a visit with a warm cache.

use plumbline_model::cache_use::{CacheUse, RequestGroup};

use super::figures::{bytes, count};
use super::links::Link;

/// The use of the cache as a page shows it.
pub(super) struct CacheView<'a> {
    pub(super) summary: String,
    /// Name, number of requests and size of each group.
    pub(super) groups: [(&'static str, u64, String); 3],
    pub(super) cacheable: Vec<CacheableView<'a>>,
}

/// A file that could have been cached.
pub(super) struct CacheableView<'a> {
    pub(super) link: Link,
    pub(super) bytes: String,
    pub(super) reason: &'a str,
}

/// Returns the use of the cache by the page with this URL.
pub(super) fn cache_view<'a>(cache: &'a CacheUse, page_url: &str) -> CacheView<'a> {
    let row = |name, group: RequestGroup| (name, group.requests, bytes(group.bytes));
    CacheView {
        summary: summary(cache),
        groups: [
            row("Answered by the cache", cache.cached),
            row("Confirmed by the server", cache.revalidated),
            row("Transferred", cache.transferred),
        ],
        cacheable: cache
            .cacheable
            .iter()
            .map(|file| CacheableView {
                link: Link::new(&file.url, page_url),
                bytes: bytes(file.bytes),
                reason: &file.reason,
            })
            .collect(),
    }
}

/// Returns a sentence that says what the cache saved.
pub(crate) fn summary(cache: &CacheUse) -> String {
    let saved = cache.cached.bytes.saturating_add(cache.revalidated.bytes);
    let all = saved.saturating_add(cache.transferred.bytes);
    let share = (saved as f64 * 100.0 / all.max(1) as f64).floor();
    let revalidated = match usize::try_from(cache.revalidated.requests).unwrap_or(usize::MAX) {
        0 => String::new(),
        number => format!(
            "; {} waited for a server to confirm the stored response",
            count(number, "request", "requests")
        ),
    };
    format!(
        "The cache saved {} of {} ({share} %){revalidated}.",
        bytes(saved),
        bytes(all)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_what_was_saved_and_what_was_confirmed() {
        let group = |requests, bytes| RequestGroup { requests, bytes };
        let cache = CacheUse {
            cached: group(3, 60_000),
            revalidated: group(1, 15_000),
            transferred: group(2, 25_000),
            cacheable: Vec::new(),
        };
        let text = summary(&cache).replace('\u{a0}', " ");
        assert!(
            text.contains("(75 %)") && text.contains("1 request waited"),
            "{text}"
        );
        let invented = CacheUse {
            cached: group(1, u64::MAX),
            ..cache
        };
        assert!(summary(&invented).contains("(100 %)"));
        let text = summary(&CacheUse::default());
        assert!(text.contains("(0 %)") && !text.contains("waited"), "{text}");
    }
}
