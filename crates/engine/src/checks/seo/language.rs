//! Language subtags, the first part of a language tag (BCP 47).

/// Returns whether a subtag is one of the registry's languages of two or three lower-case letters.
pub(super) fn is_language(subtag: &str) -> bool {
    let (Some(start), Some(end)) = (subtag.get(..2), subtag.get(2..)) else {
        return false;
    };
    let third = match end {
        "" => ".",
        letter if letter.len() == 1 => letter,
        _ => return false,
    };
    include_str!("language_subtags.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .any(|(letters, thirds)| letters == start && thirds.contains(third))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_registered_subtags_are_languages() {
        for subtag in ["en", "de", "ja", "yue", "gsw", "haw", "iw"] {
            assert!(is_language(subtag), "{subtag}");
        }
        for subtag in ["", "e", "xx", "uk-", "EN", "eng1", "nope", "é", "ée", "e."] {
            assert!(!is_language(subtag), "{subtag}");
        }
    }
}
