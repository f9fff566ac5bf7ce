use crate::{Change, Pattern, RecordedExchange, RecordedResponse, Recording};

/// Texts of style sheets that are replaced so that text is shown before its font has come. The
/// rules of a font get the declaration first, so that one that they have counts instead, unless it
/// hides the text.
const REPLACEMENTS: [(&str, &str); 8] = [
    ("@font-face{", "@font-face{font-display:swap;"),
    ("@font-face {", "@font-face {font-display:swap;"),
    ("@font-face\n{", "@font-face\n{font-display:swap;"),
    ("@font-face\r\n{", "@font-face\r\n{font-display:swap;"),
    ("font-display:block", "font-display:swap"),
    ("font-display: block", "font-display: swap"),
    ("font-display:auto", "font-display:swap"),
    ("font-display: auto", "font-display: swap"),
];

/// Returns changes by which text is shown in another font until its own has come.
pub(super) fn shown_at_once(recording: &Recording) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for exchange in recording.exchanges.iter().filter(|it| has_styles(it)) {
        let content = exchange
            .response
            .as_ref()
            .map(RecordedResponse::decoded_body);
        let Some(Ok(content)) = content else {
            continue;
        };
        let content = String::from_utf8_lossy(&content);
        for (from, to) in REPLACEMENTS {
            let change = Change::ReplaceText {
                pattern: Pattern::exact(&exchange.url()),
                from: from.to_owned(),
                to: to.to_owned(),
            };
            // A style sheet may have been requested twice.
            if content.contains(from) && !changes.contains(&change) {
                changes.push(change);
            }
        }
    }
    changes
}

fn has_styles(exchange: &RecordedExchange) -> bool {
    let response = exchange.response.as_ref();
    exchange.is_document() || response.is_some_and(|it| it.media_type() == "text/css")
}
