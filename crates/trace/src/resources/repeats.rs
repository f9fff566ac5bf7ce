//! Detects polling: requests that a page repeats after the load and that do not belong to it.

use std::collections::HashSet;

use super::{Resource, Resources};

impl Resources {
    /// Moves requests after the given time to `repeats` if their URL was requested before.
    pub fn separate_repeats(&mut self, after_us: f64) {
        let mut urls: HashSet<String> = HashSet::new();
        let resources = std::mem::take(&mut self.all);
        (self.all, self.repeats) = resources.into_iter().partition(|resource| {
            let is_new = urls.insert(url_of(resource).to_owned());
            is_new || resource.start_us <= after_us
        });
    }
}

/// Returns the URL that identifies a repeated request. For requests by scripts it excludes the
/// query, which often contains a timestamp.
fn url_of(resource: &Resource) -> &str {
    let is_script_request = matches!(resource.fetch_kind.as_str(), "xmlhttprequest" | "fetch");
    match resource.url.split_once('?') {
        Some((address, _)) if is_script_request => address,
        _ => &resource.url,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::exchanges::Exchange;

    fn resource(kind: &str, url: &str, start_us: f64) -> Resource {
        Resource {
            exchange: Arc::new(Exchange {
                url: url.to_owned(),
                id: format!("{url} {start_us}"),
                ..Exchange::default()
            }),
            fetch_kind: kind.to_owned(),
            start_us,
            ..Resource::default()
        }
    }

    fn partition_starts(all: Vec<Resource>, after_us: f64) -> (Vec<f64>, Vec<f64>) {
        let mut resources = Resources {
            all,
            ..Resources::default()
        };
        resources.separate_repeats(after_us);
        for resource in resources.all.iter().chain(&resources.repeats) {
            assert!(resources.by_id(&resource.id).is_some());
        }
        let starts = |of: &[Resource]| of.iter().map(|resource| resource.start_us).collect();
        (starts(&resources.all), starts(&resources.repeats))
    }

    #[test]
    fn repeated_requests_after_the_load_are_removed_and_new_ones_are_not() {
        let all = vec![
            resource("xmlhttprequest", "https://a.test/health", 1.0),
            resource("xmlhttprequest", "https://a.test/health", 2.0),
            resource("xmlhttprequest", "https://a.test/health", 11.0),
            resource("script", "https://a.test/chat.js", 12.0),
            resource("script", "https://a.test/chat.js", 13.0),
        ];
        assert_eq!(
            partition_starts(all, 10.0),
            (vec![1.0, 2.0, 12.0], vec![11.0, 13.0])
        );
    }

    #[test]
    fn a_request_that_differs_only_in_a_timestamp_is_repeated() {
        let twice = |kind: &str| {
            let all = vec![
                resource(kind, "https://a.test/poll?t=1", 1.0),
                resource(kind, "https://a.test/poll?t=2", 11.0),
            ];
            partition_starts(all, 10.0).1.len()
        };
        assert_eq!((twice("fetch"), twice("xmlhttprequest")), (1, 1));
        assert_eq!(twice("img"), 0);
    }
}
