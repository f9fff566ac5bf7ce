//! Parts of paths that change with every visit or every release.

/// The character that stands for a volatile part in a shape. It is never part of a path, in which
/// it is percent-encoded.
const PLACEHOLDER: &str = "\u{0}";

/// The length from which a number is a timestamp or an id rather than a page or a year.
const MIN_DIGITS: usize = 6;

/// The length from which hexadecimal digits are a hash. Shorter ones may be words or versions.
const MIN_HEX_DIGITS: usize = 7;

/// The length from which letters with digits are a random id.
const MIN_ID_CHARS: usize = 16;

/// Returns a path with a placeholder for each volatile part, so that paths that differ in these
/// only have the same shape.
pub fn shape(path: &str) -> String {
    let segments = path.split('/').map(segment_shape);
    segments.collect::<Vec<_>>().join("/")
}

/// Segments are split further, since hashes are usually part of a file name: `main.3f9a1c7e.js`.
fn segment_shape(segment: &str) -> String {
    if is_uuid(segment) {
        return PLACEHOLDER.to_owned();
    }
    let mut shape = String::with_capacity(segment.len());
    let mut rest = segment;
    loop {
        let end = rest.find(is_separator).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        shape.push_str(if is_volatile(word) { PLACEHOLDER } else { word });
        let Some(separator) = tail.chars().next() else {
            return shape;
        };
        shape.push(separator);
        rest = &tail[separator.len_utf8()..];
    }
}

fn is_separator(c: char) -> bool {
    ".-_~,;:=@!+()".contains(c)
}

/// Returns whether a word is a timestamp, a large number, a hash or a random id.
fn is_volatile(word: &str) -> bool {
    let count = |is_kind: fn(&char) -> bool| word.chars().filter(is_kind).count();
    let length = word.len();
    let digits = count(char::is_ascii_digit);
    let is_number = digits == length && length >= MIN_DIGITS;
    let is_hash =
        count(char::is_ascii_hexdigit) == length && length >= MIN_HEX_DIGITS && digits > 0;
    let is_id = count(char::is_ascii_alphanumeric) == length
        && length >= MIN_ID_CHARS
        && digits > 0
        && digits < length;
    is_number || is_hash || is_id
}

/// Returns whether a segment is a UUID: 8, 4, 4, 4 and 12 hexadecimal digits.
fn is_uuid(segment: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let parts: Vec<_> = segment.split('-').collect();
    let is_part = |(part, length): (&&str, &usize)| {
        part.len() == *length && part.chars().all(|c| c.is_ascii_hexdigit())
    };
    parts.len() == lengths.len() && parts.iter().zip(&lengths).all(is_part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn timestamps_hashes_and_ids_do_not_count() {
        for (ours, theirs) in [
            ("/a/1700000000123/b", "/a/1700000999999/b"),
            ("/js/main.3f9a1c7e.js", "/js/main.00aa11bb.js"),
            ("/js/main-3f9a1c7.js", "/js/main-a0b1c2d.js"),
            (
                "/s/6f1c2d3e-0a1b-4c2d-8e3f-001122334455",
                "/s/aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
            ),
            ("/x/aB3dE5fG7hJ9kL1m/y", "/x/zZ3dE5fG7hJ9kL1m/y"),
        ] {
            assert_eq!(shape(ours), shape(theirs));
        }
    }

    #[test]
    fn names_pages_versions_and_words_count() {
        for path in [
            "/",
            "/page/2",
            "/2026/11/18/title",
            "/jquery-3.7.1.min.js",
            "/facade/decade/accede",
            "/internationalization",
            "/img/hero@2x.png",
            "/é/ü",
        ] {
            assert_eq!(shape(path), path);
        }
    }

    proptest! {
        #[test]
        fn the_number_of_segments_stays(path in "(/[a-zé0-9.-]{0,12}){1,5}") {
            let segments = |path: &str| path.matches('/').count();
            prop_assert_eq!(segments(&shape(&path)), segments(&path));
        }
    }
}
