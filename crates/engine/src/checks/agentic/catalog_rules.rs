//! The rules of `ai-catalog.json`: the JSON schema of the specification (ards-project/ard-spec,
//! spec/schemas/ai-catalog.schema.json), and what its conformance test requires in addition.

use serde_json::{Map, Value};

use super::catalog_formats::{is_date_time, is_uri, is_urn};

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// The path of the member, such as `entries[0].url`.
    pub member: String,
    pub text: String,
    pub severity: Severity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    Error,
    Warning,
}

/// The shape that the schema requires of a value.
enum Shape {
    Text,
    /// A text that is not empty.
    NonEmptyText,
    Uri,
    DateTime,
    Urn,
    OneOf(&'static [&'static str]),
    /// A list with its minimum and maximum length.
    List(&'static Shape, usize, usize),
    Object(&'static ObjectShape),
    /// An object with any members.
    AnyObject,
    /// An object whose members are neither objects nor lists.
    FlatObject,
}

struct ObjectShape {
    required: &'static [&'static str],
    members: &'static [(&'static str, Shape)],
    /// Whether other members are allowed.
    is_open: bool,
}

const TEXTS: Shape = Shape::List(&Shape::Text, 0, usize::MAX);

const CATALOG: ObjectShape = ObjectShape {
    required: &["specVersion", "entries"],
    members: &[
        ("specVersion", Shape::OneOf(&["1.0"])),
        ("host", Shape::Object(&HOST)),
        (
            "entries",
            Shape::List(&Shape::Object(&ENTRY), 0, usize::MAX),
        ),
    ],
    is_open: false,
};

const HOST: ObjectShape = ObjectShape {
    required: &["displayName"],
    members: &[
        ("displayName", Shape::Text),
        ("identifier", Shape::Text),
        ("documentationUrl", Shape::Uri),
        ("logoUrl", Shape::Uri),
        ("trustManifest", Shape::Object(&HOST_TRUST)),
    ],
    is_open: false,
};

const ENTRY: ObjectShape = ObjectShape {
    required: &["identifier", "displayName", "type"],
    members: &[
        ("identifier", Shape::Urn),
        ("displayName", Shape::NonEmptyText),
        ("type", Shape::NonEmptyText),
        ("url", Shape::Uri),
        ("data", Shape::AnyObject),
        ("description", Shape::Text),
        ("tags", TEXTS),
        ("capabilities", TEXTS),
        ("representativeQueries", Shape::List(&Shape::Text, 2, 5)),
        ("version", Shape::Text),
        ("updatedAt", Shape::DateTime),
        ("metadata", Shape::FlatObject),
        ("trustManifest", Shape::Object(&ENTRY_TRUST)),
    ],
    is_open: true,
};

/// The conformance test requires an identity only in the trust manifests of entries.
const ENTRY_TRUST: ObjectShape = trust_manifest(&[
    ("identity", Shape::NonEmptyText),
    IDENTITY_TYPE,
    TRUST_SCHEMA,
    ATTESTATIONS,
    PROVENANCE,
    SIGNATURE,
]);
const HOST_TRUST: ObjectShape = trust_manifest(&[
    ("identity", Shape::Text),
    IDENTITY_TYPE,
    TRUST_SCHEMA,
    ATTESTATIONS,
    PROVENANCE,
    SIGNATURE,
]);

const fn trust_manifest(members: &'static [(&'static str, Shape)]) -> ObjectShape {
    ObjectShape {
        required: &["identity"],
        members,
        is_open: false,
    }
}

const IDENTITY_TYPE: (&str, Shape) = (
    "identityType",
    Shape::OneOf(&["spiffe", "did", "https", "other"]),
);

const TRUST_SCHEMA: (&str, Shape) = (
    "trustSchema",
    Shape::Object(&ObjectShape {
        required: &["identifier", "version"],
        members: &[
            ("identifier", Shape::Text),
            ("version", Shape::Text),
            ("governanceUri", Shape::Uri),
            ("verificationMethods", TEXTS),
        ],
        is_open: false,
    }),
);

const ATTESTATIONS: (&str, Shape) = (
    "attestations",
    Shape::List(
        &Shape::Object(&ObjectShape {
            required: &["type", "uri", "mediaType"],
            members: &[
                ("type", Shape::Text),
                ("uri", Shape::Uri),
                ("mediaType", Shape::Text),
                ("digest", Shape::Text),
            ],
            is_open: false,
        }),
        0,
        usize::MAX,
    ),
);

const PROVENANCE: (&str, Shape) = (
    "provenance",
    Shape::List(
        &Shape::Object(&ObjectShape {
            required: &["relation", "sourceId"],
            members: &[
                (
                    "relation",
                    Shape::OneOf(&["derivedFrom", "publishedFrom", "copiedFrom"]),
                ),
                ("sourceId", Shape::Text),
                ("sourceDigest", Shape::Text),
            ],
            is_open: false,
        }),
        0,
        usize::MAX,
    ),
);

const SIGNATURE: (&str, Shape) = ("signature", Shape::Text);

/// The media types of entries that the conformance test knows.
const MEDIA_TYPES: [&str; 9] = [
    "application/ai-catalog+json",
    "application/agent-card+json",
    "application/a2a-agent-card+json",
    "application/mcp-server-card+json",
    "application/agent-skills+zip",
    "application/agent-skills+gzip",
    "text/markdown; profile=\"urn:air:agent-skills\"",
    "application/ai-registry",
    "application/ai-registry+json",
];

/// Returns the problems of a catalog, errors first.
pub(super) fn problems(content: &str) -> Vec<Problem> {
    let mut problems = Problems(Vec::new());
    match serde_json::from_str::<Value>(content) {
        Ok(catalog) => {
            problems.check_object("", &catalog, &CATALOG);
            let entries = catalog["entries"].as_array().into_iter().flatten();
            let paths = (0..).map(|index| format!("entries[{index}]"));
            let entries: Vec<_> = paths.zip(entries.filter_map(Value::as_object)).collect();
            for (path, entry) in &entries {
                problems.check_reference(path, entry);
            }
            for (path, entry) in &entries {
                problems.check_recommendations(path, entry);
            }
        }
        Err(error) => problems.error("", format!("The file is not JSON: {error}.")),
    }
    problems.0
}

struct Problems(Vec<Problem>);

impl Problems {
    fn error(&mut self, path: &str, text: impl Into<String>) {
        self.add(path, text, Severity::Error);
    }

    fn add(&mut self, path: &str, text: impl Into<String>, severity: Severity) {
        let member = if path.is_empty() {
            "(whole file)"
        } else {
            path
        };
        self.0.push(Problem {
            member: member.to_owned(),
            text: text.into(),
            severity,
        });
    }

    fn check_object(&mut self, path: &str, value: &Value, shape: &ObjectShape) {
        let Some(object) = value.as_object() else {
            return self.error(path, "This has to be an object.");
        };
        let member_path = |name: &str| match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        for name in shape.required {
            if !object.contains_key(*name) {
                self.error(&member_path(name), "This member is required.");
            }
        }
        for (name, value) in object {
            match shape.members.iter().find(|(known, _)| known == name) {
                Some((_, shape)) => self.check(&member_path(name), value, shape),
                None if shape.is_open => {}
                None => self.error(&member_path(name), "The schema does not have this member."),
            }
        }
    }

    fn check(&mut self, path: &str, value: &Value, shape: &Shape) {
        let text = value.as_str();
        match shape {
            Shape::Object(shape) => self.check_object(path, value, shape),
            Shape::List(items, min, max) => self.check_list(path, value, items, *min, *max),
            Shape::AnyObject if !value.is_object() => self.error(path, "This has to be an object."),
            Shape::FlatObject => match value.as_object() {
                None => self.error(path, "This has to be an object."),
                Some(object) if object.values().any(|v| v.is_object() || v.is_array()) => {
                    self.error(path, "Values have to be texts, numbers, booleans or null.");
                }
                Some(_) => {}
            },
            Shape::AnyObject => {}
            _ if text.is_none() => self.error(path, "This has to be a text."),
            Shape::NonEmptyText if text == Some("") => self.error(path, "This must not be empty."),
            Shape::Uri if !text.is_some_and(is_uri) => self.error(path, "This has to be a URI."),
            Shape::DateTime if !text.is_some_and(is_date_time) => {
                self.error(path, "This has to be a date and time of RFC 3339.");
            }
            Shape::Urn if !text.is_some_and(is_urn) => self.error(
                path,
                "This has to be a URN of the form `urn:air:<publisher>:<namespace>:<name>`.",
            ),
            Shape::OneOf(known) if !text.is_some_and(|text| known.contains(&text)) => {
                self.error(
                    path,
                    format!("This has to be one of: {}.", known.join(", ")),
                );
            }
            Shape::Text
            | Shape::NonEmptyText
            | Shape::Uri
            | Shape::DateTime
            | Shape::Urn
            | Shape::OneOf(_) => {}
        }
    }

    fn check_list(&mut self, path: &str, value: &Value, items: &Shape, min: usize, max: usize) {
        let Some(list) = value.as_array() else {
            return self.error(path, "This has to be a list.");
        };
        if !(min..=max).contains(&list.len()) {
            self.error(path, format!("This has to have {min} to {max} values."));
        }
        for (index, item) in list.iter().enumerate() {
            self.check(&format!("{path}[{index}]"), item, items);
        }
    }

    /// Checks that an entry either contains its artifact or refers to it.
    fn check_reference(&mut self, path: &str, entry: &Map<String, Value>) {
        if entry.contains_key("url") == entry.contains_key("data") {
            self.error(path, "An entry has to have either `url` or `data`.");
        }
    }

    fn check_recommendations(&mut self, path: &str, entry: &Map<String, Value>) {
        let media_type = entry.get("type").and_then(Value::as_str);
        if media_type.is_some_and(|media_type| !MEDIA_TYPES.contains(&media_type)) {
            let text = "This media type is not one of the known types.";
            self.add(&format!("{path}.type"), text, Severity::Warning);
        }
        if !entry.contains_key("representativeQueries") {
            let text = "Two to five representative queries are recommended.";
            self.add(path, text, Severity::Warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry() -> Value {
        json!({
            "identifier": "urn:air:example.test:shop:search",
            "displayName": "Search",
            "type": "application/mcp-server-card+json",
            "url": "https://example.test/mcp.json",
            "representativeQueries": ["find shoes", "find shirts"],
        })
    }

    fn catalog(entry: &Value) -> Value {
        json!({"specVersion": "1.0", "entries": [entry]})
    }

    /// Returns the members with problems of a catalog.
    fn members(catalog: &Value, severity: Severity) -> Vec<String> {
        let problems = problems(&catalog.to_string()).into_iter();
        let problems = problems.filter(|problem| problem.severity == severity);
        problems.map(|problem| problem.member).collect()
    }

    /// Asserts that an entry with one changed member has one error, at that member.
    fn assert_wrong(member: &str, value: &Value) {
        let mut entry = entry();
        entry[member] = value.clone();
        let path = format!("entries[0].{member}");
        let errors = members(&catalog(&entry), Severity::Error);
        assert!(
            errors.len() == 1 && errors[0].starts_with(&path),
            "{member}: {value} {errors:?}"
        );
    }

    #[test]
    fn a_complete_catalog_has_no_problems() {
        let mut entry = entry();
        entry["tags"] = json!(["a"]);
        entry["updatedAt"] = json!("2026-09-18T12:00:00Z");
        entry["metadata"] = json!({"a": null, "b": 1, "c": "x", "d": true});
        entry["anything"] = json!([]);
        entry["trustManifest"] = json!({
            "identity": "did:web:example.test", "identityType": "did", "signature": "x",
            "trustSchema": {"identifier": "a", "version": "1", "governanceUri": "https://a.test/"},
            "attestations": [{"type": "SOC2", "uri": "https://a.test/", "mediaType": "text/html"}],
            "provenance": [{"relation": "copiedFrom", "sourceId": "x"}]});
        let mut catalog = catalog(&entry);
        catalog["host"] = json!({"displayName": "", "logoUrl": "https://a.test/l.png",
            "trustManifest": {"identity": ""}});
        assert_eq!(problems(&catalog.to_string()), []);
    }

    #[test]
    fn wrong_members_of_the_catalog_are_errors() {
        for (catalog, member) in [
            (json!([]), "(whole file)"),
            (json!(null), "(whole file)"),
            (json!({"entries": []}), "specVersion"),
            (json!({"specVersion": "2.0", "entries": []}), "specVersion"),
            (json!({"specVersion": 1.0, "entries": []}), "specVersion"),
            (json!({"specVersion": "1.0"}), "entries"),
            (json!({"specVersion": "1.0", "entries": {}}), "entries"),
            (
                json!({"specVersion": "1.0", "entries": [null]}),
                "entries[0]",
            ),
            (
                json!({"specVersion": "1.0", "entries": [], "collections": []}),
                "collections",
            ),
            (
                json!({"specVersion": "1.0", "entries": [], "$schema": "x"}),
                "$schema",
            ),
            (
                json!({"specVersion": "1.0", "entries": [], "host": {}}),
                "host.displayName",
            ),
        ] {
            assert_eq!(members(&catalog, Severity::Error), [member], "{catalog}");
        }
        assert_eq!(problems("{").len(), 1);
    }

    #[test]
    fn wrong_members_of_an_entry_are_errors() {
        for (member, value) in [
            ("identifier", json!("urn:air:example.test")),
            ("identifier", json!("http://example.test")),
            ("displayName", json!("")),
            ("type", json!(null)),
            ("url", json!("/mcp.json")),
            ("tags", json!("a")),
            ("capabilities", json!([1])),
            ("representativeQueries", json!(["one"])),
            (
                "representativeQueries",
                json!(["1", "2", "3", "4", "5", "6"]),
            ),
            ("representativeQueries", json!(null)),
            ("updatedAt", json!("2026-09-18")),
            ("metadata", json!({"a": {}})),
            ("trustManifest", json!(null)),
            ("trustManifest", json!({"identity": ""})),
            ("trustManifest", json!({"identity": "x", "more": 1})),
            (
                "trustManifest",
                json!({"identity": "x", "identityType": "dns"}),
            ),
        ] {
            assert_wrong(member, &value);
        }
    }

    #[test]
    fn an_entry_has_either_a_url_or_data() {
        let mut both = entry();
        both["data"] = json!({});
        assert_eq!(members(&catalog(&both), Severity::Error), ["entries[0]"]);
        let mut neither = entry();
        neither.as_object_mut().unwrap().remove("url");
        assert_eq!(members(&catalog(&neither), Severity::Error), ["entries[0]"]);
    }

    #[test]
    fn unknown_types_and_missing_queries_are_warnings() {
        let mut entry = entry();
        entry["type"] = json!("application/json");
        entry
            .as_object_mut()
            .unwrap()
            .remove("representativeQueries");
        let catalog = catalog(&entry);
        assert!(members(&catalog, Severity::Error).is_empty());
        let warnings = members(&catalog, Severity::Warning);
        assert_eq!(warnings, ["entries[0].type", "entries[0]"]);
    }
}
