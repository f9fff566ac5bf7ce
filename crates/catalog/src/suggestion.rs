//! Suggestions for ids that the catalog does not have.

use crate::Catalog;

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

impl Catalog {
    /// Returns the devices that an unknown id may stand for, such as "`mobile` or `desktop`".
    pub fn suggested_devices(&self, id: &str) -> Option<String> {
        let devices = self.devices().iter();
        let entries = devices.map(|it| (it.id.as_str(), it.name.as_str()));
        suggested(id, &entries.collect::<Vec<_>>())
    }

    /// Returns the networks that an unknown id may stand for.
    pub fn suggested_networks(&self, id: &str) -> Option<String> {
        let networks = self.networks().iter();
        let entries = networks.map(|it| (it.id.as_str(), it.name.as_str()));
        suggested(id, &entries.collect::<Vec<_>>())
    }

    /// Returns the locations that an unknown id may stand for.
    pub fn suggested_locations(&self, id: &str) -> Option<String> {
        let locations = self.locations().iter();
        let entries = locations.map(|it| (it.id.as_str(), it.name.as_str()));
        suggested(id, &entries.collect::<Vec<_>>())
    }
}

/// Returns those of some ids, each with a name that may be empty, that an unknown id may stand for;
/// `None` if nothing is similar to it.
pub fn suggested(id: &str, entries: &[(&str, &str)]) -> Option<String> {
    let quoted: Vec<String> = suggestions(id, entries)
        .into_iter()
        .map(|id| format!("`{id}`"))
        .collect();
    match quoted.split_last() {
        None => None,
        Some((only, [])) => Some(only.clone()),
        Some((last, others)) => Some(format!("{} or {last}", others.join(", "))),
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
    fn words_and_parts_of_ids_and_names_are_found() {
        let catalog = Catalog::load(crate::BUILT_IN).unwrap();
        for (id, expected) in [
            ("phone", "`mobile`, "),
            ("Handy", "`mobile`"),
            ("laptop", "`desktop` or `highEndLaptop`"),
            ("pc", "`desktop`"),
            ("mobil", "`mobile`"),
            ("moto g power", "`mobile`"),
            ("toaster", ""),
        ] {
            let suggested = catalog.suggested_devices(id).unwrap_or_default();
            assert!(suggested.starts_with(expected), "{id}: {suggested}");
            assert_eq!(suggested.is_empty(), expected.is_empty(), "{id}");
        }
        for (id, expected) in [
            ("slow4g", "`mobileSlow4g`"),
            ("slow-4g", "`mobileSlow4g`"),
            (
                "4g",
                "`normal4gFast`, `desktopDense4G`, `normal4g`, `mobileSlow4g` or ",
            ),
            ("pigeon", ""),
        ] {
            let suggested = catalog.suggested_networks(id).unwrap_or_default();
            assert!(suggested.starts_with(expected), "{id}: {suggested}");
            assert_eq!(suggested.is_empty(), expected.is_empty(), "{id}");
        }
        assert!(catalog.suggested_locations("Frankfurt").is_some());
    }
}
