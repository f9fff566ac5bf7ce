use crate::checks::{Outcome, check};
use crate::facts::{DocumentStart, Facts, MainResource, Metas, Missing};

check! {
    /// # What
    /// The page declares its character encoding early.
    ///
    /// # Why
    /// A browser that has to guess the encoding may show wrong characters or parse the document
    /// twice.
    ///
    /// # Scored
    /// Passes when the `Content-Type` header names a charset, when the document begins with a byte
    /// order mark, or when a `<meta>` within its first 1024 characters names a charset.
    ///
    /// # Fix
    /// Send `Content-Type: text/html; charset=utf-8`, or make `<meta charset="utf-8">` the first
    /// element of the head.
    ///
    /// # Source
    /// Lighthouse 13.5, `dobetterweb/charset`; the HTML standard on encoding declarations.
    id: "charset",
    pass: "Charset is declared",
    fail: "Charset is declared too late or not at all",
    learn: "https://developer.chrome.com/docs/lighthouse/best-practices/charset/",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let main = facts.get::<MainResource>()?;
    let document = facts.get::<DocumentStart>()?;
    let metas = facts.get::<Metas>()?;
    let is_in_header = main
        .header("content-type")
        .next()
        .is_some_and(names_charset);
    let is_marked = document.start.starts_with('\u{feff}');
    let is_in_meta = || {
        has_charset_meta(beginning(&document.start))
            && metas.0.iter().any(|meta| {
                is_charset_name(&meta.charset)
                    || (meta.http_equiv == "content-type" && names_charset(&meta.content))
            })
    };
    Ok(if is_in_header || is_marked || is_in_meta() {
        Outcome::pass()
    } else {
        Outcome::fail(
            "No character encoding is declared in the header or the first 1024 characters.",
        )
    })
}

/// Returns the first 1024 UTF-16 code units, which is how JavaScript counts characters.
fn beginning(text: &str) -> &str {
    const MAX_UNITS: usize = 1024;
    let mut units = 0;
    let end = text.char_indices().find(|(_, c)| {
        units += c.len_utf16();
        units > MAX_UNITS
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// Returns whether there is a `<meta` tag with `charset` in it that is closed before the next tag.
fn has_charset_meta(html: &str) -> bool {
    let html = html.to_ascii_lowercase();
    html.split("<meta").skip(1).any(|rest| {
        let end = rest.find('>').unwrap_or(rest.len());
        rest.match_indices("charset")
            .take_while(|(at, _)| *at < end)
            .filter(|(at, _)| *at > 0)
            .any(|(at, word)| {
                let value = rest[at + word.len()..]
                    .split('<')
                    .next()
                    .unwrap_or_default();
                value.chars().skip(1).any(|c| c == '>')
            })
    })
}

fn is_charset_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_:.()".contains(c)
}

/// Returns whether a name has the form of the charset names that IANA lists.
fn is_charset_name(name: &str) -> bool {
    name.len() >= 2 && name.chars().all(is_charset_char)
}

/// Returns whether the text contains `charset`, an equals sign, and at least two characters of a
/// name.
fn names_charset(content: &str) -> bool {
    let content = content.to_ascii_lowercase();
    content.split("charset").skip(1).any(|rest| {
        rest.trim_start().strip_prefix('=').is_some_and(|value| {
            let name = value.trim_start().chars();
            name.take_while(|c| is_charset_char(*c)).take(2).count() == 2
        })
    })
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn visit(document: &str, metas: &str) -> Visit {
        let start = serde_json::json!({ "start": document }).to_string();
        Visit::new()
            .with("main-document", &start)
            .with("metas", metas)
    }

    #[test]
    fn a_header_a_byte_order_mark_or_an_early_element_passes() {
        let headed = visit("<html>", "[]").header("Content-Type", "text/html; Charset = utf-8");
        assert_eq!(headed.verdict(CHECK), Verdict::Pass);
        assert_eq!(visit("\u{feff}<html>", "[]").verdict(CHECK), Verdict::Pass);
        let short = visit("<meta charset=utf-8>", r#"[{"charset": "utf-8"}]"#);
        assert_eq!(short.verdict(CHECK), Verdict::Pass);
        let long = visit(
            r#"<META http-equiv="Content-Type" content="text/html; charset=utf-8">"#,
            r#"[{"httpEquiv": "content-type", "content": "text/html; charset=utf-8"}]"#,
        );
        assert_eq!(long.verdict(CHECK), Verdict::Pass);
    }

    #[test]
    fn a_late_or_empty_declaration_fails() {
        let late = format!("{}<meta charset=utf-8>", " ".repeat(1024));
        let metas = r#"[{"charset": "utf-8"}]"#;
        assert_eq!(visit(&late, metas).verdict(CHECK), Verdict::Fail);
        assert_eq!(
            visit("<meta charset=utf-8>", "[]").verdict(CHECK),
            Verdict::Fail
        );
        let empty = visit("<meta charset=''>", r#"[{"charset": ""}]"#);
        assert_eq!(empty.verdict(CHECK), Verdict::Fail);
        assert_eq!(
            visit("<metacharset=x>", metas).verdict(CHECK),
            Verdict::Fail
        );
        let bare = visit("<html>", "[]").header("content-type", "text/html; charset=");
        assert_eq!(bare.verdict(CHECK), Verdict::Fail);
    }

    #[test]
    fn without_the_document_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
