//! The checks of each category with their details, grouped by verdict, failed ones first.

use plumbline_model::category::{CategoryId, CategoryResult, Group};
use plumbline_model::check::{
    CheckResult, ChecklistItem, Details, ElementDetail, Findings, Row, Verdict,
};
use plumbline_model::report::Report;

use super::charts;
use super::code_text::CodeText;
use super::concerns::concerned_metrics;
use super::crops::Screenshots;
use super::gain::{Gain, gain};
use super::links::Link;
use super::places;
use super::replays::{ExperimentView, Replays};
use super::treemap::{self, Tile};
use super::typed_table::typed_table;
use crate::script_sizes;

/// A category with its score and checks.
pub(super) struct CategoryView {
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) ring: String,
    /// The metrics by which checks can be filtered: the value of the filter and its label.
    pub(super) filters: Vec<(&'static str, &'static str)>,
    pub(super) sections: Vec<Section>,
}

/// The checks with one verdict.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) count: usize,
    /// Whether the section is closed at first.
    pub(super) folded: bool,
    pub(super) groups: Vec<GroupView>,
}

pub(super) struct GroupView {
    /// The heading; `None` for checks that are not grouped.
    pub(super) title: Option<&'static str>,
    pub(super) checks: Vec<CheckView>,
}

pub(super) struct CheckView {
    pub(super) anchor: String,
    /// The id, which is Lighthouse's where it has the same check.
    pub(super) id: String,
    pub(super) title: CodeText,
    pub(super) class: &'static str,
    /// The verdict as text, for screen readers.
    pub(super) word: &'static str,
    pub(super) summary: Option<CodeText>,
    /// The estimated gain from passing the check.
    pub(super) gain: Option<String>,
    /// The metrics that the check concerns, separated by spaces.
    pub(super) metrics: String,
    /// The explanation and the advice; `None` if there is nothing to fix, because both describe
    /// the failure.
    pub(super) advice: Option<(CodeText, CodeText)>,
    pub(super) weight: Option<String>,
    pub(super) learn_more: Option<LearnMore>,
    pub(super) warnings: Vec<String>,
    pub(super) details: Vec<DetailsView>,
    /// The experiment that follows the advice, or that can be started.
    pub(super) experiment: Option<ExperimentView>,
}

/// The link to a page with more about a check.
pub(super) struct LearnMore {
    pub(super) url: String,
    pub(super) host: String,
}

impl LearnMore {
    /// Returns the link if the URL is one that a browser may open: reports may come from elsewhere.
    fn new(url: &str) -> Option<Self> {
        let host = url.strip_prefix("https://")?.split('/').next()?;
        Some(Self {
            url: url.to_owned(),
            host: host.strip_prefix("www.").unwrap_or(host).to_owned(),
        })
    }
}

/// The details of a check, with the number of items that are not listed.
pub(super) enum DetailsView {
    Elements(Vec<ElementView>, usize),
    Table(TableView, usize),
    Treemap(Vec<Tile>),
}

/// A table of details.
pub(super) struct TableView {
    /// The label of each column, and whether it is right-aligned.
    pub(super) columns: Vec<(String, bool)>,
    pub(super) rows: Vec<RowView>,
}

impl TableView {
    pub(super) fn has_longest_chain(&self) -> bool {
        self.rows.iter().any(|row| row.is_of_longest_chain)
    }
}

pub(super) struct RowView {
    /// How many rows this one is a part of, at most [`super::typed_table::MAX_SHOWN_DEPTH`].
    pub(super) depth: usize,
    /// Whether the row is a request of the longest chain.
    pub(super) is_of_longest_chain: bool,
    pub(super) cells: Vec<CellView>,
}

#[derive(Default)]
pub(super) struct CellView {
    pub(super) text: CodeText,
    /// The target of the text, if it is a URL.
    pub(super) href: Option<String>,
    pub(super) is_number: bool,
    /// Trusted markup: the part of a screenshot that shows the element.
    pub(super) crop: Option<String>,
}

impl CellView {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self {
            text: CodeText(text.into()),
            ..Self::default()
        }
    }

    pub(super) fn link(link: Link) -> Self {
        Self {
            href: link.href,
            ..Self::text(link.text)
        }
    }

    pub(super) fn number(text: String) -> Self {
        Self {
            is_number: true,
            ..Self::text(text)
        }
    }
}

pub(super) struct ElementView {
    pub(super) label: String,
    pub(super) selector: String,
    pub(super) snippet: String,
    pub(super) note: Option<String>,
    /// Trusted markup: the part of a screenshot that shows the element.
    pub(super) crop: Option<String>,
}

/// The most items listed per check; the JSON export has all of them.
pub(super) const MAX_ITEMS: usize = 20;

/// The check whose details are the chains of critical requests, which are shown completely.
const REQUEST_CHAINS: &str = "network-dependency-tree-insight";

/// The metrics that checks can be filtered by.
const FILTERS: [(&str, &str); 5] = [
    ("fcp", "FCP"),
    ("lcp", "LCP"),
    ("tbt", "TBT"),
    ("cls", "CLS"),
    ("inp", "INP"),
];

pub(super) fn category_view(
    report: &Report,
    category: &CategoryResult,
    screenshots: &Screenshots,
    replays: &Replays<'_>,
) -> CategoryView {
    let section = |title: &'static str, verdict: Verdict, folded: bool| {
        let checks: Vec<&CheckResult> = category
            .checks
            .iter()
            .filter(|check| check.verdict == verdict)
            .collect();
        (!checks.is_empty()).then(|| Section {
            title,
            count: checks.len(),
            folded,
            groups: groups(report, category, &checks, screenshots, replays),
        })
    };
    let sections: Vec<Section> = [
        section("Failed", Verdict::Fail, false),
        section("Could not be measured", Verdict::CouldNotMeasure, false),
        section("Informative", Verdict::Informative, false),
        section("Passed", Verdict::Pass, true),
        section("Not applicable", Verdict::NotApplicable, true),
    ]
    .into_iter()
    .flatten()
    .collect();
    let concerned: Vec<&str> = category.checks.iter().flat_map(concerned_metrics).collect();
    CategoryView {
        id: category.id.as_str(),
        title: category.title.clone(),
        ring: match category.fraction {
            Some(fraction) => charts::fraction_ring(category.id.title(), fraction),
            None => charts::ring(category.id.title(), category.score),
        },
        filters: FILTERS
            .into_iter()
            .filter(|(metric, _)| concerned.contains(metric))
            .collect(),
        sections,
    }
}

/// Returns the checks of one verdict, the largest gain first. Groups are ordered by their first
/// check. Insights and diagnostics of performance are one list, so that its order is that of the
/// gains.
fn groups(
    report: &Report,
    category: &CategoryResult,
    checks: &[&CheckResult],
    screenshots: &Screenshots,
    replays: &Replays<'_>,
) -> Vec<GroupView> {
    let mut checks: Vec<(&CheckResult, Gain)> = checks
        .iter()
        .map(|check| {
            let gain = gain(report, category, check, replays);
            (*check, gain.unwrap_or_default())
        })
        .collect();
    checks.sort_by(|(a, a_gain), (b, b_gain)| {
        Gain::largest_first(a_gain, b_gain).then(b.weight.total_cmp(&a.weight))
    });
    let page = ShownPage {
        url: report.final_url.as_deref().unwrap_or_default(),
        screenshots,
        max_parts: MAX_ITEMS,
    };
    let title = |check: &CheckResult| {
        let is_one_list =
            category.id == CategoryId::Performance && check.group != Group::Experimental;
        (!is_one_list).then(|| check.group.title())
    };
    let mut groups: Vec<GroupView> = Vec::new();
    for (check, gain) in checks {
        let title = title(check);
        let view = CheckView {
            experiment: replays.of_check(check),
            ..check_view(category, check, gain, &page)
        };
        match groups.iter_mut().find(|group| group.title == title) {
            Some(group) => group.checks.push(view),
            None => groups.push(GroupView {
                title,
                checks: vec![view],
            }),
        }
    }
    // A list without a heading must not follow one with a heading.
    groups.sort_by_key(|group| group.title.is_some());
    groups
}

fn check_view(
    category: &CategoryResult,
    check: &CheckResult,
    gain: Gain,
    page: &ShownPage,
) -> CheckView {
    let (class, word) = match check.verdict {
        Verdict::Fail => ("poor", "Failed"),
        Verdict::Pass => ("good", "Passed"),
        Verdict::CouldNotMeasure => ("middling", "Could not be measured"),
        Verdict::Informative => ("unknown", "Informative"),
        Verdict::NotApplicable => ("unknown", "Not applicable"),
    };
    let needs_advice = !matches!(check.verdict, Verdict::Pass | Verdict::NotApplicable);
    let advice = || (CodeText(check.why.clone()), CodeText(check.fix.clone()));
    CheckView {
        anchor: format!("{}-{}", category.id.as_str(), check.id),
        id: check.id.clone(),
        title: CodeText(check.title.clone()),
        class,
        word,
        summary: check.summary.clone().map(CodeText),
        gain: Some(gain.text).filter(|text| !text.is_empty()),
        metrics: concerned_metrics(check).join(" "),
        advice: needs_advice.then(advice),
        weight: (check.weight > 0.0 && category.fraction.is_none())
            .then(|| format!("Weight {}.", (check.weight * 100.0).round() / 100.0)),
        learn_more: check.learn_more.as_deref().and_then(LearnMore::new),
        warnings: check.warnings.clone(),
        details: match &check.details {
            Some(Details::Findings(scripts)) if check.id == script_sizes::CHECK_ID => {
                treemap_views(scripts, page)
            }
            Some(details) if check.id == REQUEST_CHAINS => {
                let max_parts = usize::MAX;
                details_views(details, &ShownPage { max_parts, ..*page })
            }
            Some(details) => details_views(details, page),
            None => Vec::new(),
        },
        experiment: None,
    }
}

/// Returns a treemap of scripts, and a table of the scripts without their sources.
fn treemap_views(scripts: &Findings, page: &ShownPage) -> Vec<DetailsView> {
    let tiles = treemap::treemap(scripts);
    let without_sources = scripts.rows.iter().map(|row| Row::new(row.cells.clone()));
    let table = Details::Findings(Findings {
        columns: scripts.columns.clone(),
        rows: without_sources.collect(),
    });
    let treemap = (!tiles.is_empty()).then_some(DetailsView::Treemap(tiles));
    let table = details_views(&table, page);
    treemap.into_iter().chain(table).collect()
}

/// The audited page that details refer to, and how many of them are shown.
pub(super) struct ShownPage<'a> {
    pub(super) url: &'a str,
    pub(super) screenshots: &'a Screenshots,
    /// The most rows listed as parts of one row.
    pub(super) max_parts: usize,
}

fn details_views(details: &Details, page: &ShownPage) -> Vec<DetailsView> {
    if details.is_empty() {
        return Vec::new();
    }
    let more = details.len().saturating_sub(MAX_ITEMS);
    let table = |columns: &[&str], rows: Vec<Vec<CellView>>| {
        vec![DetailsView::Table(plain_table(columns, rows), more)]
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| CellView::text(*text)).collect();
    let link = |url: &str| CellView::link(Link::new(url, page.url));
    match details {
        Details::Elements { items } => {
            vec![DetailsView::Elements(
                element_views(items, page.screenshots),
                more,
            )]
        }
        Details::Urls { items } => {
            let has_notes = items.iter().any(|item| item.note.is_some());
            let rows = items.iter().take(MAX_ITEMS).map(|item| {
                let note = item.note.clone().unwrap_or_default();
                let note = has_notes.then(|| CellView::text(note));
                [link(&item.url)].into_iter().chain(note).collect()
            });
            let columns: &[&str] = if has_notes {
                &["URL", "Note"]
            } else {
                &["URL"]
            };
            table(columns, rows.collect())
        }
        Details::Console { items } => {
            let rows = items.iter().take(MAX_ITEMS).map(|item| {
                vec![
                    CellView::text(&item.source),
                    CellView::text(&item.text),
                    CellView::link(places::console_link(item, page.url)),
                ]
            });
            table(&["Source", "Message", "Location"], rows.collect())
        }
        Details::Values { items } => {
            let rows = items.iter().take(MAX_ITEMS);
            let rows = rows.map(|item| texts(&[&item.name, &item.value]));
            table(&["Name", "Value"], rows.collect())
        }
        Details::Table(text_table) => {
            let columns: Vec<&str> = text_table.columns.iter().map(String::as_str).collect();
            let rows = text_table.rows.iter().take(MAX_ITEMS);
            let rows = rows.map(|row| row.iter().map(CellView::text).collect());
            table(&columns, rows.collect())
        }
        Details::Findings(findings) => {
            let (table, more) = typed_table(findings, page);
            vec![DetailsView::Table(table, more)]
        }
        Details::Checklist { items } => {
            let row = |item: &ChecklistItem| {
                let is_met = if item.is_met { "yes" } else { "no" };
                texts(&[&item.label, is_met])
            };
            table(&["Condition", "Met"], items.iter().map(row).collect())
        }
        Details::Parts { items } => items
            .iter()
            .flat_map(|part| details_views(part, page))
            .collect(),
    }
}

fn plain_table(columns: &[&str], rows: Vec<Vec<CellView>>) -> TableView {
    let row = |cells: Vec<CellView>| RowView {
        depth: 0,
        is_of_longest_chain: false,
        cells,
    };
    TableView {
        columns: columns
            .iter()
            .map(|name| ((*name).to_owned(), false))
            .collect(),
        rows: rows.into_iter().map(row).collect(),
    }
}

fn element_views(items: &[ElementDetail], screenshots: &Screenshots) -> Vec<ElementView> {
    items
        .iter()
        .take(MAX_ITEMS)
        .map(|item| ElementView {
            label: item.node.label.clone(),
            selector: item.node.selector.clone(),
            snippet: item.node.snippet.clone(),
            note: item.note.clone(),
            crop: screenshots.crop(&item.node),
        })
        .collect()
}
