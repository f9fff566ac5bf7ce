//! All tables of the schema, with the checksums that verify a copy.

/// A table with its columns and checksums.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [&'static str],
    /// The expressions whose sums must be equal in both databases: numbers, lengths of text, and
    /// remainders of times, so that no sum can overflow.
    sums: &'static [&'static str],
    pub(super) rows_at_once: usize,
}

/// All tables, in an order in which references point to earlier tables.
pub(super) const TABLES: &[Table] = &[
    Table {
        name: "accounts",
        columns: &[
            "id",
            "name",
            "credits",
            "created_at",
            "audits",
            "webhook_secret",
        ],
        sums: &[
            "credits",
            "audits",
            "created_at % 1000003",
            "length(name)",
            "length(webhook_secret)",
        ],
        rows_at_once: 500,
    },
    Table {
        name: "keys",
        columns: &[
            "id",
            "account_id",
            "digest",
            "created_at",
            "expires_at",
            "revoked_at",
        ],
        sums: &[
            "created_at % 1000003",
            "expires_at % 1000003",
            "revoked_at % 1000003",
        ],
        rows_at_once: 500,
    },
    Table {
        name: "batches",
        columns: &["id", "account_id", "audits", "accepted_at", "finished"],
        sums: &["audits", "accepted_at % 1000003", "finished"],
        rows_at_once: 500,
    },
    Table {
        name: "audits",
        columns: &[
            "position",
            "tracking_id",
            "audit_id",
            "account_id",
            "number",
            "batch_id",
            "url",
            "device",
            "network",
            "location",
            "options",
            "runs",
            "webhook",
            "state",
            "attempt",
            "faults",
            "lease_owner",
            "lease_expires_at",
            "accepted_at",
            "finished_at",
            "error_code",
            "error_message",
            "lab_data",
            "summary",
            "final_url",
            "labels",
        ],
        sums: &[
            "position",
            "number",
            "length(batch_id)",
            "length(url)",
            "length(device)",
            "length(network)",
            "length(location)",
            "length(options)",
            "runs",
            "length(webhook)",
            "length(state)",
            "attempt",
            "faults",
            "lease_expires_at % 1000003",
            "accepted_at % 1000003",
            "finished_at % 1000003",
            "length(error_code)",
            "length(error_message)",
            "length(lab_data)",
            "length(summary)",
            "length(final_url)",
            "length(labels)",
        ],
        rows_at_once: 500,
    },
    Table {
        name: "audit_labels",
        columns: &["account_id", "label", "accepted_at", "number", "position"],
        sums: &[
            "length(label)",
            "accepted_at % 1000003",
            "number",
            "position",
        ],
        rows_at_once: 500,
    },
    Table {
        name: "reports",
        columns: &["position", "report"],
        sums: &["position", "length(report)"],
        rows_at_once: 20,
    },
    Table {
        name: "ledger",
        columns: &[
            "id",
            "account_id",
            "amount",
            "reason",
            "position",
            "at",
            "never_leased",
        ],
        sums: &["id", "amount", "length(reason)", "position", "at % 1000003"],
        rows_at_once: 500,
    },
    Table {
        name: "replies",
        columns: &["account_id", "key", "digest", "reply", "expires_at"],
        sums: &["length(key)", "length(reply)", "expires_at % 1000003"],
        rows_at_once: 100,
    },
    Table {
        name: "deliveries",
        columns: &[
            "position",
            "attempts",
            "state",
            "due_at",
            "last_error",
            "account_id",
            "claimed_until",
            "batch_id",
            "is_batch",
        ],
        sums: &["position", "attempts", "length(state)", "due_at % 1000003"],
        rows_at_once: 500,
    },
    Table {
        name: "sessions",
        columns: &["digest", "key_id", "expires_at"],
        sums: &["expires_at % 1000003"],
        rows_at_once: 500,
    },
    Table {
        name: "shares",
        columns: &["position", "token", "shared_at", "expires_at"],
        sums: &[
            "position",
            "length(token)",
            "shared_at % 1000003",
            "expires_at % 1000003",
        ],
        rows_at_once: 500,
    },
    Table {
        name: "page_shares",
        columns: &["token", "account_id", "page", "shared_at", "expires_at"],
        sums: &[
            "length(token)",
            "length(page)",
            "shared_at % 1000003",
            "expires_at % 1000003",
        ],
        rows_at_once: 500,
    },
    Table {
        name: "turns",
        columns: &["account_id", "turn"],
        sums: &["turn"],
        rows_at_once: 500,
    },
    Table {
        name: "agents",
        columns: &[
            "id",
            "name",
            "digest",
            "created_at",
            "revoked_at",
            "drained_at",
            "locations",
            "slots",
        ],
        sums: &[
            "length(name)",
            "created_at % 1000003",
            "revoked_at % 1000003",
            "drained_at % 1000003",
            "length(locations)",
            "slots",
        ],
        rows_at_once: 500,
    },
    Table {
        name: "stored_secrets",
        columns: &["account_id", "name", "sealed", "created_at", "updated_at"],
        sums: &[
            "length(name)",
            "length(sealed)",
            "created_at % 1000003",
            "updated_at % 1000003",
        ],
        rows_at_once: 100,
    },
    Table {
        name: "saved_sessions",
        columns: &[
            "account_id",
            "name",
            "version",
            "definition",
            "created_at",
            "updated_at",
            "state",
            "made_at",
        ],
        sums: &[
            "length(name)",
            "version % 1000003",
            "length(definition)",
            "created_at % 1000003",
            "updated_at % 1000003",
            "length(state)",
            "made_at % 1000003",
        ],
        rows_at_once: 20,
    },
    Table {
        name: "lanes",
        columns: &["account_id", "location", "interactive", "turn", "since"],
        sums: &["turn", "since"],
        rows_at_once: 500,
    },
];

impl Table {
    /// Returns a query, valid in both dialects, for one text with the number of rows and every sum.
    pub(super) fn checksum_sql(&self, text: &str) -> String {
        let sums = self
            .sums
            .iter()
            .map(|sum| format!("coalesce(sum({sum}), 0)"));
        let parts: Vec<_> = std::iter::once("count(*)".to_owned())
            .chain(sums)
            .map(|part| format!("CAST({part} AS {text})"))
            .collect();
        format!("SELECT {} FROM {}", parts.join(" || ' ' || "), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite;

    /// Tables that are not copied: the first is filled by the schema and updated at the end, the
    /// second is filled again by running agents.
    const NOT_COPIED: &[&str] = &["queue_clock", "sightings"];

    /// Fails when a table or column is added to the schema but not to `TABLES`.
    #[test]
    fn every_table_and_column_is_moved() {
        let directory = tempfile::tempdir().unwrap();
        let source = sqlite::open_writer(&directory.path().join("some.db")).unwrap();
        let names: Vec<String> = source
            .prepare(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
            )
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for name in names
            .iter()
            .filter(|name| !NOT_COPIED.contains(&name.as_str()))
        {
            let table = TABLES.iter().find(|table| table.name == name);
            let table = table.unwrap_or_else(|| panic!("{name} is not moved"));
            let mut columns: Vec<String> = source
                .prepare(&format!("SELECT name FROM pragma_table_info('{name}')"))
                .unwrap()
                .query_map([], |row| row.get(0))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            let mut moved: Vec<_> = table
                .columns
                .iter()
                .map(|&column| column.to_owned())
                .collect();
            columns.sort();
            moved.sort();
            assert_eq!(moved, columns, "{name}");
        }
        assert_eq!(names.len(), TABLES.len() + NOT_COPIED.len());
    }
}
