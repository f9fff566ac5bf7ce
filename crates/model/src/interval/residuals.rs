//! The residual table: how far one visit of a page is from the mean of further audits, measured on
//! other pages.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::{FURTHER_AUDITS, Figure, LEVEL};
use crate::report::Report;
use crate::runs::figure;

/// The version of the table's format and of the computation that it is for.
const VERSION: u32 = 1;

/// The blocking time up to which a page counts as one with little work: that of two or three long
/// tasks. The speed of the processor hardly matters for such pages.
const MAX_TBT_OF_LIGHT_MS: f64 = 100.0;

/// The smallest residual of a metric, and of the score. A small sample may not vary at all, and the
/// pages of the class do.
const MIN_RESIDUALS: [f64; 2] = [0.01, 0.5];

/// The residuals of one visit by class of page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ResidualTable {
    pub version: u32,
    #[serde(flatten)]
    pub origin: Origin,
    /// The number of pages.
    pub pages: usize,
    /// The number of audits of all pages.
    pub audits: usize,
    /// The classes; a page belongs to the first whose limit it does not exceed.
    #[serde(rename = "class")]
    pub classes: Vec<PageClass>,
}

/// The measurement that a table comes from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Origin {
    /// The day of the measurement.
    pub date: String,
    /// The command that repeats it.
    pub command: String,
    /// The machine that it was made on.
    pub host: String,
}

/// A class of pages that vary alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PageClass {
    pub name: String,
    /// The largest Total Blocking Time of the class; `None` for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tbt_ms: Option<f64>,
    /// The number of audits in the class.
    pub audits: usize,
    /// The half width of the interval of one visit, by the short name of the figure. Those of
    /// metrics are fractions of the value, or of a minimum for small values; that of the score is a
    /// factor of the effect that the metrics have.
    pub residuals: BTreeMap<String, f64>,
}

impl PageClass {
    pub(super) fn residual(&self, figure: Figure) -> Option<f64> {
        self.residuals.get(figure.name()).copied()
    }
}

static BUILT_IN: LazyLock<ResidualTable> = LazyLock::new(|| {
    // A test reads the file, so that no build has an invalid one.
    toml::from_str(include_str!("../../data/residuals.toml")).unwrap_or_default()
});

impl ResidualTable {
    /// Returns the table of this version, `data/residuals.toml`.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Returns the class of a page by its report. A page without a blocking time is in the last.
    pub fn class_of(&self, report: &Report) -> Option<&PageClass> {
        let tbt_ms = figure(report, "tbt").unwrap_or(f64::MAX);
        let mut classes = self.classes.iter();
        classes.find(|class| class.max_tbt_ms.is_none_or(|max| tbt_ms <= max))
    }

    /// Makes a table from several audits of each page, which made one visit each.
    ///
    /// A residual is the distance of an audit from the mean of the other audits of the page,
    /// divided by the unit of the figure. The mean of few audits varies more than that of
    /// [`FURTHER_AUDITS`], so residuals are scaled to the latter.
    pub fn measured(pages: &[Vec<Report>], origin: Origin) -> Self {
        let audits: Vec<Audit<'_>> = pages.iter().flat_map(|page| audits_of(page)).collect();
        let class = |name: &str, max_tbt_ms| PageClass {
            name: name.to_owned(),
            max_tbt_ms,
            audits: 0,
            residuals: BTreeMap::new(),
        };
        let mut table = Self {
            version: VERSION,
            origin,
            pages: pages.len(),
            audits: audits.len(),
            classes: vec![
                class("little work", Some(MAX_TBT_OF_LIGHT_MS)),
                class("much work", None),
            ],
        };
        let classes = table.classes.clone();
        for (index, class) in table.classes.iter_mut().enumerate() {
            let is_member = |audit: &&Audit<'_>| {
                let tbt_ms = figure(audit.report, "tbt").unwrap_or(f64::MAX);
                let is_in = |class: &PageClass| class.max_tbt_ms.is_none_or(|max| tbt_ms <= max);
                classes.iter().position(is_in) == Some(index)
            };
            let members: Vec<&Audit<'_>> = audits.iter().filter(is_member).collect();
            class.audits = members.len();
            // The score comes last, because its unit depends on the residuals of the metrics.
            for figure in Figure::all().skip(1).chain([Figure::Performance]) {
                let residuals = members.iter().filter_map(|audit| {
                    let unit = figure.unit(class, audit.report)?;
                    Some(audit.distance(figure)? / unit)
                });
                if let Some(residual) = quantile(residuals.collect()) {
                    let min = MIN_RESIDUALS[usize::from(figure == Figure::Performance)];
                    let name = figure.name().to_owned();
                    class.residuals.insert(name, residual.max(min));
                }
            }
        }
        table
    }
}

/// An audit and the others of the same page.
struct Audit<'a> {
    report: &'a Report,
    others: Vec<&'a Report>,
}

fn audits_of(page: &[Report]) -> impl Iterator<Item = Audit<'_>> {
    page.iter().enumerate().map(move |(index, report)| {
        let others = page.iter().enumerate();
        let others = others.filter(|(other, _)| *other != index);
        Audit {
            report,
            others: others.map(|(_, other)| other).collect(),
        }
    })
}

impl Audit<'_> {
    /// Returns the distance of a figure from the mean of the other audits, as if there were
    /// [`FURTHER_AUDITS`] others.
    fn distance(&self, figure: Figure) -> Option<f64> {
        let others: Vec<f64> = self
            .others
            .iter()
            .filter_map(|other| figure.value(other))
            .collect();
        let count = others.len() as f64;
        if others.is_empty() {
            return None;
        }
        let mean = others.iter().sum::<f64>() / count;
        let wanted = 1.0 + 1.0 / FURTHER_AUDITS as f64;
        let scale = (wanted / (1.0 + 1.0 / count)).sqrt();
        Some((figure.value(self.report)? - mean).abs() * scale)
    }
}

/// Returns the smallest value that is not exceeded by a further one with the probability [`LEVEL`],
/// or the largest if there are too few, rounded up to four decimals.
fn quantile(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (LEVEL * (values.len() + 1) as f64).ceil() as usize;
    let value = values.get(rank.min(values.len()).checked_sub(1)?)?;
    Some((value * 10_000.0).ceil() / 10_000.0)
}

#[cfg(test)]
mod tests {
    use super::super::simulation::report;
    use super::*;

    fn fcp_and_tbt(fcp_ms: f64, tbt_ms: f64) -> Report {
        report([fcp_ms, 2000.0, tbt_ms, 0.0, 1500.0, 3000.0])
    }

    #[test]
    fn the_table_of_this_version_has_a_residual_of_every_figure_and_class() {
        let text = include_str!("../../data/residuals.toml");
        let table: ResidualTable = toml::from_str(text).unwrap();
        assert_eq!(&table, ResidualTable::built_in());
        assert_eq!(table.version, VERSION);
        assert!(table.classes.last().unwrap().max_tbt_ms.is_none());
        for class in &table.classes {
            for figure in Figure::all() {
                let residual = class.residual(figure);
                assert!(residual.is_some_and(|it| it >= 0.0), "{figure:?}");
            }
        }
    }

    #[test]
    fn residuals_are_distances_from_the_mean_of_the_other_audits() {
        let pages = [
            [1000.0, 1000.0, 1060.0]
                .map(|fcp| fcp_and_tbt(fcp, 0.0))
                .to_vec(),
            [500.0, 600.0].map(|fcp| fcp_and_tbt(fcp, 400.0)).to_vec(),
        ];
        let table = ResidualTable::measured(&pages, Origin::default());
        assert_eq!((table.pages, table.audits), (2, 5));
        let [light, heavy] = &table.classes[..] else {
            panic!("{table:?}")
        };
        assert_eq!((light.audits, heavy.audits), (3, 2));
        // The third audit is 60 ms from the mean of two others.
        let expected = 60.0 / 1060.0 * (1.05_f64 / 1.5).sqrt();
        let residual = light.residuals["fcp"];
        assert!((residual - expected).abs() < 1e-4, "{residual}");
        let expected = 100.0 / 500.0 * (1.05_f64 / 2.0).sqrt();
        let residual = heavy.residuals["fcp"];
        assert!((residual - expected).abs() < 1e-4, "{residual}");
        assert_eq!(light.residuals["cls"], 0.01, "it did not vary");
        assert!(table.classes[0].residuals.contains_key("performance"));
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let pages = [[500.0, 600.0].map(|fcp| fcp_and_tbt(fcp, 400.0)).to_vec()];
        let table = ResidualTable::measured(&pages, Origin::default());
        let written = toml::to_string(&table).unwrap();
        assert_eq!(toml::from_str::<ResidualTable>(&written).unwrap(), table);
    }

    #[test]
    fn pages_are_classed_by_their_blocking_time() {
        let pages = [[500.0, 600.0].map(|fcp| fcp_and_tbt(fcp, 400.0)).to_vec()];
        let table = ResidualTable::measured(&pages, Origin::default());
        let name = |report: &Report| table.class_of(report).map(|class| class.name.clone());
        assert_eq!(name(&fcp_and_tbt(1.0, 100.0)).unwrap(), "little work");
        assert_eq!(name(&fcp_and_tbt(1.0, 101.0)).unwrap(), "much work");
        let mut unknown = fcp_and_tbt(1.0, 1.0);
        unknown.metrics.as_mut().unwrap().tbt = None;
        assert_eq!(name(&unknown).unwrap(), "much work");
    }

    #[test]
    fn the_quantile_of_few_values_is_the_largest() {
        assert_eq!(quantile(vec![]), None);
        assert_eq!(quantile(vec![2.0, 1.0]), Some(2.0));
        let nineteen = (1..=19).map(f64::from).collect();
        assert_eq!(quantile(nineteen), Some(18.0));
    }
}
