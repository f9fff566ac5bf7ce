-- The labels of an audit as a JSON array, if it has any.
ALTER TABLE audits ADD COLUMN labels TEXT;

-- The same, one row for each, in the order of lists.
CREATE TABLE audit_labels (
    account_id  TEXT    NOT NULL REFERENCES accounts (id),
    label       TEXT    NOT NULL,
    accepted_at INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    position    INTEGER NOT NULL REFERENCES audits (position) ON DELETE CASCADE,
    PRIMARY KEY (account_id, label, accepted_at, number)
) STRICT;
CREATE INDEX audit_labels_by_audit ON audit_labels (position);
