//! Error messages for unknown ids, with suggestions.

/// The similarity from which an id is suggested. clap uses the same for unknown arguments.
const MIN_SIMILARITY: f64 = 0.7;

/// Returns the error message for an id that is not among `ids`. `kind` is the singular
/// noun, such as `device`.
pub fn unknown_id<'a>(kind: &str, id: &str, ids: impl Iterator<Item = &'a str>) -> String {
    let ids: Vec<&str> = ids.collect();
    let list = ids.join(", ");
    match closest(id, &ids) {
        Some(suggestion) => {
            format!("unknown {kind} `{id}`, did you mean `{suggestion}`? Known {kind}s: {list}")
        }
        None => format!("unknown {kind} `{id}`; known {kind}s: {list}"),
    }
}

fn closest<'a>(id: &str, ids: &[&'a str]) -> Option<&'a str> {
    let id = id.to_lowercase();
    let similarity = |other: &str| strsim::jaro_winkler(&id, &other.to_lowercase());
    ids.iter()
        .map(|other| (similarity(other), *other))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_id_is_suggested_and_all_ids_are_listed() {
        let message = |id: &str| unknown_id("device", id, ["mobile", "iphone7"].into_iter());
        assert_eq!(
            message("phone"),
            "unknown device `phone`, did you mean `iphone7`? Known devices: mobile, iphone7"
        );
        assert_eq!(
            message("toaster"),
            "unknown device `toaster`; known devices: mobile, iphone7"
        );
    }
}
