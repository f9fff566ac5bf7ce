-- Written so that PostgreSQL can follow: plain types, no triggers, times as milliseconds since the
-- Unix epoch, `position` as a growing number.

CREATE TABLE accounts (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    -- Always the sum of the account's ledger rows.
    credits    INTEGER NOT NULL CHECK (credits >= 0),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE keys (
    id         TEXT    NOT NULL PRIMARY KEY,
    account_id TEXT    NOT NULL REFERENCES accounts (id),
    digest     BLOB    NOT NULL CHECK (length(digest) = 32),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;

CREATE TABLE audits (
    -- The order of acceptance: the queue's order, and newest-first listings backwards.
    position         INTEGER PRIMARY KEY,
    tracking_id      TEXT    NOT NULL UNIQUE,
    audit_id         TEXT    NOT NULL UNIQUE,
    account_id       TEXT    NOT NULL REFERENCES accounts (id),
    url              TEXT    NOT NULL,
    device           TEXT    NOT NULL,
    network          TEXT    NOT NULL,
    location         TEXT    NOT NULL,
    state            TEXT    NOT NULL CHECK (state IN ('waiting', 'running', 'completed')),
    attempt          INTEGER NOT NULL DEFAULT 0,
    faults           INTEGER NOT NULL DEFAULT 0,
    lease_owner      TEXT,
    lease_expires_at INTEGER,
    accepted_at      INTEGER NOT NULL,
    finished_at      INTEGER,
    error_code       TEXT,
    error_message    TEXT,
    CHECK ((state = 'running') = (lease_owner IS NOT NULL)),
    CHECK ((state = 'running') = (lease_expires_at IS NOT NULL)),
    CHECK ((state = 'completed') = (finished_at IS NOT NULL)),
    CHECK ((error_code IS NULL) = (error_message IS NULL))
) STRICT;

-- Both hold only what is unfinished: they stay small however many audits are kept.
CREATE INDEX audits_waiting ON audits (position) WHERE state = 'waiting';
CREATE INDEX audits_running ON audits (lease_expires_at) WHERE state = 'running';

-- Apart from `audits`, so that a status is read without stepping over a large report.
CREATE TABLE reports (
    position INTEGER PRIMARY KEY REFERENCES audits (position),
    report   TEXT    NOT NULL
) STRICT;

CREATE TABLE ledger (
    id         INTEGER PRIMARY KEY,
    account_id TEXT    NOT NULL REFERENCES accounts (id),
    amount     INTEGER NOT NULL CHECK (amount <> 0),
    reason     TEXT    NOT NULL CHECK (reason IN ('opening', 'adjustment', 'audit', 'refund')),
    position   INTEGER REFERENCES audits (position),
    at         INTEGER NOT NULL,
    CHECK ((reason IN ('audit', 'refund')) = (position IS NOT NULL))
) STRICT;

CREATE INDEX ledger_by_account ON ledger (account_id, id);
-- No audit is charged twice, and none refunded twice, whatever the code does.
CREATE UNIQUE INDEX ledger_once_per_audit ON ledger (position, reason) WHERE position IS NOT NULL;
