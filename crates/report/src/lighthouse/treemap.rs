//! The nodes of Lighthouse's treemap (types/lhr/treemap.d.ts): scripts, and the sources of each as
//! a tree of directories.

use plumbline_model::check::{Details, Row};
use serde_json::{Map, Value, json};

use crate::script_sizes::ScriptSizes;

/// Maximum depth of directories. The rest of a path is part of the name.
const MAX_DEPTH: usize = 16;

/// Returns the nodes of all scripts, or `None` if the details have another format.
pub(super) fn nodes(details: &Details) -> Option<Vec<Value>> {
    let Details::Findings(table) = details else {
        return None;
    };
    let nodes = table.rows.iter().map(|row| {
        let mut node = Node::of(row);
        for source in &row.sub_rows {
            let part = Node::of(source);
            // The beginning of an inline script is not a path.
            let is_path = !part.name.starts_with('(');
            let name = part.name.clone();
            let directories = if is_path { MAX_DEPTH } else { 1 };
            let path: Vec<&str> = name.splitn(directories, '/').collect();
            add(&mut node.children, &path, part);
        }
        node.children.iter_mut().for_each(join_single_children);
        node.into_json()
    });
    Some(nodes.collect())
}

#[derive(Default)]
struct Node {
    name: String,
    resource_bytes: f64,
    encoded_bytes: f64,
    unused_bytes: Option<f64>,
    children: Vec<Node>,
}

impl Node {
    fn of(row: &Row) -> Self {
        let sizes = ScriptSizes::of(row);
        Self {
            name: sizes.name.to_owned(),
            resource_bytes: sizes.resource_bytes,
            encoded_bytes: sizes.encoded_bytes,
            unused_bytes: sizes.unused_bytes,
            children: Vec::new(),
        }
    }

    fn count(&mut self, part: &Self) {
        self.resource_bytes += part.resource_bytes;
        self.encoded_bytes += part.encoded_bytes;
        if let Some(unused) = part.unused_bytes {
            *self.unused_bytes.get_or_insert_default() += unused;
        }
    }

    fn into_json(self) -> Value {
        let mut node = Map::new();
        node.insert("name".to_owned(), json!(self.name));
        node.insert("resourceBytes".to_owned(), json!(self.resource_bytes));
        node.insert("encodedBytes".to_owned(), json!(self.encoded_bytes));
        if let Some(unused) = self.unused_bytes {
            node.insert("unusedBytes".to_owned(), json!(unused));
        }
        if !self.children.is_empty() {
            let children: Vec<Value> = self.children.into_iter().map(Self::into_json).collect();
            node.insert("children".to_owned(), json!(children));
        }
        Value::Object(node)
    }
}

/// Adds a source below the directories of its path, and its sizes to each of them.
fn add(children: &mut Vec<Node>, path: &[&str], source: Node) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        children.push(Node {
            name: (*first).to_owned(),
            ..source
        });
        return;
    }
    let is_same = |node: &Node| node.name == *first && !node.children.is_empty();
    let at = children.iter().position(is_same).unwrap_or_else(|| {
        children.push(Node {
            name: (*first).to_owned(),
            ..Node::default()
        });
        children.len() - 1
    });
    let directory = &mut children[at];
    directory.count(&source);
    add(&mut directory.children, rest, source);
}

/// Joins directories that contain one entry with that entry.
fn join_single_children(node: &mut Node) {
    while let [_] = node.children.as_slice()
        && let Some(child) = node.children.pop()
    {
        node.name = format!("{}/{}", node.name, child.name);
        node.children = child.children;
    }
    node.children.iter_mut().for_each(join_single_children);
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::{Cell, Findings};

    use super::*;

    fn row(name: &str, size: f64) -> Row {
        Row::new([
            Cell::url(name),
            Cell::Bytes(size),
            Cell::Bytes(size / 2.0),
            Cell::Bytes(1.0),
        ])
    }

    fn nodes_of(rows: Vec<Row>) -> Value {
        let columns = Vec::new();
        json!(nodes(&Details::Findings(Findings { columns, rows })).unwrap())
    }

    #[test]
    fn sources_become_a_tree_of_directories() {
        let sources = [
            row("src/lib/a.js", 10.0),
            row("src/lib/b.js", 20.0),
            row("src/main.js", 30.0),
            row("vendor/deep/only.js", 40.0),
            row("(unmapped)", 4.0),
        ];
        let nodes = nodes_of(vec![row("https://a.test/a.js", 104.0).with(sources)]);
        let script = &nodes[0];
        assert_eq!(script["name"], "https://a.test/a.js");
        assert_eq!(script["resourceBytes"], 104.0);
        assert_eq!(script["unusedBytes"], 1.0);
        let names = |node: &Value| -> Vec<String> {
            let children = node["children"].as_array().unwrap().iter();
            children
                .map(|child| child["name"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(names(script), ["src", "vendor/deep/only.js", "(unmapped)"]);
        let src = &script["children"][0];
        assert_eq!(src["resourceBytes"], 60.0);
        assert_eq!(src["unusedBytes"], 3.0);
        assert_eq!(names(src), ["lib", "main.js"]);
        assert_eq!(names(&src["children"][0]), ["a.js", "b.js"]);
    }

    #[test]
    fn inline_scripts_keep_their_names() {
        let inline = row("(inline) a/b/c…", 5.0);
        let nodes = nodes_of(vec![row("https://a.test/", 5.0).with([inline])]);
        assert_eq!(nodes[0]["children"][0]["name"], "(inline) a/b/c…");
        let other = Details::Urls { items: Vec::new() };
        assert!(super::nodes(&other).is_none());
    }

    #[test]
    fn the_depth_is_limited() {
        let path = "a/".repeat(5_000) + "end.js";
        let deep = [row(&path, 1.0), row("a/b.js", 1.0)];
        let nodes = nodes_of(vec![row("https://a.test/a.js", 2.0).with(deep)]);
        let mut depth = 0;
        let mut node = &nodes[0];
        while let Some(child) = node["children"].get(0) {
            (node, depth) = (child, depth + 1);
        }
        assert!(depth <= MAX_DEPTH, "{depth}");
    }
}
