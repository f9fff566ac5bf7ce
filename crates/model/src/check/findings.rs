use plumbline_bundle::OriginalPlace;
use serde::{Deserialize, Serialize};

use super::{Details, Node};

/// A table with typed cells. Every row has a cell for every column.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

/// A column of a [`Findings`] table. Keys are Lighthouse's where it has the same column, so that
/// tools written for Lighthouse's reports find it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub key: String,
    pub label: String,
    pub unit: Unit,
}

/// The type of a column's cells; a cell without a value is [`Cell::Nothing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unit {
    Text,
    Url,
    Element,
    Source,
    Bytes,
    Ms,
    Number,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pub cells: Vec<Cell>,
    /// The parts that the row consists of, in the same columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_rows: Vec<Row>,
    /// Whether the row is a request of the longest chain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_marked: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cell {
    Text(String),
    Url(String),
    Element(Box<Node>),
    Source(SourceLocation),
    Bytes(f64),
    Ms(f64),
    Number(f64),
    Nothing,
}

/// A position in a script or style sheet; lines and columns are counted from 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceLocation {
    pub url: String,
    pub line: u32,
    pub column: u32,
    /// The name of the function; empty for an anonymous one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// The position in the source that the script was built from, if it has a source map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<OriginalPlace>,
}

impl Findings {
    /// Creates a table without rows from columns given as `(key, label, unit)`.
    pub fn new<const N: usize>(columns: [(&str, &str, Unit); N]) -> Self {
        Self {
            columns: columns
                .into_iter()
                .map(|(key, label, unit)| Column {
                    key: key.to_owned(),
                    label: label.to_owned(),
                    unit,
                })
                .collect(),
            rows: Vec::new(),
        }
    }

    pub fn rows(mut self, rows: impl IntoIterator<Item = Row>) -> Self {
        self.rows.extend(rows);
        self
    }
}

impl From<Findings> for Details {
    fn from(findings: Findings) -> Self {
        Self::Findings(findings)
    }
}

impl Row {
    pub fn new(cells: impl IntoIterator<Item = Cell>) -> Self {
        Self {
            cells: cells.into_iter().collect(),
            ..Self::default()
        }
    }

    pub fn with(mut self, sub_rows: impl IntoIterator<Item = Row>) -> Self {
        self.sub_rows.extend(sub_rows);
        self
    }
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub fn url(url: impl Into<String>) -> Self {
        Self::Url(url.into())
    }

    pub fn element(node: &Node) -> Self {
        Self::Element(Box::new(node.clone()))
    }
}
