//! Percent-encoding (RFC 3986, 2.1).

/// Decodes `%XX`. Bytes that are not UTF-8 are replaced.
pub fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut output = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let digits = digits.and_then(|it| std::str::from_utf8(it).ok());
        let digits = digits.filter(|it| it.bytes().all(|c| c.is_ascii_hexdigit()));
        match digits.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(byte) => {
                output.push(byte);
                at += 3;
            }
            None => {
                output.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&output).into_owned()
}

/// Encodes everything but letters, digits and a few signs.
pub fn encode(text: &str, unencoded_signs: &str) -> String {
    let mut output = String::with_capacity(text.len());
    for byte in text.bytes() {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || unencoded_signs.contains(c) {
            output.push(c);
        } else {
            output.push_str(&format!("%{byte:02X}"));
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_sequences_stay() {
        assert_eq!(decode("a%2Bb%2bc%zz%+1%4"), "a+b+c%zz%+1%4");
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(text in "\\PC{0,20}") {
            prop_assert_eq!(decode(&encode(&text, "-_.~")), text);
        }
    }
}
