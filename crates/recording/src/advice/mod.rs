//! Changes of a recording that follow the advice of a report, so that its effect can be measured
//! instead of estimated.

mod documents;
mod fonts;

use std::collections::{BTreeMap, BTreeSet};

use plumbline_model::check::{Cell, CheckResult, ChecklistItem, Details, Findings, Node, Row};
use plumbline_model::experiment::Subject;
use plumbline_model::report::Report;
use url::Url;

use crate::change::MAX_CHANGES;
use crate::{Change, Endpoint, Pattern, Protocol, Recording, picture};
use documents::MainDocument;

/// The ids of the checks whose advice changes of a recording can follow.
pub const MEASURABLE_CHECKS: [&str; 13] = [
    "document-latency-insight",
    "font-display-insight",
    "image-delivery-insight",
    "lcp-discovery-insight",
    "modern-http-insight",
    "network-dependency-tree-insight",
    "redirects",
    "render-blocking-insight",
    "server-response-time",
    "unminified-css",
    "unminified-javascript",
    "unsized-images",
    "viewport-insight",
];

/// The time in which a fast server answers, which estimates of savings assume as well.
const FAST_RESPONSE_MS: u32 = 100;

/// The quality of JPEG pictures that are well compressed.
const PICTURE_QUALITY: u8 = 75;

/// The second page of an experiment: the URL to visit, and the changes of the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advised {
    pub url: String,
    pub changes: Vec<Change>,
    /// Sentences about what the advice names and no change can follow.
    pub left_out: Vec<String>,
}

/// The reason why advice cannot be followed in a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdviceError {
    #[error("the report has no check `{0}`")]
    UnknownCheck(String),
    #[error("the report has no third party `{0}`")]
    UnknownThirdParty(String),
    #[error(
        "no change of a recording follows the advice of `{0}`; the checks that can be measured are {list}",
        list = MEASURABLE_CHECKS.join(", ")
    )]
    NotMeasurable(String),
    #[error("there is nothing in the recording that the advice could change")]
    NothingToChange,
    #[error("the advice cannot be followed: {reason}")]
    NotFollowed { reason: String },
}

impl Recording {
    /// Returns the changes that follow the advice of a report of this recording. A page has
    /// `pixel_ratio` device pixels for each of its own.
    pub fn advised(
        &self,
        subject: &Subject,
        report: &Report,
        pixel_ratio: f64,
    ) -> Result<Advised, AdviceError> {
        let mut advised = match subject {
            Subject::ThirdParty(name) => self.without_third_party(name, report)?,
            Subject::Check(id) => {
                let check = report.check(id);
                let check = check.ok_or_else(|| AdviceError::UnknownCheck(id.clone()))?;
                self.following(check, report, pixel_ratio)?
            }
        };
        let too_many = advised.changes.len().saturating_sub(MAX_CHANGES);
        advised.changes.truncate(MAX_CHANGES);
        // A change that affects nothing would be refused.
        (advised.changes, advised.left_out) = self.effective(advised.changes);
        if too_many > 0 {
            advised.left_out.push(format!(
                "{too_many} more changes follow the advice; an experiment has at most {MAX_CHANGES}."
            ));
        }
        if !advised.changes.is_empty() || advised.url != self.url {
            return Ok(advised);
        }
        Err(match advised.left_out.first() {
            Some(sentence) => AdviceError::NotFollowed {
                reason: sentence.trim_end_matches('.').to_owned(),
            },
            None => AdviceError::NothingToChange,
        })
    }

    fn without_third_party(&self, name: &str, report: &Report) -> Result<Advised, AdviceError> {
        let parties = report.third_parties();
        let party = parties.into_iter().find(|(party, _)| *party == name);
        let (_, urls) = party.ok_or_else(|| AdviceError::UnknownThirdParty(name.to_owned()))?;
        let hosts: BTreeSet<String> = urls.into_iter().filter_map(host).collect();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let pattern = Pattern::hosts(&hosts);
        Ok(self.with(if hosts.is_empty() {
            Vec::new()
        } else {
            vec![Change::Block { pattern }]
        }))
    }

    fn following(
        &self,
        check: &CheckResult,
        report: &Report,
        pixel_ratio: f64,
    ) -> Result<Advised, AdviceError> {
        let document = MainDocument::of(self);
        let document = document.as_ref();
        let minified = || {
            let urls = urls(check).into_iter();
            let minify = |url: &str| Change::Minify {
                pattern: Some(Pattern::exact(url)),
            };
            urls.map(minify).collect()
        };
        let changes = match check.id.as_str() {
            "document-latency-insight" => return Ok(self.faster_document(check, report)),
            "redirects" => return Ok(self.without_redirects(report)),
            "server-response-time" => self.fast_response(),
            "font-display-insight" => fonts::shown_at_once(self),
            "image-delivery-insight" => smaller_pictures(check, pixel_ratio),
            "lcp-discovery-insight" => {
                let image = largest_image(check);
                image.map_or_else(Vec::new, |url| documents::discoverable(document, url))
            }
            "modern-http-insight" => modern_protocol(check),
            "network-dependency-tree-insight" => connected_early(check),
            "render-blocking-insight" => {
                let urls = urls(check).into_iter();
                urls.flat_map(|url| documents::not_blocking(document, url))
                    .collect()
            }
            "unminified-css" | "unminified-javascript" => minified(),
            "unsized-images" => {
                let urls = urls(check);
                let sized = urls
                    .into_iter()
                    .filter_map(|url| Some((url, self.picture_size(url)?)));
                documents::sized(document, sized)
            }
            "viewport-insight" => vec![in_head(
                r#"<meta name="viewport" content="width=device-width, initial-scale=1">"#,
            )],
            id => return Err(AdviceError::NotMeasurable(id.to_owned())),
        };
        Ok(self.with(changes))
    }

    /// Returns a visit of the recorded URL with changes.
    fn with(&self, changes: Vec<Change>) -> Advised {
        Advised {
            url: self.url.clone(),
            changes,
            left_out: Vec::new(),
        }
    }

    /// Returns a visit of the URL to which the recorded one redirects.
    fn without_redirects(&self, report: &Report) -> Advised {
        let url = report.final_url.clone();
        Advised {
            url: url.unwrap_or_else(|| self.url.clone()),
            changes: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Returns a visit in which those items of the check's list are met that are not.
    fn faster_document(&self, check: &CheckResult, report: &Report) -> Advised {
        let is_unmet = |id: &str| unmet(check).iter().any(|item| item.id == id);
        let mut changes = Vec::new();
        if is_unmet("serverResponseIsFast") {
            changes.extend(self.fast_response());
        }
        if is_unmet("usesCompression") {
            let pattern = self.document_pattern();
            changes.extend(pattern.map(|pattern| Change::CompressText {
                pattern: Some(pattern),
            }));
        }
        if is_unmet("noRedirects") {
            let url = self.without_redirects(report).url;
            return Advised {
                url,
                changes,
                left_out: Vec::new(),
            };
        }
        self.with(changes)
    }

    /// Returns the size of a recorded picture in pixels.
    fn picture_size(&self, url: &str) -> Option<(u32, u32)> {
        let position = self.position_of(&Url::parse(url).ok()?)?;
        picture::size(&self.exchanges[position].response.as_ref()?.body)
    }

    /// Returns a change by which the main document is answered fast.
    fn fast_response(&self) -> Vec<Change> {
        let answer = self.document_pattern().map(|pattern| Change::AnswerWithin {
            pattern,
            ms: FAST_RESPONSE_MS,
        });
        answer.into_iter().collect()
    }

    /// Returns a pattern that selects the main document only.
    fn document_pattern(&self) -> Option<Pattern> {
        let document = &self.exchanges[self.main_document()?];
        Some(Pattern::exact(&document.url()))
    }
}

/// Returns the host of a URL.
fn host(url: &str) -> Option<String> {
    let (endpoint, _) = Endpoint::split_url(url)?;
    Some(endpoint.host)
}

fn in_head(html: &str) -> Change {
    Change::InsertHead {
        html: html.to_owned(),
        pattern: None,
    }
}

/// Returns a text as the value of an attribute in double quotes.
fn attribute_text(value: &str) -> String {
    value.replace('&', "&amp;").replace('"', "&quot;")
}

/// Returns the parts of a check's details.
fn parts(check: &CheckResult) -> Vec<&Details> {
    match &check.details {
        Some(Details::Parts { items }) => items.iter().collect(),
        Some(details) => vec![details],
        None => Vec::new(),
    }
}

fn tables(check: &CheckResult) -> impl Iterator<Item = &Findings> {
    let parts = parts(check).into_iter();
    parts.filter_map(|part| match part {
        Details::Findings(findings) => Some(findings),
        _ => None,
    })
}

fn rows(check: &CheckResult) -> impl Iterator<Item = &Row> {
    tables(check).flat_map(|table| &table.rows)
}

/// Returns the URLs in the rows of a check's tables.
fn urls(check: &CheckResult) -> Vec<&str> {
    rows(check).filter_map(url).collect()
}

fn url(row: &Row) -> Option<&str> {
    row.cells.iter().find_map(|cell| match cell {
        Cell::Url(url) => Some(url.as_str()),
        _ => None,
    })
}

fn element(row: &Row) -> Option<&Node> {
    row.cells.iter().find_map(|cell| match cell {
        Cell::Element(node) => Some(&**node),
        _ => None,
    })
}

/// Returns the items of a check's list that are not met.
fn unmet(check: &CheckResult) -> Vec<&ChecklistItem> {
    let parts = parts(check).into_iter();
    let lists = parts.filter_map(|part| match part {
        Details::Checklist { items } => Some(items),
        _ => None,
    });
    lists.flatten().filter(|item| !item.is_met).collect()
}

/// Returns the URL of the picture that is the largest content: the note of the element.
fn largest_image(check: &CheckResult) -> Option<&str> {
    let parts = parts(check).into_iter();
    let mut elements = parts.filter_map(|part| match part {
        Details::Elements { items } => items.first(),
        _ => None,
    });
    elements.next()?.note.as_deref()
}

/// Returns changes by which pictures are no larger than they are shown, and well compressed.
fn smaller_pictures(check: &CheckResult, pixel_ratio: f64) -> Vec<Change> {
    // A picture that is shown several times is as wide as the widest.
    let mut widths: BTreeMap<&str, f64> = BTreeMap::new();
    for row in rows(check) {
        let shown_px = element(row).and_then(|node| node.rect).map(|it| it.width);
        if let Some(url) = url(row) {
            let width = widths.entry(url).or_default();
            *width = width.max(shown_px.unwrap_or_default());
        }
    }
    let mut changes = Vec::new();
    for (url, width) in widths {
        let pattern = || Some(Pattern::exact(url));
        if width >= 1.0 {
            changes.push(Change::ResizeImages {
                max_width: (width * pixel_ratio).ceil() as u32,
                pattern: pattern(),
            });
        }
        changes.push(Change::RecompressImages {
            quality: PICTURE_QUALITY,
            pattern: pattern(),
        });
    }
    changes
}

/// Returns changes by which the servers of requests use HTTP/2.
fn modern_protocol(check: &CheckResult) -> Vec<Change> {
    let hosts: BTreeSet<String> = urls(check).into_iter().filter_map(host).collect();
    let change = |host| Change::SetProtocol {
        host: Some(host),
        protocol: Protocol::Http2,
    };
    hosts.into_iter().map(change).collect()
}

/// Returns changes by which connections to the proposed origins are made early.
fn connected_early(check: &CheckResult) -> Vec<Change> {
    let is_proposal = |table: &&Findings| {
        let mut keys = table.columns.iter().map(|column| column.key.as_str());
        keys.any(|key| key == "origin") && table.columns.iter().any(|it| it.key == "wastedMs")
    };
    let rows = tables(check).filter(is_proposal).flat_map(|it| &it.rows);
    let preconnect = |row: &Row| match row.cells.first() {
        Some(Cell::Text(origin)) => Some(in_head(&format!(
            r#"<link rel="preconnect" href="{}">"#,
            attribute_text(origin)
        ))),
        _ => None,
    };
    rows.filter_map(preconnect).collect()
}

#[cfg(test)]
mod tests;
