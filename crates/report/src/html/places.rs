//! The file and line that the details of a check name.

use plumbline_model::check::{Cell, Details, Row};

use super::links::Link;

/// Returns the first position in a file, as `/app.js:12:5`; the first file if no position is known.
pub(super) fn first(details: Option<&Details>, page_url: &str) -> Option<String> {
    let details = details?;
    position(details, page_url).or_else(|| file(details, page_url))
}

fn position(details: &Details, page_url: &str) -> Option<String> {
    match details {
        Details::Console { items } => items.iter().find_map(|line| {
            let position = at(line.line?, line.column.unwrap_or_default());
            let is_file = !line.url.is_empty();
            is_file.then(|| Link::to_position(&line.url, &position, page_url).text)
        }),
        Details::Findings(findings) => find_cell(&findings.rows, &|cell| match cell {
            Cell::Source(place) => {
                let position = at(place.line, place.column);
                Some(Link::to_position(&place.url, &position, page_url).text)
            }
            _ => None,
        }),
        Details::Parts { items } => items.iter().find_map(|part| position(part, page_url)),
        _ => None,
    }
}

fn file(details: &Details, page_url: &str) -> Option<String> {
    match details {
        Details::Urls { items } => items
            .first()
            .map(|item| Link::new(&item.url, page_url).text),
        Details::Findings(findings) => find_cell(&findings.rows, &|cell| match cell {
            Cell::Url(url) if !url.is_empty() => Some(Link::new(url, page_url).text),
            _ => None,
        }),
        Details::Parts { items } => items.iter().find_map(|part| file(part, page_url)),
        _ => None,
    }
}

/// Returns the first result for a cell of the rows, including the rows that they consist of.
fn find_cell(rows: &[Row], select: &dyn Fn(&Cell) -> Option<String>) -> Option<String> {
    rows.iter().find_map(|row| {
        let own = row.cells.iter().find_map(select);
        own.or_else(|| find_cell(&row.sub_rows, select))
    })
}

/// Formats a position that is counted from 0 as editors count it, from 1.
fn at(line: u32, column: u32) -> String {
    format!("{}:{}", line.saturating_add(1), column.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::{ConsoleLine, Findings, SourceLocation, Unit, UrlDetail};

    use super::*;

    #[test]
    fn a_position_is_preferred_to_a_file() {
        let script = |line: u32| {
            Cell::Source(SourceLocation {
                url: "https://a.test/app.js".to_owned(),
                line,
                column: 4,
                function: String::new(),
            })
        };
        let row = Row::new([Cell::url("https://cdn.test/lib.js")]).with([Row::new([script(11)])]);
        let findings = Findings::new([("url", "URL", Unit::Url)]).rows([row]);
        let urls = Details::urls([UrlDetail {
            url: "https://a.test/b.css".to_owned(),
            note: None,
        }]);
        let console = Details::Console {
            items: vec![ConsoleLine {
                url: "https://a.test/c.js".to_owned(),
                line: Some(0),
                ..ConsoleLine::default()
            }],
        };
        let files = Findings::new([("url", "URL", Unit::Url)])
            .rows([Row::new([Cell::url("https://cdn.test/lib.js")])]);
        for (details, place) in [
            (Some(Details::from(findings)), Some("/app.js:12:5")),
            (Some(urls.clone()), Some("/b.css")),
            (Some(console.clone()), Some("/c.js:1:1")),
            (Some(Details::parts([urls, console])), Some("/c.js:1:1")),
            (Some(Details::from(files)), Some("cdn.test/lib.js")),
            (Some(Details::values([("a", "b")])), None),
            (None, None),
        ] {
            let found = first(details.as_ref(), "https://a.test/page");
            assert_eq!(found.as_deref(), place, "{details:?}");
        }
    }
}
