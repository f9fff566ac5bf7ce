-- The labels of an audit as a JSON array, if it has any.
ALTER TABLE audits ADD COLUMN labels TEXT;

-- The same, one row for each, in the order of lists. Servers of the version before delete audits without knowing of it.
CREATE TABLE audit_labels (
    account_id  TEXT   COLLATE "C" NOT NULL REFERENCES accounts (id),
    label       TEXT   COLLATE "C" NOT NULL,
    accepted_at BIGINT NOT NULL,
    number      BIGINT NOT NULL,
    position    BIGINT NOT NULL REFERENCES audits (position) ON DELETE CASCADE,
    PRIMARY KEY (account_id, label, accepted_at, number)
);
CREATE INDEX audit_labels_by_audit ON audit_labels (position);
