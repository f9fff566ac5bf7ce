//! Error messages for unknown ids, with suggestions.

use plumbline_catalog::{Catalog, suggested};

/// Returns the error message for a device that the catalog does not have.
pub fn unknown_device(catalog: &Catalog, id: &str) -> String {
    let ids = catalog.devices().iter().map(|it| it.id.as_str());
    message("device", id, catalog.suggested_devices(id), ids)
}

/// Returns the error message for a network that the catalog does not have.
pub fn unknown_network(catalog: &Catalog, id: &str) -> String {
    let ids = catalog.networks().iter().map(|it| it.id.as_str());
    message("network", id, catalog.suggested_networks(id), ids)
}

/// Returns the error message for a location that the catalog does not have.
pub fn unknown_location(catalog: &Catalog, id: &str) -> String {
    let ids = catalog.locations().iter().map(|it| it.id.as_str());
    message("location", id, catalog.suggested_locations(id), ids)
}

/// Returns the error message for an id that is not among `ids`. `kind` is the singular
/// noun, such as `setting`.
pub fn unknown_id<'a>(kind: &str, id: &str, ids: impl Iterator<Item = &'a str> + Clone) -> String {
    let entries: Vec<(&str, &str)> = ids.clone().map(|id| (id, "")).collect();
    message(kind, id, suggested(id, &entries), ids)
}

/// Returns the error message for a check that does not exist. There are too many to list.
pub fn unknown_check(id: &str, ids: &[&str]) -> String {
    let entries: Vec<(&str, &str)> = ids.iter().map(|id| (*id, "")).collect();
    let question = question(suggested(id, &entries));
    format!("unknown check `{id}`{question}; docs/checks.md lists all checks")
}

fn message<'a>(
    kind: &str,
    id: &str,
    suggested: Option<String>,
    ids: impl Iterator<Item = &'a str>,
) -> String {
    let ids: Vec<&str> = ids.collect();
    let question = question(suggested);
    format!(
        "unknown {kind} `{id}`{question}; known {kind}s: {}",
        ids.join(", ")
    )
}

/// Returns the question after an unknown id; empty if nothing is similar to it.
fn question(suggested: Option<String>) -> String {
    suggested.map_or_else(String::new, |suggested| {
        format!(" (did you mean {suggested}?)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_id_is_suggested_and_all_ids_are_listed() {
        let message = |id: &str| unknown_id("setting", id, ["slots", "listen"].into_iter());
        assert_eq!(
            message("slost"),
            "unknown setting `slost` (did you mean `slots`?); known settings: slots, listen"
        );
        assert_eq!(
            message("toaster"),
            "unknown setting `toaster`; known settings: slots, listen"
        );
    }

    #[test]
    fn a_device_that_the_catalog_lacks_is_answered_with_similar_ones() {
        let catalog = Catalog::load(plumbline_catalog::BUILT_IN).unwrap();
        let message = unknown_device(&catalog, "laptop");
        let expected = "unknown device `laptop` (did you mean `desktop` or `highEndLaptop`?); known \
                        devices: mobile, ";
        assert!(message.starts_with(expected), "{message}");
    }
}
