//! Pages that ask their server again and again: each time is a request, and none of them belongs to the load.

use std::collections::HashSet;

use super::{Resource, Resources};

impl Resources {
    /// Sets aside what was asked for after this time and had been asked for before.
    pub fn set_aside_repeats(&mut self, after_us: f64) {
        let mut known: HashSet<String> = HashSet::new();
        let asked = std::mem::take(&mut self.all);
        (self.all, self.repeats) = asked.into_iter().partition(|resource| {
            let is_new = known.insert(address(resource).to_owned());
            is_new || resource.start_us <= after_us
        });
    }
}

/// What scripts ask for goes by its address without the query, in which many put the time of day.
fn address(resource: &Resource) -> &str {
    let is_asked_by_script = matches!(resource.fetch_kind.as_str(), "xmlhttprequest" | "fetch");
    match resource.url.split_once('?') {
        Some((address, _)) if is_asked_by_script => address,
        _ => &resource.url,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kind: &str, url: &str, start_us: f64) -> Resource {
        Resource {
            url: url.to_owned(),
            fetch_kind: kind.to_owned(),
            start_us,
            id: format!("{url} {start_us}"),
            ..Resource::default()
        }
    }

    fn kept(all: Vec<Resource>, after_us: f64) -> (Vec<f64>, Vec<f64>) {
        let mut resources = Resources {
            all,
            ..Resources::default()
        };
        resources.set_aside_repeats(after_us);
        for resource in resources.all.iter().chain(&resources.repeats) {
            assert!(resources.by_id(&resource.id).is_some());
        }
        let starts = |of: &[Resource]| of.iter().map(|resource| resource.start_us).collect();
        (starts(&resources.all), starts(&resources.repeats))
    }

    #[test]
    fn what_is_asked_for_again_after_the_load_is_set_aside_and_what_is_new_is_not() {
        let all = vec![
            asked("xmlhttprequest", "https://a.test/health", 1.0),
            asked("xmlhttprequest", "https://a.test/health", 2.0),
            asked("xmlhttprequest", "https://a.test/health", 11.0),
            asked("script", "https://a.test/chat.js", 12.0),
            asked("script", "https://a.test/chat.js", 13.0),
        ];
        assert_eq!(kept(all, 10.0), (vec![1.0, 2.0, 12.0], vec![11.0, 13.0]));
    }

    #[test]
    fn the_time_of_day_makes_a_scripts_question_no_other_one() {
        let twice = |kind: &str| {
            let all = vec![
                asked(kind, "https://a.test/poll?t=1", 1.0),
                asked(kind, "https://a.test/poll?t=2", 11.0),
            ];
            kept(all, 10.0).1.len()
        };
        assert_eq!((twice("fetch"), twice("xmlhttprequest")), (1, 1));
        assert_eq!(twice("img"), 0);
    }
}
