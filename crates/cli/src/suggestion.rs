//! Error messages for unknown ids, with suggestions.

use plumbline_catalog::Catalog;

/// The similarity from which an id is suggested. clap uses the same for unknown arguments.
const MIN_SIMILARITY: f64 = 0.7;
/// The most ids that are suggested.
const MAX_SUGGESTIONS: usize = 5;
/// The shortest part of an id or name by which it is found.
const MIN_PART_CHARS: usize = 2;

/// Words for kinds of devices, each with the device of the built-in catalog that stands for them.
const DEVICE_WORDS: [(&str, &[&str]); 2] = [
    (
        "mobile",
        &["phone", "smartphone", "cellphone", "handy", "android"],
    ),
    ("desktop", &["pc", "laptop", "notebook", "computer"]),
];

/// Returns the error message for a device that the catalog does not have.
pub fn unknown_device(catalog: &Catalog, id: &str) -> String {
    let devices = catalog.devices().iter();
    let entries = devices.map(|it| (it.id.as_str(), it.name.as_str()));
    message("device", id, &entries.collect::<Vec<_>>())
}

/// Returns the error message for a network that the catalog does not have.
pub fn unknown_network(catalog: &Catalog, id: &str) -> String {
    let networks = catalog.networks().iter();
    let entries = networks.map(|it| (it.id.as_str(), it.name.as_str()));
    message("network", id, &entries.collect::<Vec<_>>())
}

/// Returns the error message for a location that the catalog does not have.
pub fn unknown_location(catalog: &Catalog, id: &str) -> String {
    let locations = catalog.locations().iter();
    let entries = locations.map(|it| (it.id.as_str(), it.name.as_str()));
    message("location", id, &entries.collect::<Vec<_>>())
}

/// Returns the error message for an id that is not among `ids`. `kind` is the singular
/// noun, such as `setting`.
pub fn unknown_id<'a>(kind: &str, id: &str, ids: impl Iterator<Item = &'a str>) -> String {
    message(kind, id, &ids.map(|id| (id, "")).collect::<Vec<_>>())
}

/// Returns the error message for a check that does not exist. There are too many to list.
pub fn unknown_check(id: &str, ids: &[&str]) -> String {
    let entries: Vec<(&str, &str)> = ids.iter().map(|id| (*id, "")).collect();
    let question = question(id, &entries);
    format!("unknown check `{id}`{question}; docs/checks.md lists all checks")
}

/// Returns the error message for an id that is not among these ids and names.
fn message(kind: &str, id: &str, entries: &[(&str, &str)]) -> String {
    let ids: Vec<&str> = entries.iter().map(|(id, _)| *id).collect();
    let question = question(id, entries);
    format!(
        "unknown {kind} `{id}`{question}; known {kind}s: {}",
        ids.join(", ")
    )
}

/// Returns the question after an unknown id; empty if nothing is similar to it.
fn question(id: &str, entries: &[(&str, &str)]) -> String {
    let quoted: Vec<String> = suggestions(id, entries)
        .into_iter()
        .map(|id| format!("`{id}`"))
        .collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => format!(" (did you mean {only}?)"),
        Some((last, others)) => format!(" (did you mean {} or {last}?)", others.join(", ")),
    }
}

/// Returns what a user may have meant: the device that a word stands for, then the most similar of
/// the entries that contain the text, or else the most similar id.
fn suggestions<'a>(text: &str, entries: &[(&'a str, &str)]) -> Vec<&'a str> {
    let text = normalized(text);
    let similarity = |id: &str| strsim::jaro_winkler(&text, &normalized(id));
    let mut by_similarity: Vec<(f64, (&str, &str))> = entries
        .iter()
        .map(|entry| (similarity(entry.0), *entry))
        .collect();
    by_similarity.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let device = DEVICE_WORDS
        .iter()
        .find(|(_, words)| words.contains(&text.as_str()))
        .and_then(|(device, _)| entries.iter().find(|(id, _)| id == device));
    let containing = by_similarity
        .iter()
        .filter(|(_, entry)| text.len() >= MIN_PART_CHARS && contains(*entry, &text));
    let mut suggested: Vec<&str> = device.map(|(id, _)| *id).into_iter().collect();
    suggested.extend(containing.map(|(_, (id, _))| *id));
    suggested.truncate(MAX_SUGGESTIONS);
    if suggested.is_empty() {
        let closest = by_similarity.first();
        let closest = closest.filter(|(similarity, _)| *similarity >= MIN_SIMILARITY);
        suggested.extend(closest.map(|(_, (id, _))| *id));
    }
    suggested
}

/// Returns whether the id or the name contains a normalized text. Names end with details in
/// parentheses, whose digits would be found by accident.
fn contains((id, name): (&str, &str), text: &str) -> bool {
    let name = name.split('(').next().unwrap_or_default();
    [id, name]
        .map(normalized)
        .iter()
        .any(|it| it.contains(text))
}

/// Returns the letters and digits in lower case.
fn normalized(text: &str) -> String {
    let plain = text.chars().filter(|c| c.is_alphanumeric());
    plain.flat_map(char::to_lowercase).collect()
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
    fn words_and_parts_of_ids_and_names_are_found() {
        let catalog = Catalog::load(plumbline_catalog::BUILT_IN).unwrap();
        let question = |message: String| {
            let question = message.split_once(" (").map(|(_, rest)| rest.to_owned());
            let question = question.and_then(|it| Some(it.split_once("?)")?.0.to_owned()));
            question.unwrap_or_default()
        };
        for (id, expected) in [
            ("phone", "did you mean `mobile`, "),
            ("Handy", "did you mean `mobile`"),
            ("laptop", "did you mean `desktop` or `highEndLaptop`"),
            ("pc", "did you mean `desktop`"),
            ("mobil", "did you mean `mobile`"),
            ("moto g power", "did you mean `mobile`"),
            ("toaster", ""),
        ] {
            let question = question(unknown_device(&catalog, id));
            assert!(question.starts_with(expected), "{id}: {question}");
            assert_eq!(question.is_empty(), expected.is_empty(), "{id}");
        }
        for (id, expected) in [
            ("slow4g", "did you mean `mobileSlow4g`"),
            ("slow-4g", "did you mean `mobileSlow4g`"),
            (
                "4g",
                "did you mean `normal4gFast`, `desktopDense4G`, `normal4g`, `mobileSlow4g` or ",
            ),
            ("pigeon", ""),
        ] {
            let question = question(unknown_network(&catalog, id));
            assert!(question.starts_with(expected), "{id}: {question}");
        }
        let location = question(unknown_location(&catalog, "Frankfurt"));
        assert!(location.starts_with("did you mean `"), "{location}");
    }
}
