use plumbline_bundle::OriginalPlace;
use serde::{Deserialize, Serialize};

use super::{Findings, Node};

/// The evidence behind a verdict, in a shape that a page can show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Details {
    Elements {
        items: Vec<ElementDetail>,
    },
    Urls {
        items: Vec<UrlDetail>,
    },
    Console {
        items: Vec<ConsoleLine>,
    },
    Values {
        items: Vec<Value>,
    },
    Table(Table),
    /// A table with typed cells: resources, elements and what they cost in bytes or milliseconds.
    Findings(Findings),
    /// A list of conditions, each met or not.
    Checklist {
        items: Vec<ChecklistItem>,
    },
    /// Several details, shown one below the other.
    Parts {
        items: Vec<Details>,
    },
}

/// One condition of a checklist. The id is Lighthouse's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChecklistItem {
    pub id: String,
    pub label: String,
    pub is_met: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElementDetail {
    pub node: Node,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Node>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UrlDetail {
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ConsoleLine {
    pub text: String,
    /// The source of the message: `network`, `exception`, `console.error` …
    pub source: String,
    pub url: String,
    /// The line, counted from 0 as the browser does.
    pub line: Option<u32>,
    pub column: Option<u32>,
    /// The position in the source that the script was built from, if it has a source map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<OriginalPlace>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Value {
    pub name: String,
    pub value: String,
}

/// A table of plain text. Every row has as many cells as there are columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Details {
    pub fn elements(items: impl IntoIterator<Item = ElementDetail>) -> Self {
        Self::Elements {
            items: items.into_iter().collect(),
        }
    }

    pub fn urls(items: impl IntoIterator<Item = UrlDetail>) -> Self {
        Self::Urls {
            items: items.into_iter().collect(),
        }
    }

    pub fn values<const N: usize>(items: [(&str, &str); N]) -> Self {
        Self::Values {
            items: items
                .into_iter()
                .map(|(name, value)| Value {
                    name: name.to_owned(),
                    value: value.to_owned(),
                })
                .collect(),
        }
    }

    pub fn table<const N: usize>(
        columns: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Self {
        Self::Table(Table {
            columns: columns.map(str::to_owned).to_vec(),
            rows: rows.into_iter().map(Vec::from).collect(),
        })
    }

    pub fn checklist<const N: usize>(items: [(&str, String, bool); N]) -> Self {
        Self::Checklist {
            items: items
                .into_iter()
                .map(|(id, label, is_met)| ChecklistItem {
                    id: id.to_owned(),
                    label,
                    is_met,
                })
                .collect(),
        }
    }

    pub fn parts(items: impl IntoIterator<Item = Details>) -> Self {
        Self::Parts {
            items: items.into_iter().collect(),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Elements { items } => items.len(),
            Self::Urls { items } => items.len(),
            Self::Console { items } => items.len(),
            Self::Values { items } => items.len(),
            Self::Table(table) => table.rows.len(),
            Self::Findings(findings) => findings.rows.len(),
            Self::Checklist { items } => items.len(),
            Self::Parts { items } => items.iter().map(Self::len).sum(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<&Node> for ElementDetail {
    fn from(node: &Node) -> Self {
        Self {
            node: node.clone(),
            ..Self::default()
        }
    }
}

impl ElementDetail {
    pub fn with_note(node: &Node, note: impl Into<String>) -> Self {
        Self {
            note: Some(note.into()),
            ..Self::from(node)
        }
    }
}

impl UrlDetail {
    pub fn with_note(url: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            note: Some(note.into()),
        }
    }
}

impl From<String> for UrlDetail {
    fn from(url: String) -> Self {
        Self { url, note: None }
    }
}
