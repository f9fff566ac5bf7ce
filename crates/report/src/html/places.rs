//! The file and line or the element that the details of a check name.

use plumbline_bundle::OriginalPlace;
use plumbline_model::check::{Cell, ConsoleLine, Details, Row, SourceLocation};

use super::links::Link;

/// Returns the link of a position in a script, by its line and column counted from 0. Its text is
/// the position in the source that the script was built from, if that is known.
pub(super) fn link(
    url: &str,
    (line, column): (u32, u32),
    original: Option<&OriginalPlace>,
    page_url: &str,
) -> Link {
    match original {
        None => Link::to_position(url, &at(line, column), page_url),
        Some(original) => Link {
            text: format!("{}:{}", original.source, at(original.line, original.column)),
            ..Link::new(url, page_url)
        },
    }
}

/// Returns the link of a position, whose text names the function, if that has a name.
pub(super) fn source_link(place: &SourceLocation, page_url: &str) -> Link {
    let position = (place.line, place.column);
    let link = link(&place.url, position, place.original.as_ref(), page_url);
    match place.function.as_str() {
        "" => link,
        function => Link {
            text: format!("{} ({function})", link.text),
            ..link
        },
    }
}

/// Returns the link of a message in the console.
pub(super) fn console_link(message: &ConsoleLine, page_url: &str) -> Link {
    match message.line {
        Some(line) => {
            let position = (line, message.column.unwrap_or_default());
            link(&message.url, position, message.original.as_ref(), page_url)
        }
        None => Link::new(&message.url, page_url),
    }
}

/// Returns the first position in a file, as `/app.js:12:5`; the first file if no position is known,
/// and the opening tag of the first element if no file is.
pub(super) fn first(details: Option<&Details>, page_url: &str) -> Option<String> {
    let details = details?;
    let file = || file(details, page_url);
    position(details, page_url)
        .or_else(file)
        .or_else(|| element(details))
}

fn position(details: &Details, page_url: &str) -> Option<String> {
    match details {
        Details::Console { items } => items.iter().find_map(|line| {
            let is_file = !line.url.is_empty() && line.line.is_some();
            is_file.then(|| console_link(line, page_url).text)
        }),
        Details::Findings(findings) => find_cell(&findings.rows, &|cell| match cell {
            Cell::Source(place) => {
                let position = (place.line, place.column);
                Some(link(&place.url, position, place.original.as_ref(), page_url).text)
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

fn element(details: &Details) -> Option<String> {
    let snippet = match details {
        Details::Elements { items } => items.first().map(|item| item.node.snippet.clone()),
        Details::Findings(findings) => find_cell(&findings.rows, &|cell| match cell {
            Cell::Element(node) => Some(node.snippet.clone()),
            _ => None,
        }),
        Details::Parts { items } => items.iter().find_map(element),
        _ => None,
    };
    snippet.filter(|snippet| !snippet.is_empty())
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
    use plumbline_model::check::{
        ConsoleLine, ElementDetail, Findings, Node, SourceLocation, Unit, UrlDetail,
    };

    use super::*;

    #[test]
    fn the_place_in_the_source_is_preferred_to_that_in_the_script() {
        let mut place = SourceLocation {
            url: "https://a.test/app.min.js".to_owned(),
            column: 83,
            function: "c".to_owned(),
            ..SourceLocation::default()
        };
        let page = "https://a.test/page";
        assert_eq!(source_link(&place, page).text, "/app.min.js:1:84 (c)");
        place.original = Some(OriginalPlace {
            source: "src/cart.ts".to_owned(),
            line: 5,
            column: 2,
            function: None,
        });
        let link = source_link(&place, page);
        assert_eq!(link.text, "src/cart.ts:6:3 (c)");
        assert_eq!(link.href.as_deref(), Some("https://a.test/app.min.js"));
        let message = ConsoleLine {
            url: place.url,
            line: Some(0),
            original: place.original,
            ..ConsoleLine::default()
        };
        assert_eq!(console_link(&message, page).text, "src/cart.ts:6:3");
        let found = first(
            Some(&Details::Console {
                items: vec![message],
            }),
            page,
        );
        assert_eq!(found.as_deref(), Some("src/cart.ts:6:3"));
    }

    #[test]
    fn a_position_is_preferred_to_a_file() {
        let script = |line: u32| {
            Cell::Source(SourceLocation {
                url: "https://a.test/app.js".to_owned(),
                line,
                column: 4,
                ..SourceLocation::default()
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
        let files = Details::from(files);
        let node = Node {
            snippet: "<button>".to_owned(),
            ..Node::default()
        };
        let button = Findings::new([("node", "Element", Unit::Element)])
            .rows([Row::new([Cell::element(&node)])]);
        let button = Details::from(button);
        let elements = Details::Elements {
            items: vec![ElementDetail {
                node,
                ..ElementDetail::default()
            }],
        };
        for (details, place) in [
            (Some(Details::from(findings)), Some("/app.js:12:5")),
            (Some(urls.clone()), Some("/b.css")),
            (Some(console.clone()), Some("/c.js:1:1")),
            (Some(Details::parts([urls, console])), Some("/c.js:1:1")),
            (Some(files.clone()), Some("cdn.test/lib.js")),
            (Some(button.clone()), Some("<button>")),
            (
                Some(Details::parts([button, files])),
                Some("cdn.test/lib.js"),
            ),
            (Some(elements), Some("<button>")),
            (Some(Details::values([("a", "b")])), None),
            (None, None),
        ] {
            let found = first(details.as_ref(), "https://a.test/page");
            assert_eq!(found.as_deref(), place, "{details:?}");
        }
    }
}
