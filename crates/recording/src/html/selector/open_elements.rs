//! The elements that are open at a position of a document.

use std::collections::BTreeMap;

use crate::html::Tag;

/// Elements without content and end tag (HTML Standard, 13.1.2).
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];

/// Elements whose end tag is often left out, with the names whose start tag ends them.
const ENDED_BY: [(&str, &[&str]); 8] = [
    ("li", &["li"]),
    ("dt", &["dt", "dd"]),
    ("dd", &["dt", "dd"]),
    ("tr", &["tr", "tbody", "tfoot"]),
    ("td", &["td", "th", "tr"]),
    ("th", &["td", "th", "tr"]),
    ("option", &["option", "optgroup"]),
    (
        "p",
        &[
            "address",
            "article",
            "aside",
            "blockquote",
            "div",
            "dl",
            "fieldset",
            "figure",
            "footer",
            "form",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "header",
            "hr",
            "main",
            "nav",
            "ol",
            "p",
            "pre",
            "section",
            "table",
            "ul",
        ],
    ),
];

/// The deepest nesting that is followed; browsers have a limit of 512, too.
const MAX_DEPTH: usize = 512;

/// An element with its position among its siblings.
#[derive(Debug, Clone)]
pub struct Node {
    pub tag: Tag,
    pub nth_child: usize,
    pub nth_of_type: usize,
    /// True at the position of each step of a selector that the element matches.
    pub is_match: Vec<bool>,
    /// True at the position of each step that the element or an ancestor matches.
    pub is_within_match: Vec<bool>,
    children: Children,
}

/// The numbers of children so far.
#[derive(Debug, Clone, Default)]
struct Children {
    total: usize,
    by_name: BTreeMap<String, usize>,
}

impl Children {
    /// Counts a child, and returns its position among all and among those of its name.
    fn count(&mut self, name: &str) -> (usize, usize) {
        self.total += 1;
        let of_type = self.by_name.entry(name.to_owned()).or_default();
        *of_type += 1;
        (self.total, *of_type)
    }
}

/// The open elements, from the outermost to the innermost.
#[derive(Debug, Default)]
pub struct OpenElements {
    nodes: Vec<Node>,
    /// The elements without a parent.
    roots: Children,
}

impl OpenElements {
    /// Ends elements that a start tag ends, and returns the new element, which is not open yet.
    pub fn begin(&mut self, tag: Tag) -> Node {
        while let Some(last) = self.nodes.last()
            && ENDED_BY
                .iter()
                .any(|(name, by)| *name == last.tag.name && by.contains(&tag.name.as_str()))
        {
            self.nodes.pop();
        }
        let siblings = match self.nodes.last_mut() {
            Some(parent) => &mut parent.children,
            None => &mut self.roots,
        };
        let (nth_child, nth_of_type) = siblings.count(&tag.name);
        Node {
            tag,
            nth_child,
            nth_of_type,
            is_match: Vec::new(),
            is_within_match: Vec::new(),
            children: Children::default(),
        }
    }

    /// Opens an element, unless it has no content.
    pub fn push(&mut self, node: Node) {
        if !VOID.contains(&node.tag.name.as_str()) && self.nodes.len() < MAX_DEPTH {
            self.nodes.push(node);
        }
    }

    /// Closes the innermost element of a name with everything in it.
    pub fn end(&mut self, name: &str) {
        if let Some(position) = self.nodes.iter().rposition(|it| it.tag.name == name) {
            self.nodes.truncate(position);
        }
    }

    /// Returns the innermost element.
    pub fn parent(&self) -> Option<&Node> {
        self.nodes.last()
    }
}
