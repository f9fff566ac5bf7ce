//! The results of one page under several devices and networks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::report::{Metric, Report};
use crate::summary::ReportSummary;

/// The results of a page for every combination of some devices and networks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Matrix {
    pub url: String,
    /// The devices, in the order of the columns.
    pub devices: Vec<MatrixCondition>,
    /// The networks, in the order of the rows.
    pub networks: Vec<MatrixCondition>,
    /// The cells of the first network, then those of the second, and so on.
    pub cells: Vec<MatrixCell>,
}

/// A device or a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixCondition {
    pub id: String,
    pub name: String,
}

/// The result for one device and network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MatrixCell {
    pub device: String,
    pub network: String,
    /// The score of performance; `None` if it is not known (yet).
    pub performance: Option<u8>,
    pub fcp_ms: Option<f64>,
    pub lcp_ms: Option<f64>,
    pub tbt_ms: Option<f64>,
    pub si_ms: Option<f64>,
    pub cls: Option<f64>,
    /// The intervals of these figures, by the names that reports have for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: BTreeMap<String, Interval>,
    /// The number of requests that were not in the recording.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing_requests: u64,
    /// The id of the audit, if a server made it and it is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_id: Option<String>,
    /// The reason why the page was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl MatrixCell {
    /// Creates the cell of a report.
    pub fn of(report: &Report) -> Self {
        Self {
            error: report.error.as_ref().map(|error| error.message.clone()),
            ..Self::from(&ReportSummary::from(report))
        }
    }
}

impl From<&ReportSummary> for MatrixCell {
    fn from(summary: &ReportSummary) -> Self {
        let value = |metric: Option<Metric>| metric.map(|metric| metric.value);
        let metrics = summary.metrics.as_ref();
        let conditions = &summary.conditions;
        Self {
            device: conditions.device.id.clone(),
            network: conditions.network.id.clone(),
            performance: summary.scores.performance,
            fcp_ms: metrics.and_then(|it| value(it.fcp)),
            lcp_ms: metrics.and_then(|it| value(it.lcp)),
            tbt_ms: metrics.and_then(|it| value(it.tbt)),
            si_ms: metrics.and_then(|it| value(it.si)),
            cls: metrics.and_then(|it| value(it.cls)),
            intervals: summary.intervals.clone(),
            missing_requests: conditions
                .replay
                .as_ref()
                .map_or(0, |replay| replay.missing_requests),
            audit_id: None,
            error: None,
        }
    }
}

impl Matrix {
    /// Creates a matrix whose cells are empty.
    pub fn empty(
        url: String,
        devices: Vec<MatrixCondition>,
        networks: Vec<MatrixCondition>,
    ) -> Self {
        let cells = networks.iter().flat_map(|network| {
            devices.iter().map(|device| MatrixCell {
                device: device.id.clone(),
                network: network.id.clone(),
                ..MatrixCell::default()
            })
        });
        Self {
            cells: cells.collect(),
            url,
            devices,
            networks,
        }
    }

    /// Replaces the cell with the same device and network, if there is one.
    pub fn set(&mut self, cell: MatrixCell) {
        let mut cells = self.cells.iter_mut();
        let old = cells.find(|it| it.device == cell.device && it.network == cell.network);
        if let Some(old) = old {
            *old = cell;
        }
    }

    /// Returns the networks with their cells, one for each device.
    pub fn rows(&self) -> impl Iterator<Item = (&MatrixCondition, &[MatrixCell])> {
        let cells = self.cells.chunks(self.devices.len().max(1));
        self.networks.iter().zip(cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_by_device_and_network() {
        let condition = |id: &str| MatrixCondition {
            id: id.to_owned(),
            name: id.to_uppercase(),
        };
        let devices = ["a", "b"].map(condition).to_vec();
        let networks = ["x", "y", "z"].map(condition).to_vec();
        let mut matrix = Matrix::empty("https://example.com/".to_owned(), devices, networks);
        let cell = MatrixCell {
            device: "b".to_owned(),
            network: "y".to_owned(),
            performance: Some(90),
            ..MatrixCell::default()
        };
        matrix.set(cell.clone());
        let unknown = MatrixCell {
            device: "c".to_owned(),
            ..cell
        };
        matrix.set(unknown);
        let scores = matrix.rows().map(|(network, cells)| {
            let scores: Vec<_> = cells.iter().map(|cell| cell.performance).collect();
            (network.id.as_str(), scores)
        });
        let expected = [
            ("x", vec![None, None]),
            ("y", vec![None, Some(90)]),
            ("z", vec![None, None]),
        ];
        assert!(scores.eq(expected));
    }
}
